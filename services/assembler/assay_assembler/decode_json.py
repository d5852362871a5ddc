"""Decode OTLP JSON.

Its mapping differs from protobuf's own: ids are hexadecimal, 64-bit integers may be texts.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import orjson

from assay_assembler.marks import UNREAD, is_marked
from assay_assembler.span import STATUSES, Attributes, Link, Source, Span, SpanEvent, Status, is_local_root
from assay_assembler.values import text

#: Deepest nesting of an attribute's value that is read.
DEPTH_MAX = 100
_STATUS_NAMES: dict[object, Status] = {
    "STATUS_CODE_UNSET": "unset", "STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error",
    **dict(enumerate(STATUSES)), "0": "unset", "1": "ok", "2": "error",
}  # fmt: skip


class UndecodableError(ValueError):
    """The body is not an `ExportTraceServiceRequest` in its encoding."""


def decode_json(body: bytes) -> list[Span]:
    """Return the spans of an OTLP JSON request. Raises `UndecodableError`."""
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise UndecodableError("the body is not JSON") from None
    if not isinstance(request, dict):
        raise UndecodableError("the body is not a JSON object")
    spans: list[Span] = []
    for group in dicts(request.get("resourceSpans")):
        resource = attributes_of(mapping(group.get("resource")).get("attributes"))
        for scoped in dicts(group.get("scopeSpans")):
            source = Source(
                text(resource.get("service.name")),
                text(resource.get("service.instance.id")),
                text(mapping(scoped.get("scope")).get("name")),
            )
            spans.extend(span for raw in dicts(scoped.get("spans")) if (span := _span(raw, source)) is not None)
    return spans


def _span(raw: dict[str, Any], source: Source) -> Span | None:
    names = [pair.get("key") for pair in dicts(raw.get("attributes"))]
    events = dicts(raw.get("events"))
    marked = is_marked((text(name) for name in names), (text(event.get("name")) for event in events))
    trace_id, span_id = hex_id(raw.get("traceId"), 32), hex_id(raw.get("spanId"), 16)
    if not trace_id or not span_id:
        return None
    parent_id = hex_id(raw.get("parentSpanId"), 16)
    return Span(
        trace_id,
        span_id,
        parent_id,
        is_local_root(parent_id, _integer(raw.get("flags"))),
        text(raw.get("name")) if marked else "",
        max(0, _integer(raw.get("startTimeUnixNano"))),
        max(0, _integer(raw.get("endTimeUnixNano"))),
        _status(mapping(raw.get("status")).get("code")),
        attributes_of(raw.get("attributes")) if marked else {},
        tuple(
            [SpanEvent(text(event.get("name")), attributes_of(event.get("attributes"))) for event in events if marked]
        ),
        tuple(
            [
                Link(hex_id(link.get("traceId"), 32), hex_id(link.get("spanId"), 16))
                for link in dicts(raw.get("links"))
                if marked
            ]
        ),
        source,
        max(0, _integer(raw.get("droppedAttributesCount"))) if marked else 0,
    )


def _status(code: Any) -> Status:
    return _STATUS_NAMES.get(code, "unset") if isinstance(code, str | int) else "unset"


def attributes_of(pairs: Any) -> Attributes:
    """Return the attributes that rules read; fields of a wrong type are left out."""
    named = (pair for pair in dicts(pairs) if isinstance(pair.get("key"), str) and pair["key"] not in UNREAD)
    return {pair["key"]: value_of(pair.get("value"), 0) for pair in named}


def value_of(raw: Any, depth: int = 0) -> Any:
    """Return an `AnyValue` as Python has it; None for one that is not known."""
    if not isinstance(raw, dict) or depth > DEPTH_MAX:
        return None
    for kind, value in raw.items():
        if kind in ("stringValue", "boolValue"):
            return value if isinstance(value, str | bool) else None
        if kind == "intValue":
            return _integer(value)
        if kind == "doubleValue":
            return _double(value)
        if kind == "arrayValue":
            return (
                [value_of(each, depth + 1) for each in mapping(value).get("values") or ()] if _has_list(value) else []
            )
        if kind == "kvlistValue":
            pairs = dicts(mapping(value).get("values"))
            return {text(pair.get("key")): value_of(pair.get("value"), depth + 1) for pair in pairs}
        if kind == "bytesValue":
            return _bytes(value)
    return None


def _has_list(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("values"), list)


def mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is not a list."""
    return list(_only_dicts(value)) if isinstance(value, list) else []


def _only_dicts(values: list[Any]) -> Iterator[dict[str, Any]]:
    return (each for each in values if isinstance(each, dict))


def _integer(value: Any) -> int:
    if isinstance(value, str) and len(value) <= 20:
        try:
            value = int(value)
        except ValueError:
            return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**64 else 0


def _double(value: Any) -> float | None:
    if isinstance(value, str):  # "NaN", "Infinity", or a number
        try:
            return float(value[:64])
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) else None


def _bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def hex_id(value: Any, digits: int) -> str:
    """Return a valid id in lower case, or an empty text."""
    if not isinstance(value, str) or len(value) != digits:
        return ""
    try:
        raw = bytes.fromhex(value)
    except ValueError:
        return ""
    return raw.hex() if len(raw) * 2 == digits and any(raw) else ""
