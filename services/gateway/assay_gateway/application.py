"""The HTTP application of the gateway: its routes, and the order in which a request is checked.

Order: path, method, key, kind of the key, back-pressure, type of the body, rate, body, events. A request is answered
with 200 only after Redis has acknowledged every event that it reports as accepted.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from assay_access.api_keys import KeyKind, KeyRecord
from assay_gateway import otlp_answer
from assay_gateway.append import Lane
from assay_gateway.events import Batch
from assay_gateway.exchange import Exchange, Gone, InFlight, Receive, Scope, Send
from assay_gateway.feedback import feedback_event, verdict_of
from assay_gateway.items import json_items, lines
from assay_gateway.known_keys import KnownKeys
from assay_gateway.rates import Rates
from assay_gateway.refusal import RefusedError, unauthorized, unavailable
from assay_gateway.spans import SpanBatch
from assay_gateway.targets import Targets
from assay_gateway.turns import Turns
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_schema.settings import GatewaySettings
from assay_schema.span_entry import Signal
from assay_schema.streams import CAPTURE, SPANS, shard_of

log = logging.getLogger(__name__)

JSON = ("application/json",)
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
#: Browsers send these without asking first (`navigator.sendBeacon`).
BEACON = ("text/plain",)
PROTOBUF = (otlp_answer.PROTOBUF,)
#: Largest body of feedback, in bytes.
FEEDBACK_BYTES = 16 * 1024

Handler = Callable[[Exchange], Awaitable[None]]


class Application:
    """An ASGI application."""

    def __init__(
        self,
        settings: GatewaySettings,
        keys: KnownKeys,
        lanes: Sequence[Lane],
        targets: Targets,
        rates: Rates | None = None,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._lanes = lanes
        self._targets = targets
        self.rates = rates or Rates(settings.feedback_per_minute)
        self._in_flight = InFlight(settings.in_flight_bytes)
        self._turns = Turns()
        self._routes: Mapping[str, tuple[str, Handler]] = {
            "/v1/events": ("events", self._events),
            "/v1/feedback": ("feedback", self._feedback),
            "/v1/traces": ("traces", self._traces),
            "/api/public/otel/v1/traces": ("traces", self._traces),  # where Langfuse's SDKs send them
            "/v1/logs": ("logs", self._logs),
            "/v1/metrics": ("metrics", self._metrics),
        }
        #: True from SIGTERM on: requests that begin then are refused.
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        exchange = Exchange(scope, receive, send)
        route, handler = self._routes.get(exchange.path, ("other", _not_found))
        try:
            await self._handled(exchange, handler)
        except Gone:
            exchange.status = 499  # no one reads an answer
        finally:
            exchange.release(self._in_flight)
        metrics.GATEWAY_REQUESTS.labels(route, str(exchange.status)).inc()
        metrics.GATEWAY_SECONDS.labels(route).observe(time.perf_counter() - began)
        level = logging.ERROR if exchange.status == 500 else logging.INFO if exchange.status >= 400 else logging.DEBUG
        if log.isEnabledFor(level):
            told = {"request_id": exchange.request_id, "status": exchange.status, "key_id": exchange.key_id}
            log.log(level, "answered %s", route, extra=told)

    async def _handled(self, exchange: Exchange, handler: Handler) -> None:
        try:
            await handler(exchange)
        except RefusedError as error:
            await exchange.refuse(error)
        except Gone:
            raise
        except Exception as error:  # any other error is a bug, and its text may quote an event
            log.error("bug in a request", extra={"error_class": type(error).__name__}, exc_info=error)
            if not exchange.status:
                await exchange.answer(500, {"request_id": exchange.request_id}, {"connection": "close"})

    async def _admitted(self, exchange: Exchange, *kinds: KeyKind, in_query: bool = False) -> KeyRecord:
        """Return the record of the request's key, if it may do this and there is room."""
        if self.draining:
            raise unavailable("draining", "this gateway is stopping; send it again")
        key = exchange.key(in_query=in_query)
        if not key:
            raise unauthorized()
        record = await self._keys.find(key)
        exchange.key_id = record.id
        if record.kind not in kinds:
            raise RefusedError(403, "forbidden_kind", f"a key of the kind {record.kind.value} must not do this")
        if full := self._lane(record).full:
            log.warning("refusing requests: %s; check that the scrubber runs", full)
            raise unavailable("backpressure", "too many events wait to be scrubbed; send it again", 5)
        return record

    async def _body(self, exchange: Exchange, limit: int) -> bytes:
        return await exchange.body(limit, self._settings.body_timeout_s, self._in_flight, self._turns)

    def _lane(self, record: KeyRecord) -> Lane:
        return self._lanes[shard_of(record.project, len(self._lanes))]

    async def _events(self, exchange: Exchange) -> None:
        _expect_method(exchange, "POST")
        record = await self._admitted(exchange, KeyKind.INGEST)
        cut = lines if _expect_type(exchange, *JSON, *NDJSON) in NDJSON else json_items
        self.rates.begin(record, time.monotonic())
        body = await self._body(exchange, self._settings.body_bytes)
        batch = Batch(record, clock.now_ms())
        await self._turns.take(_checks(batch, cut(body)))
        self.rates.took(record, events=len(batch.entries), size=len(body), now=time.monotonic())
        if batch.entries:
            await self._lane(record).append(batch.entries, CAPTURE)
        accepted, project = len(batch.entries), metrics.project_label(record.project)
        metrics.GATEWAY_EVENTS.labels(project, "accepted").inc(accepted)
        metrics.GATEWAY_EVENTS.labels(project, "rejected").inc(batch.rejected_total)
        for rule, count in batch.rules.items():
            metrics.GATEWAY_REJECTED.labels(rule).inc(count)
        answer = {
            "request_id": exchange.request_id,
            "accepted": accepted,
            "rejected": batch.rejected,
            "rejected_total": batch.rejected_total,
        }
        await exchange.answer(400 if batch.rejected_total and not accepted else 200, answer)

    async def _feedback(self, exchange: Exchange) -> None:
        _expect_method(exchange, "POST", "OPTIONS")
        origin = exchange.headers.get("origin")
        if exchange.method == "OPTIONS":  # it has no key: the key of the verdict decides later
            if origin in self._keys.of_browsers():
                exchange.answer_headers |= _cors(str(origin))
            await exchange.answer(200, {})
            return
        record = await self._admitted(exchange, KeyKind.FEEDBACK, KeyKind.INGEST, in_query=True)
        if record.kind is KeyKind.FEEDBACK:
            if (origin is not None or record.origins) and origin not in record.origins:
                raise RefusedError(403, "forbidden_origin", "the key must not be used on pages of this origin")
            if origin is not None:
                exchange.answer_headers |= _cors(origin)
            self.rates.feedback_from(exchange.client, time.monotonic())
        _expect_type(exchange, *JSON, *BEACON)
        self.rates.begin(record, time.monotonic())
        body = await self._body(exchange, FEEDBACK_BYTES)
        verdict = verdict_of(body)
        self.rates.took(record, events=1, size=len(body), now=time.monotonic())
        target = await self._targets.find(record.project, verdict.target)
        event_id, event = feedback_event(verdict, target, record, clock.now_ms())
        batch = Batch(record, clock.now_ms())
        batch.add(event)
        if batch.rejected:
            raise RefusedError(400, "invalid_feedback", batch.rejected[0]["detail"])
        await self._lane(record).append(batch.entries, CAPTURE)
        metrics.GATEWAY_EVENTS.labels(metrics.project_label(record.project), "accepted").inc()
        await exchange.answer(202, {"request_id": exchange.request_id, "event_id": event_id})

    async def _traces(self, exchange: Exchange) -> None:
        await self._spans(exchange, "traces")

    async def _logs(self, exchange: Exchange) -> None:
        await self._spans(exchange, "logs")

    async def _spans(self, exchange: Exchange, signal: Signal) -> None:
        record, binary = await self._exporter(exchange)
        self.rates.begin(record, time.monotonic())
        body = await self._body(exchange, self._settings.otlp_bytes)
        batch = SpanBatch(record, signal, binary)
        await self._turns.take(batch.read(body))
        self.rates.took(record, events=batch.accepted, size=len(body), now=time.monotonic())
        if batch.entries:
            await self._lane(record).append(batch.entries, SPANS)
        project = metrics.project_label(record.project)
        outcomes = {"accepted": batch.accepted, "plain": batch.plain, "rejected": batch.rejected}
        outcomes["no_content"] = batch.remedies.total()
        for outcome, count in outcomes.items():
            metrics.GATEWAY_SPANS.labels(project, outcome).inc(count)
        for rule, count in batch.rules.items():
            metrics.GATEWAY_REJECTED.labels(rule).inc(count)
        if batch.rejected and not batch.accepted:
            raise RefusedError(400, "invalid_spans", batch.message)
        await self._exported(exchange, otlp_answer.success(signal, batch.rejected, batch.message, binary=binary))

    async def _metrics(self, exchange: Exchange) -> None:
        """Accept metrics and store nothing: a refusal would fill the producers' logs."""
        _, binary = await self._exporter(exchange)
        await self._body(exchange, self._settings.otlp_bytes)
        await self._exported(exchange, otlp_answer.success("metrics", 0, "metrics are not stored", binary=binary))

    async def _exporter(self, exchange: Exchange) -> tuple[KeyRecord, bool]:
        """Return the record of an exporter's key, and whether it sends protobuf."""
        exchange.otlp = otlp_answer.PROTOBUF if exchange.media_type in PROTOBUF else otlp_answer.JSON
        _expect_method(exchange, "POST")
        record = await self._admitted(exchange, KeyKind.INGEST)
        return record, _expect_type(exchange, *PROTOBUF, *JSON) in PROTOBUF

    @staticmethod
    async def _exported(exchange: Exchange, answer: bytes) -> None:
        await exchange.answer(200, answer, {"content-type": exchange.otlp})


def _expect_method(exchange: Exchange, *methods: str) -> None:
    if exchange.method not in methods:
        allowed = ", ".join(methods)
        raise RefusedError(405, "method_not_allowed", f"use {allowed}", headers={"Allow": allowed})


async def _not_found(_exchange: Exchange) -> None:
    raise RefusedError(404, "not_found", "there is nothing at this path; events go to /v1/events, spans to /v1/traces")


def _checks(batch: Batch, items: Iterator[bytes | None]) -> Iterator[None]:
    """Check events, step by step."""
    for item in items:
        if item is not None:
            yield from batch.steps(item)
        yield


def _expect_type(exchange: Exchange, *types: str) -> str:
    """Return the type of the body. Raises `RefusedError` for one that this route does not read."""
    found = exchange.media_type
    _, _, parameters = exchange.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if found not in types or charset not in ("", "charset=utf-8", "charset=utf8"):
        raise RefusedError(
            415,
            "unsupported_type",
            f"set Content-Type to {' or '.join(types)}, in UTF-8",
            headers={"Accept-Post": ", ".join(types)},
        )
    return found


def _cors(origin: str) -> dict[str, Any]:
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "authorization, content-type",
        "access-control-max-age": "600",
        "vary": "Origin",
    }
