"""What `assay up` says waits in Redis: what Redis can say, and never zero for what it cannot."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from assay_local.probes import Lag, lag
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401


@pytest.fixture
def server(tmp_path: Path, redis_binary: str) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, binary=redis_binary).start()
    yield server
    server.stop()


def measured(server: RedisServer) -> Lag:
    async def measure() -> Lag:
        client = Redis(port=server.port)
        try:
            return await lag(client, 1)
        finally:
            await client.aclose()

    return asyncio.run(measure())


def fill(server: RedisServer) -> None:
    """Three entries captured, two of them being scrubbed; four events, one being written; no failure yet."""
    with server.client() as client:
        for stream, entries, read in ((CAPTURE, 3, 2), (EVENTS, 4, 1)):
            for _ in range(entries):
                client.xadd(stream.key(), {FIELD: "{}"})
            client.xgroup_create(stream.key(), stream.groups[0], "0")
            client.xreadgroup(stream.groups[0], "c", {stream.key(): ">"}, count=read)
        client.xgroup_create(FAILURES.key(), FAILURES.groups[0], "0", mkstream=True)


def test_the_lag_holds_unread_and_unfinished_entries(server: RedisServer) -> None:
    fill(server)
    assert str(measured(server)) == "capture 3, events 4, failures 0"


def test_before_there_is_any_stream_nothing_waits(server: RedisServer) -> None:
    assert str(measured(server)) == "capture 0, events 0, failures 0"
