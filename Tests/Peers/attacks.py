"""Attacks on a controller, each with what the protocol page demands: the code of a refusal, or no answer at all.

An attack starts from a command that would be obeyed and bends one thing in it. For a pytest:

    @pytest.mark.parametrize("attack", attacks.ATTACKS, ids=str)
    def test_refuses(attack, context):
        payload, retain = attack.build(context)
        ...publish it on the step's set_position, and compare the refusal with attack.expected

No answer is best seen by publishing an honest `unknown` after the attack: its answer comes first. And whatever the
attack, nothing may have moved. VARIANTS are the other half: unusual commands that have to be obeyed all the same.
"""

import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import stepproto as proto

NO_ANSWER = None
ELSEWHERE = "00000000-0000-4000-8000-000000000000"
ANOTHER_16_BYTES = proto.base64url(bytes(16))


class Unavailable(Exception):
    """The attack needs something that this context has not: the operator's key, a second step, a second rider."""


@dataclass(frozen=True)
class Rider:
    device: Ed25519PrivateKey
    token: str


@dataclass
class Tag:
    """A dynamic tag in hand: each reading is another."""

    uid: str
    meta_read: bytes
    file_read: bytes
    counter: int = 0

    def read(self, vehicle: str, step: str) -> str:
        self.counter += 1
        return proto.tag_uri(vehicle, step, self.uid, self.counter, self.meta_read, self.file_read)


@dataclass
class Context:
    """What an attacker has in hand. `exchange` publishes a command on a step's set_position, step and payload given,
    and returns the statements that answer it, up to the final one, or the first if its third argument is true."""

    vehicle: str
    majors: dict[str, int]
    step: str
    encryption_key: X25519PublicKey
    rider: Rider
    exchange: Callable[[str, bytes, bool], list[dict]]
    sleep: Callable[[float], None] = time.sleep
    unix_time: Callable[[], int] = lambda: int(time.time())
    restart: Callable[[], None] | None = None
    other_rider: Rider | None = None
    operator: Ed25519PrivateKey | None = None
    beacons: dict[str, tuple[bytes, int]] = field(default_factory=dict)  # secret and period, by step
    labelled: dict[str, str] = field(default_factory=dict)  # the UID of a plain tag, by step
    tags: dict[str, Tag] = field(default_factory=dict)  # by step

    def minor(self, step: str, periods: int = 0) -> int:
        """What a step's beacon sends now, or some periods from now."""
        if step not in self.beacons:
            return 0
        secret, period = self.beacons[step]
        return proto.rotating_minor(secret, step, period, self.unix_time() + periods * period)

    def wrong_minor(self, *candidates: int) -> int:
        """The first that is not right by chance."""
        if self.step not in self.beacons:
            raise Unavailable("a step whose minors rotate")
        secret, period = self.beacons[self.step]
        right = {proto.rotating_minor(secret, self.step, period, self.unix_time() + n * period) for n in (-1, 0, 1)}
        return next(minor for minor in (*candidates, 1, 2, 3, 4) if minor not in right)

    def tag(self, step: str | None = None) -> Tag:
        if (step or self.step) not in self.tags:
            raise Unavailable("a dynamic tag")
        return self.tags[step or self.step]

    def new_rider(self) -> "Context":
        """The same with a device of its own, for what is counted by device."""
        if not self.operator:
            raise Unavailable("the operator's key")
        device = Ed25519PrivateKey.generate()
        claims = proto.from_json(proto.SignedText.read(self.rider.token).payload)
        claims |= {"cnf": {"jwk": proto.jwk(device.public_key())}}
        return replace(self, rider=Rider(device, proto.sign_token(claims, self.operator)))

    @property
    def other_step(self) -> str:
        for step in self.majors:
            if step != self.step:
                return step
        raise Unavailable("a second step")

    @property
    def stranger(self) -> Rider:
        if not self.other_rider:
            raise Unavailable("a second rider")
        return self.other_rider

    def ask(self, rider: Rider | None = None, step: str | None = None) -> dict:
        """The answer to an honest `unknown`."""
        rider, step = rider or self.rider, step or self.step
        command = proto.build_command(rider.device, self.encryption_key, self.vehicle, step, "unknown", rider.token)
        return self.exchange(step, command.payload, True)[-1]

    def stop(self, rider: Rider | None = None, **other) -> bytes:
        """A command to stop, which starts from any statement of the present run."""
        rider, claims = rider or self.rider, {"epoch": self.ask()["epoch"]} | other
        return proto.build_command(
            rider.device, self.encryption_key, self.vehicle, self.step, "stop", rider.token, claims
        ).payload


@dataclass(frozen=True)
class Attack:
    """`stored`: publish it retained while the controller is away, and let it find it when it subscribes. A broker
    clears the flag on what it passes on to a subscription that exists (MQTT 3.1.1, 3.3.1.3). `restarts`: building it
    starts the controller again."""

    name: str
    build: Callable[[Context], tuple[bytes, bool]]
    expected: str | None
    stored: bool = False
    restarts: bool = False

    def __str__(self) -> str:
        return self.name


# --- Bytes that no honest encoder writes ---


def encode(value, doubled: tuple = (), literal: tuple[tuple, str] | None = None) -> bytes:
    """JSON in which the member at the path `doubled` stands twice, or that at `literal[0]` is the text `literal[1]`."""

    def write(value, path):
        if literal and path == literal[0]:
            return literal[1]
        if isinstance(value, dict):
            members = []
            for name, member in value.items():
                text = f"{json.dumps(name)}:{write(member, (*path, name))}"
                members += [text] * (2 if (*path, name) == doubled else 1)
            return "{" + ",".join(members) + "}"
        if isinstance(value, list):
            return "[" + ",".join(write(item, (*path, index)) for index, item in enumerate(value)) + "]"
        return json.dumps(value)

    return write(value, ()).encode()


@dataclass
class Draft:
    """A command in its layers, from the inside out, for an attack to bend before it is put together."""

    context: Context
    token_header: dict
    token_claims: dict
    header: dict
    claims: dict
    envelope: dict
    token_key: Ed25519PrivateKey | None
    device: Ed25519PrivateKey
    recipient: X25519PublicKey
    token: str | None = None
    signed: str | None = None
    write: dict[str, Callable[[dict], bytes]] = field(default_factory=dict)

    def written(self, layer: str) -> bytes:
        return self.write.get(layer, proto.to_json)(getattr(self, layer))

    def signed_token(self) -> str:
        if self.token is not None:
            return self.token
        if not self.token_key:
            raise Unavailable("the operator's key")
        return proto.sign(self.token_key, self.written("token_header"), self.written("token_claims"))

    def signed_command(self) -> str:
        if self.signed is not None:
            return self.signed
        if self.claims.get("token") is TOKEN:
            self.claims["token"] = self.signed_token()
        return proto.sign(self.device, self.written("header"), self.written("claims"))

    def payload(self) -> bytes:
        return proto.seal(self.recipient, self.signed_command().encode(), self.written("envelope"))


TOKEN = object()  # Stands for the token in the claims until the command is put together.
LAYERS = ("token_header", "token_claims", "header", "claims", "envelope")


def draft(context: Context, position: str | None = None, statement: dict | None = None) -> Draft:
    """A command that would be obeyed: to where the step is not, unless `position` says otherwise."""
    if position != "unknown":
        statement = statement or context.ask()
        position = position or opposite(statement)
    claims = {
        "vehicle": context.vehicle,
        "step": context.step,
        "position": position,
        "nonce": proto.base64url(os.urandom(16)),
        "token": TOKEN,
    }
    if position != "unknown":
        major, minor = context.majors[context.step], context.minor(context.step)
        claims |= proto.permission(statement, proto.beacon_proof(major, statement["clock"], minor=minor))
    read = proto.SignedText.read(context.rider.token)
    return Draft(
        context=context,
        token_header=dict(read.header),
        token_claims=proto.from_json(read.payload),
        header=proto.command_header(),
        claims=claims,
        envelope=proto.envelope_header(context.encryption_key),
        token_key=context.operator,
        device=context.rider.device,
        recipient=context.encryption_key,
        token=context.rider.token,
    )


def opposite(statement: dict) -> str:
    """The position that the step is not in."""
    return "close" if statement["position"] == "open" else "open"


# --- One bend each ---


def put(layer: str, path: tuple, value) -> Callable[[Draft], None]:
    def bend(draft):
        parent, last = _parent(draft, layer, path)
        parent[last] = value(draft) if callable(value) else value

    return bend


def drop(layer: str, path: tuple) -> Callable[[Draft], None]:
    def bend(draft):
        parent, last = _parent(draft, layer, path)
        del parent[last]

    return bend


def double(layer: str, path: tuple) -> Callable[[Draft], None]:
    return rewrite(layer, lambda value: encode(value, doubled=path))


def spell(layer: str, path: tuple, text: str) -> Callable[[Draft], None]:
    return rewrite(layer, lambda value: encode(value, literal=(path, text)))


def rewrite(layer: str, write: Callable[[dict], bytes]) -> Callable[[Draft], None]:
    def bend(draft):
        _reforge(draft, layer)
        draft.write[layer] = write

    return bend


def _parent(draft: Draft, layer: str, path: tuple):
    _reforge(draft, layer)
    parent = getattr(draft, layer)
    for name in path[:-1]:
        parent = parent[name]
    return parent, path[-1]


def _reforge(draft: Draft, layer: str):
    if layer.startswith("token_"):
        draft.token = None


def _sent(bend: Callable[[Draft], None], position: str | None = None) -> Callable[[Context], tuple[bytes, bool]]:
    def build(context):
        bent = draft(context, position)
        bend(bent)
        return bent.payload(), False

    return build


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Context], tuple[bytes, bool]]:
    """An attack on the finished payload of an honest command."""
    return lambda context: (change(draft(context).payload()), False)


ATTACKS: list[Attack] = []


def _bent(name: str, expected: str | None, bend: Callable[[Draft], None], position: str | None = None):
    ATTACKS.append(Attack(name, _sent(bend, position), expected))


def _changed(name: str, change: Callable[[bytes], bytes]):
    ATTACKS.append(Attack(name, _bytes(change), NO_ANSWER))


# --- Every member of every layer: missing, doubled, of another type; and one too many ---

_PROOF_PATHS = [("proof",)] + [("proof", name) for name in ("method", "time", "zone", "located", "beacons")]
_BEACON_PATHS = [("proof", "beacons", 0, name) for name in ("major", "minor", "rssi", "power", "packets")]
_JWK_PATHS = [("cnf",), ("cnf", "jwk")] + [("cnf", "jwk", name) for name in ("kty", "crv", "x")]
_PATHS = {
    "envelope": [("alg",), ("typ",), ("cty",), ("kid",)],
    "header": [("alg",), ("typ",)],
    "token_header": [("alg",), ("typ",), ("kid",)],
    "claims": [
        *[(n,) for n in ("vehicle", "step", "position", "nonce", "token", "epoch", "challenge", "deadline")],
        *_PROOF_PATHS,
        *_BEACON_PATHS,
    ],
    "token_claims": [*[(n,) for n in ("iss", "sub", "aud", "steps", "nbf", "exp", "jti")], *_JWK_PATHS],
}


def _said_of(layer: str, path: tuple) -> str | None:
    """What is wrong in a signed command's claims is `malformed`, but without a token nobody is known to have signed."""
    return "malformed" if layer == "claims" and path[0] != "token" else NO_ANSWER


def _title(layer: str, path: tuple = ()) -> str:
    return ".".join([layer.replace("_", " "), *map(str, path)])


for _layer in LAYERS:
    for _path in _PATHS[_layer]:
        _bent(f"{_title(_layer, _path)} missing", _said_of(_layer, _path), drop(_layer, _path))
        _bent(f"{_title(_layer, _path)} twice", NO_ANSWER, double(_layer, _path))
        _bent(f"{_title(_layer, _path)} null", _said_of(_layer, _path), put(_layer, _path, None))
        _bent(f"{_title(_layer, _path)} an array", _said_of(_layer, _path), put(_layer, _path, []))
        if _path[-1] != "located":
            _bent(f"{_title(_layer, _path)} true", _said_of(_layer, _path), put(_layer, _path, True))
    _bent(f"{_title(_layer)} with an unknown member", _said_of(_layer, ("x",)), put(_layer, ("x",), 1))

for _path in (("proof", "x"), ("proof", "beacons", 0, "x")):
    _bent(f"{_title('claims', _path)} unknown", "malformed", put("claims", _path, 1))
for _path in (("cnf", "x"), ("cnf", "jwk", "d"), ("cnf", "jwk", "kid")):
    _bent(f"{_title('token_claims', _path)} unknown", NO_ANSWER, put("token_claims", _path, "x"))

for _value in (1, 0, "true", {}):
    _bent(f"claims.proof.located {_value!r}", "malformed", put("claims", ("proof", "located"), _value))

# --- Extensions: `ext` is ignored where it may stand, and `crit` never is ---

_OPEN = [("claims", ()), ("claims", ("proof",)), ("claims", ("proof", "beacons", 0)), ("token_claims", ())]
_CLOSED = [
    *[(layer, ()) for layer in ("envelope", "header", "token_header")],
    *[("token_claims", path) for path in (("cnf",), ("cnf", "jwk"))],
]
_EXTENSIONS = {"x": {"y": [1, None]}, "org.example.note": "é"}


def _extend(layer: str, path: tuple, members: dict) -> Callable[[Draft], None]:
    def bend(draft):
        _reforge(draft, layer)
        value = getattr(draft, layer)
        for name in path:
            value = value[name]
        value.update(members)

    return bend


for _layer, _path in _OPEN:
    _said = _said_of(_layer, _path or ("ext",))
    for _how, _members in {
        "with crit that names an extension": {"ext": _EXTENSIONS, "crit": ["x"]},
        "with crit that names all extensions": {"ext": _EXTENSIONS, "crit": list(_EXTENSIONS)},
        "with crit and without ext": {"crit": ["x"]},
        "with crit that names what ext has not": {"ext": _EXTENSIONS, "crit": ["x", "z"]},
        "with crit that names a member beside ext": {"ext": _EXTENSIONS, "crit": ["position"]},
        "with crit that names ext": {"ext": _EXTENSIONS, "crit": ["ext"]},
        "with crit that names one twice": {"ext": _EXTENSIONS, "crit": ["x", "x"]},
        "with crit that is empty": {"ext": _EXTENSIONS, "crit": []},
        "with crit null": {"ext": _EXTENSIONS, "crit": None},
        "with crit a string": {"ext": _EXTENSIONS, "crit": "x"},
        "with crit an object": {"ext": _EXTENSIONS, "crit": {"x": 1}},
        "with crit of a number": {"ext": _EXTENSIONS | {"1": 1}, "crit": [1]},
        "with crit false": {"ext": _EXTENSIONS, "crit": False},
        "with ext null": {"ext": None},
        "with ext an array": {"ext": [_EXTENSIONS]},
        "with ext a string": {"ext": "x"},
        "with ext true": {"ext": True},
        "with Ext": {"Ext": _EXTENSIONS},
        "with an unknown member beside ext": {"ext": _EXTENSIONS, "x": 1},
    }.items():
        _bent(f"{_title(_layer, _path)} {_how}", _said, _extend(_layer, _path, _members))
    _bent(
        f"{_title(_layer, _path)} with ext twice",
        NO_ANSWER,
        lambda d, layer=_layer, path=_path: (
            _extend(layer, path, {"ext": _EXTENSIONS})(d),
            double(layer, (*path, "ext"))(d),
        ),
    )
for _layer, _path in _CLOSED:
    _bent(f"{_title(_layer, _path)} with ext", NO_ANSWER, _extend(_layer, _path, {"ext": _EXTENSIONS}))
    _bent(
        f"{_title(_layer, _path)} with ext and crit",
        NO_ANSWER,
        _extend(_layer, _path, {"ext": _EXTENSIONS, "crit": ["x"]}),
    )

# --- Numbers and octets that are not written as the page says ---

_NUMBERS = {
    "claims": [("deadline",), ("proof", "time"), *_BEACON_PATHS],
    "token_claims": [("nbf",), ("exp",)],
}
for _layer, _paths in _NUMBERS.items():
    for _path in _paths:
        for _text in ("1.5", "1.0", "1e3", "-0", "1e400", "-1e400", '"1000"', "9007199254740992", "18446744073709551616"):
            _bent(f"{_title(_layer, _path)} {_text}", _said_of(_layer, _path), spell(_layer, _path, _text))
        _bent(f"{_title(_layer, _path)} of 600 digits", _said_of(_layer, _path), spell(_layer, _path, "9" * 600))
        for _text in ("01", "+1", "0x10", "NaN", "Infinity", "1_000", ".5"):
            _bent(f"{_title(_layer, _path)} {_text}", NO_ANSWER, spell(_layer, _path, _text))
        if _path[-1] not in ("rssi", "power"):
            _bent(f"{_title(_layer, _path)} negative", _said_of(_layer, _path), spell(_layer, _path, "-1"))
for _path, _values in {
    ("proof", "beacons", 0, "major"): (65536,),
    ("proof", "beacons", 0, "minor"): (65536,),
    ("proof", "beacons", 0, "rssi"): (0, 1, 127, -128),
    ("proof", "beacons", 0, "power"): (128, -129),
    ("proof", "beacons", 0, "packets"): (0, 1_000_001),
}.items():
    for _value in _values:
        _bent(f"{_title('claims', _path)} {_value}", "malformed", put("claims", _path, _value))

_BAD_OCTETS = {
    "too short": proto.base64url(bytes(15)),
    "too long": proto.base64url(bytes(17)),
    "empty": "",
    "padded": "AAAAAAAAAAAAAAAAAAAAAA==",
    "with unused bits set": "AAAAAAAAAAAAAAAAAAAAAB",
    "in the other alphabet": "AAAAAAAAAAAAAAAAAAAA+A",
    "with white space": " AAAAAAAAAAAAAAAAAAAAAA",
    "with a line's end": "AAAAAAAAAAAAAAAAAAAAAA\n",
}
for _name in ("nonce", "epoch", "challenge"):
    for _how, _value in _BAD_OCTETS.items():
        _bent(f"claims.{_name} {_how}", "malformed", put("claims", (_name,), _value))

# --- Claims of the right form that are wrong ---

_bent("claims.vehicle another", "wrong_vehicle", put("claims", ("vehicle",), ELSEWHERE))
_bent("claims.vehicle in upper case", "malformed", put("claims", ("vehicle",), lambda d: d.context.vehicle.upper()))
_bent("claims.vehicle in braces", "malformed", put("claims", ("vehicle",), lambda d: "{" + d.context.vehicle + "}"))
_bent("claims.vehicle no UUID", "malformed", put("claims", ("vehicle",), "my car"))
_bent("claims.step another", "wrong_step", put("claims", ("step",), lambda d: d.context.other_step))
_bent("claims.step of no vehicle", "wrong_step", put("claims", ("step",), "roof"))
_bent("claims.step in upper case", "malformed", put("claims", ("step",), lambda d: d.context.step.upper()))
_bent("claims.step a topic", "malformed", put("claims", ("step",), lambda d: f"{d.context.step}/#"))
_bent("claims.step empty", "malformed", put("claims", ("step",), ""))
for _value in ("Open", "opened", "toggle", "", "open "):
    _bent(f"claims.position {_value!r}", "malformed", put("claims", ("position",), _value))
_bent("claims.position unknown with the members of a move", "malformed", put("claims", ("position",), "unknown"))
_bent(
    "claims.position open without the members of a move",
    "malformed",
    put("claims", ("position",), "open"),
    position="unknown",
)
_bent("claims.epoch another", "expired", put("claims", ("epoch",), ANOTHER_16_BYTES))
_bent("claims.challenge that nobody gave", "expired", put("claims", ("challenge",), ANOTHER_16_BYTES))
_bent(
    "claims.challenge of another device",
    "expired",
    put("claims", ("challenge",), lambda d: d.context.ask(d.context.stranger)["challenge"]),
)
_bent(
    "claims.challenge of another step",
    "expired",
    put("claims", ("challenge",), lambda d: d.context.ask(step=d.context.other_step)["challenge"]),
)
_bent("claims.deadline at the start of the epoch", "expired", put("claims", ("deadline",), 0))
_bent(
    "claims.deadline a minute ahead", "expired", put("claims", ("deadline",), lambda d: d.claims["deadline"] + 60_000)
)
_bent("claims.deadline the last number", "expired", put("claims", ("deadline",), proto.MAX_NUMBER))

# --- Proofs ---


def _beacons(*heard: tuple[str, int]) -> Callable[[Draft], None]:
    """Replaces the beacons by others: of `mine`, the `other` step, or a major that is no step's, at an RSSI."""

    def beacons(draft):
        context = draft.context
        majors = {"mine": context.majors[context.step], "none": 60_000}
        if any(whose == "other" for whose, _ in heard):
            majors["other"] = context.majors[context.other_step]
        minors = {"mine": context.minor(context.step)}
        return [
            {"major": majors[whose], "minor": minors.get(whose, 0), "rssi": rssi, "power": -59, "packets": 10}
            for whose, rssi in heard
        ]

    return put("claims", ("proof", "beacons"), beacons)


for _method in ("nfc", "qr", "magic", "Beacon"):
    _bent(f"claims.proof.method {_method}", "malformed", put("claims", ("proof", "method"), _method))
for _zone in ("immediate", "near", "far", "unknown"):
    _bent(
        f"claims.proof in the zone {_zone} and not located",
        "not_near",
        _extend("claims", ("proof",), {"zone": _zone, "located": False}),
    )
_bent("claims.proof.zone beside", "malformed", put("claims", ("proof", "zone"), "beside"))
_bent("claims.proof of the other step", "wrong_step", _beacons(("other", -40)))
_bent("claims.proof with the other step stronger", "wrong_step", _beacons(("mine", -60), ("other", -59)))
_bent("claims.proof of no step", "wrong_step", _beacons(("none", -40)))
_bent("claims.proof with one beacon twice", "malformed", _beacons(("mine", -50), ("mine", -60)))
_bent(
    "claims.proof with nine beacons",
    "malformed",
    put(
        "claims",
        ("proof", "beacons"),
        lambda d: [d.claims["proof"]["beacons"][0] | {"major": 50_000 + index} for index in range(9)],
    ),
)
_bent(
    "claims.proof a minute in the future",
    "stale_proof",
    put("claims", ("proof", "time"), lambda d: d.claims["proof"]["time"] + 60_000),
)


def _stale_proof(context):
    context.sleep(max(0, 11_000 - context.ask()["clock"]) / 1000)
    bent = draft(context)
    bent.claims["proof"]["time"] -= 10_500
    return bent.payload(), False


ATTACKS.append(Attack("claims.proof older than 10 s", _stale_proof, "stale_proof"))

# --- Minors that rotate: each attack is by a device of its own, because wrong ones are counted ---


def _with_minor(context: Context, minor: int) -> bytes:
    bent = draft(context)
    bent.claims["proof"]["beacons"][0]["minor"] = minor
    return bent.payload()


def _minor(name: str, minor: Callable[[Context], int]):
    def build(context):
        return _with_minor(context.new_rider(), context.wrong_minor(minor(context))), False

    ATTACKS.append(Attack(f"minor {name}", build, "stale_proof"))


def _of_another_secret(context: Context) -> int:
    period = context.beacons[context.step][1] if context.beacons else 8
    return proto.rotating_minor(bytes(32), context.step, period, context.unix_time())


def _of_the_other_step(context: Context) -> int:
    """By the same secret, so that the step's id in the input is what tells them apart."""
    secret, period = context.beacons.get(context.step, (bytes(32), 8))
    return proto.rotating_minor(secret, context.other_step, period, context.unix_time())


def _guesses(count: int) -> Callable[[Context], tuple[bytes, bool]]:
    """So many wrong minors, and then the right one."""

    def build(context):
        guesser = context.new_rider()
        for _ in range(count):
            answer = context.exchange(context.step, _with_minor(guesser, context.wrong_minor()), False)[-1]
            if answer.get("refusal", {}).get("code") != "stale_proof":
                raise AssertionError(f"a wrong minor was not refused as stale_proof: {answer}")
        return draft(guesser).payload(), False

    return build


_minor("of three periods ago", lambda c: c.minor(c.step, -3))
_minor("of a minute ago", lambda c: c.minor(c.step, -8))
_minor("of two periods ahead", lambda c: c.minor(c.step, 2))
_minor("by another secret", _of_another_secret)
_minor("of the other step", _of_the_other_step)
_minor("of a static beacon", lambda c: 0)
ATTACKS.append(Attack("minor that is right, after three guesses", _guesses(3), "stale_proof"))

# --- Tags and codes ---


def _claim(proof: Callable[[Context, int], dict]) -> Callable[[Draft], None]:
    """Another proof in place of the beacon's, heard at the same time."""
    return put("claims", ("proof",), lambda d: proof(d.context, d.claims["proof"]["time"]))


def _label(context: Context, step: str | int | None = None) -> str:
    """As labels were written before."""
    return proto.json_label(context.vehicle, context.step if step is None else step)


def _written(context: Context, step: str | None = None) -> str:
    return proto.label(context.vehicle, step or context.step)


def _uid(context: Context) -> str:
    return context.labelled.get(context.step, "04A1B2C3D4E5F6")


def _labelled(name: str, expected: str | None, content: Callable[[Context], object]):
    """The content both as a plain tag's and as a code's."""
    _bent(f"tag {name}", expected, _claim(lambda c, time: proto.tag_proof(_uid(c), content(c), time)))
    _bent(f"code {name}", expected, _claim(lambda c, time: proto.code_proof(content(c), time)))


_labelled("of another vehicle", "wrong_step", lambda c: proto.json_label(ELSEWHERE, c.step))
_labelled("of the other step", "wrong_step", lambda c: _label(c, c.other_step))
_labelled("of the other step by its number", "wrong_step", lambda c: _label(c, c.majors[c.other_step]))
_labelled("of no step", "wrong_step", lambda c: _label(c, "roof"))
_labelled("of no step by a number", "wrong_step", lambda c: _label(c, 60_000))
_labelled("of the step's major as text", "wrong_step", lambda c: _label(c, str(c.majors[c.step])))
_labelled("of a negative number", "wrong_step", lambda c: _label(c, -1))
_labelled("of a number too large", "wrong_step", lambda c: _label(c, 65_537))
_labelled("of a fraction", "wrong_step", lambda c: _label(c).replace(f'"{c.step}"', f"{c.majors[c.step]}.0"))
_labelled("with an unknown member", "wrong_step", lambda c: _label(c)[:-1] + ',"x":1}')
_labelled("with ext", "wrong_step", lambda c: _label(c)[:-1] + ',"ext":{}}')
_labelled("with a step twice", "wrong_step", lambda c: _label(c)[:-1] + f',"stepId":"{c.step}"}}')
_labelled("without a vehicle", "wrong_step", lambda c: json.dumps({"stepId": c.step}))
_labelled("without a step", "wrong_step", lambda c: json.dumps({"uuid": c.vehicle}))
_labelled("in an array", "wrong_step", lambda c: f"[{_label(c)}]")
_labelled("with a byte after it", "wrong_step", lambda c: _label(c) + "x")
_labelled("that is the step's id", "wrong_step", lambda c: c.step)
_labelled("that is a web address", "wrong_step", lambda c: f"https://example.com/{c.vehicle}/{c.step}")
_labelled("URI of another vehicle", "wrong_step", lambda c: proto.label(ELSEWHERE, c.step))
_labelled("URI of the other step", "wrong_step", lambda c: _written(c, c.other_step))
_labelled("URI of no step", "wrong_step", lambda c: _written(c, "roof"))
_labelled("URI of the step's major", "wrong_step", lambda c: _written(c, str(c.majors[c.step])))
_labelled("URI without a step", "wrong_step", lambda c: f"stepctl:{c.vehicle}/")
_labelled("URI without a slash", "wrong_step", lambda c: f"stepctl:{c.vehicle}")
_labelled("URI with an empty query", "wrong_step", lambda c: _written(c) + "?")
_labelled("URI with a fragment", "wrong_step", lambda c: _written(c) + "#")
_labelled("URI with a further path", "wrong_step", lambda c: _written(c) + "/")
_labelled("URI with an authority", "wrong_step", lambda c: _written(c).replace("stepctl:", "stepctl://"))
_labelled("URI with its scheme in upper case", "wrong_step", lambda c: _written(c).replace("stepctl", "STEPCTL"))
_labelled("URI with the vehicle in upper case", "wrong_step", lambda c: _written(c).replace(c.vehicle, c.vehicle.upper()))
_labelled("URI with the step in upper case", "wrong_step", lambda c: _written(c, c.step.upper()))
_labelled("URI with white space before it", "wrong_step", lambda c: " " + _written(c))
_labelled("URI with white space behind it", "wrong_step", lambda c: _written(c) + "\n")
_labelled("URI with a NUL", "wrong_step", lambda c: _written(c) + "\0")
_labelled("URI in percent signs", "wrong_step", lambda c: _written(c, f"%{ord(c.step[0]):02x}{c.step[1:]}"))
_labelled("URI of 513 bytes", "malformed", lambda c: _written(c).ljust(513))
_labelled("that is the command's token", "malformed", lambda c: c.rider.token + "x" * 512)
_labelled("empty", "malformed", lambda c: "")
_labelled("of 513 bytes", "malformed", lambda c: _label(c).ljust(513))
_labelled("of 513 bytes in fewer characters", "malformed", lambda c: _label(c) + "é" * 250)
_labelled("that is an object", "malformed", lambda c: json.loads(_label(c)))
_labelled("null", "malformed", lambda c: None)
_bent(
    "tag that is not the step's",
    "wrong_step",
    _claim(lambda c, time: proto.tag_proof("04FFFFFFFFFFFF", _label(c), time)),
)
for _how, _value in {
    "in lower case": "04a1b2c3d4e5f6",
    "of five bytes": "04A1B2C3D4",
    "of seven digits": "04A1B2C",
    "with colons": "04:A1:B2:C3:D4:E5:F6",
    "empty": "",
    "a number": 4,
    "null": None,
}.items():
    _bent(f"tag's UID {_how}", "malformed", _claim(lambda c, t, v=_value: proto.tag_proof(v, _label(c), t)))
_bent("tag without its UID", "malformed", _claim(lambda c, t: proto.code_proof(_label(c), t) | {"method": "nfc"}))
_bent(
    "tag without its content", "malformed", _claim(lambda c, t: {"method": "nfc", "time": t, "uid": "04A1B2C3D4E5F6"})
)
_bent("code with a UID", "malformed", _claim(lambda c, t: proto.tag_proof(_uid(c), _label(c), t) | {"method": "qr"}))
_bent("code with a zone", "malformed", _claim(lambda c, t: proto.code_proof(_label(c), t) | {"zone": "near"}))
_bent("code that is located", "malformed", _claim(lambda c, t: proto.code_proof(_label(c), t) | {"located": True}))
_bent(
    "code with crit that names an extension",
    "malformed",
    _claim(lambda c, t: proto.code_proof(_label(c), t) | {"ext": {"x": 1}, "crit": ["x"]}),
)
_bent("code read a minute ahead", "stale_proof", _claim(lambda c, t: proto.code_proof(_label(c), t + 60_000)))

# --- Dynamic tags ---


def _uri(context: Context) -> str:
    return context.tag().read(context.vehicle, context.step)


def _dynamic(name: str, expected: str, change: Callable[[Context, str], str], uid=lambda c: c.tag().uid):
    """A fresh reading of the step's tag, changed."""
    _bent(f"dynamic tag {name}", expected, _claim(lambda c, t: proto.tag_proof(uid(c), change(c, _uri(c)), t)))


def _values(change: Callable[[str], str], name: str) -> Callable[[Context, str], str]:
    """Other digits for `e` or `c`."""

    def changed(context, uri):
        head, e, c = uri.replace("&c=", "?e=").split("?e=")
        e, c = (change(e), c) if name == "e" else (e, change(c))
        return f"{head}?e={e}&c={c}"

    return changed


def _forged(context: Context, meta_read: bytes | None = None, file_read: bytes | None = None, uid: str | None = None):
    tag = context.tag()
    keys = meta_read or tag.meta_read, file_read or tag.file_read
    return proto.tag_uri(context.vehicle, context.step, uid or tag.uid, tag.counter + 1_000, *keys)


def _flipped_digit(digits: str) -> str:
    return ("1" if digits[0] == "0" else "0") + digits[1:]


for _name in ("e", "c"):
    _dynamic(f"with a digit of {_name} changed", "wrong_step", _values(_flipped_digit, _name))
    _dynamic(f"with {_name} cut short", "wrong_step", _values(lambda digits: digits[:-1], _name))
    _dynamic(f"with {_name} a byte short", "wrong_step", _values(lambda digits: digits[:-2], _name))
    _dynamic(f"with {_name} too long", "wrong_step", _values(lambda digits: digits + "00", _name))
    _dynamic(f"with {_name} in lower case", "wrong_step", _values(lambda digits: "a" + digits[1:].lower(), _name))
    _dynamic(f"with {_name} not hexadecimal", "wrong_step", _values(lambda digits: "G" + digits[1:], _name))
    _dynamic(f"with {_name} empty", "wrong_step", _values(lambda digits: "", _name))
    _dynamic(f"with {_name} of zeros", "wrong_step", _values(lambda digits: "0" * len(digits), _name))
_dynamic("with e and c in the other order", "wrong_step", lambda c, u: "{0}?c={2}&e={1}".format(*_split(u)))
_dynamic("without its query", "wrong_step", lambda c, u: u.partition("?")[0])
_dynamic("with its query empty", "wrong_step", lambda c, u: u.partition("?")[0] + "?")
_dynamic("with a third value", "wrong_step", lambda c, u: u + "&x=0")
_dynamic("with a fragment", "wrong_step", lambda c, u: u + "#")
_dynamic("with white space", "wrong_step", lambda c, u: u + " ")
_dynamic("with a NUL", "wrong_step", lambda c, u: u + "\0")
_dynamic("with its scheme in upper case", "wrong_step", lambda c, u: u.replace("stepctl", "STEPCTL"))
_dynamic("with an authority", "wrong_step", lambda c, u: u.replace("stepctl:", "stepctl://"))
_dynamic("with the vehicle in upper case", "wrong_step", lambda c, u: u.replace(c.vehicle, c.vehicle.upper()))
_dynamic("of another vehicle", "wrong_step", lambda c, u: u.replace(c.vehicle, ELSEWHERE))
_dynamic("that names the other step", "wrong_step", lambda c, u: u.replace(f"/{c.step}?", f"/{c.other_step}?"))
_dynamic("that names no step", "wrong_step", lambda c, u: u.replace(f"/{c.step}?", "/?"))
_dynamic("forged with the factory's keys", "wrong_step", lambda c, u: _forged(c, bytes(16), bytes(16)))
_dynamic("forged with the right UID and another key", "wrong_step", lambda c, u: _forged(c, None, bytes(16)))
_dynamic("forged with another UID inside", "wrong_step", lambda c, u: _forged(c, uid="04FFFFFFFFFFFF"))
_dynamic("under another tag's UID", "wrong_step", lambda c, u: u, uid=lambda c: c.tag(c.other_step).uid)
_dynamic("under a UID that nobody knows", "wrong_step", lambda c, u: u, uid=lambda c: "04FFFFFFFFFFFF")
_dynamic(
    "of the other step",
    "wrong_step",
    lambda c, u: c.tag(c.other_step).read(c.vehicle, c.step),
    uid=lambda c: c.tag(c.other_step).uid,
)
_bent("dynamic tag as a code", "wrong_step", _claim(lambda c, t: proto.code_proof(_uri(c), t)))


def _split(uri: str) -> list[str]:
    return uri.replace("&c=", "?e=").split("?e=")


def _with_uri(context: Context, uri: str) -> bytes:
    bent = draft(context)
    bent.claims["proof"] = proto.tag_proof(context.tag().uid, uri, bent.claims["proof"]["time"])
    return bent.payload()


def _tag_again(between: Callable[[Context], None] = lambda c: None) -> Callable[[Context], bytes]:
    """A reading that was accepted, once more, in a new command with a new challenge."""

    def build(context):
        uri = _uri(context)
        _obeyed(context, _with_uri(context, uri))
        between(context)
        return _with_uri(context, uri)

    return build


def _older_reading(context: Context) -> bytes:
    kept, later = _uri(context), _uri(context)
    _obeyed(context, _with_uri(context, later))
    return _with_uri(context, kept)


def _reading_that_moved_nothing(context: Context) -> bytes:
    """It is used up by a command that asks for what is so already."""
    uri, statement = _uri(context), context.ask()
    bent = draft(context, statement["position"], statement)
    bent.claims["proof"] = proto.tag_proof(context.tag().uid, uri, bent.claims["proof"]["time"])
    context.exchange(context.step, bent.payload(), False)
    return _with_uri(context, uri)


def _by_another_rider(context: Context) -> bytes:
    uri = _uri(context)
    _obeyed(context, _with_uri(context, uri))
    return _with_uri(replace(context, rider=context.stranger), uri)


def _restarted(context: Context):
    if not context.restart:
        raise Unavailable("a way to start the controller again")
    context.restart()


# --- Tokens, signed by the operator ---


def _token(change: Callable[[Draft], dict]) -> Callable[[Draft], None]:
    def bend(draft):
        draft.token = None
        draft.token_claims |= change(draft)

    return bend


_bent("token that has expired", "token_expired", _token(lambda d: {"exp": d.context.unix_time() - 1, "nbf": 1}))
_bent("token that expires now", "token_expired", _token(lambda d: {"exp": d.context.unix_time(), "nbf": 1}))
_bent(
    "token of tomorrow", "token_not_yet_valid", _token(lambda d: {"nbf": d.context.unix_time() + 86_400, "exp": 2**40})
)
_bent(
    "token of a minute ahead",
    "token_not_yet_valid",
    _token(lambda d: {"nbf": d.context.unix_time() + 60, "exp": 2**40}),
)
_bent("token without a time", NO_ANSWER, _token(lambda d: {"nbf": 1_000, "exp": 1_000}))
_bent("token for another vehicle", "wrong_vehicle", _token(lambda d: {"aud": ELSEWHERE}))
_bent("token for an array of vehicles", NO_ANSWER, _token(lambda d: {"aud": [d.context.vehicle]}))
_bent("token for the other step", "wrong_step", _token(lambda d: {"steps": [d.context.other_step]}))
_bent("token for one step twice", NO_ANSWER, _token(lambda d: {"steps": [d.context.step] * 2}))
_bent("token for nine steps", NO_ANSWER, _token(lambda d: {"steps": [d.context.step, *map(str, range(8))]}))
_bent("token for a wildcard", NO_ANSWER, _token(lambda d: {"steps": ["*"]}))
for _name in ("iss", "sub", "jti"):
    _bent(f"token with an empty {_name}", NO_ANSWER, put("token_claims", (_name,), ""))
    _bent(f"token with 129 bytes of {_name}", NO_ANSWER, put("token_claims", (_name,), "a" * 129))
    _bent(f"token with 129 bytes of {_name} in 65 characters", NO_ANSWER, put("token_claims", (_name,), "é" * 64 + "a"))
_bent(
    "token of another device",
    NO_ANSWER,
    _token(lambda d: {"cnf": {"jwk": proto.jwk(Ed25519PrivateKey.generate().public_key())}}),
)
_bent(
    "token whose device key is for X25519",
    NO_ANSWER,
    _token(lambda d: {"cnf": {"jwk": proto.jwk(X25519PrivateKey.generate().public_key())}}),
)

# --- Signatures by another hand, or by none ---

_SECRETS = {
    "raw": lambda key: key.public_bytes_raw(),
    "JWK": lambda key: proto.to_json(proto.jwk(key)),
    "PEM": lambda key: key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
}


def _resigned(text: str, header: dict, sign: Callable[[bytes], bytes]) -> str:
    """A JWS with the same payload under another header and signature."""
    signed = proto.base64url(proto.to_json(header)) + "." + text.split(".")[1]
    return signed + "." + proto.base64url(sign(signed.encode()))


def _genuine_token_header(draft: Draft) -> dict:
    return dict(proto.SignedText.read(draft.context.rider.token).header)


def _token_by(key_of: Callable[[Draft], Ed25519PrivateKey], own_name: bool) -> Callable[[Draft], None]:
    def bend(draft):
        key = key_of(draft)
        header = proto.token_header(key.public_key()) if own_name else _genuine_token_header(draft)
        draft.token = _resigned(draft.context.rider.token, header, key.sign)

    return bend


def _token_with(alg: str, sign: Callable[[Draft, bytes], bytes]) -> Callable[[Draft], None]:
    def bend(draft):
        header = _genuine_token_header(draft) | {"alg": alg}
        draft.token = _resigned(draft.context.rider.token, header, lambda signed: sign(draft, signed))

    return bend


def _command_with(header: dict, sign: Callable[[Draft, bytes], bytes]) -> Callable[[Draft], None]:
    def bend(draft):
        draft.signed = _resigned(draft.signed_command(), header, lambda signed: sign(draft, signed))

    return bend


def _operator(draft: Draft) -> Ed25519PrivateKey:
    if not draft.context.operator:
        raise Unavailable("the operator's key")
    return draft.context.operator


def _bring_a_key(draft: Draft):
    draft.device = Ed25519PrivateKey.generate()
    draft.header |= {"jwk": proto.jwk(draft.device.public_key())}


def _send_the_token(draft: Draft):
    draft.signed = draft.context.rider.token


def _flipped(text: str) -> str:
    """The JWS with one bit of its signature changed."""
    head, _, signature = text.rpartition(".")
    return f"{head}.{proto.base64url(_flip_bit(proto.from_base64url(signature)))}"


def _put_token(change: Callable[[str], str]) -> Callable[[Draft], None]:
    def bend(draft):
        draft.token = change(draft.context.rider.token)

    return bend


def _put_signed(change: Callable[[str], str]) -> Callable[[Draft], None]:
    def bend(draft):
        draft.signed = change(draft.signed_command())

    return bend


_PLAIN = {"alg": "Ed25519", "typ": "step-command+jwt"}
_new_key = lambda draft: Ed25519PrivateKey.generate()  # noqa: E731

_bent("token by another operator", NO_ANSWER, _token_by(_new_key, own_name=True))
_bent("token by another operator in this one's name", NO_ANSWER, _token_by(_new_key, own_name=False))
_bent("token by the device itself", NO_ANSWER, _token_by(lambda d: d.device, own_name=False))
_bent("token with its signature changed", NO_ANSWER, _put_token(_flipped))
_bent("token without its signature", NO_ANSWER, _put_token(lambda t: t.rpartition(".")[0] + "."))
_bent("token in two parts", NO_ANSWER, _put_token(lambda t: t.rpartition(".")[0]))
_bent("token in four parts", NO_ANSWER, _put_token(lambda t: t + ".AA"))
_bent("token with padding", NO_ANSWER, _put_token(lambda t: t + "=="))
_bent("token with a line's end", NO_ANSWER, _put_token(lambda t: t + "\n"))
_bent("token empty", NO_ANSWER, _put_token(lambda t: ""))
_bent("token with alg none", NO_ANSWER, _token_with("none", lambda d, signed: b""))
_bent("token with alg None", NO_ANSWER, _token_with("None", lambda d, signed: b""))
_bent("token with alg EdDSA", NO_ANSWER, _token_with("EdDSA", lambda d, m: _operator(d).sign(m)))
_bent("command with alg EdDSA", NO_ANSWER, _command_with(_PLAIN | {"alg": "EdDSA"}, lambda d, m: d.device.sign(m)))
for _how, _secret in _SECRETS.items():
    _bent(
        f"token with HS256 and the operator's public key as the secret ({_how})",
        NO_ANSWER,
        _token_with("HS256", lambda d, m, s=_secret: hmac.digest(s(_operator(d).public_key()), m, "sha256")),
    )
    _bent(
        f"command with HS256 and the device's public key as the secret ({_how})",
        NO_ANSWER,
        _command_with(
            _PLAIN | {"alg": "HS256"}, lambda d, m, s=_secret: hmac.digest(s(d.device.public_key()), m, "sha256")
        ),
    )
_bent("command with alg none", NO_ANSWER, _command_with(_PLAIN | {"alg": "none"}, lambda d, signed: b""))
_bent("command by another key", NO_ANSWER, _command_with(_PLAIN, lambda d, m: Ed25519PrivateKey.generate().sign(m)))
_bent("command by another rider", NO_ANSWER, _command_with(_PLAIN, lambda d, m: d.context.stranger.device.sign(m)))
_bent("command by the operator", NO_ANSWER, _command_with(_PLAIN, lambda d, m: _operator(d).sign(m)))
_bent("command by a key that it brings along", NO_ANSWER, _bring_a_key)
_bent("command with its signature changed", NO_ANSWER, _put_signed(_flipped))
_bent("command without its signature", NO_ANSWER, _put_signed(lambda t: t.rpartition(".")[0] + "."))
_bent("command in two parts", NO_ANSWER, _put_signed(lambda t: t.rpartition(".")[0]))
_bent("command in four parts", NO_ANSWER, _put_signed(lambda t: t + "."))
_bent("command with a line's end inside", NO_ANSWER, _put_signed(lambda t: t + "\n"))
_bent("command in quotes", NO_ANSWER, _put_signed(lambda t: f'"{t}"'))
_bent("command that is the token", NO_ANSWER, _send_the_token)
_bent("command that was not signed", NO_ANSWER, _put_signed(lambda t: proto.from_base64url(t.split(".")[1]).decode()))

# --- Headers ---

for _value in ("JWT", "jwt", "step-token+jwt", "step-status+jwt", "application/step-command+jwt", "STEP-COMMAND+JWT"):
    _bent(f"header.typ {_value}", NO_ANSWER, put("header", ("typ",), _value))
for _value in ("JWT", "step-command+jwt", "application/step-token+jwt"):
    _bent(f"token header.typ {_value}", NO_ANSWER, put("token_header", ("typ",), _value))
for _value in ("JWE", "JWT", "step-command+jwt", "application/step-command+jwe"):
    _bent(f"envelope.typ {_value}", NO_ANSWER, put("envelope", ("typ",), _value))
for _value in ("jwt", "json", "application/jwt"):
    _bent(f"envelope.cty {_value}", NO_ANSWER, put("envelope", ("cty",), _value))
for _value in ("HPKE-0", "HPKE-3", "HPKE-4-KE", "HPKE-7", "hpke-4", "dir", "ECDH-ES", "none"):
    _bent(f"envelope.alg {_value}", NO_ANSWER, put("envelope", ("alg",), _value))
_NEW_NAME = lambda draft: proto.thumbprint(Ed25519PrivateKey.generate())  # noqa: E731
for _layer in ("token_header", "envelope"):
    _bent(f"{_title(_layer)}.kid of another key", NO_ANSWER, put(_layer, ("kid",), _NEW_NAME))
    _bent(f"{_title(_layer)}.kid empty", NO_ANSWER, put(_layer, ("kid",), ""))
    _bent(
        f"{_title(_layer)}.kid padded", NO_ANSWER, put(_layer, ("kid",), lambda d, n=_layer: getattr(d, n)["kid"] + "=")
    )
_bent("header with kid", NO_ANSWER, put("header", ("kid",), lambda d: proto.thumbprint(d.device)))
for _name, _value in {"crit": ["exp"], "b64": False, "jku": "https://example.com", "x5c": []}.items():
    _bent(f"header with {_name}", NO_ANSWER, put("header", (_name,), _value))
    _bent(f"token header with {_name}", NO_ANSWER, put("token_header", (_name,), _value))
for _name, _value in {
    "enc": "A256GCM",
    "zip": "DEF",
    "crit": ["zip"],
    "ek": ANOTHER_16_BYTES,
    "psk_id": "",
    "epk": {},
    "apu": "",
}.items():
    _bent(f"envelope with {_name}", NO_ANSWER, put("envelope", (_name,), _value))

# --- Characters that Unicode holds to be the same, and JSON does not ---

KELVIN = "\u212a"  # Canonically equivalent to K.


def _kelvin_name(layer: str) -> Callable[[Draft], None]:
    """The `kid` with a Kelvin sign for a K, if it has a K."""

    def bend(draft):
        parent, last = _parent(draft, layer, ("kid",))
        if "K" not in parent[last]:
            raise Unavailable("a key with a K in its name")
        parent[last] = parent[last].replace("K", KELVIN)

    return bend


_bent("envelope.alg with a Kelvin sign", NO_ANSWER, put("envelope", ("alg",), f"HP{KELVIN}E-4"))
_bent(
    "token claims.cnf.jwk.kty with a Kelvin sign", NO_ANSWER, put("token_claims", ("cnf", "jwk", "kty"), f"O{KELVIN}P")
)
_bent("envelope.kid with a Kelvin sign", NO_ANSWER, _kelvin_name("envelope"))
_bent("token header.kid with a Kelvin sign", NO_ANSWER, _kelvin_name("token_header"))
_bent("claims.nonce with a Kelvin sign", "malformed", put("claims", ("nonce",), f"{KELVIN}AAAAAAAAAAAAAAAAAAAAA"))

# --- Text that is not JSON, or not an object ---

_NOT_JSON = {
    "empty": lambda value: b"",
    "null": lambda value: b"null",
    "an array": lambda value: b"[" + encode(value) + b"]",
    "a string": lambda value: json.dumps(encode(value).decode()).encode(),
    "cut short": lambda value: encode(value)[:-1],
    "with a byte after it": lambda value: encode(value) + b"x",
    "twice": lambda value: encode(value) * 2,
    "with a NUL after it": lambda value: encode(value) + b"\0",
    "with a trailing comma": lambda value: encode(value)[:-1] + b",}",
    "with a comment": lambda value: b"/**/" + encode(value),
    "in single quotes": lambda value: encode(value).replace(b'"', b"'"),
    "in UTF-16": lambda value: encode(value).decode().encode("utf-16"),
    "with bytes that are not UTF-8": lambda value: encode(value)[:-1] + b',"x":"\xff"}',
    "with an overlong slash": lambda value: encode(value)[:-1] + b',"x":"\xc0\xaf"}',
    "with a surrogate in UTF-8": lambda value: encode(value)[:-1] + b',"x":"\xed\xa0\x80"}',
    "with half a surrogate pair": lambda value: encode(value)[:-1] + b',"x":"\\ud83d"}',
    "with the other half of a surrogate pair": lambda value: encode(value)[:-1] + b',"x":"\\ude97"}',
    "with half a surrogate pair in a name": lambda value: encode(value)[:-1] + b',"\\ud83d":1}',
    "with a raw control character": lambda value: encode(value)[:-1] + b',"x":"\n"}',
    "nested 17 deep": lambda value: encode(value)[:-1] + b',"x":' + b"[" * 16 + b"]" * 16 + b"}",
    "nested a thousand deep": lambda value: b"[" * 1000 + b"]" * 1000,
    "nested and never closed": lambda value: b'{"x":' * 300,
}
for _layer in LAYERS:
    for _how, _write in _NOT_JSON.items():
        _bent(f"{_title(_layer)} {_how}", NO_ANSWER, rewrite(_layer, _write))

_bent(
    "claims nested 16 deep in a member that is not known",
    "malformed",
    rewrite("claims", lambda value: encode(value)[:-1] + b',"x":' + b"[" * 15 + b"]" * 15 + b"}"),
)

# --- The envelope ---


def _part(index: int, change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def changed(payload):
        parts = payload.decode().split(".")
        parts[index] = change(parts[index])
        return ".".join(parts).encode()

    return changed


def _octet_part(index: int, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return _part(index, lambda text: proto.base64url(change(proto.from_base64url(text))))


def _unused_bit(text: str) -> str:
    """The same octets with one of the last character's unused bits set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    if len(text) % 4 == 0:
        raise Unavailable("a part with unused bits")
    return text[:-1] + alphabet[alphabet.index(text[-1]) | 1]


def _flip_bit(octets: bytes, at: int = 0) -> bytes:
    flipped = bytearray(octets)
    flipped[at] ^= 1
    return bytes(flipped)


def _moved_tag(payload: bytes) -> bytes:
    header, enc, iv, ciphertext, _ = payload.decode().split(".")
    octets = proto.from_base64url(ciphertext)
    return f"{header}.{enc}.{iv}.{proto.base64url(octets[:-16])}.{proto.base64url(octets[-16:])}".encode()


def _to_another(draft: Draft):
    draft.recipient = X25519PrivateKey.generate().public_key()


_changed("payload empty", lambda payload: b"")
_changed("payload a full stop", lambda payload: b".")
_changed("payload four full stops", lambda payload: b"....")
_changed("payload a word", lambda payload: b"open")
_changed("payload the prototype's JSON", lambda payload: b'{"position":"open"}')
_changed("payload a megabyte", lambda payload: b"A" * 1_000_000)
_changed("payload a megabyte of full stops", lambda payload: b"." * 1_000_000)
_changed("payload a megabyte of brackets", lambda payload: b"[" * 1_000_000)
_changed("payload not UTF-8", lambda payload: b"\xff\xfe\xfd" + payload)
_changed("payload not ASCII", lambda payload: "é".encode() + payload)
_changed("payload of zeros", lambda payload: bytes(512))
_changed("payload random", lambda payload: os.urandom(1024))
_changed("payload cut in half", lambda payload: payload[: len(payload) // 2])
_changed("payload without its last character", lambda payload: payload[:-1])
_changed("payload with a full stop more", lambda payload: payload + b".")
_changed("payload with a line's end", lambda payload: payload + b"\n")
_changed("payload with a NUL at its end", lambda payload: payload + b"\0")
_changed("payload with a space before it", lambda payload: b" " + payload)
_changed("payload twice", lambda payload: payload * 2)
_changed("payload of one byte too many", lambda payload: payload.ljust(proto.MAX_COMMAND_BYTES + 1, b"A"))
_changed("envelope with a header of other white space", _octet_part(0, lambda header: header + b" "))
_changed("envelope with an initialization vector", _part(2, lambda text: "AAAAAAAAAAAAAAAA"))
_changed("envelope with an authentication tag", _part(4, lambda text: "AAAAAAAAAAAAAAAAAAAAAA"))
_changed("envelope with the tag in its own part", _moved_tag)
_changed("envelope with an encapsulated key of 31 bytes", _octet_part(1, lambda octets: octets[:31]))
_changed("envelope with an encapsulated key of 33 bytes", _octet_part(1, lambda octets: octets + b"\0"))
_changed("envelope without an encapsulated key", _part(1, lambda text: ""))
_changed("envelope with another encapsulated key", _octet_part(1, _flip_bit))
_changed("envelope with the key's unused top bit set", _octet_part(1, lambda o: o[:31] + bytes([o[31] ^ 0x80])))
_changed("envelope without a ciphertext", _part(3, lambda text: ""))
_changed("envelope with 15 bytes of ciphertext", _octet_part(3, lambda octets: octets[:15]))
_changed("envelope with the ciphertext cut short", _octet_part(3, lambda octets: octets[:-1]))
_changed("envelope with its first bit changed", _octet_part(3, _flip_bit))
_changed("envelope with its tag's last bit changed", _octet_part(3, lambda octets: _flip_bit(octets, -1)))
for _index, _which in {1: "key", 3: "ciphertext"}.items():
    _changed(
        f"envelope with padding after the {_which}", _part(_index, lambda text: text + "=" * (-len(text) % 4 or 4))
    )
    _changed(f"envelope with white space in the {_which}", _part(_index, lambda text: text[:9] + "\r\n" + text[9:]))
    _changed(f"envelope with a plus in the {_which}", _part(_index, lambda text: "+" + text[1:]))
_changed("envelope with unused bits set in the key", _part(1, _unused_bit))
_bent("envelope to another controller", NO_ANSWER, _to_another)


def _built(name: str, expected: str | None, build: Callable[[Context], bytes], **more):
    ATTACKS.append(Attack(name, lambda context: (build(context), False), expected, **more))


def _unused_ciphertext_bits(context: Context) -> bytes:
    """White space in the claims until the ciphertext's length leaves unused bits, and one of them set."""
    for pad in range(3):
        bent = draft(context)
        bent.write["claims"] = lambda value, pad=pad: encode(value) + b" " * pad
        payload = bent.payload()
        if len(payload.split(b".")[3]) % 4:
            return _part(3, _unused_bit)(payload)
    raise Unavailable("a part with unused bits")


def _too_long(context: Context) -> bytes:
    """Valid in all but its size."""
    bent = draft(context)
    bent.write["claims"] = lambda value: encode(value) + b" " * 6000
    return bent.payload()


def _flattened(context: Context) -> bytes:
    protected, key, _, ciphertext, _ = draft(context).payload().decode().split(".")
    return proto.to_json({"protected": protected, "encrypted_key": key, "ciphertext": ciphertext})


_built("envelope with unused bits set in the ciphertext", NO_ANSWER, _unused_ciphertext_bits)
_built("envelope longer than 8192 bytes", NO_ANSWER, _too_long)
_built("envelope in the JSON serialization", NO_ANSWER, _flattened)
_built("signed command without an envelope", NO_ANSWER, lambda context: draft(context).signed_command().encode())

# --- Encapsulated keys of small order: the agreed secret is zero, so that anybody can write such a message ---

SMALL_ORDER = {
    "0": "0000000000000000000000000000000000000000000000000000000000000000",
    "1": "0100000000000000000000000000000000000000000000000000000000000000",
    "order 8": "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "order 8, the other": "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "p - 1": "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "p": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "p + 1": "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, "sha256")


def _labeled_expand(suite: bytes, prk: bytes, label: bytes, info: bytes, length: int) -> bytes:
    # One block of HKDF is enough for every length here.
    message = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(prk, message + b"\x01", "sha256")[:length]


def seal_agreed(dh: bytes, enc: bytes, recipient: bytes, aad: bytes, plaintext: bytes) -> bytes:
    """HPKE's Seal in base mode with empty `info` for a Diffie-Hellman result that is known (RFC 9180, 4.1 and 5.1)."""
    kem, suite = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x03"
    shared = _labeled_expand(kem, _labeled_extract(kem, b"", b"eae_prk", dh), b"shared_secret", enc + recipient, 32)
    context = (
        b"\0" + _labeled_extract(suite, b"", b"psk_id_hash", b"") + _labeled_extract(suite, b"", b"info_hash", b"")
    )
    secret = _labeled_extract(suite, shared, b"secret", b"")
    key = _labeled_expand(suite, secret, b"key", context, 32)
    nonce = _labeled_expand(suite, secret, b"base_nonce", context, 12)
    return ChaCha20Poly1305(key).encrypt(nonce, plaintext, aad)


def _small_order(enc: bytes) -> Callable[[Context], bytes]:
    def build(context):
        bent = draft(context)
        header = proto.base64url(bent.written("envelope"))
        recipient = bent.recipient.public_bytes_raw()
        sealed = seal_agreed(bytes(32), enc, recipient, header.encode(), bent.signed_command().encode())
        return f"{header}.{proto.base64url(enc)}..{proto.base64url(sealed)}.".encode()

    return build


for _which, _point in SMALL_ORDER.items():
    _octets = bytes.fromhex(_point)
    _built(f"encapsulated key of small order: {_which}", NO_ANSWER, _small_order(_octets))
    _octets = _octets[:31] + bytes([_octets[31] | 0x80])
    _built(f"encapsulated key of small order: {_which}, top bit set", NO_ANSWER, _small_order(_octets))

# --- The same again, and too late ---


def _obeyed(context: Context, payload: bytes) -> bytes:
    answers = context.exchange(context.step, payload, False)
    if not answers or "refusal" in answers[-1]:
        raise AssertionError(f"the honest command was not obeyed: {answers}")
    return payload


def _replayed_with(bend: Callable[[Draft], None]) -> Callable[[Context], bytes]:
    """A new command, bent, for the challenge of one that was obeyed."""

    def build(context):
        statement = context.ask()
        _obeyed(context, draft(context, statement=statement).payload())
        again = draft(context, statement=statement)
        bend(again)
        return again.payload()

    return build


def _sealed_again(context: Context) -> bytes:
    first = draft(context)
    _obeyed(context, first.payload())
    return first.payload()


def _refused_challenge(context: Context) -> bytes:
    """A challenge is used up by a command that was not obeyed, too."""
    statement = context.ask()
    far = draft(context, statement=statement)
    far.claims["proof"]["located"] = False
    context.exchange(context.step, far.payload(), False)
    return draft(context, statement=statement).payload()


def _late(seconds: float, **ahead: int) -> Callable[[Context], bytes]:
    """Published `seconds` after the challenge, with times that are so much after the statement's clock."""

    def build(context):
        bent = draft(context)
        clock = bent.claims["deadline"] - 5_000
        bent.claims["deadline"] = clock + ahead["deadline"]
        bent.claims["proof"]["time"] = clock + ahead["proof"]
        context.sleep(seconds)
        return bent.payload()

    return build


def _after_restart(context: Context) -> bytes:
    if not context.restart:
        raise Unavailable("a way to start the controller again")
    payload = draft(context).payload()
    context.restart()
    return payload


def _while_moving(context: Context) -> bytes:
    context.exchange(context.step, draft(context).payload(), True)
    return draft(context).payload()


def _while_another_moves(context: Context) -> bytes:
    """It would turn the motion round, if the rider who began it had sent it."""
    other = replace(context, rider=context.stranger)
    target = opposite(other.ask())
    context.exchange(context.step, draft(other, target).payload(), True)
    return draft(context, "close" if target == "open" else "open").payload()


def _older_after_newer(context: Context) -> bytes:
    """A broker keeps the older command back until the newer one was obeyed, within the older one's deadline."""
    older = draft(context)
    newer = draft(context, older.claims["position"])
    _obeyed(context, newer.payload())
    older.claims["position"] = "close" if newer.claims["position"] == "open" else "open"
    return older.payload()


def _older_after_refused(context: Context) -> bytes:
    """The newer one had a good challenge and a bad proof: the rider was told that nothing moves."""
    older, newer = draft(context), draft(context)
    newer.claims["proof"]["located"] = False
    context.exchange(context.step, newer.payload(), False)
    return older.payload()


def _newer_challenge(context: Context) -> bytes:
    first, second = draft(context), draft(context)
    _obeyed(context, first.payload())
    second.claims["position"] = "close" if first.claims["position"] == "open" else "open"
    return second.payload()


def _older_after_misdirected(context: Context) -> bytes:
    """The newer one came on another step's topic."""
    older, newer = draft(context), draft(context)
    context.exchange(context.other_step, newer.payload(), False)
    return older.payload()


_built("dynamic tag's reading used again", "stale_proof", _tag_again())
_built("dynamic tag's reading used again by another rider", "stale_proof", _by_another_rider)
_built("dynamic tag's reading used again after a restart", "stale_proof", _tag_again(_restarted), restarts=True)
_built("dynamic tag's reading older than the last", "stale_proof", _older_reading)
_built("dynamic tag's reading that moved nothing", "stale_proof", _reading_that_moved_nothing)
_built("replay of a command that was obeyed", "replayed", lambda c: _obeyed(c, draft(c).payload()))
_built("replay of a command that asked", "replayed", lambda c: _obeyed(c, draft(c, "unknown").payload()))
_built("replay of a signed command in a new envelope", "replayed", _sealed_again)
_built("challenge used again", "replayed", _replayed_with(lambda d: None))
_built("challenge used again with another deadline", "replayed", _replayed_with(put("claims", ("deadline",), 1)))
_built("challenge that a refused command has used", "replayed", _refused_challenge)
_built("challenge of 10.5 s ago", "expired", _late(10.5, deadline=15_000, proof=5_000))
_built("deadline that has passed on the way", "expired", _late(1.5, deadline=1_000, proof=0))
_built("command from before the controller's start", "expired", _after_restart, restarts=True)
_built("command while the step is moving", "busy", _while_moving)
_built("command that would turn another rider's motion round", "busy", _while_another_moves)
_built("command that is older than the one that was obeyed", "expired", _older_after_newer)
_built("command that is older than one that was refused", "expired", _older_after_refused)
_built("command with a second challenge, after the first was used", "expired", _newer_challenge)
_built("command that is older than one on another topic", "expired", _older_after_misdirected)

# --- Stops ---


def _stop(name: str, expected: str | None, build: Callable[[Context], bytes], **more):
    _built(f"stop {name}", expected, build, **more)


def _limited(context: Context, **claims) -> Rider:
    """The rider's own device with another token."""
    if not context.operator:
        raise Unavailable("the operator's key")
    own = proto.from_json(proto.SignedText.read(context.rider.token).payload)
    return Rider(context.rider.device, proto.sign_token(own | claims, context.operator))


def _by_a_stranger(context: Context) -> Rider:
    """With a token that another operator signed."""
    claims = proto.from_json(proto.SignedText.read(context.rider.token).payload)
    device, operator = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    claims |= {"cnf": {"jwk": proto.jwk(device.public_key())}}
    return Rider(device, proto.sign_token(claims, operator))


def _stopped(context: Context, payload: bytes) -> bytes:
    answers = context.exchange(context.step, payload, False)
    if not answers or "refusal" in answers[-1] or not proto.is_at_rest(answers[-1]):
        raise AssertionError(f"the honest stop was not obeyed: {answers}")
    return payload


def _moves_after_a_stop(mover: Callable[[Context], Context]) -> Callable[[Context], bytes]:
    def build(context):
        kept = draft(mover(context)).payload()
        _stopped(context, context.stop())
        return kept

    return build


def _stop_of_the_run_before(context: Context) -> bytes:
    payload = context.stop()
    _restarted(context)
    return payload


def _without_epoch(context: Context) -> bytes:
    bent = draft(context, "unknown")
    bent.claims["position"] = "stop"
    return bent.payload()


_MOVE = {"challenge": ANOTHER_16_BYTES, "deadline": 1_000, "proof": proto.beacon_proof(1, 0)}
_stop("by a stranger", NO_ANSWER, lambda c: c.stop(_by_a_stranger(c)))
_stop("by a device with another's token", NO_ANSWER, lambda c: c.stop(Rider(c.stranger.device, c.rider.token)))
_stop("by a rider of the other step", "wrong_step", lambda c: c.stop(_limited(c, steps=[c.other_step])))
_stop("by a rider of another vehicle", "wrong_vehicle", lambda c: c.stop(_limited(c, aud=ELSEWHERE)))
_stop("with a token that has expired", "token_expired", lambda c: c.stop(_limited(c, nbf=1, exp=c.unix_time() - 1)))
_stop("with a token of tomorrow", "token_not_yet_valid", lambda c: c.stop(_limited(c, nbf=c.unix_time() + 90, exp=2**40)))
_stop("of another vehicle", "wrong_vehicle", lambda c: c.stop(vehicle=ELSEWHERE))
_stop("of the other step", "wrong_step", lambda c: c.stop(step=c.other_step))
_stop("of another run", "expired", lambda c: c.stop(epoch=ANOTHER_16_BYTES))
_stop("of the run before", "expired", _stop_of_the_run_before, restarts=True)
_stop("with an epoch of 15 bytes", "malformed", lambda c: c.stop(epoch=proto.base64url(bytes(15))))
_stop("without an epoch", "malformed", _without_epoch)
for _name, _value in _MOVE.items():
    _stop(f"with a {_name}", "malformed", lambda c, n=_name, v=_value: c.stop(**{n: v}))
_stop("with all of a move", "malformed", lambda c: c.stop(**_MOVE))
_stop("with crit that names an extension", "malformed", lambda c: c.stop(ext={"x": 1}, crit=["x"]))
_stop("again", "replayed", lambda c: _stopped(c, c.stop()))
_built("command from before a stop", "expired", _moves_after_a_stop(lambda c: c))
_built("command from before another rider's stop", "expired", _moves_after_a_stop(lambda c: replace(c, rider=c.stranger)))
ATTACKS.append(Attack("retained stop", lambda c: (c.stop(), True), "retained", stored=True))

# --- Public keys of small order: whoever names one can sign without a private key ---

ORDER = 2**252 + 27742317777372353535851937790883648493


def _sum(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Points of Ed25519 (RFC 8032, 5.1)."""
    p, d = proto.P, -121665 * pow(121666, -1, proto.P)
    product = d * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, p)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, p)
    return x % p, y % p


def _point(x: int, y: int) -> bytes:
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _torsion() -> list[tuple[int, int]]:
    """The multiples 0 to 7 of a point of order 8."""
    p, y = proto.P, max(proto.SMALL_ORDER_Y - {proto.P - 1})
    square = (y * y - 1) * pow(-121665 * pow(121666, -1, p) * y * y + 1, -1, p)
    x = pow(square, (p + 3) // 8, p)
    if (x * x - square) % p:
        x = x * pow(2, (p - 1) // 4, p) % p
    points = [(0, 1)]
    while len(points) < 8:
        points.append(_sum(points[-1], (x, y)))
    return points


def _small_order_keys() -> dict[bytes, int]:
    """Every encoding of a point of small order that some library reads, and which multiple it is."""
    keys = {}
    for multiple, (x, y) in enumerate(_torsion()):
        keys |= {_point(sign, high): multiple for high in (y, y + proto.P) if high < 2**255 for sign in {x & 1}}
        if x == 0:  # There is no -0, but some libraries read it.
            keys |= {_point(1, high): multiple for high in (y, y + proto.P) if high < 2**255}
    return keys


SMALL_ORDER_KEYS = _small_order_keys()


def forge(key: bytes, message: bytes) -> bytes | None:
    """A signature for a key of small order, if there is one for this message: with S = 0, R has to be -hA."""
    for multiple, point in enumerate(_torsion()):
        r = _point(*point)
        h = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % ORDER
        if (multiple + h * SMALL_ORDER_KEYS[key]) % 8 == 0:
            return r + bytes(32)
    return None


def _by_small_order(key: bytes) -> Callable[[Context], bytes]:
    def build(context):
        if not context.operator:
            raise Unavailable("the operator's key")
        while True:
            bent = draft(context)
            jwk = {"kty": "OKP", "crv": "Ed25519", "x": proto.base64url(key)}
            _token(lambda d: {"cnf": {"jwk": jwk}})(bent)
            signed = bent.signed_command().rpartition(".")[0]
            signature = forge(key, signed.encode())
            if signature:
                bent.signed = f"{signed}.{proto.base64url(signature)}"
                return bent.payload()

    return build


for _index, _key in enumerate(SMALL_ORDER_KEYS):
    _built(f"token of a device key of small order, {_index}", NO_ANSWER, _by_small_order(_key))
del _key


def _larger_s(text: str) -> str:
    """The same signature with S + L for S, which is not below L (RFC 8032, 5.1.7)."""
    head, _, signature = text.rpartition(".")
    octets = proto.from_base64url(signature)
    s = int.from_bytes(octets[32:], "little") + ORDER
    return f"{head}.{proto.base64url(octets[:32] + s.to_bytes(32, 'little'))}"


_bent("command with another S of the same signature", NO_ANSWER, _put_signed(_larger_s))
_bent("token with another S of the same signature", NO_ANSWER, _put_token(_larger_s))

# --- Kept by the broker ---

ATTACKS.append(Attack("retained move", lambda c: (draft(c).payload(), True), "retained", stored=True))
ATTACKS.append(Attack("retained question", lambda c: (draft(c, "unknown").payload(), True), "retained", stored=True))


# --- Where the policy asks for what cannot be copied, and takes no codes ---

STRICT_ATTACKS = [
    Attack(name, _sent(_claim(proof)), "proof_not_accepted")
    for name, proof in {
        "tag that is plain": lambda c, t: proto.tag_proof(_uid(c), _written(c), t),
        "tag that is plain, as before": lambda c, t: proto.tag_proof(_uid(c), _label(c), t),
        "dynamic tag that has lost its query": lambda c, t: proto.tag_proof(c.tag().uid, _uri(c).partition("?")[0], t),
        "tag that is plain, under a dynamic one's UID": lambda c, t: proto.tag_proof(c.tag().uid, _label(c), t),
        "tag that says nothing of the kind": lambda c, t: proto.tag_proof(_uid(c), "Hello", t),
        "code": lambda c, t: proto.code_proof(_written(c), t),
        "code as before": lambda c, t: proto.code_proof(_label(c), t),
        "code of a dynamic tag": lambda c, t: proto.code_proof(_uri(c), t),
    }.items()
]


# --- Where the policy asks for the nearest zone ---

NEAREST_ATTACKS = [
    Attack(f"located, in the zone {zone}", _sent(put("claims", ("proof", "zone"), zone)), "not_near")
    for zone in ("near", "far", "unknown")
]


# --- Where the vehicle must hear the device as well, and hears it nowhere or at the other step ---

HEARING_ATTACKS = [
    Attack("everything but a device that is heard", _sent(lambda d: None), "not_heard"),
    Attack("heard, and nothing else", _sent(_claim(lambda c, t: proto.heard_proof(t))), "proof_not_accepted"),
    Attack("heard, with more to say", _sent(_claim(lambda c, t: proto.heard_proof(t) | {"step": c.step})), "malformed"),
    Attack("dynamic tag without being heard", lambda c: (_with_uri(c, _uri(c)), False), "not_heard"),
]


# --- Where a step is reserved for the device that opened it ---


def _close_by_another(context: Context) -> bytes:
    if context.ask()["position"] == "open":
        _obeyed(context, draft(context).payload())
    _obeyed(context, draft(context, "open").payload())
    return draft(replace(context, rider=context.stranger), "close").payload()


def _eleventh_motion(context: Context) -> bytes:
    tireless = context.new_rider()
    for _ in range(10):
        _obeyed(tireless, draft(tireless).payload())
    return draft(tireless).payload()


RESERVING_ATTACKS = [
    Attack("eleventh motion in a minute", lambda c: (_eleventh_motion(c), False), "too_often"),
    Attack("close under the rider who has just opened", lambda c: (_close_by_another(c), False), "reserved"),
]


# --- What looks odd and has to be obeyed ---


@dataclass(frozen=True)
class Variant:
    """A command that is obeyed, or answered with a challenge, however unusual it looks."""

    name: str
    build: Callable[[Context], tuple[bytes, bool]]

    def __str__(self) -> str:
        return self.name


def _backwards(value: dict) -> bytes:
    return proto.to_json(dict(reversed(value.items())))


def _spaced(value: dict) -> bytes:
    return b" \r\n\t" + json.dumps(value, indent=2, separators=(" , ", " : ")).encode() + b" \n"


def _escaped(value: dict) -> bytes:
    """Every character of every string as an escape, names too."""
    text = json.dumps(value)
    out, inside = "", False
    for character in text:
        if character == '"':
            inside = not inside
        out += f"\\u{ord(character):04x}" if inside and character != '"' else character
    return out.encode()


def _longest(context: Context) -> tuple[bytes, bool]:
    """As close to 8192 bytes as the lengths of base64url allow."""
    bent = draft(context, "unknown")
    # Base64url twice makes 16 bytes of 9; a few more to begin with, because each time it rounds up.
    room = (proto.MAX_COMMAND_BYTES - len(bent.payload())) * 9 // 16
    for pad in range(room + 8, 0, -1):
        bent.write["claims"] = lambda value, pad=pad: encode(value) + b" " * pad
        payload = bent.payload()
        if len(payload) <= proto.MAX_COMMAND_BYTES:
            return payload, False
    raise AssertionError("the command is too long without padding")


def _period_before(context: Context) -> tuple[bytes, bool]:
    """Not in a period's last seconds, for then it could be two periods old when it arrives."""
    _, period = context.beacons.get(context.step, (b"", 8))
    left = period - context.unix_time() % period
    if left <= 3:
        context.sleep(left + 0.1)
    return _with_minor(context, context.minor(context.step, -1)), False


def _before_nine_more(context: Context) -> bytes:
    bent = draft(context)
    for _ in range(9):
        context.ask()
    return bent.payload()


def _padded(context: Context, position: str | None = None) -> bytes:
    bent = draft(context, position)
    bent.write["claims"] = lambda value: proto.padded(encode(value))
    return bent.payload()


VARIANTS = [Variant("honest move", _sent(lambda d: None)), Variant("honest question", _sent(lambda d: None, "unknown"))]
for _layer in LAYERS:
    for _how, _write in {"in another order": _backwards, "with white space": _spaced}.items():
        VARIANTS.append(Variant(f"{_title(_layer)} {_how}", _sent(rewrite(_layer, _write), "unknown")))
for _layer in ("envelope", "header", "token_header"):
    VARIANTS.append(Variant(f"{_title(_layer)} in escapes", _sent(rewrite(_layer, _escaped), "unknown")))
for _layer, _path in _OPEN:
    for _how, _members in {
        "with ext": {"ext": _EXTENSIONS},
        "with an empty ext": {"ext": {}},
        "with an ext that has names of claims": {"ext": {"position": "close", "crit": ["x"], "ext": 1, "exp": 0}},
    }.items():
        VARIANTS.append(Variant(f"{_title(_layer, _path)} {_how}", _sent(_extend(_layer, _path, _members))))
VARIANTS += [
    Variant("proof by a code, with ext", _sent(_claim(lambda c, t: proto.code_proof(_label(c), t) | {"ext": _EXTENSIONS}))),
    Variant("token from 20 s ahead", _sent(_token(lambda d: {"nbf": d.context.unix_time() + 20, "exp": 2**40}))),
    Variant("token with 128 bytes of names", _sent(_token(lambda d: {n: "é" * 64 for n in ("iss", "sub", "jti")}))),
    Variant("proof with the other step as strong", _sent(_beacons(("mine", -60), ("other", -60)))),
    Variant("proof with a weaker beacon of no step", _sent(_beacons(("mine", -60), ("none", -80)))),
    *[
        Variant(f"proof that is located, in the zone {zone}", _sent(put("claims", ("proof", "zone"), zone)))
        for zone in ("near", "far", "unknown")
    ],
    Variant("command of nearly 8192 bytes", _longest),
    Variant("proof at the limits", _sent(put("claims", ("proof", "beacons", 0, "rssi"), -127))),
    Variant("minor of the period before", _period_before),
    Variant("minor that is right, after two guesses", _guesses(2)),
    Variant("claims nested 16 deep", _sent(_extend("claims", (), {"ext": {"x": json.loads("[" * 14 + "]" * 14)}}))),
    Variant("oldest of ten challenges", lambda c: (_before_nine_more(c), False)),
    Variant("padded question", lambda c: (_padded(c, "unknown"), False)),
    Variant("padded move", lambda c: (_padded(c), False)),
    Variant("dynamic tag", lambda c: (_with_uri(c, _uri(c)), False)),
    Variant("dynamic tag, some readings later", lambda c: (_with_uri(c, [_uri(c) for _ in range(9)][-1]), False)),
]
for _how, _content in {
    "as it is written": _written,
    "as it was written before": _label,
    "with the step's major": lambda c: _label(c, c.majors[c.step]),
    "with the vehicle in upper case": lambda c: _label(c).replace(c.vehicle, c.vehicle.upper()),
    "with white space": lambda c: json.dumps(json.loads(_label(c)), indent=2),
    "in another order": lambda c: json.dumps(dict(reversed(json.loads(_label(c)).items()))),
    "of 512 bytes": lambda c: _label(c).ljust(512),
}.items():
    VARIANTS += [
        Variant(f"tag's label {_how}", _sent(_claim(lambda c, t, s=_content: proto.tag_proof(_uid(c), s(c), t)))),
        Variant(f"code {_how}", _sent(_claim(lambda c, t, s=_content: proto.code_proof(s(c), t)))),
    ]


def named(name: str) -> Attack | Variant:
    for attack in (*ATTACKS, *STRICT_ATTACKS, *NEAREST_ATTACKS, *HEARING_ATTACKS, *RESERVING_ATTACKS, *VARIANTS):
        if attack.name == name:
            return attack
    raise SystemExit(f"no attack is named {name!r}")


def over(session, operator: Ed25519PrivateKey | None, attack: Attack | Variant) -> dict | None:
    """Carries out an attack over a client's session: the statement that answers it, or None."""
    vehicle = session.vehicle
    if getattr(attack, "stored", False):
        raise Unavailable("a controller that is away")

    def exchange_here(step: str, payload: bytes, first_only: bool) -> list[dict]:
        if step != session.step:
            raise Unavailable("a subscription to the other step's status")
        return exchange(session, payload, first_only)

    context = Context(
        vehicle=vehicle.uuid,
        majors=vehicle.majors,
        step=session.step,
        encryption_key=vehicle.encryption_key,
        rider=Rider(vehicle.device, vehicle.token),
        exchange=exchange_here,
        operator=operator,
    )
    payload, retain = attack.build(context)
    session.publish(payload, retain)
    fence = draft(context, "unknown").payload()
    session.publish(fence)
    answer = None
    while True:
        statement = proto.read_status(session.next_status(), vehicle.signing_key)
        if statement.get("command") == proto.digest(payload):
            answer = statement
        if statement.get("command") == proto.digest(fence):
            return answer


def exchange(session, payload: bytes, first_only: bool) -> list[dict]:
    """Publishes a command over a client's session, and waits for the statements that answer it."""
    session.publish(payload)
    answers = []
    while not answers or (not proto.is_at_rest(answers[-1]) and "refusal" not in answers[-1] and not first_only):
        statement = proto.read_status(session.next_status(), session.vehicle.signing_key)
        if statement.get("command") == proto.digest(payload):
            answers.append(statement)
    return answers
