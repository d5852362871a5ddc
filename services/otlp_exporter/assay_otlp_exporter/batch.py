"""Pack spans into OTLP requests within the bounds. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from assay_otlp_exporter.spans import set_attributes
from assay_runtime.entries import Entry
from assay_schema.span_entry import EXPORTER_SCOPE

#: Maximum number of spans of a request, and of their bytes before compression.
SPANS_MOST, BYTES_MOST = 512, 1024 * 1024


class Item(NamedTuple):
    """A span, the entry that it was made of, and its producer."""

    entry: Entry
    project: str
    service: str
    span: Span


def packed(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut items into requests; a span larger than `BYTES_MOST` is alone."""
    start = size = 0
    for number, item in enumerate(items):
        more = item.span.ByteSize()
        if number > start and (number - start == SPANS_MOST or size + more > BYTES_MOST):
            yield items[start:number]
            start, size = number, 0
        size += more
    if items[start:]:
        yield items[start:]


def request(items: Sequence[Item]) -> bytes:
    """Return an `ExportTraceServiceRequest`: spans by the resource of their producer."""
    found = ExportTraceServiceRequest()
    scopes: dict[tuple[str, str], ScopeSpans] = {}
    for _, project, service, span in items:
        scope = scopes.get((project, service))
        if scope is None:
            of_producer: ResourceSpans = found.resource_spans.add()
            names = {"service.name": service, "assay.project": project, "openinference.project.name": project}
            set_attributes(of_producer.resource.attributes, names)
            scope = of_producer.scope_spans.add(scope=InstrumentationScope(name=EXPORTER_SCOPE))
            scopes[project, service] = scope
        scope.spans.append(span)
    return bytes(found.SerializeToString())
