"""Start a real redis-server on a free loopback port, for tests and benchmarks."""

import os
import signal
import subprocess
import time
from pathlib import Path
from zlib import crc32

import pytest
import redis

from assay_local.preflight import bundled_redis, find_redis, redis_program
from tests.support.ports import free_port

#: The server that `assay up` uses here, and the bundled one if that is a different one.
INSTALLED = find_redis()
_BUNDLED = redis_program(bundled_redis() or INSTALLED.path) or INSTALLED
SERVERS = {"installed": INSTALLED} | ({"bundled": _BUNDLED} if _BUNDLED.path != INSTALLED.path else {})


#: Marks a test that must pass with each server.
EACH_SERVER = pytest.mark.parametrize("redis_binary", [server.path for server in SERVERS.values()], ids=list(SERVERS))


@pytest.fixture(name="redis_binary", params=[server.path for server in SERVERS.values()], ids=list(SERVERS))
def each_redis_binary(request: pytest.FixtureRequest) -> str:
    """Run every test of a module that imports this with each server."""
    binary: str = request.param
    return binary


def half(module: Path) -> int:
    """Return 0 for the half of all modules that the installed Redis runs, 1 for the one that the bundled one runs if there are both."""
    return crc32(module.name.encode()) % 2


def usual_binary(module: Path) -> str:
    """Return the Redis of a module's tests, the same in every run."""
    programs = [server.path for server in SERVERS.values()]
    return programs[half(module) % len(programs)]


class RedisServer:
    """A server with append-only files, as in production. `kill` is SIGKILL; `start` after it recovers from the log.

    The system decides when the log is written to disk: Redis's writes survive a kill of Redis, and only Redis is killed here. With
    `everysec`, the usual setting, acknowledged writes are not yet written while the disk is slow, and a kill then loses them.
    """

    #: Program of a server that names none: `conftest.py` gives each module one of `SERVERS`.
    usual_binary = INSTALLED.path

    def __init__(self, directory: Path, *options: str, binary: str | None = None) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._directory = directory
        self._options = options
        self._binary = binary or self.usual_binary
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "RedisServer":
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory)]
        command += [
            "--appendonly",
            "yes",
            "--appendfsync",
            "no",
            "--save",
            "",
            "--stream-node-max-bytes",
            "65536",
            *self._options,
        ]
        with (self._directory / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        with redis.Redis(port=self.port, socket_timeout=1) as client:
            while True:
                try:
                    client.ping()
                    return self
                except redis.AuthenticationError:
                    return self
                except redis.RedisError:
                    if time.monotonic() > deadline or self._process.poll() is not None:
                        raise RuntimeError((self._directory / "redis.log").read_text()[-2000:]) from None
                    time.sleep(0.02)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def client(self) -> "redis.Redis":
        return redis.Redis(port=self.port, socket_timeout=60)

    def kill(self, sig: int = signal.SIGKILL) -> None:
        if self._process and self._process.poll() is None:
            os.kill(self._process.pid, sig)
            if sig not in (signal.SIGSTOP, signal.SIGCONT):
                self._process.wait(60)

    def stop(self) -> None:
        self.kill(signal.SIGCONT)
        self.kill(signal.SIGKILL)
