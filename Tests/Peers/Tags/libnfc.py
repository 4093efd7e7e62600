"""The real libnfc: its tools, and the few of its calls that tests make (nfc/nfc.h and nfc/nfc-types.h, 1.8.0)."""

import ctypes
import ctypes.util
import os
import shutil
import subprocess
from contextlib import contextmanager

TOOLS = ("nfc-list", "nfc-mfultralight", "nfc-poll", "nfc-anticol")

IO, INVALID_ARGUMENT, TIME_OUT, RF_TRANSMISSION = -1, -2, -6, -20  # NFC_EIO, NFC_EINVARG, NFC_ETIMEOUT, NFC_ERFTRANS
INFINITE_SELECT, EASY_FRAMING = 7, 11  # nfc_property


class Modulation(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("rate", ctypes.c_int)]


TYPE_A_106 = Modulation(1, 1)


class Target(ctypes.Structure):
    """nfc_target, which is packed; of its union only what Type A has is named."""

    _pack_ = 1
    _fields_ = [
        ("atqa", ctypes.c_uint8 * 2),
        ("sak", ctypes.c_uint8),
        ("uid_length", ctypes.c_size_t),
        ("uid", ctypes.c_uint8 * 10),
        ("rest", ctypes.c_uint8 * 512),
    ]


def missing() -> str | None:
    """The library, or the first of its tools, that is not there."""
    return "libnfc" if library() is None else next((tool for tool in TOOLS if not shutil.which(tool)), None)


def run(connection: str, *command: str, typed: str = "") -> subprocess.CompletedProcess:
    """One of the tools with this reader."""
    environment = os.environ | {"LIBNFC_DEFAULT_DEVICE": connection, "LIBNFC_LOG_LEVEL": "0"}
    return subprocess.run(command, input=typed, env=environment, capture_output=True, text=True, timeout=60)


def library() -> ctypes.CDLL | None:
    os.environ.setdefault("LIBNFC_LOG_LEVEL", "0")
    name = ctypes.util.find_library("nfc")
    if not name:
        return None
    nfc = ctypes.CDLL(name)
    for function in ("nfc_open", "nfc_strerror"):
        getattr(nfc, function).restype = ctypes.c_void_p
    return nfc


class Device:
    def __init__(self, nfc: ctypes.CDLL, handle: int):
        self._nfc, self._handle = nfc, ctypes.c_void_p(handle)

    def select(self) -> bytes | None:
        """The UID of the tag that lies there."""
        self._nfc.nfc_device_set_property_bool(self._handle, INFINITE_SELECT, False)
        target = Target()
        found = self._nfc.nfc_initiator_select_passive_target(
            self._handle, TYPE_A_106, None, ctypes.c_size_t(0), ctypes.byref(target)
        )
        return bytes(target.uid[: target.uid_length]) if found > 0 else None

    def transceive(self, data: bytes) -> bytes | int:
        """The answer, or libnfc's error."""
        answer = ctypes.create_string_buffer(264)
        size = self._nfc.nfc_initiator_transceive_bytes(
            self._handle, data, ctypes.c_size_t(len(data)), answer, ctypes.c_size_t(len(answer)), 1000
        )
        return answer.raw[:size] if size >= 0 else size

    def easy_framing(self, on: bool):
        self._nfc.nfc_device_set_property_bool(self._handle, EASY_FRAMING, on)


@contextmanager
def opened(connection: str):
    nfc = library()
    context = ctypes.c_void_p()
    nfc.nfc_init(ctypes.byref(context))
    handle = nfc.nfc_open(context, connection.encode())
    try:
        if not handle:
            raise OSError(f"libnfc does not open {connection}")
        nfc.nfc_initiator_init(ctypes.c_void_p(handle))
        yield Device(nfc, handle)
    finally:
        if handle:
            nfc.nfc_close(ctypes.c_void_p(handle))
        nfc.nfc_exit(context)
