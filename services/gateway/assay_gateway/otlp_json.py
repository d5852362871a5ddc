"""Cut OTLP requests in JSON into spans and log records. Pure.

OTLP JSON writes ids in hexadecimal and 64-bit integers as texts (opentelemetry-proto, docs/specification.md).
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from assay_gateway.otlp_form import NAME_MAX, PLACES_CACHED, RESOURCE_NAMES, Form, Ids, Item, OtlpError
from assay_schema.span_entry import Signal

#: Most brackets and commas of a body: these bound the time that decoding takes.
BRACKETS_MAX, COMMAS_MAX = 100_000, 200_000
_NAMES: Mapping[Signal, tuple[str, str, str]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
_BONES = ("traceId", "spanId", "parentSpanId", "flags", "startTimeUnixNano", "endTimeUnixNano")

_Object = dict[str, Any]


class Json(Form):
    """Requests in JSON."""

    encoding = "json"

    def __init__(self, signal: Signal) -> None:
        self._names = _NAMES[signal]

    def items(self, body: bytes) -> Iterator[Item | None]:
        """Yield what is in a request."""
        yield None
        for group, scopes in self._groups(body):
            resource = _encoded(group.get("resource") or {})
            for scoped, spans in scopes:
                scope = _encoded(scoped.get("scope") or {})
                for item in spans:
                    yield Item(resource, scope, _encoded(item))
            yield None

    def count(self, body: bytes) -> Iterator[int]:
        """Yield numbers of items."""
        yield 0
        for _, scopes in self._groups(body):
            yield sum(len(spans) for _, spans in scopes)

    def _groups(self, body: bytes) -> Iterator[tuple[_Object, list[tuple[_Object, list[_Object]]]]]:
        """Yield each resource with its scopes, and each of these with its items."""
        if body.count(b"[") + body.count(b"{") > BRACKETS_MAX or body.count(b",") > COMMAS_MAX:
            raise OtlpError("the request is too complex; send smaller batches")
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise OtlpError("the body is not JSON") from None
        if not isinstance(document, dict):
            raise OtlpError("the body is not an object")
        resources, scopes, spans = self._names
        for group in _objects(document, resources):
            yield group, [(scoped, _objects(scoped, spans)) for scoped in _objects(group, scopes)]

    def ids(self, data: bytes) -> Ids:
        """Return the ids of an item."""
        item = orjson.loads(data)
        return Ids(_hexadecimal(item.get("traceId")), _hexadecimal(item.get("spanId")))

    def trace_of(self, data: bytes) -> bytes:
        """Return the trace id of a span."""
        return self.ids(data).trace

    def skeleton(self, data: bytes) -> bytes:
        """Return a span without name, attributes and events."""
        span = orjson.loads(data)
        return orjson.dumps({name: span[name] for name in _BONES if name in span})

    def names(self, resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
        """Return the names in a resource and a scope."""
        return _place(resource, scope)

    def request(self, groups: Iterator[tuple[bytes, bytes, list[bytes]]]) -> bytes:
        """Return a request."""
        resources, scopes, spans = (name.encode() for name in self._names)
        made = [
            b'{"resource":%b,"%b":[{"scope":%b,"%b":[%b]}]}' % (resource, scopes, scope, spans, b",".join(items))
            for resource, scope, items in groups
        ]
        return b'{"%b":[%b]}' % (resources, b",".join(made))


def _objects(document: _Object, name: str) -> list[_Object]:
    found = document.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise OtlpError(f"{name} is not an array of objects")
    return found


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # nested deeper than it writes
        raise OtlpError("it is nested too deeply") from None


def _hexadecimal(text: Any) -> bytes:
    try:
        found = bytes.fromhex(text)
    except (TypeError, ValueError):
        return b""
    return found if len(found) * 2 == len(text) else b""  # `fromhex` also reads spaces


@lru_cache(PLACES_CACHED)
def _place(resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
    whole, named = orjson.loads(resource), orjson.loads(scope)
    if not isinstance(whole, dict) or not isinstance(named, dict):
        raise OtlpError("its resource or scope is not an object")
    given = whole.get("attributes")
    names: dict[str, str] = {}
    for attribute in given if isinstance(given, list) else ():
        if isinstance(attribute, dict) and attribute.get("key") in RESOURCE_NAMES:
            value = attribute.get("value")
            text = value.get("stringValue") if isinstance(value, dict) else None
            if isinstance(text, str):
                names[attribute["key"]] = text[:NAME_MAX]
    attributes = [{"key": key, "value": {"stringValue": name}} for key, name in names.items()]
    kept = {key: value[:NAME_MAX] for key in ("name", "version") if isinstance(value := named.get(key), str)}
    return orjson.dumps({"attributes": attributes}), orjson.dumps(kept)
