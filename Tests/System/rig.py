"""A kernel that has Bluetooth, GPIO, I2C and a watchdog, in which programs can be run: Tests/Rig has more about it."""

import faulthandler
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from programs import BINARIES, REPOSITORY

RUN = REPOSITORY / "Tests/Rig/run.sh"
needs_kernel = pytest.mark.skipif(
    not (REPOSITORY / ".build/rig/linux").exists(), reason="there is no kernel to run it in: `make rig` builds it"
)
IS_KERNEL = "STEPCTL_IN_RIG" in os.environ
in_rig = pytest.mark.skipif(not IS_KERNEL, reason="runs in a kernel that another test starts")
outside = pytest.mark.skipif(IS_KERNEL, reason="runs without a kernel of its own")


def runs(file: str, chosen: str, *options: str, least: int):
    """Runs a file's tests in there. At least so many have to pass, since tests that are not run find nothing."""
    # It takes minutes, and each test in there is watched.
    faulthandler.cancel_dump_traceback_later()
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-vv", "--tb=short", "--basetemp", "/tmp/in-rig", "-k", chosen]
    environment = ["env", "STEPCTL_IN_RIG=1", f"STEPCTL_BIN_DIR={BINARIES}", "PYTHONDONTWRITEBYTECODE=1"]
    folder = Path(__file__).parent
    ended = subprocess.run(
        [RUN, "--virtual-time", "--timeout", "3000", *options, "--", *environment, *pytest_, folder / file],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    said = ended.stdout[-6000:] + ended.stderr[-500:]
    assert ended.returncode == 0, said
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed and int(passed[1]) >= least, said
