"""Adapters that hear each other: air.py as a program beside the test."""

import subprocess
import sys
from pathlib import Path

from programs import wait_until
from rig import IS_KERNEL

AIR = Path(__file__).with_name("air.py")


class Air:
    """Its adapters have names. In a kernel that has Bluetooth they are adapters of the machine."""

    def __init__(self, folder: Path, *names: str):
        # A local socket's path has 107 bytes.
        self.folder, self.names = folder, names
        self.vehicle = self.process = None

    def radio(self, name: str) -> str:
        return f"hci{self.names.index(name)}" if IS_KERNEL else f"h4:unix:{self.folder / name}"

    def starts(self, *arguments, **levels: int) -> "Air":
        """It ends with its vehicle. `left_rider=-50`: how the rider hears the left one, in dBm."""
        for name in self.names:
            (self.folder / name).unlink(missing_ok=True)
        adapters = [f"{name}={'vhci' if IS_KERNEL else f'unix-server:{self.folder / name}'}" for name in self.names]
        pairs = [f"{pair.replace('_', ':')}={level}" for pair, level in levels.items()]
        options = [word for pair in pairs for word in ("--level", pair)]
        self.process = self.vehicle.starts("air", sys.executable, AIR, *adapters, *options, *arguments)
        self.process.says("air: ready")
        if IS_KERNEL:
            for name in self.names:
                wait_until(lambda: self.up(name), f"{name} is up")
        return self

    def up(self, name: str) -> bool:
        return subprocess.run(["hciconfig", self.radio(name), "up"], capture_output=True).returncode == 0
