"""The PN532's serial line (NXP UM0701-02, 6.2 and 6.3.2): speeds, waking, and frames in both directions."""

ACK, NACK = bytes.fromhex("0000ff00ff00"), bytes.fromhex("0000ffff0000")
ERROR_FRAME = bytes.fromhex("0000ff01ff7f8100")
BAUD_RATES = (9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600, 1288000)


def frame(data: bytes) -> bytes:
    """From TFI on, in a normal or an extended information frame (6.2.1)."""
    if len(data) <= 255:
        length = bytes([len(data), -len(data) & 0xFF])
    else:
        length = b"\xff\xff" + len(data).to_bytes(2, "big")
        length += bytes([-sum(length[2:]) & 0xFF])
    return b"\x00\x00\xff" + length + data + bytes([-sum(data) & 0xFF, 0])


class HighSpeedUART:
    """Finds what a host says: `receive` yields frames from TFI on, and the words ACK and NACK."""

    def __init__(self):
        self._buffer = b""
        self._received = 0  # bytes that no frame has taken
        self._edges: int | None = 0  # that have come to wake it; None when it is awake
        self.baud_rate, self.next_baud_rate = 115200, None

    def sleep(self):
        self._edges = 0

    def change_speed(self):
        """To the one that was asked for, if there is one."""
        if self.next_baud_rate:
            self.baud_rate, self.next_baud_rate = self.next_baud_rate, None

    def taken(self) -> int:
        """How many bytes came since the last command, and with it."""
        size, self._received = self._received - len(self._buffer), len(self._buffer)
        return size

    def receive(self, data: bytes, host_baud: int, own_baud: int | None):
        """`own_baud` stands in for the chip's own, where a test wants that."""
        if self.next_baud_rate == host_baud:
            self.change_speed()
        if host_baud != (own_baud or self.baud_rate):
            data = bytes((byte * 37 + 0xE1 | 0x80) & 0xFF for byte in data)  # which is no start code
        self._received += len(data)
        while data and self._edges is not None:
            # The fifth rising edge wakes it; what came until then is lost.
            self._edges += f"0{data[0]:08b}1"[::-1].count("10")
            data = data[1:]
            if self._edges >= 5:
                self._edges = None
        self._buffer += data
        while (found := self._next()) is not None:
            if found:
                yield found

    def _next(self) -> bytes | None:
        """The next frame, nothing for one that is damaged, None where more has to come."""
        start = self._buffer.find(b"\x00\xff")
        if start < 0:
            self._buffer = self._buffer[-1:]
            return None
        body = self._buffer[start + 2 :]
        if len(body) < 2:
            return None
        if body[:2] in (b"\x00\xff", b"\xff\x00"):
            self._buffer = body[2:]
            return ACK if body[0] == 0 else NACK
        if body[:2] == b"\xff\xff":
            if len(body) < 5:
                return None
            size, right, head = int.from_bytes(body[2:4], "big"), sum(body[2:5]) & 0xFF == 0, 5
        else:
            size, right, head = body[0], sum(body[:2]) & 0xFF == 0, 2
        if not right:
            self._buffer = body
            return b""
        if len(body) < head + size + 1:
            return None
        data, self._buffer = body[head : head + size], body[head + size + 1 :]
        return data if sum(body[head : head + size + 1]) & 0xFF == 0 else b""
