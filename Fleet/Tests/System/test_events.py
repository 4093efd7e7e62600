"""What vehicles report is kept once, with the server killed, the broker away and reports that are forged; and is shown."""

import csv
import json
import random
import re
import signal
import time
from contextlib import ExitStack, closing

import pytest
import stepproto as proto

from programs import wait_until
from server import STEPFLEET
from terminal import Terminal
from test_fleet import Phone, at, booked
from test_stepctl import Joined
from test_stepctl import Phone as RiderPhone


@pytest.fixture
def phone(fleet, new_rider, tmp_path):
    return Phone(fleet, tmp_path / "phone", new_rider)


def history(fleet, *arguments) -> list[dict]:
    shown = fleet.types("history", "--json", *arguments)
    assert shown.returncode == 0, shown
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_an_opening_is_shown_with_its_booking_and_its_rider(fleet, phone, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        opened = phone.opens(car)
        assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
        wait_until(lambda: history(fleet)[-1:] and history(fleet)[-1]["kind"] == "ended", "the opening is heard")
        started, began, ended = history(fleet)
        assert (started["kind"], began["kind"], ended["kind"]) == ("started", "began", "ended")
        assert began["booking"] == booking["id"] and began["email"] == phone.rider.email, began
        assert (began["vehicle"], began["step"], began["position"], began["method"]) == ("car", "left", "open", "beacon")
        assert ended["position"] == "open" and ended["code"] is None and ended["finding"] is None, ended
        text = fleet.types("history", "--booking", booking["id"][:8]).stdout.splitlines()
        assert len(text) == 2 and f"  car: left: open for {booking['id'][:8]} {phone.rider.email} (beacon, " in text[0], text
        assert text[1].endswith("  car: left: is open"), text
        for arguments, count in (
            (("--account", phone.rider.email.upper()), 2), (("--since", "1h"), 3), (("--vehicle", "CAR"), 3),
            (("--lines", "2"), 2), (("--since", "2999-01-01T00:00:00Z"), 0), (("--since", "2020-01-01T00:00:00Z"), 3),
        ):
            assert len(history(fleet, *arguments)) == count, arguments
        for status, *arguments in (
            (1, "--vehicle", "bus"), (1, "--account", "nobody@example.org"), (1, "--booking", "0f3a"),
            (64, "--since", "yesterday"), (64, "--lines", "0"),
        ):
            refused = fleet.types("history", *arguments)
            assert refused.returncode == status and "error: " in refused.stderr.splitlines()[0], refused
        # Commands by hand read what the server has kept.
        log = car.stepctl("operator", "log", fleet.folder / "operator", "car", "--verify", "--json")
        assert log.status == 0 and log.objects[-1]["events"] >= 3 and log.objects[-1]["findings"] == 0, log
        assert '\nstepfleet_bookings{state="active"} 1\n' in fleet.metrics()
        # What a check finds: nothing, or a row that was taken away.
        assert fleet.types("check").returncode == 0
        fleet.sql("CREATE TABLE kept AS SELECT * FROM event WHERE kind = 'ended'")
        fleet.sql("DELETE FROM event WHERE kind = 'ended'")
        lost = fleet.types("check", fleet.folder)
        assert lost.returncode == 1 and lost.stdout.startswith("what car has reported: "), lost
        fleet.sql("INSERT INTO event SELECT * FROM kept")
        assert fleet.types("revoke", "--booking", booking["id"]).returncode == 0
        refusal = lambda: [one for one in history(fleet) if one["kind"] == "refused"]  # noqa: E731

        def asks_in_vain():
            phone.stepctl("close", "--side", "left", "--radio", car.radio)
            return refusal()

        wait_until(asks_in_vain, "a refusal is heard")
        helped = fleet.types("support", phone.rider.email)
        assert helped.returncode == 0 and "- car refused at " in helped.stdout and ": token_revoked" in helped.stdout, helped
        assert helped.stdout.splitlines()[0] == f"{phone.rider.email}: active"
        named = re.search(r"b-[0-9A-F]{16}", car.log.read_text())[0]
        assert json.loads(fleet.types("support", named, "--json").stdout)["email"] == phone.rider.email
        assert fleet.types("support", "nobody@example.org").returncode == 1
        shown = fleet.types("status").stdout.splitlines()
        assert shown[0].split() == ["name", "state", "steps", "booking", "there"], shown
        wait_until(lambda: "notice" not in fleet.types("status").stdout, "the vehicle says that it obeys its notice")
        assert shown[1].startswith("car  ") and "left open, right -" in shown[1], shown
        assert re.search(r"  yes, heard \d+ s ago$", shown[1]), shown
        figures = fleet.metrics()
        assert "\nstepfleet_silent_vehicles 0\n" in figures and '\nstepfleet_bookings{state="active"} 0\n' in figures, figures
        (told,) = json.loads(fleet.types("status", "--json").stdout)["vehicles"]
        assert told["online"] is True and told["certificate_ends"] > at(24), told
        assert told["last_event"].keys() == {"kind", "step", "position", "time"}, told
        assert re.fullmatch(r" {4}.*last refusal token_revoked, \d+ s ago", shown[2]), shown
        assert refusal()[-1]["code"] == "token_revoked" and refusal()[-1]["booking"] == booking["id"], refusal()


def test_a_rider_sees_what_the_vehicle_did(fleet, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        rider = RiderPhone(fleet, tmp_path / "rider", "zoe@example.org").makes_account().logs_in()
        booking = rider("book", "car", "--for", "1h", "-y", "--json")
        assert booking.status == 0, booking
        file = booking.json["vehicle_file"]
        for position in ("open", "close"):
            moved = rider(position, "--side", "left", "--vehicle", file, "--radio", car.radio)
            assert moved.status == 0, moved
        wait_until(lambda: len(rider("bookings", "show", "--json").json["events"]) == 4, "both motions are told")
        shown = rider("bookings", "show").lines
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  left opened by beacon(, \d s)?", shown[-2]), shown
        assert re.search(r"  left closed by beacon(, \d s)?$", shown[-1]), shown
        other = RiderPhone(fleet, tmp_path / "other", "eve@example.org").makes_account().logs_in()
        assert other("bookings", "show", booking.json["id"]).status == 66


def test_the_operator_watches_while_the_server_is_killed_and_comes_back(stored, new_rider, parked):
    environment = {"STEPFLEET_DIR": str(stored.folder), "PATH": "/usr/bin:/bin"}
    with closing(Terminal([STEPFLEET, "status", "--watch"], environment, rows=8, columns=60)) as terminal:
        frame = terminal.shows("as of 20")
        # Its broker does not run.
        assert frame[0].startswith("the broker is away for ") and frame[1].startswith("name"), frame
        assert frame[2].startswith("car   available"), frame
        assert all(len(line) <= 60 for line in frame), frame
        stored.kill()
        frame = terminal.shows(", no connection for ")
        # What it said last stays.
        assert frame[2].startswith("car   available"), frame
        stored.starts()
        wait_until(lambda: "no connection" not in "\n".join(terminal.frame), "it is back")
        new_rider(stored).books(parked[0], None, at(1))
        terminal.shows("car   reserved")
        terminal.resize(5, 60)
        terminal.shows("… and ")
        terminal.types(b"\x03")
        assert terminal.ends() == -signal.SIGINT
    refused = stored.types("status", "--watch")
    assert refused.returncode == 64 and "--watch draws on a terminal" in refused.stderr, refused


def test_a_rider_in_the_rain_is_helped_in_one_command(fleet, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        rider = RiderPhone(fleet, tmp_path / "rider", "zoe@example.org").makes_account().logs_in()
        assert rider("book", "car", "--for", "1h", "-y").status == 0
        opened = rider("open", "--side", "left", "--radio", car.radio)
        assert opened.status == 0, opened
        helped = fleet.types("support", "zoe@example.org", "--reissue")
        assert helped.returncode == 0, helped
        assert "is made new: the rider types `stepctl open` again" in helped.stdout.splitlines()[-1], helped
        wait_until(lambda: "notice" not in fleet.types("status").stdout, "the vehicle says that it obeys its notice")
        # The old access counts no more, and the rider types nothing else.
        closed = rider("close", "--side", "left", "--radio", car.radio)
        assert (closed.status, closed.stdout) == (0, "the left step is closed\n"), closed
        # What a spreadsheet gets.
        wait_until(lambda: len(history(fleet)) >= 6, "both motions are told")
        events = list(csv.DictReader(fleet.types("history", "--csv").stdout.splitlines()))
        assert [event["kind"] for event in events] == [event["kind"] for event in history(fleet)]
        assert (events[-1]["vehicle"], events[-1]["email"]) == ("car", "zoe@example.org")
        (month,) = csv.DictReader(fleet.types("statistics", "--csv").stdout.splitlines())
        assert (month["vehicle"], month["bookings"], month["openings"]) == ("car", "1", "1"), month
        (told,) = map(json.loads, fleet.types("statistics", "--json").stdout.splitlines())
        assert month["refusals"] == ", ".join(f"{code} {count}" for code, count in told["refusals"].items())
        for month in ("May", "2026-13", "2026-11-01", ""):
            refused = fleet.types("statistics", "--since", month)
            assert refused.returncode == 64 and "--since: a month is as 2026-11" in refused.stderr, refused
        assert fleet.types("support", "zoe@example.org", "--reissue", "--json").returncode == 0


def test_each_event_is_kept_once_however_often_the_server_is_killed(fleet, phone, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        chance = random.Random(33)
        # A vehicle lets nobody move its steps more often in a minute.
        for _ in range(3):
            assert phone.stepctl("open", "--side", "left", "--radio", car.radio).status == 0
            time.sleep(chance.random() / 5)
            fleet.process.send_signal(signal.SIGKILL)
            fleet.process.wait()
            # The vehicle reports to nobody, and again.
            assert phone.stepctl("close", "--side", "left", "--radio", car.radio).status == 0
            fleet.starts()
        count = 12

        def motions():
            return [one for one in history(fleet, "--lines", "1000") if one["kind"] in ("began", "ended")]

        wait_until(lambda: len(motions()) >= count, "all motions are heard")
        time.sleep(1)
        heard = motions()
        assert len(heard) == count and not any(one["finding"] for one in heard)
        sequences = [one["seq"] for one in history(fleet, "--lines", "1000")]
        assert sequences == sorted(set(sequences))
        assert car.stepctl("operator", "log", fleet.folder / "operator", "car", "--verify").status == 0


def adds_events(car, count: int) -> int:
    """Lets a vehicle whose stepd does not run have that many more events, as if it had been without its operator for long.

    Returns the number of the last one."""
    [spool] = car.folder.rglob("*.events")
    key = proto.private_key(json.loads((car.folder / "keys/signing.jwk").read_bytes()))
    last = spool.read_text().splitlines()[-1]
    sequence = proto.from_json(proto.from_base64url(last.split(".")[1]))["seq"]
    with open(spool, "a") as file:
        for sequence in range(sequence + 1, sequence + 1 + count):
            claims = {"vehicle": car.id, "seq": sequence, "prev": proto.digest(last.encode()), "time": 1_800_000_000}
            last = proto.sign_event(claims | {"kind": "refused", "step": "left", "code": "not_present"}, key)
            file.write(last + "\n")
    return sequence


def test_many_waiting_events_are_kept_once_though_the_server_is_killed_fifty_times(fleet, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        wait_until(lambda: history(fleet), "the start is heard")
        car.stepd.close()
        last = adds_events(car, 3000)
        car.drives()
        chance = random.Random(50)
        for _ in range(50):
            time.sleep(chance.random() / 2)
            fleet.process.send_signal(signal.SIGKILL)
            fleet.process.wait()
            fleet.starts()
        wait_until(lambda: [one["seq"] for one in history(fleet)][-1:] >= [last], "the last one is heard", 120)
        heard = history(fleet, "--lines", "10000")
        # One that says that a notice is in force is not shown.
        assert [one["seq"] for one in heard if one["kind"] == "refused"] == list(range(last - 2999, last + 1))
        assert not any(one["finding"] for one in heard)
        assert car.stepctl("operator", "log", fleet.folder / "operator", "car", "--verify").status == 0


def test_what_was_fetched_by_hand_and_what_follows_a_change_of_keys_is_heard(fleet, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        wait_until(lambda: history(fleet), "the start is heard")
        # The operator's folder gets the vehicle a second after it has joined, or when the server starts again.
        wait_until(lambda: (fleet.folder / "operator/vehicles" / car.id).exists(), "commands by hand know it")
        fleet.stops()
        # Numbers of notices follow the clock, to the second. The server has sent some in its last one.
        time.sleep(3)
        car.stepd.close()
        adds_events(car, 5)
        car.drives()
        # It acknowledges them, and the vehicle forgets them.
        fetched = car.stepctl("operator", "log", fleet.folder / "operator", "car", "--json")
        assert fetched.status == 0 and len([one for one in fetched.objects if one["kind"] == "refused"]) == 5, fetched
        car.stepd.close()
        fleet.starts()
        for _ in range(2):
            changed = fleet.types("keys", "rotate")
            assert changed.returncode == 0, changed
        car.drives()
        wait_until(lambda: [one["kind"] for one in history(fleet)].count("started") == 3, "both starts are heard")
        heard = history(fleet)
        assert [one["kind"] for one in heard].count("refused") == 5 and not any(one["finding"] for one in heard)
        sequences = [one["seq"] for one in heard]
        assert sequences == sorted(set(sequences))
