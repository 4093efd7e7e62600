"""Controllers that hear each other and connect, on an air with distances (Rig/air.c), in a kernel of their own."""

import sys

from programs import REPOSITORY, wait_until
from vehicle import Vehicle

LINK = REPOSITORY / "Tests/Peers/link.py"
AIR = REPOSITORY / ".build/rig/air"


def takes_links(vehicle: Vehicle) -> Vehicle:
    """With the first adapter."""
    with open(vehicle.folder / "stepd.toml", "a") as file:
        file.write('\n[link]\nadapter = "hci0"\n')
    return vehicle


def starts(vehicle: Vehicle):
    """Without any broker, if none runs."""
    vehicle.launches_stepd().says("can be found by Bluetooth")
    vehicle.stepd.says("takes riders' Bluetooth links")


class Air:
    """The vehicle has the first controller. It is an adapter of the machine, as the next ones are; the last are Bumble's."""

    def __init__(self, vehicle: Vehicle, folder, *options: str, peers: int = 2, adapters: int = 2):
        self.vehicle, self.folder, self.orders = vehicle, folder, folder / "orders"
        ports = [f"vhci{options[0] if options else ''}"] + ["vhci"] * (adapters - 1)
        ports += [f"unix:{folder / f'peer{n}'},addr=02:00:C0:5E:00:3{n}" for n in range(peers)]
        ready = folder / "ready"
        self.log = folder / "air.log"
        vehicle.starts("air", AIR, "--ctl", self.orders, "--log", self.log, "--ready", ready, *ports)
        wait_until(lambda: ready.exists() and ready.read_text(), "the controllers")
        for adapter in (f"hci{number}" for number in range(adapters)):
            wait_until(lambda: vehicle.starts("up", "hciconfig", adapter, "up").ends().status == 0, adapter)

    def does(self, *order):
        """As `far 0 2`: tests/Rig/air.c has the words."""
        with open(self.orders, "w") as orders:
            orders.write(" ".join(map(str, order)) + "\n")

    def peer(self, number: int, rider, what: str, *arguments):
        words = ("--vehicle", rider.file, "--address", f"C0:DE:C0:DE:00:0{number}", *arguments)
        transport = f"unix:{self.folder / f'peer{number}'}"
        return self.vehicle.starts(f"peer{number}", sys.executable, "-W", "ignore", LINK, transport, what, *words)
