"""The road from above: on terminals of all sizes, in lines, as JSON, and from bridges of others."""

import asyncio
import json
import re

import pytest

from feeds import OBJECT, frame, once, steady
from programs import STEPCTL, wait_until

# A vehicle that points to the east, with a step at each side.
SCENE = {
    "latitude": 48.7758, "longitude": 9.1829, "heading_deg": 90, "length_m": 4.6, "width_m": 1.9,
    "steps": [{"id": side, "side": side, "from_m": 1.6, "to_m": 2.6, "reach_m": 0.4} for side in ("left", "right")],
}
METRE = 1 / 111_195  # of latitude, as degrees


def vehicle(id: str, north: float, scenario: dict | None = None, **members) -> dict:
    """So many metres to the north of the vehicle: to its left."""
    return OBJECT | {"id": id, "category": "car", "position": {"x": 48.7758 + north * METRE, "y": 9.1829, "z": 0},
                     "speed": {"x": 0, "y": 5, "z": 1.5708}, "shape": {"length": 4.5, "width": 1.8, "height": 0},
                     "scenarios": scenario or {}} | members


@pytest.fixture
def road(tmp_path):
    """A recording of so many seconds."""

    def make(objects, seconds: float = 30, rate: int = 10):
        path = tmp_path / "road.jsonl"
        lines = []
        for count in range(int(seconds * rate)):
            stamp = 1_700_000_000 + count / rate
            lines.append(json.dumps({"received": stamp + 0.165, "frame": frame(vehicles=objects) | {
                "timestampSecs": str(int(stamp)), "timestampNsecs": str(round(stamp % 1 * 1e9))}}))
        path.write_text("\n".join(lines) + "\n")
        return path

    return make


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(SCENE))
    return path


SERIOUS = [
    vehicle("a", 6, {"wrongWay": True, "speeding": True}), vehicle("b", -6, {"standing": True}),
    vehicle("c", 12, {"tailGateLevel": 2, "cutInLeft": True}), vehicle("d", -12, {"speeding": True}),
    vehicle("e", 18, {"laneChangeLeft": True}), vehicle("f", -18),
]


def test_a_road_is_drawn_from_above_with_what_is_serious(on_terminal, road, scene):
    screen = on_terminal([STEPCTL, "traffic", "watch", "--feed", f"file:{road(SERIOUS)}", "--scene", scene])
    lines = screen.shows("6 objects, 10")
    assert len(lines) == 24 and max(map(len, lines)) < 80
    assert lines[21] == "W wrong way 1   S standing 1   T tailgating 1   V speeding 1   L lane change 1"
    assert "165 ms late" in lines[22] and "q quit" in lines[23]
    row = next(line for line in lines if "you" in line)
    # Its front is up, so the north is at its left; a column is a metre wide.
    middle = row.index("you") + 1
    marks = {mark: row.index(mark) - middle for mark in "WSTVL"}
    assert marks == {"W": -6, "S": 6, "T": -12, "V": 12, "L": -18}, row
    assert b"\x1b[31m" in screen.written  # the wrong way, in red too


def test_keys_zoom_pan_turn_and_follow(on_terminal, road, scene):
    screen = on_terminal([STEPCTL, "traffic", "watch", "--feed", f"file:{road(SERIOUS)}", "--scene", scene])
    screen.shows("6 objects")

    def place(mark: str) -> tuple[int, int]:
        return next((row, line.index(mark)) for row, line in enumerate(screen.frame) if mark in line)

    def moves(key: bytes, what: str, condition):
        screen.types(key)
        wait_until(lambda: any("W" in line and "you" in line or "W" in line for line in screen.frame[1:21])
                   and condition(), what)

    def gap() -> int:
        return place("you")[1] - next(line.index("W") for line in screen.frame[1:21] if "W" in line)

    before, away = place("you"), gap()
    moves(b"+", "it is larger", lambda: gap() > away)
    moves(b"-", "it is as before", lambda: gap() == away)
    moves(b"\x1b[C", "the picture went to the right", lambda: place("you")[1] == before[1] - 8)
    moves(b"\x1b[A", "and up", lambda: place("you") == (before[0] + 4, before[1] - 8))
    moves(b"f", "it follows again", lambda: place("you") == before)
    moves(b"n", "north is up: what was at the left is above", lambda: before[0] - next(
        row for row, line in enumerate(screen.frame[1:21], 1) if "W" in line) in (3, 4))
    screen.types(b"q")
    assert screen.ends() == 0 and screen.shows_what_is_typed


@pytest.mark.parametrize("rows, columns", [(24, 80), (50, 200), (12, 40), (7, 20), (3, 10), (1, 1)])
def test_it_fits_into_any_terminal(on_terminal, road, scene, rows, columns):
    screen = on_terminal([STEPCTL, "traffic", "watch", "--feed", f"file:{road(SERIOUS)}", "--scene", scene],
                         rows=rows, columns=columns)
    wait_until(lambda: len(screen.frame) == (rows if rows >= 7 else min(rows, 2)), f"{rows} rows: {screen.frame}")
    assert max(map(len, screen.frame)) <= max(1, columns - 1)
    screen.resize(30, 100)
    wait_until(lambda: len(screen.frame) == 30, "30 rows")


def test_without_unicode_and_color_it_says_the_same(on_terminal, road, scene):
    screen = on_terminal([STEPCTL, "traffic", "watch", "--feed", f"file:{road(SERIOUS)}", "--scene", scene,
                          "--no-color"], LC_ALL="C")
    lines = screen.shows("6 objects")
    assert all(line.isascii() for line in lines)
    row = next(line for line in lines if "you" in line)
    assert all(mark in row for mark in "WSTVL") and "#" in "".join(lines)
    assert not re.search(rb"\x1b\[[0-9;]*m", screen.written)


def test_what_is_not_there_is_not_counted(on_terminal, stepctl, road, scene):
    path = road([vehicle("a", 6, {"wrongWay": True}), vehicle("b", -6)])
    screen = on_terminal([STEPCTL, "traffic", "watch", "--feed", f"file:{path}", "--scene", scene])
    assert screen.shows("2 objects")[21] == "W wrong way 1"
    harmless = road([vehicle("b", -6)], seconds=2)
    ended = stepctl("traffic", "watch", "--feed", f"file:{harmless}")
    assert not any(word in ended.stdout for word in ("wrong way", "standing", "; \n", " 0\n")), ended.stdout


def test_lines_and_json_where_there_is_no_terminal(stepctl, road, scene, tmp_path):
    path, save = road(SERIOUS, seconds=2), tmp_path / "saved.jsonl"
    text = stepctl("traffic", "watch", "--feed", f"file:{path}")
    assert 2 <= len(text.lines) <= 4 and "S wrong" not in text.stdout and "W wrong way 1" in text.lines[0]
    told = stepctl("traffic", "watch", "--feed", f"file:{path}", "--scene", scene, "--json", "--save", save).objects
    assert len(told) == 20 and told[0]["delay_ms"] == 165 and told[0]["section"] == "S1"
    first = told[0]["objects"][0]
    assert first["scenario"] == "wrong way" and first["right_m"] == pytest.approx(-6, abs=0.1)
    assert first["ahead_m"] == pytest.approx(0, abs=0.1) and first["speed_mps"] == 5
    assert [one["scenario"] for one in told[0]["objects"]] == [
        "wrong way", "standing", "tailgating", "speeding", "lane change", None]
    again = stepctl("traffic", "watch", "--feed", f"file:{save}", "--scene", scene, "--json").objects
    assert again == told and save.stat().st_mode & 0o777 == 0o600


def test_a_feed_from_a_bridge_of_others(stepctl, bridge):  # noqa: F811
    feed = bridge(steady)
    told = stepctl("traffic", "watch", *feed.arguments, "--for", "6", "--json").objects
    assert len(told) > 15 and told[-1]["objects"][0]["category"] == "bicycle"
    # A busy machine delays most frames, and not all of them.
    quickest = min((one for one in told if one["uncertainty_ms"] is not None), key=lambda one: one["delay_ms"])
    assert quickest["delay_ms"] == pytest.approx(200, abs=60 + quickest["uncertainty_ms"])


def test_silence_and_the_end_are_told(on_terminal, stepctl, bridge):  # noqa: F811

    async def fall_silent(socket, _):
        await socket.send(json.dumps(frame()))
        await asyncio.sleep(4)

    feed = bridge(fall_silent)
    screen = on_terminal([STEPCTL, "traffic", "watch", *feed.arguments])
    wait_until(lambda: re.search(r"connected: no frame for [1-9]", "\n".join(screen.frame)), "a silence of seconds")
    assert screen.ends() == 69
    assert b"the bridge closed the connection" in screen.written


def test_swapped_axes_get_a_hint(stepctl, road, scene, tmp_path):
    swapped = road([vehicle("a", 5, position={"x": 9.1829, "y": 48.7758, "z": 0})], seconds=1)
    ended = stepctl("traffic", "watch", "--feed", f"file:{swapped}", "--scene", scene)
    assert ended.stderr.count("are latitude and longitude swapped?") == 1


def test_what_is_no_frame_ends_it_with_one_line(stepctl, bridge, road, scene, tmp_path):  # noqa: F811
    for message, words in [("{}", "frame.section: expected a value"), (b"\0", "not text")]:
        feed = bridge(lambda socket, _, message=message: once(socket, message))
        ended = stepctl("traffic", "watch", *feed.arguments)
        assert ended.status == 65 and words in ended.error
    broken = road([OBJECT], seconds=1)
    broken.write_text(broken.read_text() + "x\n")
    ended = stepctl("traffic", "watch", "--feed", f"file:{broken}", "--json")
    # What came before it was shown.
    assert ended.status == 65 and f"{broken}, line 11" in ended.error and len(ended.lines) == 10 + 1
    scene.write_text("{}")
    ended = stepctl("traffic", "watch", "--feed", f"file:{broken}", "--scene", scene)
    assert ended.status == 65 and "scene" in ended.error


def test_an_hour_begins_at_once(stepctl, road):
    """A recording is read as it runs, and not before."""
    path = road(SERIOUS, seconds=1)
    # What cannot be read is an hour away.
    late = json.loads(path.read_text().splitlines()[0])
    late["received"] += 3600
    path.write_text(path.read_text() + json.dumps(late) + "\nx\n")
    ended = stepctl("traffic", "watch", "--feed", f"file:{path}", "--for", "2", "--json")
    assert ended.status == 0 and len(ended.lines) == 10
