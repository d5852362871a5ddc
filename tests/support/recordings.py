"""Events that the assembler makes of a recording, in a form that a person can read and a test can compare."""

from typing import Any, Literal

import orjson

from assay_assembler.decode import decode
from assay_assembler.trace import Options, Trace


def expectation(body: bytes, encoding: Literal["protobuf", "json"], options: Options | None = None) -> dict[str, Any]:
    """Return the events of all traces of a body in the order of their time, and the counts of what made none."""
    traces: dict[str, Trace] = {}
    for span in decode(body, encoding):
        traces.setdefault(span.trace_id, Trace("default", span.trace_id, options)).add(span)
    made = [orjson.loads(event.data) for trace in traces.values() for event in trace.close()]
    counts: dict[str, int] = {}
    for trace in traces.values():
        for reason, number in trace.counts.items():
            if number:
                counts[reason.value] = counts.get(reason.value, 0) + number
    made.sort(key=lambda event: (event["occurred_at"], event["event_id"]))
    feedback = [
        {"trace": each.target_trace, "span": each.target_span, "verdict": each.verdict.verdict}
        for trace in traces.values()
        for each in trace.open_feedback
    ]
    return {"events": made, "counts": dict(sorted(counts.items())), "open_feedback": feedback}
