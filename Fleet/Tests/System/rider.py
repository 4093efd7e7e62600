"""A rider's device, as the server sees it: by `requests`, with proofs made by joserfc. It shares no code with stepctl."""

import base64
import hashlib
import json
import re
import time
import uuid

import requests
from joserfc import jws
from joserfc.jwk import OKPKey

PASSWORD = "correct horse battery"


class Device:
    """A key, and requests with its proofs."""

    def __init__(self, server):
        self.server = server
        self.key = OKPKey.generate_key("Ed25519")
        self.session = requests.Session()
        self.session.trust_env = False  # No other authorities than ours.
        self.session.verify = server.verify

    def proof(self, method, path, access=None, *, key=None, **changes):
        key = key or self.key
        claims = {"jti": str(uuid.uuid4()), "htm": method, "htu": self.server.url + path, "iat": int(time.time())}
        if access:
            claims["ath"] = digest(access)
        claims |= changes
        header = {"typ": "dpop+jwt", "alg": "EdDSA", "jwk": key.as_dict(private=False)}
        return jws.serialize_compact(header, json.dumps(claims), key, algorithms=["EdDSA"])

    def post(self, path, **arguments):
        return self.session.post(self.server.url + path, **arguments)

    def codes(self):
        answer = self.post("/oauth/device_authorization", data={"client_id": "stepctl"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def decide(self, user_code, email, password=PASSWORD, decision="allow", **headers):
        fields = {"user_code": user_code, "email": email, "password": password, "decision": decision}
        return self.post("/device", data=fields, headers={"Accept": "application/json", **headers})

    def token(self, proof=None, headers=None, **fields):
        headers = {"DPoP": proof or self.proof("POST", "/oauth/token"), **(headers or {})}
        return self.post("/oauth/token", data={"client_id": "stepctl", **fields}, headers=headers)

    def redeem(self, device_code, proof=None):
        return self.token(
            proof, grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code=device_code)

    def refresh(self, token, proof=None, headers=None):
        return self.token(proof, headers, grant_type="refresh_token", refresh_token=token)

    def login(self, email):
        """The tokens of a new login."""
        codes = self.codes()
        answer = self.decide(codes["user_code"], email)
        assert answer.status_code == 200, answer.text
        answer = self.redeem(codes["device_code"])
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, access, path="/v1/account", method="GET", proof=None, scheme="DPoP", **arguments):
        headers = {
            "Authorization": f"{scheme} {access}", "DPoP": proof or self.proof(method, path, access),
            **arguments.pop("headers", {}),
        }
        return self.session.request(method, self.server.url + path, headers=headers, **arguments)


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def create(device, email, password=PASSWORD):
    """Makes an account and returns the code that was mailed."""
    terms = device.session.get(device.server.url + "/v1/terms").json()["version"]
    answer = device.post("/v1/accounts", json={"email": email, "password": password, "terms": terms})
    assert answer.status_code == 202, answer.text
    return code_in(device.server.mail(email))


def account(device, email, password=PASSWORD):
    code = create(device, email, password)
    answer = device.post("/v1/accounts/confirm", json={"email": email, "code": code})
    assert answer.status_code == 204, answer.text


def code_in(mail):
    return re.search(r"^Subject: .*?(\d{6})$", mail, re.MULTILINE).group(1)


def other(code):
    """Another code than this one."""
    return "123456" if code != "123456" else "654321"
