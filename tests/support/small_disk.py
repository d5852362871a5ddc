"""Mount a disk that can be full: a tmpfs of so many bytes. Needs the right to mount, and no program."""

import ctypes
import os
from pathlib import Path

_DETACH = 2


def mount(folder: Path, size: int) -> None:
    """Mount a disk. Raises `OSError`, usually because the process lacks the right to mount."""
    _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), b"size=%d" % size)


def unmount(folder: Path) -> None:
    """Unmount the disk as soon as none of its files is open."""
    _call("umount2", os.fsencode(folder), _DETACH)


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(
        None, use_errno=True
    )  # macOS names the functions differently, and the call then reports that it is not permitted
    function = getattr(libc, name, None)
    if function is None:
        raise PermissionError(name)
    if function(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
