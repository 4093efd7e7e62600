#!/usr/bin/env python3
"""Advertising reports a second: stepctl's parser in Swift, one in C that is as strict, and two in Python.

    parser.py --swift .build/release/libParserBenchmark.so

All read the same events out of the same memory, in turn, many times over, and have to find the same. Printed are the
medians, and the median of the ratios of a round: these are what to look at, since a busy machine disturbs them less.
Of Python's two, one is what a Swift or C programmer would write there, and the other has beacontools (PyPI) look for
the iBeacon; it is left out where that is not installed.
"""

import argparse
import ctypes
import importlib.util
import os
import random
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from array import array
from pathlib import Path

EVENTS = 4096  # of at most 257 bytes: they stay in the processor's second cache
ROUNDS = 201
COMPILERS = ("gcc", "clang")


class Totals(ctypes.Structure):
    """What was found: `struct totals` of parser.c."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("reports", "beacons", "whole", "torn", "fields")]

    def __repr__(self):
        return ", ".join(f"{getattr(self, name)} {name}" for name, _ in self._fields_[:-1]) + f", sum {self.fields:x}"


# --- What is read ---


def beacon(chance: random.Random, flags: bool = True) -> bytes:
    frame = b"\x1a\xff\x4c\x00\x02\x15" + chance.randbytes(20) + b"\xc5"
    return b"\x02\x01\x06" + frame if flags else frame


def other(chance: random.Random) -> bytes:
    """What else is in the air: Eddystone, a phone nearby, a name, nothing."""
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
        # In two fragments, neither of which is an advertisement by itself.
        first = extended(chance, chance.randbytes(99), kind=0x20)
        return event(0x0D, first, b"\x00" + first[1:23] + bytes([len(data)]) + data)
    if kind < 0.97:
        return event(0x02, legacy(chance, data))[: chance.randrange(4, 14)]
    return b"\x0e\x04\x01\x0c\x20\x00"  # Command Complete


WORKLOADS = {
    "an iBeacon each, legacy reports": lambda chance: event(0x02, legacy(chance, beacon(chance))),
    "an iBeacon each, extended reports": lambda chance: event(0x0D, extended(chance, beacon(chance))),
    "mixed": mixed,
}


class Workload:
    def __init__(self, make):
        chance = random.Random(1)
        self.events = [make(chance) for _ in range(EVENTS)]
        offsets = array("I", [0])
        for each in self.events:
            offsets.append(offsets[-1] + len(each))
        self.offsets = (ctypes.c_uint32 * len(offsets)).from_buffer(offsets)
        self.bytes = ctypes.create_string_buffer(b"".join(self.events), offsets[-1])


# --- What reads: each returns what it found ---


def native(library: str, name: str):
    parse = getattr(ctypes.CDLL(library), name)
    parse.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    parse.restype = None

    def run(workload: Workload) -> Totals:
        totals = Totals()
        parse(workload.bytes, workload.offsets, EVENTS, ctypes.byref(totals))
        return totals

    return run


def compiled(compiler: str, folder: str) -> str:
    library = f"{folder}/{compiler}.so"
    source = Path(__file__).with_name("parser.c")
    subprocess.run(
        [compiler, "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", source, "-o", library], check=True
    )
    return library


_BEACON = struct.Struct(">QQHHb")


def found_by_struct(data: bytes):
    at = 0
    while at < len(data):
        length = data[at]
        if length == 0 or at + 1 + length > len(data):
            return None
        if length == 26 and data[at + 1 : at + 6] == b"\xff\x4c\x00\x02\x15":
            return _BEACON.unpack_from(data, at + 6)
        at += 1 + length
    return None


def found_by_beacontools(data: bytes):
    import beacontools

    found = beacontools.parse_packet(data)
    if not isinstance(found, beacontools.IBeaconAdvertisement):
        return None
    number = int(found.uuid.replace("-", ""), 16)
    return number >> 64, number & (1 << 64) - 1, found.major, found.minor, found.tx_power


class InPython:
    """parser.c, in Python."""

    def __init__(self, find):
        self.find = find

    def __call__(self, workload: Workload) -> Totals:
        self.totals, self.unfinished = Totals(), set()
        for each in workload.events:
            self.event(each)
        return self.totals

    def event(self, event: bytes):
        if len(event) < 4 or event[0] != 0x3E or event[2] not in (0x02, 0x0D):
            return
        length, left = 2 + event[1], event[3]
        reports = event[4:length]
        while left > 0 and reports is not None:
            reports = self.legacy(reports) if event[2] == 0x02 else self.extended(reports)
            left -= 1
        if reports == b"" and length == len(event) and event[3] > 0:
            self.totals.whole += 1
        else:
            self.totals.torn += 1

    def legacy(self, reports: bytes) -> bytes | None:
        if len(reports) < 10 or reports[8] > 31 or len(reports) < 10 + reports[8]:
            return None
        end = 9 + reports[8]
        self.report(reports[2:8], reports[end], reports[9:end])
        return reports[end + 1 :]

    def extended(self, reports: bytes) -> bytes | None:
        if len(reports) < 24 or len(reports) < 24 + reports[23]:
            return None
        end = 24 + reports[23]
        status = reports[0] >> 5 & 3
        advertiser = reports[2:9], reports[11]
        if status == 1:
            if len(self.unfinished) < 32:
                self.unfinished.add(advertiser)
        elif advertiser in self.unfinished:
            self.unfinished.remove(advertiser)
        else:
            self.report(reports[3:9], reports[13], reports[24:end])
        return reports[end:]

    def report(self, address: bytes, rssi: int, data: bytes):
        self.totals.reports += 1
        self.totals.fields += int.from_bytes(address, "little") ^ (rssi - 256 if rssi > 128 else 1)
        found = self.find(data)
        if found:
            high, low, major, minor, power = found
            self.totals.beacons += 1
            self.totals.fields += high ^ low ^ (major << 16 | minor) ^ power


# --- How long it takes ---


def seconds(parse, workload: Workload) -> float:
    began = time.thread_time()
    parse(workload)
    return time.thread_time() - began


def main():
    parser = argparse.ArgumentParser(description="Measure parsers of advertising reports beside each other.")
    parser.add_argument("--swift", required=True, help="libParserBenchmark.so")
    options = parser.parse_args()
    parsers = {"Swift": native(options.swift, "parse_swift")}
    every = {}  # the slow ones run in every so manieth round only
    with tempfile.TemporaryDirectory() as folder:
        for compiler in filter(shutil.which, COMPILERS):
            parsers[f"C, {compiler} -O2"] = native(compiled(compiler, folder), "parse_c")
    parsers["Python"], every["Python"] = InPython(found_by_struct), ROUNDS // 10
    if importlib.util.find_spec("beacontools"):
        parsers["beacontools"], every["beacontools"] = InPython(found_by_beacontools), ROUNDS // 2
    else:
        print("beacontools is not installed: left out")

    for title, make in WORKLOADS.items():
        workload = Workload(make)
        expected = parsers["Swift"](workload)
        for who, parse in parsers.items():
            if bytes(found := parse(workload)) != bytes(expected):
                raise SystemExit(f"{title}: {who} found {found}; Swift {expected}")
        times = {who: [] for who in parsers}
        ratios = {who: [] for who in parsers}
        for number in range(ROUNDS):
            turn = {who: seconds(parsers[who], workload) for who in parsers if number % every.get(who, 1) == 0}
            for who in turn:
                times[who].append(turn[who])
                ratios[who].append(turn[who] / turn["Swift"])
        print(f"\n{title}: {EVENTS} events, {expected}")
        for who in parsers:
            rate = expected.reports / statistics.median(times[who]) / 1e6
            print(f"  {who:14} {rate:9.3f} M reports/s    Swift is {statistics.median(ratios[who]):.2f} times as fast")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
