"""Decode OTLP log records about AI to events on the spans that they name. Pure.

Instrumentations of the generations 1.28 to 1.36 record what was asked and answered as log records, not as attributes.
"""

from typing import Any, Literal, NamedTuple

import orjson
from google.protobuf.message import DecodeError as ProtobufError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from assay_assembler import decode, decode_json
from assay_assembler.decode_json import UndecodableError
from assay_assembler.span import Attributes, SpanEvent
from assay_assembler.values import text


class LogEvent(NamedTuple):
    """A log record as an event on a span. Ids are lower-case hexadecimal."""

    trace_id: str
    span_id: str
    event: SpanEvent


def decode_logs(body: bytes, encoding: Literal["protobuf", "json"]) -> list[LogEvent]:
    """Return the records of an `ExportLogsServiceRequest` that name an event. Raises `UndecodableError`."""
    return _json(body) if encoding == "json" else _protobuf(body)


def _protobuf(body: bytes) -> list[LogEvent]:
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except ProtobufError:
        raise UndecodableError("the body is not an ExportLogsServiceRequest") from None
    return [
        found
        for group in request.resource_logs
        for scoped in group.scope_logs
        for raw in scoped.log_records
        if (
            found := _event(
                raw.trace_id.hex(),
                raw.span_id.hex(),
                raw.event_name,
                decode.attributes_of(raw.attributes),
                decode.value_of(raw.body),
            )
        )
    ]


def _json(body: bytes) -> list[LogEvent]:
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise UndecodableError("the body is not JSON") from None
    found = []
    for group in decode_json.dicts(decode_json.mapping(request).get("resourceLogs")):
        for scoped in decode_json.dicts(group.get("scopeLogs")):
            for raw in decode_json.dicts(scoped.get("logRecords")):
                event = _event(
                    decode_json.hex_id(raw.get("traceId"), 32),
                    decode_json.hex_id(raw.get("spanId"), 16),
                    text(raw.get("eventName")),
                    decode_json.attributes_of(raw.get("attributes")),
                    decode_json.value_of(raw.get("body")),
                )
                if event:
                    found.append(event)
    return found


def _event(trace_id: str, span_id: str, name: str, attributes: Attributes, body: Any) -> LogEvent | None:
    """Return the event; None without a name or a span. Older records have the name in `event.name`."""
    name = name or str(attributes.get("event.name") or "")
    if not name or not span_id:
        return None
    return LogEvent(
        trace_id, span_id, SpanEvent(name, {**attributes, **body} if isinstance(body, dict) else attributes)
    )
