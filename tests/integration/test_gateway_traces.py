"""Exporters of OpenTelemetry against the gateway's process: what they are answered, and what is in the stream `spans`."""

import base64
import gzip
import http.client
import json
import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from assay_access.api_keys import KeyKind
from assay_schema.span_entry import SpanEntry, parse_span_entry
from assay_schema.streams import CAPTURE, FIELD, SPANS
from tests.support.gateway import Gateway, redis_with_identities, running_gateway

SECRET = "jane.doe@example.com"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("traces")) as running:
        yield running


@pytest.fixture
def fresh(gateway: Gateway) -> Gateway:
    with gateway.redis.client() as client:
        client.delete(CAPTURE.key(), SPANS.key())
    return gateway


def stored(gateway: Gateway) -> list[SpanEntry]:
    with gateway.redis.client() as client:
        return [parse_span_entry(fields[FIELD.encode()]) for _, fields in client.xrange(SPANS.key())]


def send(gateway: Gateway, exporter: OTLPSpanExporter, *, ai: bool = True) -> None:
    provider = TracerProvider(resource=Resource({"service.name": "search"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("by hand").start_as_current_span("chat m") as span:
        span.set_attribute("gen_ai.operation.name" if ai else "http.route", "chat")
        span.set_attribute("gen_ai.input.messages" if ai else "http.body", f'[{{"role":"user","content":"{SECRET}"}}]')
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip, Compression.Deflate])
def test_the_official_exporter_is_a_producer(fresh: Gateway, compression: Compression) -> None:
    headers = {"authorization": f"Bearer {fresh.key()}"}
    address = f"http://127.0.0.1:{fresh.port}/v1/traces"
    send(fresh, OTLPSpanExporter(address, headers=headers, compression=compression))
    (entry,) = stored(fresh)
    assert (entry.project, entry.signal, entry.encoding) == ("shop", "traces", "protobuf")
    assert SECRET.encode() in entry.body
    assert SECRET not in fresh.log()


def test_langfuse_users_change_host_and_keys_only(fresh: Gateway) -> None:
    basic = base64.b64encode(f"anything:{fresh.key()}".encode()).decode()
    address = f"http://127.0.0.1:{fresh.port}/api/public/otel/v1/traces"
    send(fresh, OTLPSpanExporter(address, headers={"authorization": f"Basic {basic}"}))
    assert len(stored(fresh)) == 1


def test_spans_of_other_kinds_are_answered_and_dropped(fresh: Gateway) -> None:
    headers = {"authorization": f"Bearer {fresh.key()}"}
    send(fresh, OTLPSpanExporter(f"http://127.0.0.1:{fresh.port}/v1/traces", headers=headers), ai=False)
    assert stored(fresh) == []
    assert 'assay_gateway_spans_total{outcome="plain",project="shop"}' in fresh.health("/metrics")[1]


def test_a_refused_exporter_is_told_why(fresh: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{fresh.port}/v1/traces", headers={"authorization": "Bearer no"})
    with caplog.at_level(logging.ERROR):
        send(fresh, exporter)
    assert "401" in caplog.text
    assert stored(fresh) == []


def json_spans(**changes: Any) -> bytes:
    span = {
        "traceId": "AB" * 16,
        "spanId": "cd" * 8,
        "name": "chat",
        "kind": "SPAN_KIND_CLIENT",
        "startTimeUnixNano": 1790000000000000000,
        "endTimeUnixNano": "1790000001000000000",
        "attributes": [{"key": "gen_ai.request.model", "value": {"stringValue": "m"}}],
        "later": {"unknown": [1]},
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | changes]}]}]}).encode()


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_json_of_a_javascript_exporter_is_read(fresh: Gateway, encoding: str) -> None:
    body = json_spans()
    sent = gzip.compress(body) if encoding else body
    answer = fresh.send("/v1/traces", sent, fresh.key(), Content_Encoding=encoding)
    assert answer.status == 200
    assert "no content" in answer.json["partialSuccess"]["errorMessage"]
    assert answer.json["partialSuccess"]["rejectedSpans"] == "0"
    (entry,) = stored(fresh)
    assert (entry.trace_id, entry.encoding) == ("ab" * 16, "json")


@pytest.mark.parametrize("binary", [True, False], ids=["protobuf", "json"])
def test_a_refusal_has_the_form_of_the_request(fresh: Gateway, binary: bool) -> None:
    media_type = "application/x-protobuf" if binary else "application/json"
    answer = fresh.send("/v1/traces", b"\xff" if binary else b"[", fresh.key(), Content_Type=media_type)
    assert (answer.status, answer.headers["content-type"]) == (400, media_type)
    assert b"invalid_otlp" in answer.body


def test_a_request_of_which_nothing_is_accepted_is_a_400(fresh: Gateway) -> None:
    answer = fresh.send("/v1/traces", json_spans(spanId=""), fresh.key())
    assert answer.status == 400
    assert "span ids 8" in answer.json["message"]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
def test_keys_of_browsers_and_other_methods_are_refused(fresh: Gateway, path: str) -> None:
    answer = fresh.send(path, json_spans(), fresh.key(KeyKind.FEEDBACK))
    assert (answer.status, stored(fresh)) == (403, [])
    assert fresh.send(path, None, method="GET").status == 405
    assert fresh.send(path, json_spans(), fresh.key(), Content_Type="text/csv").status == 415
    assert fresh.send(path, bytes(17 << 20), fresh.key()).status == 413


def test_an_exporter_gets_503_while_the_spans_are_not_assembled(tmp_path: Any) -> None:
    redis = redis_with_identities(tmp_path)
    gateway = Gateway(tmp_path, redis, ASSAY_CAPTURE_HIGH_WATER_ENTRIES="3").start()
    try:
        key, answers, end = gateway.key(), [], monotonic() + 60
        while monotonic() < end:  # the gateway looks at the length of the stream now and then, not at each request
            body = json_spans(spanId=f"{len(answers) + 1:016x}")
            answers.append(gateway.send("/v1/traces", body, key))
            if answers[-1].status != 200:
                break
        assert answers[-1].status == 503
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 5
        assert len(stored(gateway)) == len(answers) - 1
    finally:
        gateway.kill()
        redis.stop()


def test_an_answer_in_protobuf_is_readable(fresh: Gateway) -> None:
    answer = fresh.send("/v1/traces", b"", fresh.key(), Content_Type="application/x-protobuf")
    assert (answer.status, ExportTraceServiceResponse.FromString(answer.body)) == (200, ExportTraceServiceResponse())


@pytest.mark.parametrize("zipped", [True, False])
def test_a_body_in_chunks_without_a_length_is_read_as_exporters_for_javascript_send_it(
    fresh: Gateway, zipped: bool
) -> None:
    named = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    raw = {
        "traceId": "0AF7651916CD43DD8448EB211C80319C",
        "spanId": "00F067AA0BA902B7",
        "flags": 257,
        "attributes": [named],
    }
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [raw]}]}]}).encode()
    body = gzip.compress(body) if zipped else body
    headers = {"Authorization": f"Bearer {fresh.key()}", "Content-Type": "application/json"}
    headers |= {"Content-Encoding": "gzip"} if zipped else {}
    connection = http.client.HTTPConnection("127.0.0.1", fresh.port, timeout=60)
    try:
        parts = (body[place : place + 20] for place in range(0, len(body), 20))
        connection.request("POST", "/v1/traces", parts, headers, encode_chunked=True)
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    (entry,) = stored(fresh)
    assert entry.trace_id == raw["traceId"].lower()
