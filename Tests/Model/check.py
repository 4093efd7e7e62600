#!/usr/bin/env python3
"""Has spin look at every state of protocol.pml, and at mutations of it in which spin must find a fault.

Prints a line for each with the states and the time. With --trail NAME it prints the steps that lead to the fault.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).with_name("protocol.pml")
MEMORY = 3000  # MB for one run: above that spin gives up, and the check fails.

# What is looked at in whole. Everything at once has too many states for each change; these overlap.
COMPLETE = {
    "one device, two runs, a stop, a crash": "-DRUNS_OF_B=0",
    "an honest rider and a cheat, a stop, a crash": "-DRUNS_OF_A=1",
    "an honest rider twice and a cheat": "-DSTOPS=0 -DCRASHES=0",
    "a cheat twice, a stop": "-DRUNS_OF_A=0 -DRUNS_OF_B=2 -DCRASHES=0",
    "an honest rider and a cheat, two crashes": "-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=2",
    "two steps, two runs, a stop": "-DSTEPS=2 -DRUNS_OF_B=0 -DCRASHES=0",
}

# What the controller or the rider's program leaves out, the smallest world in which that shows, and what spin says.
MUTATIONS = {
    "NO_SIGNATURE_CHECK": ("", "m < RUNS"),
    "NO_DEVICE_CHECK": ("-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=0", "DEVICE(session[m].challenge) == DEVICE(m)"),
    "NO_STEP_CHECK": ("-DSTEPS=2 -DRUNS_OF_B=0", "session[m].step == s"),
    "NO_EPOCH_CHECK": ("-DRUNS_OF_B=0", "stop[n].names == 1 + epoch"),
    "NO_SEEN_SET": ("-DRUNS_OF_B=0", "session[step[s].by].is != refused"),
    "NO_USED_SET": ("-DRUNS_OF_A=0 -DRUNS_OF_B=2", "!(spent & BIT(session[m].challenge))"),
    "NO_VOIDING": ("-DRUNS_OF_B=0", "!(overtaken & BIT(m))"),
    "WAITING_IS_FORGOTTEN": ("-DRUNS_OF_B=0", "!(overtaken & BIT(m))"),
    "NO_DEADLINE_AFTER_JOURNAL": ("-DRUNS_OF_B=0", "!session[step[s].by].late"),
    "STOP_WITHOUT_VOIDING": ("-DRUNS_OF_B=0", "!(barred & BIT(session[m].challenge))"),
    "STOP_ONLY_MOTION": ("-DRUNS_OF_B=0", "!(barred & BIT(session[m].challenge))"),
    "NO_RESERVATION": ("-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=0", "session[step[s].by].opens || step[s].holder == 0"),
    "NO_JOURNAL_LIMIT": ("-DRUNS_OF_B=0", "invalid end state"),
    "SUCCESS_WITHOUT_NONCE": ("-DRUNS_OF_B=0", "fulfilled & BIT(r)"),
    "RIDER_BELIEVES_ANY_EPOCH": ("-DRUNS_OF_B=0", "!(moved & BIT(r)) && !(fulfilled & BIT(r))"),
}


class Outcome:
    """What spin found in one version of the model."""

    def __init__(self, defines: str, folder: pathlib.Path, optimization: str):
        begin = time.monotonic()
        self.folder, self.defines = folder, defines.split()
        run(folder, "spin", *self.defines, "-a", str(MODEL))
        run(folder, "gcc", optimization, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY}", "-o", "pan", "pan.c")
        self.text = run(folder, "./pan", "-m100000")
        self.seconds = time.monotonic() - begin
        states = re.search(r"(\d+) states, stored", self.text)
        self.states = int(states[1]) if states else 0
        fault = re.search(r"^pan:1: (.*) \(at depth", self.text, re.M)
        self.fault = fault[1] if fault else None
        # An empty stack and no fault: every state was looked at.
        self.is_complete = not re.search(r"errors: [^0]|max search depth too small|out of memory|Search not", self.text)
        self.is_complete = self.is_complete and "errors: 0" in self.text
        self.unreached = set(re.findall(r"protocol\.pml:(\d+), state \d+, (.*)$", self.text, re.M))

    def asserted(self) -> str:
        """The line of the model that failed."""
        if not self.fault or "assertion" not in self.fault:
            return self.fault or ""
        trail = run(self.folder, "spin", *self.defines, "-t", str(MODEL))
        line = re.search(r"protocol\.pml:(\d+), Error: assertion", trail)
        return MODEL.read_text().splitlines()[int(line[1]) - 1].strip() if line else self.fault


def run(folder: pathlib.Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode and command[0] in ("spin", "gcc") and "-t" not in command:
        sys.exit(f"check.py: error: {' '.join(command[:1])} failed:\n{done.stdout}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trail", metavar="MUTATION", choices=MUTATIONS, help="show what a mutation leads to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.trail:
            defines = f"-D{arguments.trail} {MUTATIONS[arguments.trail][0]}"
            outcome = Outcome(defines, pathlib.Path(scratch), "-O1")
            print(run(outcome.folder, "spin", *outcome.defines, "-t", "-p", "-g", str(MODEL)))
            return 0
        return check(pathlib.Path(scratch))


def check(scratch: pathlib.Path) -> int:
    begin = time.monotonic()
    failures = 0

    def folder(name: str) -> pathlib.Path:
        path = scratch / re.sub(r"\W+", "-", name)
        path.mkdir()
        return path

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complete = {n: pool.submit(Outcome, d, folder(n), "-O2") for n, d in COMPLETE.items()}
        mutated = {n: pool.submit(Outcome, f"-D{n} {d}", folder(n), "-O1") for n, (d, _) in MUTATIONS.items()}
        unreached = None
        for name, future in complete.items():
            outcome = future.result()
            good = outcome.is_complete and not outcome.fault
            failures += not good
            said = "no fault" if good else outcome.asserted() or outcome.text
            print(f"{outcome.states:>9} states {outcome.seconds:6.1f} s  {name}: {said}", flush=True)
            unreached = outcome.unreached if unreached is None else unreached & outcome.unreached
        for name, future in mutated.items():
            outcome, expected = future.result(), MUTATIONS[name][1]
            found = outcome.asserted()
            good = expected in found
            failures += not good
            said = f"found: {found}" if good else f"NOT FOUND ({expected}); spin says: {found or 'no fault'}"
            print(f"{outcome.states:>9} states {outcome.seconds:6.1f} s  {name}: {said}", flush=True)
    # A statement that no run reaches would check nothing.
    for line, statement in sorted(unreached or set()):
        if statement not in ('"-end-"',):
            failures += 1
            print(f"line {line} is never reached: {statement}")
    print(f"{time.monotonic() - begin:.0f} s in all, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
