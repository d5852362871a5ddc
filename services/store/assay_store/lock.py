"""One store process per data directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message says why and what to do."""


class DirectoryLock:
    """An advisory lock on `DIR/store.lock`, which holds the owner's process id.

    The kernel drops it when its holder dies, however it dies, so a stale lock mends itself.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / "store.lock"
        self._data = data
        self._descriptor: int | None = None

    def take(self) -> None:
        """Make the directory if need be and lock it.

        Raises:
            DataDirectoryError: it cannot be made or written, or another process holds it.
        """
        try:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            raise DataDirectoryError(
                f"data directory {self._data} cannot be written ({failure.strerror}): make it writable or pass another with --data"
            ) from failure
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
        """Give the directory up."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
