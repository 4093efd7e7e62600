"""Vehicles that a rider takes over: from a code, by picture or by text, and from what an operator made for them."""

import base64
import json
import os
import re
import shutil
import stat
import subprocess
import time
import tomllib
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import pictures
import stepproto as proto
from programs import AS_ANYBODY, STEPCTL, wait_until
from terminal import Terminal
from vehicle import Vehicle


@pytest.fixture(scope="module")
def parked_van(stepctl, tmp_path_factory):
    """A vehicle that stands for its codes, and another operator who claims to be its own."""
    folder = tmp_path_factory.mktemp("van")
    with ExitStack() as stack:
        van = Vehicle(folder / "van", stepctl, stack, "--name", "Rolling Chassis", "--host", "broker.example.org")
        forged = Vehicle(folder / "forged", stepctl, stack, "--name", "Rolling Chassis", "--uuid", van.uuid)
        other = Vehicle(folder / "other", stepctl, stack, "--name", "rolling  chassis!")
        yield van, forged, other


@pytest.fixture
def van(parked_van) -> Vehicle:
    return parked_van[0]


def code(vehicle: Vehicle) -> str:
    ended = vehicle.stepctl("provision", "qr", "--vehicle", vehicle.folder, "--json")
    (only,) = ended.json["codes"]
    assert only["step"] is None
    return only["content"]


def picture(vehicle: Vehicle, folder: Path) -> Path:
    file = folder / "code.png"
    made = vehicle.stepctl("provision", "qr", "--vehicle", vehicle.folder, "--output", file, "--size", "80")
    assert made.status == 0
    return file


def written(folder: Path, text: str) -> Path:
    (folder / "code.txt").write_text(text)
    return folder / "code.txt"


def key_of(vehicle: Vehicle) -> str:
    """The thumbprint of the operator's key (RFC 7638), by Python."""
    return proto.thumbprint(vehicle.key("operator/token").public_key())


# --- What a code is ---


def test_a_code_has_all_that_is_the_same_for_every_rider_and_nothing_secret(van):
    text = code(van)
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in text.split(".")[:2])
    assert header["jwk"].keys() == {"kty", "crv", "x"}
    toml = tomllib.loads((van.folder / "vehicle.toml").read_text())
    assert (claims["name"], claims["uuid"], claims["topic"]) == (toml["name"], toml["uuid"], toml["topic"])
    assert (claims["host"], claims["port"]) == ("broker.example.org", van.port)
    pem = "".join((van.folder / "tls/ca.pem").read_text().splitlines()[1:-1])
    assert base64.urlsafe_b64decode(claims["ca"] + "==") == base64.b64decode(pem)
    assert not any(secret in text for secret in van.transcript.secrets)


def test_the_operator_sees_the_fingerprint_that_riders_compare(van, tmp_path):
    ended = van.stepctl("provision", "qr", "--vehicle", van.folder / "vehicle.toml", "--output", tmp_path / "code.png")
    fingerprint = " ".join(re.findall("....?", key_of(van)))
    assert ended.stderr == f"signed by the operator; riders compare this key:\n{fingerprint}\n"


def test_the_fingerprint_is_the_one_that_was_shown_when_the_vehicle_was_made(stepctl, tmp_path):
    made = stepctl("provision", "vehicle", tmp_path / "car", "--json").json
    ended = stepctl("provision", "qr", "--vehicle", tmp_path / "car", "--output", tmp_path / "code.png")
    assert made["operator_key"] in ended.stderr.replace(" ", "")


def test_a_code_that_riders_would_refuse_is_not_made(new_vehicle):
    vehicle = new_vehicle()
    file = vehicle.folder / "vehicle.toml"
    file.write_text(re.sub(r'^host = ".*"', 'host = "my_broker"', file.read_text(), count=1, flags=re.MULTILINE))
    ended = vehicle.stepctl("provision", "qr", "--vehicle", file, "--json")
    assert (ended.status, ended.outcome) == (78, {"outcome": "failed"})
    reason = "not well formed: host is not the name or the address of a computer"
    assert ended.error == f"{file}: makes a code that riders would refuse: {reason}"


def test_a_vehicle_without_its_operator_has_no_code(van, stepctl, tmp_path):
    rider = van.rider("bob").folder
    ended = stepctl("provision", "qr", "--vehicle", rider, "--output", tmp_path / "code.png")
    assert (ended.status, ended.stdout) == (66, "")
    assert ended.error == f"{rider} is not an operator's folder: {rider}/operator/token.jwk is missing"


# --- Several programs at once ---


def at_once(device, count: int, tmp_path: Path, *arguments) -> list:
    """The same command, typed several times at once."""
    logs = [tmp_path / f"at-once-{time.monotonic_ns()}-{number}" for number in range(count)]
    with ExitStack() as stack:
        running = [stack.enter_context(closing(device.stepctl.start(log, *arguments))) for log in logs]
        return [each.ends() for each in running]


def test_of_several_enrolments_at_once_one_makes_the_key_and_all_tell_it(phone, tmp_path):
    for _ in range(10):
        ended = at_once(phone, 4, tmp_path, "enroll", "--name", "anna", "--json")
        assert [each.status for each in ended] == [0] * 4, ended
        made = [each.json for each in ended]
        assert sorted(each["is_new"] for each in made) == [False] * 3 + [True]
        known = phone.types("enroll", "--name", "anna", "--json").json
        assert {each["device_key"] for each in made} == {known["device_key"]} and not known["is_new"]
        assert sorted(os.listdir(phone.keys.parent)) == ["device"], "and nothing half made"
        shutil.rmtree(phone.keys)


def test_of_several_imports_at_once_each_one_ends_well(phone, van, tmp_path):
    file = written(tmp_path, code(van))
    for _ in range(5):
        ended = at_once(phone, 4, tmp_path, "config", "import", file, "--yes", "--json")
        assert [each.status for each in ended] == [0] * 4, ended
        assert sorted(each.json["is_new"] for each in ended) == [False] * 3 + [True]
        assert os.listdir(phone.vehicles) == ["rolling-chassis"]
        assert sorted(os.listdir(phone.vehicles / "rolling-chassis")) == ["ca.pem", "vehicle.toml"]
        shutil.rmtree(phone.vehicles)


# --- A first time ---


@pytest.mark.arm64
def test_a_picture_makes_a_vehicle_known(phone, van, tmp_path):
    ended = phone.imports("--qr", picture(van, tmp_path))
    assert (ended.status, ended.stdout) == (
        0,
        "Rolling Chassis is in ~/.config/stepctl/vehicles/rolling-chassis/vehicle.toml\n",
    )
    shown = ended.stderr.splitlines()
    assert shown[:2] == ["vehicle  Rolling Chassis", f"         {van.uuid}"]
    assert shown[2] == f"broker   broker.example.org:{van.port}"
    assert shown[3].replace(" ", "") == f"operator{key_of(van)}"
    assert shown[4] == "         new: compare it with what the operator shows"
    assert shown[-1] == "you also need a token to move its steps; ask your operator for one"
    assert all(len(line) <= 80 for line in shown)

    theirs = tomllib.loads((van.folder / "vehicle.toml").read_text())
    ours = phone.knows("rolling-chassis")
    assert ours.pop("broker") == theirs.pop("broker") | {"ca": "ca.pem"}
    assert time.time() - 60 < ours.pop("signed") <= time.time()
    assert ours == theirs
    assert phone.files["rolling-chassis/ca.pem"] == (van.folder / "tls/ca.pem").read_bytes()
    for path in (phone.vehicles, phone.vehicles / "rolling-chassis"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {path.name for path in phone.vehicles.iterdir()} == {"rolling-chassis"}
    shown = phone.stepctl("config", "show", "--json").json
    assert shown["vehicle_file"]["uuid"] == van.uuid, "it is the vehicle of other commands"


@pytest.mark.arm64
def test_text_makes_it_known_too_however_it_was_wrapped(phone, van, tmp_path):
    text = "\n  ".join(re.findall(".{1,60}", code(van))) + "\n"
    report = phone.trusts(written(tmp_path, text))
    assert report == {
        "name": "Rolling Chassis",
        "uuid": van.uuid,
        "operator_key": key_of(van),
        "vehicle_file": str(phone.vehicles / "rolling-chassis/vehicle.toml"),
        "is_new": True,
        "has_rider": False,
    }


def test_a_photograph_of_it_will_do(phone, van, tmp_path):
    plain = pictures.code(code(van), "L", scale=6)
    photograph = pictures.photographed(plain, 5, tilt=0.05, blur=0.6, noise=3, share=0.7)
    (tmp_path / "photo.jpg").write_bytes(pictures.jpeg(photograph, 90))
    assert phone.trusts("--qr", tmp_path / "photo.jpg")["uuid"] == van.uuid


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_a_person_is_asked(phone, van, tmp_path, answer, status):
    command = [STEPCTL, "config", "import", "-q", "--qr", picture(van, tmp_path)]
    with closing(Terminal(command, phone.stepctl.environment)) as terminal:
        terminal.waits_for(b"Trust it? [y/N] ")
        assert " ".join(re.findall("....?", key_of(van))).encode() in terminal.written, "shown, quiet or not"
        assert phone.files == {}
        terminal.types(answer.encode() + b"\n")
        assert terminal.ends() == status
        if status == 1:
            assert b"stepctl: error: not trusted; nothing was changed\r\n" in terminal.written
    assert (phone.files != {}) == (status == 0)


def test_a_person_who_interrupts_the_question_changes_nothing(phone, van, tmp_path):
    command = [STEPCTL, "config", "import", "--qr", picture(van, tmp_path)]
    with closing(Terminal(command, phone.stepctl.environment)) as terminal:
        terminal.waits_for(b"Trust it?")
        terminal.types(b"\x03")
        assert terminal.ends() == -2
    assert phone.files == {}


def test_a_text_that_an_editor_saved_is_read(phone, van, tmp_path):
    """With a byte order mark, and Windows' line ends."""
    file = tmp_path / "saved"
    file.write_bytes(b"\xef\xbb\xbf" + code(van).encode() + b"\r\n\r\n")
    for source, text in (("-", file.read_bytes()), (file, None)):
        ended = phone.imports(source, input=text)
        assert ended.status == 0, ended.stderr
    assert phone.files != {}


def test_where_nobody_can_be_asked_nothing_is_trusted(phone, van, tmp_path):
    file = picture(van, tmp_path)
    for arguments, status, hint in ([], 66, "hint: use --yes to trust it\n"), (["--no-input"], 64, ""):
        ended = phone.types("config", "import", "--qr", file, *arguments)
        assert (ended.status, ended.stdout, phone.files) == (status, "", {})
        assert ended.stderr.endswith(hint)
    ended = phone.types("config", "import", "--qr", "-", input=file.read_bytes())
    assert (ended.status, phone.files) == (66, {})
    assert phone.imports("--qr", "-", input=file.read_bytes()).status == 0


# --- Again ---


def test_the_same_code_again_changes_nothing(phone, van, tmp_path):
    file = written(tmp_path, code(van))
    assert phone.trusts(file)["is_new"]
    before = phone.files
    again = phone.imports(file)
    assert again.status == 0 and phone.files == before
    assert "         the same as before\n" in again.stderr and "changes  nothing\n" in again.stderr


def test_nobody_is_asked_about_what_changes_nothing(phone, van, tmp_path):
    file = written(tmp_path, code(van))
    phone.trusts(file)
    before = phone.knows("rolling-chassis")
    again = phone.types("config", "import", file)
    assert again.status == 0 and "changes  nothing" in again.stderr.splitlines(), again
    assert phone.knows("rolling-chassis") == before


def test_another_operator_is_refused_from_then_on(phone, parked_van, tmp_path):
    van, forged, _ = parked_van
    phone.trusts(written(tmp_path, code(van)))
    known = phone.vehicles / "rolling-chassis/vehicle.toml"
    fingerprint = " ".join(re.findall("....?", key_of(forged)))
    expected = (
        65,
        f"{known} trusts another operator than {fingerprint};"
        f" if you are sure of this one, remove {known.parent} and import again",
    )
    assert phone.refuses(written(tmp_path, code(forged))) == expected
    assert phone.refuses("--qr", picture(forged, tmp_path)) == expected
    assert phone.refuses(forged.folder) == expected
    assert phone.refuses(forged.rider("eve").folder) == expected
    assert phone.refuses(written(tmp_path, code(forged)), "--name", "another") == expected

    shutil.rmtree(known.parent)
    assert phone.trusts(written(tmp_path, code(forged)))["operator_key"] == key_of(forged)


def test_nobody_takes_over_a_vehicle_by_naming_no_operator(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    text = (van.folder / "vehicle.toml").read_text()
    anonymous = re.sub(r"(?m)^operator = .*$", "", text).replace("tls/ca.pem", "ca.pem")
    shutil.copy(van.folder / "tls/ca.pem", tmp_path)
    (tmp_path / "vehicle.toml").write_text(anonymous)
    status, error = phone.refuses(tmp_path / "vehicle.toml")
    assert status == 65 and "another operator than this one, who is not named" in error


def handed_over(vehicle: Vehicle, folder: Path, operator: Vehicle) -> Path:
    """A vehicle's file and its authority, with the public key of whoever is to be believed to have made them."""
    (named,) = re.findall(r"(?m)^operator = .*$", (operator.folder / "vehicle.toml").read_text())
    text = re.sub(r"(?m)^operator = .*$", named, (vehicle.folder / "vehicle.toml").read_text())
    folder.mkdir()
    (folder / "vehicle.toml").write_text(text.replace("tls/ca.pem", "ca.pem"))
    (folder / "ca.pem").write_bytes((vehicle.folder / "tls/ca.pem").read_bytes())
    return folder


@pytest.mark.parametrize("pinned_by", ["code", "folder", "whole system"])
def test_nobody_takes_over_a_vehicle_by_naming_its_operator(phone, parked_van, tmp_path, pinned_by):
    """The operator's public key stands in every code; what counts is what it has signed."""
    van, forged, _ = parked_van
    known = phone.vehicles / "rolling-chassis/vehicle.toml"
    if pinned_by == "whole system":
        phone.vehicles.mkdir(parents=True)
        known = phone.vehicles / "bus.toml"
        known.write_text((van.folder / "vehicle.toml").read_text().replace("tls/", f"{van.folder}/tls/"))
    else:
        phone.trusts(written(tmp_path, code(van)) if pinned_by == "code" else van.rider("frida", "--force").folder)
    folder = handed_over(forged, tmp_path / "forged", van)
    assert phone.refuses(folder) == (
        65,
        f"not signed, and different from {known}: broker, broker's authority, controller's keys;"
        " import the vehicle's code, which is signed",
    )
    assert phone.refuses(folder / "vehicle.toml")[0] == 65


def test_an_unsigned_folder_does_not_swap_the_sides(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    folder = handed_over(van, tmp_path / "swapped", van)
    text = (folder / "vehicle.toml").read_text()
    swapped = text.replace("major = 1", "major = 0").replace("major = 2", "major = 1").replace("major = 0", "major = 2")
    (folder / "vehicle.toml").write_text(swapped)
    status, error = phone.refuses(folder)
    assert status == 65 and error.startswith("not signed, and different from") and ": steps;" in error


def test_a_fingerprint_is_not_to_be_compared_where_nothing_is_signed(phone, van, tmp_path):
    ended = phone.imports(handed_over(van, tmp_path / "folder", van))
    assert "         new, and nothing here is signed: accept it from the operator only\n" in ended.stderr
    assert all(len(line) <= 80 for line in ended.stderr.splitlines())


def test_a_riders_folder_comes_after_the_code_that_says_what_is_new(phone, new_vehicle, tmp_path):
    car = new_vehicle("car", "--name", "Car", "--host", "old.example.org")
    phone.trusts(car.rider("anna").folder)
    car.edit("vehicle.toml", host="new.example.org")
    folder = car.rider("anna-again").folder
    assert phone.refuses(folder)[0] == 65
    phone.trusts(written(tmp_path, code(car)))
    assert phone.trusts(folder)["is_new"] is False
    assert phone.knows("car")["broker"]["host"] == "new.example.org"


def test_another_operator_is_refused_for_a_vehicle_of_the_whole_system(phone, parked_van, tmp_path):
    """/etc/stepctl pins as well. It is played by the user's other folder, a file by itself."""
    van, forged, _ = parked_van
    phone.vehicles.mkdir(parents=True)
    (phone.vehicles / "bus.toml").write_text((van.folder / "vehicle.toml").read_text())
    status, error = phone.refuses(written(tmp_path, code(forged)))
    assert status == 65 and error.startswith(f"{phone.vehicles}/bus.toml trusts another operator than ")
    assert error.endswith(f" if you are sure of this one, remove {phone.vehicles}/bus.toml and import again")
    status, error = phone.refuses(written(tmp_path, code(van)))
    assert (status, error) == (
        1,
        f"{phone.vehicles}/bus.toml is this vehicle's file; "
        f"move it to {phone.vehicles}/bus/vehicle.toml, and import again",
    )


def test_a_vehicle_file_that_cannot_be_read_is_no_way_around_the_pin(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    (phone.vehicles / "rolling-chassis/vehicle.toml").write_text("name = ")
    assert phone.refuses(written(tmp_path, code(van)))[0] == 78


def test_the_name_of_another_vehicle_is_refused(phone, parked_van, tmp_path):
    van, _, other = parked_van
    phone.trusts(written(tmp_path, code(van)))
    assert phone.refuses(written(tmp_path, code(other))) == (
        64,
        f"{phone.vehicles}/rolling-chassis/vehicle.toml is another vehicle named rolling-chassis;"
        " use --name to choose another name",
    )
    assert phone.trusts(written(tmp_path, code(other)), "--name", "bus-2")["uuid"] == other.uuid
    assert phone.knows("rolling-chassis")["uuid"] == van.uuid and phone.knows("bus-2")["uuid"] == other.uuid
    assert phone.refuses(written(tmp_path, code(other)), "--name", "bus-3") == (
        64,
        f"this vehicle is already known as bus-2: {phone.vehicles}/bus-2/vehicle.toml",
    )


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../../x", "a b", "x" * 65, "a.toml"])
def test_a_name_that_leads_elsewhere_is_refused(phone, van, tmp_path, name):
    status, error = phone.refuses(written(tmp_path, code(van)), "--name", name)
    assert status == 64 and error.startswith('--name "') and "a name has 1 to 64 letters" in error


def test_an_operator_who_moves_the_broker_says_so(phone, new_vehicle, tmp_path):
    car = new_vehicle("car", "--name", "Car", "--host", "old.example.org")
    phone.trusts(written(tmp_path, code(car)))
    car.edit("vehicle.toml", host="new.example.org")
    ended = phone.imports(written(tmp_path, code(car)))
    assert "changes  broker\n" in ended.stderr
    assert phone.knows("car")["broker"]["host"] == "new.example.org"


def test_an_old_code_does_not_bring_back_what_was_given_up(phone, new_vehicle, tmp_path):
    car = new_vehicle("car", "--name", "Car", "--host", "old.example.org")
    old = code(car)
    phone.trusts(written(tmp_path, old))
    car.edit("vehicle.toml", host="new.example.org")
    time.sleep(1.1)
    phone.trusts(written(tmp_path, code(car)))
    signed = phone.knows("car")["signed"]
    assert phone.refuses(written(tmp_path, old)) == (
        65,
        f"an old code: {phone.vehicles}/car/vehicle.toml has a newer broker;"
        " ask the operator for the current code",
    )
    folder = handed_over(car, tmp_path / "folder", car)
    file = folder / "vehicle.toml"
    file.write_text("signed = 9007199254740991\n" + file.read_text())
    phone.trusts(folder)
    assert phone.knows("car")["signed"] == signed, "a file that nobody signed says nothing of it"


# --- A rider's whole access ---


def test_a_riders_folder_is_copied_and_kept_private(phone, van):
    rider = van.rider("anna").folder
    for file in rider.iterdir():
        file.chmod(0o644)  # as from a memory stick
    report = phone.trusts(rider)
    assert (report["has_rider"], report["operator_key"]) == (True, key_of(van))
    place = phone.vehicles / "rolling-chassis"
    assert {path.name: path.read_bytes() for path in place.iterdir()}.keys() == {
        "vehicle.toml", "ca.pem", "rider.pem", "rider.key", "device.jwk", "token.jwt",
    }  # fmt: skip
    for name in ("rider.key", "device.jwk", "token.jwt"):
        assert (place / name).read_bytes() == (rider / name).read_bytes()
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    assert phone.trusts(rider / "vehicle.toml")["is_new"] is False


def test_a_rider_who_comes_later_and_a_token_that_is_new_are_changes(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    rider = van.rider("later").folder
    assert "changes  rider, token, device key, certificate\n" in phone.imports(rider).stderr
    assert "changes  nothing\n" in phone.imports(rider).stderr
    van.rider("later", "--force", "--for", "9h")
    assert "changes  token\n" in phone.imports(rider).stderr


def test_another_certificate_alone_is_a_change_too(phone, van, tmp_path):
    """Nobody has to sign it, so it is the rider who must not be told that nothing changes."""
    phone.trusts(van.rider("dora").folder)
    folder = handed_over(van, tmp_path / "folder", van)
    other = van.rider("emil").folder
    for name in ("rider.pem", "rider.key"):
        (folder / name).write_bytes((other / name).read_bytes())
    file = folder / "vehicle.toml"
    login = 'ca = "ca.pem"\ncert = "rider.pem"\nkey = "rider.key"'
    file.write_text(file.read_text().replace('ca = "ca.pem"', login))
    assert "changes  certificate\n" in phone.imports(folder).stderr


def test_a_code_that_comes_later_keeps_who_the_rider_is(phone, van, tmp_path):
    rider = van.rider("berta").folder
    phone.trusts(rider)
    before, known = phone.files, phone.knows("rolling-chassis")
    assert phone.trusts(written(tmp_path, code(van)))["has_rider"]
    file = "rolling-chassis/vehicle.toml"
    assert phone.files | {file: before[file]} == before
    now = phone.knows("rolling-chassis")
    assert now.pop("signed") <= time.time() and now == known


def test_a_new_token_takes_the_place_of_the_old_one(phone, van):
    rider = van.rider("carla").folder
    phone.trusts(rider)
    van.rider("carla", "--force", "--for", "2h")
    phone.trusts(rider)
    place = phone.vehicles / "rolling-chassis"
    token = tomllib.loads((place / "vehicle.toml").read_text())["rider"]["token"]
    assert (place / token).read_bytes() == (rider / "token.jwt").read_bytes()
    assert len(list(place.iterdir())) == 6, "the old one is gone"


def test_what_was_measured_stays(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    file = phone.vehicles / "rolling-chassis/vehicle.toml"
    file.write_text(file.read_text().replace("major = 1\n", "major = 1\nmeasured_power = -61\n"))
    phone.trusts(written(tmp_path, code(van)))
    assert phone.knows("rolling-chassis")["steps"][0]["measured_power"] == -61


def test_a_tag_that_is_now_another_steps_is_no_longer_the_first_ones(phone, van, tmp_path):
    phone.trusts(written(tmp_path, code(van)))
    file = phone.vehicles / "rolling-chassis/vehicle.toml"
    listed = 'tags = ["04A1B2C3D4E5F6"]\n'
    file.write_text(file.read_text().replace("major = 2\n", f"major = 2\n{listed}"))
    folder = handed_over(van, tmp_path / "folder", van)
    text = (folder / "vehicle.toml").read_text()
    (folder / "vehicle.toml").write_text(text.replace("major = 1\n", f"major = 1\n{listed}"))
    phone.trusts(folder)
    assert [step.get("tags") for step in phone.knows("rolling-chassis")["steps"]] == [["04A1B2C3D4E5F6"], None]


def test_a_rider_who_was_imported_moves_a_step(phone, vehicle):
    alice = vehicle.rider("alice")
    phone.trusts(alice.folder)
    moved = phone.stepctl("open", "--side", "left", "--radio", vehicle.radio("left"))
    assert (moved.status, moved.stdout) == (0, "the left step is open\n")


@pytest.mark.parametrize("names", ["ca", "cert"])
def test_a_private_file_is_not_copied_as_a_certificate(phone, van, tmp_path, names):
    """The copy could be read by everyone. The path is whatever the folder says."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/private").write_text("my own\n")
    for file in van.rider("gina", "--force").folder.iterdir():
        (tmp_path / "folder" / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "folder/vehicle.toml"
    path.write_text(re.sub(rf"(?m)^{names} = .*$", f'{names} = "{tmp_path}/folder/private"', path.read_text()))
    status, error = phone.refuses(tmp_path / "folder")
    assert status == 65 and error.startswith(f"{tmp_path}/folder/private: ") and "my own" not in error


@pytest.mark.parametrize("name", ["device.jwk", "token.jwt"])
def test_a_token_that_is_bound_to_another_device_is_refused(phone, van, tmp_path, name):
    folder, stranger = van.rider("hans", "--force").folder, van.rider("inge", "--force").folder
    shutil.copytree(folder, tmp_path / "folder")
    shutil.copy(stranger / name, tmp_path / "folder")
    token, key = tmp_path / "folder/token.jwt", tmp_path / "folder/device.jwk"
    assert phone.refuses(tmp_path / "folder") == (
        78,
        f"{token}: the token is bound to another device key than {key}: take both as the operator made them",
    )


def test_a_token_of_another_operator_or_vehicle_is_refused(phone, parked_van, tmp_path):
    van, forged, other = parked_van
    for stranger, reason in (forged, "made for another key"), (other, "made for another key"):
        folder = tmp_path / stranger.folder.name
        folder.mkdir()
        for file in van.rider("dora", "--force").folder.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        token = stranger.rider("dora", "--force").folder / "token.jwt"
        (folder / "token.jwt").write_bytes(token.read_bytes())
        assert phone.refuses(folder) == (65, f"{folder}/token.jwt: {reason}")


# --- What is none ---


@pytest.mark.arm64
def test_a_code_that_was_changed_anywhere_is_refused(phone, van, tmp_path):
    text = code(van)
    for place in range(0, len(text), 97):
        changed = text[:place] + ("B" if text[place] == "A" else "A") + text[place + 1 :]
        status, error = phone.refuses(written(tmp_path, changed))
        assert status == 65 and error.startswith(f"{tmp_path}/code.txt: not a vehicle's code, or a damaged one: ")


def test_a_code_with_another_operators_signature_over_it_is_refused(phone, parked_van, tmp_path):
    """The forger keeps the true operator's key in the header, and signs with their own."""
    van, forged, _ = parked_van
    header, claims, _ = code(van).split(".")
    signature = forged.key("operator/token").sign(f"{header}.{claims}".encode())
    text = f"{header}.{claims}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    status, error = phone.refuses(written(tmp_path, text))
    assert (status, error) == (
        65,
        f"{tmp_path}/code.txt: not a vehicle's code, or a damaged one: the signature does not match",
    )


def test_a_camera_that_is_not_there_is_told(phone):
    assert not Path("/dev/video73").exists()
    assert phone.refuses("--qr", "/dev/video73") == (69, "there is no camera /dev/video73: is it plugged in?")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (
            '{"uuid":"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90","stepId":"left"}',
            "this is a step's code, not a vehicle's",
        ),
        ("stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left", "this is a step's code, not a vehicle's"),
        ("https://example.org/", "not a vehicle's code, or a damaged one: not well formed: not a compact JWS"),
        ("a.b.c", "not a vehicle's code, or a damaged one: not well formed: not a compact JWS"),
    ],
)
def test_a_picture_of_something_else_is_told(phone, tmp_path, content, error):
    (tmp_path / "picture.png").write_bytes(pictures.png(pictures.code(content)))
    assert phone.refuses("--qr", tmp_path / "picture.png") == (65, f"{tmp_path}/picture.png: {error}")


def test_a_picture_without_a_code_or_with_several_is_told(phone, parked_van, tmp_path):
    van, _, other = parked_van
    (tmp_path / "none.png").write_bytes(pictures.png(pictures.Image.new("L", (99, 99), 200)))
    assert phone.refuses("--qr", tmp_path / "none.png") == (65, f"there is no code in {tmp_path}/none.png")
    codes = [pictures.code(code(vehicle), "L", scale=3) for vehicle in (van, other)]
    (tmp_path / "two.png").write_bytes(pictures.png(pictures.side_by_side(*codes)))
    assert phone.refuses("--qr", tmp_path / "two.png") == (65, f"{tmp_path}/two.png shows several vehicles' codes")


def test_files_that_are_none_of_these_are_told(phone, van, tmp_path):
    assert phone.refuses("none.txt", folder=tmp_path) == (66, "cannot open none.txt: No such file or directory")
    assert phone.refuses(written(tmp_path, ""))[0] == 65
    assert phone.refuses(written(tmp_path, "name = 1\n"))[0] == 78
    assert phone.refuses(tmp_path)[0] == 66
    written(tmp_path, code(van)).chmod(0)
    assert phone.refuses(tmp_path / "code.txt", prefix=AS_ANYBODY)[0] == 77
    assert phone.types("config", "import", tmp_path / "code.txt", "--qr", tmp_path / "code.png").status == 64
    # Without a file it is the camera's: this computer has none.
    if not list(Path("/dev").glob("video*")):
        assert phone.types("config", "import").status == 69


def test_a_pipe_that_nobody_writes_to_can_be_left(phone, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with closing(Terminal([STEPCTL, "config", "import", tmp_path / "pipe"], phone.stepctl.environment)) as terminal:
        program = Path(f"/proc/{terminal.process.pid}/exe")
        wait_until(lambda: program.resolve() == STEPCTL.resolve(), "it has the terminal")
        # And by then it waits for the pipe, though nothing shows that.
        time.sleep(0.5)
        terminal.types(b"\x03")
        assert terminal.ends() == -2
    assert phone.files == {}


def test_a_pipe_in_a_folder_is_told_and_not_waited_for(phone, van, tmp_path):
    folder = handed_over(van, tmp_path / "folder", van)
    (folder / "vehicle.toml").unlink()
    os.mkfifo(folder / "vehicle.toml")
    status, error = phone.refuses(folder)
    assert (status, phone.files) == (74, {})
    assert error == f"cannot read {folder}/vehicle.toml, which is not a regular file: Invalid argument"


def test_a_rider_without_a_home_is_told(van, phone, tmp_path):
    file = written(tmp_path, code(van))
    command = ["env", "-u", "HOME", STEPCTL, "config", "import", "--yes", file]
    ended = subprocess.run(command, capture_output=True, text=True, env=phone.stepctl.environment)
    assert ended.returncode == 78
    assert "error: no folder for stepctl's files: HOME is not set\n" in ended.stderr


def test_a_home_that_cannot_be_written_keeps_what_it_has(phone, van, tmp_path):
    phone.vehicles.mkdir(parents=True)
    phone.vehicles.chmod(0o500)
    try:
        status, _ = phone.refuses(written(tmp_path, code(van)), prefix=AS_ANYBODY)
    finally:
        phone.vehicles.chmod(0o700)
    assert status == 77


def test_only_files_of_the_folder_are_imported(phone, shared_rider, tmp_path):
    """A vehicle file from somebody else could name any file that the user can read, to be copied and perhaps shown."""
    folder = tmp_path / "given"
    shutil.copytree(shared_rider.folder, folder)
    secret = tmp_path / "secret"
    shutil.copy(folder / "rider.key", secret)
    file = folder / "vehicle.toml"
    text = file.read_text()
    for name in (str(secret), "../secret"):
        file.write_text(text.replace('key = "rider.key"', f'key = "{name}"'))
        status, line = phone.refuses(folder)
        path = os.path.normpath(folder / name)
        assert status == 65 and line.startswith(f"{path} is not in {folder}, where the vehicle file is")
    file.write_text(text)
    (folder / "rider.key").unlink()
    (folder / "rider.key").symlink_to(secret)
    status, line = phone.refuses(folder)
    assert status == 65 and line.startswith(f"{folder}/rider.key is not in {folder}")
    (folder / "rider.key").unlink()
    os.mkfifo(folder / "rider.key", 0o600)
    status, line = phone.refuses(folder)
    assert status == 74 and "not a regular file" in line
