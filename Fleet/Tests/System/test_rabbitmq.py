"""RabbitMQ in mosquitto's place: its configuration stays as it is, and stepfleet says what each client may do.

Private nodes on loopback, as the user who runs the tests, with a name server (epmd) of their own.
"""

import faulthandler
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from programs import PATIENCE, Running, Transcript, wait_until
from server import Server
from test_fleet import Phone, booked
from test_notices import claims
from test_stepctl import Joined, opened_without_a_word_to_the_broker
from vehicle import free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
pytestmark = pytest.mark.skipif(
    not SERVER.exists(), reason="RabbitMQ is not installed: apt-get install rabbitmq-server"
)


class RabbitMQ:
    """The nodes of a server's broker. A car of the test wants a broker that reads lists: this one reads none."""

    def __init__(self, server, stack, addresses=(None,)):
        self.server, self.stack = server, stack
        self.home = server.folder.parent / "rabbit"
        self.home.mkdir()
        (self.home / "env").touch()
        self.common = {
            "HOME": self.home, "ERL_EPMD_PORT": free_port(), "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONF_ENV_FILE": self.home / "env", "RABBITMQ_LOGS": "-",
            "ERL_CRASH_DUMP": self.home / "erl_crash.dump",
        }
        self._runs("epmd", self.common, "epmd")
        self.names = [f"node{number}@localhost" for number in range(len(addresses))]
        self.processes = [None] * len(addresses)
        self.dist = [free_port() for _ in addresses]
        self.addresses = addresses
        for number in range(len(addresses)):
            self.starts(number)

    def _runs(self, name, variables, *command) -> Running:
        log = self.home / f"{name}.log"
        for file in (log, log.with_suffix(".out")):
            file.unlink(missing_ok=True)
        running = Running(list(command), log, os.environ, Transcript(), variables=variables)
        return self.stack.enter_context(closing(running))

    def starts(self, number: int):
        """Starts a node, and waits for it."""
        made = self.server.folder / "rabbitmq"
        file = made / "rabbitmq.conf"
        if address := self.addresses[number]:
            # Here the machines of a cluster are addresses of one.
            text = re.sub(r"(?<=ssl\.default = ).*(?=:)", address, file.read_text())
            peers = "".join(
                f"cluster_formation.classic_config.nodes.{place + 1} = {name}\n" for place, name in enumerate(self.names))
            text += f"cluster_formation.peer_discovery_backend = classic_config\n{peers}"
            file = self.home / f"node{number}.conf"
            file.write_text(text)
        folder = self.home / f"node{number}"
        variables = self.common | {
            "RABBITMQ_NODENAME": self.names[number], "RABBITMQ_DIST_PORT": self.dist[number],
            "RABBITMQ_CONFIG_FILE": file, "RABBITMQ_ADVANCED_CONFIG_FILE": made / "advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": made / "enabled_plugins",
            "RABBITMQ_MNESIA_BASE": folder / "mnesia", "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_PID_FILE": folder / "pid", "RABBITMQ_GENERATED_CONFIG_DIR": folder / "generated",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        node = self.processes[number] = self._runs(f"rabbit{number}", variables, SERVER)
        # Erlang takes its time on two busy cores: no test hangs that waits for it.
        faulthandler.cancel_dump_traceback_later()
        wait_until(lambda: "Server startup complete" in node.stdout.read_text(), "RabbitMQ starts", patience=300)

    def stops(self, number: int, how=signal.SIGTERM):
        if how == signal.SIGKILL:
            # The process is a script that waits for Erlang.
            os.kill(int((self.home / f"node{number}/pid").read_text()), how)
        else:
            self.processes[number].signal(how)
        self.processes[number].ends(300)

    def reads_access_again(self):
        """It has nothing to read."""


@pytest.fixture
def server(tmp_path):
    with closing(Server(tmp_path / "fleet")) as server:
        server.rabbitmq_port = free_port()
        yield server


@pytest.fixture
def fleet(server, tmp_path):
    with ExitStack() as stack:
        made = server.types("rabbitmq", server.folder, "--port", server.rabbitmq_port, everywhere=False)
        assert made.returncode == 0, made
        server.starts()
        server.broker = RabbitMQ(server, stack)
        yield server


@pytest.fixture
def phone(fleet, new_rider, tmp_path):
    return Phone(fleet, tmp_path / "phone", new_rider)


def taken_back(phone, car) -> bool:
    """By the vehicle, or before that by the broker, which reads what is revoked for each connection."""
    ended = phone.stepctl("close", "--side", "left", "--radio", car.radio)
    return ended.status in (5, 77) and "revoked" in ended.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def client(server, certificate: Path, key: Path, name="", password=None) -> mqtt.Client:
    """Somebody with that certificate."""
    context = ssl.create_default_context(cafile=server.verify)
    context.load_cert_chain(certificate, key)
    made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv311)
    made.tls_set_context(context)
    if name:
        made.username_pw_set(name, password)
    return made


def may(server, certificate: Path, key: Path, act, **login) -> bool:
    """Whether the broker lets that client do it. Whoever does what is forbidden is thrown out."""
    ends = []
    made = client(server, certificate, key, **login)
    made.on_connect = lambda *arguments: ends.append(False) if arguments[3].is_failure else act(made)
    made.on_subscribe = lambda *arguments: ends.append(not arguments[3][0].is_failure)
    made.on_publish = lambda *_: ends.append(True)
    made.on_disconnect = lambda *_: ends.append(False)
    made.connect("localhost", server.broker_port)
    made.loop_start()
    wait_until(lambda: ends, "the broker decides")
    made.loop_stop()
    return ends[0]


def reads(topic):
    return lambda made: made.subscribe(topic, qos=1)


def writes(topic):
    return lambda made: made.publish(topic, b"forged", qos=1)


def test_vehicles_join_and_riders_open_while_the_configuration_stays_as_it_is(fleet, phone, tmp_path):
    before = contents(fleet.folder / "rabbitmq")
    assert sum(map(len, before.values())) < 5000 and len(before["definitions.json"].splitlines()) <= 2
    lists = (fleet.folder / "operator/mosquitto.acl").read_bytes()
    with ExitStack() as stack:
        car, van, booking = opened_without_a_word_to_the_broker(fleet, phone, tmp_path, stack)
        own = car.folder / "tls/controller.pem", car.folder / "tls/controller.key"
        home = phone.home / ".config/stepctl"
        rider = home / "vehicles/car/rider.pem", home / "device/rider.key"
        operator = fleet.folder / "operator/operator/client.pem", fleet.folder / "operator/operator/client.key"
        mine, other = (f"vehicles/{vehicle.id.lower()}" for vehicle in (car, van))
        allowed = [
            (own, reads(f"{mine}/left/set_position")), (own, reads(f"{mine}/operator")),
            (own, writes(f"{mine}/events")), (rider, reads(f"{mine}/left/status")),
            (rider, writes(f"{mine}/left/set_position")), (operator, reads(f"{other}/events")),
        ]
        forbidden = [
            (own, reads(f"{other}/left/set_position")), (own, reads(f"{mine}/left/status")), (own, reads("#")),
            (own, reads(f"{mine}/+/set_position")), (own, writes(f"{other}/events")), (own, writes(f"{mine}/operator")),
            (own, reads(f"{mine}/middle/set_position")), (own, reads(f"{mine}//set_position")),
            (rider, reads(f"{mine}/operator")), (rider, writes(f"{mine}/left/status")),
            (rider, writes(f"{other}/left/set_position")), (rider, reads(f"{mine}/events")),
            (operator, writes(f"{mine}/left/set_position")), (operator, reads("vehicles/#")),
        ]
        assert [place for place, (who, act) in enumerate(allowed) if not may(fleet, *who, act)] == []
        assert [place for place, (who, act) in enumerate(forbidden) if may(fleet, *who, act)] == []
        # A name that somebody types does not count, with any password: not even the client's own.
        for name in ("operator", f"rider:{car.id.lower()}"):
            for password in ("", "x", None):
                assert not may(fleet, *rider, reads(f"{mine}/left/status"), name=name, password=password)
        # The broker is there all the same.
        assert may(fleet, *rider, reads(f"{mine}/left/status"))
        assert fleet.types("revoke", "--booking", booking["id"]).stdout == "1 token revoked\n"
        wait_until(lambda: taken_back(phone, car), "the access is taken back")
        assert contents(fleet.folder / "rabbitmq") == before
        assert (fleet.folder / "operator/mosquitto.acl").read_bytes() == lists
        # The vehicle is taken out of the fleet, and after what the broker remembers it is nobody.
        assert may(fleet, van.folder / "tls/controller.pem", van.folder / "tls/controller.key", reads(f"{other}/operator"))
        removed = fleet.types("vehicle", "remove", "van", "-y")
        assert removed.returncode == 0, removed
        gone = lambda: not may(  # noqa: E731
            fleet, van.folder / "tls/controller.pem", van.folder / "tls/controller.key", reads(f"{other}/operator"))
        wait_until(gone, "the broker forgets the van", patience=2 * PATIENCE)
        assert may(fleet, *own, reads(f"{mine}/operator"))
        told = car.stepctl("operator", "log", fleet.folder / "operator", "car", "--json")
        assert told.status == 0, told
        kinds = [event["kind"] for event in told.objects if event["kind"] != "notice"]
        assert kinds[:3] == ["started", "began", "ended"], kinds
        assert car.stepctl("operator", "log", fleet.folder / "operator", "car", "--verify").status == 0


def test_its_configuration_is_refused_and_left_alone_where_a_port_cannot_be(server, tmp_path):
    settings = (server.folder / "stepfleet.json").read_bytes()
    for arguments in (
        ("--port", "0"), ("--port", "65536"), ("--nodes", "8893"), ("--nodes", "8893,8893"), ("--nodes", "8893,"),
        ("--nodes", "8893,x"), ("--nodes", ""),
    ):
        refused = server.types("rabbitmq", server.folder, *arguments, everywhere=False)
        assert refused.returncode == 64 and len(refused.stderr.splitlines()) == 1, refused
    assert server.types("rabbitmq", tmp_path, everywhere=False).returncode == 66
    assert (server.folder / "stepfleet.json").read_bytes() == settings and not (server.folder / "rabbitmq").exists()
    # What is not typed again stays.
    for arguments, noted in (
        (("--nodes", "8893,8894"), {"port": 8884, "nodes": [8893, 8894]}), ((), {"port": 8884, "nodes": [8893, 8894]}),
        (("--port", "8885"), {"port": 8885, "nodes": [8893, 8894]}), (("--nodes", "none"), {"port": 8885, "nodes": []}),
    ):
        made = server.types("rabbitmq", server.folder, *arguments, everywhere=False)
        assert made.returncode == 0, made
        assert json.loads((server.folder / "stepfleet.json").read_text())["rabbitmq"] == noted
    assert sorted(contents(server.folder / "rabbitmq")) == [
        "advanced.config", "definitions.json", "enabled_plugins", "rabbitmq.conf"]
    for damaged in (8884, {"port": 8884}, {"port": 0, "nodes": []}, {"port": 8884, "nodes": [0]}):
        server.changes(rabbitmq=damaged)
        assert server.types("check", server.folder, everywhere=False).returncode == 65, damaged


def test_nobody_connects_without_a_certificate_and_nobody_while_the_server_is_away(fleet, tmp_path):
    command = ("openssl", "s_client", "-connect", f"localhost:{fleet.broker_port}", "-CAfile", fleet.verify, "-tls1_2")
    assert subprocess.run(command, input=b"", capture_output=True, timeout=60).returncode != 0
    operator = fleet.folder / "operator/operator/client.pem", fleet.folder / "operator/operator/client.key"
    topic = "vehicles/0/events"
    fleet.kill()
    assert not may(fleet, *operator, reads(topic))
    # A refusal is not remembered.
    fleet.starts()
    connected = client(fleet, *operator)
    connected.connect("localhost", fleet.broker_port)
    connected.loop_start()
    wait_until(connected.is_connected, "the operator connects")
    connected.loop_stop()


def test_the_certificate_of_a_revoked_device_is_refused_at_once(fleet, phone, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        assert phone.opens(car).status == 0
        home, session = phone.home / ".config/stepctl", tmp_path / "session"
        rider = home / "vehicles/car/rider.pem", home / "device/rider.key"
        assert connects(fleet, *rider, "-sess_out", session)
        revoked = fleet.types("revoke", "--device", phone.rider.key.thumbprint())
        assert revoked.returncode == 0, revoked
        status = lambda: phone.stepctl("status")  # noqa: E731
        ended = wait_until(lambda: (ended := status()).status == 77 and ended, "the broker refuses it")
        assert "certificate has been revoked" in ended.stderr, ended
        # A session of before does not help: its certificate would not be looked up again.
        assert not session.exists() or not connects(fleet, *rider, "-sess_in", session)
        # The broker has read that without a signal, and lets others in.
        assert car.stepd.lives
        operator = fleet.folder / "operator/operator/client.pem", fleet.folder / "operator/operator/client.key"
        assert may(fleet, *operator, reads(f"vehicles/{car.id}/events"))


def connects(server, certificate: Path, key: Path, *session) -> bool:
    """Whether the handshake of TLS 1.2 succeeds."""
    command = (
        "openssl", "s_client", "-connect", f"localhost:{server.broker_port}", "-CAfile", server.verify, "-tls1_2",
        "-cert", certificate, "-key", key, "-verify_return_error", *session)
    ended = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    return ended.returncode == 0


class Balancer:
    """Lets connections to a port through to what `target` says then."""

    def __init__(self, port: int, target):
        self.target, self.pairs = target, []
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accepts, daemon=True).start()

    def _accepts(self):
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                try:
                    node = socket.create_connection(self.target())
                except OSError:
                    client.close()
                    continue
                for one, other in ((client, node), (node, client)):
                    threading.Thread(target=self._forwards, args=(one, other), daemon=True).start()

    @staticmethod
    def _forwards(one, other):
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()


def test_of_three_nodes_one_is_killed_and_what_is_revoked_meanwhile_is_known_to_each(server, new_rider, tmp_path):
    # Of two nodes, RabbitMQ 3.10 would let nobody connect when one is lost: most of them agree on clients' identifiers.
    addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    ports = [free_port() for _ in addresses]
    nodes = ",".join(map(str, ports))
    made = server.types("rabbitmq", server.folder, "--port", server.rabbitmq_port, "--nodes", nodes, everywhere=False)
    assert made.returncode == 0, made
    with ExitStack() as stack:
        server.starts()
        server.broker = broker = RabbitMQ(server, stack, addresses)
        alive = [0]
        stack.enter_context(
            closing(Balancer(server.broker_port, lambda: (addresses[alive[0]], server.broker_port))))
        for port, address in zip(ports, addresses):
            stack.enter_context(closing(Balancer(port, lambda address=address: (address, server.broker_port))))
        car = Joined(server, tmp_path / "board/car", "car", stack)
        car.stack = stack
        phone = Phone(server, tmp_path / "phone", new_rider)
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        assert phone.opens(car).status == 0

        returns = server.log().count("is back")
        # The node that the car is connected to is killed: car and rider go on at the other one.
        broker.stops(0, signal.SIGKILL)
        alive[0] = 1
        closed = lambda: phone.stepctl("close", "--side", "left", "--radio", car.radio).status == 0  # noqa: E731
        wait_until(closed, "the step is closed by the other node", patience=4 * PATIENCE)
        # While the first node is away, and the car as well, access is revoked.
        car.stepd.close()
        assert server.types("revoke", "--booking", booking["id"]).stdout == "1 token revoked\n"
        wait_until(lambda: untold(server) == 0, "the living node has it")
        broker.starts(0)
        wait_until(lambda: server.log().count("is back") > returns, "the first node is back")
        for port in ports:
            kept = lambda: claims(retained(server, port, f"vehicles/{car.id}/operator"))["seq"]  # noqa: B023, E731
            wait_until(lambda: untold(server) == 0 and kept() == newest(server, car), f"{port} has the newest notice")
        alive[0] = 0
        car.drives()
        car.stepd.says(f"the operator's notice {newest(server, car)} is in force")


def untold(server) -> int:
    (count,) = server.runs("SELECT count(*) FROM notice WHERE since IS NOT NULL")
    return count


def newest(server, car) -> int:
    (number,) = server.runs(f"SELECT number FROM notice WHERE vehicle = '{car.id}'")
    return number


def retained(server, port: int, topic: str) -> str:
    """What the node at that port keeps."""
    operator = server.folder / "operator"
    return subprocess.run(
        [
            "mosquitto_sub", "-h", "localhost", "-p", str(port), "--cafile", operator / "tls/ca.pem",
            "--cert", operator / "operator/client.pem", "--key", operator / "operator/client.key",
            "-t", topic, "-C", "1", "-W", f"{PATIENCE:.0f}",
        ], capture_output=True, text=True, check=True).stdout
