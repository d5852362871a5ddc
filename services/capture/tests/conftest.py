"""Fixtures of the SDK's tests: captures that end with the test, and what arrived in Redis."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_capture import Capture
from assay_schema.settings import Settings
from assay_schema.streams import CAPTURE
from tests.support.redis import RedisServer

MakeCapture = Callable[..., Capture]


@pytest.fixture
def spool_dir(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def make_capture(spool_dir: Path) -> Iterator[MakeCapture]:
    """A capture that is on, with its spool in the test's directory; any setting of the section can be given.

    A Redis that is away is refused at once, so the time-outs are long: on a busy machine a short one would pass, and events be sent again.
    """
    made: list[Capture] = []

    def make(url: str, *, redis: dict[str, Any] | None = None, **settings: Any) -> Capture:
        sections = {
            "redis": {"url": url, "connect_timeout_s": 60.0, "command_timeout_s": 60.0, **(redis or {})},
            "capture": {"spool_dir": spool_dir, "flush_interval_ms": 5, **settings},
        }
        made.append(Capture(Settings.model_validate(sections), service="tests", enabled=True))
        return made[-1]

    yield make
    for capture in made:
        capture.close(0)


@pytest.fixture
def retrieve() -> Callable[..., str]:
    """Capture one retrieval with given fields over plain ones; returns its event_id."""

    def capture_one(capture: Capture, query: Any = "how long are rows kept?", **fields: Any) -> str:
        plain = {"tool_name": "query", "retrieved_slugs": ["a"], "retrieved_chunk_ids": [1], "latency_ms": 1.5}
        return capture.retrieval(query=query, **{**plain, **fields})

    return capture_one


@pytest.fixture
def arrived() -> Callable[..., list[dict[str, Any]]]:
    """The events in a shard's capture stream, in order."""

    def read(server: RedisServer, shard: int = 0) -> list[dict[str, Any]]:
        with server.client() as client:
            return [orjson.loads(fields[b"data"]) for _, fields in client.xrange(CAPTURE.key(shard))]

    return read


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until a condition holds; fail, showing what `shown` gives, if it does not within `seconds`."""

    def wait(condition: Callable[[], bool], shown: Callable[[], Any] = lambda: None, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {shown()!r}"
            time.sleep(0.01)

    return wait
