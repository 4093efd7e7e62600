#!/usr/bin/env python3
"""How many QR codes are read out of pictures, and how long it takes to make one, beside others in the same run.

    codes.py --bin .build/release                         # the folder of stepctl

Read: pictures of a step's code from easy to beyond what can be read, made here and the same in every run (pictures.py
in Tests/System), by `stepctl locate --by qr`, by zbarimg (Debian's zbar-tools) and, inside this process, by zxing-cpp
as Python has it, where that is installed. What a reader says counts only if it is what is in the code.

Made: a whole process each, a PNG of the same code at the same level, by `stepctl provision qr` and by qrencode.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Tests/System"))
import pictures  # noqa: E402

UUID = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
LABEL = f"stepctl:{UUID}/left"
VEHICLE = f"""\
name = "Rolling Chassis"
uuid = "{UUID}"
steps = [{{ id = "left", side = "left", major = 1 }}]
"""


def timed(arguments: list) -> tuple[float, subprocess.CompletedProcess]:
    """Milliseconds of a whole process."""
    began = time.perf_counter()
    ended = subprocess.run(list(map(str, arguments)), capture_output=True)
    return (time.perf_counter() - began) * 1e3, ended


def readers(stepctl: Path, car: Path) -> dict:
    """Functions that take a file, and say in how many milliseconds it was read, and whether it was."""

    def by_stepctl(file: Path) -> tuple[float, bool]:
        duration, ended = timed([stepctl, "locate", "--by", "qr", "--qr", file, "--vehicle", car, "--json"])
        return duration, ended.returncode == 0 and json.loads(ended.stdout)["step"] == "left"

    def by_zbarimg(file: Path) -> tuple[float, bool]:
        duration, ended = timed(["zbarimg", "-q", "--raw", "--nodbus", "-Sbinary", file])
        return duration, ended.stdout.strip() == LABEL.encode()

    found = {"stepctl": by_stepctl, "zbarimg": by_zbarimg}
    try:
        import zxingcpp
    except ImportError:
        return found

    def by_zxing(file: Path) -> tuple[float, bool]:
        began = time.perf_counter()
        codes = zxingcpp.read_barcodes(pictures.Image.open(file), zxingcpp.BarcodeFormat.QRCode)
        return (time.perf_counter() - began) * 1e3, any(code.text == LABEL for code in codes)

    return found | {f"zxing-cpp {metadata.version('zxing-cpp')}": by_zxing}


def read(stepctl: Path, folder: Path, car: Path):
    kinds = pictures.benchmark(LABEL)
    by = readers(stepctl, car)
    print(f"{'codes read':16}" + "".join(f"{name:>18}" for name in by) + f"{'of':>6}")
    total = dict.fromkeys(by, 0)
    durations = {name: [] for name in by}
    for kind, images in kinds.items():
        hits = dict.fromkeys(by, 0)
        for index, image in enumerate(images):
            file = folder / f"{kind}-{index}.jpg"
            file.write_bytes(pictures.jpeg(image))
            for name, reader in by.items():
                duration, hit = reader(file)
                durations[name].append(duration)
                hits[name] += hit
        print(f"{kind:16}" + "".join(f"{hits[name]:18}" for name in by) + f"{len(images):6}")
        total = {name: total[name] + hits[name] for name in by}
    print(f"{'all':16}" + "".join(f"{total[name]:18}" for name in by) + f"{sum(map(len, kinds.values())):6}")
    medians = {name: statistics.median(each) for name, each in durations.items()}
    print(f"{'ms, median':16}" + "".join(f"{medians[name]:18.1f}" for name in by))
    others = [name for name in by if name.startswith("zxing")]
    if others:
        print(f"({others[0]} runs inside this process: its time has no start of a program in it)")


def make(stepctl: Path, car: Path, runs: int):
    programs = {
        "qrencode": ["qrencode", "-8", "-l", "M", "-s", "13", "-o", "-", LABEL],
        "stepctl": [stepctl, "provision", "qr", "--step", "left", "--format", "png", "--vehicle", car],
    }
    for command in programs.values():
        _, ended = timed(command)
        assert ended.returncode == 0 and ended.stdout.startswith(b"\x89PNG"), ended
    rounds = [{name: timed(command)[0] for name, command in programs.items()} for _ in range(runs + 3)][3:]
    print(f"\n{'a code made':16}{'ms, median':>18}{'times qrencode':>18}")
    for name in programs:
        duration = statistics.median(each[name] for each in rounds)
        ratio = statistics.median(each[name] / each["qrencode"] for each in rounds)
        print(f"{name:16}{duration:18.2f}{ratio:18.2f}")


def main():
    parser = argparse.ArgumentParser(description="Measure QR codes, read and made.")
    parser.add_argument("--bin", required=True, type=Path, help="the folder of stepctl and stepctl-qr")
    parser.add_argument("--runs", type=int, default=60, help="of each that makes a code (default: %(default)s)")
    options = parser.parse_args()
    stepctl = options.bin.resolve() / "stepctl"
    with tempfile.TemporaryDirectory(prefix="stepctl-codes.") as folder:
        car = Path(folder) / "car.toml"
        car.write_text(VEHICLE)
        os.environ["HOME"] = folder
        print(f"load {os.getloadavg()[0]:.1f}")
        read(stepctl, Path(folder), car)
        make(stepctl, car, options.runs)


if __name__ == "__main__":
    main()
