"""What servers share is in the database: tokens, revocations, and whose they are."""

import json
import shutil
import subprocess
import time
import tomllib
from contextlib import ExitStack, closing

import pytest

from conftest import on_sqlite
from crowd import moment
from programs import PATIENCE, wait_until
from server import Server
from test_bookings import Device, asked, claims, issued, ledger_of, noted, withdrawn
from test_notices import Kept


PUBLIC_PART = ("topic", "public_part", "certificate")


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path / "device")


def given(rider, booking, device) -> str:
    """The id of a token."""
    answer = asked(rider, booking, "access", json={"request": device.request})
    assert answer.status_code == 200, answer.text
    return claims(answer.json()["token"])["jti"]


def made_older(server):
    """As the version before would have left the database and the folder: all tokens in the ledger, and the vehicles'
    public parts in the folder alone."""
    columns = "jti, rider, vehicle, steps, begins, expires, device, key, certificate, certificate_ends"
    array = "json_build_array" if server.database else "json_array"
    rows = [json.loads(line) for line in server.runs(f"SELECT {array}({columns}) FROM token")]
    tokens = [
        {"jti": jti, "rider": rider, "vehicle": vehicle, "steps": steps.split(), "nbf": begins, "exp": expires,
         "device": device, "key": key} | ({"certificate": {"serial": serial, "end": end}} if serial else {})
        for jti, rider, vehicle, steps, begins, expires, device, key, serial, end in rows]
    file = ledger_of(server)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokens": tokens}))
    for statement in (
        "DROP TABLE token", "DROP TABLE operator_key", "ALTER TABLE revoked_device DROP COLUMN ends",
        "DROP INDEX notice_waiting", "CREATE INDEX notice_untold ON notice (urgent, since) WHERE since IS NOT NULL",
        "DROP INDEX vehicle_topic", "DROP INDEX vehicle_every_topic", "DROP INDEX vehicle_folder",
        *(f"ALTER TABLE vehicle DROP COLUMN {column}" for column in PUBLIC_PART),
        "DELETE FROM migration WHERE name IN ('token-1', 'vehicle-part-1', 'vehicle-topic-1')",
    ):
        server.runs(statement)


def test_an_older_servers_ledger_is_taken_in_and_so_is_its_backup(stored, parked, new_rider, device, tmp_path):
    rider, phone = new_rider(stored, device.key), Device(tmp_path / "phone")
    rides = [rider.books(vehicle, None, moment(3)).json() for vehicle in parked]
    tokens = [given(rider, ride, device) for ride in rides]
    by_hand = phone.stepctl(
        "provision", "token", stored.folder / "operator/vehicles/van", "--device", phone.request, "--rider", "anna")
    assert by_hand.status == 0, by_hand
    assert stored.types("revoke", "--booking", rides[0]["id"]).stdout == "1 token revoked\n"
    stored.stops()
    stored.starts()
    wait_until(lambda: len(issued(stored)) == 3, "the one by hand is taken in")
    stored.stops()
    whole = issued(stored)
    made_older(stored)
    assert "of another version" in stored.types("check", stored.folder).stdout
    assert stored.types("backup", tmp_path / "backup").returncode == 0
    stored.starts()
    restored = stored.types("restore", tmp_path / "backup", tmp_path / "restored", "--sqlite")
    assert restored.returncode == 0, restored
    stored.stops()
    other = stored.at(tmp_path / "restored")
    other.logfile, other.process = tmp_path / "restored.log", None
    with closing(other):
        for server in (stored, other):
            server.starts()
            assert issued(server) == whole and withdrawn(server) == {tokens[0]} == noted(server)
            # What only the server has to know is no longer in the folder.
            kept = {one["jti"] for one in json.loads(ledger_of(server).read_text())["tokens"]}
            assert kept == whole - {tokens[1]}
            checked = server.types("check", server.folder)
            assert checked.returncode == 0, checked
            assert server.types("revoke", "--booking", rides[1]["id"]).stdout == "1 token revoked\n"
            revoked = server.types("revoke", "--device", phone.key.thumbprint()).stdout
            assert revoked.startswith("1 token revoked, "), revoked
            assert withdrawn(server) == whole
            server.stops()


def test_a_server_with_other_keys_does_not_start(cluster, tmp_path):
    if cluster.problem:
        pytest.skip(f"no PostgreSQL: {cluster.problem}")
    url = cluster.database()
    with ExitStack() as stack:
        servers = [stack.enter_context(closing(Server(tmp_path / name, "--database", url))) for name in ("a", "b")]
        servers[0].starts()
        keys = [json.loads((one.folder / "operator/operator/token.jwk").read_text())["x"] for one in servers]
        assert keys[0] != keys[1]

        def refused(server):
            process = server._started(server.folder)
            assert process.wait(PATIENCE) == 78
            lines = [line for line in server.log().splitlines() if not line.startswith("{")]
            assert len(lines) == 2 and "but the database is of the operator with the key" in lines[0], lines
            assert lines[1].startswith(f"hint: copy {server.folder}/operator/operator from the server"), lines

        refused(servers[1])
        # A key change is no other operator; but who has slept through it is.
        shutil.rmtree(servers[1].folder / "operator")
        shutil.copytree(servers[0].folder / "operator", servers[1].folder / "operator", symlinks=True)
        servers[1].starts()
        assert servers[1].stops() == 0
        for number in range(2):
            changed = servers[0].types("keys", "rotate")
            assert changed.returncode == 0, changed
            if number == 0:
                # It has heard of the next key, which signs nothing yet.
                shutil.copy(servers[0].folder / "operator/operator/next.jwk", servers[1].folder / "operator/operator")
                servers[1].starts()
                assert servers[1].stops() == 0
        assert servers[0].stops() == 0
        servers[0].starts()
        refused(servers[1])


def test_servers_need_no_common_folder_for_vehicles_that_join(cluster, new_rider, device, tmp_path):
    """What each of them needs of the other's folder is the keys."""
    if cluster.problem:
        pytest.skip(f"no PostgreSQL: {cluster.problem}")
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(tmp_path / "fleet", "--database", cluster.database()))).starts()
        copy = tmp_path / "copy"
        subprocess.run(["cp", "-a", server.folder, copy], check=True)
        other = stack.enter_context(closing(server.another(copy)))
        code = server.types("vehicle", "add", "Bus").stdout.split("with the code ")[1].split(",")[0]
        # Only vehicles with topics of their own are in the broker's list.
        joined = device.stepctl(
            "provision", "vehicle", tmp_path / "bus", "--fleet", other.url, "--ca", server.verify, "--code", code,
            "--topic", "yard/bus")
        assert joined.status == 0, joined
        (bus,) = json.loads(server.types("vehicle", "list", "--json").stdout)["vehicles"]
        for folder in (server.folder, copy):
            record = folder / "operator/vehicles" / bus["id"]
            wait_until(lambda: record.exists(), "the folder has the vehicle")
            made = tomllib.loads((record / "vehicle.toml").read_text())
            own = tomllib.loads((tmp_path / "bus/vehicle.toml").read_text())
            assert made["controller"] == own["controller"] and made["topic"] == own["topic"]
            assert (record / "tls/controller.pem").read_text() == (tmp_path / "bus/tls/controller.pem").read_text()
            lists = folder / "operator/mosquitto.acl"
            wait_until(lambda: f"user controller:{bus['id']}\n" in lists.read_text(), "the broker's list has it")
            # Commands by hand know it, too.
            token = device.stepctl("provision", "token", record, "--device", device.request, "--rider", "anna", "--json")
            assert token.status == 0, token
        rider = new_rider(server, device.key)
        assert given(rider, rider.books(bus["id"], None, moment(3)).json(), device)
        for folder in (server.folder, copy):
            checked = server.types("check", folder)
            assert checked.returncode == 0, checked


@on_sqlite
def test_who_has_not_heard_is_listed(stored, parked):
    def waiting() -> dict:
        listed = json.loads(stored.types("vehicle", "list", "--json").stdout)["vehicles"]
        return {one["name"]: one.get("untold_since") for one in listed}

    # There is no broker.
    before = waiting()
    assert set(before) == {"car", "van"} and None not in before.values()
    time.sleep(1.1)
    assert waiting() == before
    table = stored.types("vehicle", "list").stdout.splitlines()
    assert table[0].split()[-1] == "note" and table[1].endswith(f"not told since {before['car']}"), table
    shown = json.loads(stored.types("vehicle", "show", "car").stdout)
    assert shown["untold_since"] == before["car"]


def test_nobody_waits_whom_the_broker_has_told(fleet, tmp_path):
    device = Device(tmp_path / "device")
    made = device.stepctl("provision", "vehicle", tmp_path / "car", "--operator", fleet.folder / "operator")
    assert made.status == 0, made
    fleet.broker.reads_access_again()
    assert fleet.types("vehicle", "add", "car").returncode == 0
    fleet.stops()
    fleet.starts()

    def told() -> bool:
        (car,) = json.loads(fleet.types("vehicle", "list", "--json").stdout)["vehicles"]
        return "untold_since" not in car

    wait_until(told, "it is told")


def test_notices_by_hand_revoke_no_less_than_the_server(fleet, new_rider, device, tmp_path):
    made = device.stepctl("provision", "vehicle", tmp_path / "car", "--operator", fleet.folder / "operator")
    assert made.status == 0, made
    fleet.broker.reads_access_again()
    assert fleet.types("vehicle", "add", "car").returncode == 0
    (car,) = json.loads(fleet.types("vehicle", "list", "--json").stdout)["vehicles"]
    rider = new_rider(fleet, device.key)
    jti = given(rider, rider.books(car["id"], None, moment(3)).json(), device)
    kept = Kept(fleet, [f"vehicles/{car['id']}/operator"])
    assert fleet.types("revoke", "--account", rider.email).stdout == "1 token revoked\n"
    # The server is away, and sets nothing right.
    wait_until(lambda: jti in noted(fleet), "commands by hand know it")
    fleet.kill()
    published = device.stepctl("operator", "publish", fleet.folder / "operator")
    assert published.status == 0, published
    (by_hand,) = kept.now(1).values()
    assert [one["jti"] for one in by_hand["revoked"]] == [jti]
    listed = device.stepctl("operator", "tokens", fleet.folder / "operator", "--all", "--json")
    assert listed.status == 0 and jti in listed.stdout, listed
    # What is given by hand meanwhile is taken in by the next start.
    token = device.stepctl(
        "provision", "token", fleet.folder / "operator/vehicles/car", "--device", device.request, "--rider", "anna")
    assert token.status == 0, token
    fleet.starts()
    assert len(issued(fleet)) == 2 and withdrawn(fleet) == {jti}
    wait_until(lambda: next(iter(kept.now(1).values()))["seq"] > by_hand["seq"], "the server's notice follows")
