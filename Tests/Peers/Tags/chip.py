#!/usr/bin/env python3
"""A PN532 with a tag before it, at the end of a pseudo-terminal.

    chip.py --tag ntag213 --link /tmp/pn532 --control /tmp/pn532.control --fault nak@write:3

prints where it is; `nfc-list` with LIBNFC_DEFAULT_DEVICE=pn532_uart:/tmp/pn532 finds it. SIGTERM ends it. What the
control socket takes is in control.py.
"""

import argparse
import heapq
import json
import os
import select
import signal
import termios
import threading
import time
import tty
from contextlib import nullcontext, suppress
from pathlib import Path

from control import Control
from faults import FAULTS, Fault, Faults
from field import Field
from hsu import BAUD_RATES
from iso14443a import Tag
from pn532 import PN532
from type2 import MODELS, Type2
from type4 import Type4

SPEEDS = {getattr(termios, f"B{rate}"): rate for rate in BAUD_RATES if hasattr(termios, f"B{rate}")}


class Timer:
    def __init__(self, due: float, action):
        self.due, self.action = due, action

    def cancel(self):
        self.action = None

    def __lt__(self, other: "Timer") -> bool:
        return self.due < other.due


class Chip:
    """A reader in a thread of its own: `with Chip(Type2("ntag213")) as chip: use(chip.connection)`.

    `timed` makes bytes take as long as they would at the line's speed, and the air and the EEPROM as long as theirs.
    """

    def __init__(
        self,
        tag: Tag | None = None,
        faults: tuple[str, ...] = (),
        link: Path | None = None,
        log: Path | None = None,
        timed: bool = False,
    ):
        self._link, self._timed = link, timed
        self._lock = threading.RLock()
        self._timers: list[Timer] = []
        self._log = open(log, "w") if log else None
        self._closing = False
        self._wake_reader, self._wake_writer = os.pipe()
        self._master = self._slave = None
        self._born = time.monotonic()
        self.records: list[dict] = []  # of each command, as the log has them
        self.faults = Faults(self._apply)
        self.field = Field(self.faults)
        self.tag = tag  # that was there last, wherever it is now
        self.field.place(tag)
        self._chip = PN532(self, self.field)
        self._zero()
        self.plug()
        for fault in faults:
            self.faults.arm(fault)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Chip":
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing = True
        self._wake()
        self._thread.join()
        self.unplug()
        if self._log:
            self._log.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    # What tests do to it.

    @property
    def path(self) -> str:
        """Of the port."""
        return str(self._link or self._terminal)

    @property
    def connection(self) -> str:
        """As libnfc writes it."""
        return f"pn532_uart:{self.path}"

    def fault(self, text: str):
        with self._lock:
            self.faults.arm(text)

    def clear(self):
        with self._lock:
            self.faults.clear()

    def remove(self):
        with self._lock:
            self.field.place(None)

    def place(self, tag: Tag | None = None):
        """Puts down this tag, or again the one that was there."""
        with self._lock:
            self.tag = tag or self.tag
            self.field.place(self.tag)

    def unplug(self):
        with self._lock:
            if self._master is None:
                return
            # First the name: who finds the port dead does not find it there.
            if self._link:
                self._link.unlink(missing_ok=True)
            for end in (self._master, self._slave):
                os.close(end)
            self._master = self._slave = None
            self._wake()

    def plug(self):
        with self._lock:
            if self._master is not None:
                return
            # The other end stays open here as well: hosts come and go.
            self._master, self._slave = os.openpty()
            os.set_blocking(self._master, False)
            tty.setraw(self._slave)
            settings = termios.tcgetattr(self._slave)
            settings[4] = settings[5] = termios.B115200
            termios.tcsetattr(self._slave, termios.TCSANOW, settings)
            self._terminal = os.ttyname(self._slave)
            if self._link:
                fresh = self._link.with_name(self._link.name + ".new")
                fresh.symlink_to(self._terminal)
                fresh.replace(self._link)
            self._chip = PN532(self, self.field)
            self._wake()

    def counts(self) -> dict:
        with self._lock:
            return self._counts | {"tag_commands": self.field.commands, "writes": self.field.writes}

    def wait_until(self, condition):
        """Until this is true of the chip, which answers in a thread of its own."""
        limit = time.monotonic() + 60
        while not condition():
            if time.monotonic() > limit:
                raise TimeoutError("the chip does not do what a test waits for")
            time.sleep(0.005)

    def zero(self):
        """Begins to count anew."""
        with self._lock:
            self._zero()

    def _zero(self):
        self._counts = {"commands": 0, "bytes_in": 0, "bytes_out": 0}
        self.field.commands = self.field.writes = 0
        self.records.clear()

    def _apply(self, fault: Fault):
        if fault.name == "remove":
            self.field.place(None)
            if fault.value:
                self.later(int(fault.value) / 1000, self.place)
        elif fault.name == "swap" and self.tag:
            self.place(self.tag.another(bytes.fromhex(fault.value)))
        elif fault.name == "unplug":
            self.unplug()
            if fault.value:
                self.later(int(fault.value) / 1000, self.plug)

    # What the chip calls.

    def send(self, data: bytes, after: float):
        if after > 0:
            self.later(after, lambda: self.send(data, 0))
        elif self._master is not None:
            with suppress(BlockingIOError):  # nobody reads, and the kernel keeps no more
                os.write(self._master, data)

    def later(self, seconds: float, action) -> Timer:
        timer = Timer(time.monotonic() + seconds, action)
        heapq.heappush(self._timers, timer)
        self._wake()
        return timer

    def wire(self, size: int) -> float:
        """How long this many bytes take on the line."""
        return size * 10 / self._chip.baud_rate if self._timed else 0.0

    def on_air(self, seconds: float) -> float:
        return seconds if self._timed else 0.0

    def done(self, record: dict):
        self._counts["commands"] += 1
        self._counts["bytes_in"] += record["bytes_in"]
        self._counts["bytes_out"] += record.setdefault("bytes_out", 0)
        record = {"time": round(time.monotonic() - self._born, 6)} | record
        self.records.append(record)
        if self._log:
            print(json.dumps(record), file=self._log, flush=True)

    # The thread.

    def _wake(self):
        os.write(self._wake_writer, b"\0")

    def _run(self):
        while not self._closing:
            with self._lock:
                while self._timers and (self._timers[0].action is None or self._timers[0].due <= time.monotonic()):
                    if action := heapq.heappop(self._timers).action:
                        action()
                wait = max(self._timers[0].due - time.monotonic(), 0) if self._timers else None
                master = self._master
            ends = [end for end in (self._wake_reader, master) if end is not None]
            try:
                ready, _, _ = select.select(ends, [], [], wait)
            except (OSError, ValueError):
                continue  # the port was unplugged meanwhile
            with self._lock:
                if self._wake_reader in ready:
                    os.read(self._wake_reader, 4096)
                if master in ready and master == self._master:
                    self._hear()

    def _hear(self):
        try:
            data = os.read(self._master, 4096)
        except OSError:
            return
        self._chip.receive(data, SPEEDS.get(termios.tcgetattr(self._slave)[5], 0))


def tag_from(name: str, uid: bytes | None, image: bytes | None) -> Tag | None:
    if name == "none":
        return None
    if name == "type2":
        if not image:
            raise ValueError("--tag type2 takes an --image")
        return Type2.of_size(image, uid)
    if name == "type4":
        return Type4(uid, image or b"")
    if name == "ntag424":
        # It alone takes more than the standard library.
        from ntag424 import NTAG424

        return NTAG424(uid, image or b"")
    return Type2(name, uid, image)


def main():
    meanings = "\n".join(f"  {name:13} {meaning}" for name, (_, _, meaning) in FAULTS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"faults, NAME[=VALUE][@EVENT[:N]]; EVENT is command, a command's name, tag, read or write:\n{meanings}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tag", default="ntag213", choices=[*MODELS, "type2", "type4", "ntag424", "none"])
    parser.add_argument("--image", type=Path, help="what the tag holds: a raw dump, or of Type 4 its NDEF file")
    parser.add_argument("--uid", type=bytes.fromhex)
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--link", type=Path, help="a symbolic link to the port")
    parser.add_argument("--log", type=Path, help="a line of JSON for each command")
    parser.add_argument("--control", type=Path, help="a Unix socket that takes commands")
    parser.add_argument("--save", type=Path, help="where to write what the tag holds at the end")
    parser.add_argument("--timed", action="store_true", help="take as long as the line, the air and EEPROM do")
    options = parser.parse_args()
    try:
        tag = tag_from(options.tag, options.uid, options.image and options.image.read_bytes())
        chip = Chip(tag, tuple(options.fault), options.link, options.log, options.timed)
    except (ValueError, OSError) as problem:
        parser.error(str(problem))
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with chip, Control(chip, options.control) if options.control else nullcontext():
        print(chip.path, flush=True)
        signal.sigwait(ends)
    if options.save and chip.tag:
        options.save.write_bytes(chip.tag.content())


if __name__ == "__main__":
    main()
