"""Run a command on a kernel that has no Landlock, as far as the command can tell: `python -m tests.security.without_landlock CMD...`.

A seccomp filter answers the three calls of Landlock with ENOSYS, for the program and its children, which
cannot take it off.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUALS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def hide_landlock() -> None:
    """From here on, calls 444 to 446 do not exist."""
    steps = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUALS, 0, 4, _ARCHITECTURES[platform.machine()]),
        (_LOAD, 0, 0, 0),  # the call's number
        (_AT_LEAST, 0, 2, 444),
        (_AT_LEAST, 1, 0, 447),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = _Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp is not available")


def main() -> None:
    """The command line."""
    command = sys.argv[1:]
    hide_landlock()
    os.execv(command[0], command)  # noqa: S606  # no shell, on purpose


if __name__ == "__main__":
    main()
