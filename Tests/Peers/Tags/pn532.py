"""A PN532 as its host sees it over a serial line (NXP UM0701-02, PN532 User Manual).

It knows Type A at 106 kbit/s; nobody answers in other modulations.
"""

from commands import COMMANDS
from field import Field
from hsu import ACK, BAUD_RATES, ERROR_FRAME, NACK, HighSpeedUART, frame
from iso14443a import REQA, WUPA, crc_a, levels
from isodep import Initiator

HAVE_STATUS = (0x40, 0x42, 0x44, 0x46, 0x4E, 0x50, 0x52, 0x54, 0x56, 0x16)

# Status bytes (7.1, table 15).
OK, TIMEOUT, CRC_ERROR, MIFARE_FRAMING, INVALID_PARAMETER, FORMAT_ERROR, WRONG_CONTEXT = 0, 1, 2, 5, 0x10, 0x13, 0x27

TX_MODE, RX_MODE, FIFO_DATA, CONTROL, BIT_FRAMING = 0x6302, 0x6303, 0x6339, 0x633C, 0x633D
CRC_ON, FRAMING = 0x80, 0x03

# What InDataExchange passes on to a tag that has no ISO-DEP (7.3.8): MIFARE's commands.
MIFARE_COMMANDS = (0x30, 0xA0, 0xA2, 0xB0, 0xC0, 0xC1, 0xC2)

POLL = 0.005  # seconds that one try to find a tag takes


class BadSyntax(Exception):
    """The command is answered with an error frame."""


class PN532:
    """`port` sends bytes, calls back later, and hears of each command when it has been answered or given up:
    `send(bytes, after)`, `later(seconds, action)` (its result has `cancel()`), `done(record)`."""

    def __init__(self, port, field: Field):
        self._port, self._field, self._faults = port, field, field.faults
        self._line = HighSpeedUART()
        self._pending = None  # a call of `later` that has the answer, or looks for a tag again
        self._record = None
        self._answer = b""
        self._behind: dict[int, bytes] = {}  # the last answer to each command
        self._registers: dict[int, int] = {}
        self._parameters = 0x14
        self._retry_timeout = 0x0A
        self._activation_retries, self._exchange_retries = 0xFF, 0
        self._sam = 1
        self.target = None  # (SENS_RES, SEL_RES, UID, ATS) of target 1
        self._status = 0
        self._deselected = False

    def receive(self, data: bytes, host_baud: int):
        if "silent" in self._faults.held:
            return
        for said in self._line.receive(data, host_baud, int(self._faults.held.get("speed") or 0)):
            if said == ACK:
                # The host gives up the command that runs, or has changed its speed.
                self._give_up()
                self._line.change_speed()
            elif said == NACK:
                self._port.send(self._answer, 0)
            elif said[0] == 0xD4 and len(said) >= 2:
                self._hear_command(said[1], said[2:])

    @property
    def baud_rate(self) -> int:
        return self._line.baud_rate

    def _give_up(self):
        if self._pending:
            self._pending.cancel()
            self._pending = None
            self._finish(b"", "given up")

    def _hear_command(self, code: int, parameters: bytes):
        self._give_up()
        received = self._line.taken()
        name = COMMANDS.get(code, f"0x{code:02X}")
        self._record = {"command": name, "parameters": parameters.hex(), "bytes_in": received}
        take = self._faults.take
        self._faults.happens("command")
        self._faults.happens(name)
        if "silent" in self._faults.held or take("no-ack") is not None:
            return self._finish(b"", "not heard")
        junk = take("junk")
        ack = (bytes.fromhex(junk or "00aa55") if junk is not None else b"") + ACK
        acknowledged = self._port.wire(received) + self._port.wire(len(ack))
        self._port.send(ack, acknowledged)
        self._record["bytes_out"] = len(ack)
        if take("no-answer") is not None or (code == 0x02 and "no-firmware" in self._faults.held):
            return self._finish(b"", "not answered")
        self._field.air = 0.0
        self._code = code
        try:
            handler = getattr(self, "_" + name, None)
            if handler is None:
                raise BadSyntax
            result = handler(parameters)
        except (BadSyntax, IndexError):
            result = None
        if callable(result):  # an endless search
            self._search(result)
        else:
            self._respond(result, acknowledged)

    def _search(self, look):
        """Looks for a tag until there is one, or the host wants something else."""

        def again():
            found = look()
            if found is None:
                self._pending = self._port.later(POLL, again)
            else:
                self._respond(found, 0)

        self._pending = self._port.later(POLL, again)

    def _respond(self, result: tuple[bytes, float] | bytes | None, after: float):
        """Answers with what follows the command's code; None is an error frame. With it goes how long it took."""
        data, waited = result if isinstance(result, tuple) else (result, 0.0)
        take = self._faults.take
        if data is not None and self._code in HAVE_STATUS:
            if take("bit7") is not None:
                data = bytes([data[0] | 0x80]) + data[1:]
            if (status := take("status")) is not None:
                data = bytes.fromhex(status or "01")
        if data is None or take("error-frame") is not None:
            answer = bytearray(ERROR_FRAME)
        else:
            answer = bytearray(frame(bytes([0xD5, self._code + 1]) + data))
        if take("bad-checksum") is not None:
            answer[-2] ^= 0x55
        if take("bad-length") is not None:
            answer[4] ^= 0x55
        self._answer = bytes(answer)
        if "behind" in self._faults.held:
            self._answer = self._behind.get(self._code, self._answer)
        self._behind[self._code] = bytes(answer)
        waited += int(self._faults.held.get("slow") or 0) / 1000
        wait = after + waited + self._port.on_air(self._field.air) + self._port.wire(len(answer))

        def send():
            self._pending = None
            self._port.send(self._answer, 0)
            self._record["bytes_out"] += len(self._answer)
            self._finish(self._answer)
            if self._code == 0x16:
                self._line.sleep()

        if wait > 0:
            self._pending = self._port.later(wait, send)
        else:
            send()

    def _finish(self, answer: bytes, note: str | None = None):
        record, self._record = self._record, None
        if record:
            record["answer"] = answer.hex()
            if note:
                record["note"] = note
            self._port.done(record)

    # Miscellaneous commands (7.2).

    def _Diagnose(self, parameters: bytes):
        test = parameters[0]
        if test == 0x00:
            return parameters
        if test in (0x01, 0x02):
            return b"\x00"
        if test == 0x06:  # is the ISO-DEP tag still there?
            if not self.target or not self.target[3]:
                return bytes([WRONG_CONTEXT])
            return bytes([OK if self._isodep.present() else TIMEOUT])
        raise BadSyntax

    def _GetFirmwareVersion(self, _):
        return bytes.fromhex("32010607")

    def _GetGeneralStatus(self, _):
        targets = bytes([1, 1, 0, 0, 0x10]) if self.target else b"\x00"
        return bytes([self._status, self._field.on]) + targets + b"\x00"

    def _ReadRegister(self, parameters: bytes):
        if not parameters or len(parameters) % 2:
            raise BadSyntax
        addresses = [int.from_bytes(parameters[at : at + 2], "big") for at in range(0, len(parameters), 2)]
        return bytes(self._registers.get(address, 0) for address in addresses)

    def _WriteRegister(self, parameters: bytes):
        if not parameters or len(parameters) % 3:
            raise BadSyntax
        for at in range(0, len(parameters), 3):
            self._registers[int.from_bytes(parameters[at : at + 2], "big")] = parameters[at + 2]
        return b""

    def _ReadGPIO(self, _):
        return bytes.fromhex("3f0701")

    def _WriteGPIO(self, _):
        return b""

    def _SetSerialBaudRate(self, parameters: bytes):
        self._line.next_baud_rate = BAUD_RATES[parameters[0]]  # from the host's ACK of the answer on
        return b""

    def _SetParameters(self, parameters: bytes):
        self._parameters = parameters[0]
        return b""

    def _SAMConfiguration(self, parameters: bytes):
        if parameters[0] not in (1, 2, 3, 4):
            raise BadSyntax
        self._sam = parameters[0]
        return b""

    def _PowerDown(self, parameters: bytes):
        parameters[0]
        self._field.switch(False)
        self.target = None
        return b"\x00"

    # The field, and finding tags (7.3).

    def _RFConfiguration(self, parameters: bytes):
        item, values = parameters[0], parameters[1:]
        if item == 0x01:
            self._field.switch(bool(values[0] & 1))
        elif item == 0x02:
            self._retry_timeout = values[2]
        elif item == 0x04:
            self._exchange_retries = values[0]
        elif item == 0x05:
            self._activation_retries = values[2]
        elif item not in (0x0A, 0x0B, 0x0C, 0x0D):
            raise BadSyntax
        return b""

    def _InListPassiveTarget(self, parameters: bytes):
        at_most, modulation, wanted = parameters[0], parameters[1], parameters[2:]
        if at_most not in (1, 2) or modulation > 4:
            raise BadSyntax
        self.target = None

        def look():
            found = self._activate(wanted) if modulation == 0 else None
            return found and b"\x01\x01" + found

        return self._try(look, b"\x00", self._activation_retries)

    def _InAutoPoll(self, parameters: bytes):
        times, period, types = parameters[0], parameters[1], parameters[2:]
        if not times or not 1 <= period <= 15 or not types:
            raise BadSyntax
        self.target = None

        def look():
            if not any(kind & 0x0F == 0 for kind in types):
                return None
            found = self._activate(b"")
            if not found:
                return None
            # Generic Type A (0x00), MIFARE (0x10), ISO-DEP (0x20).
            kind = next((kind for kind in types if kind in (0x00, 0x20 if self.target[3] else 0x10)), None)
            return None if kind is None else bytes([1, kind, len(found) + 1, 1]) + found

        return self._try(look, b"\x00", 0xFF if times == 0xFF else times * period * 30)

    def _try(self, look, nothing: bytes, retries: int):
        """Looks, and looks again; 0xFF is for ever."""
        if retries == 0xFF:
            return look() or look
        for tried in range(retries + 1):
            if found := look():
                return found, 0.0
        return nothing, (retries + 1) * POLL

    def _activate(self, wanted: bytes, request: bytes = REQA) -> bytes | None:
        """Target data as InListPassiveTarget returns it, from SENS_RES on."""
        self._registers[TX_MODE] = self._registers[RX_MODE] = CRC_ON
        self._registers[BIT_FRAMING] = 0
        self._registers[FIFO_DATA] = 0x26
        found = self._field.select(wanted, request)
        if not found:
            return None
        atqa, sak, uid = found
        self._registers[FIFO_DATA] = 0
        ats = b""
        if sak & 0x20 and self._parameters & 0x10:
            ats = self._start_isodep()
            if ats is None:
                return None
        self.target = atqa[::-1], sak, uid, ats
        self._deselected = False
        return atqa[::-1] + bytes([sak, len(uid)]) + uid + ats

    def _start_isodep(self) -> bytes | None:
        """RATS and its answer, as target data have it: its first byte is its length."""
        self._isodep = Initiator(self._field)
        ats = self._isodep.start()
        return b"\x00" if ats and "empty-ats" in self._faults.held else ats

    def _InSelect(self, parameters: bytes):
        if parameters[0] != 1 or not self.target:
            return bytes([WRONG_CONTEXT])
        if self._deselected:
            own = b"".join(part[:4] for part in levels(self.target[2]))
            if not self._activate(own, WUPA):  # it was put to HALT
                return bytes([TIMEOUT])
        return bytes([OK])

    def _InDeselect(self, parameters: bytes):
        if parameters[0] in (0, 1) and self.target and not self._deselected:
            self._halt()
        return bytes([OK])

    def _InRelease(self, parameters: bytes):
        self._InDeselect(parameters)
        self.target = None
        return bytes([OK])

    def _halt(self):
        goodbye = b"\xc2" if self.target[3] else b"\x50\x00"  # S(DESELECT) or HLTA
        self._field.raw(goodbye + crc_a(goodbye))
        self._deselected = True

    def _InJumpForDEP(self, _):
        return bytes([TIMEOUT]), self._timeout()

    _InJumpForPSL = _InATR = _InJumpForDEP

    def _InPSL(self, _):
        return bytes([OK])

    # Talking to them.

    def _timeout(self) -> float:
        return 100e-6 * 2 ** (self._retry_timeout - 1) if self._retry_timeout else 0.0

    def _InDataExchange(self, parameters: bytes):
        target, data = parameters[0], parameters[1:]
        if target & 0x3F != 1 or not self.target or self._deselected:
            return bytes([WRONG_CONTEXT])
        if self.target[3]:
            answer = self._isodep.exchange(data, self._exchange_retries)
            return (bytes([TIMEOUT]), self._isodep.waiting_time) if answer is None else bytes([OK]) + answer
        if data[0] not in MIFARE_COMMANDS:
            return bytes([WRONG_CONTEXT])
        answer = self._field.exchange(data[:2] + crc_a(data[:2]) if data[0] == 0xA0 else data + crc_a(data))
        if data[0] == 0xA0 and answer == 0xA:  # the data of a compatibility write go after the ACK
            answer = self._field.exchange(data[2:] + crc_a(data[2:]))
        if answer is None:
            return bytes([TIMEOUT]), self._timeout()
        if isinstance(answer, int):
            return bytes([OK if answer == 0xA else FORMAT_ERROR])
        if crc_a(answer[:-2]) != answer[-2:]:
            return bytes([CRC_ERROR])
        return bytes([OK]) + answer[:-2]

    def _InCommunicateThru(self, parameters: bytes):
        sends, expects = self._registers.get(TX_MODE, 0), self._registers.get(RX_MODE, 0)
        bits = self._registers.get(BIT_FRAMING, 0) & 7 or 8
        if sends & FRAMING or not parameters:
            return bytes([TIMEOUT]), self._timeout()
        if bits != 8 or parameters[0] in (0x93, 0x95, 0x97):
            answer = self._field.raw(parameters, bits)
        else:
            answer = self._field.exchange(parameters + crc_a(parameters) if sends & CRC_ON else parameters)
        self._registers[CONTROL] = self._registers.get(CONTROL, 0) & ~7
        if answer is None:
            return bytes([TIMEOUT]), self._timeout()
        if isinstance(answer, int):
            self._registers[CONTROL] |= 4
            # Four bits have no CRC: with the check on they are an error.
            return bytes([CRC_ERROR]) if expects & CRC_ON else bytes([OK, answer])
        if not expects & CRC_ON:
            return bytes([OK]) + answer
        if crc_a(answer[:-2]) != answer[-2:]:
            return bytes([CRC_ERROR])
        return bytes([OK]) + answer[:-2]
