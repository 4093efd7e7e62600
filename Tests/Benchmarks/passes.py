#!/usr/bin/env python3
"""How the guard does where things move as SUMO's do not: bicycles that weave, bends, and cars that cut in and brake.

    passes.py --stepctl .build/release/stepctl             # four scenes of each family, two minutes each
    passes.py --stepctl .build/release/stepctl --seeds 11  # others

Each family is drawn by dice, the same for the same seed. The guard learned to follow bends because it failed in them
here; no constant was chosen by these scenes. `gaps` and `needless` are those of traffic.py, at both steps. `h`: what stands has no noise.

- weave: bicycles at 10 to 25 km/h pass both sides at 0.3 to 3 m, from ahead and from behind; they sway and change speed.
- bend: a bend of 25 to 120 m radius, whose inner or outer side the vehicle stands at; everything follows it, and what comes
  towards it in the opposite lane is 4.2 m off.
- parked: forty cars stand at the other side, which the feed has exactly where they are; bicycles pass as in `weave`.
- crowd: cars stand before and behind the vehicle; others pass at 0.8 to 2 m, change lanes just before it, brake and go on.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = (48.7758, 9.1829)
RATE = 25
BODY = (4.6, 1.9)
SIZES = {"bicycle": (1.8, 0.6), "car": (4.4, 1.8), "motorcycle": (2.1, 0.8), "truck": (8.5, 2.4)}
FEEDS = {
    "0.165 s, 0.3 m": {"delay_s": 0.165, "noise_m": 0.3},
    "0.665 s, 0.5 m": {"delay_s": 0.665, "noise_m": 0.5},
    "0.165 s, 0.5 m c": {"delay_s": 0.165, "noise_m": 0.5, "correlation_s": 1},
    "bias 0.5 m": {"delay_s": 0.165, "noise_m": 0.3, "bias_m": 0.5},
    "0.165 s, 1.9 m h": {"delay_s": 0.165, "noise_m": 1.9, "hold_standing": True},
    "10 % drop out": {"delay_s": 0.165, "noise_m": 0.3, "dropouts": 0.1},
}


class Mover:
    """Something on its way: `place(t)` is metres ahead of the vehicle's middle and to the right of it, and the heading."""

    def __init__(self, category: str, begin: float, path, speed, sway=(0, 0, 0)):
        self.category, self.begin, self.path, self.speed, self.sway = category, begin, path, speed, sway
        self.way, self.at = 0.0, begin

    def step(self, now: float) -> None:
        self.way += self.speed(now - self.begin) * (now - self.at)
        self.at = now

    def place(self, now: float) -> tuple[float, float, float]:
        ahead, right, heading = self.path(self.way)
        far, often, phase = self.sway
        right += far * math.sin(2 * math.pi * often * now + phase)
        return ahead, right, heading


def straight(offset: float, forward: bool):
    def path(way: float) -> tuple[float, float, float]:
        return (way - 90, offset, 0.0) if forward else (90 - way, offset, math.pi)
    return path


def arc(radius: float, offset: float, forward: bool, sign: int):
    """A line beside the vehicle's that has the same centre of the bend."""
    def path(way: float) -> tuple[float, float, float]:
        own = radius - sign * offset
        angle = (way - 90) / own if forward else (90 - way) / own
        # Ahead is the tangent at the vehicle; the centre is `sign` × radius to the right.
        heading = sign * angle + (0 if forward else math.pi)
        return own * math.sin(angle), sign * (radius - own * math.cos(angle)), heading
    return path


def cut_in(before: float, after: float, until: float, takes: float):
    """Changes from one line to another, and is there `until` metres before the vehicle's middle."""
    def path(way: float) -> tuple[float, float, float]:
        ahead = way - 90
        part = min(max((ahead + until + takes) / takes, 0), 1)
        smooth = part * part * (3 - 2 * part)
        slope = 6 * part * (1 - part) / takes * (after - before)
        return ahead, before + (after - before) * smooth, math.atan(slope)
    return path


def beside(category: str, clearance: float, side: int) -> float:
    return side * (BODY[1] / 2 + clearance + SIZES[category][1] / 2)


def varied(dice: random.Random, speed: float, least: float):
    """A speed that rises and falls by half a metre a second in each second, now and then."""
    begin, change, length = dice.uniform(2, 14), dice.choice((-0.5, 0, 0.5)), dice.uniform(1, 2.5)
    return lambda time: max(least, speed + change * min(max(time - begin, 0), length))


def weave(dice: random.Random, seconds: float) -> list[Mover]:
    movers, begin = [], 0.0
    while begin < seconds:
        clearance = dice.choice((0.3, 0.6, 1.0, 1.0, 2.0, 3.0))
        sway = (dice.uniform(0, min(0.25, clearance / 2)), dice.uniform(0.2, 0.6), dice.uniform(0, 6))
        speed = dice.uniform(10, 25) / 3.6
        path = straight(beside("bicycle", clearance, dice.choice((-1, 1))), dice.random() < 0.7)
        movers.append(Mover("bicycle", begin, path, varied(dice, speed, 2), sway))
        begin += dice.uniform(4, 14)
    return movers


def bend(dice: random.Random, seconds: float) -> list[Mover]:
    radius, sign = dice.uniform(25, 120), dice.choice((-1, 1))
    movers, begin = [], 0.0
    while begin < seconds:
        if dice.random() < 0.5:
            category = dice.choice(("bicycle", "bicycle", "motorcycle", "car"))
            offset, forward = beside(category, dice.choice((0.6, 1.0, 1.5)), -1), True
        else:
            category = dice.choice(("car", "car", "truck", "bicycle"))
            offset, forward = beside(category, 4.2, -1), False
        # Nobody takes a bend with more than 3 m/s² sideways.
        fastest = math.sqrt(3 * (radius - 8))
        speed = min(fastest, dice.uniform(3, 7) if category == "bicycle" else dice.uniform(6, 12))
        movers.append(Mover(category, begin, arc(radius, offset, forward, sign), varied(dice, speed, 2)))
        begin += dice.uniform(5, 14)
    return movers


def crowd(dice: random.Random, seconds: float) -> list[Mover]:
    # At the kerb, a metre away.
    movers = [Mover("car", 0, lambda way, at=at: (at, dice.gauss(0, 0.01), 0.0), lambda time: 0.0) for at in (-5.6, 5.6)]
    begin = 0.0
    while begin < seconds:
        category = dice.choice(("car", "car", "truck", "motorcycle", "bicycle"))
        speed = dice.uniform(3, 7) if category == "bicycle" else dice.uniform(6, 14)
        kind = dice.choice(("pass", "cut in", "brake", "opposite"))
        line = beside(category, dice.uniform(0.8, 2.0), -1)
        if kind == "pass":
            movers.append(Mover(category, begin, straight(line, True), varied(dice, speed, 2)))
        elif kind == "cut in":
            until, takes = speed * dice.uniform(0.5, 2), speed * dice.uniform(2, 3)
            movers.append(Mover(category, begin, cut_in(line - 3, line, until, takes), varied(dice, speed, 2)))
        elif kind == "brake":
            # Down to a walk by 2.5 m/s², 2 s before it would be there, and on again.
            slow = 90 / speed - dice.uniform(1.5, 4)
            movers.append(Mover(category, begin, straight(line, True), lambda time, slow=slow, speed=speed: max(
                1.2, speed - 2.5 * max(0, time - slow)) if time < slow + 8 else min(speed, 1.2 + 1.5 * (time - slow - 8))))
        else:
            movers.append(Mover(category, begin, straight(beside(category, 4.2, -1), False), varied(dice, speed, 2)))
        begin += dice.uniform(6, 16)
    return movers


def parked(dice: random.Random, seconds: float) -> list[Mover]:
    cars = [Mover("car", 0, lambda way, at=at: (at, 9.0, 0.0), lambda time: 0.0) for at in range(-60, 60, 3)]
    return cars + weave(dice, seconds)


FAMILIES = {"weave": weave, "bend": bend, "parked": parked, "crowd": crowd}


def many(dice: random.Random, seconds: float) -> list[Mover]:
    """63 bicycles within 90 m all the time; with the car that `make` adds, 64 objects."""
    return [Mover("bicycle", 0, lambda way, at=at: (at + way, 2 + at % 7, 0.0), lambda time: 1.0) for at in range(-60, 3)]


def pace(stepctl: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        scene = make("many", 1, 40, folder)
        (folder / "scene.json").write_text(json.dumps(scene | {"steps": scene["steps"][:1]}))
        begin = time.perf_counter()
        subprocess.run([stepctl, "traffic", "guard", folder / "feed.jsonl", "--scene", folder / "scene.json"], check=True,
                       stdout=subprocess.DEVNULL)
        spent = (time.perf_counter() - begin) / (40 * RATE)
        print(f"a frame of 64 objects takes {1000 * spent:.2f} ms, with reading it and asking the guard twice")


def make(family: str, seed: int, seconds: float, folder: Path) -> dict:
    dice = random.Random(f"{family} {seed}")
    movers, heading = (FAMILIES | {"many": many})[family](dice, seconds), dice.uniform(0, 2 * math.pi)
    # It shows that the feed covers this place.
    movers.append(Mover("car", 0, lambda way: (40, 12, 0.0), lambda time: 0.0))
    scene = {"latitude": HERE[0], "longitude": HERE[1], "heading_deg": math.degrees(heading), "length_m": BODY[0],
             "width_m": BODY[1], "steps": [{"id": side, "side": side, "from_m": 1.6, "to_m": 2.6, "reach_m": 0.4}
                                           for side in ("left", "right")]}
    # WGS 84's two radii.
    square = 6.69437999014e-3
    root = 1 - square * math.sin(math.radians(HERE[0])) ** 2
    north = math.radians(6378137 * (1 - square) / root ** 1.5)
    east = math.radians(6378137 / math.sqrt(root) * math.cos(math.radians(HERE[0])))
    last: dict[int, tuple[float, float]] = {}
    with open(folder / "feed.jsonl", "w") as file:
        for count in range(int(seconds * RATE)):
            now = count / RATE
            stamp = 1_700_000_000 + now
            vehicles = []
            for number, mover in enumerate(movers):
                if mover.begin > now:
                    continue
                mover.step(now)
                ahead, right, turned = mover.place(now)
                if math.hypot(ahead, right) > 95 or mover.way > 190:
                    continue
                x = ahead * math.cos(heading) - right * math.sin(heading)
                y = ahead * math.sin(heading) + right * math.cos(heading)
                before = last.get(number)
                last[number] = (x, y)
                if before is None:
                    continue
                length, width = SIZES[mover.category]
                vehicles.append({
                    "id": str(number), "category": mover.category,
                    "position": {"x": round(HERE[0] + x / north, 9), "y": round(HERE[1] + y / east, 9), "z": 0},
                    "speed": {"x": round((x - before[0]) * RATE, 3), "y": round((y - before[1]) * RATE, 3),
                              "z": round((turned + heading) % (2 * math.pi), 4)},
                    "shape": {"length": length, "width": width, "height": 0}})
            print(json.dumps({"received": round(stamp, 3), "frame": {
                "section": "S", "timestampSecs": int(stamp), "timestampNsecs": round(now % 1 * 1e9),
                "vehicles": vehicles}}, separators=(",", ":")), file=file)
    return scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepctl", type=Path, required=True)
    parser.add_argument("--families", nargs="+", choices=list(FAMILIES), default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--verbose", action="store_true", help="when the gaps were")
    options = parser.parse_args()
    print(f"{'family':8} {'feed':18} {'gaps':>10} {'needless':>9} {'held':>7} {'blind':>7}")
    for family in options.families:
        sums = {name: dict.fromkeys(("approaches", "gaps", "time_s", "held_s", "needless_s", "blind_s"), 0) for name in FEEDS}
        for seed in options.seeds:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                scene = make(family, seed, options.seconds, folder)
                for index, (name, feed) in enumerate(FEEDS.items()):
                    (folder / "scene.json").write_text(json.dumps(scene | {"feed": feed | {"seed": 100 * seed + index}}))
                    done = subprocess.run(
                        [options.stepctl, "traffic", "guard", folder / "feed.jsonl", "--scene", folder / "scene.json",
                         "--json"], capture_output=True, text=True)
                    if done.returncode:
                        sys.exit(done.stderr)
                    for line in done.stdout.splitlines():
                        score = json.loads(line)
                        for member in sums[name]:
                            sums[name][member] += score[member]
                        if options.verbose and score["gaps"]:
                            print(f"  {family} {seed} {name} {score['step']}: {score['gap_times_s']}")
        for name, sum_ in sums.items():
            needless, held, blind = (100 * sum_[part] / sum_["time_s"] for part in ("needless_s", "held_s", "blind_s"))
            print(f"{family:8} {name:18} {sum_['gaps']:>3} of {sum_['approaches']:>3} {needless:>8.2f}% {held:>6.1f}%"
                  f" {blind:>6.1f}%", flush=True)
    pace(options.stepctl)


if __name__ == "__main__":
    main()
