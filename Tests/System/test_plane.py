"""The plane at a vehicle beside PROJ, which is not ours: where an object is, seen from the vehicle."""

import json
import math

import pytest

from feeds import OBJECT, frame

pyproj = pytest.importorskip("pyproj", reason="there is no pyproj: Tests/prepare.sh test installs it")


@pytest.mark.parametrize("latitude, longitude", [(48.7758, 9.1829), (-33.9, 151.2), (69.65, 18.96), (0.0, 179.9995)])
def test_it_is_where_a_geodetic_library_has_it(stepctl, tmp_path, latitude, longitude):
    heading = 93.5
    around = [(distance, bearing) for distance in (5, 30, 100, 300) for bearing in range(0, 360, 45)]
    geod = pyproj.Geod(ellps="WGS84")
    places = [geod.fwd(longitude, latitude, bearing, distance)[:2] for distance, bearing in around]
    objects = [OBJECT | {"id": str(index), "position": {"x": north, "y": east, "z": 0}}
               for index, (east, north) in enumerate(places)]
    recording, scene = tmp_path / "road.jsonl", tmp_path / "scene.json"
    recording.write_text(json.dumps({"received": 1, "frame": frame(vehicles=objects)}) + "\n")
    scene.write_text(json.dumps({
        "latitude": latitude, "longitude": longitude, "heading_deg": heading, "length_m": 4.6, "width_m": 1.9,
        "steps": [{"id": "left", "side": "left", "from_m": 1.6, "to_m": 2.6, "reach_m": 0.4}]}))
    told = stepctl("traffic", "watch", "--feed", f"file:{recording}", "--scene", scene, "--json").json["objects"]
    topocentric = pyproj.Transformer.from_pipeline(
        f"+proj=pipeline +step +proj=cart +ellps=WGS84 +step +proj=topocentric +ellps=WGS84 "
        f"+lon_0={longitude} +lat_0={latitude} +h_0=0")
    for (distance, _), (east, north), object_ in zip(around, places, told):
        x, y, _ = topocentric.transform(east, north, 0)
        turned = math.radians(heading)
        ahead, right = y * math.cos(turned) + x * math.sin(turned), x * math.cos(turned) - y * math.sin(turned)
        # It is told in centimetres; the plane may be off by 1 mm at 100 m and 9 mm at 300 m.
        most = 0.006 + (0.001 if distance <= 100 else 0.03)
        assert math.hypot(object_["ahead_m"] - ahead, object_["right_m"] - right) < most * math.sqrt(2), object_
