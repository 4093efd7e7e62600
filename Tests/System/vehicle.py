"""A vehicle as an operator makes it: its folder, its broker, its controller, and its riders."""

import errno
import json
import os
import random
import re
import socket
from contextlib import ExitStack, closing
from pathlib import Path

import attacks
import captures
import client
import stepproto as proto
from programs import STEPD, Ended, Running, Stepctl, wait_until

TRAVEL_S = 0.2  # the shortest that stepd takes
LONG_S = 20  # the longest: nothing that a test does to a motion comes too late


def free_port() -> int:
    """A port below those that the kernel gives to outgoing connections, one of which could take it before us."""
    while True:
        port = random.randrange(20_000, 32_000)
        try:
            for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                with socket.socket(family) as probe:
                    probe.bind((address, port))
        except OSError as error:
            # EAFNOSUPPORT, EADDRNOTAVAIL: not every kernel has IPv6.
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                continue
        return port


def edit(file: Path, **values):
    """Gives keys in a TOML file other values; each must be there already."""
    text = file.read_text()
    for key, value in values.items():
        text, count = re.subn(rf"^{key} = .*$", f"{key} = {json.dumps(value)}", text, flags=re.MULTILINE)
        assert count, f"{file} has no {key}"
    file.write_text(text)


def keep_user(configuration: Path):
    """A broker that root starts would become a user who cannot reach a test's folder."""
    text = re.sub(r"^user .*$", "", configuration.read_text(), flags=re.MULTILINE)
    configuration.write_text(text + ("\nuser root\n" if os.geteuid() == 0 else ""))


def login_file(folder: Path, name: str, cert: Path | str, key: Path | str, ca: Path | str = "tls/ca.pem") -> Path:
    """A vehicle file, beside the vehicle's own, of somebody who has that certificate and its key."""
    login = f'ca = "{ca}"\ncert = "{cert}"\nkey = "{key}"'
    text, count = re.subn(r'^ca = ".*"$', login, (folder / "vehicle.toml").read_text(), flags=re.MULTILINE)
    assert count == 1, f"{folder}/vehicle.toml has no ca"
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


class Rider:
    """What an operator handed to a rider, and the commands that the rider types."""

    def __init__(self, vehicle: "Vehicle", name: str):
        self.vehicle, self.name = vehicle, name
        self.folder = vehicle.folder / "riders" / name
        self.file = self.folder / "vehicle.toml"
        for secret in ("device.jwk", "rider.key", "token.jwt"):
            vehicle.keeps_secret(self.folder / secret)

    @property
    def peer(self) -> client.Vehicle:
        """The same for Python."""
        return client.Vehicle.read(str(self.file))

    def types(self, *arguments, **more) -> Ended:
        return self.vehicle.stepctl(*arguments, "--vehicle", self.file, **more)

    def moves(self, position: str, side: str, *arguments, at: str = "left", **more) -> Ended:
        """open or close, standing at a side."""
        radio = self.vehicle.radio(at)
        return self.types(position, "--side", side, "--radio", radio, *arguments, **more)

    def starts(self, *arguments, **more) -> Running:
        log = self.vehicle.new_log(f"stepctl-{self.name}")
        running = self.vehicle.stepctl.start(log, *arguments, "--vehicle", self.file, **more)
        return self.vehicle.stack.enter_context(closing(running))

    def starts_to_move(self, position: str, side: str, *arguments, at: str = "left") -> Running:
        return self.starts(position, "--side", side, "--radio", self.vehicle.radio(at), *arguments)

    def begins_to_open(self) -> Running:
        """Returns when the left step has begun to move, and the rider knows."""
        opening = self.starts_to_move("open", "left")
        self.vehicle.wait_for_motions(("left", "close", "open"))
        opening.says("moving")
        return opening


class Vehicle:
    """Processes that it starts end with `stack`, the last first."""

    def __init__(self, folder: Path, stepctl: Stepctl, stack: ExitStack, *arguments):
        self.folder, self.stepctl, self.stack = folder, stepctl, stack
        self.transcript = stepctl.transcript
        self.port = free_port()
        self.broker: Running | None = None
        self.stepd: Running | None = None
        self._logs = 0
        # By step, once it has them: see gains_identifiers().
        self.beacons, self.labelled, self.tags = {}, {}, {}
        self.provision(*arguments)

    def provision(self, *arguments):
        name = f"{self.folder.name}\n".encode() if "--force" in arguments else None
        made = self.stepctl("provision", "vehicle", self.folder, "--port", self.port, *arguments, input=name)
        assert made.status == 0, made
        self.edit("stepd.toml", travel_s=TRAVEL_S)
        self.prepares_broker()
        for secret in ("keys/encryption.jwk", "keys/signing.jwk", "operator/token.jwk"):
            self.keeps_secret(self.folder / secret)
        for secret in ("operator/ca.key", "tls/broker.key", "tls/controller.key"):
            self.keeps_secret(self.folder / secret)

    def prepares_broker(self):
        """Its log is the witness of what was sent, and to whom."""
        file = self.folder / "mosquitto.conf"
        keep_user(file)
        with open(file, "a") as text:
            text.write("\nlog_type all\n")

    def keeps_secret(self, file: Path):
        """Notes what in a file must not be shown: of a JWK `d`, of a token all but its header, of PEM the body."""
        if file.suffix == ".jwk":
            secrets = [json.loads(file.read_bytes())["d"]]
        elif file.suffix == ".jwt":
            secrets = file.read_text().strip().split(".")[1:]
        else:
            secrets = [line for line in file.read_text().splitlines() if "-----" not in line]
        self.transcript.secrets |= dict.fromkeys(secrets, str(file))

    def edit(self, name: str, **values):
        edit(self.folder / name, **values)

    def takes_long(self, travel_s: float = LONG_S):
        """Its steps take so long, and however often a busy machine holds a motion up, its limit is far."""
        self.edit("stepd.toml", travel_s=travel_s, limit_s=60)

    def gains_identifiers(self, **policy):
        """The left step's beacon rotates its minors, the right one's never changes; the left step has a plain tag, and
        each has a dynamic one. To be called before there are riders."""
        secret = os.urandom(32)
        self.beacons = {"left": (secret, 8)}
        self.labelled = {"left": "04A1B2C3D4E5F6"}
        self.tags = {
            step: attacks.Tag(os.urandom(7).hex().upper(), os.urandom(16), os.urandom(16)) for step in ("left", "right")
        }
        keys = [
            {
                "uid": tag.uid,
                "step": step,
                "meta_read_key": tag.meta_read.hex().upper(),
                "file_read_key": tag.file_read.hex().upper(),
            }
            for step, tag in self.tags.items()
        ]
        self._writes_secret("keys/tags.json", json.dumps(keys), *(key["meta_read_key"] for key in keys))
        beacon = {"kty": "oct", "k": proto.base64url(secret)}
        self._writes_secret(
            "keys/left.beacon", json.dumps(beacon), beacon["k"], *(key["file_read_key"] for key in keys)
        )
        car = self.folder / "vehicle.toml"
        text = car.read_text().replace("major = 1\n", 'major = 1\ntags = ["04A1B2C3D4E5F6"]\n')
        car.write_text(text.replace("major = 2\n", "major = 2\nminor = 7\n"))
        self.edit("stepd.toml", **policy)
        with open(self.folder / "stepd.toml", "a") as file:
            file.write('\n[beacon.steps.left]\nsecret = "keys/left.beacon"\n')

    def _writes_secret(self, name: str, text: str, *secrets: str):
        file = self.folder / name
        file.touch(0o600)
        file.write_text(text)
        self.transcript.secrets |= dict.fromkeys(secrets, name)

    def rider(self, name: str, *arguments) -> Rider:
        made = self.stepctl("provision", "token", self.folder, "--rider", name, *arguments)
        assert made.status == 0, made
        return Rider(self, name)

    # --- What it says of itself ---

    @property
    def _table(self) -> dict:
        return client.tomllib.loads((self.folder / "vehicle.toml").read_text())

    @property
    def uuid(self) -> str:
        return self._table["uuid"]

    @property
    def topic(self) -> str:
        return self._table["topic"]

    def set_position(self, step: str) -> str:
        return f"{self.topic}/{step}/set_position"

    def status(self, step: str) -> str:
        return f"{self.topic}/{step}/status"

    def key(self, name: str):
        """A private key of the controller's or the operator's."""
        return proto.private_key(json.loads((self.folder / f"{name}.jwk").read_bytes()))

    @property
    def controller_file(self) -> Path:
        """A vehicle file with which to be the controller, for Python."""
        return login_file(self.folder, "controller", "tls/controller.pem", "tls/controller.key")

    @property
    def said_to_a_second(self) -> str:
        """What another stepd says that is to drive this vehicle while its stepd runs."""
        holder = f"pid {self.stepd.process.pid}, with {self.folder}/stepd.toml"
        return f"another stepd runs for {self.folder.name}: {holder}; nothing was moved"

    @property
    def motions(self) -> list[tuple[str, str, str]]:
        """Every motion that the simulated servo has begun: step, from, to."""
        file = self.folder / "servo.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        motions = [json.loads(line) for line in lines]
        assert all(motion.keys() == {"time_s", "step", "from", "to"} for motion in motions)
        return [(motion["step"], motion["from"], motion["to"]) for motion in motions]

    def radio(self, at: str) -> str:
        """What a rider hears who stands `left`, `right`, or `between`."""
        content = {"left": captures.at_the_left, "right": captures.at_the_right, "between": captures.between}[at]
        path = self.folder.parent / f"{self.folder.name}-{at}.btsnoop"
        return f"btsnoop:{path}" if path.exists() else captures.written(path, content(self.uuid))

    # --- Its programs ---

    def new_log(self, name: str) -> Path:
        self._logs += 1
        return self.folder.parent / f"{self.folder.name}-{self._logs}-{name}.log"

    def starts(self, name: str, *arguments, **more) -> Running:
        running = Running(list(arguments), self.new_log(name), self.stepctl.environment, self.transcript, **more)
        return self.stack.enter_context(closing(running))

    def starts_broker(self) -> Running:
        self.broker = self.starts("mosquitto", "mosquitto", "-c", self.folder / "mosquitto.conf")
        self.broker.says("running")
        return self.broker

    def launches_stepd(self, *arguments, prefix: tuple = (), **variables) -> Running:
        """Does not wait until it can be used."""
        command = (*prefix, STEPD, "--config", self.folder / "stepd.toml", *arguments)
        self.stepd = self.starts("stepd", *command, variables=variables)
        return self.stepd

    def checks(self) -> Ended:
        """`stepd --check`."""
        return self.starts("check", STEPD, "--check", "--config", self.folder / "stepd.toml").ends()

    def starts_stepd(self, *arguments, **variables) -> Running:
        """Ready for commands: its first statements are published after it has subscribed, on the same connection."""
        before = self.broker.said
        self.launches_stepd(*arguments, **variables).says("connected to")
        for step in ("left", "right"):
            self.broker.says(f"'{self.status(step)}'", after=before)
        return self.stepd

    def starts_all(self) -> "Vehicle":
        self.starts_broker()
        self.starts_stepd()
        return self

    # --- What the broker has seen ---

    @property
    def connections(self) -> int:
        """How many clients have come to it, whatever became of them."""
        return self.broker.stderr.read_text().count("New connection from")

    def published(self, step: str, after: int = 0) -> int:
        """How many commands for a step have reached the broker."""
        log = self.broker.stderr.read_bytes()[after:].decode(errors="replace")
        return sum("Received PUBLISH" in line and f"'{self.set_position(step)}'" in line for line in log.splitlines())

    def wait_for_command(self, step: str, after: int = 0):
        wait_until(lambda: self.published(step, after), f"a command for {step}")

    def wait_for_motions(self, *motions: tuple[str, str, str]):
        wait_until(lambda: self.motions == list(motions), f"{motions}; there is {self.motions}")

    def is_unmoved(self) -> bool:
        """Nothing has moved, and the controller lives."""
        return self.motions == [] and self.stepd.lives
