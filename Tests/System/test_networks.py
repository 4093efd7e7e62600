"""Whole programs on computers that have IPv4 alone, IPv6 alone, both, or no network but their own."""

import json
import time
from contextlib import closing

import pytest

from feeds import frame
from networks import NETWORKS, Network, needs_namespaces
from programs import STEPD

pytestmark = needs_namespaces


@pytest.fixture(params=NETWORKS)
def network(request, tmp_path):
    with closing(Network(request.param, tmp_path)) as network:
        yield network


def starts(vehicle, network):
    """Its broker and its controller, there."""
    broker = vehicle.starts("broker", *network.prefix, "mosquitto", "-c", vehicle.folder / "mosquitto.conf")
    broker.says("running")
    vehicle.starts("stepd", *network.prefix, STEPD, "--config", vehicle.folder / "stepd.toml").says("connected to")
    broker.says(f"'{vehicle.status('right')}'")
    return vehicle.rider("anna")


def test_a_vehicle_at_localhost_moves_and_doctor_says_that_it_works(network, parked):
    anna = starts(parked, network)
    for command in (["status"], ["open", "--radio", parked.radio("left")], ["stop"], ["doctor", "broker", "controller"]):
        ended = anna.types(*command, prefix=network.prefix)
        assert ended.status == 0, ended
    assert parked.motions == [("left", "close", "open")]


def test_a_broker_is_reached_by_each_address_of_its_computer(network, new_vehicle):
    for number, address in enumerate(network.addresses):
        car = new_vehicle(f"car{number}", "--host", address)
        ended = starts(car, network).types("doctor", "broker", "controller", prefix=network.prefix)
        assert ended.status == 0, ended
        assert any(f"{address} is {address}" in line for line in ended.lines), ended
        shown = f"[{address}]:{car.port}" if ":" in address else f"{address}:{car.port}"
        assert shown in car.stepctl("config", "show", car.folder).stdout


def test_a_broker_that_is_not_there_is_told_with_its_address(network, parked):
    anna = parked.rider("anna")
    ended = anna.types("status", "--timeout", "2", prefix=network.prefix)
    assert ended.status == 69
    # Not that the computer lacks the other one of the name's addresses.
    assert ended.error == f"cannot connect to the broker localhost:{parked.port}: Connection refused", ended
    doctor = anna.types("doctor", "broker", prefix=network.prefix)
    assert doctor.status == 69 and f"localhost:{parked.port}: Connection refused" in doctor.stdout, doctor
    found = parked.stepctl("find", "--to", "48,9", "--timeout", "2", prefix=network.prefix)
    assert found.error == "cannot connect to gpsd at localhost:2947: Connection refused", found


# --- Traffic ---


@pytest.fixture
def feed(authority, tmp_path):
    """A recording, and the certificates of a bridge that has all these addresses."""
    names = "DNS:localhost,IP:127.0.0.1,IP:::1,IP:10.9.8.7,IP:fd00::7"
    certificate, key = authority.files("everywhere")
    if not certificate.exists():
        authority.issue("everywhere", "/CN=localhost", "-addext", f"subjectAltName={names}")
    recording = tmp_path / "road.jsonl"
    now = time.time()
    stamps = [now + count / 10 for count in range(50)]
    recording.write_text("".join(json.dumps({"received": stamp + 0.1, "frame": frame(now - stamp)}) + "\n"
                                 for stamp in stamps))
    return ("--ca", authority.folder / "ca.pem", "--cert", certificate, "--key", key, "--replay", recording)


def shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def watches(stepctl, network, authority, address: str, *arguments):
    certificate, key = authority.files("client")
    return stepctl(
        "traffic", "watch", "--feed", f"wss://{shown(address)}:8443/traffic", "--at", "48.7758,9.1829", "--for", "4",
        "--ca", authority.folder / "ca.pem", "--cert", certificate, "--key", key, *arguments, prefix=network.prefix)


def test_a_bridge_serves_all_addresses(network, stepctl, authority, feed, tmp_path):
    with closing(stepctl.start(tmp_path / "bridge.log", "traffic", "serve", *feed, prefix=network.prefix)) as bridge:
        bridge.says("listening at port 8443")
        for address in ("localhost", *network.addresses):
            ended = watches(stepctl, network, authority, address)
            assert ended.status == 0 and "connected" in ended.stdout, (address, ended)


@pytest.mark.parametrize("asked", ["localhost", "127.0.0.1", "::1"])
def test_a_bridge_that_is_to_be_local_is_nowhere_else(network, stepctl, authority, feed, tmp_path, asked):
    log = tmp_path / "bridge.log"
    with closing(stepctl.start(log, "traffic", "serve", *feed, "--address", asked, prefix=network.prefix)) as bridge:
        if asked not in ("localhost", *network.addresses):
            ended = bridge.ends()
            assert ended.status == 69
            assert ended.error == f"cannot listen at {shown(asked)}:8443: Cannot assign requested address"
            return
        bridge.says("listening at port 8443")
        assert watches(stepctl, network, authority, asked).status == 0
        # A name stands for one of its addresses.
        local = asked if asked != "localhost" else "::1" if "::1" in network.addresses else "127.0.0.1"
        for address in network.addresses:
            if address != local:
                ended = watches(stepctl, network, authority, address)
                assert ended.status == 69, (asked, address, ended)
                assert ended.error == f"{shown(address)}:8443: no connection to the bridge: cannot connect"


def test_a_bridge_of_another_name_is_not_trusted_at_an_address(network, stepctl, authority, feed, tmp_path):
    certificate, key = authority.files("bridge")  # localhost's alone
    other = [certificate if each == authority.files("everywhere")[0] else key
             if each == authority.files("everywhere")[1] else each for each in feed]
    with closing(stepctl.start(tmp_path / "bridge.log", "traffic", "serve", *other, prefix=network.prefix)) as bridge:
        bridge.says("listening at port 8443")
        assert watches(stepctl, network, authority, "localhost").status == 0
        for address in network.addresses:
            ended = watches(stepctl, network, authority, address)
            assert ended.status == 69 and ended.error.endswith((" hostname mismatch", " IP address mismatch")), ended
