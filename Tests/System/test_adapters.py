"""Adapters of a real kernel, raw and through bluetoothd: what the programs say and what they leave behind."""

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import rig
from captures import VEHICLE, VEHICLE_FILE
from programs import BINARIES

pytestmark = rig.needs_kernel

# The controller begins with the first one while the host is still starting the scan.
SCENARIO = f"""\
raw 00:11:22:33:44:55 pub 50 0 0201060303aafe -50
ibeacon C0:00:00:00:00:01 rnd 100 {VEHICLE.replace("-", "")} 1 1 -59 -50
ibeacon C0:00:00:00:00:02 rnd 100 {VEHICLE.replace("-", "")} 2 1 -59 -80
"""
BUS = ("--pre", "mkdir -p /run/dbus; dbus-daemon --system --fork --nopidfile")
# A reader that goes away is noticed at the next line; a busy machine takes its time.
GONE = "for _ in $(seq 300); do pgrep -x stepctl >/dev/null || break; sleep 0.1; done; pgrep -x stepctl"
NOTICE = "another program ended the scan of hci0; it is started again\n"


@dataclass
class Seen:
    status: int
    stdout: str
    stderr: str
    is_scanning: bool


@pytest.fixture
def kernel():
    with tempfile.TemporaryDirectory() as folder:
        # For nobody to read in.
        os.chmod(folder, 0o755)
        yield partial(run, Path(folder))


def run(folder: Path, command: str, *options: str) -> Seen:
    (folder / "scenario").write_text(SCENARIO)
    (folder / "car.toml").write_text(VEHICLE_FILE)
    kernel = [rig.RUN, "--timeout", "180", "--scn", folder / "scenario", "--keep", folder / "kept", *options]
    script = f"export HOME=/nonexistent STEPCTL_VEHICLE={folder}/car.toml PATH={BINARIES}:$PATH; {command}"
    ended = subprocess.run([*kernel, "--", "sh", "-c", script], capture_output=True, text=True)
    enabled = re.findall(r"cmd (?:2042|200c) params (\d\d)", (folder / "kept/ctl0.log").read_text())
    return Seen(ended.returncode, ended.stdout, ended.stderr, enabled[-1:] == ["01"])


@pytest.mark.parametrize("number", [2, 15])
@pytest.mark.parametrize("options", [(), ("--ctl", "--bt4")], ids=["bluetooth5", "bluetooth4"])
def test_a_signal_ends_the_scan_in_the_controller_too(kernel, number, options):
    seen = kernel(f"timeout --preserve-status -s {number} 6 stepctl scan", *options)
    assert seen.status == 128 + number
    assert len(seen.stdout.splitlines()) >= 10
    assert not seen.is_scanning


def test_a_reader_that_goes_away_ends_the_scan_in_the_controller_too(kernel):
    seen = kernel("stepctl scan | head -n 3; " + GONE)
    assert (seen.status, len(seen.stdout.splitlines()), seen.stderr) == (1, 3, "")
    assert not seen.is_scanning


def test_a_scan_that_bluetoothd_ends_goes_on_and_that_is_told_once(kernel):
    daemon = "/usr/libexec/bluetooth/bluetoothd -n >/dev/null 2>&1"
    seen = kernel(f"(sleep 2; {daemon}) & stepctl scan --json --timeout 12", *BUS)
    assert (seen.status, seen.stderr) == (0, NOTICE)
    times = [json.loads(line)["time_s"] for line in seen.stdout.splitlines()]
    assert len([time for time in times if time > times[-1] - 1]) >= 10


@pytest.mark.parametrize(
    ("radio", "options", "status", "error"),
    [
        ("hci0", ("--as", "nobody"), 77, "not permitted to use hci0; `sudo setcap cap_net_raw+ep "),
        ("hci0", ("--noup",), 69, "hci0 is down; `bluetoothctl power on` or `sudo hciconfig hci0 up` turns it on"),
        ("hci1", (), 69, "cannot open hci1: there is no such adapter"),
        ("bluez:hci0", (), 69, "cannot open bluez:hci0: no D-Bus system bus (No such file or directory); `sudo "),
        ("bluez:hci0", BUS, 69, "bluez:hci0 needs bluetoothd, which is not running; `sudo systemctl start bluetooth`"),
        ("bluez:hci1", ("--dbus",), 69, "cannot open bluez:hci1: there is no such adapter"),
    ],
)
def test_what_is_wrong_with_an_adapter_is_told_in_a_line(kernel, radio, options, status, error):
    seen = kernel(f"stepctl scan --radio {radio} --timeout 5", *options)
    assert (seen.status, seen.stdout) == (status, "")
    told, *hints = seen.stderr.splitlines()
    assert told.startswith(f"stepctl: error: {error}")
    known = {
        "no such adapter": "`stepctl doctor` lists the radios",
        "is down": "`stepctl doctor` looks for the reason",
        "not permitted": "where bluetoothd runs, --radio bluez:hci0 needs no permission",
    }
    assert hints == [f"hint: {hint}" for part, hint in known.items() if part in error]


@pytest.mark.parametrize("radio", ["hci0", "bluez:hci0"])
def test_a_rider_is_located(kernel, radio):
    options = ("--dbus", "--as", "nobody") if radio.startswith("bluez") else ()
    seen = kernel(f"stepctl locate --json --radio {radio}", *options)
    assert (seen.status, seen.stderr) == (0, "")
    report = json.loads(seen.stdout)
    assert (report["located"], report["step"]) == (True, "left")


def test_too_few_readings_decide_nothing_and_that_is_told(kernel):
    # Another program that scans without a filter keeps bluetoothd from beginning anew.
    other = "bluetoothctl --timeout 30 scan on >/dev/null 2>&1"
    seen = kernel(f"{other} & sleep 2; stepctl locate --json --radio bluez:hci0 --timeout 10", "--dbus")
    assert (seen.status, json.loads(seen.stdout)["located"]) == (3, False)
    assert seen.stderr.startswith("hint: bluetoothd passes on 0.")
