"""Decode the body of an OTLP request to spans. Pure.

Spans without marks of generative AI are returned with their place in the trace only: without name, attributes and
events. Spans whose ids are not valid are left out: the gateway rejects them before. Anything else that is odd in one
span leaves the others unchanged.
"""

from typing import Any, Literal

from google.protobuf.message import DecodeError as ProtobufError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay_assembler.decode_json import UndecodableError, decode_json
from assay_assembler.marks import UNREAD, is_marked
from assay_assembler.span import STATUSES, Attributes, Link, Source, Span, SpanEvent, is_local_root

__all__ = ["UndecodableError", "decode"]


_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


def decode(body: bytes, encoding: Literal["protobuf", "json"]) -> list[Span]:
    """Return the spans of an `ExportTraceServiceRequest`. Raises `UndecodableError`."""
    if encoding == "json":
        return decode_json(body)
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufError:
        raise UndecodableError("the body is not an ExportTraceServiceRequest") from None
    spans: list[Span] = []
    for group in request.resource_spans:
        resource: Attributes | None = None
        for scoped in group.scope_spans:
            if resource is None:
                resource = attributes_of(group.resource.attributes)
            source = source_of(resource, scoped.scope.name)
            spans += [span for raw in scoped.spans if (span := _span(raw, source)) is not None]
    return spans


def source_of(resource: Attributes, scope: str) -> Source:
    """Return the source that a resource and a scope describe."""
    service, instance = resource.get("service.name"), resource.get("service.instance.id")
    return Source(service if isinstance(service, str) else "", instance if isinstance(instance, str) else "", scope)


def _span(raw: Any, source: Source) -> Span | None:
    marked = is_marked((pair.key for pair in raw.attributes), (event.name for event in raw.events))
    raw_events, raw_links = raw.events if marked else (), raw.links if marked else ()
    events = tuple([SpanEvent(each.name, attributes_of(each.attributes)) for each in raw_events]) if raw_events else ()
    links = tuple([Link(each.trace_id.hex(), each.span_id.hex()) for each in raw_links]) if raw_links else ()
    trace_id, span_id, parent_id = raw.trace_id.hex(), raw.span_id.hex(), raw.parent_span_id.hex()
    if len(trace_id) != 32 or len(span_id) != 16 or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    if len(parent_id) != 16 or parent_id == _NO_SPAN:
        parent_id = ""
    code = raw.status.code
    return Span(
        trace_id,
        span_id,
        parent_id,
        is_local_root(parent_id, raw.flags),
        raw.name if marked else "",
        raw.start_time_unix_nano,
        raw.end_time_unix_nano,
        STATUSES[code] if 0 <= code <= 2 else "unset",
        attributes_of(raw.attributes) if marked else {},
        events,
        links,
        source,
        raw.dropped_attributes_count if marked else 0,
    )


def attributes_of(pairs: Any) -> Attributes:
    """Return the attributes that rules read. Most values are texts, so that is tried first."""
    return {
        name: (value := pair.value).string_value or value_of(value)
        for pair in pairs
        if (name := pair.key) not in UNREAD
    }


def value_of(any_value: Any) -> Any:
    """Return an `AnyValue` as Python has it; None for one that is not known."""
    kind = any_value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(each) for each in any_value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: value_of(each.value) for each in any_value.kvlist_value.values}
    if kind == "string_value_strindex":  # an index into a table that only profiles have
        return None
    return getattr(any_value, kind)
