"""A bridge that is not ours (Python's websockets), and what the feed's client makes of it, good or bad."""

import asyncio
import json
import subprocess
import time

import pytest

from certificates import self_signed
from feeds import OBJECT, frame, once, steady
from programs import BINARIES, PATIENCE, REPOSITORY, wait_until

def test_the_delay_of_a_live_feed_is_measured_and_recorded(stepctl, bridge, tmp_path):
    feed, save = bridge(steady), tmp_path / "saved.jsonl"
    told = stepctl("traffic", "delay", *feed.arguments, "--radius", "200", "--for", "8", "--save", save, "--json").json
    assert told["count"] > 25 and 199 <= told["min_ms"] < 300
    assert abs(told["clock_offset_ms"]) <= told["uncertainty_ms"] + 1
    assert feed.locations[0]["latitude"] == 48.7758 and feed.locations[0]["radius"] == 200
    assert {"timestamp", "locationAccuracy", "course", "speed", "speedAccuracy", "longitude"} <= feed.locations[0].keys()
    again = stepctl("traffic", "delay", "--feed", f"file:{save}", "--json").json
    assert again == told
    assert stepctl("traffic", "delay", *feed.arguments, "--save", save).status == 74


def test_without_a_place_the_one_of_the_scene_is_told(stepctl, bridge):
    feed = bridge(steady)
    scene = REPOSITORY / "Tests/Fixtures/traffic/scene.json"
    arguments = [each for each in feed.arguments if each not in ("--at", "48.7758,9.1829")]
    shown = stepctl("traffic", "watch", *arguments, "--scene", scene, "--for", "5", "--json")
    assert shown.status == 0 and shown.objects
    place = json.loads(scene.read_text())
    assert (feed.locations[0]["latitude"], feed.locations[0]["longitude"]) == (place["latitude"], place["longitude"])
    missing = stepctl("traffic", "watch", *arguments)
    assert missing.status == 64 and "give --at or --scene" in missing.stderr


@pytest.mark.parametrize("ahead", [-2.0, 30.0])
def test_a_clock_that_is_off_does_not_change_the_delay(stepctl, bridge, ahead):
    feed = bridge(lambda socket, bridge: steady(socket, bridge, ahead=ahead))
    told = stepctl("traffic", "delay", *feed.arguments, "--for", "5", "--json").json
    assert told["clock_offset_ms"] == pytest.approx(ahead * 1000, abs=told["uncertainty_ms"] + 1)
    assert told["p50_ms"] == pytest.approx(200, abs=told["uncertainty_ms"] + 60)


def test_a_clock_that_is_set_meanwhile_changes_no_earlier_delay(stepctl, bridge):
    async def set_once(socket, bridge):
        begin = time.time()

        def clock(at):
            return at + (2 if at > begin + 6 else 0)

        while True:
            now, last = time.time(), bridge.locations[-1]
            stamps = {"received": clock(now) - 0.01, "sent": clock(now), "echo": last["timestamp"],
                      "echoReceived": clock(last["came"])}
            await socket.send(json.dumps(frame(0.2 - (clock(now) - now), bridge=stamps)))
            await asyncio.sleep(0.04)

    feed = bridge(set_once)
    told = stepctl("traffic", "delay", *feed.arguments, "--for", "10", "--json").json
    assert told["clock_offset_ms"] == pytest.approx(2000, abs=told["uncertainty_ms"] + 1)
    assert told["p50_ms"] == pytest.approx(200, abs=told["uncertainty_ms"] + 60)


@pytest.mark.parametrize(
    "message, status, line",
    [
        (b"\0" * 10, 65, "the bridge sent a frame that is not text"),
        ("x" * (1 << 20) + "y", 65, "the bridge sent a frame of more than 1 MiB"),
        ("{}", 65, "the feed's frame.section: expected a value"),
        ('{"section":"a","section":"b"}', 65, "expected each name once"),
        (json.dumps(frame()).replace("48.7758", "NaN"), 65, "not JSON"),
        (json.dumps(frame(vehicles=[OBJECT] * 2)), 65, "vehicles[1].id: expected each id once"),
        (json.dumps(frame(vehicles=[OBJECT | {"id": str(i)} for i in range(2001)])), 65, "at most 2000"),
    ],
    ids=["binary", "too long", "empty", "repeated", "NaN", "same id", "too many"],
)
def test_what_is_no_frame_ends_it_with_one_line(stepctl, bridge, message, status, line):
    feed = bridge(lambda socket, _: once(socket, message))
    ended = stepctl("traffic", "delay", *feed.arguments, "--for", "30")
    assert (ended.status, line in ended.error) == (status, True), ended.stderr
    assert ended.stdout == ""


def test_a_large_frame_is_taken_whole(stepctl, bridge):
    objects = [OBJECT | {"id": str(i)} for i in range(1500)]

    async def serve(socket, _):
        for _ in range(5):
            await socket.send(json.dumps(frame(vehicles=objects)))
            await asyncio.sleep(0.2)
        await asyncio.sleep(30)

    feed = bridge(serve)
    assert stepctl("traffic", "delay", *feed.arguments, "--for", "10", "--json").json["count"] >= 1


def test_a_bridge_that_is_another_is_not_spoken_to(stepctl, bridge, tmp_path):
    feed = bridge(steady)
    other, _ = self_signed(tmp_path, "other")
    wrong = list(feed.arguments)
    wrong[wrong.index("--ca") + 1] = other
    ended = stepctl("traffic", "delay", *wrong, "--for", "30")
    assert ended.status == 69 and "no connection to the bridge: its certificate: self-signed" in ended.error, ended
    assert not feed.locations
    # A certificate for another name, which is trusted.
    named = bridge(steady, name="elsewhere")
    ended = stepctl("traffic", "delay", *named.arguments, "--for", "30")
    assert ended.status == 69 and "its certificate: hostname mismatch" in ended.error and not named.locations, ended


def test_a_common_name_is_not_the_name_of_a_bridge(stepctl, bridge):
    """RFC 9525 2.2."""
    feed = bridge(steady, extra=("-addext", "keyUsage=digitalSignature,keyCertSign"))
    ended = stepctl("traffic", "delay", *feed.arguments, "--for", "30")
    assert ended.status == 69 and "its certificate: hostname mismatch" in ended.error and not feed.locations, ended


def test_a_bridge_that_speaks_only_an_old_tls_is_not_spoken_to(stepctl, bridge, tmp_path):
    """Whatever this computer's OpenSSL would allow."""
    settings = tmp_path / "openssl.cnf"
    settings.write_text("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nMinProtocol = TLSv1\n"
                        "CipherString = ALL:@SECLEVEL=0\n")
    feed = bridge(steady, old=True)
    ended = stepctl("traffic", "delay", *feed.arguments, "--for", "30", OPENSSL_CONF=str(settings))
    assert ended.status == 69 and "TLS failed" in ended.error and not feed.locations, ended


def test_a_client_without_its_certificate_is_not_served(stepctl, bridge):
    feed = bridge(steady)
    ended = stepctl("traffic", "delay", *feed.arguments[:6], "--for", "30")
    assert ended.status == 69 and "error:" not in ended.error and not feed.locations, ended


def test_a_bridge_that_closes_refuses_or_is_not_there(stepctl, bridge, tmp_path):
    async def close(socket, _):
        await socket.close()

    feed = bridge(close)
    ended = stepctl("traffic", "delay", *feed.arguments, "--for", "30")
    assert ended.status == 69 and "the bridge closed the connection" in ended.error
    plain = bridge(steady, process_request=lambda connection, request: connection.respond(200, "hello\n"))
    ended = stepctl("traffic", "delay", *plain.arguments, "--for", "30")
    assert ended.status == 69 and "no connection to the bridge: there is no feed at /traffic (HTTP 200" in ended.error
    strict = bridge(steady, process_request=lambda connection, request: connection.respond(403, "no\n"))
    ended = stepctl("traffic", "delay", *strict.arguments, "--for", "30")
    assert ended.status == 69 and "does not let this certificate use /traffic (HTTP 403)" in ended.error
    nobody = list(feed.arguments)
    nobody[1] = "wss://localhost:1/"
    ended = stepctl("traffic", "delay", *nobody, "--for", "30")
    assert ended.status == 69 and "localhost:1: no connection" in ended.error


def test_a_bridge_that_freezes_is_noticed(stepctl, bridge):
    async def freeze(socket, _):
        await socket.send(json.dumps(frame()))
        # Its thread: it answers no ping, either.
        time.sleep(90)

    feed = bridge(freeze)
    ended = stepctl("traffic", "delay", *feed.arguments, "--for", "50")
    assert ended.status == 69 and "closed the connection" in ended.error


def test_whoever_reads_slowly_gets_the_newest_frame(bridge):
    """The helper program itself, whose output nobody reads for a while."""
    last, sent = 300, []

    async def flood(socket, _):
        for count in range(last + 1):
            await socket.send(json.dumps(frame(section=str(count), padding="x" * 50_000)))
            sent.append(count)
        await asyncio.sleep(60)

    feed = bridge(flood)
    files = [feed.certificate, *feed.client]
    with subprocess.Popen([BINARIES / "stepctl-traffic", "localhost", str(feed.port), "/", *files],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:

        def message() -> bytes:
            return helper.stdout.read(int.from_bytes(helper.stdout.read(2), "big"))

        assert message() == b"c"
        location = json.dumps({
            "timestamp": time.time(), "locationAccuracy": 1, "course": -1, "speed": -1, "speedAccuracy": -1,
            "longitude": 9, "latitude": 48}).encode()
        helper.stdin.write(len(location).to_bytes(2, "big") + location)
        helper.stdin.flush()
        # More than waits on the way.
        wait_until(lambda: len(sent) > last, "the helper reads all")
        time.sleep(1)
        numbers, dropped = [], 0
        while not numbers or numbers[-1] < last:
            said = message()
            assert said[:1] == b"f"
            dropped += int.from_bytes(said[9:13], "big")
            numbers.append(int(json.loads(said[13:])["section"]))
        assert numbers == sorted(numbers) and dropped == last + 1 - len(numbers) > 0
        # It ends with its input.
        helper.stdin.close()
        assert helper.wait(PATIENCE) == 0


def test_a_place_in_the_south_begins_with_a_hyphen(stepctl, bridge):
    feed = bridge(steady)
    arguments = ["-33.8568,151.2153" if each == "48.7758,9.1829" else each for each in feed.arguments]
    assert stepctl("traffic", "delay", *arguments, "--for", "8").status == 0
    assert (feed.locations[0]["latitude"], feed.locations[0]["longitude"]) == (-33.8568, 151.2153)


def test_what_is_typed_wrong_is_told_before_anything_is_sent(stepctl, tmp_path):
    missing = stepctl("traffic", "delay", "--feed", "wss://localhost/", "--at", "1,2", "--ca", tmp_path / "none.pem")
    assert missing.status == 66 and "none.pem" in missing.error
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    setup = stepctl("traffic", "delay", "--feed", "wss://localhost/", "--at", "1,2", "--ca", broken)
    assert setup.status in (69, 78) and len(setup.stderr.splitlines()) == 1
    for arguments, words in [
        (("--feed", "ws://localhost/", "--at", "1,2"), "use wss://"),
        (("--feed", "http://localhost/", "--at", "1,2"), "a feed is wss://"),
        (("--feed", "wss://localhost/"), "give --at"),
        (("--feed", "wss://localhost/", "--at", "91,2"), "--at"),
        (("--feed", "wss://localhost/", "--at", "--radius", "50"), '"--radius" is invalid for "--at <place>"'),
        (("--feed", "wss://localhost/", "--at", "1,2", "--radius", "5"), "10 to 1000"),
        (("--feed", "wss://localhost/", "--at", "1,2", "--cert", "a"), "go together"),
        (("--feed", "file:a", "--at", "1,2"), "for bridges"),
    ]:
        ended = stepctl("traffic", "delay", *arguments)
        assert ended.status == 64 and words in ended.stderr, ended.stderr
