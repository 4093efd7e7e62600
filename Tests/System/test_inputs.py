"""Inputs as a vehicle has them, written by another program: what stands in the way, a stop button, the vehicle moves."""

import time
from pathlib import Path

import pytest

from programs import wait_until

INPUTS = """
[inputs]
enable = "file:inputs/enable"

[inputs.steps.left]
clear = { source = "file:inputs/clear", debounce_ms = 50 }

[interlock]
standing = "file:inputs/standing"
"""


class Wired:
    """A vehicle with inputs, all of them active."""

    def __init__(self, vehicle, library: Path):
        self.vehicle, self.library = vehicle, library
        self.folder = vehicle.folder / "inputs"
        self.folder.mkdir()
        for name in ("enable", "clear", "standing"):
            self.writes(name, "1")
        vehicle.edit("stepd.toml", travel_s=2, limit_s=10)
        with open(vehicle.folder / "stepd.toml", "a") as file:
            file.write(INPUTS)
        vehicle.starts_broker()

    def writes(self, name: str, level: str):
        """As a whole, and at once."""
        new = self.folder / f".{name}.new"
        new.write_text(level)
        new.rename(self.folder / name)

    def starts(self, **variables):
        return self.vehicle.starts_stepd(LD_PRELOAD=self.library, **variables)


@pytest.fixture
def wired(parked, preloaded):
    return Wired(parked, preloaded("slow"))


@pytest.mark.parametrize(
    "name, refusal",
    [("enable", "stopped"), ("clear", "obstructed"), ("standing", "vehicle_moving")],
)
@pytest.mark.parametrize("loss", ["0", "", None])
def test_nothing_begins_while_an_input_is_inactive_or_lost(wired, name, refusal, loss):
    stepd = wired.starts()
    shown = "left.clear" if name == "clear" else name
    if loss is None:
        (wired.folder / name).unlink()
    else:
        wired.writes(name, loss)
    if loss != "0":
        stepd.says(f"the input {shown} is lost: ")
    alice = wired.vehicle.rider("alice")
    ended = alice.moves("open", "left")
    assert ended.status == 5, ended
    stepd.says(f"alice asked to open: {refusal.replace('_', ' ')}")
    wired.writes(name, "1")
    if loss != "0":
        stepd.says(f"the input {shown} is active again")
    # stepd counts an input as active when its debounce has passed; stepctl is quicker than 50 ms.
    wait_until(lambda: alice.moves("open", "left").status == 0, "a motion")


@pytest.mark.parametrize("name, fault", [("enable", "stopped"), ("clear", "obstructed"), ("standing", "vehicle_moving")])
def test_a_motion_ends_when_an_input_goes(wired, name, fault):
    wired.vehicle.takes_long()
    stepd = wired.starts()
    alice = wired.vehicle.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    wait_until(lambda: wired.vehicle.motions, "the step is on its way")
    wired.writes(name, "0")
    stepd.says(f"left: fault {fault}")
    assert opening.ends().status == 6


def test_an_input_that_cannot_be_read_to_its_end_ends_a_motion(wired):
    wired.vehicle.takes_long(8)
    stepd = wired.starts(SLOW_READ="/inputs/clear", SLOW_READ_MS=700)
    # A file is read in two reads, and the first time took its time, too.
    time.sleep(5)
    alice = wired.vehicle.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    wait_until(lambda: wired.vehicle.motions, "the step is on its way")
    # Nothing has changed, but nobody can know that.
    wired.writes("clear", "1")
    stepd.says("all inputs count as lost: the thread that reads them does not answer")
    stepd.says("left: fault ")
    # Before its motion was over, that is.
    assert opening.ends().status == 6
    # And then they are read again.
    wait_until(lambda: alice.moves("close", "left").status == 0, "a motion")


def test_check_sees_that_inputs_can_be_read(wired):
    check = wired.vehicle.checks
    assert check().status == 0
    wired.writes("clear", "open")
    ended = check()
    assert ended.status == 74 and ended.stderr.endswith("/inputs/clear: File too large\n"), ended
    wired.writes("clear", "x")
    ended = check()
    assert ended.status == 65 and ended.stderr.endswith("/inputs/clear does not hold 0 or 1\n"), ended
    (wired.folder / "clear").unlink()
    assert check().status == 66
