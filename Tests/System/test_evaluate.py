"""`evaluate`: what captures of known positions say of a site, against numpy, scipy and scikit-learn."""

import json
import math
import os
import random
import re
import signal
import subprocess
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

import captures
from captures import OWNERS_FILE, VEHICLE
from programs import STEPCTL, wait_until

# scipy and scikit-learn are imported where they are used: each worker reads all files, and they take it seconds.
OTHER = "0f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a91"
SIDES = {"left": 1, "right": 2}
ZONES = ["immediate", "near", "far"]
POWER = -59  # what both beacons send, and the file says of the right one


class Site:
    """A vehicle, captures around it, and the file that says where they were taken."""

    def __init__(self, folder: Path, stepctl, seed: int = 1):
        self.folder, self.stepctl, self.dice = folder, stepctl, random.Random(seed)
        (folder / "van.toml").write_text(OWNERS_FILE)
        self.rows = []
        self.truth = {}

    def take(self, name, side, distance, *, shadow=0.0, body=False, far=28.0, seconds=15, method="", power=POWER,
             exponent=2.1, spread=2.5, uuid=VEHICLE, loss=0.3):
        """A capture: the law, what shadows the place, and fading. The other beacon is `far` dB below 1 m."""
        packets = []
        own = power - 10 * exponent * math.log10(distance) + shadow - (8 if body else 0)
        for tick in range(round(seconds * 10)):
            for major, mean in ((SIDES[side], own), (3 - SIDES[side], power - far)):
                if mean is None or self.dice.random() < loss:
                    continue
                rssi = max(-100, min(-20, round(mean + self.dice.gauss(0, spread))))
                frame = captures.reports(captures.frame(uuid, major), rssi, major)
                packets.append((tick / 10 + major / 100, frame))
        path = self.folder / f"{name}.btsnoop"
        path.write_bytes(captures.HEADER + b"".join(captures.record(packet, time) for time, packet in packets))
        self.rows.append(f"{name},{side},{distance},{'yes' if body else 'no'},{method}")
        self.truth[name] = (side, distance, body)

    def write(self, *rows, header="capture,side,distance_m,body,method"):
        (self.folder / "walk.csv").write_text("\n".join([header, *(rows or self.rows)]) + "\n")

    def evaluate(self, *arguments, names=None, positions=True, **more):
        paths = [f"{name}.btsnoop" for name in (self.truth if names is None else names)]
        where = ["--positions", "walk.csv"] if positions else []
        return self.stepctl("evaluate", *paths, *where, "--vehicle", "van.toml", *arguments, folder=self.folder, **more)

    def located(self, name: str) -> list[dict]:
        """What `locate --watch` decides of the same capture."""
        return self.stepctl(
            "locate", "--watch", "--json", "--vehicle", "van.toml", "--radio", f"btsnoop:{name}.btsnoop",
            folder=self.folder).objects


@pytest.fixture
def site(tmp_path, stepctl) -> Site:
    return Site(tmp_path, stepctl)


@pytest.fixture
def walk(site) -> Site:
    """Positions at both sides; P4 stands behind something."""
    for number, (side, distance) in enumerate(
        [(side, distance) for side in SIDES for distance in (0.3, 0.7, 1.0, 1.5, 2.0, 4.0, 6.0)], 1
    ):
        shadow = -11 if number == 4 else site.dice.gauss(0, 1.5)
        site.take(f"P{number}", side, distance, shadow=shadow, method="tape" if number % 2 else "laser")
    site.write()
    return site


def zone_of(distance: float) -> str | None:
    if any(abs(distance / edge - 1) <= 0.1 for edge in (0.5, 3)):
        return None
    return "immediate" if distance < 0.5 else "near" if distance <= 3 else "far"


def interquartile_mean(levels) -> float:
    """The middle half, whole packets, as numpy slices it."""
    levels = np.sort(levels)
    cut = len(levels) // 4
    return float(levels[cut : len(levels) - cut].mean())


def levels_of(site: Site, name: str) -> np.ndarray:
    """Levels of the side's own beacon, read by another command of stepctl: frame by frame."""
    side, *_ = site.truth[name]
    frames = site.stepctl("scan", "--json", "--radio", f"btsnoop:{name}.btsnoop", folder=site.folder).objects
    own = [frame for frame in frames if frame["major"] == SIDES[side]]
    return np.array([frame["rssi_dbm"] - frame["measured_power_dbm"] for frame in own])


def wilson(share: float, number: float) -> tuple[float, float]:
    """The two shares of which the one measured is 1.96 of their own standard errors away: roots of a quadratic."""
    import scipy.stats

    z2 = scipy.stats.norm.ppf(0.975) ** 2
    low, high = sorted(np.roots([1 + z2 / number, -2 * share - z2 / number, share**2]).real)
    return low, high


def shares(value):
    """Every share in an object."""
    if isinstance(value, dict):
        if "independent" in value:
            yield value
        for member in value.values():
            yield from shares(member)
    elif isinstance(value, list):
        for member in value:
            yield from shares(member)


# --- Figures, against independent programs ---


@pytest.mark.arm64
def test_the_confusion_matrices_are_those_of_scikit_learn_over_what_locate_decides(walk):
    from sklearn.metrics import balanced_accuracy_score, confusion_matrix

    told = walk.evaluate("--json")
    assert told.status == 0, told
    zones, said_zones, sides, said_sides, located = [], [], [], [], []
    for name, (side, distance, _) in walk.truth.items():
        decisions = walk.located(name)
        said = [next(step["zone"] for step in decision["steps"] if step["step"] == side) for decision in decisions]
        if zone_of(distance):
            zones += [zone_of(distance)] * len(said)
            said_zones += said
        sides += [side] * len(decisions)
        said_sides += [decision["step"] or "undecided" for decision in decisions]
        located.append(sum(decision["located"] and decision["step"] == side for decision in decisions))
    result = told.json
    for matrix, truth, said, words in (
        (result["zones"], zones, said_zones, [*ZONES, "unknown"]),
        (result["sides"], sides, said_sides, ["left", "right", "undecided"]),
    ):
        assert matrix["columns"] == words
        expected = confusion_matrix(truth, said, labels=words)
        assert [row["counts"] for row in matrix["rows"]] == expected[:-1].tolist()
        decided = [(a, b) for a, b in zip(truth, said) if b not in ("unknown", "undecided")]
        assert matrix["correct"]["share"] == pytest.approx(np.mean([a == b for a, b in decided]), abs=1e-4)
        assert matrix["coverage"]["share"] == pytest.approx(len(decided) / len(said), abs=1e-4)
        assert matrix["balanced"] == pytest.approx(balanced_accuracy_score(*zip(*decided)), abs=1e-4)
    assert [position["located"] for position in result["positions"]] == located
    assert result["decisions"] == len(sides)
    near = [name for name, (_, distance, _) in walk.truth.items() if distance <= 1]
    assert result["permit"]["available"]["independent"] == len(near)
    laser, tape = sorted(result["methods"], key=lambda row: row["method"])
    assert (laser["positions"], tape["positions"]) == (7, 7)
    rests = [position["residual_db"] for position in result["positions"] if position["method"] == "laser"]
    assert laser["residual_db"] == pytest.approx(np.mean(rests), abs=0.02)
    assert laser["correct"]["count"] + tape["correct"]["count"] == result["zones"]["correct"]["count"]


def test_intervals_are_wilsons_for_as_many_as_are_independent(walk):
    import scipy.stats

    (walk.folder / "attempts.jsonl").write_text(
        "".join(json.dumps(done("nfc", time)) + "\n" for time in range(1, 8)) + json.dumps(failed("nfc")) + "\n")
    result = walk.evaluate("--json", "--outcomes", "attempts.jsonl").json
    found = list(shares(result))
    assert len(found) > 12
    for share in found:
        assert share["independent"] <= min(share["of"], 14)
        low, high = wilson(share["share"], share["independent"])
        assert (share["low"], share["high"]) == pytest.approx((max(low, 0), min(high, 1)), abs=2e-4)
    # And once by scipy's own.
    (method,) = result["openings"]
    expected = scipy.stats.binomtest(7, 8).proportion_ci(method="wilson")
    assert (method["success"]["low"], method["success"]["high"]) == pytest.approx(tuple(expected), abs=1e-4)


@pytest.mark.arm64
def test_the_law_is_the_one_that_scipy_fits(walk):
    import scipy.stats

    walk.take("B1", "left", 1.2, body=True)
    walk.write()
    result = walk.evaluate("--json").json
    clear = [name for name, (_, _, body) in walk.truth.items() if not body]
    logs = np.log10([walk.truth[name][1] for name in clear])
    levels = np.array([interquartile_mean(levels_of(walk, name)) for name in clear])
    fit = scipy.stats.linregress(logs, levels)
    law = result["law"]
    assert law["positions"] == len(clear) == 14
    assert law["exponent"] == pytest.approx(-fit.slope / 10, abs=1e-3)
    assert law["exponent_error"] == pytest.approx(fit.stderr / 10, abs=1e-3)
    assert law["level_1m_db"] == pytest.approx(fit.intercept, abs=1e-2)
    assert law["level_1m_error_db"] == pytest.approx(fit.intercept_stderr, abs=1e-2)
    rest = levels - np.polyval(np.polyfit(logs, levels, 1), logs)
    assert law["sigma_db"] == pytest.approx(np.std(rest, ddof=2), abs=1e-2)
    by_name = {position["capture"]: position for position in result["positions"]}
    for name, off in zip(clear, rest):
        assert by_name[name]["residual_db"] == pytest.approx(off, abs=0.02)
        assert by_name[name]["packets"] == len(levels_of(walk, name))
    # The body is not fitted, so what it takes is seen.
    assert result["body_loss_db"] == pytest.approx(-by_name["B1"]["residual_db"], abs=0.02)
    assert by_name["B1"]["residual_db"] < -5


def done(method: str, duration: float) -> dict:
    return {"outcome": "done", "step": "left", "position": "open", "method": method, "zone": "unknown",
            "distance_m": None, "duration_s": duration}


def failed(method: str | None, code: str = "not_located", exit: int = 3, duration: float = 10.0) -> dict:
    return {"outcome": code, "may_have_moved": False, "method": method, "duration_s": duration, "code": code,
            "message": "no", "hint": None, "exit": exit}


def test_methods_are_compared_by_numpys_percentiles(stepctl, tmp_path):
    dice = random.Random(3)
    times = {method: [round(dice.lognormvariate(1, 0.5), 3) for _ in range(count)]
             for method, count in (("beacon", 30), ("nfc", 11), ("qr", 2))}
    records = [done(method, time) for method, all_times in times.items() for time in all_times]
    records += [failed("beacon", duration=time) for time in (9.5, 10.0, 12.0)]
    records += [failed("beacon", "refused", 5, 1.0), failed(None), {"waiting": "approaching", "step": "left"}]
    # What could not begin has neither a method nor a time.
    records.append({"outcome": "failed", "code": "configuration", "message": "x", "hint": None, "exit": 78})
    dice.shuffle(records)
    for part, name in ((records[:20], "a.jsonl"), (records[20:], "b.jsonl")):
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in part))
    ended = stepctl("evaluate", "--json", "--outcomes", "a.jsonl", "b.jsonl", folder=tmp_path)
    assert ended.status == 0, ended
    radio, tag, code, none = ended.json["openings"]
    for row, (method, all_times) in zip((radio, tag, code), times.items()):
        assert row["method"] == method
        assert row["success"]["count"] == len(all_times)
        assert row["p50_s"] == pytest.approx(np.percentile(all_times, 50), abs=1e-3)
        assert row["p95_s"] == pytest.approx(np.percentile(all_times, 95), abs=1e-3)
    assert radio["failures"] == {"not_located": 3, "refused": 1} and radio["attempts"] == 34
    assert radio["failed_p50_s"] == pytest.approx(np.median([9.5, 10, 12, 1]))
    assert tag["failures"] == {} and tag["failed_p50_s"] is None
    assert none["method"] is None and none["failures"] == {"configuration": 1, "not_located": 1}
    assert none["p50_s"] is None
    assert ended.json["vehicle"] is None and ended.json["captures"] == 0
    text = stepctl("evaluate", "--outcomes", "a.jsonl", "b.jsonl", folder=tmp_path)
    assert "radio          opened 30 of 34, 88 % (73 to 95)" in text.stdout
    assert "failed: 3 not_located, 1 refused, after 9.8 s (p50)" in text.stdout


# --- What a technician reads ---


def sentences(ended) -> dict[str, str]:
    lines = ended.stdout.partition("What is wrong\n")[2].partition("\n\n")[0].splitlines()
    return dict(line.strip().split(": ", 1) for line in lines if line.startswith("  "))


def test_a_bad_place_gets_one_plain_sentence_and_a_good_one_none(walk):
    ended = walk.evaluate()
    assert sentences(ended) == {"P4": "the level is 10 dB below the law: something stands between"}
    assert [row["fault"] for row in walk.evaluate("--json").json["positions"]] == [None] * 3 + ["below_law"] + [None] * 10


def test_each_kind_of_bad_place_is_told_by_its_cause(walk):
    walk.take("B1", "left", 1.0, body=True)
    walk.take("N1", "left", 1.0, shadow=12)
    walk.take("S1", "right", 1.0, far=-15)
    walk.take("F1", "right", 1.0, loss=0.95)
    walk.take("X1", "right", 1.8, far=60, spread=12)
    walk.take("A1", "right", 2.8, shadow=5.5, far=60)
    # Nothing is heard of the side's own beacon.
    walk.take("Q1", "left", 2.0, shadow=-200)
    path = walk.folder / "Q1.btsnoop"
    path.write_bytes(captures.HEADER + captures.heard(VEHICLE, {2: -70}, seconds=10))
    # The measured power of the side's own beacon was never set.
    walk.take("U1", "left", 1.0)
    unset = captures.reports(captures.frame(VEHICLE, 1)[:-1] + b"\0", -50, 1)
    other = captures.reports(captures.frame(VEHICLE, 2), -70, 2)
    (walk.folder / "U1.btsnoop").write_bytes(captures.HEADER + b"".join(
        captures.record(packet, tick / 10) for tick in range(100) for packet in (unset, other)))
    # Another sender has the same major and another minor, in turns.
    both = [captures.heard(VEHICLE, {1: -60}, time, 0.2, minor) for time, minor in
            zip(np.arange(0, 10, 0.2), [1, 7] * 25)]
    walk.take("C1", "left", 1.0)
    (walk.folder / "C1.btsnoop").write_bytes(captures.HEADER + b"".join(both))
    walk.write()
    told = sentences(walk.evaluate())
    assert told["B1"].endswith("dB below the law: the body takes it")
    assert told["N1"].endswith("dB above the law: is the distance correct?")
    assert told["S1"].startswith("the left step is ") and told["S1"].endswith("dB stronger: is the side correct?")
    assert told["F1"].endswith(" packets in 10 s: is the battery low?")
    assert re.fullmatch(r"the level scatters by 1\d dB: was someone moving nearby\?", told["X1"])
    assert told["A1"].startswith("located ") and told["A1"].endswith(" of the time, though too far away")
    assert told["Q1"] == "the step's beacon is not heard: is it on?"
    assert told["U1"] == "the step's beacon has no level: is its measured power set?"
    assert told["C1"] == "two senders claim to be the step's beacon: turn one off"
    assert all(len(sentence) <= 61 for sentence in told.values())


def test_beacons_that_are_weaker_than_noted_are_told_of_the_whole_site(site):
    for number, distance in enumerate((0.3, 0.6, 1.0, 2.0, 4.0, 8.0)):
        site.take(f"P{number}", "left", distance, shadow=-9)
    site.write()
    remarks = site.evaluate("--json").json["remarks"]
    assert remarks == ["the beacons are 9 dB weaker at 1 m than noted: run `stepctl calibrate`"]


@pytest.mark.parametrize(("shadow", "word"), [(-3.6, "weaker"), (-2, None), (3, None), (5.5, "stronger")])
def test_the_level_at_1_m_is_off_where_it_moves_the_zones(site, shadow, word):
    for number, distance in enumerate((0.3, 0.3, 0.6, 1.0, 1.0, 2.0, 4.0, 8.0)):
        site.take(f"P{number}", "left", distance, shadow=shadow, exponent=2)
    site.write()
    result = site.evaluate("--json").json
    assert result["law"]["level_1m_db"] == pytest.approx(shadow, abs=0.5)
    decibels = round(abs(result["law"]["level_1m_db"]))
    remark = f"the beacons are {decibels} dB {word} at 1 m than noted: run `stepctl calibrate`"
    assert result["remarks"] == ([remark] if word else [])


def test_a_level_that_does_not_fall_is_no_law_of_this_world(site):
    for number, distance in enumerate((0.6, 1.0, 2.0, 4.0)):
        site.take(f"P{number}", "left", distance, exponent=-0.5)
    site.write()
    assert "does not fall with the distance" in site.evaluate("--json").json["remarks"][0]


def test_few_positions_have_no_law_and_all_else(site):
    site.take("P1", "left", 1.0)
    site.take("P2", "left", 2.0)
    site.write()
    ended = site.evaluate()
    assert ended.status == 0 and "no law: a fit needs three positions at two distances" in ended.stdout
    result = site.evaluate("--json", "--plot", "plots").json
    assert result["law"] is None and result["positions"][0]["residual_db"] is None
    assert "no law could be fitted" in (site.folder / "plots/rssi.svg").read_text()


def test_the_report_fits_a_terminal(walk, on_terminal):
    (walk.folder / "attempts.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in (done("nfc", 2.5), failed("qr"), failed(None), done("heard", 1))))
    walk.take("a-very-long-name-of-a-place", "left", 1.0, method="a-very-long-name-of-a-method", shadow=-12)
    walk.write()
    ended = walk.evaluate("--outcomes", "attempts.jsonl")
    assert ended.status == 0 and ended.stderr == ""
    assert max(len(line) for line in ended.lines) <= 80, max(ended.lines, key=len)
    for heading in ("Zones: what was true, and what was said", "Sides", "Positions", "Attempts to open"):
        assert heading in ended.lines
    assert "a least-squares fit to 15 positions" in ended.stdout
    terminal = on_terminal(
        [STEPCTL, "evaluate", walk.folder / "P1.btsnoop", "--positions", walk.folder / "walk.csv", "--vehicle",
         walk.folder / "van.toml"])
    assert terminal.ends() == 0


# --- Captures and their positions ---


def test_names_may_be_paths_with_or_without_their_end_and_the_order_is_the_files(walk):
    (walk.folder / "a").mkdir()
    for name in ("P2", "P1"):
        (walk.folder / f"{name}.btsnoop").rename(walk.folder / "a" / f"{name}.btsnoop")
    walk.write("P1,left,0.3,,", "a/P2.btsnoop,left,0.7,yes,", "P3,left,1,,")
    ended = walk.stepctl(
        "evaluate", "P3.btsnoop", "btsnoop:a/P2.btsnoop", "./a/P1.btsnoop", "--positions", "walk.csv", "--vehicle",
        "van.toml", "--json", folder=walk.folder)
    assert ended.status == 0, ended
    positions = ended.json["positions"]
    assert [(row["capture"], row["body"], row["method"]) for row in positions] == [
        ("P1", False, None), ("a/P2.btsnoop", True, None), ("P3", False, None)]


def test_positions_without_a_capture_are_told_of(walk):
    ended = walk.evaluate(names=["P1", "P2", "P3"])
    assert (ended.status, ended.stderr) == (0, "11 of the positions in walk.csv have no capture here\n")
    assert walk.evaluate("-q", names=["P1"]).stderr == ""


def test_a_capture_of_the_linux_monitor_is_read_like_one_of_h4(walk):
    """`btmon -w`: the packet's kind is in the flags, and no H4 byte is before it (data link type 2001)."""
    content = (walk.folder / "P1.btsnoop").read_bytes()
    monitor, rest = bytearray(content[:12] + (2001).to_bytes(4)), content[16:]
    while rest:
        length = int.from_bytes(rest[:4])
        packet = rest[25 : 24 + length]
        size = len(packet).to_bytes(4)
        monitor += size + size + (3).to_bytes(4) + rest[12:24] + packet
        rest = rest[24 + length :]
    before = walk.evaluate("--json", names=["P1"]).json
    (walk.folder / "P1.btsnoop").write_bytes(monitor)
    assert walk.evaluate("--json", names=["P1"]).json == before


def bad(site, message, status, hint=None, **arguments):
    ended = site.evaluate("--plot", "none", **arguments)
    assert (ended.status, ended.error, ended.stdout) == (status, message, ""), ended
    assert hint is None or f"hint: {hint}\n" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 3
    assert not (site.folder / "none").exists()


def test_bad_captures(walk):
    walk.take("O1", "left", 1.0, uuid=OTHER)
    walk.take("E1", "left", 1.0)
    (walk.folder / "E1.btsnoop").write_bytes(captures.HEADER)
    walk.take("D1", "left", 1.0)
    (walk.folder / "D1.btsnoop").write_bytes((walk.folder / "P1.btsnoop").read_bytes()[:-3])
    walk.write()
    bad(walk, "there is no capture P99.btsnoop", 66, names=["P1", "P99"])
    (walk.folder / "P2.btsnoop").rename(walk.folder / "gone")
    bad(walk, "cannot open P2.btsnoop: No such file or directory", 66, names=["P2"])
    (walk.folder / "gone").rename(walk.folder / "P2.btsnoop")
    bad(walk, "gone.btsnoop is not in walk.csv", 65, "add a line that says where it was taken, or leave it out",
        names=[(walk.folder / "gone.btsnoop").write_bytes(b"") or "gone"])
    bad(walk, "O1.btsnoop: no frame of Van is in it", 65,
        f"it has those of {OTHER}: name the vehicle that was recorded with --vehicle, or leave the capture out",
        names=["P1", "O1"])
    bad(walk, "E1.btsnoop: no frame of Van is in it", 65, names=["E1"])
    ended = walk.evaluate(names=["D1"])
    assert ended.status == 65 and ended.error.startswith("D1.btsnoop is damaged at byte ")
    bad(walk, "P1.btsnoop is given twice", 64, "give it once", names=["P1", "P2", "P1"])
    (walk.folder / "b").mkdir()
    (walk.folder / "b/P1.btsnoop").write_bytes(b"")
    bad(walk, "P1.btsnoop and b/P1.btsnoop are both what walk.csv names in line 2", 64, names=["P1", "b/P1"])
    # The same under another name would count twice.
    (walk.folder / "P3.btsnoop").write_bytes((walk.folder / "P1.btsnoop").read_bytes())
    bad(walk, "P1.btsnoop and P3.btsnoop are the same capture", 65, "leave one out: it would count twice",
        names=["P3", "P2", "P1"])
    usage = walk.stepctl("evaluate", "-", "--positions", "walk.csv", "--vehicle", "van.toml", folder=walk.folder)
    assert (usage.status, usage.error) == (64, "a capture is a file here, because the positions name it")


@pytest.mark.parametrize(
    "header, row, line, message",
    [
        (None, "P1,top,1,,", 2, 'side: expected left or right, found "top"'),
        (None, "P1,left,-1,,", 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "-1"'),
        (None, "P1,left,0,,", 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "0"'),
        (None, "P1,left,nan,,", 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "nan"'),
        (None, "P1,left,1e0,,", 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "1e0"'),
        (None, "P1,left,0x1p0,,", 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "0x1p0"'),
        (None, 'P1,left,"1,5",,', 2, 'distance_m: expected 0.01 to 1000 metres, as 1.5, found "1,5"'),
        (None, "P1,left,1,maybe,", 2, 'body: expected yes or no, found "maybe"'),
        (None, "P1,left,1,", 2, "expected 5 fields, found 4"),
        (None, "P1,left,1,,,", 2, "expected 5 fields, found 6"),
        (None, ",left,1,,", 2, "capture is missing"),
        (None, 'P1,left,1,,"tape', 2, "a quote has no end in this line"),
        (None, 'P1,left,1,,"tape"x', 2, "expected a comma after the quote"),
        (None, 'P1,left,1,,5" tape', 2, "a quote is inside a field: put all of it in quotes"),
        (None, "P1,left,1,,\x1b[2J", 2, "there is a control character in it"),
        (None, "P1,left,1,,\n\nP1,left,2,,", 4, 'capture: "P1" is in line 2 already'),
        (None, "P1,left,1,,\nP1.btsnoop,left,2,,", 3, "capture: P1.btsnoop is named in line 2 already"),
        ("capture,side,metres", "P1,left,1", 1, '"metres": unknown column, expected capture, side, distance_m,'
         " x_m, y_m, body, method"),
        ("capture,sid,distance_m", "P1,left,1", 1, '"sid": unknown column, did you mean "side"?'),
        ("capture;side;distance_m", "P1;left;1", 1, "columns are separated by commas, not by semicolons"),
        ("capture,side,side,distance_m", "P1,left,left,1", 1, 'the column "side" is there twice'),
        ("capture,side", "P1,left", 1, 'the column "distance_m" is missing'),
        ("capture,side,distance_m,x_m", "P1,left,1,2", 1, '"x_m" and "y_m" need each other'),
        ("capture,side,distance_m,x_m,y_m", "P1,left,1,2,", 2, 'y_m: expected metres, as 1.5 or -1.5, found ""'),
        ("capture,side,distance_m", "", 1, "there is no position below the column names"),
    ],
)
def test_what_is_wrong_in_a_positions_file_is_told_with_its_line(walk, header, row, line, message):
    walk.write(row, header=header or "capture,side,distance_m,body,method")
    bad(walk, f"walk.csv:{line}: {message}".replace("\x1b", "\ufffd"), 65, names=["P1"])


def test_a_positions_file_that_is_none(walk):
    (walk.folder / "walk.csv").write_bytes(b"")
    bad(walk, "walk.csv:1: the line of column names is missing", 65, names=["P1"])
    (walk.folder / "walk.csv").write_bytes(b"capture,side,distance_m\nP\xff,left,1\n")
    bad(walk, "walk.csv:2: not UTF-8", 65, names=["P1"])
    (walk.folder / "walk.csv").unlink()
    bad(walk, "cannot open walk.csv: No such file or directory", 66, names=["P1"])
    walk.write()
    (walk.folder / "van.toml").write_text(OWNERS_FILE.partition('[[steps]]\nid = "right"')[0])
    bad(walk, "walk.csv:9: side: Van has no step at the right side", 65)


def test_what_spreadsheets_write_is_read(walk):
    text = '\ufeffmethod,"side",distance_m,capture\r\n"tape, ""long""",left,0.30,P1\r\n\r\n,left,0.7,P2\r\n'
    (walk.folder / "walk.csv").write_bytes(text.encode())
    positions = walk.evaluate("--json", names=["P1", "P2"]).json["positions"]
    assert [(row["distance_m"], row["method"]) for row in positions] == [(0.3, 'tape, "long"'), (0.7, None)]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("x", "an object of JSON"),
        ("[]", "an object of JSON"),
        ("{}", 'the member "outcome"'),
        (json.dumps(done("nfc", 1) | {"position": "close"}), "an outcome of `stepctl open`: position: open"),
        (json.dumps(done("nfc", -1)), "duration_s: seconds"),
        (json.dumps(done("nfc", 1)).replace("1}", "1e999}"), "duration_s: seconds"),
        (json.dumps(done("nose", 1)), "method: beacon, nfc, qr, heard or null"),
        (json.dumps(done(None, 1)), 'the member "method"'),
        (json.dumps(failed("nfc", "tired")), "code: a word for an exit status"),
        ('{"outcome":"done","outcome":"failed"}', "an object of JSON"),
    ],
)
def test_what_is_wrong_in_outcomes_is_told_with_its_line(stepctl, tmp_path, line, expected):
    (tmp_path / "a.jsonl").write_text(json.dumps(done("nfc", 1)) + "\n\n" + line + "\n")
    ended = stepctl("evaluate", "--outcomes", "a.jsonl", folder=tmp_path)
    assert (ended.status, ended.error, ended.stdout) == (65, f"a.jsonl:3: expected {expected}", "")


def test_outcomes_that_are_none(stepctl, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"waiting":"blind","step":"left"}\n')
    ended = stepctl("evaluate", "--outcomes", "a.jsonl", folder=tmp_path)
    assert (ended.status, ended.error) == (65, "a.jsonl: there is no outcome in it")


def test_what_was_typed_has_to_make_sense(walk):
    for arguments, message in (
        ([], "name captures with --positions, or outcomes with --outcomes"),
        (["P1.btsnoop"], "captures need --positions, a file that says where they were taken"),
        (["--positions", "walk.csv"], "name captures with --positions, or outcomes with --outcomes"),
    ):
        ended = walk.stepctl("evaluate", *arguments, folder=walk.folder)
        assert (ended.status, ended.error.lower().rstrip(".")) == (64, message)


# --- Pictures ---

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.arm64
def test_pictures_are_plain_svg_and_the_same_each_time(walk):
    walk.rows = [row.replace("P1,", '"<P1> & co",', 1) if row.startswith("P1,") else row for row in walk.rows]
    (walk.folder / "P1.btsnoop").rename(walk.folder / "<P1> & co.btsnoop")
    names = ["<P1> & co", *(name for name in walk.truth if name != "P1")]
    rows = [f"{row},{number / 2},{-number}" for number, row in enumerate(walk.rows)]
    walk.write(*rows, header="capture,side,distance_m,body,method,x_m,y_m")
    (walk.folder / "attempts.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in
                [done("nfc", 2), done("nfc", 4), failed("nfc"), failed(None), *(done("beacon", n) for n in range(9))]))
    drawn = []
    for folder in ("plots", "deep/er/plots"):
        ended = walk.evaluate("--plot", folder, "--outcomes", "attempts.jsonl", names=names)
        assert ended.status == 0, ended
        drawn.append({path.name: path.read_text() for path in (walk.folder / folder).iterdir()})
    assert drawn[0] == drawn[1]
    assert sorted(drawn[0]) == ["map.svg", "open.svg", "rssi.svg", "sides.svg", "zones.svg"]
    assert oct((walk.folder / "plots/rssi.svg").stat().st_mode & 0o777) == "0o644"
    roots = {name: xml.etree.ElementTree.fromstring(text) for name, text in drawn[0].items()}
    for name, root in roots.items():
        assert root.tag == f"{SVG}svg" and root.find(f"{SVG}title").text, name
        assert {child.tag.removeprefix(SVG) for child in root.iter()} <= {
            "svg", "title", "rect", "text", "path", "polyline", "polygon", "circle"}
        # Nothing is loaded, and nothing runs.
        assert not {key for child in root.iter() for key in child.attrib} & {"href", "src", "style", "onload", "class"}
        width, height = float(root.get("width")), float(root.get("height"))
        for child in root.iter():
            for key, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                assert 0 <= float(child.get(key, 0)) <= most, (name, child.attrib)
            for point in child.get("points", "").split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= width and 0 <= y <= height, (name, child.attrib)
    texts = {name: [text.text for text in root.iter(f"{SVG}text")] for name, root in roots.items()}
    assert {"distance, m", "RSSI, dBm", "residual, dB"} <= set(texts["rssi.svg"])
    assert {"x, m", "y, m"} <= set(texts["map.svg"])
    assert any("<P1> & co" in text for text in texts["map.svg"])
    assert {"time since the command began, s", "share of the attempts that opened"} <= set(texts["open.svg"])
    assert "tag: 2 of 3 opened" in texts["open.svg"]
    result = walk.evaluate("--json", names=names).json
    for name, word in (("zones.svg", "zones"), ("sides.svg", "sides")):
        for row in result[word]["rows"]:
            assert all(str(count) in texts[name] for count in row["counts"])
    # Every position is in both panels, its height in the second being its residual.
    lower = [dot for dot in roots["rssi.svg"].iter(f"{SVG}circle") if float(dot.get("cy")) > 500]
    residuals = [position["residual_db"] for position in result["positions"]]
    assert np.corrcoef([float(dot.get("cy")) for dot in lower], residuals)[0, 1] == pytest.approx(-1, abs=1e-6)
    assert "P4" in texts["rssi.svg"] and "P5" not in texts["rssi.svg"]


def test_the_map_of_many_positions_is_readable_and_shows_the_vehicle(site):
    steps, places = {"left": (-1.0, 0.0), "right": (1.0, 0.0)}, []
    for side, outward in (("left", -1), ("right", 1)):
        for distance in (0.3, 1.0, 2.0, 3.0):
            for angle in (-40, 0, 40, 0):  # twice straight ahead: in the hand and in a pocket
                x = outward * (1 + distance * math.cos(math.radians(angle)))
                places.append((side, x, distance * math.sin(math.radians(angle))))
    for number, (side, x, y) in enumerate(places):
        distance = math.hypot(x - steps[side][0], y - steps[side][1])
        site.take(f"P{number}-pocket", side, round(distance, 2), seconds=3)
        site.rows[-1] += f",{x:.2f},{y:.2f}"
    site.write(header="capture,side,distance_m,body,method,x_m,y_m")
    assert len(places) == 32 and site.evaluate("--plot", "plots").status == 0
    root = xml.etree.ElementTree.fromstring((site.folder / "plots/map.svg").read_text())
    texts = [(text.text, float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")
             if text.get("transform") is None]
    names = [text for text, *_ in texts]
    assert "-0" not in names and {"0", "2", "-2"} <= set(names)
    labels = [text for text in texts if re.fullmatch(r"P\d+-pocket \d+ %|(left|right) step", text[0])]
    assert len(labels) == 34
    # A letter is at least half as wide as the font is high.
    for index, (text, x, y) in enumerate(labels):
        for other, other_x, other_y in labels[:index]:
            apart = abs(x - other_x) / (5 * (len(text) + len(other)) / 2), abs(y - other_y) / 10
            assert max(apart) >= 1, (text, other)
    (body,) = root.iter(f"{SVG}polygon")
    corners = [tuple(map(float, corner.split(","))) for corner in body.get("points").split()]
    squares = [(float(square.get("x")) + 5, float(square.get("y")) + 5) for square in root.iter(f"{SVG}rect")
               if square.get("width") == "10"]
    ((left, y), (right, _)) = squares
    # The steps are at the flanks, 2 m apart, and the front is upward.
    assert min(x for x, _ in corners) == pytest.approx(left, abs=2)
    assert max(x for x, _ in corners) == pytest.approx(right, abs=2)
    assert corners[0][1] > y > corners[2][1]
    scale = {text.text: float(text.get("x")) for text in root.iter(f"{SVG}text")
             if text.text in ("2", "-2") and text.get("text-anchor") == "middle"}
    assert right - left == pytest.approx((scale["2"] - scale["-2"]) / 2, rel=0.05)


def test_the_names_of_bad_positions_do_not_cover_one_another(site):
    for number in range(24):
        site.take(f"good-{number}", "right", 0.5 + number / 6, seconds=4)
    for number in range(10):
        site.take(f"bad-{number}", "left", 1.0 + number / 100, shadow=-16, seconds=4)
    site.write()
    assert site.evaluate("--plot", "plots").status == 0
    root = xml.etree.ElementTree.fromstring((site.folder / "plots/rssi.svg").read_text())
    labels = [(text.text, float(text.get("x")), float(text.get("y"))) for text in root.iter(f"{SVG}text")
              if text.text.startswith("bad-")]
    assert len(labels) >= 8, labels
    for index, (text, x, y) in enumerate(labels):
        for other, other_x, other_y in labels[:index]:
            apart = abs(x - other_x) / (5.5 * (len(text) + len(other)) / 2), abs(y - other_y) / 11
            assert max(apart) >= 1, (text, other)


def test_pictures_replace_their_like_and_leave_other_files(walk):
    (walk.folder / "plots").mkdir()
    for name in ("rssi.svg", "mine.svg"):
        (walk.folder / "plots" / name).write_text("old")
    assert walk.evaluate("--plot", "plots", names=["P1", "P2", "P3"]).status == 0
    assert (walk.folder / "plots/mine.svg").read_text() == "old"
    assert (walk.folder / "plots/rssi.svg").read_text().startswith("<svg")
    (walk.folder / "file").write_text("")
    ended = walk.evaluate("--plot", "file", names=["P1"])
    assert ended.status in (66, 74) and (walk.folder / "file").read_text() == ""


def test_a_signal_ends_it(site):
    site.take("P1", "left", 1.0, seconds=1200)
    site.write()
    running = subprocess.Popen(
        [STEPCTL, "evaluate", "P1.btsnoop", "--positions", "walk.csv", "--vehicle", "van.toml", "--plot", "plots"],
        cwd=site.folder, env=site.stepctl.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # It reads the capture by now, with the signal held back.
    wait_until(lambda: any("P1.btsnoop" in os.path.realpath(link) for link in Path(f"/proc/{running.pid}/fd").iterdir())
               or running.poll() is not None, "the capture is open")
    assert running.poll() is None, "it was too quick for this test"
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert (running.returncode, output) == (-signal.SIGINT, b"")
    assert not (site.folder / "plots").exists()


# --- The outcomes are those that `open` prints ---


def test_what_open_prints_is_what_it_reads(vehicle, alice, tmp_path):
    attempts = tmp_path / "attempts.jsonl"
    with attempts.open("w") as file:
        for side, at in (("left", "left"), ("left", "left"), ("right", "left"), ("facing", "between")):
            file.write(alice.moves("open", side, "--json", "-q", at=at).stdout)
    records = [json.loads(line) for line in attempts.read_text().splitlines()]
    assert [record["outcome"] for record in records[:4]] == ["done", "done", "other_side", "not_located"]
    assert all(record["method"] == "beacon" and record["duration_s"] > 0 for record in records[:4])
    ended = vehicle.stepctl("evaluate", "--outcomes", attempts, "--json")
    radio = ended.json["openings"][0]
    assert (radio["method"], radio["success"]["count"], radio["success"]["of"]) == ("beacon", 2, 4)
    assert radio["failures"] == {"not_located": 1, "other_side": 1}
    assert radio["p50_s"] == pytest.approx(np.median([record["duration_s"] for record in records[:2]]), abs=1e-3)
