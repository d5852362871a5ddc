"""Decode the body of an OTLP request to spans. Pure.

Only spans with marks of generative AI are returned. Spans whose ids are not valid are left out: the gateway rejects
them before. Anything else that is odd in one span leaves the others unchanged.
"""

from typing import Any, Literal

from google.protobuf.message import DecodeError as ProtobufError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay_assembler.decode_json import UndecodableError, decode_json
from assay_assembler.marks import PREFIXES, is_marked, may_be_marked
from assay_assembler.span import STATUSES, Attributes, Link, Source, Span, SpanEvent, is_local_root

__all__ = ["UndecodableError", "decode"]


_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


def decode(body: bytes, encoding: Literal["protobuf", "json"]) -> list[Span]:
    """Return the marked spans of an `ExportTraceServiceRequest`. Raises `UndecodableError`."""
    if encoding == "json":
        return decode_json(body)
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufError:
        raise UndecodableError("the body is not an ExportTraceServiceRequest") from None
    spans: list[Span] = []
    if not may_be_marked(body):
        return spans
    for group in request.resource_spans:
        resource: Attributes | None = None
        for scoped in group.scope_spans:
            # An instrumentation of something else is left out as a whole.
            if not may_be_marked(scoped.SerializeToString()):
                continue
            if resource is None:
                resource = _attributes(group.resource.attributes)
            source = source_of(resource, scoped.scope.name)
            for raw in scoped.spans:
                span = _span(raw, source)
                if span is not None:
                    spans.append(span)
    return spans


def source_of(resource: Attributes, scope: str) -> Source:
    """Return the source that a resource and a scope describe."""
    service, instance = resource.get("service.name"), resource.get("service.instance.id")
    return Source(service if isinstance(service, str) else "", instance if isinstance(instance, str) else "", scope)


def _span(raw: Any, source: Source) -> Span | None:
    pairs = raw.attributes
    # The first name decides for most spans with marks, and the bytes of the whole for most others.
    if not (pairs and pairs[0].key.startswith(PREFIXES)):
        if not may_be_marked(raw.SerializeToString()):
            return None
        if not is_marked((pair.key for pair in pairs), (event.name for event in raw.events)):
            return None
    attributes = _attributes(pairs)
    raw_events, raw_links = raw.events, raw.links
    events = tuple([SpanEvent(each.name, _attributes(each.attributes)) for each in raw_events]) if raw_events else ()
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
        raw.name,
        raw.start_time_unix_nano,
        raw.end_time_unix_nano,
        STATUSES[code] if 0 <= code <= 2 else "unset",
        attributes,
        events,
        links,
        source,
        raw.dropped_attributes_count,
    )


def _attributes(pairs: Any) -> Attributes:
    """Return attributes as a dict. Most values are texts, so that is tried first."""
    found: Attributes = {}
    for pair in pairs:
        any_value = pair.value
        text = any_value.string_value
        found[pair.key] = text or _value(any_value)
    return found


def _value(any_value: Any) -> Any:
    kind = any_value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(each) for each in any_value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _value(each.value) for each in any_value.kvlist_value.values}
    if kind == "string_value_strindex":  # an index into a table that only profiles have
        return None
    return getattr(any_value, kind)
