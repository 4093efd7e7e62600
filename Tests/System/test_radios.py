"""Captures that are torn, foreign or missing, radios that are not there, and what is concluded from what is heard."""

import os
import random
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import captures
from captures import AWAY, HEADER, HERE, VEHICLE, VEHICLE_FILE, heard, record, reports, written
from programs import AS_ANYBODY, PATIENCE, REPOSITORY, STEPCTL

STRANGER = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def locate(stepctl, tmp_path_factory):
    """`locate` with a capture, for a vehicle file that has what it takes for that and no more."""
    folder = tmp_path_factory.mktemp("radios")
    (folder / "car.toml").write_text(VEHICLE_FILE)

    def run(capture: bytes, *arguments):
        (folder / "capture").write_bytes(capture)
        return stepctl(
            "locate", "--json", "--vehicle", "car.toml", "--radio", "btsnoop:capture", *arguments, folder=folder
        )

    return run


@pytest.fixture
def scan(stepctl, tmp_path):
    def run(capture: bytes, *arguments):
        (tmp_path / "capture").write_bytes(capture)
        return stepctl("scan", "--json", "--radio", "btsnoop:capture", *arguments, folder=tmp_path)

    return run


# --- Captures that are none ---


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "it is empty"),
        (b"rubbish" * 100, "it does not begin with `btsnoop`"),
        (b"BTSNOOP\0" + HEADER[8:], "it does not begin with `btsnoop`"),
        (
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 201) + bytes(100),
            "it is pcap of link type 201 (Bluetooth HCI H4 with directions), which `editcap -F btsnoop` converts",
        ),
        (
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 251) + bytes(100),
            "it is pcap of link type 251 (Bluetooth LE link layer); only the types 187, 201, 254 can be converted",
        ),
        (b"\x0a\x0d\x0d\x0a" + bytes(100), "it is pcapng"),
        (b"\x1f\x8b" + bytes(100), "it is gzip"),
        (b"btsnoop\0" + struct.pack(">II", 2, 1002), "its version is 2, and only version 1 is known"),
        (
            b"btsnoop\0" + struct.pack(">II", 1, 1003),
            "its data link type is 1003; only 1001 (HCI), 1002 (H4) and 2001 (Linux monitor) are known",
        ),
    ],
    ids=["empty", "rubbish", "other magic", "pcap", "a sniffer's", "pcapng", "gzip", "version 2", "data link 1003"],
)
def test_a_file_that_is_no_capture_is_told(scan, locate, content, fault):
    for program in (scan, locate):
        ended = program(content)
        assert (ended.status, ended.outcome) == (65, {"outcome": "failed"})
        assert ended.stderr == f"stepctl: error: capture is not a btsnoop capture that can be read: {fault}\n"


@pytest.mark.parametrize("cut", [1, 8, 15, 17, 30, 39, 60, 83])
def test_a_capture_that_is_torn_is_told_after_what_is_whole(scan, cut):
    whole = HEADER + heard(VEHICLE, {1: HERE}, seconds=1)
    torn = whole[:cut] if cut < 40 else whole[: len(whole) - 90 + cut]
    ended = scan(torn)
    assert ended.status == 65
    assert ended.error.startswith(f"capture is damaged at byte {len(torn)}: expected ")
    # What is whole, and the failure.
    assert len(ended.lines) == (0 if cut < 40 else 9) + 1


def test_a_capture_with_garbage_in_the_middle_is_told_after_what_is_whole(scan):
    whole = HEADER + heard(VEHICLE, {1: HERE}, seconds=1)
    ended = scan(whole + b"\xff" * 100)
    assert (ended.status, len(ended.lines)) == (65, 10 + 1)
    assert ended.error.startswith(f"capture is damaged at byte {len(whole) + 4}: expected ")


def test_no_capture_makes_it_crash(scan):
    chance = random.Random(1)
    whole = bytearray(HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, seconds=1))
    for _ in range(40):
        bent = whole.copy()
        for _ in range(chance.randrange(1, 30)):
            bent[chance.randrange(16, len(bent))] = chance.randrange(256)
        ended = scan(bytes(bent))
        assert ended.status in (0, 65), ended
        assert ended.status == 0 or ended.error.startswith("capture is damaged at byte ")


@pytest.mark.parametrize("times", [(-(2**63) + 1,), (-(2**62), 2**62 + 2**61)], ids=["before all times", "eternity"])
def test_times_at_which_nobody_recorded_are_damage(stepctl, locate, tmp_path, times):
    """Those whose calculation overflows, and a silence that would be told half second by half second for ever."""
    packet = reports(captures.frame(VEHICLE, 1), HERE, 1)
    records = [struct.pack(">IIIIq", len(packet), len(packet), 3, 0, time) + packet for time in times]
    watched = locate(HEADER + b"".join(records), "--watch")
    assert (watched.status, watched.error) == (
        65,
        "capture is damaged at byte 32: expected a time in the years 0 to 9999",
    )
    assert stepctl("scan", "--radio", written(tmp_path / "capture", HEADER + records[0])).status == 65


def test_a_capture_without_a_record_locates_nobody(locate):
    ended = locate(HEADER)
    assert (ended.status, ended.json["located"], ended.json["step"]) == (3, False, None)
    assert ended.stderr == "hint: no beacon of Rolling Chassis is heard\n"


def test_events_of_no_report_and_of_too_many_are_passed_over(scan):
    data = captures.frame(VEHICLE, 1)
    events = [reports(data, HERE, 1, claimed) for claimed in (0, 2, 255)]
    events += [captures.event(bytes([0x02, 1])), captures.event(b""), captures.event(b"\x02\x01" + b"\xff" * 253)]
    events += [b"\x04\x3e\xff\x02\x01", b"\x04", b"", b"\x02\x00\x00\x00\x00", reports(data, HERE, 1)]
    ended = scan(HEADER + b"".join(record(packet, number / 10) for number, packet in enumerate(events)))
    assert (ended.status, ended.stderr) == (0, "")
    assert [line["rssi_dbm"] for line in ended.objects][-1] == HERE
    assert len(ended.lines) <= 3


def test_an_rssi_that_is_not_available_is_null(scan, locate):
    packets = [reports(captures.frame(VEHICLE, 1), rssi, 1) for rssi in (127, 0, 20, HERE)]
    capture = HEADER + b"".join(record(packet, number / 10) for number, packet in enumerate(packets * 5))
    assert [line["rssi_dbm"] for line in scan(capture).objects[:4]] == [None, None, None, HERE]
    (left, _) = locate(capture).json["steps"]
    assert (left["rssi_dbm"], left["packets"]) == (HERE, 5)


# --- Beacons as they are sold ---


def extended(data: bytes, rssi: int) -> bytes:
    """An H4 packet: an LE Extended Advertising Report event (Core 5.4, Vol 4, Part E, 7.7.65.13)."""
    head = bytes([0x0D, 1, 0x00, 0x00, 0x01, 1, 2, 3, 4, 5, 0xC6, 0x01, 0x01, 0xFF, 127]) + struct.pack("b", rssi)
    return captures.event(head + bytes(9) + bytes([len(data)]) + data)


def longer(data: bytes, count: int) -> bytes:
    """An iBeacon without Flags and with so many bytes behind its measured power."""
    beacon = data[3:]
    return bytes([beacon[0] + count]) + beacon[1:] + b"\x64" * count


def test_beacons_with_bytes_behind_the_power_are_heard(scan, locate):
    beacon = captures.frame(VEHICLE, 1)
    packets = [reports(longer(beacon, count), HERE, 1) for count in range(5)]
    packets += [extended(longer(beacon, count), HERE) for count in range(6)]
    # Shorter than a beacon, and longer than the data.
    packets += [reports(bytes([length]) + beacon[4:], HERE, 1) for length in (0x19, 0x1B, 0x1F)]
    ended = scan(HEADER + b"".join(record(packet, number / 10) for number, packet in enumerate(packets)))
    assert (ended.status, ended.stderr, len(ended.lines)) == (0, "", 11)
    assert {(line["uuid"], line["major"], line["measured_power_dbm"]) for line in ended.objects} == {(VEHICLE, 1, -59)}
    left, right = reports(longer(beacon, 4), HERE, 1), reports(longer(captures.frame(VEHICLE, 2), 1), AWAY, 2)
    located = locate(HEADER + b"".join(record(left, tick / 10) + record(right, tick / 10) for tick in range(20)))
    assert (located.status, located.json["step"]) == (0, "left")


def test_a_second_beacon_in_an_advertisement_is_heard(scan, locate):
    stranger = captures.frame(STRANGER, 1)
    packets = [
        extended(stranger + captures.frame(VEHICLE, major)[3:], rssi) for major, rssi in ((1, HERE), (2, AWAY))
    ]
    capture = HEADER + b"".join(record(packet, tick / 10) for tick in range(20) for packet in packets)
    assert [line["uuid"] for line in scan(capture).objects[:4]] == [STRANGER, VEHICLE] * 2
    located = locate(capture)
    assert (located.status, located.json["step"]) == (0, "left")


def sent(*beacons) -> bytes:
    """A capture of beacons at 10 Hz: major, RSSI, and what makes the address of each frame."""
    return HEADER + b"".join(
        record(reports(captures.frame(VEHICLE, major), rssi, address(tick)), tick / 10 + number / 100)
        for tick in range(100)
        for number, (major, rssi, address) in enumerate(beacons)
    )


def test_a_spare_beacon_of_the_other_step_decides_nothing_and_that_is_told(locate):
    true = [(1, AWAY, lambda tick: 1), (2, -62, lambda tick: 2)]
    assert locate(sent(*true)).json["step"] == "right"
    for address in (lambda tick: 9, lambda tick: 10 + tick, lambda tick: 10 + tick // 10):
        ended = locate(sent(*true, (1, -48, address)))
        assert (ended.status, ended.json["located"], ended.json["step"]) == (3, False, None)
        assert ended.stderr == "hint: two beacons send as the left step: remove one\n"


@pytest.mark.parametrize(
    "address",
    [lambda tick: tick, lambda tick: tick // 10, lambda tick: tick % 2, lambda tick: tick // 10 % 2],
    ids=["each frame", "each second", "in turn", "back and forth"],
)
def test_a_beacon_whose_address_changes_locates(locate, address):
    ended = locate(sent((1, HERE, address), (2, AWAY, lambda tick: 1 - address(tick) % 2)))
    assert (ended.status, ended.json["step"]) == (0, "left")


# --- Files that cannot be read ---


@pytest.mark.parametrize("command", ["scan", "locate", "open", "close"])
def test_a_capture_that_is_not_there_is_told(stepctl, shared_vehicle, shared_rider, command):
    about = {"scan": [], "locate": ["--vehicle", shared_rider.file]}.get(
        command, ["--side", "left", "--vehicle", shared_rider.file]
    )
    ended = stepctl(command, *about, "--radio", "btsnoop:nowhere")
    assert (ended.status, ended.stdout) == (66, "")
    assert ended.stderr == "stepctl: error: cannot open nowhere: No such file or directory\n"


def test_a_folder_is_no_capture(stepctl, tmp_path):
    ended = stepctl("scan", "--radio", f"btsnoop:{tmp_path}")
    assert (ended.status, ended.stdout) == (74, "")
    assert ended.stderr == f"stepctl: error: cannot read {tmp_path}: Is a directory\n"


def test_a_capture_that_may_not_be_read_is_told(stepctl, tmp_path):
    path = tmp_path / "capture"
    radio = written(path, captures.at_the_left(VEHICLE))
    path.chmod(0)
    ended = stepctl("scan", "--radio", radio, prefix=AS_ANYBODY)
    assert (ended.status, ended.stdout) == (77, "")
    assert ended.stderr == f"stepctl: error: cannot open {path}: Permission denied\n"


# --- Pipes ---


def test_a_capture_can_come_through_a_pipe(stepctl):
    capture = captures.at_the_left(VEHICLE)
    ended = stepctl("scan", "--radio", "btsnoop:-", input=capture)
    assert (ended.status, len(ended.lines), ended.stderr) == (0, 40, "")
    torn = stepctl("scan", "--radio", "btsnoop:-", input=capture[:-1])
    assert (torn.status, len(torn.lines)) == (65, 39)
    assert torn.error.startswith("standard input is damaged at byte ")
    closed = stepctl("scan", "--radio", "btsnoop:-", input=b"")
    assert (closed.status, closed.error) == (
        65,
        "standard input is not a btsnoop capture that can be read: it is empty",
    )


def test_what_comes_through_a_pipe_is_told_at_once(stepctl):
    capture = captures.at_the_left(VEHICLE)
    with subprocess.Popen(
        [STEPCTL, "scan", "--radio", "btsnoop:-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=stepctl.environment,
    ) as running:
        try:
            running.stdin.write(capture[: len(HEADER) + 3 * (len(capture) - len(HEADER)) // 40])
            running.stdin.flush()
            lines = [running.stdout.readline() for _ in range(3)]
            assert all(VEHICLE.encode() in line for line in lines), "while the pipe is still open"
            running.stdin.close()
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()


def test_a_reader_that_goes_away_ends_it_as_sigpipe_does(stepctl, tmp_path):
    # More than a pipe holds, so that it is still writing when the reader goes.
    radio = written(tmp_path / "capture", HEADER + heard(VEHICLE, {1: HERE}, seconds=200))
    with subprocess.Popen(
        [STEPCTL, "scan", "--radio", radio], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=stepctl.environment
    ) as running:
        try:
            assert VEHICLE.encode() in running.stdout.readline()
            running.stdout.close()
            assert running.wait(PATIENCE) == -signal.SIGPIPE
            assert running.stderr.read() == b""
        finally:
            running.kill()


@pytest.mark.parametrize("command", ["scan", "locate", "config"])
def test_output_that_cannot_be_written_is_told(stepctl, tmp_path, command):
    (tmp_path / "car.toml").write_text(VEHICLE_FILE)
    radio = written(tmp_path / "capture", captures.at_the_left(VEHICLE))
    arguments = {
        "scan": ["scan", "--radio", radio],
        "locate": ["locate", "--radio", radio, "--vehicle", tmp_path / "car.toml"],
        "config": ["config", "show"],
    }[command]
    ended = stepctl(*arguments, prefix=("sh", "-c", 'exec "$0" "$@" > /dev/full'))
    assert ended.status == 74
    assert ended.stderr == "stepctl: error: cannot write to standard output: No space left on device\n"


# --- Other radios ---


@pytest.mark.parametrize(
    ("radio", "fault"),
    [
        ("rubbish", "expected hci0, bluez:hci0, h4:tcp:HOST:PORT, h4:unix:PATH or btsnoop:FILE (- for standard input)"),
        ("HCI0", "expected hci0, bluez:hci0, h4:tcp:HOST:PORT, h4:unix:PATH or btsnoop:FILE (- for standard input)"),
        ("hci", "an adapter is hci and its number: hci0"),
        ("hci-1", "an adapter is hci and its number: hci0"),
        ("hci65536", "an adapter is hci and its number: hci0"),
        ("btsnoop:", "the file is missing"),
        ("h4:unix:", "the path must have 1 to 107 bytes"),
        ("h4:unix:" + "x" * 108, "the path must have 1 to 107 bytes"),
        ("h4:tcp:localhost", "the port is missing"),
        ("h4:tcp::9000", "the host is missing or malformed"),
        ("h4:tcp:localhost:0", "the port must be a number from 1 to 65535"),
        ("h4:tcp:localhost:65536", "the port must be a number from 1 to 65535"),
        ("h4:tcp:::1:9000", "an IPv6 address is written in brackets: h4:tcp:[::1]:9000"),
    ],
)
def test_a_radio_that_is_none_is_a_usage_error(stepctl, radio, fault):
    ended = stepctl("scan", "--radio", radio)
    assert (ended.status, ended.stdout) == (64, "")
    assert ended.stderr == f'stepctl: error: --radio: "{radio}" is not a radio: {fault}\n'


def test_a_stream_with_nobody_at_its_other_end_is_told(stepctl, tmp_path):
    nowhere = stepctl("scan", "--radio", f"h4:unix:{tmp_path}/nowhere")
    assert (nowhere.status, nowhere.stdout) == (69, "")
    assert nowhere.error == f"cannot connect to h4:unix:{tmp_path}/nowhere: No such file or directory"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{tmp_path}/deaf")
        deaf = stepctl("scan", "--radio", f"h4:unix:{tmp_path}/deaf")
    assert (deaf.status, deaf.error) == (69, f"cannot connect to h4:unix:{tmp_path}/deaf: Connection refused")
    host = stepctl("scan", "--radio", "h4:tcp:controller.invalid:9000")
    assert host.status == 69
    assert host.error.startswith("cannot connect to h4:tcp:controller.invalid:9000: ")


def test_a_stream_that_closes_or_speaks_something_else_is_told(stepctl, tmp_path):
    path = f"{tmp_path}/controller"
    for said, error in (
        (b"", f"lost h4:unix:{path}: "),
        (b"HTTP/1.1 400\r\n", f"h4:unix:{path} does not speak H4: byte 0 is 0x48"),
    ):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            running = stepctl.start(tmp_path / "scan.log", "scan", "--radio", f"h4:unix:{path}")
            server.settimeout(PATIENCE)
            connection, _ = server.accept()
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            ended = running.ends()
            connection.close()
        os.unlink(path)
        assert (ended.status, ended.stdout) == (69, "")
        assert ended.stderr.splitlines()[-1].startswith(f"stepctl: error: {error}")


@pytest.fixture
def bus(tmp_path):
    """A system bus of one's own: where it listens, and a prefix that has a program find it there."""
    path = tmp_path / "bus"
    return path, ("env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={path}")


def test_bluetoothd_that_cannot_be_reached_is_told(stepctl, bus):
    path, prefix = bus
    none = stepctl("scan", "--radio", "bluez:hci0", prefix=prefix)
    assert (none.status, none.stdout) == (69, "")
    fault = "no D-Bus system bus (No such file or directory); `sudo systemctl start dbus` starts it"
    assert none.error == f"cannot open bluez:hci0: {fault}"
    command = ["dbus-daemon", "--session", "--nofork", f"--address=unix:path={path}", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
        try:
            assert daemon.stdout.readline(), "the bus listens"
            without = stepctl("scan", "--radio", "bluez:hci0", prefix=prefix)
        finally:
            daemon.terminate()
    assert (without.status, without.stdout) == (69, "")
    fault = "bluez:hci0 needs bluetoothd, which is not running; `sudo systemctl start bluetooth` starts it"
    assert without.error == fault


def test_a_bus_that_says_nothing_is_waited_for_only_as_long_as_one_likes(stepctl, bus):
    path, prefix = bus
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        ended = stepctl("scan", "--radio", "bluez:hci0", prefix=(*prefix, "timeout", "--preserve-status", "1"))
    assert (ended.status, ended.stdout) == (128 + signal.SIGTERM, "")


@pytest.mark.skipif(Path("/sys/class/bluetooth/hci77").exists(), reason="there is an hci77 here")
def test_an_adapter_that_is_not_there_is_told(stepctl):
    ended = stepctl("scan", "--radio", "hci77")
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error in (
        "cannot open hci77: this kernel has no Bluetooth, or none in this container",
        "cannot open hci77: there is no such adapter; `hciconfig` lists the adapters",
    )
    assert ended.stderr.splitlines()[-1] == "hint: `stepctl doctor` lists the radios"


# --- What is concluded ---


def watched(locate, capture: bytes) -> list[dict]:
    ended = locate(capture, "--watch")
    assert ended.status == 0
    return ended.objects


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nobody_who_walks_up_is_located_at_the_other_side(locate, tmp_path, side, seed):
    walk = tmp_path / "walk"
    program = REPOSITORY / "Tests/Demo/walk.py"
    arguments = [program, "--uuid", VEHICLE, "--side", side, "--seed", str(seed), "--out", walk]
    subprocess.run([sys.executable, *arguments], check=True)
    located = [report["step"] for report in watched(locate, walk.read_bytes()) if report["located"]]
    assert set(located) == {side}


def test_a_rider_who_changes_sides_is_located_at_each_while_there(locate):
    capture = HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, 0, 10) + heard(VEHICLE, {1: AWAY, 2: HERE}, 10, 10)
    reports = watched(locate, capture)
    assert {report["step"] for report in reports if report["located"] and report["elapsed_s"] <= 10} == {"left"}
    assert {report["step"] for report in reports if report["located"] and report["elapsed_s"] > 15} == {"right"}
    order = [report["step"] for report in reports if report["located"]]
    assert order == sorted(order), "never back"


def test_a_beacon_that_falls_silent_is_forgotten(locate):
    others = heard(STRANGER, {1: HERE}, 5, 15)  # for the radio's clock to go on
    reports = watched(locate, HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, 0, 5) + others)
    at = {report["elapsed_s"]: report for report in reports}
    assert at[4.5]["located"] and at[4.5]["step"] == "left"
    for time in (15, 19.5):
        assert not at[time]["located"]
        assert (at[time]["step"], at[time]["zone"], at[time]["distance_m"]) == (None, "unknown", None)
        assert [(step["zone"], step["packets"]) for step in at[time]["steps"]] == [("unknown", 0)] * 2


def test_the_one_beacon_that_is_heard_is_not_enough_when_it_is_weak(locate):
    reports = watched(locate, HEADER + heard(VEHICLE, {2: -85}, 0, 10))
    assert not any(report["located"] for report in reports)


def test_the_beacons_of_another_vehicle_and_of_no_step_locate_nobody(locate):
    for capture in (heard(STRANGER, {1: HERE, 2: AWAY}), heard(VEHICLE, {3: HERE, 65535: AWAY})):
        ended = locate(HEADER + capture)
        assert (ended.status, ended.json["step"], ended.json["located"]) == (3, None, False)


def test_a_clock_that_jumps_confuses_nobody(locate):
    for jump in (-3600, 3600, 10 * 365 * 86400):
        capture = HEADER + heard(VEHICLE, {1: HERE, 2: AWAY}, 0, 5) + heard(VEHICLE, {1: AWAY, 2: HERE}, 5 + jump, 10)
        reports = watched(locate, capture)
        located = [report["step"] for report in reports if report["located"]]
        assert located == sorted(located) and set(located) == {"left", "right"}, jump
        # How long ago it was that the left one was heard, a clock that was set back cannot say.
        assert jump > 0 or not [at for at in reports if at["step"] == "left" and at["elapsed_s"] > 5], jump
        times = [report["elapsed_s"] for report in reports]
        assert times == sorted(times), jump


def test_a_clock_that_only_goes_back_never_reads_less_than_zero(locate):
    """Such a capture ends before its own beginning, and nothing that was heard has a known age."""
    forward = captures.heard(VEHICLE, {1: HERE, 2: AWAY}, 0, 20)
    size = len(record(reports(captures.frame(VEHICLE, 1), HERE, 1), 0))
    backward = b"".join(forward[start : start + size] for start in range(len(forward) - size, -1, -size))
    for arguments in ((), ("--watch",)):
        ended = locate(HEADER + backward, *arguments)
        assert [(report["elapsed_s"], report["located"]) for report in ended.objects] == [(0, False)], arguments
