"""The vehicle's own ears: a device that calls is heard where it is, whatever it claims."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

import attacks
from adapters_nearby import Air
from captures import AWAY, HERE
from peers import Witness, attackers
from programs import NOBODY, STEPD, wait_until
from rig import in_rig, outside
from vehicle import Vehicle


def air_around(vehicle: Vehicle) -> Air:
    """Adapters at both sides of a vehicle, in a rider's hand, and elsewhere."""
    air = Air(vehicle.folder.parent, "left", "right", "rider", "copier")
    air.vehicle = vehicle
    return air


def listens(vehicle: Vehicle, radio, **policy):
    """Gives the vehicle ears, of which `radio` says the adapter for a step, and a policy; `proofs` and `both`."""
    text = (vehicle.folder / "stepd.toml").read_text()
    both = policy.pop("both", False)
    text = re.sub(r"^proofs = .*$", lambda line: f"{line[0]}\nboth = {str(both).lower()}", text, flags=re.MULTILINE)
    for step in ("left", "right"):
        text += f'\n[ears.steps.{step}]\nadapter = "{radio(step)}"\n'
    (vehicle.folder / "stepd.toml").write_text(text)
    vehicle.edit("stepd.toml", **policy)


@pytest.fixture
def new_listening(parked):
    """A vehicle that must hear a device besides its proof, and the air around it; nothing runs yet."""

    def make(**policy) -> tuple[Vehicle, Air]:
        air = air_around(parked)
        listens(parked, air.radio, **({"proofs": ["beacon", "heard"], "both": True} | policy))
        return parked, air

    return make


def starts(vehicle: Vehicle):
    vehicle.starts_all()
    for step in ("left", "right"):
        vehicle.stepd.says(f"{step}: listens with")


PATIENT = ("--timeout", "40")  # where a busy machine has to hear somebody
AT_LEFT = {"rider_left": HERE, "rider_right": AWAY}
AT_RIGHT = {"rider_left": AWAY, "rider_right": HERE}
COMMANDS = pytest.mark.parametrize("commands", [(), ("--bt4",)], ids=["bluetooth5", "bluetooth4"])


def opens(vehicle: Vehicle, air: Air, side: str, *arguments, claims: str | None = None, name: str = "alice"):
    """A rider who hears the beacons of the side that is claimed, and calls from where the air has the device."""
    radio = vehicle.radio(claims or side)
    return vehicle.rider(name).types(
        "open", side, "--radio", radio, "--call-radio", air.radio("rider"), *arguments
    )


# --- Heard ---


@COMMANDS
def test_the_step_opens_for_a_device_that_is_heard_there(new_listening, commands):
    vehicle, air = new_listening()
    air.starts(*commands, **AT_LEFT)
    starts(vehicle)
    opened = opens(vehicle, air, "left", *PATIENT)
    assert opened.status == 0, opened
    assert "call     calling the vehicle" in opened.stderr
    assert vehicle.motions == [("left", "close", "open")]


@outside
def test_heard_alone_is_a_proof_where_the_vehicle_says_so(new_listening):
    vehicle, air = new_listening(proofs=["heard"], both=False)
    air.starts(**AT_RIGHT)
    starts(vehicle)
    opened = opens(vehicle, air, "right", "--json", *PATIENT)
    assert opened.status == 0, opened
    assert (opened.json["step"], opened.json["method"], opened.json["zone"]) == ("right", "heard", "unknown")


@outside
def test_without_a_call_nothing_opens_and_the_rider_is_told_what_is_missing(new_listening):
    vehicle, air = new_listening()
    air.starts(**AT_LEFT)
    starts(vehicle)
    alice = vehicle.rider("alice")
    refused = alice.types("open", "left", "--radio", vehicle.radio("left"))
    assert refused.status == 3, refused
    assert "the vehicle cannot hear you: btsnoop:" in refused.stderr
    assert "not heard: left: the vehicle does not hear you there yet" in refused.error
    assert vehicle.is_unmoved()


# --- Lies and copies ---


@COMMANDS
def test_who_claims_the_other_side_is_told_where_the_vehicle_hears_them(new_listening, commands):
    vehicle, air = new_listening()
    air.starts(*commands, **AT_RIGHT)
    starts(vehicle)
    refused = opens(vehicle, air, "left")
    assert refused.status == 4, refused
    assert "the vehicle hears you at the right step" in refused.error
    assert vehicle.is_unmoved()


@outside
def test_a_changed_client_that_claims_the_other_side_is_refused_every_time(new_listening):
    vehicle, air = new_listening()
    air.starts(**AT_RIGHT)
    starts(vehicle)
    alice = vehicle.rider("alice")
    # The device calls truthfully, as its owner's stepctl has it do; another program of the same device lies.
    calling = alice.starts(
        "open", "left", "--radio", vehicle.radio("left"), "--call-radio", air.radio("rider"), *PATIENT
    )
    calling.says("hears you at the right step")
    with Witness(vehicle, alice.peer) as witness:
        context = attackers(witness)
        assert context.ask()["policy"]["ext"] == {"both": True}
        for _ in range(20):
            for attack in attacks.HEARING_ATTACKS[:3]:
                payload, _ = attack.build(context)
                assert witness.exchange("left", payload)[-1]["refusal"]["code"] == attack.expected
    assert vehicle.is_unmoved()


@outside
def test_a_copy_of_every_frame_one_second_later_opens_nothing(new_listening):
    vehicle, air = new_listening()
    # The device is far from both sides; the copier is at the left step, and loud.
    far = {"rider_left": -88, "rider_right": -90, "copier_left": -35, "copier_right": -65}
    air.starts("--echo", "rider:copier=1.0", **far)
    starts(vehicle)
    refused = opens(vehicle, air, "left")
    assert refused.status == 3, refused
    assert vehicle.is_unmoved()


@outside
def test_a_live_relay_is_not_told_from_the_device(new_listening):
    # What the documents say remains: here it is shown, so that nobody believes otherwise.
    vehicle, air = new_listening()
    # The vehicle hears the relay alone.
    air.starts("--echo", "rider:copier=0.02", copier_left=-50, copier_right=-80)
    starts(vehicle)
    # On a busy machine a relay may be too late once or twice.
    assert any(opens(vehicle, air, "left", name=name).status == 0 for name in ("alice", "bob", "carol"))


# --- Lost ---


@outside
def test_ears_that_are_lost_are_told_once_and_taken_up_again(new_listening):
    vehicle, air = new_listening()
    air.starts(**AT_LEFT)
    starts(vehicle)
    before = vehicle.stepd.said
    air.process.kill()
    for step in ("left", "right"):
        vehicle.stepd.says(f"{step}: does not listen", after=before)
    time.sleep(2)
    assert vehicle.stepd.stderr.read_bytes()[before:].decode().count("left: does not listen") <= 2
    air.starts(**AT_LEFT)
    for step in ("left", "right"):
        vehicle.stepd.says(f"{step}: listens with", after=before)
    assert opens(vehicle, air, "left", *PATIENT).status == 0


# --- Configured ---


@outside
@pytest.mark.parametrize(
    "change, message",
    [
        (("[ears.steps.right]", "[ears.steps.middle]"), "has no such step"),
        (('proofs = ["beacon", "heard"]', 'proofs = ["heard"]'), 'both: true needs "heard" and at least one other proof'),
        (("", ""), None),
        (('adapter = "h4:unix:RIGHT"', 'adapter = "bluez:hci0"'), "cannot hear riders"),
        (('adapter = "h4:unix:RIGHT"', 'adapter = "h4:unix:LEFT"'), "nobody could tell the sides"),
        (('[ears.steps.right]\nadapter = "h4:unix:RIGHT"', ""), "[ears.steps.right] is missing"),
    ],
    ids=["unknown step", "nothing beside it", "as it is", "bluetoothd", "one adapter", "one ear"],
)
def test_check_finds_ears_that_could_not_tell_the_sides(new_listening, change, message):
    vehicle, air = new_listening()
    file = vehicle.folder / "stepd.toml"
    before, after = (
        text.replace("RIGHT", str(air.folder / "right")).replace("LEFT", str(air.folder / "left")) for text in change
    )
    if message:
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after))
    ended = vehicle.checks()
    assert (ended.status, message or "") == (78 if message else 0, message or ""), ended.stderr
    assert (message or "") in ended.stderr


@outside
def test_ears_that_no_proof_asks_for_are_not_opened(parked):
    air = air_around(parked)
    listens(parked, air.radio, proofs=["beacon"])
    parked.starts_all()
    assert parked.rider("alice").moves("open", "left").status == 0
    assert "listens with" not in parked.stepd.stderr.read_text()


# --- In a kernel that has Bluetooth (see test_rig.py) ---


@in_rig
@COMMANDS
def test_an_ordinary_adapter_calls_while_it_listens(new_vehicle, commands):
    """Each adapter of the vehicle sends a beacon and listens, and the rider's does both at once."""
    vehicle = new_vehicle("car", "--beacon", "left=hci0", "--beacon", "right=hci1")
    air = air_around(vehicle)
    listens(vehicle, air.radio, proofs=["beacon", "heard"], both=True)
    vehicle.edit("stepd.toml", period_s=8)
    air.starts(*commands, left_rider=HERE, right_rider=AWAY, **AT_LEFT)
    starts(vehicle)
    opened = vehicle.rider("alice").types("open", "left", "--radio", "hci2", *PATIENT)
    assert opened.status == 0, opened
    assert "call     calling the vehicle with hci2" in opened.stderr
    assert vehicle.motions == [("left", "close", "open")]


@in_rig
@COMMANDS
def test_an_unprivileged_user_calls_through_bluetoothd(new_listening, commands):
    vehicle, air = new_listening()
    air.starts(*commands, **AT_LEFT)
    starts(vehicle)
    alice = vehicle.rider("alice")
    subprocess.run(["chown", "-R", "65534:65534", vehicle.folder], check=True)
    radio = vehicle.radio("left").removeprefix("btsnoop:")
    for path in (vehicle.folder.parent, vehicle.folder.parent.parent, Path(radio)):
        path.chmod(0o755)
    os.makedirs("/run/dbus", exist_ok=True)
    subprocess.run(["dbus-daemon", "--system", "--fork", "--nopidfile"], check=True)
    with subprocess.Popen(["/usr/libexec/bluetooth/bluetoothd", "-n"], stderr=subprocess.DEVNULL) as daemon:
        try:
            examine = ("doctor", "radio", "--radio", "bluez:hci2")
            wait_until(lambda: vehicle.stepctl(*examine).status == 0, "bluetoothd serves")
            stepctl = STEPD.with_name("stepctl")
            words = (stepctl, "open", "left", "--radio", f"btsnoop:{radio}", "--call-radio", "bluez:hci2", *PATIENT)
            ended = vehicle.starts("stepctl-nobody", *NOBODY, *words, "--vehicle", alice.file).ends()
            assert ended.status == 0, ended
            assert vehicle.motions == [("left", "close", "open")]
        finally:
            daemon.kill()
