"""NTAG 424 DNA: authentication, secure messaging and secure dynamic messages, with AES (NT4H2421Gx, Rev. 3.0).

Its examples are in AN12196; numbers are least significant byte first, unless a command of ISO/IEC 7816-4 has them.
"""

import os
from dataclasses import dataclass, replace

from aes import cbc
from isodep import IsoDepTag
from native import (
    AUTHENTICATION_ERROR,
    BOUNDARY_ERROR,
    DONE,
    FILE_NOT_FOUND,
    FREE,
    FULL,
    ILLEGAL_COMMAND,
    INTEGRITY_ERROR,
    LENGTH_ERROR,
    MAC,
    MORE,
    NO_SUCH_KEY,
    PARAMETER_ERROR,
    PERMISSION_DENIED,
    PLAIN,
    Refused,
    Session,
    key_checksum,
    little,
    number,
    session_keys,
)
from sdm import Mirror
from type4 import (
    NDEF_APPLICATION,
    NO_EF,
    NO_SUCH_CLASS,
    NO_SUCH_INS,
    NOT_FOUND,
    NOT_SATISFIED,
    OK,
    READ_BINARY,
    SELECT,
    UPDATE_BINARY,
    WRONG_LENGTH,
    WRONG_P1P2,
)


@dataclass
class File:
    identifier: int
    data: bytearray
    mode: int
    rights: int  # read, write, both, and changing the settings: four bits each, from the top
    mirror: Mirror | None = None

    @property
    def read(self) -> tuple[int, int]:
        return self.rights >> 12, self.rights >> 4 & 0xF

    @property
    def write(self) -> tuple[int, int]:
        return self.rights >> 8 & 0xF, self.rights >> 4 & 0xF

    @property
    def change(self) -> int:
        return self.rights & 0xF


def factory_files() -> dict[int, File]:
    container = bytes.fromhex("001720010000ff0406e10401000000 0506e10500808283").ljust(32, b"\0")
    return {
        1: File(0xE103, bytearray(container), PLAIN, 0xE000),
        2: File(0xE104, bytearray(256), PLAIN, 0xEEE0),
        3: File(0xE105, bytearray(128), FULL, 0x2330),
    }


@dataclass
class Challenge:
    """The first half of an authentication."""

    code: int
    key: int
    rnd_b: bytes
    capabilities: bytes


class NTAG424(IsoDepTag):
    """`random` gives random bytes: tests that replay examples give their own."""

    atqa = b"\x44\x03"
    ats = bytes.fromhex("067777710280")

    def __init__(self, uid: bytes | None = None, image: bytes = b"", random=os.urandom):
        self.random = random
        self.keys = [bytes(16)] * 5
        self.key_versions = [0] * 5
        self.files = factory_files()
        self.read_counter = 0
        self.files[2].data[: len(image)] = image
        if len(self.files[2].data) != 256:
            raise ValueError(f"{len(image)} bytes do not fit into 256")
        super().__init__(uid or bytes.fromhex("04de5f1eacc040"))

    def another(self, uid: bytes) -> "NTAG424":
        return NTAG424(uid)

    def content(self) -> bytes:
        return bytes(self.files[2].data)

    def reset(self):
        super().reset()
        self._selected = False
        self._file: File | None = None
        self._session: Session | None = None
        self._challenge: Challenge | None = None
        self._version: list[bytes] = []
        # The file with everything mirrored, while reads with one command follow one another.
        self._message: bytes | None = None
        self._reading = 0

    def kind(self, data: bytes) -> str:
        kinds = {READ_BINARY: "read", 0xAD: "read", UPDATE_BINARY: "write", 0x8D: "write"}
        command = self.pending(data)
        return kinds.get(command[1] if len(command) > 3 else None, "other")

    def tear(self, data: bytes, how: str):
        """It writes all of a command or nothing (8.2.3)."""
        if how == "new":
            self.apdu(self.pending(data))

    def apdu(self, command: bytes) -> bytes:
        if len(command) < 4 or (len(command) > 5 and command[4] + 5 not in (len(command), len(command) - 1)):
            return WRONG_LENGTH
        code, data = command[1], command[5 : 5 + command[4]] if len(command) > 5 else b""
        if code != self._reading:
            self._reading, self._message = code, None
        if command[0] == 0x00:
            return self._standard(code, number(command[3:1:-1]), data, (command[4] or 256) if command[4:] else 256)
        if command[0] != 0x90:
            return NO_SUCH_CLASS
        try:
            status, answer = self._native(code, data)
        except Refused as refusal:
            self._session = self._challenge = None
            self._version = []
            status, answer = refusal.args[0], b""
        return answer + bytes([0x91, status])

    # ISO/IEC 7816-4 (10.9).

    def _standard(self, code: int, p1p2: int, data: bytes, length: int) -> bytes:
        if code == SELECT:
            return self._select(p1p2 >> 8, data)
        if code not in (READ_BINARY, UPDATE_BINARY):
            return NO_SUCH_INS
        if self._file is None:
            return NO_EF
        if p1p2 >= len(self._file.data):
            return WRONG_P1P2
        if code == READ_BINARY:
            if FREE not in self._file.read:
                return NOT_SATISFIED
            try:
                return self._shown(self._file)[p1p2 : p1p2 + length] + OK
            except Refused:
                return NOT_SATISFIED
        if FREE not in self._file.write:
            return NOT_SATISFIED
        if p1p2 + len(data) > len(self._file.data):
            return WRONG_P1P2
        self._file.data[p1p2 : p1p2 + len(data)] = data
        return OK

    def _select(self, how: int, name: bytes) -> bytes:
        self._session = None
        if how == 0x04:
            if name != NDEF_APPLICATION:
                return NOT_FOUND
            self._selected, self._file = True, None
            return OK
        found = [file for file in self.files.values() if file.identifier.to_bytes(2, "big") == name]
        if not self._selected or not found:
            return NOT_FOUND
        self._file = found[0]
        return OK

    # Secure dynamic messages (9.3).

    def _shown(self, file: File) -> bytes:
        """The file as it is read. Without authentication its counter rises with the first of several reads that nothing
        comes between, and all of them see one message (9.3.1)."""
        if not file.mirror or self._session:
            return bytes(file.data)
        if self._message is None:
            if self.read_counter >= (0xFFFFFF if file.mirror.limit is None else file.mirror.limit):
                raise Refused(PERMISSION_DENIED)
            self.read_counter += 1
            self._message = file.mirror.shown(bytes(file.data), self.uid, self.read_counter, self.keys, self.random)
        return self._message

    # Native commands in ISO/IEC 7816-4's wrapping (8.4).

    def _native(self, code: int, data: bytes) -> tuple[int, bytes]:
        if not self._selected:
            raise Refused(ILLEGAL_COMMAND)
        challenge, self._challenge = self._challenge, None
        if code == MORE:
            if challenge:
                return self._prove(challenge, data)
            if self._version:
                return self._next_version()
            raise Refused(ILLEGAL_COMMAND)
        self._version = []
        handlers = {
            0x71: self._authenticate, 0x77: self._authenticate, 0x60: self._get_version, 0x51: self._get_card_uid,
            0x64: self._get_key_version, 0xC4: self._change_key, 0xF5: self._get_file_settings,
            0xF6: self._get_counter, 0x5F: self._change_file_settings, 0xAD: self._read_data, 0x8D: self._write_data,
        }  # fmt: skip
        if code not in handlers:
            raise Refused(ILLEGAL_COMMAND)
        return handlers[code](code, data)

    def _heard(self, code: int, data: bytes, header: int, mode: int) -> tuple[bytes, bytes]:
        """A command's header, and its data as they were meant, after secure messaging (9.1.8 to 9.1.10)."""
        session = self._session
        if session and mode != PLAIN:
            data, proof = data[:-8], data[-8:]
            if proof != session.authenticator(code, data):
                raise Refused(INTEGRITY_ERROR)
        if len(data) < header:
            raise Refused(LENGTH_ERROR)
        head, rest = data[:header], data[header:]
        return head, session.open(rest) if session and mode == FULL and rest else rest

    def _said(self, data: bytes, mode: int) -> tuple[int, bytes]:
        session = self._session
        if session:
            session.counter += 1
            if mode == FULL:
                data = session.seal(data)
            if mode != PLAIN:
                data += session.authenticator(DONE, data)
        return DONE, data

    def _authenticate(self, code: int, data: bytes) -> tuple[int, bytes]:
        """AuthenticateEV2First and AuthenticateEV2NonFirst (10.4)."""
        if not data or (code == 0x71 and (len(data) < 2 or data[1] > 6 or len(data) != 2 + data[1])):
            raise Refused(LENGTH_ERROR)
        if data[0] > 4:
            raise Refused(NO_SUCH_KEY)
        if code == 0x77 and not self._session:
            raise Refused(ILLEGAL_COMMAND)
        rnd_b = self.random(16)
        self._challenge = Challenge(code, data[0], rnd_b, data[2:].ljust(6, b"\0"))
        return MORE, cbc(self.keys[data[0]], rnd_b)

    def _prove(self, challenge: Challenge, data: bytes) -> tuple[int, bytes]:
        key = self.keys[challenge.key]
        if len(data) != 32:
            raise Refused(LENGTH_ERROR)
        plain = cbc(key, data, decrypt=True)
        rnd_a, rnd_b = plain[:16], challenge.rnd_b
        if plain[16:] != rnd_b[1:] + rnd_b[:1]:
            raise Refused(AUTHENTICATION_ERROR)
        turned = rnd_a[1:] + rnd_a[:1]
        keys = session_keys(key, rnd_a, rnd_b)
        if challenge.code == 0x77:
            self._session = replace(self._session, key=challenge.key, encryption=keys[0], mac=keys[1])
            return DONE, cbc(key, turned)
        self._session = Session(challenge.key, *keys, self.random(4))
        return DONE, cbc(key, self._session.identifier + turned + bytes(6) + challenge.capabilities)

    def _get_version(self, code: int, data: bytes) -> tuple[int, bytes]:
        self._heard(code, data, 0, MAC)
        hardware, software = bytes.fromhex("04040230001105"), bytes.fromhex("04040201021105")
        production = self.uid + bytes.fromhex("cf39d449902017")
        self._version = [hardware, software, production]
        self._whole_version = b"".join(self._version)
        return self._next_version()

    def _next_version(self) -> tuple[int, bytes]:
        part = self._version.pop(0)
        if self._version:
            return MORE, part
        # The MAC is of all three parts.
        _, whole = self._said(self._whole_version, MAC)
        return DONE, part + whole[len(self._whole_version) :]

    def _get_card_uid(self, code: int, data: bytes) -> tuple[int, bytes]:
        if not self._session:
            raise Refused(AUTHENTICATION_ERROR)
        self._heard(code, data, 0, MAC)
        return self._said(self.uid, FULL)

    def _get_key_version(self, code: int, data: bytes) -> tuple[int, bytes]:
        head, _ = self._heard(code, data, 1, MAC)
        if head[0] > 4:
            raise Refused(NO_SUCH_KEY)
        return self._said(bytes([self.key_versions[head[0]]]), MAC)

    def _change_key(self, code: int, data: bytes) -> tuple[int, bytes]:
        if not self._session or self._session.key != 0:
            raise Refused(AUTHENTICATION_ERROR)
        head, plain = self._heard(code, data, 1, FULL)
        which = head[0]
        if which > 4:
            raise Refused(NO_SUCH_KEY)
        if len(plain) != (17 if which == 0 else 21):
            raise Refused(LENGTH_ERROR)
        new = plain[:16]
        if which != 0:
            new = bytes(a ^ b for a, b in zip(new, self.keys[which]))
            if plain[17:] != key_checksum(new):
                raise Refused(INTEGRITY_ERROR)
        self.keys[which], self.key_versions[which] = new, plain[16]
        if which == 0:  # it was the session's own
            self._session = None
        return self._said(b"", FULL)

    def _file_numbered(self, which: int) -> File:
        if which not in self.files:
            raise Refused(FILE_NOT_FOUND)
        return self.files[which]

    def _permit(self, *conditions: int):
        own = self._session.key if self._session else None
        if FREE not in conditions and own not in conditions:
            raise Refused(PERMISSION_DENIED if self._session else AUTHENTICATION_ERROR)

    def _get_file_settings(self, code: int, data: bytes) -> tuple[int, bytes]:
        head, _ = self._heard(code, data, 1, MAC)
        file = self._file_numbered(head[0])
        option = file.mode | (0x40 if file.mirror else 0)
        settings = bytes([0, option]) + little(file.rights, 2) + little(len(file.data), 3)
        return self._said(settings + (file.mirror.encode() if file.mirror else b""), MAC)

    def _change_file_settings(self, code: int, data: bytes) -> tuple[int, bytes]:
        head, plain = self._heard(code, data, 1, FULL)
        file = self._file_numbered(head[0])
        self._permit(file.change)
        if len(plain) < 3:
            raise Refused(LENGTH_ERROR)
        if plain[0] & ~0x43 or (plain[0] & 0x40 and head[0] != 2):
            raise Refused(PARAMETER_ERROR)
        mirror = Mirror.parse(plain[3:], len(file.data)) if plain[0] & 0x40 else None
        if not mirror and len(plain) != 3:
            raise Refused(LENGTH_ERROR)
        if mirror and not file.mirror:
            self.read_counter = 0
        file.mode, file.rights, file.mirror = plain[0] & 0x03, number(plain[1:3]), mirror
        return self._said(b"", FULL)

    def _get_counter(self, code: int, data: bytes) -> tuple[int, bytes]:
        head, _ = self._heard(code, data, 1, MAC)
        file = self._file_numbered(head[0])
        if not file.mirror:
            raise Refused(PARAMETER_ERROR)
        self._permit(file.mirror.counter_read)
        return self._said(little(self.read_counter, 3) + bytes(2), FULL)

    def _mode(self, which: int, conditions: tuple[int, ...]) -> int:
        """Of reading or writing: what is free to all is plain (8.2.3.5)."""
        own = self._session.key if self._session else None
        return self._file_numbered(which).mode if own in conditions else PLAIN

    def _read_data(self, code: int, data: bytes) -> tuple[int, bytes]:
        file = self._file_numbered(data[0] if data else -1)
        mode = self._mode(data[0], file.read)
        head, _ = self._heard(code, data, 7, MAC if mode else PLAIN)
        self._permit(*file.read)
        offset, length = number(head[1:4]), number(head[4:7])
        if offset + length > len(file.data):
            raise Refused(BOUNDARY_ERROR)
        return self._said(self._shown(file)[offset : offset + length if length else None], mode)

    def _write_data(self, code: int, data: bytes) -> tuple[int, bytes]:
        file = self._file_numbered(data[0] if data else -1)
        mode = self._mode(data[0], file.write)
        head, new = self._heard(code, data, 7, mode)
        self._permit(*file.write)
        offset, length = number(head[1:4]), number(head[4:7])
        if length != len(new):
            raise Refused(LENGTH_ERROR)
        if offset + length > len(file.data):
            raise Refused(BOUNDARY_ERROR)
        file.data[offset : offset + length] = new
        return self._said(b"", mode)
