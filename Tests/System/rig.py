"""A kernel that has Bluetooth, GPIO, I2C and a watchdog, in which programs can be run: Tests/Rig has more about it."""

import os

import pytest

from programs import REPOSITORY

RUN = REPOSITORY / "Tests/Rig/run.sh"
needs_kernel = pytest.mark.skipif(
    not (REPOSITORY / ".build/rig/linux").exists(), reason="there is no kernel to run it in: `make rig` builds it"
)
IS_KERNEL = "STEPCTL_IN_RIG" in os.environ
in_rig = pytest.mark.skipif(not IS_KERNEL, reason="runs in a kernel that another test starts")
outside = pytest.mark.skipif(IS_KERNEL, reason="runs without a kernel of its own")
