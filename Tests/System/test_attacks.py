"""Every attack of Tests/Peers on stepd, over a real broker: the right refusal or no answer, and nothing moves."""

import time
from contextlib import ExitStack

import pytest

import attacks
import client
import stepproto as proto
from peers import Witness, attackers
from vehicle import TRAVEL_S, Vehicle

# The two that wait for ten seconds go last, when the vehicle has been running for that long anyway.
SLOW = ("claims.proof older than 10 s", "challenge of 10.5 s ago")
ATTACKS = sorted(attacks.ATTACKS, key=lambda attack: attack.name in SLOW)
# These come while the step moves, and take their time on a busy machine.
WHILE_MOVING = ("command while the step is moving", "command that would turn another rider's motion round")
AT_ONCE = [attack for attack in ATTACKS if not attack.stored and not attack.restarts]
AWAY = [attack for attack in ATTACKS if attack not in AT_ONCE]


@pytest.fixture(scope="module")
def vehicle(stepctl, tmp_path_factory):
    """Its keys' names have a K each, which two of the attacks replace by a Kelvin sign. Each attack has a device of its
    own, and finds the step as the one before has left it: so nobody's step is reserved."""
    with ExitStack() as stack:
        vehicle = Vehicle(tmp_path_factory.mktemp("attacked") / "car", stepctl, stack)
        while not all("K" in proto.thumbprint(vehicle.key(key)) for key in ("keys/encryption", "operator/token")):
            vehicle.provision("--force")
        vehicle.gains_identifiers(proofs=["beacon", "nfc", "qr"], reserve_s=0)
        yield vehicle.starts_all()


@pytest.fixture(scope="module")
def witness(vehicle):
    with Witness(vehicle, vehicle.rider("mallory").peer) as witness:
        witness.kept()
        yield witness


@pytest.fixture(scope="module")
def context(vehicle, witness) -> attacks.Context:
    other = vehicle.rider("bob").peer

    def restart():
        vehicle.stepd.close()
        vehicle.starts_stepd()

    return attackers(witness, restart=restart, other_rider=attacks.Rider(other.device, other.token))


@pytest.fixture
def motions_last(attack, vehicle):
    """As long as an attack needs."""
    def take(seconds: float):
        vehicle.stepd.close()
        vehicle.takes_long(seconds)
        vehicle.starts_stepd()

    if attack.name in WHILE_MOVING:
        take(6)
    yield
    if attack.name in WHILE_MOVING:
        take(TRAVEL_S)


def answers_to(payload: bytes, answers: list[dict]) -> list[dict]:
    return [answer for answer in answers if answer["command"] == proto.digest(payload)]


def codes(answers: list[dict]) -> list[str | None]:
    """Of refusals the codes, of other answers None."""
    return [answer.get("refusal", {}).get("code") for answer in answers]


@pytest.mark.parametrize("attack", AT_ONCE, ids=str)
def test_stands_an_attack(attack, vehicle, witness, context, motions_last):
    payload, retain = attack.build(context.new_rider())
    motions = vehicle.motions
    witness.publish(context.step, payload, retain)
    answers = witness.fence(context.step)
    assert codes(answers_to(payload, answers)) == ([attack.expected] if attack.expected else [])
    assert vehicle.motions == motions, "the step moved"
    assert vehicle.stepd.lives
    if answers[-1]["phase"] == "moving":
        witness.wait_for_rest(context.step)


@pytest.mark.parametrize("attack", AWAY, ids=str)
def test_stands_a_command_that_comes_from_before_its_start(attack, vehicle, witness, context):
    payload, retain = attack.build(context)
    motions = vehicle.motions
    if attack.stored:
        vehicle.stepd.close()
        witness.connection.deliver(vehicle.set_position(context.step), payload, retain)
        vehicle.starts_stepd()
    else:
        witness.publish(context.step, payload, retain)
    answers = answers_to(payload, witness.fence(context.step))
    witness.connection.deliver(vehicle.set_position(context.step), b"", retain=True)
    assert codes(answers) == [attack.expected]
    assert vehicle.motions == motions, "the step moved"
    assert vehicle.stepd.lives


@pytest.mark.parametrize("variant", attacks.VARIANTS, ids=str)
def test_obeys_what_only_looks_odd(variant, vehicle, witness, context):
    before = context.ask()["position"]
    payload, _ = variant.build(context.new_rider())
    motions = len(vehicle.motions)
    answers = witness.exchange(context.step, payload)
    if "challenge" in answers[-1]:
        assert len(vehicle.motions) == motions
    else:
        assert codes(answers) == [None, None], "moving, then idle"
        assert [answer["phase"] for answer in answers] == ["moving", "idle"]
        after = answers[-1]["position"]
        assert (before, after) in {("open", "close"), ("close", "open")}
        assert vehicle.motions[motions:] == [("left", before, after)]
    assert vehicle.stepd.lives


def test_a_crowd_that_asks_takes_nobodys_challenge(vehicle, witness, context):
    """33 riders, eight questions each."""
    riders = [context.new_rider() for _ in range(33)]
    questions = [attacks.draft(rider, "unknown").payload() for rider in riders for _ in range(8)]
    moving = attacks.draft(context.new_rider())
    moving.claims["deadline"] += 5_000 - 100  # The latest that is allowed: the crowd takes its time.
    for question in questions:
        witness.publish("left", question)
    asked = {answer["command"] for answer in witness.fence("left") if "challenge" in answer}
    assert asked >= {proto.digest(question) for question in questions}
    assert codes(witness.exchange("left", moving.payload())) == [None, None], "moving, then at rest"


def test_rubbish_writes_no_lines_of_its_own_into_the_log(vehicle, witness, context):
    """Whoever may publish needs no token for this: the name of a member stands in the reason."""
    time.sleep(1.1)  # One line a second is written of rubbish.
    forged = "\nstepd: left: open for “alice”"
    header = proto.envelope_header(context.encryption_key) | {forged: "\x1b[2J"}
    before = vehicle.stepd.said
    witness.publish("left", proto.seal(context.encryption_key, b"", proto.to_json(header)))
    witness.fence("left")
    # stepd's log has a thread of its own.
    vehicle.stepd.says("no rider's command", after=before)
    log = vehicle.stepd.stderr.read_bytes()[before:].decode()
    assert "no rider's command" in log and "open for “alice”" in log, "it is told"
    assert all("no rider's command" in line for line in log.splitlines())
    assert all(character.isprintable() for character in log.replace("\n", ""))


def test_logs_one_line_a_second_of_rubbish_at_most(vehicle, witness):
    began, before = time.monotonic(), vehicle.stepd.said
    for _ in range(200):
        witness.publish("left", b"rubbish")
    witness.fence("left")
    log = vehicle.stepd.stderr.read_bytes()[before:].decode()
    lines = [line for line in log.splitlines() if "no rider's command" in line]
    assert len(lines) <= 1 + (time.monotonic() - began)


def test_logs_one_line_a_second_of_a_command_that_is_sent_again(vehicle, witness):
    """Whoever has a copy of a command needs no token that is still valid for this."""
    command = client.build(witness.login, "left", "unknown").payload
    witness.exchange("left", command)
    began, before = time.monotonic(), vehicle.stepd.said
    for _ in range(200):
        witness.exchange("left", command)
    vehicle.stepd.says("mallory asked for the status: replayed", after=before)
    log = vehicle.stepd.stderr.read_bytes()[before:].decode()
    lines = [line for line in log.splitlines() if "mallory asked for the status: replayed" in line]
    assert 1 <= len(lines) <= 1 + (time.monotonic() - began)
