"""`doctor`: what is wrong with a radio, and the line to type."""

import os
import signal
import subprocess
from contextlib import closing

import pytest

import captures
from adapter import Adapter
from captures import HERE, VEHICLE
from programs import AS_ANYBODY, NOBODY, STEPCTL, blocked, wait_until
from rig import in_rig, outside


@pytest.fixture
def adapter(new_adapter) -> Adapter:
    return new_adapter(rate=10)


def findings(radio: dict, state: str) -> dict[str, str | None]:
    """The remedy of each subject in that state."""
    return {finding["subject"]: finding["remedy"] for finding in radio["findings"] if finding["state"] == state}


# --- Without an adapter ---


def test_a_radio_that_hears_beacons_is_usable(stepctl, adapter):
    ended = stepctl("doctor", "radio", "--json", "--radio", adapter.radio)
    assert ended.status == 0
    (radio,) = ended.json["radios"]
    assert (radio["usable"], radio["beacons"], findings(radio, "broken")) == (True, 2, {})
    assert 0 < radio["frames"] == radio["advertisements"] <= 2 * 10 * ended.seconds + 2
    # Of each beacon, in the three seconds, which may be more on a busy machine.
    assert ended.seconds >= 3
    slowest, quickest = (radio["frames"] / 2 / seconds for seconds in (ended.seconds, 3))
    assert slowest - 0.4 <= radio["readings_per_second"] <= quickest + 0.4


def test_it_prints_a_line_for_each_finding(stepctl, adapter):
    ended = stepctl("doctor", "radio", "--radio", adapter.radio)
    assert ended.lines[0] == adapter.radio
    assert ended.lines[1].startswith("  ok       listening   ")
    assert ended.lines[-1] == "all is well"
    assert ended.stderr == ""


def test_silence_is_noted_and_no_fault(stepctl, adapter):
    adapter.levels = {}
    ended = stepctl("doctor", "radio", "--json", "--radio", adapter.radio)
    assert ended.status == 0
    assert findings(ended.json["radios"][0], "warning") == {"listening": None}


def test_readings_that_are_too_few_are_noted(stepctl, tmp_path):
    radio = captures.written(tmp_path / "few", captures.HEADER + captures.heard(VEHICLE, {1: HERE}, seconds=0.1))
    ended = stepctl("doctor", "radio", "--radio", radio)
    assert ended.status == 0
    assert "  warning  listening   1 heard, 1 from 1 beacon, up to 0.3 readings/s: too few to locate you" in ended.lines


@pytest.mark.parametrize(
    "radio, status, text",
    [
        ("h4:unix:/nonexistent", 69, "cannot connect"),
        ("btsnoop:/nonexistent", 66, "cannot open"),
        ("btsnoop:/dev/null", 65, "is not a btsnoop capture"),
    ],
)
def test_a_radio_that_cannot_be_used_ends_with_the_status_that_fits(stepctl, radio, status, text):
    ended = stepctl("doctor", "radio", "--radio", radio)
    assert (ended.status, ended.stderr) == (status, "")
    assert text in ended.lines[1] and ended.lines[1].startswith("  broken   ")
    assert ended.lines[-1].startswith("broken: ")


def test_a_capture_that_may_not_be_read_is_a_question_of_permission(stepctl, tmp_path):
    (tmp_path / "capture").touch(mode=0)
    ended = stepctl("doctor", "radio", "--radio", f"btsnoop:{tmp_path / 'capture'}", prefix=AS_ANYBODY)
    assert ended.status == 77 and "Permission denied" in ended.lines[1]


def test_what_names_no_radio_is_wrong_as_everywhere(stepctl):
    assert stepctl("doctor", "radio", "--radio", "wlan0").status == 64


@outside
def test_without_bluetooth_it_says_so(stepctl):
    ended = stepctl("doctor", "radio")
    if os.path.isdir("/sys/class/bluetooth") and os.listdir("/sys/class/bluetooth"):
        pytest.skip("this machine has an adapter")
    assert ended.status == 69
    assert ended.lines[-1].startswith("broken: ")
    assert ended.lines[2].startswith("           type:       sudo ")


# --- In a kernel that has Bluetooth (see test_rig.py) ---


@pytest.fixture
def examine(stepctl):
    """Each radio, by its name, and the status."""

    def run(*arguments, prefix=()):
        ended = stepctl("doctor", "radio", "--json", *arguments, prefix=prefix)
        return {radio["radio"]: radio for radio in ended.json["radios"]}, ended.status

    return run


@in_rig
def test_root_can_use_the_adapter(examine):
    radios, status = examine()
    assert status == 0 and list(radios) == ["hci0", "bluez:hci0"]
    assert findings(radios["hci0"], "broken") == {}
    assert radios["hci0"]["beacons"] == 3
    assert radios["hci0"]["readings_per_second"] > 9
    assert not radios["bluez:hci0"]["usable"]


@in_rig
def test_nobody_is_told_the_capability_to_give(examine):
    radios, status = examine("--radio", "hci0", prefix=NOBODY)
    assert status == 77
    path = os.path.realpath(STEPCTL)
    assert findings(radios["hci0"], "broken") == {"permission": f"sudo setcap cap_net_raw+ep {path}"}


@in_rig
def test_the_line_that_it_says_helps(examine):
    radios, _ = examine("--radio", "hci0", prefix=NOBODY)
    remedy = findings(radios["hci0"], "broken")["permission"].removeprefix("sudo ")
    # This file system is a copy that goes with the kernel.
    subprocess.run(remedy.split(), check=True)
    radios, status = examine("--radio", "hci0", prefix=NOBODY)
    assert (status, findings(radios["hci0"], "broken")) == (0, {})
    subprocess.run(["setcap", "-r", remedy.split()[-1]], check=True)


@in_rig
def test_an_adapter_that_is_down_is_told_and_how_it_comes_up(examine):
    subprocess.run(["hciconfig", "hci0", "down"], check=True)
    radios, status = examine("--radio", "hci0")
    assert status == 69
    remedy = findings(radios["hci0"], "broken")["adapter"]
    assert remedy == "sudo hciconfig hci0 up"
    subprocess.run(remedy.removeprefix("sudo ").split(), check=True)
    assert examine("--radio", "hci0")[1] == 0


@in_rig
def test_an_adapter_that_is_not_there_is_told(examine):
    radios, status = examine("--radio", "hci7")
    assert status == 69 and "adapter" in findings(radios["hci7"], "broken")


@in_rig
def test_who_else_uses_bluetooth_is_told(examine):
    with subprocess.Popen(["btmon"], stdout=subprocess.DEVNULL) as btmon:
        try:
            wait_until(lambda: os.path.exists(f"/proc/{btmon.pid}/fd/5"), "it runs")
            radios, _ = examine("--radio", "hci0")
        finally:
            btmon.kill()
    texts = [finding["text"] for finding in radios["hci0"]["findings"] if finding["subject"] == "others"]
    assert texts == [f"Bluetooth is also used by btmon ({btmon.pid})"]


@in_rig
def test_a_signal_ends_it_while_a_controller_does_not_answer(stepctl, tmp_path):
    controller = int(subprocess.check_output(["pgrep", "beaconctl"]))
    os.kill(controller, signal.SIGSTOP)
    try:
        with closing(stepctl.start(tmp_path / "log", "doctor", "radio", "--radio", "hci0")) as examining:
            wait_until(lambda: signal.SIGINT in blocked(examining.process.pid), "it has taken charge of SIGINT")
            examining.signal(signal.SIGINT)
            assert examining.ends().status == -signal.SIGINT
    finally:
        os.kill(controller, signal.SIGCONT)


@in_rig
def test_with_bluetoothd_nobody_needs_a_capability(examine):
    os.makedirs("/run/dbus", exist_ok=True)
    subprocess.run(["dbus-daemon", "--system", "--fork", "--nopidfile"], check=True)
    with subprocess.Popen(["/usr/libexec/bluetooth/bluetoothd", "-n"], stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_until(lambda: examine("--radio", "bluez:hci0")[1] == 0, "bluetoothd serves")
            radios, status = examine(prefix=NOBODY)
            assert status == 0
            assert not radios["hci0"]["usable"] and radios["bluez:hci0"]["usable"]
            radios, _ = examine("--radio", "hci0")
            assert radios["hci0"]["usable"] and "bluetoothd" in findings(radios["hci0"], "warning")
        finally:
            daemon.kill()
