#!/usr/bin/env python3
"""How soon stepd for arm64 is ready, and how much memory it has, beside amd64's in the same kind of emulation.

    arm64.py --arm64 .build/arm64/bookworm/release --amd64 .build/release

In turn, with one broker: stepd for arm64 by qemu-aarch64, stepd for amd64 by qemu-x86_64, and stepd for amd64 by itself.
Printed are medians: the time from the start of the process until the broker has answered, and the memory that is in use
(VmRSS). Under qemu that is what the program has, without the emulator's own.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

# qemu-user maps a program below this address, and its own memory far above.
EMULATED = 1 << 40


def resident_kB(process: subprocess.Popen, end: int) -> int:
    """What is in use below an address."""
    maps = Path(f"/proc/{process.pid}/smaps").read_text()
    sizes = re.findall(r"^([0-9a-f]+)-[0-9a-f]+ .*\n(?:[A-Z].*\n)*?Rss:\s*(\d+)", maps, re.MULTILINE)
    return sum(int(size) for begin, size in sizes if int(begin, 16) < end)


def measured(command: list, folder: Path) -> tuple[float, float]:
    """Milliseconds until it is connected, and MB."""
    log = folder / "log"
    with open(log, "wb") as file:
        begun = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=file, stderr=file)
    try:
        while b"connected to" not in log.read_bytes():
            if time.monotonic() > begun + 30 or process.poll() is not None:
                sys.exit(f"not ready: {log.read_text()}")
            time.sleep(0.001)
        ready = time.monotonic() - begun
        time.sleep(1)
        return ready * 1000, resident_kB(process, EMULATED if "qemu" in str(command[0]) else 1 << 64) / 1024
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm64", type=Path, required=True, help="the folder of the programs for arm64")
    parser.add_argument("--amd64", type=Path, required=True, help="the folder of the programs for this machine")
    parser.add_argument("--sysroot", type=Path, help="arm64's libraries (default: beside --arm64)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    arm64, amd64 = options.arm64.absolute(), options.amd64.absolute()
    sysroot = options.sysroot or arm64.parent / "sysroot"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["HOME"] = str(folder)
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = str(probe.getsockname()[1])
        subprocess.run([amd64 / "stepctl", "provision", "vehicle", "car", "--port", port, "--quiet"], cwd=folder, check=True)
        # Started by root, mosquitto becomes a user of its own, who has to reach its files.
        folder.chmod(0o755)
        car = folder / "car"
        broker = subprocess.Popen(["mosquitto", "-c", car / "mosquitto.conf"], env=os.environ | {
            "PATH": os.environ["PATH"] + ":/usr/sbin"}, stderr=subprocess.DEVNULL)
        stack.callback(broker.wait)
        stack.callback(broker.terminate)
        time.sleep(1)
        by_arm64, by_amd64 = ["qemu-aarch64-static", "-L", sysroot], ["qemu-x86_64-static", "-L", "/"]
        stepd = ["--config", car / "stepd.toml"]
        kinds = {
            "arm64, by qemu": [*by_arm64, arm64 / "stepd", *stepd],
            "amd64, by qemu": [*by_amd64, amd64 / "stepd", *stepd],
            "amd64": [amd64 / "stepd", *stepd],
        }
        found = {kind: [] for kind in kinds}
        for number in range(options.rounds):
            for kind in list(kinds) if number % 2 else list(kinds)[::-1]:
                found[kind].append(measured(kinds[kind], folder))
        print(f"{'':20}{'ready ms':>10}{'memory MB':>11}")
        for kind, values in found.items():
            ready, memory = (statistics.median(column) for column in zip(*values))
            print(f"{kind:20}{ready:10.0f}{memory:11.1f}")
        ratios = [a[0] / b[0] for a, b in zip(found["arm64, by qemu"], found["amd64, by qemu"])]
        print(f"arm64 to amd64, both by qemu: {statistics.median(ratios):.2f} times as long")


main()
