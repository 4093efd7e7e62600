"""Riders who watch a list: how soon they see a change, what each of them costs, and what they cost those who book."""

import json
import os
import queue
import re
import ssl
import statistics
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from riders import Rider, base64url

HERE = Path(__file__).resolve().parent
WATCHERS = 1000
# Each makes one vehicle's state another one.
CHANGES = 50


class Watchers:
    """They are one process, with a connection for each."""

    def __init__(self, program: Path, url: str, authority: str, riders: list[Rider], path: str):
        self.process = subprocess.Popen(
            [program, url, authority], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for rider in riders:
            self.process.stdin.write(
                f"{path} {rider.access} {rider.header} {base64url(rider.key.private_bytes_raw())} {rider.hash}\n")
        self.process.stdin.close()
        self.answers = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self.answers.get(timeout=120) == "waiting"
        # Each of them has sent its second request, which waits.
        time.sleep(2)

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line.strip())

    def seen(self, count: int, began: int) -> list[float]:
        """After how many milliseconds each of so many has seen a change."""
        times = []
        while len(times) < count:
            moment, status = self.answers.get(timeout=30).split()
            if status == "200":
                times.append((int(moment) - began) / 1e6)
        return times

    def close(self):
        self.process.kill()
        self.process.wait()


def built(folder: Path) -> Path:
    program = folder / "watchers"
    subprocess.run(["go", "build", "-o", program, HERE / "watchers.go"], check=True, env=os.environ | {"GO111MODULE": "off"})
    return program


def books_now(rider: Rider, url: str, vehicle: str, context: ssl.SSLContext):
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 300))
    request = urllib.request.Request(
        url + "/v1/bookings", json.dumps({"vehicle": vehicle, "to": end}).encode(),
        {"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", url + "/v1/bookings"),
         "Content-Type": "application/json"})  # fmt: skip
    with urllib.request.urlopen(request, context=context) as answer:
        assert answer.status == 201


def measure_watchers(program: Path, fleet, server, authority: str, context: ssl.SSLContext) -> Watchers:
    """Prints how soon they see a change, and how much memory each needs."""
    # What the first requests need stays.
    for rider in fleet.riders[:8]:
        request = urllib.request.Request(
            server.url + "/v1/vehicles",
            headers={"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("GET", server.url + "/v1/vehicles")})
        urllib.request.urlopen(request, context=context).read()
    before = server.resident()
    watchers = Watchers(program, server.url, authority, fleet.riders[:WATCHERS], "/v1/vehicles")
    each = (server.resident() - before) * 1e3 / WATCHERS
    times = []
    for vehicle, rider in zip(fleet.vehicles[:CHANGES], fleet.riders[WATCHERS:]):
        began = time.time_ns()
        books_now(rider, server.url, vehicle, context)
        times += watchers.seen(WATCHERS, began)
        time.sleep(0.5)
    times.sort()
    print(
        f"\n{WATCHERS:,} watch {len(fleet.vehicles)} vehicles, {CHANGES} changes: seen by half after "
        f"{statistics.median(times):.0f} ms, p99 {times[int(len(times) * 0.99) - 1]:.0f} ms (goal ≤ 500), at most "
        f"{times[-1]:.0f} ms; {each:.0f} KB of memory each (goal ≤ 40), {server.resident():.0f} MB at the end", flush=True)
    return watchers
