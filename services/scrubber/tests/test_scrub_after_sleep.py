"""A machine that slept: its clocks stood still, and Redis went on."""

import time

import orjson
import pytest

from assay_runtime import entries
from assay_runtime.clock import RedisClock
from assay_runtime.entries import Entry
from assay_schema.ids import new_event_id
from assay_schema.published import examples
from assay_schema.settings import Settings
from assay_scrubber.app import build
from tests.support.redis import RedisServer

DAYS = 3


async def test_what_comes_right_after_a_machine_slept_is_dated_by_redis(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the chore asks for the time again, an arrival looks days ahead, and more than one day ahead is refused."""
    late = RedisClock()
    late.set(int(time.time()) - DAYS * 86_400, 0)
    for module in ("entries", "service"):
        monkeypatch.setattr(f"assay_runtime.{module}.clock", late)
    service = build(Settings.model_validate({"redis": {"url": redis_server.url}, "scrubber": {"port": 0}}))
    [consumer] = service.consumers
    event = orjson.loads(
        next(each for each in examples("capture") if b'"retrieval"' in each.document_bytes).document_bytes
    )
    data = orjson.dumps(event | {"event_id": new_event_id()})
    with redis_server.client() as client:
        entry = Entry(client.xadd("assay:{0}:capture", {"data": data}).decode(), data)
    assert entries.seems_ahead([entry])
    [outcome] = await consumer._process([entry])
    assert outcome.failure is None
    assert outcome.event is not None
    created_at = orjson.loads(b"{" + outcome.event[1:])["created_at"]
    assert created_at[:10] == time.strftime("%Y-%m-%d", time.gmtime(int(entry.id.split("-")[0]) / 1000))
    await service.client.aclose()
