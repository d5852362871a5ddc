"""Spans and OTLP requests for tests of the assembler."""

from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from assay_assembler.span import Attributes, Link, Source, Span, SpanEvent, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
SOURCE = Source("support-bot", "instance-1", "test")
#: 2026-01-02T03:04:05Z.
START_NS = 1_767_323_045_000_000_000
MS = 1_000_000


def span_id(number: int) -> str:
    """Return the id of the span with a number."""
    return f"{number:016x}"


def span(
    attributes: Attributes | None = None,
    *,
    number: int = 1,
    parent: int = 0,
    name: str = "step",
    start_ms: int = 0,
    end_ms: int = 100,
    status: Status = "unset",
    events: tuple[SpanEvent, ...] = (),
    links: tuple[Link, ...] = (),
    local_root: bool | None = None,
    trace: str = TRACE,
    source: Source = SOURCE,
    dropped: int = 0,
) -> Span:
    """Return a span of the test trace. Times are milliseconds after its beginning."""
    return Span(
        trace,
        span_id(number),
        span_id(parent) if parent else "",
        not parent if local_root is None else local_root,
        name,
        START_NS + start_ms * MS,
        START_NS + end_ms * MS,
        status,
        attributes or {},
        events,
        links,
        source,
        dropped,
    )


def any_value(value: Any) -> AnyValue:
    """Return a value as OTLP encodes it."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    found = AnyValue()
    if isinstance(value, list):
        found.array_value.SetInParent()
        found.array_value.values.extend(any_value(each) for each in value)
    elif isinstance(value, dict):
        found.kvlist_value.SetInParent()
        for key, each in value.items():
            found.kvlist_value.values.add(key=key, value=any_value(each))
    elif value is not None:
        found.string_value = value
    return found


def request(*spans: Span) -> ExportTraceServiceRequest:
    """Return a request with these spans, each with its source's resource and scope."""
    made = ExportTraceServiceRequest()
    for each in spans:
        group = made.resource_spans.add()
        group.resource.attributes.add(key="service.name", value=any_value(each.source.service))
        group.resource.attributes.add(key="service.instance.id", value=any_value(each.source.instance))
        scoped = group.scope_spans.add()
        scoped.scope.name = each.source.scope
        raw = scoped.spans.add(
            trace_id=bytes.fromhex(each.trace_id),
            span_id=bytes.fromhex(each.span_id),
            parent_span_id=bytes.fromhex(each.parent_id),
            name=each.name,
            start_time_unix_nano=each.start_ns,
            end_time_unix_nano=each.end_ns,
            dropped_attributes_count=each.dropped,
            flags=0x300 if each.local_root and each.parent_id else 0x100,
        )
        raw.status.code = ("unset", "ok", "error").index(each.status)  # type: ignore[assignment]
        for key, value in each.attributes.items():
            raw.attributes.add(key=key, value=any_value(value))
        for event in each.events:
            added = raw.events.add(name=event.name)
            for key, value in event.attributes.items():
                added.attributes.add(key=key, value=any_value(value))
        for link in each.links:
            raw.links.add(trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id))
    return made
