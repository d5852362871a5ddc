"""One store process per data directory."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message gives the reason and the fix."""


class DirectoryLock:
    """An advisory lock on `DIR/store.lock`, which contains the owner's process id.

    The kernel releases it when its holder dies, so there are no stale locks.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / "store.lock"
        self._data = data
        self._descriptor: int | None = None

    def take(self) -> None:
        """Create the directory if needed and lock it.

        Raises:
            DataDirectoryError: it cannot be made or written, or another process holds it.
        """
        try:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            if failure.errno == errno.ELOOP:
                raise DataDirectoryError(
                    f"{self._path} is a symbolic link, and to lock it would empty the file it leads to: remove it"
                ) from failure
            raise DataDirectoryError(
                f"data directory {self._data} cannot be written ({failure.strerror}): make it writable or pass another with --data"
            ) from failure
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(descriptor)
            raise DataDirectoryError(
                f"{self._path} is not a regular file with a single name, and to lock it would empty it: remove it"
            )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise DataDirectoryError(
                f"data directory {self._data} is in use by the store with process id {holder}: "
                f"use that store, stop it (kill {holder}), or pass another directory with --data"
            ) from failure
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the directory."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
