#!/usr/bin/env python3
"""Tries the page stepd-pi(7) in a root file system of Debian: what it says to type is typed, as it stands there.

    pi.py [--without-systemd] ROOT

runs as root; pi.sh makes a root and runs it. ROOT is a folder, as debootstrap makes it, in which these packages are
installed: stepctl, stepctl-operator, stepd, dbus, mosquitto, sudo, systemd, systemd-timesyncd. It stays as it is. A root of
another processor needs qemu-user with binfmt_misc.

A comment before a block says what a block needs that is not here: `.\\" not tried: REASON`, or `.\\" tried: under systemd`.
Where systemd does not run, as under qemu-user, the latter are left out, and broker and controller are started without it:
--without-systemd does not try.
A line after a command that has no prompt must be in what the command prints. What is not tried must be correct for a shell.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "man/stepd-pi.7"
# Whoever follows the page: a user who may become root.
USER = "pi"
ADDRESS = "192.0.2.1"
# The processor that qemu-user plays (root.sh).
PROCESSOR = [f"QEMU_CPU={processor}"] if (processor := os.environ.get("QEMU_CPU")) else []


@dataclass
class Command:
    text: str
    # What it must print, among others.
    expected: list[str]


@dataclass
class Block:
    section: str
    commands: list[Command]
    # Why it is not tried.
    reason: str | None
    needs_systemd: bool


def blocks(page: str) -> list[Block]:
    """The page's commands. Those that a here-document or a pipe continues on the next line are one."""
    found, section, note, lines = [], "", None, None
    for line in page.splitlines():
        if line.startswith(".Sh "):
            section = line[4:]
        elif line.startswith('.\\"'):
            note = line[3:].strip()
        elif line.startswith(".Bd -literal"):
            lines = []
        elif line == ".Ed":
            reason = note.removeprefix("not tried: ") if note and note.startswith("not tried: ") else None
            assert note is None or reason or note == "tried: under systemd", note
            found.append(Block(section, commands(lines), reason, note == "tried: under systemd"))
            note, lines = None, None
        elif lines is not None:
            # mandoc's only escape in literal text.
            lines.append(line.replace("\\e", "\\"))
    return found


def commands(lines: list[str]) -> list[Command]:
    made: list[Command] = []
    rest = iter(lines)
    for line in rest:
        if not line.startswith("$ "):
            assert made, f"{line!r} belongs to no command"
            made[-1].expected.append(line)
            continue
        text = line[2:]
        if end := re.search(r"<<(\w+)", text):
            for line in rest:
                text += f"\n{line}"
                if line == end[1]:
                    break
        while text.endswith(("|", "\\")):
            text += f"\n{next(rest)}"
        made.append(Command(text, []))
    return made


def words(text: str) -> str:
    return " ".join(text.split())


class Machine:
    """A copy of the root that is gone at the end."""

    def __init__(self, root: Path, work: Path):
        self.work = work
        (work / "machine").mkdir()
        self._log = open(work / "systemd", "wb")
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net",
             HERE / "boot.sh", root, work / "machine"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)  # fmt: skip
        self._first = self._wait_for_systemd()

    def _wait_for_systemd(self) -> int | None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            if children and Path(f"/proc/{children[0]}/root/run/systemd/private").exists():
                return int(children[0])
            time.sleep(0.1)
        return None

    @property
    def has_systemd(self) -> bool:
        return self._first is not None

    def said(self) -> str:
        """What its services have logged."""
        return self.run("journalctl --no-pager --lines 60 | grep -v ' sudo'").stdout

    def run(self, script: str, user: str | None = None) -> subprocess.CompletedProcess:
        enter = ["nsenter", "--target", self._first, "--mount", "--pid", "--net", "--uts", "--root", "--wd"]
        return run([*enter, *inside(script, user)])

    def close(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._log.close()


class Chroot:
    """The same without systemd. What it starts ends with it."""

    has_systemd = False

    def __init__(self, root: Path, work: Path):
        self._root = work / "root"
        layers = work / "layers"
        for folder in (self._root, layers):
            folder.mkdir()
        mount("-t", "tmpfs", "tmpfs", layers)
        for name in ("upper", "work"):
            (layers / name).mkdir()
        options = f"lowerdir={root},upperdir={layers}/upper,workdir={layers}/work"
        if PROCESSOR:
            # root.sh is then root in a namespace of users, which may not note in trusted attributes what was removed.
            options += ",userxattr"
        mount("-t", "overlay", "overlay", "-o", options, self._root)
        mount("-t", "proc", "proc", self._root / "proc")
        self._makes_devices()
        self._layers = layers
        self._log = open(work / "services", "wb")
        self._started: list[subprocess.Popen] = []

    def _makes_devices(self):
        """Its own /dev. With this machine's mounted there, deleting the root could delete this machine's devices.

        A namespace of users cannot make devices, so single ones are mounted.
        """
        devices = self._root / "dev"
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", devices)
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            (devices / name).touch()
            mount("--bind", f"/dev/{name}", devices / name)
        for name in ("pts", "shm"):
            (devices / name).mkdir()
        mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", devices / "pts")
        mount("-t", "tmpfs", "tmpfs", devices / "shm")
        (devices / "ptmx").symlink_to("pts/ptmx")
        for name, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            (devices / name).symlink_to(f"/proc/self/fd{number}")

    def said(self) -> str:
        return Path(self._log.name).read_text(errors="replace")

    def run(self, script: str, user: str | None = None) -> subprocess.CompletedProcess:
        return run(["chroot", self._root, *inside(script, user)])

    def starts(self, *command: str):
        environment = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *PROCESSOR]
        started = ["chroot", self._root, *environment, *command]
        streams = {"stdin": subprocess.DEVNULL, "stdout": self._log, "stderr": self._log}
        self._started.append(subprocess.Popen([*map(str, started)], **streams))

    def close(self):
        for process in self._started:
            process.kill()
            process.wait()
        self._log.close()
        for place in (self._root / "dev", self._root / "proc", self._root, self._layers):
            # The whole tree at once: a namespace of users may not take away single mounts that it did not make.
            subprocess.run(["umount", "--lazy", place])


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def inside(script: str, user: str | None) -> list[str]:
    environment = [
        "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *PROCESSOR]
    if user is None:
        return [*environment, "DEBIAN_FRONTEND=noninteractive", "bash", "-e", "-c", script]
    become = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
    return [*become, *environment, f"HOME=/home/{user}", "bash", "-e", "-c", f"cd\n{script}"]


def run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", timeout=300)  # fmt: skip


PREPARED = f"""
getent passwd {USER} >/dev/null || useradd --create-home --shell /bin/bash {USER}
printf '%s\\n' '{USER} ALL=(ALL) NOPASSWD: ALL' 'Defaults env_keep += "QEMU_CPU"' >/etc/sudoers.d/{USER}
chmod 440 /etc/sudoers.d/{USER}
# The boot files of a Pi, and the name by which its network knows it.
mkdir -p /boot/firmware
printf '127.0.0.1 localhost\\nADDRESS car car.local\\n' >/etc/hosts
# The partition for what must last: another file system than the root's.
mkdir -p /data
mount -t tmpfs -o mode=755 tmpfs /data
"""


def check(root: Path, work: Path, is_to_boot: bool) -> int:
    found = blocks(PAGE.read_text())
    tried = [block for block in found if block.reason is None]
    assert len(tried) > 5 and len(found) > len(tried), "the page's blocks were not found"
    for block in found:
        for command in block.commands:
            subprocess.run(["bash", "-n", "-c", command.text], check=True)
    machine = Machine(root, work) if is_to_boot else None
    address = ADDRESS
    if machine and not machine.has_systemd:
        machine.close()
        print((work / "systemd").read_text(errors="replace"), file=sys.stderr)
        machine = None
    if not machine:
        print("pi.py: systemd does not run here: its part is not tried", file=sys.stderr)
        machine, address = Chroot(root, work), "127.0.0.1"
    try:
        ended = machine.run(PREPARED.replace("ADDRESS", address))
        if ended.returncode:
            sys.exit(f"pi.py: the root cannot be prepared: {ended.stdout}")
        return sum(try_block(machine, block) for block in tried)
    finally:
        machine.close()


def try_block(machine: Machine | Chroot, block: Block) -> int:
    """Returns how many of the block's commands were tried."""
    if block.needs_systemd and not machine.has_systemd:
        return 0
    for command in block.commands:
        print(f"{block.section.lower()}: {command.text.splitlines()[0]}", flush=True)
        ended = machine.run(command.text, USER)
        wrong = [line for line in command.expected if words(line) not in words(ended.stdout)]
        if ended.returncode or wrong:
            sys.exit(
                f"pi.py: {block.section}: {command.text}\nexit status {ended.returncode}\n{ended.stdout}\n"
                + f"expected: {wrong}\n{machine.said()}")
        if isinstance(machine, Chroot) and "provision vehicle" in command.text:
            # What `provision start` would do.
            folder = f"/home/{USER}/car"
            machine.run(f"sed -i 's/^user .*/user root/' {folder}/mosquitto.conf")
            machine.starts("/usr/sbin/mosquitto", "-c", f"{folder}/mosquitto.conf")
            machine.starts("stepd", "--config", f"{folder}/stepd.toml")
    return len(block.commands)


def main():
    options, root = sys.argv[1:-1], Path(sys.argv[-1])
    if options not in ([], ["--without-systemd"]) or not (root / "usr/bin/stepd").exists():
        sys.exit("usage: pi.py [--without-systemd] ROOT, in which the packages are installed")
    if os.geteuid():
        sys.exit("pi.py: run as root")
    work = Path(tempfile.mkdtemp(prefix="stepctl-pi."))
    try:
        count = check(root.resolve(), work, is_to_boot=not options)
    finally:
        # Should something be mounted there still, it is left alone, and said.
        subprocess.run(["rm", "-rf", "--one-file-system", work], check=True)
    print(f"{count} commands of the page were tried")


if __name__ == "__main__":
    main()
