"""The server's two busiest requests as one would write them in Python: FastAPI, uvicorn (uvloop, httptools), sqlite3.

    peer.py PORT DATABASE CERTIFICATE KEY ORIGIN LIMIT

What peer.go does, by the same statements. One process: a proof counts once, and processes would not know of each other's.
"""

import base64
import hashlib
import hmac
import json
import sqlite3
import sys
import threading
import time
import uuid
from datetime import datetime, timezone

import uvicorn
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

PORT, DATABASE, CERTIFICATE, KEY, ORIGIN, LIMIT = sys.argv[1:]
MAXIMUM_AGE, MAXIMUM_LEAD, MAXIMUM_LENGTH = 120, 60, 31 * 86_400

SESSION = """SELECT session.account, session.device, session.access, session.access_expires,
  session.former_access, session.former_access_expires, account.role, account.state
FROM session JOIN account ON account.id = session.account WHERE session.id = ?"""
NEXT = """SELECT begins, ends, state, has_access FROM booking
WHERE vehicle = ? AND ends > ? AND state IN ('booked', 'active') ORDER BY ends LIMIT 1"""
VEHICLE = "SELECT id, name, folder, steps, service FROM vehicle WHERE id = ? AND service <> 'removed'"
OPEN = """SELECT count(*) FROM booking
WHERE account = ? AND begins > ? AND ends > ? AND state IN ('booked', 'active')"""
BOOK = """INSERT INTO booking
(id, vehicle, account, subject, begins, ends, steps, state, has_access, version, created)
VALUES (?, ?, ?, ?, ?, ?, ?, 'booked', 0, 1, ?)"""
EVENT = "INSERT INTO vehicle_event (id, vehicle, booking, event, time) VALUES (?, ?, ?, ?, ?)"
BOOKING = """SELECT booking.id, account, subject, begins, ends, booking.steps, state, has_access, version,
  vehicle.id, vehicle.name, vehicle.folder, vehicle.steps, vehicle.service
FROM booking JOIN vehicle ON vehicle.id = booking.vehicle WHERE booking.id = ?"""


def connect() -> sqlite3.Connection:
    # sqlite3 keeps the statements that were prepared.
    database = sqlite3.connect(DATABASE, isolation_level=None, check_same_thread=False, timeout=5)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        database.execute(f"PRAGMA {pragma}")
    if database.execute("PRAGMA synchronous").fetchone() != (2,):
        sys.exit("commits would not be durable")
    return database


app = FastAPI(openapi_url=None)
writer, writing = connect(), threading.Lock()
reading = threading.local()
vehicles = {
    row[0]: {"name": row[1], "steps": json.loads(row[2])}
    for row in writer.execute("SELECT id, name, steps FROM vehicle WHERE service <> 'removed'")
}
used, remembering = {}, threading.Lock()


def read(statement: str, *values):
    if not hasattr(reading, "database"):
        reading.database = connect()
    return reading.database.execute(statement, values).fetchone()


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


UNAUTHORIZED = HTTPException(401, {"code": "unauthorized"})


def caller(request: Request) -> str:
    """Who asks, as far as the request proves it."""
    token = request.headers.get("authorization", "").removeprefix("DPoP ")
    proof = request.headers.get("dpop", "")
    if len(token) != 69 or not token.startswith("sfa_") or len(proof) > 4096:
        raise UNAUTHORIZED
    try:
        head, body, signature = proof.split(".")
        header, claims = json.loads(decoded(head)), json.loads(decoded(body))
        jwk = header["jwk"]
        Ed25519PublicKey.from_public_bytes(decoded(jwk["x"])).verify(decoded(signature), f"{head}.{body}".encode())
    except (ValueError, KeyError, InvalidSignature):
        raise UNAUTHORIZED from None
    now = int(time.time())
    if (
        header["typ"] != "dpop+jwt" or header["alg"] != "EdDSA" or claims["htm"] != request.method
        or claims["htu"] != ORIGIN + request.url.path or claims["ath"] != digest(token)
        or not now - MAXIMUM_AGE <= claims["iat"] <= now + MAXIMUM_LEAD
    ):
        raise UNAUTHORIZED
    row = read(SESSION, token[4:26])
    if row is None:
        raise UNAUTHORIZED
    account, device, access, expires, _, _, _, state = row
    thumbprint = digest(f'{{"crv":"{jwk["crv"]}","kty":"{jwk["kty"]}","x":"{jwk["x"]}"}}')
    if not hmac.compare_digest(access, claims["ath"]) or now >= expires or state != "active" or thumbprint != device:
        raise UNAUTHORIZED
    name = f"{device} {claims['jti']}"
    with remembering:
        if name in used:
            raise UNAUTHORIZED
        used[name] = now
    return account


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    vehicle: str
    begin: datetime = Field(alias="from")
    end: datetime = Field(alias="to")


@app.get("/healthz")
def health():
    read("SELECT 1")
    return JSONResponse({"status": "ok"})


@app.get("/v1/vehicles/{id}")
def vehicle(id: str, request: Request):
    caller(request)
    if id not in vehicles:
        raise HTTPException(404, {"code": "not_found"})
    now = int(time.time())
    row = read(NEXT, id, now)
    state = "available" if row is None or row[0] > now else "on_trip" if row[3] else "reserved"
    body = json.dumps({"id": id, "name": vehicles[id]["name"], "state": state, "steps": vehicles[id]["steps"]}).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return Response(body, media_type="application/json", headers={"ETag": etag})


def stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@app.post("/v1/bookings", status_code=201)
def book(wanted: Wanted, request: Request):
    account = caller(request)
    begin, end, now = int(wanted.begin.timestamp()), int(wanted.end.timestamp()), int(time.time())
    if begin < now - 300 or not 60 <= end - begin <= MAXIMUM_LENGTH:
        raise HTTPException(422, {"code": "past"})
    booking, subject = str(uuid.uuid4()), f"b-{uuid.uuid4().hex[:16]}"
    # One immediate transaction, which is on the medium when this returns.
    with writing:
        writer.execute("BEGIN IMMEDIATE")
        try:
            known = writer.execute(VEHICLE, (wanted.vehicle,)).fetchone()
            if known is None:
                raise HTTPException(404, {"code": "not_found"})
            (count,) = writer.execute(OPEN, (account, now - MAXIMUM_LENGTH, now)).fetchone()
            if count >= int(LIMIT):
                raise HTTPException(409, {"code": "too_many_bookings"})
            steps = " ".join(step["id"] for step in json.loads(known[3]))
            writer.execute(BOOK, (booking, wanted.vehicle, account, subject, begin, end, steps, now))
            writer.execute(EVENT, (str(uuid.uuid4()), wanted.vehicle, booking, "reservation_start", now))
            made = writer.execute(BOOKING, (booking,)).fetchone()
            answer = {
                "id": made[0], "vehicle": made[9], "name": made[10], "from": stamp(made[3]), "to": stamp(made[4]),
                "state": made[6], "steps": made[5].split(), "etag": f'"{made[8]}"',
            }
            writer.execute("COMMIT")
        except BaseException as error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            if isinstance(error, sqlite3.IntegrityError):
                raise HTTPException(409, {"code": "taken"}) from None
            raise
    return JSONResponse(answer, 201)


uvicorn.run(
    app, host="0.0.0.0", port=int(PORT), ssl_certfile=CERTIFICATE, ssl_keyfile=KEY, log_level="warning", access_log=False,
    loop="uvloop", http="httptools")
