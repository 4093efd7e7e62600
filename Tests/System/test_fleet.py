"""An account at a fleet's server: login, bookings, and the access that comes of them; and a server that is not as it
should be. The server is Tests/Peers/fleet_server.py, over real TLS."""

import contextlib
import json
import re
import signal
import stat
import threading
import time
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from devices import Device
from fleet_server import Authority, FleetServer, seconds, stamp, unpadded
from programs import PATIENCE, REPOSITORY, STEPCTL, Ended, Stepctl, wait_until
from test_notices import REVOKED, Operator

EMAIL, PASSWORD = "anna@example.org", "correct horse"


class Account(Device):
    """A rider's device, and the server it talks to."""

    def __init__(self, home: Path, server: FleetServer, ca: Authority, transcript):
        super().__init__(home, transcript)
        self.server, self.ca = server, ca
        self.folder = home / ".config/stepctl/fleet"
        self.transcript = transcript

    def __call__(self, *arguments, **more) -> Ended:
        ended = self.stepctl(*arguments, **more)
        self.notes_secrets()
        return ended

    def notes_secrets(self):
        """None of these may be in anything that a program says."""
        secrets = {PASSWORD: "password"}
        for family in self.server.families.values():
            secrets |= dict.fromkeys([family["refresh"], family["access"], *family["old"]], "token")
        self.transcript.secrets |= secrets

    def logs_in(self) -> "Account":
        ended = self("login", self.server.url, "--ca", self.ca.file, "--email", EMAIL, input=f"{PASSWORD}\n".encode())
        assert (ended.status, ended.lines) == (0, [f"logged in at {self.host} as {EMAIL}"]), ended
        return self

    @property
    def host(self) -> str:
        return self.server.url.removeprefix("https://")

    @property
    def login(self) -> dict:
        return json.loads((self.folder / "login.json").read_text())

    @property
    def tokens(self) -> dict | None:
        return self.login["tokens"]

    def says(self, *arguments, **more) -> dict:
        ended = self(*arguments, "--json", **more)
        assert ended.status == 0, ended
        return ended.json

    def fails(self, *arguments, **more) -> tuple[int, str]:
        ended = self(*arguments, **more)
        assert ended.stdout == "", ended
        return ended.status, ended.error


@pytest.fixture(scope="module")
def ca(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def new_server(ca):
    with contextlib.ExitStack() as stack:
        yield lambda **more: stack.enter_context(closing(FleetServer(ca.server(), **more)))


@pytest.fixture
def server(new_server) -> FleetServer:
    return new_server()


@pytest.fixture
def rider(tmp_path, server, ca, transcript) -> Account:
    """Not logged in."""
    return Account(tmp_path / "home", server, ca, transcript)


@pytest.fixture
def anna(rider) -> Account:
    return rider.logs_in()


def hands_out(server: FleetServer, vehicle, stepctl: Stepctl):
    """The server hands out access to a vehicle, as its operator would."""
    server.vehicles = [
        {
            "id": vehicle.uuid,
            "name": "Rolling Chassis",
            "state": "available",
            "steps": [{"id": "left", "side": "left", "major": 1}, {"id": "right", "side": "right", "major": 2}],
        }
    ]

    def access(booking: dict, request: str) -> str:
        life = seconds(booking["to"]) + 900 - int(server.now())
        ended = stepctl(
            "provision", "token", vehicle.folder, "--device", "-", "--for", f"{life}s", "--json", input=request.encode()
        )
        assert ended.status == 0, ended
        return ended.json["access"]

    server.issue_access = access


@pytest.fixture
def car(server, parked, stepctl):
    """A vehicle that stands for its files."""
    hands_out(server, parked, stepctl)
    return parked


# --- Login ---


def test_the_login_is_by_a_code_in_a_browser(rider, server):
    with rider_starts(rider, "login", server.url, "--ca", rider.ca.file) as login:
        line = login.says("It has to show")
        server.slow_down = 1
        server.confirm(re.search(r"[B-Z]{4}-[B-Z]{4}", line)[0])
        ended = login.ends()
    assert (ended.status, ended.stdout) == (0, f"logged in at {rider.host} as {EMAIL}\n")
    assert f"  {server.url}/device\n" in ended.stderr
    rider.notes_secrets()

    for name in ("login.json", "bookings.json"):
        file = rider.folder / name
        assert not file.exists() or stat.S_IMODE(file.stat().st_mode) == 0o600
    who = rider.says("whoami")
    assert (who["email"], who["server"]) == (EMAIL, server.url)
    (family,) = server.families.values()
    assert who["device_key"] == family["key"], "the login is bound to the device's key"
    # One question too many would have been slower by five seconds each.
    assert server.requests.count(("POST", "/oauth/token")) == 2


@contextlib.contextmanager
def rider_starts(rider: Account, *arguments, **more):
    running = rider.stepctl.start(rider.home / f"log-{time.monotonic_ns()}", *arguments, **more)
    with closing(running):
        yield running


def test_the_code_is_drawn_on_a_terminal_and_control_c_ends_the_wait(rider, server, on_terminal):
    environment = {"HOME": str(rider.home)}
    terminal = on_terminal([STEPCTL, "login", server.url, "--ca", rider.ca.file], rows=50, **environment)
    terminal.waits_for(b"It has to show")
    terminal.waits_for("█".encode())
    terminal.waits_for(b"Waiting 10 min for somebody to confirm the code.")
    terminal.waits_for(b"No account yet? Type your email address: ")
    widest = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in terminal.read().decode().splitlines())
    assert widest <= 80
    terminal.types(b"\x03")
    assert terminal.ends() == -signal.SIGINT
    assert not rider.folder.exists() or not (rider.folder / "login.json").exists()


def test_a_password_is_not_shown_on_the_terminal(rider, server, on_terminal):
    environment = {"HOME": str(rider.home)}
    terminal = on_terminal([STEPCTL, "login", server.url, "--ca", rider.ca.file, "--email", EMAIL], **environment)
    terminal.waits_for(b"password of anna@example.org: ")
    wait_until(lambda: not terminal.shows_what_is_typed, "the terminal hides what is typed")
    terminal.types(PASSWORD.encode() + b"\n")
    assert terminal.ends() == 0
    assert PASSWORD.encode() not in terminal.written and b"logged in at" in terminal.written
    assert terminal.shows_what_is_typed


def test_a_login_that_is_refused_leaves_nothing(rider, server):
    def login(decision):
        with rider_starts(rider, "login", server.url, "--ca", rider.ca.file) as running:
            server.confirm(re.search(r"[B-Z]{4}-[B-Z]{4}", running.says("It has to show"))[0], decision)
            return running.ends()

    ended = login("deny")
    assert (ended.status, ended.stdout, ended.error) == (77, "", "the login was denied")
    assert not (rider.folder / "login.json").exists()

    server.grant_lifetime = 2
    ended = rider("login", server.url, "--ca", rider.ca.file)
    assert (ended.status, ended.error) == (77, "the code has expired: nobody confirmed it in time")

    wrong = rider("login", server.url, "--ca", rider.ca.file, "--email", EMAIL, input=b"wrong horse\n")
    assert (wrong.status, wrong.error) == (77, f"{rider.host}: the address or the password is wrong")
    assert rider.fails("whoami") == (77, "you are not logged in")
    assert rider.fails("book", "Rolling Chassis", "--for", "2h", "-y") == (77, "you are not logged in")


def test_what_comes_between_does_not_end_the_wait(rider, server):
    """A busy server, a broken one, and a network that answers in its place."""
    met = [(429, "1", b"{}"), (503, None, b""), (200, None, b"<html>Welcome to the hotel</html>")]

    def fault(handler, method, path):
        if path != "/oauth/token" or not met:
            return False
        status, retry_after, body = met.pop(0)
        handler.send_response(status)
        if retry_after:
            handler.send_header("Retry-After", retry_after)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return True

    server.fault = fault
    with rider_starts(rider, "login", server.url, "--ca", rider.ca.file) as login:
        code = re.search(r"[B-Z]{4}-[B-Z]{4}", login.says("It has to show"))[0]
        login.says(f"{rider.host}: status 429; still waiting")
        login.says(f"{rider.host}: status 503; still waiting")
        login.says(f"something else answers in place of {rider.host}; does this network want you to log in to it")
        server.confirm(code)
        ended = login.ends(60)
    assert (ended.status, ended.stdout) == (0, f"logged in at {rider.host} as {EMAIL}\n"), ended
    assert ended.stderr.count("; still waiting") == 3, "each is said once"
    rider.notes_secrets()


def test_new_terms_are_accepted_before_the_login_goes_on(rider, server, on_terminal):
    server.terms = "2026-12"
    ended = rider("login", server.url, "--ca", rider.ca.file, "--email", EMAIL, input=f"{PASSWORD}\n".encode())
    assert ended.status == 66 and "Be kind to the step." in ended.stderr
    arguments = [STEPCTL, "login", server.url, "--ca", rider.ca.file, "--email", EMAIL]
    terminal = on_terminal(arguments, HOME=str(rider.home))
    terminal.waits_for(b"password of")
    terminal.types(PASSWORD.encode() + b"\n")
    terminal.waits_for(b"Do you accept these terms?")
    terminal.types(b"y\n")
    assert terminal.ends() == 0


def test_a_ca_is_pinned_once_somebody_has_seen_its_fingerprint(rider, server, on_terminal, tmp_path):
    # Nobody can be asked: the server is not trusted, and nothing of the rider's reaches it.
    ended = rider("login", server.url, "--email", EMAIL, input=f"{PASSWORD}\n".encode())
    assert ended.status == 69
    assert ended.error.startswith("this computer does not know the authority that issued the certificate of ")
    fingerprint = rider.ca.fingerprint
    assert fingerprint in ended.stderr.replace(":", "").replace("\n  ", "")
    assert server.requests == []

    for answer, status in ((b"n\n", 1), (b"y\n", 0)):
        terminal = on_terminal([STEPCTL, "login", server.url, "--email", EMAIL], HOME=str(rider.home))
        terminal.waits_for(b"Trust it?")
        terminal.types(answer)
        if status == 0:
            terminal.waits_for(b"password of")
            terminal.types(PASSWORD.encode() + b"\n")
        assert terminal.ends() == status
        assert bool(rider.folder.exists() and (rider.folder / "login.json").exists()) == (status == 0)
    rider.notes_secrets()
    assert rider.says("whoami")["email"] == EMAIL

    # From now on that authority counts for this server, and no other.
    folder = tmp_path / "other"
    folder.mkdir()
    other = Authority(folder, "another")
    port = server.server.server_address[1]
    server.close()
    with closing(moved(FleetServer(other.server()), port)) as impostor:
        status, error = rider.fails("whoami")
        words = f"the trusted authority did not issue the certificate of {rider.host}"
        assert (status, error) == (69, words)
        assert impostor.requests == []


def moved(server: FleetServer, port: int) -> FleetServer:
    """The same server at a port that another had."""
    handler, kind = server.server.RequestHandlerClass, type(server.server)
    server.close()
    server.server = kind(("127.0.0.1", port), handler)
    threading.Thread(target=server.server.serve_forever, daemon=True).start()
    return server


def test_a_certificate_for_another_name_is_no_servers(rider, ca, tmp_path):
    with closing(FleetServer(ca.server("fleet.example.org"))) as server:
        status, error = rider.fails("login", server.url, "--ca", ca.file)
        assert status == 69 and "does not match" in error or "no alternative" in error, error
        assert server.requests == []


def test_only_https_is_spoken(rider):
    for address in ("http://localhost:1", "https://user@localhost", "https://localhost/path", "https://", "ftp://a"):
        ended = rider("login", address)
        assert (ended.status, ended.stdout) == (64, ""), ended
        assert "https://" in ended.error, "what to write instead"


def test_logging_out_ends_the_login_at_the_server_too(anna, server):
    assert len(server.families) == 1
    out = anna("logout")
    assert (out.status, out.lines) == (0, [f"logged out of {anna.host}"])
    assert server.families == {} and anna.tokens is None
    assert anna.fails("logout") == (77, "you are not logged in")

    anna.logs_in()
    anna.logs_in()
    assert len(server.families) == 1, "the login before is ended"
    server.families["other"] = dict(next(iter(server.families.values())), refresh="r", access="a")
    assert anna.says("logout", "--everywhere") == {"server": server.url, "everywhere": True}
    assert server.families == {}

    # Where the server is gone, the login ends here all the same.
    anna.logs_in()
    server.close()
    ended = anna("logout")
    assert ended.status == 69 and ended.stderr.startswith("you are logged out here; the server could not be told\n")
    assert anna.tokens is None


def test_a_login_elsewhere_is_not_lost_by_accident(anna, new_server):
    other = new_server()
    assert anna.fails("login", other.url, "--ca", anna.ca.file) == (64, f"you are logged in at {anna.host}")
    assert anna.tokens and other.requests[1:] == []


# --- Tokens ---


def test_the_login_is_renewed_and_each_refresh_token_is_used_once(anna, server):
    before = anna.tokens["refresh"]
    server.lifetime = 1
    expire(anna, server)
    anna.says("whoami")
    assert anna.tokens["refresh"] != before
    (family,) = server.families.values()
    assert family["refresh"] == anna.tokens["refresh"]


def expire(account: Account, server: FleetServer):
    """The access token has ended, here and there."""
    login = account.login
    login["tokens"]["expires"] = int(time.time()) - 1
    (account.folder / "login.json").write_text(json.dumps(login))
    for family in server.families.values():
        family["ends"] = time.time() - 1


def test_two_at_once_do_not_use_one_refresh_token_twice(anna, server):
    expire(anna, server)
    server.refresh_delay = 0.5
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(rider_starts(anna, "whoami", "--json")) for _ in range(6)]
        ended = [each.ends() for each in running]
    anna.notes_secrets()
    assert [each.status for each in ended] == [0] * 6, ended
    (family,) = server.families.values()
    assert len(family["old"]) == 1


def at_once(rider: Account, *lines: tuple, stdin: bytes = b"") -> list[Ended]:
    """Several commands at once."""
    file = rider.home / "typed"
    file.write_bytes(stdin)
    with contextlib.ExitStack() as stack:
        inputs = [stack.enter_context(file.open("rb")) for _ in lines]
        running = [
            stack.enter_context(rider_starts(rider, *line, stdin=typed)) for line, typed in zip(lines, inputs, strict=True)
        ]
        ended = [each.ends() for each in running]
    rider.notes_secrets()
    return ended


def test_of_several_logins_at_once_all_say_so_and_one_is_kept(rider, server):
    known = ("--ca", rider.ca.file, "--email", EMAIL)
    ended = at_once(rider, *[("login", server.url, *known)] * 4, stdin=f"{PASSWORD}\n".encode())
    assert [each.status for each in ended] == [0] * 4, ended
    assert {each.stdout for each in ended} == {f"logged in at {rider.host} as {EMAIL}\n"}
    who = rider.says("whoami")
    (family,) = server.families.values()
    assert (who["email"], who["device_key"]) == (EMAIL, family["key"])


def test_of_several_bookings_at_once_each_one_is_known_with_its_access(anna, server, car):
    begins = [stamp(time.time() + hours * 3600)[:16] for hours in (1, 3, 5, 7)]
    lines = [("book", "Rolling Chassis", "--from", begin, "--for", "1h", "-y", "--json") for begin in begins]
    ended = at_once(anna, *lines)
    assert [each.status for each in ended] == [0] * 4, ended
    kept = json.loads((anna.folder / "bookings.json").read_text())
    assert {booking["id"] for booking in kept} == {each.json["id"] for each in ended} == set(server.bookings)
    assert {each.json["vehicle_file"] for each in ended} == {str(anna.home / ".config/stepctl/vehicles/car/vehicle.toml")}


def test_a_stolen_refresh_token_ends_the_login_for_both(anna, server):
    """The thief has used it first: the server sees the reuse, and the rider is told to log in."""
    (family,) = server.families.values()
    family["old"].append(family["refresh"])
    family["refresh"] = "the thief's"
    expire(anna, server)
    assert anna.fails("whoami") == (77, f"{anna.host} has ended your login")
    assert server.families == {} and anna.tokens is None
    assert anna.fails("whoami") == (77, "you are not logged in")


def test_with_no_input_nobody_is_asked_for_the_keys_passphrase_either(anna, on_terminal):
    passphrase = anna.folder.parent / "passphrase"
    passphrase.write_text("correct horse battery\n")
    passphrase.chmod(0o600)
    assert anna("enroll", "--name", "anna", "--passphrase-file", passphrase).status == 0
    for command in (["book", "Rolling Chassis", "--for", "2h"], ["bookings", "cancel"]):
        terminal = on_terminal([STEPCTL, *command, "--no-input"], HOME=str(anna.home))
        assert terminal.ends() == 77
        assert b"nobody can be asked for it" in terminal.read()


def test_a_token_that_the_server_forgot_is_renewed(anna, server):
    (family,) = server.families.values()
    family["access"] = "another"
    assert anna.says("whoami")["email"] == EMAIL


def test_others_cannot_read_the_login(anna):
    file = anna.folder / "login.json"
    file.chmod(0o640)
    assert anna.fails("whoami") == (77, f"{file}: can be read by others")
    file.chmod(0o600)
    file.write_text("{")
    assert anna.fails("whoami") == (65, f"{file} is damaged")


def test_a_clock_that_is_wrong_does_not_keep_anybody_out(tmp_path, new_server, ca, transcript, parked, stepctl):
    server = new_server(ahead=3 * 3600)
    hands_out(server, parked, stepctl)
    anna = Account(tmp_path / "home", server, ca, transcript).logs_in()
    booked = anna("book", "Rolling Chassis", "--for", "2h", "-y")
    assert booked.status == 0, booked
    (booking,) = server.bookings.values()
    assert abs(seconds(booking["to"]) - server.now() - 7200) < 60, "two hours from the server's now"
    # Without -y it is said.
    ended = anna("book", "Rolling Chassis", "--for", "2h")
    assert "clock    this computer's is 3 h behind the server's, which counts" in ended.stderr


# --- Bookings ---


def test_from_nothing_to_an_open_step_in_three_commands(rider, server, vehicle, stepctl, on_terminal):
    hands_out(server, vehicle, stepctl)
    commands = []

    def types(*arguments):
        commands.append(arguments)
        return on_terminal([STEPCTL, *arguments], rows=50, HOME=str(rider.home))

    login = types("login", server.url)
    login.waits_for(b"Trust it?")
    login.types(b"y\n")
    login.waits_for(b"It has to show")
    (grant,) = server.grants.values()
    server.confirm(grant["user_code"])
    assert login.ends() == 0

    book = types("book", "Rolling Chassis", "--for", "2h")
    book.waits_for(b"Book it?")
    book.types(b"\n")
    assert book.ends() == 0, book.written
    assert b"booked Rolling Chassis until " in book.written

    commands.append(("open",))
    opened = rider("open", STEPCTL_RADIO=vehicle.radio("left"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
    assert vehicle.motions == [("left", "close", "open")]
    assert [command[0] for command in commands] == ["login", "book", "open"]
    # Every other command works unchanged.
    assert rider("status").lines == ["left     open", "right    closed"]
    assert rider("close", STEPCTL_RADIO=vehicle.radio("left")).status == 0


def test_a_booking_brings_its_access(anna, server, car):
    ended = anna("book", "rolling-chassis", "--for", "2h", "--yes", "--json")
    assert ended.status == 0, ended
    booking = ended.json
    file = anna.home / ".config/stepctl/vehicles/car/vehicle.toml"
    assert booking["vehicle_file"] == str(file) and file.exists()
    assert stat.S_IMODE((file.parent / "token.jwt").stat().st_mode) == 0o600
    for name in ("login.json", "bookings.json", "lock"):
        assert stat.S_IMODE((anna.folder / name).stat().st_mode) == 0o600, name
    assert not any(path.suffix in (".jwk", ".key") for path in file.parent.iterdir()), "the keys stay where they are"
    listed = anna("bookings")
    (line,) = listed.lines
    assert len(line) <= 80 and line.startswith(booking["id"][:8]) and line.endswith("booked     Rolling Chassis")
    shown = anna.says("bookings", "show", booking["id"][:8])
    assert {name: shown[name] for name in ("id", "from", "to", "state", "steps")} == {
        "id": booking["id"], "from": booking["from"], "to": booking["to"], "state": "booked", "steps": ["left", "right"],
    }  # fmt: skip

    longer = anna.says("bookings", "extend", "--for", "1h")
    assert seconds(longer["to"]) == seconds(booking["to"]) + 3600
    # The access goes on as long.
    claims = (file.parent / "token-2.jwt").read_text().split(".")[1]
    # The server here counts from its own now, which may be a second later.
    assert 0 <= json.loads(unpadded(claims))["exp"] - seconds(longer["to"]) - 900 <= 2
    ended = anna("bookings", "end", booking["id"][:4], "-y")
    assert (ended.status, ended.lines) == (0, [f"Rolling Chassis: ended  ({booking['id'][:8]})"])
    assert anna("bookings").lines == [] and len(anna("bookings", "list", "--all").lines) == 1
    # Its token is good by its times, and yet it is not said to open a step.
    assert anna.says()["state"] == "booking_ended"
    assert f"token    of the booking {booking['id'][:8]}, which is ended" in anna().lines


def test_of_two_bookings_the_active_one_is_ended_and_extended(anna, server, car):
    assert anna("book", "Rolling Chassis", "--for", "1h", "-y").status == 0
    later = stamp(server.now() + 86_400)[:16]
    assert anna("book", "Rolling Chassis", "--from", later, "--for", "1h", "-y").status == 0
    active, other = sorted(server.bookings.values(), key=lambda booking: booking["from"])
    status, error = anna.fails("bookings", "show")
    assert status == 64 and error.startswith("you have 2 bookings: ")
    assert {active["id"][:8], other["id"][:8]} == set(error.partition(": ")[2].split(", "))
    assert anna.fails("bookings", "cancel", "-y")[0] == 64, "which one, nobody can know"
    assert anna.says("bookings", "extend", "--for", "1h")["id"] == active["id"]
    ended = anna("bookings", "end", "-y")
    assert (ended.status, ended.lines) == (0, [f"Rolling Chassis: ended  ({active['id'][:8]})"])
    assert anna.says("bookings", "show")["id"] == other["id"]


def test_the_loser_is_told_when_the_vehicle_is_free(anna, server, car):
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    ended = anna("book", "Rolling Chassis", "--for", "2h", "-y")
    assert (ended.status, ended.stdout) == (5, "")
    assert ended.error == f"{anna.host}: another booking has that time"
    (booking,) = server.bookings.values()
    times = [stamp(seconds(booking["to"]) + 59 + 3600 * hour)[:16].replace("T", " ") for hour in range(3)]
    assert ended.hint.partition(";")[0] == f"free from {', '.join(times)}"
    told = anna("book", "Rolling Chassis", "--for", "2h", "-y", "--json").json
    assert (told["outcome"], told["problem"], len(told["next"])) == ("refused", "taken", 3)
    # That time can be typed, as it is printed.
    begin = times[0]
    later = anna("book", "Rolling Chassis", "--from", begin, "--for", "2h", "-y")
    assert later.status == 0, later


def test_a_lost_answer_books_once(anna, server, car):
    server.lost = ["/v1/bookings"] * 2
    ended = anna("book", "Rolling Chassis", "--for", "2h", "-y")
    assert ended.status == 0, ended
    # libcurl asks once more by itself where the connection had been kept.
    assert ended.stderr.count("asking once more, which books once") in (1, 2)
    assert len(server.bookings) == 1 and len(set(server.keys)) == 1
    assert server.requests.count(("POST", "/v1/bookings")) >= 3


def test_a_server_that_goes_after_the_booking_leaves_the_booking(anna, server, car):
    server.fault = lambda handler, method, path: path.endswith("/access") and gone(handler)
    ended = anna("book", "Rolling Chassis", "--for", "2h", "-y")
    assert ended.status == 69 and ended.lines[0].startswith("booked Rolling Chassis until")
    assert ended.error.startswith("it is booked, but its access is not here yet: the connection to")
    # Later it is fetched where it is needed.
    server.fault = None
    located = anna("locate", "--radio", car.radio("left"))
    assert located.status == 0 and "fetching the access of the booking" in located.stderr


def gone(handler) -> bool:
    with contextlib.suppress(OSError):
        handler.connection.shutdown(2)
    return True


def test_a_booking_for_later_is_fetched_when_its_time_has_come(anna, server, car):
    begin = stamp(time.time() + 3 * 86_400)[:16]
    ended = anna("book", "Rolling Chassis", "--from", begin, "--for", "2h", "-y")
    assert ended.status == 0 and "within the 24 hours before it begins" in ended.stderr
    assert ("POST", f"/v1/bookings/{next(iter(server.bookings))}/access") not in server.requests
    # Its time comes.
    for booking in server.bookings.values():
        booking |= {"from": stamp(time.time() - 60), "to": stamp(time.time() + 3600)}
    anna("bookings")
    located = anna("locate", "--radio", car.radio("left"))
    assert (located.status, located.lines[-1]) == (0, "at the left step"), located


def test_bookings_that_make_no_sense_are_refused(anna, server, car):
    for arguments, status in (
        (("--from", stamp(time.time() - 86_400)[:16], "--for", "2h"), 5),
        (("--for", "0h"), 64),
        (("--for", "-2h"), 64),
        (("--for", "2h", "--from", "2026-02-30T08:00"), 64),
        (("--for", "2h", "--steps", "roof"), 64),
    ):
        ended = anna("book", "Rolling Chassis", *arguments, "-y")
        assert (ended.status, ended.stdout) == (status, ""), ended
    assert anna("book", "Rolling Chasis", "--for", "2h", "-y").stderr.endswith('hint: did you mean "Rolling Chassis"?\n')
    assert anna.fails("bookings", "end", "-y") == (66, "you have no booking that has not ended")
    assert anna.fails("book", "Rolling Chassis", "--for", "2h", input=b"") == (
        66, "cannot ask: standard input is not a terminal",
    )  # fmt: skip
    assert server.bookings == {}


def test_vehicles_are_listed(anna, server, car):
    assert anna("vehicles").lines == ["Rolling Chassis  available        left, right"]
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    assert anna("vehicles", "--from", "now", "--to", stamp(time.time() + 600)[:16]).status in (0, 64)
    begin, end = (stamp(time.time() + hours * 3600)[:16] for hours in (1, 2))
    assert anna("vehicles", "--from", begin, "--to", end).lines == ["Rolling Chassis  taken            left, right"]
    assert anna.says("vehicles")["id"] == car.uuid
    assert anna("vehicles", "--from", begin).status == 64


def test_zones_are_listed_and_vehicles_in_one(anna, server, car):
    assert anna("zones").lines == [] and "a booking may end anywhere" in anna("zones").stderr
    server.zones = [
        {"id": str(uuid.uuid4()), "name": name, "parking": parking, "square_metres": size}
        for name, parking, size in (("The Yard", True, 1475), ("Park & Ride", False, 20000))
    ]
    assert anna("zones").lines == ["Park & Ride  -        20000 m²", "The Yard     parking  1475 m²"]
    assert [zone["name"] for zone in anna("zones", "--json").objects] == ["Park & Ride", "The Yard"]
    assert anna("vehicles", "--zone", "Park & Ride").lines == []
    server.standing = {car.uuid}
    assert anna("vehicles", "--zone", "Park & Ride").lines == ["Rolling Chassis  available        left, right"]
    assert anna.fails("vehicles", "--zone", "Nowhere") == (66, f"{anna.host}: no such zone")


def test_all_bookings_are_listed_however_many_pages_there_are(anna, server, car):
    for hours in (2, 4, 6):
        begin = stamp(time.time() + hours * 3600)[:16]
        assert anna("book", "Rolling Chassis", "--from", begin, "--for", "1h", "-y").status == 0
    server.page = 1
    assert len(anna("bookings").lines) == 1
    ids = [booking["id"] for booking in anna("bookings", "list", "--all", "--json").objects]
    assert sorted(ids) == sorted(server.bookings) and len(ids) == 3


@pytest.mark.parametrize("metres, said", [(340, "the booking ended 340 m from the parking zone The Yard"), (0, ""), (None, "")])
def test_the_end_of_a_booking_says_how_far_the_parking_zone_is(anna, server, car, metres, said):
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    server.parking = None if metres is None else {"zone": "The Yard", "metres": metres, "placed_at": "2026-11-23T08:00:00Z"}
    ended = anna("bookings", "end", "-y")
    assert ended.status == 0 and ended.lines[0].startswith("Rolling Chassis: ended"), ended
    assert said in ended.stderr if said else "parking" not in ended.stderr, ended
    (listed,) = anna("bookings", "list", "--all", "--json").objects
    assert listed["parking"] == server.parking


# --- `open` and a server ---


@pytest.fixture
def ending(anna, server, vehicle, stepctl):
    """Access that ends within five minutes, of a booking that goes on."""
    hands_out(server, vehicle, stepctl)
    issue = server.issue_access
    server.issue_access = lambda booking, request: issue(booking | {"to": stamp(time.time() - 840)}, request)
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    server.issue_access = issue
    server.requests.clear()
    return vehicle


def test_access_that_ends_soon_is_renewed(anna, server, ending):
    opened = anna("open", STEPCTL_RADIO=ending.radio("left"))
    assert opened.status == 0, opened
    assert any(path.endswith("/access") for _, path in server.requests)
    server.requests.clear()
    assert anna("close", STEPCTL_RADIO=ending.radio("left")).status == 0
    assert server.requests == [], "what lasts is not renewed"


@pytest.mark.parametrize("how", ["gone", "slow", "refused"])
def test_a_server_that_does_not_renew_keeps_nobody_from_opening(anna, server, ending, how):
    if how == "gone":
        server.close()
    elif how == "slow":
        server.fault = lambda *_: time.sleep(15) or True
    else:
        for booking in server.bookings.values():
            booking["state"] = "ended"
    opened = anna("open", "-v", STEPCTL_RADIO=ending.radio("left"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
    assert "the access was not renewed: " in opened.stderr


def test_a_stop_does_not_wait_for_access_that_it_does_not_need(anna, server, ending):
    server.fault = lambda *_: time.sleep(15) or True
    stopped = anna("stop", STEPCTL_RADIO=ending.radio("left"))
    assert stopped.status == 0 and len(stopped.lines) == 2, stopped
    assert server.requests == [], "the token ends soon, and stops a step all the same"


# --- Access heals itself ---


@pytest.fixture
def booked(anna, server, vehicle, stepctl):
    """A vehicle whose access is here, of a booking that is active."""
    hands_out(server, vehicle, stepctl)
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    server.requests.clear()
    return vehicle


def installed(account: Account) -> Path:
    """The folder of the only vehicle that a device knows."""
    (folder,) = account.vehicles.iterdir()
    return folder


def withdraws(vehicle, account: Account):
    """The operator takes back the token that a device has."""
    operator = Operator(vehicle)
    claims = json.loads(unpadded((installed(account) / "token.jwt").read_text().split(".")[1]))
    operator.tells(operator.notice({"jti": claims["jti"], "until": claims["exp"]}))


HEALED = "access   fetched again from the operator's server"


@pytest.mark.parametrize("command", ["open", "status", "stop"])
def test_access_that_was_withdrawn_and_given_back_is_fetched_again(anna, server, booked, command):
    withdraws(booked, anna)
    ended = anna(command, STEPCTL_RADIO=booked.radio("left"))
    assert ended.status == 0 and HEALED in ended.stderr.splitlines(), ended
    server.requests.clear()
    again = anna(command, STEPCTL_RADIO=booked.radio("left"))
    assert again.status == 0 and HEALED not in again.stderr
    assert server.requests == [], "what the vehicle takes is not fetched"


@pytest.mark.parametrize("how", ["lost", "no token", "forged", "no certificate", "no key of the certificate"])
@pytest.mark.parametrize("command", ["open", "status", "stop"])
def test_access_that_is_lost_or_damaged_is_fetched_again(anna, server, booked, command, how):
    folder = installed(anna)
    token = folder / "token.jwt"
    text = token.read_text()
    if how == "lost":
        token.unlink()
    elif how == "no token":
        token.write_text("x\n")
    elif how == "forged":
        end = len(text.strip()) - 8
        token.write_text(text[:end] + ("A" if text[end] != "A" else "B") + text[end + 1 :])
    elif how == "no certificate":
        (folder / "rider.pem").unlink()
    else:
        (anna.keys / "rider.key").unlink()
    ended = anna(command, "--vehicle", folder / "vehicle.toml", STEPCTL_RADIO=booked.radio("left"))
    assert ended.status == 0 and HEALED in ended.stderr.splitlines(), ended
    assert anna(command, STEPCTL_RADIO=booked.radio("left")).status == 0


# How long a server is waited for that a command cannot do without.
SERVER_PATIENCE_S = 30


def silent(server: FleetServer):
    """Who asks gets no answer for longer than that."""
    server.fault = lambda *_: time.sleep(PATIENCE) or True


@pytest.mark.parametrize("how", ["gone", "slow", "refused"])
def test_a_server_that_gives_no_access_back_costs_two_seconds_at_most(anna, server, booked, how):
    withdraws(booked, anna)
    (booking,) = server.bookings.values()
    if how == "gone":
        server.close()
    elif how == "slow":
        silent(server)
    else:
        booking["state"] = "ended"
    ended = anna("status", "-v")
    assert (ended.status, ended.error) == (5, REVOKED)
    assert ended.seconds < SERVER_PATIENCE_S and "the access was not renewed: " in ended.stderr
    # What to tell the operator is remembered, and nothing of it is secret.
    (file,) = (anna.home / ".local/state/stepctl").glob("refused.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server.fault = None
    told = anna.says()
    assert (told["state"], told["next"]) == ("refused", ["stepctl open"])
    assert told["tell"].startswith(f"car refused booking {booking['id'][:8]} at ")
    assert told["refused"]["booking"] == booking["id"]
    assert any(line.startswith(f"operator tell them: car refused booking {booking['id'][:8]}") for line in anna().lines)


def test_a_stop_that_stays_refused_is_told_once_for_each_step(anna, server, booked):
    withdraws(booked, anna)
    server.close()
    ended = anna("stop")
    assert (ended.status, ended.error) == (5, REVOKED)
    assert [line.split(": ")[0] for line in ended.stderr.splitlines() if line.startswith("answer ")] == [
        "answer   left", "answer   right"]
    objects = anna("stop", "--json").objects
    assert [(each["step"], each["refusal"]) for each in objects] == [
        ("left", "token_revoked"), ("right", "token_revoked")]


def test_a_refusal_is_forgotten_when_the_vehicle_obeys(anna, server, booked):
    withdraws(booked, anna)
    issue, server.issue_access = server.issue_access, lambda *_: "nonsense"
    assert anna("open", STEPCTL_RADIO=booked.radio("left")).status == 5
    assert anna.says()["state"] == "refused"
    server.issue_access = issue
    assert anna("open", STEPCTL_RADIO=booked.radio("left")).status == 0
    assert anna.says()["refused"] is None
    assert not (anna.home / ".local/state/stepctl/refused.json").exists()


@pytest.mark.parametrize("command", ["open", "status"])
def test_a_lost_device_key_is_told_with_what_to_do(anna, server, booked, command):
    anna.key.unlink()
    ended = anna(command, STEPCTL_RADIO=booked.radio("left"))
    assert ended.status == 66 and "device/device.jwk: No such file or directory" in ended.error
    assert ended.hint.endswith("enroll again (`stepctl enroll --output request`), and tell your operator")
    assert not anna.key.exists() and server.requests == [], "no other key is made in silence"
    told = anna.says()
    assert (told["state"], told["next"], told["device_key"]) == ("key_lost", ["stepctl login"], None)


def test_config_show_and_find_mean_the_booked_vehicle_of_several(anna, server, car, new_vehicle):
    other = new_vehicle("other", "--name", "Van")
    with open(other.folder / "vehicle.toml", "a") as file:
        file.write("\n[place]\nlatitude = 48.5\nlongitude = 9.5\n")
    assert anna("config", "import", other.folder / "vehicle.toml", "--yes").status == 0
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    (booking,) = server.bookings.values()
    shown = anna("config", "show", "--json").json
    assert shown["vehicle_file"]["uuid"] == car.uuid
    assert shown["vehicle"] == {"value": shown["vehicle_file"]["path"], "origin": f"booking {booking['id'][:8]}"}
    assert f"(booking {booking['id'][:8]})" in anna("config", "show").lines[0]
    assert anna("config", "show", "Van", "--json").json["vehicle_file"]["uuid"] == other.uuid
    assert "does not say where the vehicle is" in anna("find").error, "it is not the Van"


def test_what_was_booked_elsewhere_is_seen_if_the_server_is_quick(anna, server, car):
    assert anna.says()["state"] == "not_booked"
    server.book(EMAIL, {"vehicle": car.uuid, "to": stamp(server.now() + 7200)})
    told = anna.says()
    assert (told["state"], len(told["bookings"])) == ("ready", 1)
    server.requests.clear()
    assert anna.says()["state"] == "ready" and server.requests == [], "what is known is not asked for"


def test_a_slow_server_does_not_keep_stepctl_alone_from_answering(anna, server):
    silent(server)
    ended = anna("--json")
    assert (ended.status, ended.json["state"]) == (0, "not_booked") and ended.seconds < SERVER_PATIENCE_S


def test_a_vehicle_that_the_operator_removed_is_marked_and_can_be_forgotten(anna, server, car):
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    (line,) = anna("config", "list").lines
    assert "does not have it" not in line
    (told,) = anna("config", "list", "--json").objects
    assert (told["name"], told["uuid"], told["at_server"]) == ("car", car.uuid, True)
    server.vehicles = []
    (line,) = anna("config", "list").lines
    assert line.endswith(f"; {anna.host} does not have it, or has it no longer")
    forgotten = anna("config", "forget", "car", "-y")
    assert (forgotten.status, forgotten.lines) == (0, ["car is forgotten"])
    assert "`stepctl open` fetches its access again" in forgotten.stderr, "its booking goes on"
    assert list(anna.vehicles.iterdir()) == []


def test_a_key_with_a_passphrase_fetches_access_too(anna, server, car):
    passphrase = anna.home / "passphrase"
    passphrase.write_text("correct horse battery\n")
    passphrase.chmod(0o600)
    assert anna("enroll", "--name", "anna", "--passphrase-file", passphrase).status == 0
    ended = anna("book", "Rolling Chassis", "--for", "2h", "-y", STEPCTL_PASSPHRASE_FILE=str(passphrase))
    assert ended.status == 0 and installed(anna).exists(), ended


def test_open_does_not_load_libcurl(anna, server, vehicle, stepctl, tmp_path):
    hands_out(server, vehicle, stepctl)
    assert anna("book", "Rolling Chassis", "--for", "2h", "-y").status == 0
    log = tmp_path / "loaded"
    opened = anna("open", STEPCTL_RADIO=vehicle.radio("left"), LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log))
    assert opened.status == 0
    loaded = "".join(file.read_text(errors="replace") for file in tmp_path.glob("loaded.*"))
    assert "libmosquitto" in loaded and "libcurl" not in loaded


# --- A server that is not as it should be ---


def test_a_redirect_is_not_followed(anna, server):
    def redirect(handler, *_):
        handler.send_response(307)
        handler.send_header("Location", f"{server.url}/v1/account")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    server.fault = redirect
    server.requests.clear()
    status, error = anna.fails("whoami")
    assert (status, error) == (69, f"{anna.host} sends you to another address, which is not followed")
    assert len(server.requests) == 1


def answers(server: FleetServer, body: bytes, status: int = 200):
    def fault(handler, *_):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(body)
        return True

    server.fault = fault


def test_a_body_of_10_mb_is_not_read(anna, server):
    answers(server, b'{"email": "' + b"a" * 10_000_000 + b'"}')
    status, error = anna.fails("whoami")
    assert (status, error) == (69, f"{anna.host} sent more than 1048576 bytes")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"email":5}', b'{"email":"a","email":"b"}', b'{"email":"a"}x', b"\xff",
        b'{"email":"' + b"a" * 300 + b'"}', b"<html>",
    ],
)  # fmt: skip
def test_an_answer_that_is_not_understood_is_no_answer(anna, server, body):
    answers(server, body)
    status, error = anna.fails("whoami")
    assert status == 65 and error.startswith(f"the answer of {anna.host} is not understood: ")


def test_a_slow_body_ends_in_time_and_with_control_c(anna, server):
    def slow(handler, *_):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.05)
        return True

    server.fault = slow
    with rider_starts(anna, "whoami") as running:
        wait_until(lambda: ("GET", "/v1/account") in server.requests, "the server is asked")
        running.signal(signal.SIGINT)
        ended = running.ends()
    assert (ended.status, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_errors_of_any_kind_are_one_line(anna, server):
    for status, expected in ((400, 5), (403, 77), (404, 66), (409, 5), (422, 5), (429, 69), (500, 69), (503, 69)):
        answers(server, b"<html>no</html>", status)
        assert anna.fails("whoami") == (expected, f"{anna.host}: status {status}")
    text = "a line\nanother\x1b[31m \u202e" + "long " * 200
    answers(server, json.dumps({"detail": text, "code": "x", "title": "t"}).encode(), 409)
    ended = anna("whoami")
    assert ended.status == 5 and len(ended.stderr.splitlines()) == 1 and "\x1b" not in ended.stderr


def test_endpoints_elsewhere_are_not_asked(rider, server, new_server):
    other = new_server()
    body = {
        "issuer": server.url, "device_authorization_endpoint": f"{server.url}/oauth/device_authorization",
        "token_endpoint": f"{other.url}/oauth/token", "revocation_endpoint": f"{server.url}/oauth/revoke",
    }  # fmt: skip
    for member, value in (("token_endpoint", f"{other.url}/oauth/token"), ("issuer", other.url)):
        fine = {name: text.replace(other.url, server.url) for name, text in body.items()}
        answers(server, json.dumps(fine | {member: value}).encode())
        status, _ = rider.fails("login", server.url, "--ca", rider.ca.file)
        assert status == 65
    assert other.requests == []


def test_access_of_another_vehicle_or_device_is_not_taken(anna, server, car, new_vehicle, stepctl, tmp_path, transcript):
    issue = server.issue_access
    van = new_vehicle("van")
    stranger = Stepctl(tmp_path / "stranger", transcript)
    (tmp_path / "stranger").mkdir()
    request = stranger("enroll", "--name", "eve").stdout

    def of_another_vehicle(booking, request):
        ended = stepctl("provision", "token", van.folder, "--device", "-", "--json", input=request.encode())
        return ended.json["access"]

    for access, words in (
        (of_another_vehicle, "is for another vehicle"),
        (lambda booking, _: issue(booking, request), "this access is for the device"),
        (lambda *_: "nonsense", "cannot be used"),
    ):
        server.issue_access = access
        server.bookings.clear()
        ended = anna("book", "Rolling Chassis", "--for", "2h", "-y")
        assert ended.status == 65 and words in ended.error, ended
        assert not (anna.home / ".config/stepctl/vehicles").exists()


# --- Accounts ---


def test_an_account_is_made_confirmed_exported_and_deleted(rider, server, tmp_path):
    made = rider(
        "account", "create", server.url, "--ca", rider.ca.file, "--email", "bo@example.org", "-y",
        input=b"a long password\n",
    )  # fmt: skip
    assert (made.status, made.lines) == (0, ["a code is on its way to bo@example.org"]), made
    rider.transcript.secrets["a long password"] = "password"
    assert rider.fails("account", "confirm", "000000") == (5, f"{rider.host}: the code is wrong or has expired")
    code = server.pending["bo@example.org"][1]
    assert rider("account", "confirm", code).status == 0
    login = rider("login", "--email", "bo@example.org", input=b"a long password\n")
    assert login.status == 0, login
    rider.notes_secrets()

    file = tmp_path / "export.json"
    assert rider("account", "export", "-o", file).status == 0
    assert json.loads(file.read_text())["account"]["email"] == "bo@example.org"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    assert rider("account", "password").status == 0
    code = server.pending["bo@example.org"][1]
    assert rider("account", "password", code, input=b"another password\n").status == 0
    assert rider.fails("whoami") == (77, f"{rider.host} has ended your login")
    assert rider("login", "--email", "bo@example.org", input=b"another password\n").status == 0
    rider.notes_secrets()

    assert rider("account", "delete", input=b"anna@example.org\n").status == 1
    silent = rider("account", "delete", "--no-input", input=b"bo@example.org\n")
    assert (silent.status, silent.error) == (64, "--no-input forbids this question: type its address to delete it:")
    assert "bo@example.org" in server.accounts
    gone = rider("account", "delete", input=b"bo@example.org\n")
    assert gone.status == 0 and "bo@example.org" not in server.accounts
    assert not (rider.folder / "login.json").exists()


NEW, GOOD = "bo@example.org", "a long password"


class Dialogue:
    """`login` on a terminal, of somebody who has no account."""

    def __init__(self, rider: Account, on_terminal, *arguments):
        rider.transcript.secrets[GOOD] = "password"
        self.rider, self.server = rider, rider.server
        command = [STEPCTL, "login", rider.server.url, *arguments]
        self.terminal = on_terminal(command, rows=50, HOME=str(rider.home))
        self.answers = []

    def answers_to(self, question: str, answer: str):
        self.terminal.waits_for(question.encode())
        hidden = "assword" in question and "Make" not in question
        if hidden:
            wait_until(lambda: not self.terminal.shows_what_is_typed, "the terminal hides what is typed")
        self.answers.append(question)
        self.terminal.types(answer.encode() + b"\n")

    def code(self) -> str:
        """What was mailed."""
        return wait_until(lambda: self.server.pending.get(NEW), "a mail")[1]


def test_from_nothing_with_an_account_in_three_commands_and_six_answers(rider, server, vehicle, stepctl, on_terminal):
    hands_out(server, vehicle, stepctl)
    login = Dialogue(rider, on_terminal)
    login.answers_to("Trust it? [y/N] ", "y")
    login.answers_to("No account yet? Type your email address: ", NEW)
    login.answers_to(f"password of {NEW}, or one for a new account: ", GOOD)
    login.answers_to(f"Make an account for {NEW}, and accept these terms? [y/N] ", "y")
    assert b"Be kind to the step." in login.terminal.written, "they are shown first"
    login.answers_to("the code (Enter to stop): ", login.code())
    assert login.terminal.ends() == 0, login.terminal.written
    assert f"logged in at {rider.host} as {NEW}".encode() in login.terminal.written
    assert GOOD.encode() not in login.terminal.written
    rider.notes_secrets()

    book = on_terminal([STEPCTL, "book", "Rolling Chassis", "--for", "2h"], HOME=str(rider.home))
    book.waits_for(b"Book it?")
    book.types(b"\n")
    assert book.ends() == 0, book.written
    assert len(login.answers) + 1 == 6
    opened = rider("open", STEPCTL_RADIO=vehicle.radio("left"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened


def test_what_is_wrong_in_the_dialogue_is_asked_again(rider, server, on_terminal):
    login = Dialogue(rider, on_terminal, "--ca", rider.ca.file)
    login.answers_to("No account yet? Type your email address: ", "bo")
    wait_until(lambda: login.terminal.read().count(b"No account yet?") == 2, "that is no address")
    login.answers_to("No account yet? Type your email address: ", NEW)
    question = f"password of {NEW}, or one for a new account: "
    login.answers_to(question, "short")
    login.terminal.waits_for(b"a password has 8 to 256 bytes")
    wait_until(lambda: login.terminal.read().count(question.encode()) == 2, "it asks again")
    assert ("POST", "/device") not in server.requests, "what is too short is not even sent"
    login.answers_to(question, GOOD)
    login.answers_to(f"Make an account for {NEW}, and accept these terms? [y/N] ", "y")
    for wrong, words in (("12345", b"the code has six digits"), ("000000", b"the code is wrong or has expired")):
        login.terminal.waits_for(b"the code (Enter to stop): ")
        count = login.terminal.read().count(b"the code (Enter to stop): ")
        login.answers_to("the code (Enter to stop): ", wrong if wrong != login.code() else "000001")
        login.terminal.waits_for(words)
        wait_until(lambda: login.terminal.read().count(b"the code (Enter to stop): ") > count, "again")  # noqa: B023
    code = login.code()
    login.answers_to("the code (Enter to stop): ", f"{code[:3]} {code[3:]}")
    assert login.terminal.ends() == 0, login.terminal.written
    rider.notes_secrets()
    assert rider.says("whoami")["email"] == NEW


def test_a_password_that_the_server_does_not_take_is_asked_again(rider, server, on_terminal):
    server.obvious = {GOOD}
    login = Dialogue(rider, on_terminal, "--ca", rider.ca.file, "--email", NEW)
    login.answers_to(f"password of {NEW}: ", GOOD)
    login.answers_to(f"Make an account for {NEW}, and accept these terms? [y/N] ", "y")
    login.terminal.waits_for(b"this password is too easy to guess")
    rider.transcript.secrets["another password"] = "password"
    login.answers_to("a new password: ", "another password")
    login.terminal.waits_for(b"again: ")
    login.terminal.types(b"another password\n")
    login.answers_to("the code (Enter to stop): ", login.code())
    assert login.terminal.ends() == 0, login.terminal.written
    rider.notes_secrets()
    assert server.accounts[NEW] == "another password"


def test_who_wants_no_account_gets_none(rider, server, on_terminal):
    login = Dialogue(rider, on_terminal, "--ca", rider.ca.file, "--email", NEW)
    login.answers_to(f"password of {NEW}: ", GOOD)
    login.answers_to("Make an account for", "")
    assert login.terminal.ends() == 77
    assert b"the address or the password is wrong" in login.terminal.written
    assert ("POST", "/v1/accounts") not in server.requests

    # Who has no code yet can go on later.
    later = Dialogue(rider, on_terminal, "--ca", rider.ca.file, "--email", NEW)
    later.answers_to(f"password of {NEW}: ", GOOD)
    later.answers_to("Make an account for", "y")
    later.answers_to("the code (Enter to stop): ", "")
    assert later.terminal.ends() == 1
    assert b"the account is not confirmed" in later.terminal.written
    assert rider("account", "confirm", later.code()).status == 0
    assert rider("login", "--email", NEW, input=f"{GOOD}\n".encode()).status == 0
    rider.notes_secrets()


def test_who_has_typed_half_an_address_is_logged_in_by_the_browser_all_the_same(rider, server, on_terminal):
    login = Dialogue(rider, on_terminal, "--ca", rider.ca.file)
    login.terminal.waits_for(b"No account yet?")
    login.terminal.types(b"bo@exam")
    (grant,) = server.grants.values()
    server.confirm(grant["user_code"])
    assert login.terminal.ends() == 0, login.terminal.written
    rider.notes_secrets()
    assert rider.says("whoami")["email"] == EMAIL
    # Whoever is known is not offered an account.
    again = Dialogue(rider, on_terminal)
    again.terminal.waits_for(b"waiting for somebody to confirm the code")
    assert b"No account yet?" not in again.terminal.read()


def test_a_short_password_is_not_even_sent(rider, server):
    arguments = ("account", "create", server.url, "--ca", rider.ca.file, "--email", "bo@example.org", "-y")
    ended = rider(*arguments, input=b"short\n")
    assert (ended.status, ended.error) == (64, "a password has 8 to 256 bytes")
    assert ("POST", "/v1/accounts") not in server.requests


# --- A vehicle joins ---


def test_a_vehicle_joins_with_its_public_keys_only(rider, server, tmp_path):
    server.authority = rider.ca
    server.codes["ABCD-EFGH-2345"] = "Rolling Chassis"
    folder = tmp_path / "chassis"
    arguments = ("provision", "vehicle", folder, "--fleet", server.url, "--ca", rider.ca.file, "--code")
    ended = rider(*arguments, "abcd-efgh-2345", "--json")
    assert ended.status == 0, ended
    assert ended.json["name"] == "Rolling Chassis"
    assert not (folder / "operator").exists() and not (folder / "mosquitto.conf").exists()
    (sent,) = server.enrolled
    text = json.dumps(sent)
    for file in ("keys/encryption.jwk", "keys/signing.jwk"):
        assert json.loads((folder / file).read_text())["d"] not in text
        assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600
    assert "PRIVATE" not in text
    checked = rider.stepctl.start(tmp_path / "check", "config", "show", "--vehicle", folder / "vehicle.toml")
    assert checked.ends().status == 0
    # The code counts once, and what fails leaves no folder.
    other = tmp_path / "other"
    arguments = ("provision", "vehicle", other, "--fleet", server.url, "--ca", rider.ca.file, "--code")
    assert rider.fails(*arguments, "ABCD-EFGH-2345") == (
        77, f"{rider.host}: the code is wrong, was used, or has ended",
    )  # fmt: skip
    assert not other.exists()


def test_a_certificate_for_another_key_is_not_taken(rider, server, tmp_path):
    server.authority = rider.ca
    enrol = server.enrol
    first = {}

    def swapped(fields):
        answer = enrol(fields)
        first.setdefault("certificate", answer["certificate"])
        return answer | {"certificate": first["certificate"]}

    server.enrol = swapped
    for number, status in ((1, 0), (2, 65)):
        server.codes["ABCD-EFGH-2345"] = "x"
        folder = tmp_path / f"car-{number}"
        ended = rider(
            "provision", "vehicle", folder, "--fleet", server.url, "--ca", rider.ca.file, "--code", "ABCD-EFGH-2345"
        )
        assert ended.status == status, ended
        assert folder.exists() == (status == 0)


def test_the_manual_names_what_is_printed(rider, server, car):
    def documented(page: str) -> set[str]:
        text = (REPOSITORY / f"man/{page}.1").read_text()
        return set(re.findall(r"[a-z_]+", " ".join(re.findall(r"^\.(?:It |Pq )?Cm (.*)$", text, re.MULTILINE))))

    def check(page: str, *arguments, **more):
        ended = rider(*arguments, "--json", **more)
        for line in ended.objects:
            # What every failure has is on stepctl.1.
            known = documented(page) | ({"outcome", "code", "message", "hint", "exit"} if "outcome" in line else set())
            assert line.keys() <= known, (arguments, line.keys() - known)
        assert ended.lines, ended

    password = f"{PASSWORD}\n".encode()
    known = ("--ca", rider.ca.file, "--email", EMAIL)
    check("stepctl-account", "account", "create", server.url, *known, "-y", input=b"a long password\n")
    check("stepctl-account", "account", "confirm", server.pending[EMAIL][1])
    check("stepctl-account", "account", "password")
    server.accounts[EMAIL] = PASSWORD
    check("stepctl-login", "login", server.url, *known, input=password)
    check("stepctl-whoami", "whoami")
    check("stepctl-vehicles", "vehicles")
    server.zones = [{"id": str(uuid.uuid4()), "name": "Yard", "parking": True, "square_metres": 1475}]
    check("stepctl-zones", "zones")
    check("stepctl-book", "book", "Rolling Chassis", "--for", "2h", "-y")
    check("stepctl-book", "book", "Rolling Chassis", "--for", "2h", "-y")
    check("stepctl-bookings", "bookings", "list")
    check("stepctl-bookings", "bookings", "end", "-y")
    check("stepctl-account", "account", "export", "-o", rider.home / "export")
    check("stepctl-logout", "logout")


def test_a_command_that_ends_at_once_ends_as_it_says(stepctl, anna):
    """Though another thread loads libcurl meanwhile."""
    for _ in range(20):
        assert stepctl("book", "--bogus").status == 64
        assert anna("book", "nothing", "--for", "2h", "-y").status == 66
