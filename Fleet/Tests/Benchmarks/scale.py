"""What grows with the number of vehicles and of live tokens, and what does not.

The tokens are put into the database, twenty for each vehicle, each with its booking; what is measured are requests by HTTP,
one after the other. The broker has no list of who may use which topics, as the server writes none for RabbitMQ, and writes
its notices to the disk only at its end: mosquitto looks through all of both for each notice, and would be measured in the
server's place. Vehicles join as they do, by `stepctl provision vehicle --fleet`; its own time is part of what is shown.
"""

import http.client
import json
import re
import socket
import time
import uuid
from contextlib import ExitStack, closing
from pathlib import Path

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import stepproto as proto
from postgres import Cluster
from programs import Stepctl, Transcript, wait_until
from riders import Rider
from server import Broker, Server
from told import Kept, multiplied
from vehicle import free_port

SCALE = (100, 1_000, 10_000)
TOKENS, SAMPLES, JOINS = 20, 200, 20

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
        riders, now = [Rider() for _ in range(SAMPLES)], int(time.time())
        signer = proto.thumbprint(
            proto.private_key(json.loads((server.folder / "operator/operator/token.jwk").read_text())).public_key())
        run(server, FILL.format(last=TOKENS - 1, now=now, key=signer).split(";\n"))
        bookings = []
        vehicles, statements = server.runs(f"SELECT id FROM vehicle LIMIT {SAMPLES}"), []
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
        made = server.types("rabbitmq", server.folder, "--port", free_port(), everywhere=False)
        assert made.returncode == 0, made
        file = server.folder / "operator/mosquitto.conf"
        file.write_text("".join(line for line in file.open() if not line.startswith(("acl_file ", "autosave_"))))
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

        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rider")])
        key = ec.generate_private_key(ec.SECP256R1())
        csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
        der, times = csr.public_bytes(serialization.Encoding.DER), []
        with requests.Session() as session:
            session.verify, session.trust_env = server.verify, False
            for rider, booking, _ in bookings:
                url = f"{server.url}/v1/bookings/{booking}/access"
                body = {"request": proto.sign_request("rider", der, rider.key, int(time.time()))}
                headers = {"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", url)}
                began = time.perf_counter()
                answer = session.post(url, json=body, headers=headers, timeout=60)
                times.append(time.perf_counter() - began)
                assert answer.status_code == 200, answer.text
        result["access, ms"] = percentiles(times)

        times = []
        for _, booking, vehicle in bookings:
            kept.clear()
            began = time.time()
            revoked = asked(server.folder / "run/admin.sock", "POST", "/revoke", {"booking": booking})
            assert revoked == {"tokens": 1}, revoked
            times.append(wait_until(lambda: kept.times().get(vehicle), "the broker has it") - began)
        result["revocation to broker, ms"] = percentiles(times)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        memory = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])
        result["memory at most, MB"] = f"{memory / 1e3:.0f}"
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
