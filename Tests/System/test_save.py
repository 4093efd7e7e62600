"""`--save`: what was heard is kept, so that others can read it and a replay comes to the same decisions."""

import json
import shutil
import signal
import subprocess
import threading
import time
from contextlib import closing

import pytest

import captures
from adapter import Adapter
from captures import AWAY, HERE, VEHICLE, VEHICLE_FILE, event, heard, record
from programs import REPOSITORY, can_mount, wait_until


@pytest.fixture
def folder(tmp_path):
    """With a vehicle file that is enough to locate oneself."""
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)
    return tmp_path


@pytest.fixture
def adapter(new_adapter) -> Adapter:
    return new_adapter(spread=4)


@pytest.fixture
def watch(stepctl, folder):
    def run(radio: str, *arguments):
        return stepctl("locate", "--watch", "--json", "--vehicle", "car.toml", "--radio", radio, *arguments, folder=folder)

    return run


@pytest.mark.parametrize("moment", ["any", "wait", "check", "recv"])
def test_where_one_was_while_it_was_stopped_locates_nobody(stepctl, folder, adapter, preloaded, tmp_path, moment):
    # What waited in the socket is all that there is of the vehicle.
    adapter.levels = {2: AWAY}
    # Not in step with the decisions: between two reports, a wait for the next one ends with a decision.
    adapter.rate = 47
    stop = tmp_path / "stop"
    running = stepctl.start(
        tmp_path / "log", "locate", "--vehicle", folder / "car.toml", "--radio", adapter.radio, "--timeout", "6",
        LD_PRELOAD=str(preloaded("stops")), STOP_AT=moment, STOP_FILE=str(stop),
    )
    with closing(running):
        wait_until(lambda: adapter.sent > 25, "half a second of listening")
        if moment == "any":
            running.signal(signal.SIGSTOP)
        else:
            stop.touch()
            wait_until(lambda: not stop.exists(), "the moment")
        adapter.levels = {1: HERE, 2: AWAY}
        sent = adapter.sent
        wait_until(lambda: adapter.sent > sent + 50, "a second at the left step")
        adapter.levels = {}
        sent = adapter.sent
        wait_until(lambda: adapter.sent > sent + 150, "three seconds of silence")
        running.signal(signal.SIGCONT)
        ended = running.ends()
    assert ended.status == 3, ended
    assert "not located" in ended.stdout


def reports_in(capture: bytes) -> int:
    """How many records are of a report."""
    count, start = 0, 16
    while start < len(capture):
        length = int.from_bytes(capture[start : start + 4], "big")
        count += capture[start + 24 + 1] == 0x3E
        start += 24 + length
    return count


# --- The replay ---


@pytest.mark.parametrize("arguments", [(), ("--interval", "0.07"), ("--interval", "1.1")], ids=["", "often", "seldom"])
def test_a_replay_of_what_was_saved_decides_the_same_byte_for_byte(watch, adapter, arguments):
    live = watch(adapter.radio, "--timeout", "5", "--save", "walk.btsnoop", *arguments)
    assert (live.status, live.stderr) == (0, "")
    assert live.objects[-1]["located"]
    replayed = watch("btsnoop:walk.btsnoop", *arguments)
    assert (replayed.status, replayed.stderr) == (0, "")
    assert replayed.stdout == live.stdout


def test_a_replay_decides_the_same_where_nothing_was_heard_at_the_start_and_at_the_end(watch, adapter):
    adapter.levels = {}

    def come_and_go():
        wait_until(lambda: adapter.scans, "a scan")
        time.sleep(1.2)
        adapter.levels = {1: HERE, 2: AWAY}
        time.sleep(1)
        adapter.levels = {}

    thread = threading.Thread(target=come_and_go)
    thread.start()
    live = watch(adapter.radio, "--timeout", "4", "--save", "walk.btsnoop")
    thread.join()
    assert [line["elapsed_s"] for line in live.objects] == [tick / 2 for tick in range(9)]
    assert watch("btsnoop:walk.btsnoop").stdout == live.stdout


def test_an_interrupted_recording_is_whole_as_far_as_it_goes(stepctl, watch, adapter, folder):
    arguments = ["locate", "--watch", "--json", "--vehicle", folder / "car.toml", "--radio", adapter.radio]
    running = stepctl.start(folder / "locate.log", *arguments, "--save", folder / "walk.btsnoop")
    running.says('"elapsed_s":2', file=running.stdout)
    running.signal(signal.SIGINT)
    live = running.ends()
    assert live.status == -signal.SIGINT
    replayed = watch("btsnoop:walk.btsnoop")
    assert replayed.status == 0
    # The replay also says what follows from what was heard after the last decision.
    assert replayed.lines[: len(live.lines)] == live.lines
    assert len(replayed.lines) <= len(live.lines) + 1


def test_every_record_is_in_the_file_as_soon_as_it_was_heard(stepctl, adapter, folder):
    running = stepctl.start(folder / "scan.log", "scan", "--radio", adapter.radio, "--save", folder / "heard.btsnoop")
    wait_until(lambda: running.stdout.read_bytes().count(b"\n") >= 5, "five frames")
    running.kill()
    printed = running.stdout.read_bytes().count(b"\n")
    assert reports_in((folder / "heard.btsnoop").read_bytes()) in (printed, printed + 1)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_capture_can_be_saved_again_and_decides_the_same(watch, folder, side):
    walk = [REPOSITORY / "Tests/Demo/walk.py", "--uuid", VEHICLE, "--side", side, "--out", folder / "walk.btsnoop"]
    subprocess.run(["python3", *walk], check=True)
    first = watch("btsnoop:walk.btsnoop", "--save", "again.btsnoop")
    assert first.objects[-1]["step"] == side
    assert watch("btsnoop:again.btsnoop").stdout == first.stdout


def test_gaps_and_a_clock_that_is_set_back_are_saved_as_they_are(watch, folder):
    parts = [heard(VEHICLE, {1: HERE, 2: AWAY}, begin) for begin in (0, 300, 100, 1000)]
    (folder / "gaps.btsnoop").write_bytes(captures.HEADER + b"".join(parts))
    first = watch("btsnoop:gaps.btsnoop", "--save", "again.btsnoop")
    assert watch("btsnoop:again.btsnoop").stdout == first.stdout


def test_a_silence_of_minutes_is_told_again_as_it_was(watch, folder):
    """The radio's clock went on, although nothing was heard: that is no gap in the recording."""
    answer = b"\x04\x0e\x04\x01\x03\x0c\x00"  # to a reset
    ticks = b"".join(record(answer, time) for time in range(2, 300))
    (folder / "silence.btsnoop").write_bytes(
        captures.HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}) + ticks + heard(VEHICLE, {1: HERE}, begin=300)
    )
    first = watch("btsnoop:silence.btsnoop", "--save", "again.btsnoop")
    assert len(first.lines) > 600
    assert watch("btsnoop:again.btsnoop").stdout == first.stdout


def test_scan_prints_the_same_of_what_it_saved(stepctl, folder):
    long = b"\x02\x01\x06" + b"\x1e\xff\x99\x04" + bytes(27) + captures.frame(VEHICLE, 3)[3:]
    extended = bytes([0x0D, 1, 0, 0, 1, 9, 8, 7, 6, 5, 0xC6, 1, 1, 0xFF, 127, 0xBF]) + bytes(9)
    records = [
        record(captures.reports(captures.frame(VEHICLE, 1), -60, 1), 0.1),
        record(captures.reports(captures.frame(VEHICLE, 2), 127, 2), 0.2),
        record(event(extended + bytes([len(long)]) + long), 0.3),
    ]
    (folder / "all.btsnoop").write_bytes(captures.HEADER + b"".join(records))
    scan = lambda name, *more: stepctl("scan", "--json", "--radio", f"btsnoop:{name}", *more, folder=folder)  # noqa: E731
    first = scan("all.btsnoop", "--save", "again.btsnoop")
    assert [line["rssi_dbm"] for line in first.objects] == [-60, None, -65]
    assert scan("again.btsnoop").stdout == first.stdout


# --- Other readers ---


@pytest.fixture
def saved(stepctl, folder):
    """Our own reading of a capture that stepctl has saved: the RSSI of each frame."""
    (folder / "left.btsnoop").write_bytes(captures.at_the_left(VEHICLE))
    ended = stepctl("scan", "--json", "--radio", "btsnoop:left.btsnoop", "--save", "saved.btsnoop", folder=folder)
    return [line["rssi_dbm"] for line in ended.objects]


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_reads_what_was_saved(saved, folder):
    fields = ["-T", "fields", "-e", "bthci_evt.rssi", "-e", "_ws.malformed"]
    read = subprocess.run(["tshark", "-r", folder / "saved.btsnoop", *fields], capture_output=True, text=True, check=True)
    assert [int(line) for line in read.stdout.split()] == saved


@pytest.mark.skipif(not shutil.which("btmon"), reason="btmon is not installed")
def test_btmon_reads_what_was_saved(saved, folder):
    read = subprocess.run(["btmon", "-r", folder / "saved.btsnoop"], capture_output=True, text=True, check=True)
    levels = [line.split() for line in read.stdout.splitlines() if "RSSI:" in line]
    assert [int(words[1]) for words in levels] == saved


# --- Files ---


def test_a_file_that_is_there_is_not_written_over(stepctl, folder):
    (folder / "left.btsnoop").write_bytes(captures.at_the_left(VEHICLE))
    (folder / "old.btsnoop").write_bytes(b"precious")
    ended = stepctl("scan", "--radio", "btsnoop:left.btsnoop", "--save", "old.btsnoop", folder=folder)
    assert (ended.status, ended.stdout) == (74, "")
    assert ended.stderr == "stepctl: error: cannot save to old.btsnoop: File exists\n"
    assert (folder / "old.btsnoop").read_bytes() == b"precious"


def test_others_may_not_read_who_was_near(stepctl, folder):
    (folder / "left.btsnoop").write_bytes(captures.at_the_left(VEHICLE))
    stepctl("scan", "--radio", "btsnoop:left.btsnoop", "--save", "saved.btsnoop", folder=folder)
    assert (folder / "saved.btsnoop").stat().st_mode & 0o777 == 0o600


def test_no_file_is_made_when_the_radio_cannot_be_opened(stepctl, folder):
    ended = stepctl("scan", "--radio", "btsnoop:none", "--save", "saved.btsnoop", folder=folder)
    assert ended.status == 66
    assert not (folder / "saved.btsnoop").exists()


def test_standard_output_is_for_results(stepctl, folder):
    ended = stepctl("scan", "--radio", "btsnoop:none", "--save", "-", folder=folder)
    assert ended.status == 64
    assert "--save takes a file" in ended.stderr


@pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")
def test_a_full_disk_is_told_and_what_was_saved_can_be_replayed(stepctl, folder):
    (folder / "long.btsnoop").write_bytes(captures.HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, seconds=20))
    (folder / "disk").mkdir()
    # Its content is gone with its namespace: it is copied out.
    script = 'mount -t tmpfs -o size=8k none disk && { "$@"; status=$?; cp disk/saved.btsnoop .; exit $status; }'
    small = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    saving = ("--save", "disk/saved.btsnoop")
    ended = stepctl("scan", "--json", "--radio", "btsnoop:long.btsnoop", *saving, prefix=small, folder=folder)
    assert ended.status == 74
    assert ended.stderr == "stepctl: error: cannot save to disk/saved.btsnoop: No space left on device\n"
    replayed = stepctl("scan", "--json", "--radio", "btsnoop:saved.btsnoop", folder=folder)
    assert (replayed.status, replayed.stderr) == (0, "")
    assert len(replayed.lines) > 50
    *whole, failure = ended.lines
    assert replayed.lines == whole and json.loads(failure)["exit"] == 74
    assert json.loads(replayed.lines[0])["major"] == 1


@pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")
def test_a_disk_that_was_full_before_gets_no_empty_file(stepctl, folder):
    (folder / "long.btsnoop").write_bytes(captures.HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, seconds=1))
    (folder / "disk").mkdir()
    script = 'mount -t tmpfs -o size=4k none disk && head -c 4096 /dev/zero >disk/all && { "$@"; ls disk; }'
    full = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    ended = stepctl("scan", "--radio", "btsnoop:long.btsnoop", "--save", "disk/saved", prefix=full, folder=folder)
    assert ended.error == "cannot save to disk/saved: No space left on device"
    assert ended.stdout == "all\n"


@pytest.mark.parametrize("method", ["nfc", "qr"])
@pytest.mark.parametrize("given", [("--save", "x"), ("--watch",)], ids=["save", "watch"])
def test_what_listens_goes_with_beacons_alone(stepctl, folder, method, given):
    ended = stepctl("locate", "--by", method, "--vehicle", "car.toml", *given, folder=folder)
    assert ended.status == 64 and f"{given[0]} needs the radio: use it with --by beacon" in ended.stderr
    assert not (folder / "x").exists()
