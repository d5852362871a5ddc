"""Recorded requests of real instrumentations make exactly the events that were read and found right.

`record.py` makes the recordings. The order of spans, and how often each arrives, changes nothing.
"""

import json
import random
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from assay_assembler.decode import decode
from assay_assembler.span import Span
from assay_assembler.trace import Trace
from assay_schema.validation import parse_event
from tests.support.recordings import expectation

RECORDINGS = Path(__file__).parent / "recordings"
FILES = {path.stem: path for path in sorted(RECORDINGS.iterdir()) if not path.name.endswith(".expected.json")}
NAMES = list(FILES)


def body(name: str) -> bytes:
    return FILES[name].read_bytes()


def encoding(name: str) -> Literal["protobuf", "json"]:
    return "protobuf" if FILES[name].suffix == ".pb" else "json"


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_makes_the_expected_events(name: str) -> None:
    expected = json.loads((RECORDINGS / f"{name}.expected.json").read_text())
    assert expectation(body(name), encoding(name)) == expected


def events_of(spans: list[Span], *, early: bool) -> list[Any]:
    """Return the events of spans that come in this order."""
    traces: dict[str, Trace] = {}
    made: list[Any] = []
    for span in spans:
        trace = traces.setdefault(span.trace_id, Trace("default", span.trace_id))
        trace.add(span)
        made.extend(trace.ready() if early else ())
    for trace in traces.values():
        made.extend(trace.close())
    return sorted(
        (orjson.loads(event.data) for event in made), key=lambda event: (event["occurred_at"], event["event_id"])
    )


@pytest.mark.parametrize("name", NAMES)
def test_order_and_repeats_change_nothing(name: str) -> None:
    spans = decode(body(name), encoding(name)) * 3
    random.Random(name).shuffle(spans)  # noqa: S311
    assert events_of(spans, early=False) == expectation(body(name), encoding(name))["events"]


@pytest.mark.parametrize("name", NAMES)
def test_events_that_are_ready_early_are_the_same(name: str) -> None:
    spans = decode(body(name), encoding(name))
    assert events_of([*spans, *spans], early=True) == expectation(body(name), encoding(name))["events"]


@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_a_recording_is_valid(name: str) -> None:
    for event in expectation(body(name), encoding(name))["events"]:
        parse_event(orjson.dumps(event))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_names_no_machine(name: str) -> None:
    data = body(name)
    assert not [word for word in (b"/tmp/", b"/root", b"site-packages", b"/home/") if word in data]


def test_there_are_recordings() -> None:
    assert len(NAMES) >= 15
