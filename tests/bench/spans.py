"""Spans decoded and mapped to steps, compared with decoding them to plain dicts: a part of the suite `gateway`.

The bodies are the recordings of real instrumentations. Both sides parse with protobuf's own C parser; the anchor then only
makes a dict of all attributes of each span. The sides take turns in short rounds, and the fastest round of each counts.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay_assembler.decode import decode
from assay_assembler.mapping import step_of
from tests.bench.result import result
from tests.support.spans import request, span

RECORDINGS = Path(__file__).parents[2] / "services" / "assembler" / "tests" / "recordings"
#: GenAI spans per CPU second that one process should decode and map, and how many times more of others.
SPANS, OTHERS = 30_000, 10
UNMARKED = 500


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Rows in spans per CPU second."""
    rounds = 5 if quick else 60
    bodies = {path.stem: path.read_bytes() for path in sorted(RECORDINGS.glob("*.pb"))}
    made, seconds, count = [], 0.0, 0
    for name, body in bodies.items():
        spans = len(decode(body, "protobuf"))
        ours, plain = _fastest([lambda body=body: _mapped(body), lambda body=body: _plain(body)], rounds)
        made.append(result(f"{name} / plain dicts", spans / ours, spans / plain, "spans/CPU-s", None, spans * rounds))
        seconds, count = seconds + ours, count + spans
    speed = count / seconds
    other = _without_marks()
    [others] = _fastest([lambda: _mapped(other)], rounds)
    return [
        *made,
        result("all recordings / their limit", speed, SPANS, "spans/CPU-s", ">= 1", count * rounds),
        result(
            "spans without marks / all recordings",
            UNMARKED / others,
            speed,
            "spans/CPU-s",
            f">= {OTHERS}",
            UNMARKED * rounds,
        ),
    ]


def _fastest(sides: list[Callable[[], None]], rounds: int) -> list[float]:
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


def _without_marks() -> bytes:
    """Return a body with spans of an HTTP instrumentation, and one model call of another scope."""
    attributes = {
        "http.request.method": "GET", "url.full": "https://example.com/a", "http.response.status_code": 200,
        "server.address": "example.com", "server.port": 443, "network.protocol.version": "1.1", "thread.id": 1,
    }  # fmt: skip
    http = request(*[span(attributes, number=number) for number in range(1, UNMARKED + 1)])
    body = ExportTraceServiceRequest()
    group = body.resource_spans.add(resource=http.resource_spans[0].resource)
    scoped = group.scope_spans.add()
    for each in http.resource_spans:
        scoped.spans.extend(each.scope_spans[0].spans)
    body.MergeFrom(request(span({"gen_ai.operation.name": "chat"}, number=UNMARKED + 1)))
    return body.SerializeToString()
