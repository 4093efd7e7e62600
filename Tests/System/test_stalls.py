"""stepd that is held up, whose disk or servo is slow, or that nobody can tell where its steps are: nothing is thrown."""

import signal
import time
from pathlib import Path

import pytest

from programs import wait_until
from pwm import Servos, longest_stride

TICK_S = 0.020
TRAVEL_S = 8
CLOSED, OPEN = 1_000_000, 2_000_000  # ns
# The most in one frame: the speed has the shape of a trapezoid, and its ramps are a quarter of the time each.
LONGEST_STRIDE = (OPEN - CLOSED) * TICK_S / TRAVEL_S / 0.75 + 1


class Rig(Servos):
    """A vehicle that drives its servos."""

    def __init__(self, vehicle, library: Path):
        super().__init__(vehicle, library)
        for channel in (0, 1):
            self.holds(channel, 0, period=0)
        vehicle.takes_long(TRAVEL_S)
        vehicle.starts_broker()

    def starts_stepd(self, **variables):
        self.vehicle.starts_stepd(**self.variables, **variables)

    def longest_stride(self) -> int:
        return longest_stride([pulse for _, pulse in self.writes(0)])

    def moves(self, channel: int, count: int):
        wait_until(lambda: len(self.writes(channel)) >= count, f"{count} pulses of pwm{channel}")


@pytest.fixture
def rig(new_vehicle, preloaded):
    return Rig(new_vehicle("car", "--servo", "pwm"), preloaded("slow"))


def assert_ticks_go_on(rig):
    """Whatever was slow for the other step, the left one moved meanwhile. While it waits, it would get no pulse."""
    writes = rig.writes(0)
    slow = [(begin, end) for begin, end in rig.slow if writes[0][0] < begin and end < writes[-1][0]]
    counts = [sum(begin < at < end for at, _ in writes) for begin, end in slow]
    # A machine that is busy may leave some out.
    assert slow and all(count > (end - begin) / TICK_S / 4 for (begin, end), count in zip(slow, counts)), (slow, counts)


def test_a_slow_disk_leaves_the_other_step_its_tick(rig):
    # A journal that takes longer than a second is given up.
    rig.starts_stepd(SLOW_SYNC_MS=600)
    alice, bob = rig.vehicle.rider("alice"), rig.vehicle.rider("bob")
    opening = alice.starts_to_move("open", "left")
    rig.moves(0, 5)
    assert bob.moves("open", "right", at="right").status == 0
    assert opening.ends().status == 0
    assert_ticks_go_on(rig)
    assert rig.longest_stride() <= LONGEST_STRIDE
    assert rig.writes(0)[-1][1] == OPEN


def test_a_disk_that_hangs_refuses_meanwhile_and_nothing_moves_later(rig):
    hangs = rig.vehicle.folder / "hangs"
    rig.starts_stepd(HANGS=hangs)
    alice = rig.vehicle.rider("alice")
    hangs.touch()
    opening = alice.starts_to_move("open", "left")
    # StepControllerTests has the time: a second.
    rig.vehicle.stepd.says("alice asked to open: unavailable")
    assert opening.ends().status == 5
    assert rig.writes(0) == []
    hangs.unlink()
    # What the disk says late comes before what it says of this command: the step is closed, and was not opened.
    assert alice.moves("close", "left").status == 0
    assert rig.writes(0) == []
    assert alice.moves("open", "left").status == 0
    pulses = [pulse for _, pulse in rig.writes(0)]
    assert pulses == sorted(pulses) and pulses[-1] == OPEN
    assert rig.longest_stride() <= LONGEST_STRIDE


def test_a_servo_that_takes_half_a_second_leaves_the_other_step_its_tick(rig):
    rig.starts_stepd(SLOW_WRITE="/pwm1/", SLOW_WRITE_MS=500)
    alice, bob = rig.vehicle.rider("alice"), rig.vehicle.rider("bob")
    opening = alice.starts_to_move("open", "left")
    rig.moves(0, 5)
    ended = bob.moves("open", "right", at="right")
    assert (ended.status, ended.error) == (6, "the step stopped on its way (driver): the right step may have moved")
    rig.vehicle.stepd.says("right: fault driver: the servo did not answer for ")
    assert opening.ends().status == 0
    assert_ticks_go_on(rig)
    assert rig.longest_stride() <= LONGEST_STRIDE
    wait_until(lambda: rig.value("enable", 1) == 0, "the slow servo is let go")


@pytest.mark.parametrize("seconds", [0.5, 3])
def test_a_stall_in_a_motion_is_a_fault_and_no_jump(rig, seconds):
    rig.starts_stepd()
    opening = rig.vehicle.rider("alice").starts_to_move("open", "left")
    rig.moves(0, 30)
    rig.vehicle.stepd.signal(signal.SIGSTOP)
    time.sleep(seconds)
    rig.vehicle.stepd.signal(signal.SIGCONT)
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "the step stopped on its way (timeout): the left step may have moved")
    rig.vehicle.stepd.says("left: fault timeout: the controller was held up for ")
    writes = rig.writes(0)
    assert rig.longest_stride() <= LONGEST_STRIDE
    assert rig.value("enable", 0) == 1, "it is held where it is"

    # And from there to where the rider wants it.
    assert rig.vehicle.rider("bob").moves("close", "left").status == 0
    writes = rig.writes(0)
    assert rig.longest_stride() <= LONGEST_STRIDE
    assert writes[-1][1] == CLOSED


def test_after_a_crash_the_step_goes_on_from_where_it_is_held(rig):
    rig.starts_stepd()
    rig.vehicle.rider("alice").starts_to_move("open", "left")
    rig.moves(0, 20)
    rig.vehicle.stepd.kill()
    held = rig.value("duty_cycle", 0)
    assert CLOSED < held < CLOSED + 0.1 * (OPEN - CLOSED)
    rig.starts_stepd()
    assert rig.vehicle.rider("bob").moves("close", "left").status == 0
    writes = rig.writes(0)
    assert rig.longest_stride() <= LONGEST_STRIDE
    assert max(value for _, value in writes) == held, "it is not thrown out first"
    assert writes[-1][1] == CLOSED


def test_a_step_that_nobody_knows_is_turned_by_single_pulses(rig):
    rig.starts_stepd()
    rig.vehicle.stepd.close()
    (rig.vehicle.folder / "journal.json").unlink()
    rig.starts_stepd()
    bob = rig.vehicle.rider("bob")
    assert bob.types("status").lines[0] == "left     somewhere between open and closed; fault: interrupted"
    closing = bob.starts_to_move("close", "left")
    closing.says("moving")
    enabled = 0
    begun = time.monotonic()
    samples = 0
    while len(rig.writes(0)) < 6:
        enabled += rig.value("enable", 0) == 1
        samples += 1
        time.sleep(0.001)
    seconds = time.monotonic() - begun
    assert seconds > 2, "a pulse each half a second"
    assert enabled / samples < 0.1, "and then it rests"
    assert {value for _, value in rig.writes(0)} == {CLOSED}
    ended = closing.ends(60)
    assert (ended.status, ended.stdout) == (0, "the left step is closed\n")
    assert rig.value("enable", 0) == 1
    assert len(rig.writes(0)) == 41


def test_the_first_start_of_a_vehicle_finds_the_steps_where_they_were_installed(rig):
    rig.vehicle.edit("stepd.toml", installed="open")
    alice = rig.vehicle.rider("alice")
    for _ in range(2):
        rig.starts_stepd()
        assert alice.types("status").lines == ["left     open", "right    open"]
        rig.vehicle.stepd.close()
    assert rig.writes(0) == []
