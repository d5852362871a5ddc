"""Fixtures for every package's tests."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.redis_server import RedisServer

# A runner in the background of a shell, or under nohup, hands down ignored signals, and every process a test starts would ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test asserts a duration: a busy machine is not a defect.
settings.register_profile("assay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("assay")


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
