"""Somebody whom the broker lets publish, and who publishes more than can be read: what was begun still ends."""

import multiprocessing
import os
import signal
import socket
import ssl
import time

import pytest

import client
import stepproto as proto
from peers import Connection, PlayedController, Witness, new_challenge
from programs import seconds_of_work, wait_until

TRAVEL_S = 6.0  # a flood begins meanwhile


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
def begin_flood():
    """Begins floods, which end with the test."""
    flooders = []

    def begin(*arguments):
        for _ in range(2):
            flooders.append(multiprocessing.Process(target=flood, args=arguments, daemon=True))
            flooders[-1].start()

    yield begin
    for flooder in flooders:
        flooder.kill()
        flooder.join()


# --- stepd ---


@pytest.fixture
def flooded(parked, begin_flood):
    """A vehicle whose controller has more to decrypt than it can, and a way to begin that."""
    parked.edit("stepd.toml", travel_s=TRAVEL_S, limit_s=60.0)
    parked.starts_all()
    login = parked.rider("mallory").peer
    rubbish = proto.seal(login.encryption_key, b"rubbish", proto.to_json(proto.envelope_header(login.encryption_key)))

    def begin():
        begin_flood(login, parked.set_position("right"), rubbish)
        parked.stepd.says("more since the last such line")

    return parked, begin


def test_a_motion_ends_in_a_flood(flooded):
    vehicle, begin = flooded
    opening = vehicle.rider("alice").begins_to_open()
    begin()
    vehicle.stepd.says("left: is open")
    opening.close()


def test_garbage_keeps_no_rider_from_an_answer(parked, begin_flood):
    parked.starts_all()
    alice, login = parked.rider("alice"), parked.rider("mallory").peer
    begin_flood(login, parked.set_position("left"), os.urandom(200))
    parked.stepd.says("more since the last such line")
    for _ in range(5):
        ended = alice.types("status", "--timeout", "50")
        assert ended.status == 0, ended.stderr


def test_a_signal_ends_it_in_a_flood(flooded):
    vehicle, begin = flooded
    begin()
    vehicle.stepd.signal(signal.SIGTERM)
    assert vehicle.stepd.ends().status == 0


def test_a_flood_that_cannot_be_read_is_told(flooded):
    """Others' messages wait with the broker, which does not keep all of them."""
    vehicle, begin = flooded
    begin()
    vehicle.stepd.says("more messages come than can be read: the broker may lose some")


# --- stepctl, with a broker that sends what the controller has signed again and again ---


@pytest.fixture
def repeat(parked, begin_flood):
    """Begins to send a status of the left step again without end."""
    return lambda status: begin_flood(client.Vehicle.read(str(parked.controller_file)), parked.status("left"), status)


def test_a_rider_loses_patience_in_a_flood(vehicle, alice, repeat):
    with Connection(alice.peer, vehicle.status("left")) as connection:
        status = connection.next().payload
    vehicle.stepd.kill()
    before = vehicle.broker.said
    repeat(status)
    vehicle.broker.says("Received PUBLISH", after=before)
    ended = alice.types("status", "--timeout", "15")
    assert (ended.status, ended.stdout) == (69, "")
    assert ended.error == "the vehicle does not answer; nothing was sent that could move a step"


def test_a_signal_ends_a_riders_command_in_a_flood(parked, repeat):
    """And copies of the answer that it has begun do not begin the time anew that a motion may take."""
    parked.starts_broker()
    answers = []

    def script(controller, command):
        if command.claims["position"] == "unknown":
            return [controller.status(command, challenge=new_challenge())]
        answers.append(controller.status(command, phase="moving"))
        return answers

    with PlayedController(parked, script):
        opening = parked.rider("alice").starts_to_move("open", "left")
        opening.says("moving")
        repeat(answers[0])
        wait_until(lambda: seconds_of_work(opening.process.pid) > 1, "it has more to read than it can")
        opening.signal(signal.SIGINT)
        ended = opening.ends()
    assert ended.status == 6
    assert ended.error == "interrupted after the command was sent: the left step may have moved"
    assert ended.stderr.count("moving") == 1


def test_the_log_has_a_few_lines_a_second_in_a_flood_though_answers_are_logged(parked, begin_flood):
    parked.starts_broker()
    parked.starts_stepd("--verbose")
    login = parked.rider("mallory").peer
    before, began = parked.stepd.said, time.monotonic()
    begin_flood(login, parked.set_position("right"), client.build(login, "right", "unknown").payload)
    witness = parked.rider("alice").peer
    with Witness(parked, witness) as alice:
        alice.connection.next()
        for _ in range(20):
            alice.publish("left", client.build(witness, "left", "unknown").payload)
            time.sleep(0.1)
    lines = parked.stepd.stderr.read_bytes()[before:].count(b"\n")
    # In three seconds, or as many as a busy machine takes.
    assert 2 < lines < 40 * max(1, (time.monotonic() - began) / 3)
