"""Requests: their bounds, and the spans by producer."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay_otlp_exporter.batch import BYTES_MOST, SPANS_MOST, Item, packed, request
from assay_otlp_exporter.sender import _rejected
from assay_runtime.entries import Entry


def item(number: int, size: int = 10, service: str = "s", project: str = "p") -> Item:
    return Item(Entry(f"{number}-0", b""), project, service, Span(name="x" * size, span_id=number.to_bytes(8)))


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([10] * SPANS_MOST, [SPANS_MOST]),
        ([10] * (2 * SPANS_MOST + 1), [SPANS_MOST, SPANS_MOST, 1]),
        ([BYTES_MOST // 2] * 3, [1, 1, 1]),  # two are over the limit with their other fields
        ([BYTES_MOST // 4] * 4, [3, 1]),
        ([10, BYTES_MOST + 1, 10], [1, 1, 1]),
    ],
)
def test_requests_are_within_both_bounds_and_a_larger_span_is_alone(sizes: list[int], parts: list[int]) -> None:
    items = [item(number + 1, size) for number, size in enumerate(sizes)]
    found = [list(part) for part in packed(items)]
    assert [len(part) for part in found] == parts
    assert [each for part in found for each in part] == items


def test_spans_of_one_producer_share_a_resource() -> None:
    items = [item(1, service="a"), item(2, service="b"), item(3, service="a"), item(4, service="a", project="q")]
    found = ExportTraceServiceRequest.FromString(request(items))
    by_producer = {
        tuple(sorted(each.value.string_value for each in of_producer.resource.attributes)): [
            int.from_bytes(span.span_id) for scope in of_producer.scope_spans for span in scope.spans
        ]
        for of_producer in found.resource_spans
    }
    assert by_producer == {("a", "p", "p"): [1, 3], ("b", "p", "p"): [2], ("a", "q", "q"): [4]}


@pytest.mark.parametrize(
    ("body", "rejected"),
    [
        (b"", 0),
        (b"\x0a\x02\x08\x03", 3),
        (b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}', 3),
        (b'{"partialSuccess":{"rejectedSpans":3}}', 3),
        (b"{}", 0),
        (b'{"partialSuccess":null}', 0),
        (b'{"partialSuccess":{"rejectedSpans":-3}}', 0),
        (b"[1]", 0),
        (b"\xff\xff", 0),
        (b"<html>", 0),
    ],
)
def test_rejected_spans_are_read_from_protobuf_and_json(body: bytes, rejected: int) -> None:
    assert _rejected(body) == rejected
