"""Whole programs: the stepctl and stepd that were built, a real mosquitto, and peers in Python.

    STEPCTL_BIN_DIR=.build/debug python3 -m pytest Tests/System

Every process ends with the test that started it, and no secret may be in anything that a program printed, logged or
was given as an argument.
"""

import functools
import os
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from adapter import Adapter
from captures import AWAY, HERE, VEHICLE
from devices import Device
from feeds import bridge  # noqa: F401
from programs import STEPCTL, STEPD, Stepctl, Transcript, wait_until
from serving import authority, serve  # noqa: F401
from terminal import Terminal
from type2 import Type2
from vehicle import Rider, Vehicle, free_port


# Ignored under nohup(1), and then by every program that is started here.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# Nor Ctrl-C, as a shell's background jobs do.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart():
    missing = [str(path) for path in (STEPCTL, STEPD) if not path.exists()]
    missing += [program for program in ("mosquitto", "setpriv") if not shutil.which(program)]
    if missing:
        pytest.exit(f"there is no {', no '.join(missing)}; `make` builds, `apt-get install mosquitto` installs", 1)


def pytest_collection_modifyitems(items):
    """The files that take longest come first, so that no worker is left with one of them at the end."""
    longest = """
        rig_links rig kiosk tags power guard peers dynamic_tags websocket operator serve fleet open attacks
        servo passphrase ears beacons codes stalls events find broker crash
    """.split()
    first = {f"test_{name}": place for place, name in enumerate(longest)}
    items.sort(key=lambda item: first.get(item.path.stem, len(first)))


@pytest.fixture(scope="session")
def transcript() -> Transcript:
    return Transcript()


@pytest.fixture(autouse=True)
def shows_no_secret(transcript):
    yield
    assert transcript.leaked() == [], "secrets were printed, logged, or given as arguments"


@pytest.fixture(scope="session")
def stepctl(transcript, tmp_path_factory) -> Stepctl:
    return Stepctl(tmp_path_factory.mktemp("home"), transcript)


@pytest.fixture
def phone(tmp_path, transcript) -> Device:
    """A rider's device that knows nothing yet."""
    return Device(tmp_path / "phone", transcript)


@pytest.fixture
def tablet(tmp_path, transcript) -> Device:
    """Another's."""
    return Device(tmp_path / "tablet", transcript)


@pytest.fixture
def new_adapter(tmp_path):
    """Makes the adapter of somebody who stands at the left step of captures.VEHICLE."""
    with ExitStack() as stack:

        def make(levels: dict[int, int] | None = None, **options) -> Adapter:
            levels = {1: HERE, 2: AWAY} if levels is None else levels
            return stack.enter_context(Adapter(tmp_path / "socket", VEHICLE, levels, **options))

        yield make


@pytest.fixture
def adapter(new_adapter) -> Adapter:
    return new_adapter()


@pytest.fixture
def tag() -> Type2:
    """What is at the `chip`."""
    return Type2("ntag213")


@pytest.fixture
def gpsfake():
    """gpsd itself, which reads a receiver's log from a terminal that gpsfake plays: over and over, or once (`-1`)."""
    if not shutil.which("gpsfake") or not shutil.which("gpsd"):
        pytest.skip("there is no gpsfake: apt-get install gpsd gpsd-clients")
    with ExitStack() as stack:

        def start(log: Path, cycle_s: float, *options: str) -> str:
            port = free_port()
            command = ["gpsfake", *options, "-q", "-P", str(port), "-c", str(cycle_s), log]
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = stack.enter_context(subprocess.Popen(command, start_new_session=True, **quiet))
            # With the gpsd that it has started.
            stack.callback(os.killpg, process.pid, signal.SIGKILL)

            def answers():
                with suppress(OSError), socket.create_connection(("localhost", port), 1):
                    return True

            wait_until(answers, "gpsd listens")
            return f"localhost:{port}"

        yield start


@pytest.fixture
def on_terminal(stepctl):
    """Starts programs on a terminal of their own, which closes with the test."""
    with ExitStack() as stack:

        def start(command: list, rows=24, columns=80, **variables) -> Terminal:
            environment = stepctl.environment | {"TERM": "xterm-256color"} | variables
            return stack.enter_context(closing(Terminal(command, environment, rows, columns)))

        yield start


@pytest.fixture
def new_vehicle(stepctl, tmp_path):
    """Makes vehicles that nothing of another test has touched; none of their programs runs yet."""
    with ExitStack() as stack:
        yield lambda name="car", *arguments: Vehicle(tmp_path / name, stepctl, stack, *arguments)


@pytest.fixture
def parked(new_vehicle) -> Vehicle:
    """A vehicle of which nothing runs yet."""
    return new_vehicle()


@pytest.fixture
def vehicle(parked) -> Vehicle:
    """A vehicle of this test's own, ready for commands."""
    return parked.starts_all()


@pytest.fixture
def alice(vehicle) -> Rider:
    return vehicle.rider("alice")


@pytest.fixture(scope="module")
def shared_vehicle(stepctl, tmp_path_factory):
    """A vehicle for tests that leave its steps as they were."""
    with ExitStack() as stack:
        yield Vehicle(tmp_path_factory.mktemp("shared") / "car", stepctl, stack).starts_all()


@pytest.fixture(scope="module")
def shared_rider(shared_vehicle) -> Rider:
    return shared_vehicle.rider("alice")


@pytest.fixture(scope="module")
def file_vehicle(stepctl, tmp_path_factory):
    """A vehicle that stands for its files only."""
    with ExitStack() as stack:
        vehicle = Vehicle(tmp_path_factory.mktemp("files") / "car", stepctl, stack)
        vehicle.rider("alice")
        yield vehicle


@pytest.fixture(scope="session")
def hasty(preloaded):
    """Variables with which so many seconds pass in one, for a program and those that it starts."""
    return lambda haste: {"LD_PRELOAD": str(preloaded("hasty")), "HASTE": str(haste)}


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory):
    """C files of this folder as libraries, to be loaded before a program (LD_PRELOAD)."""

    @functools.cache
    def build(name: str) -> Path:
        library = tmp_path_factory.mktemp("preloaded") / f"{name}.so"
        source = Path(__file__).with_name(f"{name}.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl"], check=True)
        return library

    return build
