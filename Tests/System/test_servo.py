"""`stepd --servo`: a technician leads a step's servo, notes its ends and tries them."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from programs import HURRIED, PATIENCE, STEPD, Running, wait_until
from pwm import Servos, longest_stride

# The slowest motion that stepd makes, between its usual ends, in one frame; and a nanosecond of rounding.
LONGEST_STRIDE = 1_000_000 * 0.02 / 20 / 0.75 + 1
INPUTS = """
[inputs]
enable = { source = "file:enable", debounce_ms = 0 }
[inputs.steps.left]
clear = { source = "file:clear", debounce_ms = 0 }
end_open = { source = "file:end_open", debounce_ms = 0 }
"""


class Bench(Servos):
    """A vehicle with two servos that are held at 1500 µs, as stepd leaves them."""

    def __init__(self, vehicle, library: Path):
        super().__init__(vehicle, library)
        self.file = vehicle.folder / "stepd.toml"
        for channel in (0, 1):
            self.holds(channel, 1_500_000)

    @property
    def command(self) -> list:
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        return ["env", *variables, STEPD, "--config", self.file, "--servo", "left"]

    def starts(self) -> Running:
        return self.vehicle.starts("stepd", *self.command, stdin=subprocess.PIPE)

    def types(self, lines: str, status: int = 0, timeout: float = 120):
        command, environment = [*HURRIED, *self.command], self.vehicle.stepctl.environment
        ended = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=timeout, env=environment)
        assert ended.returncode == status, ended
        return ended.stdout.decode().splitlines(), ended.stderr.decode()

    def wires_inputs(self):
        self.file.write_text(self.file.read_text() + INPUTS)
        for name, level in (("enable", 1), ("clear", 1), ("end_open", 0)):
            self.senses(name, level)

    def senses(self, name: str, level: int):
        new = self.vehicle.folder / f"{name}.new"
        new.write_text(f"{level}\n")
        new.rename(self.vehicle.folder / name)

    @property
    def pulses(self) -> list[int]:
        """What the left step's servo was told, in nanoseconds."""
        return [value for _, value in self.writes()]

    @property
    def journal(self) -> dict:
        return json.loads((self.vehicle.folder / "journal.json").read_text())

    def is_gentle(self, first: int = 1_500_000):
        """No pulse is further from the one before than in the slowest motion, and none leaves 500 to 2500 µs."""
        pulses = [first, *self.pulses]
        assert longest_stride(pulses) <= LONGEST_STRIDE
        assert all(500_000 <= value <= 2_500_000 for value in pulses)
        assert self.value("duty_cycle", 1) == 1_500_000 and self.value("enable", 1) == 1, "the other servo's"


@pytest.fixture
def bench(new_vehicle, preloaded):
    return Bench(new_vehicle("car", "--servo", "pwm"), preloaded("slow"))


# --- Lines ---


def test_the_ends_are_found_and_written_and_the_rest_of_the_file_stays(bench):
    before = bench.file.read_text()
    output, errors = bench.types("# find the ends\n-40\nclosed\n\n1530 # µs\nopen\nwrite\nquit\n1900\n")
    assert errors == ""
    assert output == [
        "left: held at 1500 µs",
        "left: at 1460 µs",
        "left: closed is 1460 µs",
        "left: at 1530 µs",
        "left: open is 1530 µs",
        f"left: wrote closed_us = 1460, open_us = 1530 to {bench.file}",
        "left: the servo is released",
    ]
    left, right = before.split("[servo.steps.right]")
    expected = left.replace("closed_us = 1000", "closed_us = 1460").replace("open_us = 2000", "open_us = 1530")
    assert bench.file.read_text() == f"{expected}[servo.steps.right]{right}"
    bench.is_gentle()
    assert bench.pulses[-1] == 1_530_000
    assert bench.value("enable") == 0
    assert bench.journal["left"] == {"position": "open"}, "it was let go where the file has it open"


def test_what_is_not_written_is_said_and_stepd_does_not_trust_the_place(bench):
    output, _ = bench.types("1490\nopen\n")
    assert output[-2:] == ["left: the servo is released", "left: not written: closed_us = 1000, open_us = 1490"]
    assert bench.journal["left"] == {"position": "unknown", "fault": "interrupted"}
    assert bench.journal["right"] == {"position": "close"}


def test_who_moves_nothing_changes_nothing(bench):
    bench.holds(0, 0)
    output, _ = bench.types("")
    assert output == [
        "left: nobody knows where the servo is: find turns it to its middle, in 20 s",
        "left: the servo is released",
    ]
    assert bench.pulses == [] and bench.value("enable") == 0
    assert bench.journal["left"] == {"position": "close"}


def test_a_servo_that_is_not_driven_is_turned_by_single_pulses_only(bench):
    bench.holds(0, 0)
    running = bench.starts()
    running.process.stdin.write(b"find\n")
    running.process.stdin.flush()
    wait_until(lambda: len(bench.pulses) >= 4, "four single pulses")
    enabled = [bench.value("enable") == 1 for _ in range(200) if time.sleep(0.005) is None]
    assert sum(enabled) / len(enabled) < 0.2
    running.signal(signal.SIGINT)
    assert running.ends().status == -signal.SIGINT
    assert bench.value("enable") == 0
    assert set(bench.pulses) == {1_500_000}


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("1510\nopne\n1600\n", 'line 2 of standard input: expected an order, found "opne"'),
        ("15100\n", 'line 1 of standard input: expected an order, found "15100"'),
        ("+-5\n", 'line 1 of standard input: expected an order, found "+-5"'),
        ("-\n", 'line 1 of standard input: expected an order, found "-"'),
        ("\x1b[2J\n", 'line 1 of standard input: expected an order, found "\ufffd[2J"'),
        ("quit now\n", 'line 1 of standard input: expected an order, found "quit now"'),
        ("1510", "line 1 of standard input: it has no end"),
        ("\n" + "x" * 5000, "line 2 of standard input: it is longer than any order"),
    ],
)
def test_a_line_that_is_no_order_ends_it_and_nothing_moves(bench, lines, error):
    output, errors = bench.types(lines, status=65)
    assert errors.splitlines()[0] == f"stepd: error: {error}"
    assert errors.splitlines()[1].startswith("hint: orders are ")
    assert output[-1] == "left: the servo is released"
    assert bench.pulses == [] and bench.value("enable") == 0


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("499\n", "499 µs is not between 500 and 2500"),
        ("2501\n1500\n", "2501 µs is not between 500 and 2500"),
        ("closed\nopen\ntest\n", "both ends are at 1500 µs"),
        ("closed\nopen\nwrite\n", None),
    ],
)
def test_what_cannot_be_done_ends_a_script(bench, lines, error):
    before = bench.file.read_text()
    _, errors = bench.types(lines, status=1)
    assert errors.startswith(f"stepd: error: {error}\n" if error else "stepd: error: not written: ")
    assert bench.file.read_text() == before
    assert bench.pulses == [] and bench.value("enable") == 0


def test_a_stop_waits_for_nothing_and_voids_what_was_typed_before(bench):
    running = bench.starts()
    running.process.stdin.write(b"2400\n600\nopen\n")
    running.process.stdin.flush()
    wait_until(lambda: len(bench.pulses) > 50, "it moves")
    running.process.stdin.write(b"stop\n")
    running.process.stdin.flush()
    wait_until(lambda: "left: stopped at" in running.stdout.read_text(), "it stops")
    count = len(bench.pulses)
    running.process.stdin.write(b"quit\n")
    running.process.stdin.close()
    ended = running.ends()
    assert ended.status == 0 and "open is" not in ended.stdout
    assert len(bench.pulses) == count
    bench.is_gentle()


def test_an_input_holds_it_at_once_and_lost_ones_too(bench):
    bench.wires_inputs()
    for name in ("clear", "enable"):
        running = bench.starts()
        running.process.stdin.write(b"1300\n" if name == "clear" else b"1700\n")
        running.process.stdin.flush()
        before = len(bench.pulses)
        wait_until(lambda: len(bench.pulses) > before + 30, "it moves")
        if name == "clear":
            bench.senses(name, 0)
        else:
            (bench.vehicle.folder / name).unlink()
        ended = running.ends()
        assert ended.status == 1
        assert ended.error in ("something is in the way", "the enable input is lost")
        assert bench.value("enable") == 0
        bench.holds(0, bench.pulses[-1])
        bench.senses(name, 1)
    bench.senses("clear", 0)
    _, errors = bench.types("1600\n", status=1)
    assert errors == "stepd: error: something is in the way\n"
    bench.is_gentle()


def test_the_test_tells_what_the_switches_see(bench):
    bench.wires_inputs()
    bench.vehicle.edit("stepd.toml", closed_us=1500, open_us=1502)
    running = bench.starts()
    running.process.stdin.write(b"test\n")
    running.process.stdin.flush()
    wait_until(lambda: bench.pulses and bench.pulses[-1] >= 1_501_000, "it goes")
    bench.senses("end_open", 1)
    wait_until(lambda: "open end" in running.stdout.read_text(), "it has seen the open end")
    bench.senses("end_open", 0)
    running.process.stdin.close()
    ended = running.ends(60)
    assert ended.status == 0, ended
    assert ended.lines[1] == "left: closed end: reached; it has no switch"
    assert ended.lines[2].startswith("left: open end: its switch sees the step from 150")
    assert ended.lines[3:5] == ["left: closed end: reached; it has no switch", "left: the test has passed"]
    bench.is_gentle()


# --- stepd ---


def test_a_mistake_is_told_before_anything_is_explained(bench, on_terminal):
    screen = on_terminal([STEPD, "--config", bench.file, "--servo", "lft"])
    assert screen.ends() == 64
    said = screen.read().decode()
    assert "the vehicle has no step lft: it has left, right" in said and "The step will move" not in said


def test_it_never_fights_a_running_stepd(bench):
    vehicle = bench.vehicle
    bench.holds(0, 0)
    vehicle.starts_all()
    output, errors = bench.types("find\n", status=69)
    assert output == []
    hint = f"hint: end it first: `systemctl stop stepd`, or `kill {vehicle.stepd.process.pid}`"
    assert errors == f"stepd: error: {vehicle.said_to_a_second}\n{hint}\n"
    assert bench.pulses == []
    vehicle.stepd.close()
    running = bench.starts()
    wait_until(lambda: "nobody knows" in running.stdout.read_text(), "it is ready")
    second = subprocess.run([STEPD, "--config", bench.file], capture_output=True, timeout=PATIENCE)
    assert second.returncode == 69
    running.process.stdin.close()
    assert running.ends().status == 0


def test_what_is_wrong_is_said_before_anything_is_set_up(bench):
    for arguments, status, error in [
        (("--servo", "rear"), 64, "the vehicle has no step rear: it has left, right"),
        (("--servo", "a/b"), 64, None),
        (("--servo", "left", "--check"), 64, "--servo and --check exclude each other"),
        (("--servo", "left", "--config", "none.toml"), 66, None),
    ]:
        ended = subprocess.run(
            [STEPD, "--config", bench.file, *arguments]
            if "--config" not in arguments
            else [STEPD, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
        )
        assert ended.returncode == status, ended
        assert error is None or f"stepd: error: {error}" in ended.stderr.decode()
    assert bench.pulses == [] and bench.value("enable") == 1


def test_a_channel_that_is_not_there_is_told(bench):
    for name in ("period", "duty_cycle", "enable"):
        (bench.chip / "pwm0" / name).unlink()
    (bench.chip / "pwm0").rmdir()
    (bench.chip / "export").unlink()
    _, errors = bench.types("1600\n", status=1)
    assert errors == f"stepd: error: cannot open {bench.chip}/export: No such file or directory\n"


def test_the_simulated_servo_can_be_led_too(parked):
    ended = subprocess.run(
        [STEPD, "--config", parked.folder / "stepd.toml", "--servo", "left"],
        input=b"1520\nclosed\n",
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended
    assert "left: closed is 1520 µs" in ended.stdout.decode()


# --- Keys ---


@pytest.fixture
def keys(bench, on_terminal):
    terminal = on_terminal([*HURRIED, *bench.command])
    terminal.waits_for("held at 1500 µs".encode())
    return terminal


def test_keys_lead_it_and_q_lets_it_go(bench, keys):
    keys.waits_for(b"The step will move: keep everybody off the step.")
    keys.types(b"\x1b[C")
    keys.waits_for("1510 µs   ".encode())
    keys.types(b"o")
    keys.waits_for("open is 1510 µs".encode())
    keys.types(b"\x1b[D\x1b[D")
    keys.waits_for("1490 µs   ".encode())
    keys.types(b"c")
    keys.waits_for("closed is 1490 µs".encode())
    keys.types(b"w")
    keys.waits_for(b"wrote closed_us = 1490, open_us = 1510 to ")
    keys.types(b"q")
    assert keys.ends() == 0
    assert keys.shows_what_is_typed
    assert bench.value("enable") == 0
    assert "closed_us = 1490\nopen_us = 1510\n" in bench.file.read_text()
    bench.is_gentle()


def test_control_c_in_a_motion_leaves_it_released(bench, keys):
    keys.types(b"\x1b[A" * 30)
    wait_until(lambda: len(bench.pulses) > 30, "it moves")
    keys.types(b"\x03")
    assert keys.ends() == -signal.SIGINT
    assert bench.value("enable") == 0
    assert keys.shows_what_is_typed
    count = len(bench.pulses)
    time.sleep(0.3)
    assert len(bench.pulses) == count
    assert bench.journal["left"] == {"position": "unknown", "fault": "interrupted"}
    bench.is_gentle()


@pytest.mark.parametrize("key", [b" ", b"x", b"\x1b", "ö".encode(), b"\x00"], ids=repr)
def test_any_other_key_stops_it(bench, keys, key):
    keys.types(b"\x1b[B" * 8)
    wait_until(lambda: len(bench.pulses) > 20, "it moves")
    keys.types(key)
    keys.waits_for(b"stopped at ")
    count = len(bench.pulses)
    time.sleep(0.3)
    assert len(bench.pulses) == count and bench.value("enable") == 1, "it is held"
    keys.types(b"q")
    assert keys.ends() == 0


@pytest.mark.parametrize("seed", range(3))
def test_no_keys_make_it_faster_than_the_slowest_motion(bench, keys, seed):
    chance = random.Random(seed)
    alphabet = [b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1bOC", b"+", b"-", b"=", b" ", b"c", b"o", b"t", b"\r", b"z"]
    weights = [6, 6, 6, 6, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    end = time.monotonic() + 6
    while time.monotonic() < end:
        (key,) = chance.choices(alphabet, weights)
        keys.types(key * chance.choice([1, 2, 3, 30]))
        time.sleep(chance.random() * 0.3)
        keys.read()
    keys.types(b"q")
    assert keys.ends() == 0
    bench.is_gentle()
    assert len(bench.pulses) > 30
    assert bench.value("enable") == 0
