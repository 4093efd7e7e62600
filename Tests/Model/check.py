#!/usr/bin/env python3
"""Has spin look at every state of protocol.pml, and at mutations of it in which spin must find a fault.

Prints a line for each with the states and the time. With --trail NAME it prints the steps that lead to the fault.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
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
    "two notices and the device that the second revokes, a crash": "-DNOTICES=2 -DRUNS_OF_A=0 -DSTOPS=0",
    "two carriers, an honest rider twice, a stop": "-DCARRIERS=2 -DRUNS_OF_B=0 -DCRASHES=0",
    "two carriers, an honest rider and a cheat, a crash": "-DCARRIERS=2 -DRUNS_OF_A=1 -DSTOPS=0",
    "two steps, two runs, a stop": "-DSTEPS=2 -DRUNS_OF_B=0 -DCRASHES=0",
}

# What the controller or the rider's program leaves out, the smallest world in which that shows, and what spin says.
MUTATIONS = {
    "NO_SIGNATURE_CHECK": ("", "m < RUNS"),
    "NO_DEVICE_CHECK": ("-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=0", "DEVICE(session[m].challenge) == DEVICE(m)"),
    "NO_STEP_CHECK": ("-DSTEPS=2 -DRUNS_OF_B=0", "session[m].step == s"),
    "NO_EPOCH_CHECK": ("-DRUNS_OF_B=0", "stop[n].names == 1 + epoch"),
    "NO_SEEN_SET": ("-DRUNS_OF_B=0", "session[step[s].by].is != refused"),
    "SEEN_BY_CARRIER": ("-DCARRIERS=2 -DRUNS_OF_B=0", "session[step[s].by].is != refused"),
    "DOUBT_WITHOUT_NONCE": ("-DCARRIERS=2 -DRUNS_OF_B=0", "reached & BIT(r)"),
    "NO_USED_SET": ("-DRUNS_OF_A=0 -DRUNS_OF_B=2", "!(spent & BIT(session[m].challenge))"),
    "NO_VOIDING": ("-DRUNS_OF_B=0", "!(overtaken & BIT(m))"),
    "WAITING_IS_FORGOTTEN": ("-DRUNS_OF_B=0", "!(overtaken & BIT(m))"),
    "NO_DEADLINE_AFTER_JOURNAL": ("-DRUNS_OF_B=0", "!session[step[s].by].late"),
    "STOP_WITHOUT_VOIDING": ("-DRUNS_OF_B=0", "!(barred & BIT(session[m].challenge))"),
    "STOP_ONLY_MOTION": ("-DRUNS_OF_B=0", "!(barred & BIT(session[m].challenge))"),
    "NO_RESERVATION": ("-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=0", "session[step[s].by].opens || step[s].holder == 0"),
    "NO_JOURNAL_LIMIT": ("-DRUNS_OF_B=0", "invalid end state"),
    "NO_NOTICE_SEQUENCE": ("-DNOTICES=2 -DRUNS_OF_A=0 -DSTOPS=0", "!(revoked && DEVICE(m) == 1)"),
    "NOTICE_NOT_JOURNALED": ("-DNOTICES=2 -DRUNS_OF_A=0 -DSTOPS=0", "!(revoked && DEVICE(m) == 1)"),
    "SUCCESS_WITHOUT_NONCE": ("-DRUNS_OF_B=0", "fulfilled & BIT(r)"),
    "RIDER_BELIEVES_ANY_EPOCH": ("-DRUNS_OF_B=0", "!(moved & BIT(r)) && !(fulfilled & BIT(r))"),
}


# Places that spin must find a way to: the numbers of REACHED. Without them the model would show nothing.
WITNESSES = {
    1: ("", "a rider is shown success"),
    2: ("", "a rider is shown a refusal"),
    3: ("", "a step moves after a crash"),
    4: ("", "a motion is turned round"),
    5: ("-DRUNS_OF_A=1 -DSTOPS=0 -DCRASHES=0", "a close is refused as reserved"),
    6: ("", "a command that waits for the journal is voided"),
    7: ("-DRUNS_OF_A=1 -DRUNS_OF_B=0", "a stop ends a motion"),
    8: ("-DNOTICES=2 -DRUNS_OF_A=0 -DSTOPS=0", "a command of a revoked device is refused"),
    10: ("-DCARRIERS=2 -DRUNS_OF_B=0", "a rider who has lost a carrier learns by the other where the step is"),
}


class Outcome:
    """What spin found in one version of the model."""

    def __init__(self, folder: pathlib.Path, defines: str, optimization: str):
        begin = time.monotonic()
        folder.mkdir()
        self.folder, self.defines = folder, defines.split()
        shutil.copy(MODEL, folder)
        run(folder, "spin", *self.defines, "-a", MODEL.name)
        run(folder, "gcc", optimization, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY}", "-o", "pan", "pan.c")
        self.text = run(folder, "./pan", "-m100000")
        self.seconds = time.monotonic() - begin
        states = re.search(r"(\d+) states, stored", self.text)
        self.states = int(states[1]) if states else 0
        # Every state was looked at, and nothing was wrong in any.
        self.is_clean = "errors: 0" in self.text and not re.search(r"too small|out of memory|not completed", self.text)
        self.fault = "no fault" if self.is_clean else self.find_fault()

    def find_fault(self) -> str:
        """The line of the model that failed, or what pan said."""
        fault = re.search(r"^pan:1: (.*) \(at depth", self.text, re.M)
        if not fault or "assertion" not in fault[1]:
            return fault[1] if fault else self.text
        trail = run(self.folder, "spin", *self.defines, "-t", MODEL.name)
        line = re.search(r"protocol\.pml:(\d+), Error: assertion", trail)
        return MODEL.read_text().splitlines()[int(line[1]) - 1].split("/*")[0].strip() if line else fault[1]


def run(folder: pathlib.Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # spin and pan also end with a status when they have found something.
    if done.returncode and command[0] == "gcc":
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trail", metavar="MUTATION", choices=MUTATIONS, help="show what a mutation leads to")
    parser.add_argument("--steps", action="store_true", help="with --trail: every statement as well")
    arguments = parser.parse_args()
    if missing := [name for name in ("spin", "gcc") if not shutil.which(name)]:
        print(f"check.py: error: {missing[0]} is not installed: run Tests/prepare.sh test", file=sys.stderr)
        return 69
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.trail:
            options = f"-D{arguments.trail} {MUTATIONS[arguments.trail][0]}"
            outcome = Outcome(pathlib.Path(scratch, "trail"), options, "-O0")
            story = run(outcome.folder, "spin", *outcome.defines, "-T", "-t", *(["-p"] * arguments.steps), MODEL.name)
            print(story if arguments.steps else story.partition("spin: trail ends")[0])
            return 0
        return check(pathlib.Path(scratch))


def check(scratch: pathlib.Path) -> int:
    begin = time.monotonic()
    # Title, options, optimization, and what spin has to find; None where it has to find nothing.
    cases = [(title, options, "-O1", None) for title, options in COMPLETE.items()]
    cases += [(name, f"-D{name} {options}", "-O0", fault) for name, (options, fault) in MUTATIONS.items()]
    cases += [(title, f"-DWITNESS={n} {o}", "-O0", "REACHED") for n, (o, title) in WITNESSES.items()]
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = [
            pool.submit(Outcome, scratch / str(number), options, optimization)
            for number, (_, options, optimization, _) in enumerate(cases)
        ]
        for (title, _, _, expected), future in zip(cases, outcomes):
            outcome = future.result()
            good = outcome.is_clean if expected is None else expected in outcome.fault
            said = outcome.fault if good else f"FAILED: spin says: {outcome.fault}; expected: {expected or 'no fault'}"
            failures += not good
            print(f"{outcome.states:>9} states {outcome.seconds:5.1f} s  {title}: {said}", flush=True)
    print(f"{time.monotonic() - begin:.0f} s in all; {failures} of {len(cases)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
