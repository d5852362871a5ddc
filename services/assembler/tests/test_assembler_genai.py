"""Map spans of OpenTelemetry's GenAI conventions, of all generations."""

from typing import Any

import pytest

from assay_assembler.documents import Document
from assay_assembler.span import Attributes, Span, SpanEvent
from tests.support.spans import span
from tests.support.steps import fields

OPERATION = "gen_ai.operation.name"
INPUT = '[{"role": "user", "parts": [{"type": "text", "content": "How long?"}]}]'
OUTPUT = '[{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, {"type": "text", "content": "90 days."}]}]'
CALL = '[{"role": "assistant", "parts": [{"type": "text", "content": "I look."}, {"type": "tool_call", "name": "x"}]}]'


def event(name: str, **attributes: Any) -> SpanEvent:
    return SpanEvent(name, {key.replace("__", "."): value for key, value in attributes.items()})


CASES: dict[str, tuple[Attributes | Span, dict[str, Any]]] = {
    "messages since 1.37": (
        {
            OPERATION: "chat",
            "gen_ai.input.messages": INPUT,
            "gen_ai.output.messages": OUTPUT,
            "gen_ai.request.model": "gpt",
            "gen_ai.response.model": "gpt-1",
            "gen_ai.response.id": "r-1",
            "gen_ai.conversation.id": "c-1",
        },
        {
            "kind": "answer", "model_call": True, "query": "How long?", "text": "90 days.", "model": "gpt-1",
            "response_id": "r-1", "session_id": "c-1", "requests_tool": False,
        },
    ),
    "structured messages": (
        {
            OPERATION: "chat",
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "How long?"}]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "90 days."}]}],
        },
        {"query": "How long?", "text": "90 days."},
    ),
    "text and a tool call": (
        {OPERATION: "chat", "gen_ai.output.messages": CALL},
        {"requests_tool": True},
    ),
    "stopped for a tool, without content": (
        {OPERATION: "chat", "gen_ai.response.finish_reasons": ["tool_calls"]},
        {"requests_tool": True, "text": ""},
    ),
    "events on the span since 1.28": (
        span(
            {OPERATION: "chat"},
            events=(
                event("gen_ai.system.message", content="s"),
                event("gen_ai.user.message", content="How long?"),
                event("gen_ai.choice", index=0, message='{"content": "90 days."}'),
            ),
        ),
        {"query": "How long?", "text": "90 days."},
    ),
    "an event with flat attributes": (
        span({OPERATION: "chat"}, events=(event("gen_ai.choice", message__content="90 days."),)),
        {"text": "90 days."},
    ),
    "events of content until 1.27": (
        span(
            {OPERATION: "chat"},
            events=(
                event("gen_ai.content.prompt", gen_ai__prompt='[{"role": "user", "content": "How long?"}]'),
                event("gen_ai.content.completion", gen_ai__completion='[{"role": "assistant", "content": "90 days."}]'),
            ),
        ),
        {"query": "How long?", "text": "90 days."},
    ),
    "the event of operation details": (
        span(
            {OPERATION: "chat"},
            events=(
                event(
                    "gen_ai.client.inference.operation.details", gen_ai__input__messages=INPUT, gen_ai__output__messages=OUTPUT
                ),
            ),
        ),
        {"query": "How long?", "text": "90 days."},
    ),
    "agent": (
        {OPERATION: "invoke_agent", "gen_ai.agent.name": "support", "gen_ai.input.messages": INPUT, "gen_ai.output.messages": OUTPUT},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "agent_name": "support"},
    ),
    "workflow": ({OPERATION: "invoke_workflow"}, {"kind": "answer", "model_call": False}),
    "step of the AI SDK 7": ({OPERATION: "agent_step"}, {"kind": "answer", "model_call": False}),
    "retrieval with ids and scores only": (
        {
            OPERATION: "retrieval",
            "gen_ai.retrieval.query.text": "How long?",
            "gen_ai.retrieval.documents": '[{"id": "1", "score": 0.5}, {"id": "2", "score": null}]',
            "gen_ai.data_source.id": "help",
            "gen_ai.retrieval.top_k": 5,
        },
        {
            "kind": "retrieval", "query": "How long?",
            "documents": (Document("1", "", 0.5, "", ""), Document("2", "", None, "", "")),
            "params": {"retriever": "help", "data_source": "help", "top_k": 5},
        },
    ),
    "retrieval with structured documents and texts": (
        {OPERATION: "retrieval", "gen_ai.retrieval.documents": [{"id": "1", "score": 1, "content": "t"}]},
        {"documents": (Document("1", "t", 1.0, "", ""),)},
    ),
    "execute_tool": (
        {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": "get_retention",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": {"project": "help"},
        },
        {"kind": "tool_call", "tool_name": "get_retention", "call_id": "call_1", "arguments": {"project": "help"}},
    ),
    "a tool that raised": (
        span(
            {OPERATION: "execute_tool", "gen_ai.tool.name": "x"},
            status="error",
            events=(event("exception", exception__type="ValueError"),),
        ),
        {"failed": True, "error_kind": "ValueError"},
    ),
    "embeddings": (
        {OPERATION: "embeddings", "gen_ai.request.model": "small"},
        {"kind": "none", "reason": "embedding", "embedding_model": "small"},
    ),
    "create_agent": ({OPERATION: "create_agent"}, {"kind": "none", "reason": "other_step"}),
    "a name of a tool without an operation": ({"gen_ai.tool.name": "x"}, {"kind": "tool_call", "tool_name": "x"}),
    "a model without an operation": ({"gen_ai.request.model": "gpt"}, {"kind": "answer", "model_call": True, "model": "gpt"}),
    "nothing known": ({"gen_ai.other": "x"}, {"kind": "none", "reason": "unknown"}),
    "an operation of a wrong type": ({OPERATION: ["chat"]}, {"kind": "none", "reason": "unknown"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_mapped_by_its_operation(name: str) -> None:
    given, expected = CASES[name]
    assert fields(given, expected) == expected
