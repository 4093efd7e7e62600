"""Our bridge (`stepctl traffic serve`), and its publishers and clients, which are not ours."""

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest
import websockets

from programs import PATIENCE, REPOSITORY

PLACE = {"latitude": 48.7758, "longitude": 9.1829}


class Authority:
    """Certificates as the manual has them made: its commands, for other names."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        page = (REPOSITORY / "man/stepctl-traffic-serve.1").read_text()
        block = page.partition(".Ss Certificates")[2].partition(".Bd -literal")[2]
        lines = [line.replace("\\e", "\\") for line in block.partition(".Ed")[0].splitlines()[1:]]
        self.script = "\n".join(line.removeprefix("$ ") for line in lines)
        subprocess.run(["sh", "-ec", self.script], cwd=folder, check=True, capture_output=True)

    def issue(self, file: str, name: str, *extra: str, days: str = "2") -> tuple[Path, Path]:
        """Another one from this authority."""
        certificate, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days,
             "-CA", self.folder / "ca.pem", "-CAkey", self.folder / "ca.key", "-subj", name, *extra, "-addext",
             "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        return certificate, key

    def revokes(self, *names: str) -> bytes:
        """Its list of revoked certificates, as openssl writes it: with those of before, and these."""
        (self.folder / "index.txt").touch()
        settings = self.folder / "ca.cnf"
        settings.write_text("[ca]\ndefault_ca = one\n[one]\ndatabase = index.txt\ndefault_md = sha256\n"
                            "default_crl_days = 1\nunique_subject = no\n")
        command = ["openssl", "ca", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key"]
        for name in names:
            subprocess.run([*command, "-revoke", f"{name}.pem"], cwd=self.folder, check=True, capture_output=True)
        return subprocess.run([*command, "-gencrl"], cwd=self.folder, check=True, capture_output=True).stdout

    def files(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def context(self, name: str | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        if name:
            context.load_cert_chain(*self.files(name))
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("ca") / "ca")
    authority.issue("third", "/CN=publisher:S3")
    return authority


@pytest.fixture
def serve(stepctl, authority, tmp_path):
    """Starts bridges, which end with the test."""
    with contextlib.ExitStack() as stack:
        count = 0

        def start(*arguments, by=authority, **options):
            nonlocal count
            count += 1
            certificate, key = by.files("bridge")
            bridge = stepctl.start(
                tmp_path / f"bridge{count}.log", "traffic", "serve", "--ca", by.folder / "ca.pem", "--cert",
                certificate, "--key", key, "--port", "0", "--address", "127.0.0.1", "--json", *arguments, **options)
            stack.callback(bridge.close)
            bridge.port = int(bridge.says("listening at port ").rpartition(" ")[2])
            return bridge

        yield start


def counts(bridge) -> dict:
    """What it says at its end."""
    bridge.process.terminate()
    ended = bridge.ends()
    assert ended.status == 0, ended
    return ended.objects[-1]


def location(**members) -> str:
    return json.dumps(PLACE | {"timestamp": time.time(), "locationAccuracy": 5, "course": -1, "speed": -1,
                               "speedAccuracy": -1} | members)


def connect(bridge, authority, name, path="/traffic", **options):
    address = f"wss://localhost:{bridge.port}{path}"
    options |= {"compression": None, "max_size": 1 << 21, "open_timeout": PATIENCE}
    return websockets.connect(address, ssl=authority.context(name), **options)


def run(what):
    return asyncio.run(asyncio.wait_for(what, PATIENCE))


def masked(opcode: int, payload: bytes = b"") -> bytes:
    """A frame of a client whose mask changes nothing."""
    head = bytes([opcode, 0x80 | len(payload)]) if len(payload) < 126 else \
        bytes([opcode, 0xFE]) + len(payload).to_bytes(2, "big") if len(payload) < 65536 else \
        bytes([opcode, 0xFF]) + len(payload).to_bytes(8, "big")
    return head + bytes(4) + payload


def raw(bridge, authority, name, path) -> ssl.SSLSocket:
    """A connection that is a WebSocket already, for bytes that no library would send."""
    plain = socket.create_connection(("localhost", bridge.port), PATIENCE)
    tls = authority.context(name).wrap_socket(plain, server_hostname="localhost")
    tls.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += tls.recv(1)
    assert b" 101 " in answer
    return tls
