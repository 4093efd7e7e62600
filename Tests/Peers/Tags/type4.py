"""An NFC Forum Type 4 Tag (T4T 2.0): an application with a capability container and an NDEF file."""

from isodep import IsoDepTag

SELECT, READ_BINARY, UPDATE_BINARY = 0xA4, 0xB0, 0xD6
NDEF_APPLICATION = bytes.fromhex("d2760000850101")
CONTAINER_FILE, NDEF_FILE = 0xE103, 0xE104

OK = b"\x90\x00"
WRONG_LENGTH, NOT_SATISFIED, NO_EF, NOT_FOUND, WRONG_P1P2, NO_SUCH_INS, NO_SUCH_CLASS = (
    bytes.fromhex(code) for code in ("6700", "6982", "6986", "6a82", "6b00", "6d00", "6e00")
)


class Type4(IsoDepTag):
    """`ndef` is what the NDEF file holds: two bytes of length, and the message."""

    def __init__(
        self,
        uid: bytes | None = None,
        image: bytes = b"",
        size: int = 1024,
        most_read: int = 0x3B,
        most_written: int = 0x34,
        writable: bool = True,
    ):
        self.ndef = bytearray(size)
        self.ndef[: len(image)] = image
        if len(self.ndef) != size:
            raise ValueError(f"{len(image)} bytes do not fit into {size}")
        self.deaf = False  # whether it acknowledges what is written to it, and stays as it is
        self.most_read, self.most_written, self.writable = most_read, most_written, writable
        super().__init__(uid or bytes.fromhex("04a1b2c3d4e580"))

    def another(self, uid: bytes) -> "Type4":
        return type(self)(uid, size=len(self.ndef))

    def content(self) -> bytes:
        return bytes(self.ndef)

    def container(self) -> bytes:
        sizes = self.most_read.to_bytes(2, "big") + self.most_written.to_bytes(2, "big")
        control = NDEF_FILE.to_bytes(2, "big") + len(self.ndef).to_bytes(2, "big")
        control += bytes([0x00, 0x00 if self.writable else 0xFF])
        return bytes.fromhex("000f20") + sizes + b"\x04\x06" + control

    def reset(self):
        super().reset()
        self._application, self._file = False, None

    def kind(self, data: bytes) -> str:
        command = self.pending(data)
        return {READ_BINARY: "read", UPDATE_BINARY: "write"}.get(command[1] if len(command) > 3 else None, "other")

    def tear(self, data: bytes, how: str):
        command = self.pending(data)
        new = command[5:]
        half = new[: len(new) // 2]
        torn = {"old": b"", "new": new, "half": half, "garbage": bytes(byte ^ 0xA5 for byte in new)}[how]
        if torn:
            self.apdu(command[:4] + bytes([len(torn)]) + torn)

    def apdu(self, command: bytes) -> bytes:
        if len(command) < 4:
            return WRONG_LENGTH
        if command[0] != 0x00:
            return NO_SUCH_CLASS
        p1p2, rest = int.from_bytes(command[2:4], "big"), command[4:]
        if command[1] == SELECT:
            return self.select(p1p2, rest[1 : 1 + rest[0]] if rest else b"")
        if command[1] == READ_BINARY:
            return self.read(p1p2, (rest[0] or 256) if rest else 256)
        if command[1] == UPDATE_BINARY:
            return self.update(p1p2, rest[1:]) if rest and rest[0] == len(rest) - 1 else WRONG_LENGTH
        return NO_SUCH_INS

    def select(self, p1p2: int, name: bytes) -> bytes:
        if p1p2 >> 8 == 0x04:
            if name != NDEF_APPLICATION:
                return NOT_FOUND
            self._application, self._file = True, None
            return OK
        if self._application and int.from_bytes(name, "big") in self.files():
            self._file = int.from_bytes(name, "big")
            return OK
        return NOT_FOUND

    def files(self) -> tuple[int, ...]:
        return CONTAINER_FILE, NDEF_FILE

    def read(self, offset: int, length: int) -> bytes:
        if self._file is None:
            return NO_EF
        content = self.container() if self._file == CONTAINER_FILE else bytes(self.ndef)
        if offset >= len(content):
            return WRONG_P1P2
        if length > self.most_read:
            return WRONG_LENGTH
        return content[offset : offset + length] + OK

    def update(self, offset: int, data: bytes) -> bytes:
        if self._file is None:
            return NO_EF
        if self._file != NDEF_FILE or not self.writable:
            return NOT_SATISFIED
        if len(data) > self.most_written:
            return WRONG_LENGTH
        if offset + len(data) > len(self.ndef):
            return WRONG_P1P2
        if not self.deaf or offset == 0:
            self.ndef[offset : offset + len(data)] = data
        return OK
