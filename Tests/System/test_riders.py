"""Riders whose token or key is not right, riders at the same time, riders who lose their patience."""

import json
import os
import signal
import subprocess
import time

import pytest

import attacks
import client
import stepproto as proto
from peers import PlayedController, Witness, new_challenge
from programs import AS_ANYBODY, blocked, wait_until

UNANSWERED = "the vehicle does not answer; nothing was sent that could move a step"


def claims(rider) -> dict:
    return proto.from_json(proto.SignedText.read(rider.peer.token).payload)


def gives_token(rider, **changes):
    """What the operator signed, but for some claims."""
    operator = rider.vehicle.key("operator/token")
    token = rider.folder / "token.jwt"
    token.write_text(proto.sign_token(claims(rider) | changes, operator) + "\n")
    rider.vehicle.keeps_secret(token)


def refused(ended) -> tuple:
    return ended.status, ended.outcome


def refusal(code: str) -> tuple:
    return 5, {"outcome": "refused", "refusal": code, "retry": proto.REFUSALS[code]}


# --- Tokens ---


def test_a_token_ends(shared_vehicle):
    dora = shared_vehicle.rider("dora", "--for", "1s")
    expires = claims(dora)["exp"]
    wait_until(lambda: time.time() >= expires, "the token's end")
    ended = dora.moves("open", "left", "--json")
    assert refused(ended) == refusal("token_expired")
    assert ended.error == "the vehicle refused (token_expired): the token has expired; ask the operator for a new one"
    assert "token    dora: left, right, expired " in ended.stderr
    status = dora.types("status")
    assert (status.status, status.stdout) == (5, "")

    renewed = shared_vehicle.stepctl("provision", "token", shared_vehicle.folder, "--rider", "dora", "--force")
    assert renewed.status == 0
    shared_vehicle.keeps_secret(dora.folder / "token.jwt")
    assert dora.types("status").status == 0
    assert shared_vehicle.is_unmoved()


def test_a_time_is_the_same_in_every_unit(shared_vehicle):
    for number, time_given in enumerate(("604800s", "10080m", "168h", "7d")):
        given = claims(shared_vehicle.rider(f"unit-{number}", "--for", time_given))
        assert given["exp"] - given["nbf"] == 604800


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"aud": attacks.ELSEWHERE}, "wrong_vehicle"),
        ({"steps": ["right"]}, "wrong_step"),
        ({"nbf": 2**33, "exp": 2**34}, "token_not_yet_valid"),
        ({"nbf": 1, "exp": 2}, "token_expired"),
    ],
    ids=["for another vehicle", "for the other step", "of a later century", "of 1970"],
)
def test_a_token_that_does_not_permit_it_is_refused(shared_vehicle, changes, code):
    erik = shared_vehicle.rider(f"erik-{code}")
    gives_token(erik, **changes)
    assert refused(erik.moves("open", "left", "--json")) == refusal(code)
    assert shared_vehicle.is_unmoved()


def test_a_token_for_one_step_opens_that_one(vehicle):
    frida = vehicle.rider("frida", "--steps", "right")
    assert refused(frida.moves("open", "left", "--json")) == refusal("wrong_step")
    assert frida.moves("open", "right", at="right").status == 0
    assert vehicle.motions == [("right", "close", "open")]


@pytest.mark.parametrize("name", ["device.jwk", "token.jwt"])
def test_a_token_is_good_with_its_own_device_key_only(shared_vehicle, shared_rider, name):
    thief = shared_vehicle.rider(f"thief-of-{name.partition('.')[0]}")
    (thief.folder / name).write_bytes((shared_rider.folder / name).read_bytes())
    before = shared_vehicle.connections
    ended = thief.moves("open", "left")
    assert (ended.status, ended.stdout) == (78, "")
    token, key = thief.folder / "token.jwt", thief.folder / "device.jwk"
    bound = f"{token}: the token is bound to another device key than {key}: take both as the operator made them"
    assert ended.error == bound
    assert shared_vehicle.connections == before, "nothing was sent"
    assert shared_vehicle.is_unmoved()


def test_a_token_of_another_operator_gets_no_answer(shared_vehicle, new_vehicle):
    gina, stranger = shared_vehicle.rider("gina"), new_vehicle("other").rider("gina")
    for name in ("device.jwk", "token.jwt"):
        (gina.folder / name).write_bytes((stranger.folder / name).read_bytes())
    ended = gina.moves("open", "left", "--timeout", "5")
    assert (ended.status, ended.stdout, ended.error) == (69, "", UNANSWERED)
    assert shared_vehicle.is_unmoved()


@pytest.mark.parametrize(
    ("content", "status", "fault"),
    [
        (b"", 78, "{token}: not a token: expected a compact JWT"),
        (b"\n", 78, "{token}: not a token: expected a compact JWT"),
        (b"\xff\xfe", 78, "{token}: not a token: expected a compact JWT"),
        (b"two words", 78, "{token}: not a token: expected a compact JWT"),
        (b"rubbish", 78, "{token}: not a token: "),
        (b"a.b.c", 78, "{token}: not a token: "),
        (b"A" * 9000, 78, "{token}: not a token: "),
        (None, 66, "cannot open {token}: No such file or directory"),
    ],
    ids=["empty", "a line's end", "octets", "two words", "a word", "three letters", "long", "missing"],
)
def test_a_token_file_that_holds_none_is_told(shared_vehicle, shared_rider, content, status, fault):
    token = shared_rider.folder / "token.jwt"
    kept = token.read_bytes()
    try:
        token.write_bytes(content) if content is not None else token.unlink()
        ended = shared_rider.moves("open", "left")
    finally:
        token.write_bytes(kept)
    assert (ended.status, ended.stdout) == (status, "")
    assert ended.error.startswith(fault.format(token=token))
    assert shared_vehicle.is_unmoved()


# --- Keys ---


@pytest.mark.parametrize("name", ["device.jwk", "rider.key"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_not_used(shared_vehicle, shared_rider, name, mode):
    key = shared_rider.folder / name
    key.chmod(mode)
    before = shared_vehicle.connections
    try:
        ended = shared_rider.moves("open", "left")
    finally:
        key.chmod(0o600)
    assert (ended.status, ended.stdout) == (77, "")
    assert ended.error == f"{key}: can be read by others: chmod 600 {key}"
    assert shared_vehicle.connections == before, "nothing was sent"


def test_a_key_that_the_user_cannot_read_is_told(shared_vehicle, shared_rider):
    key = shared_rider.folder / "device.jwk"
    key.chmod(0)
    try:
        ended = shared_rider.moves("open", "left", prefix=AS_ANYBODY)
    finally:
        key.chmod(0o600)
    assert (ended.status, ended.stdout, ended.error) == (77, "", f"cannot open {key}: Permission denied")


@pytest.mark.parametrize(
    "change",
    [
        lambda jwk: b"",
        lambda jwk: b"rubbish",
        lambda jwk: b"[]",
        lambda jwk: json.dumps(jwk | {"crv": "X25519"}).encode(),
        lambda jwk: json.dumps(jwk | {"kty": "EC"}).encode(),
        lambda jwk: json.dumps({name: value for name, value in jwk.items() if name != "d"}).encode(),
        lambda jwk: json.dumps(jwk | {"d": jwk["d"][:-4]}).encode(),
        lambda jwk: json.dumps(jwk | {"d": jwk["d"] + "="}).encode(),
        lambda jwk: json.dumps(jwk | {"x": proto.base64url(bytes(32))}).encode(),
        lambda jwk: json.dumps(jwk).replace('"kty"', '"d":"","kty"').encode(),
    ],
    ids=["empty", "rubbish", "array", "X25519", "EC", "public", "short", "padded", "of another x", "doubled"],
)
def test_a_device_key_that_is_none_is_told_and_not_shown(shared_vehicle, shared_rider, change):
    key = shared_rider.folder / "device.jwk"
    kept = key.read_bytes()
    try:
        key.write_bytes(change(json.loads(kept)))
        ended = shared_rider.moves("open", "left")
    finally:
        key.write_bytes(kept)
    assert (ended.status, ended.stdout) == (78, "")
    assert ended.error.startswith(f"{key}: ")
    assert shared_vehicle.is_unmoved()


# --- At the same time, and at a side ---


def test_a_step_that_moves_is_busy_for_others(parked):
    parked.takes_long(8)
    parked.starts_all()
    alice, bob = parked.rider("alice"), parked.rider("bob")
    with Witness(parked, bob.peer) as witness:
        opening = alice.starts_to_move("open", "left")
        parked.wait_for_motions(("left", "close", "open"))
        statement = witness.ask("left")
        proof = proto.beacon_proof(witness.login.majors["left"], statement["clock"])
        closing = client.build(witness.login, "left", "close", proto.permission(statement, proof))
        assert witness.exchange("left", closing.payload)[-1]["refusal"] == {"code": "busy", "retry": True}
    other = bob.moves("open", "right", at="right")
    assert (other.status, other.stdout) == (0, "the right step is open\n")
    ended = opening.ends()
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")
    assert parked.motions == [("left", "close", "open"), ("right", "close", "open")]
    assert parked.stepd.lives


def test_ten_riders_at_once_move_a_step_once(vehicle):
    riders = [vehicle.rider(f"rider-{number}") for number in range(10)]
    # Two cores have much to do for ten.
    running = [rider.starts_to_move("open", "left", "--timeout", "60") for rider in riders]
    statuses = [each.ends().status for each in running]
    assert statuses.count(0) >= 1 and set(statuses) <= {0, 5}
    assert vehicle.motions == [("left", "close", "open")]
    assert vehicle.stepd.lives


@pytest.mark.parametrize("side", ["left", "right"])
def test_facing_is_the_side_where_the_rider_stands(vehicle, alice, side):
    opened = alice.moves("open", "facing", at=side)
    assert (opened.status, opened.stdout) == (0, f"the {side} step is open\n")
    assert vehicle.motions == [(side, "close", "open")]


@pytest.mark.parametrize("side", ["left", "right", "facing"])
def test_a_rider_between_the_steps_moves_none(shared_vehicle, shared_rider, side):
    before = shared_vehicle.broker.said
    ended = shared_rider.moves("open", side, at="between")
    assert (ended.status, ended.stdout, ended.error) == (3, "", "not located: cannot tell yet which step you are at")
    assert ended.stderr.splitlines()[-1] == "hint: come closer to one step"
    assert all(shared_vehicle.published(step, before) <= 1 for step in ("left", "right")), "the questions alone"
    assert shared_vehicle.is_unmoved()


def test_a_side_without_a_step_is_told(shared_vehicle, shared_rider):
    text = shared_rider.file.read_text()
    file = shared_rider.file.with_name("one.toml")
    begin = text.rindex("[[steps]]")
    file.write_text(text[:begin] + text[text.index("# Who may command") :])
    ended = shared_vehicle.stepctl("open", "--side", "right", "--vehicle", file)
    assert (ended.status, ended.error) == (78, "car has no step at the right side")


# --- Patience ---


@pytest.fixture
def held(vehicle):
    """A vehicle whose controller has been stopped: what it is sent waits."""
    vehicle.stepd.signal(signal.SIGSTOP)
    yield vehicle
    vehicle.stepd.signal(signal.SIGCONT)


def test_a_controller_that_does_not_answer_is_given_up_in_time(held, alice):
    patient = held.rider("bob").starts_to_move("open", "left")
    ended = alice.moves("open", "left", "--timeout", "3")
    assert (ended.status, ended.stdout, ended.error) == (69, "", UNANSWERED)
    assert patient.lives, "it waits longer without --timeout"
    patient.kill()
    held.stepd.signal(signal.SIGCONT)
    with Witness(held, alice.peer) as witness:
        witness.ask("left")
    assert held.is_unmoved(), "the question that was answered late moved nothing"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_before_the_command_ends_it_as_the_signal_does(held, alice, number):
    opening = alice.starts_to_move("open", "left", "--json")
    held.wait_for_command("left")
    opening.signal(number)
    ended = opening.ends()
    assert (ended.status, ended.stdout) == (-number, "")
    assert "error" not in ended.stderr
    assert held.published("left") == 1, "the question alone"
    held.stepd.signal(signal.SIGCONT)
    with Witness(held, alice.peer) as witness:
        witness.ask("left")
    assert held.is_unmoved()


def test_a_signal_while_it_listens_ends_it_as_the_signal_does(shared_vehicle, shared_rider):
    before = shared_vehicle.broker.said
    opening = shared_rider.starts("open", "--side", "left", "--radio", "btsnoop:-", stdin=subprocess.PIPE)
    wait_until(lambda: signal.SIGINT in blocked(opening.process.pid), "it has taken charge of SIGINT")
    opening.signal(signal.SIGINT)
    ended = opening.ends()
    opening.process.stdin.close()
    assert (ended.status, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
    assert shared_vehicle.published("left", before) <= 1, "the question alone"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_after_the_command_says_that_the_step_may_have_moved(parked, number):
    def script(controller, command):
        if command.claims["position"] == "unknown":
            yield controller.status(command, challenge=new_challenge())

    parked.starts_broker()
    alice = parked.rider("alice")
    with PlayedController(parked, script) as controller:
        opening = alice.starts_to_move("open", "left", "--json")
        wait_until(lambda: controller.positions == ["unknown", "open"], "the command")
        opening.signal(number)
        ended = opening.ends()
    assert (ended.status, ended.outcome) == (6, {"outcome": "unconfirmed", "step": "left"})
    assert ended.error == "interrupted after the command was sent: the left step may have moved"


def test_a_signal_while_it_watches_ends_it_as_the_signal_does(shared_vehicle, shared_rider):
    watch = shared_rider.starts("status", "--watch")
    watch.says("right", file=watch.stdout)
    watch.signal(signal.SIGINT)
    ended = watch.ends()
    assert (ended.status, len(ended.lines), ended.stderr) == (-signal.SIGINT, 2, "")


def test_a_watch_under_nohup_outlives_its_terminal(vehicle, alice):
    watch = alice.starts("status", "--watch", prefix=("nohup",))
    watch.says("right", file=watch.stdout)
    watch.signal(signal.SIGHUP)
    assert alice.moves("open", "left").status == 0
    watch.says("open", file=watch.stdout)
    watch.signal(signal.SIGTERM)
    assert watch.ends().status == -signal.SIGTERM


def test_a_watch_that_loses_its_broker_says_so_and_connects_again(vehicle, alice):
    watch = alice.starts("status", "--watch")
    watch.says("right", file=watch.stdout)
    vehicle.broker.kill()
    watch.says(f"the connection to the broker localhost:{vehicle.port} was lost; connecting again")
    watch.says("left     no answer since ", file=watch.stdout)
    before = watch.said
    time.sleep(2.5)
    assert watch.said == before, "it is said once"
    vehicle.starts_broker()
    wait_until(lambda: watch.stdout.read_text().count("left     closed") == 2, "the left step again")
    assert alice.moves("open", "left").status == 0
    watch.says("left     open", file=watch.stdout)
    watch.signal(signal.SIGINT)
    ended = watch.ends()
    assert (ended.status, "error" in ended.stderr) == (-signal.SIGINT, False)


def test_control_c_ends_a_watch_that_waits_for_its_broker(vehicle, alice):
    watch = alice.starts("status", "--watch")
    watch.says("right", file=watch.stdout)
    vehicle.broker.kill()
    watch.says("connecting again")
    watch.signal(signal.SIGINT)
    assert watch.ends(3).status == -signal.SIGINT


def test_a_vehicle_that_is_gone_is_said_to_have_answered_last_when_it_did(vehicle, tmp_path):
    alice = vehicle.rider("alice")
    home = tmp_path / "state"
    first = alice.types("status", "--timeout", "30", XDG_STATE_HOME=str(home))
    assert first.status == 0
    (noted,) = (home / "stepctl/answered").iterdir()
    assert (noted.name, noted.read_bytes()) == (vehicle.uuid, b"")
    os.utime(noted, (1_767_254_400, 1_767_254_400))
    vehicle.stepd.kill()
    gone = alice.types("status", "--timeout", "5", XDG_STATE_HOME=str(home))
    assert (gone.status, gone.lines) == (
        69,
        ["left     no answer since 2026-01-01 08:00", "right    no answer since 2026-01-01 08:00"],
    )
    never = alice.types("status", "--timeout", "5", XDG_STATE_HOME=str(tmp_path / "other"))
    assert (never.status, never.stdout) == (69, "")
