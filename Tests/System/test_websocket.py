"""RFC 6455 byte by byte, over raw connections: what our bridge makes of what a client may send or may not, and what our
client makes of a bridge's.

The numbers in the names are those of the RFC's sections. Each case is bytes, and what has to come of them: the message is
taken as it was meant, or the connection ends, with one of these statuses where a farewell comes at all.
"""

import base64
import contextlib
import hashlib
import json
import os
import select
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certificates import self_signed
from feeds import frame
from programs import BINARIES
from serving import PLACE, masked, raw

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
FIN = 0x80
# What a case may come to, but for statuses.
TAKEN, CLOSED = "taken", "closed"


def plain(opcode: int, payload: bytes = b"") -> bytes:
    """A frame of a server: without a mask."""
    length = len(payload)
    head = bytes([length]) if length < 126 else b"\x7e" + length.to_bytes(2, "big") if length < 65536 else \
        b"\x7f" + length.to_bytes(8, "big")
    return bytes([opcode]) + head + payload


def mixed(opcode: int, payload: bytes = b"") -> bytes:
    """A frame of a client with a mask that changes everything."""
    mask = b"\xa5\x5a\xff\x01"
    head = masked(opcode, payload)
    head = head[:len(head) - len(payload) - 4]
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


def split(make, message: bytes, *places: int, between: bytes = b"") -> bytes:
    """A message in fragments that end at these places, and what comes between them."""
    edges = [0, *places, len(message)]
    parts = [message[begin:end] for begin, end in zip(edges, edges[1:])]
    frames = [make((TEXT if place == 0 else 0) | (FIN if place == len(parts) - 1 else 0), part)
              for place, part in enumerate(parts)]
    return between.join(frames)


# Not UTF-8 (RFC 3629; Unicode's table 3-7): what no sequence begins with, cut short, overlong, surrogates, beyond the end.
NO_UTF_8 = [
    b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xc3\x28", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xe2\x82",
    b"\xe2\x28\xa1", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf0\x9f\x98",
    b"\xf0\x28\x8c\xbc", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80",
    b"\xfe", b"\xff",
]
UTF_8 = "Straße, κόσμε, \u0080\u07ff\u0800\uffff\U00010000\U0010ffff".encode()


def cases(make, other, message):
    """What both sides have to do: a name, the bytes, and what comes of them.

    `make` makes a frame of this side, `other` one as only the other side may send it; `message` is what is taken, with
    these bytes inside a string.
    """
    good = message(b"")
    whole = make(FIN | TEXT, good)
    yield "5.6 text", whole, TAKEN
    for length in (125, 126, 127, 128, 1000, 4096):
        if length >= len(good):
            yield f"5.2 {length} bytes", make(FIN | TEXT, good.ljust(length)), TAKEN
    # 5.2: the shortest form of a length MUST be taken.
    head, rest = whole[:2], whole[2:]
    if head[1] & 0x7F == 126:
        rest = rest[2:]
    mask = bytes([head[1] & 0x80])
    for name, size in (("16", 2), ("64", 8)):
        small = b"\x00" * (size - 1) + b"\x05"
        long_form = bytes([FIN | PING, mask[0] | (126 if size == 2 else 127)]) + small + (bytes(4) if mask[0] else b"")
        yield f"5.5 a ping whose length is written in {name} bits", long_form + b"hello", (1002, 1009)
    huge = bytes([FIN | TEXT, mask[0] | 127]) + b"\x80" + bytes(7)
    yield "5.2 a length of 2^63", huge + bytes(4) + good, (1002, 1009)
    # 5.1 has them end the connection, against pages that trick proxies. The library does not look, and there is no proxy
    # inside TLS.
    yield "5.1 masked otherwise", other(FIN | TEXT, good), TAKEN
    for bit in (0x40, 0x20, 0x10, 0x70):
        yield f"5.2 reserved bits {bit:x}", make(FIN | TEXT | bit, good), (1002,)
        yield f"5.2 reserved bits {bit:x} of a ping", make(FIN | PING | bit), (1002,)
    for opcode in (3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF):
        yield f"5.2 opcode {opcode:x}", make(FIN | opcode, good[:100]), (1002, 1003)
    yield "5.6 binary", make(FIN | BINARY, good), (1003,)
    yield "5.6 binary in fragments", make(BINARY, good[:10]) + make(FIN, good[10:]), (1003,)
    # Fragments.
    yield "5.4 two fragments", split(make, good, 10), TAKEN
    yield "5.4 a fragment for each byte", split(make, good, *range(1, len(good))), TAKEN
    yield "5.4 empty fragments", split(make, good, 0, 0, 7, 7, len(good)), TAKEN
    yield "5.4 a continuation of nothing", make(FIN, good), (1002,)
    yield "5.4 a continuation of nothing, and more", make(0, good[:5]) + make(FIN, good[5:]), (1002,)
    yield "5.4 a continuation after a whole message", whole + make(FIN, b"x"), (1002,)
    yield "5.4 a new message inside another", make(TEXT, good[:10]) + make(FIN | TEXT, good), (1002,)
    yield "5.4 a new fragment inside another", make(TEXT, good[:10]) + make(TEXT, good[10:]), (1002,)
    # Control frames, also between fragments.
    for payload in (b"", b"hello", bytes(range(125))):
        yield f"5.5.2 a ping of {len(payload)} bytes", make(FIN | PING, payload) + whole, TAKEN
        between = make(FIN | PING, payload)
        yield f"5.4 a ping of {len(payload)} bytes between fragments", split(make, good, 5, 20, between=between), TAKEN
        yield f"5.5.3 a pong of {len(payload)} bytes that nobody asked for", make(FIN | PONG, payload) + whole, TAKEN
    yield "5.5 a ping of 126 bytes", make(FIN | PING, bytes(126)), (1002, 1009)
    yield "5.5 a ping in fragments", make(PING, b"a") + make(FIN, b"b"), (1002,)
    yield "5.5 a close in fragments", make(CLOSE, b"\x03\xe8") + make(FIN, b"b"), (1002,)
    # UTF-8 at every border.
    yield "5.6 UTF-8", make(FIN | TEXT, message(UTF_8)), TAKEN
    text = message(UTF_8)
    begin = text.index(UTF_8)
    for place in range(begin, begin + len(UTF_8) + 1):
        yield f"5.6 UTF-8 in fragments that end {place - begin} bytes into it", split(make, text, place), TAKEN
    for bad in NO_UTF_8:
        text = message(bad)
        yield f"8.1 {bad.hex()}", make(FIN | TEXT, text), (1007,)
        yield f"8.1 {bad.hex()} in fragments", split(make, text, text.index(bad) + 1), (1007,)
    # Farewells.
    yield "5.5.1 a close that says nothing", make(FIN | CLOSE), (CLOSED, 1000, 1005)
    for status in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999):
        yield f"7.4 {status}", make(FIN | CLOSE, status.to_bytes(2, "big") + b"bye"), (CLOSED, 1000, status)
    yield "5.5.1 a close of 125 bytes", make(FIN | CLOSE, b"\x03\xe8" + b"x" * 123), (CLOSED, 1000)
    for status in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
        yield f"7.4 {status}", make(FIN | CLOSE, status.to_bytes(2, "big")), (1002,)
    yield "5.5.1 a close of one byte", make(FIN | CLOSE, b"\x03"), (1002,)
    yield "5.5.1 a close of 126 bytes", make(FIN | CLOSE, b"\x03\xe8" + b"x" * 124), (1002, 1009)
    yield "5.5.1 a reason that is no UTF-8", make(FIN | CLOSE, b"\x03\xe8\xff"), (1002, 1007)
    yield "5.5.1 a message after the close", make(FIN | CLOSE, b"\x03\xe8") + whole, (CLOSED, 1000)


class Frames:
    """The frames that come over a connection."""

    def __init__(self, connection: ssl.SSLSocket):
        self.connection, self.bytes = connection, b""

    def need(self, count: int) -> bytes:
        while len(self.bytes) < count:
            if not (got := self.connection.recv(65536)):
                raise EOFError
            self.bytes += got
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def next(self) -> tuple[int, bytes]:
        first, second = self.need(2)
        length = second & 0x7F
        if length > 125:
            length = int.from_bytes(self.need(2 if length == 126 else 8), "big")
        mask = self.need(4) if second & 0x80 else bytes(4)
        return first, bytes(byte ^ mask[place % 4] for place, byte in enumerate(self.need(length)))


def send(connection: ssl.SSLSocket, sent: bytes, bytewise: bool) -> None:
    with contextlib.suppress(OSError):
        for part in ([sent[place:place + 1] for place in range(len(sent))] if bytewise else [sent]):
            connection.sendall(part)


def ends(frames: Frames, payloads: list[bytes] | None = None, found=lambda payload: False):
    """What comes of a case: TAKEN when a message is found, the status of a farewell, CLOSED without one; None while it
    goes on."""
    try:
        while True:
            first, payload = frames.next()
            assert first & 0x70 == 0 and first & 0xF in (TEXT, CLOSE, PING, PONG), hex(first)
            if first & 0xF == CLOSE:
                return int.from_bytes(payload[:2], "big") if payload else CLOSED
            if first & 0xF == PONG and payloads is not None:
                payloads.append(payload)
            if first & 0xF == TEXT and found(payload):
                return TAKEN
    except TimeoutError:
        return None
    except (EOFError, OSError):
        return CLOSED


def verdict(name: str, expected, came) -> str | None:
    # A connection that has failed may end without a farewell (7.1.7).
    may = {TAKEN} if expected == TAKEN else {CLOSED, *expected}
    return None if came in may else f"{name}: {came}, and not {expected}"


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "a record for each byte"])
def test_what_a_client_sends_the_bridge(serve, authority, bytewise):  # noqa: F811
    bridge = serve()
    over, stamps, wrong = threading.Event(), iter(range(1_700_000_000, 1_800_000_000)), []

    def publish():
        with raw(bridge, authority, "publisher", "/publish/S1") as tls:
            while not over.wait(0.03):
                tls.sendall(masked(FIN | TEXT, json.dumps(frame()).encode()))

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        stamp = 0

        def message(inside: bytes) -> bytes:
            text = PLACE | {"timestamp": stamp, "locationAccuracy": 5, "course": -1, "speed": -1, "speedAccuracy": -1}
            return json.dumps(text).encode()[:-1] + b', "note": "' + inside + b'"}'

        for make in (masked, mixed):
            stamp = next(stamps)
            table = list(cases(make, plain, message))
            for name, sent, expected in table:
                if bytewise and (make is mixed or len(sent) > 500):
                    continue
                with raw(bridge, authority, "client", "/traffic") as tls:
                    tls.settimeout(30)
                    send(tls, sent, bytewise)
                    pongs: list[bytes] = []
                    expects = {b""} if "ping of 0" in name else {b"hello"} if "ping of 5 " in name else \
                        {bytes(range(125))} if "ping of 125" in name else set()

                    def found(payload: bytes) -> bool:
                        is_ours = json.loads(payload)["bridge"].get("echo") == stamp
                        # All pongs come, or one for several pings (5.5.3).
                        return expected == TAKEN and is_ours and (not expects or bool(pongs))

                    wrong.append(verdict(name, expected, ends(Frames(tls), pongs, found)))
                    if set(pongs) != expects:
                        wrong.append(f"{name}: answered by {pongs}")
    finally:
        over.set()
        publisher.join()
    assert not [each for each in wrong if each], "\n".join(filter(None, wrong))
    assert bridge.process.poll() is None


def test_how_a_websocket_begins(serve, authority):  # noqa: F811
    """Section 4.2, and nothing that compresses (RFC 7692): one frame for all clients, and no CRIME."""
    bridge = serve()
    key = base64.b64encode(os.urandom(16)).decode()
    usual = {"Host": "localhost", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
             "Sec-WebSocket-Version": "13"}

    def answer(line: str = "GET /traffic HTTP/1.1", **changes) -> tuple[int, dict]:
        headers = usual | {name.replace("_", "-"): value for name, value in changes.items()}
        text = "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items() if value is not None)])
        with socket.create_connection(("localhost", bridge.port), 60) as tcp, \
                authority.context("client").wrap_socket(tcp, server_hostname="localhost") as tls:
            tls.sendall(text.encode() + b"\r\n\r\n")
            got = b""
            with contextlib.suppress(OSError):
                while b"\r\n\r\n" not in got and (part := tls.recv(4096)):
                    got += part
        lines = got.decode("latin-1").split("\r\n")
        words = lines[0].split()
        return int(words[1]) if len(words) > 1 else 0, {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}

    status, headers = answer()
    proof = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    assert status == 101 and headers["sec-websocket-accept"] == base64.b64encode(proof).decode()
    offers = "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"
    status, headers = answer(Sec_WebSocket_Extensions=offers)
    assert status == 101 and "sec-websocket-extensions" not in headers
    assert answer(Upgrade="WebSocket", Connection="keep-alive, upgrade")[0] == 101
    wrong = [changes for changes in [
        {"line": "POST /traffic HTTP/1.1"}, {"Upgrade": None}, {"Connection": None}, {"Upgrade": "h2c"},
        {"Sec_WebSocket_Key": None}, {"Sec_WebSocket_Version": None}, {"Sec_WebSocket_Version": "12"},
        {"Sec_WebSocket_Version": "99"}, {"line": "GET  HTTP/1.1"}, {"line": "NONSENSE"},
        {"line": "GET /" + "x" * 9000 + " HTTP/1.1"}, {"X-Long": "x" * 20_000},
    ] if answer(**changes)[0] == 101]
    assert not wrong


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A bridge of raw bytes: serves each client what `sends` has, after its first message."""
    folder = tmp_path_factory.mktemp("raw")

    class Server:
        certificate, key = self_signed(folder, "localhost")
        sends, bytewise = b"", False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def serve(self):
            while True:
                try:
                    tcp, _ = self.listener.accept()
                except OSError:
                    return
                with contextlib.suppress(OSError, EOFError), self.context.wrap_socket(tcp, server_side=True) as tls:
                    tls.settimeout(30)
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += tls.recv(4096)
                    assert b"Extensions" not in request
                    key = next(line.partition(b": ")[2] for line in request.split(b"\r\n")
                               if line.lower().startswith(b"sec-websocket-key"))
                    proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
                    tls.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                b"Sec-WebSocket-Accept: " + proof + b"\r\n\r\n")
                    send(tls, self.sends, self.bytewise)
                    self.farewell = ends(Frames(tls))

    server = Server()
    server.context.load_cert_chain(server.certificate, server.key)
    server.listener = socket.create_server(("127.0.0.1", 0))
    server.port = server.listener.getsockname()[1]
    threading.Thread(target=server.serve, daemon=True).start()
    yield server
    server.listener.close()


@pytest.mark.parametrize("bytewise", [False, True], ids=["at once", "a record for each byte"])
def test_what_a_bridge_sends_our_client(server, bytewise):
    def message(inside: bytes) -> bytes:
        return b'{"section": "' + inside + b'", "timestampSecs": 1, "timestampNsecs": 0, "vehicles": []}'

    wrong = []
    server.bytewise = bytewise
    for name, sent, expected in cases(plain, masked, message):
        # Text that is no UTF-8 is for whoever reads it as JSON: the next test.
        if bytewise and len(sent) > 1500 or name.startswith("8.1"):
            continue
        server.sends, server.farewell = sent, None
        with subprocess.Popen([BINARIES / "stepctl-traffic", "localhost", str(server.port), "/", server.certificate, "", ""],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:
            came, got = None, b""
            while came is None:
                assert select.select([helper.stdout], [], [], 60)[0], name
                got += os.read(helper.stdout.fileno(), 65536)
                while len(got) >= 2 and len(got) >= 2 + int.from_bytes(got[:2], "big"):
                    length = int.from_bytes(got[:2], "big")
                    said, got = got[2:2 + length], got[2 + length:]
                    # A frame as it was sent, or the end.
                    if said[:1] == b"f" and expected == TAKEN:
                        came = TAKEN
                        json.loads(said[13:])
                    elif said[:1] == b"e" and came is None:
                        came = CLOSED
            wrong.append(verdict(name, expected, came))
            if came == CLOSED:
                # What it says to the bridge.
                end = time.monotonic() + 30
                while server.farewell is None and time.monotonic() < end:
                    time.sleep(0.005)
                wrong.append(verdict(name, expected, server.farewell))
            helper.stdin.close()
            assert helper.wait(60) == 0, name
    assert not [each for each in wrong if each], "\n".join(filter(None, wrong))


def test_a_frame_that_is_no_utf_8_ends_a_command(server, stepctl):
    server.bytewise = False
    for bad in (b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff"):
        server.sends = plain(FIN | TEXT, b'{"section": "' + bad + b'", "timestampSecs": 1, "timestampNsecs": 0, "vehicles": []}')
        ended = stepctl("traffic", "delay", "--feed", f"wss://localhost:{server.port}/", "--at", "48.7758,9.1829",
                        "--ca", server.certificate, "--for", "30")
        assert ended.status == 65 and "expected UTF-8" in ended.error, ended
