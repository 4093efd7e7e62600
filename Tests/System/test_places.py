"""Vehicles with names, folders and hosts that are allowed and unusual, and programs in poor surroundings."""

import socket
import subprocess

import pytest

from programs import STEPCTL, STEPD


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


without_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=without_ipv6), "localhost"])
def test_a_broker_is_reached_by_name_and_by_address(new_vehicle, host):
    vehicle = new_vehicle("car", "--host", host).starts_all()
    opened = vehicle.rider("alice").moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    address = f"[{host}]" if ":" in host else host
    assert vehicle.stepd.says("connected to") == f"stepd: connected to {address}:{vehicle.port}"
    assert vehicle.motions == [("left", "close", "open")]


@pytest.mark.parametrize(
    "name", ["my car", "Fährzeug – 車", "a'b\"c\\d", "-car", "#car", "%n", "car;exit 1", "$(reboot)", "{car}"]
)
def test_a_vehicle_works_from_any_folder(new_vehicle, tmp_path, name):
    vehicle = new_vehicle(name, "--topic", "arena2036/rolling_chassis").starts_all()
    alice = vehicle.rider("alice")
    opened = alice.moves("open", "left")
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    assert vehicle.topic == "arena2036/rolling_chassis"
    assert f"\n{name} (" in vehicle.stepctl("config", "show", "--vehicle", alice.file).stdout, "the folder's name"
    assert vehicle.motions == [("left", "close", "open")]


def test_paths_are_relative_to_the_files_that_they_stand_in(new_vehicle):
    vehicle = new_vehicle()
    alice = vehicle.rider("alice")
    vehicle.starts_broker()
    script = 'cd "$1" && exec "$2" --config stepd.toml'
    vehicle.stepd = vehicle.starts("stepd", "sh", "-c", script, "sh", vehicle.folder, STEPD)
    vehicle.stepd.says("connected to")
    vehicle.broker.says(f"'{vehicle.status('right')}'")
    radio = vehicle.radio("left")
    for folder, file in ((alice.folder, "vehicle.toml"), (vehicle.folder, "riders/alice/vehicle.toml")):
        opened = vehicle.stepctl("open", "--side", "left", "--radio", radio, "--vehicle", file, folder=folder)
        assert opened.status == 0
    assert {path.name for path in vehicle.folder.iterdir()} >= {"journal.json", "servo.jsonl"}
    assert vehicle.motions == [("left", "close", "open")]


def test_a_name_that_would_steer_a_terminal_does_not(stepctl, tmp_path):
    made = stepctl("provision", "vehicle", tmp_path / "car", "--name", "\x1b[31mcar")
    assert (made.status, made.stdout) == (64, "")
    assert "\x1b" not in made.stderr
    assert not (tmp_path / "car").exists()
    # U+202E turns the rest of a line around.
    made = stepctl("provision", "vehicle", tmp_path / "car", "--name", "car\u202erac")
    shown = stepctl("config", "show", "--vehicle", tmp_path / "car/vehicle.toml")
    assert shown.status == 0
    assert "\u202e" not in made.stdout + made.stderr + shown.stdout + shown.stderr


@pytest.mark.parametrize("arguments", [("--vehicle", b"\xff\xfe"), ("--radio", b"btsnoop:\xff"), (b"\xff",)])
def test_arguments_that_are_not_utf_8_are_told(stepctl, arguments):
    ended = subprocess.run([STEPCTL, "locate", *arguments], capture_output=True, env=stepctl.environment, timeout=60)
    assert ended.returncode in (64, 66) and ended.stdout == b""
    ended.stderr.decode()


def test_an_empty_environment_is_enough(stepctl, shared_vehicle, shared_rider):
    shown = stepctl("config", "show", prefix=("env", "-i"))
    assert (shown.status, shown.stderr) == (0, "")
    assert shared_rider.types("status", prefix=("env", "-i")).status == 0
    assert shared_vehicle.is_unmoved()


@pytest.mark.parametrize("is_journal", [True, False])
def test_priorities_are_for_the_journal_alone(parked, is_journal):
    """A terminal that a service has started inherits the variable, and its user is no journal."""
    parked.starts_broker()
    own = 'stat --dereference --printf=%d:%i /proc/self/fd/2' if is_journal else "echo 1:1"
    stepd = ("sh", "-c", f'JOURNAL_STREAM="$({own})" exec "$0" "$@"', STEPD, "--config", parked.folder / "stepd.toml")
    assert parked.starts("stepd", *stepd).says("connected to").startswith("<5>" if is_journal else "stepd: ")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_does_no_harm(vehicle, alice, closed):
    """A file that is opened then could take its number, and get what was meant for the terminal."""
    ended = alice.moves("open", "left", prefix=("sh", "-c", f'exec "$0" "$@" {closed}'))
    assert ended.status == (0 if closed in ("<&-", "2>&-") else 74)
    assert vehicle.motions == [("left", "close", "open")]
    stepd = ("sh", "-c", f'exec "$0" "$@" {closed}', STEPD, "--config", vehicle.folder / "stepd.toml")
    # It ends when its journal is written, which a rider need not wait for.
    vehicle.stepd.close()
    def files() -> dict:
        found = {path: path.read_bytes() for path in vehicle.folder.rglob("*") if path.parent.name != "data" and path.is_file()}
        # Its start is an event; and the broker keeps what it was told.
        return {path: content for path, content in found.items() if path.name != "journal.json.events"}

    before = files()
    said = vehicle.broker.said
    second = vehicle.starts("stepd", *stepd)
    vehicle.broker.says(f"'{vehicle.status('right')}'", after=said)
    assert alice.types("status").status == 0
    second.close()
    assert files() == before, "what stepd logs is in no file of the vehicle's"


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_what_is_printed_nowhere_is_not_sent_to_the_radio(stepctl, adapter, closed):
    shell = ("sh", "-c", f'exec "$0" "$@" {closed}')
    ended = stepctl("scan", "--radio", adapter.radio, "--timeout", "30", prefix=shell)
    assert ended.status == 74
    told = "stepctl: error: cannot write to standard output: Bad file descriptor\n"
    assert ended.stderr == ("" if "2>&-" in closed else told)
