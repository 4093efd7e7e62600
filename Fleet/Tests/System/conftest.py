"""Whole programs: the stepfleet, stepctl and stepd that were built, a real mosquitto, a real PostgreSQL.

    STEPFLEET_BIN_DIR=Fleet/.build/debug STEPCTL_BIN_DIR=.build/debug python3 -m pytest Fleet/Tests
"""

import json
import uuid
from contextlib import ExitStack, closing

import pytest

from postgres import Cluster
from programs import Stepctl, Transcript
from rider import Device, account
from server import STEPFLEET, Broker, Server


def pytest_sessionstart():
    if not STEPFLEET.exists():
        pytest.exit(f"there is no {STEPFLEET}; `make fleet` builds it", 1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One for all who need no vehicle."""
    with closing(Server(tmp_path_factory.mktemp("shared") / "fleet").starts("--verbose")) as server:
        yield server


@pytest.fixture
def fleet(tmp_path):
    """A server of the test's own, whose broker runs."""
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(tmp_path / "fleet")))
        server.broker = stack.enter_context(closing(Broker(server)))
        yield server.starts()


class Rider(Device):
    """Somebody with an account, who is logged in."""

    def __init__(self, server, key=None):
        super().__init__(server)
        self.key = key or self.key
        self.email = f"{uuid.uuid4().hex[:12]}@example.org"
        account(self, self.email)
        self.access = self.login(self.email)["access_token"]

    def asks(self, method: str, path: str, **arguments):
        return self.ask(self.access, path, method, **arguments)

    def books(self, vehicle: str, begin: str | None, end: str, key: str | None = None, **more):
        body = {"vehicle": vehicle, "to": end} | ({"from": begin} if begin else {}) | more
        return self.asks(
            "POST", "/v1/bookings", json=body, headers={"Idempotency-Key": key} if key else {})


@pytest.fixture
def new_rider():
    return Rider


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    with closing(Cluster(tmp_path_factory.mktemp("postgres"))) as cluster:
        yield cluster


class Templates:
    """Servers that are made once, and copied for each test: making one takes a second, and its vehicles another two."""

    def __init__(self, folder, cluster):
        self.folder, self.cluster, self._made = folder, cluster, {}

    def copy(self, kind: str, has_vehicles: bool, folder) -> Server:
        key = kind, has_vehicles
        if key not in self._made:
            self._made[key] = self._make(*key)
        template = self._made[key]
        database = self.cluster().database(template.database) if template.database else None
        server = template.copy(folder, database)
        server.database = database
        return server

    def _make(self, kind: str, has_vehicles: bool) -> Server:
        database = self.cluster().database() if kind == "postgresql" else None
        home = self.folder / f"{kind}{'-vehicles' if has_vehicles else ''}"
        home.mkdir()
        server = Server(home / "fleet", *(["--database", database] if database else []))
        server.database = database
        if has_vehicles:
            stepctl = Stepctl(home, Transcript())
            with closing(server.starts()):
                for name in ("car", "van"):
                    made = stepctl("provision", "vehicle", home / name, "--operator", server.folder / "operator")
                    assert made.status == 0, made
                    added = server.types("vehicle", "add", name)
                    assert added.returncode == 0, added
                assert server.stops() == 0
        return server


@pytest.fixture(scope="session")
def templates(request, tmp_path_factory):
    def cluster():
        cluster = request.getfixturevalue("cluster")
        if cluster.problem:
            pytest.skip(f"no PostgreSQL: {cluster.problem}")
        return cluster

    return Templates(tmp_path_factory.mktemp("templates"), cluster)


# What does not depend on the database is tried with one of them. The module tests try every rule with both.
on_sqlite = pytest.mark.parametrize("stored", ["sqlite"], indirect=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(request, templates, tmp_path):
    """A server of the test's own, with either kind of database; its broker does not run."""
    with closing(templates.copy(request.param, "parked" in request.fixturenames, tmp_path / "fleet")) as server:
        yield server.starts()


@pytest.fixture
def parked(stored):
    """The ids of two vehicles of that server, of which nothing runs."""
    listed = json.loads(stored.types("vehicle", "list", "--json").stdout)["vehicles"]
    return [vehicle["id"] for vehicle in listed]
