"""A PWM chip of files, `pwm0` for the left step's servo and `pwm1` for the right one's.

What each was told, and when, is written by slow.c, which is loaded before stepd.
"""

import itertools
import tempfile
from contextlib import ExitStack
from pathlib import Path

MEMORY = Path("/dev/shm")
FRAME = 20_000_000  # ns


def in_memory(stack: ExitStack) -> Path:
    """A folder for a chip. A busy disk may hold a writer up for longer than stepd lets a servo be silent; a real chip
    is on no disk."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)))


class Servos:
    """Those of a vehicle that was made with `--servo pwm`."""

    def __init__(self, vehicle, library: Path):
        self.vehicle = vehicle
        self.folder = in_memory(vehicle.stack)
        (vehicle.folder / "pwm").symlink_to(self.folder)
        self.chip, self.log = vehicle.folder / "pwm/pwmchip0", self.folder / "writes"
        self.variables = {"LD_PRELOAD": library, "WRITES": self.log}
        vehicle.edit("stepd.toml", root="pwm")

    def holds(self, channel: int, pulse: int, period: int = FRAME):
        (self.chip / f"pwm{channel}").mkdir(parents=True, exist_ok=True)
        (self.chip / "export").touch(0o200)
        for name, value in (("period", period), ("duty_cycle", pulse), ("enable", int(pulse > 0))):
            (self.chip / f"pwm{channel}" / name).write_text(f"{value}\n")

    def writes(self, channel: int = 0) -> list[tuple[float, int]]:
        """When a servo was told which pulse, in nanoseconds; not the zeros of a channel that is being set up."""
        told = [(float(at), int(value)) for at, path, value in self._lines if f"/pwm{channel}/" in path]
        return [(at, value) for at, value in told if value]

    @property
    def slow(self) -> list[tuple[float, float]]:
        """When each call began and ended that was made slow."""
        return [(float(begin), float(end)) for begin, what, end in self._lines if what == "slow"]

    @property
    def _lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def value(self, name: str, channel: int = 0) -> int:
        return int((self.chip / f"pwm{channel}" / name).read_text().strip() or -1)


def longest_stride(pulses: list[int]) -> int:
    """The most that a servo was told to turn from one pulse to the next."""
    return max((abs(b - a) for a, b in itertools.pairwise(pulses)), default=0)
