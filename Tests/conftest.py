"""What the tests of whole programs share with those of the peers."""

import pytest

from chip import Chip


@pytest.fixture
def chip(tag):
    """An NFC reader with the test's tag before it."""
    with Chip(tag) as chip:
        yield chip
