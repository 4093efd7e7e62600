"""A private PostgreSQL, for the tests' time: a cluster in a folder, and a database for each server."""

import os
import subprocess
import uuid
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "postgres.sh"


class Cluster:
    """The one that `run.sh` has started, or one of its own."""

    def __init__(self, folder: Path):
        self.problem = None
        shared = os.environ.get("STEPFLEET_POSTGRES")
        self.folder, self.is_own = (Path(shared), False) if shared else (folder, True)
        if shared:
            return
        # Its user has to reach it, through folders that are root's.
        if os.geteuid() == 0:
            for parent in list(folder.parents)[:-2]:
                parent.chmod(parent.stat().st_mode | 0o011)
        started = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True, timeout=240)
        if started.returncode:
            self.problem = started.stderr.strip().splitlines()[-1]

    def database(self, template: str | None = None) -> str:
        """The address of a new one, or of a copy of one that nobody uses.

        - template: its address.
        """
        name = f"fleet_{uuid.uuid4().hex}"
        arguments = [name] + ([template.partition("?")[0].rpartition("/")[2]] if template else [])
        made = subprocess.run(
            [SCRIPT, "database", self.folder, *arguments], capture_output=True, text=True, timeout=240)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def close(self):
        if self.is_own and not self.problem:
            subprocess.run([SCRIPT, "stop", self.folder], capture_output=True, timeout=240)


def sql(url: str, statement: str) -> list[str]:
    """What another program reads of a database, or does to it: a line for each row."""
    ended = subprocess.run(
        ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url], input=statement, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")[:-1]
