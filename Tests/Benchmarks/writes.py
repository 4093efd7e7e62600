#!/usr/bin/env python3
"""How much stepd writes to a memory card: while nobody asks for anything, and in a day of openings.

    writes.py --bin .build/release            # the folder of stepctl and stepd; as root
    writes.py --bin .build/release --openings 20 --rest 10

The vehicle's folder is an ext4 of its own, in memory, whose block device counts what it gets: the files, and what the
file system writes for each of them. Everything else is elsewhere: the broker's messages, the log, and riders' files after
they were made. Each opening is one of a rider who opens the left step and closes it. Riders take turns, because a vehicle
lets a device begin ten motions a minute.

Printed are the bytes of stepd's own writes (write_bytes in proc(5)), those that came to the device, and those of the log,
which systemd's journal keeps.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
PER_RIDER = 4  # openings, of two motions each


class Card:
    """An ext4 on a device that counts."""

    def __init__(self, stack: ExitStack, place: Path):
        memory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        image = memory / "card"
        # Nothing is left to be written later.
        options = ("-q", "-E", "lazy_itable_init=0,lazy_journal_init=0")
        subprocess.run(["truncate", "--size", "256M", image], check=True)
        subprocess.run(["mkfs.ext4", *options, image], check=True)
        found = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
        self.device = found.stdout.strip()
        stack.callback(subprocess.run, ["losetup", "--detach", self.device])
        subprocess.run(["mount", "-o", "noatime", self.device, place], check=True)
        stack.callback(subprocess.run, ["umount", place])

    @property
    def written(self) -> int:
        """Bytes, after everything was written (Documentation/block/stat.rst)."""
        os.sync()
        sectors = Path(f"/sys/block/{Path(self.device).name}/stat").read_text().split()[6]
        return int(sectors) * 512


def own_writes(pid: int) -> int:
    fields = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["write_bytes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--openings", type=int, default=200)
    parser.add_argument("--rest", type=float, default=60, help="seconds without a question")
    options = parser.parse_args()
    os.environ["STEPCTL_BIN_DIR"] = str(options.bin.absolute())
    sys.path[:0] = [str(HERE.parents[1] / "Tests/Peers"), str(HERE.parents[1] / "Tests/System")]
    from programs import Stepctl, Transcript
    from vehicle import Vehicle

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "car").mkdir()
        card = Card(stack, folder / "car")
        # Its programs end before the card goes.
        with ExitStack() as programs:
            (folder / "home").mkdir()
            car = Vehicle(folder / "car", Stepctl(folder / "home", Transcript()), programs)
            configuration = car.folder / "mosquitto.conf"
            configuration.write_text(configuration.read_text().replace("persistence true", "persistence false"))
            riders = [car.rider(f"r{number}") for number in range(-(-options.openings // PER_RIDER))]
            car.starts_all()
            pid = car.stepd.process.pid

            def counts():
                log = car.stepd.stderr.read_bytes()
                return card.written, own_writes(pid), len(log), log.count(b"\n")

            def tell(what: str, before):
                device, own, log, lines = (now - then for now, then in zip(counts(), before, strict=True))
                print(f"{what:22} {own:10,} bytes by stepd  {device:11,} to the card  {log:8,} of log, {lines} lines")

            time.sleep(2)
            before = counts()
            time.sleep(options.rest)
            tell(f"{options.rest:g} s at rest", before)
            before = counts()
            for number in range(options.openings):
                for word in ("open", "close"):
                    ended = riders[number // PER_RIDER].moves(word, "left")
                    assert ended.status == 0, ended
            tell(f"{options.openings} openings", before)
            sizes = {path.name: path.stat().st_size for path in car.folder.iterdir() if path.is_file()}
            for name in ("journal.json", "journal.json.events", "servo.jsonl"):
                print(f"  {name:20} has {sizes[name]:10,} bytes then")


if __name__ == "__main__":
    main()
