"""What `assay up` says waits in Redis: what Redis can say, and never zero for what it cannot."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from assay_cli.observe import Lag, lag
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD
from tests.redis_server import RedisServer, oldest_redis_binary, redis_binary


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path, binary=request.param()).start()
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


@pytest.mark.parametrize("server", [oldest_redis_binary], indirect=True, ids=["6.2"])
def test_a_redis_that_does_not_count_unread_entries_leaves_the_lag_unknown(server: RedisServer) -> None:
    fill(server)
    found = measured(server)
    assert (found.capture, found.events, found.failures) == (3, None, None)
    assert str(found) == "capture 3, events unknown, failures unknown"


@pytest.mark.parametrize("server", [redis_binary], indirect=True, ids=["newest"])
def test_the_lag_holds_unread_and_unfinished_entries(server: RedisServer) -> None:
    with server.client() as client:
        if tuple(map(int, client.info("server")["redis_version"].split(".")[:2])) < (7, 0):
            pytest.skip("Redis counts unread entries from 7.0 on; install redis-server")
    fill(server)
    assert str(measured(server)) == "capture 3, events 4, failures 0"


@pytest.mark.parametrize("server", [oldest_redis_binary, redis_binary], indirect=True, ids=["6.2", "newest"])
def test_before_there_is_any_stream_nothing_waits(server: RedisServer) -> None:
    assert str(measured(server)) == "capture 0, events 0, failures 0"
