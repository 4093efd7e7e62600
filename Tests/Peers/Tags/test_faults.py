"""What goes wrong goes wrong as it would with the real things, and the real libnfc meets it."""

import os
import signal
import time

import pytest

import libnfc
from chip import Chip
from faults import Fault, parse
from type2 import Type2
from type4 import Type4

ACK = b""


def read(device: libnfc.Device, page: int) -> bytes | int:
    return device.transceive(bytes([0x30, page]))


def write(device: libnfc.Device, page: int, data: str) -> bytes | int:
    return device.transceive(bytes([0xA2, page]) + bytes.fromhex(data))


def test_faults_are_written_with_their_event_and_its_count():
    assert parse("nak@write:3") == Fault("nak", "", "write", 3)
    assert parse("junk=00aa@InDataExchange") == Fault("junk", "00aa", "InDataExchange", 1)
    assert parse("lose-ack").event == "write"
    assert parse("slow=200") == Fault("slow", "200", "", 1)


@pytest.mark.parametrize("text", ["", "nonsense", "nak@write:0", "nak@write:x", "nak@nothing", "slow=fast"])
def test_what_is_no_fault_is_refused(text):
    with pytest.raises(ValueError):
        parse(text)


# Tags.


def test_a_tag_that_was_removed_is_missed_after_its_time_out(chip, device):
    chip.remove()
    began = time.monotonic()
    assert read(device, 4) == libnfc.RF_TRANSMISSION
    assert time.monotonic() - began >= 0.05
    assert device.select() is None
    chip.place()
    assert device.select() == chip.tag.uid


def test_a_page_acknowledges_what_is_written_and_ignores_it(chip, device):
    chip.tag.deaf = {5}
    assert [write(device, page, "01020304") for page in (4, 5, 6)] == [ACK] * 3
    assert read(device, 4) == bytes.fromhex("01020304 14151617 01020304 1c1d1e1f")


def test_a_password_protects_from_a_page_on(chip, device):
    chip.tag.protect(6)
    device.select()
    assert write(device, 5, "01020304") == ACK and write(device, 6, "01020304") == libnfc.RF_TRANSMISSION
    assert chip.tag.page(6) == bytes(range(0x18, 0x1C))
    chip.tag.protect(6, reading=True)
    device.select()
    assert read(device, 4) == bytes.fromhex("10111213 01020304") + bytes(chip.tag.memory[:8]), "page 0 follows"
    assert read(device, 6) == libnfc.RF_TRANSMISSION


def test_a_tag_leaves_before_its_third_write(chip, device):
    chip.fault("remove@write:3")
    answers = [write(device, page, "01020304") for page in (4, 5, 6, 7)]
    assert answers == [ACK, ACK, libnfc.RF_TRANSMISSION, libnfc.RF_TRANSMISSION]
    assert chip.tag.page(6) == bytes(range(0x18, 0x1C))


def test_a_tag_comes_back_without_its_selection(chip, device):
    chip.fault("remove=100@read:1")
    assert read(device, 4) == libnfc.RF_TRANSMISSION
    time.sleep(0.2)
    assert read(device, 4) == libnfc.RF_TRANSMISSION
    assert device.select() == chip.tag.uid


@pytest.mark.parametrize(
    "how, left",
    [("old", "18191a1b"), ("new", "01020304"), ("half", "01021a1b"), ("garbage", "bcbebcba")],
)
def test_a_torn_page_is_what_was_asked_for(how, left, chip, device):
    chip.fault(f"tear={how}@write:2")
    assert write(device, 5, "01020304") == ACK
    assert write(device, 6, "01020304") == libnfc.RF_TRANSMISSION
    assert chip.tag.page(6).hex() == left
    assert device.select() is None


def test_a_lost_ack_leaves_the_page_written_and_the_tag_selected(chip, device):
    chip.fault("lose-ack@write:2")
    assert write(device, 4, "01020304") == ACK
    assert write(device, 5, "01020304") == libnfc.RF_TRANSMISSION
    assert chip.tag.page(5) == bytes.fromhex("01020304")
    assert read(device, 5)[:4] == bytes.fromhex("01020304")


def takes_less(action, limit: float) -> bool:
    """Whether it does at some time: a busy machine only makes it longer."""
    given_up = time.monotonic() + 60
    while (began := time.monotonic()) < given_up:
        action()
        if time.monotonic() - began < limit:
            return True
    return False


def test_a_nak_comes_at_once_and_the_tag_is_idle(chip, device):
    def refused():
        device.select()
        chip.fault("nak@write:1")
        assert write(device, 4, "01020304") == libnfc.RF_TRANSMISSION

    assert takes_less(refused, 0.05), "as long as a tag that does not answer"
    assert chip.tag.page(4) == bytes(range(0x10, 0x14))
    assert read(device, 4) == libnfc.RF_TRANSMISSION
    assert device.select() == chip.tag.uid


def test_a_command_that_the_tag_does_not_hear_does_nothing(chip, device):
    chip.fault("lose@write:1")
    assert write(device, 4, "01020304") == libnfc.RF_TRANSMISSION
    assert chip.tag.page(4) == bytes(range(0x10, 0x14))
    assert read(device, 4)[:4] == chip.tag.page(4)


def test_an_answer_with_a_wrong_crc_is_refused_by_the_chip(chip, device):
    chip.fault("corrupt")
    assert read(device, 4) == libnfc.RF_TRANSMISSION
    assert read(device, 4) == chip.tag.content()[16:32]


def test_another_tag_lies_there(chip, device):
    chip.fault("swap=04AABBCCDDEEFF@write:2")
    assert write(device, 4, "01020304") == ACK
    assert write(device, 5, "01020304") == libnfc.RF_TRANSMISSION
    assert device.select() == bytes.fromhex("04aabbccddeeff")
    assert read(device, 4)[:8] == bytes.fromhex("0103a00c340300fe")


# The reader.


def test_junk_before_an_ack_is_an_input_output_error_once(chip, device):
    chip.fault("junk")
    assert read(device, 8) == libnfc.IO
    # What the chip still says to this would be taken for the next answer.
    chip.wait_until(lambda: chip.counts()["commands"] == 1)
    assert read(device, 4) == chip.tag.content()[16:32]


def test_libnfc_believes_a_reader_that_is_one_answer_behind(chip, device):
    assert read(device, 4) == chip.tag.content()[16:32]
    chip.fault("behind")
    assert read(device, 8) == chip.tag.content()[16:32]
    assert read(device, 4) == chip.tag.content()[32:48]


@pytest.mark.parametrize("fault", ["bad-checksum", "bad-length", "error-frame"])
def test_a_damaged_answer_is_an_input_output_error_once(fault, chip, device):
    chip.fault(fault)
    assert read(device, 4) == libnfc.IO
    assert read(device, 4) == chip.tag.content()[16:32]


@pytest.mark.parametrize("fault", ["no-answer", "no-ack", "silent"])
def test_silence_is_a_time_out(fault, chip, device):
    chip.fault(fault)
    began = time.monotonic()
    assert read(device, 4) == libnfc.TIME_OUT
    assert time.monotonic() - began >= 0.9
    chip.clear()
    assert read(device, 4) == chip.tag.content()[16:32]


def test_a_slow_reader_answers_late(chip, device):
    chip.fault("slow=150")
    began = time.monotonic()
    assert read(device, 4) == chip.tag.content()[16:32]
    assert time.monotonic() - began >= 0.15
    chip.clear()
    assert takes_less(lambda: read(device, 4), 0.15)


def test_a_status_byte_of_the_tests_own(chip, device):
    chip.fault("status=27")
    assert read(device, 4) == libnfc.INVALID_ARGUMENT


def test_a_reader_is_unplugged_and_plugged_in_again(tag, tmp_path):
    with Chip(tag, link=tmp_path / "port") as chip:
        with libnfc.opened(chip.connection) as device:
            device.select()
            chip.fault("unplug@read:2")
            read(device, 4)
            assert read(device, 4) == libnfc.IO
        assert not os.path.exists(chip.path)
        chip.plug()
        with libnfc.opened(chip.connection) as device:
            assert device.select() == tag.uid


def test_a_reader_at_another_speed_is_not_opened(tag):
    with Chip(tag, ("speed=9600",)) as chip:
        with pytest.raises(OSError):
            with libnfc.opened(chip.connection):
                pass
        with libnfc.opened(chip.connection + ":9600") as device:
            assert device.select() == tag.uid


@pytest.mark.parametrize(
    "fault, tag, ends",
    [
        ("bit7@InCommunicateThru", Type2("ntag213"), signal.SIGABRT),
        ("no-firmware", Type2("ntag213"), signal.SIGABRT),
        ("empty-ats", Type4(), signal.SIGSEGV),
    ],
)
def test_libnfc_ends_the_process(fault, tag, ends):
    """Why a program keeps it in a child."""
    with Chip(tag, (fault,)) as chip:
        assert libnfc.run(chip.connection, "nfc-list").returncode == -ends


def test_timed_bytes_take_as_long_as_on_a_line(tag):
    with Chip(tag, timed=True) as chip, libnfc.opened(chip.connection) as device:
        device.select()
        chip.zero()
        began = time.monotonic()
        read(device, 4)
        took = time.monotonic() - began
        counts = chip.counts()
        # A start and a stop bit to each byte; and on the air 22 bytes at 106 kbit/s.
        line = (counts["bytes_in"] + counts["bytes_out"]) * 10 / 115200
        assert took > line + 0.0015
        assert takes_less(lambda: read(device, 4), 2 * line + 0.01)
