"""Peers in Python: a connection that sees and sends anything, and a controller that answers as a test wants it."""

import os
import queue
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import paho.mqtt.client as mqtt

import attacks
import client
import stepproto as proto
from programs import PATIENCE, wait_until
from vehicle import Vehicle


class Connection:
    """An MQTT client on a thread of its own. `granted` has the broker's answers to the subscriptions."""

    def __init__(self, login: client.Vehicle, *topics: str, on_message: Callable | None = None):
        self.login, self.topics = login, topics
        self.granted: list[mqtt.ReasonCode] = []
        self.messages: queue.Queue[mqtt.MQTTMessage] = queue.Queue()
        self._client = client.connection(login)
        self._client.on_connect = lambda *_: [self._client.subscribe(topic, qos=1) for topic in topics]
        self._client.on_subscribe = lambda *arguments: self.granted.extend(arguments[3])
        self._client.on_message = lambda _, __, message: (on_message or self.messages.put)(message)

    def __enter__(self) -> "Connection":
        self._client.connect(self.login.host, self.login.port)
        self._client.loop_start()
        connected = lambda: self._client.is_connected() and len(self.granted) == len(self.topics)  # noqa: E731
        wait_until(connected, "the broker answers the subscriptions")
        return self

    def __exit__(self, *_):
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> mqtt.MQTTMessageInfo:
        return self._client.publish(topic, payload, qos=1, retain=retain)

    def deliver(self, topic: str, payload: bytes, retain: bool = False):
        """Publishes, and waits until the broker has taken it."""
        self.publish(topic, payload, retain).wait_for_publish(PATIENCE)

    def next(self, patience: float = PATIENCE) -> mqtt.MQTTMessage:
        return self.messages.get(timeout=patience)


def send_alone(login: client.Vehicle, topic: str, payload: bytes):
    """Publishes over a connection of its own, and waits until the broker has taken it or thrown the sender out.

    At QoS 1 a packet that the broker does not like would otherwise be sent again after each new connection.
    """
    ends: list[str] = []
    connection = client.connection(login)
    connection.on_connect = lambda *_: connection.publish(topic, payload, qos=1)
    connection.on_publish = lambda *_: ends.append("taken")
    connection.on_disconnect = lambda *_: ends.append("thrown out")
    connection.connect(login.host, login.port)
    deadline = time.monotonic() + PATIENCE
    while not ends:
        assert time.monotonic() < deadline, "the broker neither took it nor closed the connection"
        connection.loop(0.02)
    connection.disconnect()


class Witness:
    """A rider's connection that hears the status of every step, and believes only what the controller signed."""

    def __init__(self, vehicle: Vehicle, login: client.Vehicle):
        self.vehicle, self.login = vehicle, login
        self.connection = Connection(login, *(vehicle.status(step) for step in login.majors))

    def __enter__(self) -> "Witness":
        self.connection.__enter__()
        return self

    def __exit__(self, *_):
        self.connection.__exit__()

    def next_statement(self) -> tuple[dict, bool]:
        """The next statement, and whether the broker had kept it."""
        message = self.connection.next()
        statement = proto.read_status(message.payload, self.login.signing_key)
        assert message.topic == self.vehicle.status(statement["step"])
        return statement, message.retain

    def kept(self, *steps: str) -> dict[str, dict]:
        """The statements that the broker keeps, by step: what it sends first to a new subscriber."""
        kept = {}
        while kept.keys() != set(steps or self.login.majors):
            statement, retained = self.next_statement()
            assert retained
            kept[statement["step"]] = statement
        return kept

    def publish(self, step: str, payload: bytes, retain: bool = False):
        topic = self.vehicle.set_position(step)
        if len(payload) > proto.MAX_COMMAND_BYTES:
            send_alone(self.login, topic, payload)
        else:
            self.connection.publish(topic, payload, retain)

    def answers_until(self, command: bytes) -> list[dict]:
        """Every answer that comes, up to the first to this command."""
        answers = []
        while not answers or answers[-1]["command"] != proto.digest(command):
            statement, _ = self.next_statement()
            answers += [statement] if "command" in statement else []
        return answers

    def exchange(self, step: str, payload: bytes, first_only: bool = False) -> list[dict]:
        """Publishes a command, and waits for the statements that answer it: the first, or up to the final one."""
        self.publish(step, payload)
        answers = self.answers_until(payload)[-1:]
        while not proto.is_at_rest(answers[-1]) and not answers[-1].keys() & {"challenge", "refusal"} and not first_only:
            answers += self.answers_until(payload)[-1:]
        return answers

    def ask(self, step: str) -> dict:
        """The answer to an honest `unknown`."""
        command = client.build(self.login, step, "unknown")
        return self.exchange(step, command.payload)[-1]

    def fence(self, step: str) -> list[dict]:
        """All answers up to that to a question asked now: in the order of QoS 1, none to what came before is left."""
        command = client.build(self.login, step, "unknown")
        self.publish(step, command.payload)
        return self.answers_until(command.payload)

    def wait_for_rest(self, step: str):
        while not proto.is_at_rest(self.ask(step)):
            pass


def attackers(witness: Witness, **more) -> attacks.Context:
    """What the attacks of Tests/Peers need of a vehicle, of which its operator tells them all."""
    vehicle, login = witness.vehicle, witness.login
    return attacks.Context(
        vehicle=vehicle.uuid,
        majors=login.majors,
        step="left",
        encryption_key=login.encryption_key,
        rider=attacks.Rider(login.device, login.token),
        exchange=witness.exchange,
        operator=vehicle.key("operator/token"),
        beacons=vehicle.beacons,
        labelled=vehicle.labelled,
        tags=vehicle.tags,
        **more,
    )


@dataclass(frozen=True)
class Received:
    """A command as a controller reads it."""

    step: str
    claims: dict
    payload: bytes


class PlayedController:
    """In stepd's place, with its keys: answers each command with the statuses that `script` makes for it."""

    def __init__(self, vehicle: Vehicle, script: Callable[["PlayedController", Received], Iterable[bytes]]):
        self.vehicle, self.script = vehicle, script
        self.signing, self._encryption = vehicle.key("keys/signing"), vehicle.key("keys/encryption")
        self.epoch = proto.base64url(os.urandom(16))
        self.received: list[Received] = []
        self._sequence = 0
        login = client.Vehicle.read(str(vehicle.controller_file))
        topics = [vehicle.set_position(step) for step in login.majors]
        self._connection = Connection(login, *topics, on_message=self._answer)

    def __enter__(self) -> "PlayedController":
        self._connection.__enter__()
        return self

    def __exit__(self, *_):
        self._connection.__exit__()

    def _answer(self, message: mqtt.MQTTMessage):
        signed = proto.SignedText.read(proto.unseal(self._encryption, message.payload))
        command = Received(message.topic.split("/")[-2], proto.from_json(signed.payload), message.payload)
        self.received.append(command)
        for status in self.script(self, command):
            self._connection.publish(self.vehicle.status(command.step), status)

    def statement(self, command: Received, **members) -> dict:
        """An answer to a command: idle and closed, unless `members` say otherwise. A policy goes with a challenge."""
        self._sequence += 1
        if "challenge" in members:
            members = {"policy": {"proofs": ["beacon", "nfc", "qr"], "zone": "near", "static": True}} | members
        return {
            "vehicle": self.vehicle.uuid,
            "step": command.step,
            "position": "close",
            "phase": "idle",
            "seq": self._sequence,
            "epoch": self.epoch,
            "clock": 60_000 + self._sequence,
            "command": proto.digest(command.payload),
            "nonce": command.claims["nonce"],
        } | members

    def status(self, command: Received, **members) -> bytes:
        return proto.status_of(self.statement(command, **members), self.signing)

    def keep(self, step: str, status: bytes):
        """Has the broker keep a status, as the last one of a controller that is away."""
        self._connection.deliver(self.vehicle.status(step), status, retain=True)

    @property
    def positions(self) -> list[str]:
        """What the commands asked for."""
        return [command.claims["position"] for command in self.received]


def new_challenge() -> str:
    return proto.base64url(os.urandom(16))
