"""systemd, played by a socket."""

import socket
import time

from programs import PATIENCE, wait_until


class Manager:
    """systemd's end of sd_notify(3)."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.told: list[tuple[float, str]] = []

    def close(self):
        self.socket.close()

    def listens(self, seconds: float) -> list[str]:
        """What is said in that time."""
        end = time.monotonic() + seconds
        said = []
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                said.append(self.socket.recv(4096).decode())
            except TimeoutError:
                break
        return said

    def hears(self, word: str, patience: float = PATIENCE):
        wait_until(lambda: any(said.startswith(word) for said in self.listens(0.05)), word, patience)
