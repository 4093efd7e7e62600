#!/usr/bin/env python3
"""Makes the worked example of the protocol page, section 12, from fixed keys: the same bytes each time.

make_example.py            prints the section's Markdown
make_example.py --write    puts it into PROTOCOL.md, and the same values into example.json
"""

import datetime
import hashlib
import json
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

import stepproto as proto

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "Sources/Core/StepProtocol/PROTOCOL.md"
BEGIN = "<!-- example begins: made by Tests/Peers/make_example.py -->"
END = "<!-- example ends -->"

VEHICLE = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
TOPIC = "arena2036/rolling_chassis"
STEP = "left"
NOT_BEFORE = 1_767_254_400  # 2026-01-01T08:00:00Z


def octets(label: str, count: int) -> bytes:
    """Stands for randomness: nothing up the sleeve, and nothing secret."""
    return hashlib.sha256(f"stepctl example: {label}".encode()).digest()[:count]


def text(label: str) -> str:
    return proto.base64url(octets(label, 16))


OPERATOR = Ed25519PrivateKey.from_private_bytes(octets("operator", 32))
DEVICE = Ed25519PrivateKey.from_private_bytes(octets("device", 32))
SIGNING = Ed25519PrivateKey.from_private_bytes(octets("controller signing", 32))
ENCRYPTION = X25519PrivateKey.from_private_bytes(octets("controller encryption", 32))
EVENTS = X25519PrivateKey.from_private_bytes(octets("operator events", 32))
KEYS = {
    "operator": OPERATOR,
    "operator-events": EVENTS,
    "device": DEVICE,
    "controller-signing": SIGNING,
    "controller-encryption": ENCRYPTION,
}


def token() -> tuple[dict, str]:
    claims = {
        "iss": "arena2036",
        "sub": "anna",
        "aud": VEHICLE,
        "steps": ["left", "right"],
        "nbf": NOT_BEFORE,
        "exp": NOT_BEFORE + 8 * 3600,
        "jti": "anna-2026-01-01",
        "cnf": {"jwk": proto.jwk(DEVICE.public_key())},
    }
    return claims, proto.sign_token(claims, OPERATOR)


def command(name: str, position: str, jwt: str, moving: dict | None = None) -> tuple[proto.Command, dict]:
    """A command, and what stands between its claims and its payload."""
    ephemeral = X25519PrivateKey.from_private_bytes(octets(f"{name} ephemeral", 32))
    built = proto.build_command(
        DEVICE,
        ENCRYPTION.public_key(),
        VEHICLE,
        STEP,
        position,
        jwt,
        moving,
        nonce=octets(f"{name} nonce", 16),
        ephemeral=ephemeral,
    )
    signed = proto.unseal(ENCRYPTION, built.payload)
    header, enc, _, ciphertext, _ = built.payload.decode().split(".")
    return built, {
        f"{name}-claims": built.claims,
        f"{name}-signing-input": signed.rpartition(".")[0],
        f"{name}-signed": signed,
        f"{name}-ephemeral": proto.jwk(ephemeral),
        f"{name}-envelope-header": proto.from_json(proto.from_base64url(header)),
        f"{name}-enc": enc,
        f"{name}-ciphertext": ciphertext,
        f"{name}-command": built.payload.decode(),
        f"{name}-digest": built.digest,
    }


def status(name: str, seq: int, clock: int, position: str, phase: str, answered: proto.Command, more: dict) -> dict:
    claims = {
        "vehicle": VEHICLE,
        "step": STEP,
        "position": position,
        "phase": phase,
        "seq": seq,
        "epoch": text("epoch"),
        "clock": clock,
        "command": answered.digest,
        "nonce": answered.claims["nonce"],
    } | more
    return {f"{name}-claims": claims, f"{name}-status": proto.status_of(claims, SIGNING).decode()}


def beacon() -> dict:
    secret = octets("beacon left", 32)
    times = (0, 7, 8, NOT_BEFORE, NOT_BEFORE + 8, NOT_BEFORE + 16)
    minors = [{"time": time, "minor": proto.rotating_minor(secret, STEP, 8, time)} for time in times]
    return {
        "beacon-secret": {"kty": "oct", "k": proto.base64url(secret)},
        "beacon-minors": {"step": STEP, "period": 8, "minors": minors},
    }


def call(asked: proto.Command) -> dict:
    """Where the vehicle wants to hear the device, the answer to the first question and its frames would be these."""
    key, challenge = proto.call_key(ENCRYPTION, asked.payload), octets("challenge", 16)
    policy = {"proofs": ["beacon", "heard"], "zone": "near", "static": True, "ext": {"both": True}}
    more = {"challenge": text("challenge"), "policy": policy, "ext": {"call": {"slot": 300, "slots": 32, "heard": STEP}}}
    frames = [{"slot": slot, "frame": str(proto.call_frame(key, challenge, slot))} for slot in (0, 1, 31)]
    return status("call", 8, 62_250, "close", "idle", asked, more) | {
        "call-key": key.hex(),
        "call-frames": frames,
        "call-data": proto.call_data(proto.call_frame(key, challenge, 0)).hex(),
    }


def road(asked: proto.Command, moved: proto.Command, policy: dict) -> dict:
    """Where the vehicle watches the road and a bicycle comes, the two answers would be these."""
    told = {"challenge": text("challenge"), "policy": policy, "ext": {"watch": "approaching"}}
    refusal = {"code": "approaching", "retry": True, "ext": {"oncoming": {"category": "bicycle", "arrival": 1900}}}
    return status("watch", 7, 61_250, "close", "idle", asked, told) | status(
        "approaching", 8, 61_300, "close", "idle", moved, {"refusal": refusal}
    )


def about(jwt: str, policy: dict) -> dict:
    """A question that asks what the controller says of itself, and the answer."""
    asked, parts = command("about", "unknown", jwt, {"ext": {"about": True}})
    told = {"about": {"version": "0.1.0", "time": (NOT_BEFORE + 60) * 1000 + 250}}
    more = {"challenge": text("about challenge"), "policy": policy, "ext": told}
    return {name: parts[name] for name in ("about-claims", "about-command", "about-digest")} | {
        name.replace("about", "about-answer"): value
        for name, value in status("about", 12, 64_500, "open", "idle", asked, more).items()
    }


def tag() -> dict:
    uid, meta_read, file_read = "04DE5F1EACC040", octets("tag meta read", 16), octets("tag file read", 16)
    uri = proto.tag_uri(VEHICLE, STEP, uid, 61, meta_read, file_read, octets("tag padding", 5))
    keys = {
        "uid": uid,
        "step": STEP,
        "meta_read_key": meta_read.hex().upper(),
        "file_read_key": file_read.hex().upper(),
    }
    return {"tag-keys": keys, "tag-uri": uri, "tag-proof": proto.tag_proof(uid, uri, 61_100)}


def authority() -> bytes:
    """A certificate whose bytes are the same each time, which Ed25519 allows."""
    key = Ed25519PrivateKey.from_private_bytes(octets("authority", 32))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Rolling Chassis")])
    day = datetime.datetime.fromtimestamp(NOT_BEFORE, datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day + datetime.timedelta(days=3650))
    built = builder.add_extension(x509.BasicConstraints(True, 0), True).sign(key, None)
    return built.public_bytes(Encoding.DER)


def vehicle_code() -> dict:
    claims = {
        "uuid": VEHICLE,
        "name": "Rolling Chassis",
        "topic": TOPIC,
        "host": "car.example",
        "port": 8883,
        "ca": proto.base64url(authority()),
        "encryption_key": proto.jwk(ENCRYPTION)["x"],
        "signing_key": proto.jwk(SIGNING)["x"],
        "steps": [
            {"id": "left", "side": "left", "major": 1, "measured_power": -59},
            {"id": "right", "side": "right", "major": 2, "minor": 7},
        ],
        "iat": NOT_BEFORE,
    }
    return {"vehicle-code-claims": claims, "vehicle-code": proto.sign_code(claims, OPERATOR)}


def notice() -> dict:
    following = Ed25519PrivateKey.from_private_bytes(octets("next operator", 32))
    claims = {
        "vehicle": VEHICLE,
        "seq": NOT_BEFORE + 60,
        "iat": NOT_BEFORE + 60,
        "keys": [proto.jwk(OPERATOR.public_key()), proto.jwk(following.public_key())],
        "revoked": [
            {"jti": "bert-2026-01-01", "until": NOT_BEFORE + 8 * 3600},
            {"jkt": proto.thumbprint(DEVICE), "until": NOT_BEFORE + 8 * 3600},
        ],
        "event_key": proto.jwk(EVENTS)["x"],
        "acked": {"seq": 41, "hash": proto.base64url(octets("event 41", 32))},
    }
    return {"notice-claims": claims, "notice": proto.sign_notice(claims, OPERATOR)}


def event() -> dict:
    claims = {
        "vehicle": VEHICLE,
        "seq": 42,
        "prev": proto.base64url(octets("event 41", 32)),
        "time": NOT_BEFORE + 90,
        "kind": "refused",
        "step": STEP,
        "position": "open",
        "jti": "anna-2026-01-01",
        "code": "wrong_step",
        "cause": "wrong_minor",
        "method": "beacon",
        "zone": "near",
        "untold": 3,
    }
    signed = proto.sign_event(claims, SIGNING)
    ephemeral = X25519PrivateKey.from_private_bytes(octets("event ephemeral", 32))
    # 48.77591° north, 9.1833° east: it is 3 s old, and 2.5 m off at most.
    place = {"north": 1387759100, "east": 1891833000, "error": 25, "age": 3}
    ended = {name: claims[name] for name in ("vehicle", "seq", "prev", "time", "kind", "step", "position")} | {
        "seq": 43, "prev": proto.digest(signed.encode()), "time": claims["time"] + 9, "kind": "ended", "ext": {"place": place}
    }
    return {
        "event-claims": claims,
        "event-signed": signed,
        "event-hash": proto.digest(signed.encode()),
        "event-ephemeral": proto.jwk(ephemeral),
        "event": proto.seal_event(signed, EVENTS.public_key(), ephemeral).decode(),
        "event-place-claims": ended,
        "event-place-signed": proto.sign_event(ended, SIGNING),
    }


def example() -> dict:
    values: dict = {}
    for name, key in KEYS.items():
        values |= {f"{name}-key": proto.jwk(key), f"{name}-thumbprint": proto.thumbprint(key)}
    claims, jwt = token()
    values |= {"token-claims": claims, "token": jwt}

    policy = {"proofs": ["beacon", "nfc"], "zone": "near", "static": True}
    asked, parts = command("unknown", "unknown", jwt)
    values |= parts
    values |= status("challenge", 7, 61_250, "close", "idle", asked, {"challenge": text("challenge"), "policy": policy})

    heard = 61_100  # The last frame came 150 ms before the statement did.
    proof = proto.beacon_proof(1, heard, rssi=-55, packets=11, minor=7)
    proof["beacons"].append({"major": 2, "minor": 7, "rssi": -74, "power": -59, "packets": 9})
    moved, parts = command("open", "open", jwt, proto.permission(values["challenge-claims"], proof))
    values |= parts
    values |= status("moving", 8, 61_300, "close", "moving", moved, {})
    values |= status("idle", 9, 63_310, "open", "idle", moved, {})
    refusal = {"code": "replayed", "retry": proto.REFUSALS["replayed"]}
    values |= status("refusal", 10, 63_400, "open", "idle", moved, {"refusal": refusal})

    stopped, parts = command("stop", "stop", jwt, proto.stopping(values["idle-claims"]))
    values |= {name: parts[name] for name in ("stop-claims", "stop-command", "stop-digest")}
    values |= status("stopped", 11, 64_020, "open", "idle", stopped, {})
    values |= call(asked) | road(asked, moved, policy) | about(jwt, policy)
    return values | beacon() | tag() | vehicle_code() | notice() | event()


def block(values: dict, name: str) -> str:
    value = values[name]
    if isinstance(value, str):
        return f"```text {name}\n{value}\n```\n"
    return f"```json {name}\n{json.dumps(value, indent=2)}\n```\n"


def markdown(values: dict) -> str:
    blocks = {name: block(values, name) for name in values}
    keys = "\n".join(
        f"The {who}, thumbprint `{values[f'{name}-thumbprint']}`:\n\n{blocks[f'{name}-key']}"
        for name, who in {
            "operator": "operator",
            "operator-events": "operator, for events",
            "device": "rider's device",
            "controller-signing": "controller, for statements",
            "controller-encryption": "controller, for commands",
        }.items()
    )

    def of(*names: str) -> str:
        return "\n".join(blocks[name] for name in names)

    return f"""\
The keys are for this example only: everybody knows them. Vehicle `{VEHICLE}`, topic
`{TOPIC}/{STEP}/set_position`. JSON is shown indented. What is signed is the same members in the same
order without white space, and spaces after them: in a command up to {proto.PADDED_SIZES[0]} bytes (4.1), in an event up to {proto.EVENT_SIZES[0]} (9.3).
Every text is one line. The controller's clock shows 61.25 s at first, and the token is valid.

### Keys

{keys}
### Token

{of("token-claims", "token")}
### Asking

{of("unknown-claims", "unknown-signing-input", "unknown-signed")}
The ephemeral key, which is new for each command, and the JWE's header and parts:

{of("unknown-ephemeral", "unknown-envelope-header", "unknown-enc", "unknown-ciphertext")}
What is published, and its SHA-256:

{of("unknown-command", "unknown-digest")}
The answer, with a challenge:

{of("challenge-claims", "challenge-status")}
### Opening

{of("open-claims", "open-signing-input", "open-signed")}
{of("open-ephemeral", "open-envelope-header", "open-enc", "open-ciphertext")}
{of("open-command", "open-digest")}
The answer as motion begins, and the answer when it has ended:

{of("moving-claims", "moving-status", "idle-claims", "idle-status")}
The answer to a second copy of the same bytes:

{of("refusal-claims", "refusal-status")}
### Stopping

A command to stop, sent when the step is at rest, what is published, and the answer:

{of("stop-claims", "stop-command", "stop-digest", "stopped-claims", "stopped-status")}
### A call

An answer to the question above, from a vehicle that must hear the device and hears it; the key that device and
controller export; the frames of three slots; and the advertisement of the first frame (5.1):

{of("call-claims", "call-status", "call-key", "call-frames", "call-data")}
### A watched road

The answers to the question and to the command above, from a vehicle that watches the road while a bicycle comes (5.2):

{of("watch-claims", "watch-status", "approaching-claims", "approaching-status")}
### What the controller says of itself

A question that asks for it, what is published, and the answer (5.3):

{of("about-claims", "about-command", "about-digest", "about-answer-claims", "about-answer-status")}
### A beacon's minors

The secret of the step's beacon, and its minors at some times (8.1):

{of("beacon-secret", "beacon-minors")}
### A dynamic tag

The tag's keys as the controller has them, what the tag says at its 61st reading, and the proof (8.3):

{of("tag-keys", "tag-uri", "tag-proof")}
### The vehicle's code

Signed by the operator (section 9), {len(values["vehicle-code"])} bytes:

{of("vehicle-code-claims", "vehicle-code")}
### A notice

It names the next key of the operator, revokes another rider's token and every token of the device above, and
acknowledges the vehicle's events up to the 41st (9.1):

{of("notice-claims", "notice")}
### An event

The controller refused to open, because the beacon's minor was not the step's (9.3). The signed text, its hash, which
the next event names, the ephemeral key, and what is published:

{of("event-claims", "event-signed", "event-hash", "event-ephemeral", "event")}
The next one: the step is open, and the vehicle stands at 48.77591, 9.18330.

{of("event-place-claims", "event-place-signed")}"""


def main():
    values = example()
    section = f"{BEGIN}\n\n{markdown(values)}\n{END}"
    if "--write" not in sys.argv[1:]:
        print(section)
        return
    page = PAGE.read_text()
    if BEGIN in page:
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(before + section + rest.partition(END)[2])
    else:
        PAGE.write_text(page.replace("<!-- EXAMPLE -->", section))
    (HERE / "example.json").write_text(json.dumps(values, indent=2) + "\n")


if __name__ == "__main__":
    main()
