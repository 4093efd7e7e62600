"""Forged statuses, none of which a rider's program may take for an answer to its command.

A forgery is made of a genuine status. Some need the controller's own key: such a one no attacker can make, but a
program that believes it reads less strictly than the page demands. LIES are the opposite: what a status says outside
its statement is false, and a program has to go by the statement. NEWER are statements with what a later version may add:
a program of version 1 has to believe them.

For a pytest, put a broker between the two, or run `controller.py --forge NAME`: the program has to end with "the step
may have moved" for a forged answer to `open`, and must not send a second command for a forged answer to `unknown`.
"""

import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import stepproto as proto
from attacks import KELVIN, encode


class Unavailable(Exception):
    """There is nothing in this status to forge so."""


@dataclass(frozen=True)
class Genuine:
    """A status, the key that signed it, and an answer to an earlier command."""

    status: bytes
    key: Ed25519PrivateKey
    earlier: bytes

    @property
    def statement(self) -> dict:
        return proto.from_json(proto.SignedText.read(proto.from_json(self.status)["statement"]).payload)


@dataclass(frozen=True)
class Forgery:
    name: str
    build: Callable[[Genuine], bytes]

    def __str__(self) -> str:
        return self.name


FORGERIES: list[Forgery] = []


def _forged(name: str, build: Callable[[Genuine], bytes]):
    FORGERIES.append(Forgery(name, build))


def _text(name: str, change: Callable[[str], str]):
    """Another JWS in the same status."""

    def build(genuine):
        status = proto.from_json(genuine.status)
        return proto.to_json(status | {"statement": change(status["statement"])})

    _forged(name, build)


def _outside(name: str, change: Callable[[bytes], bytes]):
    _forged(name, lambda genuine: change(genuine.status))


def _with(statement: dict, signed: str) -> bytes:
    plain = {name: statement[name] for name in ("position", "phase", "fault") if name in statement}
    return proto.to_json(plain | {"statement": signed})


def _resigned(name: str, change: Callable[[dict], dict]):
    """Other claims, signed by the controller."""

    def build(genuine):
        statement = change(genuine.statement)
        return _with(statement, proto.sign_statement(statement, genuine.key))

    _forged(name, build)


def _rewritten(name: str, write: Callable[[dict], bytes]):
    """Other bytes of claims, signed by the controller."""

    def build(genuine):
        header = proto.to_json(proto.status_header(genuine.key.public_key()))
        return _with(genuine.statement, proto.sign(genuine.key, header, write(genuine.statement)))

    _forged(name, build)


def _headed(name: str, header: Callable[[dict], bytes], sign=None):
    """Another header; `sign` makes the signature, by default the controller's."""

    def build(genuine):
        claims = proto.to_json(genuine.statement)
        text = header(proto.status_header(genuine.key.public_key()))
        signed = f"{proto.base64url(text)}.{proto.base64url(claims)}"
        signature = (sign or (lambda key, message: key.sign(message)))(genuine.key, signed.encode())
        return _with(genuine.statement, f"{signed}.{proto.base64url(signature)}")

    _forged(name, build)


def _without(name: str) -> Callable[[dict], dict]:
    def change(statement):
        if name not in statement:
            raise Unavailable(name)
        return {each: value for each, value in statement.items() if each != name}

    return change


def _put(name: str, value) -> Callable[[dict], dict]:
    def change(statement):
        if name not in statement:
            raise Unavailable(name)
        return statement | {name: value(statement[name]) if callable(value) else value}

    return change


def _doubled(name: str) -> Callable[[dict], bytes]:
    def write(statement):
        if name not in statement:
            raise Unavailable(name)
        return encode(statement, doubled=(name,))

    return write


def _other(value):
    """Another value of the same form."""
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        name = "retry" if "retry" in value else "static"
        return value | {name: not value[name]}
    words = {"open": "close", "close": "open", "unknown": "open", "idle": "moving", "moving": "idle", "fault": "idle"}
    if value in words:
        return words[value]
    if re.fullmatch(r"[0-9a-f-]{36}", value):
        return "00000000-0000-4000-8000-000000000000"
    if len(value) in (22, 43):
        return ("B" if value[0] == "A" else "A") + value[1:]
    return value + "-2"


# --- Claims ---

_POLICY = {"proofs": ["beacon"], "zone": "near", "static": True}
_ALWAYS = ("vehicle", "step", "position", "phase", "seq", "epoch", "clock")
_IN_ANSWERS = ("command", "nonce", "challenge", "policy", "refusal")

for _name in (*_ALWAYS, *_IN_ANSWERS):
    _rewritten(f"{_name} twice", _doubled(_name))
    _resigned(f"{_name} null", _put(_name, None))
    _resigned(f"{_name} an array", _put(_name, []))
    _resigned(f"{_name} true", _put(_name, True))
    if _name != "refusal":  # Without its refusal an answer to a move says that the command is obeyed.
        _resigned(f"{_name} missing", _without(_name))
for _name in ("vehicle", "step", "command", "nonce"):
    _resigned(f"{_name} another", _put(_name, _other))
for _name in ("epoch", "nonce", "challenge", "command"):
    _resigned(
        f"{_name} one byte too long", _put(_name, lambda value: proto.base64url(proto.from_base64url(value) + b"\0"))
    )
    _resigned(f"{_name} padded", _put(_name, lambda value: value + "=="))
for _name in ("seq", "clock"):
    for _value in (-1, 1.5, "1", 2**53):
        _resigned(f"{_name} {_value!r}", _put(_name, _value))
_resigned("with an unknown claim", lambda statement: statement | {"x": 1})
_resigned("vehicle in upper case", _put("vehicle", str.upper))
_resigned("position ajar", _put("position", "ajar"))
for _name, _phase in {"in upper case": "Idle", "of two words": "idle now", "empty": "", "too long": "a" * 65}.items():
    _resigned(f"phase {_name}", _put("phase", _phase))
_resigned("in a fault that it does not name", lambda statement: statement | {"phase": "fault"})
_resigned("with a fault that it is not in", lambda statement: statement | {"phase": "idle", "fault": "timeout"})
_resigned("in a fault that is no word", lambda statement: statement | {"phase": "fault", "fault": "tired!"})
_resigned("in a fault of 65 letters", lambda statement: statement | {"phase": "fault", "fault": "a" * 65})
_resigned(
    "with a challenge and a refusal",
    lambda statement: _granted(statement) | {"refusal": {"code": "busy", "retry": True}},
)
_resigned(
    "with a policy and a refusal",
    lambda statement: _without_challenge(_granted(statement))
    | {"policy": _POLICY, "refusal": {"code": "busy", "retry": True}},
)
_resigned("with a policy and no challenge", lambda statement: _without_challenge(statement) | {"policy": _POLICY})
for _how, _value in {
    "for a reason in upper case": {"code": "Busy", "retry": True},
    "for a reason of two words": {"code": "too busy", "retry": True},
    "for an empty reason": {"code": "", "retry": True},
    "for a reason of 65 letters": {"code": "a" * 65, "retry": True},
    "for a reason that steers the terminal": {"code": "busy\x1b[2J", "retry": True},
    "for a reason with a full-width letter": {"code": "ｂusy", "retry": True},
    "for an unknown reason without retry": {"code": "tired"},
    "with a critical extension": {"code": "busy", "retry": True, "ext": {"x": 1}, "crit": ["x"]},
    "with ext that is no object": {"code": "busy", "retry": True, "ext": []},
    "with an empty crit": {"code": "busy", "retry": True, "ext": {"x": 1}, "crit": []},
    "without retry": {"code": "busy"},
    "without a code": {"retry": True},
    "with an unknown member": {"code": "busy", "retry": True, "x": 1},
    "with retry in words": {"code": "busy", "retry": "true"},
    "that is a string": "busy",
}.items():
    _resigned(f"refusal {_how}", lambda s, value=_value: _without_challenge(s) | {"refusal": value})


def _without_challenge(statement: dict) -> dict:
    return {name: value for name, value in statement.items() if name not in ("challenge", "policy")}


def _granted(statement: dict) -> dict:
    return statement | {"challenge": proto.base64url(bytes(16)), "policy": _POLICY}


def _in_policy(name: str, change: Callable[[dict], dict]):
    def changed(statement):
        if "policy" not in statement:
            raise Unavailable("policy")
        return statement | {"policy": change(statement["policy"])}

    _resigned(f"policy {name}", changed)


for _name, _values in {
    "proofs": (None, True, "beacon", {}, [1], [None], ["beacon", ""], ["Beacon"], ["a" * 65], ["near\x1b[2J"]),
    "zone": (None, True, 1, "", [], "Near", "far away", "a" * 65),
    "static": (None, 0, 1, "true", []),
}.items():
    _in_policy(f"without {_name}", _without(_name))
    for _value in _values:
        _in_policy(f"with {_name} {_value!r}", _put(_name, _value))
_in_policy("with an unknown member", lambda policy: policy | {"x": 1})
_in_policy("with a critical extension", lambda policy: policy | {"ext": {"x": 1}, "crit": ["x"]})
_in_policy("with ext that is no object", lambda policy: policy | {"ext": None})

for _how, _members in {
    "with a critical extension": {"ext": {"x": 1}, "crit": ["x"]},
    "with crit and without ext": {"crit": ["x"]},
    "with crit that names what ext has not": {"ext": {"y": 1}, "crit": ["x"]},
    "with crit that names a claim": {"ext": {"y": 1}, "crit": ["phase"]},
    "with crit that names one twice": {"ext": {"x": 1}, "crit": ["x", "x"]},
    "with an empty crit": {"ext": {"x": 1}, "crit": []},
    "with crit null": {"ext": {"x": 1}, "crit": None},
    "with crit a string": {"ext": {"x": 1}, "crit": "x"},
    "with ext null": {"ext": None},
    "with ext an array": {"ext": []},
    "with ext a string": {"ext": "x"},
}.items():
    _resigned(_how, lambda statement, members=_members: statement | members)


for _how, _write in {
    "empty": lambda statement: b"",
    "null": lambda statement: b"null",
    "an array": lambda statement: b"[" + encode(statement) + b"]",
    "with a byte after them": lambda statement: encode(statement) + b"x",
    "cut short": lambda statement: encode(statement)[:-1],
    "nested too deep": lambda statement: encode(statement)[:-1] + b',"x":' + b"[" * 40 + b"]" * 40 + b"}",
    "with bytes that are not UTF-8": lambda statement: encode(statement)[:-1] + b',"x":"\xff"}',
}.items():
    _rewritten(f"claims {_how}", _write)

# --- Signature and header ---

_SECRETS = {
    "raw": lambda key: key.public_bytes_raw(),
    "JWK": lambda key: proto.to_json(proto.jwk(key)),
    "PEM": lambda key: key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
}


def _kelvin_name(header: dict) -> bytes:
    if "K" not in header["kid"]:
        raise Unavailable("a key with a K in its name")
    return proto.to_json(header | {"kid": header["kid"].replace("K", KELVIN)})


def _changed_claim(name: str) -> Callable[[str], str]:
    def change(text):
        header, payload, signature = text.split(".")
        claims = _put(name, _other)(proto.from_json(proto.from_base64url(payload)))
        return f"{header}.{proto.base64url(proto.to_json(claims))}.{signature}"

    return change


def _by_stranger(own_name: bool) -> Callable[[Genuine], bytes]:
    def build(genuine):
        stranger = Ed25519PrivateKey.generate()
        named = stranger if own_name else genuine.key
        header = proto.to_json(proto.status_header(named.public_key()))
        return _with(genuine.statement, proto.sign(stranger, header, proto.to_json(genuine.statement)))

    return build


for _name in (*_ALWAYS, *_IN_ANSWERS):
    _text(f"{_name} another, not signed", _changed_claim(_name))
_forged("by another key", _by_stranger(own_name=True))
_forged("by another key in the controller's name", _by_stranger(own_name=False))
_text("without its signature", lambda text: text.rpartition(".")[0] + ".")
_text("in two parts", lambda text: text.rpartition(".")[0])
_text("in four parts", lambda text: text + ".")
_text("with its signature padded", lambda text: text + "==")
_text("with its signature cut short", lambda text: text[:-4])
_text("with a line's end", lambda text: text + "\n")
_headed("with alg none", lambda header: proto.to_json(header | {"alg": "none"}), lambda key, message: b"")
_headed("with alg EdDSA", lambda header: proto.to_json(header | {"alg": "EdDSA"}))
_headed("with an extension in the header", lambda header: proto.to_json(header | {"ext": {"x": 1}}))
for _how, _secret in _SECRETS.items():
    _headed(
        f"with HS256 and the public key as the secret ({_how})",
        lambda header: proto.to_json(header | {"alg": "HS256"}),
        lambda key, message, secret=_secret: hmac.digest(secret(key.public_key()), message, "sha256"),
    )
for _value in ("JWT", "step-token+jwt", "step-command+jwt", "application/step-status+jwt"):
    _headed(f"with typ {_value}", lambda header, value=_value: proto.to_json(header | {"typ": value}))
for _name in ("alg", "typ", "kid"):
    _headed(f"without {_name}", lambda header, name=_name: proto.to_json(_without(name)(header)))
    _headed(f"with {_name} twice", lambda header, name=_name: encode(header, doubled=(name,)))
_headed("with the name of another key", lambda header: proto.to_json(header | {"kid": proto.base64url(bytes(32))}))
_headed("with the name of its key but for a Kelvin sign", _kelvin_name)
_headed("with a critical header", lambda header: proto.to_json(header | {"crit": ["exp"]}))
_headed("with a key of its own", lambda header: proto.to_json(header | {"jwk": {}}))

# --- Outside the statement ---

_outside("status empty", lambda status: b"")
_outside("status null", lambda status: b"null")
_outside("status an array", lambda status: b"[" + status + b"]")
_outside("status cut short", lambda status: status[:-1])
_outside("status with a byte after it", lambda status: status + b"x")
_outside("status not UTF-8", lambda status: b"\xff" + status)
_outside("status a megabyte", lambda status: status + b" " * 1_000_000 + b"x")
_outside("status of brackets", lambda status: b"[" * 100_000)
_outside("status with two statements", lambda status: encode(json.loads(status), doubled=("statement",)))
_outside("status without its statement", lambda status: proto.to_json(_without("statement")(json.loads(status))))
_outside("status with claims in place of the statement", lambda status: _unsigned(status))
_forged("status of earlier", lambda genuine: genuine.earlier)


def _unsigned(status: bytes) -> bytes:
    plain = json.loads(status)
    return proto.to_json(plain | {"statement": json.loads(proto.SignedText.read(plain["statement"]).payload)})


# --- Lies outside a true statement ---

LIES: list[Forgery] = []


def _lie(name: str, change: Callable[[dict], dict]):
    LIES.append(Forgery(name, lambda genuine: proto.to_json(change(proto.from_json(genuine.status)))))


_lie("an unknown member", lambda status: status | {"x": 1})
_lie("a critical extension", lambda status: status | {"ext": {"x": 1}, "crit": ["x"]})
_lie("crit without ext", lambda status: status | {"ext": 1, "crit": 1})
_lie("no state", lambda status: {"statement": status["statement"]})
_lie("another position", lambda status: status | {"position": _other(status["position"])})
_lie("another phase", lambda status: status | {"phase": "moving" if status["phase"] == "idle" else "idle"})
_lie("a fault", lambda status: status | {"phase": "fault", "fault": "obstructed"})


# --- What only looks odd: a statement of a later version that a reader of version 1 has to believe ---

NEWER: list[Forgery] = []


def _newer(name: str, change: Callable[[dict], dict]):
    NEWER.append(Forgery(name, lambda genuine: proto.status_of(change(genuine.statement), genuine.key)))


def _nested(name: str, members: dict) -> Callable[[dict], dict]:
    return lambda statement: statement | ({name: statement[name] | members} if name in statement else {})


_newer("an extension", lambda statement: statement | {"ext": {"x": [{"y": None}], "": 1}})
_newer("an empty extension", lambda statement: statement | {"ext": {}})
_newer("an extension that has names of claims", lambda s: s | {"ext": {"phase": "fault", "crit": ["x"], "command": 1}})
_newer("an extension in the policy", _nested("policy", {"ext": {"x": 1}}))
_newer("an extension in the refusal", _nested("refusal", {"ext": {"x": 1}}))
_newer("more ways to prove presence", _nested("policy", {"proofs": ["uwb", "beacon", "nfc", "qr", "a" * 64]}))


def named(name: str) -> Forgery:
    for forgery in (*FORGERIES, *LIES, *NEWER):
        if forgery.name == name:
            return forgery
    raise SystemExit(f"no forgery is named {name!r}")
