"""Map spans of Vercel's AI SDK, versions 4 to 7."""

from typing import Any

import pytest

from assay_assembler.span import Attributes
from tests.support.steps import fields

OPERATION = "ai.operationId"
MESSAGES = '[{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "How long?"}]}]'

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "doGenerate": (
        {
            OPERATION: "ai.generateText.doGenerate",
            "ai.prompt.messages": MESSAGES,
            "ai.response.text": "90 days.",
            "ai.response.finishReason": "stop",
            "ai.response.model": "gpt",
            "ai.response.id": "r-1",
            "ai.telemetry.metadata.sessionId": "s-1",
            "ai.telemetry.metadata.userId": "u-1",
        },
        {
            "kind": "answer", "model_call": True, "query": "How long?", "text": "90 days.", "model": "gpt",
            "response_id": "r-1", "session_id": "s-1", "user": "u-1", "requests_tool": False,
        },
    ),
    "doStream that asks for a tool": (
        {OPERATION: "ai.streamText.doStream", "ai.response.toolCalls": '[{"toolName": "x"}]', "ai.response.finishReason": "tool-calls"},
        {"kind": "answer", "model_call": True, "requests_tool": True},
    ),
    "operation.name only": (
        {"operation.name": "ai.generateText.doGenerate my-function", "ai.result.text": "90 days."},
        {"kind": "answer", "model_call": True, "text": "90 days."},
    ),
    "generateText": (
        {OPERATION: "ai.generateText", "ai.prompt": '{"prompt": "How long?"}', "ai.response.text": "90 days."},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "uncertain": False},
    ),
    "generateText with messages": (
        {OPERATION: "ai.generateText", "ai.prompt": f'{{"system": "s", "messages": {MESSAGES}}}'},
        {"query": "How long?", "text": ""},
    ),
    "generateObject": (
        {OPERATION: "ai.generateObject", "ai.prompt": '{"prompt": "q"}', "ai.response.object": '{"days": 90}'},
        {"text": '{"days": 90}', "uncertain": True},
    ),
    "toolCall": (
        {OPERATION: "ai.toolCall", "ai.toolCall.name": "get_retention", "ai.toolCall.id": "c-1", "ai.toolCall.args": '{"project": "help"}'},
        {"kind": "tool_call", "tool_name": "get_retention", "call_id": "c-1", "arguments": '{"project": "help"}'},
    ),
    "embed": ({OPERATION: "ai.embed.doEmbed", "ai.model.id": "small"}, {"kind": "none", "reason": "embedding"}),
    "settings of version 7": (
        {OPERATION: "ai.generateText", "ai.settings.context.sessionId": "s-7"},
        {"session_id": "s-7"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_mapped_by_its_operation(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
