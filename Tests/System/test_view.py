"""`locate --watch` on a terminal: it draws, follows the size, and gives the terminal back however it ends."""

import os
import re
import signal
import time

import pytest

import captures
from captures import VEHICLE, VEHICLE_FILE
from programs import PATIENCE, STEPCTL, wait_until
from terminal import ENTER, LEAVE, Terminal


@pytest.fixture
def watch(adapter, on_terminal, tmp_path):
    """Starts `locate --watch` on a terminal, which closes before the adapter does."""
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)

    def start(*arguments, prefix=(), radio=None, **more) -> Terminal:
        command = [*prefix, STEPCTL, "locate", "--watch", "--vehicle", tmp_path / "car.toml"]
        return on_terminal([*command, "--radio", radio or adapter.radio, *arguments], **more)

    return start


def test_the_rider_sees_where_they_are_and_what_to_do(watch):
    frame = watch().shows("ready: press o to open")
    assert len(frame) <= 24 and all(len(line) < 80 for line in frame)
    assert " front " in frame[2]
    assert any("you" in line for line in frame)


def test_at_the_end_of_the_time_the_last_decision_is_left_below_what_stood_there(watch):
    terminal = watch("--timeout", "6")
    assert terminal.ends() == 0
    before, after = terminal.written.split(LEAVE)
    assert before.startswith(ENTER)
    (line,) = after.decode().splitlines()
    assert line.startswith("6.0 s") and line.endswith("at the left step")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it_and_it_gives_the_terminal_back(watch, number):
    terminal = watch()
    terminal.shows("left")
    terminal.process.send_signal(number)
    assert terminal.ends() == -number
    assert terminal.written.count(ENTER) == terminal.written.count(LEAVE) == 1
    assert b"\x1b" not in terminal.written.split(LEAVE)[1]


def test_an_error_is_told_on_the_screen_that_stays(watch, adapter, tmp_path):
    recording = tmp_path / "damaged"
    recording.write_bytes(captures.at_the_left(VEHICLE) + b"\xff" * 24)
    terminal = watch(prefix=("sh", "-c", 'cat "$0" | "$@"', recording), radio="btsnoop:-")
    assert terminal.ends() == 65
    decision, error = terminal.written.split(LEAVE)[1].decode().splitlines()
    assert decision.endswith("at the left step")
    assert error.startswith("stepctl: error: ")


def test_each_frame_has_the_size_that_the_terminal_has_then(watch):
    terminal = watch(rows=24, columns=80)
    terminal.shows(" front ")
    terminal.resize(6, 30)
    wait_until(lambda: " front " not in "\n".join(terminal.frame), "a frame without the picture")
    assert len(terminal.frame) <= 6 and all(len(line) < 30 for line in terminal.frame)
    terminal.resize(40, 120)
    assert len(terminal.shows(" front ")) > 24


def test_control_z_gives_the_terminal_back_until_it_goes_on(watch):
    terminal = watch()
    terminal.shows("left")
    terminal.types(b"\x1a")
    wait_until(lambda: terminal.read().endswith(LEAVE), "it leaves the screen")
    _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    said = len(terminal.read())
    time.sleep(0.7)
    assert len(terminal.read()) == said
    terminal.process.send_signal(signal.SIGCONT)
    wait_until(lambda: b"\x1b[J" in terminal.read()[said:], "it draws again")
    assert terminal.written[said:].startswith(ENTER)


def test_it_ends_with_the_terminal(watch):
    terminal = watch()
    terminal.shows("left")
    terminal.hang_up()
    assert terminal.process.wait(PATIENCE) == -signal.SIGHUP


@pytest.mark.parametrize(
    "arguments, variables, colored",
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False)],
    ids=["colored", "no-color", "NO_COLOR"],
)
def test_colors_are_left_out_where_they_are_not_wanted(watch, arguments, variables, colored):
    terminal = watch(*arguments, **variables)
    terminal.shows("ready")
    assert (re.search(rb"\x1b\[[0-9;]*m", terminal.read()) is not None) == colored


def test_it_is_drawn_with_ascii_where_the_locale_has_no_more(watch):
    terminal = watch(LC_ALL="C")
    terminal.shows("> ready")
    assert terminal.read().isascii()


@pytest.mark.parametrize("arguments, variables", [(("--json",), {}), ((), {"TERM": "dumb"})], ids=["json", "dumb"])
def test_lines_stay_lines(watch, arguments, variables):
    terminal = watch("--timeout", "1", *arguments, **variables)
    assert terminal.ends() == 0
    assert b"\x1b" not in terminal.written and terminal.written.count(b"\n") == 3


@pytest.mark.parametrize("speed, seconds, least", [((), 2, 2), (("--speed", "60"), 180, 3)], ids=["its own", "faster"])
def test_a_recording_is_drawn_in_its_own_time_or_faster(watch, tmp_path, speed, seconds, least):
    content = captures.HEADER + captures.heard(VEHICLE, {1: captures.HERE, 2: captures.AWAY}, seconds=seconds)
    radio = captures.written(tmp_path / "capture", content)
    began = time.monotonic()
    terminal = watch(*speed, radio=radio)
    assert terminal.ends() == 0
    # Nobody waits here for the three minutes of the longer one. PacedRadio's own tests have a clock of theirs.
    assert time.monotonic() - began >= least - 0.2
    assert terminal.written.startswith(ENTER) and terminal.written.count(b"\x1b[H") >= 4
    (line,) = terminal.written.split(LEAVE)[1].decode().splitlines()
    assert line.endswith("at the left step")


@pytest.mark.parametrize("command", ["open", "locate", "locate --watch", "scan"])
def test_lines_on_a_terminal_play_a_recording_in_its_own_time_too(alice, on_terminal, tmp_path, command):
    uuid = alice.vehicle.uuid
    away, here = {1: captures.AWAY, 2: captures.AWAY}, {1: captures.HERE, 2: captures.AWAY}
    content = captures.heard(uuid, away, seconds=30) + captures.heard(uuid, here, begin=30, seconds=10)
    radio = captures.written(tmp_path / "walk", captures.HEADER + content)
    vehicle = () if command == "scan" else ("--vehicle", alice.file)
    # A terminal that cannot draw, unless the line that changes is the thing to see.
    term = "xterm" if command in ("open", "locate") else "dumb"
    began = time.monotonic()
    screen = on_terminal([STEPCTL, *command.split(), "--timeout", "60", "--speed", "10", "--radio", radio, *vehicle],
                         TERM=term)
    if term == "xterm":
        screen.waits_for(b" s left")
    assert screen.ends() == 0
    assert time.monotonic() - began > 2.8, "the rider is there after 30 s"
    assert ENTER not in screen.written


def test_a_recording_is_printed_at_once_where_nobody_looks(stepctl, tmp_path):
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)
    content = captures.HEADER + captures.heard(VEHICLE, {1: captures.HERE, 2: captures.AWAY}, seconds=200)
    radio = captures.written(tmp_path / "capture", content)
    for more in (), ("--json",), ("--speed", "1"):
        # In less than a third of its own time: longer is never waited for a program.
        ended = stepctl("locate", "--watch", "--vehicle", tmp_path / "car.toml", "--radio", radio, *more)
        assert ended.status == 0 and len(ended.lines) >= 399


@pytest.mark.parametrize("speed", ["0", "-1", "1001", "fast"])
def test_no_other_speed(stepctl, speed):
    assert stepctl("locate", "--watch", "--speed", speed).status == 64


def test_a_key_opens_the_step_to_which_a_recording_leads(alice, vehicle, on_terminal):
    command = [STEPCTL, "locate", "--watch", "--vehicle", alice.file, "--radio", vehicle.radio("left")]
    screen = on_terminal(command)
    screen.shows("q quit")
    screen.types(b"o")
    screen.shows("the left step is ")
    assert screen.ends() == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_all_keys_are_shown_in_15_lines_of_40(watch):
    frame = watch(rows=15, columns=40).shows("q quit")
    assert frame[-1].strip() == "o open   c close   s stop   q quit"
    assert any(" front " in line for line in frame)
