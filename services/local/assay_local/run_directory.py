"""`<data>/run`: one `assay up` at a time, and nothing left of one that was killed.

The lock is the kernel's (flock), so it ends with its holder. The list of processes names each by pid, start time and program: a pid that
has meanwhile gone to another process is never touched.
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

#: Start times of one process may differ by this many seconds between readings, when the clock was set in between.
_START_TOLERANCE_S = 1.0
_GRACE_S = 5.0


class RunDirectory:
    """The lock and the list of processes of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes = directory / "processes.json"
        self._lock: int | None = None

    def lock(self) -> None:
        """Take the lock until this process ends. Raises `OperationError` naming the holder."""
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
        """Give the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def record(self, pids: Mapping[str, int]) -> None:
        """Note the running processes for a successor."""
        entries = []
        for name, pid in pids.items():
            try:
                process = psutil.Process(pid)
                entries.append({"name": name, "pid": pid, "started": process.create_time(), "program": process.exe()})
            except psutil.Error:
                continue  # it has just ended
        with contextlib.suppress(OSError):  # a full disk must not end the watch over the processes
            write_private(self._processes, json.dumps(entries) + "\n")

    def clean_up(self) -> list[str]:
        """End what a killed predecessor left running, and wait for what is just ending. Returns a description of each process ended."""
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
            return []  # none, or cut off by a full disk: nothing to go by


def _still_running(entry: Mapping[str, Any]) -> list[psutil.Process]:
    """The recorded process if it is still that one, else members of its process group that outlived it."""
    try:
        process = psutil.Process(entry["pid"])
        if _is(process, entry) and abs(process.create_time() - entry["started"]) <= _START_TOLERANCE_S:
            return [process]
        return []  # the pid has gone to somebody else
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
