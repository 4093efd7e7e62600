"""What every Type A tag does before its own commands: anticollision, selection, HLTA (ISO/IEC 14443-3)."""

REQA, WUPA = b"\x26", b"\x52"  # short frames of 7 bits
CASCADE_TAG = 0x88

# What a tag answers: a frame, four bits (Type 2's ACK and NAK), or nothing.
Answer = bytes | int | None


def crc_a(data: bytes) -> bytes:
    crc = 0x6363
    for byte in data:
        byte ^= crc & 0xFF
        byte = (byte ^ byte << 4) & 0xFF
        crc = crc >> 8 ^ byte << 8 ^ byte << 3 ^ byte >> 4
    return crc.to_bytes(2, "little")


def levels(uid: bytes) -> list[bytes]:
    """The four bytes and their check byte that each cascade level sends."""
    parts = [uid[:4]] if len(uid) == 4 else [bytes([CASCADE_TAG]) + uid[:3], uid[3:]]
    return [part + bytes([part[0] ^ part[1] ^ part[2] ^ part[3]]) for part in parts]


class Tag:
    """A tag in the field; subclasses answer `command`, and say what kind of command one is with `kind`."""

    atqa = b"\x44\x00"  # as it is sent, low byte first
    sak = 0x00
    write_time = 0.0041  # of one page, in seconds: EEPROM is slow

    def __init__(self, uid: bytes):
        self.uid = uid
        self.field_off()

    def field_off(self):
        """Loses everything that a session had: selection, authentication."""
        self.state, self._level, self._halts = "idle", 0, False
        self.reset()

    def reset(self):
        """Forgets what selection ends: subclasses add to it."""

    def command(self, data: bytes) -> Answer:
        raise NotImplementedError

    def kind(self, data: bytes) -> str:
        """`read`, `write`, or `other`."""
        raise NotImplementedError

    def tear(self, data: bytes, how: str):
        """Does a write as far as the power lasted: `old`, `new`, `half` or `garbage` is what it leaves."""
        raise NotImplementedError

    def content(self) -> bytes:
        """What is stored, as --save writes it."""
        raise NotImplementedError

    def drop(self):
        """Back to where it was before it was selected, as after a NAK."""
        self.state, self._level = "halt" if self._halts else "idle", 0
        self.reset()

    def receive(self, frame: bytes, bits: int = 8) -> Answer:
        if bits == 7:
            wakes = frame == WUPA or (frame == REQA and self.state == "idle")
            if self.state in ("ready", "active") or not wakes:
                self.drop()
                return None
            self._halts = self.state == "halt"
            self.state, self._level = "ready", 0
            return self.atqa
        if self.state == "ready":
            return self._anticollision(frame)
        if self.state != "active":
            return None
        data = frame[:-2]
        if len(frame) < 3 or crc_a(data) != frame[-2:]:
            return self.bad_frame()
        if data == b"\x50\x00":
            self.state, self._halts = "halt", True
            self.reset()
            return None
        answer = self.command(data)
        return answer + crc_a(answer) if isinstance(answer, bytes) else answer

    def bad_frame(self) -> Answer:
        self.drop()
        return None

    def _anticollision(self, frame: bytes) -> Answer:
        parts = levels(self.uid)
        if frame[:1] == bytes([0x93 + 2 * self._level]):
            part = parts[self._level]
            if frame[1:] == b"\x20":
                return part
            if frame[1:2] == b"\x70" and frame[2:7] == part and frame[7:] == crc_a(frame[:7]):
                self._level += 1
                done = self._level == len(parts)
                if done:
                    self.state = "active"
                sak = bytes([self.sak if done else 0x04])
                return sak + crc_a(sak)
        self.drop()
        return None
