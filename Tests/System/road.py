#!/usr/bin/env python3
"""A road, and a bridge that is not ours (Python's websockets) and shows it: `road.py SCENE CERTIFICATE KEY CLIENTS PORT`.

The scene is a JSON file that is read again for each frame, so a test changes the road while it is watched. The vehicle
points north at `HERE`; `ahead` and `right` are metres from its middle.

    {"objects": [{"category": "bicycle", "ahead": -20, "right": -1.7, "speed": 4, "at": 1700000000.0}, ...],
     "late": 0.1, "clock": 0, "stamps": "good", "stops": null}

An object is at `ahead` at the Unix time `at`. `late`: seconds between a stamp and its frame; `clock`: by how much the
bridge's clock is ahead; `stamps`: good, frozen or backward; `raw`: what is sent in place of frames; `others`: scenes of
other sections, each with its `section`, which the same bridge sends.
"""

import asyncio
import json
import math
import ssl
import sys
import time
from pathlib import Path

HERE = (48.7758, 9.1829)
_NORTH = 111_200.0  # metres a degree, well enough for a street
_EAST = 111_320.0 * math.cos(math.radians(HERE[0]))
OWN = {"id": "own", "category": "car", "ahead": 0, "right": 0, "length": 4.6, "width": 1.9}


def seen(thing: dict, index: int, now: float) -> dict:
    """An object as the feed has it."""
    speed = thing.get("speed", 0)
    ahead = thing["ahead"] + speed * (now - thing.get("at", now))
    return {
        "id": thing.get("id", f"{thing['category']}-{index}"), "category": thing["category"],
        "position": {"x": HERE[0] + ahead / _NORTH, "y": HERE[1] + thing["right"] / _EAST, "z": 0},
        "speed": {"x": speed, "y": 0, "z": 0 if speed >= 0 else math.pi},
        "shape": {"length": thing.get("length", 1.8), "width": thing.get("width", 0.6), "height": 0},
    }


def frame(scene: dict, now: float, last: float) -> dict:
    """What the road shows at `now` on the bridge's clock; `last` is the stamp of the frame before."""
    stamp = now - scene.get("late", 0.1)
    stamps = scene.get("stamps", "good")
    if stamps == "frozen":
        stamp = last
    elif stamps == "backward":
        stamp = last - 0.04
    true = stamp - scene.get("clock", 0)
    things = [seen(thing, index, true) for index, thing in enumerate(scene["objects"])]
    return {"section": scene.get("section", "S1"), "timestampSecs": str(int(stamp)), "timestampNsecs": str(int(stamp % 1 * 1e9)),
            "vehicles": things}


class Scene:
    """The file of a scene. It is replaced, so nobody reads half of one."""

    def __init__(self, path: Path):
        self.path = path

    def shows(self, *objects: dict, own: bool = True, **more):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"objects": [OWN] * own + list(objects)} | more))
        new.rename(self.path)

    def read(self) -> dict:
        return json.loads(self.path.read_text())


def bicycle(arrives_in: float, speed: float = 15 / 3.6, right: float = -1.85, **more) -> dict:
    """One whose front is at the steps in so many seconds. They end 0.5 m behind the vehicle's middle."""
    return {"category": "bicycle", "ahead": -0.5 - 0.9 - speed * arrives_in, "right": right, "speed": speed,
            "at": time.time()} | more


async def serve(arguments: list[str]):
    import websockets

    scene, certificate, key, clients, port = arguments
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(clients)
    context.verify_mode = ssl.CERT_REQUIRED

    async def handle(socket):
        told = {}

        async def listen():
            async for message in socket:
                told.update(json.loads(message) | {"came": time.time()})

        listening = asyncio.create_task(listen())
        last = time.time()
        try:
            while not told:
                await asyncio.sleep(0.01)
            while True:
                now = Scene(Path(scene)).read()
                clock = now.get("clock", 0)
                if "raw" in now:
                    await socket.send(bytes.fromhex(now["raw"]) if now.get("binary") else now["raw"])
                else:
                    sections = [frame(scene, time.time() + clock, last) for scene in [now, *now.get("others", [])]]
                    last = int(sections[0]["timestampSecs"]) + int(sections[0]["timestampNsecs"]) / 1e9
                    for shown in sections:
                        shown["bridge"] = {"received": last, "sent": time.time() + clock, "echo": told["timestamp"],
                                           "echoReceived": told["came"] + clock}
                        await socket.send(json.dumps(shown))
                await asyncio.sleep(0.04)
        except websockets.ConnectionClosed:
            pass
        finally:
            listening.cancel()

    async with websockets.serve(handle, "127.0.0.1", int(port), ssl=context):
        print("listening", file=sys.stderr, flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
