#!/usr/bin/env python3
"""How soon a step moves by Bluetooth, without any network, and what strangers can do about it.

    link.py --bin .build/release            # everything; `make rig` has to be there
    link.py --bin .build/release open ask   # some of it

Runs itself in the rig's kernel: stepd and stepctl with an adapter each, Bumble as strangers, on an air (Tests/Rig/air.c)
with 100 ms advertising, connection events of the kernel's own interval and data length extension. No broker runs, but for
the figures of the network, which are taken beside.

    open       from the line `proof` to `answer   moving`: a rider stands at the step, and one adapter hears the beacon
               and makes the link; and how long the adapter hears no beacons because it connects
    cold       the proof is there at once: from the beginning of the process to `moving`, and the same by a network
    ask        `status` by a rider of another make, question to answer; with and without data length extension
    stop       by a rider whose link is there already, command to the answer that says that the step rests
    strangers  `cold` while four strangers hold links and one more connects all the time
    walks      how many of the walk-ups that a step opens for with a network it opens for without one. The model's riders
               (vehicle_model.py) come from 5 to 9 m, with its levels and its losses, which the link suffers as well. The
               kernel's time is virtual: an hour of walks takes some minutes. Not part of everything; `--rounds 1000`
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import vehicle_model

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path[:0] = [str(REPOSITORY / "Tests/System"), str(REPOSITORY / "Tests/Peers")]
PARTS = ("open", "cold", "ask", "stop", "strangers")
VIRTUAL_PARTS = ("walks",)


def show(name: str, seconds: list[float], asked: int | None = None):
    if not seconds:
        return print(f"{name:<44} none of {asked}", flush=True)
    ordered = sorted(seconds)
    percentile = [ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))] for share in (0.5, 0.95, 0.99)]
    figures = "  ".join(f"p{p} {value * 1000:6.0f} ms" for p, value in zip((50, 95, 99), percentile))
    print(f"{name:<44} {figures}  {len(ordered)} of {asked or len(ordered)}", flush=True)


class Street:
    """A vehicle with its adapter, a rider with another, and strangers."""

    def __init__(
        self, folder: Path, stack: ExitStack, peers: int = 1, options: str = "",
        beacons: tuple[str, ...] = ("left=hci0",), adapters: int = 2,
    ):
        from links import Air, takes_links
        from programs import Stepctl, Transcript
        from vehicle import Vehicle

        (folder / "home").mkdir(parents=True)
        self.beacons = beacons
        words = [word for beacon in beacons for word in ("--beacon", beacon)]
        self.vehicle = Vehicle(folder / "car", Stepctl(folder / "home", Transcript()), stack, *words)
        takes_links(self.vehicle)
        self.air = Air(self.vehicle, folder, *([options] if options else []), peers=peers, adapters=adapters)
        self.air.does("rssi", 0, 1, -50)
        self.riders = [self.vehicle.rider(f"rider{number}") for number in range(16)]

    def starts(self):
        from links import starts

        starts(self.vehicle)
        for beacon in self.beacons:
            self.vehicle.stepd.says(f"{beacon.partition('=')[0]}: on the air")

    def opens(self, number: int, *arguments) -> tuple[float, float] | None:
        return self.moves(number, ("open", "close")[number % 2], "left", *arguments)

    def moves(self, number: int, position: str, *arguments) -> tuple[float, float] | None:
        """Seconds from `proof` and from the beginning until it moves. A device may begin ten motions a minute."""
        rider = self.riders[number // 2 % len(self.riders)]
        command = [os.environ["STEPCTL_BIN_DIR"] + "/stepctl", position, "--vehicle", rider.file, *arguments]
        began, times, said = time.monotonic(), {}, []
        process = subprocess.Popen(
            command, env=self.vehicle.stepctl.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for line in process.stderr:
            said.append(line)
            times.setdefault(re.sub(r" +", " ", line.strip()).partition(":")[0][:13], time.monotonic())
        if process.wait() != 0:
            print("".join(said), file=sys.stderr, flush=True)
            return None
        moved = times.get("answer moving") or times["answer " + {"open": "open", "close": "closed"}[position]]
        return moved - next(at for label, at in times.items() if label.startswith("proof")), moved - began

    def plays(self, walk, is_over: threading.Event):
        """The third and the fourth adapter are the beacons, of which each frame is the model's. The vehicle's link has
        the left one's level, and loses the model's share of its frames."""
        heard = {(int(at / vehicle_model.INTERVAL), beacon): power + level for at, beacon, level, power in walk.frames}
        began = time.monotonic()
        for slot, loss in enumerate(walk.losses):
            if is_over.wait(max(0, began + slot * vehicle_model.INTERVAL - time.monotonic())):
                break
            orders = [("loss", 0, 1, round(100 * loss))]
            for beacon, port in enumerate((2, 3)):
                level = heard.get((slot, beacon))
                orders.append(("loss", port, 1, 100 if level is None else 0))
                if level is not None:
                    orders += [("rssi", adapter, 1, round(level)) for adapter in ((port, 0) if port == 2 else (port,))]
            for order in orders:
                self.air.does(*order)
        for port in (0, 2, 3):
            self.air.does("loss", port, 1, 0)

    def walks_up(self, number: int, walk, *arguments) -> float | None:
        """Seconds until the rider's own step moves; None if it does not. No other one may."""
        before = self.vehicle.motions
        positions = {step: position for step, _, position in before}
        own = ("left", "right")[walk.step]
        is_over = threading.Event()
        air = threading.Thread(target=self.plays, args=(walk, is_over))
        air.start()
        limit = ("--timeout", str(round(vehicle_model.DURATION)))
        times = self.moves(number, "close" if positions.get(own) == "open" else "open", "--radio", "hci1", *limit, *arguments)
        is_over.set()
        air.join()
        moved = [step for step, _, _ in self.vehicle.motions[len(before):]]
        if moved not in ([], [own]):
            print(f"walk {number}: at the step {own}, and {moved} moved", flush=True)
        return times[1] if times and moved == [own] else None

    def deaf_times(self) -> list[float]:
        """From the end of the rider's scan to the next one, where the kernel has made a connection in between.

        The air's log has LE Set Extended Scan Parameters (2041) and Enable (2042). The kernel's own scan, for a connection,
        takes devices of its accept list alone: the second byte of the parameters is 1.
        """
        times, end, is_kernels, connects = [], None, False, False
        for moment, command, parameters in re.findall(
            r"^([\d.]+) 1 cmd (2041|2042) (\w+)", self.air.log.read_text(), re.MULTILINE
        ):
            if command == "2041":
                is_kernels = parameters[2:4] == "01"
                connects |= is_kernels
            elif parameters.startswith("00"):
                end = end or float(moment)
            elif not is_kernels:
                if connects:
                    times.append(float(moment) - end)
                end, connects = None, False
        return times


def measure_open(folder, rounds):
    with ExitStack() as stack:
        street = Street(folder, stack)
        street.starts()
        found = [street.opens(number, "--radio", "hci1") for number in range(rounds)]
        show("open: from being located to the motion", [times[0] for times in found if times], rounds)
        show("open: from the beginning to the motion", [times[1] for times in found if times], rounds)
        show("open: no beacons are heard", street.deaf_times())


def measure_cold(folder, rounds):
    with ExitStack() as stack:
        # A recording's beacons do not change.
        street = Street(folder, stack, beacons=())
        street.starts()
        recording = ("--radio", street.vehicle.radio("left"), "--via", "hci1")
        found = [street.opens(number, *recording) for number in range(rounds)]
        show("cold: located at once, to the motion", [times[1] for times in found if times], rounds)
        street.vehicle.starts_broker()
        street.vehicle.stepd.says("connected to")
        network = ("--radio", street.vehicle.radio("left"), "--via", "network")
        found = [street.opens(number, *network) for number in range(rounds)]
        show("cold: the same by a network on this machine", [times[1] for times in found if times], rounds)


def told(running, patience=300) -> list[dict]:
    ended = running.ends(patience)
    assert ended.status == 0, ended
    return [json.loads(line) for line in ended.lines]


def measure_ask(folder, rounds):
    for name, options in (("with data length extension", ""), ("without", ",dle=0")):
        with ExitStack() as stack:
            street = Street(folder / name.replace(" ", "-"), stack, options=options)
            street.starts()
            answers = told(street.air.peer(0, street.riders[0], "unknown", "--times", rounds, "--stay", 4))
            show(f"ask: {name}", [time for answer in answers for time in answer["round_trips"]], rounds * 4)


def measure_stop(folder, rounds):
    with ExitStack() as stack:
        street = Street(folder, stack, beacons=())
        street.vehicle.edit("stepd.toml", travel_s=4.0)
        street.starts()
        times = []
        for number in range(rounds):
            rider = street.riders[number // 2 % len(street.riders)]
            answers = told(street.air.peer(0, rider, ("open", "close")[number % 2], "--stopped"))
            times += [answer["stopped"] for answer in answers]
        show("stop: command to rest, on an open link", times, rounds)


def measure_strangers(folder, rounds):
    with ExitStack() as stack:
        street = Street(folder, stack, peers=6, beacons=())
        street.starts()
        crowd = [street.air.peer(n, street.riders[0], "silent", "--seconds", 600) for n in range(1, 5)]
        crowd.append(street.air.peer(5, street.riders[0], "connect", "--seconds", 600, "--times", 100_000))
        assert all(stranger.lives for stranger in crowd)
        recording = ("--radio", street.vehicle.radio("left"), "--via", "hci1", "--timeout", "5")
        found = [street.opens(number, *recording) for number in range(rounds)]
        show("strangers: cold beside five of them", [times[1] for times in found if times], rounds)


def measure_walks(folder, rounds):
    walks = vehicle_model.riders(31, rounds, "walks up")
    with ExitStack() as stack:
        street = Street(folder, stack, peers=0, beacons=("left=hci2", "right=hci3"), adapters=4)
        street.vehicle.edit("stepd.toml", reserve_s=0)  # for whoever walks up next
        street.vehicle.starts_broker()
        street.starts()
        street.vehicle.stepd.says("connected to")
        found = {}
        for name, arguments in (("with a network", ("--via", "network")), ("without", ())):
            if name == "without":
                # The broker is there, and cannot be reached: as in a garage.
                subprocess.run("tc qdisc add dev lo root netem loss 100%".split(), check=True)
            found[name] = [street.walks_up(number, walk, *arguments) for number, walk in enumerate(walks)]
            show(f"walks: to the motion, {name}", [time for time in found[name] if time], len(walks))
        opened = [pair for pair in zip(found["with a network"], found["without"]) if pair[0]]
        both = sum(without is not None for _, without in opened)
        print(f"walks: opened without a network, of those with one: {both} of {len(opened)}, {both / len(opened):.1%}")


def in_kernel(arguments, parts: list[str], *options: str) -> int:
    if not parts:
        return 0
    rig = [REPOSITORY / "Tests/Rig/run.sh", "--timeout", 7200, "--scn", "none", "--noup", *options, "--"]
    inside = [sys.executable, __file__, "--bin", arguments.bin.resolve(), "--rounds", arguments.rounds, *parts]
    return subprocess.run(list(map(str, [*rig, "env", "STEPCTL_IN_RIG=1", *inside]))).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=Path, help="the folder of stepctl and stepd")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join((*PARTS, *VIRTUAL_PARTS))}")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    if wrong := set(parts) - set(PARTS) - set(VIRTUAL_PARTS):
        parser.error(f"there is no {' or '.join(sorted(wrong))}")
    if "STEPCTL_IN_RIG" not in os.environ:
        if not (REPOSITORY / ".build/rig/linux").exists():
            print("link.py: error: there is no kernel to run it in: `make rig` builds it", file=sys.stderr)
            return 69
        statuses = [in_kernel(arguments, [part for part in parts if part in PARTS])]
        statuses += [in_kernel(arguments, [part], "--virtual-time") for part in parts if part in VIRTUAL_PARTS]
        return max(statuses)
    os.environ["STEPCTL_BIN_DIR"] = str(arguments.bin)
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            globals()[f"measure_{part}"](Path(folder) / part, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
