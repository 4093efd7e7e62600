"""From an empty folder to an open step, and to one that stays shut."""

import json
import re
from contextlib import ExitStack, closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from joserfc.jwk import OKPKey

import captures
from programs import STEPD, Running, Stepctl, Transcript, wait_until


def at(hours: float) -> str:
    """So many hours from now, as JSON has it."""
    return (datetime.now(timezone.utc) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Car:
    """A vehicle of the fleet, made by stepctl, whose stepd runs."""

    def __init__(self, fleet, folder: Path, stack: ExitStack):
        self.folder = folder
        self.stepctl = Stepctl(folder.parent, Transcript())
        made = self.stepctl("provision", "vehicle", folder, "--operator", fleet.folder / "operator")
        assert made.status == 0, made
        fleet.broker.reads_access_again()
        added = fleet.types("vehicle", "add", folder.name)
        assert added.returncode == 0, added
        text = (folder / "stepd.toml").read_text()
        (folder / "stepd.toml").write_text(re.sub(r"^travel_s = .*$", "travel_s = 0.3", text, flags=re.MULTILINE))
        self.id = re.search(r'^uuid = "(.*)"$', (folder / "vehicle.toml").read_text(), re.MULTILINE)[1].lower()
        log = folder.parent / f"{folder.name}-stepd.log"
        self.stepd = stack.enter_context(
            closing(
                Running(
                    [STEPD, "--config", folder / "stepd.toml"], log, self.stepctl.environment, Transcript())))
        self.stepd.says("connected to")

    @property
    def radio(self) -> str:
        path = self.folder.parent / f"{self.folder.name}.btsnoop"
        return f"btsnoop:{path}" if path.exists() else captures.written(path, captures.at_the_left(self.id))


class Phone:
    """Where a rider has stepctl. The device's key is the key of the rider's login."""

    def __init__(self, fleet, home: Path, new_rider):
        home.mkdir()
        self.stepctl, self.home = Stepctl(home, Transcript()), home
        made = self.stepctl("enroll", "--name", "rider")
        assert made.status == 0, made
        self.request = made.stdout.strip()
        key = json.loads((home / ".config/stepctl/device/device.jwk").read_text())
        self.rider = new_rider(fleet, OKPKey.import_key(key))

    def gets_access(self, booking: str) -> str:
        answer = self.rider.asks("POST", f"/v1/bookings/{booking}/access", json={"request": self.request})
        assert answer.status_code == 200, answer.text
        file = self.home / "access"
        file.write_text(answer.text)
        imported = self.stepctl("config", "import", file, "--yes")
        assert imported.status == 0, imported
        return answer.text

    def opens(self, car):
        return self.stepctl("open", "--side", "left", "--radio", car.radio)


@pytest.fixture
def car(fleet, tmp_path):
    with ExitStack() as stack:
        yield Car(fleet, tmp_path / "car", stack)


@pytest.fixture
def phone(fleet, new_rider, tmp_path):
    return Phone(fleet, tmp_path / "phone", new_rider)


def booked(rider, car, begin=None, hours=2.0):
    answer = rider.books(car.id, begin, at(hours))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_from_nothing_to_an_open_step_and_to_one_that_is_refused(fleet, car, phone):
    booking = booked(phone.rider, car)
    assert booking["state"] == "booked" and booking["name"] == "car"
    phone.gets_access(booking["id"])
    opened = phone.opens(car)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
    assert phone.rider.asks("GET", f"/v1/bookings/{booking['id']}").json()["state"] == "active"
    assert phone.rider.asks("GET", f"/v1/vehicles/{car.id}").json()["state"] == "on_trip"

    revoked = fleet.types("revoke", "--booking", booking["id"])
    assert revoked.stdout == "1 token revoked\n", revoked
    wait_until(lambda: '"notices published"' in fleet.log() or refused(phone, car), "the notice")
    wait_until(lambda: refused(phone, car), "the step is refused")
    assert phone.rider.asks("GET", f"/v1/bookings/{booking['id']}").json()["state"] == "cancelled"


def refused(phone, car) -> bool:
    ended = phone.stepctl("close", "--side", "left", "--radio", car.radio)
    return ended.status == 5 and "revoked" in ended.stderr
