"""`provision tag` with the real libnfc, on a PN532 that the tests play; nfcpy says what a tag then holds."""

import csv
import fcntl
import io
import os
import random
import re
import signal
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import ndef
import pytest

import libnfc
import nfcpy_reader
from programs import AS_ANYBODY, BINARIES, REPOSITORY, STEPCTL, children, wait_until
from tags import OTHER_UID, former_label, label, records, texts, written
from type2 import MODELS, Type2
from type4 import Type4

pytestmark = pytest.mark.skipif(libnfc.missing() is not None, reason=f"there is no {libnfc.missing()}")

UID = "04A1B2C3D4E580"
NOBODY = 65534
SMALL = bytes.fromhex("e1100600 0300fe00")  # a formatted tag with room for 46 bytes


@pytest.fixture
def provision(stepctl, file_vehicle, chip):
    """`provision tag` with the test's chip."""

    def run(*arguments, step="left", nfc=chip.connection, **more):
        given = ("--step", step, "--vehicle", file_vehicle.folder / "vehicle.toml", *arguments)
        return stepctl("provision", "tag", *given, *(("--nfc", nfc) if nfc else ()), **more)

    return run


@pytest.fixture
def starts(stepctl, file_vehicle, chip, tmp_path):
    """`provision tag` beside the test."""
    started = []

    def run(*arguments):
        given = ("--step", "left", "--vehicle", file_vehicle.folder / "vehicle.toml", "--nfc", chip.connection)
        started.append(stepctl.start(tmp_path / f"{len(started)}.log", "provision", "tag", *given, *arguments))
        return started[-1]

    yield run
    for running in started:
        running.close()


# Writing.


@pytest.mark.arm64
@pytest.mark.parametrize("model", ["ntag213", "ntag215", "ntag216", "ntag203"])
def test_another_program_reads_the_text_that_was_written(model, provision, chip, file_vehicle):
    chip.place(Type2(model))
    ended = provision()
    assert (ended.status, ended.lines) == (
        0,
        [f"wrote the left step's name to {UID} ({model.upper() if model != 'ntag203' else 'unknown chip'})"],
    )
    (record,) = records(chip.tag)
    assert (record.type, record.language, record.text) == ("urn:nfc:wkt:T", "en", label(file_vehicle, "left"))


@pytest.mark.arm64
def test_libnfc_reads_the_pages_that_were_written(provision, chip, tmp_path):
    assert provision().status == 0
    dump = tmp_path / "dump"
    assert libnfc.run(chip.connection, "nfc-mfultralight", "r", str(dump)).returncode == 0
    # It is made for tags of 64 bytes and more, and reads those of an NTAG213 but for what only the key shows.
    assert dump.read_bytes()[:160] == bytes(chip.tag.memory[:160])


def test_a_tag_that_was_never_formatted_is(provision, chip, file_vehicle):
    chip.place(Type2("ntag215", image=bytes.fromhex("04a1b29fc3d4e5807248000000000000") + bytes(16)))
    assert provision().status == 0
    assert chip.tag.page(3).hex() == "e1103e00" and texts(chip.tag) == [label(file_vehicle, "left")]


def test_it_takes_the_fewest_commands(provision, chip):
    assert provision().status == 0
    # Tests/Benchmarks/tags.py: opening and closing take 9, selecting 7; and then GET_VERSION, the WRITEs, and three
    # FAST_READs: of what is there, of what was written while the message is empty, and of its length.
    assert chip.counts()["commands"] - chip.counts()["writes"] <= 20
    assert chip.counts()["writes"] <= 20
    chip.zero()
    ended = provision("--json")
    assert (ended.json["outcome"], ended.json["changes"], chip.counts()["writes"]) == ("unchanged", 0, 0)
    assert chip.counts()["commands"] <= 18


def test_what_is_right_already_is_not_written_again(provision, chip):
    assert provision().status == 0
    chip.zero()
    assert provision(step="right").status == 0
    assert 0 < chip.counts()["writes"] < 10


def test_a_dry_run_writes_nothing(provision, chip, file_vehicle):
    before = bytes(chip.tag.memory)
    ended = provision("--dry-run")
    assert ended.status == 0 and ended.lines == [
        f"would write 16 pages to {UID} (NTAG213)",
        label(file_vehicle, "left"),
    ]
    assert chip.counts()["writes"] == 0 and bytes(chip.tag.memory) == before
    assert provision("--dry-run", "--json").json["outcome"] == "planned"


def test_what_else_a_tag_holds_stays_unless_told(provision, chip, file_vehicle):
    others = [ndef.UriRecord("https://example.org"), ndef.Record("application/x", "a", b"b")]
    written(chip.tag, ndef.TextRecord(label(file_vehicle, "right")), *others)
    assert provision().status == 0
    assert records(chip.tag) == [ndef.TextRecord(label(file_vehicle, "left")), *others]
    assert provision("--replace-all").lines[-1] == "gave up 2 other records"
    assert texts(chip.tag) == [label(file_vehicle, "left")]
    assert chip.tag.memory[16:21].hex() == "0103a00c34", "the lock control TLV stays in any case"


IN_USE = (
    "the tag is not formatted, but {} of it hold data, perhaps another system's; nothing was written",
    "use another tag; --replace-all gives up the data, and formats the tag for ever",
)
UNKNOWN_CHIP = "the tag's chip is not known, so it can be neither formatted nor locked"
# What is told of a card that three pages of are in use, and the last page for data.
OTHERS_CARDS = {
    "ntag213": (IN_USE[0].format("3 pages"), 39),
    "ntag215": (IN_USE[0].format("3 pages"), 129),
    "ntag216": (IN_USE[0].format("3 pages"), 225),
    "ultralight-ev1-48": (IN_USE[0].format("3 pages"), 15),
    "ultralight-ev1-128": (IN_USE[0].format("3 pages"), 35),
    "ultralight": (UNKNOWN_CHIP, 15),
    "ultralight-c": (UNKNOWN_CHIP, 39),
}


def of_another_system(model: str, first: int, container: bytes = bytes(4)) -> Type2:
    """A card without a container, which another system uses from this page on."""
    tag = Type2(model)
    tag.memory[12 : 16 + len(tag.model.content)] = container + bytes(len(tag.model.content))
    tag.memory[first * 4 : first * 4 + 12] = bytes.fromhex("0000000c 7a696f6e 43000000")
    tag.reset()
    return tag


@pytest.mark.parametrize("model", OTHERS_CARDS)
def test_a_card_of_another_system_is_left_as_it_is_whichever_pages_it_uses(model, provision, chip):
    reason, last = OTHERS_CARDS[model]
    # One-time bits that the container has as well are another system's too.
    used = [(4, bytes(4)), (last - 2, bytes(4))] + [(7, bytes.fromhex("e0000000"))] * (reason != UNKNOWN_CHIP)
    for first, container in used:
        tag = of_another_system(model, first, container)
        before = tag.content()
        chip.place(tag)
        chip.zero()
        for arguments in ((), ("--dry-run",), ("--lock", "--yes"))[: 3 if first == 4 else 1]:
            ended = provision(*arguments)
            assert (ended.status, ended.error) == (65, reason)
            assert reason == UNKNOWN_CHIP or ended.hint == IN_USE[1]
        assert chip.counts()["writes"] == 0 and tag.content() == before
    ended = provision("--batch", "--count", "1", "--timeout", "0.1")
    (row,) = rows(ended.stdout)
    assert (ended.status, row["outcome"], row["reason"]) == (65, "failed", reason)
    assert chip.counts()["writes"] == 0 and tag.content() == before


@pytest.mark.parametrize("model", ["ntag213", "ntag215", "ntag216", "ultralight-ev1-128"])
def test_what_is_given_up_of_another_systems_card_is_told(model, provision, chip, file_vehicle):
    tag = of_another_system(model, 20)
    chip.place(tag)
    told = provision("--replace-all", "--dry-run")
    assert told.lines[-1] == "would give up 3 pages of other data" and chip.counts()["writes"] == 0
    ended = provision("--replace-all", "--json")
    assert (ended.status, ended.json["given_up"]) == (0, "3 pages of other data")
    assert texts(tag) == [label(file_vehicle, "left")]


def test_an_ultralight_ev1_that_was_never_formatted_is(provision, chip, file_vehicle):
    chip.place(Type2("ultralight-ev1-128"))
    ended = provision("--json")
    assert (ended.status, ended.json["chip"], ended.json["given_up"]) == (0, "MIFARE Ultralight EV1 128", None)
    assert texts(chip.tag) == [label(file_vehicle, "left")]


@pytest.mark.parametrize("tag", [Type2("ntag213"), Type4()], ids=["type-2", "type-4"])
def test_a_name_that_gives_way_is_told(tag, provision, chip, file_vehicle):
    other = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
    named = {
        f"stepctl:{other}/left": f"the left step of {other}",
        f'{{"uuid":"{other}","stepId":"left"}}': f"the left step of {other}",
        f'{{"uuid":"{other}","stepId":7}}': f"step 7 of {other}",
        label(file_vehicle, "right"): f"the right step of {file_vehicle.uuid}",
    }
    for former, words in named.items():
        chip.place(written(tag, ndef.TextRecord(former)))
        assert f"it names {words}" in provision("--dry-run").lines
        assert provision("--dry-run", "--json").json["former"] == former
        assert provision().lines[1:] == [f"it named {words} before"]
        assert provision("--json").json["former"] is None
    chip.place(written(tag, ndef.TextRecord(former)))
    ended = provision("--batch", "--count", "1", "--json")
    assert ended.json["former"] == former and f"{UID}: it named {words} before" in ended.stderr.splitlines()
    # The prototype's numbers are another way to name the same step.
    chip.place(written(tag, ndef.TextRecord(f'{{"uuid":"{file_vehicle.uuid}","stepId":1}}')))
    assert len(provision().lines) == 1


@pytest.mark.parametrize("tag", [Type2("ntag213"), Type4(size=150)], ids=["type-2", "type-4"])
def test_other_records_that_leave_no_room_are_given_up_when_told(tag, provision, chip, file_vehicle):
    chip.place(written(tag, ndef.UriRecord("https://example.org/" + "x" * 80)))
    before = records(chip.tag)
    for arguments in ([], ["--dry-run"]):
        ended = provision(*arguments)
        assert ended.status == 65 and ended.error.startswith("the tag holds other data: ")
        assert "hint: --replace-all gives up" in ended.stderr
    assert records(chip.tag) == before
    assert provision("--replace-all").status == 0
    assert texts(chip.tag) == [label(file_vehicle, "left")]


@pytest.mark.arm64
def test_a_type_4_tag_is_written_too(provision, chip, file_vehicle):
    chip.place(Type4())
    message = b"".join(ndef.message_encoder([ndef.TextRecord(label(file_vehicle, "left"))]))
    assert provision("--dry-run").lines[0] == f"would write {len(message)} bytes to {UID} (unknown chip)"
    ended = provision()
    assert ended.status == 0, ended.stderr
    assert texts(chip.tag) == [label(file_vehicle, "left")]
    assert provision("--json").json["outcome"] == "unchanged"


def with_bytes(tag: Type2, *changes: tuple[int, bytes]) -> Type2:
    """The tag with other bytes at these addresses."""
    for address, changed in changes:
        tag.memory[address : address + len(changed)] = changed
    tag.reset()
    return tag


@pytest.mark.parametrize(
    "tag, reason",
    [
        (Type4(), "this is a Type 4 tag: stepctl can lock tags of Type 2 only"),
        (Type2("ntag203"), "the tag's chip is not known, so it can be neither formatted nor locked"),
        (with_bytes(Type2("ntag213"), (10, b"\x02")),
         "page 4 of the tag can no longer be locked: its lock bit is frozen"),
        (with_bytes(Type2("ntag215"), (12, bytes(4)), (0x82 * 4 + 2, b"\x02")),
         "page 48 of the tag can no longer be locked: its lock bit is frozen"),
    ],
    ids=["type-4", "unknown", "frozen", "frozen and not formatted"],
)  # fmt: skip
def test_a_tag_that_cannot_be_locked_is_not_written_either(tag, reason, provision, chip):
    chip.place(tag)
    before = tag.content()
    ended = provision("--lock", "--yes")
    assert (ended.status, ended.error) == (65, reason)
    assert tag.content() == before


@pytest.mark.parametrize(
    "tag, reason",
    [
        (Type2("ultralight", image=Type2("ultralight").memory[:12] + SMALL),
         "the tag is too small"),
        (Type2("ntag213", image=Type2("ntag213").memory[:10] + b"\xff\xff" + Type2("ntag213").memory[12:]), "locked"),
        (Type2("ntag213", image=Type2("ntag213").memory[:15] + b"\x0f"), "the tag is read-only"),
        (Type2("ntag213", image=Type2("ntag213").memory[:12] + bytes.fromhex("ffffffff")), "can never become"),
    ],
    ids=["small", "locked", "read-only", "other"],
)  # fmt: skip
def test_a_tag_that_cannot_be_written_is_refused_in_a_line(tag, reason, provision, chip):
    chip.place(tag)
    before = bytes(tag.memory)
    ended = provision()
    assert ended.status == 65 and reason in ended.error
    assert bytes(tag.memory) == before


@pytest.mark.parametrize("reading", [False, True], ids=["writing", "reading"])
@pytest.mark.parametrize("first", [0, 4, 8, 12])
@pytest.mark.parametrize("model", ["ntag213", "ntag215", "ntag216"])
def test_a_tag_whose_password_protects_it_is_refused_before_anything_is_written(
    model, first, reading, provision, chip, file_vehicle
):
    tag = written(Type2(model), ndef.TextRecord("what was there, which is longer than the name of a step: " + "x" * 9))
    tag.protect(first, reading)
    before = bytes(tag.memory)
    chip.place(tag)
    for arguments in ((), ("--dry-run",), ("--lock", "--yes"), ("--replace-all",))[: 4 if first == 8 else 1]:
        chip.zero()
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, f"the tag is protected by a password from page {first} on")
        assert "hint: use another tag, or remove the password" in ended.stderr
        assert chip.counts()["writes"] == 0 and bytes(tag.memory) == before


@pytest.mark.parametrize("reading", [False, True], ids=["writing", "reading"])
@pytest.mark.parametrize(("model", "last"), [("ntag213", 40), ("ntag215", 130), ("ntag216", 226)])
def test_a_password_behind_all_that_is_written_does_not_matter(model, last, reading, provision, chip, file_vehicle):
    for first in (last + 1, last + 2, 0xFF):
        tag = Type2(model)
        tag.protect(first, reading)
        chip.place(tag)
        ended = provision()
        assert ended.status == 0, (first, ended.stderr)
        tag.protect(0xFF)
        assert texts(tag) == [label(file_vehicle, "left")]


def test_a_tag_that_is_right_already_may_have_a_password(provision, chip):
    assert provision().status == 0
    chip.tag.protect(4)
    assert provision("--json").json["outcome"] == "unchanged"


def test_a_disturbed_question_for_the_version_does_not_hide_what_the_chip_protects(provision, chip):
    for protect in (lambda: chip.tag.mirror(1, 40), lambda: chip.tag.protect(8)):
        chip.place(Type2("ntag213"))
        protect()
        before = bytes(chip.tag.memory)
        chip.clear()
        chip.zero()
        chip.fault("nak@tag:1")
        assert provision().status == 65
        assert chip.counts()["writes"] == 0 and bytes(chip.tag.memory) == before


MIRRORED = "the tag shows its UID or counter in place of page {} (ASCII mirror)"


@pytest.mark.parametrize("what", [1, 2, 3], ids=["uid", "counter", "both"])
def test_a_tag_with_a_mirror_in_the_names_place_is_refused_before_anything_is_written(what, provision, chip):
    """As shops sell them: a URI of theirs, in which the chip shows its UID, its counter or both."""
    tag = written(Type2("ntag213"), ndef.UriRecord("https://x.example/t?u=00000000000000x000000"))
    address = bytes(tag.memory).index(b"00000000")
    tag.mirror(what, address)
    before = bytes(tag.memory)
    chip.place(tag)
    for arguments in ((), ("--dry-run",), ("--replace-all",), ("--lock", "--yes")):
        chip.zero()
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, MIRRORED.format(address // 4))
        assert "hint: use another tag, or switch the mirror off with the program that set it" in ended.stderr
        assert chip.counts()["writes"] == 0 and bytes(tag.memory) == before


@pytest.mark.parametrize("what", [1, 2, 3], ids=["uid", "counter", "both"])
@pytest.mark.parametrize("model", ["ntag213", "ntag215", "ntag216"])
def test_a_mirror_matters_where_the_name_is_and_nowhere_else(model, what, provision, chip, file_vehicle):
    plain = Type2(model)
    chip.place(plain)
    assert provision().status == 0
    start = bytes(plain.memory).index(b"\x03", 16 if model != "ntag213" else 20)
    end = bytes(plain.memory).index(b"\xfe", start) + 1  # behind the terminator
    for address in (16, start + 2, start + 30, end - 1, end):
        tag = Type2(model)
        tag.mirror(what, address)
        before = bytes(tag.memory)
        chip.place(tag)
        ended = provision()
        if address == end:
            assert ended.status == 0, ended.stderr
            assert texts(tag) == [label(file_vehicle, "left")]
            assert provision("--json").json["outcome"] == "unchanged"
        else:
            assert (ended.status, ended.error) == (65, MIRRORED.format(address // 4))
            assert bytes(tag.memory) == before


CHANGING = (
    "the tag is a dynamic one of another system: it makes another message each time, with a counter or a code, and "
    "would overwrite the step's name; nothing was written"
)
SHOWS_UID = "the tag's message has its UID, which the tag may show in place of the step's name; nothing was written"


class Mirroring(Type4):
    """A Type 4 tag other than NTAG 424 DNA with such a function, as a DESFire EV3. `counts` is what it counts: readings,
    activations, or how often it got power; empty for one that shows its UID."""

    def __init__(self, image: bytes, *, counts: str):
        self.counts, self.count = "", 0
        super().__init__(bytes.fromhex(UID), image)
        self.counts, self.at = counts, image.index(b"?u=") + 3

    def field_off(self):
        super().field_off()
        self.count += self.counts == "power"

    def reset(self):
        super().reset()
        self.count += self.counts == "activations"

    def read(self, offset: int, length: int) -> bytes:
        stored = bytes(self.ndef)
        self.count += self.counts == "readings" and self._file == 0xE104 and offset == 0
        digits = b"%014X" % self.count if self.counts else UID.encode()
        self.ndef[self.at : self.at + 14] = digits
        try:
            return super().read(offset, length)
        finally:
            self.ndef[:] = stored


def shop(digits: str = "00000000000000") -> bytes:
    return b"".join(ndef.message_encoder([ndef.UriRecord(f"https://x.example/t?u={digits}")]))


def sized(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


@pytest.mark.parametrize("counts", ["readings", "activations", "power"])
def test_a_type_4_tag_that_gives_another_message_each_time_is_not_written(counts, provision, chip):
    tag = Mirroring(sized(shop()), counts=counts)
    before = tag.content()
    chip.place(tag)
    for arguments in ((), ("--dry-run",), ("--replace-all",), ("--batch", "--count", "1", "--timeout", "0.1")):
        chip.zero()
        ended = provision(*arguments)
        assert ended.status == 65 and CHANGING in ended.stdout + ended.stderr
        assert chip.counts()["writes"] == 0 and tag.content() == before
    assert provision().hint == "use another tag"


def test_a_type_4_tag_that_may_show_its_uid_is_not_written(provision, chip, file_vehicle):
    tag = Mirroring(sized(shop()), counts="")
    before = tag.content()
    chip.place(tag)
    for arguments in ((), ("--dry-run",)):
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, SHOWS_UID)
        assert chip.counts()["writes"] == 0 and tag.content() == before
    # It cannot be told from a tag whose UID somebody stored.
    stored = Type4(bytes.fromhex(UID), sized(shop(UID)))
    chip.place(stored)
    assert provision().error == SHOWS_UID
    assert provision("--replace-all").status == 0 and texts(stored) == [label(file_vehicle, "left")]
    # The UID of another tag, or in lower case, is nobody's function.
    for digits in (OTHER_UID, UID.lower()):
        plain = Type4(bytes.fromhex(UID), sized(shop(digits)))
        chip.place(plain)
        assert provision().status == 0 and records(plain)[0].text == label(file_vehicle, "left")


def test_a_type_2_tag_of_an_unknown_chip_that_may_show_its_uid_is_not_written(provision, chip, file_vehicle):
    # NTAG213 TT and NTAG 22x DNA have a mirror, and other versions than NTAG213.
    model = replace(MODELS["ntag213"], version=bytes.fromhex("0004040203000f03"))
    tag = written(Type2(model), ndef.UriRecord("https://x.example/t?u=00000000000000"))
    tag.mirror(1, bytes(tag.memory).index(b"00000000"))
    before = bytes(tag.memory)
    chip.place(tag)
    for arguments in ((), ("--dry-run",)):
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, SHOWS_UID)
        assert chip.counts()["writes"] == 0 and bytes(tag.memory) == before
    # Known chips say where their mirror is, and a MIFARE Ultralight C has none.
    for name in ("ntag213", "ultralight-c"):
        plain = written(Type2(name, bytes.fromhex(UID)), ndef.UriRecord(f"https://x.example/t?u={UID}"))
        chip.place(plain)
        assert provision().status == 0 and records(plain)[0].text == label(file_vehicle, "left")


@pytest.mark.parametrize("arguments", [(), ("--dry-run",), ("--replace-all",)])
def test_a_key_that_writing_an_ultralight_c_needs_is_found_out_before_anything_is_written(
    arguments, provision, chip, file_vehicle
):
    tag = written(Type2("ultralight-c"), ndef.TextRecord(label(file_vehicle, "right")))
    for first in (3, 8, 15):
        tag.protect(first)
        before = bytes(tag.memory)
        chip.place(tag)
        chip.zero()
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, f"the tag is protected by a password from page {first} on")
        assert chip.counts()["writes"] == 0 and bytes(tag.memory) == before
    tag.protect(30)
    assert provision(*arguments).status == 0


@pytest.mark.parametrize(
    "model",
    ["ultralight-c", replace(MODELS["ntag213"], version=bytes.fromhex("0004040502021503"))],
    ids=["ultralight-c", "unknown version"],
)
@pytest.mark.parametrize("first", range(4, 10))
def test_a_page_that_an_unknown_chip_does_not_show_is_named(model, first, provision, chip, file_vehicle):
    tag = written(Type2(model), ndef.TextRecord(label(file_vehicle, "right")))
    tag.protect(first, reading=True)
    before = bytes(tag.memory)
    chip.place(tag)
    for arguments in ((), ("--dry-run",), ("--replace-all",)):
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (65, f"page {first} of the tag cannot be read")
        assert bytes(tag.memory) == before


# NTAG I2C plus, MIFARE Ultralight AES, and a chip that does not tell its version.
UNKNOWN = {
    "ntag-i2c": replace(MODELS["ntag213"], version=bytes.fromhex("0004040502021303")),
    "ultralight-aes": replace(MODELS["ntag213"], version=bytes.fromhex("0004030104000f03")),
    "ntag203": MODELS["ntag203"],
}


@pytest.mark.parametrize("model", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("first", [4, 8, 20])
def test_a_password_of_an_unknown_chip_costs_no_message(model, first, provision, chip, file_vehicle):
    others = [ndef.UriRecord("https://example.org/menu"), ndef.TextRecord("hello")]
    tag = written(Type2(model), *others)
    tag._first_protected, tag.reset = first, lambda: setattr(tag, "_first_protected", first)
    chip.place(tag)
    before = bytes(tag.memory)
    ended = provision()
    assert ended.status == 65 and "hint" not in ended.stderr
    assert re.fullmatch(
        r"the tag refuses writes to page \d+, as with a password or a lock; nothing was changed", ended.error
    )
    assert bytes(tag.memory) == before and records(tag) == others


def test_a_message_that_other_readers_refuse_is_given_up_only_when_told(provision, chip, file_vehicle):
    text = ndef.TextRecord("hello")
    hello = b"".join(ndef.message_encoder([text]))
    malformed = {
        "a second beginning": hello[:1].replace(b"\xd1", b"\x91") + hello[1:] + hello,
        "2 more bytes behind the last record": hello + b"\0\0",
        "a payload takes 200 bytes": hello[:2] + b"\xc8" + hello[3:],
    }
    for reason, message in malformed.items():
        for tag in (
            with_bytes(Type2("ntag213"), (21, bytes([3, len(message)]) + message + b"\xfe")),
            Type4(image=len(message).to_bytes(2, "big") + message),
        ):
            chip.place(tag)
            before = tag.content()
            for arguments in ([], ["--dry-run"]):
                ended = provision(*arguments)
                assert ended.status == 65 and ended.error.startswith("the tag holds other data, which is not an NDEF message")
                assert reason in ended.error and ended.error.endswith("; nothing was written")
                assert "hint: --replace-all gives up" in ended.stderr
                assert tag.content() == before
            assert provision("--replace-all").status == 0
            assert texts(tag) == [label(file_vehicle, "left")]


@pytest.mark.parametrize("length", [149, 0x7FFF, 0xFFFF])
def test_a_length_that_the_file_cannot_hold_is_given_up_only_when_told(length, provision, chip, file_vehicle):
    tag = Type4(image=length.to_bytes(2, "big"), size=150)
    chip.place(tag)
    before = tag.content()
    for arguments in ([], ["--dry-run"]):
        ended = provision(*arguments)
        assert (ended.status, ended.error) == (
            65,
            "the tag holds other data, which is not an NDEF message"
            f" (byte 0: a message of {length} bytes where 148 fit); nothing was written",
        )
        assert "hint: --replace-all gives up" in ended.stderr
        assert tag.content() == before and chip.counts()["writes"] == 0
    assert provision("--replace-all", "--dry-run").status == 0 and tag.content() == before
    chip.fault("tear=old@write:2")
    ended = provision("--replace-all", "--timeout", "0.1")
    assert ended.status == 74 and bytes(tag.ndef[:2]) == bytes(2), "the first write makes the tag an empty one"
    chip.place()
    assert provision("--replace-all").status == 0
    assert texts(tag) == [label(file_vehicle, "left")]


def test_a_length_that_was_torn_is_set_right_when_the_tag_returns(provision, chip, file_vehicle):
    """The tag keeps 5A5A of a length; the writer that wrote the length knows what the tag held."""
    tag = written(Type4(), ndef.UriRecord("https://example.org"))
    command, torn = tag.command, []

    def tears(data):
        if torn or tag.kind(data) != "write":
            return command(data)
        tag.ndef[:2] = bytes.fromhex("5a5a")
        torn.append(data)
        return tag.drop()

    tag.command = tears
    chip.place(tag)
    ended = provision()
    assert ended.status == 0 and torn, ended.stderr
    assert records(tag) == [ndef.TextRecord(label(file_vehicle, "left")), ndef.UriRecord("https://example.org")]


def test_a_type_4_tag_that_refuses_a_write_is_not_to_be_tried_again(provision, chip):
    tag = Type4()
    tag.update = lambda offset, data: bytes.fromhex("6982")
    chip.place(tag)
    ended = provision()
    assert (ended.status, ended.error) == (65, "the tag needs a key to write at byte 2")
    assert "hint: " in ended.stderr and "use another tag" in ended.stderr and "run the command again" not in ended.stderr


@pytest.mark.parametrize(
    "image, page",
    [("e1101000 0300fe00" + 31 * "00000000", 36), ("e1101200 0103f010 440300fe" + 30 * "00000000", 60)],
    ids=["behind the data area", "by a control block"],
)
def test_lock_bits_of_an_unknown_chip_that_cannot_be_read_are_told(image, page, provision, chip):
    tag = Type2.of_size(bytes.fromhex("04a1b29fc3d4e58072480000" + image))
    before = tag.content()
    chip.place(tag)
    ended = provision()
    assert (ended.status, ended.error) == (65, f"page {page} of the tag cannot be read")
    assert tag.content() == before


@pytest.mark.parametrize("password", [None, 8], ids=["open", "password"])
def test_a_chip_that_lacks_a_command_of_its_version_is_read_with_the_other(password, provision, chip, file_vehicle):
    tag = Type2(replace(MODELS["ntag213"], has_fast_read=False))
    chip.place(tag)
    if password:
        tag.protect(password, reading=True)
        assert provision().error == f"the tag is protected by a password from page {password} on"
        return
    ended = provision()
    assert ended.status == 0, ended.stderr
    assert texts(tag) == [label(file_vehicle, "left")]
    assert provision("--json").json["outcome"] == "unchanged"


def test_a_copy_with_a_short_uid_is_a_tag_like_any_other(provision, chip, file_vehicle):
    chip.place(Type2("ntag213", bytes.fromhex("05a1b2c3")))
    assert provision().lines == ["wrote the left step's name to 05A1B2C3 (NTAG213)"]
    assert texts(chip.tag) == [label(file_vehicle, "left")]


def test_a_length_in_three_bytes_that_one_could_hold_is_read_and_written_anew(provision, chip, file_vehicle):
    former = b"".join(ndef.message_encoder([ndef.TextRecord(label(file_vehicle, "right"))]))
    chip.tag.memory[16 : 21 + len(former)] = b"\x03\xff" + len(former).to_bytes(2, "big") + former + b"\xfe"
    assert provision().lines[1:] == [f"it named the right step of {file_vehicle.uuid} before"]
    assert chip.tag.memory[17] < 255 and texts(chip.tag) == [label(file_vehicle, "left")]


def test_a_disturbance_is_not_taken_for_a_password(provision, chip, file_vehicle):
    for command in (2, 4, 6):
        chip.fault(f"nak@tag:{command}")
    ended = provision()
    assert ended.status == 0, ended.stderr
    assert texts(chip.tag) == [label(file_vehicle, "left")]


@pytest.mark.parametrize("page", [6, 7, 8, 12, 18])
def test_a_page_that_ignores_what_is_written_is_named_and_the_tag_is_empty(page, provision, chip):
    written(chip.tag, ndef.TextRecord("WHAT WAS THERE, WHICH IS LONGER THAN THE NAME OF A STEP: " + "X" * 9))
    chip.tag.deaf = {page}
    # Whoever looks while it is written sees what was there, or nothing, and never something else.
    lengths = set()
    store = chip.tag._store
    chip.tag._store = lambda number, new: (store(number, new), lengths.add(chip.tag.memory[22]))
    ended = provision()
    assert (ended.status, ended.error) == (74, f"the tag does not take what is written to page {page}")
    assert f"hint: the tag {UID} may be empty; use another tag" in ended.stderr
    assert lengths == {0} and records(chip.tag) == []


def test_where_the_page_with_the_length_ignores_it_what_was_there_stays(provision, chip):
    what = ndef.TextRecord("WHAT WAS THERE, WHICH IS LONGER THAN THE NAME OF A STEP: " + "X" * 9)
    written(chip.tag, what)
    chip.tag.deaf = {5}
    ended = provision()
    assert (ended.status, ended.error) == (74, "the tag does not take what is written to page 5")
    assert records(chip.tag) == [what]


def test_a_lock_that_an_unknown_chip_does_not_tell_is_named(provision, chip):
    """A page that refuses, though no lock bit that is known says so."""
    tag = written(Type2("ntag203"), ndef.TextRecord("WHAT WAS THERE " + "X" * 30))
    write = tag._write
    tag._write = lambda page, new: 0 if page == 9 else write(page, new)
    chip.place(tag)
    ended = provision()
    assert (ended.status, ended.error) == (74, "the tag does not take what is written to page 9")
    assert records(tag) == []


def test_a_type_4_tag_that_ignores_what_is_written_is_left_empty(provision, chip):
    tag = written(Type4(), ndef.TextRecord("what was there"))
    tag.deaf = True
    chip.place(tag)
    ended = provision()
    assert (ended.status, ended.error) == (74, "the tag does not hold what is written to it")
    assert f"hint: the tag {UID} may be empty; use another tag" in ended.stderr
    assert records(tag) == []


def test_a_tag_that_was_written_before_gets_the_name_as_it_is_written_now(provision, chip, file_vehicle):
    written(chip.tag, ndef.TextRecord(former_label(file_vehicle, "left")), ndef.UriRecord("https://example.org"))
    ended = provision()
    assert (ended.status, len(ended.lines)) == (0, 1), "it named the same step"
    assert records(chip.tag) == [ndef.TextRecord(label(file_vehicle, "left")), ndef.UriRecord("https://example.org")]


# Locking.


def test_a_locked_tag_is_read_only_for_everyone(provision, chip, file_vehicle):
    ended = provision("--lock", "--yes")
    assert (ended.status, ended.lines[1:]) == (0, ["it is read-only now"])
    with nfcpy_reader.opened(chip.path) as frontend:
        message = nfcpy_reader.found(frontend).ndef
        assert not message.is_writeable and message.records[0].text == label(file_vehicle, "left")
    assert provision(step="right").error == "the tag is read-only"
    assert provision("--json").json["outcome"] == "unchanged", "the right content need not be writable"


def test_a_tag_that_was_written_and_not_locked_is_told(provision, chip, file_vehicle):
    chip.fault("tear=old@write:18")
    ended = provision("--lock", "--yes", "--timeout", "0.1")
    assert ended.status == 74
    assert f"hint: the tag {UID} is written, but may not be read-only; run the command again with it" in ended.stderr
    assert texts(chip.tag) == [label(file_vehicle, "left")]
    chip.place()
    assert provision("--lock", "--yes").lines[1:] == ["it is read-only now"]


def test_locking_is_asked_about_before_anything_is_written(provision, chip):
    for given, status in ((b"n\n", 1), (b"\n", 1), (b"", 66)):
        ended = provision("--lock", input=given)
        assert ended.status == status and "read-only for ever?" in ended.stderr
        assert "\nstepctl: error: n" in ended.stderr, "in a line of its own"
    assert provision("--lock", "--no-input").status == 64
    assert chip.counts()["commands"] == 0
    assert provision("--lock", input=b"y\n").status == 0
    assert chip.tag.page(2)[2:] == b"\xff\xff"


# What goes wrong between the chip and the tag, and between the chip and libnfc.


@pytest.mark.parametrize(
    "fault",
    [
        "nak@write:3", "lose@write:4", "lose-ack@write:5", "lose-ack@write:1", "corrupt@read:1", "lose@read:2",
        "nak@tag:1", "remove=200@write:6", "remove=200@write:1", "remove=200@read:2", "junk@command:30",
        "junk=0000ff00ff00@InDataExchange:4", "bad-checksum@InDataExchange:5", "bad-length@InCommunicateThru:2",
        "error-frame@InDataExchange:2", "no-answer@InDataExchange:3", "no-ack@InDataExchange:3", "bit7@InDataExchange:12",
        "bit7@InCommunicateThru:1", "status=27@InDataExchange:10", "no-answer@InListPassiveTarget", "junk@InCommunicateThru:2",
    ],
)  # fmt: skip
def test_a_fault_in_the_middle_is_made_good(fault, provision, chip, file_vehicle):
    chip.fault(fault)
    ended = provision()
    assert ended.status == 0, ended.stderr
    assert not chip.faults.armed, "the fault has come"
    assert texts(chip.tag) == [label(file_vehicle, "left")]


@pytest.mark.parametrize("how", ["old", "new", "half"])
def test_a_tag_that_is_torn_off_is_empty_or_right_and_never_wrong(how, provision, chip, file_vehicle):
    old, new = [label(file_vehicle, step) for step in ("right", "left")]
    for before in ([], [old]):
        torn = 0
        while True:
            chip.clear()
            chip.place(written(Type2("ntag213"), *map(ndef.TextRecord, before)) if before else Type2("ntag213"))
            chip.fault(f"tear={how}@write:{torn + 1}")
            ended = provision("--timeout", "0.1")
            if ended.status == 0:
                break
            torn += 1
            assert ended.status == 74 and f"the tag {UID} was taken away" in ended.error
            assert texts(chip.tag) in ([], before, [new]), (before, torn)
            # The next attempt completes it.
            chip.place()
            if torn % 4 == 0:
                assert provision().status == 0 and texts(chip.tag) == [new]
        assert torn >= (16 if not before else 3)


def test_a_type_4_tag_that_is_torn_off_is_empty_or_right_too(provision, chip, file_vehicle):
    old, new = [label(file_vehicle, step) for step in ("right", "left")]
    torn = 0
    while True:
        chip.clear()
        chip.place(written(Type4(), ndef.TextRecord(old)))
        chip.fault(f"remove@tag:{torn + 1}")
        ended = provision("--timeout", "0.1")
        if not ended.status:
            break
        torn += 1
        assert ended.status == 74 and texts(chip.tag) in ([], [old], [new]), torn
    assert torn > 10 and texts(chip.tag) == [new]


def test_another_tag_is_refused_and_stays_as_it_was(provision, chip):
    chip.fault(f"swap={OTHER_UID}@write:3")
    ended = provision()
    assert ended.status == 74
    assert ended.error == f"another tag came back, {OTHER_UID} in place of {UID}; nothing was written to it"
    assert f"hint: the tag {UID} may be empty; run the command again with it" in ended.stderr
    assert chip.tag.uid.hex().upper() == OTHER_UID and bytes(chip.tag.memory) == Type2("ntag213", chip.tag.uid).content()


def test_a_page_that_was_read_after_junk_is_not_believed(provision, chip, file_vehicle):
    """After junk before an ACK libnfc gives the answer of the command before to every command that follows."""
    for command in range(14, 24):
        chip.place(Type2("ntag203"))  # which is read page by page
        chip.zero()
        chip.fault(f"junk@command:{command}")
        assert provision().status == 0
        assert texts(chip.tag) == [label(file_vehicle, "left")], command


# The port.


def test_what_is_wrong_with_the_port_is_told_apart(provision, chip, tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    for nfc, status, error in (
        (f"pn532_uart:{tmp_path}/none", 69, f"there is no {tmp_path}/none: is the reader plugged in?"),
        (f"pn532_uart:{plain}", 69, f"{plain} is not a serial port"),
        (f"pn532_uart:{tmp_path}", 69, f"{tmp_path} is not a serial port"),
        ("pn532_uart:/dev/null", 69, "/dev/null is not a serial port"),
        ("pn532_uart", 64, "--nfc: the port is missing, as in pn532_uart:/dev/ttyUSB0"),
        ("no_such_driver:x", 69, "cannot open no_such_driver:x: libnfc finds no reader there"),
        (
            f"{chip.connection}:1",
            64,
            "--nfc: the speed must be one of 9600, 19200, 38400, 57600, 115200, 230400, 460800",
        ),
        (
            f"{chip.connection}:9600",
            69,
            f"the reader at {chip.path} speaks at 115200 baud, not at 9600: use {chip.connection}:115200",
        ),
    ):
        ended = provision(nfc=nfc)
        assert (ended.status, ended.error) == (status, error)
    assert provision(nfc=f"{chip.connection}:115200").status == 0


@pytest.mark.skipif(not AS_ANYBODY, reason="only root can take away the right to use a port")
def test_a_port_that_may_not_be_used_is_another_status(provision, chip):
    os.chmod(chip.path, 0)
    ended = provision(prefix=AS_ANYBODY)
    assert ended.status == 77 and ended.error.startswith(f"not permitted to use {chip.path}; `ls -l ")


def test_a_silent_port_and_a_speed_that_was_not_guessed(provision, chip):
    chip.fault("speed=57600")
    assert "speaks at 57600 baud, not at 115200" in provision().error
    chip.fault("silent")
    ended = provision()
    assert ended.status == 69 and ended.error.startswith(f"no reader answers at {chip.path}, at 115200 baud")


def test_what_answers_but_is_no_reader_is_told_so(provision):
    master, slave = os.openpty()
    with subprocess.Popen(["cat"], stdin=master, stdout=master) as echo:
        ended = provision(nfc=f"pn532_uart:{os.ttyname(slave)}")
        echo.kill()
    os.close(master)
    os.close(slave)
    assert ended.status == 69 and "is not a PN532 at 115200 baud" in ended.error


def test_one_program_uses_a_port_at_a_time(provision, starts, chip):
    with open(chip.path, "rb+", buffering=0) as port:
        fcntl.flock(port, fcntl.LOCK_EX)
        assert (provision().status, chip.counts()["commands"]) == (69, 0)
    chip.remove()
    first = starts("--timeout", "180")
    wait_until(lambda: chip.counts()["commands"] > 12, "the first one is looking for a tag")
    ended = provision()
    assert ended.status == 69
    assert ended.error == f"{chip.path} is in use by another program; `fuser {chip.path}` says by which"
    chip.place()
    assert first.ends().status == 0


@pytest.mark.parametrize("event", ["", "@command:5", "@tag:1", "@write:7"])
def test_a_reader_that_is_unplugged_is_one_line(event, provision, chip):
    if not event:
        chip.remove()
    chip.fault(f"unplug{event or '@command:40'}")
    connection = chip.connection
    ended = provision()
    assert (ended.status, ended.error) == (69, f"lost {connection}: the reader was unplugged")
    hints = [line for line in ended.stderr.splitlines() if "error" not in line and "hold" not in line]
    # What may have been written to is named besides.
    may_be_empty = f"hint: the tag {UID} may be empty; run the command again with it"
    assert hints == ([may_be_empty] if "write" in event else [])


def test_a_reader_that_always_makes_libnfc_fail_is_one_line(provision, chip):
    chip.fault("no-firmware")
    ended = provision()
    assert ended.status == 69
    assert ended.error == "the reader's program ended (signal 6): what the reader answers makes libnfc fail"


def test_no_tag_in_time(provision, chip):
    chip.remove()
    ended = provision("--timeout", "0.3")
    assert (ended.status, ended.error) == (69, "no tag came in time")
    assert ended.seconds > 0.3


# The program that libnfc is in.


def test_libnfc_is_not_in_stepctl():
    libraries = subprocess.run(["ldd", STEPCTL], capture_output=True, text=True, check=True).stdout
    assert "nfc" not in libraries and "usb" not in libraries
    assert "libnfc" in subprocess.run(["ldd", BINARIES / "stepctl-nfc"], capture_output=True, text=True).stdout


def test_it_may_die_while_a_tag_is_waited_for(starts, chip, file_vehicle):
    chip.remove()
    running = starts("--timeout", "180")
    wait_until(lambda: chip.counts()["commands"] > 12, "it is looking for a tag")
    (child,) = children(running.process)
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: children(running.process) not in ([], [child]), "another is started")
    chip.place()
    assert running.ends().status == 0
    assert texts(chip.tag) == [label(file_vehicle, "left")]


def test_it_reads_tags_without_privileges(starts, chip):
    chip.remove()
    running = starts("--timeout", "180")
    wait_until(lambda: chip.counts()["commands"] > 12, "it is looking for a tag")
    (child,) = children(running.process)
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
    assert status["NoNewPrivs"] == "1"
    # Root has them all, and others have none to give up.
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh")} == {0}
    if os.geteuid() == 0:
        # Real, effective, saved, and that of the file system.
        assert status["Uid"].split() == status["Gid"].split() == [str(NOBODY)] * 4
        assert status["Groups"].split() == []


def test_root_who_cannot_be_anybody_else_reads_tags_too(provision):
    """As in a container without that capability, or without other users."""
    assert provision(prefix=AS_ANYBODY).status == 0


def test_it_ends_with_stepctl_however_that_ends(starts, chip):
    chip.remove()
    running = starts("--timeout", "180")
    wait_until(lambda: chip.counts()["commands"] > 12, "it is looking for a tag")
    (child,) = children(running.process)
    running.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the reader's program is gone")


@pytest.mark.parametrize("fault", ["", "slow=60000", "silent"])
def test_control_c_ends_it_at_once(fault, starts, chip):
    """In a third of the time that it has: longer is never waited for a program."""
    chip.remove()
    running = starts("--timeout", "180")
    wait_until(lambda: chip.counts()["commands"] > 12, "it is looking for a tag")
    if fault:
        chip.fault(fault)
        time.sleep(0.1)
    (child,) = children(running.process)
    running.signal(signal.SIGINT)
    assert running.ends().status == -signal.SIGINT
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the reader's program is gone")


@pytest.mark.parametrize(
    "written_requests", [b"", b"\0", b"\0\1\x07", b"\xff\xff", b"\0\0", b"\0\1\1" * 3, random.Random(7).randbytes(64)]
)
def test_it_ends_on_what_it_does_not_understand(written_requests):
    program = BINARIES / "stepctl-nfc"
    environment = {"LIBNFC_AUTO_SCAN": "false"}
    ended = subprocess.run([program], input=written_requests, capture_output=True, timeout=60, env=environment)
    assert ended.returncode in (0, 76) and ended.stderr == b""


# Where the reader's name comes from.


def test_libnfcs_own_settings_and_ours_name_the_reader(provision, chip, stepctl):
    assert provision(nfc=None, LIBNFC_DEFAULT_DEVICE=chip.connection).status == 0
    assert provision(nfc=None, LIBNFC_DEVICE=chip.connection).status == 0
    assert provision(nfc=None, STEPCTL_NFC=chip.connection).status == 0
    ended = provision(nfc=None, LIBNFC_AUTO_SCAN="false")
    assert ended.status == 69 and ended.error.startswith("there is no NFC reader that libnfc finds by itself")
    assert provision(nfc=None, STEPCTL_NFC="pn532_uart:").status == 78
    assert b"stepctl-nfc" not in stepctl("config", "show").stdout.encode()


def test_libnfcs_log_is_there_for_who_asks(provision):
    assert "libnfc" not in provision().stderr
    assert "libnfc" in provision(LIBNFC_LOG_LEVEL="3").stderr


# A pile of tags.


def rows(text: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(text)))


def looks(chip, found: bool) -> int:
    """How often a tag was looked for and found, or not found."""
    answer = "d54b01" if found else "d54b00"
    return sum(record["command"] == "InListPassiveTarget" and answer in record["answer"] for record in [*chip.records])


def takes_away(chip):
    """Until the program has seen that there is no tag."""
    chip.remove()
    chip.zero()
    chip.wait_until(lambda: looks(chip, found=False) > 1)


def test_a_pile_of_tags_is_written_each_once(starts, chip, file_vehicle):
    chip.remove()
    running = starts("--batch", "--count", "3")
    piled = [Type2("ntag213"), Type2("ntag215", bytes.fromhex(OTHER_UID)), Type2("ntag213")]
    small = Type2("ultralight", bytes.fromhex("04112233445566"), Type2("ultralight").memory[:12] + SMALL)
    last = Type2("ntag216", bytes.fromhex("04998877665544"))
    for number, tag in enumerate((*piled, small)):
        said = running.said
        chip.zero()
        chip.place(tag)
        if number == 2:  # the first one again
            chip.wait_until(lambda: looks(chip, found=True) > 2)
            assert chip.counts()["writes"] == 0
        else:
            running.says("take it away", after=said)
        takes_away(chip)
    chip.place(last)
    ended = running.ends()
    table = rows(ended.stdout)
    assert [(row["uid"], row["outcome"], row["chip"]) for row in table] == [
        (UID, "written", "NTAG213"), (OTHER_UID, "written", "NTAG215"), ("04112233445566", "failed", ""),
        ("04998877665544", "written", "NTAG216"),
    ]  # fmt: skip
    assert "too small" in table[2]["reason"] and ended.status == 65
    for tag in (piled[0], piled[1], last):
        assert texts(tag) == [label(file_vehicle, "left")]


def test_control_c_between_two_tags_is_the_end_of_the_pile(starts, chip):
    running = starts("--batch", "--json")
    running.says("take it away")
    takes_away(chip)
    running.signal(signal.SIGINT)
    ended = running.ends()
    assert ended.status == 0 and [row["uid"] for row in ended.objects] == [UID]
    assert "1 done, 0 failed" in ended.stderr


def test_a_reader_that_is_lost_ends_the_pile_and_its_tag_is_told(starts, chip):
    running = starts("--batch")
    running.says("take it away")
    takes_away(chip)
    connection = chip.connection
    chip.fault("unplug@write:3")
    chip.place(Type2("ntag213", bytes.fromhex(OTHER_UID)))
    ended = running.ends()
    lost = f"lost {connection}: the reader was unplugged"
    assert [(row["uid"], row["outcome"], row["reason"]) for row in rows(ended.stdout)] == [
        (UID, "written", ""), (OTHER_UID, "failed", f"{lost}; the tag may be empty"),
    ]  # fmt: skip
    assert (ended.status, ended.error) == (69, lost)
    assert ended.stderr.splitlines()[-2] == "1 done, 1 failed"


@pytest.mark.parametrize(
    "model, status, summary", [("ntag213", 69, "1 done, 0 failed"), ("ntag203", 65, "0 done, 1 failed")]
)
def test_that_no_tag_came_in_time_ends_the_pile(model, status, summary, provision, chip):
    chip.place(Type2(model))
    ended = provision("--batch", "--lock", "--yes", "--timeout", "0.3")
    assert ended.status == status and "no tag came in time" in ended.stderr
    assert len(rows(ended.stdout)) == 1 and summary in ended.stderr.splitlines()


@pytest.mark.parametrize("arguments", [(), ("--batch",)])
def test_a_tag_that_is_left_in_the_middle_is_told(arguments, starts, chip):
    chip.fault("slow=150")
    running = starts(*arguments)
    wait_until(lambda: chip.counts()["writes"] > 2, "it writes")
    running.signal(signal.SIGINT)
    ended = running.ends()
    if arguments:
        assert (ended.status, rows(ended.stdout)[0]["reason"]) == (65, "interrupted; the tag may be empty")
    else:
        said = f"interrupted: the tag {UID} may be empty; run the command again with it"
        assert (ended.status, ended.stderr.splitlines()[-1]) == (-signal.SIGINT, said)
    assert not texts(chip.tag)


# The vehicle's list of tags.


def test_a_tag_of_another_step_is_not_the_end_of_the_pile(stepctl, parked, chip, tmp_path):
    file = parked.folder / "vehicle.toml"
    given = ("provision", "tag", "--vehicle", file, "--nfc", chip.connection)
    assert stepctl(*given, "--step", "right", "--register").status == 0
    with closing(stepctl.start(tmp_path / "log", *given, "--step", "left", "--batch", "--count", "1")) as running:
        running.says("take it away")
        chip.place(Type2("ntag213", bytes.fromhex(OTHER_UID)))
        ended = running.ends()
    table = rows(ended.stdout)
    assert [(row["uid"], row["outcome"]) for row in table] == [(UID, "failed"), (OTHER_UID, "written")]
    assert table[0]["reason"] == f"the tag {UID} is listed as one of the right step's; nothing was written"
    assert ended.status == 65 and "1 done, 1 failed" in ended.stderr


def test_a_tag_is_listed_where_that_is_wanted(stepctl, parked, chip):
    file = parked.folder / "vehicle.toml"

    def run(step, *arguments):
        return stepctl("provision", "tag", "--step", step, "--vehicle", file, "--nfc", chip.connection, *arguments)

    assert run("left").lines[1:] == [] and "tags" not in file.read_text()
    assert run("left", "--register").lines[1:] == ["it is listed in the vehicle file now"]
    assert f'tags = ["{UID}"]' in file.read_text()
    before = bytes(chip.tag.memory)
    ended = run("right")
    assert (
        ended.status == 78 and ended.error == f"the tag {UID} is listed as one of the left step's; nothing was written"
    )
    assert bytes(chip.tag.memory) == before
    chip.place(Type2("ntag213", bytes.fromhex(OTHER_UID)))
    # Where some are listed, the vehicle takes no others.
    assert run("left", "--json").json["registered"] is True
    assert f'tags = ["{UID}", "{OTHER_UID}"]' in file.read_text()


def test_a_random_uid_is_not_listed(stepctl, parked, chip):
    """The next reading gives another one, so the tag would never be accepted."""
    tag = Type4(bytes.fromhex("08a1b2c3"))
    chip.place(tag)
    file = parked.folder / "vehicle.toml"
    before = file.read_text()
    given = ("--step", "left", "--vehicle", file, "--nfc", chip.connection)
    ended = stepctl("provision", "tag", "--register", *given)
    assert ended.status == 65 and ended.error.startswith("the tag gives a random UID, by which no vehicle can know it")
    assert file.read_text() == before and texts(tag) == []
    assert stepctl("provision", "tag", *given).status == 0


def test_a_tag_that_cannot_be_listed_is_not_written(stepctl, parked, chip):
    file = parked.folder / "vehicle.toml"
    # With another tag in it the line would be longer than a line may be.
    line = f'tags = ["{OTHER_UID}"] #'.ljust(1020, "x")
    file.write_text(file.read_text().replace("major = 1\n", f"major = 1\n{line}\n"))
    given = ("--step", "left", "--vehicle", file, "--nfc", chip.connection, "--lock", "--yes")
    for batch in ((), ("--batch",)):
        ended = stepctl("provision", "tag", *given, *batch)
        assert ended.status == 78 and "[[steps]] cannot be edited as it is written" in ended.error
        assert chip.counts()["writes"] == 0


@pytest.mark.parametrize("arguments", [(), ("--batch",)])
def test_a_tag_that_was_written_is_told_where_listing_it_fails(arguments, stepctl, parked, chip):
    file = parked.folder / "vehicle.toml"
    given = ("--step", "left", "--vehicle", file, "--nfc", chip.connection, "--register", "--json")
    parked.folder.chmod(0o555)
    try:
        ended = stepctl("provision", "tag", *given, *arguments, prefix=AS_ANYBODY)
    finally:
        parked.folder.chmod(0o755)
    assert (ended.status, ended.error) == (77, f"cannot write {file}: Permission denied")
    written = ended.objects[0]
    assert (written["uid"], written["outcome"], written["registered"]) == (UID, "written", False)
    assert texts(chip.tag) == [label(parked, "left")]


def test_the_manual_names_every_member_of_its_json(provision, chip):
    members = list(provision("--json").json)
    chip.place(Type2("ultralight"))
    (failed,) = provision("--batch", "--count", "1", "--json", "--timeout", "0.1").objects
    page = (REPOSITORY / "man/stepctl-provision-tag.1").read_text()
    assert {member for member in (*members, *failed) if f"\n.It Cm {member}\n" not in page} == set()


def test_what_makes_no_sense_is_a_mistake_of_usage(provision):
    for arguments in (("--dry-run", "--lock"), ("--count", "2"), ("--batch", "--count", "0")):
        assert provision(*arguments).status == 64
    assert provision(step="middle").error.endswith("has no step middle: it has left, right")
