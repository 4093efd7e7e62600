"""A controller that does what section 6 of the protocol page says, and no more: a peer for clients, and the measure
of attacks.py. Steps are simulated. The clock is passed in.

    controller.py --vehicle vehicle.toml --keys keys.json [--forge NAME] [--ahead SECONDS]

keys.json holds private JWKs, `encryption` and `signing`, and the operator's public one, `operator`. With --forge every
status is replaced by that forgery from forgeries.py, for a rider's program to be tested against. With --ahead its clock
is wrong by that much.
"""

import os
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import stepproto as proto
from stepproto import ProtocolError

VERSION = "peer 1"
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
    """`answering` has what the answer at its end names: the commands that it was begun and turned round by."""

    target: str
    device: str
    ends_at: int
    answering: list[dict]


GUESSES, GUESSING_MS = 3, 60_000
MOTIONS, MOTIONS_MS = 10, 60_000


@dataclass
class Steps:
    """The controller's policy, and the secrets by which it tells what is new from a copy.

    `reserve_ms`: for how long only the device that opened a step may close it.
    `calls`: whether devices that ask are asked to call, and `both`, whether they must be heard besides. Where they are
    heard is in `Controller.heard`, by device. `watches`: whether it watches the road; what comes is in
    `Controller.oncoming`, by step, and `Controller.sees` says whether it sees the road.
    `beacons`: secret and period of those whose minors rotate. `minors`: those that never change. `labelled`: the UIDs
    of plain tags. `tags`: by UID, the step and the two keys of dynamic ones.
    """

    methods: tuple = ("beacon",)
    static: bool = True
    zone: str = "near"
    calls: bool = False
    watches: bool = False
    both: bool = False
    reserve_ms: int = 30_000
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
    notice: dict | None = None  # the newest, as 9.1 keeps it
    events: list[str] = field(default_factory=list)  # signed, of all runs (9.3)
    motion_ms: int = 200
    epoch: str = field(default_factory=lambda: proto.base64url(os.urandom(16)))

    def __post_init__(self):
        self.seq = self.unix_time = self.told = 0
        self.positions = {step: "close" for step in self.majors}
        self.motions: dict[str, Motion] = {}
        self.challenges: dict[str, tuple[str, str, int]] = {}
        self.used: set[str] = set()
        self.seen: set[str] = set()
        self.guesses: dict[str, list[int]] = {}
        self.opened: dict[str, tuple[str, int]] = {}  # by whom, and when it came to rest
        self.moved: dict[str, list[int]] = {}  # by device, when its motions began
        self.sees = True
        self.oncoming: dict[str, tuple[str, int]] = {}  # by step, a category and milliseconds until it is there
        self.heard: dict[str, str] = {}  # by device, the step in whose reach the vehicle's ears hear it

    def receive(self, step: str, payload: bytes, retained: bool, clock: int, unix_time: int) -> list[bytes]:
        """The statuses to publish at once, at `clock` milliseconds since the start."""
        self.unix_time = unix_time
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
            self._tell("refused", step=step, position=claims.get("position"), jti=token["jti"], code=refusal.code)
            answering["refusal"] = {"code": refusal.code, "retry": proto.REFUSALS[refusal.code]}
            if refusal.code == "approaching":
                category, arrival = self.oncoming[step]
                answering["refusal"]["ext"] = {"oncoming": {"category": category, "arrival": arrival}}
            return [self._status(step, clock, answering)]
        if claims["position"] == "unknown":
            given = {"challenge": self._challenge(device, step, clock), "policy": self._policy()}
            extensions = self._extensions(device, step)
            if claims.get("ext", {}).get("about"):
                extensions["about"] = {"version": VERSION, "time": unix_time * 1000}
            given |= {"ext": extensions} if extensions else {}
            return [self._status(step, clock, answering | given)]
        if claims["position"] == "stop":
            self._void(step)
            if step in self.motions:
                self._tell("stopped", step=step, jti=token["jti"])
            return [*self._end(step, "unknown", clock), self._status(step, clock, answering)]
        if step in self.motions or self.positions[step] != claims["position"]:
            turned = self.motions.pop(step, Motion("", "", 0, []))
            self.motions[step] = Motion(
                claims["position"], device, clock + self.motion_ms, [*turned.answering, answering]
            )
            self.moved.setdefault(device, []).append(clock)
            proof = claims["proof"]
            seen = {"method": proof["method"]} | ({"zone": proof["zone"]} if "zone" in proof else {})
            self._tell("began", step=step, position=claims["position"], jti=token["jti"], **seen)
        return [self._status(step, clock, answering)]

    def finish_motions(self, clock: int) -> list[tuple[str, bytes]]:
        """The steps whose motion has ended by now, with the last answers to the commands that asked for it."""
        ended = [(step, motion) for step, motion in self.motions.items() if motion.ends_at <= clock]
        return [(step, status) for step, motion in ended for status in self._end(step, motion.target, clock)]

    def _end(self, step: str, position: str, clock: int) -> list[bytes]:
        if step not in self.motions:
            return []
        motion = self.motions.pop(step)
        self.positions[step] = position
        self._tell("ended", step=step, position=position)
        if position == "open":
            self.opened[step] = motion.device, clock
        return [self._status(step, clock, answering) for answering in motion.answering]

    # --- The operator (9.1, 9.3) ---

    @property
    def operators(self) -> list[Ed25519PublicKey]:
        keys = self.notice["keys"] if self.notice else [proto.jwk(self.operator)]
        return [proto.ed25519_key(proto.from_base64url(key["x"])) for key in keys]

    def obey(self, payload: bytes, unix_time: int):
        self.unix_time = unix_time
        newest = self.notice and self.notice["seq"]
        try:
            notice = proto.read_notice(payload, self.operators, self.vehicle, newest)
        except ProtocolError:
            return
        if notice:
            self.notice, self.told = notice, 0
            self._tell("notice", notice=notice["seq"])

    def due(self) -> list[bytes]:
        """The events to publish now, sealed to the operator: at most a window after the acknowledged one."""
        if not self.notice or "event_key" not in self.notice:
            return []
        key = proto.x25519_key(proto.from_base64url(self.notice["event_key"]))
        hashes = [proto.digest(event.encode()) for event in self.events]
        acked = self.notice.get("acked", {}).get("hash")
        begin = hashes.index(acked) + 1 if acked in hashes else 0
        events = self.events[max(begin, self.told) : begin + proto.EVENT_WINDOW]
        self.told = max(begin, self.told) + len(events)
        return [proto.seal_event(event, key) for event in events]

    def _tell(self, kind: str, **members):
        claims = {"vehicle": self.vehicle, "seq": len(self.events) + 1, "prev": proto.previous_of(self.events)}
        claims |= {"time": self.unix_time, "kind": kind}
        claims |= {name: value for name, value in members.items() if value is not None}
        self.events.append(proto.sign_event(claims, self.signing))

    def _policy(self) -> dict:
        policy = {"proofs": list(self.steps.methods), "zone": self.steps.zone, "static": self.steps.static}
        return policy | ({"ext": {"both": True}} if self.steps.both else {})

    def _extensions(self, device: str, step: str) -> dict:
        """5.1 and 5.2. What it says of itself (5.3) is for whoever asks."""
        extensions = {}
        if self.steps.calls:
            heard = {"heard": self.heard[device]} if device in self.heard else {}
            extensions["call"] = {"slot": 300, "slots": 32} | heard
        if self.steps.watches:
            extensions["watch"] = "blind" if not self.sees else "approaching" if step in self.oncoming else "clear"
        return extensions

    def _challenge(self, device: str, step: str, clock: int) -> str:
        """A new one. None makes room for it but those that are too old."""
        lifetime = proto.CHALLENGE_LIFETIME_MS
        self.challenges = {one: given for one, given in self.challenges.items() if clock - given[2] < lifetime}
        challenge = proto.base64url(os.urandom(16))
        self.challenges[challenge] = (device, step, clock)
        return challenge

    def _void(self, step: str, device: str | None = None):
        """Makes the challenges worthless that were given out for a step, all or those of a device."""
        for challenge, (its_device, its_step, _) in list(self.challenges.items()):
            if its_step == step and device in (None, its_device):
                del self.challenges[challenge]

    def state(self, step: str, clock: int) -> bytes:
        return self._status(step, clock, {})

    def _authenticated(self, payload: bytes) -> tuple[dict, dict]:
        """6.1: whatever raises here gets no answer."""
        signed = proto.SignedText.read(proto.unseal(self.encryption, payload))
        claims = proto.from_json(signed.payload)
        if not isinstance(claims, dict) or not isinstance(claims.get("token"), str):
            raise ProtocolError("no token")
        read = proto.SignedText.read(claims["token"])
        signer = next((key for key in self.operators if read.header == proto.token_header(key)), None)
        if signer is None:
            raise ProtocolError("by no key that counts")
        token = read.verified(signer, proto.token_header(signer))
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
        may_move = self._redeem(step, clock, claims, device)
        _refuse_unless(is_new, "replayed")
        _refuse_unless(not retained, "retained")
        _refuse_unless(token["aud"] == claims["vehicle"] == self.vehicle, "wrong_vehicle")
        _refuse_unless(claims["step"] == step and step in token["steps"], "wrong_step")
        _refuse_unless(unix_time >= token["nbf"] - LEEWAY_S, "token_not_yet_valid")
        _refuse_unless(unix_time < token["exp"], "token_expired")
        _refuse_unless(not self.notice or not proto.revokes(self.notice, token), "token_revoked")
        if claims["position"] == "stop":
            _refuse_unless(claims["epoch"] == self.epoch, "expired")
        elif claims["position"] != "unknown":
            _refuse_unless(may_move, "expired")
            self._check_proof(step, clock, unix_time, claims["proof"], device)
            self._check_state(step, clock, claims["position"], device)

    def _redeem(self, step, clock, claims, device) -> bool:
        """Uses up the challenge of a command, and the device's older ones for its step. If it is good, all of them."""
        challenge = claims.get("challenge")
        its_device, its_step, born = self.challenges.get(challenge, (None, None, 0))
        if its_device != device or claims["epoch"] != self.epoch:
            return False
        given = list(self.challenges)
        for older in given[: given.index(challenge)]:
            if self.challenges[older][:2] == (its_device, its_step):
                del self.challenges[older]
        del self.challenges[challenge]
        self.used.add(challenge)
        is_fresh = its_step == step and clock - born < proto.CHALLENGE_LIFETIME_MS
        if not is_fresh or not clock < claims["deadline"] <= clock + proto.MAX_DEADLINE_MS:
            return False
        self._void(step, device)
        return True

    def _check_state(self, step, clock, target, device):
        motion = self.motions.get(step)
        _refuse_unless(motion is None or (motion.device == device and motion.target != target), "busy")
        if motion is None and self.positions[step] == target:
            return
        opener, since = self.opened.get(step, (device, clock))
        is_reserved = motion is None and target == "close" and clock - since < self.steps.reserve_ms
        _refuse_unless(not is_reserved or opener == device, "reserved")
        lately = [began for began in self.moved.get(device, []) if clock - began < MOTIONS_MS]
        _refuse_unless(len(lately) < MOTIONS, "too_often")
        if target == "open" and self.steps.watches:
            _refuse_unless(self.sees, "blind")
            _refuse_unless(step not in self.oncoming, "approaching")

    def _check_proof(self, step, clock, unix_time, proof, device):
        method, content = proof["method"], proof.get("content", "")
        is_dynamic = method == "nfc" and proto.is_dynamic(content)
        rotates = step in self.steps.beacons
        is_alone = method == "heard" and not self.steps.both
        _refuse_unless(method in self.steps.methods and (method != "heard" or is_alone), "proof_not_accepted")
        is_new = {"beacon": rotates, "heard": True}.get(method, is_dynamic)
        _refuse_unless(self.steps.static or is_new, "proof_not_accepted")
        _refuse_unless(clock - PROOF_LIFETIME_MS <= proof["time"] <= clock, "stale_proof")
        if method == "beacon":
            self._check_beacons(step, clock, unix_time, proof, device)
        elif is_dynamic:
            counter = self._check_dynamic_tag(step, proof["uid"], content)
        elif method != "heard":
            known = self.steps.labelled.get(step)
            _refuse_unless(proto.step_of_label(content, self.vehicle, self.majors) == step, "wrong_step")
            _refuse_unless(method == "qr" or not known or proof["uid"] in known, "wrong_step")
        if is_alone or self.steps.both:
            _refuse_unless(self.heard.get(device) == step, "not_heard")
        if is_dynamic:
            self.counters[proof["uid"]] = counter

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
        return counter

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
    parser.add_argument("--ahead", type=int, default=0)
    arguments = parser.parse_args()
    vehicle = client.Vehicle.read(arguments.vehicle)
    with open(arguments.keys) as file:
        keys = json.load(file)
    operator = proto.ed25519_key(proto.from_base64url(keys["operator"]["x"]))
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
        connection.publish(availability, b"online", qos=1, retain=True)
        connection.subscribe(f"{vehicle.topic}/operator", qos=1)

    def on_message(connection, _, message):
        if message.topic == f"{vehicle.topic}/operator":
            return controller.obey(message.payload, int(time.time()))
        step = message.topic.split("/")[-2]
        unix_time = int(time.time()) + arguments.ahead
        was_moving = step in controller.motions
        for status in controller.receive(step, message.payload, message.retain, clock(), unix_time):
            publish(step, status)
        if was_moving != (step in controller.motions):
            publish(step, controller.state(step, clock()), retain=True)

    connection = client.connection(vehicle)
    availability = f"{vehicle.topic}/availability"
    connection.will_set(availability, b"offline", qos=1, retain=True)
    connection.on_connect, connection.on_message = on_connect, on_message
    connection.connect(vehicle.host, vehicle.port)
    while connection.loop(timeout=0.02) == mqtt.MQTT_ERR_SUCCESS:
        for step, answer in controller.finish_motions(clock()):
            publish(step, answer)
            publish(step, controller.state(step, clock()), retain=True)
        for event in controller.due():
            connection.publish(f"{vehicle.topic}/events", event, qos=1)


if __name__ == "__main__":
    main()
