"""What a step's code says: of captures.VEHICLE, unless a test says otherwise."""

import stepproto as proto
from captures import VEHICLE

OTHER = "00000000-7a0b-4f57-9a55-1f0f6c1b2a90"  # a vehicle that is not meant


def label(step="left", uuid=VEHICLE) -> str:
    return proto.label(uuid, step)


def former_label(step="left", uuid=VEHICLE) -> str:
    """As codes were written before."""
    return proto.json_label(uuid, step)
