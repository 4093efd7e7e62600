"""Two vehicles of one operator, and the broker that they share."""

import re
from contextlib import ExitStack, closing
from pathlib import Path

import captures
import client
from programs import STEPD, Running, Stepctl
from vehicle import TRAVEL_S, edit, free_port, keep_user, login_file


class Fleet:
    """Two vehicles, one broker, one operator."""

    def __init__(self, folder: Path, stepctl: Stepctl, stack: ExitStack):
        self.folder, self.stepctl, self.stack, self.port = folder, stepctl, stack, free_port()
        made = stepctl("operator", "init", folder / "fleet", "--port", self.port)
        assert made.status == 0, made
        for name in ("car", "van"):
            made = stepctl("provision", "vehicle", folder / name, "--operator", folder / "fleet")
            assert made.status == 0, made
            edit(folder / name / "stepd.toml", travel_s=TRAVEL_S)
        self.prepares_broker()

    def prepares_broker(self):
        keep_user(self.folder / "fleet/mosquitto.conf")

    def runs(self, name: str, *command) -> Running:
        log = self.folder / f"{name}.log"
        running = Running(list(command), log, self.stepctl.environment, self.stepctl.transcript)
        return self.stack.enter_context(closing(running))

    def starts_broker(self) -> Running:
        self.broker = self.runs("mosquitto", "mosquitto", "-c", self.folder / "fleet/mosquitto.conf")
        self.broker.says("running")
        return self.broker

    def starts_stepd(self, name: str) -> Running:
        stepd = self.runs(name, STEPD, "--config", self.folder / name / "stepd.toml")
        stepd.says("connected to")
        return stepd

    def uuid(self, name: str) -> str:
        return re.search(r'uuid = "(.*)"', (self.folder / name / "vehicle.toml").read_text())[1]

    def radio(self, name: str) -> str:
        """What a rider hears who stands at a vehicle's left step."""
        path = self.folder / f"{name}.btsnoop"
        return f"btsnoop:{path}" if path.exists() else captures.written(path, captures.at_the_left(self.uuid(name)))

    def login(self, name: str, certificate: Path, key: Path) -> client.Vehicle:
        """Somebody with that certificate, for Python."""
        paths = {"ca": self.folder / "fleet/tls/ca.pem", "cert": certificate, "key": key}
        return client.Vehicle.read(str(login_file(self.folder / name, name, **paths)))
