"""What an operator does: answers devices that ask, lists and takes back what was handed out, changes keys, and runs a
fleet."""

import base64
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import client
import stepproto as proto
from devices import granted
from fleets import Fleet
from programs import NOBODY, STEPD, wait_until
from vehicle import free_port


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_told_that_the_folder_is_not_theirs(stepctl, tmp_path):
    assert stepctl("operator", "init", tmp_path / "fleet").status == 0
    assert stepctl("provision", "vehicle", tmp_path / "bus", "--operator", tmp_path / "fleet").status == 0
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    ended = stepctl("provision", "token", tmp_path / "fleet/vehicles/bus", "--rider", "anna", prefix=NOBODY)
    assert ended.status == 77 and ended.error.endswith("Permission denied"), ended


def test_a_vehicle_here_is_meant_by_its_own_name(stepctl, tmp_path):
    car = tmp_path / "car"
    assert stepctl("provision", "vehicle", car, "--name", "Käfer").status == 0
    for name in ("Käfer", "kaefer", "car", "./car", "car/vehicle.toml"):
        assert stepctl("provision", "token", name, "--rider", "anna", "--force", folder=tmp_path).status == 0, name
        assert stepctl("config", "show", "--vehicle", name, folder=tmp_path).status == 0, name
        assert stepctl("config", "show", name, folder=tmp_path).lines[-1:] != [], name
        assert stepctl("operator", "riders", name, folder=tmp_path).lines[0].startswith("anna"), name
        assert stepctl("operator", "vehicles", "car", name, folder=tmp_path).lines[0].startswith("Käfer: "), name
    # Two of one name.
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/vehicle.toml").write_text((car / "vehicle.toml").read_text())
    ended = stepctl("provision", "token", "Käfer", "--rider", "anna", folder=tmp_path)
    assert ended.status == 78 and "several are called" in ended.error and "car/vehicle.toml" in ended.hint


@pytest.mark.parametrize("command", ["status", "locate", "find", "config show"])
def test_a_command_without_another_argument_takes_the_vehicle_as_one(stepctl, tmp_path, command):
    typed = command.split()
    for name in ("./car", "car"):
        assert "car" in stepctl(*typed, name, folder=tmp_path).error
    both = stepctl(*typed, "./car", "--vehicle", "./car", folder=tmp_path)
    assert (both.status, both.error) == (64, "the vehicle and --vehicle exclude each other")


@pytest.mark.parametrize("command", ["open", "close", "stop"])
def test_a_vehicle_in_the_place_of_a_side_is_told_how_it_is_named(stepctl, command):
    ended = stepctl(command, "Käfer")
    assert ended.status == 64 and ended.hint.endswith('"; name a vehicle with --vehicle'), ended


def written(tmp_path: Path, text: str, name="access") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def grouped(thumbprint: str) -> str:
    """As people compare it."""
    return " ".join(re.findall(".{1,4}", thumbprint))


# --- A device that asks ---


@pytest.mark.arm64
def test_from_a_request_to_an_open_step_and_no_private_key_travels(vehicle, stepctl, phone, tmp_path):
    request = phone.asks()
    access = granted(stepctl, vehicle.folder, request, "--for", "2h")
    private = json.loads((phone.keys / "device.jwk").read_text())["d"]
    pem = "".join((phone.keys / "rider.key").read_text().splitlines()[1:-1])
    for text in (request, access, *(base(text) for text in (request, access))):
        assert private not in text and pem not in text
    assert not (vehicle.folder / "riders").exists(), "nothing of the rider stays with the operator but a line"
    assert stat.S_IMODE(phone.keys.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in phone.keys.iterdir()} == {0o600}
    assert phone.imports(written(tmp_path, access)).status == 0
    opened = phone.opens(vehicle.radio("left"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")


def base(text: str) -> str:
    """What is inside the base64url of a text."""
    parts = re.findall(r"[A-Za-z0-9_-]{40,}", text)
    return "".join(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode(errors="replace") for part in parts)


@pytest.mark.arm64
def test_a_device_in_python_asks_and_is_answered(vehicle, stepctl, tmp_path):
    """Written from the protocol's page alone: another phone's program."""
    device, key = proto.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rider")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    request = proto.sign_request("otto", csr.public_bytes(serialization.Encoding.DER), device, int(time.time()))
    text = granted(stepctl, vehicle.folder, request)
    code, token, der = proto.read_access(text, device.public_key(), vehicle.key("operator/token").public_key())
    assert token["sub"] == "otto"
    certificate = x509.load_der_x509_certificate(der)
    authority = x509.load_der_x509_certificate(proto.from_base64url(code["ca"]))
    certificate.verify_directly_issued_by(authority)
    files = {name: tmp_path / name for name in ("ca.pem", "rider.pem", "rider.key")}
    files["ca.pem"].write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files["rider.pem"].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files["rider.key"].write_bytes(key.private_bytes(*form))
    rider = client.Vehicle(
        uuid=code["uuid"],
        topic=code["topic"],
        majors={step["id"]: step["major"] for step in code["steps"]},
        host=code["host"],
        port=code["port"],
        ca=files["ca.pem"],
        cert=files["rider.pem"],
        key=files["rider.key"],
        encryption_key=proto.x25519_key(proto.from_base64url(code["encryption_key"])),
        signing_key=proto.ed25519_key(proto.from_base64url(code["signing_key"])),
        device=device,
        token=json.loads(text)["token"],
    )
    with client.Session(rider, "left", 10) as session:
        statement, _ = client.ask(session)
    assert statement["position"] == "close" and "challenge" in statement


def test_a_request_stays_the_same_devices_and_renewal_is_the_same_file_again(vehicle, stepctl, phone, tmp_path):
    first, second = phone.asks(), phone.asks()
    assert [proto.from_json(proto.from_base64url(text.split(".")[0]))["jwk"] for text in (first, second)][0] == (
        proto.from_json(proto.from_base64url(second.split(".")[0]))["jwk"]
    )
    old = granted(stepctl, vehicle.folder, first, "--for", "1h")
    assert phone.imports(written(tmp_path, old)).status == 0
    new = granted(stepctl, vehicle.folder, written(tmp_path, second, "request"), "--for", "3h")
    assert phone.imports("-", input=new.encode()).status == 0
    assert phone.opens(vehicle.radio("left")).status == 0
    names = sorted(path.name for path in (phone.vehicles / "car").iterdir())
    assert len([name for name in names if name.startswith("token")]) == 1


def test_an_older_file_is_refused_and_the_newer_one_stays(vehicle, stepctl, phone, tmp_path, transcript):
    request = phone.asks()
    old = json.loads(granted(stepctl, vehicle.folder, request, "--for", "9h"))
    # Signed an hour ago: by the operator, as all else.
    claims = proto.from_json(proto.from_base64url(old["token"].split(".")[1]))
    claims["ext"]["iat"] -= 3600
    old["token"] = proto.sign_token(claims, vehicle.key("operator/token"))
    new = granted(stepctl, vehicle.folder, request)
    assert phone.imports(written(tmp_path, new)).status == 0
    refused = phone.imports(written(tmp_path, json.dumps(old)))
    file = phone.vehicles / "car/vehicle.toml"
    assert (refused.status, refused.error) == (65, f"this access is older than the one in {file}")
    assert phone.opens(vehicle.radio("left")).status == 0


def test_a_file_for_another_device_is_refused_there(vehicle, stepctl, phone, tablet, tmp_path):
    access = written(tmp_path, granted(stepctl, vehicle.folder, phone.asks()))
    nobody = tablet.imports(access)
    assert (nobody.status, nobody.error) == (66, "this computer has no device key")
    tablet.asks()
    other = tablet.imports(access)
    assert other.status == 65
    grouped = r"([\w-]{4} ){10}[\w-]{3}"
    assert re.fullmatch(f"this access is for the device {grouped}, but this device is {grouped}", other.error)
    assert not tablet.vehicles.exists()


def certificate_request(subject: str, folder: Path, kind=("ec", "-pkeyopt", "ec_paramgen_curve:P-256")) -> str:
    key, request = folder / "own.key", folder / "own.csr"
    command = ["openssl", "req", "-new", "-newkey", *kind, "-nodes", "-keyout", key, "-outform", "DER"]
    subprocess.run([*command, "-subj", subject, "-out", request], check=True, capture_output=True)
    return proto.base64url(request.read_bytes())


def asked(name: str, csr: str, device=None, **claims) -> str:
    device = device or proto.Ed25519PrivateKey.generate()
    header = {"alg": "Ed25519", "typ": "step-request+jwt", "jwk": proto.jwk(device.public_key())}
    return proto.sign(device, proto.to_json(header), proto.to_json({"name": name, "csr": csr, "iat": 1} | claims))


NAMES = "the request asks for a certificate with another name than `rider`"


@pytest.mark.parametrize("subject", ["/CN=controller", "/CN=operator", "/CN=rider/CN=controller", "/O=rider", "/CN=Rider"])
def test_a_certificate_request_with_anothers_name_gets_nothing(file_vehicle, tmp_path, subject):
    request = asked("carl", certificate_request(subject, tmp_path))
    ended = file_vehicle.stepctl("provision", "token", file_vehicle.folder, "--device", request)
    assert (ended.status, ended.stdout, ended.error) == (65, "", NAMES)


def test_what_a_request_asks_for_beyond_its_key_is_not_in_the_certificate(file_vehicle, tmp_path):
    """An authority's certificate, another name: only the key is taken."""
    key, csr = tmp_path / "own.key", tmp_path / "own.csr"
    command = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    more = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "subjectAltName=DNS:controller"]
    subprocess.run(
        [*command, "-keyout", key, "-subj", "/CN=rider", *more, "-outform", "DER", "-out", csr],
        check=True,
        capture_output=True,
    )
    access = json.loads(
        granted(file_vehicle.stepctl, file_vehicle.folder, asked("dora", proto.base64url(csr.read_bytes())))
    )
    certificate = tmp_path / "rider.der"
    certificate.write_bytes(proto.from_base64url(access["certificate"]))
    text = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-in", certificate, "-noout", "-text"], capture_output=True, text=True
    ).stdout
    assert "Subject: CN = rider" in text and "CA:FALSE" in text and "DNS:" not in text and "CA:TRUE" not in text


def test_requests_that_are_none_are_refused(file_vehicle, tmp_path):
    good = certificate_request("/CN=rider", tmp_path)
    rsa = certificate_request("/CN=rider", tmp_path, kind=("rsa:2048",))
    octets = bytearray(proto.from_base64url(good))
    octets[-1] ^= 1
    whole = asked("carl", good)
    cases = {
        asked("carl", rsa): "the certificate request is not for a key on P-256",
        asked("carl", proto.base64url(bytes(octets))): None,
        asked("carl", proto.base64url(b"rubbish")): None,
        asked("../anna", good): "../anna: not a rider's name",
        asked("carl", good, more=1): None,
        whole[:-4] + ("AAAA" if whole[-4:] != "AAAA" else "BBBB"): None,
        "eyJ": None,
    }
    for request, error in cases.items():
        ended = file_vehicle.stepctl("provision", "token", file_vehicle.folder, "--device", request)
        assert ended.status in (64, 65) and ended.stdout == "", request
        assert error is None or ended.error == error
    none = file_vehicle.stepctl("provision", "token", file_vehicle.folder, "--device", tmp_path / "missing")
    assert none.status == 66


def test_access_files_that_were_changed_are_refused(file_vehicle, stepctl, phone, new_vehicle, tmp_path):
    request = phone.asks()
    access = json.loads(granted(stepctl, file_vehicle.folder, request, "--rider", "anna"))
    other = json.loads(granted(stepctl, new_vehicle("other").folder, request))
    token = access["token"].split(".")
    changed = [
        access | {"token": other["token"]},
        access | {"vehicle": other["vehicle"]},
        access | {"certificate": other["certificate"]},
        access | {"certificate": "AAAA"},
        access | {"token": ".".join([token[0], token[1], "A" * 86])},
        access | {"more": "x.y"},
        {name: value for name, value in access.items() if name != "token"},
    ]
    for each in changed:
        ended = phone.imports(written(tmp_path, json.dumps(each)))
        assert (ended.status, ended.stdout) == (65, ""), each.keys()
    assert phone.imports(written(tmp_path, json.dumps(access)[:-5])).status == 65
    assert not phone.vehicles.exists()


def test_nobody_gets_the_name_of_another_device_by_asking(parked, stepctl, phone, tablet):
    granted(stepctl, parked.folder, phone.asks())
    granted(stepctl, parked.folder, phone.asks())
    ended = stepctl("provision", "token", parked.folder, "--device", tablet.asks())
    assert (ended.status, ended.stdout, ended.error) == (64, "", "anna has another device already")
    assert "hint: use --rider anna if the device is the same rider's" in ended.stderr
    granted(stepctl, parked.folder, tablet.asks(), "--rider", "anna")


def test_a_token_can_begin_later(vehicle, stepctl, phone, tmp_path):
    phone.gets_access(stepctl, vehicle.folder, "--from", "2032-01-02T08:00", "--for", "1h")
    ended = phone.types("status")
    assert (ended.status, "token_not_yet_valid" in ended.error) == (5, True)
    for wrong in ("tomorrow", "24:00", "2026-02-30T08:00", "8:00", "2026-11-23"):
        assert stepctl("provision", "token", vehicle.folder, "--device", "-", "--from", wrong).status == 64


def test_both_texts_travel_as_pictures_too(file_vehicle, stepctl, phone, tmp_path):
    request, access = tmp_path / "request.png", tmp_path / "access.png"
    phone.asks("--output", request)
    seen = subprocess.run(["zbarimg", "--raw", "-q", request], capture_output=True, text=True).stdout.strip()
    granted(stepctl, file_vehicle.folder, seen, "--rider", "anna", "--output", access)
    assert phone.imports("--qr", access).status == 0


@pytest.fixture
def wide(new_vehicle):
    """Its riders' access is too long for one code."""
    return new_vehicle("car", "--name", "A very long name " * 7, "--topic", "a/very/long/topic" * 7)


def parts_of(text: str, count: int) -> list[str]:
    """As section 9.2 has them."""
    size = -(-len(text) // count)
    name = proto.base64url(hashlib.sha256(text.encode()).digest()[:16])
    return [
        f"stepctl-part:{i + 1}/{count}/{name}:{text[i * size : (i + 1) * size]}" for i in range(count)
    ]


def drawn(tmp_path: Path, texts: list[str], name: str) -> list[Path]:
    """By a program that is not ours."""
    files = [tmp_path / f"{name}-{number}.png" for number in range(len(texts))]
    for file, text in zip(files, texts):
        subprocess.run(["qrencode", "--level=L", "--8bit", "--size=4", "--output", file], input=text.encode(), check=True)
    return files


def test_what_one_code_does_not_hold_has_several(wide, stepctl, phone, tmp_path):
    request = phone.asks()
    given = stepctl(
        "provision", "token", wide.folder, "--device", request, "--output", tmp_path / "access.png", "--json"
    ).json
    files = [Path(file) for file in given["files"]]
    assert [file.name for file in files] == [f"access-{i + 1}.png" for i in range(len(files))] and len(files) >= 3
    # A reader that is not ours.
    read = [subprocess.run(["zbarimg", "--raw", "-q", file], capture_output=True, text=True).stdout.strip() for file in files]
    assert read == parts_of(given["access"], len(files))
    missing = phone.imports("--qr", *files[1:])
    assert (missing.status, missing.error) == (65, f"code 1 of {len(files)} is missing")
    assert phone.imports("--qr", *reversed(files), files[0]).status == 0
    drawn_there = stepctl("provision", "token", wide.folder, "--device", request, "--drawn")
    assert f"code {len(files)} of {len(files)}" in drawn_there.lines
    # The same as a text, and what is drawn by others.
    assert phone.imports(written(tmp_path, granted(stepctl, wide.folder, request))).status == 0
    text = granted(stepctl, wide.folder, request)
    assert phone.imports("--qr", *drawn(tmp_path, parts_of(text, 5), "five")).status == 0


def test_codes_that_do_not_belong_together_are_refused(wide, stepctl, phone, tmp_path):
    texts = [granted(stepctl, wide.folder, phone.asks(), "--for", time) for time in ("1h", "2h")]
    one, other = (parts_of(text, 3) for text in texts)
    head, _, rest = one[2].partition(":")[2].partition(":")
    for number, (parts, error) in enumerate([
        ([one[0], one[1], other[2]], "the codes are parts of different texts"),
        # The name of one text over a part of another.
        ([one[0], one[1], f"stepctl-part:{head}:{other[2].rpartition(':')[2]}"], "a code is damaged: it is not a part of a longer text"),
        ([*one, f"stepctl-part:{head}:{rest[:-1]}x"], "the codes are parts of different texts"),
        ([one[0], one[1], one[2].replace("3/3/", "4/3/")], "a code is damaged: it is not a part of a longer text"),
        ([one[0], one[1], one[2].replace("3/3/", "03/3/")], "a code is damaged: it is not a part of a longer text"),
        ([one[0].replace("1/3/", "1/99/")], "a code is damaged: it is not a part of a longer text"),
        ([one[0].replace("1/3/", "1/1/")], "a code is damaged: it is not a part of a longer text"),
        (["stepctl-part:", one[1]], "a code is damaged: it is not a part of a longer text"),
        ([one[0]], "code 2, 3 of 3 is missing"),
    ]):
        ended = phone.imports("--qr", *drawn(tmp_path, parts, f"case{number}"))
        assert (ended.status, ended.error) == (65, error), parts
    assert phone.types("--json").json["vehicles"] == []


# --- Taking back ---


def test_the_operator_lists_and_revokes_and_the_vehicle_refuses(vehicle, stepctl, phone, tmp_path):
    bob = vehicle.rider("bob")
    phone.gets_access(stepctl, vehicle.folder)
    listed = stepctl("operator", "tokens", vehicle.folder, "--json").objects
    assert [(token["rider"], token["state"]) for token in listed] == [("bob", "valid"), ("anna", "valid")]
    riders = stepctl("operator", "riders", vehicle.folder, "--json").objects
    assert [rider["rider"] for rider in riders] == ["anna", "bob"]
    revoked = stepctl("operator", "revoke", vehicle.folder, "--rider", "anna")
    assert (revoked.status, revoked.stdout) == (0, f"revoked {listed[1]['token']} of anna\n")
    vehicle.stepd.says("is in force")
    ended = phone.opens(vehicle.radio("left"))
    assert (ended.status, "token_revoked" in ended.error) == (5, True)
    assert bob.moves("open", "left").status == 0
    assert len(stepctl("operator", "tokens", vehicle.folder, "--json").objects) == 1
    again = stepctl("operator", "revoke", vehicle.folder, "--rider", "anna")
    assert (again.status, again.stdout) == (0, revoked.stdout), "the first run may have been cut off"
    nobody = stepctl("operator", "revoke", vehicle.folder, "--rider", "nobody")
    assert (nobody.status, nobody.error) == (1, "no unexpired token matches")
    # The device may ask again: only the token was taken back.
    renewed = granted(stepctl, vehicle.folder, phone.asks())
    assert phone.imports(written(tmp_path, renewed)).status == 0
    assert phone.types("status").status == 0
    device = riders[0]["device_keys"][0]
    assert stepctl("operator", "revoke", vehicle.folder, f"--device={device}").status == 0
    wait_until(lambda: phone.types("status").status == 5, "the device is revoked")
    none = stepctl("provision", "token", vehicle.folder, "--device", phone.asks())
    assert (none.status, none.error) == (1, f"the device {grouped(device)} is revoked")


def test_a_broker_that_is_away_is_said_and_told_later(parked, stepctl):
    alice = parked.rider("alice")
    away = stepctl("operator", "revoke", parked.folder, "--rider", "alice", "--timeout", "2")
    assert away.status == 69 and away.stdout.startswith("revoked ")
    assert "car has not been told" in away.stderr
    parked.starts_all()
    ended = alice.types("status")
    assert "the client certificate has been revoked" in ended.error, "the broker needs no notice"
    assert ended.status == 77
    bob = parked.rider("bob")
    for name in ("rider.pem", "rider.key"):
        shutil.copy(bob.folder / name, alice.folder / name)
    assert alice.types("status").status == 0, "with another's certificate, and the vehicle does not know yet"
    published = stepctl("operator", "publish", parked.folder)
    assert published.stdout == "the broker has the notice for: car\n"
    assert published.stderr.endswith(f"`stepctl operator log {parked.folder}` says which vehicles have it\n")
    parked.stepd.says("is in force")
    assert alice.types("status").status == 5


def test_a_broker_whose_access_list_knows_no_operator_is_said(vehicle, stepctl):
    file = vehicle.folder / "mosquitto.acl"
    file.write_text(file.read_text().partition("\nuser operator")[0] + "\n")
    vehicle.broker.kill()
    vehicle.starts_broker()
    ended = stepctl("operator", "publish", vehicle.folder, "--timeout", "20")
    assert ended.status == 69 and "its access list does not let the operator write" in ended.error


@pytest.mark.arm64
def test_keys_change_while_everybody_rides_on(vehicle, stepctl, phone, tmp_path):
    alice = vehicle.rider("alice")
    phone.gets_access(stepctl, vehicle.folder)

    def everybody_rides():
        assert alice.types("status").status == 0 and phone.types("status").status == 0

    assert stepctl("operator", "keys", "rotate", vehicle.folder).status == 0
    vehicle.stepd.says("is in force")
    everybody_rides()
    before = vehicle.stepd.said
    early = stepctl("operator", "keys", "rotate", vehicle.folder)
    assert (early.status, early.error) == (1, "not known to have the next key: car")
    assert f"`stepctl operator log {vehicle.folder}` asks them" in early.hint
    assert stepctl("operator", "log", vehicle.folder).status == 0
    assert stepctl("operator", "keys", "rotate", vehicle.folder).status == 0
    vehicle.stepd.says("is in force", after=before)
    everybody_rides()
    vehicle.keeps_secret(vehicle.folder / "operator/token.jwk")
    locked_out = stepctl("operator", "keys", "retire", vehicle.folder)
    assert (locked_out.status, locked_out.error) == (1, "riders would be locked out: alice, anna")
    assert stepctl("operator", "revoke", vehicle.folder, "--rider", "nobody").hint == (
        f"`stepctl operator tokens {vehicle.folder}` lists them"
    )
    # A rider who has pinned the old key takes access by the new one, because the old one has vouched for it.
    phone.gets_access(stepctl, vehicle.folder)
    everybody_rides()
    assert stepctl("operator", "revoke", vehicle.folder, "--rider", "alice").status == 0
    assert stepctl("operator", "log", vehicle.folder).status == 0
    assert stepctl("operator", "keys", "retire", vehicle.folder).status == 0
    # Signed by a key that counts no more: there is no answer.
    wait_until(lambda: alice.types("status", "--timeout", "5").status == 69, "the old key counts no more")
    assert phone.types("status").status == 0
    assert len(stepctl("operator", "keys", "show", vehicle.folder).lines) == 1


def test_the_next_key_does_not_sign_before_every_vehicle_has_told_that_it_knows_it(fleet, stepctl):
    """Whoever got a token by it would be locked out of a vehicle that has not heard of it."""
    operator = fleet.folder / "fleet"
    # Nobody keeps the notices: there is no broker.
    assert stepctl("operator", "keys", "rotate", operator, "--timeout", "1").status == 69
    before = {path: path.read_bytes() for path in (operator / "operator").rglob("*") if path.is_file()}
    early = stepctl("operator", "keys", "rotate", operator, "--timeout", "1")
    assert (early.status, early.error) == (1, "not known to have the next key: car, van")
    assert {path: path.read_bytes() for path in (operator / "operator").rglob("*") if path.is_file()} == before
    forced = stepctl("operator", "keys", "rotate", operator, "--force", "--json", "--timeout", "1")
    assert forced.status == 69 and forced.objects[0]["state"] == "present"


def test_another_operators_access_is_refused_whoever_it_names(file_vehicle, stepctl, phone, tmp_path):
    request = phone.asks()
    access = json.loads(granted(stepctl, file_vehicle.folder, request, "--rider", "anna"))
    assert phone.imports(written(tmp_path, json.dumps(access))).status == 0
    mallory = proto.Ed25519PrivateKey.generate()
    code = proto.from_json(proto.from_base64url(access["vehicle"].split(".")[1]))
    token = proto.from_json(proto.from_base64url(access["token"].split(".")[1]))
    notice = {
        "vehicle": code["uuid"],
        "seq": 1,
        "iat": 1,
        "keys": [proto.jwk(mallory.public_key())],
        "revoked": [],
    }
    forged = access | {"vehicle": proto.sign_code(code, mallory), "token": proto.sign_token(token, mallory)}
    for each in (forged, forged | {"notice": proto.sign_notice(notice, mallory)}):
        ended = phone.imports(written(tmp_path, json.dumps(each)))
        assert ended.status == 65 and "trusts another operator" in ended.error


# --- A fleet ---


@pytest.fixture
def fleet(stepctl, tmp_path):
    with ExitStack() as stack:
        yield Fleet(tmp_path, stepctl, stack)


def test_one_operator_for_two_vehicles_and_access_to_one_is_access_to_one(fleet, stepctl, phone, tablet, tmp_path):
    assert not list((fleet.folder / "car").glob("operator*")), "nothing of the operator's is on the vehicle"
    assert [vehicle["name"] for vehicle in stepctl("operator", "vehicles", fleet.folder / "fleet", "--json").objects] == [
        "car",
        "van",
    ]
    fleet.starts_broker()
    for name in ("car", "van"):
        fleet.starts_stepd(name)
    for device, name in ((phone, "car"), (tablet, "van")):
        device.gets_access(stepctl, fleet.folder / "fleet/vehicles" / name, "--rider", "anna")
        opened = device.opens(fleet.radio(name))
        assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    # The phone's certificate, for the other vehicle's topics: the broker passes nothing on.
    file = tablet.vehicles / "van/vehicle.toml"
    mine = phone.vehicles / "car"
    text = file.read_text()
    text = re.sub(r"^cert = .*$", f'cert = "{mine}/rider.pem"', text, flags=re.MULTILINE)
    text = re.sub(r"^key = .*$", f'key = "{phone.keys}/rider.key"', text, flags=re.MULTILINE)
    file.write_text(text)
    assert tablet.types("status", "--timeout", "5").status == 69


def test_a_fleets_broker_keeps_a_revocation_for_a_vehicle_that_comes_after_a_restart(fleet, stepctl, phone, tmp_path):
    phone.gets_access(stepctl, fleet.folder / "fleet/vehicles/car")
    broker = fleet.starts_broker()
    revoked = stepctl("operator", "revoke", fleet.folder / "fleet", "--rider", "anna")
    assert revoked.status == 0, revoked
    broker.kill()
    fleet.starts_broker()
    fleet.starts_stepd("car").says("is in force")
    assert "the client certificate has been revoked" in phone.types("status").error


def test_a_vehicle_of_the_same_name_or_uuid_or_topic_does_not_join(fleet, stepctl):
    operator = ("--operator", fleet.folder / "fleet")
    same = stepctl("provision", "vehicle", fleet.folder / "new", *operator, "--uuid", fleet.uuid("car"))
    assert same.status == 64 and same.error.endswith("with the same name, UUID or topic")
    topic = f"vehicles/{fleet.uuid('car')}"
    same = stepctl("provision", "vehicle", fleet.folder / "new", *operator, "--topic", topic)
    assert same.status == 64
    assert not (fleet.folder / "new").exists()
    none = stepctl("provision", "vehicle", fleet.folder / "new", "--operator", fleet.folder / "car")
    assert (none.status, none.error) == (
        66,
        f"{fleet.folder}/car is not an operator's folder: {fleet.folder}/car/operator/token.jwk is missing",
    )
    # A folder elsewhere, of the name of a vehicle that there is.
    same = stepctl("provision", "vehicle", fleet.folder / "elsewhere/car", *operator)
    assert same.status == 64 and not (fleet.folder / "elsewhere").exists()
    forced = stepctl("provision", "vehicle", fleet.folder / "elsewhere/car", *operator, "--force", input=b"van\n")
    assert (forced.status, forced.error) == (1, "that is not the vehicle's name; nothing was changed")
    again = stepctl("operator", "init", fleet.folder / "fleet")
    assert (again.status, again.error) == (1, f"{fleet.folder}/fleet already exists")


def test_two_vehicles_of_one_operator_never_have_one_name(fleet, stepctl):
    same = stepctl("provision", "vehicle", fleet.folder / "car9", "--operator", fleet.folder / "fleet", "--name", "car")
    assert same.status == 64 and same.error.endswith("with the same name, UUID or topic")
    assert not (fleet.folder / "car9").exists() and not (fleet.folder / "fleet/vehicles/car9").exists()


def test_an_operator_of_several_is_no_vehicle_and_is_replaced_by_none(fleet, stepctl):
    operator = fleet.folder / "fleet"
    before = {path: path.is_file() and path.read_bytes() for path in operator.rglob("*")}
    for more in ((), ("--force",), ("--force", "--no-input")):
        ended = stepctl("provision", "vehicle", operator, *more, input=b"fleet\n")
        assert (ended.status, ended.error) == (1, f"{operator} is an operator of several vehicles")
        assert ended.hint == "choose another folder; nothing was changed"
    for command in (("token", operator, "--rider", "anna"), ("update", operator)):
        ended = stepctl("provision", *command)
        assert (ended.status, ended.error) == (66, f"{operator} is an operator of several vehicles")
        assert ended.hint == f"name one of its vehicles: {operator}/vehicles/car, {operator}/vehicles/van"
    assert {path: path.is_file() and path.read_bytes() for path in operator.rglob("*")} == before


def test_whoever_reads_the_json_knows_which_vehicle_was_not_told(fleet, stepctl):
    operator = fleet.folder / "fleet"
    fleet.starts_broker()
    file = operator / "vehicles/van/vehicle.toml"
    file.write_text(file.read_text().replace(f"port = {fleet.port}", f"port = {free_port()}"))
    ended = stepctl("operator", "publish", operator, "--json", "--timeout", "15")
    assert ended.status == 69 and (ended.json["told"], ended.json["untold"]) == (["car"], ["van"])
    ended = stepctl("operator", "keys", "rotate", operator, "--json", "--timeout", "15")
    assert ended.status == 69 and ended.objects[0]["state"] == "announced"
    assert (ended.objects[1]["told"], ended.objects[1]["untold"]) == (["car"], ["van"])


def test_a_token_says_for_which_vehicle_it_is_and_a_fingerprint_reads_the_same_everywhere(fleet, stepctl):
    operator = fleet.folder / "fleet"
    made = stepctl("provision", "token", operator / "vehicles/van", "--rider", "anna", "--json").json
    listed = stepctl("operator", "tokens", operator).stdout
    assert f"{made['token']}  anna: van: left, right, until " in listed
    device = grouped(made["device_key"])
    one = stepctl("operator", "tokens", operator, "--", made["token"]).stdout
    assert f"device   {device}" in one and f"  device {device}" in stepctl("operator", "riders", operator).stdout
    key = grouped(stepctl("operator", "keys", "show", operator, "--json").json["key"])
    assert f"key      {key}" in one and key in stepctl("operator", "keys", "show", operator).stdout
    bus = stepctl("provision", "vehicle", fleet.folder / "bus", "--operator", operator)
    assert f"operator    {key} (signs tokens)" in bus.stdout
    # As it is shown, it can be typed.
    fleet.starts_broker()
    assert stepctl("operator", "revoke", operator, f"--device={device}").stdout == f"revoked {made['token']} of anna\n"


def test_what_a_retired_key_signed_is_void_and_says_whom_that_locks_out(vehicle, stepctl, alice):
    folder = vehicle.folder
    for _ in range(2):
        assert stepctl("operator", "keys", "rotate", folder, "--force").status == 0
    vehicle.keeps_secret(folder / "operator/token.jwk")
    retired = stepctl("operator", "keys", "retire", folder, "--force", "--json")
    assert (retired.json["locked_out"], retired.json["unheard"], retired.json["unconfirmed"]) == (["alice"], ["car"], [])
    assert stepctl("operator", "tokens", folder).stderr == "no tokens\n"
    (token,) = stepctl("operator", "tokens", folder, "--all", "--json").objects
    assert token["state"] == "void"
    assert stepctl("operator", "tokens", folder, "--all").stdout.endswith("alice: left, right, void: its key was retired\n")
    assert stepctl("operator", "riders", folder).lines[0] == "alice: no token that counts"
    # The new token comes with the vehicle's file of now: both name the same key.
    assert stepctl("provision", "token", folder, "--rider", "alice", "--force").status == 0
    assert "not signed by the operator" not in alice.types("doctor", "vehicle").stdout
    assert stepctl("operator", "riders", folder).lines[0].startswith("alice: until ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write files of others")
def test_what_root_does_in_a_services_folder_leaves_the_service_its_files(stepctl, fleet):
    """`sudo stepctl operator log`, in the folder of a server that runs as a user of its own."""
    operator, nobody = fleet.folder / "fleet", pwd.getpwnam("nobody").pw_uid
    assert stepctl("provision", "token", operator / "vehicles/car", "--rider", "anna").status == 0
    for path in (operator, *operator.rglob("*")):
        os.chown(path, nobody, nobody)
    at_once = ("--timeout", "0.2")
    for command in (
        ("log", operator, *at_once), ("publish", operator, *at_once), ("revoke", operator, "--rider", "anna", *at_once),
        ("keys", "rotate", operator, *at_once), ("keys", "rotate", operator, "--force", *at_once),
        ("renew", operator, "--within", "4000d"), ("move", operator, "--port", "999"),
    ):  # fmt: skip
        assert stepctl("operator", *command).status in (0, 69), command
    assert [path for path in operator.rglob("*") if path.stat().st_uid != nobody] == []


def test_vehicles_made_and_tokens_revoked_at_once_are_all_in_the_lists_of_the_broker(fleet, stepctl, preloaded):
    operator, library = fleet.folder / "fleet", preloaded("slow")
    for number in range(3):
        made = stepctl("provision", "token", operator / "vehicles/car", "--rider", f"rider{number}")
        assert made.status == 0, made

    def at_once(list_name, *commands):
        """The first has read what it writes, and writes slowly; the others come meanwhile."""
        with ThreadPoolExecutor(len(commands)) as pool:
            slow = {"LD_PRELOAD": str(library), "SLOW_WRITE": list_name, "SLOW_WRITE_MS": "1500"}
            running = [pool.submit(stepctl, *commands[0], **slow)]
            time.sleep(0.7)
            running += [pool.submit(stepctl, *command) for command in commands[1:]]
            return [one.result() for one in running]

    made = at_once(
        "/fleet/mosquitto.acl",
        *[("provision", "vehicle", fleet.folder / f"bus{n}", "--operator", operator) for n in range(3)])
    assert [ended.status for ended in made] == [0, 0, 0], made
    assert (operator / "mosquitto.acl").read_text().count("user controller:") == 5
    revoked = at_once(
        "/tls/crl.pem",
        *[("operator", "revoke", operator, "--rider", f"rider{n}", "--timeout", "0.2") for n in range(3)])
    assert [ended.status for ended in revoked] == [69, 69, 69], "there is no broker"
    assert len(x509.load_pem_x509_crl((operator / "tls/crl.pem").read_bytes())) == 3


# --- Runs that are killed ---


def test_a_new_vehicle_that_is_cut_off_keeps_the_operator_from_nothing(fleet, stepctl, preloaded):
    """Every command reads the records of all vehicles."""
    operator, library = fleet.folder / "fleet", preloaded("cut")
    for at in range(1, 40):
        name = f"bus{at}"
        ended = stepctl(
            "provision", "vehicle", fleet.folder / name, "--operator", operator,
            LD_PRELOAD=str(library), CUT="/fleet/vehicles/", CUT_AT=str(at), CUT_MODE="before",
        )  # fmt: skip
        assert stepctl("operator", "vehicles", operator).status == 0, at
        assert stepctl("operator", "publish", operator, "--timeout", "0.2").status == 69, "there is no broker"
        if ended.status == 0:
            break
        again = stepctl(
            "provision", "vehicle", fleet.folder / name, "--operator", operator, "--force", input=f"{name}\n".encode())
        assert again.status == 0, (at, again)
    assert ended.status == 0 and at > 5


def test_a_key_of_the_events_that_is_cut_off_is_made_again(fleet, stepctl, preloaded):
    operator = fleet.folder / "fleet"
    cut = {"LD_PRELOAD": str(preloaded("cut")), "CUT": "/events.jwk", "CUT_AT": "1"}
    for mode in ("before", "half"):
        assert stepctl("operator", "publish", operator, "--timeout", "0.2", **cut, CUT_MODE=mode).status < 0
        ended = stepctl("operator", "publish", operator, "--timeout", "0.2")
        assert ended.status == 69, ended
        file = operator / "operator/events.jwk"
        assert file.stat().st_mode & 0o777 == 0o600
        file.unlink()


def test_a_revocation_that_is_cut_off_is_finished_by_the_same_command(fleet, stepctl, preloaded):
    operator = fleet.folder / "fleet"
    made = stepctl("provision", "token", operator / "vehicles/car", "--rider", "anna", "--json").json
    revoke = ("operator", "revoke", operator, "--rider", "anna", "--timeout", "0.2")
    listed = operator / "tls/crl.pem"
    cut = {"LD_PRELOAD": str(preloaded("cut")), "CUT": "/tls/crl.pem", "CUT_AT": "1", "CUT_MODE": "before"}
    assert stepctl(*revoke, **cut).status < 0
    assert len(x509.load_pem_x509_crl(listed.read_bytes())) == 0, "the ledger has it, and the broker has not"
    again = stepctl(*revoke)
    assert (again.status, again.stdout) == (69, f"revoked {made['token']} of anna\n")
    assert "send SIGHUP to the broker" in again.stderr and "car has not been told" in again.stderr
    assert len(x509.load_pem_x509_crl(listed.read_bytes())) == 1
    assert stepctl("operator", "revoke", operator, "--rider", "nobody").error == "no unexpired token matches"


def test_an_operator_whose_making_was_cut_off_says_what_to_do(stepctl, preloaded, tmp_path):
    made = ("operator", "init", tmp_path / "the fleet")
    cut = {"LD_PRELOAD": str(preloaded("cut")), "CUT": "/operator/token.jwk", "CUT_AT": "1", "CUT_MODE": "before"}
    assert stepctl(*made, **cut).status < 0
    left = tmp_path / ".the fleet.new"
    ended = stepctl(*made)
    assert (ended.status, "was interrupted, or is still running" in ended.error) == (1, True), ended
    remedy = f"rm -r '{left}'"
    assert ended.hint == f"if no other `stepctl operator init` is running, remove it: {remedy}"
    subprocess.run(remedy, shell=True, check=True)
    assert stepctl(*made).status == 0


# --- Replacing a vehicle ---


def test_a_vehicle_is_replaced_after_its_name_was_typed_and_the_old_files_are_kept(parked, stepctl):
    parked.rider("alice")
    key = (parked.folder / "operator/token.jwk").read_bytes()
    command = ("provision", "vehicle", parked.folder, "--force")
    for answer, status in (("", 66), ("\n", 1), ("yes\n", 1), ("CAR\n", 1)):
        ended = stepctl(*command, input=answer.encode())
        assert (ended.status, ended.stdout) == (status, ""), answer
        assert (parked.folder / "operator/token.jwk").read_bytes() == key
    assert "alice" in ended.stderr and "1 that have not ended" in ended.stderr
    assert stepctl(*command, input=b"car\n").status == 0
    assert (parked.folder / "operator/token.jwk").read_bytes() != key
    (kept,) = parked.folder.glob("replaced-*")
    assert (kept / "operator/token.jwk").read_bytes() == key and (kept / "riders/alice/token.jwt").exists()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_a_vehicle_whose_file_nobody_can_read_is_not_replaced_unasked(parked, stepctl):
    parked.rider("alice")
    file = parked.folder / "vehicle.toml"
    file.write_text(file.read_text() + "rubbish\n")
    command = ("provision", "vehicle", parked.folder, "--force")
    for answer, status in ((b"", 66), (b"\n", 1), (b"rubbish\n", 1)):
        ended = stepctl(*command, input=answer)
        assert (ended.status, ended.stdout) == (status, "") and (parked.folder / "riders/alice").exists()
    assert "whose vehicle.toml cannot be read" in ended.stderr and "alice" in ended.stderr
    assert ended.error == "that is not the folder's name; nothing was changed"
    asked = stepctl(*command, "--no-input", input=b"car\n")
    assert asked.status == 64 and asked.error.startswith("--no-input forbids this question: type the folder's name")
    assert stepctl(*command, input=b"car\n").status == 0
    (kept,) = parked.folder.glob("replaced-*")
    assert (kept / "riders/alice/token.jwt").exists()


# --- Changing a vehicle ---


def test_a_vehicle_changes_its_name_its_broker_and_its_steps_and_nobody_is_forgotten(parked, stepctl, phone, tmp_path):
    alice = parked.rider("alice")
    phone.gets_access(stepctl, parked.folder)
    key, port = (parked.folder / "operator/token.jwk").read_bytes(), free_port()
    file = parked.folder / "vehicle.toml"
    text = file.read_text().replace('name = "car"', 'name = "Old Lady"').replace(f"port = {parked.port}", f"port = {port}")
    text = text.replace('host = "localhost"', 'host = "127.0.0.1"')
    file.write_text(text + '\n[[steps]]\nid = "roof"\nside = "right"\nmajor = 3\n'.replace("right", "left"))
    refused = stepctl("provision", "update", parked.folder)
    assert refused.status == 78, "two steps at one side"
    file.write_text(text.replace('id = "right"', 'id = "rear"'))
    updated = stepctl("provision", "update", parked.folder, "--json")
    assert updated.json == {"reissued": ["alice"], "stale": ["anna"], "without_step": ["alice", "anna"]}
    assert (parked.folder / "operator/token.jwk").read_bytes() == key
    parked.prepares_broker()
    parked.starts_broker()
    stepd = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml")
    stepd.says("connected to 127.0.0.1")
    renewed = stepctl("provision", "token", parked.folder, "--rider", "alice", "--force")
    assert renewed.status == 0
    assert alice.types("status").stdout == "left     closed\nrear     closed\n"
    code = stepctl("provision", "qr", "--vehicle", parked.folder, "--json").json["codes"][0]["content"]
    assert phone.imports("-", input=code.encode()).status == 0
    phone.gets_access(stepctl, parked.folder)
    assert phone.types("status").stdout == "left     closed\nrear     closed\n"
    again = stepctl("provision", "update", parked.folder, "--json")
    assert again.json["reissued"] == []


# --- Certificates ---


def test_certificates_that_end_soon_are_listed_first_and_renewed_for_their_keys(vehicle, stepctl):
    alice = vehicle.rider("alice")
    listed = stepctl("operator", "renew", vehicle.folder, "--list", "--json").objects
    files = ["operator/client.pem", "tls/broker.pem", "tls/controller.pem"]
    assert [each["file"] for each in listed] == files, "a rider's is renewed with the access"
    assert {each["is_due"] for each in listed} == {False}
    assert stepctl("operator", "renew", vehicle.folder).stdout == ""
    before = {each["file"]: (vehicle.folder / each["file"]).read_bytes() for each in listed}
    renewed = stepctl("operator", "renew", vehicle.folder, "--within", "900d", "--json").objects
    assert [each["file"] for each in renewed] == files
    assert all((vehicle.folder / name).read_bytes() != content for name, content in before.items())
    vehicle.stepd.kill()
    vehicle.broker.kill()
    vehicle.starts_all()
    assert alice.types("status").status == 0
    assert stepctl("operator", "publish", vehicle.folder).status == 0


def test_a_fleet_renews_its_vehicles_certificates_without_their_keys(fleet, stepctl):
    listed = stepctl("operator", "renew", fleet.folder / "fleet", "--within", "900d", "--json").objects
    assert sorted(each["file"] for each in listed) == [
        "operator/client.pem",
        "tls/broker.pem",
        "vehicles/car/tls/controller.pem",
        "vehicles/van/tls/controller.pem",
    ]
    assert stepctl("provision", "token", fleet.folder / "fleet/vehicles/van", "--rider", "anna").status == 0
    rider = (fleet.folder / "fleet/vehicles/van/riders/anna/rider.pem").read_bytes()
    assert fleet.uuid("van") in x509.load_pem_x509_certificate(rider).subject.rfc4514_string()
    again = stepctl("operator", "renew", fleet.folder / "fleet", "--within", "900d").stderr
    # Renewed, its number would be in no list of what is revoked.
    assert (fleet.folder / "fleet/vehicles/van/riders/anna/rider.pem").read_bytes() == rider
    for name in ("car", "van"):
        assert f"bring {fleet.folder}/fleet/vehicles/{name}/tls/controller.pem to the vehicle, into tls/, and" in again
        renewed = fleet.folder / "fleet/vehicles" / name / "tls/controller.pem"
        (fleet.folder / name / "tls/controller.pem").write_bytes(renewed.read_bytes())
    fleet.starts_broker()
    fleet.starts_stepd("car")
    fleet.starts_stepd("van")


def test_a_fleets_broker_moves_and_nobody_gets_new_keys(fleet, stepctl, phone, tmp_path):
    operator = fleet.folder / "fleet"
    phone.gets_access(stepctl, operator / "vehicles/car")
    assert stepctl("provision", "token", operator / "vehicles/van", "--rider", "bob").status == 0
    fleet.port = free_port()
    moved = stepctl("operator", "move", operator, "--host", "127.0.0.1", "--port", fleet.port, "--json")
    assert moved.json == {
        "vehicles": [f"{operator}/vehicles/car", f"{operator}/vehicles/van"],
        "stale": ["anna"],
        "vehicle_files": [f"{operator}/vehicles/van/riders/bob/vehicle.toml"],
        "without_step": [],
    }
    assert f"port = {fleet.port}\n" in (operator / "vehicles/van/riders/bob/vehicle.toml").read_text()
    fleet.prepares_broker()
    fleet.starts_broker()
    (fleet.folder / "car/vehicle.toml").write_bytes((operator / "vehicles/car/vehicle.toml").read_bytes())
    fleet.starts_stepd("car")
    code = stepctl("provision", "qr", "--vehicle", operator / "vehicles/car", "--json").json["codes"][0]["content"]
    assert phone.imports("-", input=code.encode()).status == 0
    assert phone.types("status").status == 0
    on_vehicle = stepctl("operator", "move", fleet.folder / "car", "--port", "9")
    assert on_vehicle.status == 66 and "is not an operator's folder" in on_vehicle.error


def test_a_fleets_broker_stays_where_nobody_says_that_it_moves(fleet, stepctl, phone):
    operator = fleet.folder / "fleet"
    none = stepctl("operator", "move", operator)
    assert none.status == 64 and none.error == "give --host, --port or both"
    granted(stepctl, operator / "vehicles/car", phone.asks())
    moved = stepctl("operator", "move", operator, "--host", "127.0.0.1")
    assert moved.lines[0].startswith(f"the broker is at 127.0.0.1:{fleet.port};")
    assert moved.lines[-1] == (
        f"anna: needs the vehicle's code, from `stepctl provision qr --vehicle {operator}/vehicles/car`"
    )
    port = free_port()
    assert stepctl("operator", "move", operator, "--port", port).lines[0].startswith(f"the broker is at 127.0.0.1:{port};")


# --- Keys that stay on the vehicle ---


def test_a_vehicle_whose_keys_are_made_on_it_moves_and_the_operator_never_has_them(fleet, stepctl, phone, tmp_path):
    bus = tmp_path / "on-the-vehicle" / "bus"
    text = stepctl("provision", "keys", bus).stdout
    assert stepctl("provision", "keys", bus, "--json").json["is_new"] is False, "the same keys"
    keys = written(tmp_path, text, "keys")
    made = stepctl(
        "provision", "vehicle", tmp_path / "made/bus", "--operator", fleet.folder / "fleet", "--keys", keys, "--json"
    )
    assert made.status == 0, made
    private = [bus / name for name in ("keys/encryption.jwk", "keys/signing.jwk", "tls/controller.key")]
    secrets = [json.loads(file.read_text())["d"] if file.suffix == ".jwk" else file.read_text() for file in private]
    for file in (*(tmp_path / "made").rglob("*"), *(fleet.folder / "fleet").rglob("*")):
        if file.is_file():
            assert not any(secret in file.read_text(errors="replace") for secret in secrets), file
            assert file.name not in ("encryption.jwk", "signing.jwk", "controller.key")
    assert {stat.S_IMODE(file.stat().st_mode) for file in private} == {0o600}
    subprocess.run(["cp", "-r", f"{tmp_path}/made/bus/.", bus], check=True)
    (fleet.folder / "bus").symlink_to(bus)
    fleet.starts_broker()
    stepd = (bus / "stepd.toml").read_text()
    (bus / "stepd.toml").write_text(stepd.replace("travel_s = 1.5", "travel_s = 0.2"))
    fleet.starts_stepd("bus")
    phone.gets_access(stepctl, fleet.folder / "fleet/vehicles/bus", "--rider", "anna")
    opened = phone.opens(fleet.radio("bus"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")


def test_keys_that_are_none_or_are_anothers_request_make_no_vehicle(fleet, stepctl, phone, tmp_path):
    text = stepctl("provision", "keys", tmp_path / "bus").stdout.strip()
    header, payload, signature = text.split(".")
    claims = proto.from_json(proto.from_base64url(payload))
    other = proto.base64url(proto.to_json(claims | {"encryption_key": proto.base64url(bytes(32))}))
    for number, wrong in enumerate(("", "rubbish", phone.asks(), f"{header}.{other}.{signature}", text[:-4] + "AAAA")):
        ended = stepctl(
            *("provision", "vehicle", tmp_path / f"wrong{number}", "--operator", fleet.folder / "fleet", "--keys"),
            written(tmp_path, wrong, "keys"),
        )
        assert ended.status == 65 and "not a vehicle's keys" in ended.error
        assert not (tmp_path / f"wrong{number}").exists()
    alone = stepctl("provision", "vehicle", tmp_path / "alone", "--keys", written(tmp_path, text, "keys"))
    assert alone.status == 64 and "--keys is for --operator" in alone.error


# --- One of a list, and nothing to list ---


def test_one_of_a_list_is_shown_with_all_that_is_known_of_it(vehicle, stepctl):
    nothing = stepctl("operator", "tokens", vehicle.folder)
    assert (nothing.status, nothing.stdout, nothing.stderr) == (0, "", "no tokens\n")
    assert stepctl("operator", "riders", vehicle.folder).stderr == "no riders\n"
    assert stepctl("operator", "tags", vehicle.folder).stderr == "no tags\n"
    vehicle.rider("alice")
    (token,) = stepctl("operator", "tokens", vehicle.folder, "--json").objects
    one = stepctl("operator", "tokens", vehicle.folder, "--json", "--", token["token"]).json
    assert one == token | {"key": proto.thumbprint(vehicle.key("operator/token"))}
    shown = stepctl("operator", "tokens", vehicle.folder, "--", token["token"]).stdout
    assert f"device   {grouped(token['device_key'])}" in shown
    rider = stepctl("operator", "riders", vehicle.folder, "alice", "--json").json
    assert rider["entries"] == [token]
    car = stepctl("operator", "vehicles", vehicle.folder, "car", "--json").json
    assert car["signing_key"] == proto.thumbprint(vehicle.key("keys/signing")) and car["last_event"] is None
    for kind in ("tokens", "riders", "tags"):
        ended = stepctl("operator", kind, vehicle.folder, "nobody")
        assert (ended.status, ended.error) == (64, f"nobody: no such {kind[:-1]}")


# --- The broker, after a revocation ---


def test_a_revoked_riders_certificate_is_refused_by_the_broker_and_a_new_one_is_not(vehicle, stepctl, phone, tmp_path):
    alice = vehicle.rider("alice")
    phone.gets_access(stepctl, vehicle.folder, "--for", "1h")
    # Of two tokens of a device one is taken back: the other still needs the broker.
    granted(stepctl, vehicle.folder, phone.asks(), "--for", "2h")
    first, second = (each["token"] for each in stepctl("operator", "tokens", vehicle.folder, "--json", "--rider", "anna").objects)
    one = stepctl("operator", "revoke", vehicle.folder, f"--token={second}", "--json").json
    assert one["is_list_new"] is False
    assert stepctl("operator", "revoke", vehicle.folder, f"--token={first}", "--json").json["is_list_new"] is True
    both = x509.load_pem_x509_crl((vehicle.folder / "tls/crl.pem").read_bytes())
    authority = x509.load_pem_x509_certificate((vehicle.folder / "tls/ca.pem").read_bytes())
    assert both.is_signature_valid(authority.public_key()) and len(list(both)) == 2
    assert both.next_update_utc == authority.not_valid_after_utc, "a list that ends locks everybody out"
    wait_until(lambda: phone.types("status").status == 5, "the vehicle has the notice")
    vehicle.broker.signal(signal.SIGHUP)
    wait_until(lambda: phone.types("status").status == 77, "the broker lets the device in no more")
    assert alice.types("status").status == 0
    phone.gets_access(stepctl, vehicle.folder, "--for", "3h")
    assert phone.types("status").status == 0


def test_a_revoked_rider_with_a_folder_gets_another_certificate_with_a_new_token(vehicle, stepctl):
    alice = vehicle.rider("alice")
    before = (alice.folder / "rider.pem").read_bytes()
    assert stepctl("operator", "revoke", vehicle.folder, "--rider", "alice").status == 0
    vehicle.broker.signal(signal.SIGHUP)
    wait_until(lambda: alice.types("status").status == 77, "the broker lets her in no more")
    assert stepctl("provision", "token", vehicle.folder, "--rider", "alice", "--force").status == 0
    assert (alice.folder / "rider.pem").read_bytes() != before
    assert alice.types("status").status == 0


def encoded(key, protected: bool = False) -> bytes:
    """A private key in PEM (PKCS #8)."""
    protection = serialization.BestAvailableEncryption(b"a word") if protected else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


def test_a_change_of_keys_takes_a_key_that_was_made_elsewhere(file_vehicle, stepctl, phone, tmp_path):
    folder, new = file_vehicle.folder, proto.Ed25519PrivateKey.generate()
    file = tmp_path / "next.pem"

    def rotates(*arguments):
        return stepctl("operator", "keys", "rotate", folder, "--timeout", "0.1", *arguments)

    file.write_bytes(encoded(new))
    file.chmod(0o644)
    readable = rotates("--key", file)
    assert readable.status == 77 and "can be read by others" in readable.error, readable
    file.chmod(0o600)
    for content in (
        encoded(proto.X25519PrivateKey.generate()), encoded(ec.generate_private_key(ec.SECP256R1())), encoded(new, True),
        encoded(new)[:-40], b"-----BEGIN PKCS#11 PROVIDER URI-----\nMAA=\n-----END PKCS#11 PROVIDER URI-----\n", b"",
    ):
        file.write_bytes(content)
        refused = rotates("--key", file)
        assert refused.status == 78 and len(refused.stderr.splitlines()) == 1, (content, refused)
    file.write_bytes((folder / "operator/token.jwk").read_bytes())
    assert rotates("--key", file).error.startswith("the next key is known")
    assert not (folder / "operator/next.jwk").exists() and not (folder / "operator/next.seq").exists()
    file.write_bytes(encoded(new))
    announced = rotates("--key", file)
    assert announced.status == 69 and announced.lines[0].startswith("the next key: "), announced
    again = rotates("--key", file, "--force")
    assert again.status == 1 and again.hint == f"`stepctl operator keys rotate {folder}` goes on without a key", again
    switched = rotates("--force")
    assert switched.status == 69, switched
    # The files have what they were given: a token's key cannot be read.
    assert (folder / "operator/token.jwk").read_bytes() == file.read_bytes()
    present, previous = stepctl("operator", "keys", "show", folder, "--json").objects
    assert (present["role"], present["key"]) == ("present", proto.thumbprint(new.public_key()))
    assert previous["role"] == "previous"
    access = json.loads(granted(stepctl, folder, phone.asks(), "--rider", "anna"))
    proto.SignedText.read(access["token"]).verified(new.public_key(), proto.token_header(new.public_key()))
    # The next change has the key's file for its previous one.
    shutil.copy(folder / "operator/token.jwk", tmp_path / "kept")
    assert stepctl("operator", "keys", "retire", folder, "--force", "--timeout", "0.1").status == 69
    for _ in range(2):
        assert rotates("--force").status == 69
    assert (folder / "operator/previous.jwk").read_bytes() == (tmp_path / "kept").read_bytes()


def test_a_key_may_be_one_of_a_services_credentials(file_vehicle, stepctl, tmp_path):
    """systemd gives each service its own folder of files, which nobody else can read although their mode says so."""
    credentials, other = tmp_path / "credentials/service", tmp_path / "credentials/service-of-another"
    key = file_vehicle.folder / "operator/token.jwk"
    for folder in (credentials, other):
        folder.mkdir(parents=True)
        shutil.copy(key, folder / "token.jwk")
        (folder / "token.jwk").chmod(0o440)

    def shows(place, **variables):
        key.unlink()
        key.symlink_to(place / "token.jwk")
        stepctl.environment.pop("CREDENTIALS_DIRECTORY", None)
        stepctl.environment.update(variables)
        return stepctl("operator", "keys", "show", file_vehicle.folder)

    assert shows(credentials, CREDENTIALS_DIRECTORY=str(credentials)).status == 0
    for refused in (
        shows(credentials), shows(other, CREDENTIALS_DIRECTORY=str(credentials)),
        shows(credentials, CREDENTIALS_DIRECTORY=""), shows(credentials, CREDENTIALS_DIRECTORY="/"),
        shows(credentials, CREDENTIALS_DIRECTORY=f"{credentials}/../service-of-another"),
    ):
        assert refused.status == 77 and "can be read by others" in refused.error, refused
