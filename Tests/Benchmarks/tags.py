#!/usr/bin/env python3
"""What reading and writing a step's tag costs: commands to the reader's chip, and bytes on its line.

    tags.py [--bin .build/release]                       # the folder of stepctl

All use the same chip, a PN532 on a pseudo-terminal, with an NTAG213 before it (Tests/Peers/Tags), and the message that
stepctl writes: a Text record of 49 characters. The tag is as it left the factory before it is written.

    floor     the real libnfc, with the fewest commands that do it
    stepctl   provision tag, locate --by nfc; left out where --bin has no stepctl that can
    nfcpy     1.0.4, in the form that its manual shows

The floor. Opening a PN532 and closing it takes libnfc nine commands, whatever is between. Selecting a tag takes seven:
five of nfc_initiator_init, one that has a search for a tag end, and the search. GET_VERSION tells that the tag has
FAST_READ (without it, six READs stand for these two), and one FAST_READ gets everything from the capability container
to the message's end: as if that were known before. That is reading: nine commands. Writing has to know the container
and what follows it, and then writes each page once: the message begins at byte 5 of its area, behind the factory's lock
control TLV, and takes 2 bytes of type and length, 56 of its own and one of a terminator, so 15 pages. The page that has
the length comes last: as long as it is 0 a torn tag is an empty one. (Over another message that page is written twice.)
Another FAST_READ verifies all: 25 commands. (stepctl takes one more: it verifies before the length, too.)

`at 115,200 baud` is how long those bytes take at that speed, and with them 4.1 ms for each page that is written.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Peers/Tags"))
import libnfc  # noqa: E402
from chip import Chip  # noqa: E402
from type2 import Type2  # noqa: E402

VEHICLE = "7c5a1fd0-3a3b-4f0e-9d1c-0b8f2f6f3f11"
CONTAINER = 3  # an NTAG213's page that has the capability container
FIRST, LAST = 5, 19  # those that the message is on


def text(vehicle: str) -> str:
    return f"stepctl:{vehicle}/left"


def message(vehicle: str) -> bytes:
    """A short, well-known Text record in English (NFC Forum, RTD Text 1.0)."""
    payload = b"\x02en" + text(vehicle).encode()
    return bytes([0xD1, 1, len(payload)]) + b"T" + payload


def written(vehicle: str) -> Type2:
    """A tag that holds the message, behind the lock control TLV."""
    tag = Type2("ntag213")
    tlv = b"\x03" + bytes([len(message(vehicle))]) + message(vehicle) + b"\xfe"
    tag.memory[21 : 21 + len(tlv)] = tlv
    return tag


class Floor:
    name = "floor"

    @contextmanager
    def _selected(self, chip: Chip):
        with libnfc.opened(chip.connection) as device:
            device.select()
            yield device

    def _pages(self, device: libnfc.Device, first: int, last: int, versioned: bool = False) -> bytes:
        device.easy_framing(False)
        if not versioned:
            device.transceive(b"\x60")
        pages = device.transceive(bytes([0x3A, first, last]))
        device.easy_framing(True)
        return pages

    def read(self, chip: Chip) -> bool:
        with self._selected(chip) as device:
            return message(VEHICLE) in self._pages(device, CONTAINER, LAST)

    def write(self, chip: Chip) -> bool:
        wanted = written(VEHICLE)
        with self._selected(chip) as device:
            self._pages(device, CONTAINER, FIRST)
            for page in [*range(FIRST + 1, LAST + 1), FIRST]:
                device.transceive(bytes([0xA2, page]) + wanted.page(page))
            return message(VEHICLE) in self._pages(device, FIRST, LAST, versioned=True)


class NFCPy:
    name = "nfcpy"

    def __init__(self):
        import ndef
        import nfcpy_reader

        self._ndef, self._reader = ndef, nfcpy_reader

    def read(self, chip: Chip) -> bool:
        with self._reader.opened(chip.path) as frontend:
            return self._reader.found(frontend).ndef.records[0].text == text(VEHICLE)

    def write(self, chip: Chip) -> bool:
        """It reads nothing back of its own accord."""
        record = self._ndef.TextRecord(text(VEHICLE))
        with self._reader.opened(chip.path) as frontend:
            self._reader.found(frontend).ndef.records = [record]
            return self._reader.found(frontend).ndef.records == [record]


class Stepctl:
    name = "stepctl"

    def __init__(self, folder: Path, program: Path):
        self._program, self._folder = program, folder / "car"
        self._environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        if not program.exists():
            raise FileNotFoundError(f"there is no {program}")
        self._run("provision", "tag", "--help")
        self._run("provision", "vehicle", self._folder, "--quiet")
        self._run("provision", "token", self._folder, "--rider", "alice", "--quiet")

    def _run(self, *arguments) -> str:
        run = subprocess.run(
            [str(self._program), *map(str, arguments)], env=self._environment, capture_output=True, text=True
        )
        if run.returncode != 0:
            raise ChildProcessError(
                f"stepctl {arguments[0]} ended with {run.returncode}: {run.stderr.partition(chr(10))[0]}"
            )
        return run.stdout

    def _with(self, chip: Chip) -> tuple:
        return "--nfc", chip.connection, "--vehicle", self._folder / "riders/alice/vehicle.toml"

    def write(self, chip: Chip) -> bool:
        self._run("provision", "tag", "--step", "left", "--yes", *self._with(chip))
        self._tag = chip.tag
        return b"/left" in chip.tag.content()

    def read(self, chip: Chip) -> bool:
        """What it has written before."""
        chip.place(self._tag)
        return "left" in self._run("locate", "--by", "nfc", *self._with(chip))


def row(reader, what: str, tag: Type2) -> str:
    with Chip(tag) as chip:
        try:
            if not getattr(reader, what)(chip):
                sys.exit(f"{reader.name} did not {what} the message")
        except ChildProcessError as problem:
            return f"{reader.name:9}{what:8} is left out: {problem}"
        counts = chip.counts()
    size = counts["bytes_in"] + counts["bytes_out"]
    seconds = size * 10 / 115200 + counts["writes"] * Type2.write_time
    return (
        f"{reader.name:9}{what:8}{counts['commands']:9}{counts['tag_commands']:12}{counts['writes']:7}"
        f"{size:7}{seconds * 1e3:14.0f} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="the folder of stepctl")
    options = parser.parse_args()
    if not libnfc.library():
        return print("tags is left out: there is no libnfc (apt-get install libnfc6)")
    os.environ["LIBNFC_LOG_LEVEL"] = "0"

    with tempfile.TemporaryDirectory() as folder:
        readers = [Floor()]
        try:
            readers.append(Stepctl(Path(folder), options.bin / "stepctl") if options.bin else None)
        except (FileNotFoundError, ChildProcessError) as problem:
            print(f"stepctl is left out: {problem}")
        try:
            readers.append(NFCPy())
        except ImportError as problem:
            print(f"nfcpy is left out: {problem}")
        print(f"{'':17}{'commands':>9}{'to the tag':>12}{'pages':>7}{'bytes':>7}{'at 115,200 baud':>17}")
        for reader in filter(None, readers):
            print(row(reader, "write", Type2("ntag213")))
            print(row(reader, "read", written(VEHICLE)))


if __name__ == "__main__":
    main()
