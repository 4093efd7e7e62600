"""Somebody whom the broker lets publish, and who publishes more than stepd can read: what moves still ends."""

import multiprocessing
import signal
import socket
import ssl

import pytest

import client
import stepproto as proto
from test_crash import begins_to_open

TRAVEL_S = 2.0


def flood(login: client.Vehicle, topic: str, payload: bytes):
    """Publishes without end at QoS 0, faster than a library for MQTT would (MQTT 3.1.1, 3.1 and 3.3)."""
    context = ssl.create_default_context(cafile=login.ca)
    context.load_cert_chain(login.cert, login.key)
    body = len(topic).to_bytes(2, "big") + topic.encode() + payload
    size = bytes([len(body) & 0x7F | 0x80, len(body) >> 7])
    with context.wrap_socket(socket.create_connection((login.host, login.port)), server_hostname=login.host) as broker:
        broker.sendall(bytes.fromhex("100c00044d5154540402003c0000"))
        while True:
            broker.sendall((b"\x30" + size + body) * 100)


@pytest.fixture
def flooded(parked):
    """A vehicle whose controller has more to decrypt than it can, and a way to begin that."""
    parked.edit("stepd.toml", travel_s=TRAVEL_S, limit_s=30.0)
    parked.starts_all()
    login = parked.rider("mallory").peer
    rubbish = proto.seal(login.encryption_key, b"rubbish", proto.to_json(proto.envelope_header(login.encryption_key)))
    flooders = [
        multiprocessing.Process(target=flood, args=(login, parked.set_position("right"), rubbish), daemon=True)
        for _ in range(2)
    ]

    def begin():
        for flooder in flooders:
            flooder.start()
        parked.stepd.says("more since the last such line")

    yield parked, begin
    for flooder in flooders:
        flooder.kill()
        flooder.join()


def test_a_motion_ends_in_a_flood(flooded):
    vehicle, begin = flooded
    opening = begins_to_open(vehicle, vehicle.rider("alice"))
    begin()
    vehicle.stepd.says("left: is open")
    opening.close()


def test_a_signal_ends_it_in_a_flood(flooded):
    vehicle, begin = flooded
    begin()
    vehicle.stepd.signal(signal.SIGTERM)
    assert vehicle.stepd.ends(5).status == 0


def test_what_is_lost_in_a_flood_is_told(flooded):
    """A rider's own commands would leave no other trace in the log, and others' are lost with them."""
    vehicle, begin = flooded
    begin()
    vehicle.stepd.says("messages were lost: more come than can be read")
