#!/usr/bin/env python3
"""Puts what `stepctl open --watch` draws, while the step slides out, into README.md: `picture.py BIN`, where BIN is the
folder of stepctl and stepd (`make picture`).

The vehicle is a real one, on this machine. A program plays the Bluetooth adapter: the left step's beacon at -56 dBm, the
right one's at -74, with 2 dB of noise.
"""

import os
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

DEMO = Path(__file__).resolve().parent
README = DEMO.parents[1] / "README.md"
BEGIN, END = "<!-- what make picture writes -->", "<!-- the end of the picture -->"
SLIDING = "<██"  # three columns out


def main():
    os.environ["STEPCTL_BIN_DIR"] = os.path.abspath(sys.argv[1])
    sys.path[:0] = [str(DEMO.parent / name) for name in ("System", "Peers")]
    from adapter import Adapter
    from programs import STEPCTL, Stepctl, Transcript
    from terminal import Terminal
    from vehicle import Vehicle

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        # Started by root, mosquitto becomes a user of its own, who has to reach its files.
        os.chmod(folder, 0o755)
        car = Vehicle(Path(folder, "car"), Stepctl(Path(folder), Transcript()), stack, "--name", "Rolling Chassis")
        car.edit("stepd.toml", travel_s=3, limit_s=10)
        car.starts_all()
        alice = car.rider("alice")
        levels = {1: -56, 2: -74}
        adapter = stack.enter_context(Adapter(Path(folder, "socket"), car.uuid, levels, rate=10, spread=2))
        command = [STEPCTL, "open", "--watch", "--vehicle", alice.file, "--radio", adapter.radio, "--no-color"]
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        terminal = stack.enter_context(closing(Terminal(command, environment, rows=19, columns=72)))
        frame = terminal.shows(SLIDING)
    picture = "\n".join(("    " + line).rstrip() for line in frame).rstrip()
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n\n    $ stepctl open --watch\n{picture}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
