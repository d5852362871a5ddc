"""One trace from the producer to the stored row: batch spans link to the traces of the events they carried."""

import gzip
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

from assay_capture import Capture
from assay_schema.settings import settings_from
from assay_schema.streams import EVENTS
from tests.redis_server import RedisServer, free_port


class Collector:
    """An OTLP/HTTP endpoint on a real socket that keeps the spans it gets."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, set[str], str]] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        for span in scope.spans:
                            collector.spans.append((span.name, {link.trace_id.hex() for link in span.links}, str(span)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


def test_the_scrubbers_span_links_to_the_producers_trace_and_holds_no_content(
    redis_server: RedisServer, collector: Collector
) -> None:
    settings = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_SCRUBBER_PORT": str(free_port()),
        "ASSAY_TELEMETRY_OTLP_ENDPOINT": collector.url,
    }
    service = subprocess.Popen(
        [sys.executable, "-m", "assay_scrubber"], env=os.environ | settings, stderr=subprocess.DEVNULL
    )
    tracer = TracerProvider().get_tracer("producer")
    try:
        capture = Capture(
            settings_from(
                {"ASSAY_REDIS_URL": redis_server.url, "ASSAY_CAPTURE_SERVICE": "s"}, "[capture]\nenabled = true"
            )
        )
        with tracer.start_as_current_span("handle a request"):
            trace_id = f"{trace.get_current_span().get_span_context().trace_id:032x}"
            capture.retrieval(
                tool_name="query", query="secretwords", retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1
            )
        capture.close()
        deadline = time.monotonic() + 30
        with redis_server.client() as client:
            while not client.xlen(EVENTS.key()):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            [(_, fields)] = client.xrange(EVENTS.key())
    finally:
        service.terminate()
        assert service.wait(30) == 0
    assert trace_id.encode() in fields[b"data"], "the row carries the trace context"
    batches = [(links, text) for name, links, text in collector.spans if name == "scrubber process capture"]
    assert any(trace_id in links for links, _ in batches)
    assert "secretwords" not in "".join(text for _, text in batches)
