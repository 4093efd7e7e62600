"""A computer without a clock of its own: it shows 1970 until the network answers. And one after the authority's end."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from certificates import reissue
from devices import Device
from programs import STEPD, wait_until

DAY_S = 86_400
AUTHORITY_DAYS = 3650
SET_CLOCK = "set the clock, and try again: `timedatectl set-ntp true`"


@pytest.fixture(scope="session")
def clock(hasty):
    """Variables with which a program's clock is so many seconds off, and is set right later or put off by so many."""
    return lambda shift, leap=0: hasty(1) | {"SHIFT": str(int(shift)), "LEAP": str(int(leap)), "LEAP_AFTER": "10"}


def since_1970() -> int:
    """How far a clock is behind that shows 1970-01-01T00:01."""
    return int(time.time()) - 60


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All that is there, with its mode and its content."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


@pytest.fixture(scope="module")
def place(file_vehicle, stepctl, transcript, tmp_path_factory):
    """A folder with a vehicle, which has a rider, and the request of another."""
    folder = tmp_path_factory.mktemp("clock")
    shutil.copytree(file_vehicle.folder, folder / "car", symlinks=True)
    assert stepctl("provision", "relocate", folder / "car").status == 0
    phone = Device(folder / "phone", transcript)
    (folder / "request").write_text(phone.asks())
    return folder


# What bears a time, or is decided by one.
MAKERS = {
    "a token": "provision token car --rider bob",
    "another token": "provision token car --rider alice --force",
    "a token for later": "provision token car --rider bob --from 2030-01-02T08:00",
    "access for a device": "provision token car --device request",
    "a watcher": "provision watcher car --name home",
    "a vehicle's certificates": "provision renew car",
    "a changed vehicle": "provision update car",
    "a vehicle of this operator": "provision vehicle new --operator car",
    "a vehicle's code": "provision qr --vehicle car --output code.png",
    "what ends soon": "operator renew car",
    "everything": "operator renew car --within 36500d",
    "another address": "operator move car --port 18883",
    "a notice": "operator publish car",
    "a revocation": "operator revoke car --rider alice",
    "a new key": "operator keys rotate car",
    "an old key": "operator keys retire car",
}
# What begins an authority, or comes before there is one.
BEGINNINGS = {
    "a vehicle": "provision vehicle new",
    "a vehicle in another's place": "provision vehicle car --force",
    "a vehicle's keys": "provision keys new",
    "an operator": "operator init new",
}


@pytest.mark.parametrize("command", [*MAKERS.values(), *BEGINNINGS.values()], ids=[*MAKERS, *BEGINNINGS])
def test_in_1970_nothing_is_made(place, stepctl, clock, command):
    before = contents(place)
    variables = clock(-since_1970())
    ended = stepctl(*command.split(), folder=place, input=b"car\n", **variables)
    assert (ended.status, ended.stdout) == (78, ""), ended
    said = r"this computer's clock is not set: it shows 1970-01-01T00:0\d:\d\dZ; nothing was changed"
    assert re.fullmatch(said, ended.error) and ended.hint == SET_CLOCK
    assert contents(place) == before
    if command != "provision vehicle car --force":
        ended = stepctl(*command.split(), "--json", folder=place, **variables)
        assert (ended.status, ended.json["code"], ended.json["exit"]) == (78, "configuration", 78)
        assert contents(place) == before


@pytest.mark.parametrize("command", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("days", "says"),
    [
        (-1, r"this computer's clock shows \S+Z, but \S+/ca\.pem, which issues certificates, begins \S+Z; nothing was changed"),
        (AUTHORITY_DAYS + 1, r"\S+/ca\.pem, which issues certificates, ended \S+Z, and this computer's clock shows \S+Z; nothing was changed"),
    ],
    ids=["the day before", "after the end"],
)
def test_outside_the_authoritys_time_nothing_is_made(place, stepctl, clock, command, days, says):
    before = contents(place)
    ended = stepctl(*command.split(), folder=place, **clock(days * DAY_S))
    assert (ended.status, ended.stdout) == (78, ""), ended
    assert re.fullmatch(says, ended.error)
    if days < 0:
        assert ended.hint == SET_CLOCK
    else:
        assert "`stepctl provision vehicle DIR --force`" in ended.hint and "renew" not in ended.hint
    assert contents(place) == before


def test_what_bears_no_time_needs_no_clock(place, stepctl, clock):
    before, variables = contents(place), clock(-since_1970())
    for command in ("provision relocate car", "operator renew car --list", "operator riders car"):
        assert stepctl(*command.split(), folder=place, **variables).status == 0, command
    assert contents(place) == before


def test_after_the_end_a_vehicle_is_made_in_the_old_ones_place(file_vehicle, stepctl, clock, tmp_path):
    shutil.copytree(file_vehicle.folder, tmp_path / "car", symlinks=True)
    days = AUTHORITY_DAYS + 1
    for command in ("provision vehicle car --force", "provision token car --rider bob", "provision renew car"):
        assert stepctl(*command.split(), folder=tmp_path, input=b"car\n", **clock(days * DAY_S)).status == 0, command
    then = str(int(time.time()) + days * DAY_S)
    for name in ("tls/broker.pem", "tls/controller.pem", "riders/bob/rider.pem"):
        verify = ["openssl", "verify", "-x509_strict", "-attime", then, "-CAfile", "car/tls/ca.pem", f"car/{name}"]
        assert subprocess.run(verify, cwd=tmp_path, capture_output=True).returncode == 0, name


# --- stepd ---


def checked(vehicle, clock_variables: dict):
    """`stepd --check` by that clock, and what `doctor` says of the same vehicle: its first certificate that is not ok."""
    arguments = (STEPD, "--check", "--config", vehicle.folder / "stepd.toml")
    ended = vehicle.starts("check", *arguments, variables=clock_variables).ends()
    doctor = vehicle.stepctl("doctor", "vehicle", "--vehicle", vehicle.folder / "vehicle.toml", "--json", **clock_variables)
    findings = doctor.json["areas"][0]["findings"]
    found = next((f for f in findings if f["subject"] == "certificate" and f["state"] != "ok"), None)
    return ended, doctor, found


def test_check_says_what_doctor_says_in_1970(parked, clock):
    ended, doctor, found = checked(parked, clock(-since_1970()))
    assert ended.status == doctor.status == 78 and found["state"] == "broken"
    said = ": this computer's clock is behind, or the operator's ahead"
    assert ended.error.startswith(f"{parked.folder}/tls/ca.pem: not valid before ") and ended.error.endswith(said)
    assert "tls/ca.pem: not valid before " in found["text"] and found["text"].endswith(said)
    # Where a time service keeps the clock, the operator's was wrong.
    assert found["remedy"] in (None, "timedatectl set-ntp true")
    assert ("hint: set the clock: `timedatectl set-ntp true`" in ended.stderr) == (found["remedy"] is not None)


@pytest.mark.parametrize(
    ("days", "status", "text"),
    [
        (AUTHORITY_DAYS - 9.5, 0, "expires in 9 days"),
        (AUTHORITY_DAYS + 30.5, 78, "expired 30 days ago"),
    ],
)
def test_an_authority_that_ends_is_not_said_to_be_renewed(parked, clock, days, status, text):
    # Renewed as late as that, they end with their authority.
    for name in ("controller", "broker"):
        reissue(parked.folder, parked.folder / f"tls/{name}.pem", (-1, AUTHORITY_DAYS))
    ended, doctor, found = checked(parked, clock(days * DAY_S))
    kind = "error" if status else "warning"
    remedy = "make the vehicle again: `stepctl provision vehicle DIR --force`"
    said = f"stepd: {kind}: {parked.folder}/tls/ca.pem: the certificate authority {text}; {remedy}\n"
    assert (ended.status, ended.stdout, ended.stderr) == (status, "", said)
    assert doctor.status == status and found["state"] == ("broken" if status else "warning")
    assert found["text"].endswith("; the operator has to make the vehicle again, and to give new access")
    assert "renew" not in doctor.stdout


def test_stepd_waits_for_a_clock_and_goes_on_when_it_is_set(parked, clock):
    parked.starts_broker()
    behind = since_1970()
    parked.launches_stepd(**clock(-behind, behind))
    parked.stepd.says(f"{parked.folder}/tls/ca.pem: not valid before ")
    waiting = parked.stepd.says("waiting until this computer's clock is set: it shows 1970-01-01T00:0")
    assert waiting.endswith("Z")
    parked.stepd.says("is not valid yet (is this machine's clock right?); trying again")
    parked.stepd.says("connected to")
    parked.broker.says(f"'{parked.status('right')}'")
    assert parked.is_unmoved()
    assert parked.rider("anna").moves("open", "left").status == 0
    assert parked.motions == [("left", "close", "open")]


def test_nothing_moves_when_the_clock_falls_back_to_1970(parked, clock):
    parked.starts_broker()
    anna = parked.rider("anna")
    # Ten seconds later.
    parked.starts_stepd(**clock(0, -since_1970()))
    wait_until(lambda: anna.types("status").status == 5, "the clock falls back")
    ended = anna.moves("open", "left", "--json")
    assert (ended.status, ended.outcome["refusal"]) == (5, "token_not_yet_valid")
    assert parked.is_unmoved()
