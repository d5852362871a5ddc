"""One trace from the producer to the stored row: batch spans link to the traces of the events they carried."""

import contextlib
import gzip
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from pydantic import SecretStr

from assay_runtime.store import connect
from assay_schema.settings import RedisSettings
from tests.support.ports import free_port
from tests.support.producer import captured
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer


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


@contextlib.contextmanager
def running(services: tuple[str, ...], environment: dict[str, str]) -> Iterator[None]:
    """The services, and a clean end of each: what a span processor still holds is exported then."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"assay_{name}"], env=inherited | environment, stderr=subprocess.DEVNULL
        )
        for name in services
    ]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        codes = []
        for process in processes:
            try:
                codes.append(process.wait(60))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait(60))
    assert codes == [0] * len(processes)


def test_the_services_spans_link_to_the_producers_trace_and_hold_no_content(
    redis_server: RedisServer, migrated: StoreServer, collector: Collector, tmp_path: Path
) -> None:
    environment = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_STORE_URL": migrated.url,
        "ASSAY_STORE_USER": "writer",
        "ASSAY_STORE_PASSWORD": PASSWORD,
        "ASSAY_SCRUBBER_PORT": str(free_port()),
        "ASSAY_WRITER_PORT": str(free_port()),
        "ASSAY_TELEMETRY_OTLP_ENDPOINT": collector.url,
    }
    tracer = TracerProvider().get_tracer("producer")
    reader = connect(migrated.settings("sre").store)
    with running(("scrubber", "writer"), environment), contextlib.closing(reader):
        with tracer.start_as_current_span("handle a request"):
            trace_id = f"{trace.get_current_span().get_span_context().trace_id:032x}"
            assert captured(RedisSettings(url=SecretStr(redis_server.url)), tmp_path, "secretwords").published == 1
        deadline = time.monotonic() + 60
        while not (rows := reader.query("SELECT query, traceparent FROM candidates").result_rows):
            assert time.monotonic() < deadline, "the event is not stored"
            time.sleep(0.05)
    [(query, traceparent)] = rows
    assert query == "secretwords"
    assert traceparent.split("-")[1] == trace_id, "the row carries the trace context"
    for batches in ("scrubber process capture", "writer process events"):
        links = [links for name, links, _ in collector.spans if name == batches]
        assert any(trace_id in linked for linked in links), f"{batches}: {links}"
    assert "secretwords" not in "".join(text for _, _, text in collector.spans)
