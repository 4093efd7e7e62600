"""What a test in another process does to a chip: a line by a Unix socket, answered with a line of JSON.

remove           the tag is taken away
place            and is put down again
swap HEX         another tag of the same model, with this UID, empty, is there instead
fault TEXT       as --fault
clear            forgets all faults
unplug, plug     the port goes, and comes back
counts           {"commands", "bytes_in", "bytes_out", "tag_commands", "writes"} since the start
zero             begins to count anew
image            {"image": hex}, what the tag holds
"""

import json
import socketserver
import threading
from pathlib import Path


class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            answer = self.server.does(line.decode(errors="replace"))
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class Control(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, chip, path: Path):
        super().__init__(str(path), Lines)
        self._chip, self._path = chip, path

    def __enter__(self) -> "Control":
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self._path.unlink()

    def does(self, line: str) -> dict:
        """What was asked for; the answer is empty where there is nothing to tell."""
        chip = self._chip
        word, _, rest = line.strip().partition(" ")
        plain = (chip.remove, chip.place, chip.clear, chip.zero, chip.unplug, chip.plug)
        tells = {
            "counts": chip.counts,
            "image": lambda: {"image": chip.tag.content().hex() if chip.tag else ""},
            "fault": lambda: chip.fault(rest),
            "swap": lambda: chip.fault(f"swap={rest}"),
        } | {action.__name__: action for action in plain}
        if word not in tells:
            return {"error": f"no such command: {word}"}
        try:
            return tells[word]() or {}
        except ValueError as problem:
            return {"error": str(problem)}
