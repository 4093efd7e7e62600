"""Tests of Bluetooth links, in a kernel whose adapters are on an air with distances: several minutes each.

`test_rig.py` has the others, so that both files take as long. They run side by side, and no more kernels than two do.
"""

import pytest

import rig

pytestmark = rig.needs_kernel


@pytest.mark.parametrize("file, least", [("test_link.py", 27), ("test_link_radios.py", 14)], ids=["link", "radios"])
def test_in_a_real_kernel(file, least):
    rig.runs(file, "", "--scn", "none", "--noup", least=least)
