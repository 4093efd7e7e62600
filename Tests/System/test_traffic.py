"""The guard and the delay of a recorded feed: what is told of a street, and of files that are no recording."""

import json
import lzma
import re
import xml.etree.ElementTree
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parents[1] / "Fixtures/traffic"


@pytest.fixture(scope="module")
def street(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("traffic") / "street.jsonl"
    path.write_bytes(lzma.decompress((FIXTURES / "street.jsonl.xz").read_bytes()))
    return path


@pytest.fixture(scope="module")
def short(street, tmp_path_factory) -> Path:
    """The first ten seconds."""
    path = tmp_path_factory.mktemp("traffic") / "short.jsonl"
    path.write_text("".join(street.read_text().splitlines(keepends=True)[:250]))
    return path


@pytest.fixture
def scene(tmp_path):
    """A scene file with some members changed."""

    def make(**members) -> Path:
        path = tmp_path / "scene.json"
        path.write_text(json.dumps(json.loads((FIXTURES / "scene.json").read_text()) | members))
        return path

    return make


def test_the_guard_leaves_no_gap_on_a_street_and_is_blind_when_the_feed_is_late(stepctl, street, scene):
    good = stepctl("traffic", "guard", street, "--scene", scene(feed={"delay_s": 0.165, "noise_m": 0.5}), "--json")
    left, right = good.objects
    assert left["step"] == "left" and left["approaches"] >= 3 and left["gaps"] == 0 and left["blind_s"] == 0
    assert left["needless_s"] < 0.1 * left["time_s"]
    # The pavement is at the right side.
    assert right["approaches"] == 0 and right["held_s"] < 0.1 * right["time_s"]
    late = stepctl("traffic", "guard", street, "--scene", scene(feed={"delay_s": 1.362}), "--json").objects[0]
    assert late["blind_s"] == pytest.approx(late["time_s"]) and late["gaps"] == late["approaches"]


def test_an_injected_delay_is_found(stepctl, short, tmp_path):
    later = tmp_path / "later.jsonl"
    frames = [json.loads(line) for line in short.read_text().splitlines()]
    later.write_text("".join(json.dumps(frame | {"received": frame["received"] + 0.2}) + "\n" for frame in frames))
    told = stepctl("traffic", "delay", "--feed", f"file:{later}", "--json").json
    assert told["mean_ms"] == pytest.approx(200, abs=0.1) and told["count"] == 250 and told["dropped"] == 0
    assert told["clock_offset_ms"] is None
    assert not told["whole_seconds"]
    text = stepctl("traffic", "delay", "--feed", f"file:{later}").stdout
    assert "200.0 ms" in text and "whole seconds" not in text
    assert re.findall(r"^ *(\d+) km/h", text, re.MULTILINE) == ["10", "30", "50", "80", "100", "130", "200"]


def test_stamps_in_whole_seconds_add_half_a_second(stepctl, short, tmp_path):
    truncated = tmp_path / "truncated.jsonl"
    frames = [json.loads(line) for line in short.read_text().splitlines()]
    for frame in frames:
        frame["frame"]["timestampNsecs"] = "0"
    truncated.write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    told = stepctl("traffic", "delay", "--feed", f"file:{truncated}", "--json").json
    assert told["mean_ms"] == pytest.approx(480, abs=10)
    assert told["deviation_ms"] == pytest.approx(289, abs=5)


def test_a_delay_is_drawn(stepctl, short, tmp_path):
    later, picture = tmp_path / "a < b & c.jsonl", tmp_path / "delay.svg"
    frames = [json.loads(line) for line in short.read_text().splitlines()]
    for count, frame in enumerate(frames):
        frame["received"] += 0.2 + count * 0.001
    later.write_text("".join(json.dumps(frame) + "\n" for frame in frames))
    assert stepctl("traffic", "delay", "--feed", f"file:{later}", "--plot", picture).status == 0
    root = xml.etree.ElementTree.parse(picture).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{svg}svg"
    texts = [text.text for text in root.iter(f"{svg}text")]
    assert texts[0] == f"Delay of file:{later}" and texts[1].startswith("250 frames: min 200.0 ms, mean 324.5 ms")
    assert "slope 24.39 ms/s, p = 0" in texts[1]
    bars = [bar for bar in root.iter(f"{svg}rect") if bar.get("fill") == "#4477aa"]
    told = stepctl("traffic", "delay", "--feed", f"file:{later}", "--json").json["histogram"]["counts"]
    assert len(bars) == len([count for count in told if count])
    # A bar is as high as its count, and every frame has its dot.
    heights = [float(bar.get("height")) for bar in bars]
    counts = [count for count in told if count]
    assert [height / max(heights) for height in heights] == pytest.approx(
        [count / max(counts) for count in counts], abs=0.01)
    assert sum(path.get("d").count("h0") for path in root.iter(f"{svg}path")) == 250
    for number in (number for shape in root.iter() for name, number in shape.attrib.items() if name in ("x", "y")):
        assert 0 <= float(number) <= 900
    missing = stepctl("traffic", "delay", "--feed", f"file:{later}", "--plot", tmp_path / "none" / "a.svg")
    assert missing.status == 66 or missing.status == 74


def test_swapped_axes_get_a_hint(stepctl, short, scene):
    made = json.loads((FIXTURES / "scene.json").read_text())
    swapped = stepctl(
        "traffic", "guard", short, "--scene", scene(latitude=made["longitude"], longitude=made["latitude"]))
    assert "are latitude and longitude swapped?" in swapped.stderr and swapped.status == 0


@pytest.mark.parametrize(
    "change, what",
    [
        (lambda line: "x" + line, "record: not JSON at byte 0"),
        (lambda line: line.replace('"received"', '"received":1,"received"', 1), "each name once"),
        (lambda line: line.replace('"x":4', '"x":NaN', 1), "not JSON"),
        (lambda line: line.replace('"section":"S1"', '"section":""', 1), "frame.section: expected 1 to 64 bytes of text"),
        (lambda line: line.replace('"category"', '"kind"', 1), "vehicles[0].category: expected a value"),
    ],
)
def test_a_line_that_is_no_frame_is_named(stepctl, short, scene, tmp_path, change, what):
    lines = short.read_text().splitlines()
    lines[2] = change(lines[2])
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join(lines))
    for arguments in (("guard", broken, "--scene", scene()), ("delay", "--feed", f"file:{broken}")):
        ended = stepctl("traffic", *arguments)
        assert ended.status == 65 and f"{broken}, line 3: " in ended.error and what in ended.error


def test_files_that_are_not_there_or_empty_are_named(stepctl, short, scene, tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert stepctl("traffic", "delay", "--feed", f"file:{empty}").status == 65
    missing = stepctl("traffic", "guard", tmp_path / "none", "--scene", scene())
    assert missing.status == 66 and "none" in missing.error
    wrong = stepctl("traffic", "guard", short, "--scene", scene(steps=[]))
    assert wrong.status == 65 and "scene.steps: expected 1 to 16 steps" in wrong.error
