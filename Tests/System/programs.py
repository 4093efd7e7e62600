"""Programs that the tests run: each with a limit of its own, ended with the test, and all that they say kept."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import schemas

REPOSITORY = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("STEPCTL_BIN_DIR", REPOSITORY / ".build/debug")).absolute()
STEPCTL, STEPD = BINARIES / "stepctl", BINARIES / "stepd"

# stepd turns every 20 ms, and tells of a fault where a machine holds it up for 200, as it should. Who may give it
# precedence over whatever else runs does. A real-time policy counts in every session, niceness in one.
HURRIED = next(
    (hurried for hurried in (("chrt", "--rr", "1"), ("nice", "-n", "-15"))
     if not subprocess.run([*hurried, "true"], capture_output=True).stderr),
    (),
)

# Two cores may be busy with something else: long enough for any of it, and never waited for where all is well.
PATIENCE = 60.0


def children(process: subprocess.Popen) -> list[int]:
    """The programs that a program's threads have started."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(child) for file in lists for child in file.read_text().split()]


def seconds_of_work(process: int) -> float:
    """What a process has had of the processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE, pause: float = 0.005):
    """The condition's first true value; it is looked at again after each pause."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {patience:g} s: {what}")
        time.sleep(pause)
    return value


class Transcript:
    """What was typed and what the programs under test said to it, and the secrets that must not be in there."""

    def __init__(self):
        self.secrets: dict[str, str] = {}
        self._said: list[str] = []
        self._logs: dict[Path, int] = {}

    def add(self, *texts: str):
        self._said += texts

    def follow(self, *logs: Path):
        """Files that are still being written."""
        self._logs |= dict.fromkeys(logs, 0)

    def leaked(self) -> list[str]:
        """The names of the secrets that were said since the last time."""
        for log, known in self._logs.items():
            content = log.read_bytes() if log.exists() else b""
            # A line that was half written is read again.
            self._said.append(content[known:].decode(errors="replace"))
            self._logs[log] = content.rfind(b"\n") + 1
        said, self._said = "\n".join(self._said), []
        return sorted(name for secret, name in self.secrets.items() if secret in said)


@dataclass(frozen=True)
class Ended:
    """What a program did: `status` is negative for a signal, as in subprocess."""

    status: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    @property
    def json(self) -> dict:
        """The only object that was printed."""
        (line,) = self.lines
        return json.loads(line)

    @property
    def outcome(self) -> dict:
        """The only object, of a command that failed, without what each of them has."""
        failure = self.json
        assert failure.pop("exit") == self.status
        assert failure.pop("message") == self.error
        hints = [line.removeprefix("hint: ") for line in self.stderr.splitlines() if line.startswith("hint: ")]
        assert [failure.pop("hint")] == (hints or [None])
        assert failure.pop("code") == failure["outcome"] or failure["outcome"] == "failed"
        assert failure.pop("may_have_moved", self.status == 6) == (self.status == 6)
        # Of an attempt to move a step.
        assert failure.pop("method", None) in (None, "beacon", "nfc", "qr", "heard")
        assert failure.pop("duration_s", 0) >= 0
        return failure

    @property
    def objects(self) -> list[dict]:
        return [json.loads(line) for line in self.lines]

    @property
    def error(self) -> str:
        """The one line that says why, without the program's name."""
        (line,) = [line for line in self.stderr.splitlines() if ": error: " in line]
        return line.partition(": error: ")[2]

    @property
    def hint(self) -> str:
        """The one line that says what to do."""
        (line,) = [line for line in self.stderr.splitlines() if line.startswith("hint: ")]
        return line.removeprefix("hint: ")


class Running:
    """A program that runs beside the test."""

    def __init__(
        self,
        arguments: list,
        log: Path,
        environment: dict,
        transcript: Transcript,
        stdin=subprocess.DEVNULL,
        variables: dict | None = None,
    ):
        hurried = HURRIED if STEPD in arguments else ()
        # A library that it loads is for this program alone: not for setpriv.
        settings = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
        self.name, self.stderr = Path(arguments[0]).name, log
        self.stdout = log.with_suffix(".out")
        self._began = time.monotonic()
        if arguments[0] in (STEPCTL, STEPD):
            transcript.add(" ".join(map(str, arguments)))
            transcript.follow(self.stdout, self.stderr)
        with open(self.stdout, "ab") as out, open(self.stderr, "ab") as error:
            # Should the tests be killed, it goes as well.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *hurried, *settings, *map(str, arguments)],
                stdin=stdin,
                stdout=out,
                stderr=error,
                env=environment,
            )

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def says(self, text: str, after: int = 0, file: Path | None = None) -> str:
        """Waits for a line with this text, `after` bytes of the log or later."""

        def found():
            lines = (file or self.stderr).read_bytes()[after:].decode(errors="replace").splitlines()
            return next((line for line in lines if text in line), None)

        def found_or_over():
            lived = self.lives
            return found() or not lived and "over"

        line = wait_until(found_or_over, f"{self.name} says {text!r}; it said {self.stderr.read_text()!r}")
        assert line != "over", f"{self.name} ended with {self.process.returncode}: {self.stderr.read_text()!r}"
        return line

    @property
    def said(self) -> int:
        """How much it has said by now, for `after`."""
        return self.stderr.stat().st_size

    def signal(self, number: int):
        self.process.send_signal(number)

    def ends(self, patience: float = PATIENCE) -> Ended:
        status = self.process.wait(patience)
        return Ended(status, self.stdout.read_text(), self.stderr.read_text(), time.monotonic() - self._began)

    def kill(self):
        """Whatever state it is in; without a chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """As a system that shuts down: asks first."""
        if self.lives:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                # stepd writes its journal first, and others take their time on a busy machine.
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


class Stepctl:
    """stepctl as one user types it, with a home and an environment of their own."""

    def __init__(self, home: Path, transcript: Transcript):
        self.home, self.transcript = home, transcript
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        # A name server that does not answer is soon given up (resolv.conf(5)).
        self.environment["RES_OPTIONS"] = "timeout:1 attempts:1"
        # The processor that qemu-user plays (Tests/Arm64/run.sh).
        self.environment |= {name: value for name, value in os.environ.items() if name == "QEMU_CPU"}

    def __call__(
        self,
        *arguments,
        input: bytes | None = None,
        folder: Path | None = None,
        prefix: tuple = (),
        patience: float = PATIENCE,
        **variables: str,
    ) -> Ended:
        began = time.monotonic()
        ended = subprocess.run(
            [*map(str, prefix), STEPCTL, *map(str, arguments)],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            timeout=patience,
            env=self.environment | variables,
            cwd=folder or self.home,
        )
        stdout, stderr = ended.stdout.decode(), ended.stderr.decode()
        self.transcript.add(" ".join(map(str, arguments)), stdout, stderr)
        if "--json" in arguments:
            schemas.check(arguments, stdout)
        return Ended(ended.returncode, stdout, stderr, time.monotonic() - began)

    def start(self, log: Path, *arguments, stdin=subprocess.DEVNULL, prefix: tuple = (), **variables) -> Running:
        return Running([*prefix, STEPCTL, *arguments], log, self.environment, self.transcript, stdin, variables)


def blocked(process: int) -> set[int]:
    """The signals that a process holds back (proc(5), SigBlk)."""
    status = Path(f"/proc/{process}/status").read_text()
    mask = int(re.search(r"^SigBlk:\s*(\w+)$", status, re.MULTILINE)[1], 16)
    return {number for number in signal.valid_signals() if mask >> number - 1 & 1}


def mounted(source: Path, place: str) -> tuple:
    """A prefix by which a program sees a file or folder in another place, without anybody else doing so."""
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", source, place)


def can_mount() -> bool:
    """Not in every container."""
    return subprocess.run([*mounted(Path("/tmp"), "/tmp"), "true"], capture_output=True).returncode == 0


# Who has no folder of their own.
NOBODY = ("env", "HOME=/", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
# Root may read whatever the mode says, by these two capabilities.
AS_ANYBODY = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()
