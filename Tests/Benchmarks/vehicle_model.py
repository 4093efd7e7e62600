"""A model of a vehicle with a beacon at each side, and of riders around it: what their phones hear. Not a recording.

Path loss     Level = -10 n log10(d / 1 m), n from 1.8 to 2.6 for one rider; the measured power is 1.5 dB off (1 sigma).
Shadowing     Normal, 4 to 6 dB for one rider, with a correlation of exp(-moved / 0.5 m) between places (Gudmundson).
Metal, body   4 to 20 dB from the far side and at the ends; every other rider's body takes 0 to 12 dB of both beacons.
Frames        Every 0.1 s, on three channels with an offset each (2.7 dB); noise of 2.5 dB; 30 % lost, and 90 % in
              bursts of 0.3 to 1.5 s that half of the riders suffer. Nothing under -95 dBm.
"""

from dataclasses import dataclass

import numpy as np

FLANK = 0.95  # from the middle line to a beacon, m
HEIGHT = 0.6  # between beacon and phone, m
DURATION, INTERVAL, TICK = 15.0, 0.1, 0.5  # s
POWER, SENSITIVITY = -59, -95  # dBm
# Riders who stand beside a step or close to the middle, walk up to one, stand at an end, or are somewhere else.
POPULATION = {"stands": 0.7, "walks up": 0.15, "at an end": 0.08, "away": 0.07}


@dataclass
class Rider:
    kind: str
    step: int | None  # the correct one
    body: float  # dB
    frames: list[tuple[float, int, float, float]]  # time, beacon, level, measured power
    beside: np.ndarray  # at each tick: from the flank, m; negative at the other side
    distances: np.ndarray  # at each tick: from the step's beacon, m
    losses: np.ndarray  # in each interval: the share of all frames that is lost


def path(dice: np.random.Generator, kind: str, side: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x along the vehicle, y across, m."""
    still = np.zeros(len(times))
    match kind:
        case "stands":
            out, angle = dice.uniform(0.25, 2), dice.uniform(-0.7, 0.7)
            x, y = still + out * np.tan(angle), still + side * (FLANK + out)
        case "walks up":
            start, end, speed = dice.uniform(5, 9), dice.uniform(0.3, 1), dice.uniform(0.8, 1.5)
            out = np.maximum(end, start - speed * times)
            x, y = dice.uniform(-1.5, 1.5) * out / start, side * (FLANK + out)
        case "at an end":
            x, y = still + dice.choice([-1, 1]) * dice.uniform(3, 5), still + dice.uniform(-0.5, 0.5)
        case "away":
            x, y = still + dice.uniform(-2, 2), still + side * dice.uniform(6, 15)
        case "leaves":  # from a step, after some seconds
            out, angle = dice.uniform(0.3, 1), dice.uniform(-0.9, 0.9)
            gone = np.maximum(times - dice.uniform(5, 8), 0) * dice.uniform(0.8, 1.5)
            x, y = gone * np.sin(angle), side * (FLANK + out + gone * np.cos(angle))
        case "goes round":  # along the flank, around an end, and to the other step
            along, across = 2.9, FLANK + dice.uniform(0.3, 1)
            gone = np.maximum(times - dice.uniform(5, 8), 0) * dice.uniform(0.8, 1.5)
            x = dice.choice([-1, 1]) * np.clip(np.minimum(gone, 2 * (along + across) - gone), 0, along)
            y = side * np.clip(across + along - gone, -across, across)
    sway = np.cumsum(dice.normal(0, 0.004, (2, len(times))), axis=1)
    return x + sway[0], y + sway[1]


def rider(seed: tuple[int, ...], kind: str, body: float | None = None) -> Rider:
    """The same seed makes the same rider, also with another body between."""
    dice = np.random.default_rng(seed)
    exponent, power, shadow = dice.uniform(1.8, 2.6), dice.normal(0, 1.5), dice.uniform(4, 6)
    metal, own_body = dice.uniform(4, 20), dice.uniform(0, 12) * dice.integers(0, 2)
    body = own_body if body is None else body
    side = int(dice.choice([1, -1]))
    times = np.arange(0, DURATION, INTERVAL) + dice.uniform(0, INTERVAL)
    x, y = path(dice, kind, side, times)
    starts = np.cumsum(dice.exponential(8, 10) + dice.uniform(0.3, 1.5, 10))
    lengths = dice.uniform(0.3, 1.5, 10) * dice.integers(0, 2)
    is_burst = ((times >= starts[:, None]) & (times < (starts + lengths)[:, None])).any(0)
    keep = np.exp(-np.hypot(np.diff(x), np.diff(y)) / 0.5)
    losses = np.where(is_burst, 0.9, 0.3)
    frames, step = [], None if kind in ("at an end", "away") else 0 if side > 0 else 1
    for beacon, place in enumerate((FLANK, -FLANK)):
        distance = np.hypot(np.hypot(x, y - place), HEIGHT)
        fresh = dice.normal(0, shadow, len(times))
        shade = fresh.copy()
        for at, share in enumerate(keep):
            shade[at + 1] = share * shade[at] + np.sqrt(1 - share**2) * fresh[at + 1]
        is_hidden = (kind == "at an end") | ((y > 0) != (place > 0))
        level = power - 10 * exponent * np.log10(distance) + shade - metal * is_hidden - body
        level += dice.normal(0, 2.7, 3)[dice.integers(0, 3, len(times))]
        level += dice.normal(0, 2.5, len(times)) + 1.5 - dice.exponential(1.5, len(times))
        is_heard = (dice.random(len(times)) >= losses) & (level + POWER > SENSITIVITY)
        frames += [(times[at], beacon, float(round(level[at])), POWER) for at in np.nonzero(is_heard)[0]]
    ticks = np.arange(0, DURATION, TICK)
    place = -FLANK if step == 1 else FLANK
    beside = np.interp(ticks, times, y * (side if kind != "at an end" else 0)) - FLANK
    distances = np.interp(ticks, times, np.hypot(np.hypot(x, y - place), HEIGHT))
    return Rider(kind, step, body, sorted(frames), beside, distances, losses)


def riders(seed: int, count: int, kind: str | None = None) -> list[Rider]:
    """Of one kind, or of the population. Who hears nothing is left out."""
    kinds = np.random.default_rng([seed, 0]).choice(list(POPULATION), count, p=list(POPULATION.values()))
    everyone = (rider((seed, 1, number), kind or str(kinds[number])) for number in range(count))
    return [each for each in everyone if each.frames]
