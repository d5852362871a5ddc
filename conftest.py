"""Fixtures for every package's tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer

# A runner in the background of a shell, or under nohup, hands down ignored signals, and every process a test starts would ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def redis_binary() -> str | None:
    """Which redis-server to run; None is the one that `assay up` would take."""
    return None


@pytest.fixture
def redis_server(tmp_path: Path, redis_binary: str | None) -> Iterator[RedisServer]:
    """A real Redis with an append-only file, gone after the test."""
    directory = tmp_path / "redis"
    directory.mkdir()
    server = RedisServer(directory, binary=redis_binary).start()
    yield server
    server.stop()
