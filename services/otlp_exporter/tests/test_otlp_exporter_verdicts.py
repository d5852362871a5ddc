"""Spans of verdicts: below the span that was judged, with an event for each metric."""

from typing import Any
from uuid import UUID

import orjson
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from assay_otlp_exporter.spans import event_span_id
from assay_otlp_exporter.verdicts import verdict_span
from assay_schema.fields import Kind
from assay_schema.published import examples
from assay_schema.validation import parse_score

[SCORE] = [orjson.loads(each.document_bytes) for each in examples("scores") if each.name == "full"]
SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE_ID, SPAN_ID = bytes.fromhex(SAMPLED[3:35]), bytes.fromhex(SAMPLED[36:52])
EVENT_ID = UUID(SCORE["event_id"])
ANSWER = event_span_id(EVENT_ID, Kind.ANSWER)


def verdict(*, as_child: bool = True, is_sent: bool = False, **changes: Any) -> Span | None:
    score = parse_score(orjson.dumps(SCORE | changes))
    return verdict_span(score, as_child=as_child, is_sent=is_sent)


def place(found: Span | None) -> tuple[bytes, bytes, list[tuple[bytes, bytes]]]:
    assert found
    return found.trace_id, found.parent_span_id, [(link.trace_id, link.span_id) for link in found.links]


def test_it_has_an_event_for_each_metric() -> None:
    found = verdict(metrics={"faithfulness": 0.75, "citation_recall": 0.5})
    assert found
    events = [
        (each.name, each.attributes[0].value.string_value, each.attributes[1].value.double_value)
        for each in found.events
    ]
    assert events == [
        ("gen_ai.evaluation.result", "faithfulness", 0.75),
        ("gen_ai.evaluation.result", "citation_recall", 0.5),
    ]
    names = {each.key for each in found.attributes}
    assert {"evaluations.0.evaluation.score", "evaluations.1.evaluation.name", "assay.judge.fingerprint"} <= names


@pytest.mark.parametrize("status", ["abstained", "not_sampled", "judge_error"])
def test_without_a_metric_there_is_none(status: str) -> None:
    assert verdict(status=status, metrics={}) is None


def test_an_answer_that_came_by_otlp_is_the_span_that_its_producer_sent() -> None:
    found = verdict(traceparent=SAMPLED, origin="otlp")
    assert place(found) == (TRACE_ID, SPAN_ID, [(TRACE_ID, SPAN_ID)])


def test_an_answer_that_came_by_otlp_and_is_exported_is_the_parent_in_its_own_trace() -> None:
    found = verdict(traceparent=SAMPLED, origin="otlp", is_sent=True)
    assert place(found) == (EVENT_ID.bytes, ANSWER, [(EVENT_ID.bytes, ANSWER)])


@pytest.mark.parametrize(("backend", "kind"), [("lexical", "CODE"), ("anthropic", "LLM")])
def test_the_kind_of_judge_is_named(backend: str, kind: str) -> None:
    found = verdict(backend=backend)
    assert found
    kinds = {each.value.string_value for each in found.attributes if each.key.endswith("annotator_kind")}
    assert kinds == {kind}


def test_an_answer_that_is_exported_is_the_parent() -> None:
    found = verdict(traceparent=SAMPLED, origin="sdk", is_sent=True)
    assert place(found) == (TRACE_ID, ANSWER, [(TRACE_ID, ANSWER)])
    found = verdict(origin="sdk", is_sent=True)
    assert place(found) == (EVENT_ID.bytes, ANSWER, [(EVENT_ID.bytes, ANSWER)])
    found = verdict(traceparent=SAMPLED, origin="sdk", is_sent=True, as_child=False)
    assert place(found) == (EVENT_ID.bytes, ANSWER, [(EVENT_ID.bytes, ANSWER)])


def test_an_answer_that_is_not_exported_leaves_its_caller() -> None:
    assert place(verdict(traceparent=SAMPLED, origin="sdk")) == (TRACE_ID, SPAN_ID, [(TRACE_ID, SPAN_ID)])
    linked = (EVENT_ID.bytes, b"", [(TRACE_ID, SPAN_ID)])
    assert place(verdict(traceparent=SAMPLED, origin="sdk", as_child=False)) == linked
    assert place(verdict(origin="sdk")) == (EVENT_ID.bytes, b"", [])


def test_a_verdict_on_a_session_is_a_root_with_the_session() -> None:
    found = verdict(session_id="s1", is_sent=True)
    assert place(found) == (EVENT_ID.bytes, b"", [])
    assert found
    assert {"gen_ai.conversation.id": "s1"}.items() <= {e.key: e.value.string_value for e in found.attributes}.items()


def test_a_redelivered_verdict_has_the_same_id_and_a_later_one_another() -> None:
    first, again, later = verdict(), verdict(), verdict(judged_at="2026-02-02T03:04:09Z")
    assert first
    assert again
    assert later
    assert first.SerializeToString() == again.SerializeToString()
    assert first.span_id != later.span_id
