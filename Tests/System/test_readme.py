"""README.md's tour runs as it is typed there, in a network of its own, so that its port is free."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from programs import REPOSITORY, STEPCTL, can_mount, wait_until

PAGE = (REPOSITORY / "README.md").read_text()


def blocks(heading: str) -> list[str]:
    part = re.search(rf"^## {heading}\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)[1]
    found = re.findall(r"(?:^    .*\n)+", part, re.MULTILINE)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found]


def test_it_is_short_and_says_where_everything_is():
    assert len(PAGE.splitlines()) < 160
    linked = re.findall(r"\]\(([^):]+)\)", PAGE)
    assert all((REPOSITORY / place).exists() for place in linked)


@pytest.fixture
def open_folder():
    """Started by root, mosquitto becomes a user of its own, who has to reach its files."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="stepctl-tour.") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.skipif(not can_mount(), reason="this container allows no namespaces")
def test_the_tour_runs_as_typed(stepctl, open_folder):
    build, ride, hand_over, tags = blocks("Five minutes")
    assert "make" in build and "--nfc" in tags
    # It is built already.
    build = "\n".join(line for line in build.splitlines() if not line.startswith("make"))
    for name in ("Tests", "Makefile"):
        (open_folder / name).symlink_to(REPOSITORY / name)
    script = "\n".join(
        ["set -e", "ip link set lo up", build, "until (: >/dev/tcp/localhost/8883) 2>/dev/null; do sleep 0.1; done",
         ride, hand_over, "kill %1 %2"])
    # What the doctor finds is this machine's: there is no adapter, and a recording is radio enough.
    script = script.replace("stepctl doctor", "stepctl doctor vehicle broker controller radio")
    environment = stepctl.environment | {"PATH": f"{STEPCTL.parent}:{os.environ['PATH']}"}
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    ended = subprocess.run(
        ["unshare", "--net", *root, "bash", "-m", "-c", script],
        cwd=open_folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for line in ("the left step is open", "and that was right: exit status 4", "at the left step", "revoked "):
        assert line in ended.stdout, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_the_tour_makes_is_not_committed():
    for place in ("car/operator/token.jwk", "car/tls/ca.pem", "request", "access", "walk.btsnoop"):
        ignored = subprocess.run(["git", "check-ignore", "-q", place], cwd=REPOSITORY)
        assert ignored.returncode == 0, place


def test_a_newcomer_sees_a_step_open_with_one_command(on_terminal):
    demo = [REPOSITORY / "Tests/Demo/try.sh", STEPCTL.parent]
    terminal = on_terminal(demo)
    terminal.shows("Rolling Chassis")
    wait_until(lambda: "sliding" in "\n".join(terminal.frame), "the step slides")
    before = terminal.written.partition(b"sliding")[0]
    assert before.count(b"\x1b[H") > 5, "the picture is there while the rider walks up"
    terminal.waits_for(b"the left step is open")
    terminal.waits_for(b"alice$ ")
    terminal.types(b"exit\n")
    assert terminal.ends() == 0


def test_a_newcomer_opens_a_step_with_two_commands(stepctl):
    ended = subprocess.run(
        [REPOSITORY / "Tests/Demo/try.sh", STEPCTL.parent],
        input="stepctl open\n", capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (0, "the left step is open"), ended.stderr
