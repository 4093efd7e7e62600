"""What the tests of whole programs share with those of the peers."""

import pytest
from xdist.scheduler import LoadFileScheduling

from chip import Chip


@pytest.fixture
def chip(tag):
    """An NFC reader with the test's tag before it."""
    with Chip(tag) as chip:
        yield chip


class ByFile(LoadFileScheduling):
    """A file's tests share a vehicle, and a worker. What a kernel runs shares nothing, and takes minutes."""

    def _split_scope(self, nodeid):
        return nodeid if "::test_in_a_real_kernel[" in nodeid else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)
