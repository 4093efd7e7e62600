"""Many vehicles, and the notices that a broker has for them."""

import re
import shutil
import subprocess
import time
import uuid
from pathlib import Path

from server import Server


class Kept:
    """The notices that come to a broker, with their times."""

    def __init__(self, server: Server, file: Path):
        operator = server.folder / "operator"
        self.file = file
        self.process = subprocess.Popen(
            [
                "mosquitto_sub", "-h", "localhost", "-p", str(server.broker_port), "--cafile", operator / "tls/ca.pem",
                "--cert", operator / "operator/client.pem", "--key", operator / "operator/client.key",
                "-t", "vehicles/+/operator", "-F", "%U %t",
            ], stdout=open(file, "wb"))
        time.sleep(1)
        self.clear()

    def clear(self):
        self.past = self.file.stat().st_size

    def times(self) -> dict[str, float]:
        """The first of each vehicle, since the last `clear`."""
        with open(self.file) as lines:
            lines.seek(self.past)
            times: dict[str, float] = {}
            for line in lines:
                if line.endswith("operator\n"):
                    when, topic = line.split()
                    times.setdefault(topic.split("/")[1], float(when))
        return times

    def last(self, count: int, began: float) -> float:
        """How long it took until so many vehicles had theirs."""
        deadline = time.time() + 300
        while len(times := self.times()) < count:
            assert time.time() < deadline, f"{len(times)} of {count}"
            time.sleep(0.05)
        return max(times.values()) - began

    def next(self, vehicle: str, began: float) -> float:
        """How long it took until that vehicle had one, after that time."""
        while True:
            with open(self.file) as lines:
                lines.seek(self.past)
                for line in lines.read().splitlines():
                    if line.endswith(f"/{vehicle}/operator") and float(line.split()[0]) > began:
                        return float(line.split()[0]) - began
            assert time.time() < began + 60, vehicle
            time.sleep(0.005)

    def close(self):
        self.process.kill()
        self.process.wait()


def multiplied(server: Server, car: str, count: int):
    """Adds vehicles like one that is there, which the broker knows, too."""
    vehicles = server.folder / "operator/vehicles"
    record = next(path for path in vehicles.iterdir() if car in (path / "vehicle.toml").read_text().lower())
    text = (record / "vehicle.toml").read_text()
    new = [str(uuid.uuid4()) for _ in range(count)]
    for one in new:
        shutil.copytree(record, vehicles / one, symlinks=True)
        (vehicles / one / "vehicle.toml").write_text(re.sub(re.escape(car), one, text, flags=re.IGNORECASE))
    server.runs(
        "INSERT INTO vehicle (id, name, folder, steps, service, created) SELECT * FROM (VALUES "
        + ", ".join(f"('{one}', 'v{number}', '{one}', '', 'in_service', 0)" for number, one in enumerate(new))
        + ") AS new")
    server.runs(f"UPDATE vehicle SET steps = (SELECT steps FROM vehicle AS known WHERE known.id = '{car}')")
