"""Whoever supervises stepd: systemd, played by a socket, and a computer's watchdog, played by a kernel of its own."""

import re
import signal
import socket
import subprocess
import time
from contextlib import closing

import pytest

import rig
from manager import Manager
from programs import REPOSITORY, STEPD, wait_until


@pytest.fixture
def manager(tmp_path):
    with closing(Manager(tmp_path)) as manager:
        yield manager


def starts(vehicle, manager, **variables):
    return vehicle.launches_stepd(NOTIFY_SOCKET=manager.path, WATCHDOG_USEC=1_000_000, **variables)


def test_systemd_hears_that_it_runs_lives_and_ends(parked, manager):
    stepd = starts(parked, manager)
    # There is no broker yet: a vehicle without a network is not started again and again for that.
    manager.hears("READY=1")
    manager.hears("STATUS=cannot connect")
    parked.starts_broker()
    manager.hears("STATUS=connected to localhost")
    # Four times in the time that systemd waits; a busy machine only makes it fewer, but not by many.
    began = time.monotonic()
    manager.listens(0.01)
    count = manager.listens(6).count("WATCHDOG=1")
    assert 9 <= count <= 4 * (time.monotonic() - began) + 2
    stepd.signal(signal.SIGTERM)
    manager.hears("STOPPING=1")
    assert stepd.ends().status == 0


def test_a_loop_that_hangs_is_not_said_to_live(parked, manager):
    parked.starts_broker()
    stepd = starts(parked, manager)
    manager.hears("WATCHDOG=1")
    stepd.signal(signal.SIGSTOP)
    time.sleep(0.1)
    manager.listens(0.01)
    assert manager.listens(1.5) == []
    stepd.signal(signal.SIGCONT)
    # The turn that was late says nothing, those after it do.
    manager.hears("WATCHDOG=1")


def test_a_service_of_another_process_is_not_fed(parked, manager):
    parked.starts_broker()
    starts(parked, manager, WATCHDOG_PID=1)
    manager.hears("STATUS=connected")
    assert manager.listens(0.6) == []


def test_the_unit_is_one_and_leaves_little_open():
    unit = REPOSITORY / "Sources/Programs/stepd/stepd.service"
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    # The program is not installed where it says.
    said = [line for line in verified.stderr.splitlines() if "is not executable" not in line]
    assert [line for line in said if "stepd.service" in line] == []
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True
    )
    exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", judged.stdout)[1])
    print(f"exposure: {exposure}")
    assert exposure <= 1.6


WATCHDOG = """
[watchdog]
timeout_s = 5
"""


@rig.needs_kernel
@pytest.mark.parametrize("act, status", [("STOP", 125), ("KILL", 125), ("TERM", 0)])
def test_the_computer_is_started_anew_unless_stepd_turns_or_ends_in_order(parked, act, status):
    with open(parked.folder / "stepd.toml", "a") as file:
        file.write(WATCHDOG)
    script = f"""
        {STEPD} --config {parked.folder}/stepd.toml --check || exit 3
        {STEPD} --config {parked.folder}/stepd.toml & stepd=$!
        until ls -l /proc/$stepd/fd 2>/dev/null | grep -q watchdog; do sleep 0.2; done
        sleep 2; kill -{act} $stepd; sleep 12; echo alive
    """
    ended = subprocess.run(
        # A kernel that panics can be told from one that begins again.
        [rig.RUN, "--timeout", "180", "--scn", "none", "--kernel", "softdog.soft_panic=1", "--", "bash", "-c", script],
        capture_output=True,
        text=True,
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == status, said
    assert ("alive" in ended.stdout) == (status == 0), said
    assert ("Software Watchdog Timer expired" in said) == (status == 125), said
