"""Place spans: trace, parent or link, and id. Pure.

An event has the context of its caller (`traceparent`) only if the producer traces. A span that names a parent which the
backend never receives is an orphan, which some backends drop. So a span is a child only of a sampled caller.
"""

from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from opentelemetry.proto.trace.v1.trace_pb2 import SpanFlags

#: Bit 0 of the trace flags (W3C Trace Context).
SAMPLED = 0x01
#: Flags of a span without a remote parent, and of one with one (opentelemetry-proto, `Span.flags`).
LOCAL = SAMPLED | SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
REMOTE = LOCAL | SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK


class Context(NamedTuple):
    """Context of a span of the producer: ids of 16 and 8 bytes, and the trace flags."""

    trace_id: bytes
    span_id: bytes
    flags: int


class Place(NamedTuple):
    """Place of a span. Without `parent_id` it is a root, and may link to a span of the producer."""

    trace_id: bytes
    parent_id: bytes = b""
    linked: Context | None = None
    #: True if the parent is a span of the producer.
    remote: bool = False

    @property
    def flags(self) -> int:
        """Return the flags of the span."""
        return REMOTE if self.remote else LOCAL


def context_of(traceparent: str | None) -> Context | None:
    """Return the context in a `traceparent`; None without a valid one: an id of zeros means no span."""
    if traceparent is None or traceparent.startswith("ff"):
        return None
    _, trace_id, span_id, flags = traceparent.split("-")
    context = Context(bytes.fromhex(trace_id), bytes.fromhex(span_id), int(flags, 16))
    return context if any(context.trace_id) and any(context.span_id) else None


def place_of(event_id: UUID, caller: Context | None, *, as_child: bool) -> Place:
    """Return the place of an event's span: a child of its caller, or a root.

    The id of a root's trace is the `event_id`. The root links to a caller that is not sampled, or whose trace is not in
    this backend (`as_child` is false).
    """
    if caller is None:
        return Place(event_id.bytes)
    if as_child and caller.flags & SAMPLED:
        return Place(caller.trace_id, caller.span_id, remote=True)
    return Place(event_id.bytes, linked=caller)


def span_id_of(name: str) -> bytes:
    """Return the id of a span, the same at every delivery: 8 bytes of the SHA-256 of its name."""
    return sha256(name.encode()).digest()[:8]
