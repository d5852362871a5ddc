"""Walk the protobuf of an OTLP request down to its spans or log records. Pure.

`ExportTraceServiceRequest` and `ExportLogsServiceRequest` are nested in the same way, with the same field numbers:
resource (1) and scopes (2) in field 1, scope (1) and items (2) in each scope (opentelemetry-proto, collector/trace/v1,
trace/v1, logs/v1).
"""

from collections.abc import Iterator

from assay_gateway.otlp_form import GROUP, ITEMS_MAX, Group, Range

#: The first field, and the second, of each level: their tags.
_FIRST, _SECOND = 0x0A, 0x12
#: Most bytes of a number on the wire.
_VARINT_MAX = 10
#: Most fields of a request that are not items: a resource with one item has about six.
OTHERS_MAX = 100_000


class WireError(ValueError):
    """The bytes are not the expected message. The message never quotes them."""


def groups(body: bytes) -> Iterator[Group | None]:
    """Yield the items of a request, and None where nothing is to be yielded for long. Raises `WireError`."""
    return _Walk(body).groups()


class _Walk:
    """The way through a request. Other fields than items cost time and yield nothing, so their number is bounded."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._left = OTHERS_MAX
        self._items_left = ITEMS_MAX

    def groups(self) -> Iterator[Group | None]:
        """Yield the items, and None."""
        body = self._body
        for number, begin, end in self._fields(0, len(body)):
            self._pass()
            yield None
            if number != _FIRST:
                continue
            resource, scopes = b"", []
            for inner, start, stop in self._fields(begin, end):
                self._pass()
                if inner == _FIRST:
                    resource = body[start:stop]
                elif inner == _SECOND:
                    scopes.append((start, stop))
            for start, stop in scopes:
                yield from self._items_of(start, stop, resource)

    def _items_of(self, begin: int, end: int, resource: bytes) -> Iterator[Group | None]:
        """Yield the items of a scope once it has been read: the scope itself may come after them."""
        body, scope, position = self._body, b"", begin
        places: list[Range] = []
        while position < end:
            position = _run(body, position, end, places)
            yield None
            if len(places) > self._items_left:
                break
            for number, start, stop in self._fields(position, end):
                if number == _SECOND:
                    places.append((start, stop))
                else:
                    self._pass()
                    scope = body[start:stop] if number == _FIRST else scope
                position = stop
                break
            else:
                position = end
        self._items_left -= len(places)
        if self._items_left < 0:
            raise WireError(f"more than {ITEMS_MAX} spans or log records; send smaller batches")
        for first in range(0, len(places), GROUP):
            yield Group(resource, scope, places[first : first + GROUP])

    def _pass(self) -> None:
        """Count a field other than an item."""
        self._left -= 1
        if self._left < 0:
            raise WireError(f"more than {OTHERS_MAX} fields that are not spans or log records")

    def _fields(self, position: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield tag, begin and end of the value of each field that has a length; skip numbers."""
        data = self._body
        while position < end:
            tag = data[position]
            position += 1
            if tag > 0x7F:
                tag, position = _rest(data, tag, position, end)
            kind = tag & 7
            if kind == 2:
                if position >= end:
                    raise WireError("the message ends within a field")
                size = data[position]
                position += 1
                if size > 0x7F:
                    size, position = _rest(data, size, position, end)
                begin, position = position, position + size
                if position > end:
                    raise WireError("a field is longer than its message")
                yield tag, begin, position
            elif kind == 0:
                self._pass()
                _, position = _rest(data, 0x80, position, end, shift=0)
            elif kind in (1, 5):
                self._pass()
                position += 8 if kind == 1 else 4
            else:
                raise WireError("an unknown kind of field")
            if tag >> 3 == 0:
                raise WireError("a field without a number")
        if position > end:
            raise WireError("a field is longer than its message")


def _run(data: bytes, position: int, end: int, places: list[Range]) -> int:
    """Add the items that come one after the other, at most a group of less than 16 KB each. Return the position after."""
    last = end - 3
    for _ in range(GROUP):
        if position > last or data[position] != _SECOND:
            break
        size, begin = data[position + 1], position + 2
        if size > 0x7F:
            if data[begin] > 0x7F:
                break
            size, begin = size & 0x7F | data[begin] << 7, begin + 1
        if begin + size > end:
            break
        position = begin + size
        places.append((begin, position))
    return position


def _rest(data: bytes, first: int, position: int, end: int, shift: int = 7) -> tuple[int, int]:
    """Return a number whose first byte is given, and the position after it."""
    value = first & 0x7F
    for _ in range(_VARINT_MAX):
        if position >= end:
            raise WireError("the message ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise WireError("a number is too long")


def field(tag: int, content: bytes) -> bytes:
    """Return an encoded field with a length."""
    return bytes((tag,)) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """Return an encoded number, which is not negative."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def request(groups: Iterator[tuple[bytes, bytes, list[bytes]]]) -> bytes:
    """Return a request with items: each group is an encoded resource, an encoded scope and encoded items."""
    made = []
    for resource, scope, encoded in groups:
        scoped = field(_FIRST, scope) + b"".join([field(_SECOND, each) for each in encoded])
        made.append(field(_FIRST, field(_FIRST, resource) + field(_SECOND, scoped)))
    return b"".join(made)
