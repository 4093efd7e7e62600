#!/usr/bin/env python3
"""What a rider's question costs while somebody whom the broker lets publish publishes far too much.

    floods.py --bin .build/release                 # the folder of stepctl and stepd
    floods.py --bin .build/release --only wrong    # the rows whose name begins so

Over one mosquitto with mutual TLS, on this machine: an honest rider asks for the status of the step that is flooded, one
question after the other, and a new one every 25 ms at most. Each row is another flood. Printed are the questions that
were answered within 2 s, and the milliseconds to the answer. Flood, broker and both riders share the processors with
stepd, the flood at the lowest priority, since a real one comes from another machine. So two rows are what to compare
with, beside the quiet one: a flood of nothing but the broker's own work (a topic that nobody hears), and one that
mosquitto_sub hears in stepd's place, which decides nothing.
"""

import argparse
import base64
import multiprocessing
import os
import select
import socket
import ssl
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "Tests/Benchmarks"), str(REPOSITORY / "Tests/Peers"), str(REPOSITORY / "Tests/System")]
import client  # noqa: E402
import stepproto as proto  # noqa: E402
from cold import Runner, await_text, free_port  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: E402

PATIENCE_S = 2.0
PAUSE_S = 0.025


def packet(kind: int, body: bytes) -> bytes:
    """MQTT 3.1.1, 2.2."""
    size, length = len(body), b""
    while True:
        size, digit = size >> 7, size & 0x7F
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return bytes([kind]) + length + body


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


class Link:
    """An MQTT connection that costs as little as Python can."""

    def __init__(self, login: client.Vehicle, *topics: str):
        context = ssl.create_default_context(cafile=login.ca)
        context.load_cert_chain(login.cert, login.key)
        plain = socket.create_connection((login.host, login.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=login.host)
        self.unread = bytearray()
        self.socket.sendall(packet(0x10, text("MQTT") + bytes([4, 2, 0, 0]) + text("")))
        for number, topic in enumerate(topics, 1):
            self.socket.sendall(packet(0x82, number.to_bytes(2, "big") + text(topic) + b"\x01"))

    def publish(self, topic: str, payload: bytes, identifier: int):
        self.socket.sendall(packet(0x32, text(topic) + identifier.to_bytes(2, "big") + payload))

    def messages(self, deadline: float):
        """Payloads as they come; nothing more at the deadline. QoS 1 is acknowledged."""
        while True:
            while (found := self._packet()) is not None:
                kind, body = found
                if kind >> 4 != 3:
                    continue
                start = 2 + int.from_bytes(body[:2], "big")
                if kind & 6:
                    self.socket.sendall(packet(0x40, body[start : start + 2]))
                    start += 2
                yield body[start:]
            wait = deadline - time.monotonic()
            if wait <= 0 or not (self.socket.pending() or select.select([self.socket], [], [], wait)[0]):
                return
            self.unread += self.socket.recv(65536)

    def _packet(self):
        size = shift = 0
        for index in range(1, min(5, len(self.unread))):
            size |= (self.unread[index] & 0x7F) << shift
            shift += 7
            if self.unread[index] < 0x80:
                end = index + 1 + size
                if len(self.unread) < end:
                    return None
                kind, body = self.unread[0], bytes(self.unread[index + 1 : end])
                del self.unread[:end]
                return kind, body
        return None


def flood(login: client.Vehicle, topic: str, payloads: list[bytes], rate: int, qos: int, sent):
    """Publishes so many messages a second, until the process is ended."""
    # A flood comes from another machine: making it must not take the processor from those that are measured.
    os.nice(19)
    link = Link(login)
    link.socket.setblocking(True)
    packets = [packet(0x30, text(topic) + payload) for payload in payloads]
    began, count = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        if due > count:
            batch = min(due - count, 2000)
            if qos:
                for index in range(count, count + batch):
                    identifier = index % 65535 + 1
                    link.socket.sendall(
                        packet(0x32, text(topic) + identifier.to_bytes(2, "big") + payloads[index % len(payloads)])
                    )
                while select.select([link.socket], [], [], 0)[0]:
                    link.socket.recv(65536)
            else:
                link.socket.sendall(b"".join(packets[index % len(packets)] for index in range(count, count + batch)))
            count += batch
            sent.value = count
        time.sleep(0.004)


def trace(value: bytes, offset: int) -> bytes:
    """What of a text remains to be seen in base64url, when it begins so many bytes after a multiple of three."""
    start = (offset * 8 + 5) // 6
    return base64.urlsafe_b64encode(b"\0" * offset + value)[start : (offset + len(value)) * 8 // 6]


def ask(login: client.Vehicle, topic: str, status: str, seconds: float) -> tuple[int, list[float]]:
    """How many questions were asked, and the milliseconds to each answer."""
    link = Link(login, status)
    list(link.messages(time.monotonic() + 0.3))
    asked, taken, end = 0, [], time.monotonic() + seconds
    while time.monotonic() < end:
        command = client.build(login, "left", "unknown")
        asked += 1
        traces = [trace(command.digest.encode(), offset) for offset in range(3)]
        began = time.monotonic()
        link.publish(topic, command.payload, asked)
        for payload in link.messages(began + PATIENCE_S):
            if any(each in payload for each in traces):
                taken.append((time.monotonic() - began) * 1e3)
                break
        list(link.messages(began + PAUSE_S))
    return asked, taken


class Row(NamedTuple):
    """Messages a second, payloads in turn, and the topic's step."""

    rate: int
    payloads: list[bytes]
    step: str
    qos: int = 0


def rows(login: client.Vehicle, operator_like: Ed25519PrivateKey) -> dict[str, Row]:
    public, header = login.encryption_key, None
    sample = client.build(login, "left", "unknown").payload
    header, _, _, ciphertext, _ = sample.split(b".")

    def undecipherable(size: int) -> bytes:
        part = lambda count: proto.base64url(os.urandom(count)).encode()  # noqa: E731
        return b".".join([header, part(32), b"", part(size), b""])

    def question(device, token: str) -> bytes:
        return proto.build_command(device, public, login.uuid, "left", "unknown", token).payload

    stranger = X25519PrivateKey.generate().public_key()
    size = len(proto.from_base64url(ciphertext.decode()))
    garbage = [os.urandom(200) for _ in range(500)]
    shaped = [undecipherable((proto.MAX_COMMAND_BYTES - len(header) - 47) // 4 * 3) for _ in range(300)]
    wrong_key = [undecipherable(size) for _ in range(800)]
    other_kid = [
        proto.build_command(login.device, stranger, login.uuid, "left", "unknown", login.token).payload
        for _ in range(200)
    ]
    wrong_signature = [question(Ed25519PrivateKey.generate(), login.token) for _ in range(800)]
    parts = login.token.split(".")
    forged_tokens = [proto.from_base64url(parts[1])[:-1] + b" " * (index % 40) + b"}" for index in range(800)]
    forged = [
        question(login.device, proto.sign(operator_like, proto.from_base64url(parts[0]), claims))
        for claims in forged_tokens
    ]
    own = [question(login.device, login.token) for _ in range(3000)]
    return {
        "quiet": Row(0, [], "left"),
        "broker alone 5 k": Row(5_000, own, "elsewhere"),
        "mosquitto_sub 40 k": Row(40_000, garbage, "heard"),
        "garbage 10 k": Row(10_000, garbage, "left"),
        "garbage 40 k": Row(40_000, garbage, "left"),
        "garbage 40 k at QoS 1": Row(40_000, garbage, "left", 1),
        "own questions 5 k at QoS 1": Row(5_000, own, "left", 1),
        "8 KiB 5 k": Row(5_000, shaped, "left"),
        "other key id 10 k": Row(10_000, other_kid, "left"),
        "wrong key 2 k": Row(2_000, wrong_key, "left"),
        "wrong key 10 k": Row(10_000, wrong_key, "left"),
        "wrong signature 2 k": Row(2_000, wrong_signature, "left"),
        "wrong signature 5 k": Row(5_000, wrong_signature, "left"),
        "forged token 2 k": Row(2_000, forged, "left"),
        "own questions 2 k": Row(2_000, own, "left"),
        "own questions 5 k": Row(5_000, own, "left"),
    }


def processor(pid: int) -> float:
    """Seconds of the processor that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description="Measure an honest rider's questions beside floods.")
    parser.add_argument("--bin", required=True, type=Path, help="the folder of stepctl and stepd")
    parser.add_argument("--seconds", type=float, default=5, help="of each row (default: %(default)s)")
    parser.add_argument("--only", default="", help="the rows whose name begins so, and the quiet one")
    parser.add_argument("--qos", type=int, choices=(0, 1), default=0, help="of each flood (default: the row's)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepctl-floods.") as folder, ExitStack() as stack:
        # Started by root, mosquitto becomes a user of its own, who has to reach its files.
        os.chmod(folder, 0o755)
        runner, binaries = Runner(Path(folder) / "new", stack), options.bin.resolve()
        car = runner.folder / "car"
        runner.check(binaries / "stepctl", "provision", "vehicle", car, "--port", free_port(), "--quiet")
        riders = []
        for name in ("alice", "mallory"):
            runner.check(binaries / "stepctl", "provision", "token", car, "--rider", name, "--quiet")
            riders.append(client.Vehicle.read(str(car / "riders" / name / "vehicle.toml")))
        alice, mallory = riders
        heard = f"{alice.topic}/heard/set_position"
        with open(car / "mosquitto.acl", "a") as file:
            file.write(f"\nuser rider:{alice.uuid}\ntopic write {alice.topic}/elsewhere/set_position\ntopic write {heard}\n")
            file.write(f"\nuser controller:{alice.uuid}\ntopic read {heard}\n")
        broker = runner.start("mosquitto", "mosquitto", "-c", car / "mosquitto.conf")
        await_text(broker, " running")
        await_text(runner.start("stepd", binaries / "stepd", "--config", car / "stepd.toml"), "connected to")
        controller = ["--cert", car / "tls/controller.pem", "--key", car / "tls/controller.key"]
        runner.start(
            "mosquitto_sub", "mosquitto_sub", "-h", alice.host, "-p", str(alice.port), "--cafile", alice.ca, *controller,
            "-t", heard, "-N", "-F", "")
        time.sleep(0.5)
        print(f"{'':22}{'asked':>7}{'answered':>10}{'p50 ms':>9}{'p99 ms':>9}{'x quiet':>9}{'sent/s':>9}", end="")
        print(f"{'stepd':>8}{'broker':>8}  (processors)")
        quiet = None
        for name, (rate, payloads, step, qos) in rows(mallory, Ed25519PrivateKey.generate()).items():
            if not name.startswith((options.only, "quiet")):
                continue
            sent = multiprocessing.Value("q", 0)
            topic = f"{alice.topic}/{step}/set_position"
            flooder = multiprocessing.Process(
                target=flood, args=(mallory, topic, payloads, rate, options.qos or qos, sent), daemon=True
            )
            if rate:
                flooder.start()
                time.sleep(0.7)
            began, count = time.monotonic(), sent.value
            work = [processor(runner.processes[each]) for each in ("stepd", "mosquitto")]
            asked, taken = ask(
                alice, f"{alice.topic}/left/set_position", f"{alice.topic}/left/status", options.seconds
            )
            seconds = time.monotonic() - began
            work = [
                (processor(runner.processes[each]) - before) / seconds
                for each, before in zip(("stepd", "mosquitto"), work, strict=True)
            ]
            if rate:
                count = sent.value - count
                flooder.kill()
                flooder.join()
                time.sleep(1)
            p99 = statistics.quantiles(taken, n=100)[98] if len(taken) > 1 else float("inf")
            quiet = quiet or p99
            median = statistics.median(taken) if taken else float("inf")
            print(
                f"{name:22}{asked:7}{100 * len(taken) / asked:9.1f}%{median:9.2f}{p99:9.2f}{p99 / quiet:9.1f}"
                f"{count / seconds:9.0f}{work[0]:8.2f}{work[1]:8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
