"""stepd that is started, killed, asked to end, or finds its journal in a bad way: nothing moves by itself."""

import contextlib
import json
import os
import signal
import time

import pytest

import client
import stepproto as proto
from peers import Witness
from programs import HURRIED, STEPD, seconds_of_work, wait_until
from pwm import in_memory

SLOW_S = 10  # a motion that lasts long enough for something to happen to it


@pytest.fixture
def slow(parked):
    parked.takes_long(SLOW_S)
    return parked


def opening_command(witness: Witness) -> bytes:
    """An honest command to open the left step."""
    statement = witness.ask("left")
    proof = proto.beacon_proof(witness.login.majors["left"], statement["clock"])
    return client.build(witness.login, "left", "open", proto.permission(statement, proof)).payload


def state(statement: dict) -> tuple:
    return statement["position"], statement["phase"], statement.get("fault")


def test_nothing_moves_at_the_start(vehicle, alice):
    with Witness(vehicle, alice.peer) as witness:
        kept = witness.kept()
    assert {step: state(kept[step]) for step in kept} == dict.fromkeys(("left", "right"), ("close", "idle", None))
    for _ in range(2):
        vehicle.stepd.close()
        vehicle.starts_stepd()
    assert not (vehicle.folder / "servo.jsonl").exists()
    assert vehicle.is_unmoved()


def test_a_step_that_was_open_is_open_after_a_restart(vehicle, alice):
    assert alice.moves("open", "left").status == 0
    vehicle.stepd.close()
    vehicle.starts_stepd()
    assert alice.types("status").lines == ["left     open", "right    closed"]
    assert alice.moves("open", "left").status == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_a_crash_in_the_middle_of_a_motion_leaves_a_fault_that_a_rider_can_end(slow):
    slow.starts_all()
    alice = slow.rider("alice")
    with Witness(slow, slow.rider("bob").peer) as witness:
        before = witness.kept()
        command = opening_command(witness)
        assert witness.exchange("left", command, True)[0]["phase"] == "moving"
        slow.stepd.kill()
        assert slow.motions == [("left", "close", "open")]
        slow.starts_stepd()

        with Witness(slow, alice.peer) as newcomer:
            kept = newcomer.kept()
        assert state(kept["left"]) == ("unknown", "fault", "interrupted")
        assert state(kept["right"]) == ("close", "idle", None)
        assert kept["left"]["epoch"] != before["left"]["epoch"]

        assert witness.exchange("left", command)[-1]["refusal"] == {"code": "replayed", "retry": False}
        status = alice.types("status")
        assert status.lines == ["left     somewhere between open and closed; fault: interrupted", "right    closed"]
        assert slow.motions == [("left", "close", "open")], "nothing moved by itself or by the old command"

        opened = alice.moves("open", "left")
        assert (opened.status, opened.stdout) == (0, "the left step is open\n")
        assert state(witness.ask("left")) == ("open", "idle", None)
    assert slow.motions == [("left", "close", "open"), ("left", "unknown", "open")]
    assert slow.stepd.lives


def test_a_rider_whose_motion_was_cut_off_is_told_that_the_step_may_have_moved(slow):
    slow.starts_all()
    opening = slow.rider("alice").begins_to_open()
    slow.stepd.kill()
    opening.signal(signal.SIGINT)
    ended = opening.ends()
    assert (ended.status, ended.stdout) == (6, "")
    assert ended.error == "interrupted after the command was sent: the left step may have moved"


def test_a_motion_that_takes_too_long_ends_in_a_fault(parked):
    """As it does when the computer was held up, or suspended."""
    limit = 8
    parked.edit("stepd.toml", travel_s=limit / 2, limit_s=limit)
    parked.starts_all()
    alice = parked.rider("alice")
    # A rider who does not know that the step moves does not wait for so long.
    opening = alice.begins_to_open()
    parked.stepd.signal(signal.SIGSTOP)
    time.sleep(limit)
    parked.stepd.signal(signal.SIGCONT)
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "the step stopped on its way (timeout): the left step may have moved")
    assert alice.types("status").lines[0] == "left     somewhere between open and closed; fault: timeout"
    assert alice.moves("close", "left").status == 0
    assert parked.motions == [("left", "close", "open"), ("left", "unknown", "close")]
    assert parked.stepd.lives


def test_a_challenge_from_before_the_crash_is_of_no_use(vehicle, alice):
    with Witness(vehicle, alice.peer) as witness:
        command = opening_command(witness)
        vehicle.stepd.kill()
        vehicle.starts_stepd()
        assert witness.exchange("left", command)[-1]["refusal"] == {"code": "expired", "retry": True}
    assert vehicle.is_unmoved()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_motion_is_finished_before_it_ends(slow, number):
    slow.starts_all()
    alice = slow.rider("alice")
    opening = alice.begins_to_open()
    slow.stepd.signal(number)
    slow.stepd.says("ending when the step has stopped")
    assert slow.stepd.lives
    ended = slow.stepd.ends()
    assert (ended.status, ended.stderr.splitlines()[-1]) == (0, "stepd: left: is open")
    opened = opening.ends()
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    with Witness(slow, alice.peer) as witness:
        assert state(witness.kept()["left"]) == ("open", "idle", None)
    journal = json.loads((slow.folder / "journal.json").read_bytes())
    assert journal["left"]["position"] == "open" and "motion" not in journal["left"]
    assert slow.motions == [("left", "close", "open")]


def test_a_motion_can_be_stopped_while_stepd_ends(slow):
    slow.starts_all()
    alice, bob = slow.rider("alice"), slow.rider("bob")
    opening = alice.begins_to_open()
    slow.stepd.signal(signal.SIGTERM)
    slow.stepd.says("ending when the step has stopped")
    stopped = bob.types("stop", "left")
    assert (stopped.status, stopped.stdout) == (0, "the left step is at rest: somewhere between open and closed\n")
    ended = slow.stepd.ends()
    assert (ended.status, ended.stderr.splitlines()[-1]) == (0, "stepd: left: stopped by bob")
    assert opening.ends().status == 6, "it did not come to its end"
    journal = json.loads((slow.folder / "journal.json").read_bytes())
    assert journal["left"]["position"] == "unknown" and "motion" not in journal["left"]


def test_a_message_that_comes_while_it_ends_costs_it_nothing(slow):
    slow.starts_all()
    alice = slow.rider("alice")
    with Witness(slow, slow.rider("bob").peer) as witness:
        alice.starts_to_move("open", "left")
        slow.wait_for_motions(("left", "close", "open"))
        slow.stepd.signal(signal.SIGTERM)
        slow.stepd.says("ending when the step has stopped")
        stepd = slow.stepd.process.pid
        before, began = seconds_of_work(stepd), time.monotonic()
        witness.connection.deliver(slow.set_position("left"), b"rubbish")
        # What it took is known until somebody waits for it.
        wait_until(lambda: os.waitid(os.P_PID, stepd, os.WEXITED | os.WNOWAIT | os.WNOHANG), "it ends")
        # Twenty milliseconds of each second are usual; whoever asks again and again takes all that a core has.
        assert seconds_of_work(stepd) - before < (time.monotonic() - began) / 5
    ended = slow.stepd.ends()
    assert ended.status == 0 and "left: is open" in ended.stderr


def test_a_log_that_nobody_reads_stops_no_motion(parked):
    parked.starts_broker()
    alice, log = parked.rider("alice"), parked.folder / "log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDWR | os.O_NONBLOCK)

    def fill():
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(reader, bytes(4096))

    def read() -> str:
        read = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                read += os.read(reader, 1 << 16)
        return read.decode()

    command = ("sh", "-c", 'exec "$0" --config "$1" 2>"$2"', STEPD, parked.folder / "stepd.toml", log)
    before = parked.broker.said
    stepd = parked.starts("stepd", *command)
    parked.broker.says(f"'{parked.status('right')}'", after=before)
    fill()
    assert alice.moves("open", "left").status == 0
    read()
    assert alice.moves("close", "left").status == 0
    said = [read()]
    line = "stepd: left: close for alice (lines lost before this one: 2)\n"
    wait_until(lambda: line in "".join(said) or said.append(read()), "the log says how much is lost")
    fill()
    stepd.signal(signal.SIGTERM)
    assert stepd.ends().status == 0
    os.close(reader)


# --- The journal ---


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b"{",
        b"[]",
        b'{"left":{"position":"open"}',
        b'{"left":{"position":"ajar"}}',
        b'{"left":{"position":"open","motion":"sideways"}}',
        b'{"left":{"position":"open","position":"close"}}',
        b'{"Left":{"position":"open"}}',
    ],
)
def test_a_damaged_journal_is_refused(parked, content):
    journal = parked.folder / "journal.json"
    journal.write_bytes(content)
    parked.starts_broker()
    ended = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml").ends()
    assert ended.status == 65
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"stepd: error: {journal} is damaged: ")
    assert line.endswith("; look where the steps are, then move the file to another folder")
    assert journal.read_bytes() == content
    assert parked.motions == []
    assert parked.connections == 0


def test_a_journal_has_one_controller_only(vehicle, alice):
    second = vehicle.starts("stepd", STEPD, "--config", vehicle.folder / "stepd.toml").ends()
    assert second.status == 69
    assert second.error == vehicle.said_to_a_second
    assert alice.moves("open", "left").status == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_a_step_does_not_move_when_the_journal_cannot_be_written(vehicle, alice):
    journal = vehicle.folder / "journal.json"
    journal.unlink()
    journal.mkdir()  # what is renamed to it cannot take its place
    refused = alice.moves("open", "left", "--json")
    told = {"outcome": "refused", "step": "left", "refusal": "unavailable", "retry": True}
    assert (refused.status, refused.outcome) == (5, told)
    vehicle.stepd.says("left: the journal cannot be written: ")
    assert vehicle.is_unmoved()
    # What is written after the refusal cannot be, either.
    wait_until(lambda: not list(vehicle.folder.glob("journal.json.*.new")), "no half-written journal is left")
    journal.rmdir()
    assert alice.moves("open", "left").status == 0
    assert vehicle.motions == [("left", "close", "open")]


# --- Kept by the broker ---


@pytest.mark.parametrize("content", [b"rubbish", b"\xff" * 8192, b"{}"], ids=["rubbish", "octets", "JSON"])
def test_what_the_broker_kept_moves_nothing(parked, content):
    parked.starts_broker()
    alice = parked.rider("alice")
    with Witness(parked, alice.peer) as witness:
        witness.connection.deliver(parked.set_position("left"), content, retain=True)
        parked.starts_stepd()
        parked.stepd.says("left: ignored a message that is no rider's command")
        assert state(witness.ask("left")) == ("close", "idle", None)
    assert parked.is_unmoved()


# --- PWM ---


@pytest.fixture
def pwm(new_vehicle):
    """A vehicle whose servos are on a PWM chip of files, and that chip: `pwm0` is exported already, `pwm1` is not."""
    vehicle = new_vehicle("car", "--servo", "pwm")
    (vehicle.folder / "pwm").symlink_to(in_memory(vehicle.stack))
    chip = vehicle.folder / "pwm/pwmchip0"
    chip.mkdir()
    for name in ("export", "unexport"):
        (chip / name).touch()
    export(chip, 0)
    vehicle.edit("stepd.toml", root="pwm")
    return vehicle.starts_all(), chip


def export(chip, channel: int):
    """What the kernel does when a channel's number is written to `export`."""
    unexported(chip).rename(chip / f"pwm{channel}")


def unexported(chip):
    """A channel that is not in its place yet."""
    folder = chip / "new"
    folder.mkdir()
    for name in ("period", "duty_cycle", "enable"):
        (folder / name).write_text("0\n")
    return folder


def settings(chip, channel: int) -> dict[str, int]:
    """What the channel is set to. Unlike the kernel's, these files are empty for a moment while they are written."""

    def value(name: str) -> int:
        while not (text := (chip / f"pwm{channel}" / name).read_text().strip()):
            pass
        return int(text)

    return {name: value(name) for name in ("period", "duty_cycle", "enable")}


def test_a_pwm_channel_is_set_when_its_step_first_moves(pwm):
    vehicle, chip = pwm
    alice = vehicle.rider("alice")
    assert settings(chip, 0) == {"period": 0, "duty_cycle": 0, "enable": 0}, "nothing is driven at the start"
    assert alice.types("status").status == 0
    assert settings(chip, 0) == {"period": 0, "duty_cycle": 0, "enable": 0}, "nor by a question"

    opened = alice.moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    assert settings(chip, 0) == {"period": 20_000_000, "duty_cycle": 2_000_000, "enable": 1}
    assert alice.moves("close", "left").status == 0
    assert settings(chip, 0) == {"period": 20_000_000, "duty_cycle": 1_000_000, "enable": 1}
    assert (chip / "export").read_text() == ""
    assert vehicle.stepd.lives


def test_a_pwm_channel_is_exported_when_its_step_first_moves(pwm):
    vehicle, chip = pwm
    alice = vehicle.rider("alice")
    # The channel has to be there in half a second, on a busy machine, too.
    unexported(chip)
    script = 'until [ -s "$1/export" ]; do sleep 0.01; done; mv "$1/new" "$1/pwm1"'
    vehicle.starts("kernel", *HURRIED, "sh", "-c", script, "sh", chip)
    assert alice.moves("open", "right", at="right").status == 0
    assert (chip / "export").read_text() == "1"
    assert settings(chip, 1) == {"period": 20_000_000, "duty_cycle": 2_000_000, "enable": 1}


def test_a_pwm_channel_that_cannot_be_set_is_refused(pwm):
    vehicle, chip = pwm
    (chip / "export").unlink()
    refused = vehicle.rider("alice").moves("open", "right", "--json", at="right")
    told = {"outcome": "refused", "step": "right", "refusal": "unavailable", "retry": True}
    assert (refused.status, refused.outcome) == (5, told)
    vehicle.stepd.says(f"right: fault driver: cannot open {chip}/export: No such file or directory")
    status = vehicle.rider("bob").types("status")
    assert (status.status, status.lines[1]) == (0, "right    closed")
    assert vehicle.stepd.lives


def test_a_pwm_channel_that_fails_on_the_way_ends_in_a_fault(pwm):
    vehicle, chip = pwm
    vehicle.stepd.close()
    vehicle.takes_long()
    vehicle.starts_stepd()
    opening = vehicle.rider("alice").starts_to_move("open", "left")
    opening.says("moving")
    wait_until(lambda: settings(chip, 0)["enable"] == 1, "the servo is driven")
    (chip / "pwm0/duty_cycle").unlink()
    ended = opening.ends()
    assert (ended.status, ended.error) == (6, "the step stopped on its way (driver): the left step may have moved")
    wait_until(lambda: (chip / "pwm0/enable").read_text().strip() == "0", "it is not driven any more")
    status = vehicle.rider("bob").types("status")
    assert status.lines[0] == "left     somewhere between open and closed; fault: driver"
    assert vehicle.stepd.lives


# --- Configuration ---


def test_check_reads_everything_and_moves_nothing(parked):
    checked = parked.checks()
    assert (checked.status, checked.stdout, checked.stderr) == (0, "", "")
    assert not (parked.folder / "journal.json").exists()
    assert parked.motions == []


def test_check_finds_a_chip_that_is_not_there(new_vehicle):
    vehicle = new_vehicle("car", "--servo", "pwm")
    vehicle.edit("stepd.toml", root="pwm")
    (vehicle.folder / "pwm").mkdir()
    checked = vehicle.checks()
    error = f"stepd: error: cannot open {vehicle.folder}/pwm/pwmchip0: No such file or directory\n"
    assert (checked.status, checked.stderr) == (66, error)
    (vehicle.folder / "pwm/pwmchip0").mkdir()
    assert vehicle.checks().status == 0


@pytest.mark.parametrize("name", ["keys/signing.jwk", "keys/encryption.jwk", "tls/controller.key"])
def test_check_finds_a_key_that_others_can_read(parked, name):
    key = parked.folder / name
    key.chmod(0o640)
    checked = parked.checks()
    assert (checked.status, checked.stderr) == (
        77,
        f"stepd: error: {key}: can be read by others: chmod 600 {key}\n",
    )


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("keys/signing.jwk", 78),
        ("keys/encryption.jwk", 78),
        ("tls/ca.pem", 78),
        ("tls/controller.pem", 78),
        ("tls/controller.key", 78),
        ("journal.json", 65),
    ],
)
def test_a_file_that_cannot_serve_is_found_by_check_and_at_the_start(parked, name, status):
    parked.starts_broker()
    file = parked.folder / name
    file.write_bytes(b"rubbish")
    started = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml").ends()
    for ended in (parked.checks(), started):
        assert (ended.status, ended.stdout) == (status, "")
        assert ended.error.count(str(file)) == 1
    assert parked.motions == []
