#!/usr/bin/env python3
"""How long a rider who is located waits until the step moves: from the line `proof` to the line `answer   moving`.

    motion.py --bin .build/release                         # the folder of stepctl and stepd
    motion.py --bin .build/release --beside /old/release   # and another build, in the same rounds

One mosquitto with mutual TLS, stepd and a radio at the end of a socket (Tests/System/adapter.py), on this machine. In
each round a rider opens the step or closes it; the broker and stepd run all the time. Printed are the median and the 99th
percentile of all rounds, and the median of the ratios of a round. A build that connects between the two lines gives its
radio back before the first of them, which counts for it.

With --delay each packet to and from the broker takes so much longer, as between a phone and a broker far away.
"""

import argparse
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "Tests/System")]
import captures  # noqa: E402
from adapter import Adapter  # noqa: E402
from cold import Runner, await_text, free_port  # noqa: E402

PAIRS = 4  # of commands that a rider gives: a vehicle lets a device begin ten motions a minute


class Relay:
    """Between a rider and the broker: passes on what comes, later."""

    def __init__(self, port: int, to: int, delay: float):
        self.to, self.delay = to, delay
        self.listener = socket.create_server(("localhost", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self.listener.accept()
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near):
        # SYN and its answer have the same way.
        time.sleep(2 * self.delay)
        far = socket.create_connection(("localhost", self.to))
        for a, b in ((near, far), (far, near)):
            a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source, sink):
        waiting, selector, is_open = [], selectors.DefaultSelector(), True
        selector.register(source, selectors.EVENT_READ)
        try:
            while is_open or waiting:
                timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
                if is_open and selector.select(timeout):
                    chunk = source.recv(65536)
                    is_open = bool(chunk)
                    waiting.append((time.monotonic() + self.delay, chunk))
                elif not is_open:
                    time.sleep(timeout or 0)
                while waiting and waiting[0][0] <= time.monotonic():
                    chunk = waiting.pop(0)[1]
                    sink.sendall(chunk) if chunk else sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Build:
    def __init__(self, folder: Path, binaries: Path, stack: ExitStack, riders: int, delay: float):
        self.runner = Runner(folder, stack)
        self.stepctl, self.car = binaries / "stepctl", folder / "car"
        port = free_port()
        self.runner.check(self.stepctl, "provision", "vehicle", self.car, "--port", port, "--quiet")
        self.riders = [f"rider{number}" for number in range(riders)]
        for name in self.riders:
            self.runner.check(self.stepctl, "provision", "token", self.car, "--rider", name, "--quiet")
        settings = self.car / "stepd.toml"
        settings.write_text(re.sub(r"(?m)^travel_s = .*$", "travel_s = 0.2", settings.read_text()))
        broker = self.runner.start("mosquitto", "mosquitto", "-v", "-c", self.car / "mosquitto.conf")
        await_text(broker, " running")
        self.runner.start("stepd", binaries / "stepd", "--config", settings)
        await_text(broker, "Sending SUBACK")
        if delay:
            away = free_port()
            Relay(away, port, delay)
            for name in self.riders:
                file = self.car / "riders" / name / "vehicle.toml"
                file.write_text(file.read_text().replace(f"port = {port}", f"port = {away}"))
        uuid = tomllib.loads((self.car / "vehicle.toml").read_text())["uuid"]
        self.air = stack.enter_context(
            Adapter(folder / "radio", uuid, {1: captures.HERE, 2: captures.AWAY}, rate=20)
        )

    def time(self, word: str, rider: str) -> float:
        """Milliseconds from the proof to the motion."""
        file = self.car / "riders" / rider / "vehicle.toml"
        arguments = [self.stepctl, word, "--side", "left", "--vehicle", file, "--radio", self.air.radio]
        at: dict[str, float] = {}
        with subprocess.Popen(
            list(map(str, arguments)), env=self.runner.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            rest = b""
            while chunk := os.read(process.stderr.fileno(), 4096):
                now = time.perf_counter()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    for begin in ("proof", "answer   moving"):
                        if line.decode().startswith(begin):
                            at[begin] = now
        if process.returncode or len(at) < 2:
            sys.exit(f"{word} ended with {process.returncode}")
        return (at["answer   moving"] - at["proof"]) * 1e3


def main():
    parser = argparse.ArgumentParser(description="Measure the time from being located to the step's motion.")
    parser.add_argument("--bin", required=True, type=Path, help="the folder of stepctl and stepd")
    parser.add_argument("--runs", type=int, default=40, help="motions of each build (default: %(default)s)")
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds of a packet's way (default: none)")
    parser.add_argument("--beside", type=Path, help="the folder of another build, to be measured in the same rounds")
    options = parser.parse_args()
    riders = -(-options.runs // (2 * PAIRS))
    with tempfile.TemporaryDirectory(prefix="stepctl-motion.") as folder, ExitStack() as stack:
        # Started by root, mosquitto becomes a user of its own, who has to reach its files.
        os.chmod(folder, 0o755)
        builds = {"new": options.bin} | ({"old": options.beside} if options.beside else {})
        measured = {
            name: Build(Path(folder) / name, path.resolve(), stack, riders, options.delay / 1e3)
            for name, path in builds.items()
        }
        rounds = []
        for number in range(options.runs):
            word = ("open", "close")[number % 2]
            rounds.append({n: each.time(word, each.riders[number // (2 * PAIRS)]) for n, each in measured.items()})
    print(f"{len(rounds)} motions each, load {os.getloadavg()[0]:.1f}; ms from proof to motion")
    for name in measured:
        values = sorted(each[name] for each in rounds)
        high = values[min(len(values) - 1, round(0.99 * len(values)))]
        print(f"{name:8} p50 {statistics.median(values):8.2f}   p99 {high:8.2f}   least {values[0]:8.2f}")
    if options.beside:
        ratio = statistics.median(each["old"] / each["new"] for each in rounds)
        print(f"the old build takes {ratio:.1f} times as long (median of the rounds)")


if __name__ == "__main__":
    main()
