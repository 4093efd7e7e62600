"""Tests of this folder, run in a kernel that has Bluetooth, GPIO, I2C and a bad network.

`test_rig_links.py` has more.
"""

import pytest

import rig

pytestmark = rig.needs_kernel


@pytest.mark.parametrize(
    "file, chosen, options, least",
    [
        ("test_link_faults.py", "", ("--scn", "none", "--noup"), 24),
        ("test_beacons.py", "not provision and not bought and not check", ("--scn", "none", "--noup"), 10),
        ("test_ears.py", "ordinary or unprivileged or opens_for_a_device", ("--scn", "none", "--noup"), 6),
        ("test_doctor.py", "", (), 15),
        ("test_hardware.py", "", ("--scn", "none", "--kernel", "i2c-stub.chip_addr=0x40"), 4),
        ("test_guard.py", "turns_bad", ("--scn", "none", "--noup"), 1),
    ],
    ids=["faults", "beacons", "ears", "doctor", "hardware", "network"],
)
def test_in_a_real_kernel(file, chosen, options, least):
    rig.runs(file, chosen, *options, least=least)
