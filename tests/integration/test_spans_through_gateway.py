"""What real instrumentations send, through the gateway's sorting and the assembler: nothing that matters is dropped."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from assay_access.api_keys import KeyKind, KeyRecord
from assay_assembler.open_traces import arrival_of
from assay_assembler.span import Span
from assay_assembler.trace import Options, Trace
from assay_gateway.spans import SpanBatch
from tests.support.spans import request, span

RECORDINGS = Path(__file__).parents[2] / "services/assembler/tests/recordings"
RECORD = KeyRecord(
    id="A" * 10, sha256="0" * 64, kind=KeyKind.INGEST, project="default", created_at=datetime.now(UTC), service=None
)


def sorted_(body: bytes, *, binary: bool = True) -> SpanBatch:
    batch = SpanBatch(RECORD, "traces", binary)
    for _ in batch.read(body):
        pass
    return batch


@pytest.mark.parametrize(
    "name", sorted(path.name for path in RECORDINGS.iterdir() if not path.name.endswith(".expected.json"))
)
def test_a_recording_makes_the_same_events_after_it_was_sorted(name: str) -> None:
    batch = sorted_((RECORDINGS / name).read_bytes(), binary=name.endswith(".pb"))
    assert not batch.rules
    traces: dict[str, list[Span]] = defaultdict(list)
    for entry in batch.entries:
        arrival = arrival_of("", entry)
        traces[arrival.trace_id] += arrival.spans
    events = []
    for trace_id, spans in traces.items():
        trace = Trace("default", trace_id, Options())
        for each in spans:
            trace.add(each)
        events += [orjson.loads(made.data) for made in trace.close()]
    expected = json.loads((RECORDINGS / f"{Path(name).stem}.expected.json").read_text())["events"]
    assert sorted(events, key=lambda each: each["event_id"]) == sorted(expected, key=lambda each: each["event_id"])


def test_a_span_between_an_agent_and_its_call_keeps_them_together() -> None:
    asked = '[{"role":"user","content":"How long?"}]'
    said = '[{"role":"assistant","content":"Thirty days."}]'
    agent = span({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "help"}, number=1)
    between = span({"code.function": "retry"}, number=2, parent=1)
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked, "gen_ai.output.messages": said}
    calls = [span(chat, number=number, parent=2, start_ms=number) for number in (3, 4)]
    batch = sorted_(request(agent, between, *calls).SerializeToString())
    assert (batch.accepted, batch.plain) == (3, 1)
    (entry,) = batch.entries
    arrival = arrival_of("", entry)
    trace = Trace("default", arrival.trace_id, Options())
    for each in arrival.spans:
        trace.add(each)
    assert [made.kind.value for made in trace.close()] == ["answer"]
