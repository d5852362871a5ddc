"""The drift service: turns `scores`, `events` and `failures` into alert transitions in `alerts`.

Delivery: one atomic script (`state.COMMIT`) counts an entry's sample, publishes the resulting transition and
acknowledges the entry. Each transition is published exactly once, despite redeliveries and with any number of replicas
run. Time is that of the samples; while none arrive, it advances with the wall clock.

Its rights in Redis are in docs/security.md. Store: nothing.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from assay_drift.embedding import embedder
from assay_drift.monitor import LagSnapshot, Monitor, Observation
from assay_drift.state import GROUP, Sample, ShardState, Work
from assay_runtime.clock import clock as redis_clock
from assay_runtime.each import each
from assay_runtime.entries import Bounds, Entry, Outcome, failure_of
from assay_runtime.finishing import Finish
from assay_runtime.lag import group_of
from assay_runtime.service import Service, main
from assay_schema.alerts import Alert
from assay_schema.events import ScrubbedEvent
from assay_schema.failures import Failure, Reason
from assay_schema.ids import row_ms
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.scores import COST, LATENCY, Score
from assay_schema.settings import Settings
from assay_schema.streams import ALERTS, CAPTURE, EVENTS, FAILURES, SCORES, Stream, watermark_key
from assay_schema.validation import InvalidEvent, parse_failure, parse_score

#: Seconds between checks of lags and silent projects.
TICK_EVERY_S = 2.0

Clock = Callable[[], float]


def score_sample(entry: Entry) -> Outcome:
    """Return the sample in a score.

    A later document of the same answer counts if the first was not a sample.
    """
    try:
        score = parse_score(entry.data)
    except InvalidEvent as error:
        return _refused(entry, error.rule, error.detail)
    key = score.score_id.bytes + score.status.encode()
    return Sample(entry.id, key=key, at_ms=score.event_time.timestamp() * 1000, content=score)


def event_sample(entry: Entry) -> Outcome:
    """Return the sample in a retrieval or an answer.

    The query of an answer to a retrieval was already counted with the retrieval. The scrubber has validated the event.
    """
    try:
        event = orjson.loads(entry.data)
        payload, event_id = event["payload"], event["event_id"]
        at_ms = float(int(event_id[:8] + event_id[9:13], 16))
        observed: Observation | None = None
        if event["kind"] == "retrieval":
            scores = payload.get("retrieved_scores", [])
            model, operation = payload.get("embedding_model"), payload["tool_name"]
            took = {LATENCY: float(payload["latency_ms"])}
            observed = Observation(event_id, event["project"], at_ms, payload["query"], scores, model, operation, took)
        elif event["kind"] == "answer":
            follows = payload.get("retrieval_event_id") is not None
            took = {LATENCY: float(payload["latency_ms"]), COST: float(_characters(payload))}
            observed = Observation(
                event_id,
                event["project"],
                at_ms,
                None if follows else payload["query"],
                operation="answer",
                amounts=took,
                follows=follows,
            )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        return _refused(entry, "RowError", "not an event of this version")
    return Sample(entry.id, key=event_id.encode(), at_ms=at_ms, content=observed)


def _characters(answer: Mapping[str, Any]) -> int:
    """Count the characters read and written for an answer; events carry no token counts."""
    read = len(answer["query"]) + sum(len(each["text"]) for each in answer.get("contexts", []))
    return read + len(answer["answer"])


def failure_sample(entry: Entry) -> Outcome:
    """Return the sample in a failure: a lost event.

    Incidents of a sink lose no events, nor do failures of services that only read: this one, the judge, the notifier, the OTLP exporter.
    """
    try:
        failure = parse_failure(entry.data)
    except InvalidEvent:
        return Outcome(entry.id)  # the writer reports it
    lost = failure.entry_id is not None and failure.stage not in (GROUP, "judge", "notifier", "otlp_exporter")
    at_ms = failure.created_at.timestamp() * 1000
    return Sample(entry.id, key=failure.failure_id.bytes, at_ms=at_ms, content=failure if lost else None)


def _refused(entry: Entry, error_class: str, detail: str) -> Outcome:
    return Outcome(entry.id, failure=failure_of(entry, GROUP, Reason.CHECK_VIOLATION, error_class, detail))


READERS: dict[Stream, tuple[Any, Callable[[Entry], Outcome]]] = {
    SCORES: (Score, score_sample),
    EVENTS: (ScrubbedEvent, event_sample),
    FAILURES: (Failure, failure_sample),
}


def handlers(clock: Clock) -> dict[Stream, Work]:
    """Return the handlers for the samples of each stream."""

    def scores(monitor: Monitor, samples: Sequence[Sample]) -> None:
        for sample in samples:
            monitor.observe_score(sample.content, clock())

    def events(monitor: Monitor, samples: Sequence[Sample]) -> None:
        monitor.observe_traffic([sample.content for sample in samples], clock())

    def failures(monitor: Monitor, samples: Sequence[Sample]) -> None:
        for sample in samples:
            monitor.observe_lost(sample.content.project, sample.at_ms, clock())

    return {SCORES: scores, EVENTS: events, FAILURES: failures}


class PeriodicChecks:
    """Periodic checks: lags, the watermark, silent projects and acknowledgements."""

    def __init__(self, service: Service, states: Sequence[ShardState], clock: Clock) -> None:
        self._service = service
        self._states = states
        self._clock = clock
        self._next = 0.0

    async def run(self) -> None:
        """Check every shard once every `TICK_EVERY_S` seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + TICK_EVERY_S
        await each(range(len(self._states)), self._check)

    async def _check(self, shard: int) -> None:
        lags, now_ms = await self._lags(shard), self._clock()
        await self._states[shard].tick(lambda monitor: monitor.tick(now_ms, lags), now_ms)

    async def _lags(self, shard: int) -> LagSnapshot:
        client = self._service.client
        lags = {}
        for stream in (CAPTURE, EVENTS):
            name = stream.groups[0]
            if group := await group_of(client, stream, shard, name):
                lags[name] = group.unfinished
        watermark = int(await client.get(watermark_key(shard)) or 0)
        minutes = (self._clock() - row_ms(watermark)) / 60_000 if watermark else None
        return LagSnapshot(lags, minutes)


def wall_clock() -> float:
    """Return the Unix milliseconds of Redis's clock."""
    return float(redis_clock.now_ms())


def build(settings: Settings, clock: Clock = wall_clock) -> Service:
    """Build the service, ready to run."""
    service = Service(GROUP, settings, settings.drift.port)
    bounds = Bounds(entries=settings.drift.batch_entries, bytes=4 * ENTRY_MAX_BYTES, age_s=0.2)
    shards = settings.redis.shards
    states = [ShardState(service.client, settings.drift, shard, shards, embedder()) for shard in range(shards)]
    work = handlers(clock)
    for shard, state in enumerate(states):
        for stream, (document, read) in READERS.items():
            service.consume(
                stream,
                shard,
                process=_reading(read),
                finish=_finishing(state, stream, work[stream]),
                bounds=bounds,
                document=document,
            )
        service.publishes(ALERTS, shard, Alert)
    service.every_tick(PeriodicChecks(service, states, clock).run)
    return service


def _reading(read: Callable[[Entry], Outcome]) -> Callable[[Sequence[Entry]], Awaitable[list[Outcome]]]:
    async def process(entries: Sequence[Entry]) -> list[Outcome]:
        return [read(entry) for entry in entries]

    return process


def _finishing(state: ShardState, stream: Stream, work: Work) -> Finish:
    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        return await state.finish(stream, outcomes, redis, work)

    return finish


def run() -> None:
    """Entry point of `python -m assay_drift`."""
    main(GROUP, build)
