"""RabbitMQ's MQTT plugin in place of mosquitto, for a fleet: stepd and stepctl are the same, and so is what each may do.

A private node on loopback, as the user who runs the tests, with a name server (epmd) of its own.
"""

import faulthandler
import json
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import client
from devices import Device
from fleets import Fleet
from peers import Connection
from programs import Running, wait_until
from vehicle import free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
pytestmark = pytest.mark.skipif(
    not SERVER.exists(), reason="RabbitMQ is not installed: apt-get install rabbitmq-server"
)


class RabbitFleet(Fleet):
    """A fleet whose broker is RabbitMQ."""

    def starts_broker(self) -> Running:
        home = self.folder / "rabbit"
        home.mkdir(exist_ok=True)
        (home / "plugins").write_text("[rabbitmq_mqtt].\n")
        ports = {"ERL_EPMD_PORT": free_port(), "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_DIST_PORT": free_port()}
        variables = ports | {
            "HOME": home,
            "RABBITMQ_NODENAME": "stepctl@localhost",
            "RABBITMQ_CONFIG_FILE": self.folder / "fleet/rabbitmq/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": self.folder / "fleet/rabbitmq/advanced.config",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": home / "plugins",
            "RABBITMQ_MNESIA_BASE": home / "mnesia",
            "RABBITMQ_LOG_BASE": home / "log",
            "RABBITMQ_PID_FILE": home / "pid",
            "RABBITMQ_GENERATED_CONFIG_DIR": home / "generated",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_LOGS": "-",
        }
        environment = [f"{name}={value}" for name, value in variables.items()]
        self.runs("epmd", "env", *environment, "epmd")
        self.broker = self.runs("rabbitmq", "env", *environment, SERVER)
        # Erlang takes its time on two busy cores: no test hangs that waits for it.
        faulthandler.cancel_dump_traceback_later()
        ready = lambda: "Server startup complete" in self.broker.stdout.read_text()  # noqa: E731
        wait_until(ready, f"RabbitMQ starts; it said {self.broker.stderr.read_text()}", patience=300)
        return self.broker


@pytest.fixture(scope="module")
def fleet(stepctl, tmp_path_factory):
    with ExitStack() as stack:
        fleet = RabbitFleet(tmp_path_factory.mktemp("rabbit"), stepctl, stack)
        fleet.starts_broker()
        for name in ("car", "van"):
            fleet.starts_stepd(name)
        yield fleet


def test_from_a_request_to_a_step_that_moves_to_a_revocation_and_the_log(fleet, stepctl, phone, transcript, tmp_path):
    folder = fleet.folder / "fleet"
    phone.gets_access(stepctl, folder / "vehicles/car", "--rider", "anna")
    opened = phone.opens(fleet.radio("car"))
    assert (opened.status, opened.stdout) == (0, "the left step is open\n")
    assert phone.types("status").lines == ["left     open", "right    closed"]
    assert phone.types("stop", "--side", "left").status == 0
    bert = Device(tmp_path / "bert", transcript)
    bert.gets_access(stepctl, folder / "vehicles/car", "--rider", "bert")
    revoked = stepctl("operator", "revoke", folder, "--rider", "anna")
    assert revoked.status == 0, revoked
    # The broker reads what is revoked for each connection, without a signal.
    refused = phone.types("status")
    assert (refused.status, "certificate has been revoked" in refused.stderr) == (77, True), refused
    assert bert.types("status").status == 0
    told = stepctl("operator", "log", folder, "car", "--json")
    assert told.status == 0, told
    kinds = [event["kind"] for event in told.objects if event["kind"] != "notice"]
    assert kinds == ["started", "began", "ended"]
    assert stepctl("operator", "log", folder, "--verify").status == 0


def throws_out(login: client.Vehicle, act):
    """The broker ends the connection of a client that does this."""
    connection, ended = client.connection(login), []
    connection.on_connect = lambda *_: act(connection)
    connection.on_disconnect = lambda *_: ended.append(True)
    connection.connect(login.host, login.port)
    connection.loop_start()
    wait_until(lambda: ended, "the broker throws it out")
    connection.loop_stop()


def test_a_certificate_for_one_vehicle_reaches_no_other_and_no_role_another(fleet):
    car, van = (fleet.folder / name for name in ("car", "van"))
    own = fleet.login("car", car / "tls/controller.pem", car / "tls/controller.key")
    other = fleet.login("van", van / "tls/controller.pem", van / "tls/controller.key")
    with Connection(own, f"{own.topic}/left/set_position", f"{own.topic}/operator") as connection:
        assert not any(code.is_failure for code in connection.granted)
    for topic in (f"{other.topic}/left/set_position", f"{own.topic}/left/status", "#"):
        throws_out(own, lambda connection, topic=topic: connection.subscribe(topic, qos=1))
    # What is not allowed is not taken: nobody hears it.
    operator = fleet.folder / "fleet/operator"
    ear = fleet.login("van", operator / "client.pem", operator / "client.key")
    with Connection(ear, f"{other.topic}/left/status") as heard:
        while not heard.messages.empty():
            heard.messages.get()
        throws_out(own, lambda connection: connection.publish(f"{other.topic}/left/status", b"forged", qos=1))
        with Connection(other) as controller:
            controller.deliver(f"{other.topic}/left/status", b"true")
        payloads = []
        while b"true" not in payloads:
            payloads.append(heard.next().payload)
        assert b"forged" not in payloads


def test_nobody_connects_without_a_certificate_of_the_operators(fleet):
    address = f"localhost:{fleet.port}"
    command = ("openssl", "s_client", "-connect", address, "-CAfile", fleet.folder / "fleet/tls/ca.pem", "-tls1_2")
    ended = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    assert ended.returncode != 0


def test_its_definitions_name_every_vehicle_and_follow_a_new_one(fleet, stepctl):
    file = fleet.folder / "fleet/rabbitmq/definitions.json"
    users = {user["name"] for user in json.loads(file.read_text())["users"]}
    roles = ("rider", "watcher", "controller")
    assert users == {f"{role}:{fleet.uuid(name)}" for role in roles for name in ("car", "van")} | {
        "operator"
    }
    made = stepctl("provision", "vehicle", fleet.folder / "bus", "--operator", fleet.folder / "fleet")
    assert made.status == 0
    assert f"rider:{fleet.uuid('bus')}" in file.read_text()


def test_a_notice_outlives_a_restart_of_the_broker(fleet, stepctl):
    """The last test of this file, because it ends the broker."""
    stepctl("operator", "publish", fleet.folder / "fleet", "--timeout", "50")
    fleet.broker.signal(signal.SIGTERM)
    fleet.broker.ends(300)
    fleet.broker.stdout.unlink()
    fleet.starts_broker()
    operator = fleet.folder / "fleet/operator"
    ear = fleet.login("car", operator / "client.pem", operator / "client.key")
    with Connection(ear, f"{ear.topic}/operator") as connection:
        message = connection.next()
        assert message.retain and message.payload.startswith(b"eyJ")
