"""What all native commands of an NTAG 424 DNA have in common: modes, statuses, numbers, and secure messaging."""

import zlib
from dataclasses import dataclass

from aes import cbc, cmac, padded, short_mac, unpadded

FREE, NEVER = 0xE, 0xF  # access conditions besides the keys 0 to 4
PLAIN, MAC, FULL = 0, 1, 3  # communication modes

DONE, MORE = 0x00, 0xAF
ILLEGAL_COMMAND, INTEGRITY_ERROR, NO_SUCH_KEY, LENGTH_ERROR, PERMISSION_DENIED, PARAMETER_ERROR = (
    0x1C, 0x1E, 0x40, 0x7E, 0x9D, 0x9E,
)  # fmt: skip
AUTHENTICATION_ERROR, BOUNDARY_ERROR, FILE_NOT_FOUND = 0xAE, 0xBE, 0xF0


class Refused(Exception):
    """The status that is answered; it ends the session."""


def little(number: int, size: int) -> bytes:
    return number.to_bytes(size, "little")


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def key_checksum(key: bytes) -> bytes:
    """CRC32NK of ChangeKey: IEEE 802.3's, without the last inversion."""
    return little(zlib.crc32(key) ^ 0xFFFFFFFF, 4)


def session_keys(key: bytes, rnd_a: bytes, rnd_b: bytes) -> tuple[bytes, bytes]:
    """For encryption and for MACs (9.1.7)."""
    mixed = bytes(a ^ b for a, b in zip(rnd_a[2:8], rnd_b[:6]))
    context = b"\x00\x01\x00\x80" + rnd_a[:2] + mixed + rnd_b[6:] + rnd_a[8:]
    return cmac(key, b"\xa5\x5a" + context), cmac(key, b"\x5a\xa5" + context)


@dataclass
class Session:
    key: int  # its number
    encryption: bytes
    mac: bytes
    identifier: bytes
    counter: int = 0

    def iv(self, label: bytes) -> bytes:
        return cbc(self.encryption, label + self.identifier + little(self.counter, 2) + bytes(8))

    def seal(self, data: bytes) -> bytes:
        """Of an answer; the counter has been raised."""
        return cbc(self.encryption, padded(data), self.iv(b"\x5a\xa5")) if data else b""

    def open(self, data: bytes) -> bytes:
        if not data or len(data) % 16:
            raise Refused(LENGTH_ERROR)
        try:
            return unpadded(cbc(self.encryption, data, self.iv(b"\xa5\x5a"), decrypt=True))
        except ValueError:
            raise Refused(INTEGRITY_ERROR) from None

    def authenticator(self, code: int, data: bytes) -> bytes:
        return short_mac(self.mac, bytes([code]) + little(self.counter, 2) + self.identifier + data)
