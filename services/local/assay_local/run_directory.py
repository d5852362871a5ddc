"""`<data>/run`: allow one `assay up` at a time, and clean up after one that was killed.

The lock is a kernel lock (flock), so it ends with the process. The list of processes has the pid, start time and program of each, so that a
pid that was reused by another process is never signalled.
"""

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from assay_access.secrets import make_private, write_private
from assay_operations.errors import OperationError

#: Maximum difference between two readings of the same start time, in seconds: the clock may be set in between.
_START_TOLERANCE_S = 1.0
_GRACE_S = 5.0


class RunDirectory:
    """Lock and process list of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes = directory / "processes.json"
        self._lock: int | None = None

    def lock(self) -> None:
        """Take the lock until this process ends. Raises `OperationError` with the pid of its holder."""
        make_private(self._directory)
        path = self._directory / "lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise OperationError(
                "conflict",
                f"another `assay up` (pid {holder}) is using {self._directory.parent}; stop it with: kill {holder}, "
                "or choose another directory with --data",
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor

    def unlock(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def record(self, pids: Mapping[str, int]) -> None:
        """Record the running processes for `clean_up` of the next start."""
        entries = []
        for name, pid in pids.items():
            try:
                process = psutil.Process(pid)
                entries.append({"name": name, "pid": pid, "started": process.create_time(), "program": process.exe()})
            except psutil.Error:
                continue  # it has just exited
        with contextlib.suppress(OSError):  # a full disk must not stop the supervision of the processes
            write_private(self._processes, json.dumps(entries) + "\n")

    def clean_up(self) -> list[str]:
        """End the processes that a killed `assay up` left running, and wait for those that are exiting.

        Returns a description of each ended process.
        """
        left = [(entry["name"], process) for entry in self._entries() for process in _still_running(entry)]
        for _, process in reversed(left):
            _signal(process, signal.SIGTERM)
        _, stubborn = psutil.wait_procs([process for _, process in left], timeout=_GRACE_S)
        for process in stubborn:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(stubborn, timeout=_GRACE_S)
        write_private(self._processes, "[]\n")
        return [f"{name} (pid {process.pid})" for name, process in left]

    def _entries(self) -> list[dict[str, Any]]:
        try:
            entries = json.loads(self._processes.read_text())
            return [entry for entry in entries if {"name", "pid", "started", "program"} <= entry.keys()]
        except (OSError, ValueError, AttributeError, TypeError):
            return []  # no list, or one truncated by a full disk


def _still_running(entry: Mapping[str, Any]) -> list[psutil.Process]:
    """Return the recorded process if it still runs, else members of its process group that outlived it."""
    try:
        process = psutil.Process(entry["pid"])
        if _is(process, entry) and abs(process.create_time() - entry["started"]) <= _START_TOLERANCE_S:
            return [process]
        return []  # the pid was reused
    except psutil.Error:
        return [process for process in _own_processes() if _group(process) == entry["pid"] and _is(process, entry)]


def _is(process: psutil.Process, entry: Mapping[str, Any]) -> bool:
    try:
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and process.uids().real == os.getuid()
            and process.exe() == entry["program"]
            and process.create_time() >= entry["started"] - _START_TOLERANCE_S
            and process.create_time() <= time.time() + _START_TOLERANCE_S
        )
    except psutil.Error:
        return False


def _own_processes() -> Iterable[psutil.Process]:
    return psutil.process_iter()


def _group(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid)
    except OSError:
        return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)  # psutil checks that the pid is still the same process
