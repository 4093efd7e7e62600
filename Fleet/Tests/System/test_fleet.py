"""From an empty folder to an open step, and to one that stays shut."""

import json
import os
import pwd
import re
import subprocess
import tempfile
import textwrap
from contextlib import ExitStack, closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from joserfc.jwk import OKPKey

import captures
from programs import STEPD, Running, Stepctl, Transcript, wait_until
from server import STEPFLEET
from vehicle import free_port


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
        self.stack = stack
        self.drives()

    def drives(self):
        """Starts stepd."""
        self.log = self.folder.parent / f"{self.folder.name}-stepd.log"
        self.log.unlink(missing_ok=True)
        running = Running(
            [STEPD, "--config", self.folder / "stepd.toml"], self.log, self.stepctl.environment, Transcript())
        self.stepd = self.stack.enter_context(closing(running))
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
        # Four times as long as usual: this machine may be busy.
        self.stepctl.environment["STEPCTL_TIMEOUT"] = "40"
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


def test_a_revocation_reaches_a_vehicle_that_was_away_and_survives_restarts(fleet, car, phone):
    booking = booked(phone.rider, car)
    phone.gets_access(booking["id"])
    assert phone.opens(car).status == 0
    car.stepd.close()
    assert phone.rider.asks("POST", f"/v1/bookings/{booking['id']}/end").json()["state"] == "ended"
    wait_until(lambda: '"access revoked"' in fleet.log(), "the revocation")
    # The server is killed, whatever it was doing: what it had to tell it tells when it is back.
    fleet.kill()
    fleet.starts()
    car.drives()
    wait_until(lambda: refused(phone, car), "the step is refused")
    car.stepd.close()
    car.drives()
    assert refused(phone, car)


def test_a_shorter_booking_takes_the_longer_access_back(fleet, car, phone):
    booking = booked(phone.rider, car, hours=5)
    phone.gets_access(booking["id"])
    moved = phone.rider.asks(
        "PATCH", f"/v1/bookings/{booking['id']}", json={"to": at(1)}, headers={"If-Match": booking["etag"]})
    assert moved.status_code == 200, moved.text
    wait_until(lambda: refused(phone, car), "the access for five hours is refused")
    phone.gets_access(booking["id"])
    assert phone.opens(car).status == 0


def test_a_vehicle_that_is_suspended_opens_for_nobody_and_afterwards_for_its_rider(fleet, car, phone):
    booking = booked(phone.rider, car)
    phone.gets_access(booking["id"])
    assert fleet.types("vehicle", "suspend", "car").returncode == 0
    wait_until(lambda: refused(phone, car), "the step is refused")
    assert fleet.types("vehicle", "resume", "car").returncode == 0
    # The rider does nothing for it, and needs no server.
    wait_until(lambda: phone.opens(car).status == 0, "the access is back")
    # An access that was cancelled meanwhile is not.
    assert fleet.types("vehicle", "suspend", "car").returncode == 0
    assert fleet.types("revoke", "--booking", booking["id"]).returncode == 0
    assert fleet.types("vehicle", "resume", "car").returncode == 0
    wait_until(lambda: refused(phone, car), "the step is refused")


def test_a_restored_server_goes_on(fleet, car, phone, tmp_path):
    """Its operator, its riders and its bookings are the same."""
    booking = booked(phone.rider, car)
    assert fleet.types("backup", tmp_path / "backup").returncode == 0
    assert fleet.stops() == 0
    fleet.folder.rename(tmp_path / "lost")
    restored = fleet.types("restore", tmp_path / "backup", fleet.folder)
    assert restored.returncode == 0, restored
    fleet.starts()
    phone.gets_access(booking["id"])
    assert phone.opens(car).status == 0
    checked = fleet.types("check", fleet.folder)
    assert (checked.returncode, "nothing is wrong" in checked.stdout) == (0, True), checked


def test_the_broker_runs_after_the_installation_that_debian_is_told(tmp_path_factory):
    """As root, who gives each of both services what is its own."""
    users = {entry.pw_name for entry in pwd.getpwall()}
    if os.geteuid() != 0 or "mosquitto" not in users:
        pytest.skip("only root can give files to the user mosquitto, who is not everywhere")
    text = (Path(__file__).parents[3] / "debian/stepfleet.README.Debian").read_text()
    commands = textwrap.dedent(re.search(r"(?m)^(    .*\n)+", text)[0])
    port = free_port()
    # That user has to reach it.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        commands = commands.replace("/var/lib/stepfleet", f"{folder}/fleet").replace("stepfleet: ", "nobody: ")
        commands = commands.replace("fleet.example", f"localhost --broker-port {port}")
        *install, enable, broker = commands.splitlines()
        assert enable.startswith("systemctl enable ") and broker.startswith("mosquitto -c ")
        environment = os.environ | {"PATH": f"{STEPFLEET.parent}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-ec", "\n".join(install)], env=environment, check=True, stdout=subprocess.DEVNULL)
        log = tmp_path_factory.mktemp("broker") / "log"
        with closing(Running(broker.split(), log, environment, Transcript())) as one:
            one.says("running")


def test_a_vehicle_that_is_removed_is_told_that_its_access_is_revoked(fleet, car, phone):
    booking = booked(phone.rider, car)
    phone.gets_access(booking["id"])
    assert phone.opens(car).status == 0
    assert fleet.types("vehicle", "remove", "car", "--yes").returncode == 0
    wait_until(lambda: refused(phone, car), "the step is refused")


def test_a_library_that_was_there_first_takes_no_arguments_away(tmp_path):
    library, source = tmp_path / "early.so", Path(__file__).parents[3] / "Tests/System/early.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    for environment in ({}, {"LD_PRELOAD": str(library)}):
        ended = subprocess.run([STEPFLEET, "nonsense"], env=os.environ | environment, capture_output=True, text=True)
        assert (ended.returncode, "nonsense" in ended.stderr) == (64, True), ended


def test_every_help_text_fits_80_columns():
    def answer(*arguments):
        environment = os.environ | {"COLUMNS": "80"}
        return subprocess.run(
            [STEPFLEET, *arguments], capture_output=True, text=True, timeout=60, env=environment).stdout

    def visit(command, words):
        lines = answer(*words, "--help").splitlines()
        assert lines and max(map(len, lines)) <= 80, words
        for child in command.get("subcommands", []):
            if child["commandName"] != "help":
                visit(child, [*words, child["commandName"]])

    visit(json.loads(answer("--experimental-dump-help"))["command"], [])
