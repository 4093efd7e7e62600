#!/usr/bin/env python3
"""stepfleet beside the same in Go and in Python (peer.go, peer.py), in one run, with one client (wrk) for all: `make bench-fleet`.

    STEPFLEET_BIN_DIR=Fleet/.build/release STEPCTL_BIN_DIR=.build/release bench.py [--rounds N] [PART …]

    load      durable bookings, and reading one vehicle, a second
    start     from the start of the process to the first answer, and the memory of a server that waits
    servers   two servers on one PostgreSQL beside one
    book      `stepctl book` from a cold start, beside curl with the same requests
    revoke    from `stepfleet revoke` to a stepd that refuses
    notices   until the broker has the notices of 1,000 and of 2,000 vehicles, and a revoked booking's meanwhile
    events    from a motion's end until it is shown, and as many events as wait in a vehicle
    watch     how soon 1,000 riders who watch a list see a change, their memory, and bookings meanwhile
    scale     access, and from a revocation to the broker, with 100, 1,000 and 10,000 vehicles of 20 live tokens each

All serve HTTP/1.1 with TLS and one certificate, each with its own copy of one SQLite database that stepfleet has made: its
tables, indices and triggers. A request has a proof of its own (RFC 9449), made before the time is taken; each server checks
its signature, remembers it, and reads the session. Each booking is one transaction of the same statements, on the medium
when it is answered (`synchronous = FULL`, read back by each). What differs: stepfleet commits together what waits at one
moment, parses bodies and proofs more strictly, and counts requests. Only its own rules of bookings are complete.

Look at the ratios: medians of the ratios of a round, which a busy machine disturbs less than the figures.
"""

import argparse
import base64
import json
import multiprocessing
import os
import random
import re
import shutil
import socket
import sqlite3
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack, closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(HERE.parent / "System"), str(REPOSITORY / "Tests/System"), str(REPOSITORY / "Tests/Peers")]

import client  # noqa: E402
from heard import measure_events  # noqa: E402
from postgres import Cluster  # noqa: E402
from programs import STEPCTL, Stepctl, Transcript  # noqa: E402
from riders import Rider, base64url, digest, encoded  # noqa: E402
from scale import measure_scale  # noqa: E402
from server import STEPFLEET, Broker, Server  # noqa: E402
from test_fleet import Car  # noqa: E402
from test_stepctl import Phone  # noqa: E402
from told import Kept, multiplied  # noqa: E402
from vehicle import free_port  # noqa: E402
from watching import WATCHERS, Watchers, built, measure_watchers  # noqa: E402

SECONDS, THREADS = 2, 2
# As many as one run can make, so that nobody reaches the limit of bookings.
RIDERS, VEHICLES = 6000, 64
LIMIT = 20
STARTS, COLD = 10, 20
# A server gives an account eight tokens for a vehicle at the most.
TOKENS = 8
# A vehicle remembers 64 revocations, so this is as many as one can have.
REVOKING_PHONES = 8
# How many vehicles are told.
NOTICES = (1000, 2000)
# One token for the first booking at a vehicle, and two a round.
ROUNDS_A_CAR = (TOKENS - 1) // 2
NAMES = ("stepfleet", "Go", "FastAPI")
PHASES = {"bookings, 16 clients": ("book", 16), "bookings, 64 clients": ("book", 64), "one vehicle, 16 clients": ("read", 16)}
# What is to be reached: of Go's, and of FastAPI's.
GOALS = {"bookings, 16 clients": (1.0, 1.3), "bookings, 64 clients": (1.0, 1.3), "one vehicle, 16 clients": (0.35, 1.5)}


def stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Fleet:
    """The riders and vehicles, and requests for them."""

    def __init__(self, origin: str):
        self.origin, self.riders = origin, [Rider() for _ in range(RIDERS)]
        self.vehicles = [str(uuid.uuid4()) for _ in range(VEHICLES)]
        self.booked, self.base = 0, int(time.time()) + 3600

    def rows(self) -> str:
        now = int(time.time())
        steps = json.dumps([{"id": "left", "side": "left", "major": 1}, {"id": "right", "side": "right", "major": 2}])
        return "".join(
            "INSERT INTO vehicle (id, name, folder, steps, service, created) "
            f"VALUES ('{vehicle}', 'Car {number}', 'none', '{steps}', 'in_service', {now});\n"
            for number, vehicle in enumerate(self.vehicles)
        ) + "".join(rider.rows(now) for rider in self.riders)

    def request(self, kind: str, number: int) -> str:
        rider, vehicle = self.riders[number % RIDERS], self.vehicles[number % VEHICLES]
        if kind == "read":
            return rider.request(self.origin, "GET", f"/v1/vehicles/{vehicle}")
        # Nobody else wants it at that time.
        begin = self.base + number // VEHICLES * 120
        body = json.dumps({"vehicle": vehicle, "from": stamp(begin), "to": stamp(begin + 90)})
        return rider.request(self.origin, "POST", "/v1/bookings", body)

    def write(self, file: Path, kind: str, count: int):
        """So many requests, one after the other in a file."""
        first = self.booked
        if kind == "book":
            self.booked += count
            assert self.booked <= RIDERS * LIMIT, "too many bookings for the riders that there are"
        parts = [range(first + part, first + count, THREADS) for part in range(THREADS)]
        with multiprocessing.get_context("fork").Pool(THREADS, _inherit, (self,)) as pool:
            texts = pool.starmap(_texts, [(kind, part) for part in parts])
        with open(file, "w", newline="") as output:
            for group in zip(*texts):
                output.writelines(f"{text}\n--\n" for text in group)


def _inherit(fleet: Fleet):
    # Private keys cannot be sent to a process; one that is forked has them.
    global inherited
    inherited = fleet
    random.seed()


def _texts(kind: str, numbers: range) -> list[str]:
    return [inherited.request(kind, number) for number in numbers]


def load(urls: list[str], files: list[Path], clients: int) -> dict:
    """What wrk says of requests to servers that are asked at the same time."""
    running = [
        subprocess.Popen(
            ["wrk", f"-t{THREADS // len(urls)}", f"-c{clients // len(urls)}", f"-d{SECONDS}s", "--timeout", "10s", "-s",
             HERE / "load.lua", url, "--", file, str(THREADS // len(urls))],
            stdout=subprocess.PIPE, text=True)
        for url, file in zip(urls, files)
    ]  # fmt: skip
    said = [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in running]
    for one in said:
        assert one["requests"] > 0 and one["refused"] == one["lost"] == 0, one
    return {
        "rate": sum(one["requests"] / one["us"] * 1e6 for one in said), "p99": max(one["p99"] for one in said) / 1e3,
        "count": max(one["requests"] for one in said),
    }  # fmt: skip


class Serving:
    """A server that is asked from outside."""

    def __init__(self, port: int, command: list, log: Path):
        self.url, self.command, self.log, self.process = f"https://localhost:{port}", command, log, None

    def start(self, context: ssl.SSLContext) -> float:
        """Milliseconds until it has answered."""
        port, began = int(self.url.rsplit(":", 1)[1]), time.perf_counter()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(word) for word in self.command], stdout=log, stderr=log)
        while True:
            try:
                with socket.create_connection(("localhost", port), 5) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost") as stream:
                        stream.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        assert stream.recv(100).startswith(b"HTTP/1.1 200")
                        return (time.perf_counter() - began) * 1e3
            except ConnectionRefusedError:
                assert self.process.poll() is None and time.perf_counter() - began < 30, self.log.read_text()
                time.sleep(0.0005)

    def resident(self) -> float:
        return int(re.search(r"VmRSS:\s*(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1e3

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def prepared(folder: Path) -> tuple[Fleet, dict[str, Serving], ssl.SSLContext]:
    """The three, each with its own database."""
    server = Server(folder / "fleet")
    server.changes(bookings=LIMIT)
    fleet = Fleet(server.url)
    database = server.folder / "data/fleet.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(f"BEGIN;\n{fleet.rows()}COMMIT;")
    subprocess.run(
        ["go", "build", "-tags", "libsqlite3", "-o", folder / "peer", HERE / "peer.go"], check=True,
        env=os.environ | {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode"})
    servers = {"stepfleet": Serving(server.port, [STEPFLEET, "serve", server.folder], folder / "stepfleet.log")}
    for name, command in (("Go", [folder / "peer"]), ("FastAPI", [sys.executable, HERE / "peer.py"])):
        port, copy = free_port(), folder / f"{name}.sqlite"
        shutil.copy(database, copy)
        tls = [server.folder / "tls/server.pem", server.folder / "tls/server.key"]
        servers[name] = Serving(port, [*command, port, copy, *tls, server.url, LIMIT], folder / f"{name}.log")
    return fleet, servers, ssl.create_default_context(cafile=server.verify)


def median_ratio(rounds: list[dict], first: str, second: str, key: str) -> float:
    return statistics.median(one[first][key] / one[second][key] for one in rounds)


def measure_load(folder: Path, rounds: int):
    fleet, servers, context = prepared(folder)
    with ExitStack() as stack:
        for one in servers.values():
            stack.callback(one.close)
            one.start(context)
        file, done = folder / "requests", {phase: [] for phase in PHASES}
        # Fewer than are asked for would show as refusals.
        enough = {"book": 8000 * SECONDS, "read": 40_000 * SECONDS}
        for _ in range(rounds):
            for phase, (kind, clients) in PHASES.items():
                fleet.write(file, kind, enough[kind])
                order = random.sample(NAMES, 3)
                done[phase].append({name: load([servers[name].url], [file], clients) for name in order})
        loaded = {name: one.resident() for name, one in servers.items()}
    print(f"\n{'a second':26}" + "".join(f"{name:>12}" for name in NAMES) + "   of Go's   of FastAPI's")
    for phase, results in done.items():
        figures = "".join(f"{statistics.median(one[name]['rate'] for one in results):12,.0f}" for name in NAMES)
        ratios = [median_ratio(results, "stepfleet", other, "rate") for other in NAMES[1:]]
        print(f"{phase:26}{figures}{verdicts(ratios, GOALS[phase])}")
    print(f"{'p99, ms':26}")
    for phase, results in done.items():
        figures = "".join(f"{statistics.median(one[name]['p99'] for one in results):12.2f}" for name in NAMES)
        ratio = median_ratio(results, "stepfleet", "Go", "p99")
        goal = "" if PHASES[phase][0] == "read" else " (goal ≤ 1)"
        print(f"{phase:26}{figures}   {ratio:5.2f}{goal}")
    print(f"{'MB after that':26}" + "".join(f"{loaded[name]:12.1f}" for name in NAMES))


def verdicts(ratios: list[float], goals: tuple) -> str:
    return "".join(f"   {ratio:5.2f} (goal ≥ {goal:g})" for ratio, goal in zip(ratios, goals))


def measure_watch(folder: Path, rounds: int):
    server = Server(folder / "fleet")
    server.changes(bookings=LIMIT, connections=8 * WATCHERS, connections_each=8 * WATCHERS)
    fleet, program = Fleet(server.url), built(folder)
    with closing(sqlite3.connect(server.folder / "data/fleet.sqlite")) as connection:
        connection.executescript(f"BEGIN;\n{fleet.rows()}COMMIT;")
    context = ssl.create_default_context(cafile=server.verify)
    with closing(Serving(server.port, [STEPFLEET, "serve", server.folder], folder / "log")) as serving:
        serving.start(context)
        # No server takes a proof from before its start, to the second.
        time.sleep(1.1)
        watchers = measure_watchers(program, fleet, serving, server.verify, context)
        watchers.close()
        for path in ("/v1/vehicles", "/v1/bookings"):
            rates = {True: [], False: []}
            for _ in range(rounds):
                for isWatched in random.sample((True, False), 2):
                    fleet.write(folder / "requests", "book", 4800 * SECONDS)
                    with ExitStack() as stack:
                        if isWatched:
                            stack.enter_context(
                                closing(Watchers(program, server.url, server.verify, fleet.riders[:WATCHERS], path)))
                        rates[isWatched].append(load([server.url], [folder / "requests"], 16)["rate"])
            ratio = statistics.median(a / b for a, b in zip(rates[True], rates[False]))
            print(
                f"while {WATCHERS:,} watch {path}: {statistics.median(rates[True]):,.0f} bookings a second, without them "
                f"{statistics.median(rates[False]):,.0f}: {ratio:.2f} (goal ≥ 0.8)", flush=True)


def measure_start(folder: Path, rounds: int):
    _, servers, context = prepared(folder)
    times, idle = {name: [] for name in NAMES}, {}
    for _ in range(STARTS):
        for name in NAMES:
            with closing(servers[name]) as one:
                times[name].append(one.start(context))
                if name not in idle:
                    time.sleep(1)
                    idle[name] = one.resident()
    print(f"\n{'':26}" + "".join(f"{name:>12}" for name in NAMES))
    figures = {name: statistics.median(times[name]) for name in NAMES}
    ratio = statistics.median(own / go for own, go in zip(times["stepfleet"], times["Go"]))
    print(f"{'ms to the first answer':26}" + "".join(f"{figures[name]:12.1f}" for name in NAMES) + f"   {ratio:.1f} (goal ≤ 4)")
    print(f"{'MB of one that waits':26}" + "".join(f"{idle[name]:12.1f}" for name in NAMES) + "   (goal ≤ 48)")


def measure_servers(folder: Path, rounds: int):
    with closing(Cluster(folder / "cluster")) as cluster:
        if cluster.problem:
            return print(f"\nno PostgreSQL: {cluster.problem}")
        database = cluster.database()
        server = Server(folder / "fleet", "--database", database)
        server.changes(bookings=LIMIT)
        fleet = Fleet(server.url)
        subprocess.run(
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", database], input=f"BEGIN;\n{fleet.rows()}COMMIT;\n", text=True,
            check=True)
        other = free_port()
        both = [
            Serving(server.port, [STEPFLEET, "serve", server.folder], folder / "one.log"),
            Serving(other, [STEPFLEET, "serve", server.folder, "--port", other], folder / "two.log"),
        ]
        context, results = ssl.create_default_context(cafile=server.verify), []
        with ExitStack() as stack:
            for one in both:
                stack.callback(one.close)
                one.start(context)
            # No server takes a proof from before its start, to the second.
            time.sleep(1.1)
            files = [folder / "first", folder / "second"]
            for _ in range(rounds):
                result = {}
                for count in random.sample((1, 2), 2):
                    for file in files[:count]:
                        fleet.write(file, "book", 4000 * SECONDS // count)
                    before = processor(both)
                    result[count] = load([one.url for one in both[:count]], files[:count], 64)
                    spent = {name: seconds - before[name] for name, seconds in processor(both).items()}
                    result[count] |= {"cores": {name: seconds / SECONDS for name, seconds in spent.items()}}
                results.append(result)
    rate, p99 = ({n: statistics.median(one[n][key] for one in results) for n in (1, 2)} for key in ("rate", "p99"))
    print(
        f"\nPostgreSQL, 64 clients: one server {rate[1]:,.0f} bookings a second (p99 {p99[1]:.1f} ms), two {rate[2]:,.0f} "
        f"({p99[2]:.1f} ms): {median_ratio(results, 2, 1, 'rate'):.2f} times (goal ≥ 1.5) on {os.cpu_count()} cores"
    )
    for count, what in ((1, "one server"), (2, "two")):
        cores = {name: statistics.median(one[count]["cores"][name] for one in results) for name in results[0][1]["cores"]}
        print(f"  cores in use, {what}: " + ", ".join(f"{name} {value:.2f}" for name, value in cores.items()))


def processor(servers: list[Serving]) -> dict[str, float]:
    """The processor's seconds that each kind of program has had."""
    seconds, own = {"stepfleet": 0.0, "PostgreSQL": 0.0, "clients": 0.0}, [one.process.pid for one in servers]
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        times = rest.split()[11:15]
        kind = "stepfleet" if int(file.parent.name) in own else {"postgres": "PostgreSQL"}.get(name)
        if kind:
            seconds[kind] += (int(times[0]) + int(times[1])) / os.sysconf("SC_CLK_TCK")
    children = os.times()
    seconds["clients"] = children.children_user + children.children_system
    return seconds


def timed(command: list, environment: dict) -> float:
    """Milliseconds of a whole process."""
    command = [str(word) for word in command]
    with open(os.devnull, "w") as nothing:
        redirections = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)]
        began = time.perf_counter()
        _, status, _ = os.wait4(os.posix_spawnp(command[0], command, environment, file_actions=redirections), 0)
        wall = time.perf_counter() - began
    assert status == 0, command
    return wall * 1e3


def measure_book(folder: Path, rounds: int):
    with closing(Server(folder / "fleet").starts("--verbose")) as server:
        phone = Phone(server, folder / "phone").makes_account().logs_in()
        cars = [f"car{number}" for number in range(-(-COLD // ROUNDS_A_CAR))]
        for car in cars:
            made = phone("provision", "vehicle", folder / car, "--operator", server.folder / "operator")
            assert made.status == 0, made
            assert server.types("vehicle", "add", car).returncode == 0
        vehicles = {vehicle["name"]: vehicle["id"] for vehicle in phone("vehicles", "--json").objects}
        # The device's key and tokens, for curl's own proofs.
        files = phone.home / ".config/stepctl"
        jwk = json.loads((files / "device/device.jwk").read_text())
        login = json.loads((files / "fleet/login.json").read_text())
        rider = Rider()
        rider.key = Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(jwk["d"] + "="))
        rider.header = encoded({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": {n: jwk[n] for n in ("kty", "crv", "x")}})
        rider.access = re.search(r"sfa_[\w-]{65}", json.dumps(login))[0]
        rider.hash = digest(rider.access)
        request = phone("enroll").stdout.strip()
        begins = iter(range(int(time.time()) // 60 * 60 + 3600, 1 << 62, 600))

        def command(car: str, *more) -> list:
            return [STEPCTL, "book", car, "--from", stamp(next(begins))[:16], "--for", "5m", "-y", *more]

        own, curls, environment = [], [], phone.stepctl.environment
        for number in range(COLD):
            car = cars[number // ROUNDS_A_CAR]
            if number % ROUNDS_A_CAR == 0:
                known = server.log()
                first = phone(*command(car, "--json")[1:])
                assert first.status == 0, first
                asked = [
                    (line["method"], line["route"])
                    for line in map(json.loads, server.log()[len(known) :].splitlines())
                    if line["message"] == "request"
                ]
                # curl cannot know the booking that it makes: it asks for access to this one.
                access = f"/v1/bookings/{first.json['id']}/access"
            own.append(timed(command(car), environment))
            begin, curl = next(begins), ["curl", "--silent", "--fail-with-body"]
            for method, route in asked:
                path, body = route, {"vehicle": vehicles[car], "from": stamp(begin), "to": stamp(begin + 300)}
                if route.endswith("/access"):
                    path, body = access, {"request": request}
                curl += ["--cacert", server.verify, "-H", f"Authorization: DPoP {rider.access}", "-H",
                         f"DPoP: {rider.proof(method, server.url + path)}", server.url + path]  # fmt: skip
                if method == "POST":
                    curl += ["-H", "Content-Type: application/json", "--data", json.dumps(body)]
                curl.append("--next")
            curls.append(timed(curl[:-1], environment))
    ratio = statistics.median(a / b for a, b in zip(own, curls))
    print(
        f"\n`stepctl book`, cold: {statistics.median(own):.0f} ms; curl with the same {len(asked)} requests "
        f"{statistics.median(curls):.0f} ms: {ratio:.2f} times (goal ≤ 1.3)\n  "
        + ", ".join(f"{method} {route}" for method, route in asked)
    )


def measure_revoke(folder: Path, rounds: int):
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(folder / "fleet")))
        server.broker = stack.enter_context(closing(Broker(server)))
        server.starts()
        car = Car(server, folder / "car", stack)
        phones = [
            Phone(server, folder / f"phone{number}", f"rider{number}@example.org").makes_account().logs_in()
            for number in range(REVOKING_PHONES)
        ]
        times = []
        for phone in phones * TOKENS:
            booking = phone("book", "car", "--for", "1h", "-y", "--json")
            assert booking.status == 0, booking
            vehicle = client.Vehicle.read(booking.json["vehicle_file"])
            with client.Session(vehicle, "left", 30) as session:
                client.ask(session)
                began = time.perf_counter()
                revoking = subprocess.Popen(
                    [STEPFLEET, "revoke", "--dir", server.folder, "--booking", booking.json["id"]],
                    stdout=subprocess.DEVNULL)
                while True:
                    try:
                        client.ask(session)
                        time.sleep(0.002)
                    except client.Refused as refused:
                        assert refused.args[0]["code"] == "token_revoked", refused
                        break
                times.append((time.perf_counter() - began) * 1e3)
                assert revoking.wait(10) == 0
        assert car.stepd.lives
    times.sort()
    print(
        f"\nfrom `stepfleet revoke` to a refusal, {len(times)} times: median {statistics.median(times):.0f} ms, "
        f"p99 {times[int(len(times) * 0.99) - 1]:.0f} ms, at most {times[-1]:.0f} ms (goal: p99 ≤ 1,000)"
    )


def revoke_one(server: Server, kept: Kept, car: str, booking: str) -> float:
    """How long it takes until the broker has the car's next notice, in milliseconds."""
    began = time.time()
    revoking = subprocess.Popen(
        [STEPFLEET, "booking", "cancel", "--dir", server.folder, booking], stdout=subprocess.PIPE, text=True)
    seconds = kept.next(car, began)
    assert revoking.communicate()[0].endswith("1 token revoked\n")
    return seconds * 1e3


def measure_notices(folder: Path, rounds: int):
    for count in NOTICES:
        with ExitStack() as stack:
            server = stack.enter_context(closing(Server(folder / f"fleet{count}")))
            server.starts()
            stepctl = Stepctl(folder, Transcript())
            for name in ("car", "last"):
                # With the last one the broker's list is written again.
                if name == "last":
                    server.stops()
                    multiplied(server, car, count - 2)
                    server.starts()
                made = stepctl("provision", "vehicle", folder / f"{name}{count}", "--operator", server.folder / "operator")
                assert made.status == 0, made
                assert server.types("vehicle", "add", f"{name}{count}").returncode == 0
                if name == "car":
                    car = json.loads(server.types("vehicle", "list", "--json").stdout)["vehicles"][0]["id"]
            phone = Phone(server, folder / f"phone{count}", "rider@example.org").makes_account().logs_in()
            bookings = []
            for hour in range(TOKENS):
                begin = (datetime.now() + timedelta(hours=hour + 1)).strftime("%Y-%m-%dT%H:%M")
                booking = phone("book", f"car{count}", "--from", begin, "--for", "30m", "-y", "--json")
                assert booking.status == 0, booking
                bookings.append(booking.json["id"])
            server.stops()
            server.broker = stack.enter_context(closing(Broker(server)))
            kept = stack.enter_context(closing(Kept(server, folder / f"kept{count}")))
            began = time.time()
            server.starts()
            started = kept.last(count, began)

            alone = [revoke_one(server, kept, car, booking) for booking in bookings[: TOKENS // 2]]
            kept.clear()
            began = time.time()
            # Every vehicle is told.
            assert server.types("keys", "rotate").returncode == 0
            answered = time.time() - began
            revoking = [revoke_one(server, kept, car, booking) for booking in bookings[TOKENS // 2 :]]
            told = kept.last(count, began)
            status = Path(f"/proc/{server.process.pid}/status").read_text()
            memory = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1e3
            print(
                f"\n{count} vehicles: from the start until all are told {started:.1f} s; from a change of keys "
                f"{told:.1f} s (answered in {answered:.1f} s); a revoked booking is told in {statistics.median(alone):.0f} ms, "
                f"meanwhile in {', '.join(f'{one:.0f}' for one in revoking)} ms; memory at most {memory:.0f} MB", flush=True)


PARTS = {
    "load": measure_load, "start": measure_start, "servers": measure_servers, "book": measure_book,
    "revoke": measure_revoke, "notices": measure_notices, "events": measure_events, "scale": measure_scale,
    "watch": measure_watch,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="Measure stepfleet beside others.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="of load (default: %(default)s)")
    options = parser.parse_args()
    print(f"{STEPFLEET}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="stepfleet-bench.") as folder:
            # Started by root, PostgreSQL becomes a user of its own, who has to reach its files.
            os.chmod(folder, 0o755)
            PARTS[part](Path(folder), options.rounds)


if __name__ == "__main__":
    main()
