"""Tests of Bluetooth links, in a kernel whose adapters are on an air with distances: several minutes each."""

import pytest

import rig

pytestmark = rig.needs_kernel


@pytest.mark.parametrize(
    "file, least",
    [("test_link.py", 24), ("test_link_faults.py", 24), ("test_link_radios.py", 14)],
    ids=["link", "faults", "radios"],
)
def test_in_a_real_kernel(file, least):
    rig.runs(file, "", "--scn", "none", "--noup", least=least)
