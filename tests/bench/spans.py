"""Spans decoded and mapped to steps, compared with decoding them to plain dicts: a part of the suite `gateway`.

The bodies are the recordings of real instrumentations. Both sides parse with protobuf's own C parser; the anchor then only
makes a dict of all attributes of each span. The sides take turns in short rounds, and the fastest round of each counts.

Spans that are not about AI never get that far: the gateway drops them, from a body without any mark and from one that it
shares with spans about AI.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay_access.api_keys import KeyKind, KeyRecord
from assay_assembler.decode import decode
from assay_assembler.mapping import step_of
from assay_gateway.spans import SpanBatch
from tests.bench.result import result
from tests.support.spans import request, span

RECORDINGS = Path(__file__).parents[2] / "services" / "assembler" / "tests" / "recordings"
#: GenAI spans per CPU second that one process should decode and map, and how many times more of others.
SPANS, OTHERS = 30_000, 10
UNRELATED = 500
KEY = KeyRecord(id="A" * 10, sha256="0" * 64, kind=KeyKind.INGEST, project="shop", created_at=datetime.now(UTC))


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in spans per CPU second."""
    rounds = 5 if quick else 60
    bodies = {path.stem: path.read_bytes() for path in sorted(RECORDINGS.glob("*.pb"))}
    made, seconds, count = [], 0.0, 0
    for name, body in bodies.items():
        spans = len(decode(body, "protobuf"))
        ours, plain = fastest([lambda body=body: _mapped(body), lambda body=body: _plain(body)], rounds)
        made.append(result(f"{name} / plain dicts", spans / ours, spans / plain, "spans/CPU-s", None, spans * rounds))
        seconds, count = seconds + ours, count + spans
    speed = count / seconds
    alone, mixed = _unrelated(), _unrelated()
    mixed.MergeFrom(request(span({"gen_ai.operation.name": "chat"}, number=UNRELATED + 1, trace="bb" * 16)))
    bodies_of_others = [alone.SerializeToString(), mixed.SerializeToString()]
    dropped = fastest([lambda body=body: _sorted(body) for body in bodies_of_others], rounds)
    made.append(result("all recordings / their limit", speed, SPANS, "spans/CPU-s", ">= 1", count * rounds))
    for name, took in zip(("in a separate body", "beside one about AI"), dropped, strict=True):
        made.append(
            result(
                f"unrelated spans dropped, {name} / all recordings",
                UNRELATED / took,
                speed,
                "spans/CPU-s",
                f">= {OTHERS}",
                UNRELATED * rounds,
            )
        )
    return made


def fastest(sides: list[Callable[[], object]], rounds: int) -> list[float]:
    """Return the CPU seconds of the fastest round of each side."""
    best = [float("inf")] * len(sides)
    for _ in range(rounds):
        for place, side in enumerate(sides):
            begin = time.process_time()
            side()
            best[place] = min(best[place], time.process_time() - begin)
    return best


def _mapped(body: bytes) -> None:
    for each in decode(body, "protobuf"):
        step_of(each)


def _plain(body: bytes) -> None:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scoped in group.scope_spans:
            for raw in scoped.spans:
                dict((pair.key, _value(pair.value)) for pair in raw.attributes)  # noqa: C402


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _value(each.value) for each in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def _sorted(body: bytes) -> None:
    batch = SpanBatch(KEY, "traces", binary=True)
    for _ in batch.read(body):
        pass
    assert batch.plain == UNRELATED


def _unrelated() -> ExportTraceServiceRequest:
    """Return a body with spans of an HTTP instrumentation, as one process sends them."""
    attributes = {
        "http.request.method": "GET", "url.full": "https://example.com/a", "http.response.status_code": 200,
        "server.address": "example.com", "server.port": 443, "network.protocol.version": "1.1", "thread.id": 1,
    }  # fmt: skip
    single = request(*[span(attributes, number=number) for number in range(1, UNRELATED + 1)])
    body = ExportTraceServiceRequest()
    scoped = body.resource_spans.add(resource=single.resource_spans[0].resource).scope_spans.add()
    for each in single.resource_spans:
        scoped.spans.extend(each.scope_spans[0].spans)
    return body
