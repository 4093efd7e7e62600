"""Computers whose networks differ: each is a network namespace of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("nsenter"), reason="network namespaces need root and nsenter(1)")

# The other end of the cable is up, too.
CARD = "ip link add card type veth peer name other; ip link set card up; ip link set other up"
# What makes each, and the addresses that it then has, as numbers.
NETWORKS = {
    "IPv4 alone": ("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1;"
                   f"ip link set lo up; {CARD}; ip address add 10.9.8.7/24 dev card", ("127.0.0.1", "10.9.8.7")),
    "IPv6 alone": (f"ip link set lo up; ip address del 127.0.0.1/8 dev lo; {CARD};"
                   "ip -6 address add fd00::7/64 dev card nodad", ("::1", "fd00::7")),
    "both": (f"ip link set lo up; {CARD}; ip address add 10.9.8.7/24 dev card;"
             "ip -6 address add fd00::7/64 dev card nodad", ("127.0.0.1", "::1", "10.9.8.7", "fd00::7")),
    "loopback alone": ("ip link set lo up", ("127.0.0.1", "::1")),
}


class Network:
    """`prefix` runs a program there. The name localhost has both addresses, as it usually has on any computer."""

    def __init__(self, name: str, folder: Path):
        setup, self.addresses = NETWORKS[name]
        hosts = folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n::1 localhost\n")
        script = f'set -e; mount --bind "$0" /etc/hosts; {setup}; echo ready; exec sleep infinity'
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "sh", "-c", script, hosts],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "ready\n", name
        self.prefix = ("nsenter", f"--target={self._holder.pid}", "--net", "--mount")

    def close(self):
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()
