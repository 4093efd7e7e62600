"""A server on computers whose networks differ: each in a network namespace of its own."""

import re
import socket
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from networks import NETWORKS, Network, needs_namespaces
from programs import PATIENCE, STEPD, Stepctl, Transcript, wait_until
from server import STEPFLEET, Server
from vehicle import keep_user

pytestmark = needs_namespaces


def starts(stack: ExitStack, network: Network, log: Path, *command) -> subprocess.Popen:
    """A program that runs in a network, until the test ends."""
    with open(log, "w") as file:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *network.prefix, *map(str, command)], stdout=file, stderr=file)

    def end():
        process.terminate()
        process.wait(PATIENCE)

    stack.callback(end)
    return process


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Server(tmp_path_factory.mktemp("network") / "fleet").folder


@pytest.mark.parametrize("network", NETWORKS)
def test_a_server_serves_on_a_computer_with(network, folder, tmp_path):
    log = tmp_path / "log"
    with ExitStack() as stack:
        network = stack.enter_context(closing(Network(network, tmp_path)))
        server = starts(stack, network, log, STEPFLEET, "serve", folder, "--port", "8443")
        wait_until(lambda: '"serving"' in log.read_text() or server.poll() is not None, "the server serves")
        assert server.poll() is None, log.read_text()
        for address in network.addresses:
            host = f"[{address}]" if ":" in address else address
            reached = subprocess.run(
                [*network.prefix, "openssl", "s_client", "-brief", "-connect", f"{host}:8443"], input="",
                capture_output=True, text=True, timeout=PATIENCE)
            assert "CONNECTION ESTABLISHED" in reached.stderr, reached


@pytest.mark.parametrize("network", NETWORKS)
def test_a_vehicle_joins_and_its_controller_connects_on_a_computer_with(network, tmp_path):
    fleet, log = Server(tmp_path / "fleet"), tmp_path / "log"
    with ExitStack() as stack:
        network = stack.enter_context(closing(Network(network, tmp_path)))
        starts(stack, network, log, STEPFLEET, "serve", fleet.folder)
        wait_until(lambda: '"serving"' in log.read_text(), "the server serves")
        keep_user(fleet.folder / "operator/mosquitto.conf")
        starts(stack, network, tmp_path / "broker", "mosquitto", "-c", fleet.folder / "operator/mosquitto.conf")
        wait_until(lambda: " running" in (tmp_path / "broker").read_text(), "the broker runs")
        code = re.search(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}", fleet.types("vehicle", "add", "Bus").stdout)[0]
        (tmp_path / "board").mkdir()
        stepctl = Stepctl(tmp_path / "board", Transcript())
        joined = stepctl(
            "provision", "vehicle", tmp_path / "board/bus", "--fleet", fleet.url, "--ca", fleet.verify, "--code", code,
            prefix=network.prefix)
        assert joined.status == 0, joined
        starts(stack, network, tmp_path / "stepd", STEPD, "--config", tmp_path / "board/bus/stepd.toml")
        wait_until(lambda: "connected to" in (tmp_path / "stepd").read_text(), "the controller connects")


def test_a_port_that_another_program_has_is_said_in_one_line(folder):
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as other:
        port = other.getsockname()[1]
        ended = subprocess.run(
            [STEPFLEET, "serve", folder, "--port", str(port)], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 69
    assert ended.stderr.splitlines() == [
        f"stepfleet: error: cannot listen at [::]:{port}: Address already in use",
        f"hint: another program has this port; `port` in {folder}/stepfleet.json names another one"]


def test_a_port_of_roots_is_said_to_others(folder):
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 443:
        pytest.skip("here everybody may have port 443")
    ended = subprocess.run(
        ["setpriv", "--bounding-set=-net_bind_service", STEPFLEET, "serve", folder, "--port", "443"],
        capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (
        77, "stepfleet: error: cannot listen at [::]:443: Permission denied")
