"""One stepd drives a vehicle, and one a servo, on a computer: whichever folder, file or user another is started from."""

import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
from cryptography.exceptions import InvalidSignature

from peers import Witness
from programs import STEPD, wait_until

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
STRANGER = 4242


def starts(vehicle, *arguments, prefix=(), config=None, **more):
    """Another stepd, which is to end by itself."""
    return vehicle.starts("second", *prefix, STEPD, "--config", config or vehicle.folder / "stepd.toml", *arguments, **more)


@pytest.fixture
def copy(vehicle, tmp_path):
    """The vehicle's folder again, as a backup has it, with a servo and a journal of its own."""
    folder = tmp_path / "copy"
    shutil.copytree(vehicle.folder, folder, symlinks=True)
    for file in folder.glob("journal.json*"):
        file.unlink()
    return folder


# --- The vehicle ---


def test_a_copied_folder_starts_no_second_stepd(vehicle, alice, copy):
    ended = starts(vehicle, config=copy / "stepd.toml").ends()
    assert (ended.status, ended.error) == (69, vehicle.said_to_a_second)
    pid = vehicle.stepd.process.pid
    assert ended.hint == f"end it first: `systemctl stop stepd`, or `kill {pid}`"
    # It has touched nothing there, and a question has one answer.
    assert not list(copy.glob("journal.json*")) and not (copy / "servo.jsonl").exists()
    with Witness(vehicle, alice.peer) as witness:
        assert witness.ask("left")
    assert alice.moves("open", "left").status == 0
    assert vehicle.motions == [("left", "close", "open")]


def test_a_servo_of_a_copied_folder_is_not_led_by_hand_either(vehicle, copy):
    ended = subprocess.run(
        [STEPD, "--config", copy / "stepd.toml", "--servo", "left"], input=b"find\n", capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (69, b"")
    assert ended.stderr.decode().splitlines()[0] == f"stepd: error: {vehicle.said_to_a_second}"
    assert not (copy / "servo.jsonl").exists()


def test_a_killed_stepd_gives_the_vehicle_back_at_once(vehicle, copy):
    vehicle.stepd.process.kill()
    vehicle.stepd.process.wait()
    second = starts(vehicle, config=copy / "stepd.toml")
    second.says("connected to")
    vehicle.stepd = starts(vehicle)
    assert vehicle.stepd.ends().status == 69


def test_two_vehicles_run_beside_each_other(vehicle, new_vehicle):
    other = new_vehicle("van").starts_all()
    assert vehicle.stepd.lives and other.stepd.lives


@is_root
def test_a_second_user_is_told_too(parked, tmp_path_factory):
    """Neither is root, and neither could read the other's files: the proof is the vehicle's key alone."""
    folders = []
    for user in (STRANGER, STRANGER + 1):
        # Nobody else can enter the folders of tests.
        folder = tmp_path_factory.mktemp("shared")
        for above in (folder, *folder.parents[:3]):
            above.chmod(above.stat().st_mode | 0o011)
        folder = folder / "car"
        shutil.copytree(parked.folder, folder, symlinks=True)
        for file in (folder, *folder.rglob("*")):
            os.chown(file, user, user, follow_symlinks=False)
        folders.append((folder, ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")))
    (first, be_first), (second, be_second) = folders
    parked.starts_broker()
    holder = starts(parked, config=first / "stepd.toml", prefix=be_first)
    holder.says("connected to")
    ended = starts(parked, config=second / "stepd.toml", prefix=be_second).ends()
    said = f"pid {holder.process.pid}, with {first}/stepd.toml"
    assert (ended.status, ended.error) == (69, f"another stepd runs for car: {said}; nothing was moved")


# --- Somebody who wants to keep it off ---


def squats(name: str, answers: bytes | None):
    os.setgroups([])
    os.setresgid(STRANGER, STRANGER, STRANGER)
    os.setresuid(STRANGER, STRANGER, STRANGER)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        while True:
            peer, _ = listener.accept()
            if answers is None:
                time.sleep(3600)
            peer.recv(4096)
            peer.send(answers)
            peer.close()


@contextmanager
def stranger(name: str, answers: bytes | None):
    """Another user's program that has a name."""
    process = multiprocessing.get_context("fork").Process(target=squats, args=(name, answers), daemon=True)
    process.start()
    try:
        listed = f"@{name}"
        wait_until(lambda: listed in open("/proc/net/unix").read(), "the stranger has the name")
        yield process.pid
    finally:
        process.kill()
        process.join()


@is_root
@pytest.mark.parametrize(
    "answers", [None, b"x", bytes(64) + b"/var/lib/stepctl/stepd.toml"], ids=["silent", "short", "lying"]
)
def test_a_stranger_with_the_vehicles_name_keeps_nobody_off(parked, answers):
    with stranger(f"stepd/vehicle/{parked.uuid}", answers) as pid:
        parked.starts_all()
        parked.stepd.says(f"pid {pid} holds the name of this vehicle's lock and is not its stepd")
        assert parked.rider("alice").moves("open", "left").status == 0
        # The journal and the servo have locks of their own.
        second = starts(parked).ends()
        assert second.status == 69 and "another program drives the simulated servo" in second.error


def test_a_stranger_gets_no_signature_for_anything_else(vehicle):
    """What the holder of the name signs begins with a sentence, and a question of another size is not answered."""
    claims = b"eyJhbGciOiJFZDI1NTE5IiwidHlwIjoi"
    for question in (claims, claims * 2, b"x"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.settimeout(60)
            asking.connect(f"\0stepd/vehicle/{vehicle.uuid}")
            asking.send(question)
            answer = asking.recv(4096)
        if question != claims:
            assert answer == b""
            continue
        key = vehicle.key("keys/signing").public_key()
        key.verify(answer[:64], b"stepd runs for this vehicle\0" + question)
        with pytest.raises(InvalidSignature):
            key.verify(answer[:64], question)
        assert answer[64:].decode() == f"{vehicle.folder}/stepd.toml"


# --- The outputs ---


@pytest.fixture
def chip(tmp_path):
    """A PWM chip of files, for several vehicles."""
    chip = tmp_path / "pwm/pwmchip3"
    chip.mkdir(parents=True)
    (chip / "export").touch(0o200)
    (chip / "npwm").write_text("2\n")
    (tmp_path / "fe20c000.pwm").mkdir()
    (chip / "device").symlink_to("../../fe20c000.pwm")
    return chip


def drives(vehicle, root, name):
    file = vehicle.folder / "stepd.toml"
    text = file.read_text().replace("chip = 0\n", f"chip = {name}\n")
    file.write_text(text)
    vehicle.edit("stepd.toml", root=str(root))
    return vehicle


@pytest.fixture
def car(new_vehicle, chip):
    return drives(new_vehicle("car", "--servo", "pwm"), chip.parent, "3").starts_all()


@pytest.fixture
def van(new_vehicle, chip, tmp_path):
    """Another vehicle, whose servos are on the same chip by another path, and by its name."""
    (tmp_path / "link").symlink_to(chip.parent)
    return drives(new_vehicle("van", "--servo", "pwm"), tmp_path / "link", '"fe20c000.pwm"')


def is_told(ended, car, output: str) -> bool:
    said = f"pid {car.stepd.process.pid}, with {car.folder}/stepd.toml; nothing was moved"
    return ended.status == 69 and ended.error.startswith(f"another program drives {output}") and ended.error.endswith(said)


def test_another_vehicles_stepd_drives_no_servo_that_is_driven(car, van, chip):
    assert is_told(starts(van).ends(), car, "channel ")
    led = starts(van, "--servo", "left", stdin=subprocess.PIPE)
    assert is_told(led.ends(), car, "channel ")
    assert sorted(path.name for path in chip.iterdir()) == ["device", "export", "npwm"]
    assert (chip / "export").read_text() == ""
    # --check looks, and holds nothing.
    checked = van.checks()
    assert checked.status == 0
    assert checked.stderr.splitlines() == [
        f"stepd: the servo of the step {step} is at channel {channel} of fe20c000.pwm (pwmchip3, 2 channels)"
        for step, channel in (("left", 0), ("right", 1))
    ]
    car.stepd.signal(signal.SIGKILL)
    car.stepd.process.wait()
    van.starts_all()


@is_root
def test_a_view_of_its_own_of_the_files_is_no_way_around(car, van, tmp_path, chip):
    """As a service has one (systemd.exec(5)): the chip is elsewhere there, and is still the same."""
    (tmp_path / "elsewhere").mkdir()
    van.edit("stepd.toml", root=str(tmp_path / "elsewhere"))
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    prefix = ("unshare", "--mount", "sh", "-c", script, "sh", chip.parent, tmp_path / "elsewhere")
    assert is_told(starts(van, prefix=prefix).ends(), car, "channel ")


@is_root
def test_only_who_may_drive_a_servo_can_keep_others_off_it(chip):
    for above in (chip, *chip.parents):
        if above.is_relative_to("/tmp") and above != above.parent:
            above.chmod(above.stat().st_mode | 0o011)
    tries = "exec 9>\"$0\" && flock -n 9 || exec 9<\"$0\" && flock -n 9"
    command = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "sh", "-c", tries]
    ended = subprocess.run([*command, chip / "export"], capture_output=True, text=True)
    assert ended.returncode != 0 and "Permission denied" in ended.stderr, ended


def test_a_simulated_servo_is_one_stepds_too(vehicle, alice, new_vehicle, tmp_path):
    """By the file that it writes, which is there from the first motion on."""
    van = new_vehicle("van")
    (tmp_path / "link.jsonl").symlink_to(vehicle.folder / "servo.jsonl")
    van.edit("stepd.toml", log=str(tmp_path / "link.jsonl"))
    van.starts_all()
    assert alice.moves("open", "left").status == 0
    refused = van.rider("bob").moves("open", "left")
    assert refused.status == 5 and "the controller cannot move the step" in refused.error, refused
    said = van.stepd.says("left: fault driver: another program drives the simulated servo")
    assert f"pid {vehicle.stepd.process.pid}, with {vehicle.folder}/stepd.toml" in said
    assert vehicle.motions == [("left", "close", "open")]
    van.stepd.close()
    assert is_told(starts(van).ends(), vehicle, "the simulated servo")
