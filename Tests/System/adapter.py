"""A Bluetooth adapter at the end of a socket: it reports beacons at the levels that a test sets, while it scans."""

import random
import select
import socket
import struct
import threading
import time
from pathlib import Path

import captures

# Opcodes (Core 5.4, Vol 4, Part E, 7.3, 7.4, 7.8), and what is returned besides the status.
READ_LOCAL_FEATURES, LE_READ_LOCAL_FEATURES = 0x1003, 0x2003
LOW_ENERGY, NO_EXTENDED_ADVERTISING = (1 << 38).to_bytes(8, "little"), bytes(8)
SET_SCAN_ENABLE = 0x200C


class Adapter:
    """`h4:unix:` for one stepctl after the other. `levels` has the RSSI of each major, in dBm."""

    def __init__(self, path: Path, vehicle: str, levels: dict[int, int], rate: float = 50.0, spread: float = 0.0):
        self.radio = f"h4:unix:{path}"
        self.vehicle, self.levels, self.rate, self.spread = vehicle, levels, rate, spread
        self.scans = 0  # how many have begun
        self.sent = 0  # how often the beacons were reported
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._chance = random.Random(1)
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Adapter":
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self):
        while True:
            try:
                host, _ = self._listener.accept()
            except OSError:
                return
            with host:
                try:
                    self._serve(host)
                except ConnectionError:
                    pass

    def _serve(self, host: socket.socket):
        received, scans, due = b"", False, time.monotonic()
        while True:
            # No timeout of the socket's own: it would end the sending to a host that is slow, too.
            readable, _, _ = select.select([host], [], [], max(due - time.monotonic(), 0) if scans else None)
            if readable:
                chunk = host.recv(4096)
                if not chunk:
                    return
                received += chunk
            else:
                due += 1 / self.rate
                host.sendall(b"".join(self._report(major, level) for major, level in dict(self.levels).items()))
                self.sent += 1
            while len(received) >= 4 and len(received) >= 4 + received[3]:
                opcode, length = struct.unpack_from("<xHB", received)
                parameters, received = received[4 : 4 + length], received[4 + length :]
                results = {READ_LOCAL_FEATURES: LOW_ENERGY, LE_READ_LOCAL_FEATURES: NO_EXTENDED_ADVERTISING}
                answer = struct.pack("<BHB", 1, opcode, 0) + results.get(opcode, b"")
                host.sendall(b"\x04\x0e" + bytes([len(answer)]) + answer)
                if opcode == SET_SCAN_ENABLE:
                    scans, due = parameters[0] == 1, time.monotonic()
                    self.scans += scans

    def _report(self, major: int, level: int) -> bytes:
        rssi = round(level + self._chance.gauss(0, self.spread))
        return captures.reports(captures.frame(self.vehicle, major), rssi, major)
