"""The real libnfc with its tools, and nfcpy, take the chip for a PN532."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import nfc
import nfc.clf.pn532
import nfc.clf.transport
import pytest

from chip import Chip
from type2 import Type2

HERE = Path(__file__).parent


def run(chip: Chip, *command: str, typed: str = "") -> subprocess.CompletedProcess:
    """One of libnfc's tools with this reader."""
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}: apt-get install libnfc-bin")
    environment = os.environ | {"LIBNFC_DEFAULT_DEVICE": chip.connection, "LIBNFC_LOG_LEVEL": "0"}
    return subprocess.run(command, input=typed, env=environment, capture_output=True, text=True, timeout=20)


def test_nfc_list_shows_the_tag():
    with Chip(Type2("ntag213", bytes.fromhex("04112233445566"))) as chip:
        listed = run(chip, "nfc-list")
    assert "04  11  22  33  44  55  66" in listed.stdout
    assert "00  44" in listed.stdout


def test_nfc_list_shows_no_tag_where_there_is_none():
    with Chip() as chip:
        listed = run(chip, "nfc-list")
    assert listed.returncode == 0 and "target(s) found" not in listed.stdout


@pytest.mark.parametrize("model, pages", [("ntag213", 45), ("ntag215", 135), ("ntag216", 231), ("ultralight", 16)])
def test_nfc_mfultralight_reads_all_of_a_tag(model, pages, tmp_path):
    tag = Type2(model)
    tag.memory[16:32] = bytes(range(16))
    with Chip(tag) as chip:
        read = run(chip, "nfc-mfultralight", "r", str(tmp_path / "dump"))
    assert f"Done, {pages} of {pages} pages read" in read.stdout
    shown = bytearray(tag.content())
    if tag.model.version:
        shown[-8:] = bytes(8)  # the password is never shown
    assert (tmp_path / "dump").read_bytes()[: len(shown)] == shown


def test_nfc_mfultralight_writes_a_tag(tmp_path):
    tag = Type2("ntag213")
    dump = bytearray(tag.content())
    dump[16:160] = bytes(range(144))
    (tmp_path / "dump").write_bytes(dump)
    with Chip(tag) as chip:
        written = run(chip, "nfc-mfultralight", "w", str(tmp_path / "dump"), typed="n\nn\nn\nn\n")
    assert "0 pages failed" in written.stdout, written.stdout
    assert tag.content()[16:160] == bytes(range(144))
