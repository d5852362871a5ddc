"""Assemble spans of the test trace."""

from typing import Any

import orjson

from assay_assembler.span import Span
from assay_assembler.trace import Options, Trace
from assay_schema.validation import parse_event
from tests.support.spans import TRACE


def opened(*spans: Span, options: Options | None = None) -> Trace:
    """Return a trace with these spans, not closed yet."""
    trace = Trace("default", TRACE, options)
    for span in spans:
        trace.add(span)
    return trace


def events(*spans: Span, options: Options | None = None) -> list[dict[str, Any]]:
    """Return the valid events of a trace with these spans."""
    made = opened(*spans, options=options).close()
    for event in made:
        parse_event(event.data)
    return [orjson.loads(event.data) for event in made]


def payloads(kind: str, *spans: Span, options: Options | None = None) -> list[dict[str, Any]]:
    """Return the payloads of one kind of a trace with these spans."""
    return [event["payload"] for event in events(*spans, options=options) if event["kind"] == kind]


def reasons(*spans: Span, options: Options | None = None) -> dict[str, int]:
    """Return the counts of a closed trace with these spans."""
    trace = opened(*spans, options=options)
    trace.close()
    return {reason.value: number for reason, number in sorted(trace.counts.items()) if number}
