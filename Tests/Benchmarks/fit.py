#!/usr/bin/env python3
"""Makes the figures of RANGING.md again: what the rules decide with their constants, and with others.

    fit.py --data FOLDER     # recordings, as README.md beside this file describes them
    fit.py                   # the model of a vehicle alone

An interval after a figure holds it in 19 of 20 samples of as many recordings (bootstrap over recordings). `ranging.py`
scores the program itself; this uses `locator.py`, which decides the same.
"""

import argparse
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import ranging
import vehicle_model
from locator import FAR, IMMEDIATE, MODEL, NEAR, NOBODY, UNKNOWN, Constants, Evidence
from locator import body_between, located, sender_difference, sides, zones

TICK = 0.5
KINDS = (IMMEDIATE, NEAR, FAR)


def interval(numbers: np.ndarray, totals: np.ndarray, samples: int = 500) -> str:
    """A share over recordings, and what it may be wrong by."""
    share = numbers.sum() / totals.sum()
    drawn = np.random.default_rng(1).integers(0, len(numbers), (samples, len(numbers)))
    low, high = np.quantile(numbers[drawn].sum(1) / np.maximum(totals[drawn].sum(1), 1), (0.025, 0.975))
    return f"{share:.4f} ({low:.4f} to {high:.4f})"


def frames_of(packets: list) -> list[tuple[float, int, float, float]]:
    return [(packet.time, packet.major - 1, packet.rssi - packet.power, packet.power) for packet in packets]


# --- Zones ---


class ZoneSet:
    """The recordings of one data set, each of one beacon."""

    def __init__(self, name: str, streams: list, constants: Constants = MODEL):
        self.name, self.streams = name, streams
        self.evidence = Evidence.of([frames_of(stream.packets) for stream in streams], TICK, constants)
        self.truth = np.full(self.evidence.is_tick.shape, np.nan)
        for number, stream in enumerate(streams):
            truth = list(stream.truth)
            self.truth[number, : len(truth)] = truth
        self.zone = np.select([self.truth < 0.5, self.truth <= 3, self.truth > 3], KINDS, UNKNOWN)
        edge = (abs(self.truth / 0.5 - 1) <= 0.1) | (abs(self.truth / 3 - 1) <= 0.1)
        self.asked = self.evidence.is_tick & ~edge
        self.is_static = np.array([stream.is_static for stream in streams])

    def counts(self, said: np.ndarray) -> np.ndarray:
        """For each recording: decided and right of each zone, and asked."""
        decided = [((said != UNKNOWN) & self.asked & (self.zone == kind)).sum(1) for kind in KINDS]
        right = [((said == kind) & self.asked & (self.zone == kind)).sum(1) for kind in KINDS]
        return np.stack([*decided, *right, self.asked.sum(1)], 1)


def recalls(counts: np.ndarray) -> tuple[float, float] | None:
    """Accuracy and coverage of a set; none where it knows one zone alone."""
    decided, right, asked = counts[:3], counts[3:6], counts[6]
    if (decided > 0).sum() < 2:
        return None
    enough = decided >= 20
    return float((right[enough] / decided[enough]).mean()), float(decided.sum() / asked)


def at(both: tuple[float, float]) -> str:
    return f"{both[0]:.3f} at {both[1]:.2f}"


def mean_recalls(all_counts: list[np.ndarray]) -> np.ndarray:
    return np.mean([both for counts in all_counts if (both := recalls(counts.sum(0)))], axis=0)


def zone_row(title: str, sets: list[ZoneSet], constants: Constants = MODEL):
    false_ticks, false_traces, changes, counts = [], [], [], []
    for each in sets:
        said = zones(each.evidence, constants)[..., 0]
        counts.append(each.counts(said))
        beyond = each.evidence.is_tick & (each.truth > 2)
        if beyond.any():
            wrong = (said == IMMEDIATE) & beyond
            false_ticks.append(wrong.sum() / beyond.sum())
            false_traces.append(wrong.any(1).sum() / beyond.any(1).sum())
        ticks = each.evidence.is_tick[each.is_static]
        known = [row[(row != UNKNOWN) & ok] for row, ok in zip(said[each.is_static], ticks)]
        minutes = (ticks.sum(1) - 1).sum() * TICK / 60
        if minutes:
            changes.append(sum((np.diff(row) != 0).sum() for row in known) / minutes)
    accuracy, coverage = mean_recalls(counts)
    dice = np.random.default_rng(1)
    drawn = [mean_recalls([c[dice.integers(0, len(c), len(c))] for c in counts])[0] for _ in range(300)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    print(
        f"{title:38} {accuracy:.3f} ({low:.3f} to {high:.3f})  {coverage:.3f}  {100 * np.mean(false_ticks):.2f} /"
        f" {100 * np.mean(false_traces):.2f} %  {np.mean(changes):.2f}"
    )


def report_zones(sets: list[ZoneSet]):
    print("\nzone: accuracy (interval), coverage, false immediate of ticks / recordings, changes a minute")
    zone_row("as specified", sets)
    for edge in (4.5, 5, 7, 8):
        zone_row(f"immediate edge {edge:+}", sets, replace(MODEL, immediate_edge=edge))
    for near, far in ((0, 0), (1, 2), (1.5, 3), (1.5, 3.5), (1.5, 5), (1, 4), (2, 4)):
        zone_row(f"bands {near} and {far}", sets, replace(MODEL, immediate_band=near, far_band=far))
    wide = replace(MODEL, immediate_edge=8, immediate_band=3, far_band=3.5)
    zone_row("edges 8 and -9.5, bands 3 and 3.5", sets, wide)
    zone_row("the last moment is not asked", sets, replace(MODEL, fading80=1e6))
    for window in (3, 5, 12):
        constants = replace(MODEL, zone_window=window)
        zone_row(f"window {window} s", [ZoneSet(each.name, each.streams, constants) for each in sets], constants)
    for least in (1, 3):
        zone_row(f"least packets {least}", sets, replace(MODEL, least=least))
    for each in sets:
        both = recalls(each.counts(zones(each.evidence)[..., 0]).sum(0))
        print(f"  {each.name:36} {'one zone alone' if both is None else at(both)}")


def report_edges(sets: list[ZoneSet]):
    """Which edges would be chosen without a set or a fifth of the recordings, and what they are worth there."""
    grid = list(itertools.product(
        (3.5, 4, 4.5, 5, 5.5, 6, 6.5), (1, 1.5, 2), (-10.5, -10, -9.5, -9), (3, 3.5, 4, 4.5),
    ))  # fmt: skip
    counts = [[] for _ in sets]  # of each set: setting, recording, figure
    for near, near_band, far, far_band in grid:
        c = replace(MODEL, immediate_edge=near, immediate_band=near_band, far_edge=far, far_band=far_band)
        for number, each in enumerate(sets):
            counts[number].append(each.counts(zones(each.evidence, c)[..., 0]))
    counts = [np.array(each) for each in counts]
    specified = grid.index((MODEL.immediate_edge, MODEL.immediate_band, MODEL.far_edge, MODEL.far_band))

    def best(train: list[np.ndarray]) -> int:
        worth = np.array([mean_recalls([each[setting] for each in train]) for setting in range(len(grid))])
        return int(np.where(worth[:, 1] >= 0.70, worth[:, 0], 0).argmax())

    print(f"\nedges, cross-validated ({len(grid)} settings, best at a coverage of .70): chosen; as specified; there")
    chosen, kept = [], []
    for number, each in enumerate(sets):
        if recalls(counts[number][0].sum(0)) is None:
            continue
        setting = best([other for index, other in enumerate(counts) if index != number])
        chosen.append(recalls(counts[number][setting].sum(0)))
        kept.append(recalls(counts[number][specified].sum(0)))
        print(f"  without {each.name:20} {grid[setting]}  {at(chosen[-1])}; {at(kept[-1])}")
    print(f"  mean, a set left out {at(np.mean(chosen, 0))}; {at(np.mean(kept, 0))}")
    folds, kept = [], []
    part = [np.random.default_rng(2).integers(0, 5, each.shape[1]) for each in counts]
    for fold in range(5):
        setting = best([each[:, mine != fold] for each, mine in zip(counts, part)])
        held = [each[:, mine == fold] for each, mine in zip(counts, part)]
        folds.append(mean_recalls([each[setting] for each in held]))
        kept.append(mean_recalls([each[specified] for each in held]))
    each_fold = " ".join(f"{fold[0]:.3f}" for fold in folds)
    print(f"  mean, a fifth left out {at(np.mean(folds, 0))} ({each_fold}); {at(np.mean(kept, 0))}")


# --- Two receivers at once ---


def report_pairs(pairs: list):
    evidence = Evidence.of([frames_of(pair.packets) for pair in pairs], TICK)
    nearer = np.array([ranging.SIDES.index(pair.nearer) for pair in pairs])[:, None]
    distance, ratio = (np.array([getattr(pair, name) for pair in pairs]) for name in ("distance", "ratio"))
    asked = evidence.is_tick & (ratio >= 3)[:, None]
    asked[:, :2] = False

    def rates(said: np.ndarray, rows: np.ndarray) -> tuple[float, float, float]:
        total = asked[rows].sum()
        right = ((said == nearer) & asked)[rows].sum()
        wrong = ((said != nearer) & (said != NOBODY) & asked)[rows].sum()
        return right / max(right + wrong, 1), wrong / total, 1 - (right + wrong) / total

    print(f"\nside, {(ratio >= 3).sum()} pairs: right of decided, wrong of all, open")
    every = np.full(len(pairs), True)
    grid = [(begin, stay) for begin in (5, 6, 7, 8, 9, 10, 12) for stay in (2, 3, 4, 5)]
    said = {(b, s): sides(evidence, replace(MODEL, side_begin=b, side_stay=s)) for b, s in grid}
    for both in ((6, 3), (7, 4), (8, 3), (9, 4), (10, 4)):
        print(f"  begin {both[0]}, stay {both[1]}".ljust(30), *(f"{rate:.4f} " for rate in rates(said[both], every)))
    places = {name: number for number, name in enumerate(dict.fromkeys(pair.trace for pair in pairs))}
    fold = np.random.default_rng(3).permutation(len(places))[[places[pair.trace] for pair in pairs]] % 5
    held = []
    for number in range(5):
        train = {both: rates(answer, fold != number) for both, answer in said.items()}
        setting = min((both for both in grid if train[both][1] <= 0.0135), key=lambda both: train[both][2])
        held.append(rates(said[setting], fold == number))
    print("  five folds of places, fewest open at 1.35 % wrong ".ljust(30), *(f"{rate:.4f} " for rate in np.mean(held, 0)))

    print("\nmay move, real pairs without a vehicle: nearer / farther, by the distance of the nearer")
    for title, c in PERMITS.items():
        said_at = located(evidence, c)
        row = []
        for low, high in ((0, 1), (1, 2), (2, 4)):
            rows = evidence.is_tick & ((distance > low) & (distance <= high))[:, None]
            shares = [((said_at == step) & rows).sum() / rows.sum() for step in (nearer, 1 - nearer)]
            row.append(f"{shares[0]:.3f} / {shares[1]:.4f}")
        print(f"  {title:34}" + "   ".join(row))


# --- Two beacons that send as one ---

ADDRESSES = {  # by frame and time: honest ones that come back
    "two, in turn": lambda frame, time, dice: frame % 2,
    "two, each second": lambda frame, time, dice: int(time) % 2,
    "two, every 2 s": lambda frame, time, dice: int(time / 2) % 2,
    "two, by chance": lambda frame, time, dice: dice.integers(2),
    "four, by chance": lambda frame, time, dice: dice.integers(4),
}
DIFFERENCES = (6, 8, 10, 12)


def contests(frames: list[tuple[float, float, object]], ticks: int) -> np.ndarray:
    """At each tick, of time, level and sender: by how much two senders surely differ."""
    windows = ([f[1:] for f in frames if at * TICK - MODEL.window < f[0] <= at * TICK] for at in range(ticks))
    return np.array([sender_difference(window) for window in windows])


def report_rotations(sets: list[tuple[str, list]], most: int = 60):
    heads = " ".join(f"{difference:>8} dB" for difference in DIFFERENCES)
    print(f"\none beacon that changes its address: % of ticks that take it for two at {heads}")
    for name, recordings in sets:
        for title, address in ADDRESSES.items():
            dice, found = np.random.default_rng(5), []
            for packets in recordings[:: len(recordings) // most + 1]:
                begin = packets[0][0]
                frames = [(t - begin, l, address(n, t - begin, dice)) for n, (t, _, l, _) in enumerate(packets)]
                frames = [frame for frame in frames if frame[0] < 30]
                found.append(contests(frames, int(frames[-1][0] / TICK) + 1))
            values = np.concatenate(found)
            shares = " ".join(f"{100 * (values >= difference).mean():11.2f}" for difference in DIFFERENCES)
            print(f"  {name:18} {title:18} {shares}")


def report_spare(seed: int, count: int):
    """A spare beacon of the step that the rider is not at, half a metre away in a bag."""
    print("\na spare beacon in a bag, % of ticks: its step located; not found out; of these, the true one is not heard")
    riders = [rider for rider in vehicle_model.riders(seed, count) if rider.step != 0]
    addresses = {"stays": lambda n, t: 1, "each packet": lambda n, t: n + 1, "each second": lambda n, t: int(t) + 1}
    for title, address in addresses.items():
        dice, recordings, senders = np.random.default_rng(seed), [], []
        for rider in riders:
            times = np.arange(0, vehicle_model.DURATION, vehicle_model.INTERVAL)
            times = times[dice.random(len(times)) >= 0.3]
            spare = [(t, 0, dice.normal(3, 4), vehicle_model.POWER, address(n, t)) for n, t in enumerate(times)]
            both = sorted([(*frame, 0) for frame in rider.frames] + spare)
            recordings.append([frame[:4] for frame in both])
            senders.append([(frame[0], frame[2], frame[4]) for frame in both if frame[1] == 0])
        evidence = Evidence.of(recordings, TICK)
        wrong = (located(evidence) == 0) & evidence.is_tick
        found, unheard = np.zeros_like(wrong), np.zeros_like(wrong)
        for row, frames in enumerate(senders):
            found[row] = contests(frames, wrong.shape[1]) >= MODEL.sender_difference
            own = np.array([frame[0] for frame in frames if frame[2] == 0])
            for at in range(wrong.shape[1]):
                unheard[row, at] = not ((own <= at * TICK) & (own > at * TICK - MODEL.window)).any()
        shares = (100 * np.array([wrong.sum(), (wrong & ~found).sum(), (wrong & ~found & unheard).sum()])
                  / evidence.is_tick.sum())  # fmt: skip
        print(f"  its address {title:14}", *(f"{share:7.2f}" for share in shares))


# --- A vehicle ---

PERMITS = {"as specified": MODEL} | {
    f"level {begin} to begin": replace(MODEL, located_begin_level=begin) for begin in (-6, -7, -7.5, -8, -8.5, -9, -10)
} | {
    f"level {stay} to stay": replace(MODEL, located_stay_level=stay) for stay in (-10, -11, -13)
} | {
    "ahead by 8 and 4": replace(MODEL, located_begin_difference=8, located_stay_difference=4),
    "ahead by 12 and 8": replace(MODEL, located_begin_difference=12, located_stay_difference=8),
    "fall 6": replace(MODEL, moment_fall=6), "fall 8": replace(MODEL, moment_fall=8),
    "no fall rule": replace(MODEL, moment_fall=math.inf), "no support rule": replace(MODEL, located_share=0),
    "error of few frames not taken off": replace(
        MODEL, located_begin_level=-6.5, located_stay_level=-11, fading80=0),
}  # fmt: skip


class Riders:
    def __init__(self, riders: list[vehicle_model.Rider], constants: Constants = MODEL):
        self.riders = riders
        self.evidence = Evidence.of([rider.frames for rider in riders], TICK, constants)
        length = self.evidence.is_tick.shape[1]
        pad = lambda values: np.pad(values[:length], (0, max(0, length - len(values))), "edge")  # noqa: E731
        self.step = np.array([NOBODY if rider.step is None else rider.step for rider in riders])[:, None]
        self.beside = np.array([pad(rider.beside) for rider in riders])
        self.distances = np.array([pad(rider.distances) for rider in riders])
        self.body = np.array([rider.body for rider in riders])
        at_step = self.evidence.is_tick & (self.step != NOBODY)
        self.close = at_step & (self.beside <= 1)
        self.away = self.evidence.is_tick & ~self.close & ((self.step == NOBODY) | (self.beside > 2.1))


def vehicle_set(walks: list) -> Riders:
    """Of a folder: packets, the correct step, and how far from the flank at the frames."""
    riders = []
    for packets, right, beside in walks:
        times, values = zip(*beside)
        ticks = np.arange(0, packets[-1].time + TICK, TICK)
        before = np.clip(np.searchsorted(times, ticks, "right") - 1, 0, None)
        step = None if right is None else ranging.SIDES.index(right)
        beside_at = np.array(values)[before]
        riders.append(vehicle_model.Rider("", step, math.nan, frames_of(packets), beside_at, np.zeros(len(ticks))))
    return Riders(riders)


def report_permits(title: str, riders: Riders, rules: dict[str, Constants]):
    print(f"\nmay move, {title}: available within 1 m; away (beyond 2.1 m or at neither step); wrong side, recordings")
    for name, c in rules.items():
        said = located(riders.evidence, c)
        right = (said == riders.step) & riders.close
        wrong = (said != NOBODY) & riders.away
        other = ((said != NOBODY) & (riders.step != NOBODY) & (said != riders.step) & riders.evidence.is_tick).any(1)
        print(f"  {name:44} {interval(right.sum(1), riders.close.sum(1))}  {interval(wrong.sum(1), riders.away.sum(1))}"
              f"  {other.sum()} of {len(other)}")  # fmt: skip


def report_departures(leaving: Riders, round_: Riders, rules: dict[str, Constants]):
    print("\ndepartures: seconds that a step stays located after 2 m, mean and 9 of 10; located when past the middle")
    for name, c in rules.items():
        stay, past = [], 0
        said = located(leaving.evidence, c) == leaving.step
        for row, distances in zip(said, leaving.distances):
            gone = int((distances > 2).argmax())
            if gone and row[:gone].any():
                stay.append(0 if not row[gone] else (np.nonzero(row[gone:])[0][-1] + 1) * TICK)
        is_past = round_.beside < -vehicle_model.FLANK
        past = ((located(round_.evidence, c) == round_.step) & is_past).any(1)
        print(f"  {name:44} {np.mean(stay):.2f}  {np.quantile(stay, 0.9):.1f}  {interval(past, np.ones(len(past)))}")


def report_distances(title: str, evidence: Evidence, beacon: np.ndarray, truth: np.ndarray, used: np.ndarray):
    """The error of the distance in octaves, against what is true now, and by how much the distance lags."""
    rows = np.arange(len(beacon))
    print(f"\ndistance, {title}: median error in octaves (factor); the lag that explains it best, s")
    for name, level in (("8 s, as before", evidence.zone_level), ("2 s, as specified", evidence.now_level)):
        estimate = -level[rows, :, beacon] / 20 * np.log2(10)
        ok = used & ~np.isnan(estimate) & ~np.isnan(truth)
        error = (estimate - np.log2(truth))[ok]
        spreads = {}
        for lag in range(0, 11):
            past = np.log2(np.roll(truth, lag, 1))
            counted = ok & (np.arange(truth.shape[1]) >= lag)
            spread = (estimate - past)[counted]
            spreads[lag * TICK] = np.std(spread)
        lag = min(spreads, key=spreads.get)
        first = ok.argmax(1)[ok.any(1)]
        begin = np.median(abs((estimate - np.log2(truth))[ok.any(1), first]))
        median = np.median(abs(error))
        print(f"  {name:24} first {begin:.2f} ({2**begin:.2f}), each tick {median:.2f} ({2**median:.2f}), lag {lag}")


def report_body(seed: int, count: int):
    """What it gives to hold the phone in front: the rider is told, and two seconds later no body is between."""
    first = [vehicle_model.rider((seed, number), "stands", 8) for number in range(count)]
    free = [vehicle_model.rider((seed, number), "stands", 0) for number in range(count)]
    both = [(a, b) for a, b in zip(first, free) if a.frames]
    before = Riders([a for a, _ in both])
    said = located(before.evidence)
    hints = body_between(before.evidence, said) & before.evidence.is_tick
    obeyed, since = [], np.full(hints.shape, False)
    for number, (a, b) in enumerate(both):
        if not hints[number].any():
            obeyed.append(a)
            continue
        turned = hints[number].argmax() * TICK + 2
        frames = [f for f in a.frames if f[0] < turned] + [f for f in b.frames if f[0] >= turned]
        obeyed.append(vehicle_model.Rider(a.kind, a.step, a.body, frames, a.beside, a.distances))
        since[number] = np.arange(hints.shape[1]) * TICK >= turned + MODEL.moment_window
    after = Riders(obeyed)
    length = min(before.close.shape[1], after.close.shape[1])
    told = (before.close & since)[:, :length]
    share = hints.any(1)[before.close.any(1)].mean()
    print(f"\nbody of 8 dB between, {count} who stand: {share:.2f} of those within 1 m are told of it")
    for name, riders in (("told, body stays", before), ("told, and obeyed", after)):
        right = ((located(riders.evidence) == riders.step)[:, :length]) & told
        print(f"  {name:44} {interval(right.sum(1), told.sum(1))}")
    nobody = Riders([b for _, b in both])
    for name, riders in (("all within 1 m, body stays", before), ("obeyed", after), ("no body from the start", nobody)):
        right = (located(riders.evidence) == riders.step) & riders.close
        print(f"  {name:44} {interval(right.sum(1), riders.close.sum(1))}")


def main():
    parser = argparse.ArgumentParser(description="Make the figures of RANGING.md again.")
    parser.add_argument("--data", type=Path, help="the folder of recordings; without it, the model of a vehicle alone")
    parser.add_argument("--seed", type=int, default=20, help="of the model; judged with the next (default: %(default)s)")
    parser.add_argument("--count", type=int, default=3000, help="riders of the model (default: %(default)s)")
    options = parser.parse_args()

    if options.data:
        data = ranging.Data(options.data)
        zone_sets, pairs = [], []
        for name in data.sets:
            traces = data.traces(name)
            if data.is_vehicle(traces):
                report_permits(f"{name} (recorded)", vehicle_set(list(ranging.walks(data, name, traces))), PERMITS)
            else:
                zone_sets.append(ZoneSet(name, list(ranging.streams(data, name, traces))))
                pairs += ranging.pairs(data, name, traces)
        if zone_sets:
            report_zones(zone_sets)
            report_edges(zone_sets)
            report_rotations([(e.name, [frames_of(stream.packets) for stream in e.streams]) for e in zone_sets])
        if pairs:
            report_pairs(pairs)
        for each in zone_sets:
            if not each.is_static.all():
                moves = ~each.is_static
                is_tick = each.evidence.is_tick[moves]
                some = Evidence(each.evidence.values[moves], is_tick)
                report_distances(each.name, some, np.zeros(moves.sum(), int), each.truth[moves], is_tick)

    report_permits(f"model, seed {options.seed}", Riders(vehicle_model.riders(options.seed, options.count)), PERMITS)
    judge = Riders(vehicle_model.riders(options.seed + 1, options.count))
    report_permits(f"model, seed {options.seed + 1}: for judging alone", judge, {"as specified": MODEL})
    walkers = Riders(vehicle_model.riders(options.seed + 2, 1000, "walks up"))
    said = located(walkers.evidence) == walkers.step
    after = np.maximum.accumulate(said, axis=1) & walkers.evidence.is_tick
    walked = walkers.evidence, walkers.step[:, 0], walkers.distances
    report_distances("1000 walks of the model, from located on", *walked, after)
    moves = walkers.evidence.is_tick & (np.gradient(walkers.distances, axis=1) < -0.2)
    report_distances("1000 walks of the model, on the way", *walked, moves)
    departures = [Riders(vehicle_model.riders(options.seed + 3, 600, kind)) for kind in ("leaves", "goes round")]
    report_departures(*departures, PERMITS)
    report_body(options.seed + 4, 1000)
    report_spare(options.seed + 5, 300)


if __name__ == "__main__":
    main()
