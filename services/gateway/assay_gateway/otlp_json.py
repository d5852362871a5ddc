"""Cut OTLP requests in JSON into spans and log records. Pure.

OTLP JSON writes ids in hexadecimal and 64-bit integers as texts (opentelemetry-proto, docs/specification.md).
"""

import contextlib
import re
from collections.abc import Callable, Container, Generator, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from assay_gateway.json_cut import CutError, Cutter
from assay_gateway.otlp_form import (
    GROUP,
    ITEMS_MAX,
    NAME_MAX,
    PLACES_CACHED,
    RESOURCE_NAMES,
    Form,
    Group,
    Ids,
    OtlpError,
    Range,
)
from assay_schema.span_entry import Signal

_Y = TypeVar("_Y")
_R = TypeVar("_R")

#: Deepest nesting of brackets in an item.
DEPTH_MAX = 254
#: Most members of a request that are not items.
OTHERS_MAX = 100_000
#: Such members after which others run.
PAUSE_MEMBERS = 256
_NAMES: Mapping[Signal, tuple[bytes, bytes, bytes]] = {
    "traces": (b"resourceSpans", b"scopeSpans", b"spans"),
    "logs": (b"resourceLogs", b"scopeLogs", b"logRecords"),
}
_SPACE = re.compile(rb"[ \t\r\n]*+")
_TRACE_FIRST = re.compile(rb'{[ \t\r\n]{0,80}"traceId"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}"([0-9A-Fa-f]{32})"')
_NOTHING, _OPEN = b"{}", ord("{")
_BONES = ("traceId", "spanId", "parentSpanId", "flags", "startTimeUnixNano", "endTimeUnixNano")


class Json(Form):
    """Requests in JSON."""

    encoding = "json"

    def __init__(self, signal: Signal) -> None:
        self._names = _NAMES[signal]

    def groups(self, body: bytes) -> Iterator[Group | None]:
        """Yield what is in a request."""
        try:
            yield from _Walk(body, self._names).groups()
        except CutError as error:
            raise OtlpError(str(error)) from None

    def ids(self, data: bytes) -> Ids:
        """Return the ids of an item, which is decoded as a whole."""
        item = _decoded(data)
        return Ids(_hexadecimal(item.get("traceId")), _hexadecimal(item.get("spanId")))

    def of_traces(
        self, body: bytes, places: list[Range], traces: Container[bytes]
    ) -> Iterator[tuple[bytes, Range] | None]:
        """Yield the spans of some traces. One whose first member is not its trace id is decoded."""
        for begin, end in places:
            match = _TRACE_FIRST.match(body, begin, end)
            if match is not None:
                trace = bytes.fromhex(match[1].decode())
            else:
                yield None
                trace = b""
                with contextlib.suppress(OtlpError):
                    trace = self.ids(body[begin:end]).trace
            if trace in traces:
                yield trace, (begin, end)

    def skeleton(self, data: bytes) -> bytes:
        """Return a span without name, attributes and events."""
        span = _decoded(data)
        return orjson.dumps({name: span[name] for name in _BONES if name in span})

    def names(self, resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
        """Return the names in a resource and a scope."""
        return _place(resource, scope)

    def request(self, groups: Iterator[tuple[bytes, bytes, list[bytes]]]) -> bytes:
        """Return a request."""
        resources, scopes, spans = self._names
        made = [
            b'{"resource":%b,"%b":[{"scope":%b,"%b":[%b]}]}' % (resource, scopes, scope, spans, b",".join(items))
            for resource, scope, items in groups
        ]
        return b'{"%b":[%b]}' % (resources, b",".join(made))


class _Walk:
    """The way through a request: its members may have any order."""

    def __init__(self, body: bytes, names: tuple[bytes, bytes, bytes]) -> None:
        self._cutter = Cutter(body, depth_max=DEPTH_MAX)
        self._resources, self._scopes, self._items = names
        self._items_left, self._left = ITEMS_MAX, OTHERS_MAX
        self._due_below = OTHERS_MAX - PAUSE_MEMBERS

    def groups(self) -> Iterator[Group | None]:
        """Yield the items, and None. Raises `OtlpError` and `CutError`."""
        for name in self._members("the body is not an object"):
            if name == self._resources:
                yield from self._list(name, self._resource)
            else:
                yield from self._cutter.value()
            if self._is_due():
                yield None
        if not self._cutter.ends():
            raise OtlpError("there is more after the JSON")

    def _resource(self) -> Generator[Group | None, None, None]:
        resource = _NOTHING
        found: list[tuple[bytes, list[Range]]] = []
        for name in self._members(f"{self._resources.decode()} is not an array of objects"):
            if name == b"resource":
                resource = yield from self._raw()
            elif name == self._scopes:
                found += yield from self._list(name, self._scope)
            else:
                yield from self._cutter.value()
            if self._is_due():
                yield None
        for scope, places in found:
            for first in range(0, len(places), GROUP):
                yield Group(resource, scope, places[first : first + GROUP])

    def _scope(self) -> Generator[None, None, tuple[bytes, list[Range]]]:
        scope, places = _NOTHING, []
        for name in self._members(f"{self._scopes.decode()} is not an array of objects"):
            if name == b"scope":
                scope = yield from self._raw()
            elif name == self._items and self._is_list(name):
                for found in self._cutter.ranges():
                    if found is None:
                        yield None
                    else:
                        places.append(self._item(*found))
            elif name != self._items:
                yield from self._cutter.value()
            if self._is_due():
                yield None
        return scope, places

    def _item(self, begin: int, end: int) -> Range:
        self._items_left -= 1
        if self._items_left < 0:
            raise OtlpError(f"more than {ITEMS_MAX} spans or log records; send smaller batches")
        body = self._cutter.body
        space = _SPACE.match(body, begin, end)
        assert space is not None  # it matches nothing, at least
        begin = space.end()
        if begin == end or body[begin] != _OPEN:
            raise OtlpError(f"{self._items.decode()} is not an array of objects")
        return begin, end

    def _members(self, otherwise: str) -> Iterator[bytes]:
        if not self._cutter.begins(b"{"):
            raise OtlpError(otherwise)
        for name in self._cutter.members():
            self._pass()
            yield name

    def _list(self, name: bytes, read: Callable[[], Generator[_Y, None, _R]]) -> Generator[_Y | None, None, list[_R]]:
        """Read each element of an array, and let others run. Return what was read."""
        found = []
        for _ in self._cutter.elements() if self._is_list(name) else ():
            self._pass()
            found.append((yield from read()))
            if self._is_due():
                yield None
        return found

    def _is_list(self, name: bytes) -> bool:
        """Return whether an array is here; pass null."""
        cutter = self._cutter
        if cutter.begins(b"["):
            return True
        if not cutter.begins(b"null"):
            raise OtlpError(f"{name.decode(errors='replace')} is not an array of objects")
        cutter.at += len(b"null")
        return False

    def _raw(self) -> Generator[None, None, bytes]:
        begin, end = yield from self._cutter.value()
        return self._cutter.body[begin:end]

    def _is_due(self) -> bool:
        """Return whether others should run: many members were passed since they did."""
        if self._left > self._due_below:
            return False
        self._due_below = self._left - PAUSE_MEMBERS
        return True

    def _pass(self) -> None:
        """Count something other than an item."""
        self._left -= 1
        if self._left < 0:
            raise OtlpError(f"more than {OTHERS_MAX} members that are not spans or log records")


def _decoded(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise OtlpError("it cannot be decoded") from None


def _hexadecimal(text: Any) -> bytes:
    try:
        found = bytes.fromhex(text)
    except (TypeError, ValueError):
        return b""
    return found if len(found) * 2 == len(text) else b""  # `fromhex` also reads spaces


@lru_cache(PLACES_CACHED)
def _place(resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
    whole, named = _decoded(resource) or {}, _decoded(scope) or {}
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
