"""A fleet's server, as far as stepctl sees it, in the standard library and `cryptography`: an independent reading of the
API's description. Faults can be played.

It is no server for use: everything is in memory, passwords are compared as text, and one thread answers at a time.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509.oid import NameOID


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def padless(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> int:
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp())


class Authority:
    """A CA, and certificates by it, in files."""

    def __init__(self, folder: Path, name: str = "a CA of a test"):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._issue(self.name, self.key.public_key(), is_authority=True)
        self.file = folder / "ca.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, host: str = "localhost") -> Path:
        """The certificate of a server with its key and the CA's own, which servers often send along."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._issue(name, key.public_key(), host=host)
        file = self.folder / f"{host}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
            + self.certificate.public_bytes(serialization.Encoding.PEM)
        )
        return file

    def controller(self, request: x509.CertificateSigningRequest) -> x509.Certificate:
        return self._issue(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "controller")]), request.public_key())

    @property
    def fingerprint(self) -> str:
        return self.certificate.fingerprint(hashes.SHA256()).hex().upper()

    def _issue(self, name, key, host=None, is_authority=False) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: str, detail: str, oauth: bool = False, **members):
        super().__init__(code)
        body = {"error": code, "error_description": detail} if oauth else {
            "type": "about:blank", "title": code, "status": status, "detail": detail, "code": code, **members
        }
        self.status, self.body = status, body


class FleetServer:
    """The server, on a port of its own.

    `before` and `after` are called with the method and the path; `after` also gets the handler, and may answer in its
    own way by returning True. `lost` is how many answers are to be lost after the work was done.
    """

    def __init__(self, certificate: Path, issue_access=None, ahead: int = 0):
        self.accounts = {"anna@example.org": "correct horse"}
        self.pending = {}  # email -> (password, code)
        self.obvious: set[str] = set()  # Passwords that it does not take.
        self.vehicles: list[dict] = []
        self.zones: list[dict] = []
        self.standing: set[str] = set()  # The vehicles that stand in every zone.
        self.parking: dict | None = None  # Where bookings end.
        self.page = 200  # How many bookings are in one answer.
        self.bookings: dict[str, dict] = {}
        self.grants: dict[str, dict] = {}
        self.families: dict[str, dict] = {}
        self.used_proofs: set[str] = set()
        self.answers: dict[tuple, tuple] = {}
        self.requests: list[tuple[str, str]] = []
        self.keys: list[str] = []
        self.codes: dict[str, str] = {}
        self.enrolled: list[dict] = []
        self.authority: Authority | None = None
        self.issue_access = issue_access
        self.ahead = ahead
        self.lost: list[str] = []
        self.fault = None
        self.lifetime = 600
        self.grant_lifetime = 600
        self.interval = 1
        self.slow_down = 0
        self.refresh_delay = 0.0
        self.terms = "2026-11"
        self.accepted = {"anna@example.org": "2026-11"}
        self.lock = threading.Lock()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        fleet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def date_time_string(self, timestamp=None):
                return super().date_time_string(fleet.now())

            def log_message(self, *_):
                pass

            def answer(self):
                fleet.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = answer

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # Who goes away in the handshake is a test.

            def finish_request(self, request, address):
                request.settimeout(20)
                super().finish_request(context.wrap_socket(request, server_side=True), address)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def now(self) -> float:
        return time.time() + self.ahead

    # What a test does beside the programs.

    def confirm(self, user_code: str, decision: str = "allow"):
        """As somebody does in a browser."""
        self.decide(user_code, "anna@example.org", decision)

    def decide(self, user_code: str, email: str, decision: str):
        grant = next(grant for grant in self.grants.values() if grant["user_code"] == user_code)
        grant["state"], grant["email"] = ("approved" if decision == "allow" else "denied"), email

    # Requests.

    def answer(self, handler):
        path, _, query = handler.path.partition("?")
        method = handler.command
        self.requests.append((method, path))
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self.fault and self.fault(handler, method, path):
            handler.close_connection = True
            return
        try:
            with self.lock:
                status, content = self.route(handler, method, path, urllib.parse.parse_qs(query), body)
        except Refused as refused:
            status, content = refused.status, refused.body
        except Exception as error:  # noqa: BLE001  The test shows it, and the program sees a broken server.
            status, content = 500, {"code": "failed", "detail": repr(error)}
        if path in self.lost:
            self.lost.remove(path)
            handler.close_connection = True
            with contextlib.suppress(OSError):
                handler.connection.shutdown(2)
            return
        is_text = isinstance(content, str)
        data = content.encode() if is_text else json.dumps(content).encode()
        handler.send_response(status)
        kind = "text/plain" if is_text else "application/problem+json" if status >= 400 else "application/json"
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(0 if status == 204 else len(data)))
        if isinstance(content, dict) and "etag" in content:
            handler.send_header("ETag", content["etag"])
        handler.end_headers()
        if status != 204:
            handler.wfile.write(data)

    def route(self, handler, method, path, query, body):
        parts = path.strip("/").split("/")
        match (method, *parts):
            case ("GET", ".well-known", "oauth-authorization-server"):
                return 200, {
                    "issuer": self.url,
                    "device_authorization_endpoint": f"{self.url}/oauth/device_authorization",
                    "token_endpoint": f"{self.url}/oauth/token",
                    "revocation_endpoint": f"{self.url}/oauth/revoke",
                }
            case ("GET", "healthz"):
                return 200, {"status": "ok"}
            case ("POST", "oauth", "device_authorization"):
                fields = self.form(body)
                assert fields["client_id"] == "stepctl"
                letters = "BCDFGHJKLMNPQRSTVWXZ"
                pick = lambda: "".join(secrets.choice(letters) for _ in range(4))  # noqa: E731
                code, user = secrets.token_urlsafe(32), f"{pick()}-{pick()}"
                self.grants[code] = {"user_code": user, "state": "pending", "ends": time.time() + self.grant_lifetime}
                return 200, {
                    "device_code": code, "user_code": user, "verification_uri": f"{self.url}/device",
                    "verification_uri_complete": f"{self.url}/device?user_code={user}",
                    "expires_in": self.grant_lifetime, "interval": self.interval,
                }
            case ("POST", "device"):
                fields = self.form(body)
                assert "application/json" in handler.headers["Accept"]
                if self.accounts.get(fields["email"]) != fields["password"]:
                    raise Refused(403, "wrong_login", "the address or the password is wrong")
                if self.accepted.get(fields["email"]) != self.terms:
                    if fields.get("terms") != self.terms:
                        raise Refused(403, "terms", "there are new terms")
                    self.accepted[fields["email"]] = self.terms
                self.decide(fields["user_code"], fields["email"], fields["decision"])
                return 200, {}
            case ("POST", "oauth", "token"):
                return self.token(handler, self.form(body))
            case ("POST", "oauth", "revoke"):
                fields = self.form(body)
                for name, family in list(self.families.items()):
                    mine = fields["token"] in (family["refresh"], family["access"])
                    if mine and fields.get("everywhere") == "true":
                        self.families = {n: f for n, f in self.families.items() if f["email"] != family["email"]}
                    elif mine:
                        del self.families[name]
                return 200, {}
            case ("GET", "v1", "terms"):
                return 200, {"version": self.terms, "text": "Be kind to the step."}
            case ("POST", "v1", "accounts"):
                fields = json.loads(body)
                assert fields["terms"] == self.terms and len(fields["password"]) >= 8
                if fields["password"] in self.obvious:
                    raise Refused(400, "password", "this password is too easy to guess")
                self.pending[fields["email"]] = (fields["password"], f"{secrets.randbelow(1000000):06}")
                return 202, {}
            case ("POST", "v1", "accounts", "confirm"):
                fields = json.loads(body)
                password, code = self.pending.get(fields["email"], (None, None))
                if not code or fields["code"] != code:
                    raise Refused(400, "bad_code", "the code is wrong or has expired")
                self.accounts[fields["email"]], self.accepted[fields["email"]] = password, self.terms
                return 204, {}
            case ("POST", "v1", "accounts", "password"):
                fields = json.loads(body)
                if "code" not in fields:
                    self.pending[fields["email"]] = (None, f"{secrets.randbelow(1000000):06}")
                    return 202, {}
                if self.pending.get(fields["email"], (None, None))[1] != fields["code"]:
                    raise Refused(400, "bad_code", "the code is wrong or has expired")
                self.accounts[fields["email"]] = fields["password"]
                self.families = {n: f for n, f in self.families.items() if f["email"] != fields["email"]}
                return 204, {}
            case ("POST", "v1", "enrolments"):
                return 201, self.enrol(json.loads(body))
        if parts[0] != "v1":
            raise Refused(404, "not_found", "no such path")
        email, key = self.who(handler, method, path)
        match (method, *parts[1:]):
            case ("GET", "account"):
                return 200, {"id": str(uuid.uuid4()), "email": email, "role": "rider", "logins": []}
            case ("GET", "account", "export"):
                return 200, {"account": {"email": email}, "bookings": list(self.bookings.values())}
            case ("DELETE", "account"):
                del self.accounts[email]
                return 204, {}
            case ("GET", "vehicles"):
                vehicles = [dict(vehicle) for vehicle in self.vehicles]
                if "zone" in query:
                    if query["zone"][0] not in [zone["name"] for zone in self.zones]:
                        raise Refused(404, "not_found", "no such zone")
                    vehicles = [vehicle for vehicle in vehicles if vehicle["id"] in self.standing]
                if "from" in query:
                    begin, end = seconds(query["from"][0]), seconds(query["to"][0])
                    for vehicle in vehicles:
                        vehicle["free"] = not self.clash(vehicle["id"], begin, end)
                return 200, {"vehicles": vehicles}
            case ("GET", "zones"):
                # In pages of one.
                after = query.get("after", [""])[0]
                left = [zone for zone in sorted(self.zones, key=lambda zone: zone["name"]) if zone["name"] > after]
                return 200, {"zones": left[:1]} | ({"next": left[0]["name"]} if left[1:] else {})
            case ("POST", "bookings"):
                name = handler.headers.get("Idempotency-Key")
                self.keys.append(name)
                if name and (email, name) in self.answers:
                    return self.answers[email, name]
                answer = 201, self.book(email, json.loads(body))
                self.answers[email, name] = answer
                return answer
            case ("GET", "bookings"):
                bookings = [b for b in map(self.state, self.bookings.values()) if b]
                if "after" in query:
                    bookings = bookings[[booking["id"] for booking in bookings].index(query["after"][0]) + 1 :]
                page = bookings[: self.page]
                return 200, {"bookings": page} | ({"next": page[-1]["id"]} if len(bookings) > len(page) else {})
            case ("GET", "bookings", name):
                return 200, self.booking(name)
            case ("PATCH", "bookings", name):
                booking = self.booking(name)
                if handler.headers.get("If-Match") != booking["etag"]:
                    raise Refused(412, "changed", "the booking has changed")
                booking |= {"to": json.loads(body)["to"], "etag": f'"{secrets.token_hex(4)}"'}
                self.bookings[name] = booking
                return 200, booking
            case ("POST", "bookings", name, ("cancel" | "end") as what):
                booking = self.booking(name) | {"state": "cancelled" if what == "cancel" else "ended"}
                if self.parking:
                    booking["parking"] = self.parking
                self.bookings[name] = booking
                return 200, booking
            case ("POST", "bookings", name, "access"):
                booking = self.booking(name)
                if booking["state"] in ("ended", "cancelled"):
                    raise Refused(409, "over", "the booking has ended")
                if seconds(booking["from"]) > self.now() + 86_400:
                    raise Refused(409, "too_early", "it begins in more than 24 hours")
                return 200, self.issue_access(booking, json.loads(body)["request"])
        raise Refused(404, "not_found", "no such path")

    @staticmethod
    def form(body: bytes) -> dict:
        pairs = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
        assert len(dict(pairs)) == len(pairs), "a field twice"
        return dict(pairs)

    # Tokens.

    def proof(self, handler, method: str, path: str, token: str | None) -> str:
        """The thumbprint of the key that has signed the request's proof (RFC 9449 4.3)."""
        oauth = token is None

        def no(what):
            raise Refused(400 if oauth else 401, "invalid_dpop_proof" if oauth else "unauthorized", what, oauth)

        text = handler.headers.get("DPoP") or no("there is no proof")
        head, claims, signature = text.split(".")
        header, claims = json.loads(unpadded(head)), json.loads(unpadded(claims))
        assert header["typ"] == "dpop+jwt" and header["alg"] == "EdDSA" and "d" not in header["jwk"]
        jwk = header["jwk"]
        try:
            key = Ed25519PublicKey.from_public_bytes(unpadded(jwk["x"]))
            key.verify(unpadded(signature), text.rpartition(".")[0].encode())
        except InvalidSignature:
            no("the signature is wrong")
        assert claims["htm"] == method and claims["htu"] == self.url + path, claims
        if claims["jti"] in self.used_proofs:
            no("the proof was used before")
        self.used_proofs.add(claims["jti"])
        if not -120 <= claims["iat"] - self.now() <= 60:
            no("the proof is of another time")
        if token is not None and claims["ath"] != padless(hashlib.sha256(token.encode()).digest()):
            no("the proof is for another token")
        canonical = json.dumps({name: jwk[name] for name in ("crv", "kty", "x")}, separators=(",", ":"))
        return padless(hashlib.sha256(canonical.encode()).digest())

    def token(self, handler, fields: dict):
        key = self.proof(handler, "POST", "/oauth/token", None)
        if fields["grant_type"] == "refresh_token":
            time.sleep(self.refresh_delay)
            for name, family in list(self.families.items()):
                if fields["refresh_token"] in family["old"]:
                    del self.families[name]
                elif fields["refresh_token"] == family["refresh"] and family["key"] == key:
                    return 200, self.tokens(name, family)
            raise Refused(400, "invalid_grant", "the refresh token is not known, or was used before", oauth=True)
        grant = self.grants.get(fields["device_code"])
        if not grant or grant["ends"] < time.time():
            raise Refused(400, "expired_token", "the code has expired", oauth=True)
        if self.slow_down:
            self.slow_down -= 1
            raise Refused(400, "slow_down", "slower", oauth=True)
        if grant["state"] == "pending":
            raise Refused(400, "authorization_pending", "nobody has allowed it yet", oauth=True)
        del self.grants[fields["device_code"]]
        if grant["state"] == "denied":
            raise Refused(400, "access_denied", "it was refused", oauth=True)
        return 200, self.tokens(secrets.token_hex(8), {"key": key, "email": grant["email"], "old": [], "refresh": None})

    def tokens(self, name: str, family: dict) -> dict:
        if family["refresh"]:
            family["old"].append(family["refresh"])
        family |= {
            "refresh": secrets.token_urlsafe(32), "access": secrets.token_urlsafe(32),
            "ends": time.time() + self.lifetime,
        }
        self.families[name] = family
        return {
            "access_token": family["access"], "token_type": "DPoP", "expires_in": self.lifetime,
            "refresh_token": family["refresh"],
        }

    def who(self, handler, method: str, path: str) -> tuple[str, str]:
        scheme, _, token = (handler.headers.get("Authorization") or "").partition(" ")
        family = next((f for f in self.families.values() if f["access"] == token), None)
        if scheme != "DPoP" or not family or family["ends"] < time.time():
            raise Refused(401, "unauthorized", "no token, or one that has ended")
        key = self.proof(handler, method, path, token)
        if key != family["key"]:
            raise Refused(401, "unauthorized", "the proof is by another key")
        return family["email"], key

    # Bookings.

    def clash(self, vehicle: str, begin: int, end: int) -> bool:
        return any(
            b["vehicle"] == vehicle and b["state"] in ("booked", "active") and begin < seconds(b["to"])
            and seconds(b["from"]) < end
            for b in self.bookings.values()
        )

    def book(self, email: str, fields: dict) -> dict:
        vehicle = next((v for v in self.vehicles if v["id"] == fields["vehicle"]), None)
        if not vehicle:
            raise Refused(404, "not_found", "no such vehicle")
        now = int(self.now())
        begin, end = seconds(fields["from"]) if "from" in fields else now, seconds(fields["to"])
        if begin < now - 300:
            raise Refused(422, "past", "the booking begins in the past")
        if end <= begin:
            raise Refused(422, "backwards", "the booking ends before it begins")
        if self.clash(vehicle["id"], begin, end):
            first = max(seconds(b["to"]) for b in self.bookings.values())
            following = [{"from": stamp(t), "to": stamp(t + end - begin)} for t in (first, first + 3600, first + 7200)]
            raise Refused(409, "taken", "another booking has that time", next=following)
        booking = {
            "id": str(uuid.uuid4()), "vehicle": vehicle["id"], "name": vehicle["name"], "from": stamp(begin),
            "to": stamp(end), "state": "booked",
            "steps": fields.get("steps") or [step["id"] for step in vehicle["steps"]],
            "etag": f'"{secrets.token_hex(4)}"',
        }
        self.bookings[booking["id"]] = booking
        return booking

    def booking(self, name: str) -> dict:
        if name not in self.bookings:
            raise Refused(404, "not_found", "no such booking")
        return dict(self.bookings[name])

    @staticmethod
    def state(booking: dict) -> dict:
        return booking

    # A vehicle joins.

    def enrol(self, fields: dict) -> dict:
        if self.codes.pop(fields["code"], None) is None:
            raise Refused(403, "bad_code", "the code is wrong, was used, or has ended")
        request = x509.load_der_x509_csr(unpadded(fields["certificate_request"]))
        assert request.is_signature_valid
        assert [name.value for name in request.subject] == ["controller"]
        for name, curve in (("encryption", "X25519"), ("signing", "Ed25519")):
            assert set(fields["keys"][name]) == {"kty", "crv", "x"} and fields["keys"][name]["crv"] == curve
        self.enrolled.append(fields)
        certificate = self.authority.controller(request)
        operator = padless(bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))
        return {
            "name": fields.get("name", "Rolling Chassis"), "keys": [{"kty": "OKP", "crv": "Ed25519", "x": operator}],
            "broker": {"host": "broker.example.org", "port": 8883},
            "authority": self.authority.file.read_text(),
            "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode(),
            "ends": stamp(time.time() + 86_400 * 30),
        }
