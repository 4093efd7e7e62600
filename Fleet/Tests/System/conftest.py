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


@pytest.fixture(params=["sqlite", "postgresql"])
def stored(request, tmp_path):
    """A server of the test's own, with either kind of database; its broker does not run."""
    arguments = []
    if request.param == "postgresql":
        cluster = request.getfixturevalue("cluster")
        if cluster.problem:
            pytest.skip(f"no PostgreSQL: {cluster.problem}")
        arguments = ["--database", cluster.database()]
    with closing(Server(tmp_path / "fleet", *arguments)) as server:
        server.database = arguments[-1] if arguments else None
        yield server.starts()


@pytest.fixture
def parked(stored, tmp_path):
    """The ids of two vehicles of that server, of which nothing runs."""
    stepctl = Stepctl(tmp_path, Transcript())
    for name in ("car", "van"):
        made = stepctl("provision", "vehicle", tmp_path / name, "--operator", stored.folder / "operator")
        assert made.status == 0, made
        added = stored.types("vehicle", "add", name)
        assert added.returncode == 0, added
    listed = json.loads(stored.types("vehicle", "list", "--json").stdout)["vehicles"]
    return [vehicle["id"] for vehicle in listed]
