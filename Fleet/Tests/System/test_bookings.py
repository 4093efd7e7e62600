"""What the API answers to good requests and to bad ones."""

import json
import os
import random
import socket
import sqlite3
import ssl
import threading
import time
import tomllib
import uuid
from contextlib import ExitStack, closing
from datetime import datetime, timedelta, timezone
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from joserfc.jwk import OKPKey

import stepproto as proto
from conftest import on_sqlite
from crowd import moment
from programs import PATIENCE, Stepctl, Transcript, wait_until

NOW = datetime.now(timezone.utc)


def problem(answer, status, code) -> dict:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code), body
    return body


@pytest.fixture
def rider(stored, new_rider):
    return new_rider(stored)


@pytest.fixture
def booking(rider, parked):
    answer = rider.books(parked[0], moment(1), moment(3))
    assert answer.status_code == 201, answer.text
    return answer.json()


def asked(rider, booking, action=None, method="POST", **more):
    return rider.asks(method, "/".join(filter(None, ["/v1/bookings", booking["id"], action])), **more)


# --- Booking ---


def test_a_booking_is_its_riders_alone(stored, rider, booking, new_rider):
    assert booking["state"] == "booked" and set(booking["steps"]) == {"left", "right"}
    assert asked(rider, booking, method="GET").json() == booking
    other = new_rider(stored)
    assert other.asks("GET", "/v1/bookings").json() == {"bookings": []}
    for action, method in ((None, "GET"), ("cancel", "POST"), ("end", "POST")):
        problem(asked(other, booking, action, method), 404, "not_found")
    problem(
        asked(other, booking, method="PATCH", json={"to": moment(5)}, headers={"If-Match": "*"}), 404, "not_found")
    problem(asked(other, booking, "access", json={"request": "x"}), 422, "bad_request")


def at_once(rider, wanted: list, ask=lambda copy, one: copy.books(*one)) -> list:
    """What a rider is answered who asks for all of these at the same time, by a connection each."""
    answers = []

    def work(one):
        copy = type(rider).__new__(type(rider))
        copy.__dict__ = rider.__dict__ | {"session": type(rider.session)()}
        copy.session.verify, copy.session.trust_env = rider.session.verify, False
        answers.append(ask(copy, one))

    threads = [threading.Thread(target=work, args=(one,)) for one in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_the_same_request_at_once_is_one_booking(rider, parked):
    key = uuid.uuid4().hex
    answers = at_once(
        rider, [(parked[0], moment(1), moment(2))] * 8, lambda copy, one: copy.books(*one, key=key))
    assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_the_same_request_at_once_is_one_booking_also_where_it_is_the_last_that_is_allowed(stored, parked, new_rider):
    stored.stops()
    stored.changes(bookings=1)
    stored.starts()
    for _ in range(5):
        rider, key = new_rider(stored), uuid.uuid4().hex
        answers = at_once(
            rider, [(parked[0], moment(1), moment(2))] * 8, lambda copy, one: copy.books(*one, key=key))
        assert {answer.status_code for answer in answers} == {201}, [answer.text for answer in answers]
        (made,) = {answer.json()["id"] for answer in answers}
        assert rider.asks("POST", f"/v1/bookings/{made}/cancel").status_code == 200


def test_an_account_has_only_so_many_bookings_however_fast_it_asks(stored, parked, new_rider):
    stored.stops()
    stored.changes(bookings=3)
    stored.starts()
    rider = new_rider(stored)
    answers = at_once(rider, [(parked[hour % 2], moment(hour), moment(hour + 0.9)) for hour in range(1, 13)])
    made = [answer.json() for answer in answers if answer.status_code == 201]
    assert len(made) == 3
    for answer in answers:
        if answer.status_code != 201:
            problem(answer, 409, "too_many_bookings")
    # It is nobody else's limit, and what is cancelled does not count.
    assert new_rider(stored).books(parked[0], moment(20), moment(21)).status_code == 201
    problem(rider.books(parked[0], moment(22), moment(23)), 409, "too_many_bookings")
    assert asked(rider, made[0], "cancel").status_code == 200
    assert rider.books(parked[0], moment(22), moment(23)).status_code == 201


@on_sqlite
def test_a_vehicle_out_of_service_is_not_booked(stored, rider, parked, booking):
    assert stored.types("vehicle", "suspend", "car").stdout == "car: non operational\n"
    problem(rider.books(parked[0], moment(5), moment(6)), 409, "unavailable")
    assert [one["name"] for one in rider.asks("GET", "/v1/vehicles").json()["vehicles"]] == ["van"]
    assert stored.types("vehicle", "resume", "car").stdout == "car: available\n"
    assert rider.books(parked[0], moment(5), moment(6)).status_code == 201
    wrong = stored.types("vehicle", "remove", "car", input="van\n")
    assert (wrong.returncode, "that is not its name" in wrong.stderr) == (64, True)
    assert stored.types("vehicle", "remove", "car", input="car\n").returncode == 0
    assert asked(rider, booking, method="GET").json()["state"] == "cancelled"
    problem(rider.books(parked[0], moment(7), moment(8)), 404, "not_found")


@on_sqlite
@pytest.mark.parametrize("later", ["suspend", "resume"])
def test_a_vehicle_that_is_removed_meanwhile_does_not_come_back(stored, parked, later):
    if later == "resume":
        assert stored.types("vehicle", "suspend", "car").returncode == 0
    ended = {}
    commands = ThreadPool(2)
    # What such a command takes now, several times. A command waits for the database for five seconds at most.
    began = time.monotonic()
    assert stored.types("vehicle", "show", "car").returncode == 0
    pause = min(max(0.7, 5 * (time.monotonic() - began)), 2)
    # While the database is held, both commands have found the vehicle, and wait to change it in this order.
    with closing(sqlite3.connect(stored.folder / "data/fleet.sqlite", isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")
        ended["remove"] = commands.apply_async(stored.types, ("vehicle", "remove", "car"), {"input": "car\n"})
        time.sleep(pause)
        ended[later] = commands.apply_async(stored.types, ("vehicle", later, "car"))
        time.sleep(pause)
        held.execute("ROLLBACK")
    assert ended["remove"].get(PATIENCE).returncode == 0
    refused = ended[later].get(PATIENCE)
    assert (refused.returncode, "no such vehicle" in refused.stderr) == (1, True), refused
    assert stored.sql("SELECT service FROM vehicle WHERE id = ?", parked[0]) == [("removed",)]


# --- Access ---


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path / "phone")


class Device:
    """Where a rider has stepctl."""

    def __init__(self, home):
        home.mkdir()
        self.stepctl = Stepctl(home, Transcript())
        made = self.stepctl("enroll", "--name", "rider")
        assert made.status == 0, made
        self.request = made.stdout.strip()
        self.key = OKPKey.import_key(json.loads((home / ".config/stepctl/device/device.jwk").read_text()))


def test_access_is_for_the_booking_and_the_device_alone(stored, parked, new_rider, device, tmp_path):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], moment(1), moment(3), steps=["left"]).json()
    answer = asked(rider, made, "access", json={"request": device.request})
    assert answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/plain"), answer.text
    operator = OKPKey.import_key(rider.session.get(stored.url + "/v1/jwks").json()["keys"][0])
    code, token, _ = proto.read_access(
        answer.text, proto.ed25519_key(proto.from_base64url(device.key.as_dict()["x"])),
        proto.ed25519_key(proto.from_base64url(operator.as_dict()["x"])))
    begin, end = (int(datetime.fromisoformat(made[name]).timestamp()) for name in ("from", "to"))
    assert (token["nbf"], token["exp"]) == (begin, end + 900)
    assert token["aud"] == parked[0] == code["uuid"] and token["steps"] == ["left"]
    # Neither the address nor the account is told to a vehicle.
    account = rider.asks("GET", "/v1/account").json()
    assert token["sub"].startswith("b-") and account["id"] not in answer.text and rider.email not in answer.text
    second = rider.books(parked[1], moment(1), moment(3)).json()
    other = asked(rider, second, "access", json={"request": device.request})
    assert proto.from_json(proto.from_base64url(json.loads(other.text)["token"].split(".")[1]))["sub"] != token["sub"]


@on_sqlite
def test_access_that_has_ended_is_forgotten_and_its_certificate_ends_too(stored, parked, new_rider, device):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    answer = asked(rider, made, "access", json={"request": device.request})
    assert answer.status_code == 200, answer.text
    stored.stops()
    columns = "rider, vehicle, steps, begins, device, key, certificate, by_hand"
    (end,) = stored.runs("SELECT certificate_ends FROM token")
    assert time.time() + 86_000 < int(end) < time.time() + 90_000
    # As it will be in three days.
    stored.runs(f"""
      INSERT INTO token (jti, expires, certificate_ends, {columns})
      SELECT '{uuid.uuid4()}', expires - 3 * 86400, certificate_ends - 3 * 86400, {columns} FROM token""")
    assert len(issued(stored)) == 2
    stored.starts()
    wait_until(lambda: len(issued(stored)) == 1, "it is forgotten")
    checked = stored.types("check", stored.folder)
    assert checked.returncode == 0, checked
    assert stored.types("revoke", "--booking", made["id"]).stdout == "1 token revoked\n"


@on_sqlite
def test_a_certificate_in_anothers_name_is_not_given(stored, parked, new_rider):
    device, key = proto.Ed25519PrivateKey.generate(), ec.generate_private_key(ec.SECP256R1())
    jwk = OKPKey.import_key(
        {"kty": "OKP", "crv": "Ed25519"}
        | {
            "x": proto.base64url(device.public_key().public_bytes_raw()),
            "d": proto.base64url(device.private_bytes_raw()),
        })
    rider = new_rider(stored, jwk)
    made = rider.books(parked[0], moment(1), moment(2)).json()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "operator")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    request = proto.sign_request("otto", csr.public_bytes(serialization.Encoding.DER), device, int(time.time()))
    problem(asked(rider, made, "access", json={"request": request}), 422, "bad_request")


@on_sqlite
def test_a_device_that_was_revoked_gets_nothing_more(stored, parked, new_rider, device):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    thumbprint = device.key.thumbprint()
    revoked = stored.types("revoke", "--device", thumbprint).stdout
    assert revoked == "1 token revoked, 1 login ended; the device gets no access any more with this key\n"
    problem(asked(rider, made, "access", json={"request": device.request}), 409, "device_revoked")
    assert stored.types("revoke", "--device", "nonsense").returncode == 1
    # One in 64 begins with a hyphen. Nobody has this one: it may be mistyped.
    unknown = stored.types("revoke", "--device", "-" + "A" * 42)
    assert unknown.returncode == 1 and "no login and no token is of a device with the key -AAA" in unknown.stderr, unknown


def test_a_device_stays_revoked_and_another_key_lets_its_owner_in_again(stored, parked, new_rider, device, tmp_path):
    rider = new_rider(stored, device.key)
    tokens = rider.login(rider.email)
    rider.access = tokens["access_token"]
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    # It has no token, of which the operator's ledger would know.
    revoked = stored.types("revoke", "--device", device.key.thumbprint())
    said = "0 tokens revoked, 1 login ended; the device gets no access any more with this key\n"
    assert revoked.stdout == said, revoked
    problem(asked(rider, made, "access", json={"request": device.request}), 409, "device_revoked")
    refused = rider.refresh(tokens["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant"), refused.text
    # Whoever knows the password logs in with it, to no avail, also when the server was started anew.
    stored.stops()
    stored.starts()
    rider.access = rider.login(rider.email)["access_token"]
    problem(asked(rider, made, "access", json={"request": device.request}), 409, "device_revoked")
    assert stored.types("revoke", "--device", device.key.thumbprint()).stdout.startswith("0 tokens revoked, 1 login ")
    another = Device(tmp_path / "another")
    rider.key = another.key
    rider.access = rider.login(rider.email)["access_token"]
    assert asked(rider, made, "access", json={"request": another.request}).status_code == 200


@pytest.mark.parametrize("taken", ["vehicle", "device"])
def test_access_that_is_taken_back_while_it_is_given_is_not_given(stored, parked, new_rider, device, taken):
    """Whatever comes first: who has a token has one that is revoked."""
    rider, tokens = new_rider(stored, device.key), []
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    commands = {"vehicle": ("vehicle", "suspend", "car"), "device": ("revoke", "--device", device.key.thumbprint())}

    def take_back(*_):
        time.sleep(random.uniform(0, 0.1))
        return stored.types(*commands[taken])

    def take(copy, _):
        answer = asked(copy, made, "access", json={"request": device.request})
        if answer.status_code == 200:
            tokens.append(claims(answer.json()["token"])["jti"])
        return answer

    with ThreadPool(1) as pool:
        ended = pool.apply_async(take_back)
        answers = at_once(rider, [(made,)] * 7, take)
        assert ended.get().returncode == 0, ended.get()
    for answer in answers:
        if answer.status_code != 200:
            problem(answer, 409, {"vehicle": "unavailable", "device": "device_revoked"}[taken])
    assert set(tokens) == issued(stored) and issued(stored) <= withdrawn(stored)
    if not tokens:
        # Nothing was used of the booking.
        assert asked(rider, made, method="GET").json()["state"] == "booked"
    checked = stored.types("check", stored.folder)
    assert checked.returncode == 0, checked


def claims(token: str) -> dict:
    return json.loads(proto.from_base64url(token.split(".")[1]))


def ledger_of(server) -> Path:
    return server.folder / "operator/operator/ledger.json"


def withdrawn(server) -> set:
    """The tokens that vehicles are told to refuse."""
    return set(server.runs("SELECT jti FROM token WHERE withdrawn IS NOT NULL"))


def issued(server) -> set:
    return set(server.runs("SELECT jti FROM token"))


def noted(server) -> set:
    """What commands by hand know to be revoked: names of tokens, and of devices."""
    return {one.get("jti") or one["jkt"] for one in json.loads(ledger_of(server).read_text())["revoked"]}


def taken_back(server, rider, made, way: str, end: str) -> bool:
    commands = {
        "vehicle": ("vehicle", "suspend", "car"), "booking": ("revoke", "--booking", made["id"]),
        "account": ("revoke", "--account", rider.email), "suspended": ("account", "suspend", rider.email),
        "device": ("revoke", "--device", rider.key.thumbprint()),
    }
    if way == "end":
        return asked(rider, made, "end").status_code == 200
    if way == "shorten":
        changed = asked(rider, made, method="PATCH", json={"to": end}, headers={"If-Match": "*"})
        return changed.status_code == 200
    return server.types(*commands[way]).returncode == 0


@on_sqlite
@pytest.mark.parametrize("way", ["end", "shorten", "vehicle", "booking", "account", "suspended", "device"])
def test_a_revocation_does_not_wait_for_the_operators_folder(stored, parked, new_rider, device, way):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], None, moment(3)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    (jti,), end, whole = issued(stored), moment(1), ledger_of(stored).read_text()
    ledger_of(stored).write_text("{")
    assert taken_back(stored, rider, made, way, end)
    assert withdrawn(stored) == {jti}
    assert "ledger.json is damaged" in stored.log()
    # Commands by hand know it when they can.
    ledger_of(stored).write_text(whole)
    stored.stops()
    stored.starts()
    assert noted(stored) & {jti, device.key.thumbprint()}


def test_what_was_never_marked_for_it_is_withdrawn_all_the_same(stored, parked, new_rider, device):
    """An older server has cancelled a booking, and died before it withdrew the access."""
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], None, moment(3)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    stored.kill()
    stored.runs(f"UPDATE booking SET state = 'cancelled' WHERE id = '{made['id']}'")
    assert "should be revoked" in stored.types("check", stored.folder).stdout
    stored.starts()
    wait_until(lambda: issued(stored) <= withdrawn(stored), "it is withdrawn")
    wait_until(lambda: stored.types("check", stored.folder).returncode == 0, "nothing is wrong")


@on_sqlite
def test_a_device_that_is_revoked_loses_what_the_operator_gave_it_by_hand_too(stored, parked, new_rider, device):
    new_rider(stored, device.key)
    # Of this the server's database knows nothing.
    given = device.stepctl(
        "provision", "token", stored.folder / "operator/vehicles/van", "--device", device.request, "--rider", "anna")
    assert given.status == 0, given
    revoked = stored.types("revoke", "--device", device.key.thumbprint()).stdout
    assert revoked.startswith("1 token revoked, 1 login ended; "), revoked
    assert withdrawn(stored) == issued(stored) and len(issued(stored)) == 1
    assert noted(stored) == {device.key.thumbprint()}
    again = device.stepctl(
        "provision", "token", stored.folder / "operator/vehicles/car", "--device", device.request, "--rider", "anna")
    assert again.status == 1 and "is revoked" in again.stderr, again


@on_sqlite
def test_a_ledger_that_is_damaged_is_the_operators_trouble_and_names_no_file_to_a_rider(
    stored, parked, new_rider, device
):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], None, moment(3)).json()
    ledger_of(stored).write_text("{")
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    checked = stored.types("check", stored.folder)
    assert (checked.returncode, "ledger.json is damaged" in checked.stderr) == (65, True), checked
    # Without the key, nobody gets anything.
    key = stored.folder / "operator/operator/token.jwk"
    whole = key.read_text()
    key.write_text("{")
    refused = asked(rider, made, "access", json={"request": device.request})
    key.write_text(whole)
    problem(refused, 503, "busy")
    assert str(stored.folder) not in refused.text and "token.jwk" not in refused.text
    assert "token.jwk" in stored.log()


def test_one_account_leaves_a_vehicle_to_others(stored, parked, new_rider, device, tmp_path):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], None, moment(22)).json()
    for _ in range(8):
        assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    refused = problem(asked(rider, made, "access", json={"request": device.request}), 409, "too_many_access")
    end = datetime.fromisoformat(made["to"]) + timedelta(minutes=15)
    assert datetime.fromisoformat(refused["from"]) == end
    # Neither does it get more by ending the booking, nor by another device.
    assert asked(rider, made, "end").status_code == 200
    made = rider.books(parked[0], None, moment(22)).json()
    another = Device(tmp_path / "another")
    rider.key = another.key
    rider.access = rider.login(rider.email)["access_token"]
    problem(asked(rider, made, "access", json={"request": another.request}), 409, "too_many_access")
    assert asked(rider, made, "cancel").status_code == 200
    other = new_rider(stored, device.key)
    made = other.books(parked[0], None, moment(22)).json()
    # However fast it asks.
    answers = at_once(
        other, [made] * 12, lambda copy, one: asked(copy, one, "access", json={"request": device.request}))
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [409] * 4, [one.text for one in answers]
    assert len(issued(stored)) == 16
    checked = stored.types("check", stored.folder)
    assert checked.returncode == 0, checked


def test_who_is_suspended_while_a_request_comes_books_nothing(stored, parked, rider):
    content = json.dumps({"vehicle": parked[0], "to": moment(2)}).encode()
    proof = rider.proof("POST", "/v1/bookings", rider.access)
    head = "POST /v1/bookings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Authorization: DPoP {rider.access}\r\nDPoP: {proof}\r\nContent-Length: {len(content)}\r\n\r\n"
    with connected(stored) as stream:
        stream.sendall(head.encode() + content[:-1])
        # It has begun to read when it has answered one that came later.
        rider.asks("GET", "/v1/account")
        assert stored.types("account", "suspend", rider.email).returncode == 0
        stream.sendall(content[-1:])
        assert stream.recv(100).startswith(b"HTTP/1.1 401")
    assert json.loads(stored.types("booking", "list", "--json").stdout) == {"bookings": []}


def test_many_bookings_hide_none_that_is_not_over_and_an_export_has_all(stored, parked, new_rider, device):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], None, moment(3)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    account, begin = rider.asks("GET", "/v1/account").json()["id"], int(time.time()) + 100_000
    rows = ", ".join(
        f"('{uuid.uuid4()}', '{parked[0]}', '{account}', 'b-{n}', {begin + n}, {begin + n + 1}, 'left', 'cancelled', 0, 1, 1)"
        for n in range(201))
    insert = f"""INSERT INTO booking
      (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created) VALUES {rows}"""
    stored.runs(insert)
    listed = rider.asks("GET", "/v1/bookings").json()["bookings"]
    assert len(listed) == 200 and listed[0]["id"] == made["id"]
    exported = rider.asks("GET", "/v1/account/export").json()
    assert len(exported["bookings"]) == 202
    (access,) = exported["access"]
    assert (access["booking"], access["device"], access["revoked"]) == (made["id"], device.key.thumbprint(), False)
    end = datetime.fromisoformat(made["to"]) + timedelta(minutes=15)
    assert datetime.fromisoformat(access["ends"]) == end


@on_sqlite
def test_a_ledger_that_cannot_be_read_keeps_nobody_from_forgetting_logins(stored, rider):
    stored.stops()
    ledger_of(stored).write_text("{")
    stored.runs("UPDATE session SET refresh_expires = 1")
    stored.starts()
    wait_until(lambda: not stored.runs("SELECT id FROM session"), "the login is forgotten")
    assert '"housekeeping failed"' in stored.log()


def test_an_account_that_is_deleted_leaves_no_booking_and_no_access(stored, parked, new_rider, device):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    assert made["id"] in rider.asks("GET", "/v1/account/export").text
    assert rider.asks("DELETE", "/v1/account").status_code == 204
    problem(asked(rider, made, method="GET"), 401, "unauthorized")
    assert new_rider(stored).books(parked[0], moment(0.1), moment(2)).status_code == 201


@on_sqlite
def test_access_of_an_account_is_taken_back_by_its_address_or_id(stored, parked, new_rider, device):
    rider = new_rider(stored, device.key)
    made = rider.books(parked[0], moment(0.1), moment(2)).json()
    assert asked(rider, made, "access", json={"request": device.request}).status_code == 200
    assert stored.types("revoke", "--account", rider.email).stdout == "1 token revoked\n"
    assert asked(rider, made, method="GET").json()["state"] == "cancelled"
    # It is not kept out.
    again = rider.books(parked[0], moment(0.1), moment(2)).json()
    identity = rider.asks("GET", "/v1/account").json()["id"]
    assert stored.types("revoke", "--account", identity).stdout == "0 tokens revoked\n"
    assert asked(rider, again, method="GET").json()["state"] == "cancelled"
    for stranger in ("nobody@example.org", str(uuid.uuid4()), "../vehicles"):
        refused = stored.types("revoke", "--account", stranger)
        assert (refused.returncode, refused.stderr) == (1, "stepfleet: error: no such account\n"), refused


# --- A vehicle that joins ---


def enrolment(code: str, name=None, common_name="controller", topic=None) -> dict:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    encryption = proto.base64url(proto.X25519PrivateKey.generate().public_key().public_bytes_raw())
    signing = proto.base64url(proto.Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    body = {
        "code": code,
        "id": str(uuid.uuid4()),
        "topic": topic or f"fleet/{uuid.uuid4().hex[:8]}",
        "steps": [{"id": "left", "side": "left", "major": 1}, {"id": "right", "side": "right", "major": 2}],
        "keys": {
            "encryption": {"kty": "OKP", "crv": "X25519", "x": encryption},
            "signing": {"kty": "OKP", "crv": "Ed25519", "x": signing},
        },
        "certificate_request": proto.base64url(csr.public_bytes(serialization.Encoding.DER)),
    }
    return body | ({"name": name} if name else {})


@pytest.fixture
def code(stored):
    return stored.types("vehicle", "add", "Bus").stdout.split("with the code ")[1].split(",")[0]


def test_a_vehicle_joins_once_with_its_code(stored, rider, code):
    wanted = enrolment(code, "Bus")
    answer = rider.post("/v1/enrolments", json=wanted)
    assert answer.status_code == 201, answer.text
    got = answer.json()
    authority = x509.load_pem_x509_certificate(got["authority"].encode())
    certificate = x509.load_pem_x509_certificate(got["certificate"].encode())
    certificate.verify_directly_issued_by(authority)
    assert certificate.subject.rfc4514_string() == f"CN=controller:{wanted['id']}"
    assert got["broker"] == {"host": "localhost", "port": stored.broker_port}
    assert got["keys"][0]["crv"] == "Ed25519"
    (listed,) = rider.asks("GET", "/v1/vehicles").json()["vehicles"]
    assert (listed["id"], listed["name"], listed["state"]) == (wanted["id"], "Bus", "available")
    problem(rider.post("/v1/enrolments", json=enrolment(code)), 403, "bad_code")


@on_sqlite
def test_a_code_is_not_lost_to_a_request_that_cannot_be_granted(stored, rider, code):
    problem(rider.post("/v1/enrolments", json=enrolment("AAAA-BBBB-CCCC")), 403, "bad_code")
    problem(rider.post("/v1/enrolments", json=enrolment(code, "Train")), 409, "other_name")
    problem(rider.post("/v1/enrolments", json=enrolment(code, common_name="operator")), 400, "malformed")
    bad = enrolment(code)
    bad["steps"][1]["side"] = "left"
    problem(rider.post("/v1/enrolments", json=bad), 400, "malformed")
    assert rider.post("/v1/enrolments", json=enrolment(code)).status_code == 201


@on_sqlite
@pytest.mark.parametrize("wrong", ["request", "topic"])
def test_a_code_ends_when_it_was_to_end_however_often_it_failed(stored, parked, code, rider, wrong):
    def expires() -> int:
        (end,) = stored.runs("SELECT expires FROM invitation WHERE name = 'Bus'")
        return int(end)

    soon = int(time.time()) + 600
    assert expires() > soon
    stored.runs(f"UPDATE invitation SET expires = {soon}")
    if wrong == "request":
        bad, status, error = enrolment(code, common_name="operator"), 400, "malformed"
    else:
        (car,) = (stored.folder / "operator").rglob("car/vehicle.toml")
        taken = tomllib.loads(car.read_text())["topic"]
        bad, status, error = enrolment(code, topic=taken), 409, "taken"
    for _ in range(2):
        problem(rider.post("/v1/enrolments", json=bad), status, error)
    assert expires() == soon
    stored.runs(f"UPDATE invitation SET expires = {int(time.time())}")
    problem(rider.post("/v1/enrolments", json=enrolment(code)), 403, "bad_code")


def test_of_two_vehicles_with_one_code_one_joins(stored, rider, code):
    answers = []

    def join():
        import requests

        answers.append(
            requests.post(stored.url + "/v1/enrolments", json=enrolment(code), verify=stored.verify).status_code)

    os.environ.pop("REQUESTS_CA_BUNDLE", None)
    threads = [threading.Thread(target=join) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + [403] * 5


# --- Bodies ---


@on_sqlite
def test_bodies_are_read_strictly(rider, parked):
    def post(content: bytes, type="application/json", **headers):
        return rider.asks("POST", "/v1/bookings", data=content, headers={"Content-Type": type, **headers})

    good = {"vehicle": parked[0], "from": moment(1), "to": moment(2)}
    text = json.dumps(good)
    problem(post(b""), 400, "malformed")
    problem(post(text.encode(), type="text/plain"), 415, "media_type")
    problem(post(b"[]"), 400, "malformed")
    problem(post(text.encode()[:-1]), 400, "malformed")
    problem(post(text.encode() + b" x"), 400, "malformed")
    problem(post((text[:-1] + f', "to": "{moment(9)}"}}').encode()), 400, "malformed")
    problem(post((text[:-1] + ', "form": 1}').encode()), 400, "malformed")
    problem(post((text[:-1] + ', "steps": ' + "[" * 2000 + "]" * 2000 + "}").encode()), 400, "malformed")
    problem(post(json.dumps(good | {"vehicle": "car"}).encode()), 400, "malformed")
    problem(post(json.dumps(good | {"to": "tomorrow"}).encode()), 400, "malformed")
    problem(post(json.dumps(good | {"to": "2027-02-29T00:00:00Z"}).encode()), 400, "malformed")
    # Spaces before a parameter's semicolon mean nothing.
    assert post(text.encode(), type="Application/JSON ; charset=utf-8").status_code == 201


def connected(server) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=server.verify)
    return context.wrap_socket(socket.create_connection(("localhost", server.port)), server_hostname="localhost")


HEAD = b"POST /v1/accounts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_is_cut_off_is_no_failure_of_the_server(server):
    served = '"route":"/v1/accounts","status":"400"'
    before = server.log().count(served)
    failures = server.log().count('"failed"')
    with connected(server) as stream:
        # RFC 9112 6.1: the last coding has to be chunked.
        stream.sendall(HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}")
        assert stream.recv(100).startswith(b"HTTP/1.1 400")
    with connected(server) as stream:
        stream.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\nno number\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 400")
    with connected(server) as stream:
        stream.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    wait_until(lambda: server.log().count(served) == before + 3, "the server has noticed that the body does not come")
    assert server.log().count('"failed"') == failures, "strangers do not fill the log"


def test_a_body_of_ten_megabytes_is_refused_whether_it_says_so_or_not(server):
    with connected(server) as stream:
        stream.sendall(HEAD + b"Content-Length: 10485760\r\n\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 413")
    with connected(server) as stream:
        stream.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(160):
                stream.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        except OSError:
            pass
        stream.settimeout(PATIENCE)
        try:
            assert stream.recv(100).startswith(b"HTTP/1.1 413")
        except ConnectionError:
            pass
    import requests

    assert requests.get(server.url + "/healthz", verify=server.verify).json() == {"status": "ok"}


def test_a_body_that_does_not_come_is_not_waited_for(server):
    with connected(server) as stream:
        stream.settimeout(PATIENCE)
        stream.sendall(HEAD + b'Content-Length: 100\r\n\r\n{"email":')
        assert stream.recv(100).startswith(b"HTTP/1.1 408")


# --- The server itself ---


def test_the_operators_socket_is_the_operators_alone(stored):
    assert (stored.folder / "run").stat().st_mode & 0o777 == 0o700
    for file in ("stepfleet.json", "tls/server.key", "operator/operator/token.jwk"):
        assert (stored.folder / file).stat().st_mode & 0o077 == 0, file
    database = stored.folder / "data/fleet.sqlite"
    assert stored.database or database.stat().st_mode & 0o077 == 0


def test_a_second_server_is_kept_out_and_a_stopped_one_says_so(stored):
    second = stored.types("serve", stored.folder)
    assert (second.returncode, "another stepfleet serves" in second.stderr) == (69, True), second
    assert stored.stops() == 0
    assert '"stopped"' in stored.log()
    ended = stored.types("vehicle", "list")
    assert (ended.returncode, "no stepfleet serves" in ended.stderr) == (69, True), ended
    stored.starts()
    assert stored.types("vehicle", "list").returncode == 0


def test_a_folder_too_deep_for_a_socket_is_refused_at_the_start(server, tmp_path_factory):
    base = tmp_path_factory.mktemp("d")
    # One byte more than there can be.
    folder = base / ("x" * (104 - len(f"{base}//fleet/run/admin.sock")))
    folder.mkdir()
    made = server.types("init", folder / "fleet", "--host", "localhost")
    assert made.returncode == 0, made
    ended = server.types("serve", folder / "fleet")
    assert (ended.returncode, "at most 103 bytes" in ended.stderr) == (74, True), ended


def test_metrics_and_document_are_served(server):
    import requests

    get = lambda path: requests.get(server.url + path, verify=server.verify)
    get("/healthz")
    get("/nowhere/at/all")
    text = server.metrics()
    assert 'route="/healthz"' in text and "nowhere" not in text and 'le="+Inf"' in text
    assert get("/openapi.json").json()["openapi"] == "3.1.0"
    # The operator's business is nobody else's.
    assert get("/metrics").status_code == 404
    assert server.types("account", "list").returncode == 0
    assert 'route="/accounts"' not in server.metrics()


def test_a_method_that_a_path_has_not_is_told_from_a_path_that_is_not(server):
    def ask(method, path):
        return requests.request(method, server.url + path, verify=server.verify)

    for path, others, allowed in (
        ("/healthz", ("POST", "DELETE", "OPTIONS", "QUERY"), "GET, HEAD"),
        ("/v1/bookings/0/cancel", ("GET", "HEAD", "PATCH", "TRACE"), "POST"),
        ("/v1/bookings/0", ("POST", "PUT"), "GET, HEAD, PATCH"),
    ):
        for method in others:
            answer = ask(method, path)
            assert (answer.status_code, answer.headers.get("Allow")) == (405, allowed), (method, path)
            if method != "HEAD":
                problem(answer, 405, "method")
    assert ask("HEAD", "/healthz").status_code == 200
    assert ask("POST", "/nothing").status_code == 404


def test_a_stranger_who_is_put_off_is_no_failure(stored):
    for thousand in range(10):
        grants = "INSERT INTO device_grant (device_code, user_code, state, expires) VALUES " + ", ".join(
            f"('{thousand}-{n}', '{thousand}-{n}', 'pending', {int(time.time()) + 600})" for n in range(1000))
        stored.runs(grants)
    refused = requests.post(
        stored.url + "/oauth/device_authorization", data={"client_id": "stepctl"}, verify=stored.verify)
    problem(refused, 503, "busy")
    assert '"failed"' not in stored.log()


def test_an_ipv6_address_is_in_brackets(server, tmp_path):
    made = server.types("init", tmp_path / "fleet", "--host", "::1", "--port", "8499")
    assert made.returncode == 0 and " at https://[::1]:8499, " in made.stdout, made


def test_init_leaves_nothing_when_it_cannot_and_takes_no_folder_that_is_there(server, tmp_path):
    taken = server.types("init", tmp_path, "--host", "localhost")
    assert (taken.returncode, "already exists" in taken.stderr) == (1, True), taken
    for arguments in (["--host", "not a host"], ["--host", "localhost", "--database", "postgresql:///x?host=/nowhere"]):
        failed = server.types("init", tmp_path / "new", *arguments)
        assert failed.returncode != 0 and failed.stderr.count("error: ") == 1, failed
        assert not (tmp_path / "new").exists()


@on_sqlite
def test_the_operators_key_changes_and_nobody_is_locked_out(stored, rider, parked):
    before = rider.session.get(stored.url + "/v1/jwks").json()["keys"]
    assert "next key" in stored.types("keys", "rotate").stdout
    announced = rider.session.get(stored.url + "/v1/jwks").json()["keys"]
    assert len(announced) == 2 and announced[0] == before[0]
    assert "signs from now on" in stored.types("keys", "rotate").stdout
    switched = rider.session.get(stored.url + "/v1/jwks").json()["keys"]
    assert switched[0] == announced[1] and before[0] in switched
    # What keeps the next step is said.
    for step, reason in (("rotate", "still counts"), ("retire", "not known to have the present key")):
        refused = stored.types("keys", step)
        assert (refused.returncode, reason in refused.stderr) == (1, True), refused
