"""Run a producer with one event, for tests of the way from it to the store."""

from pathlib import Path

from assay_capture import Capture
from assay_capture.stats import CaptureStats
from assay_schema.settings import CaptureSettings, RedisSettings, Settings


def captured(redis: RedisSettings, spool: Path, query: str) -> CaptureStats:
    """Capture one retrieval of the slug `a/b`, end the producer, and return its counts."""
    capture = Capture(
        Settings(redis=redis, capture=CaptureSettings(spool_dir=spool, exit_deadline_s=60)),
        service="shop",
        enabled=True,
    )
    capture.retrieval(
        tool_name="search",
        query=query,
        retrieved_slugs=["a/b"],
        retrieved_chunk_ids=[1],
        source_ids=["docs"],
        latency_ms=1.0,
    )
    capture.flush(60)
    capture.close()
    return capture.stats()
