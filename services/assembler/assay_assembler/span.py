"""A decoded span, independent of its encoding."""

from typing import Any, Literal, NamedTuple

#: An attribute's value as Python has it: text, number, boolean, bytes, list or dict.
Attributes = dict[str, Any]
Status = Literal["unset", "ok", "error"]
#: By the number of OTLP.
STATUSES: tuple[Status, ...] = ("unset", "ok", "error")

#: Flags of a span whose parent is in another process: "known", and "remote".
_REMOTE_PARENT = 0x300


class SpanEvent(NamedTuple):
    """An event on a span."""

    name: str
    attributes: Attributes


class Link(NamedTuple):
    """A link to another span. Ids are lower-case hexadecimal."""

    trace_id: str
    span_id: str


class Source(NamedTuple):
    """Process and instrumentation that made a span."""

    #: `service.name` of the resource; may be empty.
    service: str
    #: `service.instance.id` of the resource; may be empty.
    instance: str
    #: Name of the instrumentation scope.
    scope: str


class Span(NamedTuple):
    """One span with marks of generative AI. Ids are lower-case hexadecimal."""

    trace_id: str
    span_id: str
    #: Empty without a parent.
    parent_id: str
    #: True if the parent is absent or in another process.
    local_root: bool
    name: str
    #: Unix nanoseconds.
    start_ns: int
    end_ns: int
    status: Status
    attributes: Attributes
    events: tuple[SpanEvent, ...]
    links: tuple[Link, ...]
    source: Source
    #: Number of attributes that the producer's SDK dropped.
    dropped: int


def is_local_root(parent_id: str, flags: int) -> bool:
    """Return whether a span is the first of its process."""
    return not parent_id or flags & _REMOTE_PARENT == _REMOTE_PARENT
