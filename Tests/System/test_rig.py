"""Tests of this folder, run in a kernel that has Bluetooth, GPIO, I2C and a bad network."""

import faulthandler
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rig
from programs import BINARIES

pytestmark = rig.needs_kernel


@pytest.mark.parametrize(
    "file, chosen, options, least",
    [
        ("test_beacons.py", "not provision and not bought and not check", ("--scn", "none", "--noup"), 10),
        ("test_ears.py", "ordinary or unprivileged or opens_for_a_device", ("--scn", "none", "--noup"), 6),
        ("test_doctor.py", "", (), 15),
        ("test_hardware.py", "", ("--scn", "none", "--kernel", "i2c-stub.chip_addr=0x40"), 3),
        ("test_guard.py", "turns_bad", ("--scn", "none", "--noup"), 1),
    ],
    ids=["beacons", "ears", "doctor", "hardware", "network"],
)
def test_in_a_real_kernel(tmp_path, file, chosen, options, least):
    # It takes minutes, and each test in there is watched.
    faulthandler.cancel_dump_traceback_later()
    pytest_ = [sys.executable, "-m", "pytest", "-q", "--basetemp", "/tmp/in-rig", "-k", chosen]
    environment = ["env", "STEPCTL_IN_RIG=1", f"STEPCTL_BIN_DIR={BINARIES}", "PYTHONDONTWRITEBYTECODE=1"]
    ended = subprocess.run(
        [rig.RUN, "--timeout", "600", *options, "--", *environment, *pytest_, Path(__file__).with_name(file)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    said = ended.stdout[-5000:] + ended.stderr[-1000:]
    assert ended.returncode == 0, said
    passed = re.search(r"(\d+) passed", ended.stdout)
    assert passed and int(passed[1]) >= least, said
