"""Clients that ask and read nothing, that are many, or that send what nobody should: the server outlives them."""

import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import requests

from programs import PATIENCE, wait_until
from server import STEPFLEET, Server
from vehicle import free_port

ASK = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
# What one connection may cost, TLS and an answer that waits included; its 200 answers are eight megabytes.
CONNECTION = 512 * 1024


@pytest.fixture
def crowded(tmp_path):
    """A server that lets few in, and a way to count what it holds."""
    with closing(Server(tmp_path / "fleet")) as server:
        server.changes(connections=60, connections_each=40)
        yield server.starts()


def memory(server) -> int:
    """Bytes that are resident."""
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:"))) * 1024


def sockets(server) -> int:
    """How many connections the server has: those that the kernel has accepted for it, and it has not closed."""
    folder, count = Path(f"/proc/{server.process.pid}/fd"), 0
    for entry in folder.iterdir():
        try:
            count += os.readlink(entry).startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def connected(server, stack: ExitStack, address="127.0.0.1") -> ssl.SSLSocket:
    raw = socket.socket()
    # The kernel keeps little for it.
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.bind((address, 0))
    raw.settimeout(PATIENCE)
    stack.callback(raw.close)
    raw.connect(("127.0.0.1", server.port))
    stream = ssl.create_default_context(cafile=server.verify).wrap_socket(raw, server_hostname="localhost")
    stack.callback(stream.close)
    return stream


def received(stream) -> bytes:
    """All until the server ends the connection."""
    parts = []
    while part := stream.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def ask_and_read_nothing(server, stack, count, requests=200):
    streams = [connected(server, stack) for _ in range(count)]
    for stream in streams:
        stream.sendall(ASK * requests)
    return streams


def test_answers_wait_for_clients_that_read_nothing_and_who_reads_gets_all(crowded):
    with ExitStack() as stack:
        # The first handshakes load what stays.
        connected(crowded, stack).sendall(ASK)
        before = memory(crowded)
        ask_and_read_nothing(crowded, stack, 30)
        # Somebody else is served meanwhile.
        for _ in range(20):
            assert requests.get(crowded.url + "/healthz", verify=crowded.verify, timeout=PATIENCE).status_code == 200
        assert memory(crowded) - before < 30 * CONNECTION
        # Of the others the first ones may be ended soon, on a busy machine: see the next test.
        (reader,) = ask_and_read_nothing(crowded, stack, 1)
        assert requests.get(crowded.url + "/healthz", verify=crowded.verify, timeout=PATIENCE).status_code == 200
        reader.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert received(reader).count(b"HTTP/1.1 200 OK") == 201


def test_who_reads_nothing_is_ended_and_costs_nothing_afterwards(crowded):
    """It takes half a minute, and longer on a busy machine."""
    with ExitStack() as stack:
        ask_and_read_nothing(crowded, stack, 10)
        before = sockets(crowded)
        wait_until(lambda: sockets(crowded) <= before - 10, "the connections are ended", patience=240)


def test_connections_are_limited_for_each_address_and_in_all(crowded):
    def is_served(stack, address):
        try:
            stream = connected(crowded, stack, address)
            stream.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return stream.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    with ExitStack() as stack:
        served = [is_served(stack, "127.0.0.1") for _ in range(45)]
        assert served == [True] * 40 + [False] * 5
        others = [is_served(stack, "127.0.0.2") for _ in range(25)]
        assert others == [True] * 20 + [False] * 5
        text = crowded.metrics()
        assert "\nstepfleet_connections 60\n" in text and "\nstepfleet_refused_connections 10\n" in text
    with ExitStack() as stack:
        wait_until(lambda: "\nstepfleet_connections 0\n" in crowded.metrics(), "all are gone")
        assert is_served(stack, "127.0.0.1")


def test_few_files_leave_room_for_the_server_itself(tmp_path):
    server = Server(tmp_path / "fleet")
    limit = resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)
    # The server inherits it.
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, limit[1]))
    try:
        with closing(server.starts()):
            soft = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[0]
            assert soft >= min(2256, limit[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def test_a_server_ends_in_time_whatever_its_clients_do(crowded):
    """They read nothing, send half a request, or nothing at all; the operator's commands are clients, too."""
    with ExitStack() as stack:
        ask_and_read_nothing(crowded, stack, 5)
        half = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        connected(crowded, stack).sendall(b"POST /v1/accounts" + half)
        connected(crowded, stack)
        own = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
        own.connect(str(crowded.folder / "run/admin.sock"))
        own.sendall(b"POST /vehicles" + half)
        crowded.process.send_signal(signal.SIGTERM)
        # 10 s, and as long again for a busy machine. Before, systemd had to kill it after 150 s.
        assert crowded.process.wait(20) == 0
        assert '"stopped' in crowded.log()


def test_a_header_that_is_too_large_is_said(server):
    for fields in ({"X": "a" * 17_000}, {"X": "a" * 1_000_000}, {f"X-{n}": "a" for n in range(120)}):
        answer = requests.get(server.url + "/healthz", headers=fields, verify=server.verify)
        assert (answer.status_code, answer.headers["Connection"]) == (431, "close")
        assert answer.headers["Content-Type"] == "application/problem+json" and answer.json()["code"] == "too_large"
    assert requests.get(server.url + "/healthz", headers={"X": "a" * 12_000}, verify=server.verify).status_code == 200


def test_more_requests_at_once_than_anybody_has_end_the_connection(server):
    with ExitStack() as stack:
        stream = connected(server, stack)
        with pytest.raises(OSError):
            stream.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000)
            received(stream)
            stream.sendall(ASK)
            stream.sendall(ASK)
        assert requests.get(server.url + "/healthz", verify=server.verify).status_code == 200


def test_the_metrics_are_the_operators(tmp_path):
    port = free_port()
    with closing(Server(tmp_path / "fleet")) as server:
        server.starts("--metrics-port", port)
        assert requests.get(server.url + "/metrics", verify=server.verify).status_code == 404
        local = requests.get(f"http://127.0.0.1:{port}/metrics")
        assert local.headers["Content-Type"] == "text/plain; version=0.0.4"
        assert 'route="NotFound"' in local.text
        for text in (local.text, server.metrics()):
            for line in (
                "stepfleet_live_tokens 0", "stepfleet_untold_notices 0", "stepfleet_untold_notices_oldest_seconds 0",
            ):
                assert f"\n{line}\n" in text
            days = dict(re.findall(r'^stepfleet_certificate_days\{holder="(\w+)"\} (\d+)$', text, re.MULTILINE))
            assert days.keys() == {"authority", "broker", "operator", "server"}
            # In the second in which the authority was made, it has a whole day more.
            assert days["authority"] in ("3649", "3650")
        # Nothing else is there, and nobody else than this computer reaches it.
        assert requests.get(f"http://127.0.0.1:{port}/vehicles").status_code == 404
        with pytest.raises(OSError):
            socket.create_connection(("::1", port), timeout=PATIENCE)


def test_a_port_for_metrics_that_another_program_has_is_said(tmp_path):
    server = Server(tmp_path / "fleet")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = subprocess.run(
            [STEPFLEET, "serve", server.folder, "--metrics-port", str(port)], capture_output=True, text=True,
            timeout=PATIENCE)
    assert (ended.returncode, ended.stderr.splitlines()) == (69, [
        f"stepfleet: error: cannot listen at 127.0.0.1:{port}: Address already in use",
        "hint: another program has this port; --metrics-port names another one"])


def test_a_path_has_one_spelling(server):
    def status(path):
        with ExitStack() as stack:
            stream = connected(server, stack)
            stream.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return received(stream)[:12]

    assert status("/v1/account") == b"HTTP/1.1 401"
    for path in ("//v1/account", "/v1//account", "///healthz"):
        assert status(path) == b"HTTP/1.1 404", path


def test_memory_is_given_back(crowded):
    """Housekeeping gives it back, once a minute."""
    crowded.stops()
    crowded.changes(connections=600, connections_each=600)
    crowded.starts()
    with ExitStack() as stack:
        connected(crowded, stack).sendall(ASK)
        before = memory(crowded)
        ask_and_read_nothing(crowded, stack, 250)
        held = memory(crowded)
        assert held - before < 250 * CONNECTION
    enough = max((held - before) / 3, 8 << 20)
    wait_until(lambda: memory(crowded) - before < enough, "memory is given back", patience=240)
