#!/usr/bin/env python3
"""How long one command takes, from the start of the process to its end, with nothing kept from before.

    cold.py --bin .build/release                         # the folder of stepctl and stepd
    cold.py --bin .build/release --beside /old/release   # and another build, in the same rounds

In turn, over one mosquitto with mutual TLS, on this machine:

    stepctl open    against stepd; the step is open already, so that it is obeyed without any motion
    client.py open  the same in Python (paho-mqtt and cryptography): Tests/Peers
    floor           the same messages in C without any cryptography but TLS's, against a peer that only answers: floor.c

and, beside a C program that says hello, `stepctl --version`. Printed are medians, and the medians of the ratios of a
round: look at these, since a busy machine disturbs them less. `peak MB` is the most memory that a process had at a time.
With `--beside` each build has a vehicle, a broker and a controller of its own, which it made itself; a round runs a
command of one straight after the same command of the other, and the next round runs all in the opposite order.
"""

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(REPOSITORY / "Tests/System"))
import captures  # noqa: E402

PATIENCE = 20.0
FLOOR_TOPICS = ("floor/set_position", "floor/status")
OTHER = ", beside"
# The most memory that a program has: a process begins with what its parent had, so that Python cannot ask.
PEAK = """#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) {
  struct rusage usage;
  (void)count;
  pid_t child = fork();
  if (child == 0) execvp(arguments[1], arguments + 1);
  if (child <= 0 || wait4(child, NULL, 0, &usage) != child) return 1;
  printf("peak %ld\\n", usage.ru_maxrss);
}
"""
HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); }\n'


class Runner:
    """Runs programs with an environment of their own, and stops those that it started."""

    def __init__(self, folder: Path, stack: ExitStack):
        folder.mkdir(exist_ok=True)
        self.folder, self.stack = folder, stack
        self.processes: dict[str, int] = {}
        self.environment = {"PATH": os.environ["PATH"] + ":/usr/sbin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}

    def check(self, *arguments):
        subprocess.run(
            list(map(str, arguments)), env=self.environment, cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )

    def start(self, name: str, *arguments) -> Path:
        """Starts a program that goes on, and returns its log."""
        log = self.folder / f"{name}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                list(map(str, arguments)), env=self.environment, cwd=self.folder, stdout=file, stderr=file
            )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        self.processes[name] = process.pid
        return log

    def time(self, arguments: list) -> tuple[float, float]:
        """Milliseconds of a whole process: on the wall, and of the processor."""
        arguments = list(map(str, arguments))
        with open(self.folder / "output", "w+b") as output:
            redirections = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
            began = time.perf_counter()
            process = os.posix_spawnp(arguments[0], arguments, self.environment, file_actions=redirections)
            _, status, usage = os.wait4(process, 0)
            wall = time.perf_counter() - began
            output.seek(0)
            if status != 0:
                sys.exit(f"{' '.join(arguments)} ended with {status}: {output.read().decode(errors='replace')}")
        return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3

    def peak(self, arguments: list) -> float:
        """The megabytes that a whole process takes at most."""
        said = subprocess.run(
            [self.folder / "peak", *map(str, arguments)], env=self.environment, capture_output=True, text=True
        ).stdout
        return int(re.findall(r"^peak (\d+)$", said, re.MULTILINE)[-1]) / 1e3

    def resident(self, name: str) -> float:
        """The megabytes that a program has had at most since it was started."""
        status = Path(f"/proc/{self.processes[name]}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1e3


def await_text(log: Path, text: str, count: int = 1):
    deadline = time.monotonic() + PATIENCE
    while log.read_text(errors="replace").count(text) < count:
        if time.monotonic() > deadline:
            sys.exit(f"{log.name}: not in {PATIENCE:g} s: {text}\n{log.read_text(errors='replace')}")
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def prepare(runner: Runner, binaries: Path, python: Path) -> dict[str, list]:
    """A vehicle with everything that belongs to it running; returns what is to be timed."""
    # Copies, as an installation has: what a linker has just written lies in the page cache in single pages, and starts
    # later than a copy.
    names = ("stepctl", "stepd", "stepctl-operator")
    stepctl, stepd, _ = (Path(shutil.copy(binaries / name, runner.folder)) for name in names)
    car, port = runner.folder / "car", free_port()
    rider = car / "riders/alice"
    runner.check(stepctl, "provision", "vehicle", car, "--port", port, "--quiet")
    runner.check(stepctl, "provision", "token", car, "--rider", "alice", "--quiet")
    settings = car / "stepd.toml"
    settings.write_text(re.sub(r"(?m)^travel_s = .*$", "travel_s = 0.2", settings.read_text()))
    request, status = FLOOR_TOPICS
    uuid = tomllib.loads((car / "vehicle.toml").read_text())["uuid"]
    with open(car / "mosquitto.acl", "a") as file:
        file.write(f"\nuser rider:{uuid}\ntopic write {request}\ntopic read {status}\n")
        file.write(f"\nuser controller:{uuid}\ntopic read {request}\ntopic write {status}\n")
    for name, source in (("floor", (HERE / "floor.c").read_text()), ("hello", HELLO), ("peak", PEAK)):
        (runner.folder / f"{name}.c").write_text(source)
        libraries = ["-lmosquitto"] if name == "floor" else []
        runner.check("cc", "-O2", "-o", runner.folder / f"{name}.linked", runner.folder / f"{name}.c", *libraries)
        shutil.copy(runner.folder / f"{name}.linked", runner.folder / name)

    broker = runner.start("mosquitto", "mosquitto", "-v", "-c", car / "mosquitto.conf")
    await_text(broker, " running")
    runner.start("stepd", stepd, "--config", settings)
    await_text(broker, "Sending SUBACK")
    floor = [runner.folder / "floor", "localhost", port, car / "tls/ca.pem"]
    peer = [car / "tls/controller.pem", car / "tls/controller.key", status, request, "controller"]
    runner.start("peer", *floor, *peer)
    await_text(broker, "Sending SUBACK", 2)

    vehicle = tomllib.loads((rider / "vehicle.toml").read_text())
    radio = captures.written(runner.folder / "left.btsnoop", captures.at_the_left(vehicle["uuid"]))
    open_ = [stepctl, "open", "--side", "left", "--vehicle", rider / "vehicle.toml", "--radio", radio]
    runner.time(open_)  # the only motion there is
    timed = {
        "floor": [*floor, rider / "rider.pem", rider / "rider.key", request, status],
        "stepctl open": open_,
        "client.py open": [
            python, REPOSITORY / "Tests/Peers/client.py",
            "open", "--vehicle", rider / "vehicle.toml", "--step", "left",
        ],
        "hello": [runner.folder / "hello"],
        "stepctl --version": [stepctl, "--version"],
    }  # fmt: skip
    if not python.exists():
        if runner.folder.name == "new":
            print(f"there is no {python} (`make test` makes it): client.py is left out")
        del timed["client.py open"]
    return timed


def main():
    parser = argparse.ArgumentParser(description="Measure commands from a cold start.")
    parser.add_argument("--bin", required=True, type=Path, help="the folder of stepctl and stepd")
    parser.add_argument("--runs", type=int, default=40, help="of each (default: %(default)s)")
    python = REPOSITORY / ".build/venv/bin/python"
    parser.add_argument("--python", default=python, type=Path, help="one that has what client.py needs")
    parser.add_argument("--beside", type=Path, help="the folder of another build, to be measured in the same rounds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepctl-cold.") as folder, ExitStack() as stack:
        # Started by root, mosquitto becomes a user of its own, who has to reach its files.
        os.chmod(folder, 0o755)
        runner = Runner(Path(folder) / "new", stack)
        timed = prepare(runner, options.bin.resolve(), options.python.absolute())
        runners = {"stepd": runner}
        if options.beside:
            runners["stepd" + OTHER] = Runner(Path(folder) / "old", stack)
            others = prepare(runners["stepd" + OTHER], options.beside.resolve(), Path("/nonexistent"))
            order = [(name, name + OTHER) if name.startswith("stepctl") else (name,) for name in timed]
            timed |= {name + OTHER: command for name, command in others.items()}
            timed = {name: timed[name] for names in order for name in names}
        # The second of two commands that run the same code finds it in the processor's caches: each is second in turn.
        orders = [list(timed), list(reversed(timed))]
        rounds = [{name: runner.time(timed[name]) for name in orders[i % 2]} for i in range(options.runs + 3)][3:]
        peaks = {name: statistics.median(runner.peak(command) for _ in range(5)) for name, command in timed.items()}
        peaks |= {name: each.resident("stepd") for name, each in runners.items()}
    print(f"medians of {len(rounds)} runs each, load {os.getloadavg()[0]:.1f}")
    print(f"{'':26}{'ms':>10}{'CPU ms':>10}{'peak MB':>10}   times its floor")
    for name in timed:
        floor = "hello" if name == "hello" or "--version" in name else "floor"
        wall, cpu = (statistics.median(each[name][kind] for each in rounds) for kind in (0, 1))
        ratio = statistics.median(each[name][0] / each[floor][0] for each in rounds)
        print(f"{name:26}{wall:10.2f}{cpu:10.2f}{peaks[name]:10.1f}{ratio:10.2f} x {floor}")
    for name in runners:
        print(f"{name:26}{'':20}{peaks[name]:10.1f}")
    for name in (name for name in timed if name + OTHER in timed):
        for kind, what in enumerate(("ms", "CPU ms")):
            low, middle, high = statistics.quantiles((e[name][kind] / e[name + OTHER][kind] for e in rounds), n=4)
            print(f"{name}, {what}: {middle:.3f} of the other build's (half of the rounds: {low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
