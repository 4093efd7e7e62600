"""Two servers tell the vehicles: what was confirmed as revoked is in the notice that the broker keeps."""

import http.client
import json
import random
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import postgres
import stepproto as proto
from crowd import moment
from programs import PATIENCE, Stepctl, Transcript, wait_until
from server import Broker, Server
from test_bookings import Device

VEHICLES, RIDERS, ROUNDS = 8, 8, 200


def claims(token: str) -> dict:
    return json.loads(proto.from_base64url(token.split(".")[1]))


class Kept:
    """The notices of all vehicles, as the broker sends them to somebody who watches."""

    def __init__(self, server, topics):
        folder = server.folder / "operator"
        arguments = [word for topic in topics for word in ("-t", topic)]
        self.command = [
            "mosquitto_sub", "-h", "localhost", "-p", str(server.broker_port), "--cafile", folder / "tls/ca.pem",
            "--cert", folder / "operator/client.pem", "--key", folder / "operator/client.key", *arguments, "-F", "%p"]

    def now(self, count: int = VEHICLES) -> dict:
        """By the vehicle."""
        lines = subprocess.run(
            [*self.command, "-C", str(count), "-W", f"{PATIENCE:.0f}"], capture_output=True, text=True).stdout.split()
        return {notice["vehicle"]: notice for notice in map(claims, lines)}


def revoke(path: Path, booking: str) -> int:
    """Asks one of the servers, by its socket. Returns the number of tokens that it says are revoked."""
    connection = http.client.HTTPConnection("admin", timeout=PATIENCE)
    with closing(socket.socket(socket.AF_UNIX)) as connection.sock:
        connection.sock.connect(str(path))
        body = json.dumps({"booking": booking})
        connection.request("POST", "/revoke", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return json.loads(answer.read())["tokens"]


@pytest.mark.parametrize("folders", ["one", "apart"])
def test_two_servers_lose_no_revocation_and_leave_no_old_notice(cluster, new_rider, tmp_path, folders):
    if cluster.problem:
        pytest.skip(f"no PostgreSQL: {cluster.problem}")
    with ExitStack() as stack:
        server = Server(tmp_path / "fleet", "--database", cluster.database())
        stack.enter_context(closing(server))
        server.starts()
        stepctl, vehicles = Stepctl(tmp_path, Transcript()), []
        for number in range(VEHICLES):
            made = stepctl("provision", "vehicle", tmp_path / f"v{number}", "--operator", server.folder / "operator")
            assert made.status == 0, made
            assert server.types("vehicle", "add", f"v{number}").returncode == 0
        stack.enter_context(closing(Broker(server)))
        listed = json.loads(server.types("vehicle", "list", "--json").stdout)["vehicles"]
        vehicles = [vehicle["id"] for vehicle in listed]
        kept = Kept(server, [f"vehicles/{vehicle}/operator" for vehicle in vehicles])
        riders = []
        for number in range(RIDERS):
            device = Device(tmp_path / f"phone{number}")
            riders.append((new_rider(server, device.key), device.request))
        folder, own = server.folder, server.folder / "run/admin.sock"
        if folders == "apart":
            folder = tmp_path / "copy"
            subprocess.run(["cp", "-a", server.folder, folder], check=True)
        others = [server.another(folder)]
        stack.callback(lambda: others[0].close())
        confirmed, untrue, unanswered = [], [], 0

        def access(rider, request, url, booking) -> str:
            path = f"/v1/bookings/{booking}/access"
            headers = {"Authorization": f"DPoP {rider.access}", "DPoP": rider.proof("POST", path, rider.access)}
            answer = rider.session.post(url + path, json={"request": request}, headers=headers, timeout=PATIENCE)
            assert answer.status_code == 200, answer.text
            return claims(json.loads(answer.text)["token"])["jti"]

        began = time.monotonic()
        for number in range(ROUNDS):
            vehicle, (rider, request) = vehicles[number % VEHICLES], riders[number // VEHICLES % RIDERS]
            tokens = []
            for place, url in enumerate((server.url, others[0].url)):
                made = rider.books(vehicle, moment(1 + place), moment(1.9 + place))
                assert made.status_code == 201, made.text
                booking = made.json()["id"]
                # Granted by one, and revoked by the other.
                tokens.append((booking, access(rider, request, url, booking)))

            def take_back(which: int, asked: Path, delay: float):
                nonlocal unanswered
                time.sleep(delay)
                booking, token = tokens[which]
                try:
                    count = revoke(asked, booking)
                except (OSError, http.client.HTTPException):
                    # The other one completes it, whatever was done.
                    unanswered += 1
                    count = max(1, revoke(own, booking))
                confirmed.append((vehicle, token))
                if count != 1:
                    untrue.append((number, count))

            threads = [
                threading.Thread(target=take_back, args=(0, others[0].socket, 0)),
                threading.Thread(target=take_back, args=(1, own, random.uniform(0, 0.02))),
            ]
            for thread in threads:
                thread.start()
            if number % 40 == 39:
                time.sleep(random.uniform(0, 0.03))
                others[0].close()
            for thread in threads:
                thread.join()
            if number % 40 == 39:
                others[0] = server.another(folder)
        print(f"{ROUNDS} rounds in {time.monotonic() - began:.1f} s, {unanswered} without an answer")

        def untold() -> int:
            return int(postgres.sql(server.database_url, "SELECT count(*) FROM notice WHERE since IS NOT NULL")[0])

        server.database_url = json.loads((server.folder / "stepfleet.json").read_text())["database"]
        wait_until(lambda: untold() == 0, "all are told")
        notices = kept.now()
        numbers = dict(
            line.split("|") for line in postgres.sql(server.database_url, "SELECT vehicle, number FROM notice"))
        lost = [
            (vehicle, token) for vehicle, token in confirmed
            if token not in {one.get("jti") for one in notices[vehicle]["revoked"]}]
        stale = [vehicle for vehicle in vehicles if str(notices[vehicle]["seq"]) != numbers[vehicle]]
        assert (lost, stale, untrue) == ([], [], []) and len(confirmed) == 2 * ROUNDS
        for one in {server.folder, folder}:
            checked = server.types("check", one)
            assert checked.returncode == 0, checked
