"""The chip's antenna: the tag that lies before it, and what goes wrong on the air."""

from faults import Faults
from iso14443a import REQA, Answer, Tag, crc_a, levels

BIT = 128 / 13.56e6  # seconds, at 106 kbit/s
FRAME_DELAY = 1172 / 13.56e6


class Field:
    def __init__(self, faults: Faults):
        self.faults = faults
        self.tag: Tag | None = None
        self.on = False
        self.air = 0.0  # seconds that were spent on the air since somebody set this to 0
        self.commands = self.writes = 0  # that tags were sent, and that they did

    def switch(self, on: bool):
        if self.tag and not on:
            self.tag.field_off()
        self.on = on

    def place(self, tag: Tag | None):
        """Another tag, the same one again, or none: it has lost its power in between."""
        if tag:
            tag.field_off()
        self.tag = tag

    def raw(self, frame: bytes, bits: int = 8) -> Answer:
        """One frame and its answer."""
        self.on = True
        answer = self.tag.receive(frame, bits) if self.tag else None
        answered = len(answer) if isinstance(answer, bytes) else 0.5
        self.air += (len(frame) + (answered if answer is not None else 0)) * 9 * BIT + FRAME_DELAY
        return answer

    def exchange(self, frame: bytes) -> Answer:
        """`raw` for a tag's own commands: these are counted, and this is where they fail."""
        data = frame[:-2]
        kind = self.tag.kind(data) if self.tag and data else "other"
        self.commands += 1
        self.faults.happens("tag")
        if kind != "other":
            self.faults.happens(kind)
        tag, take = self.tag, self.faults.take
        if tag is None or take("lose") is not None:
            return None
        if kind == "write" and (how := take("tear")) is not None:
            if tag.state == "active":
                tag.tear(data, how or "garbage")
            self.faults.arm("remove")
            return None
        if take("nak") is not None and tag.state == "active":
            tag.drop()
            return 0x0
        answer = self.raw(frame)
        if kind == "write" and (answer == 0xA or isinstance(answer, bytes)):
            self.writes += 1
            self.air += tag.write_time
        if take("lose-ack") is not None:
            return None
        if take("corrupt") is not None and isinstance(answer, bytes):
            return answer[:-1] + bytes([answer[-1] ^ 0xFF])
        return answer

    def select(self, wanted: bytes = b"", request: bytes = REQA) -> tuple[bytes, int, bytes] | None:
        """Request, anticollision and selection: ATQA (as sent), SAK and UID; `wanted` as the chip takes it, cascade
        tags and all."""
        atqa = self.raw(request, 7)
        if not isinstance(atqa, bytes):
            return None
        parts = levels(self.tag.uid)
        if wanted and wanted != b"".join(part[:4] for part in parts):
            self.tag.drop()
            return None
        sak = b"\x04"
        for level in range(len(parts)):
            code = bytes([0x93 + 2 * level])
            part = self.raw(code + b"\x20")
            head = code + b"\x70" + part
            sak = self.raw(head + crc_a(head))
        return atqa, sak[0], self.tag.uid
