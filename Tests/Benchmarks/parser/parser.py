#!/usr/bin/env python3
"""Advertising reports a second: stepctl's parser in Swift, one in C that is as strict, and beacontools in Python.

    parser.py --swift libParserBenchmark.so

All of them read the same events out of the same memory, in turn in each round, and have to find the same. What is
printed are medians over the rounds; take the ratios, which a busy machine disturbs less than the figures.

    STEPCTL_BENCH=1 swift build -c release --product ParserBenchmark     # builds the Swift one
"""

import argparse
import ctypes
import importlib.util
import os
import random
import statistics
import struct
import subprocess
import tempfile
import time
from array import array
from pathlib import Path

EVENTS = 4096  # of at most 260 bytes: they stay in the processor's second cache
PASSES, ROUNDS = 5, 201
COMPILERS = ("gcc", "clang")


class Totals(ctypes.Structure):
    """What was found: `struct totals` of parser.c."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("reports", "beacons", "whole", "torn", "fields")]

    def __eq__(self, other):
        return bytes(self) == bytes(other)

    def __repr__(self):
        return ", ".join(f"{name} {getattr(self, name)}" for name, _ in self._fields_)


def beacon(chance: random.Random, flags: bool = True) -> bytes:
    frame = b"\x1a\xff\x4c\x00\x02\x15" + chance.randbytes(20) + b"\xc5"
    return b"\x02\x01\x06" + frame if flags else frame


def other(chance: random.Random) -> bytes:
    """What else is in the air: Eddystone, a manufacturer's data, a name, nothing."""
    eddystone = b"\x02\x01\x06\x03\x03\xaa\xfe\x15\x16\xaa\xfe\x00\xeb" + chance.randbytes(18)
    nearby = b"\x02\x01\x1a\x0b\xff\x4c\x00\x10\x06" + chance.randbytes(6)
    return chance.choice([eddystone, nearby, b"\x05\x09step", b""])


def legacy(chance: random.Random, data: bytes) -> bytes:
    return b"\x03\x01" + chance.randbytes(6) + bytes([len(data)]) + data + bytes([chance.randrange(0xA0, 0xE0)])


def extended(chance: random.Random, data: bytes, kind: int = 0x10) -> bytes:
    before = bytes([kind, 0, 1]) + chance.randbytes(6) + b"\x01\x00\xff\x7f" + bytes([chance.randrange(0xA0, 0xE0)])
    return before + bytes(9) + bytes([len(data)]) + data


def event(subevent: int, *reports: bytes) -> bytes:
    body = bytes([subevent, len(reports)]) + b"".join(reports)
    return b"\x3e" + bytes([len(body)]) + body


def mixed(chance: random.Random) -> bytes:
    """As a controller among many devices has it, with some damage."""
    kind = chance.random()
    data = beacon(chance, flags=chance.random() < 0.7) if chance.random() < 0.5 else other(chance)
    if kind < 0.40:
        return event(0x02, legacy(chance, data))
    if kind < 0.80:
        return event(0x0D, extended(chance, data))
    if kind < 0.90:
        return event(0x02, *(legacy(chance, beacon(chance)) for _ in range(chance.randrange(2, 6))))
    if kind < 0.94:
        # In two fragments, of which neither is to be taken for a whole advertisement.
        first = extended(chance, chance.randbytes(99), kind=0x20)
        return event(0x0D, first, b"\x00" + first[1:23] + bytes([len(data)]) + data)
    if kind < 0.97:
        return event(0x02, legacy(chance, data))[: chance.randrange(4, 14)]
    return b"\x0e\x04\x01\x0c\x20\x00"  # Command Complete


WORKLOADS = {
    "iBeacons, legacy": lambda chance: event(0x02, legacy(chance, beacon(chance))),
    "iBeacons, extended": lambda chance: event(0x0D, extended(chance, beacon(chance))),
    "mixed": mixed,
}


class Workload:
    def __init__(self, make, seed: int = 1):
        chance = random.Random(seed)
        self.events = [make(chance) for _ in range(EVENTS)]
        joined = b"".join(self.events)
        offsets = array("I", [0])
        for each in self.events:
            offsets.append(offsets[-1] + len(each))
        self.bytes = ctypes.create_string_buffer(joined, len(joined))
        self.offsets = (ctypes.c_uint32 * len(offsets)).from_buffer(offsets)


def native(library: str, name: str):
    """A parser of one workload that returns what it found and how long that took, in seconds."""
    parse = getattr(ctypes.CDLL(library), name)
    parse.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    parse.restype = None

    def run(workload: Workload):
        totals = Totals()
        began = time.thread_time()
        for _ in range(PASSES):
            parse(workload.bytes, workload.offsets, EVENTS, ctypes.byref(totals))
        return totals, (time.thread_time() - began) / PASSES

    return run


def compiled(compiler: str, folder: str) -> str:
    library = f"{folder}/{compiler}.so"
    source = Path(__file__).with_name("parser.c")
    subprocess.run([compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def main():
    parser = argparse.ArgumentParser(description="Measure parsers of advertising reports beside each other.")
    parser.add_argument("--swift", required=True, help="libParserBenchmark.so")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parsers = {"Swift": native(options.swift, "parse_swift")}
        for compiler in COMPILERS:
            parsers[f"C ({compiler} -O2)"] = native(compiled(compiler, folder), "parse_c")
    for title, make in WORKLOADS.items():
        workload = Workload(make)
        found = {who: parse(workload)[0] for who, parse in parsers.items()}
        expected = found["Swift"]
        for who, totals in found.items():
            if totals != expected:
                raise SystemExit(f"{title}: {who} found {totals}, and Swift {expected}")
        rounds = [{who: parse(workload)[1] for who, parse in parsers.items()} for _ in range(ROUNDS)]
        print(f"\n{title}: {EVENTS} events, {expected!r}")
        for who in parsers:
            seconds = statistics.median(each[who] for each in rounds)
            ratio = statistics.median(each[who] / each["Swift"] for each in rounds)
            print(f"  {who:16}{expected.reports / seconds / 1e6:8.1f} M reports/s   Swift {ratio:.2f} x")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
