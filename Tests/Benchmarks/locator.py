"""The decisions of Sources/Core/Ranging, written a second time, for many recordings at once and with other constants.

RANGING.md derives them. Two things rest on this: what `fit.py` compares, and the decisions in
Tests/Fixtures/ranging.json, which the locator's unit tests expect. Those are made again by

    python3 locator.py ../Fixtures/ranging.json

A recording here has two beacons. A level is an RSSI minus the measured power, in dB.
"""

import bisect
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ZONES = ("unknown", "immediate", "near", "far")
UNKNOWN, IMMEDIATE, NEAR, FAR = range(4)
NOBODY = -1


@dataclass(frozen=True)
class Constants:
    """As in RangingModel.swift. Seconds, decibels, frames."""

    capacity: int = 128
    zone_window: float = 8
    window: float = 6
    moment_window: float = 2
    least: int = 2
    silence: float = 5
    backwards: float = 1
    immediate_edge: float = 6
    immediate_band: float = 1.5
    far_edge: float = -9.5
    far_band: float = 4
    side_begin: float = 8
    side_stay: float = 3
    side_least: int = 2
    lone_frames: int = 8
    lone_floor: float = -90
    side_lone_level: float = -6
    located_lone_level: float = 0
    located_least: int = 3
    located_begin_level: float = -7.75
    located_stay_level: float = -12
    located_begin_difference: float = 10
    located_stay_difference: float = 6
    sender_difference: float = 10
    located_share: float = 0.3
    support_level: float = -10
    moment_least: int = 2
    moment_fall: float = 7
    moment_near_level: float = 0
    exponent: float = 2
    shadowing80: float = 8.2
    fading80: float = 5.8
    body: float = 8


MODEL = Constants()


def interquartile_mean(levels: list[float]) -> float:
    levels = sorted(levels)
    cut = len(levels) // 4
    middle = levels[cut : len(levels) - cut]
    return sum(middle) / len(middle)


def mean_power(levels: list[float]) -> float:
    """The strongest counts as much as the second."""
    levels = sorted(levels)
    top = levels[max(0, len(levels) - 2)]
    return 10 * np.log10(np.mean([10 ** (min(level, top) / 10) for level in levels]))


# --- What is heard of one beacon at one time ---

FIELDS = (
    "age", "zone_frames", "zone_level", "now_frames", "now_level", "frames", "power", "middle",
    "last_frames", "last_middle", "strong", "last_mean", "before_mean", "floor",
)  # fmt: skip


def evidence(times: list[float], levels: list[float], measured_power: float, now: float, c: Constants) -> list[float]:
    """FIELDS, of the frames up to `now`, in the order of time."""
    end = bisect.bisect_right(times, now)
    if not end:
        return [np.inf] + [0, np.nan] * 2 + [0, np.nan, np.nan, 0, np.nan, 0, np.nan, np.nan, np.nan]
    first = max(0, end - c.capacity)

    def since(seconds: float) -> list[float]:
        return levels[max(first, bisect.bisect_right(times, now - seconds)) : end]

    zone, window, last = since(c.zone_window), since(c.window), since(c.moment_window)
    present = levels[max(first, end - max(len(last), c.least)) : end]
    before = window[: len(window) - len(last)]
    return [
        now - times[end - 1],
        len(zone), interquartile_mean(zone) if zone else np.nan,
        len(present), interquartile_mean(present),
        len(window), mean_power(window) if window else np.nan, interquartile_mean(window) if window else np.nan,
        len(last), interquartile_mean(last) if last else np.nan,
        sum(level >= c.support_level for level in window),
        np.mean(last) if last else np.nan, np.mean(before) if before else np.nan,
        c.lone_floor - measured_power,
    ]  # fmt: skip


Frame = tuple[float, int, float, float]  # time, beacon 0 or 1, level, measured power


class Evidence:
    """FIELDS as arrays: recording, tick, beacon."""

    def __init__(self, values: np.ndarray, is_tick: np.ndarray):
        self.is_tick = is_tick  # recordings differ in length
        self.values = values

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in FIELDS:
            raise AttributeError(name)
        return self.values[..., FIELDS.index(name)]

    @classmethod
    def of(cls, recordings: list[list[Frame]], tick: float, c: Constants = MODEL) -> "Evidence":
        """Looked at from 0 to the last frame."""
        lengths = [int(packets[-1][0] / tick) + 1 for packets in recordings]
        values = np.full((len(recordings), max(lengths), 2, len(FIELDS)), np.nan)
        is_tick = np.zeros(values.shape[:2], bool)
        for number, (packets, length) in enumerate(zip(recordings, lengths)):
            is_tick[number, :length] = True
            for beacon in (0, 1):
                own = [packet for packet in packets if packet[1] == beacon]
                times, levels = [packet[0] for packet in own], [packet[2] for packet in own]
                power = own[0][3] if own else packets[0][3]
                for at in range(length):
                    values[number, at, beacon] = evidence(times, levels, power, at * tick, c)
        return cls(values, is_tick)


# --- Decisions ---


def error80(frames: np.ndarray, c: Constants) -> np.ndarray:
    return c.fading80 / np.sqrt(np.maximum(frames, 1))


def zone_at(level: np.ndarray, bands: float, c: Constants) -> np.ndarray:
    immediate, far = c.immediate_band * bands, c.far_band * bands
    zone = np.zeros(level.shape, int)
    zone[(level >= c.far_edge + far) & (level <= c.immediate_edge - immediate)] = NEAR
    zone[level <= c.far_edge - far] = FAR
    zone[level >= c.immediate_edge + immediate] = IMMEDIATE
    return zone


def zones(e: Evidence, c: Constants = MODEL) -> np.ndarray:
    """recording, tick, beacon: the index of a zone."""
    is_heard = (e.zone_frames >= c.least) & (e.age <= c.silence)
    clear = np.where(is_heard, zone_at(e.zone_level, 1, c), UNKNOWN)
    kept = np.where(is_heard, zone_at(e.zone_level, 0.5, c), UNKNOWN)
    out = np.zeros(clear.shape, int)
    last = np.zeros((clear.shape[0], 2), int)
    for at in range(clear.shape[1]):
        last = np.where((clear[:, at] == UNKNOWN) & (kept[:, at] == last), last, clear[:, at])
        out[:, at] = last
    error = error80(e.now_frames, c)
    high, low = e.now_level + error, e.now_level - error
    agrees = np.select(
        [out == IMMEDIATE, out == NEAR, out == FAR],
        [high >= c.immediate_edge, (high >= c.far_edge) & (low <= c.immediate_edge), low <= c.far_edge], True,
    )  # fmt: skip
    return np.where(agrees, out, UNKNOWN)


def leads(e: Evidence, least: int, lone: float, c: Constants) -> tuple[np.ndarray, np.ndarray]:
    """recording, tick: the strongest beacon or NOBODY, and by how many decibels it exceeds the other."""
    is_heard = (e.frames > 0) & (e.age <= c.silence)
    power = np.where(is_heard, e.power, -np.inf)
    first = power.argmax(2)

    def own(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, first[..., None], 2)[..., 0]

    def other(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, 1 - first[..., None], 2)[..., 0]

    is_lone = (own(e.frames) >= c.lone_frames) & (other(is_heard) | (own(power) >= lone))
    floor = np.where(np.isnan(other(e.floor)), own(e.floor), other(e.floor))
    unheard = own(power) - np.maximum(other(power), floor)
    is_compared = other(is_heard) & (other(e.frames) >= c.side_least)
    with np.errstate(invalid="ignore"):
        difference = np.where(is_compared, own(power) - other(power), unheard)
    is_lead = own(is_heard) & (own(e.frames) >= least) & (is_compared | is_lone)
    return np.where(is_lead, first, NOBODY), difference


def sides(e: Evidence, c: Constants = MODEL) -> np.ndarray:
    """recording, tick: the beacon that is faced, or NOBODY."""
    lead, difference = leads(e, c.side_least, c.side_lone_level, c)
    out = np.full(lead.shape, NOBODY)
    last = np.full(lead.shape[0], NOBODY)
    for at in range(lead.shape[1]):
        need = np.where(lead[:, at] == last, c.side_stay, c.side_begin)
        last = out[:, at] = np.where(difference[:, at] >= need, lead[:, at], NOBODY)
    return out


def certain_now(e: Evidence, c: Constants) -> np.ndarray:
    """recording, tick, beacon: the moment's level, less the error of few frames."""
    return np.where(e.last_frames >= c.moment_least, e.last_middle - error80(e.last_frames, c), -np.inf)


def certain(e: Evidence, c: Constants = MODEL) -> np.ndarray:
    """recording, tick, beacon: the greater of window's and moment's level, less the error of few frames."""
    return np.fmax(certain_now(e, c), e.middle - error80(e.frames, c))


def located(e: Evidence, c: Constants = MODEL, faced: np.ndarray | None = None) -> np.ndarray:
    """recording, tick: the beacon that the rider stands in front of, or NOBODY."""
    faced = sides(e, c) if faced is None else faced
    lead, difference = leads(e, c.located_least, c.located_lone_level, c)
    level = certain(e, c)
    support = (e.strong >= c.located_least) & (e.strong >= c.located_share * e.frames)
    has_fallen = e.last_mean < e.before_mean - c.moment_fall  # not so where nothing was before
    has_fallen &= certain_now(e, c) < c.moment_near_level
    may = support & ~has_fallen & (e.last_frames >= c.moment_least)
    out = np.full(lead.shape, NOBODY)
    last = np.full(lead.shape[0], NOBODY)
    every = np.arange(lead.shape[0])
    for at in range(lead.shape[1]):
        first = np.maximum(lead[:, at], 0)
        stays = first == last
        is_reached = level[every, at, first] >= np.where(stays, c.located_stay_level, c.located_begin_level)
        is_ahead = difference[:, at] >= np.where(stays, c.located_stay_difference, c.located_begin_difference)
        is_faced = (lead[:, at] != NOBODY) & (lead[:, at] == faced[:, at])
        last = out[:, at] = np.where(is_faced & is_reached & is_ahead & may[every, at, first], first, NOBODY)
    return out


def body_between(e: Evidence, at_step: np.ndarray, c: Constants = MODEL) -> np.ndarray:
    """recording, tick: whether the side is clear, and the level too low by no more than a body takes."""
    lead, difference = leads(e, c.located_least, c.located_lone_level, c)
    level = np.take_along_axis(certain(e, c), np.maximum(lead, 0)[..., None], 2)[..., 0]
    short = c.located_begin_level - level
    is_clear = (lead != NOBODY) & (lead == sides(e, c)) & (difference >= c.located_begin_difference)
    return (at_step == NOBODY) & is_clear & (short > 0) & (short <= c.body)


# --- Two beacons that send as one ---


def sender_difference(heard: list[tuple[float, object]], c: Constants = MODEL) -> float:
    """Of one beacon's frames in a window, level and sender: by how many decibels a sender surely differs from those
    between its frames."""
    greatest = -np.inf
    for sender in dict.fromkeys(sender for _, sender in heard):
        places = [place for place, (_, each) in enumerate(heard) if each == sender]
        span = heard[places[0] : places[-1] + 1]
        own = [level for level, each in span if each == sender]
        others = [level for level, each in span if each != sender]
        if others:
            error = c.fading80 * np.sqrt(1 / len(own) + 1 / len(others))
            greatest = max(greatest, abs(interquartile_mean(own) - interquartile_mean(others)) - error)
    return greatest


# --- The decisions that the unit tests expect ---


def replayed(sequence: dict, c: Constants) -> list[dict]:
    """What is to be decided at the ticks of a sequence whose clock may step back."""
    ticks, parts = [], [[]]
    frames, clock, fed = [[], []], -np.inf, 0

    def advanced(time: float) -> float:
        nonlocal clock, frames
        if time < clock - c.backwards:
            frames, clock = [[], []], -np.inf
            parts.append([])
        clock = max(clock, time)
        return clock

    for tick in sequence["ticks"]:
        for packet in sequence["packets"][fed : tick["packets_fed"]]:
            if -127 <= packet["rssi"] < 0 and packet["major"] in (1, 2):
                level, power = packet["rssi"] - packet["power"], packet["power"]
                time = advanced(packet["time_s"])
                frames[packet["major"] - 1].append((time, level, power))
        fed = tick["packets_fed"]
        now = advanced(tick["now_s"])
        parts[-1].append(len(ticks))
        columns = [list(zip(*heard)) or [(), (), (np.nan,)] for heard in frames]
        powers = [power[-1] for _, _, power in columns]
        heard = [evidence(list(t), list(l), p[-1], now, c) for t, l, p in columns]
        ticks.append((tick, heard, powers))
    out = []
    for part in filter(None, parts):
        e = Evidence(np.array([[ticks[at][1] for at in part]]), np.ones((1, len(part)), bool))
        zone, faced = zones(e, c)[0], sides(e, c)
        at_step = located(e, c, faced)[0]
        for number, at in enumerate(part):
            tick, _, powers = ticks[at]
            steps = {}
            for beacon in (0, 1):
                is_heard = e.zone_frames[0, number, beacon] >= c.least and e.age[0, number, beacon] <= c.silence
                level = float(e.now_level[0, number, beacon])
                error = np.hypot(c.shadowing80, error80(e.now_frames[0, number, beacon], c))
                metres = [round(float(10 ** (-(level + d) / (10 * c.exponent))), 4) for d in (0, error, -error)]
                age = float(e.age[0, number, beacon])
                steps[str(beacon + 1)] = {
                    "zone": ZONES[zone[number, beacon]],
                    "distance_m": metres[0] if is_heard else None,
                    "distance_low_m": metres[1] if is_heard else None,
                    "distance_high_m": metres[2] if is_heard else None,
                    "rssi_dbm": int(np.floor(level + powers[beacon] + 0.5)) if is_heard else None,
                    "packets": int(e.frames[0, number, beacon]),
                    "age_s": None if np.isinf(age) else round(age, 3),
                }
            name = lambda beacon: None if beacon == NOBODY else int(beacon) + 1  # noqa: E731
            out.append(
                {"now_s": tick["now_s"], "packets_fed": tick["packets_fed"], "side": name(faced[0, number]),
                 "located": name(at_step[number]), "steps": steps}
            )  # fmt: skip
    return out


def main():
    path = Path(sys.argv[1])
    fixture = json.loads(path.read_text())
    fixture["note"] = (
        "Written by Tests/Benchmarks/locator.py. Feed the first packets_fed packets (in order, counted from the start) "
        "before the tick at now_s. Tolerance 0.002 for numbers. steps' key = major."
    )
    fixture["constants"] = asdict(MODEL)
    for sequence in fixture["sequences"]:
        sequence["ticks"] = replayed(sequence, MODEL)
    path.write_text(json.dumps(fixture, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
