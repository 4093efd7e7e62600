"""Lists that riders watch: `stepctl vehicles --watch`, `stepctl bookings --watch`, and the requests that they make."""

import json
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from programs import STEPCTL, wait_until
from terminal import Terminal
from test_fleet import at
from test_stepctl import Phone


@pytest.fixture
def phone(stored, tmp_path):
    return Phone(stored, tmp_path / "phone").makes_account().logs_in()


def test_a_rider_watches_while_the_server_is_killed_and_comes_back(stored, parked, phone, new_rider):
    environment = phone.stepctl.environment | {"TERM": "xterm", "LANG": "C.UTF-8"}
    with closing(Terminal([STEPCTL, "vehicles", "--watch"], environment, rows=6, columns=40)) as terminal:
        frame = terminal.shows("as of ")
        assert frame[0].startswith("car  available") and frame[1].startswith("van  available"), frame
        assert re.fullmatch(r"as of \d\d:\d\d:\d\d", frame[2]) and frame[3] == "Control-C ends", frame
        eve = new_rider(stored)
        began = time.monotonic()
        eve.books(parked[0], None, at(1))
        terminal.shows("car  reserved")
        assert time.monotonic() - began < 5
        stored.kill()
        frame = terminal.shows(", no connection for ")
        # What it said last stays, with how old it is.
        assert frame[0].startswith("car  reserved"), frame
        wait_until(lambda: re.search(r"no connection for ([2-9]|\d\d) s", terminal.frame[2]), "it goes on counting")
        stored.starts()
        wait_until(lambda: "no connection" not in "\n".join(terminal.frame), "it is back")
        eve.books(parked[1], None, at(1))
        terminal.shows("van  reserved")
        terminal.resize(3, 40)
        terminal.shows("and 2 more")
        terminal.types(b"\x03")
        assert terminal.ends() == -signal.SIGINT
    # The last list stays on the terminal, and no error is printed.
    assert b"van  reserved" in terminal.written.rpartition(b"1049l")[2] and b"error" not in terminal.written


def test_without_a_terminal_each_change_is_printed(stored, parked, phone, tmp_path):
    lists = phone.stepctl.start(tmp_path / "vehicles", "vehicles", "--watch", "--json")
    text = phone.stepctl.start(tmp_path / "bookings", "bookings", "--watch")


    def printed() -> list[dict]:
        return [json.loads(line) for line in lists.stdout.read_text().splitlines()]

    wait_until(lambda: printed() and "as of" in text.stdout.read_text(), "both have begun")
    made = phone("book", "car", "--for", "1h", "-y", "--json")
    assert made.json["name"] == "car", made
    wait_until(lambda: printed()[-1]["vehicles"][0]["state"] == "on_trip", "it is in use")
    line = f"  {made.json['id'][:8]}  "
    wait_until(lambda: "active     car" in text.stdout.read_text(), "the booking is active")
    first, last = printed()[0], printed()[-1]
    assert first.keys() == {"as_of", "vehicles"} and [one["name"] for one in first["vehicles"]] == ["car", "van"]
    assert [one["state"] for one in last["vehicles"]] == ["on_trip", "available"], last
    stored.kill()
    for program in (lists, text):
        program.says("trying again")
    stored.starts()
    for program in (lists, text):
        program.says("connected again")
    # An end of the login ends the watch.
    assert stored.types("account", "suspend", phone.email).returncode == 0
    for program in (lists, text):
        ended = program.ends()
        assert ended.status == 77 and ended.stderr.count("again\n") == 2, ended
    assert text.stdout.read_text().startswith("as of 20") and line in text.stdout.read_text()


def test_a_watch_ends_when_nobody_reads_it(stored, parked, phone):
    """As `| head -1`, though nothing changes."""
    for arguments in (("vehicles", "--watch"), ("bookings", "--watch", "--json")):
        with subprocess.Popen(
            [STEPCTL, *arguments], stdout=subprocess.PIPE, env=phone.stepctl.environment) as watch:
            assert watch.stdout.readline()
            watch.stdout.close()
            assert watch.wait(20) == -signal.SIGPIPE, arguments


def asking(rider, path, tag=None, url=None):
    headers = {"Prefer": "wait=25"} | ({"If-None-Match": tag} if tag else {})
    access = rider.access
    proof = rider.proof("GET", path, access)
    return rider.session.get(
        (url or rider.server.url) + path, headers=headers | {"Authorization": f"DPoP {access}", "DPoP": proof}, timeout=40)


def test_a_server_that_stops_answers_those_who_wait(stored, parked, new_rider):
    rider = new_rider(stored)
    tag = asking(rider, "/v1/vehicles").headers["ETag"]
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(asking, rider, "/v1/vehicles", tag)
        time.sleep(1)
        began = time.monotonic()
        assert not answer.done()
        stored.process.send_signal(signal.SIGTERM)
        assert answer.result().status_code == 304 and time.monotonic() - began < 4
        assert stored.stops() == 0


def test_what_changes_at_one_server_is_seen_at_another(stored, parked, new_rider):
    if not stored.database:
        pytest.skip("two servers need PostgreSQL")
    rider, eve = new_rider(stored), new_rider(stored)
    with closing(stored.another()) as another, ThreadPoolExecutor() as pool:
        tag = asking(rider, "/v1/vehicles", url=another.url).headers["ETag"]
        answer = pool.submit(asking, rider, "/v1/vehicles", tag, another.url)
        time.sleep(1)
        assert not answer.done()
        began = time.monotonic()
        eve.books(parked[0], None, at(1))
        seen = answer.result()
        assert time.monotonic() - began < 5 and seen.json()["vehicles"][0]["state"] == "reserved", seen.text
