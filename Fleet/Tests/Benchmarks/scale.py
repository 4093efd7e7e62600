"""What grows with the number of vehicles and of live tokens, and what does not.

The tokens are put into the database, twenty for each vehicle, each with its booking; what is measured are requests by HTTP,
one after the other, and then as many a second as are offered, whether or not the ones before were answered: with
PostgreSQL by two servers in turn. The broker is mosquitto with the plugin, as `stepfleet init` configures it, and nobody tells it
anything. Vehicles join as they do, by `stepctl provision vehicle --fleet`; its own time is part of what is shown.
"""

import http.client
import json
import re
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import stepproto as proto
from postgres import Cluster
from programs import Stepctl, Transcript
from riders import Rider
from server import Broker, Server
from test_bookings import enrolment
from told import Kept, multiplied

SCALE = (100, 1_000, 10_000)
TOKENS, SAMPLES, JOINS = 20, 200, 20
# What is offered for some seconds: requests for access, and vehicles that join, a second.
SECONDS, ACCESS_RATE, JOIN_RATE = 10, 100, 20
# How many are revoked while all vehicles are told.
BUSY = 20

# Consecutive hours, from now on: a token can be had a day before.
FILL = """
WITH RECURSIVE hours (hour) AS (SELECT 0 UNION ALL SELECT hour + 1 FROM hours WHERE hour < {last})
INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
SELECT id || '-' || hour, id, id || '-' || hour, 'b-0', {now} + 3600 * hour, {now} + 3600 * hour + 3500, 'left',
  'booked', 1, 1, {now}
FROM vehicle CROSS JOIN hours;
INSERT INTO account (id, email, role, state, terms, terms_accepted, created)
SELECT account, account || '@example.org', 'rider', 'active', '', {now}, {now} FROM booking;
INSERT INTO access (jti, booking, device, expires, standing)
SELECT 't-' || id, id, id, ends + 900, 'given' FROM booking;
INSERT INTO token (jti, rider, vehicle, steps, begins, expires, device, key, certificate_ends, by_hand)
SELECT 't-' || id, subject, vehicle, steps, begins, ends + 900, id, '{key}', ends + 86400, 0 FROM booking;
"""


def run(server: Server, statements: list[str]):
    for statement in [";".join(statements)] if server.database else statements:
        server.runs(statement)


def asked(path: Path, method: str, route: str, body: dict | None = None, status: int = 200) -> dict:
    """One request by the operator's socket."""
    connection = http.client.HTTPConnection("admin", timeout=60)
    with closing(socket.socket(socket.AF_UNIX)) as connection.sock:
        connection.sock.connect(str(path))
        connection.request(method, route, json.dumps(body or {}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == status, text
        return json.loads(text)


def percentiles(times: list[float]) -> str:
    """p50 and p99 of seconds, in milliseconds."""
    times = sorted(times)
    return f"{times[len(times) // 2] * 1e3:.1f} / {times[len(times) * 99 // 100] * 1e3:.1f}"


class Clients:
    """Riders and vehicles, who keep their connections to each of the servers."""

    def __init__(self, verify: str, urls: list[str]):
        self.verify, self.urls, self.own = verify, urls, threading.local()

    def post(self, server: str, path: str, body: dict, headers: dict, status: int):
        if not hasattr(self.own, "sessions"):
            self.own.sessions = {url: requests.Session() for url in self.urls}
            for session in self.own.sessions.values():
                session.verify, session.trust_env = self.verify, False
        answer = self.own.sessions[server].post(f"{server}{path}", json=body, headers=headers, timeout=60)
        assert answer.status_code == status, answer.text


def offered(rate: int, requests: list) -> list[float]:
    """How long each took from the moment at which it was due. Half a second's worth goes before, and is not counted."""
    begin, early = time.perf_counter() + 0.2, rate // 2

    def one(number: int) -> float:
        due = begin + number / rate
        time.sleep(max(0, due - time.perf_counter()))
        requests[number]()
        return time.perf_counter() - due

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, range(len(requests))))[early:]


def measure(folder: Path, count: int, database: str | None) -> dict:
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(folder / "fleet", *(["--database", database] if database else []))))
        server.database = database
        stepctl = Stepctl(folder, Transcript())
        made = stepctl("provision", "vehicle", folder / "car", "--operator", server.folder / "operator")
        assert made.status == 0, made
        server.starts()
        assert server.types("vehicle", "add", "car").returncode == 0
        (car,) = asked(server.folder / "run/admin.sock", "GET", "/vehicles")["vehicles"]
        server.stops()
        multiplied(server, car["id"], count - 1)
        is_most, now = count == max(SCALE), int(time.time())
        riders = [Rider() for _ in range(SAMPLES + (ACCESS_RATE * SECONDS if is_most else 0))]
        signer = proto.thumbprint(
            proto.private_key(json.loads((server.folder / "operator/operator/token.jwk").read_text())).public_key())
        run(server, FILL.format(last=TOKENS - 1, now=now, key=signer).split(";\n"))
        bookings = []
        vehicles, statements = server.runs(f"SELECT id FROM vehicle LIMIT {len(riders)}"), []
        for number, rider in enumerate(riders):
            vehicle, begins = vehicles[number % len(vehicles)], now + 3600 * (TOKENS + 1 + number // len(vehicles))
            bookings.append((rider, str(uuid.uuid4()), vehicle))
            statements += rider.rows(now).strip().split(";\n") + [
                "INSERT INTO booking (id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created) "
                f"VALUES ('{bookings[-1][1]}', '{vehicle}', '{rider.account}', 'b-1', {begins}, {begins + 3500}, 'left', "
                f"'booked', 0, 1, {now})"]
        run(server, statements)
        if database:
            # It does so by itself within a minute or two.
            server.runs("ANALYZE")
        configuration = [server.folder / "operator" / name for name in ("mosquitto.conf", "mosquitto.acl")]
        assert "\nplugin " in configuration[0].read_text()
        stack.enter_context(closing(Broker(server)))
        kept = stack.enter_context(closing(Kept(server, folder / "kept")))
        began = time.time()
        server.starts()
        # To the second, it takes no proofs from before it was there.
        time.sleep(1.1)
        result = {"all told at the start, s": f"{kept.last(count, began):.1f}"}

        times = []
        for number in range(JOINS):
            added = asked(server.folder / "run/admin.sock", "POST", "/vehicles", {"name": f"new {number}"}, 201)
            arguments = ("--fleet", server.url, "--ca", server.verify, "--code", added["code"])
            began = time.perf_counter()
            joined = stepctl("provision", "vehicle", folder / f"new{number}", *arguments)
            times.append(time.perf_counter() - began)
            assert joined.status == 0, joined
        result["a vehicle joins, ms"] = percentiles(times)
        urls = [server.url]
        if database:
            urls.append(stack.enter_context(closing(server.another())).url)
        clients = Clients(server.verify, [server.url, *urls])
        result[f"{JOIN_RATE} join a second, ms"] = result[f"access, {ACCESS_RATE} a second, ms"] = "-"
        if is_most:
            joins = []
            for number in range(JOIN_RATE * SECONDS):
                name = {"name": f"joins {number}"}
                code = asked(server.folder / "run/admin.sock", "POST", "/vehicles", name, 201)["code"]
                body = enrolment(code)
                body["topic"] = f"vehicles/{body['id']}"
                joins.append(partial(clients.post, urls[number % len(urls)], "/v1/enrolments", body, {}, 201))
            result[f"{JOIN_RATE} join a second, ms"] = percentiles(offered(JOIN_RATE, joins))

        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rider")])
        key = ec.generate_private_key(ec.SECP256R1())
        csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
        der, times = csr.public_bytes(serialization.Encoding.DER), []

        def gets_access(rider: Rider, booking: str, url: str):
            path = f"/v1/bookings/{booking}/access"
            body = {"request": proto.sign_request("rider", der, rider.key, int(time.time()))}
            # Riders reach every server by the name of the first.
            headers = {"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", server.url + path)}
            return partial(clients.post, url, path, body, headers, 200)

        for rider, booking, _ in bookings[:SAMPLES]:
            request = gets_access(rider, booking, server.url)
            began = time.perf_counter()
            request()
            times.append(time.perf_counter() - began)
        result["access, ms"] = percentiles(times)
        if is_most:
            more = [gets_access(*one[:2], urls[place % len(urls)]) for place, one in enumerate(bookings[SAMPLES:])]
            result[f"access, {ACCESS_RATE} a second, ms"] = percentiles(offered(ACCESS_RATE, more))

        def revoke(places: range) -> list[float]:
            times = []
            for _, booking, vehicle in bookings[places.start : places.stop]:
                began = time.time()
                revoked = asked(server.folder / "run/admin.sock", "POST", "/revoke", {"booking": booking})
                assert revoked["tokens"] == 1, revoked
                times.append(kept.next(vehicle, began))
            return times

        kept.clear()
        result["revocation to broker, ms"] = percentiles(revoke(range(SAMPLES - BUSY)))
        kept.clear()
        began = time.time()
        asked(server.folder / "run/admin.sock", "POST", "/keys/rotate", {})
        result["while all are told, ms"] = percentiles(revoke(range(SAMPLES - BUSY, SAMPLES)))
        result["all told anew, s"] = f"{kept.last(count, began):.1f}"
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        memory = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])
        result["memory at most, MB"] = f"{memory / 1e3:.0f}"
        result["the broker's files, bytes"] = str(sum(file.stat().st_size for file in configuration))
        result["ledger.json, KB"] = f"{(server.folder / 'operator/operator/ledger.json').stat().st_size / 1e3:.0f}"
        return result


def measure_scale(folder: Path, rounds: int):
    with closing(Cluster(folder / "postgres")) as cluster:
        for kind in ("SQLite",) if cluster.problem else ("SQLite", "PostgreSQL"):
            results = []
            for count in SCALE:
                place = folder / f"{kind}{count}"
                place.mkdir(mode=0o755)
                results.append(measure(place, count, cluster.database() if kind == "PostgreSQL" else None))
            print(f"\n{kind}: {', '.join(f'{count:,}' for count in SCALE)} vehicles, {TOKENS} live tokens each (p50 / p99)")
            for what in results[0]:
                print(f"  {what:26}" + "".join(f"{one[what]:>18}" for one in results), flush=True)
