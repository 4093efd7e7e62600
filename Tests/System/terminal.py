"""A terminal of a program's own, and what it drew there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from programs import wait_until

# DEC's and xterm's private modes: the alternate screen, the cursor, the wrapping of lines.
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l\x1b[?7l", b"\x1b[?7h\x1b[?25h\x1b[?1049l"


class Terminal:
    """A program with a terminal of its own, and all that it wrote there."""

    def __init__(self, arguments: list, environment: dict, rows: int = 24, columns: int = 80):
        self.written = b""
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self.resize(rows, columns)
        # A session of its own: keys on this terminal signal this program. A job in the background ignores some signals,
        # and the tests may be one.
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "env", "--default-signal", *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"TERM": "xterm"} | environment,
        )
        os.close(slave)

    def resize(self, rows: int, columns: int):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def types(self, keys: bytes):
        os.write(self._master, keys)

    @property
    def shows_what_is_typed(self) -> bool:
        """As a terminal does, line by line."""
        usual = termios.ECHO | termios.ICANON
        return termios.tcgetattr(self._master)[3] & usual == usual

    def read(self) -> bytes:
        try:
            while chunk := os.read(self._master, 65536):
                self.written += chunk
        except (BlockingIOError, OSError):  # EIO: the program has ended
            pass
        return self.written

    @property
    def frame(self) -> list[str]:
        """The lines of the last frame that was drawn to its end, without attributes."""
        frames = self.read().split(b"\x1b[H")[1:]
        whole = [frame.partition(b"\x1b[J")[0] for frame in frames if b"\x1b[J" in frame]
        return re.sub(r"\x1b\[[0-9;]*[mK]|\r", "", whole[-1].decode()).split("\n") if whole else []

    def shows(self, text: str) -> list[str]:
        return wait_until(lambda: text in "\n".join(self.frame) and self.frame, f"it shows {text!r}: {self.frame}")

    def waits_for(self, text: bytes):
        """Until it has been written, wherever that is."""
        wait_until(lambda: text in self.read(), f"it writes {text!r}: {self.written!r}")

    def ends(self) -> int:
        # A terminal holds some kilobytes that nobody has read, and then its program waits.
        wait_until(lambda: (self.read(), self.process.poll())[1] is not None, "it ends")
        self.read()
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        self.hang_up()

    def hang_up(self):
        if self._master is not None:
            os.close(self._master)
        self._master = None
