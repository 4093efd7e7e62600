"""The operator's notice, made by a program in Python: what is revoked, and which keys count."""

import json
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import client
import stepproto as proto
from peers import Connection
from vehicle import login_file


class Operator:
    """Whoever has the vehicle's `operator` folder."""

    def __init__(self, vehicle):
        self.vehicle, self.key = vehicle, vehicle.key("operator/token")
        self.seq = 0

    @property
    def identity(self) -> client.Vehicle:
        file = login_file(self.vehicle.folder, "operator", "operator/client.pem", "operator/client.key")
        return client.Vehicle.read(str(file))

    @property
    def topic(self) -> str:
        return f"{self.vehicle.topic}/operator"

    def notice(self, *revoked: dict, keys=None, by=None, **claims) -> bytes:
        self.seq += 1
        claims = {
            "vehicle": self.vehicle.uuid,
            "seq": self.seq,
            "iat": int(time.time()),
            "keys": [proto.jwk(key.public_key()) for key in keys or [self.key]],
            "revoked": list(revoked),
        } | claims
        return proto.sign_notice(claims, by or self.key).encode()

    def publishes(self, payload: bytes):
        with Connection(self.identity) as connection:
            connection.deliver(self.topic, payload, retain=True)

    def tells(self, payload: bytes):
        """Publishes a notice, and waits until the controller has it."""
        self.publishes(payload)
        seq = proto.from_json(proto.from_base64url(payload.decode().split(".")[1]))["seq"]
        self.vehicle.stepd.says(f"the operator's notice {seq} is in force")


@pytest.fixture
def operator(vehicle) -> Operator:
    return Operator(vehicle)


def claims_of(rider) -> dict:
    return proto.from_json(proto.from_base64url((rider.folder / "token.jwt").read_text().split(".")[1]))


def token_of(rider) -> dict:
    claims = claims_of(rider)
    return {"jti": claims["jti"], "until": claims["exp"]}


def device_of(rider) -> dict:
    key = proto.private_key(json.loads((rider.folder / "device.jwk").read_bytes()))
    return {"jkt": proto.thumbprint(key), "until": claims_of(rider)["exp"]}


REVOKED = "the vehicle refused (token_revoked): the operator has withdrawn your token; ask the operator"


def is_revoked(rider) -> bool:
    ended = rider.types("status")
    if ended.status == 0:
        return False
    assert (ended.status, ended.error) == (5, REVOKED)
    return True


def test_a_revoked_rider_is_told_so_and_moves_nothing_while_others_do(vehicle, alice, operator):
    bob = vehicle.rider("bob")
    operator.tells(operator.notice(token_of(alice)))
    ended = alice.moves("open", "left")
    assert (ended.status, ended.error) == (5, REVOKED)
    assert vehicle.motions == []
    assert bob.moves("open", "left").status == 0
    operator.tells(operator.notice(device_of(bob)))
    assert is_revoked(bob) and not is_revoked(alice)


def test_a_revocation_reaches_a_controller_that_was_away_and_outlives_every_restart(vehicle, alice, operator):
    first = operator.notice()
    operator.tells(first)
    vehicle.stepd.kill()
    second = operator.notice(token_of(alice))
    operator.publishes(second)  # The broker keeps it.
    vehicle.starts_stepd()
    vehicle.stepd.says("notice 2 is in force")
    assert is_revoked(alice)
    vehicle.stepd.kill()
    vehicle.broker.kill()  # It keeps nothing over a restart.
    vehicle.starts_all()
    assert is_revoked(alice)
    for old in (first, second):
        operator.publishes(old)
        assert is_revoked(alice), "replayed"
    operator.tells(operator.notice())
    assert not is_revoked(alice)


def test_what_a_stranger_writes_to_the_topic_changes_nothing(vehicle, alice, operator):
    mallory = Ed25519PrivateKey.generate()
    good = operator.notice(token_of(alice))
    forged = [
        operator.notice(token_of(alice), by=mallory),
        operator.notice(token_of(alice), keys=[operator.key, mallory], by=mallory),
        operator.notice(vehicle="00000000-0000-4000-8000-000000000000"),
        good[:-8] + b"AAAAAAAA",
        good + b" ",
        b"",
        b"\xff" * 100,
        b"{" * 8000,
        (alice.folder / "token.jwt").read_bytes().strip(),
    ]
    for payload in forged:
        operator.publishes(payload)
        assert not is_revoked(alice), payload[:40]
    assert "is in force" not in vehicle.stepd.stderr.read_text()
    operator.tells(good)
    assert is_revoked(alice)


def test_only_the_operator_may_write_to_the_topic_and_only_the_controller_hears_it(vehicle, alice, operator):
    with Connection(alice.peer, operator.topic) as rider:
        rider.deliver(operator.topic, operator.notice(token_of(alice)), retain=True)
        assert not is_revoked(alice), "written by a rider"
        operator.tells(operator.notice())
        assert not is_revoked(alice)
        assert rider.messages.empty()


def test_keys_change_and_nobody_is_locked_out_until_the_old_one_is_taken_away(vehicle, alice, operator):
    old, new = operator.key, Ed25519PrivateKey.generate()
    bob = vehicle.rider("bob")
    claims = claims_of(bob)
    (bob.folder / "token.jwt").write_text(proto.sign_token(claims, new))
    bob.vehicle.keeps_secret(bob.folder / "token.jwt")
    assert bob.types("status", "--timeout", "5").status == 69, "nobody has named that key yet"
    operator.tells(operator.notice(keys=[old, new]))
    assert alice.types("status").status == 0 and bob.types("status").status == 0
    operator.tells(operator.notice(keys=[new], by=old))
    assert alice.types("status", "--timeout", "5").status == 69 and bob.types("status").status == 0
    operator.publishes(operator.notice(keys=[old], by=old))
    vehicle.stepd.kill()
    vehicle.starts_stepd()
    assert alice.types("status", "--timeout", "5").status == 69 and bob.types("status").status == 0


def test_a_full_disk_keeps_a_notice_out_and_it_counts_when_it_arrives_again(vehicle, alice, operator):
    # A folder in the journal's temporary place: as little can be written there as on a full disk.
    blocked = vehicle.folder / f"journal.json.{vehicle.stepd.process.pid}.new"
    (blocked / "inside").mkdir(parents=True)
    notice = operator.notice(token_of(alice))
    operator.publishes(notice)
    vehicle.stepd.says("the operator's notice is not in force: the journal cannot be written")
    assert not is_revoked(alice)
    (blocked / "inside").rmdir()
    blocked.rmdir()
    operator.tells(notice)
    assert is_revoked(alice)


def test_a_flood_of_notices_does_not_hold_up_a_rider(vehicle, alice, operator):
    rubbish = operator.notice(token_of(alice), by=Ed25519PrivateKey.generate())
    with Connection(operator.identity) as connection:
        for _ in range(500):
            connection.deliver(operator.topic, rubbish)
    assert alice.moves("open", "left").status == 0
    vehicle.stepd.says("ignored a notice")
    lines = [line for line in vehicle.stepd.stderr.read_text().splitlines() if "ignored a notice" in line]
    assert 1 <= len(lines) <= 20
