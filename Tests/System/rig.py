"""A kernel that has Bluetooth, GPIO, I2C and a watchdog, in which programs can be run: Tests/Rig has more about it."""

import pytest

from programs import REPOSITORY

RUN = REPOSITORY / "Tests/Rig/run.sh"
needs_kernel = pytest.mark.skipif(
    not (REPOSITORY / ".build/rig/linux").exists(), reason="there is no kernel to run it in: `make rig` builds it"
)
