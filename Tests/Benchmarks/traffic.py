#!/usr/bin/env python3
"""How the guard does beside streets in which SUMO drives.

    traffic.py --stepctl .build/release/stepctl                # nine streets, ten minutes each
    traffic.py --stepctl .build/release/stepctl --seeds 1 2 3  # other streets

It takes PyPI's `eclipse-sumo`; without that it says so and ends. The rules of the guard were tried on the streets of the
seeds 1 to 6; those that are scored, 21 to 29, were not looked at. `gaps`: of the times that something came within 0.75 m
of the step, how often the guard would have let it go at any moment of the 2 s before. `needless`: the part of the time in
which it held though nothing came within 1.5 m in 8 s. `c` is noise that lasts a second; the other is new in each frame.

A standing car that pulls out is counted apart, on streets where cars stand 0.5 to 5 m behind the vehicle: how long the
guard had held when the car came within 0.75 m of the step. Nothing is asked of it: before it moves, nothing is to be seen.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import street

# What the feed is like, the most gaps (%) and the most needless waiting (%) that are allowed; None: not judged.
FEEDS = {
    "0.165 s, 0.5 m": ({"delay_s": 0.165, "noise_m": 0.5}, 0, 1.5),
    "0.665 s, 0.5 m": ({"delay_s": 0.665, "noise_m": 0.5}, 0.5, 3),
    "0.165 s, 1.0 m": ({"delay_s": 0.165, "noise_m": 1.0}, 0, 2),
    "0.665 s, 1.9 m": ({"delay_s": 0.665, "noise_m": 1.9}, 0.5, 12),
    "1.362 s, 0.5 m": ({"delay_s": 1.362, "noise_m": 0.5}, None, 0),
    "0.165 s, 0.5 m c": ({"delay_s": 0.165, "noise_m": 0.5, "correlation_s": 1}, None, None),
    "0.165 s, 1.0 m c": ({"delay_s": 0.165, "noise_m": 1.0, "correlation_s": 1}, None, None),
    "0.665 s, 1.9 m c": ({"delay_s": 0.665, "noise_m": 1.9, "correlation_s": 1}, None, None),
    "bias 0.5 m": ({"delay_s": 0.165, "noise_m": 0.5, "bias_m": 0.5}, None, None),
    "bias 1.0 m": ({"delay_s": 0.165, "noise_m": 0.5, "bias_m": 1}, None, None),
    "2 % drop out": ({"delay_s": 0.165, "noise_m": 0.5, "dropouts": 0.02}, None, None),
}

# The feeds of the streets where cars pull out.
LEAVING = ["0.165 s, 0.5 m", "0.665 s, 0.5 m", "0.165 s, 1.0 m"]


def judged(stepctl: Path, folder: Path, feed: dict) -> dict:
    """What the guard did at the left step: the right side is the pavement's."""
    scene = json.loads((folder / "scene.json").read_text())
    scene["steps"] = scene["steps"][:1]
    (folder / "worse.json").write_text(json.dumps(scene | {"feed": feed}))
    done = subprocess.run([stepctl, "traffic", "guard", folder / "feed.jsonl", "--scene", folder / "worse.json", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def pull_out(options) -> None:
    warnings: dict[str, list[float]] = {name: [] for name in LEAVING}
    for seed in options.leaving:
        folder = Path(tempfile.mkdtemp())
        try:
            street.make(seed, options.seconds, folder, has_leavers=True)
            for index, name in enumerate(LEAVING):
                feed = FEEDS[name][0] | {"seed": 100 * seed + index}
                warnings[name] += judged(options.stepctl, folder, feed)["departure_warnings_s"]
        finally:
            shutil.rmtree(folder)
    print(f"{'pulling out':18} {'cars':>5} {'unseen':>7} {'least':>8} {'median':>8}")
    for name, held in warnings.items():
        if held:
            print(f"{name:18} {len(held):>5} {held.count(0):>7} {min(held):>6.2f} s {statistics.median(held):>6.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stepctl", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(21, 30)))
    parser.add_argument("--leaving", type=int, nargs="*", default=[31, 32, 33], help="streets where cars pull out")
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    if not street.found("sumo"):
        print("traffic is left out: SUMO is missing (pip install eclipse-sumo)")
        return
    sums = {name: dict.fromkeys(("approaches", "gaps", "departures", "departure_gaps", "time_s", "held_s", "needless_s",
                                 "blind_s"), 0) for name in FEEDS}
    for seed in options.seeds:
        folder = Path(tempfile.mkdtemp())
        try:
            street.make(seed, options.seconds, folder)
            for index, (name, (feed, _, _)) in enumerate(FEEDS.items()):
                score = judged(options.stepctl, folder, feed | {"seed": 100 * seed + index})
                for member, value in score.items():
                    if member in sums[name]:
                        sums[name][member] += value
        finally:
            shutil.rmtree(folder)
    print(f"{'feed':18} {'gaps':>9} {'pulling out':>12} {'needless':>9} {'held':>7} {'blind':>7}")
    failed = False
    for name, (_, most_gaps, most_needless) in FEEDS.items():
        sum_ = sums[name]
        needless, held, blind = (100 * sum_[part] / sum_["time_s"] for part in ("needless_s", "held_s", "blind_s"))
        verdict = ""
        if most_needless is not None:
            good = needless <= most_needless
            good &= blind > 99.9 if most_gaps is None else sum_["gaps"] <= most_gaps / 100 * sum_["approaches"]
            verdict, failed = ("  ok" if good else "  MISSED"), failed or not good
        print(f"{name:18} {sum_['gaps']:>3} of {sum_['approaches']:>3}"
              f"{sum_['departure_gaps']:>6} of {sum_['departures']:>3} {needless:>8.2f}% {held:>6.1f}% {blind:>6.1f}%"
              f"{verdict}")
    pull_out(options)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
