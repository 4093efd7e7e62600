"""Zones: drawn by the operator, listed by riders, and what is said where a booking ends."""

import json
from contextlib import ExitStack, closing

import pytest
from shapely.geometry import Polygon, mapping, shape

from programs import wait_until
from test_find import HASTE, LONG, Gpsd
from test_stepctl import Joined, Phone

CORNERS = ["48.77580,9.18290", "48.77580,9.18372", "48.77602,9.18372", "48.77602,9.18290"]
POINTS = [part for corner in CORNERS for part in ("--point", corner)]
# As GeoJSON: longitude first.
YARD = Polygon([tuple(map(float, reversed(corner.split(",")))) for corner in CORNERS])


@pytest.fixture
def rider(stored, new_rider):
    return new_rider(stored)


def test_a_zone_is_drawn_listed_shown_and_removed(stored, rider, parked, tmp_path):
    added = stored.types("zone", "add", "The Yard", "--parking", *POINTS)
    assert (added.returncode, added.stdout) == (0, "The Yard: 1475 m² around 48.77591, 9.18331, for parking\n"), added
    drawn = tmp_path / "drawn.geojson"
    hole = YARD.buffer(-0.00005, join_style="mitre")
    feature = {"type": "Feature", "properties": {"name": "ring"}, "geometry": mapping(YARD.difference(hole))}
    drawn.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}, indent=2))
    assert stored.types("zone", "add", "Ring", "--geojson", drawn).returncode == 0
    lines = stored.types("zone", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "Ring", "The"] and lines[2].split()[2:] == ["yes", "1475"], lines
    zones = rider.asks("GET", "/v1/zones").json()["zones"]
    assert [(zone["name"], zone["parking"]) for zone in zones] == [("Ring", False), ("The Yard", True)]
    # What comes out is what went in, by a reader that is not ours.
    ring = shape(rider.asks("GET", f"/v1/zones/{zones[0]['id']}").json()["area"])
    assert ring.is_valid and ring.symmetric_difference(YARD.difference(hole)).area < 1e-12
    assert shape(json.loads(stored.types("zone", "show", "the yard").stdout)["area"]).equals(YARD)
    stored.types("vehicle", "place", "car", "48.7759,9.1833")
    inside = lambda name: [v["name"] for v in rider.asks("GET", "/v1/vehicles", params={"zone": name}).json()["vehicles"]]  # noqa: E731
    assert inside("The Yard") == ["car"] and inside("Ring") == []
    removed = stored.types("zone", "remove", "Ring")
    assert (removed.returncode, removed.stdout) == (0, "Ring: removed\n")
    assert stored.types("zone", "remove", "Ring").returncode == 1


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "No such file"), ("", "is empty"), ("{", "is not JSON"), ("{}", "neither a Polygon nor a MultiPolygon"),
        (" " * (1 << 20) + "{}", "larger than 1 MiB"),
        (json.dumps({"type": "Polygon", "coordinates": [[[9, 48], [9.001, 48.001], [9.001, 48], [9, 48.001], [9, 48]]]}),
         "polygon 1, ring 1, vertex 1: the edge that begins here crosses"),
        (json.dumps({"type": "Polygon", "coordinates": [[[48, 99], [48, 99.1], [48.1, 99], [48, 99]]]}), "axes are swapped"),
    ],
    ids=["missing", "empty", "cut", "object", "large", "crossing", "swapped"],
)  # fmt: skip
def test_what_is_no_area_gets_one_line(server, tmp_path, content, said):
    file = tmp_path / "zone.geojson"
    if content is not None:
        file.write_text(content)
    refused = server.types("zone", "add", "Yard", "--geojson", file)
    assert refused.returncode not in (0, 64) and said in refused.stderr, refused
    assert len(refused.stderr.splitlines()) == 1 and str(file) in refused.stderr, refused
    assert "Yard" not in server.types("zone", "list").stdout


@pytest.mark.parametrize(
    "arguments", [[], POINTS[:4], [*POINTS, "--geojson", "x"], ["--point", "91,0", *POINTS], ["--point", "x", *POINTS]],
    ids=["none", "two", "both", "pole", "text"])  # fmt: skip
def test_what_is_typed_wrong_is_refused(server, arguments):
    ended = server.types("zone", "add", "Yard", *arguments)
    assert (ended.returncode, ended.stdout) == (64, ""), ended


def test_a_rider_ends_a_booking_anywhere_and_both_are_told(fleet, tmp_path):
    anna = Phone(fleet, tmp_path / "phone").makes_account().logs_in()
    with ExitStack() as stack:
        Joined(fleet, tmp_path / "board/car", "car", stack)
        assert fleet.types("zone", "add", "The Yard", "--parking", *POINTS).returncode == 0
        assert anna("zones").lines == ["The Yard  parking  1475 m²"]
        booked = anna("book", "car", "--for", "2h", "-y")
        assert booked.status == 0, booked
        # 0.001 degrees of latitude are 111 m.
        assert fleet.types("vehicle", "place", "car", "48.77702,9.1833").returncode == 0
        (car,) = json.loads(fleet.types("status", "--json").stdout)["vehicles"]
        assert (car["parking"]["zone"], car["parking"]["metres"]) == ("The Yard", 112)
        assert "112 m from The Yard, " in fleet.types("status").stdout
        ended = anna("bookings", "end", "-y")
        assert ended.status == 0 and "112 m from the parking zone The Yard" in ended.stderr, ended
        (listed,) = anna("bookings", "list", "--all", "--json").objects
        assert (listed["parking"]["zone"], listed["parking"]["metres"]) == ("The Yard", 112)
        assert "112 m from the parking zone The Yard" in anna("bookings", "show", listed["id"]).stdout
        assert "a booking ended outside the parking zones" in fleet.log()


def test_a_vehicle_tells_itself_where_a_booking_ends(fleet, tmp_path):
    anna = Phone(fleet, tmp_path / "phone").makes_account().logs_in()
    # In the yard.
    report = {"class": "TPV", "device": "/dev/gps", "mode": 3, "lat": 48.7759, "lon": 9.1833, "eph": 2.5, "speed": 0.1}
    with ExitStack() as stack:
        gpsd = stack.enter_context(closing(Gpsd([report] * LONG, pause=0.5 * HASTE)))
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        assert fleet.types("zone", "add", "The Yard", "--parking", *POINTS).returncode == 0
        file = car.folder / "stepd.toml"
        file.write_text(f'{file.read_text()}\n[place]\ngpsd = "{gpsd.address}"\n')
        car.stepd.close()
        car.drives()
        booked = anna("book", "car", "--for", "2h", "-y")
        assert booked.status == 0, booked

        def is_told():
            for command in ("open", "close"):
                moved = anna(command, "--side", "left", "--radio", car.radio)
                assert moved.status == 0, moved
            (one,) = json.loads(fleet.types("status", "--json").stdout)["vehicles"]
            return one["parking"]

        told = wait_until(is_told, "the vehicle has told its place", pause=3)
        assert (told["zone"], told["metres"]) == ("The Yard", 0)
        ended = anna("bookings", "end", "-y")
        assert ended.status == 0 and "parking" not in ended.stderr, ended
        (listed,) = anna("bookings", "list", "--all", "--json").objects
        assert (listed["parking"]["zone"], listed["parking"]["metres"]) == ("The Yard", 0)
        assert "car: left: is closed (48.7759, 9.1833)" in fleet.types("history").stdout
        assert "(48.7759, 9.1833)" in anna("bookings", "show", listed["id"]).stdout
