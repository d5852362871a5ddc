"""The OTLP exporter service: sends events and verdicts as spans to an OpenTelemetry backend.

Delivery: an entry is acknowledged after the backend took its span, so at least once, with the same ids each time. While
the backend is away, entries wait in Redis, within `delivery.held_bytes`; nothing else waits for them.
"""

import logging
import os
from collections.abc import Callable
from typing import Any

from assay_otlp_exporter.backend import Backend
from assay_otlp_exporter.batch import BYTES_MOST, SPANS_MOST, Item
from assay_otlp_exporter.endpoint import check
from assay_otlp_exporter.export import STAGE, Export
from assay_otlp_exporter.sender import Sender
from assay_otlp_exporter.spans import span_of
from assay_otlp_exporter.verdicts import verdict_span
from assay_runtime import metrics
from assay_runtime.entries import Bounds, Entry
from assay_runtime.finishing import settle_finish
from assay_runtime.service import Service, main
from assay_schema.events import ScrubbedEvent
from assay_schema.scores import Score
from assay_schema.settings import OtlpExporterSettings, Settings
from assay_schema.streams import EVENTS, SCORES, Stream
from assay_schema.validation import InvalidEvent, parse_score, parse_scrubbed

log = logging.getLogger(__name__)

#: Longest wait of an entry for others of its request, in seconds.
BATCH_AGE_S = 1.0
ItemOf = Callable[[Entry], Item | None]


def event_item(settings: OtlpExporterSettings) -> ItemOf:
    """Return the function from an entry of `events` to its span: None for kinds that are not exported."""
    chosen = {"tool_call": settings.tool_calls, "retrieval": settings.retrievals, "answer": settings.answers}
    # Found without decoding. Other kinds of events may contain such a mark too; the decoded kind decides.
    marks = [f'"kind":"{kind}"'.encode() for kind, is_chosen in chosen.items() if is_chosen]
    as_child = settings.mode == "child"

    def item_of(entry: Entry) -> Item | None:
        if not any(mark in entry.data for mark in marks):
            return None
        try:
            event = parse_scrubbed(entry.data)
        except InvalidEvent:
            return None  # the writer records it
        if not chosen.get(event.kind):
            return None
        if event.origin == "otlp" and not settings.otlp_origin:
            metrics.EXPORTED_SPANS.labels("otlp_origin").inc()
            return None
        span = span_of(event, as_child=as_child, content=settings.content)
        return span and Item(entry, event.project, event.service, span)

    return item_of


def score_item(settings: OtlpExporterSettings) -> ItemOf:
    """Return the function from an entry of `scores` to the span of its verdict: None without a metric."""

    def item_of(entry: Entry) -> Item | None:
        if not settings.verdicts:
            return None
        try:
            score = parse_score(entry.data)
        except InvalidEvent:
            return None  # the writer records it
        is_sent = settings.answers and (score.origin != "otlp" or settings.otlp_origin)
        span = verdict_span(score, as_child=settings.mode == "child", is_sent=is_sent)
        return span and Item(entry, score.project, score.service, span)

    return item_of


def sources(settings: OtlpExporterSettings) -> list[tuple[Stream, Any, ItemOf]]:
    """Return each stream, its document, and what makes its spans.

    Both are always read. An entry that is not exported is acknowledged, so that nothing is kept for this group.
    """
    return [(EVENTS, ScrubbedEvent, event_item(settings)), (SCORES, Score, score_item(settings))]


def build(settings: Settings) -> Service:
    """Build the service, ready to run. Raises `SettingsError`."""
    own = settings.otlp_exporter
    endpoint = check(own, os.environ)
    sender = Sender(endpoint, own.timeout_s)
    service = Service(STAGE, settings, own.port)
    backend = Backend(sender)
    service.at_stop(backend.stopping.set)
    service.notes(backend.notes)
    bounds = Bounds(SPANS_MOST, 4 * BYTES_MOST, BATCH_AGE_S)
    for shard in range(settings.redis.shards):
        for stream, document, item_of in sources(own):
            service.consume(
                stream,
                shard,
                process=Export(backend, item_of).process(),
                finish=settle_finish(service.client, stream, STAGE, shard, settings.delivery.dead_bytes),
                bounds=bounds,
                document=document,
            )
    log.info("exporting spans to %s", endpoint.name)
    return service


def run() -> None:
    """Entry point of `python -m assay_otlp_exporter`."""
    main(STAGE, build)
