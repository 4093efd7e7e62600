#!/usr/bin/env python3
"""Records a feed of a street in which SUMO drives: street.py --seed 1 --seconds 600 --to FOLDER

It takes PyPI's `eclipse-sumo` (150 MB), and SUMO is found beside this Python or in PATH. Written are `feed.jsonl`, a
recording as `stepctl traffic guard` reads it, without any delay and noise, and `scene.json`: a vehicle that stands at the
kerb somewhere along the street. The same seed gives the same bytes.

The street has one lane each way, a bend, and a crossing without lights; there are bicycles that keep to the right and
bicycles that do not, cars, buses and trucks that pass them, and cars that stop at the kerb.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ORIGIN = (48.7758, 9.1829)
STEP = 0.04
EPOCH = 1_700_000_000
# Nodes, in metres east and north of the origin; edges both ways between them.
NODES = {"west": (-330, 0), "bend": (-130, 12), "cross": (0, 0), "east": (130, -8), "far": (330, 25), "north": (10, 160),
         "south": (-12, -160)}
STREETS = [("west", "bend"), ("bend", "cross"), ("cross", "east"), ("east", "far"), ("cross", "north"), ("cross", "south")]
TYPES = {
    # category: length, width, SUMO's class and how it drives
    "car": (4.4, 1.8, 'vClass="passenger" maxSpeed="14" speedFactor="normc(0.95,0.12,0.7,1.2)" latAlignment="center"'),
    "truck": (8.5, 2.4, 'vClass="truck" maxSpeed="11" latAlignment="center"'),
    "bus": (12, 2.5, 'vClass="bus" maxSpeed="11" latAlignment="center"'),
    "motorcycle": (2.1, 0.8, 'vClass="motorcycle" maxSpeed="14" latAlignment="arbitrary"'),
    "bicycle": (1.8, 0.6, 'vClass="bicycle" speedFactor="normc(1,0.2,0.6,1.5)" maxSpeed="5.2" latAlignment="right"'),
    "free": (1.8, 0.6, 'vClass="bicycle" speedFactor="normc(1,0.2,0.6,1.5)" maxSpeed="6.5" latAlignment="arbitrary"'),
    # It stands behind the vehicle for a while, and pulls out past it.
    "leaver": (4.4, 1.8, 'vClass="passenger" maxSpeed="14" latAlignment="right"'),
}
CATEGORIES = {"free": "bicycle", "leaver": "car"}
# Vehicles an hour from each end.
RATES = {"car": 110, "truck": 10, "bus": 8, "motorcycle": 12, "bicycle": 60, "free": 25}


def found(name: str) -> str | None:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def tool(name: str) -> str:
    return found(name) or sys.exit(f"{name} is missing: pip install eclipse-sumo")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def radii(latitude: float) -> tuple[float, float]:
    """Metres a degree of latitude and of longitude (WGS 84)."""
    a, f = 6378137.0, 1 / 298.257223563
    e = f * (2 - f)
    root = math.sqrt(1 - e * math.sin(math.radians(latitude)) ** 2)
    return (math.radians(a * (1 - e) / root**3), math.radians(a / root * math.cos(math.radians(latitude))))


NORTH, EAST = radii(ORIGIN[0])


def degrees(east: float, north: float) -> tuple[float, float]:
    return ORIGIN[0] + north / NORTH, ORIGIN[1] + east / EAST


def network(folder: Path) -> None:
    nodes = "".join(
        f'<node id="{name}" x="{degrees(*at)[1]:.8f}" y="{degrees(*at)[0]:.8f}"'
        f'{" type=" + chr(34) + "priority" + chr(34)}/>' for name, at in NODES.items())
    edges = ""
    for a, b in STREETS:
        priority = 1 if b in ("north", "south") else 3
        for start, end in ((a, b), (b, a)):
            edges += (f'<edge id="{start}-{end}" from="{start}" to="{end}" numLanes="1" width="3.3" speed="13.9" '
                      f'priority="{priority}"/>')
    (folder / "n.xml").write_text(f"<nodes>{nodes}</nodes>")
    (folder / "e.xml").write_text(f"<edges>{edges}</edges>")
    run(tool("netconvert"), "-n", str(folder / "n.xml"), "-e", str(folder / "e.xml"), "--proj.utm",
        "--no-turnarounds", "-o", str(folder / "net.xml"))


def demand(dice: random.Random, seconds: float) -> list[tuple[float, str]]:
    """When somebody departs, and SUMO's words for it."""
    ends = ["west", "far", "north", "south"]
    trips = []
    for start in ends:
        for name, rate in RATES.items():
            at = dice.expovariate(rate / 3600)
            while at < seconds + 60:
                end = dice.choices([e for e in ends if e != start], [3 if e in ("west", "far") else 1
                                                                      for e in ends if e != start])[0]
                stop = ""
                if name == "car" and dice.random() < 0.04 and {start, end} == {"west", "far"}:
                    # Somebody gets out: it stands at the kerb and pulls out again.
                    lane = "bend-cross_0" if start == "west" else "east-cross_0"
                    place = dice.uniform(20, 90)
                    stop = f'<stop lane="{lane}" startPos="{place - 6:.1f}" endPos="{place:.1f}" friendlyPos="true" duration="{dice.uniform(8, 20):.0f}"/>'
                first = {"west": "west-bend", "far": "far-east", "north": "north-cross", "south": "south-cross"}[start]
                last = {"west": "bend-west", "far": "east-far", "north": "cross-north", "south": "cross-south"}[end]
                trips.append((at, f'<trip id="{name}.{start}.{len(trips)}" type="{name}" depart="{at:.2f}" from="{first}" '
                              f'to="{last}" departSpeed="desired" departPosLat="right">{stop}</trip>'))
                at += dice.expovariate(rate / 3600)
    return trips


def routes(folder: Path, trips: list[tuple[float, str]], names) -> None:
    types = "".join(
        f'<vType id="{name}" length="{length}" width="{width}" {rest} lcPushy="0.3" minGapLat="0.4"/>'
        for name, (length, width, rest) in TYPES.items() if name in names)
    (folder / "r.xml").write_text(f"<routes>{types}{''.join(trip for _, trip in sorted(trips))}</routes>")


def leavers(folder: Path, dice: random.Random, seconds: float, lane: str, along: float) -> list[tuple[float, str]]:
    """Cars that stand close behind the vehicle, of which the middle is at `along` from the beginning of its street."""
    net = ElementTree.parse(folder / "net.xml").getroot()
    shape = net.find(f"edge/lane[@id='{lane}_0']").get("shape").split()
    first, last = (tuple(map(float, point.split(",")[:2])) for point in (shape[0], shape[-1]))
    node = net.find(f"junction[@id='{lane.split('-')[0]}']")
    away = (first[0] - float(node.get("x")), first[1] - float(node.get("y")))
    length = math.hypot(last[0] - first[0], last[1] - first[1])
    begin = sum(a * (b - c) / length for a, b, c in zip(away, last, first))
    start = "west-bend" if lane in ("west-bend", "bend-cross", "cross-east", "east-far") else "far-east"
    end = "east-far" if start == "west-bend" else "bend-west"
    trips, at = [], dice.uniform(5, 25)
    while at < seconds + 60:
        # Where its front stands: 0.5 to 5 m behind the vehicle.
        front = along - begin - 4.6 / 2 - dice.uniform(0.5, 5)
        stop = (f'<stop lane="{lane}_0" startPos="{front - 5:.1f}" endPos="{front:.1f}" friendlyPos="true" '
                f'duration="{dice.uniform(4, 8):.0f}"/>')
        trips.append((at, f'<trip id="leaver.{len(trips)}" type="leaver" depart="{at:.2f}" from="{start}" to="{end}" '
                      f'departSpeed="desired" departPosLat="right">{stop}</trip>'))
        at += dice.uniform(15, 35)
    return trips


def place(dice: random.Random) -> tuple[dict, str, float]:
    """A vehicle that stands at the right-hand kerb: its scene, the lane beside it, and where its middle is along that."""
    lanes = ["west-bend", "bend-cross", "cross-east", "east-far", "far-east", "east-cross", "cross-bend", "bend-west"]
    start, end = dice.choice(lanes).split("-")
    (x0, y0), (x1, y1) = NODES[start], NODES[end]
    length = math.hypot(x1 - x0, y1 - y0)
    ahead = ((x1 - x0) / length, (y1 - y0) / length)
    right = (ahead[1], -ahead[0])
    # Far from where SUMO makes objects out of nothing.
    along = dice.uniform(0.6, 0.85) * length if start in ("west", "far") else dice.uniform(0.25, 0.75) * length
    gap = dice.uniform(0.35, 0.8)
    aside = 3.3 + gap + 0.95
    east, north = x0 + ahead[0] * along + right[0] * aside, y0 + ahead[1] * along + right[1] * aside
    latitude, longitude = degrees(east, north)
    sides = [
        {"id": side, "side": side, "from_m": 1.6, "to_m": 2.6, "reach_m": 0.4} for side in ("left", "right")]
    scene = {
        "latitude": round(latitude, 8), "longitude": round(longitude, 8),
        "heading_deg": round(math.degrees(math.atan2(ahead[0], ahead[1])) % 360, 3), "length_m": 4.6, "width_m": 1.9,
        "steps": sides,
    }
    return scene, f"{start}-{end}", along


def record(folder: Path, target: Path, seconds: float) -> None:
    """Writes what SUMO says: positions become the middle of the box, velocities how these move."""
    frames: list[dict] = []
    with open(target, "w") as output:

        def write(before: dict, now: dict, after: dict, time: float) -> None:
            objects = []
            for name, (latitude, longitude, angle, category) in now.items():
                a, b = before.get(name, now[name]), after.get(name, now[name])
                spans = (name in before) + (name in after)
                if not spans:
                    continue
                north = (b[0] - a[0]) * NORTH / (STEP * spans)
                east = (b[1] - a[1]) * EAST / (STEP * spans)
                length, width, _ = TYPES[category]
                objects.append({
                    "id": name, "category": CATEGORIES.get(category, category),
                    "position": {"x": round(latitude, 8), "y": round(longitude, 8), "z": 0},
                    "speed": {"x": round(north, 3), "y": round(east, 3), "z": round(math.radians(angle) % (2 * math.pi), 4)},
                    "shape": {"length": length, "width": width, "height": 0},
                })
            stamp = EPOCH + time
            frame = {"section": "S1", "timestampSecs": str(int(stamp)),
                     "timestampNsecs": str(round(stamp % 1 * 1000) * 1_000_000), "vehicles": objects}
            output.write(json.dumps({"received": round(stamp, 3), "frame": frame}, separators=(",", ":")) + "\n")

        begin = 60.0
        current: dict = {}
        times: list[float] = []
        for event, element in ElementTree.iterparse(folder / "fcd.xml", events=("end",)):
            if element.tag == "vehicle":
                category = element.get("id").split(".")[0]
                length = TYPES[category][0]
                angle = float(element.get("angle"))
                # SUMO gives the middle of the front bumper.
                heading = math.radians(angle)
                latitude = float(element.get("y")) - math.cos(heading) * length / 2 / NORTH
                longitude = float(element.get("x")) - math.sin(heading) * length / 2 / EAST
                current[element.get("id")] = (latitude, longitude, angle, category)
            elif element.tag == "timestep":
                frames.append(current)
                times.append(float(element.get("time")))
                current = {}
                element.clear()
                if len(frames) == 3:
                    if begin <= times[1] < begin + seconds:
                        write(*frames, times[1] - begin)
                    del frames[0], times[0]


def make(seed: int, seconds: float, target: Path, has_leavers: bool = False) -> None:
    dice = random.Random(seed)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        network(folder)
        trips = demand(dice, seconds + 60)
        scene, lane, along = place(dice)
        if has_leavers:
            trips += leavers(folder, dice, seconds, lane, along)
        routes(folder, trips, [*RATES, "leaver"] if has_leavers else RATES)
        run(tool("sumo"), "-n", str(folder / "net.xml"), "-r", str(folder / "r.xml"), "--step-length", str(STEP),
            "--lateral-resolution", "0.4", "--seed", str(seed), "--end", str(seconds + 62),
            "--fcd-output", str(folder / "fcd.xml"), "--fcd-output.geo", "--precision.geo", "9", "--precision", "4",
            "--fcd-output.attributes", "x,y,angle,id", "--no-step-log", "--no-warnings",
            "--collision.action", "none", "--time-to-teleport", "-1")
        record(folder, target / "feed.jsonl", seconds)
    (target / "scene.json").write_text(json.dumps(scene, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--leavers", action="store_true", help="cars that stand behind the vehicle and pull out")
    options = parser.parse_args()
    make(options.seed, options.seconds, options.to, options.leavers)


if __name__ == "__main__":
    main()
