"""Recorded requests of real instrumentations make exactly the events that were read and found right.

`record.py` makes the recordings. The order of spans, and how often each arrives, changes nothing.
"""

import json
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_assembler.decode import decode
from assay_assembler.trace import Trace
from assay_schema.validation import parse_event
from tests.support.recordings import expectation

RECORDINGS = Path(__file__).parent / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.pb"))


def body(name: str) -> bytes:
    return (RECORDINGS / f"{name}.pb").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_makes_the_expected_events(name: str) -> None:
    expected = json.loads((RECORDINGS / f"{name}.expected.json").read_text())
    assert expectation(body(name), "protobuf") == expected


@pytest.mark.parametrize("name", NAMES)
def test_order_repeats_and_early_events_change_nothing(name: str) -> None:
    spans = decode(body(name), "protobuf")
    shuffled = [*spans, *spans]
    random.Random(name).shuffle(shuffled)
    traces: dict[str, Trace] = {}
    made: list[Any] = []
    for place, span in enumerate(shuffled):
        trace = traces.setdefault(span.trace_id, Trace("default", span.trace_id))
        trace.add(span)
        if place % 5 == 0:
            made.extend(trace.ready())
    for trace in traces.values():
        made.extend(trace.close())
    found = sorted((orjson.loads(event.data) for event in made), key=lambda event: (event["occurred_at"], event["event_id"]))
    assert found == expectation(body(name), "protobuf")["events"]


@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_a_recording_is_valid(name: str) -> None:
    for event in expectation(body(name), "protobuf")["events"]:
        parse_event(orjson.dumps(event))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_names_no_machine(name: str) -> None:
    data = body(name)
    assert not [word for word in (b"/tmp/", b"/root", b"site-packages", b"/home/") if word in data]


def test_there_are_recordings() -> None:
    assert len(NAMES) >= 15
