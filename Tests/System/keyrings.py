"""The kernel's keyrings, by their system calls (add_key(2), keyctl(2)): the C library has no functions for them.

    keyrings.py login PROGRAM ...           a program in a login session of its own
    keyrings.py refuse ENOSYS PROGRAM ...   a program whose kernel, or sandbox, has no keyrings for it
    keyrings.py forbid PROGRAM ...          a program that SIGSYS ends if it asks for a keyring
    keyrings.py read NAME USER              a key's secret, read in this session by another user
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h; AUDIT_ARCH_… of linux/audit.h.
_ADD_KEY, _REQUEST_KEY, _KEYCTL, _ARCHITECTURE = {
    "x86_64": (248, 249, 250, 0xC000003E),
    "aarch64": (217, 218, 219, 0xC00000B7),
}[platform.machine()]
# linux/keyctl.h
_GET_KEYRING_ID, _JOIN_SESSION_KEYRING, _SEARCH, _READ, _SESSION = 0, 1, 10, 11, -3
# linux/prctl.h, linux/seccomp.h, linux/filter.h
_SET_SECCOMP, _SET_NO_NEW_PRIVS, _FILTER, _ALLOW, _ERRNO, _KILL = 22, 38, 2, 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06

_libc = ctypes.CDLL(None, use_errno=True)


def _system(number: int, *arguments) -> int:
    """Throws for -1."""
    result = _libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def are_there() -> bool:
    """Not in every container."""
    try:
        return _system(_KEYCTL, _GET_KEYRING_ID, _SESSION, 0) > 0
    except OSError:
        return False


def login():
    """This thread, and what it starts from now on, is in a session that has an empty keyring."""
    _system(_KEYCTL, _JOIN_SESSION_KEYRING, None)


def read(name: str) -> bytes:
    """The secret that this session has under a name."""
    key = _system(_KEYCTL, _SEARCH, _SESSION, b"user", name.encode(), 0)
    secret = ctypes.create_string_buffer(256)
    size = _system(_KEYCTL, _READ, key, secret, len(secret))
    return secret.raw[:size]


def refuse(code: int | None):
    """The calls for keys fail from now on, here and in what is started here (seccomp(2)); without a code they kill."""
    calls = [_ADD_KEY, _REQUEST_KEY, _KEYCTL]
    lines = [(_LOAD, 0, 0, 4), (_JUMP_IF_EQUAL, 1, 0, _ARCHITECTURE), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, 0)]
    lines += [(_JUMP_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _KILL if code is None else _ERRNO | code)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(filters)))
    for option, *values in ((_SET_NO_NEW_PRIVS, 1, 0), (_SET_SECCOMP, _FILTER, ctypes.addressof(program))):
        if _libc.prctl(option, *map(ctypes.c_ulong, values), ctypes.c_ulong(0), ctypes.c_ulong(0)) == -1:
            raise OSError(ctypes.get_errno(), "prctl")


def main(action: str, *rest: str):
    match action:
        case "login":
            login()
        case "forbid":
            refuse(None)
        case "refuse":
            code, *rest = rest
            refuse(getattr(errno, code))
        case "read":
            name, user = rest
            os.setgroups([])
            os.setresgid(int(user), int(user), int(user))
            os.setresuid(int(user), int(user), int(user))
            try:
                print(read(name).hex())
            except OSError as error:
                sys.exit(errno.errorcode[error.errno])
            return
    os.execvp(rest[0], rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
