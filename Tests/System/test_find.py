"""The way to a vehicle: gpsd itself with receivers that are played (gpsfake), and a gpsd of ours for what it never says."""

import contextlib
import functools
import json
import math
import operator
import socket
import threading
import time
from pathlib import Path

import pytest

from captures import VEHICLE_FILE
from programs import PATIENCE, STEPCTL, wait_until

HASTE = 4
# How many reports a receiver makes that has time to settle. After five seconds without one, as on a busy machine, it
# has to settle again.
LONG = 160

# Where the receiver is.
LATITUDE, LONGITUDE = 48.7758, 9.1829


def moved(north: float, east: float) -> tuple[float, float]:
    """So many metres away, on a sphere: good enough for the ways of these tests."""
    return (LATITUDE + north / 111_195, LONGITUDE + east / 111_195 / math.cos(math.radians(LATITUDE)))


def place(north: float, east: float) -> str:
    return "{:.7f},{:.7f}".format(*moved(north, east))


def tpv(north: float = 0, east: float = 0, eph: float | None = 8, mode: int = 3, **members) -> dict:
    latitude, longitude = moved(north, east)
    report = {"class": "TPV", "device": "/dev/gps", "mode": mode, "time": "2005-02-03T04:05:06.000Z"}
    if mode >= 2:
        report |= {"lat": latitude, "lon": longitude}
    return report | ({"eph": eph} if eph else {}) | members


class Gpsd:
    """Says what a test has it say, with a pause after each, in seconds that pass as fast as stepctl's."""

    def __init__(self, reports, pause: float = 0.5):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked = b""
        self.reports, self.pause = reports, pause
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        return "127.0.0.1:{}".format(self.listener.getsockname()[1])

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(b'{"class":"VERSION","release":"3.22","proto_major":3,"proto_minor":14}\r\n')
                    self.asked += client.recv(1024)
                    client.sendall(b'{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/gps"}]}\r\n')
                    for report in self.reports:
                        client.sendall(report if isinstance(report, bytes) else json.dumps(report).encode() + b"\r\n")
                        time.sleep(self.pause / HASTE)

    def close(self):
        self.listener.close()


@pytest.fixture
def find(stepctl, hasty):
    """stepctl waits for the receiver to settle: `HASTE` seconds pass in one."""
    return lambda *arguments: stepctl("find", *arguments, **hasty(HASTE))


@pytest.fixture
def gpsd():
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **options: stack.enter_context(contextlib.closing(Gpsd(*arguments, **options)))


def test_the_way_is_told_when_the_receiver_has_settled(find, gpsd):
    played = gpsd([tpv(mode=1)] + [tpv()] * LONG)
    began = time.monotonic()
    told = find("--gpsd", played.address, "--to", place(85, 85), "--json").json
    assert (time.monotonic() - began) * HASTE > 8
    assert told["state"] == "settled" and not told["near"] and told["turn_deg"] is None
    assert told["distance_m"] == pytest.approx(120.2, abs=1) and told["accuracy_m"] == 8
    assert told["bearing_deg"] == pytest.approx(45, abs=0.5)
    assert told["bearing_accuracy_deg"] == pytest.approx(3.8, abs=0.1)
    assert b'?WATCH={"enable":true,"json":true}' in played.asked


def test_who_walks_is_told_where_to_turn(find, gpsd):
    played = gpsd([tpv(speed=1.3, track=135, north=0.4 * step) for step in range(LONG)])
    text = find("--gpsd", played.address, "--to", place(100, 0)).stdout
    assert "to the north (" in text and "behind you, ± 8 m" in text, text


def test_within_fifteen_metres_another_command_knows_more(find, gpsd):
    played = gpsd([tpv(eph=5)] * LONG)
    text = find("--gpsd", played.address, "--to", place(5, 5)).stdout
    assert text == "the place: within 15 m, ± 5 m; use stepctl locate\n"


@pytest.mark.parametrize(
    "reports, state, words",
    [
        ([tpv(mode=1)] * 40, "none", "has no fix yet"),
        # A receiver that was just switched on, and says that it is sure.
        ([tpv(north=40 * (step % 3)) for step in range(40)], "wandering", "GPS has not settled yet; about "),
        ([tpv(eph=120)] * 40, "wandering", "± 120 m"),
    ],
    ids=["no fix", "wandering", "vague"],
)
def test_no_direction_is_told_before(find, gpsd, reports, state, words):
    address = gpsd(reports).address
    arguments = ("--gpsd", address, "--to", place(85, 85), "--timeout", "16")
    ended = find(*arguments)
    assert (ended.status, ended.stdout) == (3, "")
    assert words in ended.stderr and "north-east" not in ended.stderr and "\nhint: " in ended.stderr, ended
    told = find(*arguments, "--json")
    assert told.json["state"] == state and told.json["bearing_deg"] is None
    assert told.outcome["outcome"] == "not_located"


@pytest.mark.parametrize("errors", [{"eph": None}, {"eph": None, "epx": 0, "epy": 0}, {"eph": None, "status": 8}])
def test_a_receiver_that_tells_no_accuracy_is_guessed_at(find, gpsd, errors):
    address = gpsd([tpv(**errors)] * LONG).address
    told = find("--gpsd", address, "--to", place(85, 85), "--json").json
    assert told["state"] == "settled" and told["accuracy_m"] == 30 and told["accuracy_is_guess"]
    text = find("--gpsd", address, "--to", place(85, 85)).stdout
    assert "± 30 m (a guess: the receiver tells no accuracy)" in text
    assert text.endswith("; your place is simulated\n") == ("status" in errors) == told["simulated"]


def test_without_a_receiver_the_place_itself_is_told(find, gpsd, tmp_path):
    file = tmp_path / "car.toml"
    file.write_text(f"{VEHICLE_FILE}\n[place]\nlatitude = -33.8568\nlongitude = 151.2153\n")
    unreachable = find("--gpsd", "localhost:1", "--vehicle", file)
    link = "https://www.openstreetmap.org/?mlat=-33.85680&mlon=151.21530#map=18/-33.85680/151.21530"
    lines = ["Rolling Chassis: -33.85680, 151.21530", "geo:-33.85680,151.21530", link]
    assert (unreachable.status, unreachable.lines) == (69, lines)
    assert "cannot connect to gpsd at localhost:1" in unreachable.error
    without = find("--gpsd", gpsd([tpv(mode=1)] * 40).address, "--vehicle", file, "--timeout", "2")
    assert (without.status, without.lines) == (3, lines)
    told = find("--gpsd", "localhost:1", "--vehicle", file, "--json").json
    assert (told["place_geo"], told["place_link"], told["exit"], told["distance_m"]) == (lines[1], link, 69, None)


def test_without_a_receiver_it_says_so(find, gpsd):
    played = gpsd([{"class": "DEVICES", "devices": []}])
    ended = find("--gpsd", played.address, "--to", place(1, 1), "--timeout", "900ms")
    assert ended.status in (3, 69) and ("no receiver" in ended.stderr or "closed" in ended.stderr), ended


@pytest.mark.parametrize("is_unplugged, words", [(False, "no fix"), (True, "no receiver")])
def test_a_receiver_that_falls_silent_or_is_unplugged_leaves_no_direction(
    stepctl, gpsd, hasty, tmp_path, is_unplugged, words
):
    def reports():
        yield from [tpv()] * 80
        if is_unplugged:
            yield from [{"class": "DEVICES", "devices": []}] * 1000
        time.sleep(PATIENCE)

    arguments = ("--gpsd", gpsd(reports(), pause=0.25).address, "--to", place(85, 85), "--watch")
    with contextlib.closing(stepctl.start(tmp_path / "log", "find", *arguments, **hasty(HASTE))) as running:
        running.says("north-east", file=running.stdout)
        running.says(words, after=running.stdout.stat().st_size, file=running.stdout)
        said = running.stdout.stat().st_size
        time.sleep(1)
        assert "north-east" not in running.stdout.read_bytes()[said:].decode()


def test_of_two_receivers_the_one_with_a_fix_counts(find, gpsd):
    other = [tpv(mode=1, device="/dev/other"), tpv(north=500, device="/dev/other")]
    reports = [report for step in range(LONG) for report in (tpv(), other[step % 2])]
    told = find("--gpsd", gpsd(reports, pause=0.2).address, "--to", place(85, 85))
    assert told.status == 0 and "120 m to the north-east" in told.stdout, told


@pytest.mark.parametrize("eph", [1e12, 1e300])
def test_an_endless_error_is_none_that_is_known(find, gpsd, eph):
    arguments = ("--gpsd", gpsd([tpv(eph=eph)] * 40).address, "--to", place(85, 85), "--timeout", "6")
    for more in ((), ("--json",)):
        told = find(*arguments, *more)
        assert told.status == 3 and "settled" in told.stderr and "±" not in told.stderr, told


def test_too_near_for_a_direction(find, gpsd):
    played = gpsd([tpv(eph=30)] * LONG)
    text = find("--gpsd", played.address, "--to", place(20, 0)).stdout
    assert "too near for GPS to say in which direction" in text


def test_the_place_of_the_vehicle_file_is_the_one(find, gpsd, parked):
    played = gpsd([tpv()] * LONG)
    file = parked.folder / "rider" / "vehicle.toml" if (parked.folder / "rider").exists() else None
    file = file or next(parked.folder.rglob("vehicle.toml"))
    without = find("--gpsd", played.address, "--vehicle", file)
    assert without.status == 78 and "does not say where the vehicle is" in without.error
    latitude, longitude = moved(0, -300)
    text = file.read_text()
    file.write_text(f"{text}\n[place]\nlatitude = {latitude}\nlongitude = {longitude}\n")
    told = find("--gpsd", played.address, "--vehicle", file, "--json").json
    assert told["bearing_deg"] == pytest.approx(270, abs=0.5) and told["distance_m"] == pytest.approx(300, abs=2)
    for wrong, words in [("latitude = 91", "latitude"), ("latitude = 1", "longitude"), ("altitude = 1", "altitude")]:
        file.write_text(f"{text}\n[place]\n{wrong}\n")
        ended = find("--gpsd", played.address, "--vehicle", file)
        assert ended.status == 78 and words in ended.error


@pytest.mark.parametrize(
    "said, words",
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "not JSON"),
        (b'{"class":"TPV","mode":3,"lat":91,"lon":1}\n', "there is no such place"),
        (b'{"class":"TPV","mode":1,"mode":3,"lat":1,"lon":1}\n', "each name once"),
        (b'{"class":"TPV","mode":3,"lat":NaN,"lon":1}\n', "not JSON"),
        (b"x" * 70_000, "a line has no end"),
    ],
)
def test_what_is_not_gpsd_is_told(find, gpsd, said, words):
    played = gpsd([said, b""], pause=2)
    ended = find("--gpsd", played.address, "--to", place(1, 1), "--timeout", "40")
    assert ended.status == 65 and words in ended.error and ended.stdout == ""


def test_gpsd_that_is_not_there_or_goes_away(find, gpsd):
    ended = find("--gpsd", "localhost:1", "--to", place(1, 1))
    assert ended.status == 69 and "cannot connect to gpsd at localhost:1" in ended.error and "--gpsd" in ended.stderr
    # A place in the south is none of the options.
    assert find("--gpsd", "localhost:1", "--to", "-33.8568,151.2153").status == 69
    ended = find("--gpsd", gpsd([]).address, "--to", place(1, 1))
    assert ended.status == 69 and "closed the connection" in ended.error
    for arguments in (("--gpsd", "a b"), ("--to", "91,0"), ("--timeout", "0")):
        assert find(*arguments).status == 64


def test_an_arrow_leads_the_way(gpsd, hasty, on_terminal):
    still = [tpv(mode=1)] * 20 + [tpv()] * 60
    walk = [tpv(speed=1.4, track=90, east=0.7 * step) for step in range(100)]
    address = gpsd(still + walk, pause=0.3).address
    screen = on_terminal([STEPCTL, "find", "--watch", "--gpsd", address, "--to", place(100, 0)], **hasty(HASTE))
    screen.shows("has no fix yet")
    frame = screen.shows("GPS has not settled yet")
    # No arrow, but a question mark.
    assert any("?" in line for line in frame) and "north is up" not in "\n".join(frame)
    frame = screen.shows("to the north")
    assert "north is up" in "\n".join(frame) and len(frame) == 24 and max(map(len, frame)) < 80
    screen.shows("your way is up")
    screen.resize(8, 30)
    wait_until(lambda: len(screen.frame) == 1, "one line is left")
    screen.types(b"q")
    assert screen.ends() == 0
    plain = on_terminal([STEPCTL, "find", "--watch", "--gpsd", gpsd([tpv()] * 60).address, "--to", place(100, 0)],
                        LC_ALL="C", **hasty(HASTE))
    frame = plain.shows("about 100 m, +/- 8 m")
    assert all(line.isascii() for line in frame) and "." in "".join(frame)
    assert "100 m" in screen.written.decode().split("\x1b[?1049l")[-1] or "m to the" in screen.written.decode()


# ------------------------------------------------------------------------------------------------ gpsd itself


def sentence(text: str) -> str:
    checksum = functools.reduce(operator.xor, text.encode())
    return f"${text}*{checksum:02X}\r\n"


def receiver_log(folder: Path, fixes) -> Path:
    """NMEA 0183 of a receiver (GGA, RMC, GSA, GST), a fix a second; None for a second without a fix."""

    def angle(value, digits, letters):
        degrees = int(abs(value))
        return f"{degrees:0{digits}d}{(abs(value) - degrees) * 60:08.5f},{letters[value < 0]}"

    lines = []
    for second, fix in enumerate(fixes):
        at = f"0102{second:02d}.00" if second < 60 else f"0103{second - 60:02d}.00"
        if fix is None:
            lines += [sentence(f"GPRMC,{at},V,,,,,,,231126,,,N"), sentence(f"GPGGA,{at},,,,,0,00,99.99,,,,,,")]
            continue
        north, east, error = fix
        latitude, longitude = moved(north, east)
        where = f"{angle(latitude, 2, 'NS')},{angle(longitude, 3, 'EW')}"
        lines += [
            sentence(f"GPRMC,{at},A,{where},0.0,,231126,,,A"),
            sentence(f"GPGGA,{at},{where},1,09,0.9,250.0,M,48.0,M,,"),
            sentence("GPGSA,A,3,01,02,03,04,05,06,07,08,09,,,,1.6,0.9,1.3"),
            sentence(f"GPGST,{at},5.0,{error},{error},0.0,{error},{error},{error}"),
        ]
    log = folder / "receiver.log"
    log.write_text("".join(lines), newline="")
    return log


def test_a_receiver_that_was_just_switched_on(stepctl, gpsfake, tmp_path):
    """Without a fix, then one that wanders, then a good one: with gpsd as people have it."""
    wandering = [(60 - 6 * second, 30 if second % 2 else -30, 20.0) for second in range(8)]
    address = gpsfake(receiver_log(tmp_path, [None] * 3 + wandering + [(0, 0, 2.0)] * 60), 0.1, "-1")
    told = stepctl("find", "--gpsd", address, "--to", place(0, -200), "--json", "--timeout", "60", patience=90)
    assert told.status == 0, told
    assert told.json["bearing_deg"] == pytest.approx(270, abs=1)
    assert told.json["distance_m"] == pytest.approx(200, abs=3)


def test_a_receiver_that_never_has_a_fix(stepctl, gpsfake, tmp_path):
    address = gpsfake(receiver_log(tmp_path, [None] * 30), 0.3, "-1")
    ended = stepctl("find", "--gpsd", address, "--to", place(0, -200), "--timeout", "4")
    assert ended.status == 3 and ("no fix yet" in ended.stderr or "no receiver yet" in ended.stderr), ended
