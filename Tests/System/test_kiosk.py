"""Somebody else's program, built on the library products alone, opens a step (Tests/Kiosk)."""

import faulthandler
import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRATCH = ROOT / ".build/kiosk"


@pytest.fixture(scope="module")
def kiosk() -> Path:
    """Builds the package from outside: nothing of it may be `package` or `internal`."""
    # It takes minutes, and lets the other tests go first where all cores are busy.
    faulthandler.cancel_dump_traceback_later()
    command = ["nice", "swift", "build", "--package-path", ROOT / "Tests/Kiosk", "--scratch-path", SCRATCH]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return SCRATCH / "debug/kiosk"


def label(vehicle, step: str) -> str:
    printed = vehicle.stepctl("provision", "qr", "--step", step, "--vehicle", vehicle.folder, "--json")
    return printed.json["codes"][0]["content"]


def test_opens_the_step_whose_label_is_shown(kiosk, vehicle, alice, tmp_path):
    code = tmp_path / "car.code"
    code.write_text(vehicle.stepctl("provision", "qr", "--vehicle", vehicle.folder, "--json").json["codes"][0]["content"])
    command = [kiosk, code, alice.folder, label(vehicle, "left")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "the left step is open\n"), ended.stderr

    # The library's errors carry their meaning to a program that never saw stepctl.
    other = json.dumps({"uuid": "00000000-0000-4000-8000-000000000000", "stepId": "left"})
    ended = subprocess.run([*command[:3], other], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 3 and ended.stdout.startswith("kiosk: the label is not one of ")
    vehicle.broker.close()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 69 and ended.stdout.startswith("kiosk: cannot connect to the broker"), ended.stdout
