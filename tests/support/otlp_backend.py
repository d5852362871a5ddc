"""An OTLP backend over a real socket: decodes what it receives, and can refuse, delay or be away."""

import gzip
import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.receivers import Receiver, Request


class Received(NamedTuple):
    """A span, and the attributes of its resource."""

    span: Span
    resource: dict[str, str]

    @property
    def event_id(self) -> str:
        """The event's id; empty for the exporter's own span."""
        return next((each.value.string_value for each in self.span.attributes if each.key == "assay.event_id"), "")


class OtlpBackend:
    """Keeps the spans of requests that it answers with 200. `answer` decides by the spans of a request; 200 by default."""

    def __init__(self) -> None:
        self.answer: Callable[[list[Received]], int | tuple[int, dict[str, str]]] = lambda _: 200
        self.taken: list[Received] = []
        self._lock = threading.Lock()
        self._receiver = Receiver()
        self._receiver.answer = self._answer
        self.url = self._receiver.url

    @property
    def requests(self) -> list[Request]:
        return self._receiver.requests

    def times_taken(self) -> Counter[str]:
        """Return how often the span of each event was taken."""
        with self._lock:
            return Counter(each.event_id for each in self.taken)

    def reset(self) -> None:
        """Forget everything, and take everything."""
        self.answer = lambda _: 200
        with self._lock:
            self.taken.clear()
            self.requests.clear()

    def close(self) -> None:
        self._receiver.close()

    def _answer(self, request: Request) -> int | tuple[int, dict[str, str]]:
        received = spans_of(request)
        answer = self.answer(received)
        if (answer if isinstance(answer, int) else answer[0]) == 200:
            with self._lock:
                self.taken += [each for each in received if each.event_id]
        return answer


def spans_of(request: Request) -> list[Received]:
    """Decode a request."""
    assert request.path == "/v1/traces"
    assert request.headers["content-type"] == "application/x-protobuf"
    body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
    return [
        Received(span, {each.key: each.value.string_value for each in of_producer.resource.attributes})
        for of_producer in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in of_producer.scope_spans
        for span in scope.spans
    ]
