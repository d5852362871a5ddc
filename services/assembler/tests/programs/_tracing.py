"""OpenTelemetry's SDK with its OTLP exporter, and what all programs ask."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

QUESTION = "How long are rows kept?"
PASSAGES = {
    "4101": "Rows are kept for 90 days.",
    "4102": "Retention is set per project.",
    "977": "Backups are kept for a year.",
}


def traced() -> TracerProvider:
    """Set and return the provider of the process."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider
