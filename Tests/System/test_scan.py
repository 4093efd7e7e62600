"""`scan` on a terminal: a table in place, and lines everywhere else."""

import signal
import time

import pytest

import captures
from captures import VEHICLE
from programs import STEPCTL, wait_until
from terminal import ENTER, LEAVE, Terminal


@pytest.fixture
def scan(adapter, on_terminal):
    """Starts `scan` on a terminal, which closes before the adapter does."""

    def start(*arguments, radio=None, **more) -> Terminal:
        return on_terminal([STEPCTL, "scan", "--radio", radio or adapter.radio, *arguments], **more)

    return start


def test_it_draws_each_beacon_in_its_line_and_leaves_the_last_table(scan):
    terminal = scan("--timeout", "6")
    terminal.shows("immediate")
    frame = terminal.shows("2 beacons")
    assert [line.split()[1] for line in frame if line.startswith(" 5f3c1c0e")] == ["1", "2"]
    assert terminal.ends() == 0
    assert terminal.written.startswith(ENTER)
    _, _, after = terminal.written.partition(LEAVE)
    assert b"immediate" in after and after.count(b"\n") == 5


def test_it_follows_the_size(scan):
    terminal = scan(rows=24, columns=80)
    terminal.shows("immediate")
    terminal.resize(12, 130)
    frame = terminal.shows(VEHICLE)
    assert len(frame) <= 12
    terminal.resize(4, 20)
    wait_until(lambda: all(len(line) < 20 for line in terminal.frame), "it fits")
    assert len(terminal.frame) <= 4


def test_a_beacon_that_is_gone_fades(scan, adapter):
    terminal = scan()
    terminal.shows("2 beacons")
    del adapter.levels[2]
    frame = terminal.shows("1 beacon ")
    assert any(line.split()[1:2] == ["2"] for line in frame)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_the_terminal_back(scan, number):
    terminal = scan()
    terminal.shows("2 beacons")
    terminal.process.send_signal(number)
    assert terminal.ends() == -number
    assert LEAVE in terminal.written


@pytest.mark.parametrize(
    "arguments, variables, colored",
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False)],
    ids=["colored", "no-color", "NO_COLOR"],
)
def test_colors_are_left_out_where_they_are_not_wanted(scan, arguments, variables, colored):
    terminal = scan(*arguments, **variables)
    terminal.shows("2 beacons")
    assert (b"\x1b[1m" in terminal.read()) == colored


def test_it_is_drawn_with_ascii_where_the_locale_has_no_more(scan):
    terminal = scan(LC_ALL="C")
    terminal.shows("2 beacons")
    assert terminal.read().isascii()


@pytest.mark.parametrize("arguments, variables", [(("--json",), {}), ((), {"TERM": "dumb"})], ids=["json", "dumb"])
def test_lines_stay_lines(scan, arguments, variables):
    terminal = scan("--timeout", "4", *arguments, **variables)
    assert terminal.ends() == 0
    assert b"\x1b" not in terminal.written and terminal.written.count(b"\n") > 1


def test_a_recording_is_drawn_in_its_own_time_and_printed_at_once_where_nobody_looks(scan, stepctl, tmp_path):
    radio = captures.written(tmp_path / "capture", captures.at_the_left(VEHICLE))
    began = time.monotonic()
    terminal = scan(radio=radio)
    terminal.shows("2 beacons")
    assert terminal.ends() == 0
    assert time.monotonic() - began > 1.7
    assert len(stepctl("scan", "--radio", radio).lines) == 40


def test_a_line_has_80_columns_at_most_whatever_the_beacon_sends(stepctl, tmp_path):
    longest = captures.reports(captures.frame(VEHICLE, 65535, 65535)[:-1] + b"\x80", -127, 1)
    shortest = captures.reports(captures.frame(VEHICLE, 0, 0), 127, 1)
    capture = captures.HEADER + captures.record(longest, 0) + captures.record(shortest, 0)
    first, second = stepctl("scan", "--radio", captures.written(tmp_path / "capture", capture)).lines
    assert first.split()[1:] == [VEHICLE, "65535", "65535", "-127", "dBm", "-128"]
    assert second.split()[1:] == [VEHICLE, "0", "0", "no", "RSSI", "-59"]
    assert len(first) == len(second) == 80


def test_what_the_table_was_made_of_is_saved_frame_by_frame(scan, stepctl, tmp_path):
    terminal = scan("--timeout", "4", "--save", str(tmp_path / "heard.btsnoop"))
    assert terminal.ends() == 0
    replayed = stepctl("scan", "--json", "--radio", f"btsnoop:{tmp_path / 'heard.btsnoop'}")
    assert {frame["major"] for frame in replayed.objects} == {1, 2}
    drawings = terminal.written.count(b"\x1b[H")
    assert len(replayed.lines) > drawings > 0
