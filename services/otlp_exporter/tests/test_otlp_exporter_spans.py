"""Spans of events: their place, attributes, status and times; texts only by opt-in."""

from typing import Any

import orjson
import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from assay_otlp_exporter.spans import span_of
from assay_schema.published import examples
from assay_schema.validation import parse_scrubbed

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = SAMPLED[:-2] + "00"
NOBODY = f"00-{'0' * 32}-{'0' * 16}-01"
INVALID = "ff" + SAMPLED[2:]
TRACE_ID, SPAN_ID = bytes.fromhex(SAMPLED[3:35]), bytes.fromhex(SAMPLED[36:52])
DOCUMENTS = {
    example.name: orjson.loads(example.document_bytes)
    for example in examples("events")
    if example.name in ("tool-call-full", "retrieval-full", "answer-full", "feedback-full", "session-full")
}
#: A text that is in every document below.
SECRET = "a text of the user"


def span(
    name: str, payload: dict[str, Any] | None = None, *, content: bool = False, as_child: bool = True, **envelope: Any
) -> Span:
    document = DOCUMENTS[name] | {"traceparent": None, "origin": "sdk"} | envelope
    document["payload"] = document["payload"] | (payload or {})
    found = span_of(parse_scrubbed(orjson.dumps(document)), as_child=as_child, content=content)
    assert found is not None
    return found


def values(found: Span) -> dict[str, Any]:
    return {each.key: value(each) for each in found.attributes}


def value(attribute: KeyValue) -> Any:
    return getattr(attribute.value, attribute.value.WhichOneof("value"))


def event_id(name: str) -> bytes:
    return bytes.fromhex(DOCUMENTS[name]["event_id"].replace("-", ""))


def test_a_sampled_caller_is_the_parent() -> None:
    found = span("tool-call-full", traceparent=SAMPLED)
    assert (found.trace_id, found.parent_span_id, list(found.links)) == (TRACE_ID, SPAN_ID, [])
    assert found.flags == 0x301  # sampled; it is known that the parent is in another process


@pytest.mark.parametrize(
    ("traceparent", "as_child"), [(UNSAMPLED, True), (SAMPLED, False)], ids=["unsampled", "another backend"]
)
def test_a_caller_that_the_backend_does_not_have_is_linked_from_a_root(traceparent: str, as_child: bool) -> None:
    found = span("tool-call-full", traceparent=traceparent, as_child=as_child)
    assert (found.trace_id, found.parent_span_id, found.flags) == (event_id("tool-call-full"), b"", 0x101)
    [link] = found.links
    assert (link.trace_id, link.span_id, link.flags) == (TRACE_ID, SPAN_ID, int(traceparent[-2:]))


@pytest.mark.parametrize("traceparent", [None, NOBODY, INVALID])
def test_without_a_caller_a_span_is_a_root_in_a_trace_with_the_id_of_the_event(traceparent: str | None) -> None:
    found = span("tool-call-full", traceparent=traceparent)
    assert (found.trace_id, found.parent_span_id, list(found.links)) == (event_id("tool-call-full"), b"", [])


def test_ids_are_the_same_at_every_delivery_and_differ_between_events() -> None:
    first, again = span("tool-call-full"), span("tool-call-full")
    other = span("tool-call-full", event_id="01970000-0000-7000-8000-000000000001")
    assert first.SerializeToString() == again.SerializeToString()
    assert len(first.span_id) == 8
    assert first.span_id != other.span_id


def test_a_tool_call_has_the_attributes_of_the_convention() -> None:
    payload = {"tool_name": "get_retention", "status": "success", "call_id": "c1", "agent_name": "help"}
    found = span("tool-call-full", payload | {"error_kind": None}, session_id="s1")
    assert (found.name, found.kind) == ("execute_tool get_retention", Span.SPAN_KIND_INTERNAL)
    assert values(found) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_retention",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.agent.name": "help",
        "gen_ai.conversation.id": "s1",
        "session.id": "s1",
        "assay.status": "success",
        "assay.event_id": DOCUMENTS["tool-call-full"]["event_id"],
        "assay.project": DOCUMENTS["tool-call-full"]["project"],
        "assay.policy": DOCUMENTS["tool-call-full"]["policy"],
        "openinference.span.kind": "TOOL",
        "tool.name": "get_retention",
    }


@pytest.mark.parametrize(
    ("status", "error_kind", "code", "error"),
    [
        *((status, None, Status.STATUS_CODE_OK, None) for status in ("success", "empty", "partial", "degraded")),
        ("error", "timeout", Status.STATUS_CODE_ERROR, "timeout"),
        ("error", None, Status.STATUS_CODE_ERROR, "error"),
        ("refused", "not_allowed", Status.STATUS_CODE_ERROR, "not_allowed"),
    ],
)
def test_the_status_of_a_tool_call(status: str, error_kind: str | None, code: Any, error: str | None) -> None:
    found = span("tool-call-full", {"status": status, "error_kind": error_kind})
    assert (found.status.code, found.status.message) == (code, error or "")
    assert values(found).get("error.type") == error


def test_times_are_nanoseconds_and_the_event_is_the_end() -> None:
    found = span("tool-call-full", {"timestamp": "2026-01-02T03:04:05.678901Z", "duration_ms": 1500.5})
    assert found.end_time_unix_nano == 1_767_323_045_678_901_000
    assert found.end_time_unix_nano - found.start_time_unix_nano == 1_500_500_000


def test_times_that_otlp_cannot_express_become_its_first_one() -> None:
    found = span("tool-call-full", {"timestamp": "1969-12-31T23:59:59Z", "duration_ms": 1e308})
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (0, 0)
    assert span("answer-full", {"latency_ms": 1e308}).start_time_unix_nano == 0


def test_an_event_that_came_over_otlp_links_to_the_span_that_it_was() -> None:
    found = span("tool-call-full", traceparent=SAMPLED, origin="otlp")
    assert (found.trace_id, found.parent_span_id) == (event_id("tool-call-full"), b"")
    assert [(link.trace_id, link.span_id) for link in found.links] == [(TRACE_ID, SPAN_ID)]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("tool-call-full", {"args_summary": {"a": SECRET}, "result_summary": {"b": SECRET}}),
        ("retrieval-full", {"query": SECRET, "passages": [{"id": "p1", "text": SECRET, "score": 0.5}]}),
        ("answer-full", {"query": SECRET, "answer": SECRET, "contexts": [], "citations": []}),
    ],
)
def test_texts_are_sent_only_if_asked_for(name: str, payload: dict[str, Any]) -> None:
    assert SECRET.encode() not in span(name, payload).SerializeToString()
    assert span(name, payload, content=True).SerializeToString().count(SECRET.encode()) >= 2


def test_the_texts_of_a_retrieval_and_an_answer_have_the_form_of_the_convention() -> None:
    found = values(span("retrieval-full", {"passages": [{"id": "p1", "text": "t", "score": 0.5}]}, content=True))
    assert orjson.loads(found["gen_ai.retrieval.documents"]) == [{"id": "p1", "score": 0.5, "content": "t"}]
    found = values(span("answer-full", {"query": "q", "answer": "a", "citations": []}, content=True))
    assert orjson.loads(found["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "q"}]}
    ]
    assert orjson.loads(found["gen_ai.output.messages"])[0]["role"] == "assistant"


@pytest.mark.parametrize(
    ("ids", "scores", "documents"),
    [
        ([7, 8], [0.5, 0.25], [{"id": "7", "score": 0.5}, {"id": "8", "score": 0.25}]),
        ([7, 8], [0.5], [{"id": "7", "score": None}, {"id": "8", "score": None}]),
        ([], [], []),
    ],
)
def test_a_retrieval_without_texts_has_ids_and_the_scores_that_belong_to_them(
    ids: list[int], scores: list[float], documents: list[Any]
) -> None:
    payload = {"passages": [], "retrieved_ids": [], "retrieved_chunk_ids": ids, "retrieved_scores": scores}
    found = values(span("retrieval-full", payload, content=True))
    assert orjson.loads(found["gen_ai.retrieval.documents"]) == documents
    assert found["assay.retrieval.hits"] == len(ids)


def test_names_and_kinds_of_retrievals_and_answers() -> None:
    one = span("retrieval-full", {"source_ids": ["docs"]})
    many = span("retrieval-full", {"source_ids": ["docs", "wiki"]})
    answer = span("answer-full", {"model": "m-1"})
    assert [each.name for each in (one, many, answer)] == ["retrieval docs", "retrieval", "chat m-1"]
    assert {each.kind for each in (one, many, answer)} == {Span.SPAN_KIND_CLIENT}


@pytest.mark.parametrize("name", ["feedback-full", "session-full"])
def test_other_kinds_have_no_span(name: str) -> None:
    assert span_of(parse_scrubbed(orjson.dumps(DOCUMENTS[name])), as_child=True, content=True) is None
