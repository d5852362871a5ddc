"""Several installations on one machine: what was captured for one Redis is sent to that one, and to no other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_capture import Capture
from tests.support.redis import RedisServer


@pytest.fixture
def other_server(tmp_path: Path) -> Iterator[RedisServer]:
    (tmp_path / "other").mkdir()
    server = RedisServer(tmp_path / "other").start()
    yield server
    server.stop()


def spooled(make_capture: Any, retrieve: Any, url: str, *queries: str) -> None:
    """Leave events in the spool, as a process does that ends while its Redis is away."""
    producer: Capture = make_capture(url)
    for query in queries:
        retrieve(producer, query)
    producer.close(0)
    assert producer.stats().spooled == len(queries)


def queries(events: list[dict[str, Any]]) -> list[str]:
    return [event["payload"]["query"] for event in events]


def test_events_of_a_producer_that_died_go_to_its_own_redis_though_another_producer_shares_the_spool(
    make_capture: Any, redis_server: RedisServer, other_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    redis_server.kill()
    spooled(make_capture, retrieve, redis_server.url, *[f"card 4111 1111 1111 1111, {number}" for number in range(20)])
    staging: Capture = make_capture(other_server.url)
    retrieve(staging, "staging's own")
    staging.close(60)
    assert queries(arrived(other_server)) == ["staging's own"]
    redis_server.start()
    heir: Capture = make_capture(redis_server.url)
    retrieve(heir, "production's next")
    heir.close(60)
    assert len(arrived(redis_server)) == 21
    assert queries(arrived(redis_server))[-1] == "production's next"


def test_a_changed_user_password_or_shard_count_leaves_no_event_behind(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    redis_server.kill()
    spooled(make_capture, retrieve, redis_server.url, "before")
    redis_server.start()
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", "newcomer", "on", ">changed", "~*", "+@all")
    place = redis_server.url.partition("://")[2]
    heir: Capture = make_capture(f"redis://newcomer:changed@{place}", redis={"shards": 2})
    retrieve(heir, "after")
    heir.close(60)
    assert queries(arrived(redis_server) + arrived(redis_server, 1)) == ["before", "after"]


def test_events_for_an_address_that_is_no_more_are_sent_when_the_setting_names_it(
    make_capture: Any,
    redis_server: RedisServer,
    retrieve: Any,
    arrived: Any,
    spool_dir: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spooled(make_capture, retrieve, "redis://127.0.0.1:1/0", "before the move")
    [directory] = next(spool_dir.iterdir()).iterdir()
    first: Capture = make_capture(redis_server.url)
    retrieve(first, "after the move")
    assert first.flush(60)
    first.close(60)
    assert queries(arrived(redis_server)) == ["after the move"]
    assert f"set capture.spool_adopt (ASSAY_CAPTURE_SPOOL_ADOPT) to {directory.name}" in caplog.text
    second: Capture = make_capture(redis_server.url, spool_adopt=f"redis.of-long-ago, {directory.name}")
    retrieve(second, "with the setting")
    second.close(60)
    assert queries(arrived(redis_server))[1:] == ["before the move", "with the setting"]
