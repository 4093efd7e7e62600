"""stepctl as riders and vehicles use it, against the real server: nothing is played but the radio."""

import json
import re
import shutil
import stat
import time
from contextlib import ExitStack, closing
from datetime import datetime, timedelta

import pytest

from programs import STEPCTL, STEPD, Running, Stepctl, Transcript, wait_until
from rider import PASSWORD, code_in
from terminal import Terminal
from test_fleet import Car, at, booked


class Phone:
    """A rider's device, with an account at the server and nothing else."""

    def __init__(self, fleet, home, email="anna@example.org"):
        home.mkdir()
        self.fleet, self.home, self.email = fleet, home, email
        self.stepctl = Stepctl(home, Transcript())
        # Four times as long as usual: this machine may be busy.
        self.stepctl.environment["STEPCTL_TIMEOUT"] = "40"
        self.ca = ("--ca", fleet.verify)

    def __call__(self, *arguments, **more):
        return self.stepctl(*arguments, **more)

    def makes_account(self) -> "Phone":
        password = f"{PASSWORD}\n".encode()
        made = self("account", "create", self.fleet.url, *self.ca, "--email", self.email, "-y", input=password)
        assert made.status == 0, made
        code = code_in(self.fleet.mail(self.email))
        wrong = self("account", "confirm", "000000" if code != "000000" else "000001")
        assert (wrong.status, wrong.stdout) == (5, ""), wrong
        confirmed = self("account", "confirm", code)
        assert confirmed.status == 0, confirmed
        return self

    def logs_in(self) -> "Phone":
        password = f"{PASSWORD}\n".encode()
        ended = self("login", self.fleet.url, *self.ca, "--email", self.email, input=password)
        assert ended.status == 0, ended
        return self


class Joined(Car):
    """A vehicle that was made where it is, and joined the fleet with a code. Its stepd runs."""

    def __init__(self, fleet, folder, name: str, stack: ExitStack):
        folder.parent.mkdir()
        self.folder, self.stepctl = folder, Stepctl(folder.parent, Transcript())
        added = fleet.types("vehicle", "add", name)
        self.code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}", added.stdout)[0]
        joined = self.joins(fleet, folder)
        assert joined.status == 0, joined
        fleet.broker.reads_access_again()
        file = folder / "stepd.toml"
        file.write_text(re.sub(r"^travel_s = .*$", "travel_s = 0.3", file.read_text(), flags=re.MULTILINE))
        self.id = re.search(r'^uuid = "(.*)"$', (folder / "vehicle.toml").read_text(), re.MULTILINE)[1]
        self.stack = stack
        self.drives()

    def joins(self, fleet, folder):
        server = ("--fleet", fleet.url, "--ca", fleet.verify)
        return self.stepctl("provision", "vehicle", folder, *server, "--code", self.code)


def opened_without_a_word_to_the_broker(fleet, phone, folder, stack: ExitStack) -> tuple[Joined, Joined, dict]:
    """Two vehicles that join, and a booking of the first, whose step opens."""
    car = Joined(fleet, folder / "board/car", "car", stack)
    van = Joined(fleet, folder / "yard/van", "van", stack)
    booking = booked(phone.rider, car)
    phone.gets_access(booking["id"])
    opened = phone.opens(car)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
    return car, van, booking


@pytest.fixture
def car(fleet, tmp_path):
    with ExitStack() as stack:
        yield Joined(fleet, tmp_path / "board/car", "Rolling Chassis", stack)


@pytest.fixture
def new_phone(fleet, tmp_path):
    return lambda name="anna": Phone(fleet, tmp_path / f"phone-{name}", f"{name}@example.org").makes_account()


@pytest.fixture
def phone(new_phone):
    return new_phone()


def test_from_nothing_to_an_open_step_in_three_commands(fleet, car, phone):
    # The server's address and everything else that a rider has not typed is forgotten.
    (phone.home / ".config/stepctl/fleet/login.json").unlink()
    with ExitStack() as stack:
        commands, began = [], time.monotonic()

        def types(*arguments):
            commands.append(arguments)
            command = [STEPCTL, *arguments]
            return stack.enter_context(closing(Terminal(command, phone.stepctl.environment | {"TERM": "xterm"}, 50)))

        login = types("login", fleet.url)
        login.waits_for(b"Trust it?")
        shown = "".join(re.findall(r"^  ([0-9A-F:]+)\r?$", login.written.decode(), re.MULTILINE))
        printed = fleet.folder / "operator/tls/ca.pem"
        assert shown == fingerprint(printed)
        login.types(b"y\n")
        login.waits_for(b"It has to show")
        # The rider confirms the code in a browser.
        code = re.search(rb"show (?:\x1b\[1m)?([B-Z]{4}-[B-Z]{4})", login.written)[1].decode()
        fields = {"user_code": code, "email": phone.email, "password": PASSWORD, "decision": "allow"}
        assert browser(fleet).post(fleet.url + "/device", data=fields).status_code == 200
        assert login.ends() == 0, login.written

        book = types("book", "Rolling Chassis", "--for", "2h")
        book.waits_for(b"Book it?")
        book.types(b"\n")
        assert book.ends() == 0, book.written

        commands.append(("open",))
        opened = phone("open", STEPCTL_RADIO=car.radio)
        assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
        took = time.monotonic() - began
    assert [command[0] for command in commands] == ["login", "book", "open"]
    assert all(len(" ".join(command)) < 60 for command in commands)
    # No limit on it: this machine may be busy. `pytest -rP` shows it.
    print(f"three commands took {took:.1f} s")

    (booking,) = [json.loads(line) for line in phone("bookings", "list", "--json").lines]
    assert booking["state"] == "active" and booking["vehicle"] == car.id
    assert phone("status").lines == ["left     open", "right    closed"]


def test_from_nothing_and_no_account_to_an_open_step(fleet, car, tmp_path):
    """Three commands and six answers."""
    phone = Phone(fleet, tmp_path / "phone-bo", "bo@example.org")
    with ExitStack() as stack:
        answers = []

        def types(*arguments):
            command = [STEPCTL, *arguments]
            return stack.enter_context(closing(Terminal(command, phone.stepctl.environment | {"TERM": "xterm"}, 50)))

        def answer(terminal, question: bytes, text: str):
            terminal.waits_for(question)
            answers.append(question)
            terminal.types(text.encode() + b"\n")

        login = types("login", fleet.url)
        answer(login, b"Trust it?", "y")
        answer(login, b"No account yet? Type your email address: ", phone.email)
        login.waits_for(b"or one for a new account: ")
        wait_until(lambda: not login.shows_what_is_typed, "the terminal hides what is typed")
        answer(login, b"or one for a new account: ", PASSWORD)
        answer(login, b"Make an account for bo@example.org, and accept these terms?", "y")
        answer(login, b"the code (Enter to stop): ", code_in(fleet.mail(phone.email)))
        assert login.ends() == 0, login.written
        assert b"as bo@example.org" in login.written and PASSWORD.encode() not in login.written

        book = types("book", "Rolling Chassis", "--for", "2h")
        answer(book, b"Book it?", "")
        assert book.ends() == 0, book.written
        assert len(answers) == 6
    opened = phone("open", STEPCTL_RADIO=car.radio)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened


def browser(fleet):
    import requests

    session = requests.Session()
    session.trust_env, session.verify = False, fleet.verify
    return session


def fingerprint(file) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    digest = x509.load_pem_x509_certificate(file.read_bytes()).fingerprint(hashes.SHA256()).hex().upper()
    return ":".join(digest[i : i + 2] for i in range(0, 64, 2))


def test_a_booking_from_its_begin_to_its_end(fleet, car, phone, new_phone):
    phone.logs_in()
    assert phone("whoami").lines[0] == "account  anna@example.org"
    assert phone("vehicles").lines == ["Rolling Chassis  available        left, right"]
    booked = phone("book", "rolling chassis", "--for", "2h", "-y", "--json")
    assert booked.status == 0, booked
    booking = booked.json

    # Another rider loses, is told when the vehicle is free, and takes that.
    ben = new_phone("ben").logs_in()
    lost = ben("book", "Rolling Chassis", "--for", "2h", "-y", "--json")
    assert lost.status == 5 and (lost.json["problem"], len(lost.json["next"])) == ("taken", 3), lost
    # As it is printed.
    begin = re.search(r"^hint: free from (\d{4}-\d\d-\d\d \d\d:\d\d), ", lost.stderr, re.MULTILINE)[1]
    later = ben("book", "Rolling Chassis", "--from", begin, "--for", "1h", "-y", "--json")
    assert later.status == 0, later
    given_up = ben("bookings", "cancel", "-y")
    assert given_up.status == 0 and "cancelled" in given_up.stdout, given_up

    assert phone("open", STEPCTL_RADIO=car.radio).status == 0
    longer = phone("bookings", "extend", "--for", "1h", "--json")
    assert longer.status == 0 and longer.json["to"] > booking["to"], longer
    ended = phone("bookings", "end", "-y")
    assert ended.status == 0 and ended.stdout.startswith("Rolling Chassis: ended"), ended
    # Access that was handed out for it counts no more.
    file = booking["vehicle_file"]

    def is_refused():
        closed = phone("close", "--vehicle", file, STEPCTL_RADIO=car.radio)
        return closed.status == 5 and "revoked" in closed.stderr

    wait_until(is_refused, "the step is refused")
    assert phone("logout").status == 0
    assert phone("vehicles").status == 77


def test_a_device_that_was_revoked_opens_nothing_until_it_has_another_key(fleet, car, phone):
    phone.logs_in()
    booking = phone("book", "Rolling Chassis", "--for", "2h", "-y", "--json").json
    exported = json.loads(phone("account", "export").stdout)
    (login,) = exported["logins"]
    revoked = fleet.types("revoke", "--device", login["device"]).stdout
    assert revoked == "1 token revoked, 1 login ended; the device gets no access any more with this key\n"

    def is_refused():
        opened = phone("open", "--vehicle", booking["vehicle_file"], STEPCTL_RADIO=car.radio)
        return opened.status == 5 and "revoked" in opened.stderr

    wait_until(is_refused, "the step is refused")
    for folder in ("device", "vehicles"):
        shutil.rmtree(phone.home / ".config/stepctl" / folder)
    phone.logs_in()
    opened = phone("open", STEPCTL_RADIO=car.radio)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened


def test_the_server_may_be_gone_when_the_step_is_opened(fleet, car, phone):
    phone.logs_in()
    assert phone("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    fleet.kill()
    opened = phone("open", STEPCTL_RADIO=car.radio)
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
    assert phone("bookings").status == 69


def test_a_vehicle_joins_once_and_keeps_its_private_keys(fleet, car):
    assert stat.S_IMODE((car.folder / "tls/controller.key").stat().st_mode) == 0o600
    assert not (car.folder / "operator").exists() and not (car.folder / "mosquitto.conf").exists()
    for path in (fleet.folder / "operator/vehicles").rglob("*"):
        assert "key" not in path.suffix and "keys" not in path.parts[-1:], path
    other = car.folder.parent / "other"
    again = car.joins(fleet, other)
    assert (again.status, again.stdout, other.exists()) == (77, "", False), again


def test_an_account_is_exported_and_deleted(fleet, phone, tmp_path):
    phone.logs_in()
    file = tmp_path / "export"
    assert phone("account", "export", "-o", file).status == 0
    assert "anna@example.org" in file.read_text()
    assert phone("account", "delete", input=b"anna@example.org\n").status == 0
    assert phone("whoami").status == 77
    login = phone("login", fleet.url, *phone.ca, "--email", phone.email, input=f"{PASSWORD}\n".encode())
    assert login.status == 77, login


def test_bookings_that_make_no_sense_are_refused_by_the_server(fleet, car, phone):
    phone.logs_in()
    past, far = (at(hours)[:16] for hours in (-24, 24 * 402))
    for begin, length, code in ((past, "2h", "past"), (far, "2h", "too_far"), ("now", "400d", "too_long")):
        ended = phone("book", "Rolling Chassis", "--from", begin, "--for", length, "-y", "--json")
        assert (ended.status, ended.json["problem"]) == (5, code), ended
    assert phone("bookings", "list", "--json").lines == []


def test_a_booking_of_a_vehicle_out_of_service_is_not_extended(fleet, car, phone):
    phone.logs_in()
    booked = phone("book", "Rolling Chassis", "--for", "2h", "-y", "--json")
    assert booked.status == 0, booked
    assert fleet.types("vehicle", "suspend", "Rolling Chassis").returncode == 0
    longer = phone("bookings", "extend", "--for", "1h", "--json")
    assert (longer.status, longer.json["problem"]) == (5, "unavailable"), longer
    assert "the vehicle is out of service" in longer.stderr, longer
    (kept,) = phone("bookings", "list", "--json").lines
    assert json.loads(kept)["to"] == booked.json["to"]


def test_access_is_back_after_a_vehicle_was_suspended_and_resumed(fleet, car, phone):
    phone.logs_in()
    assert phone("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    assert phone("open", STEPCTL_RADIO=car.radio).status == 0
    assert fleet.types("vehicle", "suspend", "Rolling Chassis").returncode == 0
    wait_until(lambda: phone("status").status == 5, "the vehicle refuses")
    assert fleet.types("vehicle", "resume", "Rolling Chassis").returncode == 0
    closed = phone("close", STEPCTL_RADIO=car.radio)
    assert (closed.status, closed.stdout) == (0, "the left step is closed\n"), closed
    assert phone("status").status == 0


def test_access_that_was_revoked_during_a_booking_heals_itself(fleet, car, phone):
    phone.logs_in()
    assert phone("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    assert phone("open", STEPCTL_RADIO=car.radio).status == 0
    # The version before has begun to revoke it, and the next start completes that.
    assert fleet.stops() == 0
    fleet.sql("UPDATE access SET standing = 'withdrawing'")
    fleet.starts()
    # It does not take proofs from before it was there, to the second.
    time.sleep(1.1)

    def heals():
        closed = phone("close", STEPCTL_RADIO=car.radio)
        assert (closed.status, closed.stdout) == (0, "the left step is closed\n"), closed
        return "access   fetched again from the operator's server" in closed.stderr

    wait_until(heals, "the vehicle knows of it")
    assert phone("status").status == 0


def test_who_comes_too_early_or_too_late_is_told_when(fleet, car, phone, new_phone):
    phone.logs_in()
    begin = datetime.now() + timedelta(hours=1)
    typed = begin.strftime("%Y-%m-%d %H:%M")
    later = phone("book", "rolling chassis", "--from", typed, "--for", "1h", "-y", "--json")
    assert later.status == 0, later
    early = phone("open", "--side", "left", "--radio", car.radio)
    assert (early.status, early.hint) == (5, f"your booking begins at {typed}"), early
    # Somebody else has it until then, and cannot have it for longer.
    ben = new_phone("ben").logs_in()
    now = ben("book", "Rolling Chassis", "--for", "30m", "-y", "--json")
    assert now.status == 0, now
    longer = ben("bookings", "extend", "--for", "2h")
    assert (longer.status, longer.hint) == (5, f"the latest end is {typed}"), longer
    assert ben("bookings", "extend", "--to", typed).status == 0
    # The operator cancels, by what the rider reads to them. The rider's device has not heard of it.
    short = later.json["id"][:8]
    cancelled = fleet.types("booking", "cancel", f"({short})")
    assert cancelled.stdout.startswith(f"{short}, Rolling Chassis, ") and "of anna@example.org: cancelled; 1 token" in (
        cancelled.stdout), cancelled

    def is_told():
        late = phone("open", "--side", "left", "--radio", car.radio)
        return late.status == 5 and late.hint == f"your booking {short} is cancelled"

    wait_until(is_told, "the rider is told that the booking is cancelled")
    assert f"{short} of Rolling Chassis, " in fleet.types("support", short).stdout
    again = fleet.types("booking", "cancel", short)
    assert again.returncode == 0 and again.stdout.endswith("was cancelled already\n"), again


def test_who_finds_a_vehicle_taken_is_told_what_is_free(stored, parked, new_rider, tmp_path):
    new_rider(stored).books(parked[0], None, at(1))
    phone = Phone(stored, tmp_path / "phone").makes_account().logs_in()
    lost = phone("book", "car", "--for", "30m", "-y")
    assert lost.status == 5 and re.fullmatch(r"free from \d{4}-[\d-]+ \d\d:\d\d, .*; free now: van", lost.hint), lost
    later = phone("book", "car", "--from", (datetime.now() + timedelta(minutes=30)).strftime("%H:%M"), "--for", "1h", "-y")
    assert later.status == 5 and later.hint.endswith("; free then: van"), later


def test_a_code_is_typed_with_or_without_its_hyphens_and_is_taken_back(stored, tmp_path):
    def code(name):
        added = stored.types("vehicle", "add", name)
        return re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}", added.stdout)[0], added.stdout

    stepctl = Stepctl(tmp_path, Transcript())

    def joins(folder, typed):
        return stepctl(
            "provision", "vehicle", tmp_path / folder, "--fleet", stored.url, "--ca", stored.verify, "--code", typed)

    typed, _ = code(" Bus ")
    assert joins("bus", typed.replace("-", "").lower()).status == 0
    first, _ = code("Tram")
    second, said = code("Tram")
    assert "the code that Tram had before does not count any more" in said
    assert joins("tram", first).status == 77
    assert '"state":"expected"' in stored.types("vehicle", "show", "tram").stdout
    assert stored.types("vehicle", "remove", "Tram", "-y").stdout == "Tram: removed\n"
    assert joins("tram", second).status == 77
    names = [line.split("  ")[0] for line in stored.types("vehicle", "list").stdout.splitlines()]
    assert "Bus" in names and "Tram" not in names, names
    # A second one that differs in its case alone, and what is mistyped.
    assert "there is a vehicle of that name" in stored.types("vehicle", "add", "BUS").stderr
    assert 'no vehicle is called "Buss"; did you mean "Bus"?' in stored.types("vehicle", "suspend", "Buss").stderr
