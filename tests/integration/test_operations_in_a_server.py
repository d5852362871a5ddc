"""Operations as a server calls them: in worker threads, while its event loop runs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from assay_operations.actor import Actor
from assay_operations.dead_letters import drop
from assay_operations.dead_letters.choose import Choice
from assay_operations.dead_letters.letters import Filter
from assay_operations.doctor.examine import examine
from assay_schema.streams import CAPTURE, DEAD, FIELD
from tests.support.cli import Cli
from tests.support.redis import RedisServer
from tests.support.store import StoreServer

ANA = Actor("ana", "server", "web")


@pytest.fixture
def data(tmp_path: Path, migrated: StoreServer, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    cli = Cli(tmp_path, store_url=migrated.url, redis_url=redis_server.url)
    monkeypatch.setenv("ASSAY_CONFIG", str(cli.settings_file("owner")))
    return tmp_path / "data"


@pytest.fixture
def root(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as client:
        yield client


async def test_a_running_event_loop_calls_operations_in_worker_threads(data: Path, root: redis.Redis) -> None:
    told = {"stream": CAPTURE.key(), "entry_id": "1-0", "stage": "scrubber", "reason": "other", "deliveries": "5"}
    root.xadd(DEAD.key(), {FIELD: b"{}", **told})
    chosen = Choice("drop", None, True, Filter())
    turns = 0

    async def serve_others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(serve_others())
    findings, plan = await asyncio.gather(
        asyncio.to_thread(examine, data), asyncio.to_thread(drop.plan_drop, data, chosen)
    )
    dropped = await asyncio.to_thread(drop.apply, plan, ANA)
    others.cancel()
    assert {"redis", "store", "schema"} <= {finding.check for finding in findings}
    assert (dropped, root.xlen(DEAD.key())) == (1, 0)
    assert turns > 1
