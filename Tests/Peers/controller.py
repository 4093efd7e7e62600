"""A controller that does what section 6 of the protocol page says, and no more: a peer for clients, and the measure
of attacks.py. Steps are simulated. The clock is passed in.

    controller.py --vehicle vehicle.toml --keys keys.json [--forge NAME]

keys.json holds private JWKs, `encryption` and `signing`, and the operator's public one, `operator`. With --forge every
status is replaced by that forgery from forgeries.py, for a rider's program to be tested against.
"""

import os
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import stepproto as proto
from stepproto import ProtocolError

PROOF_LIFETIME_MS = 10_000
LEEWAY_S = 30


class Refusal(Exception):
    def __init__(self, code: str):
        super().__init__(code)
        self.code = code


def _refuse_unless(right: bool, code: str):
    if not right:
        raise Refusal(code)


@dataclass
class Motion:
    target: str
    ends_at: int
    answering: dict


GUESSES, GUESSING_MS = 3, 60_000


@dataclass
class Steps:
    """The controller's policy, and the secrets by which it tells what is new from a copy.

    `beacons`: secret and period of those whose minors rotate. `minors`: those that never change. `labelled`: the UIDs
    of plain tags. `tags`: by UID, the step and the two keys of dynamic ones.
    """

    methods: tuple = ("beacon",)
    static: bool = True
    zone: str = "near"
    beacons: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    minors: dict[str, int] = field(default_factory=dict)
    labelled: dict[str, list[str]] = field(default_factory=dict)
    tags: dict[str, tuple[str, bytes, bytes]] = field(default_factory=dict)


@dataclass
class Controller:
    vehicle: str
    majors: dict[str, int]
    encryption: X25519PrivateKey
    signing: Ed25519PrivateKey
    operator: Ed25519PublicKey
    steps: Steps = field(default_factory=Steps)
    counters: dict[str, int] = field(default_factory=dict)  # what outlives a run
    motion_ms: int = 200
    epoch: str = field(default_factory=lambda: proto.base64url(os.urandom(16)))

    def __post_init__(self):
        self.seq = 0
        self.positions = {step: "close" for step in self.majors}
        self.motions: dict[str, Motion] = {}
        self.challenges: dict[str, tuple[str, str, int]] = {}
        self.used: set[str] = set()
        self.seen: set[str] = set()
        self.guesses: dict[str, list[int]] = {}

    def receive(self, step: str, payload: bytes, retained: bool, clock: int, unix_time: int) -> list[bytes]:
        """The statuses to publish at once, at `clock` milliseconds since the start."""
        try:
            claims, token = self._authenticated(payload)
        except ProtocolError:
            return []
        nonce = proto.readable_nonce(claims)
        answering = {"command": proto.digest(payload)} | ({"nonce": nonce} if nonce else {})
        try:
            device = token["cnf"]["jwk"]["x"]
            self._check(step, payload, retained, clock, unix_time, claims, token, device)
        except Refusal as refusal:
            answering["refusal"] = {"code": refusal.code, "retry": proto.REFUSALS[refusal.code]}
            return [self._status(step, clock, answering)]
        if claims["position"] == "unknown":
            challenge = proto.base64url(os.urandom(16))
            self.challenges[challenge] = (device, step, clock)
            policy = {"proofs": list(self.steps.methods), "zone": self.steps.zone, "static": self.steps.static}
            return [self._status(step, clock, answering | {"challenge": challenge, "policy": policy})]
        if self.positions[step] != claims["position"]:
            self.motions[step] = Motion(claims["position"], clock + self.motion_ms, answering)
        return [self._status(step, clock, answering)]

    def finish_motions(self, clock: int) -> list[tuple[str, bytes]]:
        """The steps whose motion has ended by now, with the second answer."""
        ended = [step for step, motion in self.motions.items() if motion.ends_at <= clock]
        answers = []
        for step in ended:
            motion = self.motions.pop(step)
            self.positions[step] = motion.target
            answers.append((step, self._status(step, clock, motion.answering)))
        return answers

    def state(self, step: str, clock: int) -> bytes:
        return self._status(step, clock, {})

    def _authenticated(self, payload: bytes) -> tuple[dict, dict]:
        """6.1: whatever raises here gets no answer."""
        signed = proto.SignedText.read(proto.unseal(self.encryption, payload))
        claims = proto.from_json(signed.payload)
        if not isinstance(claims, dict) or not isinstance(claims.get("token"), str):
            raise ProtocolError("no token")
        token = proto.SignedText.read(claims["token"]).verified(self.operator, proto.token_header(self.operator))
        proto.check_token_claims(token)
        return signed.verified(proto.device_of(token), proto.command_header()), token

    def _check(self, step, payload, retained, clock, unix_time, claims, token, device):
        """6.2, in its order."""
        try:
            proto.check_command_claims(claims)
        except ProtocolError as error:
            raise Refusal("malformed") from error
        digest, challenge = proto.digest(payload), claims.get("challenge")
        is_new = digest not in self.seen and challenge not in self.used
        self.seen.add(digest)
        its_device, its_step, born = self.challenges.get(challenge, (None, None, 0))
        if its_device == device:
            self.used.add(challenge)
        _refuse_unless(not retained, "retained")
        _refuse_unless(token["aud"] == claims["vehicle"] == self.vehicle, "wrong_vehicle")
        _refuse_unless(claims["step"] == step and step in token["steps"], "wrong_step")
        _refuse_unless(unix_time >= token["nbf"] - LEEWAY_S, "token_not_yet_valid")
        _refuse_unless(unix_time < token["exp"], "token_expired")
        _refuse_unless(is_new, "replayed")
        if claims["position"] != "unknown":
            self._check_permission(step, clock, claims, device)
            self._check_proof(step, clock, unix_time, claims["proof"], device)
            _refuse_unless(step not in self.motions, "busy")

    def _check_permission(self, step, clock, claims, device):
        _refuse_unless(claims["epoch"] == self.epoch, "expired")
        its_device, its_step, born = self.challenges.get(claims["challenge"], (None, None, 0))
        _refuse_unless(its_device == device, "expired")
        _refuse_unless(its_step == step and clock - born < proto.CHALLENGE_LIFETIME_MS, "expired")
        _refuse_unless(clock < claims["deadline"] <= clock + proto.MAX_DEADLINE_MS, "expired")

    def _check_proof(self, step, clock, unix_time, proof, device):
        method, content = proof["method"], proof.get("content", "")
        is_dynamic = method == "nfc" and proto.is_dynamic(content)
        rotates = step in self.steps.beacons
        _refuse_unless(method in self.steps.methods, "proof_not_accepted")
        is_new = rotates if method == "beacon" else is_dynamic
        _refuse_unless(self.steps.static or is_new, "proof_not_accepted")
        _refuse_unless(clock - PROOF_LIFETIME_MS <= proof["time"] <= clock, "stale_proof")
        if method == "beacon":
            self._check_beacons(step, clock, unix_time, proof, device)
        elif is_dynamic:
            self._check_dynamic_tag(step, proof["uid"], content)
        else:
            known = self.steps.labelled.get(step)
            _refuse_unless(proto.step_of_label(content, self.vehicle, self.majors) == step, "wrong_step")
            _refuse_unless(method == "qr" or not known or proof["uid"] in known, "wrong_step")

    def _check_beacons(self, step, clock, unix_time, proof, device):
        rotating = self.steps.beacons.get(step)
        wrong = self.guesses.get(device, [])
        if wrong and clock - wrong[0] >= GUESSING_MS:
            wrong = self.guesses[device] = []
        _refuse_unless(not rotating or len(wrong) < GUESSES, "stale_proof")
        heard = {beacon["major"]: beacon["rssi"] - beacon["power"] for beacon in proof["beacons"]}
        mine = heard.pop(self.majors[step], None)
        _refuse_unless(mine is not None and all(mine >= level for level in heard.values()), "wrong_step")
        minor = next(beacon["minor"] for beacon in proof["beacons"] if beacon["major"] == self.majors[step])
        if rotating:
            if minor not in proto.accepted_minors(rotating[0], step, rotating[1], unix_time):
                self.guesses.setdefault(device, []).append(clock)
                raise Refusal("stale_proof")
        else:
            _refuse_unless(minor == self.steps.minors.get(step, minor), "wrong_step")
        _refuse_unless(proof["located"] and self.steps.zone in ("near", proof["zone"]), "not_near")

    def _check_dynamic_tag(self, step, uid, content):
        its_step, *keys = self.steps.tags.get(uid, (None, bytes(16), bytes(16)))
        try:
            read = proto.read_tag_uri(content, *keys)
        except ProtocolError as error:
            raise Refusal("wrong_step") from error
        *names, counter = read
        _refuse_unless(its_step == step and names == [self.vehicle, step, uid], "wrong_step")
        _refuse_unless(counter > self.counters.get(uid, -1), "stale_proof")
        self.counters[uid] = counter

    def _status(self, step, clock, answering) -> bytes:
        self.seq += 1
        state = {
            "vehicle": self.vehicle,
            "step": step,
            "position": self.positions[step],
            "phase": "moving" if step in self.motions else "idle",
            "seq": self.seq,
            "epoch": self.epoch,
            "clock": clock,
        }
        return proto.status_of(state | answering, self.signing)


def main():
    import argparse
    import json
    import time

    import paho.mqtt.client as mqtt

    import client
    import forgeries

    parser = argparse.ArgumentParser()
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--keys", required=True)
    parser.add_argument("--forge")
    arguments = parser.parse_args()
    vehicle = client.Vehicle.read(arguments.vehicle)
    with open(arguments.keys) as file:
        keys = json.load(file)
    operator = Ed25519PublicKey.from_public_bytes(proto.from_base64url(keys["operator"]["x"]))
    encryption, signing = (proto.private_key(keys[name]) for name in ("encryption", "signing"))
    controller = Controller(vehicle.uuid, vehicle.majors, encryption, signing, operator)
    forgery = arguments.forge and forgeries.named(arguments.forge)
    started, published = time.monotonic(), []

    def clock():
        return int((time.monotonic() - started) * 1000)

    def publish(step, status, retain=False):
        published.append(status)
        if forgery:
            try:
                status = forgery.build(forgeries.Genuine(status, signing, published[0]))
            except forgeries.Unavailable:
                pass
        connection.publish(f"{vehicle.topic}/{step}/status", status, qos=1, retain=retain)

    def on_connect(connection, _, flags, reason, properties):
        for step in vehicle.majors:
            connection.subscribe(f"{vehicle.topic}/{step}/set_position", qos=1)
            publish(step, controller.state(step, clock()), retain=True)

    def on_message(connection, _, message):
        step = message.topic.split("/")[-2]
        for status in controller.receive(step, message.payload, message.retain, clock(), int(time.time())):
            publish(step, status)

    connection = client.connection(vehicle)
    connection.on_connect, connection.on_message = on_connect, on_message
    connection.connect(vehicle.host, vehicle.port)
    while connection.loop(timeout=0.02) == mqtt.MQTT_ERR_SUCCESS:
        for step, answer in controller.finish_motions(clock()):
            publish(step, answer)
            publish(step, controller.state(step, clock()), retain=True)


if __name__ == "__main__":
    main()
