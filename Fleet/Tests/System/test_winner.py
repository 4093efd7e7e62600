"""Of all who want one vehicle at one time, one gets it: whatever the database, and however many ask."""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack, closing

import pytest

from crowd import Crowd, moment
from postgres import sql
from programs import wait_until

# The largest crowds are for a machine that does nothing else.
SIZES = [16, 64] + ([256] if os.environ.get("STEPFLEET_CROWD") else [])
ROUNDS = {16: 10, 64: 3, 256: 5}

OVERLAPS = """
  SELECT count(*) FROM booking a JOIN booking b ON a.vehicle = b.vehicle AND a.id < b.id
  WHERE a.state IN ('booked', 'active') AND b.state IN ('booked', 'active') AND a.begins < b.ends AND b.begins < a.ends
"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def overlaps(server) -> int:
    if server.database:
        return int(sql(server.database, OVERLAPS)[0])
    return server.sql(OVERLAPS)[0][0]


@pytest.fixture
def riders(stored, new_rider):
    return [new_rider(stored) for _ in range(4)]


def winners(crowd, vehicle, hour) -> int:
    """How many get it; everybody else is told that it is taken, and when it is free."""
    answers = crowd.books(vehicle, moment(hour), moment(hour + 1))
    for status, body in answers:
        assert status == 201 or (status, body["code"]) == (409, "taken") and len(body["next"]) == 3, body
    return sum(status == 201 for status, _ in answers)


@pytest.mark.parametrize("size", SIZES)
def test_one_wins(stored, parked, riders, size):
    with closing(Crowd(size, riders)) as crowd:
        assert [winners(crowd, parked[0], 2 * number + 1) for number in range(ROUNDS[size])] == [1] * ROUNDS[size]
    assert overlaps(stored) == 0


def test_one_wins_of_those_who_ask_two_servers(stored, parked, riders):
    if not stored.database:
        pytest.skip("a file has one server")
    with closing(stored.another()) as other:
        with closing(Crowd(32, riders, [stored.url, other.url])) as crowd:
            assert [winners(crowd, parked[0], 2 * number + 1) for number in range(5)] == [1] * 5
    assert overlaps(stored) == 0


def test_riders_who_want_the_same_hour_again_and_again_keep_nobody_waiting(stored, parked, new_rider):
    """PostgreSQL would have each of two who write what overlaps wait for the other, and then for the next who comes."""
    with ExitStack() as stack:
        other = stack.enter_context(closing(stored.another())) if stored.database else stored
        urls, answers, crowd = [stored.url, other.url], [], [new_rider(stored) for _ in range(8)]
        ends = time.monotonic() + 3

        def book(rider, number):
            while time.monotonic() < ends:
                path, minutes = "/v1/bookings", random.uniform(0, 0.2)
                wanted = {"vehicle": parked[0], "from": moment(1 + minutes), "to": moment(1.5 + minutes)}
                answer = asks(rider, urls[number % 2], path, wanted)
                if answer.status_code == 201:
                    asks(rider, urls[number % 2], f"{path}/{answer.json()['id']}/cancel")
                answers.append(answer.status_code)

        def asks(rider, url, path, body=None):
            # The proof is for the name by which riders know both servers.
            headers = {"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", path, rider.access)}
            return rider.session.post(url + path, json=body, headers=headers, timeout=60)

        threads = [threading.Thread(target=book, args=(rider, number)) for number, rider in enumerate(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(answers) <= {201, 409} and len(answers) >= 8
    # PostgreSQL finds a deadlock after a second, and ends one of the two: until then both wait.
    if stored.database:
        assert sql(stored.database, DEADLOCKS) == ["0"]
    assert overlaps(stored) == 0


def test_without_the_constraint_several_win(stored, parked, riders):
    """What the tests above would say of a database that does not keep bookings apart."""
    if stored.database:
        sql(stored.database, "ALTER TABLE booking DROP CONSTRAINT booking_overlap")
    else:
        stored.sql("DROP TRIGGER booking_overlap_insert")
    with closing(Crowd(16, riders)) as crowd:
        # Two have to meet; on a busy machine they may come one after the other.
        assert any(winners(crowd, parked[0], 2 * number + 1) > 1 for number in range(20))
    assert overlaps(stored) > 0


def test_what_was_promised_survives_any_death(stored, parked, riders):
    """The server is killed again and again while riders book; every booking that it has confirmed is there afterwards."""
    confirmed, seed = [], random.randrange(1 << 32)
    dice, stopping = random.Random(seed), threading.Event()

    def book(rider, vehicle, first):
        number = first
        while not stopping.is_set():
            number += 1
            try:
                answer = rider.books(vehicle, moment(1 + number / 10), moment(1 + number / 10 + 0.09))
            except OSError:
                time.sleep(0.02)
                continue
            if answer.status_code == 201:
                confirmed.append(answer.json()["id"])

    threads = [
        threading.Thread(target=book, args=(rider, parked[number % 2], 10_000 * (number // 2) // 10))
        for number, rider in enumerate(riders)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            known = len(confirmed)
            wait_until(lambda: len(confirmed) > known + 3, f"bookings (seed {seed})")
            time.sleep(dice.uniform(0, 0.1))
            stored.process.send_signal(signal.SIGKILL)
            stored.process.wait()
            stored.starts()
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    stored.stops()
    query = "SELECT id FROM booking"
    kept = set(sql(stored.database, query) if stored.database else (row[0] for row in stored.sql(query)))
    assert set(confirmed) <= kept, seed
    assert len(confirmed) >= 15
    checked = stored.types("check", stored.folder)
    assert checked.returncode == 0, checked


def test_a_backup_is_taken_while_riders_book(stored, parked, riders, tmp_path):
    stopping, confirmed = threading.Event(), []

    def book():
        number = 0
        while not stopping.is_set():
            number += 1
            answer = riders[0].books(parked[0], moment(1 + number), moment(1.9 + number))
            assert answer.status_code == 201, answer.text
            confirmed.append(answer.json()["id"])

    thread = threading.Thread(target=book)
    thread.start()
    wait_until(lambda: len(confirmed) > 5, "bookings")
    before = list(confirmed)
    made = stored.types("backup", tmp_path / "backup")
    after = len(confirmed)
    stopping.set()
    thread.join()
    assert made.returncode == 0, made
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    again = stored.types("backup", tmp_path / "backup")
    assert (again.returncode, "File exists" in again.stderr) == (74, True), again
    stored.stops()

    # A backup of either kind becomes a server with a file.
    restored = stored.types("restore", tmp_path / "backup", tmp_path / "restored", "--sqlite")
    assert restored.returncode == 0, restored
    checked = stored.types("check", tmp_path / "restored")
    assert (checked.returncode, checked.stdout) == (0, f"{tmp_path}/restored: nothing is wrong\n"), checked
    ids = set(stored.at(tmp_path / "restored").sql("SELECT id FROM booking"))
    kept = {row[0] for row in ids}
    assert set(before) <= kept and len(kept) <= after + 1
