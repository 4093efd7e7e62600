"""The stepctl protocol, version 1, written from Sources/Core/StepProtocol/PROTOCOL.md alone.

Bytes in, bytes out: no network, no clock. Section numbers are those of that page.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import uuid
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import cmac
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyPair, PyHPKEError

MAX_COMMAND_BYTES = 8192
MAX_JSON_DEPTH = 16
MAX_NUMBER = 2**53 - 1
PADDED_SIZES = (2048, 4096)
CHALLENGE_LIFETIME_MS = 10_000
MAX_DEADLINE_MS = 10_000
MAX_CODE_BYTES = 2953
MAX_NOTICE_BYTES = 8192
MAX_NOTICE_KEYS = 4
MAX_EVENT_BYTES = 4096
EVENT_SIZES = (640, 1024)
EVENT_WINDOW = 64
MAX_ACCESS_BYTES = 16_384
MAX_CONTENT_BYTES = 512
MAX_CODE_LEAD_S = 86_400
STANDARD_PERIOD_S = 8
SLOTS_MS, LONGEST_CALL_MS = range(100, 1_001), 10_000

REFUSALS = {  # code: whether trying again with a new challenge can help (6)
    "malformed": False,
    "retained": False,
    "wrong_vehicle": False,
    "wrong_step": False,
    "token_not_yet_valid": False,
    "token_expired": False,
    "token_revoked": False,
    "replayed": False,
    "expired": True,
    "proof_not_accepted": False,
    "stale_proof": True,
    "not_near": True,
    "not_heard": True,
    "busy": True,
    "reserved": True,
    "too_often": True,
    "stopped": True,
    "vehicle_moving": True,
    "obstructed": True,
    "approaching": True,
    "blind": True,
    "unavailable": True,
}
FAULTS = ("interrupted", "obstructed", "timeout", "driver", "vehicle_moving", "stopped", "end_missed", "sensor")


class ProtocolError(Exception):
    """What was read is not what the page demands."""


# --- Encodings (3) ---


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Refuses padding, other characters, white space and unused bits that are set."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ProtocolError("not base64url") from error
    if base64url(data) != text:
        raise ProtocolError("not canonical base64url")
    return data


def digest(payload: bytes) -> str:
    """How a statement names the payload that it answers."""
    return base64url(hashlib.sha256(payload).digest())


def to_json(value) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def from_json(data: bytes):
    """RFC 8259 without repeated names, bytes after the value, deep nesting, or half a surrogate pair.

    What is no whole number of this page becomes a float, which no check takes for one.
    """

    def once(pairs):
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ProtocolError("a member is repeated")
        return members

    def never(constant):
        raise ProtocolError(f"{constant} is not JSON")

    def whole(digits):
        # `-0` is none, and Python reads no more than 4,300 digits.
        return float(digits) if digits == "-0" or len(digits) > 20 else int(digits)

    try:
        text = data.decode("utf-8")
        if _depth(text) > MAX_JSON_DEPTH:
            raise ProtocolError("nested too deep")
        value = json.loads(text, object_pairs_hook=once, parse_int=whole, parse_constant=never)
        to_json(value)  # Raises where there is half a surrogate pair.
        return value
    except ValueError as error:
        raise ProtocolError("not JSON") from error


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def jwk(key) -> dict:
    """The RFC 8037 JWK of a public or private key."""
    private = isinstance(key, (Ed25519PrivateKey, X25519PrivateKey))
    public = key.public_key() if private else key
    curve = "Ed25519" if isinstance(public, Ed25519PublicKey) else "X25519"
    members = {"kty": "OKP", "crv": curve, "x": base64url(public.public_bytes_raw())}
    return members | ({"d": base64url(key.private_bytes_raw())} if private else {})


def private_key(members: dict):
    kind = {"Ed25519": Ed25519PrivateKey, "X25519": X25519PrivateKey}[members["crv"]]
    return kind.from_private_bytes(from_base64url(members["d"]))


P = 2**255 - 19
SMALL_ORDER_Y = {
    0,
    1,
    P - 1,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
}


def ed25519_key(octets: bytes) -> Ed25519PublicKey:
    """A public key, unless it is of small order or not in its canonical form: `cryptography` looks at the length only."""
    y = int.from_bytes(octets, "little") & ~(1 << 255)
    _require(len(octets) == 32 and y < P and y not in SMALL_ORDER_Y, "not a usable Ed25519 key")
    return Ed25519PublicKey.from_public_bytes(octets)


def x25519_key(octets: bytes) -> X25519PublicKey:
    """A public key, unless every secret that is agreed with it is zero, or it is not in its canonical form."""
    _require(len(octets) == 32 and int.from_bytes(octets, "little") < P, "not a usable X25519 key")
    key = X25519PublicKey.from_public_bytes(octets)
    try:
        X25519PrivateKey.generate().exchange(key)  # Raises on zero. Any private key shows it: all are multiples of 8.
    except ValueError as error:
        raise ProtocolError("an X25519 key of small order") from error
    return key


def thumbprint(key) -> str:
    """RFC 7638 with SHA-256."""
    named = {name: value for name, value in jwk(key).items() if name != "d"}
    return base64url(hashlib.sha256(json.dumps(named, sort_keys=True, separators=(",", ":")).encode()).digest())


# --- Signed and encrypted forms (3, 4.4) ---


def sign(key: Ed25519PrivateKey, header: bytes, payload: bytes) -> str:
    """A compact JWS."""
    signed = base64url(header) + "." + base64url(payload)
    return signed + "." + base64url(key.sign(signed.encode()))


@dataclass(frozen=True)
class SignedText:
    """A compact JWS whose form was checked and whose signature was not."""

    header: dict
    payload: bytes
    signed: bytes
    signature: bytes

    @classmethod
    def read(cls, text: str) -> "SignedText":
        parts = text.split(".")
        if len(parts) != 3 or not text.isascii():
            raise ProtocolError("not a compact JWS")
        header, payload, signature = map(from_base64url, parts)
        return cls(from_json(header), payload, f"{parts[0]}.{parts[1]}".encode(), signature)

    def verified(self, key: Ed25519PublicKey, header: dict) -> dict:
        """The payload, once the header is exactly `header` and the signature is `key`'s."""
        if self.header != header:
            raise ProtocolError("another header")
        try:
            key.verify(self.signature, self.signed)
        except InvalidSignature as error:
            raise ProtocolError("another signature") from error
        return from_json(self.payload)


def command_header() -> dict:
    return {"alg": "Ed25519", "typ": "step-command+jwt"}


def token_header(operator: Ed25519PublicKey) -> dict:
    return {"alg": "Ed25519", "typ": "step-token+jwt", "kid": thumbprint(operator)}


def status_header(controller: Ed25519PublicKey) -> dict:
    return {"alg": "Ed25519", "typ": "step-status+jwt", "kid": thumbprint(controller)}


def vehicle_header(operator: Ed25519PublicKey) -> dict:
    return {"alg": "Ed25519", "typ": "step-vehicle+jwt", "jwk": jwk(operator)}


def notice_header(operator: Ed25519PublicKey) -> dict:
    return {"alg": "Ed25519", "typ": "step-notice+jwt", "kid": thumbprint(operator)}


def event_header(controller: Ed25519PublicKey) -> dict:
    return {"alg": "Ed25519", "typ": "step-event+jwt", "kid": thumbprint(controller)}


def envelope_header(recipient: X25519PublicKey, kind: str = "command") -> dict:
    return {"alg": "HPKE-4", "typ": f"step-{kind}+jwe", "cty": "JWT", "kid": thumbprint(recipient)}


HPKE = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305)


def seal(
    controller: X25519PublicKey,
    plaintext: bytes,
    header: bytes | None = None,
    ephemeral: X25519PrivateKey | None = None,
) -> bytes:
    """A compact JWE with HPKE integrated encryption. `ephemeral` is fixed for worked examples only."""
    protected = base64url(to_json(envelope_header(controller)) if header is None else header)
    pair = ephemeral and KEMKeyPair(hpke_key(ephemeral), hpke_key(ephemeral.public_key()))
    try:
        # X25519 in `cryptography` raises on an agreed secret of zero (RFC 9180, 7.1.4).
        enc, context = HPKE.create_sender_context(hpke_key(controller), eks=pair)
    except ValueError as error:
        raise ProtocolError("a controller key of small order") from error
    ciphertext = context.seal(plaintext, aad=protected.encode())
    return Sealed(f"{protected}.{base64url(enc)}..{base64url(ciphertext)}.".encode(), context.export)


class Sealed(bytes):
    """What was encrypted, and what only its sender and its recipient can compute of it."""

    def __new__(cls, text: bytes, export):
        sealed = super().__new__(cls, text)
        sealed.export = export
        return sealed


def unseal(controller: X25519PrivateKey, payload: bytes, kind: str = "command") -> str:
    """The recipient's side of `seal`: the compact JWS within."""
    if len(payload) > MAX_COMMAND_BYTES or not payload.isascii():
        raise ProtocolError("too long, or not ASCII")
    parts = payload.decode().split(".")
    if len(parts) != 5 or parts[2] or parts[4]:
        raise ProtocolError("not a compact JWE of HPKE")
    header, enc, ciphertext = from_base64url(parts[0]), from_base64url(parts[1]), from_base64url(parts[3])
    if from_json(header) != envelope_header(controller.public_key(), kind):
        raise ProtocolError("another header")
    try:
        context = HPKE.create_recipient_context(enc, hpke_key(controller))
        return context.open(ciphertext, aad=parts[0].encode()).decode("ascii")
    except (ValueError, PyHPKEError) as error:
        raise ProtocolError("not decrypted") from error


def call_key(controller: X25519PrivateKey, payload: bytes) -> bytes:
    """What only the sender of a question and the controller can compute of it (5.1): the controller's way."""
    enc = from_base64url(payload.decode().split(".")[1])
    return HPKE.create_recipient_context(enc, hpke_key(controller)).export(b"stepctl call", 32)


# --- A link (2.2) ---

LINK_PSM, LINK_PERIOD_S, MAX_FRAME_BYTES, MAX_SDU_BYTES, ANSWER_SIZE = 0xB5, 900, 8702, 1024, 1024
COMMAND, ANSWER, NOTICE = 1, 2, 3


def link_name(controller: X25519PublicKey, unix_time: float) -> uuid.UUID:
    """The service UUID by which a vehicle is found."""
    number = int(unix_time // LINK_PERIOD_S).to_bytes(8, "big")
    return _uuid4(hmac.digest(controller.public_bytes_raw(), b"stepctl link\0" + number, "sha256"))


def frame(kind: int, step: str, payload: bytes) -> bytes:
    rest = bytes([kind, len(step)]) + step.encode() + payload
    _require(len(rest) <= MAX_FRAME_BYTES, "too long a frame")
    return len(rest).to_bytes(2, "big") + rest


def take_frames(stream: bytearray) -> list[tuple[int, str, bytes]]:
    """The whole frames at the beginning of the stream, which are removed from it."""
    frames = []
    while len(stream) >= 2:
        length = int.from_bytes(stream[:2], "big")
        _require(1 <= length <= MAX_FRAME_BYTES, "no length of a frame")
        if len(stream) < 2 + length:
            break
        rest = bytes(stream[2 : 2 + length])
        del stream[: 2 + length]
        if rest[0] not in (COMMAND, ANSWER, NOTICE):
            continue
        _require(len(rest) >= 2 and len(rest) >= 2 + rest[1], "no step")
        step = rest[2 : 2 + rest[1]].decode("ascii", errors="replace")
        _require(step == "" if rest[0] == NOTICE else re.fullmatch("[a-z0-9_-]{1,32}", step), "no step")
        frames.append((rest[0], step, rest[2 + rest[1] :]))
    return frames


def brief(command: bytes) -> bytes:
    """A command without what is the same in all of them."""
    _, enc, _, ciphertext, _ = command.split(b".")
    return from_base64url(enc.decode()) + from_base64url(ciphertext.decode())


def from_brief(controller: X25519PublicKey, payload: bytes) -> bytes:
    """The compact form again."""
    header = to_json(envelope_header(controller))
    return f"{base64url(header)}.{base64url(payload[:32])}..{base64url(payload[32:])}.".encode()


def answer_key(controller: X25519PrivateKey, payload: bytes) -> bytes:
    """The key of the answers to a command: the controller's way."""
    enc = from_base64url(payload.decode().split(".")[1])
    return HPKE.create_recipient_context(enc, hpke_key(controller)).export(b"stepctl answer", 32)


def seal_answer(key: bytes, status: bytes) -> bytes:
    salt = os.urandom(16)
    padded = status.ljust(-(-len(status) // ANSWER_SIZE) * ANSWER_SIZE)
    return salt + ChaCha20Poly1305(hmac.digest(key, salt, "sha256")).encrypt(bytes(12), padded, None)


def open_answer(key: bytes, payload: bytes) -> bytes | None:
    """None if it answers another command."""
    try:
        status = ChaCha20Poly1305(hmac.digest(key, payload[:16], "sha256")).decrypt(bytes(12), payload[16:], None)
    except (InvalidTag, ValueError):
        return None
    _require(len(status) % ANSWER_SIZE == 0, "its size tells what it says")
    return status


def _uuid4(code: bytes) -> uuid.UUID:
    code = bytearray(code[:16])
    code[6] = code[6] & 0x0F | 0x40
    code[8] = code[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(code))


def call_frame(key: bytes, challenge: bytes, slot: int) -> uuid.UUID:
    """What the device advertises in a slot (5.1)."""
    return _uuid4(hmac.digest(key, challenge + slot.to_bytes(8, "big"), "sha256"))


def call_data(frame: uuid.UUID) -> bytes:
    """The advertisement with it: one 128-bit service UUID, the low byte first."""
    return bytes([17, 0x07]) + frame.bytes[::-1]


def hpke_key(key):
    return KEMKey.from_pyca_cryptography_key(key)


# --- The form of claims: a check is a function that raises ---


def _require(right: bool, what: str):
    if not right:
        raise ProtocolError(what)


def _number(low=0, high=MAX_NUMBER):
    return lambda value: _require(type(value) is int and low <= value <= high, "not such a number")


def _text(low, high):
    return lambda value: _require(isinstance(value, str) and low <= len(value.encode()) <= high, "not such a text")


def _octets(count):
    def check(value):
        _require(isinstance(value, str), "not base64url")
        _require(len(from_base64url(value)) == count, "another length")

    return check


def _key(load):
    def check(value):
        _octets(32)(value)
        load(from_base64url(value))

    return check


def _match(pattern):
    return lambda value: _require(isinstance(value, str) and bool(re.fullmatch(pattern, value)), "another form")


def _one_of(*values):
    return lambda value: _require(isinstance(value, str) and value in values, "not one of those values")


def _boolean(value):
    _require(isinstance(value, bool), "not true or false")


def _array(item, low, high):
    def check(value):
        _require(isinstance(value, list) and low <= len(value) <= high, "not such an array")
        for each in value:
            item(each)

    return check


def _closed(required: dict, optional: dict | None = None):
    """An object with these members and no others."""

    def check(value):
        _require(isinstance(value, dict), "not an object")
        _require(required.keys() <= value.keys() <= required.keys() | (optional or {}).keys(), "other members")
        for name, member in value.items():
            (required | (optional or {}))[name](member)

    return check


def _object(required: dict, optional: dict | None = None):
    """An object that may have `ext` and `crit` as well (3). Version 1 understands no extension."""

    def check(value):
        _require(isinstance(value, dict), "not an object")
        extensions = value.get("ext", {})
        _require(isinstance(extensions, dict), "ext is not an object")
        if "crit" in value:
            names = value["crit"]
            _require(isinstance(names, list) and all(isinstance(name, str) for name in names), "crit is not a list")
            _require(bool(names) and len(set(names)) == len(names) and set(names) <= extensions.keys(), "another crit")
            raise ProtocolError(f"{names[0]} must be understood")
        closed({name: member for name, member in value.items() if name != "ext"})

    closed = _closed(required, optional)
    return check


def _event(value):
    """An event, and of its extensions the vehicle's place (9.3)."""
    _EVENT_MEMBERS(value)
    if value["kind"] in ("started", "ended", "notice") and "place" in value.get("ext", {}):
        _PLACE_ON_EARTH(value["ext"]["place"])


def _no_control(value):
    _require(not re.search(r"[\x00-\x1f\x7f-\x9f]", value), "a control character")


def _all(*checks):
    def check(value):
        for each in checks:
            each(value)

    return check


_WORD = _match(r"[a-z0-9_]{1,64}")
_UUID = _match(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_STEP = _match(r"[a-z0-9_-]{1,32}")

_BEACON = _object(
    {
        "major": _number(0, 65535),
        "minor": _number(0, 65535),
        "rssi": _number(-127, -1),
        "power": _number(-128, 127),
        "packets": _number(1, 10**6),
    }
)
_UID = _match(r"[0-9A-F]{8}|[0-9A-F]{14}|[0-9A-F]{20}")
_CONTENT = {"content": _text(1, MAX_CONTENT_BYTES)}
_PROOFS = {
    "beacon": {
        "zone": _one_of("immediate", "near", "far", "unknown"),
        "located": _boolean,
        "beacons": _array(_BEACON, 1, 8),
    },
    "nfc": {"uid": _UID} | _CONTENT,
    "qr": _CONTENT,
    "heard": {},
}


def _PROOF(value):
    _require(isinstance(value, dict), "not an object")
    _one_of(*_PROOFS)(value.get("method"))
    _object({"method": _one_of(*_PROOFS), "time": _number()} | _PROOFS[value["method"]])(value)


_STEP_OF_CODE = _object(
    {"id": _STEP, "side": _one_of("left", "right"), "major": _number(0, 65535)},
    {"measured_power": _number(-128, 127), "minor": _number(0, 65535)},
)
_CODE = _object(
    {
        "uuid": _UUID,
        "name": _all(_text(1, 128), _no_control),
        "topic": _all(_text(1, 128), _match(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")),
        "host": _match(r"[A-Za-z0-9.:-]{1,253}"),
        "port": _number(1, 65535),
        "ca": _all(_text(1, MAX_CODE_BYTES), from_base64url),
        "encryption_key": _key(x25519_key),
        "signing_key": _key(ed25519_key),
        "steps": _array(_STEP_OF_CODE, 1, 8),
        "iat": _number(),
    }
)
_ASKING = {
    "vehicle": _UUID,
    "step": _STEP,
    "position": _one_of("unknown", "stop", "open", "close"),
    "nonce": _octets(16),
    "token": _text(0, MAX_COMMAND_BYTES),
}
_MOVING = {"epoch": _octets(16), "challenge": _octets(16), "deadline": _number(), "proof": _PROOF}
_JWK = _closed({"kty": _one_of("OKP"), "crv": _one_of("Ed25519"), "x": _key(ed25519_key)})
_DEVICE = _closed({"jwk": _JWK})
_TOKEN = _object(
    {
        "iss": _text(1, 128),
        "sub": _text(1, 128),
        "aud": _UUID,
        "steps": _array(_STEP, 1, 8),
        "nbf": _number(),
        "exp": _number(),
        "jti": _text(1, 128),
        "cnf": _DEVICE,
    }
)
_PLACE = _object({"seq": _number(), "hash": _octets(32)})
_REVOCATION = _object({"until": _number()}, {"jti": _text(1, 128), "jkt": _octets(32)})
_NOTICE = _object(
    {
        "vehicle": _UUID,
        "seq": _number(),
        "iat": _number(),
        "keys": _array(_JWK, 1, MAX_NOTICE_KEYS),
        "revoked": _array(_REVOCATION, 0, MAX_COMMAND_BYTES),
    },
    {"event_key": _key(x25519_key), "acked": _PLACE},
)
_PLACE_ON_EARTH = _closed(
    {"north": _number(0, 1_800_000_000), "east": _number(0, 3_600_000_000), "error": _number(0, 10_000), "age": _number(0, 60)}
)
_EVENT_MEMBERS = _object(
    {"vehicle": _UUID, "seq": _number(), "prev": _octets(32), "time": _number(), "kind": _WORD},
    {
        "step": _STEP,
        "position": _one_of("open", "close", "unknown", "stop"),
        "jti": _text(1, 128),
        "code": _WORD,
        "cause": _WORD,
        "method": _WORD,
        "zone": _WORD,
        "untold": _number(),
        "notice": _number(),
    },
)
_STATE = {
    "vehicle": _UUID,
    "step": _STEP,
    "position": _one_of("open", "close", "unknown"),
    "phase": _WORD,
    "seq": _number(),
    "epoch": _octets(16),
    "clock": _number(),
}
_POLICY = _object({"proofs": _array(_WORD, 0, MAX_COMMAND_BYTES), "zone": _WORD, "static": _boolean})
_CALL = _object({"slot": _number(SLOTS_MS[0], SLOTS_MS[-1]), "slots": _number(1, LONGEST_CALL_MS)}, {"heard": _STEP})
_ONCOMING = _object({"category": _WORD, "arrival": _number()})
_ABOUT = _object({"version": _all(_text(1, 64), _match(r"[ -~]+")), "time": _number()})
_ANSWER = {
    "fault": _WORD,
    "command": _octets(32),
    "nonce": _octets(16),
    "challenge": _octets(16),
    "policy": _POLICY,
    "refusal": _object({"code": _WORD, "retry": _boolean}),
}


def check_command_claims(claims):
    """The form of 4.1 and 4.2."""
    _object(_ASKING, _MOVING)(claims)
    moves = claims["position"] in ("open", "close")
    needed = _MOVING if moves else {"epoch"} if claims["position"] == "stop" else {}
    _require(all((name in claims) == (name in needed) for name in _MOVING), "members of another position")
    _boolean(claims.get("ext", {}).get("about", False))
    if moves and claims["proof"]["method"] == "beacon":
        majors = [beacon["major"] for beacon in claims["proof"]["beacons"]]
        _require(len(set(majors)) == len(majors), "a beacon twice")


def readable_nonce(claims: dict) -> str | None:
    """The nonce of claims that may be malformed otherwise."""
    try:
        _octets(16)(claims.get("nonce"))
    except ProtocolError:
        return None
    return claims["nonce"]


def check_notice_claims(claims):
    """The form of 9.1."""
    _NOTICE(claims)
    names = [key["x"] for key in claims["keys"]]
    _require(len(set(names)) == len(names), "a key twice")
    for revocation in claims["revoked"]:
        _require(("jti" in revocation) != ("jkt" in revocation), "either jti or jkt")


def sign_notice(claims: dict, operator: Ed25519PrivateKey) -> str:
    return sign(operator, to_json(notice_header(operator.public_key())), to_json(claims))


def read_notice(payload: bytes, keys: list[Ed25519PublicKey], vehicle: str, newest: int | None = None) -> dict | None:
    """What a controller makes of a notice: its claims, or None for one that is not newer than the newest."""
    _require(len(payload) <= MAX_NOTICE_BYTES and payload.isascii(), "too long, or not ASCII")
    signed = SignedText.read(payload.decode())
    claims = from_json(signed.payload)
    check_notice_claims(claims)
    if newest is not None and claims["seq"] <= newest:
        return None
    key = next((key for key in keys if signed.header == notice_header(key)), None)
    _require(key is not None, "by no key that counts")
    signed.verified(key, notice_header(key))
    _require(claims["vehicle"] == vehicle, "for another vehicle")
    return claims


def sign_event(claims: dict, controller: Ed25519PrivateKey) -> str:
    """9.3: filled with spaces, so that its size tells nothing."""
    payload = to_json(claims)
    size = next((size for size in EVENT_SIZES if size >= len(payload)), len(payload))
    return sign(controller, to_json(event_header(controller.public_key())), payload.ljust(size))


def previous_of(events: list[str]) -> str:
    """What the next of a chain of signed events names: the last one, or something random."""
    return digest(events[-1].encode()) if events else base64url(os.urandom(32))


def seal_event(signed: str, operator: X25519PublicKey, ephemeral: X25519PrivateKey | None = None) -> bytes:
    return seal(operator, signed.encode(), to_json(envelope_header(operator, "event")), ephemeral)


def read_event(payload: bytes, operator: X25519PrivateKey, controller: Ed25519PublicKey, vehicle: str) -> tuple[dict, str]:
    """What an operator makes of an event: its claims, and the hash that the next one has as `prev`."""
    _require(len(payload) <= MAX_EVENT_BYTES, "too long")
    signed = unseal(operator, payload, "event")
    claims = SignedText.read(signed).verified(controller, event_header(controller))
    _event(claims)
    _require(claims["vehicle"] == vehicle, "of another vehicle")
    return claims, digest(signed.encode())


def revokes(notice: dict, token: dict) -> bool:
    device = thumbprint(ed25519_key(from_base64url(token["cnf"]["jwk"]["x"])))
    return any(each.get("jti") == token["jti"] or each.get("jkt") == device for each in notice["revoked"])


def check_token_claims(claims):
    """The form of 4.3."""
    _TOKEN(claims)
    _require(len(set(claims["steps"])) == len(claims["steps"]), "a step twice")
    _require(claims["nbf"] < claims["exp"], "no time at which it is valid")


def device_of(claims: dict) -> Ed25519PublicKey:
    """The key in a token's `cnf`."""
    return ed25519_key(from_base64url(claims["cnf"]["jwk"]["x"]))


def check_token(text: str, operator: Ed25519PublicKey, unix_time: int, vehicle: str, step: str) -> dict:
    """The claims of a token that is valid here and now; the error names the refusal."""
    claims = SignedText.read(text).verified(operator, token_header(operator))
    check_token_claims(claims)
    _require(claims["aud"] == vehicle, "wrong_vehicle")
    _require(step in claims["steps"], "wrong_step")
    _require(unix_time >= claims["nbf"] - 30, "token_not_yet_valid")
    _require(unix_time < claims["exp"], "token_expired")
    return claims


# --- What a rider's program sends and believes (4, 5, 7) ---


@dataclass(frozen=True)
class Command:
    claims: dict
    payload: bytes

    @property
    def digest(self) -> str:
        return digest(self.payload)


def is_at_rest(statement: dict) -> bool:
    """Whether nothing more happens by itself (5)."""
    return statement["phase"] in ("idle", "fault")


def beacon_proof(major: int, time: int, rssi: int = -55, packets: int = 10, minor: int = 0) -> dict:
    beacon = {"major": major, "minor": minor, "rssi": rssi, "power": -59, "packets": packets}
    return {"method": "beacon", "time": time, "zone": "immediate", "located": True, "beacons": [beacon]}


def tag_proof(uid: str, content: str, time: int) -> dict:
    return {"method": "nfc", "time": time, "uid": uid, "content": content}


def code_proof(content: str, time: int) -> dict:
    return {"method": "qr", "time": time, "content": content}


def heard_proof(time: int) -> dict:
    return {"method": "heard", "time": time}


def stopping(statement: dict) -> dict:
    """The claims that a command to stop adds: from any statement of the controller's present run."""
    return {"epoch": statement["epoch"]}


def permission(statement: dict, proof: dict) -> dict:
    """The claims that a command to move adds: from the answer to `unknown`, and a proof."""
    return {
        "epoch": statement["epoch"],
        "challenge": statement["challenge"],
        "deadline": statement["clock"] + 5_000,
        "proof": proof,
    }


def padded(claims: bytes) -> bytes:
    """With spaces after it, so that the size of a command tells nothing (4.1)."""
    return claims.ljust(next((size for size in PADDED_SIZES if size >= len(claims)), 0))


def build_command(
    device: Ed25519PrivateKey,
    controller: X25519PublicKey,
    vehicle: str,
    step: str,
    position: str,
    token: str,
    moving: dict | None = None,
    nonce: bytes | None = None,
    ephemeral: X25519PrivateKey | None = None,
) -> Command:
    """`moving`: further claims, also `ext`."""
    nonce = base64url(nonce or os.urandom(16))
    claims = {"vehicle": vehicle, "step": step, "position": position, "nonce": nonce, "token": token}
    claims |= moving or {}
    signed = sign(device, to_json(command_header()), padded(to_json(claims)))
    return Command(claims, seal(controller, signed.encode(), ephemeral=ephemeral))


def read_status(payload: bytes, controller: Ed25519PublicKey) -> dict:
    """The statement in a status, which alone is to be believed."""
    status = from_json(payload)
    _require(isinstance(status, dict) and isinstance(status.get("statement"), str), "no statement")
    statement = SignedText.read(status["statement"]).verified(controller, status_header(controller))
    _object(_STATE, _ANSWER)(statement)
    if statement["phase"] in ("idle", "moving", "fault"):
        _require(("fault" in statement) == (statement["phase"] == "fault"), "fault and phase differ")
    _require(("policy" in statement) == ("challenge" in statement), "challenge and policy go together")
    if call := statement.get("ext", {}).get("call"):
        _CALL(call)
        _require("challenge" in statement, "a call without a challenge")
        _require(call["slot"] * call["slots"] <= LONGEST_CALL_MS, "too long a call")
    if (watch := statement.get("ext", {}).get("watch")) is not None:
        _WORD(watch)
        _require("challenge" in statement, "watch without a challenge")
    if (about := statement.get("ext", {}).get("about")) is not None:
        _ABOUT(about)
        _require("challenge" in statement, "about without a challenge")
    if (oncoming := statement.get("refusal", {}).get("ext", {}).get("oncoming")) is not None:
        _ONCOMING(oncoming)
    _boolean(statement.get("policy", {}).get("ext", {}).get("both", False))
    if "command" in statement:
        _require(not ("challenge" in statement and "refusal" in statement), "a challenge and a refusal")
        unread = statement.get("refusal", {}).get("code") == "malformed"
        _require("nonce" in statement or unread, "no nonce")
    else:
        _require(not statement.keys() & {"nonce", "challenge", "refusal"}, "an answer to nothing")
    return statement


def read_answer(payload: bytes, controller: Ed25519PublicKey, command: Command) -> dict | None:
    """The statement if it answers `command`; None if it is about something else."""
    statement = read_status(payload, controller)
    if statement.get("command") != command.digest:
        return None
    claims = command.claims
    _require(statement["vehicle"] == claims["vehicle"], "another vehicle")
    _require(statement["step"] == claims["step"], "another step")
    _require(statement.get("nonce") == claims["nonce"], "another nonce")
    if claims["position"] == "unknown":
        _require("challenge" in statement or "refusal" in statement, "no challenge")
        return statement
    _require("challenge" not in statement, "a challenge to what asks for none")
    # A refusal of a stop may come from a later run: it tells the epoch by which to stop.
    is_refused_stop = claims["position"] == "stop" and "refusal" in statement
    _require(statement["epoch"] == claims["epoch"] or is_refused_stop, "another epoch")
    return statement


def sign_token(claims: dict, operator: Ed25519PrivateKey) -> str:
    return sign(operator, to_json(token_header(operator.public_key())), to_json(claims))


def sign_statement(statement: dict, controller: Ed25519PrivateKey) -> str:
    return sign(controller, to_json(status_header(controller.public_key())), to_json(statement))


def status_of(statement: dict, key: Ed25519PrivateKey) -> bytes:
    """The controller's side of `read_status`."""
    plain = {name: statement[name] for name in ("position", "phase", "fault") if name in statement}
    return to_json(plain | {"statement": sign_statement(statement, key)})


# --- What is on a step (8) ---


def rotating_minor(secret: bytes, step: str, period: int, unix_time: int) -> int:
    """8.1."""
    number = (unix_time // period).to_bytes(8, "big")
    code = hmac.digest(secret, b"stepctl beacon minor\0" + step.encode() + b"\0" + number, "sha256")
    return int.from_bytes(code[:2], "big")


def accepted_minors(secret: bytes, step: str, period: int, unix_time: int) -> set[int]:
    return {rotating_minor(secret, step, period, max(0, unix_time - back)) for back in (0, period)}


def label(vehicle: str, step: str) -> str:
    return f"stepctl:{vehicle}/{step}"


def json_label(vehicle: str, step: str | int) -> str:
    """As labels were written before."""
    return to_json({"uuid": vehicle, "stepId": step}).decode()


def is_dynamic(content: str) -> bool:
    """8.3: whether a tag's content is to be judged as a dynamic tag's."""
    return content.startswith("stepctl:") and "?" in content


def step_of_label(content: str, vehicle: str, majors: dict[str, int]) -> str | None:
    """8.2: the step of this vehicle that a label names, None for whatever else it is."""
    found = re.fullmatch(r"stepctl:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([a-z0-9_-]{1,32})", content)
    if found:
        return found[2] if found[1] == vehicle and found[2] in majors else None
    try:
        claims = from_json(content.encode())
        either_case = _match(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
        is_numbered = isinstance(claims, dict) and type(claims.get("stepId")) is int
        _closed({"uuid": either_case, "stepId": _number(0, 65535) if is_numbered else _STEP})(claims)
    except ProtocolError:
        return None
    if claims["uuid"].lower() != vehicle:
        return None
    name = claims["stepId"]
    if str(name) in majors:
        return str(name)
    return next((step for step, major in majors.items() if major == name), None)


def aes_cmac(key: bytes, message: bytes) -> bytes:
    code = cmac.CMAC(algorithms.AES(key))
    code.update(message)
    return code.finalize()


def _sdm_mac(file_read: bytes, uid: bytes, counter: bytes) -> bytes:
    session = aes_cmac(file_read, bytes.fromhex("3CC300010080") + uid + counter)
    return aes_cmac(session, b"")[1::2]


def tag_uri(vehicle: str, step: str, uid: str, counter: int, meta_read: bytes, file_read: bytes, padding=None) -> str:
    """8.3, the tag's side."""
    octets, low_first = bytes.fromhex(uid), counter.to_bytes(3, "little")
    data = b"\xc7" + octets + low_first + (os.urandom(5) if padding is None else padding)
    cbc = Cipher(algorithms.AES(meta_read), modes.CBC(bytes(16))).encryptor()
    encrypted = cbc.update(data) + cbc.finalize()
    mac = _sdm_mac(file_read, octets, low_first)
    return f"stepctl:{vehicle}/{step}?e={encrypted.hex().upper()}&c={mac.hex().upper()}"


def read_tag_uri(content: str, meta_read: bytes, file_read: bytes) -> tuple[str, str, str, int]:
    """8.3, the controller's side: vehicle, step, UID and counter."""
    found = re.fullmatch(
        r"stepctl:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([a-z0-9_-]{1,32})\?e=([0-9A-F]{32})&c=([0-9A-F]{16})",
        content,
    )
    _require(bool(found), "not a dynamic tag's URI")
    vehicle, step, encrypted, mac = found.groups()
    cbc = Cipher(algorithms.AES(meta_read), modes.CBC(bytes(16))).decryptor()
    data = cbc.update(bytes.fromhex(encrypted)) + cbc.finalize()
    uid, counter = data[1:8], data[8:11]
    genuine = hmac.compare_digest(_sdm_mac(file_read, uid, counter), bytes.fromhex(mac))
    _require(genuine and data[0] == 0xC7, "forged")
    return vehicle, step, uid.hex().upper(), int.from_bytes(counter, "little")


# --- The vehicle's code (9) ---


def sign_code(claims: dict, operator: Ed25519PrivateKey) -> str:
    return sign(operator, to_json(vehicle_header(operator.public_key())), to_json(claims))


# --- What a device asks for, and what it gets (9.2) ---


def sign_request(name: str, csr: bytes, device: Ed25519PrivateKey, unix_time: int) -> str:
    header = {"alg": "Ed25519", "typ": "step-request+jwt", "jwk": jwk(device.public_key())}
    return sign(device, to_json(header), to_json({"name": name, "csr": base64url(csr), "iat": unix_time}))


def read_access(text: str, device: Ed25519PublicKey, pinned: Ed25519PublicKey | None = None) -> tuple[dict, dict, bytes]:
    """The claims of the code and of the token, and the certificate, which is still to be checked."""
    _require(len(text.encode()) <= MAX_ACCESS_BYTES, "too long")
    access = from_json(text.encode())
    string = _text(1, MAX_ACCESS_BYTES)
    _object({"vehicle": string, "token": string, "certificate": string}, {"notice": string})(access)
    code, operator = read_code(access["vehicle"])
    if pinned is not None and thumbprint(pinned) != thumbprint(operator):
        _require("notice" in access, "another operator's")
        notice = read_notice(access["notice"].encode(), [pinned], code["uuid"])
        _require(jwk(operator) in notice["keys"], "another operator's")
    signed = SignedText.read(access["token"])
    token = signed.verified(operator, token_header(operator))
    check_token_claims(token)
    _require(token["aud"] == code["uuid"], "for another vehicle")
    _require(token["cnf"]["jwk"] == jwk(device), "for another device")
    return code, token, from_base64url(access["certificate"])


def read_code(
    text: str, pinned: Ed25519PublicKey | None = None, unix_time: int | None = None
) -> tuple[dict, Ed25519PublicKey]:
    """The claims, and the operator's key for people to compare, or for the program to have compared."""
    _require(len(text.encode()) <= MAX_CODE_BYTES, "too long")
    signed = SignedText.read(text)
    _require(isinstance(signed.header, dict), "not a header")
    _JWK(signed.header.get("jwk"))
    operator = ed25519_key(from_base64url(signed.header["jwk"]["x"]))
    _require(pinned is None or pinned.public_bytes_raw() == operator.public_bytes_raw(), "another operator")
    claims = signed.verified(operator, vehicle_header(operator))
    _CODE(claims)
    _require(unix_time is None or claims["iat"] <= unix_time + MAX_CODE_LEAD_S, "signed in the future")
    for name in ("id", "side", "major"):
        values = [step[name] for step in claims["steps"]]
        _require(len(set(values)) == len(values), f"one {name} twice")
    return claims, operator
