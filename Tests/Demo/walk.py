#!/usr/bin/env python3
"""Writes what a rider's phone hears on the way to a step: `python3 walk.py --uuid UUID --side left --out walk.btsnoop`.

A model, not a recording. Nothing about stepctl may be concluded from how well it does here; that takes real captures.

The place    A vehicle of 2.0 m by 3.5 m with a beacon on the step at either side, half-way along. [chosen]
The rider    Comes from behind and 3 m beside the vehicle, walks along it at 1.2 m/s, turns to the step, stops 0.6 m in
             front of it and stays. Holds the phone in front of the chest, so the body is behind it. [chosen]
Path loss    RSSI = measured power - 10 n log10(d / 1 m), where the measured power is -59 dBm, as Apple's examples
             have it, and n = 1.8: in buildings with a line of sight 1.6 to 1.8 (Rappaport, Wireless Communications,
             2nd edition, table 4.2).
Shadowing    Normal in decibels, 3 dB [chosen], with a correlation of exp(-moved / 0.5 m) from one place to the next:
             the form is Gudmundson's (Electronics Letters 27, 1991, 2145), the distance is chosen for a room.
Body         -8 dB where the rider stands in the way: 6 to 8 dB (ITU-R P.1238, effect of movement of objects).
Metal        -12 dB where the vehicle stands in the way: what arrives came around it. [chosen]
Channels     37, 38, 39 differ by +2, 0 and -2 dB from each beacon's mean, in an order of its own. [chosen] The phone
             listens to one at a time, 30 ms each [chosen], and HCI does not say to which.
Fading       Normal in decibels, 1.5 dB, anew in each frame: hands and people move. [chosen]
Advertising  Each 100 ms (Apple, Getting Started with iBeacon, 2014) and 0 to 10 ms more (Core 5.4, Vol 6, Part B,
             4.4.2.2.1), on all three channels. One in five is lost, and all below -95 dBm. [chosen]
RSSI         Whole decibels, in legacy LE Advertising Reports (Core 5.4, Vol 4, Part E, 7.7.65.2) of one frame each.
"""

import argparse
import math
import random
import struct
import sys
import tomllib
import uuid

STEPS = {"left": (1, (-1.0, 0.0)), "right": (2, (1.0, 0.0))}  # major; x across the vehicle, y forward, metres
HALF_WIDTH, HALF_LENGTH = 0.98, 1.75  # a beacon is outside on the flank
MEASURED_POWER, EXPONENT = -59, 1.8
SHADOWING, CORRELATION = 3.0, 0.5
BODY, METAL = 8.0, 12.0
CHANNELS, LISTENING, FADING = (2.0, 0.0, -2.0), 0.03, 1.5
INTERVAL, DELAY, LOSS, SENSITIVITY = 0.1, 0.01, 0.2, -95
SPEED, STAY = 1.2, 8.0

# 2026-01-01T00:00:00Z, in btsnoop's microseconds since the year 0.
EPOCH = 0x00DCDDB30F2F8000 + 1_767_225_600_000_000


class Rider:
    """Walks along corners to a step and looks ahead."""

    def __init__(self, side, stop):
        mirror = 1 if side == "left" else -1
        corners = [(-4.0, -6.0), (-4.0, -1.5), (-3.0, 0.0), (STEPS["left"][1][0] - stop, 0.0)]
        self.corners = [(mirror * x, y) for x, y in corners]
        self.end = sum(map(math.dist, self.corners, self.corners[1:])) / SPEED + STAY

    def at(self, time):
        """Where the rider is, and the direction in which the rider looks."""
        left = time * SPEED
        for a, b in zip(self.corners, self.corners[1:]):
            length = math.dist(a, b)
            ahead = ((b[0] - a[0]) / length, (b[1] - a[1]) / length)
            if left < length:
                return (a[0] + ahead[0] * left, a[1] + ahead[1] * left), ahead
            left -= length
        return self.corners[-1], ahead


class Beacon:
    def __init__(self, step, chance):
        self.major, self.place = STEPS[step]
        self.chance = chance
        self.address = chance.randbytes(5) + bytes([0xC0 | chance.randrange(64)])  # random static
        self.offsets = chance.sample(CHANNELS, len(CHANNELS))
        self.shadow, self.last = chance.gauss(0, SHADOWING), None

    def times(self, end):
        time = self.chance.uniform(0, INTERVAL)
        while time < end:
            yield time
            time += INTERVAL + self.chance.uniform(0, DELAY)

    def rssi(self, time, rider):
        """dBm, or None when the frame is not received."""
        place, ahead = rider.at(time)
        memory = math.exp(-math.dist(place, self.last or place) / CORRELATION)
        self.shadow = memory * self.shadow + math.sqrt(1 - memory**2) * self.chance.gauss(0, SHADOWING)
        self.last = place
        level = MEASURED_POWER - 10 * EXPONENT * math.log10(math.dist(place, self.place)) + self.shadow
        to_beacon = (self.place[0] - place[0], self.place[1] - place[1])
        if to_beacon[0] * ahead[0] + to_beacon[1] * ahead[1] < 0:
            level -= BODY
        if crosses_vehicle(place, self.place):
            level -= METAL
        level += self.offsets[int(time / LISTENING) % 3] + self.chance.gauss(0, FADING)
        heard = self.chance.random() >= LOSS and level >= SENSITIVITY
        return round(level) if heard else None


def crosses_vehicle(a, b):
    """Whether the line from a to b passes through the body (Liang and Barsky, clipping to a rectangle)."""
    enters, leaves = 0.0, 1.0
    for start, delta, half in ((a[0], b[0] - a[0], HALF_WIDTH), (a[1], b[1] - a[1], HALF_LENGTH)):
        if delta == 0:
            if abs(start) >= half:
                return False
            continue
        near, far = sorted(((-half - start) / delta, (half - start) / delta))
        enters, leaves = max(enters, near), min(leaves, far)
    return enters < leaves


def report(beacon, vehicle, rssi):
    """An H4 packet: LE Meta event, ADV_NONCONN_IND from a random address."""
    data = b"\x02\x01\x06\x1a\xff\x4c\x00\x02\x15" + vehicle.bytes
    data += struct.pack(">HHb", beacon.major, 1, MEASURED_POWER)
    body = b"\x02\x01\x03\x01" + beacon.address + bytes([len(data)]) + data + struct.pack("b", rssi)
    return b"\x04\x3e" + bytes([len(body)]) + body


def walk(vehicle, side, stop, seed):
    chance = random.Random(seed)
    rider = Rider(side, stop)
    beacons = [Beacon(step, chance) for step in STEPS]
    heard = []
    for beacon in beacons:
        for time in beacon.times(rider.end):
            rssi = beacon.rssi(time, rider)
            if rssi is not None:
                heard.append((time, report(beacon, vehicle, rssi)))
    out = b"btsnoop\0" + struct.pack(">II", 1, 1002)
    for time, packet in sorted(heard):
        out += struct.pack(">IIIIq", len(packet), len(packet), 3, 0, EPOCH + round(time * 1e6)) + packet
    return out


def zone(metres):
    """As the manual has it."""
    return "immediate" if metres < 0.5 else "near" if metres <= 3 else "far"


def way(a, b):
    """Metres from a to b, around the vehicle where it stands between them: as radio comes, and as people go."""
    if not crosses_vehicle(a, b):
        return math.dist(a, b)
    sides = [math.copysign(HALF_WIDTH, x) for x, _ in (a, b)]
    ends = [[a, (sides[0], y), (sides[1], y), b] for y in (-HALF_LENGTH, HALF_LENGTH)]
    return min(sum(map(math.dist, corners, corners[1:])) for corners in ends)


def untrue(side, stop, lines):
    """The lines of `stepctl locate --watch` that give a step another zone than the one in which the rider is."""
    rider, wrong = Rider(side, stop), []
    for line in lines:
        words = line.split()
        place, _ = rider.at(float(words[0]))
        for index, word in enumerate(words):
            if word.lstrip("*~") in STEPS and words[index + 1] in ("immediate", "near", "far"):
                if words[index + 1] != zone(way(place, STEPS[word.lstrip("*~")][1])):
                    wrong.append(line.rstrip())
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Write a capture of a rider who walks up to a step.")
    parser.add_argument("--uuid", type=uuid.UUID, help="the vehicle's")
    parser.add_argument("--vehicle", help="a vehicle.toml, which has the UUID")
    parser.add_argument("--side", choices=STEPS, default="left", help="where the rider goes (default: left)")
    parser.add_argument("--stop", type=float, default=0.6, help="metres in front of the step (default: 0.6)")
    parser.add_argument("--seed", type=int, default=1, help="another one makes another walk (default: 1)")
    parser.add_argument("--out", help="the capture (default: standard output)")
    parser.add_argument(
        "--check", action="store_true", help="instead: read lines of `locate --watch`, and say which zones are not true"
    )
    options = parser.parse_args()
    if options.check:
        wrong = untrue(options.side, options.stop, sys.stdin)
        sys.exit("\n".join(["these zones are not true:", *wrong]) if wrong else 0)
    if options.vehicle:
        with open(options.vehicle, "rb") as file:
            options.uuid = uuid.UUID(tomllib.load(file)["uuid"])
    if options.uuid is None:
        parser.error("--uuid is missing, and --vehicle too")
    capture = walk(options.uuid, options.side, options.stop, options.seed)
    if options.out:
        with open(options.out, "wb") as file:
            file.write(capture)
    else:
        sys.stdout.buffer.write(capture)


if __name__ == "__main__":
    main()
