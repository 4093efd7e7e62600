"""How many commands it takes from nothing to an open step, for whom README names: each is typed here as they would."""

import os
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from devices import Device, granted
from programs import REPOSITORY, STEPCTL, STEPD, can_mount
from terminal import Terminal

ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not can_mount(), reason="needs root, and a container that allows mounts")


@pytest.fixture
def access(vehicle, phone, tmp_path) -> Path:
    """What the operator made for that computer."""
    phone.asks("--output", tmp_path / "request")
    granted(vehicle.stepctl, vehicle.folder, tmp_path / "request", "-o", tmp_path / "access")
    return tmp_path / "access"


def test_a_newcomer_takes_two_commands_and_reads_little(stepctl):
    page = (REPOSITORY / "README.md").read_text()
    (commands,) = [block for block in page.split("\n\n") if block.startswith("    make try")]
    assert commands.splitlines()[0].startswith("    make try ")
    words = len(page.partition(commands)[0].split())
    ended = subprocess.run(
        [REPOSITORY / "Tests/Demo/try.sh", STEPCTL.parent], input="stepctl open\n", capture_output=True, text=True,
        timeout=60)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "the left step is open"), ended.stderr
    assert words <= 270


# --- A rider with a code ---


def opens(phone: Device, vehicle, answer: bytes, *source) -> tuple[int, str]:
    """Types one command on a terminal, and answers its one question."""
    named = [word for file in source for word in ("--import", file)]
    command = [STEPCTL, "open", "--radio", vehicle.radio("left"), *named]
    with closing(Terminal(command, phone.stepctl.environment)) as terminal:
        terminal.waits_for(b"Trust it?")
        terminal.types(answer)
        status = terminal.ends()
        return status, terminal.read().decode()


def test_a_rider_with_access_opens_a_step_with_one_command(vehicle, phone, access):
    status, shown = opens(phone, vehicle, b"y\n", access)
    assert (status, shown.splitlines()[-1]) == (0, "the left step is open")
    assert "new: compare it with what the operator shows" in shown
    # From now on the vehicle is known.
    again = phone.types("open", "--radio", vehicle.radio("left"))
    assert (again.status, again.lines) == (0, ["the left step is open"])


def test_so_does_one_with_pictures_of_the_codes(vehicle, phone, access, tmp_path):
    drawn = tmp_path / "access.png"
    granted(vehicle.stepctl, vehicle.folder, tmp_path / "request", "-o", drawn)
    drawings = sorted(tmp_path.glob("access*.png"))
    status, shown = opens(phone, vehicle, b"y\n", *drawings)
    assert (status, shown.splitlines()[-1]) == (0, "the left step is open"), shown


def test_who_does_not_trust_it_moves_nothing_and_keeps_nothing(vehicle, phone, access):
    status, shown = opens(phone, vehicle, b"n\n", access)
    assert (status, "not trusted; nothing was changed" in shown) == (1, True)
    assert vehicle.is_unmoved() and not phone.vehicles.exists()


def test_a_script_cannot_trust_by_accident(vehicle, phone, access):
    ended = phone.types("open", "--import", access, "--json", "--radio", vehicle.radio("left"))
    assert (ended.status, ended.outcome["outcome"]) == (66, "failed")
    assert f"hint: `stepctl config import {access} --yes` trusts it" in ended.stderr
    assert vehicle.is_unmoved() and not phone.vehicles.exists()


def test_a_code_without_access_opens_nothing_and_says_so_first(vehicle, phone, tmp_path):
    drawn = tmp_path / "car.png"
    made = vehicle.stepctl("provision", "qr", "--vehicle", vehicle.folder, "--output", drawn, "--size", "80")
    assert made.status == 0
    ended = phone.types("open", "--import", drawn)
    assert (ended.status, ended.error) == (
        78, "this is only the vehicle's code; you also need a token to move its steps")
    assert not phone.vehicles.exists()
    # `config import` knows a picture when it sees one.
    added = phone.imports(drawn)
    assert added.status == 0, added.stderr


@pytest.mark.parametrize("arguments, said", [
    (["--import", "access", "--vehicle", "car"], "--import says which vehicle is meant, and excludes --vehicle"),
    (["--import", "none"], "cannot open none: No such file or directory"),
])
def test_what_was_mistyped_is_said(phone, arguments, said):
    ended = phone.types("open", *arguments)
    assert ended.status in (64, 66) and ended.error == said


# --- A technician with a new vehicle ---

# What systemctl does with these units, without systemd: the programs as the units start them, their files given to whom
# they run as, and what it was asked. It returns when a service runs or has ended, and fails where one cannot start.
SYSTEMCTL = """#!/bin/sh
echo "$@" >>/run/systemd/asked
name=$(eval echo "\\${$#}")
runs() { kill -0 $(cat /run/systemd/pid-$name) 2>/dev/null; }
says() { until grep -qs "$1" /run/systemd/said-$name; do runs || exit 1; sleep 0.05; done; }
case $1 in
cat) case $name in stepd|stepd-broker) exit 0 ;; esac; exit 1 ;;
enable)
  [ ! -e /run/systemd/refuses-$name ] || exit 1
  case $name in
  stepd-broker)
    chown -R mosquitto /var/lib/stepd-broker
    setpriv --reuid mosquitto --clear-groups /usr/sbin/mosquitto -c /var/lib/stepd-broker/mosquitto.conf \\
      >/dev/null 2>/run/systemd/said-$name &
    echo $! >/run/systemd/pid-$name
    says ' running' ;;
  stepd)
    mkdir -p /var/lib/private && mv /var/lib/stepctl /var/lib/private && ln -s private/stepctl /var/lib/stepctl
    chown -R nobody /var/lib/private/stepctl
    setpriv --reuid nobody --clear-groups STEPD --config /var/lib/stepctl/stepd.toml \\
      >/dev/null 2>/run/systemd/said-$name &
    echo $! >/run/systemd/pid-$name
    says 'connected' ;;
  esac ;;
disable)
  [ -e /run/systemd/pid-$name ] || exit 0
  kill $(cat /run/systemd/pid-$name)
  while runs; do sleep 0.05; done ;;
esac
"""


@pytest.fixture
def computer(tmp_path, stepctl):
    """Runs a script on a vehicle's computer, where systemd would start things."""
    tool = tmp_path / "systemctl"
    tool.write_text(SYSTEMCTL.replace("STEPD", str(STEPD)))
    tool.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()

    def run(script: str, units="mkdir -p /run/systemd/system") -> subprocess.CompletedProcess:
        setting = f"""
            set -e
            mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /run/systemd && chmod 755 /var/lib
            {units}
            mount --bind {tool} /usr/bin/systemctl
            ip link set lo up
            cd {folder}
            set +e
            {script}
        """
        environment = stepctl.environment | {"PATH": f"{STEPCTL.parent}:{os.environ['PATH']}"}
        ended = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", setting],
            capture_output=True, text=True, env=environment, timeout=60)
        stepctl.transcript.add(ended.stdout, ended.stderr)
        return ended

    return run


MADE = "stepctl provision vehicle car --name 'Rolling Chassis' --no-input --quiet >/dev/null"
START = "stepctl provision start car"


@ROOT
def test_a_technician_has_a_vehicle_that_runs_with_two_commands(computer):
    ended = computer(f"""
        {MADE} && {START} || exit
        stepctl provision token car --rider alice --quiet
        {REPOSITORY}/Tests/Demo/walk.py --vehicle car/vehicle.toml --out walk.btsnoop
        stepctl open --vehicle car/riders/alice/vehicle.toml --radio btsnoop:walk.btsnoop || exit
        echo; cat /run/systemd/asked
        cd /var/lib && find private stepd-broker -type f | sort
        ls -ld stepd-broker/tls/broker.key private/stepctl/keys
    """)
    assert ended.returncode == 0, ended.stderr
    said, _, found = ended.stdout.partition("the left step is open\n")
    assert "started stepd-broker.service and stepd.service, now and at each start of this computer" in said
    assert [line for line in found.splitlines() if line.startswith("enable")] == [
        "enable --now stepd-broker", "enable --now stepd"]
    files = [line for line in found.splitlines() if line.startswith(("private", "stepd-broker"))]
    # No key of the operator, no rider's, and nothing of one beside the other.
    made_there = ("journal.json", "journal.json.lock", "journal.json.events", "servo.jsonl")
    assert set(files) - {f"private/stepctl/{name}" for name in made_there} - {"stepd-broker/data/mosquitto.db"} == {
        *(f"private/stepctl/{name}" for name in (
            "keys/encryption.jwk", "keys/signing.jwk", "keys/tags.json", "stepd.toml", "tls/ca.pem",
            "tls/controller.key", "tls/controller.pem", "vehicle.toml")),
        *(f"stepd-broker/{name}" for name in (
            "mosquitto.acl", "mosquitto.conf", "tls/broker.key", "tls/broker.pem", "tls/ca.pem", "tls/crl.pem")),
    }
    assert "-rw------- 1 mosquitto" in found and "drwx------" in found


@ROOT
def test_a_vehicle_that_was_made_before_is_started_as_it_is(computer):
    ended = computer("""
        stepctl provision vehicle car --steps right --quiet >/dev/null && cp car/keys/signing.jwk before
        stepctl provision start car --json || exit
        cmp before /var/lib/stepctl/keys/signing.jwk && cmp before car/keys/signing.jwk || exit
        stepctl provision start car
    """)
    assert (ended.returncode, ended.stdout) == (
        1, '{"started":["stepd-broker.service","stepd.service"]}\n'), ended.stderr
    assert "/var/lib/stepd-broker already has a vehicle's files; nothing was changed" in ended.stderr


@ROOT
@pytest.mark.parametrize("service", ["stepd-broker", "stepd"])
def test_what_does_not_start_leaves_nothing_and_can_be_tried_again(computer, service):
    ended = computer(f"""
        touch /run/systemd/refuses-{service}
        {MADE}
        {START}; echo "status $?"
        ls -A /var/lib /var/lib/private 2>/dev/null; grep disable /run/systemd/asked
        rm /run/systemd/refuses-{service}
        stepctl provision start car --quiet
    """)
    assert ended.returncode == 0, ended.stderr
    assert f"stepctl: error: {service}.service does not start; nothing was left running\n" in ended.stderr
    assert "hint: `journalctl -u" in ended.stderr and "stepctl provision start car" in ended.stderr
    first, _, rest = ended.stdout.partition("status 69\n")
    listed, _, again = rest.partition("started ")
    assert first == "" and "stepctl" not in listed.replace("stepctl:", "") and "stepd-broker\n" not in listed.replace(
        "disable --now stepd-broker\n", "")
    assert "disable --now stepd-broker" in listed and "disable --now stepd\n" in listed
    assert again.startswith("stepd-broker.service and stepd.service")


@ROOT
@pytest.mark.parametrize("units, prefix, status, said", [
    ("true", "", 69, "this needs systemd, which does not run this computer"),
    ("mkdir -p /run/systemd/system", "setpriv --reuid nobody --clear-groups", 77, "this needs root"),
    ("mkdir -p /run/systemd/system /var/lib/stepctl && touch /var/lib/stepctl/journal.json", "", 1,
     "/var/lib/stepctl already has a vehicle's files; nothing was changed"),
])
def test_where_it_cannot_be_nothing_is_made_and_one_line_says_why(computer, units, prefix, status, said):
    ended = computer(f"{MADE}; find /var/lib -maxdepth 1 -name 'step*' -newer car/mosquitto.conf; {prefix} {START}", units)
    assert (ended.returncode, ended.stdout) == (status, "")
    errors = [line for line in ended.stderr.splitlines() if not line.startswith("hint: ")]
    assert len(errors) == 1 and errors[0].startswith(f"stepctl: error: {said}")


def test_the_flag_of_before_names_the_command(stepctl, tmp_path):
    ended = stepctl("provision", "vehicle", tmp_path / "car", "--start")
    assert ended.status == 64 and f"stepctl provision start {tmp_path / 'car'}" in ended.stderr
    assert not (tmp_path / "car").exists()
