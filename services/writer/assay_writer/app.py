"""The writer service: stores `events`, `failures` and `scores`, and maintains the watermark.

Delivery: entries are acknowledged last, so at least once, into tables that show each event once. While the store is
away, reading pauses and events wait in Redis.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.dead_letters import Expiry
from assay_runtime.entries import Bounds, Entry, Outcome, Process, acquit
from assay_runtime.finishing import settle_finish
from assay_runtime.service import Service, main
from assay_runtime.tracing import link
from assay_schema.alerts import Alert
from assay_schema.events import ScrubbedEvent
from assay_schema.failures import Failure
from assay_schema.scores import Score
from assay_schema.settings import Settings
from assay_schema.streams import ALERTS, EVENTS, FAILURES, SCORES, Stream
from assay_writer.batch import Batch
from assay_writer.batch import batches as sorted_rows
from assay_writer.inbox import Inbox
from assay_writer.rows import EVENT_TABLES, Row, alert_row, event_row, failure_row, score_row
from assay_writer.sink import SILENCE_S, STAGE, Sink
from assay_writer.watermarks import Watermarks

#: Rows per batch whose latency from capture to store is measured.
MEASURED_ROWS = 100
_TRACEPARENT = re.compile(rb'"traceparent":"([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})"')
DOCUMENTS: dict[Stream, tuple[Any, Callable[[bytes], Row]]] = {
    EVENTS: (ScrubbedEvent, event_row),
    FAILURES: (Failure, failure_row),
    SCORES: (Score, score_row),
    ALERTS: (Alert, alert_row),
}
#: Streams that are trimmed as soon as their entries are stored.
TRIMMED = tuple(stream for stream in DOCUMENTS if stream is not EVENTS)


class Writer:
    """The work of the service, with its sink."""

    def __init__(self, service: Service, sink: Sink) -> None:
        self._service = service
        self._sink = sink
        self.watermarks = Watermarks(service, sink, TRIMMED)

    def process(self, shard: int, stream: Stream, to_row: Callable[[bytes], Row]) -> Process:
        """Return the handler of one shard of a stream."""

        async def write(entries: Sequence[Entry]) -> list[Outcome]:
            link(traceparents(entries))
            if stream is EVENTS:
                self.watermarks.reading(shard, entries)
            batches, poison = await asyncio.to_thread(sorted_rows, entries, to_row)
            await acquit()
            outcomes = await asyncio.to_thread(self._sink.write, entries, batches, poison)
            if stream is EVENTS:
                self.watermarks.written(shard, entries)
            for batch in batches:
                _measure(batch)
            return outcomes

        return write

    def problems(self) -> list[str]:
        """List the reasons why the writer is not ready, whether busy or idle."""
        return [f"the store is away: no request has succeeded for {SILENCE_S:.0f} s"] if self._sink.silent else []

    async def show_sink(self) -> None:
        """Report for each stream whether the sink accepts batches."""
        for stream in DOCUMENTS:
            taking = all(each.sink_up for each in self._service.consumers if each.stream is stream)
            metrics.SINK_UP.labels(stream.name).set(taking and not self._sink.silent)


def traceparents(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the trace contexts of a batch's events, found without decoding them."""
    for entry in entries:
        if found := _TRACEPARENT.search(entry.data):
            yield found[1].decode()


def _measure(batch: Batch) -> None:
    if batch.table not in EVENT_TABLES:
        return
    now = clock.now_ms() / 1_000
    for identity in batch.identities[:: len(batch) // MEASURED_ROWS + 1]:
        event_id = identity.partition(":")[2]
        with contextlib.suppress(ValueError):  # not a UUID: the store has rejected it, and its failure states that
            metrics.CAPTURE_TO_STORED.observe(max(0.0, now - int(event_id[:8] + event_id[9:13], 16) / 1000))


def build(settings: Settings) -> Service:
    """Build the service, ready to run."""
    service = Service(STAGE, settings, settings.writer.port)
    sink = Sink(settings.store)
    writer = Writer(service, sink)
    bounds = Bounds(settings.writer.batch_rows, settings.writer.batch_bytes, settings.writer.batch_age_ms / 1000)
    for shard in range(settings.redis.shards):
        for stream, (document, to_row) in DOCUMENTS.items():
            service.consume(
                stream,
                shard,
                process=writer.process(shard, stream, to_row),
                finish=settle_finish(service.client, stream, STAGE, shard, settings.delivery.dead_bytes),
                bounds=bounds,
                document=document,
            )
    for shard in range(settings.redis.shards):
        service.every_tick(partial(writer.watermarks.keep, shard))
        service.every_tick(Inbox(service.client, shard).empty)
    service.needs(writer.problems)
    service.every_tick(writer.show_sink)
    service.notes(writer.watermarks.problems)
    service.every_tick(Expiry(service.client, settings).run)
    service.at_exit(sink.close)
    return service


def run() -> None:
    """Entry point of `python -m assay_writer`."""
    main(STAGE, build)
