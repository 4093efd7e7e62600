"""ISO-DEP (ISO/IEC 14443-4): blocks between a reader and a tag, from both sides."""

from field import Field
from iso14443a import Answer, Tag, crc_a

FRAME_SIZES = (16, 24, 32, 40, 48, 64, 96, 128, 256)  # by FSDI and FSCI
RATS, DESELECT, WTX = 0xE0, 0xC2, 0xF2
I_BLOCK, R_ACK, R_NAK, CHAINED = 0x02, 0xA2, 0xB2, 0x10


class IsoDepTag(Tag):
    """A tag that is spoken to in APDUs: subclasses answer `apdu`."""

    sak = 0x20
    ats = bytes.fromhex("067577810280")

    def apdu(self, command: bytes) -> bytes:
        raise NotImplementedError

    def reset(self):
        self._frame_size = None  # of the reader; None until RATS
        self._block = 1
        self._command = b""
        self._last: bytes | None = None
        self._rest = b""

    def command(self, data: bytes) -> Answer:
        if self._frame_size is None:
            if data[0] != RATS or len(data) != 2:
                self.drop()
                return None
            self._frame_size = FRAME_SIZES[min(data[1] >> 4, 8)]
            return self.ats
        control, information = data[0], data[1:]
        if control & 0xE2 == I_BLOCK:
            self._block ^= 1
            self._command += information
            if control & CHAINED:
                return self._says(bytes([R_ACK | self._block]))
            command, self._command = self._command, b""
            self._rest = self.apdu(command)
            return self._next()
        if control & 0xE6 == R_ACK:
            if control & 1 == self._block and self._last:
                return self._last
            if control & 0x10:  # R(NAK): nothing of that block came
                return bytes([R_ACK | self._block])
            if self._rest:
                self._block ^= 1
                return self._next()
        if control == DESELECT:
            self.state, self._halts = "halt", True
            self.reset()
            return bytes([DESELECT])
        if data[0] & 0xF0 == 0xD0:  # PPS
            return data[:1]
        return None

    def _next(self) -> bytes:
        room = self._frame_size - 3
        part, self._rest = self._rest[:room], self._rest[room:]
        return self._says(bytes([I_BLOCK | (CHAINED if self._rest else 0) | self._block]) + part)

    def _says(self, block: bytes) -> bytes:
        self._last = block
        return block

    def pending(self, data: bytes) -> bytes:
        """The whole command that this block is the last one of; empty otherwise."""
        whole = self._frame_size is not None and data[0] & 0xE2 == I_BLOCK and not data[0] & CHAINED
        return self._command + data[1:] if whole else b""


class Initiator:
    """The chip's own side, which InDataExchange uses."""

    def __init__(self, field: Field):
        self._field, self._retries = field, 0
        self._block = 0
        self.waiting_time = 0.0

    def start(self) -> bytes | None:
        """RATS; the ATS is the answer."""
        ats = self._field.raw(self._framed(bytes([RATS, 0x50])))
        if not isinstance(ats, bytes) or crc_a(ats[:-2]) != ats[-2:]:
            return None
        ats = ats[:-2]
        interface = ats[2:] if len(ats) > 1 else b""
        has_ta, has_tb = len(ats) > 1 and ats[1] & 0x10, len(ats) > 1 and ats[1] & 0x20
        self._room = FRAME_SIZES[min(ats[1] & 0x0F, 8) if len(ats) > 1 else 2] - 3
        tb = interface[1 if has_ta else 0] if has_tb else 0x40
        self.waiting_time = 4096 / 13.56e6 * 2 ** (tb >> 4)
        return ats

    def exchange(self, command: bytes, retries: int) -> bytes | None:
        """The answer to an APDU; None where the tag was no longer heard, so many times after the first."""
        self._retries = retries
        while True:
            part, command = command[: self._room], command[self._room :]
            answer = self._send(bytes([I_BLOCK | (CHAINED if command else 0) | self._block]) + part)
            if answer is None:
                return None
            self._block ^= 1
            if not command:
                break
        whole = answer[1:]
        while answer[0] & CHAINED:
            answer = self._send(bytes([R_ACK | self._block]))
            if answer is None:
                return None
            self._block ^= 1
            whole += answer[1:]
        return whole

    def present(self) -> bool:
        return self._send(bytes([R_NAK | self._block])) is not None

    def _send(self, block: bytes) -> bytes | None:
        said = block
        for _ in range(self._retries + 1):
            answer = self._heard(said)
            if said != block and answer and answer[0] == R_ACK | self._block ^ 1:
                answer = self._heard(block)  # it had never come
            if answer:
                return answer
            said = bytes([R_NAK | self._block])
        return None

    def _heard(self, block: bytes) -> bytes | None:
        answer = self._field.exchange(self._framed(block))
        while isinstance(answer, bytes) and answer[0] == WTX:
            answer = self._field.exchange(answer)
        right = isinstance(answer, bytes) and crc_a(answer[:-2]) == answer[-2:]
        return answer[:-2] if right else None

    def _framed(self, block: bytes) -> bytes:
        return block + crc_a(block)
