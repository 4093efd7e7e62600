#!/usr/bin/env python3
"""How well `stepctl locate` finds zone and side in recorded RSSI of known distance, beside what others do with it.

    ranging.py --stepctl .build/release/stepctl --data FOLDER

README.md beside this file says what is in the folder and where to get it. Each recording is replayed as a capture, and
looked at every 0.5 s from its first packet to its last. A zone is not asked for within 10 % of its edge.

accuracy      mean over the zones of a set of the share that was right, of what was decided; then over the sets
coverage      share that was decided
false ticks   share said to be immediate of what is beyond 2 m; false traces: share of recordings with such a tick
changes       of the zone, a minute, where nothing moves
first         seconds to the first decision, median
side          which of two receivers that hear one beacon is nearer: within 4 m, and a third of the other's distance
available     share of the ticks within 1 m of the right step at which a rider may move it; wait: seconds until then
nearer        share of the ticks at which a rider might have moved a step that is at the nearer of two real receivers,
              one, two or four metres away at most, with no vehicle between them; farther: one at the other
away          share of the ticks beyond 2.1 m, or at neither step, at which a rider may move one
wrong traces  recordings in which at some tick the wrong step, or one where none is right, might have been moved
"""

import argparse
import bisect
import collections
import csv
import hashlib
import itertools
import json
import math
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "System"))
import captures  # noqa: E402

TICK = 0.5
ZONES = ("immediate", "near", "far")
SIDES = ("left", "right")
VEHICLE = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
HALF_WIDTH = 0.95  # of the modelled vehicle, m
LOSS = 0.3  # of the packets of a busy place are lost; these sets are as sparse as they are
SPARSE = {"nist_rpi3", "philo_static", "philo_track"}


class Packet(NamedTuple):
    time: float
    major: int  # 1 left, 2 right
    rssi: int
    power: int  # dBm at 1 m


def zone_of(distance: float) -> str:
    if math.isinf(distance):
        return "unknown"
    return "immediate" if distance < 0.5 else "near" if distance <= 3 else "far"


def ticks_of(packets: list[Packet]) -> list[float]:
    return [number * TICK for number in range(int(packets[-1].time / TICK) + 1)]


# --- The recordings ---


class Data:
    def __init__(self, folder: Path):
        self.folder = folder
        self.sets = sorted(path.stem for path in folder.glob("*.csv") if path.stem != "CALIBRATION")
        with open(folder / "CALIBRATION.csv") as file:
            rows = list(csv.DictReader(file))
        self.powers = {(row["dataset"], row["calibration_key"]): float(row["rssi_at_1m_dbm"]) for row in rows}

    def traces(self, name: str) -> dict[str, dict[str, list[dict]]]:
        """Rows by trace and beacon, in the order of time."""
        traces = collections.defaultdict(lambda: collections.defaultdict(list))
        with open(self.folder / f"{name}.csv") as file:
            for row in csv.DictReader(file):
                row["time_s"] = float(row["time_s"])
                row["rssi_dbm"] = int(float(row["rssi_dbm"]))
                row["true_distance_m"] = float(row["true_distance_m"] or "nan")
                traces[row["trace_id"]][row["beacon"]].append(row)
        for beacons in traces.values():
            for rows in beacons.values():
                rows.sort(key=lambda row: row["time_s"])
        return traces

    def is_vehicle(self, traces: dict) -> bool:
        """Of our model: it says which step is the right one."""
        beacons = next(iter(traces.values()))
        return "truth=" in next(iter(beacons.values()))[0]["context"]

    def power(self, name: str, row: dict) -> int:
        """What the beacon would advertise: its own word, or else the calibration that is the most particular."""
        if row["tx_power_dbm"]:
            return round(float(row["tx_power_dbm"]))
        beacon, context = row["beacon"], row["context"]
        receiver = re.search(r"rx=(\w+)", context)
        for key in (beacon, f"{beacon}|{context}", f"{beacon}|{receiver and receiver[1]}", "*"):
            if (name, key) in self.powers:
                return round(self.powers[name, key])
        return captures.MEASURED_POWER


@dataclass
class Stream:
    """One beacon, heard for a while."""

    packets: list[Packet]
    is_static: bool
    distances: list[float]  # true ones, at the packets

    @property
    def truth(self) -> Iterator[float]:
        """At each tick."""
        times = [packet.time for packet in self.packets]
        for tick in ticks_of(self.packets):
            after = min(max(bisect.bisect_right(times, tick), 1), len(times) - 1)
            length = times[after] - times[after - 1] or 1e-9
            part = 0 if self.is_static else min(max((tick - times[after - 1]) / length, 0), 1)
            before = self.distances[0 if self.is_static else after - 1]
            yield before + (self.distances[after] - before) * part


def streams(data: Data, name: str, traces: dict) -> Iterator[Stream]:
    for trace, beacons in traces.items():
        for beacon, rows in beacons.items():
            chance = random.Random(hashlib.sha256(f"{trace}|{beacon}".encode()).digest())
            kept = [row for row in rows if row is rows[0] or name in SPARSE or chance.random() > LOSS]
            power, begin = data.power(name, rows[0]), rows[0]["time_s"]
            packets = [Packet(row["time_s"] - begin, 1, row["rssi_dbm"], power) for row in kept]
            if len(packets) >= 4 and packets[-1].time >= 1.5:
                distances = [row["true_distance_m"] for row in rows]
                is_static = max(distances) - min(distances) < 0.02
                yield Stream(packets, is_static, [row["true_distance_m"] for row in kept])


class Pair(NamedTuple):
    """Two still receivers of one beacon at a time."""

    packets: list[Packet]
    nearer: str
    distance: float  # of the nearer, m
    ratio: float  # of the farther's distance to that
    trace: str  # the recording


def pairs(data: Data, name: str, traces: dict) -> Iterator[Pair]:
    """Those of which one is within 4 m."""
    for trace, beacons in traces.items():
        for both in itertools.combinations(sorted(beacons), 2):
            rows = [beacons[beacon] for beacon in both]
            distances = [[row["true_distance_m"] for row in each] for each in rows]
            if any(max(each) - min(each) >= 0.02 for each in distances) or min(map(len, rows)) < 5:
                continue
            medians = [statistics.median(each) for each in distances]
            if min(medians) > 4:
                continue
            begin = min(each[0]["time_s"] for each in rows)
            packets = [
                Packet(row["time_s"] - begin, major, row["rssi_dbm"], data.power(name, row))
                for major, each in enumerate(rows, 1)
                for row in each
            ]
            nearer = min(medians)
            yield Pair(
                sorted(packets, key=lambda packet: packet.time), SIDES[medians.index(nearer)], nearer,
                max(medians) / nearer, trace,
            )


def walks(data: Data, name: str, traces: dict) -> Iterator[tuple[list[Packet], str | None, list[tuple[float, float]]]]:
    """Riders around the modelled vehicle: what they hear, which step they walk to, how far from its flank they are."""
    for beacons in traces.values():
        rows = [row for each in beacons.values() for row in each]
        packets = [
            Packet(row["time_s"], int(row["beacon"][-1]), row["rssi_dbm"], data.power(name, row)) for row in rows
        ]
        context = rows[0]["context"]
        right = {"1": "left", "2": "right"}.get(re.search(r"truth=(\w+)", context)[1])
        beside = {row["time_s"]: abs(float(row["context"].split("y=")[-1])) - HALF_WIDTH for row in rows}
        yield sorted(packets, key=lambda packet: packet.time), right, sorted(beside.items())


# --- What others do: each from one beacon's packets to a distance at each tick, infinite without evidence ---


def log_distance(rssi: float, power: int, exponent: float) -> float:
    return 10 ** ((power - rssi) / (10 * exponent))


def curve(rssi: float, power: int, a: float, b: float, c: float) -> float:
    """AltBeacon's form of distance: a power of the ratio of two figures in dBm, fitted to a phone."""
    ratio = rssi / min(power, -1)
    return ratio**10 if ratio < 1 else a * ratio**b + c


def window(packets: list[Packet], tick: float, seconds: float) -> list[int]:
    begin, end = (bisect.bisect_right(packets, time, key=lambda packet: packet.time) for time in (tick - seconds, tick))
    return [packet.rssi for packet in packets[begin:end]]


def plain(packets, ticks):
    """The last packet, and free space's law of distance."""
    for tick in ticks:
        heard = window(packets, tick, math.inf)
        yield log_distance(heard[-1], packets[0].power, 2) if heard else math.inf


def altbeacon(packets, ticks):
    """Android Beacon Library: RunningAverageRssiFilter, which expires samples after 20 s, sorts them and leaves out a
    tenth and one more at each end; CurveFittedDistanceCalculator with the default model (model-distance-calculations).
    """
    for tick in ticks:
        heard = sorted(window(packets, tick, 20))
        cut = len(heard) // 10 + 1 if len(heard) > 2 else 0
        heard = heard[cut : len(heard) - cut]
        yield curve(statistics.fmean(heard), packets[0].power, 0.42093, 6.9476, 0.54992) if heard else math.inf


def room_assistant(packets, ticks):
    """room-assistant 2: a constant RSSI in a Kalman filter (kalmanjs) with process noise R and measurement noise Q, and
    the same form of distance with the figures that the web has had since 2013 (Stack Overflow 20416218).
    """
    r, q = 0.008, 4.0
    left = collections.deque(packets)
    estimate = math.nan
    for tick in ticks:
        while left and left[0].time <= tick:
            rssi = left.popleft().rssi
            if math.isnan(estimate):
                estimate, covariance = rssi, q
            else:
                gain = (covariance + r) / (covariance + r + q)
                estimate, covariance = estimate + gain * (rssi - estimate), (covariance + r) * (1 - gain)
        yield math.inf if math.isnan(estimate) else curve(estimate, packets[0].power, 0.89976, 7.7095, 0.111)


def espresense(packets, ticks):
    """ESPresense: of the last 15 s at most 20 readings, the mean of those within Tukey's fences (1.5 times the range of
    the quartiles); the law of distance with its default absorption of 2.7.
    """
    for tick in ticks:
        heard = sorted(window(packets, tick, 15)[-20:])
        if len(heard) >= 4:
            low, _, high = statistics.quantiles(heard, n=4, method="inclusive")
            reach = 1.5 * (high - low)
            heard = [rssi for rssi in heard if low - reach <= rssi <= high + reach]
        yield log_distance(statistics.fmean(heard), packets[0].power, 2.7) if heard else math.inf


class Peer:
    """One that knows distances alone: the nearer step is faced, and may be moved within 1 m."""

    def __init__(self, distances: Callable):
        self.distances = distances

    def zones(self, packets, ticks):
        return map(zone_of, self.distances(packets, ticks))

    def sides(self, packets, ticks):
        return [side for side, _ in self._nearer(packets, ticks)]

    def permits(self, packets, ticks):
        return [side if distance <= 1 else None for side, distance in self._nearer(packets, ticks)]

    def _nearer(self, packets, ticks):
        heard = [[packet for packet in packets if packet.major == major] for major in (1, 2)]
        if not all(heard):
            only = 0 if heard[0] else 1
            return [(SIDES[only], distance) for distance in self.distances(heard[only], ticks)]
        both = max(each[0].time for each in heard)
        columns = zip(ticks, *(self.distances(each, ticks) for each in heard))
        return [
            (None, math.inf) if tick < both else ("left", left) if left < right else ("right", right)
            for tick, left, right in columns
        ]


# --- stepctl ---


class Stepctl:
    def __init__(self, program: str, folder: Path):
        self.program, self.folder = program, folder
        self.vehicle = folder / "vehicle.toml"
        steps = (f'[[steps]]\nid = "{side}"\nside = "{side}"\nmajor = {major}\n' for major, side in enumerate(SIDES, 1))
        self.vehicle.write_text(f'name = "recording"\nuuid = "{VEHICLE}"\n' + "".join(steps))

    def zones(self, packets, ticks):
        for line in self._lines(packets, ticks):
            steps = line["steps"] if line else []
            yield next((step["zone"] for step in steps if step["step"] == "left"), "unknown")

    def sides(self, packets, ticks):
        return [line and line["step"] for line in self._lines(packets, ticks)]

    def permits(self, packets, ticks):
        return [line["step"] if line and line["located"] else None for line in self._lines(packets, ticks)]

    def _lines(self, packets, ticks) -> list[dict | None]:
        """What it says at each tick."""
        records = [captures.HEADER]
        for packet in packets:
            data = captures.frame(VEHICLE, packet.major)[:-1] + struct.pack("b", packet.power)
            records.append(captures.record(captures.reports(data, packet.rssi, packet.major), packet.time))
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".btsnoop") as file:
            file.write(b"".join(records))
            file.flush()
            command = [self.program, "locate", "--watch", "--json", "--interval", str(TICK)]
            command += ["--vehicle", self.vehicle, "--radio", f"btsnoop:{file.name}"]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        if not lines:
            sys.exit(f"stepctl said nothing and ended with {ended.returncode}: {ended.stderr.strip()}")
        times = [line["elapsed_s"] for line in lines]
        return [lines[at - 1] if (at := bisect.bisect_right(times, tick + 1e-6)) else None for tick in ticks]


# --- How good it was ---


def mean(values) -> float:
    return statistics.fmean(values) if values else math.nan


def median(values) -> float:
    return statistics.median(values) if values else math.nan


def score_zones(sets: list[list[Stream]], decide: Callable, each: Callable) -> dict[str, float]:
    accuracy, coverage, false_ticks, false_traces, changes, first = [], [], [], [], [], []
    for recordings in sets:
        decisions = each(lambda stream: list(decide(stream.packets, ticks_of(stream.packets))), recordings)
        decided, right = collections.Counter(), collections.Counter()
        asked = changed = 0
        minutes = 0.0
        beyond = []
        for stream, said in zip(recordings, decisions):
            truth = list(stream.truth)
            for distance, zone in zip(truth, said):
                if abs(distance / 0.5 - 1) <= 0.1 or abs(distance / 3 - 1) <= 0.1:
                    continue
                asked += 1
                if zone != "unknown":
                    decided[zone_of(distance)] += 1
                    right[zone_of(distance)] += zone == zone_of(distance)
            far = [zone == "immediate" for distance, zone in zip(truth, said) if distance > 2]
            beyond += [far] if far else []
            known = [(number * TICK, zone) for number, zone in enumerate(said) if zone != "unknown"]
            first += [known[0][0]] if known else []
            if stream.is_static:
                changed += sum(a != b for (_, a), (_, b) in itertools.pairwise(known))
                minutes += (len(said) - 1) * TICK / 60
        if len(decided) > 1:  # where there is but one zone, guessing is rewarded
            accuracy.append(mean([right[zone] / decided[zone] for zone in ZONES if decided[zone] >= 20]))
            coverage.append(decided.total() / asked)
        if beyond:
            false_ticks.append(sum(map(sum, beyond)) / sum(map(len, beyond)))
            false_traces.append(sum(map(any, beyond)) / len(beyond))
        if minutes:
            changes.append(changed / minutes)
    return {
        "accuracy": mean(accuracy),
        "coverage": mean(coverage),
        "false ticks": mean(false_ticks),
        "false traces": mean(false_traces),
        "changes/min": mean(changes),
        "first s": median(first),
    }


def score_sides(cases: list, decide: Callable, each: Callable) -> dict[str, float]:
    cases = [pair for pair in cases if pair.ratio >= 3]
    decisions = each(lambda pair: decide(pair.packets, ticks_of(pair.packets)[2:]), cases)
    said = [(side, pair.nearer) for sides, pair in zip(decisions, cases) for side in sides]
    right = sum(side == nearer for side, nearer in said)
    wrong = sum(side not in (None, nearer) for side, nearer in said)
    return {
        "right of decided": right / max(1, right + wrong),
        "wrong": wrong / len(said),
        "open": 1 - (right + wrong) / len(said),
        "recordings": len(cases),
    }


def score_pairs(cases: list, decide: Callable, each: Callable) -> dict[str, float]:
    decisions = list(each(lambda pair: decide(pair.packets, ticks_of(pair.packets)), cases))
    row = {}
    for low, high in ((0, 1), (1, 2), (2, 4)):
        said = [
            (step, pair.nearer)
            for steps, pair in zip(decisions, cases)
            if low < pair.distance <= high
            for step in steps
        ]
        row[f"nearer, to {high} m"] = sum(step == nearer for step, nearer in said) / max(1, len(said))
        row[f"farther, to {high} m"] = sum(step not in (None, nearer) for step, nearer in said) / max(1, len(said))
    return row | {"recordings": len(cases)}


def score_permits(cases: list, decide: Callable, each: Callable) -> dict[str, float]:
    at_step, away, waits = [], [], []
    wrong_traces = 0
    decisions = each(lambda case: decide(case[0], ticks_of(case[0])), cases)
    for said, (packets, right, beside) in zip(decisions, cases):
        times = [time for time, _ in beside]
        arrival = permitted = None
        for tick, step in zip(ticks_of(packets), said):
            distance = beside[max(bisect.bisect_right(times, tick) - 1, 0)][1]
            if right and distance <= 1:
                at_step.append(step == right)
                arrival = tick if arrival is None else arrival
                permitted = tick if permitted is None and step == right else permitted
            elif not right or distance > 2.1:
                away.append(step is not None)
        waits += [permitted - arrival] if permitted is not None else []
        wrong_traces += any(step not in (None, right) for step in said)
    return {
        "available": mean(at_step),
        "away": mean(away),
        "wrong traces": wrong_traces,
        "wait s": median(waits),
        "recordings": len(cases),
    }


def show(title: str, rows: dict[str, dict[str, float]]):
    print(f"\n{title:24}" + "".join(f"{key:>18}" for key in next(iter(rows.values()))))
    for who, row in rows.items():
        figures = (f"{value:18d}" if isinstance(value, int) else f"{value:18.3f}" for value in row.values())
        print(f"{who:24}" + "".join(figures))


def main():
    parser = argparse.ArgumentParser(description="Score stepctl and others on recorded RSSI of known distance.")
    parser.add_argument("--stepctl", help="the program; without it, the others alone")
    parser.add_argument("--data", required=True, type=Path, help="the folder of recordings")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time (default: %(default)s)")
    options = parser.parse_args()

    data = Data(options.data)
    zone_sets, sides, permits = [], [], []
    for name in data.sets:
        traces = data.traces(name)
        if data.is_vehicle(traces):
            permits += walks(data, name, traces)
        else:
            zone_sets.append(list(streams(data, name, traces)))
            sides += pairs(data, name, traces)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        all_of = {
            "plain log-distance": (Peer(plain), map),
            "AltBeacon": (Peer(altbeacon), map),
            "room-assistant (Kalman)": (Peer(room_assistant), map),
            "ESPresense": (Peer(espresense), map),
        }
        if options.stepctl:
            all_of["stepctl"] = Stepctl(options.stepctl, Path(folder)), pool.map
        for title, cases, score, method in (
            ("zone", zone_sets, score_zones, "zones"),
            ("side", sides, score_sides, "sides"),
            ("may move, real pairs", sides, score_pairs, "permits"),
            ("may move, modelled", permits, score_permits, "permits"),
        ):
            if cases:
                show(title, {who: score(cases, getattr(it, method), each) for who, (it, each) in all_of.items()})


if __name__ == "__main__":
    main()
