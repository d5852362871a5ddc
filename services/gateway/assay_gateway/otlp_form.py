"""The two forms of an OTLP request, protobuf and JSON, as the gateway sees them. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from typing import NamedTuple

from assay_schema.span_entry import Encoding

#: Attributes of a resource that are kept.
RESOURCE_NAMES = frozenset({"service.name", "service.instance.id"})
#: Longest kept name, in characters.
NAME_MAX = 255
#: Largest resource with its scope, in bytes.
PLACE_MAX_BYTES = 256 * 1024
#: Resources and scopes whose names are remembered; items of one come one after the other.
PLACES_CACHED = 16

#: Most spans, or log records, of a request, and of one step.
ITEMS_MAX, GROUP = 50_000, 256

#: Begin and end of an encoded item in its request.
Range = tuple[int, int]


class Group(NamedTuple):
    """Items of one encoded resource and scope, in their order."""

    resource: bytes
    scope: bytes
    places: list[Range]


class OtlpError(ValueError):
    """A request, or an item of it, cannot be read. The message never quotes it."""


class Ids(NamedTuple):
    """The bytes of a trace id and of a span id."""

    trace: bytes
    span: bytes

    def valid(self, *, with_span: bool) -> bool:
        """True if they have the right lengths and are not zero."""
        return len(self.trace) == 16 and any(self.trace) and (not with_span or (len(self.span) == 8 and any(self.span)))


class Form(ABC):
    """A form. An item is a span or a log record, encoded."""

    encoding: Encoding

    @abstractmethod
    def groups(self, body: bytes) -> Iterator[Group | None]:
        """Yield the items, at most `GROUP` at once, and None where others should run.

        Raises `OtlpError` if the body is not a request, or has more than `ITEMS_MAX` items.
        """

    @abstractmethod
    def ids(self, data: bytes) -> Ids:
        """Return the ids of an item. Raises `OtlpError` if it cannot be decoded."""

    @abstractmethod
    def of_traces(
        self, body: bytes, places: list[Range], traces: Container[bytes]
    ) -> Iterator[tuple[bytes, Range] | None]:
        """Yield the spans of some traces, each with its trace, and None where others should run.

        A span whose id is at the usual place is not decoded.
        """

    @abstractmethod
    def skeleton(self, data: bytes) -> bytes:
        """Return a span with its ids, flags and times only. Raises `OtlpError` if it cannot be decoded."""

    def place(self, resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
        """Return resource and scope, cut down to their names. Raises `OtlpError`."""
        if len(resource) + len(scope) > PLACE_MAX_BYTES:
            raise OtlpError("its resource or scope is too large")
        return self.names(resource, scope)

    @abstractmethod
    def names(self, resource: bytes, scope: bytes) -> tuple[bytes, bytes]:
        """Return the names in a resource and a scope of a bounded size. Raises `OtlpError`."""

    @abstractmethod
    def request(self, groups: Iterator[tuple[bytes, bytes, list[bytes]]]) -> bytes:
        """Return a request with groups of items: resource, scope, items."""
