"""Assemble the spans of a trace: questions, answers, contexts, ids and limits."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from assay_assembler import calls, retrievals, tree
from assay_assembler.event_ids import chunk_number, span_event_id
from assay_assembler.node import Node
from assay_assembler.span import Span
from assay_assembler.trace import Options, Trace
from assay_schema.ids import event_ms
from assay_schema.limits import QUERY_MAX_CHARS, TEXT_MAX_BYTES
from tests.support.spans import START_NS, TRACE, span, span_id
from tests.support.traces import events, opened, payloads, reasons

OPERATION = "gen_ai.operation.name"


def message(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def chat(number: int, asked: str = "Q?", said: str = "A.", **fields: Any) -> Span:
    attributes: dict[str, Any] = {OPERATION: "chat", "gen_ai.response.model": f"model-{number}"}
    attributes |= {"gen_ai.input.messages": message("user", asked)} if asked else {}
    attributes |= {"gen_ai.output.messages": message("assistant", said)} if said else {}
    return span(attributes | fields.pop("more", {}), number=number, **fields)


def agent(number: int, asked: str = "", said: str = "", **fields: Any) -> Span:
    attributes: dict[str, Any] = {OPERATION: "invoke_agent"}
    attributes |= {"gen_ai.input.messages": message("user", asked)} if asked else {}
    attributes |= {"gen_ai.output.messages": message("assistant", said)} if said else {}
    return span(attributes, number=number, **fields)


def retrieval(
    number: int, *hits: tuple[str, str], query: str = "q", more: dict[str, Any] | None = None, **fields: Any
) -> Span:
    documents = [{"id": known, "content": text, "score": 0.5} for known, text in hits]
    attributes = {OPERATION: "retrieval", "gen_ai.retrieval.query.text": query, "gen_ai.retrieval.documents": documents}
    return span(attributes | (more or {}), number=number, **fields)


def tool(number: int, name: str = "t", **fields: Any) -> Span:
    attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": name} | fields.pop("more", {})
    return span(attributes, number=number, **fields)


def test_an_agent_gives_one_answer_from_its_last_call_of_a_model() -> None:
    plan, last = (
        chat(2, "Q?", "Plan.", parent=1, end_ms=10),
        chat(3, "rewritten", "Final.", parent=1, start_ms=20, end_ms=90),
    )
    [found] = payloads("answer", agent(1), plan, last)
    assert (found["query"], found["answer"], found["model"], found["latency_ms"]) == ("Q?", "Final.", "model-3", 100.0)


def test_an_agents_own_texts_take_precedence() -> None:
    [found] = payloads("answer", agent(1, "Outer?", "Outer."), chat(2, parent=1))
    assert (found["query"], found["answer"], found["model"]) == ("Outer?", "Outer.", "model-2")


def test_an_agent_within_an_agent_gives_no_answer() -> None:
    assert len(payloads("answer", agent(1), agent(2, "inner", "inner", parent=1), chat(3, parent=2))) == 1


def test_calls_of_a_model_without_an_agent_are_answers_each() -> None:
    assert [each["answer"] for each in payloads("answer", chat(1, said="1"), chat(2, said="2", end_ms=200))] == [
        "1",
        "2",
    ]


def test_a_call_that_asks_for_a_tool_is_no_answer() -> None:
    asking = chat(1, more={"gen_ai.response.finish_reasons": ["tool_calls"]})
    assert payloads("answer", asking) == []
    assert reasons(asking) == {"tool_request": 1}


def test_spans_that_were_not_sent_leave_a_call_within_its_agent() -> None:
    assert len(payloads("answer", agent(1, end_ms=500), chat(2, parent=77, start_ms=10, end_ms=20))) == 1


def test_two_agents_that_overlap_leave_an_orphan_alone() -> None:
    one, two = agent(1, "1?", "1", end_ms=500), agent(2, "2?", "2", start_ms=5, end_ms=600)
    inside = [chat(4, parent=1, start_ms=1, end_ms=2), chat(5, parent=2, start_ms=6, end_ms=7)]
    assert len(payloads("answer", one, two, *inside, chat(3, parent=77, start_ms=10, end_ms=20))) == 3


def test_contexts_are_the_passages_of_retrievals_that_ended_before_the_call() -> None:
    before = retrieval(2, ("1", "one"), ("2", "two"), parent=1, start_ms=0, end_ms=10)
    after = retrieval(3, ("3", "three"), parent=1, start_ms=80, end_ms=95)
    made = events(agent(1, "Q?"), before, after, chat(4, parent=1, start_ms=20, end_ms=70))
    [answer] = [event for event in made if event["kind"] == "answer"]
    assert [each["id"] for each in answer["payload"]["contexts"]] == ["1", "2"]
    assert answer["payload"]["retrieval_event_id"] == made[0]["event_id"]


def test_a_reranker_replaces_the_passages_before_it() -> None:
    found = retrieval(2, ("1", "one"), ("2", "two"), parent=1, end_ms=10)
    ranked = retrieval(3, ("2", "two"), parent=1, start_ms=11, end_ms=15, more={OPERATION: "rerank"})
    [answer] = payloads("answer", agent(1, "Q?"), found, ranked, chat(4, parent=1, start_ms=20))
    assert [each["id"] for each in answer["contexts"]] == ["2"]


def test_passages_without_text_are_no_contexts() -> None:
    [answer] = payloads(
        "answer", agent(1, "Q?"), retrieval(2, ("1", ""), parent=1, end_ms=10), chat(3, parent=1, start_ms=20)
    )
    assert answer["contexts"] == []


def test_a_retrieval_of_another_agent_is_not_a_context() -> None:
    first = [
        agent(1, "1?", end_ms=100),
        retrieval(2, ("1", "one"), parent=1, end_ms=10),
        chat(3, parent=1, start_ms=20),
    ]
    second = [agent(4, "2?", start_ms=200, end_ms=300), chat(5, parent=4, start_ms=220, end_ms=250)]
    one, two = payloads("answer", *first, *second)
    assert ([each["id"] for each in one["contexts"]], two["contexts"]) == (["1"], [])


def test_a_retrieval_without_a_query_has_the_question_of_its_agent() -> None:
    assert (
        payloads("retrieval", agent(1, "Q?", "A."), retrieval(2, ("1", "one"), query="", parent=1))[0]["query"] == "Q?"
    )


def test_a_retrieval_has_its_hits_in_order() -> None:
    hits = [
        {"id": "a", "content": "t", "metadata": {"source": "s"}},
        {"content": "no id"},
        {"id": "7", "metadata": {"url": "u"}},
    ]
    [found] = payloads("retrieval", retrieval(1, more={"gen_ai.retrieval.documents": hits}))
    first, made_up, last = found["retrieved_ids"]
    assert (first, last, made_up[:7]) == ("a", "7", "sha256:")
    assert found["retrieved_chunk_ids"] == [chunk_number("s", "a"), chunk_number("", made_up), 7]
    assert found["retrieved_slugs"] == ["s", made_up, "u"]
    assert [each["text"] for each in found["passages"]] == ["t", "no id"]
    assert found["retrieved_scores"] == []


@pytest.mark.parametrize("output", ["[]", '{"documents": []}', "", "null"])
def test_an_empty_result_is_a_retrieval(output: str) -> None:
    empty = span({"openinference.span.kind": "RETRIEVER", "input.value": "q", "output.value": output})
    assert payloads("retrieval", empty)[0]["retrieved_chunk_ids"] == []


@pytest.mark.parametrize("output", ["[Document(id='1')]", '["text"]', '{"documents": "Rows are kept."}'])
def test_a_result_that_cannot_be_read_is_counted_and_is_no_empty_result(output: str) -> None:
    unread = span({"openinference.span.kind": "RETRIEVER", "input.value": "q", "output.value": output})
    assert payloads("retrieval", unread) == []
    assert reasons(unread) == {"unreadable": 1}


def test_an_embedding_below_makes_it_a_vector_search() -> None:
    below = span({OPERATION: "embeddings", "gen_ai.request.model": "small"}, number=2, parent=1)
    [found] = payloads("retrieval", retrieval(1, ("1", "one")), below)
    assert (found["vector_enabled"], found["embedding_model"]) == (True, "small")


def test_a_tool_of_the_projects_choice_is_a_retrieval_too() -> None:
    more = {
        "gen_ai.tool.call.arguments": '{"query": "q"}',
        "gen_ai.tool.call.result": '[{"id": "1", "text": "one", "score": 1}]',
    }
    spans = [agent(1, "Q?"), tool(2, "search_help", parent=1, end_ms=10, more=more), chat(3, parent=1, start_ms=20)]
    made = events(*spans, options=Options(retrieval_tools=("search_*",)))
    assert [event["kind"] for event in made] == ["retrieval", "tool_call", "answer"]
    assert [each["text"] for each in made[2]["payload"]["contexts"]] == ["one"]
    assert [event["kind"] for event in events(*spans)] == ["tool_call", "answer"]


def test_a_framework_and_mcp_record_one_call() -> None:
    mcp = {"mcp.method.name": "tools/call"}
    spans = [tool(1), tool(2, parent=1, more=mcp), tool(3, parent=2, more=mcp, local_root=True)]
    assert len(payloads("tool_call", *spans)) == 1
    assert len(payloads("tool_call", tool(1, "ask_agent"), tool(2, "search", parent=1))) == 2


def test_two_spans_with_one_call_id_are_one_call() -> None:
    more = {"gen_ai.tool.call.id": "call_1"}
    assert len(payloads("tool_call", tool(1, more=more), tool(2, more=more))) == 1


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"mcp.session.id": "m", "session.id": "s"}, "m"),
        ({"gen_ai.conversation.id": "c"}, "c"),
        ({"session.id": "s"}, "s"),
        ({}, "instance-1"),
    ],
)
def test_a_tool_call_names_the_run_of_its_server(attributes: dict[str, str], expected: str) -> None:
    assert payloads("tool_call", tool(1, more=attributes))[0]["server_session_id"] == expected


def test_the_session_of_an_ancestor_is_that_of_the_event() -> None:
    made = events(
        agent(1, "Q?", "A.")._replace(attributes={**agent(1, "Q?", "A.").attributes, "session.id": "s"}),
        tool(2, parent=1),
    )
    assert {event["session_id"] for event in made} == {"s"}


def test_an_event_says_where_it_came_from_and_names_users_by_a_keyed_hash_only() -> None:
    [named] = events(chat(1, more={"user.id": "u-1"}), options=Options(user_key=b"secret"))
    assert (named["origin"], named["partial"], len(named["user_hash"])) == ("otlp", False, 64)
    [unnamed] = events(chat(1, more={"user.id": "u-1"}))
    assert "user_hash" not in unnamed


def test_an_event_id_is_a_uuid7_of_the_start_and_the_same_each_time() -> None:
    made = span_event_id("p", TRACE, span_id(1), "answer", START_NS)
    assert UUID(made).version == 7
    assert event_ms(UUID(made)) == START_NS // 1_000_000
    others = [
        ("q", TRACE, span_id(1), "answer"),
        ("p", "f" * 32, span_id(1), "answer"),
        ("p", TRACE, span_id(2), "answer"),
    ]
    assert (
        len(
            {
                made,
                *(span_event_id(*other, START_NS) for other in others),
                span_event_id("p", TRACE, span_id(1), "x", 0),
            }
        )
        == 5
    )
    assert made == "019b7ca9-8c88-70f1-bee2-25740c7540a2"


@pytest.mark.parametrize(
    ("variables", "texts"),
    [
        ({"gen_ai.prompt.variable.context": "Ninety days."}, ["Ninety days."]),
        ({"gen_ai.prompt.variable.context": ["Ninety days.", "", "Thirty."]}, ["Ninety days.", "Thirty."]),
        ({"gen_ai.prompt.variable.context": '[{"id": "a", "text": "Ninety days."}]'}, ["Ninety days."]),
        ({"llm.prompt_template.variables": '{"context": "Ninety days.", "question": "Q?"}'}, ["Ninety days."]),
        ({"llm.prompt_template.variables": '{"context": ["Ninety days.", "Thirty."]}'}, ["Ninety days.", "Thirty."]),
        ({"gen_ai.prompt.variable.question": "Q?"}, []),
        ({"gen_ai.prompt.variable.context": " "}, []),
        ({"gen_ai.prompt.variable.context": 7}, []),
        ({"llm.prompt_template.variables": '["context"]'}, []),
        ({"llm.prompt_template.variables": '{"context": '}, []),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["call", "agent"])
def test_variables_of_a_prompt_are_contexts_if_the_project_names_them(
    variables: dict[str, Any], texts: list[str], inside: bool
) -> None:
    spans = [chat(2, parent=1, more=variables), *([agent(1, "Q?", "A.")] if inside else [])]
    (answer,) = payloads("answer", *spans, options=Options(contexts_from_prompt=("context",)))
    assert [each["text"] for each in answer["contexts"]] == texts
    (unnamed,) = payloads("answer", *spans)
    assert unnamed["contexts"] == []


def test_variables_of_a_prompt_are_no_contexts_beside_a_retrieval() -> None:
    said = chat(3, parent=1, start_ms=50, end_ms=90, more={"gen_ai.prompt.variable.context": "From the prompt."})
    found = retrieval(2, ("1", "From the index."), parent=1, end_ms=10)
    options = Options(contexts_from_prompt=("context",))
    (answer,) = payloads("answer", found, said, agent(1, "Q?", "A."), options=options)
    assert [each["text"] for each in answer["contexts"]] == ["From the index."]


class Looks:
    """Counts how often the steps of a search look at a span."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        for module, name in ((calls, "_is_call"), (retrievals, "_is_outermost"), (tree, "_is_first")):
            self._count(monkeypatch, module, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        function = getattr(module, name)

        def counting(node: Node) -> Any:
            self.number += 1
            return function(node)

        monkeypatch.setattr(module, name, counting)


@pytest.mark.parametrize("first", [True, False])
def test_an_open_trace_looks_at_each_span_a_constant_number_of_times(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    looks, root, trace = Looks(monkeypatch), agent(1, "Q?", "A."), opened()
    others = [make(number, parent=1) for number in range(2, 402, 2) for make in (tool, chat)]
    others = [each._replace(span_id=span_id(place)) for place, each in enumerate(others, start=2)]
    ready = []
    for each in [root, *others] if first else [*others, root]:
        trace.add(each)
        ready += trace.ready()
        assert trace.rooted is (first or each is root)
    assert len(ready) == 200
    assert looks.number <= 4 * len(trace)


@pytest.mark.parametrize("together", [True, False])
def test_nested_tools_are_looked_at_a_constant_number_of_times(monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    looks, trace = Looks(monkeypatch), opened()
    for number in range(1, 301):
        trace.add(tool(number, f"tool-{number}", parent=number - 1))
        if not together:
            assert len(trace.ready()) == 1
    assert len(trace.ready()) == 300 * together
    assert trace.close() == []
    assert looks.number <= 8 * len(trace)


def test_events_that_need_no_later_span_are_ready_before_the_trace_is_closed() -> None:
    trace = opened(retrieval(2, ("1", "one"), parent=1, end_ms=10), tool(3, parent=1))
    assert trace.ready() == []
    trace.add(agent(1, "Q?", "A."))
    assert sorted(event.kind for event in trace.ready()) == ["retrieval", "tool_call"]
    assert trace.ready() == []
    assert [event.kind for event in trace.close()] == ["answer"]
    assert trace.targets == {
        span_id(1): trace.answer,
        **{key: trace.targets[key] for key in (span_id(2), span_id(3))},
    }


@pytest.mark.parametrize(
    ("spans", "place"),
    [
        ([chat(5, end_ms=50), chat(6, end_ms=60)], 6),
        ([agent(1, "Q?"), chat(3, parent=1, end_ms=40), chat(6, end_ms=160)], 1),
        ([agent(1, "Q?"), chat(3, parent=1), agent(2, "Q?", end_ms=150), chat(4, parent=2), chat(6, end_ms=160)], 2),
        ([agent(1, "Q?"), chat(3, parent=1), agent(2, "Q?", parent=9, end_ms=150), chat(4, parent=2)], 1),
        ([agent(1, "Q?"), agent(2, "Q?", parent=1), chat(4, parent=2)], 1),
        ([chat(5, end_ms=50), chat(6, parent=9, end_ms=60)], 5),
        ([agent(1, "Q?", parent=9), chat(3, parent=1), chat(6, end_ms=160)], 1),
    ],
)
def test_the_answer_of_a_trace_is_that_of_its_outermost_agent_or_else_the_last(spans: list[Any], place: int) -> None:
    for order in (spans, spans[::-1]):
        trace = opened(*order)
        trace.close()
        assert trace.answer == trace.targets[span_id(place)]


@pytest.mark.parametrize("sibling", [True, False])
def test_a_call_is_one_event_although_its_outer_span_comes_after_the_event(sibling: bool) -> None:
    call = {"gen_ai.tool.call.id": "call-1"}
    bare = span({}, number=7, parent=1)
    inner = tool(3, parent=7, more=call)
    outer = tool(4, parent=1, more=call) if sibling else tool(7, parent=1)
    trace = opened(agent(1, "Q?", "A."), *([bare] if sibling else []), inner)
    early = trace.ready()
    trace.add(outer)
    late = trace.ready()
    assert [event.kind for event in [*early, *late, *trace.close()]].count("tool_call") == 1  # type: ignore[arg-type]
    assert {trace.targets[each.span_id] for each in (inner, outer)} == {(early or late)[0].event_id}


def test_an_answer_is_known_by_the_response_that_has_its_text() -> None:
    asked = chat(2, said="", parent=1, end_ms=20, more={"gen_ai.response.id": "first"})
    said = chat(3, parent=1, start_ms=30, more={"gen_ai.response.id": "second"})
    trace = opened(agent(1, "Q?"), asked, said)
    trace.close()
    assert trace.responses == {"second": trace.answer}


def test_an_event_names_the_spans_that_it_is_made_of() -> None:
    [made] = opened(agent(1, "Q?"), chat(2, parent=1)).close()
    assert made.span_ids == (span_id(1), span_id(2))


def test_long_texts_are_cut_between_characters() -> None:
    asked, said = "ä" * (QUERY_MAX_CHARS + 1), "ü" * TEXT_MAX_BYTES
    [event] = events(chat(1, asked, said))
    found = event["payload"]
    assert found["query"] == asked[:-1]
    assert found["answer"] == said[: TEXT_MAX_BYTES // 2]
    assert event["partial"] is True


_FITS, _LONG = "ü" * (TEXT_MAX_BYTES // 2), "ü" * (TEXT_MAX_BYTES // 2) + "x"


@pytest.mark.parametrize(
    ("made", "partial"),
    [
        (lambda: chat(1, "ä" * QUERY_MAX_CHARS, _FITS), False),
        (lambda: chat(1, "ä" * (QUERY_MAX_CHARS + 1)), True),
        (lambda: chat(1, said=_LONG), True),
        (lambda: retrieval(1, ("a", _FITS)), False),
        (lambda: retrieval(1, ("a", "short"), ("b", _LONG)), True),
        (lambda: tool(1, more={"gen_ai.tool.call.arguments": {"a": "x"}}), False),
        (lambda: tool(1, more={"gen_ai.tool.call.arguments": {"a": "x" * 300_000}}), True),
    ],
    ids=["within", "query", "answer", "passage within", "passage", "arguments within", "arguments"],
)
def test_an_event_is_partial_if_a_text_of_its_span_was_cut(made: Callable[[], Span], partial: bool) -> None:
    assert [event["partial"] for event in events(made())] == [partial]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"gen_ai.input.messages": "hello", "gen_ai.output.messages": "hi"}, "unreadable"),
        ({"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "te'}, "unreadable"),
        ({"gen_ai.output.messages": "[]"}, "no_content"),
        ({"gen_ai.output.messages": " "}, "no_content"),
    ],
    ids=["plain text", "cut JSON", "no messages", "blank"],
)
@pytest.mark.parametrize("operation", ["chat", "invoke_agent"])
def test_messages_that_are_not_json_are_unreadable(more: dict[str, Any], reason: str, operation: str) -> None:
    silent = span(more | {OPERATION: operation}, number=1)
    assert reasons(silent) == {reason: 1}


def test_a_question_that_is_not_json_is_unreadable() -> None:
    assert reasons(chat(1, "", more={"gen_ai.input.messages": '[{"role": "user", "pa'})) == {"unreadable": 1}


def test_passages_that_do_not_fit_in_an_entry_are_left_out_from_the_end() -> None:
    hits = [(str(number), f"{number}" + "x" * 200_000) for number in range(10)]
    [found] = payloads(
        "answer", agent(1, "Q?"), retrieval(2, *hits, parent=1, end_ms=10), chat(3, parent=1, start_ms=20)
    )
    assert [each["id"] for each in found["contexts"]] == ["0", "1", "2", "3", "4"]


def test_large_arguments_are_replaced_by_marks() -> None:
    more = {"gen_ai.tool.call.arguments": {"a": "x" * 300_000, "b": 1, "c": float("nan")}}
    assert payloads("tool_call", tool(1, more=more))[0]["args_summary"] == {
        "a": "<truncated:300000 bytes>",
        "b": 1,
        "c": "<float>",
    }


@pytest.mark.parametrize("end_ms", [-5_000, 10**10 * 1000])
def test_a_time_that_cannot_be_is_no_error(end_ms: int) -> None:
    made = opened(chat(1, end_ms=end_ms))
    assert len(made.close()) == (end_ms < 0)


def test_a_cycle_of_parents_ends() -> None:
    assert len(events(agent(1, "Q?", "A.", parent=2), agent(2, parent=1), tool(3, parent=2))) >= 1


def test_no_content_is_counted() -> None:
    silent = span({OPERATION: "chat", "gen_ai.request.model": "gpt"})
    assert reasons(silent) == {"no_content": 1}
    assert reasons(chat(1, asked="")) == {"no_query": 1}
    assert reasons(span({"gen_ai.x": 1})) == {"unknown": 1}


def test_an_empty_trace_makes_nothing() -> None:
    trace = Trace("default", TRACE)
    assert (trace.ready(), trace.close(), len(trace)) == ([], [], 0)
