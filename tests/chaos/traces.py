"""Traces as an instrumented program exports them, and the ids of the events that must come of each."""

import os
import time
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay_assembler.event_ids import span_event_id

ASKED = '[{"role":"user","parts":[{"type":"text","content":"which function parses a date?"}]}]'
SAID = '[{"role":"assistant","parts":[{"type":"text","content":"parse_date, and it raises ValueError."}]}]'
FOUND = '[{"id":"handbook/page-7","score":0.5,"content":"parse_date raises ValueError when there is no date."}]'
SEARCH = {
    "gen_ai.operation.name": "retrieval",
    "gen_ai.retrieval.query.text": "parse a date",
    "gen_ai.retrieval.documents": FOUND,
}
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.input.messages": ASKED,
    "gen_ai.output.messages": SAID,
}
ROOT = {"http.route": "/ask", "gen_ai.operation.name": "invoke_agent"}


@dataclass(frozen=True)
class Trace:
    """One trace: a root around a search and a call of a model."""

    event_ids: tuple[str, str]
    #: Request with the spans inside, which are exported first.
    inside: bytes
    #: Request with the root.
    root: bytes

    @classmethod
    def of(cls, service: str) -> "Trace":
        """A fresh one, of a service of the project `chaos`."""
        trace_id, now = os.urandom(16), time.time_ns()
        root, search, chat = (os.urandom(8) for _ in range(3))
        names = (
            span_event_id("chaos", trace_id.hex(), search.hex(), "retrieval", now),
            span_event_id("chaos", trace_id.hex(), root.hex(), "answer", now),
        )
        inside = _request(service, trace_id, now, [(search, root, SEARCH), (chat, root, CHAT)])
        return cls(names, inside, _request(service, trace_id, now, [(root, b"", ROOT)]))


def _request(service: str, trace_id: bytes, now: int, spans: list[tuple[bytes, bytes, dict[str, str]]]) -> bytes:
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = service
    scope = group.scope_spans.add()
    for span_id, parent, attributes in spans:
        span = scope.spans.add(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent,
            name="step",
            start_time_unix_nano=now,
            end_time_unix_nano=now + 1_000_000,
        )
        for key, value in attributes.items():
            span.attributes.add(key=key).value.string_value = value
    return bytes(made.SerializeToString())
