"""How soon the server has what vehicles report."""

import sqlite3
import statistics
import time
from contextlib import ExitStack, closing
from pathlib import Path

from server import Broker, Server
from test_events import adds_events
from test_fleet import Car
from test_stepctl import Phone

# A vehicle keeps 10,000, and drops the oldest then.
WAITING = 9_900
# Each lets nobody move its steps more often than a few times a minute.
CARS, MOTIONS = 25, 4


def measure_events(folder: Path, rounds: int):
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(folder / "fleet")))
        server.broker = stack.enter_context(closing(Broker(server)))
        server.starts()
        rows = stack.enter_context(closing(sqlite3.connect(f"file:{server.folder}/data/fleet.sqlite?mode=ro", uri=True)))

        def waits(kind: str, count: int) -> float:
            deadline = time.monotonic() + 300
            while rows.execute("SELECT count(*) FROM event WHERE kind = ?", (kind,)).fetchone()[0] < count:
                assert time.monotonic() < deadline, (kind, count)
                time.sleep(0.002)
            return time.perf_counter()

        cars = [Car(server, folder / f"car{number}", stack) for number in range(CARS)]
        phone = Phone(server, folder / "phone", "rider@example.org").makes_account().logs_in()
        files = []
        for number in range(CARS):
            booking = phone("book", f"car{number}", "--for", "1h", "-y", "--json")
            assert booking.status == 0, booking
            files.append(booking.json["vehicle_file"])
        times = []
        for position in ("open", "close") * (MOTIONS // 2):
            for car, file in zip(cars, files):
                moved = phone(position, "--side", "left", "--vehicle", file, "--radio", car.radio)
                began = time.perf_counter()
                assert moved.status == 0, moved
                times.append((waits("ended", len(times) + 1) - began) * 1e3)
        times.sort()
        print(
            f"\n{len(times)} motions by {CARS} vehicles: the end is shown {statistics.median(times):.0f} ms after stepctl has "
            f"ended, p95 {times[int(len(times) * 0.95) - 1]:.0f} ms, at most {times[-1]:.0f} ms (goal: p95 ≤ 1,000)",
            flush=True)
        cars[0].stepd.close()
        adds_events(cars[0], WAITING)
        began = time.perf_counter()
        cars[0].drives()
        print(f"{WAITING:,} events that waited in one vehicle: {waits('refused', WAITING) - began:.1f} s (goal: ≤ 60)")
        shown = server.types("history", "--vehicle", "car0", "--lines", "10000", "--json").stdout
        assert '"finding":"' not in shown and shown.count('"refused"') > WAITING - 20
