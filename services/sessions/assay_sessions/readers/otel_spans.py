"""Spans of files in OpenTelemetry's JSON: their attributes, times and results as plain values."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from assay_sessions.readers.loose_json import DamagedError, items, lines, load_file, loads, mapping, some_text, text
from assay_sessions.readers.reader import Problems, from_ms
from assay_sessions.record import Json

#: An event of a span that has the messages, where an instrumentation does not write them as attributes.
_DETAILS: Final = "gen_ai.client.inference.operation.details"
#: Other signals that a collector writes to the same file.
_SILENT: Final = frozenset({"resourceMetrics", "resourceLogs", "resourceProfiles"})
_DEPTH_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    `error` is the type of its error, or None, and `message` that of its status or its exception.
    """

    trace_id: str
    span_id: str
    parent_id: str
    attributes: Json
    started: datetime | None
    ended: datetime | None
    error: str | None
    message: str
    resource: Json = field(default_factory=dict)

    @property
    def operation(self) -> str | None:
        """The operation of the conventions for generative AI. None for any other span."""
        return some_text(self.attributes.get("gen_ai.operation.name"))


def spans(path: Path, problems: Problems) -> Iterator[Span]:
    """Yield the spans of a file that is one JSON text, or one in each line."""
    for row in _rows(path, problems):
        if "resourceSpans" not in row:
            if not _SILENT & row.keys():
                problems.unknown(path.name, "line", next(iter(row), ""))
            continue
        for group in map(mapping, items(row["resourceSpans"])):
            resource = _attributes(mapping(group.get("resource")).get("attributes"))
            for scope in map(mapping, items(group.get("scopeSpans"))):
                yield from (_span(mapping(each), resource) for each in items(scope.get("spans")))


def _rows(path: Path, problems: Problems) -> Iterator[Json]:
    if _is_one_text(path):
        whole = load_file(path, path.name, problems)
        if whole is not None:
            yield from map(mapping, whole if isinstance(whole, list) else [whole])
    else:
        yield from lines(path, problems)


def _is_one_text(path: Path) -> bool:
    """Return True for a file whose first line is not JSON in itself, but the whole file is, or would be if it was not cut."""
    try:
        with path.open("rb") as file:
            first, second = file.readline(1 << 20).strip(), file.readline(1 << 20).strip()
    except OSError:
        return False
    if first.startswith(b"["):
        return True
    try:
        loads(first)
    except DamagedError:
        return bool(first) and not second.startswith(b"{")
    return False


def _span(span: Json, resource: Json) -> Span:
    attributes = _attributes(span.get("attributes"))
    status = mapping(span.get("status"))
    message, raised = text(status.get("message")), "error"
    for event in map(mapping, items(span.get("events"))):
        own = _attributes(event.get("attributes"))
        if event.get("name") == _DETAILS:
            attributes = own | attributes
        elif event.get("name") == "exception":
            message = message or text(own.get("exception.message"))
            raised = some_text(own.get("exception.type")) or raised
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    return Span(
        trace_id=text(span.get("traceId")),
        span_id=text(span.get("spanId")),
        parent_id=text(span.get("parentSpanId")),
        attributes=attributes,
        started=_moment(span.get("startTimeUnixNano")),
        ended=_moment(span.get("endTimeUnixNano")),
        error=some_text(attributes.get("error.type")) or (raised if failed else None),
        message=message,
        resource=resource,
    )


def _attributes(pairs: Any) -> Json:
    return {text(pair.get("key")): _value(mapping(pair.get("value"))) for pair in map(mapping, items(pairs))}


def _value(value: Json, depth: int = _DEPTH_MAX) -> Any:
    """Return the plain value of an `AnyValue`. Integers are texts in this JSON."""
    if "intValue" in value:
        return _whole(value["intValue"])
    if "arrayValue" in value and depth:
        return [_value(mapping(each), depth - 1) for each in items(mapping(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value and depth:
        pairs = map(mapping, items(mapping(value["kvlistValue"]).get("values")))
        return {text(pair.get("key")): _value(mapping(pair.get("value")), depth - 1) for pair in pairs}
    return next(
        (value[name] for name in ("stringValue", "doubleValue", "boolValue", "bytesValue") if name in value), None
    )


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _moment(nanoseconds: Any) -> datetime | None:
    whole = _whole(nanoseconds)
    return from_ms(whole / 1_000_000) if whole and abs(whole) < 1 << 63 else None
