"""No span, regardless of its attributes, raises or makes an event that the contract refuses."""

import contextlib
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay_assembler
from assay_assembler.decode import UndecodableError, decode
from assay_assembler.span import Link, Span, SpanEvent
from assay_assembler.trace import Options, Trace
from assay_schema.validation import parse_event
from tests.support.spans import TRACE, request, span, span_id

PACKAGE = Path(assay_assembler.__file__).parent
#: All names of attributes and events, and all words, that the rules read: they are taken from the source.
WORDS = sorted(
    {
        word
        for path in PACKAGE.rglob("*.py")
        for word in re.findall(r'"([A-Za-z_][\w.\-/]{1,60})"', path.read_text())
        if not word.endswith(".")
    }
)
NAMES = [word for word in WORDS if "." in word]
KINDS = [
    {key: value}
    for key, values in {
        "langfuse.observation.type": ("generation", "retriever", "tool", "agent", "chain"),
        "openinference.span.kind": ("LLM", "RETRIEVER", "RERANKER", "TOOL", "CHAIN", "EVALUATOR"),
        "langsmith.span.kind": ("llm", "retriever", "tool", "chain"),
        "ai.operationId": ("ai.generateText", "ai.generateText.doGenerate", "ai.toolCall"),
        "mcp.method.name": ("tools/call",),
        "gen_ai.operation.name": ("chat", "retrieval", "execute_tool", "invoke_agent", "rerank"),
        "traceloop.span.kind": ("workflow", "tool"),
        "gen_ai.request.model": ("gpt",),
    }.items()
    for value in values
]
INDEXED = [
    "llm.input_messages.{}.message.role", "llm.input_messages.{}.message.content", "llm.output_messages.{}.message.content",
    "llm.output_messages.{}.message.contents.{}.message_content.text", "retrieval.documents.{}.document.id",
    "retrieval.documents.{}.document.content", "retrieval.documents.{}.document.metadata",
    "reranker.output_documents.{}.document.id", "gen_ai.prompt.{}.role", "gen_ai.prompt.{}.content",
    "gen_ai.completion.{}.content", "annotations.{}.annotation.label", "annotations.{}.annotation.annotator_kind",
]  # fmt: skip
INDEXES = st.sampled_from(["0", "1", "7", "99999999999", "-1", "01", "²", "٣", "", "x", "1" * 200])

TEXTS = st.one_of(
    st.sampled_from(
        [
            *WORDS,
            "",
            " ",
            "[" * 500,
            "{" * 500,
            '{"a":' * 500,
            "{'a': " * 900,
            '"\\ud800"',
            "'\\ud800'",
            "{'a': '\\ud800'}",
            "[[[]]]",
            "null",
            "HUMAN",
            "user",
        ]
    ),
    st.text(max_size=40),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), TEXTS, st.binary(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)),
    max_leaves=12,
)


def as_text(value: Any) -> str:
    """Return a value in the form that an instrumentation would send: JSON, or printed."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return str(value)


VALUES = st.one_of(JSON, JSON.map(as_text))
KEYS = st.one_of(
    st.sampled_from(NAMES),
    st.builds(lambda form, one: form.replace("{}", one), st.sampled_from(INDEXED), INDEXES),
)
ATTRIBUTES = st.builds(
    lambda kind, rest: {**rest, **kind},
    st.one_of(st.sampled_from(KINDS), st.just({})),
    st.dictionaries(KEYS, VALUES, max_size=12),
)
EVENTS = st.lists(
    st.builds(
        SpanEvent,
        st.sampled_from(
            ["gen_ai.choice", "gen_ai.user.message", "db.query.result", "gen_ai.evaluation.result", "exception", "x"]
        ),
        st.dictionaries(st.one_of(KEYS, st.sampled_from(WORDS)), VALUES, max_size=4),
    ),
    max_size=3,
)


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    """Draw a trace of a few spans with any parents and times."""
    return [
        span(
            draw(ATTRIBUTES),
            number=number,
            parent=draw(st.integers(0, 6)),
            name=draw(TEXTS),
            start_ms=draw(st.integers(-1000, 1000)),
            end_ms=draw(st.integers(-1000, 1000)),
            status=draw(st.sampled_from(["unset", "ok", "error"])),
            events=tuple(draw(EVENTS)),
            links=tuple(
                draw(st.lists(st.builds(Link, st.just(TRACE), st.sampled_from([span_id(1), span_id(9)])), max_size=2))
            ),
            dropped=draw(st.integers(0, 2)),
        )
        for number in range(1, draw(st.integers(1, 5)) + 1)
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(spans())
def test_any_attributes_make_valid_events_or_none(made: list[Span]) -> None:
    trace = Trace("default", TRACE, Options(retrieval_tools=("*",), feedback_names={"x"}))
    for each in made:
        trace.add(each)
        trace.ready()
    for event in trace.close():
        parse_event(event.data)
    for feedback in trace.open_feedback:
        feedback.made("01890a5d-ac96-774b-bcce-b302099a8057")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["protobuf", "json"]))
def test_any_bytes_are_decoded_or_refused(body: bytes, encoding: Any) -> None:
    with contextlib.suppress(UndecodableError):
        decode(body, encoding)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_body_is_decoded_or_refused(data: st.DataObject) -> None:
    body = bytearray(request(span({"gen_ai.operation.name": "chat", "a": [1, {"b": "c"}]})).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UndecodableError):
        decode(bytes(body), "protobuf")


MIB = 1024 * 1024
LARGE: dict[str, dict[str, Any]] = {
    "one text": {"openinference.span.kind": "CHAIN", "input.value": "x" * MIB, "output.value": "y" * MIB},
    "an open call": {"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a(" * (MIB // 2)},
    "an open assignment": {"openinference.span.kind": "CHAIN", "input.value": "q", "output.value": "a=" * (MIB // 2)},
    "deep JSON": {"openinference.span.kind": "CHAIN", "input.value": "[" * MIB, "output.value": '{"a":' * (MIB // 5)},
    "nested lists": {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[" * 900 + "]" * 900},
    "many messages": {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": '[{"role":"tool"},' * 30_000 + "1" + "]" * 30_000,
    },
    "a flat list": {"openinference.span.kind": "CHAIN", "input.value": "[" + "1," * (MIB // 2) + "1]"},
    "many indexes": {
        "openinference.span.kind": "LLM",
        **{f"llm.output_messages.{n}.message.content": "x" for n in range(20_000)},
    },
    "many roles": {
        "openinference.span.kind": "LLM",
        **{f"llm.input_messages.{n}.message.role": "user" for n in range(20_000)},
    },
    "a long repr": {"openinference.span.kind": "TOOL", "input.value": "{'a': '" + "\\" * 60_000},
    "quotes": {"openinference.span.kind": "TOOL", "input.value": "{" + "'" * 60_000},
    "quoted JSON in JSON": {"openinference.span.kind": "CHAIN", "input.value": as_text(as_text(as_text("[" * 1000)))},
    "printed dicts": {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": "{'a':" * 10_000},
    "nested questions": {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": '{"args":[' * 400 + "1" + "]}" * 400,
    },
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_attribute_is_read_in_bounded_time(name: str) -> None:
    trace = Trace("default", TRACE)
    trace.add(span(LARGE[name]))
    trace.ready()
    for event in trace.close():
        parse_event(event.data)


def test_a_trace_of_two_thousand_nested_agents_and_tools_ends() -> None:
    trace = Trace("default", TRACE)
    for number in range(1, 2001):
        kind = ("invoke_agent", "execute_tool", "chat", "retrieval")[number % 4]
        trace.add(span({"gen_ai.operation.name": kind, "gen_ai.tool.name": "t"}, number=number, parent=number - 1))
    for event in trace.close():
        parse_event(event.data)
