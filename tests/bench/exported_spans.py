"""Tool calls made into OTLP requests, compared with the SDK of OpenTelemetry: a part of the suite `gateway`.

Both sides parse the same entries, give each span the same attributes, and serialize requests of 512. Neither sends.
"""

from typing import Any

import orjson
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from assay_otlp_exporter.app import event_item
from assay_otlp_exporter.batch import SPANS_MOST, packed, request
from assay_otlp_exporter.place import context_of
from assay_otlp_exporter.spans import nanoseconds
from assay_runtime.entries import Entry
from assay_schema.events import ScrubbedToolCall
from assay_schema.ids import new_event_id
from assay_schema.published import examples
from assay_schema.settings import OtlpExporterSettings
from assay_schema.validation import parse_scrubbed
from tests.bench.result import result
from tests.bench.spans import fastest

SPANS = 4 * SPANS_MOST


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in spans per CPU second."""
    rounds = 3 if quick else 20
    [document] = [orjson.loads(each.document_bytes) for each in examples("events") if each.name == "tool-call-full"]
    entries = [
        Entry(f"{number}-0", orjson.dumps(document | {"event_id": new_event_id(), "origin": "sdk"}))
        for number in range(SPANS)
    ]
    sides = [lambda: _ours(entries), lambda: _sdk(entries)]
    for side in sides:  # both send the same number of spans
        assert side() == SPANS
    ours, sdk = (SPANS / took for took in fastest(sides, rounds))
    return [result("tool calls exported / OpenTelemetry's SDK", ours, sdk, "spans/CPU-s", ">= 1.5", rounds * SPANS)]


def _ours(entries: list[Entry]) -> int:
    item_of = event_item(OtlpExporterSettings())
    items = [item for entry in entries if (item := item_of(entry))]
    return sum(len(part) for part in packed(items) if request(part))


class _Encoding(SpanExporter):
    """Serializes spans in requests of the same size."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[ReadableSpan] = []

    def export(self, spans: Any) -> SpanExportResult:
        self._waiting += spans
        if len(self._waiting) == SPANS_MOST:
            encode_spans(self._waiting).SerializeToString()
            self.count += len(self._waiting)
            self._waiting = []
        return SpanExportResult.SUCCESS


def _sdk(entries: list[Entry]) -> int:
    exporter, provider = _Encoding(), TracerProvider(resource=Resource({"service.name": "search-api"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("assay")
    for entry in entries:
        event = parse_scrubbed(entry.data)
        assert isinstance(event, ScrubbedToolCall)
        call, caller = event.payload, context_of(event.traceparent)
        assert caller
        parent = trace.SpanContext(
            int.from_bytes(caller.trace_id),
            int.from_bytes(caller.span_id),
            is_remote=True,
            trace_flags=trace.TraceFlags(1),
        )
        ended = nanoseconds(call.timestamp)
        values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id or "",
            "gen_ai.agent.name": call.agent_name or "",
            "assay.status": call.status,
            "openinference.span.kind": "TOOL",
            "tool.name": call.tool_name,
            "gen_ai.conversation.id": event.session_id or "",
            "assay.event_id": str(event.event_id),
            "assay.project": event.project,
            "assay.policy": event.policy,
        }
        span = tracer.start_span(
            f"execute_tool {call.tool_name}",
            trace.set_span_in_context(trace.NonRecordingSpan(parent)),
            attributes=values,
            start_time=ended - int(call.duration_ms * 1_000_000),
        )
        span.set_status(trace.Status(trace.StatusCode.OK))
        span.end(ended)
    provider.shutdown()
    return exporter.count
