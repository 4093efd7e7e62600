"""A car with an adapter for its diagnosis: PyPI's ELM327-emulator, at the speed that standard input says line by line.

obd_car.py PORT: at this TCP port of the loopback, or with "pty" on a pseudo-terminal; prints where. A line is a speed in
km/h, the hexadecimal digits of an answer, as "0x 7F 01 12", or "nothing": then the adapter does not answer.
"""

import os
import sys
import tempfile

from elm import Elm
from elm.obd_message import DT, HD, SZ

# The emulator logs into its working folder.
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
port = None if sys.argv[1] == "pty" else int(sys.argv[1])
car = Elm(batch_mode=True, net_port=port)
car.scenario = "car"
car.set_sorted_obd_msg()
# Its own thread opens a terminal as well, if there is none yet.
where = f"tcp:localhost:{port}" if port else car.get_pty()
with car:
    print(where, flush=True)
    for line in sys.stdin:
        said = line.strip()
        if said == "nothing":
            car.answer["SPEED"] = "<exec>None</exec>"
        else:
            data = said[3:] if said.startswith("0x ") else f"41 0D {int(said):02X}"
            car.answer["SPEED"] = HD("7E8") + SZ("03") + DT(data)
        print(f"now {said}", flush=True)
