"""A vehicle on devices of a real kernel, a PCA9685 and GPIO lines. Debian's i2c-tools look at the one, gpio-sim plays
the others. `test_rig.py` runs this in its kernel."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif("STEPCTL_IN_RIG" not in os.environ, reason="test_rig.py runs it in a kernel of its own")

CLEAR = 3
# Pulses of 1 and 2 ms in units of 4.88 µs.
CLOSED, OPEN = 205, 410
INPUTS = f"""
[inputs.steps.left]
clear = {{ source = "gpio:/dev/gpiochip0:{CLEAR}", debounce_ms = 0 }}
"""


class Devices:
    """The kernel's, as somebody sees them who is not stepd."""

    def __init__(self):
        subprocess.run(
            "mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config;"
            "cd /sys/kernel/config; mkdir -p gpio-sim/step/bank;"
            "echo 8 >gpio-sim/step/bank/num_lines; echo 1 >gpio-sim/step/live",
            shell=True,
            check=True,
        )

    def pulls(self, line: int, level: bool):
        pull = Path(f"/sys/devices/platform/gpio-sim.0/gpiochip0/sim_gpio{line}/pull")
        pull.write_text("pull-up" if level else "pull-down")

    def pulse(self, output: int) -> int | None:
        """What the board's output gives; None when it is off."""
        command = ["i2cget", "-y", "0", "0x40", str(6 + 4 * output), "i", "4"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        values = [int(word, 16) for word in said.split()]
        assert values[:2] == [0, 0]
        return None if values[3] & 0x10 else values[3] << 8 | values[2]


@pytest.fixture(scope="module")
def devices():
    return Devices()


@pytest.fixture
def wired(new_vehicle, devices):
    vehicle = new_vehicle("car", "--servo", "pwm")
    vehicle.edit("stepd.toml", travel_s=2, limit_s=10)
    file = vehicle.folder / "stepd.toml"
    text = re.sub(r"^(chip|root) = .*\n", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(text.replace('driver = "pwm"', 'driver = "pca9685"\nbus = "/dev/i2c-0"') + INPUTS)
    return vehicle.starts_all()


def test_a_step_on_a_board_opens_unless_a_line_says_that_something_is_in_its_way(wired, devices):
    alice = wired.rider("alice")
    ended = alice.moves("open", "left")
    assert ended.status == 5 and "obstructed" in ended.error, ended
    devices.pulls(CLEAR, True)
    assert alice.moves("open", "left").status == 0
    assert (devices.pulse(0), devices.pulse(1)) == (OPEN, None)

    # Something comes in its way: it stops, backs off a little, and holds.
    closing = alice.starts_to_move("close", "left")
    closing.says("moving")
    time.sleep(0.7)
    devices.pulls(CLEAR, False)
    wired.stepd.says("left: fault obstructed")
    assert closing.ends().status == 6
    held = devices.pulse(0)
    assert held is None or CLOSED < held < OPEN
    time.sleep(0.5)
    assert devices.pulse(0) == held

    # From there to the end, when the way is clear.
    devices.pulls(CLEAR, True)
    assert alice.moves("close", "left").status == 0
    assert devices.pulse(0) == CLOSED


def test_after_a_crash_the_board_says_where_the_step_is_held(wired, devices):
    devices.pulls(CLEAR, True)
    alice = wired.rider("alice")
    opening = alice.starts_to_move("open", "left")
    opening.says("moving")
    time.sleep(0.7)
    wired.stepd.kill()
    held = devices.pulse(0)
    assert CLOSED < held < OPEN
    wired.starts_stepd()
    # stepd has pulled the line to inactive, and in gpio-sim that is stronger than the wire.
    devices.pulls(CLEAR, True)
    assert devices.pulse(0) == held
    # As long as the way is known, it is not gone in single pulses, which takes 20 s.
    ended = alice.moves("close", "left")
    assert ended.status == 0 and ended.seconds < 15, ended
    assert devices.pulse(0) == CLOSED
