#!/usr/bin/env python3
"""A bridge beside others: `stepctl traffic serve`, plain C on libwebsockets (floor.c), and Python's websockets.

    bridge.py --bin .build/release                 # 200 clients, 25 frames a second of 23 objects, 20 s each

In turn, each gets the same frames from one publisher, over mutual TLS, and passes them on to the same clients
(clients.c), one of which does not read. CPU is the bridge's own, user and system, for a frame that it sends. Where
there is perf, the instructions count, which other programs disturb less than the time. Memory is what its resident
set grows by, for a client. The C one sends on what came without looking at it, and the Python one parses a frame once
and sends one text to all; neither knows places, sections or stamps.
"""

import argparse
import asyncio
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import websockets

HERE = Path(__file__).resolve().parent
RATE = 25


def certificates(folder: Path) -> None:
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    run = {"check": True, "capture_output": True, "cwd": folder}
    subprocess.run([*new, "-subj", "/CN=CA", "-keyout", "ca.key", "-out", "ca.pem"], **run)
    for file, name in [("bridge", "bridge"), ("publisher", "publisher:S1"), ("client", "client")]:
        subprocess.run([*new, "-CA", "ca.pem", "-CAkey", "ca.key", "-subj", f"/CN={name}", "-addext",
                        "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                        f"{file}.key", "-out", f"{file}.pem"], **run)


def context(folder: Path, name: str, server: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(folder / "ca.pem")
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def python_bridge(folder: Path, port: int) -> None:
    clients = set()

    async def handle(connection):
        if connection.request.path.startswith("/publish/"):
            async for message in connection:
                websockets.broadcast(clients, json.dumps(json.loads(message), separators=(",", ":")))
            return
        try:
            async for message in connection:
                json.loads(message)
                clients.add(connection)
        finally:
            clients.discard(connection)

    async def serve():
        options = {"ssl": context(folder, "bridge", True), "compression": None, "max_size": 1 << 20}
        async with websockets.serve(handle, "127.0.0.1", port, **options) as server:
            await server.serve_forever()

    asyncio.run(serve())


def frame(objects: int) -> str:
    now = time.time()
    vehicles = [{
        "id": str(100 + index), "category": "car",
        "position": {"x": 48.77586231 + index * 1e-5, "y": 9.18232415 + index * 1e-5, "z": 0},
        "speed": {"x": 0.478, "y": -5.171, "z": 4.8021}, "shape": {"length": 4.42, "width": 1.81, "height": 0}}
        for index in range(objects)]
    return json.dumps({"section": "S1", "timestampSecs": str(int(now)), "timestampNsecs": str(int(now % 1 * 1e9)),
                       "vehicles": vehicles}, separators=(",", ":"))


async def publish(folder: Path, port: int, objects: int, until) -> None:
    connected = websockets.connect(f"wss://localhost:{port}/publish/S1", ssl=context(folder, "publisher"), compression=None)
    async with connected as publisher:
        next_ = time.monotonic()
        while not until.is_set():
            await publisher.send(frame(objects))
            next_ += 1 / RATE
            await asyncio.sleep(max(0, next_ - time.monotonic()))


def cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    return next(int(line.split()[1]) for line in Path(f"/proc/{process}/status").read_text().splitlines()
                if line.startswith("VmRSS"))


async def measure(name, command, folder, options) -> dict:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([str(word).replace("PORT", str(port)) for word in command], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = asyncio.Event()
    try:
        for _ in range(200):
            if socket.socket().connect_ex(("127.0.0.1", port)) == 0:
                break
            await asyncio.sleep(0.05)
        publishing = asyncio.create_task(publish(folder, port, options.objects, until))
        await asyncio.sleep(0.5)
        before = resident(process.pid)
        clients = await asyncio.create_subprocess_exec(
            folder / "clients", str(port), folder / "ca.pem", folder / "client.pem", folder / "client.key",
            str(options.clients), str(options.stalled), str(options.seconds), stdout=asyncio.subprocess.PIPE)
        connected = int((await clients.stdout.readline()).split()[1])
        await asyncio.sleep(1)
        begin, memory = cpu(process.pid), resident(process.pid) - before
        counter = await asyncio.create_subprocess_exec(
            "perf", "stat", "-x,", "-e", "instructions", "-p", str(process.pid), "sleep", str(options.seconds - 1),
            stderr=asyncio.subprocess.PIPE) if shutil.which("perf") else None
        result = json.loads(await clients.stdout.readline())
        used = cpu(process.pid) - begin
        counted = (await counter.stderr.read()).decode().partition(",")[0] if counter else ""
        await clients.wait()
        until.set()
        await publishing
    finally:
        process.terminate()
        process.wait(10)
    # The clients count for one part of the seconds, and perf for another.
    frames = max(result["frames"], 1) * (options.seconds - 1) / options.seconds
    return {"name": name, "connected": connected, "cpu_us": used / max(result["frames"], 1) * 1e6,
            "instructions": int(counted) / frames if counted.isdigit() else 0,
            "kilobytes": memory / max(connected, 1), **result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="the folder of stepctl-traffic")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--stalled", type=int, default=1)
    parser.add_argument("--objects", type=int, default=23)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python-bridge", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python_bridge:
        return python_bridge(Path(options.python_bridge[0]), int(options.python_bridge[1]))
    folder = Path(tempfile.mkdtemp())
    try:
        certificates(folder)
        for program in ("floor", "clients"):
            subprocess.run(["cc", "-O2", "-o", folder / program, HERE / f"{program}.c", "-lwebsockets"], check=True)
        files = [folder / "ca.pem", folder / "bridge.pem", folder / "bridge.key"]
        peers = {
            # The program that stepctl starts.
            "stepctl": [options.bin / "stepctl-traffic", "serve", "127.0.0.1", "PORT", *files, "", ""],
            "C": [folder / "floor", "PORT", *files],
            "Python": [sys.executable, __file__, "--python-bridge", folder, "PORT"],
        }
        rounds = [{name: asyncio.run(measure(name, command, folder, options)) for name, command in peers.items()}
                  for _ in range(options.rounds)]
    finally:
        shutil.rmtree(folder)
    print(f"{options.clients} clients, {options.stalled} stalled, {RATE} frames a second of {options.objects} objects; "
          f"medians of {options.rounds}")
    print(f"{'bridge':8} {'CPU a frame':>12} {'instructions':>12} {'a client':>9} {'frames':>8} {'p50':>8} {'p99':>8} {'worst p99':>10}")
    medians = {}
    for name in peers:
        one = medians[name] = {
            member: statistics.median(round_[name][member] for round_ in rounds)
            for member in ("cpu_us", "instructions", "kilobytes", "frames", "p50_ms", "p99_ms", "worst_p99_ms")}
        print(f"{name:8} {one['cpu_us']:9.1f} µs {one['instructions']:12.0f} {one['kilobytes']:6.0f} kB {one['frames']:8.0f} {one['p50_ms']:5.1f} ms "
              f"{one['p99_ms']:5.1f} ms {one['worst_p99_ms']:7.1f} ms")
    own = medians["stepctl"]
    cost = "instructions" if own["instructions"] else "cpu_us"

    def beside(name: str) -> list[float]:
        """Of each round: what disturbs one disturbs the next one, too."""
        return sorted(round_["stepctl"][cost] / round_[name][cost] for round_ in rounds)

    goals = [
        (f"{statistics.median(ratios):.2f} × {name} ({ratios[0]:.2f} to {ratios[-1]:.2f}; goal {goal})",
         statistics.median(ratios) <= goal)
        for name, goal in (("C", 1.3), ("Python", 0.6)) for ratios in [beside(name)]
    ] + [
        (f"{own['kilobytes']:.0f} kB a client (goal 100)", own["kilobytes"] <= 100),
        (f"p99 {own['p99_ms']:.1f} ms, of the worst client {own['worst_p99_ms']:.1f} ms (goal 40)",
         own["worst_p99_ms"] <= 40),
    ]
    for text, is_met in goals:
        print(f"{text}: {'ok' if is_met else 'MISSED'}")
    if not all(is_met for _, is_met in goals):
        sys.exit(1)


if __name__ == "__main__":
    main()
