#!/usr/bin/env python3
"""A rider's device that speaks to a vehicle without a network, on Google's Bumble: section 2.2 of the page.

    link.py TRANSPORT --vehicle riders/NAME/vehicle.toml open|close|unknown|stop --step left [--times N]
    link.py TRANSPORT --vehicle riders/NAME/vehicle.toml hold|silent|trickle|junk|replay|connect --step left [--times N] [--seconds N]
    link.py TRANSPORT --vehicle riders/NAME/vehicle.toml serve --folder VEHICLE [--seconds N]

Prints one JSON object a line. The third form is a vehicle, and the second is a stranger's:
`hold` links without a channel, `silent` opens a channel and says nothing, `trickle` sends a byte each half second,
`junk` sends what cannot be decrypted, `replay` sends again what a rider sent (--bytes), and `connect` begins and ends
links. It counts what it hears.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import time
from pathlib import Path

from bumble import l2cap
from bumble.core import UUID, AdvertisingData
from bumble.device import Connection, Device, DeviceConfiguration
from bumble.hci import Address, OwnAddressType
from bumble.transport import open_transport

import client
import stepproto as proto
from controller import Controller


# A machine that tests share with others may take its time, in seconds.
PATIENCE_S = 60
# For one attempt to link. The vehicle changes its address each quarter of an hour, and then there has to be another.
ATTEMPT_S = 10


class Link:
    """Frames to and from a vehicle."""

    def __init__(self, connection: Connection, channel):
        self.connection, self.channel = connection, channel
        self.heard, self.frames, self.ended = bytearray(), asyncio.Queue(), asyncio.Event()
        # What is done with each command beside, and whether that sends a copy of those that move.
        self.count, self.sent, self.copies = 0, None, False
        channel.sink = self._hear
        channel.on("close", self._end)
        connection.on("disconnection", lambda _: self._end())

    def _hear(self, sdu: bytes):
        self.count += len(sdu)
        self.heard += sdu
        for each in proto.take_frames(self.heard):
            self.frames.put_nowait(each)

    def _end(self):
        self.ended.set()
        self.frames.put_nowait(None)

    def write(self, data: bytes):
        for start in range(0, len(data), proto.MAX_SDU_BYTES):
            self.channel.write(data[start : start + proto.MAX_SDU_BYTES])

    async def answers(self, vehicle: client.Vehicle, command: proto.Command, timeout: float = PATIENCE_S):
        """The checked statements that answer a command, which is sent first."""
        key = command.payload.export(b"stepctl answer", 32)
        step = command.claims["step"]
        self.write(proto.frame(proto.COMMAND, step, proto.brief(command.payload)))
        if self.sent and not (self.copies and command.claims["position"] == "unknown"):
            self.sent(command.payload)
        while True:
            frame = await asyncio.wait_for(self.frames.get(), timeout)
            if frame is None:
                raise ConnectionError("the vehicle ended the link")
            kind, named, payload = frame
            status = proto.open_answer(key, payload) if (kind, named) == (proto.ANSWER, step) else None
            statement = status and proto.read_answer(status, vehicle.signing_key, command)
            if statement and (self.copies or statement.get("refusal", {}).get("code") != "replayed"):
                yield statement

    async def close(self):
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.channel.disconnect(), 3)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.connection.disconnect(), 3)


async def powered(transport, address: str, own: str) -> Device:
    """A resolvable address is made by the host, of a random key, and takes the place of the static one."""
    config = DeviceConfiguration(
        name="rider", address=Address(address), le_privacy_enabled=own == "resolvable", irk=os.urandom(16)
    )
    device = Device.from_config_with_hci(config, transport.source, transport.sink)
    await device.power_on()
    return device


async def find(device: Device, vehicle: client.Vehicle, seconds: float = PATIENCE_S) -> Address:
    names = {proto.link_name(vehicle.encryption_key, time.time() + shift).bytes[::-1] for shift in (-900, 0, 900)}
    found = asyncio.get_running_loop().create_future()

    def hear(advertisement):
        for kind in (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS,):
            uuids: list[UUID] = advertisement.data.get(kind) or []
            if advertisement.is_connectable and len(uuids) == 1 and bytes(uuids[0]) in names and not found.done():
                found.set_result(advertisement.address)

    device.on("advertisement", hear)
    await device.start_scanning(legacy=False, filter_duplicates=False)
    try:
        return await asyncio.wait_for(found, seconds)
    finally:
        await device.stop_scanning(legacy=False)
        device.remove_listener("advertisement", hear)


async def connect(device: Device, address: Address, own: str = "static") -> Connection:
    kind = OwnAddressType.PUBLIC if own == "public" else OwnAddressType.RANDOM
    # Bumble tells the controller when the time is over. Who only waits no longer leaves it connecting, for ever.
    return await device.connect(address, own_address_type=kind, timeout=ATTEMPT_S)


async def link(device: Device, address: Address, own: str = "static") -> Link:
    connection = await connect(device, address, own)
    spec = l2cap.LeCreditBasedChannelSpec(psm=proto.LINK_PSM, mtu=proto.MAX_SDU_BYTES, mps=247, max_credits=64)
    try:
        session = Link(connection, await asyncio.wait_for(connection.create_l2cap_channel(spec), ATTEMPT_S))
    except Exception:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(connection.disconnect(), 3)
        raise
    with contextlib.suppress(Exception):
        # A turn every 15 ms, if the vehicle's controller likes that.
        await asyncio.wait_for(connection.update_parameters(15, 15, 0, 1000), 1)
    return session


async def reach(device: Device, vehicle: client.Vehicle, own: str) -> tuple[float, float, Link]:
    """A link, and when the attempt that succeeded began, and had found the vehicle."""
    end = time.monotonic() + PATIENCE_S
    while True:
        began = time.monotonic()
        try:
            address = await find(device, vehicle)
            found = time.monotonic()
            return began, found, await link(device, address, own)
        except Exception:  # Bumble's errors have no class in common.
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


async def ask(session: Link, vehicle: client.Vehicle, step: str) -> dict:
    return await anext(session.answers(vehicle, client.build(vehicle, step, "unknown")))


async def request(session: Link, vehicle: client.Vehicle, step: str, position: str) -> dict:
    """The statement that ends it."""
    statement = await ask(session, vehicle, step)
    if position == "unknown" or "refusal" in statement:
        return statement
    if position == "stop":
        more = proto.stopping(statement)
    else:
        more = proto.permission(statement, proto.beacon_proof(vehicle.majors[step], statement["clock"]))
    async for answer in session.answers(vehicle, client.build(vehicle, step, position, more), client.LAST_ANSWER_S):
        if session.copies and answer.get("refusal", {}).get("code") == "replayed":
            # The copy was faster, and its answer goes the copy's way.
            while not proto.is_at_rest(statement := await ask(session, vehicle, step)):
                await asyncio.sleep(0.2)
            return statement
        if "refusal" in answer or proto.is_at_rest(answer):
            return answer
    raise ConnectionError


async def stop_on_the_way(session: Link, vehicle: client.Vehicle, arguments) -> tuple[dict, dict]:
    """Begins a motion, ends it on the same link, and says how long the stop took."""
    step = arguments.step
    statement = await ask(session, vehicle, step)
    proof = proto.beacon_proof(vehicle.majors[step], statement["clock"])
    begun = session.answers(vehicle, client.build(vehicle, step, arguments.what, proto.permission(statement, proof)))
    answer = await anext(begun)
    assert "refusal" not in answer, answer
    stop = client.build(vehicle, step, "stop", proto.stopping(statement))
    began = time.monotonic()
    async for answer in session.answers(vehicle, stop):
        if proto.is_at_rest(answer):
            return answer, {"stopped": time.monotonic() - began}
    raise ConnectionError


async def ask_more(session: Link, vehicle: client.Vehicle, arguments) -> list[float]:
    """Asks again on the same link, and says how long each answer took."""
    times = []
    for _ in range(arguments.stay):
        began = time.monotonic()
        await ask(session, vehicle, arguments.step)
        times.append(time.monotonic() - began)
    return times


def keep(file: str, step: str, command: bytes):
    with open(file, "ab") as recording:
        recording.write(proto.frame(proto.COMMAND, step, proto.brief(command)))


@contextlib.asynccontextmanager
async def witness(vehicle: client.Vehicle, arguments):
    """What is done with the bytes of each command, beside sending it on the link."""
    if arguments.both:
        with client.Session(vehicle, arguments.step, 10) as session:
            delay = random.Random(arguments.seed).uniform(0, 0.3)
            sending = []

            async def send(command):
                await asyncio.sleep(delay)
                await asyncio.to_thread(session.publish(command).wait_for_publish, 10)

            yield lambda command: sending.append(asyncio.create_task(send(command)))
            # The answer came on the link, and this way may be the slower one.
            await asyncio.gather(*sending)
    elif arguments.bytes:
        Path(arguments.bytes).unlink(missing_ok=True)
        yield lambda command: keep(arguments.bytes, arguments.step, command)
    else:
        yield None


def tell(**members):
    print(json.dumps(members), flush=True)


async def ride(device: Device, vehicle: client.Vehicle, arguments):
    for _ in range(arguments.times or 1):
        began, found, session = await reach(device, vehicle, arguments.own)
        linked = time.monotonic()
        try:
            session.copies = arguments.both
            async with witness(vehicle, arguments) as session.sent:
                if arguments.stopped:
                    statement, more = await stop_on_the_way(session, vehicle, arguments)
                else:
                    statement = await request(session, vehicle, arguments.step, arguments.what)
                    more = {"round_trips": await ask_more(session, vehicle, arguments)} if arguments.stay else {}
                if arguments.notice:
                    session.write(proto.frame(proto.NOTICE, "", Path(arguments.notice).read_bytes()))
                    await asyncio.sleep(1)
                    statement = await request(session, vehicle, arguments.step, arguments.what)
        finally:
            await session.close()
        told = {name: statement[name] for name in ("position", "phase", "fault", "refusal") if name in statement}
        seconds = {"found": found - began, "linked": linked - found, "answered": time.monotonic() - linked}
        tell(**told, **more, seconds={name: round(value, 3) for name, value in seconds.items()})
        await asyncio.sleep(0.3)


async def trouble(device: Device, vehicle: client.Vehicle, arguments):
    end = time.monotonic() + arguments.seconds
    most = arguments.times or math.inf
    links, heard, whole = 0, 0, []
    while time.monotonic() < end and len(whole) < most:
        try:
            address = await find(device, vehicle, 3)
            began = time.monotonic()
            if arguments.what == "connect":
                while time.monotonic() < end and links < most:
                    connection = await connect(device, address)
                    links += 1
                    await connection.disconnect()
                break
            if arguments.what == "hold":
                connection, gone = await connect(device, address), asyncio.Event()
                connection.on("disconnection", lambda _, gone=gone: gone.set())
                links += 1
                tell(linked=links)
                await asyncio.wait_for(gone.wait(), arguments.seconds)
            else:
                session = await link(device, address)
                links += 1
                tell(linked=links)
                await annoy(session, vehicle, arguments)
                heard += session.count
                await session.close()
            whole.append(round(time.monotonic() - began, 2))
        except Exception as error:  # A stranger does not give up.
            tell(failed=f"{type(error).__name__} {error}")
            await asyncio.sleep(0.2)
    tell(links=links, heard=heard, seconds=whole)


async def annoy(session: Link, vehicle: client.Vehicle, arguments):
    rubbish = proto.seal(vehicle.encryption_key, b"rubbish")
    while not session.ended.is_set():
        match arguments.what:
            case "trickle":
                session.write(b"\x10")
            case "junk":
                session.write(proto.frame(proto.COMMAND, arguments.step, os.urandom(32) + proto.brief(rubbish)[32:]))
            case "replay":
                session.write(Path(arguments.bytes).read_bytes())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(session.ended.wait(), 0.5)


class Vehicle:
    """A controller of another make, on links."""

    def __init__(self, vehicle: client.Vehicle, folder: Path):
        def key(name: str):
            return proto.private_key(json.loads((folder / f"{name}.jwk").read_bytes()))

        self.encryption = key("keys/encryption")
        self.controller = Controller(
            vehicle.uuid, vehicle.majors, self.encryption, key("keys/signing"), key("operator/token").public_key()
        )
        self.began = time.monotonic()
        self.askers = {}  # by a command's digest, the channel and the key of its answers

    @property
    def clock(self) -> int:
        return int((time.monotonic() - self.began) * 1000)

    def take(self, channel):
        heard = bytearray()

        def hear(sdu: bytes):
            heard.extend(sdu)
            for kind, step, payload in proto.take_frames(heard):
                if kind == proto.COMMAND:
                    command = proto.from_brief(self.encryption.public_key(), payload)
                    with contextlib.suppress(ValueError):
                        key = proto.answer_key(self.encryption, command)
                        self.askers[proto.digest(command)] = channel, key
                    for status in self.controller.receive(step, command, False, self.clock, int(time.time())):
                        self.answer(step, status)

        channel.sink = hear

    def answer(self, step: str, status: bytes):
        statement = proto.from_json(proto.SignedText.read(proto.from_json(status)["statement"]).payload)
        channel, key = self.askers[statement["command"]]
        data = proto.frame(proto.ANSWER, step, proto.seal_answer(key, status))
        for start in range(0, len(data), 512):
            channel.write(data[start : start + 512])

    async def serve(self, device: Device, seconds: float):
        spec = l2cap.LeCreditBasedChannelSpec(psm=proto.LINK_PSM, mtu=proto.MAX_SDU_BYTES, mps=247, max_credits=16)
        device.create_l2cap_server(spec, self.take)
        name = proto.link_name(self.encryption.public_key(), time.time())
        data = b"\x02\x01\x06" + proto.call_data(name)
        await device.start_advertising(
            advertising_data=data,
            auto_restart=True,
            own_address_type=OwnAddressType.RANDOM,
            advertising_interval_min=100,
            advertising_interval_max=100,
        )
        tell(serving=str(name))
        while self.clock < seconds * 1000:
            await asyncio.sleep(0.02)
            for step, status in self.controller.finish_motions(self.clock):
                self.answer(step, status)


async def main():
    parser = argparse.ArgumentParser(description="Move an entry step by Bluetooth, or get in the way.")
    parser.add_argument("transport")
    parser.add_argument("what")
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--step", default="left")
    parser.add_argument("--address", default="C0:DE:C0:DE:00:01")
    parser.add_argument("--own", choices=("static", "public", "resolvable"), default="static", help="a rider's address")
    parser.add_argument("--times", type=int, help="how often to ride (default: 1), or how many links a stranger has")
    parser.add_argument("--notice", help="the operator's, which is handed over; then everything is asked once more")
    parser.add_argument("--stay", type=int, default=0, help="asks so often again on each link, with times")
    parser.add_argument("--stopped", action="store_true", help="ends the motion on its way, with the time")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--bytes", help="where a rider keeps what it sends, and a stranger finds it")
    parser.add_argument("--folder", help="the vehicle's, with its keys, to be the vehicle")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--both", action="store_true", help="sends each command by MQTT, too")
    arguments = parser.parse_args()
    vehicle = client.Vehicle.read(arguments.vehicle)
    async with await open_transport(arguments.transport) as transport:
        device = await powered(transport, arguments.address, arguments.own)
        if arguments.what == "serve":
            return await Vehicle(vehicle, Path(arguments.folder)).serve(device, arguments.seconds)
        honest = arguments.what in ("open", "close", "unknown", "stop")
        await (ride if honest else trouble)(device, vehicle, arguments)


if __name__ == "__main__":
    asyncio.run(main())
