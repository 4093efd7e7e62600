"""stepd with a rider's program in Python, stepctl with a controller in Python, and with one that lies."""

import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import client
import controller
import forgeries
import stepproto as proto
from forgeries import Genuine
from peers import Connection, PlayedController, Received, Witness, new_challenge
from programs import Running, wait_until
from vehicle import Vehicle

# --- Honest ones ---


def python(vehicle, program, *arguments) -> Running:
    # A rider's program waits for a busy machine.
    more = ("--timeout", "40") if program is client else ()
    return vehicle.starts(f"python-{program.__name__}", sys.executable, Path(program.__file__), *arguments, *more)


@pytest.mark.arm64
def test_a_program_in_python_moves_a_step(vehicle, alice):
    opened = python(vehicle, client, "open", "--vehicle", alice.file, "--step", "left").ends()
    assert (opened.status, opened.json) == (0, {"position": "open", "phase": "idle"})
    asked = python(vehicle, client, "unknown", "--vehicle", alice.file, "--step", "left").ends()
    assert (asked.status, asked.json) == (0, {"position": "open", "phase": "idle"})
    carol = vehicle.rider("carol", "--steps", "right")
    refused = python(vehicle, client, "close", "--vehicle", carol.file, "--step", "left").ends()
    assert (refused.status, refused.json) == (5, {"refusal": "wrong_step", "retry": False})
    assert vehicle.motions == [("left", "close", "open")]
    assert vehicle.stepd.lives


@pytest.mark.arm64
def test_a_program_in_python_stops_a_step_that_another_rider_moves(parked):
    parked.takes_long()
    parked.starts_all()
    alice, bob = parked.rider("alice"), parked.rider("bob")
    opening = python(parked, client, "open", "--vehicle", alice.file, "--step", "left")
    parked.wait_for_motions(("left", "close", "open"))
    stopped = python(parked, client, "stop", "--vehicle", bob.file, "--step", "left").ends()
    assert (stopped.status, stopped.json) == (0, {"position": "unknown", "phase": "idle"})
    assert (opening.ends().status, parked.motions) == (6, [("left", "close", "open")])


def test_the_sizes_of_commands_tell_a_broker_nothing(vehicle):
    login = client.Vehicle.read(str(vehicle.controller_file))
    with Connection(login, *(vehicle.set_position(step) for step in login.majors)) as tap:
        for name in ("a", "a" * 64):
            rider = vehicle.rider(name)
            assert rider.types("status").status == 0
            for position in ("open", "close"):
                assert rider.moves(position, "left").status == 0
            assert rider.types("stop", "--side", "left").status == 0
        # A question about each step, two moves with a question each, and a stop.
        wait_until(lambda: tap.messages.qsize() >= 2 * (2 + 2 + 2 + 1), "all commands")
        commands = [tap.messages.get_nowait().payload for _ in range(tap.messages.qsize())]
    assert {len(command) for command in commands} == {4042}


@pytest.fixture
def python_controller(parked):
    """Starts controller.py in stepd's place."""
    parked.starts_broker()
    keys = {name: proto.jwk(parked.key(f"keys/{name}")) for name in ("encryption", "signing")}
    operator = proto.jwk(parked.key("operator/token").public_key())
    file = parked.folder / "keys/python.json"
    file.write_text(json.dumps(keys | {"operator": operator}))
    arguments = ["--vehicle", parked.controller_file, "--keys", file]

    def start(*more):
        before = parked.broker.said
        python(parked, controller, *arguments, *more)
        parked.broker.says(f"'{parked.status('right')}'", after=before)

    return start


@pytest.mark.parametrize("ahead, state", [(0, "ok"), (20, "warning"), (-20, "warning")])
def test_doctor_sees_how_far_the_vehicle_s_clock_is_off(parked, python_controller, ahead, state):
    alice = parked.rider("alice")
    python_controller("--ahead", str(ahead))
    ended = alice.types("doctor", "controller", "--json")
    (area,) = ended.json["areas"]
    found = {finding["subject"]: finding for finding in area["findings"]}
    assert ended.status == 0 and found["program"]["text"].startswith("stepd peer 1, runs since ")
    assert found["clock"]["state"] == state
    off = float(re.search(r"the vehicle's: ([\d.]+) s (ahead|behind)", found["clock"]["text"])[1])
    # The peer says whole seconds.
    assert abs(off - abs(ahead)) < 2
    if ahead:
        assert ("ahead of" if ahead > 0 else "behind") in found["clock"]["text"]
        assert found["clock"]["remedy"].endswith("timedatectl set-ntp true")


@pytest.mark.arm64
def test_stepctl_believes_a_controller_in_python(parked, python_controller):
    alice = parked.rider("alice")
    python_controller()
    opened = alice.moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    status = alice.types("status")
    assert (status.status, status.lines) == (0, ["left     open", "right    closed"])
    refused = parked.rider("carol", "--steps", "right").moves("close", "left")
    assert (refused.status, refused.error) == (
        5,
        "the vehicle refused (wrong_step): the token is not for this step",
    )


@pytest.mark.arm64
@pytest.mark.parametrize("name", ["by another key", "nonce another", "status of earlier", "without its signature"])
def test_stepctl_sends_no_command_on_the_word_of_a_controller_that_lies(name, parked, python_controller):
    alice = parked.rider("alice")
    python_controller("--forge", name)
    lied_to = alice.moves("open", "left", "--timeout", "5")
    assert (lied_to.status, lied_to.stdout) == (69, "")
    assert lied_to.error == "the vehicle does not answer; nothing was sent that could move a step"
    assert parked.published("left") == 1, "the question alone"


# --- Forgeries ---


@pytest.fixture(scope="module")
def played(stepctl, tmp_path_factory):
    """A vehicle whose controller is played; its broker takes messages of any size, for some forgeries are large."""
    with ExitStack() as stack:
        vehicle = Vehicle(tmp_path_factory.mktemp("played") / "car", stepctl, stack)
        while "K" not in proto.thumbprint(vehicle.key("keys/signing").public_key()):
            vehicle.provision("--force")
        configuration = vehicle.folder / "mosquitto.conf"
        configuration.write_text(configuration.read_text().replace("max_packet_size", "#"))
        vehicle.starts_broker()
        yield vehicle.rider("alice")


def forged(forgery, played, statement) -> list[bytes]:
    """The forgery of a status that would be believed; none where there is nothing in it to forge so."""
    earlier = statement | {"command": proto.digest(b"earlier"), "seq": 0}
    status, earlier = (proto.status_of(each, played.signing) for each in (statement, earlier))
    try:
        return [forgery.build(Genuine(status, played.signing, earlier))]
    except forgeries.Unavailable:
        return []


@pytest.mark.parametrize("forgery", forgeries.FORGERIES, ids=str)
def test_stepctl_believes_no_forgery(forgery, played):
    """Each answer comes forged before it comes as it should: a decoy that is believed shows in what follows."""
    decoy, genuine = new_challenge(), new_challenge()
    forgeries_sent = []

    def script(controller, command):
        if command.claims["position"] == "unknown":
            decoys = [controller.statement(command, challenge=decoy)]
            answer = controller.status(command, challenge=genuine)
        else:
            decoys = [
                controller.statement(command, position="open"),
                controller.statement(command, refusal={"code": "not_near", "retry": True}),
            ]
            answer = controller.status(command, refusal={"code": "busy", "retry": True})
        for statement in decoys:
            forgeries_sent.extend(sent := forged(forgery, controller, statement))
            yield from sent
        yield answer

    with PlayedController(played.vehicle, script) as controller:
        ended = played.moves("open", "left")
    assert forgeries_sent
    assert (ended.status, ended.stdout) == (5, "")
    assert ended.error == "the vehicle refused (busy): the step is moving"
    assert controller.positions == ["unknown", "open"]
    assert controller.received[-1].claims["challenge"] == genuine


@pytest.mark.parametrize("lie", forgeries.LIES, ids=str)
def test_stepctl_goes_by_the_statement_and_not_by_what_stands_outside(lie, played):
    def script(controller, command):
        if command.claims["position"] == "unknown":
            return forged(lie, controller, controller.statement(command, challenge=new_challenge()))
        return forged(lie, controller, controller.statement(command, position="open"))

    with PlayedController(played.vehicle, script) as controller:
        ended = played.moves("open", "left")
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")
    assert controller.positions == ["unknown", "open"]


@pytest.mark.parametrize("newer", forgeries.NEWER, ids=str)
def test_stepctl_believes_what_a_later_version_adds(newer, played):
    def script(controller, command):
        if command.claims["position"] == "unknown":
            return forged(newer, controller, controller.statement(command, challenge=new_challenge()))
        return forged(newer, controller, controller.statement(command, position="open"))

    with PlayedController(played.vehicle, script) as controller:
        ended = played.moves("open", "left")
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")
    assert controller.positions == ["unknown", "open"]


def test_what_is_said_of_a_forgery_does_not_steer_the_terminal(played):
    def script(controller, command):
        header = proto.status_header(controller.signing.public_key()) | {"\x1b[2J": 1}
        claims = controller.statement(command, challenge=new_challenge())
        statement = proto.sign(controller.signing, proto.to_json(header), proto.to_json(claims))
        return [proto.to_json({"position": "close", "phase": "idle", "statement": statement})]

    with PlayedController(played.vehicle, script):
        ended = played.types("status", "-v", "--timeout", "10")
    assert "ignored a status: not well formed: " in ended.stderr
    assert all(character.isprintable() for character in ended.stderr.replace("\n", ""))


# --- Answers that are genuine, and not what was hoped for ---


def answering(*answers: dict):
    """A script: a challenge, and then these answers to the command."""

    def script(controller, command):
        if command.claims["position"] == "unknown":
            return [controller.status(command, challenge=new_challenge())]
        return [controller.status(command, **answer) for answer in answers]

    return script


def test_a_command_that_is_never_answered_is_unconfirmed_and_not_sent_again(played):
    with PlayedController(played.vehicle, answering()) as controller:
        ended = played.moves("open", "left", "--json")
    assert (ended.status, ended.outcome) == (6, {"outcome": "unconfirmed", "step": "left"})
    assert ended.error == "no confirmation came in time: the left step may have moved"
    assert re.fullmatch("hint: look at it, or ask with `stepctl status --vehicle .*`", ended.stderr.splitlines()[-1])
    assert controller.positions == ["unknown", "open"]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        (
            [{"phase": "moving"}, {"phase": "fault", "fault": fault, "position": "unknown"}],
            f"the step stopped on its way ({fault}): the left step may have moved",
        )
        for fault in ("interrupted", "obstructed", "timeout", "driver")
    ]
    + [([{"position": "close"}], "the left step came to rest closed")],
)
def test_a_motion_that_did_not_end_where_it_should_is_no_success(played, answers, error):
    with PlayedController(played.vehicle, answering(*answers)):
        ended = played.moves("open", "left")
    assert (ended.status, ended.stdout, ended.error) == (6, "", error)


NONE_OF_OURS = {
    "of another run": {"epoch": new_challenge()},
    "with a challenge": {"challenge": new_challenge()},
    "refused by another run": {"epoch": new_challenge(), "refusal": {"code": "expired", "retry": True}},
}


@pytest.mark.parametrize("members", NONE_OF_OURS.values(), ids=NONE_OF_OURS)
@pytest.mark.parametrize("program", ["stepctl", "python"])
def test_an_answer_to_a_move_is_of_its_run_and_has_no_challenge(played, program, members):
    """The former run may have obeyed the command, whatever the present one says of it."""
    with PlayedController(played.vehicle, answering({"position": "open"} | members)):
        if program == "stepctl":
            ended = played.moves("open", "left")
        else:
            ended = python(played.vehicle, client, "open", "--vehicle", played.file, "--step", "left").ends()
    assert ended.status == 6, "nobody knows whether it has moved"


def test_a_stop_that_names_an_older_run_is_sent_again_with_the_present_one(played):
    old = new_challenge()

    def script(controller, command):
        if command.claims["position"] == "unknown":
            return [controller.status(command, challenge=new_challenge(), epoch=old)]
        is_present = command.claims["epoch"] == controller.epoch
        return [controller.status(command, **({} if is_present else {"refusal": {"code": "expired", "retry": True}}))]

    with PlayedController(played.vehicle, script) as controller:
        kept = controller.statement(Received("left", {"nonce": None}, b""), epoch=old)
        kept = {name: value for name, value in kept.items() if name not in ("command", "nonce")}
        controller.keep("left", proto.status_of(kept, controller.signing))
        ended = python(played.vehicle, client, "stop", "--vehicle", played.file, "--step", "left").ends()
        controller.keep("left", b"")
    assert (ended.status, ended.json) == (0, {"position": "close", "phase": "idle"})
    assert [command.claims["epoch"] for command in controller.received] == [old, controller.epoch]


def test_a_second_copy_refused_as_replayed_does_not_hide_the_answer_to_the_first(played):
    replayed = {"refusal": {"code": "replayed", "retry": False}}
    with PlayedController(played.vehicle, answering(replayed, {"phase": "moving"}, replayed, {"position": "open"})):
        ended = played.moves("open", "left")
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")


def test_a_phase_that_is_not_known_is_waited_out(played):
    preparing = {"phase": "preparing"}
    answers = (preparing, {"phase": "moving"}, preparing | {"fault": "tired"}, {"position": "open"})
    with PlayedController(played.vehicle, answering(*answers)):
        ended = played.moves("open", "left")
    assert (ended.status, ended.stdout) == (0, "the left step is open\n")


def test_a_vehicle_that_accepts_only_proofs_of_a_later_version_is_told(played):
    policy = {"proofs": ["uwb"], "zone": "near", "static": True}

    def script(controller, command):
        return [controller.status(command, challenge=new_challenge(), policy=policy)]

    with PlayedController(played.vehicle, script) as controller:
        ended = played.moves("open", "left")
    assert ended.status == 3
    assert ended.error == "not located: the vehicle accepts no proof that this program can give"
    assert controller.positions == ["unknown"]


def test_a_fault_that_is_not_known_is_named(played):
    fault = {"phase": "fault", "fault": "gear_7", "position": "unknown"}
    with PlayedController(played.vehicle, answering({"phase": "moving"}, fault)):
        ended = played.moves("open", "left")
    assert (ended.status, ended.error) == (6, "the step stopped on its way (gear_7): the left step may have moved")


@pytest.mark.parametrize("retry", [True, False])
def test_a_refusal_that_is_not_known_is_a_refusal_with_the_retry_that_it_carries(played, retry):
    with PlayedController(played.vehicle, answering({"refusal": {"code": "token_revoked", "retry": retry}})):
        ended = played.moves("open", "left", "--json")
    assert ended.status == 5
    assert ended.outcome == {"outcome": "refused", "step": "left", "refusal": "token_revoked", "retry": retry}
    assert ended.error.startswith("the vehicle refused (token_revoked): ")
    assert ("hint: trying again can help" in ended.stderr) == retry


def test_the_retry_of_a_known_refusal_is_the_controllers(played):
    with PlayedController(played.vehicle, answering({"refusal": {"code": "busy", "retry": False}})):
        ended = played.moves("open", "left", "--json")
    assert (ended.status, ended.json["retry"]) == (5, False)
    assert "hint" not in ended.stderr


@pytest.mark.parametrize("code", [code for code in proto.REFUSALS if code != "replayed"])
def test_every_refusal_is_told(played, code):
    with PlayedController(played.vehicle, answering({"refusal": {"code": code, "retry": proto.REFUSALS[code]}})):
        ended = played.moves("open", "left", "--json", "--wait", "0")
    assert ended.status == 5
    told = {"outcome": "refused", "step": "left", "refusal": code, "retry": proto.REFUSALS[code]}
    assert ended.outcome == told
    assert ended.error.startswith(f"the vehicle refused ({code}): ")
    assert ("hint: trying again can help" in ended.stderr) == proto.REFUSALS[code]


@pytest.mark.arm64
def test_a_statement_of_stepd_stands_the_python_librarys_checks(shared_vehicle, shared_rider):
    with Witness(shared_vehicle, shared_rider.peer) as witness:
        kept = witness.kept()
        answer = witness.ask("left")
    assert {statement["epoch"] for statement in kept.values()} == {answer["epoch"]}
    assert answer["seq"] > max(statement["seq"] for statement in kept.values())
    assert answer["clock"] >= kept["left"]["clock"]
    assert shared_vehicle.is_unmoved()
