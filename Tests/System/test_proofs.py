"""stepd with vehicles whose policies differ in the proofs that they accept."""

import json
import sys
from pathlib import Path

import pytest

import attacks
import client
import stepproto as proto
from peers import Witness, attackers


@pytest.mark.parametrize("attack", attacks.RESERVING_ATTACKS, ids=str)
def test_a_step_is_reserved_for_its_rider_and_not_moved_without_end(attack, vehicle, alice):
    bob = vehicle.rider("bob").peer
    with Witness(vehicle, alice.peer) as witness:
        here = attackers(witness, other_rider=attacks.Rider(bob.device, bob.token))
        payload, _ = attack.build(here)
        motions = vehicle.motions
        assert witness.exchange("left", payload)[-1]["refusal"] == {"code": attack.expected, "retry": True}
        assert vehicle.motions == motions


def by_python(rider, position, *arguments, step="left"):
    """client.py's own words: the position or the refusal."""
    program = Path(client.__file__)
    options = ["--vehicle", rider.file, "--step", step, "--timeout", "40", *map(str, arguments)]
    ended = rider.vehicle.starts("python-client", sys.executable, program, position, *options).ends()
    return ended.json.get("position") or ended.json["refusal"]


def test_a_policy_that_takes_no_copies(parked):
    parked.gains_identifiers(proofs=["beacon", "nfc"], static=False)
    parked.starts_all()
    alice = parked.rider("alice")
    with Witness(parked, alice.peer) as witness:
        here = attackers(witness)
        for attack in attacks.STRICT_ATTACKS:
            payload, _ = attack.build(here)
            assert witness.exchange("left", payload)[-1]["refusal"]["code"] == attack.expected, attack
        # Of the right step's beacon anybody can send a copy.
        statement = witness.ask("right")
        proof = proto.beacon_proof(2, statement["clock"], minor=7)
        copied = client.build(alice.peer, "right", "open", proto.permission(statement, proof))
        assert witness.exchange("right", copied.payload)[-1]["refusal"]["code"] == "proof_not_accepted"
        assert parked.is_unmoved()
        for name in ("honest move", "dynamic tag"):
            payload, _ = attacks.named(name).build(here)
            assert witness.exchange("left", payload)[-1]["phase"] == "idle"
    assert len(parked.motions) == 2


def test_a_policy_that_asks_for_the_nearest_zone(parked):
    parked.gains_identifiers(proofs=["beacon", "nfc"], zone="immediate")
    parked.starts_all()
    with Witness(parked, parked.rider("alice").peer) as witness:
        here = attackers(witness)
        assert here.ask()["policy"] == {"proofs": ["beacon", "nfc"], "zone": "immediate", "static": True}
        for attack in attacks.NEAREST_ATTACKS:
            payload, _ = attack.build(here)
            assert witness.exchange("left", payload)[-1]["refusal"]["code"] == attack.expected, attack
        assert parked.is_unmoved()
        payload, _ = attacks.named("honest move").build(here)
        assert witness.exchange("left", payload)[-1]["phase"] == "idle"


def test_a_program_in_python_moves_steps_by_tags_and_codes(parked):
    parked.gains_identifiers(proofs=["nfc", "qr"])
    parked.starts_all()
    alice = parked.rider("alice")
    label, tag = proto.label(parked.uuid, "left"), parked.tags["right"]
    assert by_python(alice, "open", "--content", label) == "open"
    assert by_python(alice, "close", "--content", label, "--uid", parked.labelled["left"]) == "close"
    assert by_python(alice, "open", "--content", label, "--uid", "04000000000000") == "wrong_step"
    assert by_python(alice, "open", "--content", label, step="right") == "wrong_step"
    uri = tag.read(parked.uuid, "right")
    assert by_python(alice, "open", "--content", uri, "--uid", tag.uid, step="right") == "open"
    assert by_python(alice, "close", "--content", uri, "--uid", tag.uid, step="right") == "stale_proof"
    assert by_python(alice, "open") == "proof_not_accepted"
    assert parked.motions == [("left", "close", "open"), ("left", "open", "close"), ("right", "close", "open")]


def test_a_beacon_that_never_changes_is_known_by_its_minor(parked):
    parked.gains_identifiers(proofs=["beacon"])
    parked.starts_all()
    alice = parked.rider("alice")
    assert by_python(alice, "open", "--minor", 8, step="right") == "wrong_step"
    assert by_python(alice, "open", "--minor", 7, step="right") == "open"
    assert parked.motions == [("right", "close", "open")]


def test_a_tags_counter_is_in_the_journal_before_anything_moves(parked):
    parked.gains_identifiers(proofs=["nfc"])
    parked.starts_all()
    alice, tag = parked.rider("alice"), parked.tags["left"]
    tag.counter = 0xFF_FFFE
    uri = tag.read(parked.uuid, "left")
    assert by_python(alice, "open", "--content", uri, "--uid", tag.uid) == "open"
    journal = json.loads((parked.folder / "journal.json").read_bytes())
    assert journal["tag counters"] == {tag.uid: 0xFF_FFFF}
    # stepd ends when its journal is written.
    parked.stepd.close()
    assert json.loads((parked.folder / "journal.json").read_bytes())["left"]["position"] == "open"
    parked.starts_stepd()
    assert by_python(alice, "close", "--content", uri, "--uid", tag.uid) == "stale_proof"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("keys/left.beacon", "{}", 'not a key in JWK form: expected {"kty":"oct","k":…} of 32 bytes'),
        ("keys/tags.json", "[{}]", "tag 1: expected a uid, a step, and meta_read_key and file_read_key of 32"),
        ("keys/tags.json", "", "not JSON at byte 0: expected a value"),
    ],
)
def test_a_secret_that_cannot_be_read_is_named(parked, name, text, message):
    parked.gains_identifiers()
    (parked.folder / name).write_text(text)
    parked.starts_broker()
    stepd = parked.checks()
    assert stepd.status == 78
    assert f"{name}: {message}" in stepd.stderr


@pytest.mark.parametrize(
    ("name", "key"),
    [("stepd.toml", "operator"), ("vehicle.toml", "signing_key"), ("vehicle.toml", "encryption_key")],
)
def test_a_public_key_of_small_order_is_refused_where_a_file_names_it(parked, name, key):
    parked.edit(name, **{key: proto.base64url(bytes([1]) + bytes(31))})
    ended = parked.checks()
    assert ended.status == 78
    assert f"{key}: " in ended.stderr and "32 bytes that are not a usable key" in ended.stderr
