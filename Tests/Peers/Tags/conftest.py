"""A chip with a tag before it, and the real libnfc on the chip's port.

    .build/venv/bin/python -m pytest Tests/Peers/Tags
"""

import pytest

import libnfc
from type2 import Type2


@pytest.fixture
def tag() -> Type2:
    """An NTAG213 with 48 bytes that can be told apart."""
    tag = Type2("ntag213")
    tag.memory[16:64] = bytes(range(0x10, 0x40))
    return tag


@pytest.fixture
def device(chip):
    """libnfc, with the tag selected."""
    with libnfc.opened(chip.connection) as device:
        assert device.select() == chip.tag.uid
        chip.zero()
        yield device


def pytest_collection_modifyitems(items):
    """Without libnfc whatever needs it is skipped."""
    missing = libnfc.missing()
    if missing:
        for item in items:
            if item.module.__name__ in ("test_chip", "test_faults"):
                item.add_marker(pytest.mark.skip(reason=f"there is no {missing}: Tests/prepare.sh test"))
