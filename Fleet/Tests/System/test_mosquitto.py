"""mosquitto with the fleet's plugin: its configuration stays as it is while vehicles join and go.

The rules are written down here again, and tried with the plugin alone, with a real broker, and with the list that a
broker without the plugin reads.
"""

import ctypes
import json
import random
import re
import signal
import ssl
import string
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, closing
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from programs import Stepctl, Transcript, wait_until
from server import BINARIES, Broker, Server
from test_fleet import Phone, booked
from test_notices import claims
from test_stepctl import Joined, opened_without_a_word_to_the_broker

PLUGIN = BINARIES.resolve() / "mosquitto_stepfleet.so"
ALLOWED, READ, WRITE, SUBSCRIBE, DEFERRED, DENIED = 0, 1, 2, 4, 17, 12

# What each role may do: r, w or both, by the topics' ends.
RULES = {
    "controller": {"availability": "rw", "operator": "r", "events": "w", "set_position": "r", "status": "w"},
    "operator": {"availability": "r", "operator": "rw", "events": "r", "status": "r"},
    "rider": {"availability": "r", "set_position": "w", "status": "r"},
    "watcher": {"availability": "r", "status": "r"},
}
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def rule(name: str, topic: str, access: str) -> bool:
    """Whether a client of that name may do that by the rules for topics that begin with vehicles/."""
    who = re.fullmatch(rf"(operator)|(controller|rider|watcher):({UUID})", name)
    what = re.fullmatch(rf"vehicles/({UUID})/(?:(availability|operator|events)|(?:left|right)/(set_position|status))",
                        topic)
    if not who or not what or (who[3] and who[3] != what[1]):
        return False
    end = what[2] or what[3]
    return access in RULES[who[1] or who[2]].get(end, "")


class Question(ctypes.Structure):
    """struct mosquitto_evt_acl_check (mosquitto_broker.h)."""

    _fields_ = [
        ("future", ctypes.c_void_p), ("client", ctypes.c_char_p), ("topic", ctypes.c_char_p),
        ("payload", ctypes.c_void_p), ("properties", ctypes.c_void_p), ("access", ctypes.c_int),
        ("length", ctypes.c_uint32), ("qos", ctypes.c_uint8), ("retain", ctypes.c_bool),
        ("more", ctypes.c_void_p * 4),
    ]


# What the plugin takes of mosquitto: the client's name is all that a client is here.
HOST = """
typedef int check(int, void *, void *);
check *registered;
const char *mosquitto_client_username(const void *client) { return client; }
void mosquitto_log_printf(int level, const char *format, ...) {}
int mosquitto_callback_register(void *id, int event, check *function, const void *data, void *context) {
  if (event == 2) registered = function;
  return 0;
}
"""


def hosted(folder: Path) -> Path:
    (folder / "host.c").write_text(HOST)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", folder / "host.so", folder / "host.c"], check=True)
    return folder / "host.so"


# Asks whether clients may read their vehicles' availability.
PROBE = """
import ctypes, json, sys
host = ctypes.CDLL("{host}", ctypes.RTLD_GLOBAL)
plugin = ctypes.CDLL("{plugin}")
class Option(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]
assert plugin.mosquitto_plugin_init(None, None, (Option * 1)(Option(b"removed", b"{file}")), 1) == 0
class Question(ctypes.Structure):
    _fields_ = [
        ("future", ctypes.c_void_p), ("client", ctypes.c_char_p), ("topic", ctypes.c_char_p),
        ("payload", ctypes.c_void_p), ("properties", ctypes.c_void_p), ("access", ctypes.c_int),
        ("length", ctypes.c_uint32), ("qos", ctypes.c_uint8), ("retain", ctypes.c_bool), ("more", ctypes.c_void_p * 4)]
check = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
    ctypes.c_void_p.in_dll(host, "registered").value)
for line in sys.stdin:
    answers = []
    for name in json.loads(line):
        topic = "vehicles/" + name.split(":")[1] + "/availability"
        question = Question(client=name.encode(), topic=topic.encode(), access=1)
        answers.append(check(2, ctypes.addressof(question), None))
    print(json.dumps(answers), flush=True)
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The plugin's own function, in this process."""
    host = ctypes.CDLL(hosted(tmp_path_factory.mktemp("plugin")), ctypes.RTLD_GLOBAL)
    plugin = ctypes.CDLL(str(PLUGIN))
    versions = (ctypes.c_int * 3)(3, 4, 5)
    assert plugin.mosquitto_plugin_version(3, versions) == 5 and plugin.mosquitto_plugin_version(2, versions) == -1
    assert plugin.mosquitto_plugin_init(None, None, None, 0) == 0
    check = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        ctypes.c_void_p.in_dll(host, "registered").value)

    def ask(name, topic, access, retain=False) -> int:
        name, topic = (text if text is None else text.encode() for text in (name, topic))
        question = Question(client=name, topic=topic, access=access, retain=retain)
        return check(2, ctypes.addressof(question), None)

    yield ask


CAR, VAN = "7c08f5a2-0b9e-4c0e-9d51-6a1f2f0c9d3e", "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"


def spoiled(text: str, chance: random.Random) -> str:
    """The text with a few letters changed, left out, doubled or put in."""
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        place = chance.randrange(len(text) + 1)
        what = chance.choice(string.ascii_letters + string.digits + "/:-_.+#$ é")
        text = chance.choice([
            text[:place] + what + text[place:], text[:place] + what + text[place + 1:], text[:place] + text[place + 1:],
            text[:place], text[place:], text.upper()])
    return text


def test_the_plugin_keeps_to_the_rules_whatever_names_and_topics_are(asked):
    chance = random.Random(32)
    names = ["operator", *(f"{role}:{vehicle}" for role in RULES for vehicle in (CAR, VAN))]
    ends = ["availability", "operator", "events", "left/set_position", "left/status", "right/status", "middle/status",
            "leftright/status", "/status", "left", "left/status/", "left/right/status", "Left/status", ""]
    answers = {ALLOWED: 0, DEFERRED: 0, DENIED: 0}
    for _ in range(100_000):
        name = spoiled(chance.choice(names), chance)
        topic = spoiled(f"vehicles/{chance.choice([CAR, VAN])}/{chance.choice(ends)}", chance)
        access, retained = chance.choice("rw"), chance.random() < 0.3
        expected = ALLOWED if rule(name, topic, access) else DEFERRED
        # Whatever vehicle it is: a list would allow it.
        is_client = name == "operator" or re.fullmatch(f"(controller|rider|watcher):{UUID}", name)
        if is_client and access == "w" and retained and topic.split("/")[-1] in ("set_position", "events"):
            expected = DENIED
        answer = asked(name, topic, READ if access == "r" else WRITE, retained)
        assert answer == expected, (name, topic, access, retained)
        answers[answer] += 1
    assert min(answers.values()) > 500, answers


def test_no_client_but_the_operator_follows_all_vehicles_by_one_filter(asked):
    wide = ["#", "+/+/status", "vehicles/#", "vehicles/+/availability", "$share/mine/vehicles/+/status", "$SYS/#",
            f"vehicles/{VAN}/#", f"vehicles/{VAN}/left/status"]
    for role in ("controller", "rider", "watcher"):
        assert [asked(f"{role}:{CAR}", topic, SUBSCRIBE) for topic in wide] == [DENIED] * len(wide)
        # What of these the client gets is decided for each message.
        for topic in (f"vehicles/{CAR}/#", f"vehicles/{CAR}/+/status", "vehicles/van/#", "yard/van/#"):
            assert asked(f"{role}:{CAR}", topic, SUBSCRIBE) == DEFERRED
    assert asked("operator", "vehicles/+/events", SUBSCRIBE) == DEFERRED
    # Whoever has no name, or another one, is for the list to decide.
    assert {asked(name, "vehicles/#", SUBSCRIBE) for name in (None, "", "somebody", f"rider:{CAR} ")} == {DEFERRED}
    assert asked(None, f"vehicles/{CAR}/left/status", READ) == asked("operator", None, READ) == DEFERRED


def test_removed_vehicles_may_do_nothing_and_a_damaged_file_brings_none_back(tmp_path):
    # The plugin keeps what it has read: a process of its own.
    lines = tmp_path / "removed"
    chance = random.Random(3)
    vehicles = sorted(str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(5000))
    gone = vehicles[::2]
    lines.write_text("".join(f"{one}\n" for one in gone))
    code = PROBE.format(plugin=PLUGIN, host=hosted(tmp_path), file=lines)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:

        def denied(names) -> list[bool]:
            probe.stdin.write(json.dumps([f"rider:{one}" for one in names]) + "\n")
            probe.stdin.flush()
            answers = json.loads(probe.stdout.readline())
            assert set(answers) <= {ALLOWED, DENIED}
            return [answer == DENIED for answer in answers]

        assert denied(vehicles) == [place % 2 == 0 for place in range(5000)]
        for damaged in ("x", gone[0] + "\n" + gone[0] + "\n", gone[1] + "\n" + gone[0] + "\n", "\0" * 37, " " * 37):
            new = tmp_path / "new"
            new.write_text(damaged)
            new.replace(lines)
            time.sleep(1.1)
            assert all(denied(gone)), damaged
        lines.unlink()
        time.sleep(1.1)
        assert all(denied(gone))
        lines.write_text(f"{vehicles[1]}\n")
        time.sleep(1.1)
        assert denied(vehicles[:3]) == [False, True, False]
        probe.stdin.close()


class Restartable(Broker):
    """A broker that nobody tells to read anything again."""

    def reads_access_again(self):
        """It has nothing to read."""

    def starts_again(self, server, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        super().__init__(server)


@pytest.fixture
def server(tmp_path):
    assert PLUGIN.exists(), f"Fleet/Sources/MosquittoPlugin/build.sh {PLUGIN}"
    with closing(Server(tmp_path / "fleet")) as server:
        yield server


@pytest.fixture
def fleet(server):
    with ExitStack() as stack:
        server.broker = stack.enter_context(closing(Restartable(server)))
        yield server.starts()


@pytest.fixture
def phone(fleet, new_rider, tmp_path):
    return Phone(fleet, tmp_path / "phone", new_rider)


def files(server) -> dict[str, bytes]:
    """The broker's configuration."""
    return {name: (server.folder / "operator" / name).read_bytes() for name in ("mosquitto.conf", "mosquitto.acl")}


class Client:
    """A client of the broker that subscribes to topics, and says what it got and what it was let send."""

    def __init__(self, server, certificate, key):
        context = ssl.create_default_context(cafile=server.verify)
        context.load_cert_chain(certificate, key)
        self.got, self.answers = set(), {}
        self.mqtt = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.mqtt.tls_set_context(context)
        self.mqtt.on_message = lambda _, __, message: self.got.add(message.topic)
        self.mqtt.on_publish = lambda _, __, number, reason, ___: self.answers.update({number: not reason.is_failure})
        self.mqtt.on_subscribe = lambda _, __, number, reasons, ___: self.answers.update(
            {number: not reasons[0].is_failure})
        self.mqtt.on_disconnect = lambda *_: self.answers.update(gone=True)
        self.mqtt.connect("localhost", server.broker_port)
        self.mqtt.loop_start()
        wait_until(self.mqtt.is_connected, "the client connects")

    def asks(self, sent) -> bool:
        number = sent[1] if isinstance(sent, tuple) else sent.mid
        wait_until(lambda: number in self.answers or "gone" in self.answers, "the broker answers")
        return self.answers.get(number, False)

    def subscribes(self, topic) -> bool:
        return self.asks(self.mqtt.subscribe(topic))

    def sends(self, topic, retain=False) -> bool:
        return self.asks(self.mqtt.publish(topic, b"x", qos=1, retain=retain))

    def close(self):
        self.mqtt.loop_stop()
        self.mqtt.disconnect()


def identity(fleet, name: str, folder):
    """A certificate of the operator's authority, which `openssl` makes: programs of the project make no such ones."""
    tls = fleet.folder / "operator/tls"
    authority = fleet.folder / "operator/operator/ca.key"
    file = folder / re.sub("[^a-z0-9]", "-", name)
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         f"{file}.key", "-subj", f"/CN={name}", "-out", f"{file}.csr"], check=True, capture_output=True)
    subprocess.run(
        ["openssl", "x509", "-req", "-in", f"{file}.csr", "-CA", tls / "ca.pem", "-CAkey", authority, "-days", "1",
         "-out", f"{file}.pem"], check=True, capture_output=True)
    return f"{file}.pem", f"{file}.key"


@pytest.mark.parametrize("plugin", ["with the plugin", "with a list"])
def test_seven_clients_of_two_vehicles_may_do_what_the_rules_say_and_nothing_else(server, tmp_path, plugin):
    if plugin == "with a list":
        made = server.types("mosquitto", server.folder, "--plugin", "none", everywhere=False)
        assert made.returncode == 0, made
    vehicles = [CAR, VAN]
    with ExitStack() as stack:
        for name, vehicle in (("car", CAR), ("van", VAN)):
            made = Stepctl(tmp_path, Transcript())(
                "provision", "vehicle", tmp_path / name, "--operator", server.folder / "operator", "--uuid", vehicle)
            assert made.status == 0, made
        stack.enter_context(closing(Broker(server)))
        names = ["operator", *(f"{role}:{vehicle}" for vehicle in vehicles for role in RULES if role != "operator")]
        clients = {
            name: stack.enter_context(closing(Client(server, *identity(server, name, tmp_path)))) for name in names}
        topics = [
            f"vehicles/{vehicle}/{end}" for vehicle in vehicles
            for end in ("availability", "operator", "events", "left/set_position", "left/status", "middle/set_position",
                        "middle/status", "left/operator", "events/status")]
        for client in clients.values():
            for topic in topics:
                client.subscribes(topic)
        sent = {(name, topic): client.sends(topic) for name, client in clients.items() for topic in topics}
        assert {key for key, is_sent in sent.items() if is_sent} == {
            (name, topic) for name in names for topic in topics if rule(name, topic, "w")}
        # The answer to this comes after what was sent before.
        for client in clients.values():
            client.subscribes("after")
        # Each topic that a vehicle has was written to by somebody who may.
        written = {topic for _, topic in (key for key, is_sent in sent.items() if is_sent)}
        assert written == {topic for topic in topics if any(rule(name, topic, "r") for name in names)}
        for name, client in clients.items():
            assert client.got == {topic for topic in topics if rule(name, topic, "r")}, name
        # Nobody but these has topics there.
        rider = clients[f"rider:{CAR}"]
        assert not rider.sends(f"vehicles/{CAR}/operator") and not rider.sends("else/where")
        if plugin == "with the plugin":
            assert not rider.sends(f"vehicles/{CAR}/left/set_position", retain=True)
            assert not rider.subscribes("#")


def test_vehicles_join_and_go_while_the_configuration_stays_as_it_is(fleet, phone, tmp_path):
    before = files(fleet)
    assert f"\nplugin {PLUGIN}\n" in before["mosquitto.conf"].decode() and sum(map(len, before.values())) < 5000
    with ExitStack() as stack:
        car, van, booking = opened_without_a_word_to_the_broker(fleet, phone, tmp_path, stack)
        assert files(fleet) == before
        # A vehicle that was removed may do nothing any more, even by a connection that it had before.
        topic = f"vehicles/{van.id.lower()}/left/status"
        with closing(Client(fleet, van.folder / "tls/controller.pem", van.folder / "tls/controller.key")) as client:
            assert client.sends(topic)
            removed = fleet.types("vehicle", "remove", "van", "-y")
            assert removed.returncode == 0, removed
            wait_until(lambda: not client.sends(topic), "the broker refuses the van")
            assert not client.subscribes(f"vehicles/{van.id.lower()}/operator")
        assert (fleet.folder / "operator/mosquitto.removed").read_text() == f"{van.id.lower()}\n"
        assert files(fleet) == before
        closed = phone.stepctl("close", "--side", "left", "--radio", car.radio)
        assert closed.status == 0, closed


def test_what_a_killed_broker_had_not_written_is_sent_again(fleet, phone, tmp_path):
    with ExitStack() as stack:
        car = Joined(fleet, tmp_path / "board/car", "car", stack)
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        car.stepd.signal(signal.SIGTERM)
        car.stepd.ends(60)
        assert fleet.types("revoke", "--booking", booking["id"]).stdout == "1 token revoked\n"
        operator = [fleet.folder / f"operator/operator/client.{end}" for end in ("pem", "key")]
        topic = f"vehicles/{car.id.lower()}/operator"

        def revoked() -> list:
            found = []
            with closing(Client(fleet, *operator)) as client:
                client.mqtt.on_message = lambda _, __, message: found.append(message.payload)
                client.subscribes(topic)
                client.subscribes("after")
            return [claims(payload.decode())["revoked"] for payload in found]

        wait_until(lambda: any(revoked()), "the broker has the revocation")
        # mosquitto has written nothing yet.
        assert not (fleet.folder / "operator/data/mosquitto.db").exists()
        fleet.broker.starts_again(fleet, signal.SIGKILL)
        wait_until(lambda: any(revoked()), "the broker has the revocation again")


def test_a_fleet_with_a_list_takes_the_plugin_and_nobody_is_locked_out(server, new_rider, tmp_path):
    made = server.types("mosquitto", server.folder, "--plugin", "none", everywhere=False)
    assert made.returncode == 0 and made.stdout.startswith(
        f"{server.folder}/operator/mosquitto.conf: its list has all vehicles\n"), made
    assert b"plugin" not in files(server)["mosquitto.conf"]
    with ExitStack() as stack:
        server.broker = stack.enter_context(closing(Broker(server)))
        server.starts()
        phone = Phone(server, tmp_path / "phone", new_rider)
        car = Joined(server, tmp_path / "board/car", "car", stack)
        # Topics of its own.
        code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}", server.types("vehicle", "add", "van").stdout)[0]
        joined = car.stepctl(
            "provision", "vehicle", tmp_path / "van", "--fleet", server.url, "--ca", server.verify, "--code", code,
            "--topic", "yard/van")
        assert joined.status == 0, joined
        booking = booked(phone.rider, car)
        phone.gets_access(booking["id"])
        lists = files(server)["mosquitto.acl"].decode()
        assert f"vehicles/{car.id.lower()}/" in lists and "yard/van/" in lists
        made = server.types("mosquitto", server.folder, everywhere=False)
        assert made.returncode == 0 and f": it asks {PLUGIN}\n" in made.stdout, made
        # Until the broker is started again, its list is whole.
        assert files(server)["mosquitto.acl"].decode() == lists
        server.broker.close()
        server.broker = stack.enter_context(closing(Restartable(server)))
        server.stops()
        server.starts()
        wait_until(lambda: "vehicles/" not in files(server)["mosquitto.acl"].decode(), "the list has the van alone")
        assert "yard/van/" in files(server)["mosquitto.acl"].decode()
        opened = phone.opens(car)
        assert (opened.status, opened.stdout) == (0, "the left step is open\n"), opened
        own = tmp_path / "van/tls/controller.pem", tmp_path / "van/tls/controller.key"
        with closing(Client(server, *own)) as van:
            assert van.sends("yard/van/events") and not van.sends(f"vehicles/{car.id.lower()}/events")


def test_its_configuration_is_refused_and_left_alone_where_the_plugin_cannot_be(server, tmp_path):
    before = files(server)
    for arguments in (("--plugin", "plugin.so"), ("--plugin", ""), ("--plugin", "/a\nlistener 1")):
        refused = server.types("mosquitto", server.folder, *arguments, everywhere=False)
        assert refused.returncode in (64, 65) and len(refused.stderr.splitlines()) == 1, refused
    assert server.types("mosquitto", tmp_path, everywhere=False).returncode == 66
    assert files(server) == before
    # The operator's own commands keep it.
    moved = Stepctl(tmp_path, Transcript())("operator", "move", server.folder / "operator", "--port", "8899")
    assert moved.status == 0, moved
    assert f"\nplugin {PLUGIN}\n" in files(server)["mosquitto.conf"].decode()
    assert json.loads((server.folder / "operator/broker.json").read_text()) == {
        "host": "localhost", "port": 8899, "plugin": str(PLUGIN)}
    # RabbitMQ takes mosquitto's place, and mosquitto takes its own again.
    assert server.types("rabbitmq", server.folder, everywhere=False).returncode == 0
    assert server.types("mosquitto", server.folder, everywhere=False).returncode == 0
    assert "rabbitmq" not in json.loads((server.folder / "stepfleet.json").read_text())
