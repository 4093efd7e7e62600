#!/usr/bin/env python3
"""Puts what `stepctl locate --watch` draws for a rider at the left step into README.md: `picture.py BIN`, where BIN is the
folder of stepctl (`make picture`).

A program plays the Bluetooth adapter: the left step's beacon at -56 dBm, the right one's at -74, with 2 dB of noise.
"""

import os
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).resolve().parent
README = DEMO.parents[1] / "README.md"
BEGIN, END = "<!-- what make picture writes -->", "<!-- the end of the picture -->"
VEHICLE = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"


def main():
    os.environ["STEPCTL_BIN_DIR"] = os.path.abspath(sys.argv[1])
    sys.path.insert(0, str(DEMO.parent / "System"))
    from adapter import Adapter
    from programs import STEPCTL
    from terminal import Terminal

    with tempfile.TemporaryDirectory() as folder:
        car = Path(folder, "car.toml")
        car.write_text(
            f'name = "Rolling Chassis"\nuuid = "{VEHICLE}"\n'
            'steps = [{ id = "left", side = "left", major = 1 }, { id = "right", side = "right", major = 2 }]\n')
        with Adapter(Path(folder, "socket"), VEHICLE, {1: -56, 2: -74}, rate=10, spread=2) as adapter:
            command = [STEPCTL, "locate", "--watch", "--vehicle", car, "--radio", adapter.radio, "--no-color"]
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
            terminal = Terminal(command, environment, rows=19, columns=72)
            try:
                frame = terminal.shows("ready: stepctl open")
            finally:
                terminal.close()
    picture = "\n".join(("    " + line).rstrip() for line in frame).rstrip().replace(adapter.radio, "hci0")
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n\n    $ stepctl locate --watch\n{picture}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
