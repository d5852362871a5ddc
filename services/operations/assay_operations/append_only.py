"""Private files to which several processes append lines."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from assay_access.secrets import make_private
from assay_runtime.private import opener


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open a private file, alone among the processes of this host. Yields its descriptor."""
    make_private(path.parent)
    descriptor = opener(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not os.fstat(descriptor).st_size:  # perhaps new: its name is on disk too before a line is
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        yield descriptor
    finally:
        os.close(descriptor)


def lines_of(descriptor: int) -> list[bytes]:
    """Return the lines of a file."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).splitlines()


def append_line(descriptor: int, line: bytes) -> None:
    """Append a whole line to a file, or nothing; it is on disk when this returns."""
    end = os.fstat(descriptor).st_size
    if end and os.pread(descriptor, 1, end - 1) != b"\n":  # a power cut left half a line
        line = b"\n" + line
    written = 0
    try:
        written = os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        if written < len(line):
            os.ftruncate(descriptor, end)
    if written < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
