"""Where a vehicle is: the operator says it, every account sees it, and `stepctl find` leads there."""

import contextlib
import http.client
import json
import re
import signal
import socket
import sqlite3
import time
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

import pytest
import requests

from programs import STEPCTL, Stepctl, Transcript, wait_until
from terminal import Terminal
from test_find import Gpsd, moved, tpv
from test_stepctl import Phone


@pytest.fixture
def rider(stored, new_rider):
    return new_rider(stored)


def on_the_socket(server, path: str, body) -> tuple[int, dict]:
    """What a program says that is not stepfleet."""
    with closing(http.client.HTTPConnection("admin")) as connection:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(server.folder / "run/admin.sock"))
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def adds(server, folder):
    """A vehicle that only its files stand for."""
    stepctl = Stepctl(folder.parent, Transcript())
    made = stepctl("provision", "vehicle", folder, "--operator", server.folder / "operator")
    assert made.status == 0, made
    assert server.types("vehicle", "add", folder.name).returncode == 0


def test_a_place_is_set_seen_by_every_account_and_taken_away(stored, rider, parked):
    path = f"/v1/vehicles/{parked[0]}"
    before = rider.asks("GET", path)
    assert "place" not in before.json() and "placed_at" not in before.json()
    placed = stored.types("vehicle", "place", "car", "-33.8568001,151.2153")
    assert (placed.returncode, placed.stdout) == (0, "car: -33.8568001,151.2153\n"), placed
    after = rider.asks("GET", path, headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200 and after.headers["ETag"] != before.headers["ETag"]
    assert after.json()["place"] == {"latitude": -33.8568001, "longitude": 151.2153}
    assert abs(datetime.fromisoformat(after.json()["placed_at"]).timestamp() - time.time()) < 60
    assert rider.asks("GET", path, headers={"If-None-Match": after.headers["ETag"]}).status_code == 304
    car, van = rider.asks("GET", "/v1/vehicles").json()["vehicles"]
    assert car["place"] == after.json()["place"] and "place" not in van
    assert json.loads(stored.types("vehicle", "show", "car").stdout)["place"] == car["place"]
    # Nobody sees it without an account.
    assert requests.get(stored.url + path, verify=stored.verify).status_code == 401

    taken = stored.types("vehicle", "place", parked[0], "--none")
    assert (taken.returncode, taken.stdout) == (0, "car: no place\n"), taken
    assert rider.asks("GET", path).json() == before.json()
    assert stored.types("vehicle", "place", "nobody", "1,2").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [["90.1,0"], ["0,-180.1"], ["nan,0"], ["0,inf"], ["48.7758"], ["1,2,3"], ["x,y"], [""], [], ["1,2", "--none"],
     ["1,2", "3,4"], ["--nome"]],
    ids=str)
def test_what_is_no_place_is_refused(server, arguments):
    ended = server.types("vehicle", "place", "car", *arguments)
    assert (ended.returncode, ended.stdout) == (64, ""), ended


def test_the_server_checks_the_place_itself(stored, rider, parked):
    good = {"latitude": 90, "longitude": -180.0}
    assert on_the_socket(stored, "/vehicle/place", {"name": "car", "place": good})[0] == 200
    for bad in (
        {"latitude": 90.0000001, "longitude": 0}, {"latitude": 0, "longitude": 1e400}, {"latitude": 0},
        {"latitude": "0", "longitude": 0}, {"latitude": 0, "longitude": 0, "altitude": 0}, [0, 0], "0,0", 0, {},
    ):
        status, problem = on_the_socket(stored, "/vehicle/place", {"name": "car", "place": bad})
        assert (status, problem["code"]) == (400, "malformed"), bad
    assert on_the_socket(stored, "/vehicle/place", {"name": "car", "plaec": None})[0] == 400
    assert rider.asks("GET", f"/v1/vehicles/{parked[0]}").json()["place"] == good


def test_databases_and_backups_from_before_there_were_places_are_taken(fleet, tmp_path):
    """And a backup has the places."""
    adds(fleet, tmp_path / "car")

    def forget_places(file):
        with contextlib.closing(sqlite3.connect(file)) as database:
            for column in ("latitude", "longitude", "placed_at"):
                database.execute(f"ALTER TABLE vehicle DROP COLUMN {column}")
            database.execute("DELETE FROM migration WHERE name = 'vehicle-place-1'")
            database.commit()

    assert fleet.stops() == 0
    forget_places(fleet.folder / "data/fleet.sqlite")
    fleet.starts()
    assert fleet.types("vehicle", "place", "car", "48.7758,9.1829").returncode == 0
    for name, has_place in (("backup", True), ("old", False)):
        assert fleet.types("backup", tmp_path / name).returncode == 0
        if not has_place:
            forget_places(tmp_path / name)
        restored = fleet.types("restore", tmp_path / name, tmp_path / f"{name}-restored")
        assert restored.returncode == 0, restored
        with contextlib.closing(sqlite3.connect(tmp_path / f"{name}-restored/data/fleet.sqlite")) as database:
            (row,) = database.execute("SELECT latitude, longitude FROM vehicle").fetchall()
        assert row == ((487758000, 91829000) if has_place else (None, None))
        assert fleet.types("check", tmp_path / f"{name}-restored").returncode == 0


# --- stepctl find ---


@pytest.fixture
def gpsd():
    with ExitStack() as stack:
        yield stack.enter_context(closing(Gpsd([tpv()] * 4000, pause=0.3))).address


@pytest.fixture
def phone(fleet, tmp_path):
    """A rider's device that knows a vehicle of the fleet, whose file has no place."""
    adds(fleet, tmp_path / "Van")
    phone = Phone(fleet, tmp_path / "phone").makes_account().logs_in()
    booked = phone("book", "Van", "--for", "2h", "-y", "--json")
    assert booked.status == 0, booked
    phone.file = booked.json["vehicle_file"]
    return phone


def questions(fleet) -> int:
    """How often a vehicle's place was asked for."""
    return sum(int(count) for count in re.findall(r'_count{.*route="/v1/vehicles/[^"]+".*} (\d+)', fleet.metrics()))


def placed(fleet, north: float, east: float, seconds_ago: int = 0):
    latitude, longitude = moved(north, east)
    ended = fleet.types("vehicle", "place", "Van", f"{latitude:.7f},{longitude:.7f}")
    assert ended.returncode == 0, ended
    if seconds_ago:
        # As if the operator had said it then.
        assert fleet.stops() == 0
        with contextlib.closing(sqlite3.connect(fleet.folder / "data/fleet.sqlite")) as database:
            database.execute("UPDATE vehicle SET placed_at = ?", [int(time.time()) - seconds_ago])
            database.commit()
        starts(fleet)


def has_client(fleet) -> bool:
    """Whether somebody has a connection to the server (proc(5), /proc/net/tcp: ESTABLISHED is 01)."""
    tables = (Path(f"/proc/self/net/{name}") for name in ("tcp", "tcp6"))
    text = "".join(table.read_text() for table in tables if table.exists())
    return re.search(rf":{fleet.port:04X} 01 ", text) is not None


def starts(fleet):
    fleet.starts()
    # It does not take proofs from before it was there, to the second.
    time.sleep(1.1)


def test_find_leads_to_where_the_fleet_says(fleet, phone, gpsd):
    without = phone("find", "--gpsd", gpsd)
    assert without.status == 78 and "does not say where the vehicle is" in without.error, without
    hours = 3600
    placed(fleet, 85, 85, seconds_ago=3 * hours)
    told = phone("find", "--gpsd", gpsd, "--json")
    assert told.status == 0, told
    assert told.json["distance_m"] == pytest.approx(120.2, abs=1) and told.json["vehicle"] == "Van"
    assert told.json["place_from"] == "fleet" and 3 * hours <= told.json["place_age_s"] < 3.4 * hours
    said = phone("find", "--gpsd", gpsd).stdout
    assert said == "Van: 120 m to the north-east (45°), ± 8 m; from the fleet, 3 h ago\n"
    (listed,) = phone("vehicles", "--json").lines
    assert json.loads(listed)["place"].keys() == {"latitude", "longitude"}


def test_find_asks_the_fleet_once_and_only_where_it_has_to(fleet, phone, gpsd, tmp_path):
    placed(fleet, 0, 300)
    before = questions(fleet)
    assert phone("find", "--gpsd", gpsd, "--to", "48.7758,9.1929", "--json").json["place_from"] == "option"
    assert questions(fleet) == before
    with closing(Terminal(
        [STEPCTL, "find", "--watch", "--gpsd", gpsd], phone.stepctl.environment | {"TERM": "xterm"}, 24)) as screen:
        screen.shows("to the east")
        assert "the place is from the fleet, " in "\n".join(screen.frame)
        # A vehicle that is moved while somebody walks there is still where it was said to be.
        placed(fleet, 300, 0)
        time.sleep(1.5)
        assert "to the east" in "\n".join(screen.frame)
        screen.types(b"q")
        assert screen.ends() == 0
    assert questions(fleet) == before + 1
    # What the file says counts first, and nobody is asked.
    latitude, longitude = moved(-300, 0)
    with open(phone.file, "a") as file:
        file.write(f"\n[place]\nlatitude = {latitude}\nlongitude = {longitude}\n")
    log = tmp_path / "loaded"
    told = phone("find", "--gpsd", gpsd, "--json", LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log))
    assert told.json["place_from"] == "file" and told.json["place_age_s"] is None
    assert told.json["bearing_deg"] == pytest.approx(180, abs=1)
    assert "libcurl" not in "".join(file.read_text() for file in tmp_path.glob("loaded.*"))
    assert questions(fleet) == before + 1


def test_find_says_what_it_would_say_when_the_fleet_cannot_help(fleet, phone, gpsd, tmp_path):
    fleet.kill()
    away = phone("find", "--gpsd", gpsd, "--json")
    assert away.status == 78 and "does not say where the vehicle is" in away.json["message"], away
    assert away.json["hint"].startswith("give --to ") and f"localhost:{fleet.port}" in away.json["hint"]
    starts(fleet)
    # One that does not answer is not waited for when the rider has had enough.
    fleet.process.send_signal(signal.SIGSTOP)
    assert not has_client(fleet)
    waiting = phone.stepctl.start(tmp_path / "waiting", "find", "--gpsd", gpsd)
    wait_until(lambda: has_client(fleet), "it asks")
    waiting.signal(signal.SIGINT)
    ended = waiting.ends(5)
    assert (ended.status, ended.stdout) == (-signal.SIGINT, ""), ended
    fleet.process.send_signal(signal.SIGCONT)
    assert fleet.types("account", "suspend", phone.email).returncode == 0
    ended = phone("find", "--gpsd", gpsd)
    assert ended.status == 78 and "has ended your login" in ended.stderr, ended
    # Without a login nobody is asked.
    nobody = phone("find", "--gpsd", gpsd)
    assert nobody.status == 78 and nobody.stderr.endswith("below [place]\n"), nobody
