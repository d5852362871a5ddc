"""Sessions from traces: spans of the conventions for generative AI in OpenTelemetry's JSON."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from assay_sessions.document import document
from assay_sessions.readers import READERS, Problem
from assay_sessions.readers.otel import NO_CONTENT
from tests.support.agent_logs import SECRET, read, shown

Json = dict[str, Any]
START_NS = 1_780_000_000_000_000_000


def value(plain: Any) -> Json:
    """The `AnyValue` of a plain value."""
    if isinstance(plain, bool):
        return {"boolValue": plain}
    if isinstance(plain, int):
        return {"intValue": str(plain)}
    if isinstance(plain, float):
        return {"doubleValue": plain}
    if isinstance(plain, str):
        return {"stringValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(each) for each in plain]}}
    return {"kvlistValue": {"values": pairs(plain)}}


def pairs(plain: Json) -> list[Json]:
    return [{"key": key, "value": value(each)} for key, each in plain.items() if each is not None]


def span(
    number: int, operation: str | None, attributes: Json, *, parent: int = 0, trace: str = "t1", **fields: Any
) -> Json:
    own = {} if operation is None else {"gen_ai.operation.name": operation}
    start = START_NS + number * 1_000_000_000
    return {
        "traceId": trace, "spanId": f"s{number}", "parentSpanId": f"s{parent}" if parent else "", "name": operation or "GET",
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 500_000_000), "attributes": pairs(own | attributes),
    } | fields  # fmt: skip


def said(role: str, *parts: str | Json) -> Json:
    return {
        "role": role,
        "parts": [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts],
    }


def asks(call_id: str, name: str, **args: Any) -> Json:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": args}


def gives(call_id: str, response: Any) -> Json:
    return said("tool", {"type": "tool_call_response", "id": call_id, "response": response})


def chat(number: int, given: list[Json], answer: list[Json], *, structured: bool = False, **fields: Any) -> Json:
    own: Json = {"gen_ai.conversation.id": "conv-1", "gen_ai.request.model": "m-1"}
    own |= {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.output_tokens": 7,
    }
    for name, messages in (("input", given), ("output", answer)):
        own[f"gen_ai.{name}.messages"] = messages if structured else json.dumps(messages)
    return span(number, "chat", own | fields.pop("more", {}), **fields)


def tool(number: int, name: str, call_id: str | None, **fields: Any) -> Json:
    more = fields.pop("more", {})
    return span(number, "execute_tool", {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id} | more, **fields)


def exported(*found: Json) -> Json:
    resource = {"attributes": pairs({"service.name": "helper"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(found)}]}]}


def saved(path: Path, *found: Json) -> Path:
    path.write_text(json.dumps(exported(*found)))
    return path


FIRST = [said("system", "Be brief."), said("user", "Weather in Bonn?")]
ASKED = said(
    "assistant",
    {"type": "reasoning", "content": "hm"},
    "I look.",
    asks("c1", "weather", city="Bonn"),
    asks("c2", "time"),
)
SECOND = [*FIRST, ASKED, gives("c1", {"sky": "sunny"}), gives("c2", "noon")]
ANSWER = said("assistant", "Sunny.")
THIRD = [*SECOND, ANSWER, said("user", "Thanks")]


def trace(*, structured: bool = False) -> list[Json]:
    agent = {"gen_ai.agent.name": "helper", "gen_ai.conversation.id": "conv-1"}
    instructions = [{"type": "text", "content": "Be kind."}]
    agent["gen_ai.system_instructions"] = instructions if structured else json.dumps(instructions)  # type: ignore[assignment]
    failed = {"more": {"error.type": "TimeoutError"}, "status": {"code": 2, "message": "took too long"}}
    return [
        span(1, "invoke_agent", agent),
        chat(2, FIRST, [ASKED], structured=structured, parent=1),
        tool(3, "weather", "c1", parent=1),
        tool(4, "time", "c2", parent=1, **failed),
        span(5, None, {"http.request.method": "GET"}, parent=4),
        chat(6, SECOND, [ANSWER], structured=structured, parent=1),
        chat(9, THIRD, [said("assistant", "Welcome.")], structured=structured, trace="t2"),
    ]


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("form", ["lines", "file", "indented", "list"])
def test_a_conversation_over_two_traces_is_one_session_in_every_form_of_the_file(
    tmp_path: Path, form: str, structured: bool
) -> None:
    found = trace(structured=structured)
    texts = {
        "lines": "".join(json.dumps(exported(each)) + "\n" for each in reversed(found)),
        "file": json.dumps(exported(*found)),
        "indented": json.dumps(exported(*found), indent=2),
        "list": json.dumps([exported(each) for each in found]),
    }
    path = tmp_path / "traces.json"
    path.write_text(texts[form])
    [session], problems = read("otel", path)
    assert problems == []
    assert shown(session) == (
        ["user: Weather in Bonn?", "model: I look.\n\nSunny.", "user: Thanks"],
        "Welcome.",
        ["2 weather success", "2 time error timeout"],
        "answered",
    )
    [weather, time] = [call for message in session.messages for call in message.calls]
    assert (weather.args, weather.output, weather.call_id, weather.duration_ms) == (
        {"city": "Bonn"}, '{"sky":"sunny"}', "c1", 500.0,
    )  # fmt: skip
    assert (time.output, time.started_at) == ("noon", datetime.fromtimestamp(START_NS / 1e9 + 4, UTC))
    assert (session.session_id, session.model) == ("conv-1", "m-1")
    assert dict(session.tokens) == {"input": 180, "output": 21, "cache_read": 120}
    assert session.extra == {"agent": "helper", "service": "helper", "instructions": "Be kind."}
    assert session.created == datetime.fromtimestamp(START_NS / 1e9 + 1, UTC)


def test_the_id_of_a_session_is_of_the_conversation_the_session_or_the_trace(tmp_path: Path) -> None:
    def of(number: int, attributes: Json, trace: str, parent: int = 0) -> Json:
        messages = {"gen_ai.input.messages": json.dumps([said("user", "hi")])}
        return span(number, "chat", messages | attributes, trace=trace, parent=parent)

    path = saved(
        tmp_path / "t.json",
        of(1, {"gen_ai.conversation.id": "a", "session.id": "x"}, "t1"),
        of(2, {"session.id": "b"}, "t2"),
        of(3, {}, "t3"),
        span(4, None, {"session.id": "d"}, trace="t4"),
        of(5, {}, "t4", parent=4),
    )
    sessions, _ = read("otel", path)
    assert [each.session_id for each in sessions] == ["a", "b", "t3", "d"]


def test_spans_without_messages_are_counted_with_the_setting_that_turns_them_on(tmp_path: Path) -> None:
    silent = {"gen_ai.conversation.id": "c", "gen_ai.request.model": "m"}
    path = saved(tmp_path / "t.json", span(1, "chat", silent), tool(2, "bash", "c1"), span(3, "chat", silent))
    assert read("otel", path) == ([], [Problem("no_content", "t.json", 2, NO_CONTENT)])
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in NO_CONTENT


def test_messages_of_the_agent_are_read_where_its_model_has_none(tmp_path: Path) -> None:
    own = {"gen_ai.input.messages": json.dumps(FIRST), "gen_ai.output.messages": json.dumps([ANSWER])}
    path = saved(
        tmp_path / "t.json",
        span(1, "invoke_agent", own),
        span(2, "chat", {}, parent=1),
        tool(3, "weather", None, parent=1, more={"gen_ai.tool.call.arguments": '{"city": "Bonn"}', "gen_ai.tool.call.result": "sunny"}),
    )  # fmt: skip
    [found], problems = read("otel", path)
    assert problems == []
    calls = [(call.name, call.args, call.output) for message in found.messages for call in message.calls]
    assert calls == [("weather", {"city": "Bonn"}, "sunny")]
    assert document(found)["request"]["contents"] == [{"role": "user", "parts": [{"text": "Weather in Bonn?"}]}]


def test_a_model_that_gets_only_what_is_new_is_heard_once(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "t.json",
        chat(1, [said("user", "one")], [said("assistant", asks("c1", "t"))]),
        chat(2, [gives("c1", "fine")], [said("assistant", "A.")]),
        chat(3, [said("user", "two")], [said("assistant", "B.")]),
        chat(4, [said("assistant", "a summary of it"), said("user", "three")], [said("assistant", "C.")]),
    )
    [found], _ = read("otel", path)
    assert shown(found)[:3] == (
        ["user: one", "model: A.", "user: two", "model: B.", "user: three"], "C.", ["2 t success"],
    )  # fmt: skip


def test_a_retry_says_nothing_twice_and_a_batch_that_was_sent_twice_counts_once(tmp_path: Path) -> None:
    failed = chat(1, FIRST, [], status={"code": "STATUS_CODE_ERROR", "message": "429"})
    answered = chat(2, FIRST, [ANSWER])
    path = saved(tmp_path / "t.json", failed, answered, answered)
    [found], _ = read("otel", path)
    assert shown(found)[:2] == (["user: Weather in Bonn?"], "Sunny.")
    assert found.tokens["output"] == 14


def test_a_model_whose_history_was_rewritten_is_heard_once(tmp_path: Path) -> None:
    summary = said("assistant", "a summary")
    path = saved(
        tmp_path / "t.json",
        chat(1, [said("user", "one")], [said("assistant", "A.")]),
        chat(2, [summary, said("user", "two")], [], status={"code": 2}),
        chat(3, [summary, said("user", "two")], [said("assistant", "B.")]),
    )
    [found], _ = read("otel", path)
    assert shown(found)[:2] == (["user: one", "model: A.", "user: two"], "B.")


def test_a_sub_agent_below_a_tool_is_a_session_of_its_own_and_a_tool_below_a_tool_is_none(tmp_path: Path) -> None:
    delegate = said("assistant", asks("c1", "delegate"), asks("c2", "search"))
    path = saved(
        tmp_path / "t.json",
        chat(1, FIRST, [delegate]),
        tool(2, "delegate", "c1"),
        span(3, "invoke_agent", {"gen_ai.agent.name": "scout"}, parent=2),
        chat(4, [said("user", "look")], [said("assistant", "Seen.")], parent=3),
        tool(5, "search", "c2"),
        tool(6, "search", None, parent=5),
        chat(7, [*FIRST, delegate, gives("c1", "Seen."), gives("c2", "x")], [ANSWER]),
    )
    found, problems = read("otel", path)
    assert problems == []
    main, child = found
    assert (main.session_id, main.parent_session_id, child.parent_session_id) == ("conv-1", None, "conv-1")
    children = [call.child_session_id for message in main.messages for call in message.calls]
    assert children == [child.session_id, None]
    assert shown(main)[2] == ["2 delegate success", "2 search success"]
    assert shown(child)[:3] == (["user: look"], "Seen.", [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"more": {"error.type": "ValueError"}}, "2 t error tool_error"),
        ({"more": {"error.type": "asyncio.CancelledError"}}, "2 t error interrupted"),
        ({"status": {"code": 2}}, "2 t error tool_error"),
        ({"status": {"code": 2, "message": "The user rejected permission to use this"}}, "2 t refused user_refused"),
        ({"status": {"code": 1}}, "2 t success"),
    ],
)
def test_the_result_of_a_call(tmp_path: Path, fields: Json, expected: str) -> None:
    asked = said("assistant", asks("c1", "t"))
    path = saved(tmp_path / "t.json", chat(1, FIRST, [asked]), tool(2, "t", "c1", **fields))
    [found], _ = read("otel", path)
    assert shown(found)[2] == [expected]


def test_a_call_without_a_span_and_without_a_result_was_interrupted_and_an_exception_says_why(tmp_path: Path) -> None:
    exception = {"name": "exception", "attributes": pairs({"exception.message": "disk full"})}
    asked = said("assistant", asks("c1", "t"), asks("c2", "t"))
    failed = tool(2, "t", "c1", status={"code": 2}, events=[exception])
    [found], _ = read("otel", saved(tmp_path / "t.json", chat(1, FIRST, [asked]), failed))
    assert shown(found)[2:] == (["2 t error tool_error", "2 t error interrupted"], "aborted")
    assert found.messages[-1].calls[0].output == "disk full"


def test_messages_can_be_in_an_event_of_the_span(tmp_path: Path) -> None:
    details = {"gen_ai.input.messages": FIRST, "gen_ai.output.messages": [ANSWER]}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": pairs(details)}
    [found], problems = read("otel", saved(tmp_path / "t.json", span(1, "chat", {}, events=[event])))
    assert (shown(found)[:2], problems) == ((["user: Weather in Bonn?"], "Sunny."), [])


def test_what_is_unknown_or_damaged_is_counted_without_its_content_and_the_rest_is_read(tmp_path: Path) -> None:
    odd = chat(3, [said("wizard", SECRET), said("user", "x", {"type": "hologram", "data": SECRET})], [])
    rows = [
        json.dumps(exported(*trace())),
        json.dumps({"resourceMetrics": []}),
        json.dumps({"future": SECRET}),
        json.dumps(exported(span(1, "dream", {"gen_ai.input.messages": SECRET}), span(2, "embeddings", {}))),
        json.dumps(
            exported(
                odd | {"traceId": "t9", "attributes": pairs({"gen_ai.operation.name": "chat"}) + odd["attributes"][4:]}
            )
        ),
        json.dumps(exported(span(4, "chat", {"gen_ai.input.messages": SECRET}, trace="t8"))),
        '{"resourceSpans": [{"cut": "' + SECRET,
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows))
    sessions, problems = read("otel", path)
    assert "conv-1" in {each.session_id for each in sessions}
    assert {(each.kind, each.detail) for each in problems} == {
        ("unknown_type", "line future"),
        ("unknown_type", "operation dream"),
        ("unknown_type", "role wizard"),
        ("unknown_type", "part hologram"),
        ("damaged", "gen_ai.input.messages"),
        ("damaged", "line 7"),
    }


@pytest.mark.parametrize(
    "attributes",
    [
        [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, 7, {"key": 1}, {"key": "x", "value": 3}],
        pairs({"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[7, {"role": "user", "parts": [8, {}]}]'}),
        pairs({"gen_ai.operation.name": "chat", "gen_ai.input.messages": '{"role": "user"}'}),
    ],
)
def test_values_of_the_wrong_type_never_stop_the_import(tmp_path: Path, attributes: Any) -> None:
    odd: Json = {
        "traceId": 7,
        "spanId": None,
        "startTimeUnixNano": "soon",
        "endTimeUnixNano": 10**30,
        "attributes": attributes,
    }
    path = saved(tmp_path / "t.json", *trace(), odd | {"events": [3], "status": "bad"})
    sessions, problems = read("otel", path)
    assert [each.session_id for each in sessions] == ["conv-1"]
    assert "no_session_id" in {each.kind for each in problems}


def test_a_file_that_was_cut_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(exported(*trace()), indent=1)[:-50])
    sessions, problems = read("otel", path)
    assert (sessions, [each.kind for each in problems]) == ([], ["damaged"])


def test_stores_are_named_files(tmp_path: Path) -> None:
    reader = READERS["otel"]
    assert reader.locations(tmp_path, {}) == []
    path = saved(tmp_path / "traces.jsonl", *trace())
    (tmp_path / "notes.txt").write_text("")
    assert list(reader.discover([tmp_path])) == [path]
    assert list(reader.read(path, datetime(2100, 1, 1, tzinfo=UTC))) == []


def test_spans_that_the_real_sdk_writes_are_a_session(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({"service.name": "helper"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")

    def operation(name: str, **attributes: Any) -> Any:
        own = {f"gen_ai.{key.replace('__', '.')}": each for key, each in attributes.items()}
        return tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": name} | own)

    with operation("invoke_agent", conversation__id="conv-1", agent__name="helper"):
        with operation("chat", input__messages=json.dumps(FIRST), output__messages=json.dumps([ASKED])):
            pass
        with operation("execute_tool", tool__name="weather", tool__call__id="c1"):
            pass
        with pytest.raises(TimeoutError), operation("execute_tool", tool__name="time", tool__call__id="c2"):
            raise TimeoutError("took too long")
        with operation("chat", input__messages=json.dumps(SECOND), output__messages=json.dumps([ANSWER])):
            pass
    path = tmp_path / "traces.json"
    path.write_text(MessageToJson(encode_spans(exporter.get_finished_spans())))
    [found], problems = read("otel", path)
    assert problems == []
    assert (found.session_id, found.extra) == ("conv-1", {"agent": "helper", "service": "helper"})
    calls = ["2 weather success", "2 time error timeout"]
    assert shown(found) == (["user: Weather in Bonn?"], "I look.\n\nSunny.", calls, "answered")
