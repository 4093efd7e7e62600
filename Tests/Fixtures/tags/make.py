#!/usr/bin/env python3
"""Makes the images and expected.json here from dumps and from what nfcpy reads in them: `python3 make.py FOLDER`.

The folder has the originals, named as README.md says, and oracle.json, in which nfcpy's results stand under those names:
`kind`, `nfcpy_ndef` (hexadecimal, or null), `capacity`, `writeable`.
"""
import json
import re
import sys
from pathlib import Path

import ndef

here = Path(__file__).parent
folder = Path(sys.argv[1])


def pages(original):
    """Whole pages of four bytes, from page 0 on."""
    if original.suffix == ".bin":
        return original.read_bytes()
    if original.suffix == ".json":
        blocks = json.loads(original.read_text())["blocks"]
        return b"".join(bytes.fromhex(blocks[str(number)]) for number in range(len(blocks)))
    # Flipper Zero
    lines = re.findall(r"^Page (\d+): ((?:[0-9A-Fa-f]{2} ){3}[0-9A-Fa-f]{2})\s*$", original.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(len(lines))), original
    return bytes.fromhex("".join(content for _, content in lines))


def records(message):
    """The URIs and texts in it, as ndeflib decodes them."""
    for record in ndef.message_decoder(message):
        yield getattr(record, "iri", None) or getattr(record, "text", None) or record.type


expected = {}
for name, found in sorted(json.loads((folder / "oracle.json").read_text()).items()):
    image = pages(folder / name)
    if not image:
        continue
    (here / f"{Path(name).stem}.bin").write_bytes(image)
    message = found["nfcpy_ndef"]
    expected[Path(name).stem] = {"chip": found["kind"], "message": message}
    if message is not None:
        expected[Path(name).stem] |= {
            "capacity": found["capacity"], "writable": found["writeable"],
            "records": list(records(bytes.fromhex(message)))}
(here / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
