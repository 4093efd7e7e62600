"""A private PostgreSQL, for the tests' time: a cluster in a folder, and a database for each server."""

import itertools
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "postgres.sh"


class Cluster:
    def __init__(self, folder: Path):
        self.folder, self._numbers = folder, itertools.count()
        self.problem = None
        # Its user has to reach it, through folders that are root's.
        if os.geteuid() == 0:
            for parent in list(folder.parents)[:-2]:
                parent.chmod(parent.stat().st_mode | 0o011)
        started = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True, timeout=60)
        if started.returncode:
            self.problem = started.stderr.strip().splitlines()[-1]

    def database(self) -> str:
        """The address of a new one."""
        name = f"fleet_{next(self._numbers)}"
        made = subprocess.run([SCRIPT, "database", self.folder, name], capture_output=True, text=True, timeout=60)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def close(self):
        if not self.problem:
            subprocess.run([SCRIPT, "stop", self.folder], capture_output=True, timeout=60)


def sql(url: str, statement: str) -> list[str]:
    """What another program reads of a database, or does to it: a line for each row."""
    ended = subprocess.run(
        ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url, "-c", statement], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")[:-1]
