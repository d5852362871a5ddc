"""Spans for batches, linked to the traces of their events. No captured text goes into a span."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from assay_schema.settings import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

#: Maximum number of links on one span; more would cost more than they are worth.
MOST_LINKS = 32

_tracer = trace.get_tracer("assay")


def export_spans(service: str, settings: TelemetrySettings) -> "TracerProvider | None":
    """Send this process's spans to the OTLP collector, if any; without one, spans cost almost nothing."""
    if settings.otlp_endpoint is None:
        return None
    # The SDK and protobuf take 60 ms to load, in each service.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": f"assay-{service}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{settings.otlp_endpoint.rstrip('/')}/v1/traces")))
    trace.set_tracer_provider(provider)
    return provider


@contextmanager
def span(name: str, stream: str, group: str, entries: int) -> Iterator[None]:
    """Record a consumer span over one batch, named by OpenTelemetry's messaging conventions."""
    attributes: dict[str, str | int] = {
        "messaging.system": "redis",
        "messaging.operation.name": "process",
        "messaging.destination.name": stream,
        "messaging.consumer.group.name": group,
        "messaging.batch.message_count": entries,
    }
    with _tracer.start_as_current_span(name, kind=SpanKind.CONSUMER, attributes=attributes):
        yield


def link(traceparents: Iterable[str]) -> None:
    """Link the current span to the traces of sampled events, up to `MOST_LINKS`."""
    current = trace.get_current_span()
    if not current.is_recording():
        return
    links = 0
    for traceparent in traceparents:
        if int(traceparent[-2:], 16) & TraceFlags.SAMPLED:
            _, trace_id, span_id, flags = traceparent.split("-")
            context = SpanContext(
                int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
            )
            current.add_link(context)
            links += 1
            if links == MOST_LINKS:
                return
