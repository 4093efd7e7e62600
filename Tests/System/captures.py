"""Recordings of what a rider's phone hears: btsnoop files of legacy LE Advertising Reports, one frame each."""

import struct
import uuid
from pathlib import Path

MEASURED_POWER = -59  # dBm at 1 m
HERE, AWAY = -50, -80  # dBm: within half a metre of the step, and behind the body of the vehicle
BEGIN = 1_767_225_600.0  # 2026-01-01T00:00:00Z
_YEAR_0 = 0x00DCDDB30F2F8000  # from which btsnoop counts microseconds
HEADER = b"btsnoop\0" + struct.pack(">II", 1, 1002)  # version 1, H4

# A vehicle that stands for its beacons, and a vehicle file with what it takes to locate oneself and no more.
VEHICLE = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
VEHICLE_FILE = f"""\
name = "Rolling Chassis"
uuid = "{VEHICLE}"
steps = [{{ id = "left", side = "left", major = 1 }}, {{ id = "right", side = "right", major = 2 }}]
"""
# Of the same vehicle; comments, order and blanks are the owner's.
OWNERS_FILE = f"""\
# Ours since 2019.
uuid = "{VEHICLE}"
name = "Van"

[[steps]]
  id = "left"   # the driver's
  side = "left"
  major = 1     # blue

[[steps]]
id = "right"
side = "right"
major = 2
measured_power = -59 # a guess
"""


def frame(vehicle: str, major: int, minor: int = 1) -> bytes:
    """The AD structures of an iBeacon."""
    numbers = struct.pack(">HHb", major, minor, MEASURED_POWER)
    return b"\x02\x01\x06\x1a\xff\x4c\x00\x02\x15" + uuid.UUID(vehicle).bytes + numbers


def reports(data: bytes, rssi: int, major: int, claimed: int = 1) -> bytes:
    """An H4 packet: an LE Advertising Report event (Core 5.4, Vol 4, Part E, 7.7.65.2) that claims so many reports."""
    address = bytes([major & 0xFF, 2, 3, 4, 5, 0xC6])
    body = bytes([0x02, claimed, 0x03, 0x01]) + address + bytes([len(data)]) + data + struct.pack("b", rssi)
    return event(body)


def event(body: bytes) -> bytes:
    return b"\x04\x3e" + bytes([len(body)]) + body


def record(packet: bytes, time: float) -> bytes:
    """A record at so many seconds after the beginning."""
    microseconds = _YEAR_0 + round((BEGIN + time) * 1e6)
    return struct.pack(">IIIIq", len(packet), len(packet), 3, 0, microseconds) + packet


def heard(
    vehicle: str, levels: dict[int, int], begin: float = 0.0, seconds: float = 2.0, minor: int = 1
) -> bytes:
    """Records of beacons at 10 Hz each, by their majors and RSSI in dBm."""
    packets = []
    for index, (major, rssi) in enumerate(levels.items()):
        packet = reports(frame(vehicle, major, minor), rssi, major)
        packets += [(begin + tick / 10 + index / 100, packet) for tick in range(round(seconds * 10))]
    return b"".join(record(packet, time) for time, packet in sorted(packets))


def at_the_left(vehicle: str) -> bytes:
    return HEADER + heard(vehicle, {1: HERE, 2: AWAY})


def at_the_right(vehicle: str) -> bytes:
    return HEADER + heard(vehicle, {1: AWAY, 2: HERE})


def between(vehicle: str) -> bytes:
    return HEADER + heard(vehicle, {1: -70, 2: -70})


def written(path: Path, content: bytes) -> str:
    """The radio that plays it."""
    path.write_bytes(content)
    return f"btsnoop:{path}"
