"""AES-128 as NXP's tags use it (NT4H2421Gx, 9.1.3 and 9.1.4)."""

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC


def cbc(key: bytes, data: bytes, iv: bytes = bytes(16), decrypt: bool = False) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.CBC(iv))
    work = cipher.decryptor() if decrypt else cipher.encryptor()
    return work.update(data) + work.finalize()


def cmac(key: bytes, data: bytes) -> bytes:
    work = CMAC(algorithms.AES(key))
    work.update(data)
    return work.finalize()


def short_mac(key: bytes, data: bytes) -> bytes:
    """The CMAC's even-numbered bytes, counted from 1 (9.1.3)."""
    return cmac(key, data)[1::2]


def padded(data: bytes) -> bytes:
    """ISO/IEC 9797-1, method 2."""
    data += b"\x80"
    return data + bytes(-len(data) % 16)


def unpadded(data: bytes) -> bytes:
    stripped = data.rstrip(b"\0")
    if stripped[-1:] != b"\x80":
        raise ValueError("there is no padding")
    return stripped[:-1]
