"""Run the scrubber: read `capture`, write scrubbed events to `events`, others to `failures`.

Delivery: each entry leaves `capture` exactly once, in the same atomic step that publishes its outcome.
"""

from collections.abc import Sequence

from redis.exceptions import RedisError

from assay_runtime import metrics
from assay_runtime.backpressure import Backpressure
from assay_runtime.dead_letters import Expiry
from assay_runtime.entries import Bounds, Entry, Outcome, SinkUnavailableError, seems_ahead
from assay_runtime.finishing import forward_finish
from assay_runtime.service import Service, main
from assay_runtime.tracing import link
from assay_runtime.watermark import IdleShardTicker
from assay_schema.events import Event, ScrubbedEvent
from assay_schema.failures import Failure, Reason
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.settings import Settings
from assay_schema.streams import CAPTURE, EVENTS, FAILURES

from .process import STAGE, Processor
from .reload import PolicyFile


def build(settings: Settings) -> Service:
    """Build the service, ready to run."""
    service = Service(STAGE, settings, settings.scrubber.port)
    processor = Processor(None)
    if settings.capture.scrub_pii:
        policy = PolicyFile(settings.scrubber, processor.use)
        service.every_tick(policy.look)
        service.notes(policy.problems)

    async def scrub(entries: Sequence[Entry]) -> list[Outcome]:
        if seems_ahead(entries):
            # More likely, this machine was suspended and its clock is behind.
            try:
                await service.ask_the_time()
            except RedisError as error:
                raise SinkUnavailableError(Reason.DB_DOWN, type(error).__name__) from None
        outcomes = processor.process(iter(entries))
        for family, count in processor.findings.items():
            metrics.PII_FINDINGS.labels(family).inc(count)
        for category, count in processor.refusals.items():
            metrics.PII_REFUSED.labels(category).inc(count)
        link(processor.traceparents)
        return outcomes

    bounds = Bounds(entries=settings.scrubber.batch_entries, bytes=4 * ENTRY_MAX_BYTES, age_s=0)
    for shard in range(settings.redis.shards):
        finish = forward_finish(service.client, STAGE, shard, settings.redis.shards, await_writer=True)
        service.consume(CAPTURE, shard, process=scrub, finish=finish, bounds=bounds, document=Event)
        service.publishes(EVENTS, shard, ScrubbedEvent)
        service.publishes(FAILURES, shard, Failure)
    waiting_for = [(stream, stream.groups[0]) for stream in (EVENTS, FAILURES)]
    service.gate(Backpressure(service.client, service.consumers, waiting_for, settings.delivery).run)
    service.every_tick(IdleShardTicker(service.client, settings.redis.shards, await_writer=True).run)
    service.every_tick(Expiry(service.client, settings).run)
    return service


def run() -> None:
    """Run the service; the entry point of `python -m assay_scrubber`."""
    main(STAGE, build)
