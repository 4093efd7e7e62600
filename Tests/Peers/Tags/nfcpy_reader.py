"""nfcpy as another reader program on the chip."""

from contextlib import contextmanager

import nfc
import nfc.clf.pn532
import nfc.clf.transport


class PatientTTY(nfc.clf.transport.TTY):
    """A chip that is played may get no processor for longer than a real one takes."""

    def read(self, timeout: float):
        return super().read(50 * timeout)


@contextmanager
def opened(path: str):
    """nfcpy's frontend on the port; its own search for ports knows /dev/tty* only."""
    frontend = nfc.ContactlessFrontend()
    frontend.device = nfc.clf.pn532.init(PatientTTY(path))
    try:
        yield frontend
    finally:
        frontend.close()


def found(frontend) -> nfc.tag.Tag | None:
    """The tag that lies there, activated."""
    target = frontend.sense(nfc.clf.RemoteTarget("106A"))
    return target and nfc.tag.activate(frontend, target)
