"""Random trees of spans with tool calls and retrievals, and the check that each of these is one event."""

import random
from collections.abc import Collection, Iterator
from typing import Any

from assay_assembler.event_ids import span_event_id
from assay_assembler.span import Span
from assay_assembler.trace import Trace
from assay_schema.fields import Kind
from tests.support.spans import TRACE, span

#: What is sent before a trace closes.
EARLY = (Kind.TOOL_CALL, Kind.RETRIEVAL)
#: Numbers of spans that never come.
MISSING = range(90, 93)


def random_spans(choose: random.Random, trace: str = TRACE) -> list[Span]:
    """Return the spans of a trace: some without their parent, some in cycles, some first in their process."""
    spans = []
    count = choose.randint(2, 9)
    for number in range(1, count + 1):
        parent = choose.choice([number // 2, number - 1, number - 1, 1 if number > 1 else 0])
        if choose.random() < 0.15:
            parent = choose.choice(MISSING)
        elif choose.random() < 0.02:
            parent = choose.randint(1, count)
        start = choose.randint(0, 4)
        one = span(
            _attributes(choose),
            number=number,
            parent=parent,
            start_ms=start,
            end_ms=start + choose.randint(0, 6),
            local_root=not parent or choose.random() < 0.3,
            trace=trace,
        )
        spans.append(one)
    return spans


def random_batches(choose: random.Random, spans: list[Span]) -> Iterator[list[Span]]:
    """Yield the spans in a random order, one of them twice in a third of all traces."""
    left = choose.sample(spans, len(spans)) + choose.sample(spans, choose.choice([0, 0, 1]))
    while left:
        size = choose.randint(1, 4)
        yield left[:size]
        left = left[size:]


def not_once(project: str, spans: list[Span], sent: Collection[str]) -> list[tuple[Kind, tuple[str, ...], int]]:
    """Return the calls and retrievals of a trace that are not one event each: kind, spans, and number of their events.

    `sent` are the ids of all events of these kinds. One that is of no call has no spans.
    """
    starts = {each.span_id: each.start_ns for each in spans}
    trace_id = spans[0].trace_id
    trace = Trace(project, trace_id)
    for each in spans:
        trace.add(each)
    found, left = [], set(sent)
    for whole in trace.close():
        if whole.kind in EARLY:
            ids = {span_event_id(project, trace_id, each, whole.kind.value, starts[each]) for each in whole.span_ids}
            if len(ids & left) != 1:
                found.append((whole.kind, whole.span_ids, len(ids & left)))
            left -= ids
    return found + [(Kind.TOOL_CALL, (), 1) for _ in left]


def _attributes(choose: random.Random) -> dict[str, Any]:
    kind = choose.choice(["bare", "agent", "retrieval", "tool", "tool", "tool", "mcp"])
    if kind == "bare":
        return {}
    if kind == "agent":
        return {"gen_ai.operation.name": "invoke_agent"}
    if kind == "retrieval":
        return {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "q"}
    made: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": choose.choice("ttu")}
    if choose.random() < 0.3:
        made["gen_ai.tool.call.id"] = choose.choice("12")
    return made | ({"mcp.method.name": "tools/call"} if kind == "mcp" else {})
