"""A vehicle on devices of a real kernel, a PCA9685 and GPIO lines. i2c-stub plays the one, gpio-sim the others.
`test_rig.py` runs this in its kernel."""

import ctypes
import fcntl
import re
import subprocess
import time
from pathlib import Path

import pytest

from programs import STEPD, wait_until
from rig import in_rig

pytestmark = in_rig

CLEAR = 3
# Pulses of 1 and 2 ms in units of 4.88 µs.
CLOSED, OPEN = 205, 410
INPUTS = f"""
[inputs.steps.left]
clear = {{ source = "gpio:/dev/gpiochip0:{CLEAR}", debounce_ms = 0 }}
"""


# linux/i2c-dev.h and linux/i2c.h.
I2C_SLAVE, I2C_SMBUS, SMBUS_READ, SMBUS_I2C_BLOCK = 0x0703, 0x0720, 1, 8


class SMBusRequest(ctypes.Structure):
    """struct i2c_smbus_ioctl_data."""

    _fields_ = [
        ("read_write", ctypes.c_uint8), ("command", ctypes.c_uint8), ("size", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
    ]


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
        values = self._registers(6 + 4 * output, 4)
        assert values[:2] == [0, 0]
        return None if values[3] & 0x10 else values[3] << 8 | values[2]

    def _registers(self, first: int, count: int) -> list[int]:
        """As i2cget reads them, which would be a process for each look: on a busy machine, stepd would wait behind so many
        for longer than a motion may stand still."""
        data = (ctypes.c_uint8 * 34)(count)
        request = SMBusRequest(SMBUS_READ, first, SMBUS_I2C_BLOCK, ctypes.addressof(data))
        with open("/dev/i2c-0", "r+b", buffering=0) as bus:
            fcntl.ioctl(bus, I2C_SLAVE, 0x40)
            fcntl.ioctl(bus, I2C_SMBUS, request)
        assert data[0] == count
        return list(data[1 : 1 + count])


@pytest.fixture(scope="module")
def devices():
    return Devices()


def on_a_board(vehicle, inputs: str = ""):
    """A vehicle that was made with `--servo pwm`."""
    vehicle.takes_long(4)
    file = vehicle.folder / "stepd.toml"
    text = re.sub(r"^(chip|root) = .*\n", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(text.replace('driver = "pwm"', 'driver = "pca9685"\nbus = "/dev/i2c-0"') + inputs)
    return vehicle


@pytest.fixture
def wired(new_vehicle, devices):
    return on_a_board(new_vehicle("car", "--servo", "pwm"), INPUTS).starts_all()


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
    wait_until(lambda: (devices.pulse(0) or OPEN) < OPEN - 50, "it is on its way")
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
    wait_until(lambda: (devices.pulse(0) or CLOSED) > CLOSED + 50, "it is on its way")
    wired.stepd.kill()
    held = devices.pulse(0)
    assert CLOSED < held < OPEN
    wired.starts_stepd()
    # stepd has pulled the line to inactive, and in gpio-sim that is stronger than the wire.
    devices.pulls(CLEAR, True)
    assert devices.pulse(0) == held
    # As long as the way is known, it is not gone in single pulses, which all lead to the end.
    closing = alice.starts_to_move("close", "left")
    wait_until(lambda: CLOSED < (devices.pulse(0) or CLOSED) < held, "it is on its way")
    assert closing.ends().status == 0
    assert devices.pulse(0) == CLOSED


def test_a_servo_on_a_board_is_led_by_hand_and_a_line_holds_it(wired, devices):
    devices.pulls(CLEAR, True)
    assert wired.rider("alice").moves("open", "left").status == 0
    wired.stepd.close()
    file = wired.folder / "stepd.toml"
    running = wired.starts("stepd", STEPD, "--config", file, "--servo", "left", stdin=subprocess.PIPE)
    wait_until(lambda: "held at 2001 µs" in running.stdout.read_text(), "it reads the board")
    assert devices.pulse(0) == OPEN
    # The program has pulled the line to inactive, as above.
    devices.pulls(CLEAR, True)
    time.sleep(0.2)
    running.process.stdin.write(b"1960\nopen\nwrite\n1500\n")
    running.process.stdin.flush()
    wait_until(lambda: "wrote closed_us = 1000, open_us = 1960" in running.stdout.read_text(), "it writes the ends")
    assert "open_us = 1960\n" in file.read_text()
    wait_until(lambda: (devices.pulse(0) or OPEN) < 395, "it turns to 1500 µs")
    held = devices.pulse(0)
    assert CLOSED < held < 402
    devices.pulls(CLEAR, False)
    ended = running.ends()
    assert (ended.status, ended.error) == (1, "something is in the way")
    assert (devices.pulse(0), devices.pulse(1)) == (None, None), "and it is let go"


def test_a_board_is_one_vehicles_whichever_of_its_outputs_another_names(wired, new_vehicle, devices):
    """One frame and one sleep are all outputs': who sets the board up lets all servos go."""
    devices.pulls(CLEAR, True)
    assert wired.rider("alice").moves("open", "left").status == 0
    van = on_a_board(new_vehicle("van", "--servo", "pwm"))
    file = van.folder / "stepd.toml"
    file.write_text(re.sub(r"^channel = ([01])$", r"channel = 1\1", file.read_text(), flags=re.MULTILINE))
    outputs = (0, 1, 10, 11)
    before = [devices.pulse(output) for output in outputs]
    assert before[0] == OPEN
    holder = f"pid {wired.stepd.process.pid}, with {wired.folder}/stepd.toml; nothing was moved"
    for arguments in ((), ("--servo", "left")):
        ended = van.starts("second", STEPD, "--config", file, *arguments).ends()
        assert ended.status == 69, ended
        assert ended.error.startswith("another program drives the PCA9685 at ") and ended.error.endswith(holder)
    assert [devices.pulse(output) for output in outputs] == before
    # --check looks, and holds nothing.
    assert van.checks().status == 0
    wired.stepd.kill()
    van.starts_all()
