#!/usr/bin/env python3
"""Makes the captures here that are not recordings: `python3 make.py corners > corners.btsnoop`,
`python3 make.py hcidump < hcidump.raw > raspberry-pi.btsnoop`."""
import struct
import sys

RECEIVED_EVENT = 3
# 2026-01-01T00:00:00Z; btsnoop counts microseconds from the year 0.
TIME = 0x00DCDDB30F2F8000 + 1_767_225_600_000_000


def header(data_link=1002):
    return b"btsnoop\0" + struct.pack(">II", 1, data_link)


def record(packet, time, flags=RECEIVED_EVENT, kept=None):
    """One packet, of which only the first `kept` bytes were recorded."""
    included = packet[:kept]
    return struct.pack(">IIIIq", len(packet), len(included), flags, 0, TIME + time) + included


def beacon(major, minor, before=b"\x02\x01\x06", after=b""):
    uuid = bytes.fromhex("5f3c1c0e7a0b4f579a551f0f6c1b2a90")
    return before + b"\x1a\xff\x4c\x00\x02\x15" + uuid + struct.pack(">HHb", major, minor, -59) + after


def legacy(*reports):
    body = b"".join(
        bytes([3, 1]) + bytes([n, 0, 0, 0, 0, 0xC0]) + bytes([len(data)]) + data + struct.pack("b", rssi)
        for n, data, rssi in reports)
    return event(0x02, len(reports), body)


def extended(*reports, kind=0x0010):
    body = b"".join(
        struct.pack("<HB", kind, 1) + bytes([n, 0, 0, 0, 0, 0xC0]) + bytes([1, 0, 0xFF, 127]) + struct.pack("b", rssi)
        + bytes(9) + bytes([len(data)]) + data
        for n, data, rssi in reports)
    return event(0x0D, len(reports), body)


def event(subevent, count, body):
    return bytes([0x04, 0x3E, len(body) + 2, subevent, count]) + body


def corners():
    """Everything that a controller may do with a beacon's frame and that is easy to get wrong."""
    packets = [
        bytes.fromhex("01030c00"),  # a command: Reset
        bytes.fromhex("040e0401030c00"),  # its answer
        legacy((1, beacon(1, 7), -61)),
        extended((1, beacon(1, 7), -61)),
        legacy((1, beacon(1, 8), -61), (2, beacon(2, 9), -72), (3, beacon(3, 10), -128 + 1)),
        extended((1, beacon(1, 8), -61), (2, beacon(2, 9), -72), (3, beacon(3, 10), -1)),
        legacy((4, beacon(0, 65535), 127)),  # no RSSI
        extended((4, beacon(65535, 0), 127)),
        extended((5, beacon(5, 5), 0)),  # RSSI that cannot be
        extended((5, beacon(5, 5), 20)),
        legacy((6, beacon(6, 1, before=b""), -80)),  # no Flags
        legacy((6, beacon(6, 2, before=b"", after=b"\x02\x01\x06"), -80)),  # Flags behind
        extended((6, beacon(6, 3, before=b"\x05\x09Step\x03\x03\xaa\xfe"), -80), kind=0),
        legacy((7, b"\x02\x01\x06\x09\xff\x4c\x00\x10\x05\x01\x18\x44\x00", -50)),  # Apple, and no beacon
        legacy((7, b"", -50)),
        bytes.fromhex("02010003000000aa"),  # ACL data
    ]
    out = header()
    for index, packet in enumerate(packets):
        flags = {0x01: 2, 0x02: 1}.get(packet[0], RECEIVED_EVENT)
        out += record(packet, index * 100_000, flags)
    # A recording that keeps the first 64 bytes of a packet: the second report of two is cut.
    two = legacy((8, beacon(8, 1), -55), (9, beacon(9, 1), -56))
    out += record(two, len(packets) * 100_000, kept=64)
    return out


def hcidump():
    """The text of `hcidump --raw`: `>` begins an event; it has no times, so they come 1 ms apart."""
    events = []
    for line in sys.stdin:
        if line.startswith(">"):
            events.append(bytearray())
        if line.startswith((">", " ")) and events:
            events[-1] += bytes.fromhex(line.lstrip("> "))
    return header() + b"".join(record(bytes(packet), index * 1000) for index, packet in enumerate(events))


sys.stdout.buffer.write({"corners": corners, "hcidump": hcidump}[sys.argv[1]]())
