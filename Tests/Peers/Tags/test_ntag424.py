"""NTAG 424 DNA: the examples of NXP's AN12196 (Rev. 2.0, by its tables' numbers), and programs that are not ours."""

from urllib.parse import parse_qs, urlparse

import ndef
import pytest
from pylibsdm.backend.validate import ParamValidator
from pylibsdm.tag.ntag424dna import structs
from pylibsdm.tag.ntag424dna.tag import NTAG424DNA

import nfcpy_reader
from aes import cbc
from chip import Chip
from native import FULL, PARAMETER_ERROR, Refused, Session
from ntag424 import NTAG424
from sdm import Mirror

SELECT_APPLICATION = "00A4040C07D276000085010100"
SELECT_FILE = "00A4000C02E10400"
URL = "choose.url.com/ntag424?e=00000000000000000000000000000000&c=0000000000000000"


def say(tag: NTAG424, command: str) -> str:
    return tag.apdu(bytes.fromhex(command)).hex().upper()


@pytest.fixture
def tag() -> NTAG424:
    """One whose random numbers are table 14's."""
    given = [bytes.fromhex("B9E2FC789B64BF237CCCAA20EC7E6E48"), bytes.fromhex("9D00C4DF")]
    tag = NTAG424(random=lambda size: given.pop(0))
    assert say(tag, SELECT_APPLICATION) == "9000"
    return tag


def authenticate(tag: NTAG424):
    assert say(tag, "9071000002000000") == "A04C124213C186F22399D33AC2A3021591AF"
    proof = "35C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D"
    answer = "3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F081206639100"
    assert say(tag, f"90AF000020{proof}00") == answer


def test_authenticates_as_table_14_shows(tag):
    authenticate(tag)
    assert tag._session.encryption.hex().upper() == "1309C877509E5A215007FF0ED19CA564"
    assert tag._session.mac.hex().upper() == "4C6626F5E72EA694202139295C7A7FC7"


def test_a_wrong_key_is_an_authentication_error_and_ends_the_session(tag):
    tag.keys[0] = b"1" * 16
    say(tag, "9071000002000000")
    assert say(tag, "90AF000020" + "35" * 32 + "00") == "91AE"
    assert tag._session is None


def test_writes_the_message_and_changes_settings_as_tables_18_and_19_show(tag):
    tag.files[2].mode, tag.files[2].rights = FULL, 0xE000
    authenticate(tag)
    message = (
        "421C73A27D827658AF481FDFF20A5025B559D0E3AA21E58D347F343CFFC768BFE596C706BC00F2176781D4B0242642A0FF5A42C461AAF8"
        "94D9A1284B8C76BCFA658ACD40555D362E08DB15CF421B51283F9064BCBE20E96CAE545B407C9D651A3315B27373772E5DA2367D2064AE"
        "054AF996C6F1F669170FA88CE8C4E3A4A7BBBEF0FD971FF532C3A802AF745660F2B4"
    )
    assert say(tag, f"908D00009F02000000800000{message}D1D9A8499661EBF300") == "FC222E5F7A5424529100"
    assert tag.content().rstrip(b"\0") == bytes.fromhex("0051D1014D5504") + URL.encode()
    assert say(tag, "905F0000190261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A0400") == "57BFF87B1241E93D9100"
    assert tag.files[2].mirror.encode() == bytes.fromhex("C1F121200000430000430000")
    assert tag.files[2].rights == 0xE000


def test_a_command_that_was_heard_before_is_refused(tag):
    test_writes_the_message_and_changes_settings_as_tables_18_and_19_show(tag)
    assert say(tag, "905F0000190261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A0400") == "911E"


def test_tells_settings_as_table_8_shows(tag):
    tag.files[2].rights = 0xEEEE
    tag.files[2].mirror = Mirror.parse(bytes.fromhex("D1FE001F00004400004400002000006A0000"), 256)
    mac = bytes.fromhex("8248134A386E86EB7FAF54A52E536CB6")
    tag._session = Session(0, bytes(16), mac, bytes.fromhex("7A21085E"))
    settings = "0040EEEE000100D1FE001F00004400004400002000006A0000"
    assert say(tag, "90F5000009026597A457C8CD442C00") == f"{settings}2A474282E7A479869100"


def test_changes_keys_as_tables_20_to_27_show():
    """One session, with two authentications."""
    numbers = [cbc(bytes(16), bytes.fromhex("B875CEB0E66A6C5CD00898DC371F92D1"), decrypt=True)]
    numbers.append(bytes.fromhex("7614281A"))
    numbers.append(cbc(bytes(16), bytes.fromhex("A6A2B3C572D06C097BB8DB70463E22DC"), decrypt=True))
    tag = NTAG424(random=lambda size: numbers.pop(0))

    def check(command: str, answer: str):
        assert say(tag, command) == answer

    check(SELECT_APPLICATION, "9000")
    check("9071000002030000", "B875CEB0E66A6C5CD00898DC371F92D191AF")
    check(
        "90AF000020FF0306E47DFBC50087C4D8A78E88E62DE1E8BE457AA477C707E2F0874916A8B100",
        "0CC9A8094A8EEA683ECAAC5C7BF20584206D0608D477110FC6B3D5D3F65C3A6A9100",
    )
    assert tag._session.encryption.hex().upper() == "7A93D6571E4B180FCA6AC90C9A7488D4"
    assert tag._session.mac.hex().upper() == "FC4AF159B62E549B5812394CAB1918CC"
    check("908D00001F030000000A00006B5E6804909962FC4E3FF5522CF0F8436C0C53315B9C73AA00", "C26D236E4A7C046D9100")
    assert tag.files[3].data[:10] == bytes.fromhex("0102030405060708090A")

    check("90770000010000", "A6A2B3C572D06C097BB8DB70463E22DC91AF")
    check(
        "90AF000020BE7D45753F2CAB85F34BC60CE58B940763FE969658A532DF6D95EA2773F6E99100",
        "B888349C24B315EAB5B589E279C8263E9100",
    )
    assert tag._session.encryption.hex().upper() == "4CF3CB41A22583A61E89B158D252FC53"
    check("908D000019010E0000120000FF0506E1050080828300000000000000000000", "9100")
    check(
        "90C4000029022CF362B7BF4311FF3BE1DAA295E8C68DE09050560D19B9E16C2393AE9CD1FAC75D0CE20BCD1D06E600",
        "203BB55D1089D5879100",
    )
    assert tag.keys[2].hex().upper() == "F3847D627727ED3BC9C4CC050489B966"
    check("90C400002900C0EB4DEEFEDDF0B513A03A95A75491818580503190D4D05053FF75668A01D6FDA6610234BDED643200", "9100")
    assert tag.keys[0].hex().upper() == "5004BF991F408672B1EF00F08F9E8647"
    assert tag._session is None


def reading(uid: str, counter: int, picc_data: str, text: str, settings: str) -> str:
    """What a tag with keys of zeros shows when its counter gets here; PICCData's padding is as it was."""
    padding = cbc(bytes(16), bytes.fromhex(picc_data), decrypt=True)
    tag = NTAG424(bytes.fromhex(uid), text.encode(), random=lambda size: padding[-size:])
    tag.files[2].mirror = Mirror.parse(bytes.fromhex(settings), 256)
    tag.read_counter = counter - 1
    say(tag, SELECT_APPLICATION)
    say(tag, SELECT_FILE)
    return tag.apdu(bytes.fromhex(f"00B00000{len(text):02X}"))[:-2].decode()


def test_mirrors_as_tables_2_and_4_show():
    shown = reading("04DE5F1EACC040", 0x3D, "EF963FF7828658A599F3041510671E88", URL, "C1FF00190000" + "3C0000" * 2)
    assert shown == "choose.url.com/ntag424?e=EF963FF7828658A599F3041510671E88&c=94EED9EE65337086"


@pytest.mark.parametrize(
    "counter, picc_data, encrypted, mac",
    [
        (1, "FDE4AFA99B5C820A2C1BB0F1C792D0EB", "94592FDE69FA06E8E3B6CA686A22842B", None),
        (8, "FD91EC264309878BE6345CBE53BADF40", "CEE9A53E3E463EF1F459635736738962", "ECC1E7F6C6C73BF6"),
    ],
)
def test_mirrors_encrypted_data_as_tables_3_and_5_show(counter, picc_data, encrypted, mac):
    text = f"my424dna.com/?picc_data={'0' * 32}&enc={'x' * 16}{'0' * 16}&cmac={'0' * 16}"
    at, encrypted_at, mac_at = (text.index(f"{name}=") + len(name) + 1 for name in ("picc_data", "enc", "cmac"))
    offsets = "".join(offset.to_bytes(3, "little").hex() for offset in (at, encrypted_at, encrypted_at, 32, mac_at))
    query = parse_qs(reading("04958CAA5C5E80", counter, picc_data, text, "D1FF00" + offsets).partition("?")[2])
    assert query["picc_data"] == [picc_data] and query["enc"] == [encrypted]
    if mac:
        assert query["cmac"] == [mac]


@pytest.mark.parametrize(
    "why, settings",
    [
        ("the MAC would be outside of the file", "C1FF00190000F10000F10000"),
        ("PICCData and MAC overlap", "C1FF001900002A00002A0000"),
        ("the MAC's input begins after it", "C1FF001900003D00003C0000"),
        ("encrypted data without the counter", "91FF001900003C00003C0000200000800000"),
        ("not in ASCII", "C0FF001900003C00003C0000"),
    ],
)
def test_settings_that_cannot_be_are_refused(why, settings):
    with pytest.raises(Refused) as refusal:
        Mirror.parse(bytes.fromhex(settings), 256)
    assert refusal.value.args == (PARAMETER_ERROR,)


@pytest.fixture
def mirroring() -> NTAG424:
    tag = NTAG424(image=URL.encode())
    tag.files[2].mirror = Mirror.parse(bytes.fromhex("C1F000190000" + "3C0000" * 2), 256)
    say(tag, SELECT_APPLICATION)
    say(tag, SELECT_FILE)
    return tag


def test_the_counter_rises_with_the_first_read_of_several(mirroring):
    first = say(mirroring, "00B0000020") + say(mirroring, "00B0002020")
    assert mirroring.read_counter == 1
    say(mirroring, SELECT_FILE)
    assert say(mirroring, "00B0000020") + say(mirroring, "00B0002020") != first
    assert mirroring.read_counter == 2
    say(mirroring, "90AD0000070200000010000000")
    assert mirroring.read_counter == 3


def test_the_counter_outlives_the_field(mirroring):
    say(mirroring, "00B0000020")
    mirroring.field_off()
    assert mirroring.read_counter == 1


def test_pylibsdm_sets_up_what_it_then_believes():
    tag = NTAG424(bytes.fromhex("04112233445566"))
    with Chip(tag) as chip, nfcpy_reader.opened(chip.path) as frontend:
        found = nfcpy_reader.found(frontend)
        found.ndef.records = [ndef.UriRecord(f"https://{URL}")]
        other = NTAG424DNA(found)
        at = tag.content().index(b"e=0") + 2
        condition, mac_at = structs.AccessCondition, tag.content().index(b"c=0") + 2
        key = condition.KEY_0
        settings = structs.FileSettings(
            file_option=structs.FileOption(sdm_enabled=True, comm_mode=structs.CommMode.PLAIN),
            access_rights=structs.AccessRights(read=condition.FREE_ACCESS, write=key, read_write=key, change=key),
            sdm_options=structs.SDMOptions(
                uid=True, read_ctr=True, read_ctr_limit=False, enc_file_data=False, tt_status=False
            ),
            sdm_access_rights=structs.SDMAccessRights(meta_read=key, file_read=key, ctr_ret=key),
            picc_data_offset=at,
            mac_input_offset=mac_at,
            mac_offset=mac_at,
        )
        other.change_file_settings(2, settings)
        # It reads them by MAC, which it checks.
        assert other.get_file_settings(2).picc_data_offset == at
        counters = []
        for _ in range(3):
            url = nfcpy_reader.found(frontend).ndef.records[0].iri
            query = parse_qs(urlparse(url).query)
            seen = ParamValidator(k_sdm_file_read="00" * 16, k_sdm_meta_read="00" * 16)
            seen.decrypt_picc_data(query["e"][0])
            seen.picc_data = True  # it forgets to
            assert seen.uid == tag.uid
            assert seen.validate_cmac(query["c"][0], query["e"][0])
            counters.append(seen.read_ctr)
    assert counters == sorted(set(counters)) and len(counters) == 3
