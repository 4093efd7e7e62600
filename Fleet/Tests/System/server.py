"""A whole server: the stepfleet that was built, with a folder and ports of its own, and mail that goes into files."""

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import postgres
from programs import PATIENCE, wait_until
from vehicle import free_port

BINARIES = Path(os.environ.get("STEPFLEET_BIN_DIR", Path(__file__).parents[2] / ".build/debug")).absolute()
STEPFLEET = BINARIES / "stepfleet"

# A mail is there as a whole, or not at all.
SENDMAIL = """#!/bin/sh
[ "$*" = "-t -i" ] || exit 64
file=$(mktemp "{mails}/new.XXXXXX")
cat >"$file"
mv "$file" "{mails}/$(date +%s%N).mail"
"""


class Server:
    """Made, and not yet started."""

    # The address of its database, where that is no file.
    database: str | None = None

    def __init__(self, folder: Path, *arguments):
        self.folder = folder
        self.port, self.broker_port = free_port(), free_port()
        made = self.types(
            "init", folder, "--host", "localhost", "--port", self.port, "--broker-port", self.broker_port, *arguments,
            everywhere=False)
        assert made.returncode == 0, made
        self._is_here()

    def _is_here(self):
        self.url = f"https://localhost:{self.port}"
        self.verify = str(self.folder / "operator/tls/ca.pem")
        self.mails = self.folder.parent / f"{self.folder.name}-mails"
        self.mails.mkdir()
        sendmail = self.folder.parent / f"{self.folder.name}-sendmail"
        sendmail.write_text(SENDMAIL.format(mails=self.mails))
        sendmail.chmod(0o755)
        # All riders of a test come from one network, and some book without end.
        self.changes(port=self.port, sendmail=str(sendmail), burst=100_000, bookings=100_000)
        self.logfile = self.folder.parent / f"{self.folder.name}.log"
        self.process: subprocess.Popen | None = None

    def copy(self, folder: Path, database: str | None) -> "Server":
        """One that has everything of this one, which does not run, at a port of its own. Its broker cannot run.

        - database: the address of a copy of the database; none if it is a file.
        """
        subprocess.run(["cp", "-a", self.folder, folder], check=True)
        other = Server.__new__(Server)
        other.folder, other.port, other.broker_port = folder, free_port(), self.broker_port
        other._is_here()
        if database:
            other.changes(database=database)
        return other

    def changes(self, **settings):
        file = self.folder / "stepfleet.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | settings))

    def types(self, *arguments, everywhere=True, input=None) -> subprocess.CompletedProcess:
        """A command of an operator, for this server."""
        environment = os.environ | ({"STEPFLEET_DIR": str(self.folder)} if everywhere else {})
        return subprocess.run(
            [STEPFLEET, *map(str, arguments)], capture_output=True, text=True, timeout=2 * PATIENCE, env=environment,
            input=input)

    def starts(self, *arguments) -> "Server":
        self.process = self._started(self.folder, *arguments)
        wait_until(lambda: '"serving"' in self.log() or self.process.poll() is not None, "the server serves")
        assert self.process.poll() is None, self.log()
        return self

    def _started(self, *arguments) -> subprocess.Popen:
        # Should the tests be killed, it goes as well.
        with open(self.logfile, "wb") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", STEPFLEET, "serve", *map(str, arguments)], stderr=log, stdout=log)

    def stops(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def log(self) -> str:
        return self.logfile.read_text() if self.logfile.exists() else ""

    def mail(self, to: str, count=1) -> str:
        def found():
            texts = [file.read_text() for file in sorted(self.mails.glob("*.mail"))]
            return [text for text in texts if f"\nTo: {to}\n" in text][count - 1 : count]

        return wait_until(found, f"a mail to {to}")[0]

    def metrics(self) -> str:
        """What the operator reads for Prometheus."""
        connection = http.client.HTTPConnection("admin", timeout=PATIENCE)
        with closing(socket.socket(socket.AF_UNIX)) as connection.sock:
            connection.sock.connect(str(self.folder / "run/admin.sock"))
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            return answer.read().decode()

    def another(self, folder: Path | None = None) -> "Another":
        """A second server of the same database.

        - folder: a copy of this one's; none for the same.
        """
        return Another(self, folder or self.folder)

    def at(self, folder: Path) -> "Server":
        """The same, elsewhere."""
        other = Server.__new__(Server)
        other.folder = folder
        return other

    def runs(self, statement: str) -> list:
        """The first column of what another program reads of the database, of either kind, or does to it."""
        return postgres.sql(self.database, statement) if self.database else [row[0] for row in self.sql(statement)]

    def sql(self, statement: str, *values) -> list:
        """What another program reads of the database, or does to it."""
        with sqlite3.connect(self.folder / "data/fleet.sqlite", timeout=PATIENCE) as database:
            return database.execute(statement, values).fetchall()


class Another:
    """Riders reach it under the first one's name, as behind a load balancer; here it has a port of its own."""

    def __init__(self, first: Server, folder: Path):
        port = free_port()
        self.url, self.socket = f"https://localhost:{port}", folder / f"run/{port}.sock"
        self.logfile = first.folder.parent / "another.log"
        with open(self.logfile, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", STEPFLEET, "serve", folder, "--port", str(port)],
                stderr=log, stdout=log)
        wait_until(lambda: '"serving"' in self.logfile.read_text(), "another server serves")
        # It does not take proofs from before it was there, to the second.
        time.sleep(1.1)

    def close(self):
        self.process.kill()
        self.process.wait()


class Broker:
    """The vehicles' broker, from the operator's folder."""

    def __init__(self, server: Server):
        folder = server.folder / "operator"
        file = folder / "mosquitto.conf"
        # Started by root, it would become a user who cannot reach a test's folder.
        if os.geteuid() == 0:
            text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("user "))
            file.write_text(text + "\nuser root\n")
        self.logfile = server.folder.parent / f"{server.folder.name}-broker.log"
        with open(self.logfile, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", shutil.which("mosquitto"), "-c", file], stderr=log, stdout=log)
        wait_until(lambda: "running" in self.logfile.read_text(), "the broker runs")

    def reads_access_again(self):
        def readings() -> int:
            return self.logfile.read_text().count("Reloading config.")

        # It says so, and serves nobody until it has read all.
        before = readings()
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: readings() > before, "the broker reads its access list again")

    def close(self):
        self.process.kill()
        self.process.wait()
