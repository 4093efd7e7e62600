"""`locate` and `open` by NFC tag: accepted is what names a step of this vehicle, and each other tag is one line."""

import json
import os
import signal
import struct
import subprocess
import time
from contextlib import closing
from dataclasses import replace

import ndef
import pytest

import captures
import libnfc
import pictures
from programs import wait_until
from tags import OTHER_UID, former_label, label, written
from type2 import MODELS, Type2
from type4 import Type4

pytestmark = pytest.mark.skipif(libnfc.missing() is not None, reason=f"there is no {libnfc.missing()}")

STRANGER = "7c5a1fd0-3a3b-4f0e-9d1c-0b8f2f6f3f11"


@pytest.fixture
def locate(stepctl, file_vehicle, chip):
    def run(*arguments, **more):
        given = ("--by", "nfc", "--nfc", chip.connection, "--vehicle", file_vehicle.folder / "vehicle.toml")
        return stepctl("locate", *given, *arguments, **more)

    return run


def protected(tag: Type2) -> Type2:
    """Nobody reads it without its password."""
    tag.protect(4, reading=True)
    return tag


def holding(*what: ndef.Record, tag: Type2 | Type4 | None = None):
    return written(tag or Type2("ntag215"), *what)


def with_message(message: bytes) -> Type2:
    """A tag that holds these bytes where a message should be."""
    tag = Type2("ntag215")
    tag.memory[16 : 18 + len(message)] = b"\x03" + bytes([len(message)]) + message
    return tag


def test_the_tag_of_a_step_locates(locate, chip, file_vehicle):
    for step in ("left", "right"):
        chip.place(holding(ndef.TextRecord(label(file_vehicle, step))))
        ended = locate("--json")
        assert ended.status == 0, ended.stderr
        assert (ended.json["step"], ended.json["located"], ended.json["method"]) == (step, True, "nfc")


class Dripping(Type4):
    """A tag that gives a byte of its message at a time, and takes its time for each."""

    def read(self, offset: int, length: int) -> bytes:
        answer = super().read(offset, length)
        if offset < 15:
            return answer
        time.sleep(0.05)
        return answer[:1] + answer[-2:]


def test_a_tag_that_never_comes_to_its_end_does_not_hold_the_rider(locate, chip):
    message = b"".join(ndef.message_encoder([ndef.TextRecord("x" * 5000)]))
    chip.place(Dripping(image=len(message).to_bytes(2, "big") + message, size=8000))
    ended = locate("--timeout", "4")
    assert ended.status == 3
    assert ended.error == "not located: a tag is there, but it does not answer: hold it still, close to the reader"


def test_reading_takes_the_fewest_commands(locate, chip, file_vehicle):
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "left")), tag=Type2("ntag213")))
    chip.zero()
    assert locate().status == 0
    # Tests/Benchmarks/tags.py: opening and closing take 9, selecting 7, GET_VERSION and FAST_READ one each.
    assert chip.counts()["commands"] <= 18 and chip.counts()["writes"] == 0


def test_the_prototypes_tags_and_type_4_tags_are_read_too(locate, chip, file_vehicle):
    number = json.dumps({"uuid": file_vehicle.uuid.upper(), "stepId": 2})
    behind = [ndef.UriRecord("https://example.org"), ndef.TextRecord("hello"), ndef.TextRecord(number, "de", "UTF-16")]
    chip.place(holding(*behind))
    assert locate("--json").json["step"] == "right"
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "left")), tag=Type4()))
    assert locate("--json").json["step"] == "left"
    chip.place(holding(ndef.TextRecord(former_label(file_vehicle, "right"))))
    assert locate("--json").json["step"] == "right"
    # As an app for tags writes the same text.
    chip.place(holding(ndef.UriRecord(label(file_vehicle, "left"))))
    assert locate("--json").json["step"] == "left"


@pytest.mark.parametrize(
    "tag, reason",
    [
        (holding(ndef.TextRecord(json.dumps({"uuid": STRANGER, "stepId": "left"}))), "the tag is another vehicle's ("),
        (Type2("ntag213"), "the tag is empty"),
        (Type2("ultralight"), "the tag is not formatted"),
        (Type2("ntag213", image=Type2("ntag213").memory[:12] + b"\xff\0\0\0"), "not an NDEF tag"),
        (with_message(b"\xd1\x01\xff"), "not an NDEF message"),
        (with_message(b"\xd1\x01\x03T\x85en"), "malformed NDEF record"),
        (holding(ndef.UriRecord("https://example.org")), "the tag holds something else than the name of a step"),
        (holding(ndef.TextRecord('{"uuid":"x","stepId":"left"}')), "the tag holds a step's label that cannot be read"),
        (holding(ndef.UriRecord("stepctl:x?e=0")), "the tag holds the URI of a dynamic tag that cannot be read"),
        (holding(ndef.UriRecord("stepctl:x")), "the tag holds a step's label that cannot be read"),
        (holding(ndef.TextRecord("stepctl:x/left")), "the tag holds a step's label that cannot be read"),
        (protected(holding(ndef.TextRecord("x"))), "the tag is protected by a password from page 4 on"),
        (protected(holding(ndef.TextRecord("x"), tag=Type2("ultralight-c"))), "page 4 of the tag cannot be read"),
        (Type4(), "the tag is empty"),
    ],
    ids=["stranger", "empty", "unformatted", "other", "message", "record", "web", "label", "dynamic", "URI", "text",
         "password", "key", "type 4"],
)
def test_any_other_tag_is_one_line(tag, reason, locate, chip):
    chip.place(tag)
    ended = locate()
    assert ended.status == 3 and ended.stdout == ""
    assert reason in ended.error
    assert [line for line in ended.stderr.splitlines() if "error:" not in line and "hint:" not in line] == []


@pytest.mark.parametrize("model", ["ntag213", "ntag203"])
def test_a_tag_that_claims_to_be_larger_than_it_is_leads_nowhere(model, locate, chip):
    tag = Type2(model)
    tag.memory[12:20] = bytes.fromhex("e110ff00 03ff01f4")  # 2040 bytes, a message of 500
    chip.place(tag)
    ended = locate("--timeout", "4")
    assert ended.status == 3
    assert "beyond the tag's end" in ended.error or "page 42 of the tag cannot be read" in ended.error


def test_a_page_that_cannot_be_read_is_told_at_once(locate, chip, file_vehicle):
    chip.place(protected(holding(ndef.TextRecord(label(file_vehicle, "left")), tag=Type2("ultralight-c"))))
    ended = locate("--timeout", "180")
    # In a third of the time that it has: longer is never waited for a program.
    assert (ended.status, ended.error) == (3, "not located: page 4 of the tag cannot be read")


@pytest.mark.parametrize(
    "area",
    ["03ff{length:04x}{message}fe", "01020000 03{length:02x}{message}fe", "0203a00c30 03{length:02x}{message}fe"],
    ids=["length in three bytes", "short control block", "pages of no size"],
)
@pytest.mark.parametrize(
    "tag",
    [Type2("ntag213"), Type2("ntag203"), Type2(replace(MODELS["ntag213"], has_fast_read=False)),
     Type2("ntag213", bytes.fromhex("05a1b2c3"))],
    ids=["ntag213", "ntag203", "without FAST_READ", "short UID"],
)  # fmt: skip
def test_what_other_readers_take_is_read(tag, area, locate, chip, file_vehicle):
    message = b"".join(ndef.message_encoder([ndef.TextRecord(label(file_vehicle, "left"))]))
    data = bytes.fromhex(area.format(length=len(message), message=message.hex()))
    tag.memory[16 : 16 + len(data)] = data
    chip.place(tag)
    ended = locate("--json")
    assert ended.status == 0, ended.stderr
    assert ended.json["step"] == "left"


def test_a_tag_with_the_names_of_two_steps_names_none(locate, chip, file_vehicle):
    left, right = (ndef.TextRecord(label(file_vehicle, step)) for step in ("left", "right"))
    chip.place(holding(left, right))
    ended = locate()
    assert ended.status == 3
    assert ended.error == (
        f"not located: the tag names both the left step of {file_vehicle.uuid} and the right step of {file_vehicle.uuid}"
    )
    chip.place(holding(left, ndef.UriRecord("https://example.org"), left))
    assert locate("--json").json["step"] == "left"


def test_a_step_that_the_vehicle_does_not_have(locate, chip, file_vehicle):
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "rear"))))
    ended = locate()
    assert ended.status == 3 and "names a step that" in ended.error


def test_what_a_tag_says_does_not_steer_the_terminal(locate, chip):
    chip.place(holding(ndef.TextRecord('{"uuid":"\x1b[2J","stepId":"\x1b[2J"}')))
    ended = locate()
    assert ended.status == 3 and "\x1b" not in ended.stderr + ended.stdout


@pytest.mark.parametrize(
    "fault", ["lose@read:1", "remove=200@read:1", "junk@InCommunicateThru:1", "bit7@tag:1", "nak@tag:1"]
)
def test_a_reading_that_was_disturbed_is_repeated(fault, locate, chip, file_vehicle):
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "left"))))
    chip.fault(fault)
    assert locate("--json").json["step"] == "left"


def test_no_tag_is_not_located(locate, chip):
    chip.remove()
    ended = locate("--timeout", "0.3")
    assert (ended.status, ended.error) == (3, "not located: no tag came in 0.3 s")


def test_a_tag_that_is_not_listed_is_not_one_of_the_steps(stepctl, parked, chip):
    file = parked.folder / "vehicle.toml"
    given = ("--nfc", chip.connection, "--vehicle", file)
    assert stepctl("provision", "tag", "--step", "left", "--register", *given).status == 0
    assert stepctl("locate", "--by", "nfc", *given).status == 0
    copy = Type2("ntag213", bytes.fromhex(OTHER_UID))
    copy.memory[16:160] = chip.tag.memory[16:160]
    chip.place(copy)
    ended = stepctl("locate", "--by", "nfc", *given)
    assert ended.status == 3 and ended.error.startswith(f"not located: the tag {OTHER_UID} names the left step")


def test_a_tag_that_came_later_is_known_to_riders_who_were_there_before(stepctl, parked, chip):
    given = ("--nfc", chip.connection, "--vehicle", parked.folder / "vehicle.toml")
    assert stepctl("provision", "tag", "--step", "left", "--register", *given).status == 0
    alice = parked.rider("alice")
    chip.place(Type2("ntag213", bytes.fromhex(OTHER_UID)))
    assert stepctl("provision", "tag", "--step", "left", *given).status == 0
    parked.starts_all()
    opened = alice.types("open", "--side", "left", "--by", "nfc", "--nfc", chip.connection)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened.stderr


def test_a_rider_opens_by_tag(alice, vehicle, chip):
    chip.place(holding(ndef.TextRecord(label(vehicle, "left"))))
    given = ("--by", "nfc", "--nfc", chip.connection)
    ended = alice.types("open", "--side", "left", *given)
    assert ended.status == 0, ended.stderr
    vehicle.wait_for_motions(("left", "close", "open"))
    assert alice.types("open", "--side", "right", *given).status == 4
    assert alice.types("close", "--side", "facing", *given, "--json").json["step"] == "left"


def test_the_tag_is_what_else_is_at_hand_where_the_radio_fails(alice, vehicle, chip, tmp_path):
    chip.place(holding(ndef.TextRecord(label(vehicle, "right"))))
    ended = alice.types(
        "open", "--side", "facing", "--radio", f"btsnoop:{tmp_path}/none", "--nfc", chip.connection, "--json"
    )
    assert ended.status == 0 and ended.json["step"] == "right" and ended.json["method"] == "nfc"


def test_the_reader_is_read_as_long_as_there_is_time(locate, chip, file_vehicle):
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "left"))))
    # It is there, and says nothing.
    chip.tag.command = lambda data: chip.tag.drop()
    ended = locate("--timeout", "4")
    assert ended.status == 3 and "does not answer" in ended.error


# All ways at once: the first that is enough wins.


@pytest.fixture
def auto(file_vehicle, chip, tmp_path):
    """The arguments for a radio that decides nothing, a picture of this text, and the reader."""
    capture = captures.written(tmp_path / "between.btsnoop", captures.between(file_vehicle.uuid))

    def given(code: str, source=None) -> tuple:
        picture = tmp_path / "code.png"
        picture.write_bytes(pictures.png(pictures.code(code)))
        file = file_vehicle.folder / "vehicle.toml"
        return ("--vehicle", file, "--radio", f"btsnoop:{capture}", "--qr", source or picture, "--nfc", chip.connection)

    return given


def test_what_was_named_is_tried_until_it_locates(auto, stepctl, chip, file_vehicle):
    ended = stepctl("locate", *auto(label(file_vehicle, "right")), "--json")
    assert (ended.status, ended.json["method"]) == (0, "qr")
    chip.place(holding(ndef.TextRecord(label(file_vehicle, "left"))))
    ended = stepctl("locate", *auto("https://example.org/"), "--json")
    assert (ended.status, ended.json["method"], ended.json["step"]) == (0, "nfc", "left"), ended.stderr
    # Each is told when it ends, unless the tag came first.
    notes = {note.split(": ")[0]: note for note in ended.stderr.splitlines()}
    assert notes.keys() <= {"not located by radio", "not located by code"}
    code = "not located by code: the code holds something else than the name of a step"
    assert notes.get("not located by code", code) == code
    none = stepctl("locate", *auto("https://example.org/", file_vehicle.folder / "none.png"), "--json")
    assert (none.status, none.json["method"]) == (0, "nfc")
    assert any(note.startswith("not located by code: cannot open ") for note in none.stderr.splitlines())


def test_the_last_way_says_how_it_ended(auto, stepctl, chip):
    chip.remove()
    ended = stepctl("locate", *auto("https://example.org/"), "--timeout", "0.3")
    assert (ended.status, ended.stdout, ended.error) == (3, "", "not located: no tag came in 0.3 s")


def test_control_c_ends_all_ways(auto, stepctl, chip, tmp_path):
    given = auto("https://example.org/", "-")
    with closing(stepctl.start(tmp_path / "log", "locate", *given, stdin=subprocess.PIPE)) as running:
        running.says("not located by radio")
        running.signal(signal.SIGINT)
        assert running.ends().status == -signal.SIGINT


def test_a_tag_is_read_while_the_radio_still_listens(stepctl, chip, file_vehicle, tmp_path):
    """A radio that hears nothing, with three minutes' patience: the tag does not wait for it."""
    chip.remove()
    pipe = tmp_path / "air"
    os.mkfifo(pipe)
    air = os.open(pipe, os.O_RDWR)
    try:
        os.write(air, b"btsnoop\0" + struct.pack(">II", 1, 2001))
        file = file_vehicle.folder / "vehicle.toml"
        given = ("--vehicle", file, "--radio", f"btsnoop:{pipe}", "--nfc", chip.connection, "--timeout", "180")
        with closing(stepctl.start(tmp_path / "log", "locate", *given, "--json")) as running:
            wait_until(lambda: chip.counts()["commands"] > 3, "the reader is asked")
            chip.place(holding(ndef.TextRecord(label(file_vehicle, "left"))))
            assert running.ends().json["method"] == "nfc", "in a third of that time"
    finally:
        os.close(air)
