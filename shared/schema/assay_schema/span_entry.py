"""An entry of the stream `spans`: the spans, or log records, of one trace in one request. Pure.

A line of JSON, then the OTLP message as the client sent it, cut down to this trace and to what is about AI.
"""

from dataclasses import dataclass
from typing import Literal, cast, get_args

import orjson

#: Instrumentation scope of the spans that Assay itself exports. If they come back, they make no event.
EXPORTER_SCOPE = "assay.otlp_exporter"
Encoding = Literal["protobuf", "json"]
#: `traces` for an `ExportTraceServiceRequest`, `logs` for an `ExportLogsServiceRequest`.
Signal = Literal["traces", "logs"]


class SpanEntryError(ValueError):
    """The bytes are not such an entry. The message never quotes them."""


@dataclass(frozen=True, slots=True)
class SpanEntry:
    """The parts of an entry."""

    project: str
    #: The key's default service, for clients whose resource has no name; empty if it has none.
    service: str
    #: 32 hexadecimal digits in lower case.
    trace_id: str
    signal: Signal
    encoding: Encoding
    #: The OTLP message.
    body: bytes

    def encoded(self) -> bytes:
        """Return the bytes of the entry."""
        head = {name: getattr(self, name) for name in _HEAD}
        return orjson.dumps(head) + b"\n" + self.body


_SIGNALS, _ENCODINGS = get_args(Signal), get_args(Encoding)
_HEAD = ("project", "service", "trace_id", "signal", "encoding")


def parse_span_entry(data: bytes) -> SpanEntry:
    """Return the parts of an entry. Raises `SpanEntryError`."""
    line, found, body = data.partition(b"\n")
    try:
        head = orjson.loads(line)
    except orjson.JSONDecodeError:
        head = None
    if not found or not isinstance(head, dict):
        raise SpanEntryError("not a line of JSON before the spans")
    project, service, trace_id, signal, encoding = (head.get(name) for name in _HEAD)
    if not (isinstance(project, str) and isinstance(service, str) and isinstance(trace_id, str)):
        raise SpanEntryError("project, service and trace_id must be texts")
    if signal not in _SIGNALS or encoding not in _ENCODINGS:
        raise SpanEntryError("an unknown signal or encoding")
    return SpanEntry(project, service, trace_id, cast("Signal", signal), cast("Encoding", encoding), body)
