"""Traps found in real payloads, each as small as it can be."""

import itertools
from typing import Any

import pytest

from assay_assembler.span import Link, Source, Span, SpanEvent
from assay_assembler.trace import Options, Trace
from assay_schema.span_entry import EXPORTER_SCOPE
from tests.support.spans import TRACE, span, span_id
from tests.support.traces import events, opened, payloads, reasons

KIND = "openinference.span.kind"
QUESTION, ANSWER = "How long are rows kept?", "Rows are kept for 90 days."


def llm(number: int = 1, **fields: Any) -> Span:
    """Return a call of a model with a question and an answer."""
    attributes = {
        KIND: "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": QUESTION,
        "llm.output_messages.0.message.content": ANSWER,
        "llm.model_name": "gpt",
    }
    return span(attributes | fields.pop("more", {}), number=number, **fields)


def retriever(number: int, *texts: str, query: str = QUESTION, **fields: Any) -> Span:
    """Return a retrieval."""
    attributes: dict[str, Any] = {KIND: "RETRIEVER", "input.value": query}
    for place, text in enumerate(texts):
        attributes |= {
            f"retrieval.documents.{place}.document.id": f"{4101 + place}",
            f"retrieval.documents.{place}.document.content": text,
        }
    return span(attributes, number=number, **fields)


def chain(number: int = 1, output: str = "", **fields: Any) -> Span:
    """Return a chain with the question."""
    return span({KIND: "CHAIN", "input.value": QUESTION, "output.value": output}, number=number, **fields)


def test_two_sibling_spans_of_one_response_are_one_answer() -> None:
    own = span(
        {"gen_ai.operation.name": "chat", "gen_ai.response.id": "msg_1"}, number=2, source=Source("s", "", "sdk")
    )
    instrumented = llm(3, more={"gen_ai.response.id": "msg_1"})
    assert [each["answer"] for each in payloads("answer", own, instrumented)] == [ANSWER]
    assert reasons(own, instrumented) == {"duplicate": 1}


def test_servers_that_repeat_short_ids_lose_no_answer() -> None:
    first = llm(1, more={"gen_ai.response.id": "chatcmpl-1"})
    other = {"gen_ai.response.id": "chatcmpl-1", "llm.output_messages.0.message.content": "Other."}
    assert len(payloads("answer", first, llm(2, more=other))) == 2


def test_hits_keep_their_order_when_the_best_were_dropped() -> None:
    attributes: dict[str, Any] = {KIND: "RETRIEVER"}
    for place in range(29, 60):
        attributes[f"retrieval.documents.{place}.document.id"] = f"{place}"
        attributes[f"retrieval.documents.{place}.document.content"] = f"passage {place}"
    cut = span(attributes, number=2, parent=1, dropped=116)
    [found] = payloads("retrieval", chain(1, ANSWER), cut)
    assert found["retrieved_chunk_ids"] == list(range(29, 60))
    assert found["query"] == QUESTION
    assert [(made.kind, made.partial) for made in opened(chain(1, ANSWER), cut).close()] == [
        ("retrieval", True),
        ("answer", False),
    ]


def test_a_retrieval_whose_query_was_dropped_is_counted_with_its_reason() -> None:
    cut = span({KIND: "RETRIEVER", "retrieval.documents.59.document.id": "59"}, dropped=116)
    assert events(cut) == []
    assert reasons(cut) == {"dropped_attributes": 1}


def test_ids_of_langchain_come_from_the_output_and_scores_from_the_metadata() -> None:
    attributes = {
        KIND: "RETRIEVER",
        "input.value": QUESTION,
        "retrieval.documents.0.document.content": "b",
        "retrieval.documents.0.document.metadata": '{"score": 0.7}',
        "retrieval.documents.1.document.content": "a",
        "retrieval.documents.1.document.metadata": '{"score": 0.6}',
        "output.value": '{"documents": [{"id": "4102", "page_content": "b"}, {"id": "4101", "page_content": "a"}]}',
    }
    [found] = payloads("retrieval", span(attributes))
    assert (found["retrieved_chunk_ids"], found["retrieved_scores"]) == ([4102, 4101], [0.7, 0.6])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_nested_retrievers_are_one_retrieval(order: tuple[int, ...]) -> None:
    spans = [chain(1, ANSWER), retriever(2, parent=1), retriever(3, "a", "b", parent=2)]
    made = events(*[spans[place] for place in order])
    [found] = [event for event in made if event["kind"] == "retrieval"]
    assert found["traceparent"] == f"00-{TRACE}-{span_id(2)}-01"
    assert found["payload"]["retrieved_chunk_ids"] == [4101, 4102]


def test_a_wrapper_around_a_call_of_a_model_yields_to_it() -> None:
    wrapper = llm(1, more={"llm.output_messages.0.message.content": "wrapper"})
    assert [each["answer"] for each in payloads("answer", wrapper, llm(2, parent=1))] == [ANSWER]


def test_a_wrapper_that_calls_nothing_makes_no_answer() -> None:
    wrapper = span({KIND: "LLM", "input.value": "x"})
    assert payloads("answer", wrapper) == []
    assert reasons(wrapper) == {"no_content": 1}


@pytest.mark.parametrize("inside", [True, False])
def test_a_step_that_prepares_a_call_is_merged_into_the_call(inside: bool) -> None:
    prepares = span({KIND: "LLM", "input.value": '{"tools": []}'}, number=3, parent=2 if inside else 1, end_ms=5)
    spans = [chain(1, "", end_ms=900), llm(2, parent=1, start_ms=10), prepares]
    assert [each["answer"] for each in payloads("answer", *spans)] == [ANSWER]
    assert reasons(*spans) == {"merged": 2}


def test_a_vendors_kind_beats_a_wrong_operation() -> None:
    attributes = {
        "langsmith.span.kind": "retriever",
        "gen_ai.operation.name": "embeddings",
        "gen_ai.prompt": f'{{"query": "{QUESTION}"}}',
        "gen_ai.completion": '{"documents": [{"page_content": "a", "metadata": {}}]}',
    }
    assert len(payloads("retrieval", span(attributes))) == 1


@pytest.mark.parametrize(
    "output",
    [
        "StopEvent(result='x')",
        "content='x' additional_kwargs={}",
        '{"output": 1}',
        "[Document(id='1')]",
        "<coroutine object f at 0x7f>",
        '{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": {"content": ""}}',
    ],
)
def test_an_output_that_is_no_text_yields_to_the_last_call_of_a_model(output: str) -> None:
    [found] = payloads("answer", chain(1, output, end_ms=200), llm(2, parent=1))
    assert found["answer"] == ANSWER


def test_arguments_that_are_printed_python_become_json() -> None:
    tool = span(
        {KIND: "TOOL", "tool.name": "t", "input.value": "{'days': 90, 'dry_run': False, 'tags': ('a',), 'x': None}"}
    )
    assert payloads("tool_call", tool)[0]["args_summary"] == {"days": 90, "dry_run": False, "tags": ["a"], "x": None}


@pytest.mark.parametrize("printed", ["{'a': __import__('os')}", "{'a': 1 + 1}", "{'a': f()}", "[" * 10_000, "{'a'"])
def test_printed_code_stays_text(printed: str) -> None:
    tool = span({KIND: "TOOL", "tool.name": "t", "input.value": printed})
    [found] = payloads("tool_call", tool)
    assert list(found["args_summary"]) == ["value"]


def test_an_exported_span_was_sampled() -> None:
    assert events(llm())[0]["traceparent"] == f"00-{TRACE}-{span_id(1)}-01"


@pytest.mark.parametrize("service", ["unknown_service", "unknown_service:python", ""])
def test_a_made_up_service_is_replaced_by_the_scope(service: str) -> None:
    assert events(llm(source=Source(service, "", "langfuse-sdk")))[0]["service"] == "langfuse-sdk"


@pytest.mark.parametrize(("service", "expected"), [("unknown_service:node", "help"), ("", "help"), ("bot", "bot")])
def test_the_service_of_the_key_replaces_only_a_made_up_one(service: str, expected: str) -> None:
    made = events(llm(source=Source(service, "", "langfuse-sdk")), options=Options(default_service="help"))
    assert made[0]["service"] == expected


def test_two_services_share_a_trace_and_one_tool_call() -> None:
    client = span(
        {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "get_retention",
            "gen_ai.tool.call.arguments": '{"project": "help"}',
        },
        source=Source("support-bot", "", "mcp"),
    )
    server = span(
        {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_retention", "error.type": "tool_error", "mcp.session.id": "m"},
        number=2, parent=1, local_root=True, status="error", source=Source("help-server", "", "mcp"),
    )  # fmt: skip
    [made] = events(client, server)
    assert (made["service"], made["traceparent"][36:52]) == ("support-bot", span_id(1))
    payload = made["payload"]
    assert (payload["status"], payload["error_kind"], payload["server_session_id"]) == ("error", "tool_error", "m")
    assert payload["args_summary"] == {"project": "help"}


def test_an_agent_without_text_makes_tool_calls_and_no_answer() -> None:
    agent = span({"gen_ai.operation.name": "invoke_agent"}, number=1)
    chat = span({"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}, number=2, parent=1)
    tool = span({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}, number=3, parent=1)
    assert [event["kind"] for event in events(agent, chat, tool)] == ["tool_call"]
    assert reasons(agent, chat, tool)["no_content"] == 1


def test_a_streamed_call_and_the_log_of_its_answer_are_one_answer() -> None:
    opening = llm(2, parent=1, start_ms=0, end_ms=5, more={"llm.output_messages.0.message.content": ""})
    log = llm(3, parent=1, start_ms=50, end_ms=50)
    [found] = payloads("answer", opening, log)
    assert (found["answer"], found["latency_ms"]) == (ANSWER, 50.0)
    assert reasons(opening, log) == {"merged": 1}


def test_children_may_come_before_their_parents_in_nine_parts() -> None:
    spans = [chain(1, ANSWER, end_ms=900)]
    spans += [retriever(2, "a", parent=1, end_ms=50), llm(3, parent=1, start_ms=60, end_ms=90)]
    spans += [span({KIND: "TOOL", "tool.name": f"t{n}"}, number=n, parent=1) for n in range(4, 10)]
    assert events(*spans) == events(*reversed(spans))


def test_a_process_that_dies_before_its_root_loses_only_the_root() -> None:
    made = events(retriever(2, "a", parent=1, end_ms=50), llm(3, parent=1, start_ms=60))
    assert [event["kind"] for event in made] == ["retrieval", "answer"]
    assert [each["text"] for each in made[1]["payload"]["contexts"]] == ["a"]


def test_a_span_after_closing_is_counted() -> None:
    trace = Trace("default", TRACE)
    trace.add(chain(1, ANSWER))
    trace.close()
    trace.add(llm(2, parent=1))
    assert trace.counts["late"] == 1  # type: ignore[index]
    assert trace.close() == []


def test_a_batch_that_is_sent_three_times_counts_once() -> None:
    spans = [chain(1, ANSWER), retriever(2, "a", parent=1), llm(3, parent=1)]
    assert events(*spans, *spans, *spans) == events(*spans)
    assert reasons(*spans, *spans, *spans)["duplicate"] == 6


def test_feedback_on_a_carrier_span_goes_to_the_span_that_it_links_to() -> None:
    carrier = span(
        {
            KIND: "EVALUATOR",
            "annotations.0.annotation.name": "helpful",
            "annotations.0.annotation.label": "thumbs_up",
            "annotations.0.annotation.explanation": "Short and right.",
            "annotations.0.annotation.annotator_kind": "HUMAN",
            "annotations.1.annotation.name": "fluency",
            "annotations.1.annotation.score": 0.9,
            "annotations.1.annotation.annotator_kind": "LLM",
        },
        number=9,
        parent=7,
        links=(Link(TRACE, span_id(3)),),
    )
    made = events(chain(1, ANSWER), llm(3, parent=1), carrier)
    answer, feedback = made
    assert feedback["payload"] == {
        "target_event_id": answer["event_id"], "verdict": "positive", "text": "Short and right.", "user_hash": None,
    }  # fmt: skip
    assert reasons(chain(1, ANSWER), llm(3, parent=1), carrier)["not_a_person"] == 1


def test_feedback_on_another_trace_waits_for_the_event_it_is_about() -> None:
    other = "f" * 32
    attributes = {
        KIND: "EVALUATOR",
        "annotations.0.annotation.score": 0,
        "annotations.0.annotation.annotator_kind": "HUMAN",
    }
    trace = Trace("default", TRACE)
    trace.add(span(attributes, links=(Link(other, span_id(5)),)))
    assert trace.close() == []
    [waiting] = trace.open_feedback
    assert (waiting.target_trace, waiting.target_span, waiting.verdict.verdict) == (other, span_id(5), "negative")
    made = waiting.made("01890a5d-ac96-774b-bcce-b302099a8057")
    assert made is not None
    assert b'"verdict":"negative"' in made.data


def test_an_evaluation_event_is_feedback_only_if_the_project_names_it() -> None:
    event = SpanEvent(
        "gen_ai.evaluation.result", {"gen_ai.evaluation.name": "thumbs", "gen_ai.evaluation.score.value": 1.0}
    )
    judged = llm()._replace(events=(event,))
    assert payloads("feedback", judged) == []
    assert [each["verdict"] for each in payloads("feedback", judged, options=Options(feedback_names={"thumbs"}))] == [
        "positive"
    ]


def test_spans_that_assay_exported_make_no_event_if_they_come_back() -> None:
    ours = Source("s", "", EXPORTER_SCOPE)
    tool = span({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}, number=1, source=ours)
    verdict = span(
        {"openinference.span.kind": "EVALUATOR", "evaluations.0.evaluation.name": "thumbs"}, number=2, source=ours
    )
    assert reasons(tool, verdict) == {"exported": 2}
