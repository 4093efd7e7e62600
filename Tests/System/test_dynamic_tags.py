"""`provision tag --sdm`: an NTAG 424 DNA whose every reading is another, which stepd believes once."""

import itertools

import ndef
import pytest

import libnfc
import nfcpy_reader
from chip import Chip
from native import FREE, PERMISSION_DENIED, Refused
from ntag424 import NTAG424
from sdm import Mirror
from tags import DYNAMIC_UID, TagMaker, written
from type2 import Type2
from type4 import Type4

pytestmark = pytest.mark.skipif(libnfc.missing() is not None, reason=f"there is no {libnfc.missing()}")

FACTORY = bytes(16)


@pytest.fixture
def tag() -> NTAG424:
    return NTAG424()


@pytest.fixture
def operator(parked, chip):
    return TagMaker(parked, chip)


def uris(tag) -> list[str]:
    """What nfcpy reads, twice."""
    with Chip(tag) as chip:
        found = []
        for _ in range(2):
            with nfcpy_reader.opened(chip.path) as frontend:
                found.append(nfcpy_reader.found(frontend).ndef.records[0].uri)
        return found


@pytest.mark.arm64
def test_the_tag_gets_keys_of_its_own_and_says_something_new_each_time(operator, chip):
    ended = operator.provisions()
    assert (ended.status, ended.lines) == (0, [f"set up {DYNAMIC_UID} (NTAG 424 DNA) for the left step"]), ended.stderr
    tag = chip.tag
    assert [tag.keys[number].hex().upper() for number in (0, 1, 2)] == [operator.master, *operator.kept]
    assert len({*operator.kept, operator.master}) == 3 and FACTORY not in tag.keys[:3]
    first, second = uris(tag)
    assert first != second and first.startswith(f"stepctl:{operator.vehicle.uuid}/left?e=")
    for file in ("keys/tags.json", f"operator/tags/{DYNAMIC_UID}.key"):
        assert (operator.vehicle.folder / file).stat().st_mode & 0o777 == 0o600


def test_a_pile_says_whether_the_controller_has_to_read_its_tags_again(operator):
    for arguments, told in ((["--dry-run"], False), ([], True), ([], False)):
        ended = operator.provisions("--batch", "--count", "1", *arguments)
        assert ended.status == 0 and ("reload stepd" in ended.stderr) == told


def test_doing_it_again_changes_nothing(operator, chip):
    assert operator.provisions().status == 0
    before = (chip.tag.keys[:], chip.tag.files[2].mirror, operator.known, operator.master)
    ended = operator.provisions("--json")
    assert (ended.status, ended.json["outcome"], ended.json["changes"]) == (0, "unchanged", 0)
    assert before == (chip.tag.keys, chip.tag.files[2].mirror, operator.known, operator.master)


def test_a_copy_of_its_uid_does_not_get_its_keys(operator, chip):
    """A card that says the UID of a tag that is in use, and takes the factory's key, would only have to be held out."""
    assert operator.provisions().status == 0
    before = (operator.known, operator.master)
    genuine = uris(chip.tag)[0]
    copy = NTAG424()
    with_reading = NTAG424()
    with_reading.files[2].data[:] = written(Type4(), ndef.UriRecord(genuine)).ndef.ljust(256, b"\0")
    for fake in (copy, with_reading):
        chip.place(fake)
        for arguments in ([], ["--dry-run"]):
            ended = operator.provisions(*arguments)
            assert (ended.status, ended.error) == (
                65,
                f"a tag {DYNAMIC_UID} was set up before, and this one has the factory's keys: it may be a copy",
            )
        assert fake.keys == [FACTORY] * 5
    assert (operator.known, operator.master) == before


class LRP(NTAG424):
    """Which has changed to LRP, and refuses AES (NT4H2421Gx 9.2)."""

    def _authenticate(self, code: int, data: bytes):
        raise Refused(PERMISSION_DENIED)


def factory(*, keys=(), versions=(), rights=0xEEE0, kind=NTAG424) -> NTAG424:
    """A tag in its factory state but for this; it holds somebody's page."""
    message = b"".join(ndef.message_encoder([ndef.UriRecord("https://example.org/menu")]))
    tag = kind(image=len(message).to_bytes(2, "big") + message)
    for number in keys:
        tag.keys[number] = b"k" * 16
    for number in versions:
        tag.key_versions[number] = 1
    tag.files[2].rights = rights
    return tag


OTHERS = "the tag was set up before, for something else or with other keys, which are needed to change it"


@pytest.mark.parametrize(
    "tag, error",
    [
        (factory(keys=[0]), "key 0 of the tag is not the expected one"),
        (factory(keys=[1]), "key 1 of the tag is not the expected one"),
        (factory(keys=[2]), "key 2 of the tag is not the expected one"),
        (factory(keys=[1], versions=[1]), "key 1 of the tag is not the expected one"),
        (factory(rights=0xEEEF), OTHERS),
        (factory(rights=0xEEE3), OTHERS),
        (factory(rights=0xE000), OTHERS),
        (factory(kind=LRP), "the tag refused AuthenticateEV2First: status 919D"),
    ],
    ids=["key 0", "key 1", "key 2", "key 1 and its version", "settings frozen", "settings of key 3", "write with key 0", "LRP"],
)
def test_a_tag_that_another_program_has_set_up_keeps_what_it_holds(tag, error, operator, chip):
    """Key versions tell nothing: they are what the other program wrote."""
    chip.place(tag)
    before = (tag.content(), tag.keys[:], tag.files[2].rights)
    for arguments in (["--dry-run"], []):
        ended = operator.provisions(*arguments)
        assert ended.status == 65 and ended.error.startswith(error)
        assert chip.counts()["writes"] == 0 and (tag.content(), tag.keys, tag.files[2].rights) == before
    assert not operator.known and not (operator.vehicle.folder / "operator/tags").exists()


def test_a_dry_run_prints_the_settings_and_keeps_no_keys(operator, chip):
    ended = operator.provisions("--dry-run", "--json")
    assert ended.status == 0 and ended.json["outcome"] == "planned"
    # Table 17 of AN12196, with other keys and offsets.
    at = 7 + ended.json["content"].index("e=0") + 2, 7 + ended.json["content"].index("c=0") + 2
    numbers = [offset.to_bytes(3, "little").hex() for offset in (at[0], at[1], at[1])]
    assert ended.json["settings"] == "4000E0C1FF12" + "".join(numbers).upper()
    assert not operator.known and not (operator.vehicle.folder / "operator/tags").exists()
    assert chip.tag.keys == [FACTORY] * 5 and chip.counts()["writes"] == 0


@pytest.mark.parametrize("fault", ["remove", "lose-ack"])
@pytest.mark.parametrize("first", range(1, 5))
def test_a_tag_that_is_taken_away_in_the_middle_is_completed_with_the_same_keys(fault, first, operator, chip):
    """At each command; here at every fourth, from the first of these on, until there are no more."""
    for command in itertools.count(first, 4):
        chip.place(NTAG424())
        operator.forgets()
        chip.clear()
        chip.fault(f"{fault}@tag:{command}")
        ended = operator.provisions("--timeout", "0.1")
        came = not chip.faults.armed
        if fault == "remove" and came:
            assert ended.status == 74, ended.stderr
            keys = operator.known
            chip.place()
            assert operator.provisions().status == 0
            assert not keys or operator.known == keys
        else:
            assert ended.status == 0, ended.stderr
        assert [key.hex().upper() for key in chip.tag.keys[:3]] == [operator.master, *operator.kept], command
        if not came:
            break
    assert command > 20


def test_a_tag_with_poor_contact_is_not_one_with_other_keys(operator, chip):
    for command in range(20, 25):
        chip.fault(f"lose@tag:{command}")
    ended = operator.provisions()
    assert ended.status == 0, ended.stderr
    assert not chip.faults.armed


@pytest.mark.arm64
def test_the_vehicle_believes_each_reading_once(new_vehicle, chip, tmp_path):
    vehicle = new_vehicle()
    assert TagMaker(vehicle, chip).provisions().status == 0
    vehicle.starts_all()
    alice = vehicle.rider("alice")
    given = ("--by", "nfc", "--nfc", chip.connection)
    for position in ("open", "close"):
        ended = alice.types(position, "--side", "left", *given)
        assert ended.status == 0, ended.stderr
    uri, later = uris(chip.tag)
    chip.place(written(Type4(bytes.fromhex(DYNAMIC_UID)), ndef.UriRecord(uri)))
    assert alice.types("open", "--side", "left", *given).status == 0, "a reading that was never sent"
    assert alice.types("close", "--side", "left", *given, "--json").json["refusal"] == "stale_proof"
    forged = later[:-1] + ("0" if later[-1] != "0" else "1")
    chip.place(written(Type4(bytes.fromhex(DYNAMIC_UID)), ndef.UriRecord(forged)))
    assert alice.types("close", "--side", "left", *given, "--json").json["refusal"] == "wrong_step"


def test_what_it_cannot_do_it_says(operator, chip, new_vehicle, tmp_path):
    for other in (Type2("ntag213"), Type4()):
        chip.place(other)
        assert operator.provisions().error == "this is no NTAG 424 DNA: other tags have no secure dynamic messages"
    tag = NTAG424()
    tag.keys[0] = b"\1" * 16
    chip.place(tag)
    assert operator.provisions().error == "key 0 of the tag is not the expected one: the tag was set up before"

    chip.place(NTAG424(bytes.fromhex("08123456")))
    assert operator.provisions().error == "the tag gives a random UID, by which no vehicle can know it"

    chip.place(NTAG424())
    other = new_vehicle("other")
    assert operator.provisions(vehicle=other).status == 0
    ended = operator.provisions()
    assert ended.status == 65 and ended.error.startswith("the tag was set up before, for something else or with other")
    assert operator.provisions("--lock").status == 64


def test_a_tag_of_one_step_is_not_made_anothers(operator):
    assert operator.provisions().status == 0
    before = operator.known
    ended = operator.provisions(step="right")
    assert ended.status == 78 and f"lists the tag {DYNAMIC_UID} for the left step; use another tag" in ended.error
    assert operator.known == before


def test_who_writes_over_a_tag_with_keys_is_told_of_them(operator, chip):
    assert operator.provisions().status == 0
    vehicle = ("--step", "left", "--vehicle", operator.vehicle.folder / "vehicle.toml", "--nfc", chip.connection)
    ended = operator.vehicle.stepctl("provision", "tag", *vehicle)
    assert (ended.status, ended.error) == (65, DYNAMIC)


DYNAMIC = "the tag makes dynamic messages (SDM), which would overwrite the step's name; nothing was written"


@pytest.mark.parametrize("meta_read", [FREE, 0], ids=["plain", "encrypted"])
def test_a_tag_that_writes_over_its_own_message_is_refused_before_it_is_written(meta_read, operator, chip):
    """As another program has left it: everyone may write, and the tag puts UID, counter and MAC into what is written."""
    offsets = {"uid_at": 30, "counter_at": 50} if meta_read == FREE else {"picc_data_at": 30}
    chip.tag.files[2].mirror = Mirror(0xC1, meta_read, 0, 0xF, **offsets, mac_input_at=70, mac_at=70)
    chip.tag.files[2].data[:] = written(Type4(), ndef.UriRecord("https://example.org/" + "0" * 80)).ndef.ljust(256, b"\0")[:256]
    before = chip.tag.content()
    given = ("--step", "left", "--vehicle", operator.vehicle.folder / "vehicle.toml", "--nfc", chip.connection)
    for arguments in ([], ["--dry-run"], ["--replace-all"]):
        ended = operator.vehicle.stepctl("provision", "tag", *given, *arguments)
        assert (ended.status, ended.error) == (65, DYNAMIC)
        assert "hint: use --sdm, which sets it up with keys of the vehicle's own, or another tag" in ended.stderr
        assert chip.counts()["writes"] == 0 and chip.tag.content() == before
    # The hint is true.
    assert operator.provisions().status == 0
    assert uris(chip.tag)[0].startswith(f"stepctl:{operator.vehicle.uuid}/left?e=")


def test_one_without_dynamic_messages_is_a_tag_like_any_other(operator, chip):
    given = ("--step", "left", "--vehicle", operator.vehicle.folder / "vehicle.toml", "--nfc", chip.connection)
    assert operator.vehicle.stepctl("provision", "tag", *given).status == 0
    assert operator.vehicle.stepctl("provision", "tag", *given, "--json").json["outcome"] == "unchanged"


def test_a_tag_that_says_nothing_to_what_it_does_not_know_is_written(operator, chip):
    """Other Type 4 tags need not know NTAG 424 DNA's commands."""
    tag = Type4(bytes.fromhex(DYNAMIC_UID))
    command = tag.command
    tag.command = lambda data: tag.drop() if tag.pending(data)[:1] == b"\x90" else command(data)
    chip.place(tag)
    given = ("--step", "left", "--vehicle", operator.vehicle.folder / "vehicle.toml", "--nfc", chip.connection)
    assert operator.vehicle.stepctl("provision", "tag", *given).status == 0


def test_keys_are_kept_in_a_vehicles_folder_only(stepctl, operator, chip):
    rider = operator.vehicle.rider("alice")
    given = ("--step", "left", "--vehicle", rider.file, "--nfc", chip.connection)
    ended = stepctl("provision", "tag", "--sdm", *given)
    assert ended.status == 66 and "stepd.toml" in ended.error
    assert chip.tag.keys == [FACTORY] * 5
