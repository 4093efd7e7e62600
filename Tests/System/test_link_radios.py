"""Links between all kinds of radios: old controllers and slow ones, bluetoothd beside, and riders of every address type.

In the rig's kernel, on an air with distances.
"""

import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from links import Air, starts, takes_links
from programs import STEPCTL, wait_until
from rig import in_rig
from test_link import says
from vehicle import Vehicle

pytestmark = in_rig

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def car(new_vehicle) -> Vehicle:
    return takes_links(new_vehicle("car"))


def opens_and_closes(alice, *via):
    for position in ("open", "close"):
        ended = alice.moves(position, "left", *via)
        assert ended.status == 0, ended


@contextmanager
def bluetoothd():
    os.makedirs("/run/dbus", exist_ok=True)
    if not os.path.exists("/run/dbus/system_bus_socket"):
        subprocess.run(["dbus-daemon", "--system", "--fork", "--nopidfile"], check=True)
    with subprocess.Popen(["/usr/libexec/bluetooth/bluetoothd", "-n"], stderr=subprocess.DEVNULL) as daemon:
        try:
            asks = ["busctl", "get-property", "org.bluez", "/org/bluez/hci1", "org.bluez.Adapter1", "Powered"]
            wait_until(lambda: b"true" in subprocess.run(asks, capture_output=True).stdout, "bluetoothd has the adapters")
            yield
        finally:
            daemon.kill()


# --- Controllers ---


@pytest.mark.parametrize(
    "controller", [",bt=4,addr=DC:A6:32:01:02:03", ",bt=4,lean=1", ",dle=0", ",bt=4,dle=0,bufs=2,mtu=27", ",pfeat=0"], ids=lambda text: text[1:])
def test_every_controller_takes_links(car, tmp_path, controller):
    """4.2 has one advertising set and a manufacturer's address, which may look like a random one; a lean controller is
    silent while connected; and 27 bytes at a time is slow."""
    air = Air(car, tmp_path, controller, peers=1)
    starts(car)
    alice = car.rider("alice")
    opens_and_closes(alice, "--via", "hci1", "--timeout", "20")
    # By a rider of another make, after stepctl's link has ended.
    (told,) = says(air.peer(0, alice, "open"))
    assert (told["position"], told["phase"]) == ("open", "idle"), told
    assert len(car.motions) == 3


def test_one_set_for_a_beacon_and_a_link_is_said_before(new_vehicle, tmp_path):
    car = takes_links(new_vehicle("car", "--beacon", "left=hci0"))
    Air(car, tmp_path, ",bt=4", peers=0)
    checked = car.checks()
    assert (checked.status, checked.error) == (
        78, "hci0 can send 1 advertisement at a time, not 2: each beacon takes one, and so does [link]; use one more adapter")


# --- bluetoothd beside ---


def test_bluetoothd_beside_both_keeps_no_stranger_and_no_rider_out(car, tmp_path):
    """bluetoothd opens a channel of its own on every connection, and would let a stranger's stay for ever."""
    air = Air(car, tmp_path, ",dual=1", peers=2)
    with bluetoothd():
        starts(car)
        alice = car.rider("alice")
        stranger = air.peer(0, alice, "hold", "--times", 3, "--seconds", 600)
        opens_and_closes(alice, "--via", "hci1")
        (told,) = says(air.peer(1, alice, "open"))
        assert told["position"] == "open", told
        (*_, end) = says(stranger)
        assert len(end["seconds"]) == 3 and max(end["seconds"]) < 6, end


def test_an_unprivileged_rider_finds_the_vehicle_through_bluetoothd(new_vehicle, tmp_path):
    """The same adapter hears the beacon, finds the vehicle and makes the link, and nothing takes a privilege."""
    car = takes_links(new_vehicle("car", "--beacon", "left=hci0"))
    air = Air(car, tmp_path, peers=0)
    air.does("rssi", 0, 1, -50)
    starts(car)
    car.stepd.says("left: on the air")
    alice = car.rider("alice")
    home = tmp_path / "nobody"
    home.mkdir()
    subprocess.run(["chown", "-R", "65534:65534", car.folder, home], check=True)
    for path in (car.folder.parent, car.folder.parent.parent):
        path.chmod(0o755)
    with bluetoothd():
        for position in ("open", "close"):
            # bluetoothd ends a connection 2 s after it was asked to, and finds the vehicle's name again after that.
            time.sleep(5)
            words = (STEPCTL, position, "left", "--radio", "bluez:hci1", "-v", "--timeout", "30", "--vehicle", alice.file)
            ended = car.starts("stepctl-nobody", "env", f"HOME={home}", *NOBODY, *words).ends()
            assert ended.status == 0 and "Bluetooth, straight to the vehicle" in ended.stderr, ended
    assert car.motions == [("left", "close", "open"), ("left", "open", "close")]


# --- Riders ---


@pytest.mark.parametrize("own", ["static", "public", "resolvable"])
def test_every_kind_of_address_is_served(car, tmp_path, own):
    air = Air(car, tmp_path, peers=1)
    starts(car)
    alice = car.rider("alice")
    (told,) = says(air.peer(0, alice, "open", "--own", own))
    assert (told["position"], told["phase"]) == ("open", "idle"), told


# --- Who is stopped, or comes too often ---


def test_a_vehicle_that_was_stopped_for_a_minute_goes_on(car, tmp_path):
    Air(car, tmp_path, peers=0)
    starts(car)
    alice = car.rider("alice")
    os.kill(car.stepd.process.pid, signal.SIGSTOP)
    asked = alice.types("status", "--via", "hci1", "--timeout", "5")
    assert asked.status == 69 and "linked" not in asked.stdout, asked
    time.sleep(55)
    os.kill(car.stepd.process.pid, signal.SIGCONT)
    opens_and_closes(alice, "--via", "hci1", "--timeout", "20")


def test_a_rider_who_was_stopped_for_a_minute_moves_nothing_late(car, tmp_path):
    """The challenge is over when the rider's program wakes up. In that minute the vehicle's address stays, as its name."""
    air = Air(car, tmp_path, peers=0)
    quarter = time.time() // 900
    starts(car)
    alice = car.rider("alice")
    opening = alice.starts_to_move("open", "left", "--via", "hci1", "-v", "--timeout", "20")
    opening.says("linked by Bluetooth")
    os.kill(opening.process.pid, signal.SIGSTOP)
    time.sleep(60)
    os.kill(opening.process.pid, signal.SIGCONT)
    ended = opening.ends()
    assert (ended.status == 0) == (car.motions == [("left", "close", "open")]), (ended, car.motions)
    # LE Set Advertising Set Random Address (Core 5.4, Vol 4, Part E, 7.8.52)
    addresses = len(re.findall(r"^\S+ 0 cmd 2035 e7", air.log.read_text(), re.MULTILINE))
    assert addresses == 1 + time.time() // 900 - quarter


def test_a_thousand_connections_of_a_stranger_wear_nothing_out(car, tmp_path):
    air = Air(car, tmp_path, peers=1)
    starts(car)
    alice = car.rider("alice")
    opens_and_closes(alice, "--via", "hci1")
    before = descriptors(car)
    (*_, end) = says(air.peer(0, alice, "connect", "--times", 1000, "--seconds", 600), patience=620)
    assert end["links"] == 1000 and end["heard"] == 0, end
    opens_and_closes(alice, "--via", "hci1")
    wait_until(lambda: descriptors(car) <= before + 1, "nothing is left of them")


def descriptors(car: Vehicle) -> int:
    return len(os.listdir(f"/proc/{car.stepd.process.pid}/fd"))
