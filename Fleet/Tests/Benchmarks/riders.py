"""Riders who are logged in, and their requests."""

import base64
import hashlib
import json
import os
import random
import time
import uuid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encoded(value: dict) -> str:
    return base64url(json.dumps(value, separators=(",", ":")).encode())


def digest(text: str) -> str:
    return base64url(hashlib.sha256(text.encode()).digest())


class Rider:
    """An account with a login, as the database has it; nobody has typed a password."""

    def __init__(self):
        self.account, self.session = str(uuid.uuid4()), base64url(os.urandom(16))
        self.key, self.access = Ed25519PrivateKey.generate(), f"sfa_{self.session}{base64url(os.urandom(32))}"
        x = base64url(self.key.public_key().public_bytes_raw())
        self.device = digest(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}')
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": x}
        self.header = encoded({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk})
        self.hash = digest(self.access)

    def rows(self, now: int) -> str:
        return (
            "INSERT INTO account (id, email, role, state, terms, terms_accepted, created) "
            f"VALUES ('{self.account}', '{self.account}@example.org', 'rider', 'active', '', {now}, {now});\n"
            "INSERT INTO session (id, account, device, created, used, refresh, refresh_expires, access, access_expires, "
            f"former_access_expires) VALUES ('{self.session}', '{self.account}', '{self.device}', {now}, {now}, "
            f"'{digest('none')}', {now + 86_400}, '{self.hash}', {now + 86_400}, 0);\n"
        )

    def proof(self, method: str, url: str) -> str:
        claims = {
            "jti": base64url(random.randbytes(12)), "htm": method, "htu": url, "iat": int(time.time()), "ath": self.hash,
        }  # fmt: skip
        signed = f"{self.header}.{encoded(claims)}"
        return f"{signed}.{base64url(self.key.sign(signed.encode()))}"

    def request(self, origin: str, method: str, path: str, body: str = "") -> str:
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {origin.removeprefix('https://')}\r\n"
            f"Authorization: DPoP {self.access}\r\nDPoP: {self.proof(method, origin + path)}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
