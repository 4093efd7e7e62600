#!/usr/bin/env python3
"""A rider's program for the stepctl protocol: section 7 of the page, over MQTT with mutual TLS.

    client.py --vehicle riders/NAME/vehicle.toml open|close|unknown|stop --step left [--attack NAME --operator KEY.jwk]

Prints one JSON object. Exit status: 0 confirmed by a statement, 5 refused, 6 no final answer in time, so that the
step may have moved. It has no radio and no reader: it claims to have heard the step's beacon just now (--minor), or,
with --content, to have read that from a code, or from a tag of that --uid.

With --attack it publishes that attack from attacks.py in place of an honest command and prints the refusal's code,
"obeyed", or null for no answer, with exit status 0; tokens are forged with the operator's key.
"""

import argparse
import json
import queue
import socket
import ssl
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as mqtt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

import stepproto as proto

REFUSED, UNCONFIRMED = 5, 6
FIRST_ANSWER_S, LAST_ANSWER_S, STOP_S = 7, 62, 5  # (7)


class Refused(Exception):
    pass


class Unconfirmed(Exception):
    pass


@dataclass(frozen=True)
class Vehicle:
    """A vehicle file, the rider's keys in it read."""

    uuid: str
    topic: str
    majors: dict[str, int]
    host: str
    port: int
    ca: Path
    cert: Path
    key: Path
    encryption_key: X25519PublicKey
    signing_key: Ed25519PublicKey
    device: Ed25519PrivateKey | None
    token: str | None

    @classmethod
    def read(cls, path: str) -> "Vehicle":
        with open(path, "rb") as file:
            table = tomllib.load(file)
        folder, broker, controller = Path(path).parent, table["broker"], table["controller"]
        rider = table.get("rider")
        return cls(
            uuid=table["uuid"],
            topic=table["topic"],
            majors={step["id"]: step["major"] for step in table["steps"]},
            host=broker["host"],
            port=broker["port"],
            ca=folder / broker["ca"],
            cert=folder / broker["cert"],
            key=folder / broker["key"],
            encryption_key=proto.x25519_key(proto.from_base64url(controller["encryption_key"])),
            signing_key=proto.ed25519_key(proto.from_base64url(controller["signing_key"])),
            device=rider and proto.private_key(json.loads((folder / rider["device_key"]).read_bytes())),
            token=rider and (folder / rider["token"]).read_text().strip(),
        )


def connection(vehicle: Vehicle, session: str = "") -> mqtt.Client:
    """With the name of a session, one that the broker is to keep."""
    context = ssl.create_default_context(cafile=vehicle.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(vehicle.cert, vehicle.key)
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=session, clean_session=not session)
    client.tls_set_context(context)
    client.on_socket_open = lambda *arguments: arguments[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


class Session:
    """A connection that is subscribed to one step's status."""

    def __init__(self, vehicle: Vehicle, step: str, timeout: float):
        self.vehicle, self.step = vehicle, step
        self.deadline = time.monotonic() + timeout
        self._statuses: queue.Queue[bytes] = queue.Queue()
        self._subscribed: queue.Queue[bool] = queue.Queue()
        self._client = connection(vehicle)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = lambda *arguments: self._subscribed.put(not arguments[3][0].is_failure)
        self._client.on_message = lambda client, _, message: self._statuses.put(message.payload)

    def __enter__(self) -> "Session":
        self._client.connect(self.vehicle.host, self.vehicle.port)
        self._client.loop_start()
        try:
            if not self._subscribed.get(timeout=self._left()):
                raise ConnectionRefusedError("the broker refuses the subscription to the status")
        except queue.Empty:
            raise ConnectionError("the broker does not answer") from None
        return self

    def __exit__(self, *_):
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, payload: bytes, retain: bool = False):
        # At QoS 1 a packet that the broker does not like would be sent again after each new connection, for ever.
        qos = 1 if len(payload) <= proto.MAX_COMMAND_BYTES else 0
        return self._client.publish(f"{self.vehicle.topic}/{self.step}/set_position", payload, qos=qos, retain=retain)

    def next_status(self) -> bytes:
        try:
            return self._statuses.get(timeout=self._left())
        except queue.Empty:
            raise Unconfirmed from None

    def answers(self, command: proto.Command):
        """The statements that answer `command`, each once it was checked, until there is none in time."""
        while True:
            try:
                statement = proto.read_answer(self.next_status(), self.vehicle.signing_key, command)
            except proto.ProtocolError:
                continue  # Anybody whom the broker lets may publish anything.
            if statement is None:
                continue
            refusal = statement.get("refusal")
            if refusal and refusal["code"] == "replayed":
                continue  # QoS 1 has delivered it twice; the first copy has an answer of its own.
            if refusal:
                raise Refused(refusal, statement)
            yield statement

    def _left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def _on_connect(self, client, _, flags, reason, properties):
        if reason.is_failure:
            self._subscribed.put(False)
        else:
            client.subscribe(f"{self.vehicle.topic}/{self.step}/status", qos=1)


def ask(session: Session) -> tuple[dict, float]:
    """The answer to `unknown`, and when it came."""
    command = build(session.vehicle, session.step, "unknown")
    session.publish(command.payload)
    return next(session.answers(command)), time.monotonic()


def build(vehicle: Vehicle, step: str, position: str, moving: dict | None = None) -> proto.Command:
    return proto.build_command(
        vehicle.device, vehicle.encryption_key, vehicle.uuid, step, position, vehicle.token, moving
    )


def move(session: Session, position: str, minor: int = 0, content: str | None = None, uid: str | None = None) -> dict:
    heard = time.monotonic()
    statement, arrived = ask(session)
    clock_then = max(0, statement["clock"] - int((arrived - heard) * 1000))
    if content is None:
        proof = proto.beacon_proof(session.vehicle.majors[session.step], clock_then, minor=minor)
    elif uid is None:
        proof = proto.code_proof(content, clock_then)
    else:
        proof = proto.tag_proof(uid, content, clock_then)
    command = build(session.vehicle, session.step, position, proto.permission(statement, proof))
    session.publish(command.payload)
    session.deadline, is_first = arrived + FIRST_ANSWER_S, True
    for answer in session.answers(command):
        # `moving` and phases that this program does not know are not final (section 7).
        if not proto.is_at_rest(answer):
            session.deadline = time.monotonic() + LAST_ANSWER_S if is_first else session.deadline
            is_first = False
        elif answer["phase"] == "idle" and answer["position"] != position:
            raise Unconfirmed  # Somebody has stopped it or turned it round.
        else:
            return answer
    raise Unconfirmed


def stop(session: Session) -> dict:
    """Stops by the epoch of the first statement that comes, which the broker may have kept since an older run: then
    the refusal tells the present epoch. A stop may be repeated without asking, for it moves nothing."""
    try:
        known = proto.read_status(session.next_status(), session.vehicle.signing_key)
    except proto.ProtocolError:
        known, _ = ask(session)
    while True:
        session.deadline = time.monotonic() + STOP_S
        command = build(session.vehicle, session.step, "stop", proto.stopping(known))
        session.publish(command.payload)
        try:
            return next(answer for answer in session.answers(command) if proto.is_at_rest(answer))
        except Refused as refused:
            present = refused.args[1]
            if refused.args[0]["code"] != "expired" or present["epoch"] == known["epoch"]:
                raise
            known = present


def attack(session: Session, name: str, operator: str | None) -> str | None:
    import attacks

    operator_key = operator and proto.private_key(json.loads(Path(operator).read_bytes()))
    try:
        answer = attacks.over(session, operator_key, attacks.named(name))
    except attacks.Unavailable as missing:
        sys.exit(f"this attack needs {missing}")
    return answer and answer.get("refusal", {}).get("code", "obeyed")


def main() -> int:
    parser = argparse.ArgumentParser(description="Move an entry step, or ask where it is.")
    parser.add_argument("position", choices=["open", "close", "unknown", "stop"])
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--step", required=True)
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("--minor", type=int, default=0)
    parser.add_argument("--content")
    parser.add_argument("--uid")
    parser.add_argument("--attack")
    parser.add_argument("--operator")
    arguments = parser.parse_args()
    vehicle = Vehicle.read(arguments.vehicle)
    try:
        with Session(vehicle, arguments.step, arguments.timeout) as session:
            if arguments.attack:
                outcome = attack(session, arguments.attack, arguments.operator)
                print(json.dumps({"attack": arguments.attack, "outcome": outcome}))
                return 0
            if arguments.position == "unknown":
                statement, _ = ask(session)
            elif arguments.position == "stop":
                statement = stop(session)
            else:
                statement = move(session, arguments.position, arguments.minor, arguments.content, arguments.uid)
    except Refused as refused:
        print(json.dumps({"refusal": refused.args[0]["code"], "retry": refused.args[0]["retry"]}))
        return REFUSED
    except Unconfirmed:
        print(json.dumps({"unconfirmed": "the step may have moved"}))
        return UNCONFIRMED
    print(json.dumps({name: statement[name] for name in ("position", "phase", "fault") if name in statement}))
    return 1 if statement["phase"] == "fault" and arguments.position in ("open", "close") else 0


if __name__ == "__main__":
    sys.exit(main())
