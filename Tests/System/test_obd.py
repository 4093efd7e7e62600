"""The interlock by the vehicle's speed, which an adapter for its diagnosis (OBD-II) tells."""

import fcntl
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from programs import Running, wait_until
from vehicle import free_port

CAR = Path(__file__).with_name("obd_car.py")


class Car:
    """One with an adapter, that stands still."""

    def __init__(self, port, folder, stepctl):
        command = [sys.executable, CAR, port]
        self.running = Running(command, folder / "car.log", stepctl.environment, stepctl.transcript, subprocess.PIPE)
        self.where = self.says(re.compile("^(tcp:|/dev/)"))
        self.is_at("0")

    def says(self, text) -> str:
        found = lambda: next((line for line in self.lines if re.search(text, line)), None)  # noqa: E731
        return wait_until(found, f"the car says {text}")

    @property
    def lines(self):
        return self.running.stdout.read_text().splitlines()

    def is_at(self, speed: str):
        before = len(self.lines)
        self.running.process.stdin.write(f"{speed}\n".encode())
        self.running.process.stdin.flush()
        wait_until(lambda: f"now {speed}" in self.lines[before:], f"the car is at {speed}")

    def close(self):
        self.running.close()


@pytest.fixture(params=["tcp", "pty"])
def car(request, parked, stepctl, tmp_path):
    port = free_port() if request.param == "tcp" else "pty"
    with closing(Car(port, tmp_path, stepctl)) as car:
        parked.edit("stepd.toml", travel_s=2, limit_s=10)
        with open(parked.folder / "stepd.toml", "a") as file:
            file.write(f'\n[interlock]\nstanding = "obd:{car.where}"\n')
        parked.starts_broker()
        yield car


def stands(car, alice):
    """Opens the left step as soon as the vehicle counts as standing."""
    wait_until(lambda: alice.moves("open", "left").status == 0, "a motion")


def rolls(alice):
    """Refuses, as soon as stepd has heard of it. What began before has ended in a fault."""

    def refused():
        ended = alice.moves("open", "left")
        assert ended.status in (5, 6) and "vehicle is moving" in ended.stderr, ended
        return ended.status == 5

    wait_until(refused, "a refusal", pause=0.3)


def test_a_step_opens_while_the_vehicle_stands_and_not_while_it_rolls(car, parked):
    parked.starts_stepd()
    alice = parked.rider("alice")
    stands(car, alice)
    assert alice.moves("close", "left").status == 0
    # The least that it can tell.
    car.is_at("1")
    rolls(alice)
    car.is_at("0")
    stands(car, alice)


def test_a_motion_ends_when_the_vehicle_rolls(car, parked):
    parked.takes_long(6)
    stepd = parked.starts_stepd()
    alice = parked.rider("alice")
    stands(car, alice)
    assert alice.moves("close", "left").status == 0
    before = parked.motions
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    wait_until(lambda: parked.motions > before, "the step is on its way")
    car.is_at("7")
    stepd.says("left: fault vehicle_moving")
    assert opening.ends().status == 6


@pytest.mark.parametrize(
    "said, loss",
    [
        ("nothing", "the adapter has told no speed for a second"),
        ("0x 7F 01 12", "the adapter tells no speed: 7F0112"),
        ("0x 41 0C 00", "the adapter tells no speed: 410C00"),
    ],
)
def test_without_a_speed_the_input_is_lost_and_comes_back(car, parked, said, loss):
    stepd = parked.starts_stepd()
    alice = parked.rider("alice")
    stands(car, alice)
    car.is_at(said)
    stepd.says(f"the input standing is lost: {loss}")
    rolls(alice)
    car.is_at("0")
    stepd.says("the input standing is active again")
    assert alice.moves("close", "left").status == 0


def test_an_adapter_that_goes_and_comes_is_connected_again(parked, stepctl, tmp_path):
    port = free_port()
    with open(parked.folder / "stepd.toml", "a") as file:
        file.write(f'\n[interlock]\nstanding = "obd:tcp:localhost:{port}"\n')
    parked.starts_broker()
    stepd = parked.starts_stepd()
    alice = parked.rider("alice")
    stepd.says(f"the input standing is lost: cannot connect to localhost:{port}: Connection refused")
    rolls(alice)
    for count in range(2):
        after = stepd.said
        with closing(Car(port, tmp_path, stepctl)) as car:
            stands(car, alice)
            assert alice.moves("close", "left").status == 0
        stepd.says("the input standing is lost: ", after=after)
        rolls(alice)


def test_two_programs_do_not_ask_one_adapter_and_check_takes_it_from_nobody(parked, stepctl, tmp_path):
    with closing(Car("pty", tmp_path, stepctl)) as car:
        with open(parked.folder / "stepd.toml", "a") as file:
            file.write(f'\n[interlock]\nstanding = "obd:{car.where}"\n')
        parked.starts_broker()
        with open(car.where, "rb") as line:
            fcntl.flock(line, fcntl.LOCK_EX)
            stepd = parked.starts_stepd()
            stepd.says(f"the input standing is lost: another program uses {car.where}")
            assert parked.checks().status == 0
        stepd.says("the input standing is active again")
        assert parked.checks().status == 0


@pytest.mark.parametrize(
    "source, status, end",
    [
        ("obd:/dev/ttyUSB99", 66, "cannot open /dev/ttyUSB99: No such file or directory"),
        ("obd:/dev/null", 66, "/dev/null is not a serial line"),
        ("obd:ttyUSB0", 78, '"obd:tcp:HOST:PORT", found "obd:ttyUSB0"'),
        ("obd:/dev/ttyUSB0:300", 78, '"obd:tcp:HOST:PORT", found "obd:/dev/ttyUSB0:300"'),
    ],
)
def test_check_says_what_is_wrong_with_an_adapter(parked, source, status, end):
    with open(parked.folder / "stepd.toml", "a") as file:
        file.write(f'\n[interlock]\nstanding = "{source}"\n')
    ended = parked.checks()
    assert (ended.status, ended.error.endswith(end)) == (status, True), ended
