"""The beacons that stepd sends: heard through controllers that hear each other, believed, and soon worth nothing."""

import base64
import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import time

import pytest

import captures
import client
import stepproto as proto
from adapters_nearby import Air
from captures import AWAY, HERE
from peers import Witness
from programs import NOBODY, STEPD, wait_until
from rig import in_rig
from vehicle import Vehicle

PERIOD_S = 2
# A minor is good for its period and the next: on a busy machine a rider takes that long.
RIDERS_PERIOD_S = 6
AT_LEFT = {"left_rider": HERE, "right_rider": AWAY}  # the rider, who hears the vehicle


@pytest.fixture
def air(tmp_path) -> Air:
    return Air(tmp_path, "left", "right", "rider")


@pytest.fixture
def new_beaming(new_vehicle, air):
    """A vehicle whose stepd sends its beacons; nothing runs yet. Each step has an adapter, or one has both."""

    def make(*beacons: str, period: int = PERIOD_S) -> Vehicle:
        beacons = beacons or (f"left={air.radio('left')}", f"right={air.radio('right')}")
        air.vehicle = vehicle = new_vehicle("car", *(word for beacon in beacons for word in ("--beacon", beacon)))
        for secret in vehicle.folder.glob("keys/*.beacon"):
            vehicle.transcript.secrets[json.loads(secret.read_bytes())["k"]] = str(secret)
        vehicle.edit("stepd.toml", period_s=period)
        return vehicle

    return make


@pytest.fixture
def beaming(new_beaming, air, request) -> Vehicle:
    vehicle = new_beaming(period=getattr(request, "param", PERIOD_S))
    air.starts(**AT_LEFT)
    vehicle.starts_all()
    on_the_air(vehicle)
    return vehicle


def on_the_air(vehicle: Vehicle, after: int = 0):
    """Waits for that: stepd serves before its beacons do."""
    for step in ("left", "right"):
        vehicle.stepd.says(f"{step}: on the air", after=after)


@pytest.fixture
def scan(stepctl, air, tmp_path):
    def run(seconds: float, *arguments) -> list[dict]:
        radio = ("--radio", air.radio("rider"), "--timeout", seconds)
        return stepctl("scan", "--json", *radio, *arguments, folder=tmp_path).objects

    return run


def minor(vehicle: Vehicle, step: str, when: float, period_s: int = PERIOD_S) -> int:
    """What PROTOCOL.md has a step send at a time."""
    key = json.loads((vehicle.folder / f"keys/{step}.beacon").read_bytes())["k"]
    secret = base64.urlsafe_b64decode(key + "=")
    message = b"stepctl beacon minor\0" + step.encode() + b"\0" + (int(when) // period_s).to_bytes(8, "big")
    return int.from_bytes(hmac.digest(secret, message, hashlib.sha256)[:2], "big")


# --- Heard ---


@pytest.mark.parametrize("commands", [(), ("--bt4",)], ids=["bluetooth5", "bluetooth4"])
def test_the_step_opens_for_whoever_hears_it_best(new_beaming, commands, air):
    vehicle = new_beaming(period=RIDERS_PERIOD_S)
    air.starts(*commands, **AT_LEFT)
    vehicle.starts_all()
    opened = vehicle.rider("alice").types("open", "--side", "left", "--radio", air.radio("rider"))
    assert opened.status == 0, opened
    assert vehicle.motions == [("left", "close", "open")]


def test_each_step_sends_what_the_protocol_has_it_send_and_never_pauses(beaming, scan):
    frames = scan(6.5)
    pauses = []
    for step, major in (("left", 1), ("right", 2)):
        own = [frame for frame in frames if frame["major"] == major]
        assert {(frame["uuid"], frame["measured_power_dbm"]) for frame in own} == {(beaming.uuid, -59)}
        assert len({frame["address"] for frame in own}) == 1
        times = [frame["time_s"] for frame in own]
        assert len(own) <= 70, "ten a second"
        pauses.append(max(b - a for a, b in zip(times, times[1:])))
        # A frame that was on its way when the period ended is the one before's.
        late = [periods_behind(beaming, step, frame) for frame in own]
        assert late.count(0) > len(own) / 2
        sent = [int(time) // PERIOD_S - periods for time, periods in zip(times, late)]
        assert sent == sorted(sent) and len(set(sent)) >= 3
    # What holds up this machine would show in both.
    assert min(pauses) < PERIOD_S


def periods_behind(vehicle: Vehicle, step: str, frame: dict) -> int:
    """How many periods ago the frame's minor was due."""
    due = [minor(vehicle, step, frame["time_s"] - periods * PERIOD_S) for periods in range(4)]
    assert frame["minor"] in due
    return due.index(frame["minor"])


def test_one_adapter_is_both_beacons_and_the_log_says_what_that_costs(new_beaming, scan, air):
    vehicle = new_beaming(air.radio("left"))
    air.starts(**AT_LEFT)
    vehicle.starts_all()
    vehicle.stepd.says("so nobody can tell the sides by them")
    vehicle.stepd.says("left, right: on the air")
    frames = scan(1.5)
    assert {frame["major"] for frame in frames} == {1, 2}
    assert len({frame["address"] for frame in frames}) == 2


# --- Copied ---


@pytest.mark.parametrize("beaming", [RIDERS_PERIOD_S], indirect=True)
def test_a_recording_opens_nothing_two_periods_later(beaming, scan, tmp_path, air):
    alice = beaming.rider("alice")
    frames = scan(2.5, "--save", "copy.btsnoop")
    assert frames
    period = lambda time: time // RIDERS_PERIOD_S  # noqa: E731
    wait_until(lambda: period(time.time()) > period(frames[-1]["time_s"]) + 1, "two periods")
    replayed = alice.types("open", "--side", "left", "--radio", f"btsnoop:{tmp_path / 'copy.btsnoop'}")
    assert replayed.status == 5, replayed
    assert "stale_proof" in replayed.error
    assert beaming.is_unmoved()
    # The rider who is there is believed all the same.
    assert alice.types("open", "--side", "left", "--radio", air.radio("rider")).status == 0


# --- Lost ---


@pytest.mark.parametrize("beaming", [RIDERS_PERIOD_S], indirect=True)
def test_a_lost_adapter_is_told_once_and_taken_up_again(beaming, air):
    alice = beaming.rider("alice")
    before = beaming.stepd.said
    air.process.kill()
    beaming.stepd.says("left: off the air", after=before)
    beaming.stepd.says("right: off the air", after=before)
    # It goes on serving.
    assert alice.types("status").status == 0
    time.sleep(3)
    said = beaming.stepd.stderr.read_bytes()[before:].decode()
    # The second reason, that nobody is there any more, is another than the first; neither is told again.
    assert said.count("left: off the air") <= 2
    air.starts(**AT_LEFT)
    on_the_air(beaming, after=before)
    assert alice.types("open", "--side", "left", "--radio", air.radio("rider")).status == 0


def test_a_controller_that_does_not_answer_holds_up_no_motion(new_beaming, air):
    """stepd waits five seconds for an answer. The next period begins, and the motion ends, well within them."""
    vehicle = new_beaming(period=1)
    vehicle.edit("stepd.toml", travel_s=3.0, limit_s=30)
    air.starts(**AT_LEFT)
    vehicle.starts_all()
    on_the_air(vehicle)
    with Witness(vehicle, vehicle.rider("alice").peer) as witness:
        statement = witness.ask("left")
        proof = proto.beacon_proof(1, statement["clock"], minor=minor(vehicle, "left", time.time(), period_s=1))
        command = client.build(witness.login, "left", "open", proto.permission(statement, proof))
        witness.exchange("left", command.payload, first_only=True)
        vehicle.wait_for_motions(("left", "close", "open"))
        air.process.signal(signal.SIGSTOP)
        vehicle.stepd.says("left: off the air")
    said = vehicle.stepd.stderr.read_text()
    assert "left: is open" in said.partition("left: off the air")[0], said
    air.process.signal(signal.SIGCONT)


def test_nothing_is_sent_when_stepd_has_ended(beaming, scan):
    beaming.stepd.signal(signal.SIGTERM)
    assert beaming.stepd.ends().status == 0
    assert scan(1) == []


def test_what_a_killed_stepd_left_on_is_put_right(beaming, scan):
    beaming.stepd.kill()
    frames = scan(3)
    assert frames, "a controller does not notice"
    beaming.starts_stepd()
    on_the_air(beaming)
    addresses = {frame["address"] for frame in scan(2)}
    assert len(addresses) == 2
    assert addresses.isdisjoint(frame["address"] for frame in frames)


# --- In a kernel that has Bluetooth (see test_rig.py) ---

CAPABILITY = ("--inh-caps=+net_raw", "--ambient-caps=+net_raw")


@in_rig
def test_a_user_of_its_own_takes_the_one_capability(new_beaming, air):
    vehicle = new_beaming()
    air.starts(**AT_LEFT)
    vehicle.starts_broker()
    subprocess.run(["chown", "-R", "65534:65534", vehicle.folder], check=True)
    for folder in (vehicle.folder.parent, vehicle.folder.parent.parent):
        folder.chmod(0o755)
    arguments = (STEPD, "--config", vehicle.folder / "stepd.toml")
    refused = vehicle.starts("stepd-1", *NOBODY, *arguments).ends()
    assert refused.status == 77
    assert refused.error == f"not permitted to use hci0; `sudo setcap cap_net_raw+ep {STEPD.resolve()}` allows it"
    assert subprocess.run([*NOBODY, *arguments, "--check"], capture_output=True).returncode == 77
    stepd = vehicle.starts("stepd-2", *NOBODY, *CAPABILITY, *arguments)
    stepd.says("left: on the air with hci0")
    stepd.says("right: on the air with hci1")


@in_rig
def test_check_asks_the_adapter_how_many_beacons_it_can_be(new_beaming, air):
    vehicle = new_beaming("hci0")
    air.starts("--sets", 1, **AT_LEFT)
    checked = vehicle.checks()
    assert checked.status == 78
    assert checked.stderr.startswith("stepd: error: hci0 can send 1 advertisement at a time, not 2")


@in_rig
def test_an_adapter_that_was_turned_off_sends_again_when_it_is_on(beaming, scan):
    before = beaming.stepd.said
    subprocess.run(["hciconfig", "hci0", "down"], check=True)
    beaming.stepd.says("left: off the air: hci0 is down", after=before)
    # The kernel leaves the controller as it was: it may go on with what it was told last, which soon is worth nothing.
    time.sleep(2 * PERIOD_S)
    subprocess.run(["hciconfig", "hci0", "up"], check=True)
    beaming.stepd.says("left: on the air", after=before)
    frames = [frame for frame in scan(2) if frame["major"] == 1]
    assert frames
    for frame in frames:
        assert frame["minor"] in {minor(beaming, "left", frame["time_s"] - late) for late in (0, 0.5)}


@in_rig
def test_bluetoothd_may_come_and_scan(beaming, scan):
    before = beaming.stepd.said
    os.makedirs("/run/dbus", exist_ok=True)
    subprocess.run(["dbus-daemon", "--system", "--fork", "--nopidfile"], check=True)
    with subprocess.Popen(["/usr/libexec/bluetooth/bluetoothd", "-n"], stderr=subprocess.DEVNULL) as daemon:
        try:
            time.sleep(5)
            frames = scan(3)
            assert {frame["major"] for frame in frames} == {1, 2}
            assert {frame["minor"] for frame in frames if frame["major"] == 1} <= {
                minor(beaming, "left", frame["time_s"] - late) for frame in frames for late in (0, 0.5)
            }
        finally:
            daemon.kill()
    assert "off the air" not in beaming.stepd.stderr.read_bytes()[before:].decode()


# --- Configured ---


@pytest.mark.parametrize("more, sets", [((), 1), (("--bt4",), 1)], ids=["one set", "bluetooth4"])
def test_an_adapter_with_too_few_sets_is_an_error_at_the_start(new_beaming, more, sets, air):
    vehicle = new_beaming(air.radio("left"))
    air.starts("--sets", sets, *more, **AT_LEFT)
    vehicle.starts_broker()
    ended = vehicle.starts("stepd", STEPD, "--config", vehicle.folder / "stepd.toml").ends()
    assert ended.status == 78
    assert ended.error == (
        f"{air.radio('left')} can send 1 advertisement at a time, not 2: each beacon takes one, and so does [link]; "
        "use one more adapter")


@pytest.mark.parametrize(
    "adapter, reason",
    [
        ("btsnoop:car.btsnoop", "btsnoop:car.btsnoop cannot advertise"),
        ("wlan0", '"wlan0" is not a radio'),
    ],
)
def test_check_finds_a_radio_that_cannot_send(new_beaming, adapter, reason):
    vehicle = new_beaming("left=hci0")
    vehicle.edit("stepd.toml", adapter=adapter)
    checked = vehicle.checks()
    assert checked.status == 78
    file = re.escape(str(vehicle.folder / "stepd.toml"))
    assert re.match(rf"stepd: error: {file}:\d+: \[beacon.steps.left\] adapter: {re.escape(reason)}", checked.stderr)


@pytest.mark.parametrize(
    "beacons", [("hci0", "left=hci1"), ("left=hci0", "left=hci1"), ("up=hci0",), ("btsnoop:x",), ("left=",), ("",)]
)
def test_provision_takes_one_radio_a_step(stepctl, tmp_path, beacons):
    arguments = [word for beacon in beacons for word in ("--beacon", beacon)]
    ended = stepctl("provision", "vehicle", tmp_path / "car", *arguments)
    assert ended.status == 64
    assert "--beacon" in ended.stderr
    assert not (tmp_path / "car").exists()


def test_secrets_of_beacons_are_their_own_and_private(new_beaming):
    vehicle = new_beaming()
    files = [vehicle.folder / "keys/left.beacon", vehicle.folder / "keys/right.beacon"]
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert files[0].read_bytes() != files[1].read_bytes()
    files[1].chmod(0o644)
    checked = vehicle.checks()
    assert checked.status == 77


# --- Bought ---


@pytest.fixture
def provision_beacon(stepctl, parked):
    def run(*arguments):
        return stepctl("provision", "beacon", "--vehicle", parked.folder / "vehicle.toml", *arguments)

    return run


def test_a_bought_beacon_is_programmed_with_what_stepctl_hears(parked, provision_beacon):
    told = provision_beacon("--step", "right", "--minor", "258", "--json").json
    assert bytes.fromhex(told["advertising_data"]) == captures.frame(parked.uuid, 2, 258)
    assert (told["uuid"], told["major"], told["minor"]) == (parked.uuid, 2, 258)
    assert (told["measured_power_dbm"], told["interval_ms"], told["saved"]) == (-59, 100, False)


def test_it_says_what_such_a_beacon_is_worth(provision_beacon):
    ended = provision_beacon("--step", "left")
    assert ended.status == 0
    assert "can send a copy from elsewhere" in ended.stderr
    assert all(len(line) <= 80 for line in ended.lines + ended.stderr.splitlines())


def test_a_beacon_that_was_saved_is_the_only_one_that_counts(parked, provision_beacon):
    file = parked.folder / "vehicle.toml"
    before = file.read_text()
    assert provision_beacon("--step", "left", "--minor", "77", "--measured-power", "-63", "--save").status == 0
    assert file.read_text() == before.replace("major = 1\n", "major = 1\nmeasured_power = -63\nminor = 77\n")
    assert provision_beacon("--step", "left", "--json").json["minor"] == 77
    alice = parked.starts_all().rider("alice")
    refused = alice.moves("open", "left")
    assert (refused.status, "wrong_step" in refused.error) == (5, True)
    assert parked.is_unmoved()
    own = captures.HEADER + captures.heard(parked.uuid, {2: AWAY}) + captures.heard(parked.uuid, {1: HERE}, minor=77)
    radio = captures.written(parked.folder.parent / "own.btsnoop", own)
    assert alice.types("open", "--side", "left", "--radio", radio).status == 0


def test_a_beacon_whose_minors_rotate_gets_none_that_stays(stepctl, tmp_path):
    car = tmp_path / "car"
    assert stepctl("provision", "vehicle", car, "--beacon", "left=h4:unix:/tmp/x").status == 0
    before = (car / "vehicle.toml").read_text()
    given = ("provision", "beacon", "--vehicle", car / "vehicle.toml")
    for saving in ((), ("--save",)):
        ended = stepctl(*given, *saving, "--step", "left")
        assert (ended.status, ended.stdout) == (78, "")
        assert ended.error == f"{car}/stepd.toml: stepd sends the left step's beacon itself; nothing was written"
        assert (car / "vehicle.toml").read_text() == before
    assert stepctl(*given, "--save", "--step", "right").status == 0


@pytest.mark.parametrize(
    "arguments",
    [("--step", "middle"), (), ("--step", "left", "--minor", "65536"), ("--step", "left", "--measured-power", "3")],
)
def test_what_is_no_beacon_of_the_vehicle_is_a_usage_error(provision_beacon, arguments):
    assert provision_beacon(*arguments).status == 64
