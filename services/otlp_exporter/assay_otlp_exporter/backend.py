"""The backend as all shards see it: whether it takes spans, and what an operator should fix."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay_otlp_exporter.batch import Item, request
from assay_otlp_exporter.place import LOCAL, span_id_of
from assay_otlp_exporter.sender import Answer, Sender
from assay_runtime import metrics
from assay_runtime.entries import Entry

log = logging.getLogger(__name__)

#: Longest pause that is waited for at once, in seconds; the next attempt may be asked to wait again.
LONGEST_PAUSE_S = 60.0
#: Seconds for which refused spans are a note.
NOTED_S = 3_600.0
#: Name of the span that tests whether the backend takes any.
PROBE = "otlp_exporter check"
_GRPC_PORT = ":4317"
_HINTS = {
    400: "it refuses every span; check otlp_exporter.endpoint and otlp_exporter.headers",
    401: "it rejects the credentials; check otlp_exporter.headers",
    403: "it does not permit this; check otlp_exporter.headers",
    404: "it has nothing at that path; check otlp_exporter.endpoint",
    405: "it takes no spans at that path; check otlp_exporter.endpoint",
    415: "it does not take protobuf over HTTP; check otlp_exporter.endpoint",
    429: "it asks for fewer requests; spans wait",
}


class Backend:
    """Sends the requests of all shards."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        #: Set at a stop: nothing waits for the backend any more.
        self.stopping = asyncio.Event()
        self._problem = ""
        self._not_before = 0.0
        self._refused = 0
        self._refused_at = -NOTED_S
        metrics.EXPORT_UP.set(1)

    def notes(self) -> list[str]:
        """Return why spans wait or were refused, and what to fix; nothing if there is none."""
        found = [self._problem] if self._problem else []
        if time.monotonic() - self._refused_at < NOTED_S:
            where = "see capture_failures with the stage otlp_exporter, and the log of the backend"
            found.append(
                f"{self._sender.endpoint.name} refused {self._refused} spans, the last within an hour; {where}"
            )
        return found

    async def send(self, items: Sequence[Item]) -> Answer:
        """Send one request, after the pause that the backend asked for."""
        if (pause := self._not_before - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.stopping.wait()
        answer = await self._sender.send(request(items))
        if answer.is_success:
            rejected = min(answer.rejected, len(items))
            metrics.EXPORTED_SPANS.labels("sent").inc(len(items) - rejected)
            metrics.EXPORTED_SPANS.labels("rejected").inc(rejected)
            self._count_refused(rejected)
            self._see("")
        return answer

    async def takes_another(self) -> bool:
        """True if the backend takes a span of this service's own, which is the same each time."""
        now, own_id = time.time_ns(), span_id_of(PROBE)
        probe = Span(
            name=PROBE,
            trace_id=own_id * 2,
            span_id=own_id,
            flags=LOCAL,
            start_time_unix_nano=now,
            end_time_unix_nano=now,
        )
        item = Item(Entry("0-0", b""), "assay", "assay-otlp-exporter", probe)
        return (await self._sender.send(request([item]))).is_success

    def refused(self) -> None:
        """Count a span that the backend refuses."""
        metrics.EXPORTED_SPANS.labels("refused").inc()
        self._count_refused(1)

    def failed(self, answer: Answer) -> None:
        """Note why spans wait, and how long the backend asks to wait."""
        name = self._sender.endpoint.name
        if answer.status:
            hint = _HINTS.get(answer.status, "spans wait; check otlp_exporter.endpoint if this lasts")
            self._see(f"{name} answers HTTP {answer.status}: {hint}")
        else:
            hint = "this is usually the port of gRPC: use that of HTTP, 4318; " if name.endswith(_GRPC_PORT) else ""
            self._see(f"{name} cannot be reached ({answer.error}); {hint}is it running? check otlp_exporter.endpoint")
        self._not_before = time.monotonic() + min(answer.retry_after_s, LONGEST_PAUSE_S)

    def _count_refused(self, count: int) -> None:
        if count:
            self._refused, self._refused_at = self._refused + count, time.monotonic()

    def _see(self, problem: str) -> None:
        metrics.EXPORT_UP.set(not problem)
        if problem and problem != self._problem:
            log.warning("spans wait: %s", problem)
        self._problem = problem
