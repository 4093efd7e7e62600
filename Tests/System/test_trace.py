"""`-vv`: what goes over radio, reader and camera, byte by byte, and nothing that is secret."""

import re

import ndef
import pytest

import captures
import libnfc
import pictures
from chip import Chip
from ntag424 import NTAG424
from programs import STEPCTL
from tags import TagMaker, label, written
from type2 import Type2

NFC = pytest.mark.skipif(libnfc.missing() is not None, reason=f"there is no {libnfc.missing()}")


def frames(ended, device: str) -> list[str]:
    return [line for line in ended.stderr.splitlines() if re.match(f"[<>] {re.escape(device)}", line)]


def test_what_a_radio_hears_is_shown_a_line_each(stepctl, file_vehicle, tmp_path):
    radio = captures.written(tmp_path / "walk.btsnoop", captures.at_the_left(file_vehicle.uuid))
    vehicle = file_vehicle.folder / "vehicle.toml"
    ended = stepctl("locate", "--vehicle", vehicle, "--radio", radio, "-vv")
    assert ended.status == 0
    told = frames(ended, radio)
    uuid = file_vehicle.uuid.replace("-", "").upper()
    line = re.compile(f"< {re.escape(radio)} [0-9A-F:]{{17}} -\\d+ dBm [0-9A-F]*4C000215{uuid}[0-9A-F]{{10}}")
    assert any(map(line.fullmatch, told))
    for quieter in ([], ["-v"], ["-q"]):
        assert frames(stepctl("locate", "--vehicle", vehicle, "--radio", radio, *quieter), radio) == []
    # What a program reads is as before.
    assert stepctl("locate", "--vehicle", vehicle, "--radio", radio, "-vv", "--json").json["step"] == "left"


def test_a_picture_is_not_written_over(on_terminal, file_vehicle, tmp_path):
    recording = tmp_path / "walk.btsnoop"
    captures.written(recording, captures.at_the_left(file_vehicle.uuid))
    watch = ["locate", "--watch", "-vv", "--radio", "btsnoop:-", "--vehicle", file_vehicle.folder / "vehicle.toml"]
    # Somebody still records.
    screen = on_terminal(["sh", "-c", '(cat "$0"; sleep 60) | "$@"', recording, STEPCTL, *watch])
    screen.shows("at the left step")
    assert b"4C000215" not in screen.read()


@NFC
def test_a_tag_that_anybody_can_read_is_shown_whole(stepctl, file_vehicle):
    text = label(file_vehicle, "left")
    with Chip(written(Type2("ntag213"), ndef.TextRecord(text, "en"))) as chip:
        given = ("--by", "nfc", "--nfc", chip.connection, "--vehicle", file_vehicle.folder / "vehicle.toml")
        ended = stepctl("locate", *given, "-vv")
        assert ended.status == 0, ended.stderr
        told = frames(ended, "tag")
        assert told[0].startswith("< tag 04") and told[1] == "> tag 60"
        assert any(text.encode().hex().upper() in line for line in told if line.startswith("<"))
        assert frames(stepctl("locate", *given, "-v"), "tag") == []


@NFC
def test_no_key_of_a_dynamic_tag_and_nothing_made_with_one_is_shown(parked, stepctl):
    """Also what an answer proves once: somebody may send this to someone who is asked for help."""
    with Chip(NTAG424()) as chip:
        operator = TagMaker(parked, chip)
        made = operator.provisions("-vv")
        assert made.status == 0, made.stderr
        given = ("--by", "nfc", "--nfc", chip.connection, "--vehicle", parked.folder / "vehicle.toml")
        read = stepctl("locate", *given, "-vv")
        assert read.status == 0, read.stderr
        told = frames(made, "tag") + frames(read, "tag")
    shown = "\n".join(told)
    for key in (*operator.kept, operator.master, "00" * 16):
        assert key not in shown
    # Commands by name: the two steps of the authentication, keys, settings.
    for code in ("71", "AF", "C4", "5F"):
        assert any(re.fullmatch(rf"> tag 90{code}0000 \.\.\d+\.\.", line) for line in told), code
    # Behind the question mark of the URI there is nothing but how long it is.
    (content,) = {line for line in frames(read, "tag") if b"stepctl:".hex().upper() in line}
    assert re.search(r"3F \.\.\d+\.\. 9000$", content)
    # Nor are there any of its digits elsewhere: sixteen of them in a row, as text.
    template = "30" * 16
    assert not re.search("(?:3[0-9]|4[1-6]){16}", shown.replace(template, ""))


def test_a_code_is_shown_where_it_is_a_steps_and_else_its_size(stepctl, file_vehicle, tmp_path):
    for text, expected in (
        (label(file_vehicle, "left"), f"code {label(file_vehicle, 'left')}"),
        ("WIFI:S:home;P:a password;;", "code of 26 bytes that names no step; not shown"),
    ):
        (tmp_path / "code.png").write_bytes(pictures.png(pictures.code(text, "L", scale=4)))
        given = ("--by", "qr", "--qr", tmp_path / "code.png", "--vehicle", file_vehicle.folder)
        ended = stepctl("locate", *given, "-vv")
        assert f"< {tmp_path}/code.png {expected}\n" in ended.stderr
        assert "a password" not in ended.stderr
