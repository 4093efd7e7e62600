"""A bridge that is not ours (Python's websockets), and what it sends."""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import websockets

from certificates import self_signed
from programs import PATIENCE

OBJECT = {
    "id": "a", "category": "bicycle", "position": {"x": 48.7758, "y": 9.1829, "z": 0},
    "speed": {"x": 4, "y": 0, "z": 0}, "shape": {"length": 1.8, "width": 0.6, "height": 0},
}


def frame(late: float = 0, **members) -> dict:
    stamp = time.time() - late
    return {"section": "S1", "timestampSecs": str(int(stamp)), "timestampNsecs": str(int(stamp % 1 * 1e9)),
            "vehicles": [OBJECT]} | members


class Bridge:
    """Serves each client with what `serve` does, on a thread of its own."""

    def __init__(self, folder: Path, serve: Callable, name: str = "localhost", extra: tuple = (), old=False, **options):
        self.certificate, key = self_signed(folder, name, *extra)
        self.client = self_signed(folder, "client")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        context.load_verify_locations(self.client[0])
        context.verify_mode = ssl.CERT_REQUIRED
        if old:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        self.locations: list[dict] = []
        self.loop = asyncio.new_event_loop()
        started = threading.Event()

        async def handle(socket):
            first = asyncio.get_running_loop().create_future()

            async def listen():
                async for message in socket:
                    self.locations.append(json.loads(message) | {"came": time.time()})
                    if not first.done():
                        first.set_result(None)

            listening = asyncio.create_task(listen())
            try:
                await first
                await serve(socket, self)
            except websockets.ConnectionClosed:
                pass
            finally:
                listening.cancel()

        async def run():
            self.server = await websockets.serve(handle, "127.0.0.1", 0, ssl=context, **options)
            self.port = self.server.sockets[0].getsockname()[1]
            started.set()
            await self.server.serve_forever()

        def thread():
            try:
                self.loop.run_until_complete(run())
            except asyncio.CancelledError:
                pass

        threading.Thread(target=thread, daemon=True).start()
        assert started.wait(PATIENCE)

    @property
    def arguments(self) -> tuple:
        return ("--feed", f"wss://localhost:{self.port}/traffic", "--at", "48.7758,9.1829", "--ca", self.certificate,
                "--cert", self.client[0], "--key", self.client[1])

    def close(self):
        self.loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(self.loop)])


@pytest.fixture
def bridge(tmp_path):
    bridges = []

    def start(serve, **options) -> Bridge:
        bridges.append(Bridge(tmp_path, serve, **options))
        return bridges[-1]

    yield start
    for one in bridges:
        one.close()


async def steady(socket, bridge, late=0.2, ahead=0.0):
    """25 frames a second, on a clock that may be ahead."""
    while True:
        stamps = {}
        if bridge.locations:
            last = bridge.locations[-1]
            now = time.time() + ahead
            stamps = {"bridge": {"received": now - 0.01, "sent": now, "echo": last["timestamp"],
                                 "echoReceived": last["came"] + ahead}}
        await socket.send(json.dumps(frame(late - ahead, **stamps)))
        await asyncio.sleep(0.04)


async def once(socket, message):
    await socket.send(message)
    await asyncio.sleep(60)
