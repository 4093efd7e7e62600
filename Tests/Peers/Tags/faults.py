"""What can be made to go wrong, when, and how it is written: `NAME[=VALUE][@EVENT[:N]]`.

`nak@write:3` is a NAK to the third write from now on, `silent@command:9` a reader that is silent from its ninth command
on. Without EVENT the fault comes with the next event that it is about, or at once.
"""

from dataclasses import dataclass

from commands import COMMANDS

# name: (the event that it waits for when none is given, whether it stays until it is cleared, meaning)
FAULTS = {
    # Between the chip and the tag.
    "remove": (None, False, "the tag leaves the field; with =MS it is back that much later"),
    "tear": ("write", False, "the tag leaves in the middle of a write that leaves old, new, half or garbage (=HOW)"),
    "lose": ("tag", False, "the tag does not hear the command"),
    "lose-ack": ("write", False, "the tag does what it is told, and its answer is lost"),
    "nak": ("tag", False, "the tag answers NAK and is no longer selected"),
    "corrupt": ("tag", False, "the tag's answer arrives with a wrong CRC"),
    "swap": (None, False, "another tag of the same model, with UID (=HEX), lies there instead"),
    # Between the chip and the host.
    "junk": ("command", False, "bytes (=HEX, or 00aa55) before the ACK"),
    "bad-checksum": ("command", False, "the answer's data checksum is wrong"),
    "bad-length": ("command", False, "the answer's length checksum is wrong"),
    "error-frame": ("command", False, "an error frame is the answer"),
    "no-answer": ("command", False, "there is an ACK, and no answer"),
    "no-ack": ("command", False, "the command is not heard"),
    "bit7": ("tag", False, "the status byte has bit 7 set"),
    "status": ("tag", False, "the status byte is this (=HEX), and nothing follows it"),
    "unplug": (None, False, "the port is gone; with =MS it is back that much later"),
    # These stay.
    "silent": (None, True, "the reader hears nothing"),
    "behind": (None, True, "every answer is the one to the command of its kind before"),
    "slow": (None, True, "every answer comes =MS late"),
    "speed": (None, True, "the reader's own speed is this (=BAUD)"),
    "no-firmware": (None, True, "GetFirmwareVersion is not answered"),
    "empty-ats": (None, True, "the answer to RATS has length 0"),
}

IN_NUMBERS, IN_BYTES = ("remove", "unplug", "slow", "speed"), ("junk", "status", "swap")

# Commands to the chip, and those to the tag; or one of the chip's by its name.
EVENTS = ("", "command", "tag", "read", "write", *COMMANDS.values())


@dataclass
class Fault:
    name: str
    value: str
    event: str
    left: int


def parse(text: str) -> Fault:
    rest, _, when = text.partition("@")
    name, _, value = rest.partition("=")
    if name not in FAULTS:
        raise ValueError(f"no such fault: {name!r}; there are {', '.join(FAULTS)}")
    event, _, count = when.partition(":")
    fault = Fault(name, value, event or FAULTS[name][0] or "", int(count or 1))
    if fault.left < 1 or fault.event not in EVENTS:
        raise ValueError(f"no such event: {when!r}; there are {', '.join(EVENTS[1:])}, each with :N")
    if name in IN_NUMBERS and value:
        int(value)
    elif name in IN_BYTES:
        bytes.fromhex(value)
    return fault


class Faults:
    """`apply` is called with those that are done at once, such as a tag that leaves; the others are taken."""

    def __init__(self, apply):
        self._apply = apply
        self.armed: list[Fault] = []
        self.held: dict[str, str] = {}
        self._due: dict[str, str] = {}

    def arm(self, text: str):
        fault = parse(text)
        if fault.event:
            self.armed.append(fault)
        else:
            self._fire(fault)

    def clear(self):
        self.armed, self.held, self._due = [], {}, {}

    def happens(self, event: str):
        """Counts an event, and lets come what waited for it."""
        for fault in [fault for fault in self.armed if fault.event == event]:
            fault.left -= 1
            if fault.left == 0:
                self.armed.remove(fault)
                self._fire(fault)

    def take(self, name: str) -> str | None:
        """The value of a fault that is due, once; None if it is not."""
        return self._due.pop(name, None)

    def _fire(self, fault: Fault):
        default, stays, _ = FAULTS[fault.name]
        if stays:
            self.held[fault.name] = fault.value
        elif default is None:
            self._apply(fault)
        else:
            self._due[fault.name] = fault.value
