"""The real libnfc with its tools, and nfcpy, take the chip for a PN532."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import ndef
import pytest

import libnfc
import nfcpy_reader
from chip import Chip
from hsu import ACK as ACK_FRAME
from hsu import frame
from type2 import MODELS, Type2
from type4 import Type4

HERE = Path(__file__).parent
MESSAGE = [ndef.TextRecord('{"uuid":"7c5a1fd0-3a3b-4f0e-9d1c-0b8f2f6f3f11","stepId":"left"}')]


# libnfc's tools.


def test_nfc_list_shows_the_tag():
    with Chip(Type2("ntag213", bytes.fromhex("04112233445566"))) as chip:
        listed = libnfc.run(chip.connection, "nfc-list")
    assert "04  11  22  33  44  55  66" in listed.stdout
    assert "00  44" in listed.stdout


def test_nfc_list_shows_no_tag_where_there_is_none():
    with Chip() as chip:
        listed = libnfc.run(chip.connection, "nfc-list")
    assert listed.returncode == 0 and "target(s) found" not in listed.stdout


def test_nfc_list_shows_what_a_type_4_tag_answers_to_rats():
    with Chip(Type4()) as chip:
        listed = libnfc.run(chip.connection, "nfc-list")
    assert "ATS: 75  77  81  02  80" in listed.stdout


@pytest.mark.parametrize("model, pages", [("ntag213", 45), ("ntag215", 135), ("ntag216", 231), ("ultralight", 16)])
def test_nfc_mfultralight_reads_all_of_a_tag(model, pages, tmp_path):
    tag = Type2(model)
    tag.memory[16:32] = bytes(range(16))
    with Chip(tag) as chip:
        read = libnfc.run(chip.connection, "nfc-mfultralight", "r", str(tmp_path / "dump"))
    assert f"Done, {pages} of {pages} pages read" in read.stdout
    shown = bytearray(tag.content())
    if tag.model.version:
        shown[-8:] = bytes(8)  # the password is never shown
    assert (tmp_path / "dump").read_bytes()[: len(shown)] == shown


def test_nfc_mfultralight_writes_a_tag(tag, chip, tmp_path):
    dump = bytearray(tag.content())
    dump[16:160] = bytes(range(144))
    (tmp_path / "dump").write_bytes(dump)
    written = libnfc.run(chip.connection, "nfc-mfultralight", "w", str(tmp_path / "dump"), typed="n\nn\nn\nn\n")
    assert "0 pages failed" in written.stdout, written.stdout
    assert tag.content()[16:160] == bytes(range(144))


def test_nfc_anticol_selects_by_hand_and_sees_a_correct_crc():
    with Chip(Type4()) as chip:
        selected = libnfc.run(chip.connection, "nfc-anticol")
    assert "UID: 04a1b2c3d4e580" in selected.stdout and "ATS: 06  75  77  81  02  80" in selected.stdout
    assert "CRC error" not in selected.stdout


@pytest.mark.parametrize("tag", [Type2(), Type4()], ids=["type 2", "type 4"])
def test_nfc_poll_sees_a_tag_come_and_go(tag):
    with Chip(tag) as chip:
        for command in ("InDataExchange", "InCommunicateThru"):  # how it asks whether a tag is still there
            chip.fault(f"remove@{command}:3")
        polled = libnfc.run(chip.connection, "nfc-poll")
    assert "UID (NFCID1): 04  a1  b2  c3  d4  e5  80" in polled.stdout
    assert "Waiting for card removing...done." in polled.stdout


# nfcpy.


@pytest.mark.parametrize(
    "model, product",
    [
        ("ntag213", "NXP NTAG213"),
        ("ntag215", "NXP NTAG215"),
        ("ntag216", "NXP NTAG216"),
        ("ntag203", "NXP NTAG203"),
        ("ultralight", "Mifare Ultralight (MF01CU1)"),
    ],
)
def test_nfcpy_tells_the_models_apart(model, product):
    with Chip(Type2(model)) as chip, nfcpy_reader.opened(chip.path) as frontend:
        assert nfcpy_reader.found(frontend).product == product


@pytest.mark.parametrize("tag", [Type2("ntag213"), Type2("ntag203"), Type2("ntag216"), Type4()], ids=type)
def test_nfcpy_reads_what_it_wrote(tag):
    with Chip(tag) as chip:
        for _ in range(2):  # it changes the speed when it opens the port, and back when it closes it
            with nfcpy_reader.opened(chip.path) as frontend:
                found = nfcpy_reader.found(frontend)
                if not found.ndef.records:
                    found.ndef.records = MESSAGE
        assert found.ndef.records == MESSAGE


def test_nfcpy_is_refused_without_the_password():
    tag = Type2("ntag213")
    with Chip(tag) as chip, nfcpy_reader.opened(chip.path) as frontend:
        assert nfcpy_reader.found(frontend).protect(b"secret", read_protect=True, protect_from=4)
        found = nfcpy_reader.found(frontend)
        assert found.ndef is None
        assert found.authenticate(b"secret")


# Memory, through libnfc.

READ, ACK = b"\x30", b""


def write(device: libnfc.Device, page: int, data: str) -> bytes | int:
    return device.transceive(bytes([0xA2, page]) + bytes.fromhex(data))


def raw(device: libnfc.Device, data: str) -> bytes | int:
    """By InCommunicateThru."""
    device.easy_framing(False)
    answer = device.transceive(bytes.fromhex(data))
    device.easy_framing(True)
    return answer


def test_read_goes_on_at_the_beginning_after_the_last_page(tag, device):
    # The password is shown as zeros.
    assert device.transceive(b"\x30\x2b") == bytes(8) + tag.content()[:8]


def test_a_tag_that_refuses_is_idle_until_it_is_selected_again(tag, device):
    assert device.transceive(b"\x30\x2d") == libnfc.RF_TRANSMISSION
    assert device.transceive(b"\x30\x04") == libnfc.RF_TRANSMISSION
    assert device.select() == tag.uid
    assert device.transceive(b"\x30\x04") == tag.content()[16:32]


def test_commands_of_ntag21x(tag, device):
    assert device.transceive(b"\x60") == libnfc.INVALID_ARGUMENT, "InDataExchange does not pass it on"
    assert raw(device, "60") == MODELS["ntag213"].version
    assert raw(device, "3a0407") == tag.content()[16:32]
    assert len(raw(device, "3c00")) == 32
    assert raw(device, "1bffffffff") == b"\0\0"
    assert raw(device, "3a0703") == libnfc.RF_TRANSMISSION


def test_fast_read_of_60_pages_needs_an_extended_frame():
    tag = Type2("ntag216")
    tag.memory[16:256] = bytes(range(240))
    with Chip(tag) as chip, libnfc.opened(chip.connection) as device:
        device.select()
        assert raw(device, "3a043f") == bytes(range(240))


def test_bits_of_the_container_and_of_locks_are_never_cleared(tag, device):
    assert write(device, 3, "00000000") == ACK
    assert tag.page(3) == bytes.fromhex("e1101200")
    assert write(device, 3, "0000000f") == ACK
    assert tag.page(3) == bytes.fromhex("e110120f")
    assert write(device, 2, "ffff1000") == ACK
    assert write(device, 2, "00000000") == ACK
    assert tag.page(2)[2:] == b"\x10\x00"


def test_a_locked_page_is_refused_from_the_next_selection_on(tag, device):
    write(device, 2, "00001000")  # page 4
    assert write(device, 4, "01020304") == ACK
    device.select()
    assert write(device, 4, "00000000") == libnfc.RF_TRANSMISSION
    assert tag.page(4) == bytes.fromhex("01020304")


def test_lock_bits_that_are_frozen_cannot_be_set(tag, device):
    write(device, 2, "00000400")  # pages 10 to 15
    write(device, 2, "0000f0ff")
    assert tag.page(2)[2:] == b"\xf4\x03"


@pytest.mark.parametrize(
    "model, bits, locked",
    [
        ("ntag213", "010000", (16, 17)),
        ("ntag213", "000800", (38, 39)),
        ("ntag215", "800000", (128, 129)),
        ("ntag216", "002000", (224, 225)),
        ("ntag203", "020000", (16, 17, 18, 19)),
    ],
)
def test_dynamic_lock_bits_lock_their_pages(model, bits, locked):
    tag = Type2(model)
    with Chip(tag) as chip, libnfc.opened(chip.connection) as device:
        device.select()
        write(device, tag.model.lock_page, bits + "00")
        for page, is_locked in ((locked[0] - 1, False), (locked[0], True), (locked[-1], True)):
            device.select()
            assert write(device, page, "aabbccdd") == (libnfc.RF_TRANSMISSION if is_locked else ACK)


def test_a_dump_is_a_tag(tmp_path, tag):
    (tmp_path / "dump").write_bytes(tag.content())
    copy = Type2("ntag213", image=(tmp_path / "dump").read_bytes())
    assert copy.content() == tag.content() and copy.uid == tag.uid
    assert Type2.of_size(tag.content()[:64]).model.pages == 16


def test_what_is_longer_than_a_block_is_chained():
    tag = Type4(most_read=250, most_written=200)
    data = bytes(range(200))
    with Chip(tag) as chip, libnfc.opened(chip.connection) as device:
        device.select()
        assert device.transceive(bytes.fromhex("00a4040007d276000085010100")) == b"\x90\x00"
        assert device.transceive(bytes.fromhex("00a4000c02e104")) == b"\x90\x00"
        assert device.transceive(b"\x00\xd6\x00\x10\xc8" + data) == b"\x90\x00"
        assert device.transceive(b"\x00\xb0\x00\x00\xfa") == bytes(16) + data + bytes(34) + b"\x90\x00"
        assert device.transceive(b"\x00\xb0\x00\x00\xfb") == b"\x67\x00", "more than MLe"


# The chip, byte by byte.


@pytest.fixture
def line(chip):
    """The port, as a program sees it that has woken the chip."""
    port = os.open(chip.path, os.O_RDWR | os.O_NOCTTY)
    os.write(port, bytes.fromhex("5555000000000000"))
    yield port
    os.close(port)


def heard(port: int, size: int) -> str:
    """So many bytes, or what comes in a minute; what comes beyond them in a moment as well."""
    os.set_blocking(port, False)
    received, limit = b"", time.monotonic() + 60
    while time.monotonic() < limit:
        if len(received) >= size:
            limit = min(limit, time.monotonic() + 0.02)
        try:
            received += os.read(port, 4096)
        except BlockingIOError:
            time.sleep(0.005)
    return received.hex()


def assert_says(port: int, expected: str):
    assert heard(port, len(expected) // 2) == expected


def assert_silent(port: int):
    time.sleep(0.1)
    assert_says(port, "")


ACKNOWLEDGED = "0000ff00ff00"
VERSION_COMMAND, VERSION = "0000ff02fed4022a00", "0000ff06fad50332010607e800"


def test_answers_with_an_ack_and_a_frame(line):
    os.write(line, bytes.fromhex(VERSION_COMMAND))
    assert_says(line, ACKNOWLEDGED + VERSION)


def test_a_chip_that_sleeps_hears_nothing_until_it_was_woken(chip):
    port = os.open(chip.path, os.O_RDWR | os.O_NOCTTY)
    os.write(port, bytes.fromhex(VERSION_COMMAND))
    assert_silent(port)
    os.write(port, bytes.fromhex(VERSION_COMMAND))
    assert_says(port, ACKNOWLEDGED + VERSION)
    os.close(port)


@pytest.mark.parametrize(
    "what, sent",
    [
        ("a wrong length checksum", "0000ff02fdd4022a00"),
        ("a wrong data checksum", "0000ff02fed4022b00"),
        ("a frame that is not for a chip", "0000ff02fed5022900"),
    ],
)
def test_what_is_damaged_is_not_acknowledged(what, sent, line):
    os.write(line, bytes.fromhex(sent))
    assert_silent(line)
    os.write(line, bytes.fromhex(VERSION_COMMAND))
    assert_says(line, ACKNOWLEDGED + VERSION)


def test_a_command_that_it_does_not_know_is_answered_with_an_error_frame(line):
    os.write(line, bytes.fromhex("0000ff02fed4fe2e00"))
    assert_says(line, ACKNOWLEDGED + "0000ff01ff7f8100")


def test_nack_has_the_last_answer_sent_again(line):
    os.write(line, bytes.fromhex(VERSION_COMMAND))
    assert_says(line, ACKNOWLEDGED + VERSION)
    os.write(line, bytes.fromhex("0000ffff0000"))
    assert_says(line, VERSION)


def test_an_endless_search_ends_with_a_tag_or_with_the_hosts_ack(chip, line):
    chip.remove()
    search = bytes.fromhex("0000ff04fcd44a0100e100")
    os.write(line, search)
    assert_says(line, ACKNOWLEDGED)
    os.write(line, bytes.fromhex(ACKNOWLEDGED))
    chip.wait_until(lambda: chip.records and chip.records[-1].get("note") == "given up")
    chip.place()
    assert_silent(line)
    chip.remove()
    os.write(line, search)
    assert_says(line, ACKNOWLEDGED)
    chip.place()
    assert_says(line, "0000ff0ff1d54b01010044000704a1b2c3d4e5804000")


def test_a_new_command_ends_the_one_that_runs(chip, line):
    chip.remove()
    os.write(line, bytes.fromhex("0000ff04fcd44a0100e100"))
    assert_says(line, ACKNOWLEDGED)
    os.write(line, bytes.fromhex(VERSION_COMMAND))
    assert_says(line, ACKNOWLEDGED + VERSION)
    chip.place()
    assert_silent(line)
    assert chip.records[-2]["note"] == "given up"


def test_a_wrong_speed_is_silence(chip):
    with pytest.raises(OSError):
        with libnfc.opened(chip.connection + ":9600"):
            pass


def test_nothing_is_written_to_the_port_that_was_not_asked_for(chip, line):
    chip.remove()
    chip.place()
    assert_silent(line)


def ask(line: int, command: str) -> str:
    """What a command is answered, from its status on."""
    os.write(line, frame(bytes.fromhex("d4" + command)))
    answer = bytes.fromhex(heard(line, len(ACK_FRAME) + 5))
    assert answer.startswith(ACK_FRAME + b"\x00\x00\xff")
    return answer[len(ACK_FRAME) + 7 : -2].hex()


SEARCH, READ_PAGE_4 = "4a0100", "40013004"


def test_a_target_that_was_deselected_answers_when_it_is_selected_again(tag, chip, line):
    assert ask(line, READ_PAGE_4) == "27", "there is no target"
    assert ask(line, SEARCH).startswith("0101")
    assert ask(line, "4401") == "00"
    assert ask(line, READ_PAGE_4) == "27"
    assert ask(line, "5401") == "00"
    assert ask(line, READ_PAGE_4) == "00" + tag.content()[16:32].hex()
    assert ask(line, "5200") == "00"
    assert ask(line, "5401") == "27", "it was released"


def test_a_released_tag_is_at_rest_until_the_field_was_off(chip, line):
    ask(line, SEARCH)
    ask(line, "5200")
    ask(line, "3205000102")
    assert ask(line, SEARCH) == "00"
    ask(line, "320100")
    assert ask(line, SEARCH).startswith("0101")


def test_iso_dep_repeats_as_often_as_the_chip_was_told(line, chip):
    chip.place(Type4())
    select = "4001" + "00a4040007d276000085010100"
    ask(line, SEARCH)
    assert ask(line, select) == "009000"
    for lost in ("lose", "lose-ack@tag"):
        chip.fault(lost)
        assert ask(line, select) == "01"
        ask(line, SEARCH)
        ask(line, SEARCH)
        ask(line, "320401")
        chip.fault(lost)
        assert ask(line, select) == "009000"
        assert ask(line, select) == "009000"
        ask(line, "320400")
        ask(line, SEARCH)


# The program.


def test_the_program_prints_its_port_and_obeys_its_socket(tmp_path):
    link, control, log, saved = (tmp_path / name for name in ("port", "control", "log", "saved"))
    command = [sys.executable, str(HERE / "chip.py"), "--tag", "ntag213", "--uid", "04112233445566"]
    command += ["--link", str(link), "--control", str(control), "--log", str(log), "--save", str(saved)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"{link}\n"
        with socket.socket(socket.AF_UNIX) as connection, libnfc.opened(f"pn532_uart:{link}") as device:
            connection.connect(str(control))
            answers = connection.makefile()

            def ask(line: str) -> dict:
                connection.sendall(f"{line}\n".encode())
                return json.loads(answers.readline())

            assert device.select() == bytes.fromhex("04112233445566")
            assert write(device, 4, "01020304") == ACK
            assert ask("counts")["writes"] == 1
            assert ask("image")["image"][32:40] == "01020304"
            assert "no such fault" in ask("fault nonsense")["error"]
            assert ask("swap 04aabbccddeeff") == {}
            assert device.select() == bytes.fromhex("04aabbccddeeff")
            assert ask("remove") == {} and device.select() is None
            assert ask("place") == {} and device.select() == bytes.fromhex("04aabbccddeeff")
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert len(saved.read_bytes()) == 180
    assert not link.exists() and not control.exists()
    commands = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"command": "Diagnose", "bytes_in": 16, "bytes_out": 22}.items() <= commands[1].items()
