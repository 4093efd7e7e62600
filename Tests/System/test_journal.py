"""What stepd tells systemd's journal: a real systemd-journald, which has /run to itself and the program under test."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from programs import STEPD, wait_until

JOURNALD = Path("/lib/systemd/systemd-journald")
CAN_MOUNT = subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0

pytestmark = pytest.mark.skipif(
    not (JOURNALD.exists() and shutil.which("journalctl") and os.geteuid() == 0 and CAN_MOUNT),
    reason="needs systemd-journald, and root for a name space of its own",
)

# The service manager would set the variable, systemd-cat gives the stream.
SCRIPT = """
mount --bind "$1" /run; shift
setpriv --pdeathsig KILL /lib/systemd/systemd-journald &
while ! [ -S /run/systemd/journal/stdout ]; do sleep 0.01; done
exec systemd-cat --identifier=stream sh -c 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"' sh "$@"
"""


class Journal:
    def __init__(self, vehicle, folder: Path):
        self.vehicle, self.run = vehicle, folder / "run"
        configuration = self.run / "systemd/journald.conf.d"
        configuration.mkdir(parents=True)
        (configuration / "test.conf").write_text("[Journal]\nStorage=volatile\nReadKMsg=no\nRateLimitBurst=0\n")

    def starts_stepd(self):
        stepd = ("unshare", "--mount", "sh", "-c", SCRIPT, "sh", self.run, STEPD, "--config")
        return self.vehicle.starts("stepd", *stepd, self.vehicle.folder / "stepd.toml")

    @property
    def entries(self) -> list[dict]:
        read = ("journalctl", "--directory", self.run / "log/journal", "--output=json", "--quiet", "SYSLOG_IDENTIFIER=stepd")
        told = subprocess.run(read, capture_output=True, text=True)
        return [json.loads(line) for line in told.stdout.splitlines()]

    def tells(self, **fields) -> dict:
        def found():
            entries = self.entries
            return next((entry for entry in entries if entry.items() >= fields.items()), None)

        return wait_until(found, f"{fields} in {[entry.get('MESSAGE') for entry in self.entries]}")


@pytest.fixture
def journal(parked, tmp_path):
    parked.starts_broker()
    return Journal(parked, tmp_path)


def fields(entry: dict) -> dict:
    return {name: value for name, value in entry.items() if name.startswith("STEPCTL_")}


def test_each_command_can_be_found_by_its_fields(journal):
    vehicle = journal.vehicle
    alice = vehicle.rider("alice")
    stepd = journal.starts_stepd()
    connected = journal.tells(MESSAGE=f"connected to localhost:{vehicle.port}")
    assert (connected["PRIORITY"], connected["_TRANSPORT"], fields(connected)) == ("5", "journal", {})
    assert alice.moves("open", "left").status == 0
    began = journal.tells(STEPCTL_OUTCOME="began")
    token = began["STEPCTL_JTI"]
    payload = (alice.folder / "token.jwt").read_text().split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(payload + "=="))["jti"] == token
    assert fields(began) == {
        "STEPCTL_STEP": "left",
        "STEPCTL_OUTCOME": "began",
        "STEPCTL_POSITION": "open",
        "STEPCTL_JTI": token,
        "STEPCTL_METHOD": "beacon",
        "STEPCTL_ZONE": began["STEPCTL_ZONE"],
        "STEPCTL_DISTANCE": began["STEPCTL_DISTANCE"],
    }
    assert 0 < float(began["STEPCTL_DISTANCE"]) < 10
    ended = journal.tells(STEPCTL_OUTCOME="ended")
    assert (ended["STEPCTL_POSITION"], ended["STEPCTL_JTI"], ended["MESSAGE"]) == ("open", token, "left: is open")
    # Another device may not close what alice opened.
    bob = vehicle.rider("bob")
    assert bob.moves("close", "left").status == 5
    refused = journal.tells(STEPCTL_OUTCOME="refused")
    assert refused["STEPCTL_CODE"] == "reserved" and refused["STEPCTL_JTI"] != token
    for entry in journal.entries:
        assert "alice" not in json.dumps(fields(entry)) and "bob" not in json.dumps(fields(entry))
    stepd.signal(signal.SIGTERM)
    assert stepd.ends().status == 0
    assert stepd.stderr.read_text() == "", "all of it went to the journal"


def test_at_rest_nothing_is_written(journal):
    """A card wears out by writing. The kernel counts what goes to a file system that is on a medium (proc(5), io)."""
    vehicle = journal.vehicle
    alice = vehicle.rider("alice")
    stepd = journal.starts_stepd()
    journal.tells(MESSAGE=f"connected to localhost:{vehicle.port}")

    def written() -> int:
        counts = Path(f"/proc/{stepd.process.pid}/io").read_text()
        return int(re.search(r"^write_bytes: (\d+)$", counts, re.MULTILINE)[1])

    before = written()
    assert alice.moves("open", "left").status == 0
    file = vehicle.folder / "journal.json"
    wait_until(lambda: "motion" not in json.loads(file.read_bytes())["left"], "the journal has the position")
    if written() == before:
        pytest.skip("the folder of this test is in memory, where nothing is counted")
    # Its folder is synced a moment later.
    time.sleep(4)
    at_rest = written()
    time.sleep(3)
    assert written() == at_rest
