"""A broker that is another, is absent, is silent or goes away, and clients that want more than they may."""

import json
import os
import pwd
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from cryptography import x509

import client
from certificates import reissue
from manager import Manager
from peers import Connection, Witness
from programs import STEPD, can_mount, mounted, wait_until
from vehicle import free_port

HAS_USER = any(user.pw_name == "mosquitto" for user in pwd.getpwall())

UNSENT = "the vehicle does not answer; nothing was sent that could move a step"


# --- Another broker ---


@pytest.mark.arm64
def test_a_broker_of_another_authority_is_not_trusted(shared_vehicle, shared_rider, new_vehicle):
    other = new_vehicle("other").rider("alice")
    file = other.file.read_text().replace(f"port = {other.vehicle.port}", f"port = {shared_vehicle.port}")
    other.file.write_text(file)
    ended = other.moves("open", "left")
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error == (
        f"the certificate of the broker localhost:{shared_vehicle.port} was not issued by an authority in the CA file"
    )
    assert shared_vehicle.is_unmoved()


@pytest.mark.parametrize(
    ("days", "names", "fault"),
    [
        ((-30, -1), [x509.DNSName("localhost")], "has expired"),
        ((1, 30), [x509.DNSName("localhost")], "is not valid yet (is this machine's clock right?)"),
        ((-1, 30), [x509.DNSName("example.com")], "is for another host name"),
        ((-1, 30), [x509.DNSName("localhost.example.com")], "is for another host name"),
    ],
    ids=["expired", "of tomorrow", "of another name", "of a longer name"],
)
def test_a_broker_whose_certificate_is_not_right_is_not_trusted(parked, days, names, fault):
    alice = parked.rider("alice")
    reissue(parked.folder, parked.folder / "tls/broker.pem", days, *names)
    parked.starts_broker()
    stepd = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml")
    line = f"the certificate of the broker localhost:{parked.port} {fault}"
    ended = alice.types("status")
    assert (ended.status, ended.stdout, ended.error) == (69, "", line)
    assert stepd.says(line) == f"stepd: {line}; trying again"
    assert stepd.lives


# --- Clients that want more than they may ---


@pytest.mark.arm64
def test_nobody_connects_without_a_certificate(shared_vehicle, shared_rider):
    context = ssl.create_default_context(cafile=shared_rider.folder / "ca.pem")
    with (
        pytest.raises(ssl.SSLError),
        socket.create_connection(("localhost", shared_vehicle.port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.recv(1)  # In TLS 1.3 the server's objection comes after the handshake.
    file = shared_rider.file.with_name("without.toml")
    lines = shared_rider.file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if not line.startswith(("cert =", "key ="))))
    ended = shared_vehicle.stepctl("status", "--vehicle", file)
    assert (ended.status, ended.error) == (
        78,
        f"{file}: [broker] cert is missing: commands need it; a rider's vehicle file has it",
    )


def test_a_client_certificate_of_another_authority_is_refused(shared_vehicle, new_vehicle, preloaded):
    mallory, stranger = shared_vehicle.rider("mallory"), new_vehicle("other").rider("mallory")
    for name in ("rider.pem", "rider.key"):
        (mallory.folder / name).write_bytes((stranger.folder / name).read_bytes())
    # Where stepctl is held up, an alert and a reset may be there before it sends more: the alert must not be lost.
    for environment in ({}, *[{"LD_PRELOAD": str(preloaded("held_up"))}] * 5):
        ended = mallory.types("status", **environment)
        assert (ended.status, ended.stdout) == (77, "")
        assert ended.error == (
            f"the broker localhost:{shared_vehicle.port} refused the TLS connection: "
            "it does not accept the client certificate (alert 48)"
        )


def test_a_rider_can_neither_speak_for_the_controller_nor_hear_commands(vehicle, alice):
    # mosquitto grants any subscription, and goes by its access list when there is something to pass on.
    commands = [vehicle.set_position("left"), vehicle.set_position("+"), "#"]
    with Witness(vehicle, vehicle.rider("bob").peer) as bob, Connection(alice.peer, *commands) as mallory:
        kept = bob.kept()
        for retain in (False, True):
            mallory.deliver(vehicle.status("left"), b"forged", retain)
        assert bob.ask("left")["epoch"] == kept["left"]["epoch"]
        heard = [mallory.next().topic for _ in range(4)]
        all_that_riders_may_hear = [f"{vehicle.topic}/availability", *[vehicle.status("left")] * 2, vehicle.status("right")]
        assert sorted(heard) == all_that_riders_may_hear, "by `#`: the kept, the answer"
        assert mallory.messages.empty()
    assert vehicle.broker.stderr.read_text().count("Denied PUBLISH") == 2
    with Witness(vehicle, alice.peer) as witness:
        assert witness.kept() == kept
    assert vehicle.is_unmoved()


def test_little_is_kept_for_a_client_that_is_gone(vehicle, alice):
    """A rider can leave any number of sessions behind: with a thousand messages in each they would fill the memory."""
    heard, subscribed = [], []

    def come() -> mqtt.Client:
        subscribed.clear()
        connection = client.connection(alice.peer, session="mallory")
        connection.on_connect = lambda *_: connection.subscribe(vehicle.status("left"), qos=1)
        connection.on_subscribe = lambda *arguments: subscribed.append(arguments)
        connection.on_message = lambda *arguments: heard.append(arguments)
        connection.connect(alice.peer.host, alice.peer.port)
        while not subscribed:
            connection.loop(0.02)
        return connection

    come().disconnect()
    with Witness(vehicle, alice.peer) as witness:
        for _ in range(100):
            witness.ask("left")
    mallory = come()
    # The first ones may be late on a busy machine.
    wait_until(lambda: (mallory.loop(0.02), len(heard) > 20)[1], "what was kept")
    last = time.monotonic()
    while time.monotonic() < last + 4:
        before = len(heard)
        mallory.loop(0.02)
        last = time.monotonic() if len(heard) > before else last
    mallory.disconnect()
    assert 20 < len(heard) < 80


# --- No broker, a silent one, no controller ---


def test_a_broker_that_is_not_there_is_given_up_at_once(parked):
    # In a third of the time that it has: longer is never waited for a program.
    ended = parked.rider("alice").moves("open", "left", "--timeout", "180")
    assert (ended.status, ended.stdout) == (69, "")


@pytest.mark.arm64
def test_a_broker_that_is_not_there_is_named(parked):
    ended = parked.rider("alice").types("status")
    assert ended.error == f"cannot connect to the broker localhost:{parked.port}: Connection refused"
    assert "hint: see whether the vehicle's broker is on" in ended.stderr


def test_a_kernel_that_tells_little_of_connections_hinders_none(parked, preloaded):
    alice, little = parked.rider("alice"), {"LD_PRELOAD": str(preloaded("short"))}
    refused = alice.types("status", **little)
    assert (refused.status, refused.stdout) == (69, "") and f"localhost:{parked.port}" in refused.error
    parked.starts_all()
    answered = alice.types("status", **little)
    assert (answered.status, answered.lines) == (0, ["left     closed", "right    closed"])


@pytest.mark.skipif(not can_mount(), reason="needs unshare(1) and mount(8), to have another /etc/hosts")
def test_a_broker_is_reached_by_the_second_address_of_its_host(parked):
    configuration, hosts = parked.folder / "mosquitto.conf", parked.folder / "hosts"
    configuration.write_text(configuration.read_text().replace(f"{parked.port} localhost", f"{parked.port} 127.0.0.1"))
    hosts.write_text("::1 localhost\n127.0.0.1 localhost\n")
    alice = parked.starts_all().rider("alice")
    ended = alice.types("status", prefix=mounted(hosts, "/etc/hosts"))
    assert (ended.status, ended.lines) == (0, ["left     closed", "right    closed"])


def test_a_host_that_does_not_exist_is_told(parked):
    alice = parked.rider("alice")
    alice.file.write_text(alice.file.read_text().replace('"localhost"', '"broker.invalid"'))
    ended = alice.types("status")
    assert ended.status == 69
    assert ended.error.startswith("cannot find the broker's host broker.invalid: ")


def test_a_broker_that_never_answers_is_given_up_in_time(parked):
    alice = parked.rider("alice")
    with socket.create_server(("127.0.0.1", parked.port)):
        patient = alice.starts_to_move("open", "left")
        ended = alice.moves("open", "left", "--timeout", "0.5")
        assert patient.lives, "it waits longer without --timeout"
    assert (ended.status, ended.stdout) == (69, "")


def test_a_recording_that_says_too_little_waits_for_the_broker(parked, tmp_path):
    """Else it would be luck which of the two is told: a recording ends at once, and a connection fails when it fails."""
    (tmp_path / "empty.btsnoop").write_bytes(b"btsnoop\0\0\0\0\1\0\0\3\xea")
    alice = parked.rider("alice")
    arguments = ("open", "--radio", f"btsnoop:{tmp_path}/empty.btsnoop", "--timeout", "0.5")
    with socket.create_server(("127.0.0.1", parked.port)):
        assert alice.types(*arguments).status == 69
    assert [alice.types(*arguments).status for _ in range(5)] == [69] * 5
    parked.starts_all()
    assert alice.types(*arguments[:-1], "30").status == 3, "the broker answers, and the recording is at fault"


def test_what_is_not_sent_is_not_shown(parked):
    alice = parked.rider("alice")
    ended = alice.moves("open", "left", "-vv")
    assert ended.status == 69 and "connecting to" in ended.stderr
    assert not [line for line in ended.stderr.splitlines() if line.startswith("> ")]
    parked.starts_all()
    lines = alice.types("status", "-vv").stderr.splitlines()
    sent = [index for index, line in enumerate(lines) if line.startswith("> ")]
    assert sent and lines.index("connected, as the broker's certificate was checked") < sent[0]


def test_a_broker_that_never_answers_is_named(parked):
    alice = parked.rider("alice")
    with socket.create_server(("127.0.0.1", parked.port)):
        ended = alice.types("status", "--timeout", "2")
    assert ended.error == f"the broker localhost:{parked.port} did not answer in time (in the TLS handshake)"


def test_a_broker_that_speaks_no_tls_is_told(parked):
    alice = parked.rider("alice")
    plain = parked.folder / "plain.conf"
    plain.write_text(f"listener {parked.port} localhost\nallow_anonymous true\nlog_dest stderr\n")
    parked.starts("mosquitto", "mosquitto", "-c", plain).says("running")
    ended = alice.types("status", "--timeout", "30")
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error.startswith("TLS with the broker") or "was lost (in the TLS handshake)" in ended.error


def test_without_stepd_nothing_is_sent_that_could_move_a_step(parked):
    alice = parked.rider("alice")
    parked.starts_broker()
    ended = alice.moves("open", "left", "--timeout", "5")
    assert (ended.status, ended.stdout, ended.error) == (69, "", UNSENT)
    assert ended.stderr.splitlines()[-1] == (
        "hint: see whether stepd runs; if stepd runs, ask your operator for new access")
    assert parked.published("left") == 1, "the question alone"
    status = alice.types("status", "--json", "--timeout", "5")
    assert (status.status, status.outcome) == (69, {"outcome": "failed"})


# --- A broker that goes away ---


def test_a_motion_goes_on_without_the_broker_and_is_told_when_it_is_back(parked):
    parked.takes_long(8)
    parked.starts_all()
    alice = parked.rider("alice")
    opening = alice.starts_to_move("open", "left", "--json")
    parked.wait_for_motions(("left", "close", "open"))
    opening.says("moving")
    parked.broker.kill()
    ended = opening.ends()
    assert (ended.status, ended.outcome) == (6, {"outcome": "unconfirmed", "step": "left"})
    assert ended.error == (
        f"the connection to the broker localhost:{parked.port} was lost "
        "after the command was sent: the left step may have moved"
    )
    parked.stepd.says("left: is open")
    before = parked.stepd.said
    parked.starts_broker()
    parked.stepd.says("connected to", after=before)

    # The new broker keeps nothing until stepd has published: a subscriber who is earlier hears that as it comes.
    with Witness(parked, alice.peer) as witness:
        heard = {}

        def is_told():
            statement, _ = witness.next_statement()
            heard[statement["step"]] = statement["position"], statement["phase"]
            return heard == {"left": ("open", "idle"), "right": ("close", "idle")}

        wait_until(is_told, "the open step")
    with Witness(parked, alice.peer) as late:
        assert {step: each["position"] for step, each in late.kept().items()} == {"left": "open", "right": "close"}
    status = alice.types("status")
    assert (status.status, status.lines) == (0, ["left     open", "right    closed"])
    assert parked.motions == [("left", "close", "open")]
    assert parked.stepd.lives


def test_a_controller_that_starts_before_its_broker_waits_for_it(parked):
    alice = parked.rider("alice")
    stepd = parked.stepd = parked.starts("stepd", STEPD, "--config", parked.folder / "stepd.toml")
    stepd.says("; trying again")
    parked.starts_broker()
    stepd.says("connected to")
    opened = wait_until(lambda: (ended := alice.moves("open", "left", "--timeout", "5")).status == 0 and ended, "opens")
    assert json.loads(alice.types("status", "--json").lines[0])["position"] == "open"
    assert opened.stdout == "the left step is open\n"
    assert parked.motions == [("left", "close", "open")]


# --- Whether the controller is there ---


def test_the_broker_keeps_whether_the_controller_is_there(vehicle, alice):
    topic = f"{vehicle.topic}/availability"
    with Connection(alice.peer, topic) as rider:
        kept = rider.next()
        assert (kept.payload, kept.retain) == (b"online", True)
        rider.deliver(topic, b"offline", retain=True)  # Nobody but the controller may say so.
        vehicle.stepd.kill()
        assert rider.next().payload == b"offline", "the will of a controller that was killed"
        vehicle.starts_stepd()
        assert rider.next().payload == b"online"
        vehicle.stepd.signal(signal.SIGTERM)
        assert vehicle.stepd.ends().status == 0
        assert rider.next().payload == b"offline"
    with Connection(alice.peer, topic) as later:
        kept = later.next()
        assert (kept.payload, kept.retain) == (b"offline", True)


# --- A broker that was away for long ---


@pytest.fixture
def manager(tmp_path):
    """Who is told of each attempt, and not only of those that are logged."""
    with closing(Manager(tmp_path)) as manager:
        yield manager


def tries(manager: Manager) -> int:
    """How often stepd could not connect since the last time."""
    return sum(said.startswith("STATUS=") and said.endswith("; trying again") for said in manager.listens(0.05))


def test_a_controller_tries_every_two_seconds_and_comes_back_as_the_same_client(parked, hasty, manager):
    parked.starts_broker()
    parked.starts_stepd(NOTIFY_SOCKET=manager.path, **hasty(4))
    names = []
    for _ in range(2):
        names += re.findall(r"New client connected from .* as (\S+) .*u'controller:", parked.broker.stderr.read_text())
        parked.broker.kill()
        # Waits that double would be longer than two seconds after four, and than the next dozen.
        before, count = parked.stepd.said, 0
        while count < 12:
            count += tries(manager)
            assert parked.stepd.lives
        parked.starts_broker()
        parked.stepd.says("connected to", after=before)
    assert len(names) == 2 and len(set(names)) == 1


def test_a_broker_that_is_away_fills_no_log(parked, hasty, manager):
    """In four minutes it is tried 160 times or more, and there is a line at once, after a second, after three, and so on."""
    parked.launches_stepd(NOTIFY_SOCKET=manager.path, **hasty(20))
    count = 0
    while count < 160:
        count += tries(manager)
        assert parked.stepd.lives
    lines = [line for line in parked.stepd.stderr.read_text().splitlines() if "trying again" in line]
    refused = f"stepd: cannot connect to the broker localhost:{parked.port}: Connection refused; trying again"
    assert lines[0] == refused and 5 <= len(lines) <= 9
    assert all(line.startswith(refused) for line in lines)
    left_out = [int(number) for line in lines for number in re.findall(r"\((\d+) times since the last such line\)", line)]
    assert max(left_out) > 20
    # It is back at once, and says so.
    parked.starts_broker()
    parked.stepd.says("connected to")


def test_a_broker_that_comes_and_goes_fills_no_log(parked, manager):
    """It takes each connection, and ends it."""
    with socket.create_server(("127.0.0.1", parked.port)) as listener:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(parked.folder / "tls/broker.pem", parked.folder / "tls/broker.key")
        parked.launches_stepd(NOTIFY_SOCKET=manager.path)
        for _ in range(8):
            with context.wrap_socket(listener.accept()[0], server_side=True) as client:
                client.recv(4096)
                client.sendall(bytes.fromhex("20020000"))
                client.recv(4096)
    said = parked.stepd.stderr.read_text()
    assert 2 <= said.count("trying again") < 8
    assert said.count("connected to localhost") <= said.count("trying again") + 1


# --- A broker that starts ---


@pytest.mark.skipif(os.geteuid() != 0 or not HAS_USER, reason="needs root, and mosquitto's user")
class TestAsRoot:
    """mosquitto, which root starts, becomes a user of its own, and has to read its files as that user."""

    @pytest.fixture
    def place(self):
        """A folder that anybody can reach."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            yield Path(folder)

    @pytest.fixture
    def starts(self, stepctl, parked):
        def start(folder: Path, runs: bool):
            broker = parked.starts("mosquitto", "mosquitto", "-c", folder / "mosquitto.conf")
            if runs:
                broker.says("running")
                broker.close()
            else:
                assert broker.ends().status != 0
            return broker.stderr.read_text()

        return start

    @pytest.mark.parametrize("way", ["made", "umask"])
    def test_in_a_folder_that_only_root_may_enter(self, stepctl, place, starts, way):
        if way == "made":
            (place / "car").mkdir(0o700)
        prefix = ("sh", "-c", 'umask 077; exec "$0" "$@"') if way == "umask" else ()
        made = stepctl("provision", "vehicle", place / "car", "--port", free_port(), prefix=prefix)
        assert made.status == 0 and "may not" not in made.stderr
        starts(place / "car", runs=True)
        # It is let in, and nobody else is.
        state = (place / "car").stat()
        assert (stat.S_IMODE(state.st_mode), state.st_gid) == (0o710, pwd.getpwnam("mosquitto").pw_gid)

    def test_below_a_folder_that_only_root_may_enter(self, stepctl, place, starts):
        """That folder is not the vehicle's, so it stays as it is, and what has to be typed is said."""
        closed = place / "closed"
        closed.mkdir(0o700)
        car, port = closed / "car", free_port()
        made = stepctl("provision", "vehicle", car, "--port", port)
        why = f"the broker runs as mosquitto, who may not enter {closed}, and so cannot read {car}/tls/ca.pem"
        assert made.status == 0 and f"{why}\n" in made.stderr
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        again = stepctl("provision", "vehicle", closed / "van", "--json").json
        obstacle = {"user": "mosquitto", "file": f"{closed}/van/tls/ca.pem", "path": str(closed)}
        assert again["broker_obstacle"] == obstacle
        starts(car, runs=False)

        assert stepctl("provision", "token", car, "--rider", "alice").status == 0
        rider = car / "riders/alice/vehicle.toml"
        examined = stepctl("doctor", "broker", "--vehicle", rider, "--json")
        (area,) = [area for area in examined.json["areas"] if area["area"] == "broker"]
        (finding,) = [finding for finding in area["findings"] if finding["subject"] == "files"]
        assert finding == {"subject": "files", "state": "broken", "text": why, "remedy": f"chmod o+x {closed}"}
        # What it says, and what provisioning says to type next, is enough.
        assert f"\n  chmod o+x {closed}\n" in made.stderr
        subprocess.run(finding["remedy"], shell=True, check=True)
        starts(car, runs=True)

    def test_a_key_that_is_not_the_brokers_is_named(self, stepctl, place, starts):
        car = place / "car"
        assert stepctl("provision", "vehicle", car, "--port", free_port()).status == 0
        assert stepctl("provision", "token", car, "--rider", "alice").status == 0
        os.chown(car / "tls/broker.key", 0, 0)
        starts(car, runs=False)
        said = stepctl("doctor", "broker", "--vehicle", car / "riders/alice/vehicle.toml").stdout
        assert f"the broker runs as mosquitto, who may not read {car}/tls/broker.key" in said
        assert f"type:       chown mosquitto {car}/tls/broker.key" in said
        subprocess.run(["chown", "mosquitto", car / "tls/broker.key"], check=True)
        starts(car, runs=True)


# --- A broker that lies ---


def lying_broker(vehicle, listener, size: int):
    """A broker that says yes to everything, and then begins a message of so many bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(vehicle.folder / "tls/broker.pem", vehicle.folder / "tls/broker.key")
    topic = vehicle.status("left").encode()
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
    while True:
        try:
            with context.wrap_socket(listener.accept()[0], server_side=True) as client:
                client.recv(4096)
                client.sendall(bytes.fromhex("20020000"))
                client.sendall(b"\x30" + length + len(topic).to_bytes(2, "big") + topic)
                for _ in range(size // 65536):
                    client.sendall(bytes(65536))
        except OSError:
            if listener.fileno() < 0:
                return


def peak(pid: int) -> int:
    """The most megabytes that a process has had."""
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) // 1024


@pytest.fixture
def lied_to(parked):
    alice = parked.rider("alice")
    with socket.create_server(("127.0.0.1", parked.port)) as listener:
        threading.Thread(target=lying_broker, args=(parked, listener, 200 << 20), daemon=True).start()
        yield parked, alice
        listener.shutdown(socket.SHUT_RDWR)


def test_a_message_of_200_mb_takes_the_controller_no_memory(lied_to):
    vehicle, _ = lied_to
    stepd = vehicle.starts("stepd", STEPD, "--config", vehicle.folder / "stepd.toml")
    stepd.says(f"the broker localhost:{vehicle.port} sent a message that is too large; trying again")
    assert peak(stepd.process.pid) < 100, "of which a build for debugging has most at its start"


def test_a_message_of_200_mb_takes_a_rider_no_memory(lied_to, tmp_path):
    vehicle, alice = lied_to
    measured = "import os, sys; _, status, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:]), 0)"
    measured += "; open(sys.argv[1], 'w').write(str(usage.ru_maxrss)); sys.exit(os.waitstatus_to_exitcode(status))"
    ended = alice.types("status", prefix=(sys.executable, "-c", measured, tmp_path / "peak"))
    assert int((tmp_path / "peak").read_text()) // 1024 < 100
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error == f"the broker localhost:{vehicle.port} sent a message that is too large"


def test_a_watch_says_since_when_there_is_no_answer_and_not_what_was_true_before(vehicle, alice):
    watching = alice.starts("status", "--watch", "--timeout", "15")

    def says(*ends: str):
        lines = lambda: watching.stdout.read_text().splitlines()  # noqa: E731
        wait_until(lambda: len(lines()) >= len(ends), f"{ends}; there is {lines()}")
        assert all(re.fullmatch(r"[\d:.]{12}  " + end, line) for end, line in zip(ends, lines(), strict=True)), lines()

    closed, silent = ("left +closed", "right +closed"), (r"left +no answer since [\d:]{8}", r"right +no answer since [\d:]{8}")
    says(*closed)
    vehicle.stepd.kill()
    says(*closed, *silent)
    vehicle.starts_stepd()
    says(*closed, *silent, *closed)


def test_a_watch_asks_again_when_the_controller_is_back(vehicle, alice):
    """The question that was sent in between reached nobody."""
    watching = alice.starts("status", "--watch", "--timeout", "60")
    lines = lambda: watching.stdout.read_text().splitlines()  # noqa: E731
    wait_until(lambda: len(lines()) == 2, "both steps")
    vehicle.stepd.kill()
    time.sleep(1.5)
    vehicle.starts_stepd()
    wait_until(lambda: len(lines()) == 4, "both steps, as they are now")
    assert all(line.endswith("closed") for line in lines())
