"""Map spans of pydantic-ai, of all versions of its instrumentation, and of Logfire."""

from typing import Any

import pytest

from assay_assembler.span import Attributes
from tests.support.steps import fields

ASKED = '{"event.name": "gen_ai.user.message", "content": "How long?", "role": "user"}'
CHOSEN = '{"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "90 days."}}'
OLD = f"[{ASKED}, {CHOSEN}]"
NEW = (
    '[{"role": "user", "parts": [{"type": "text", "content": "How long?"}]},'
    ' {"role": "assistant", "parts": [{"type": "text", "content": "90 days."}]}]'
)

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "root with events": (
        {"agent_name": "support", "all_messages_events": OLD, "final_result": "90 days."},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "agent_name": "support"},
    ),
    "root with messages": (
        {"pydantic_ai.all_messages": NEW},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days."},
    ),
    "a structured result": (
        {"gen_ai.operation.name": "invoke_agent", "pydantic_ai.all_messages": NEW, "final_result": '{"days": 90}'},
        {"text": "", "uncertain": True, "query": "How long?"},
    ),
    "a chat of version 1": (
        {"gen_ai.operation.name": "chat", "events": OLD},
        {"kind": "answer", "model_call": True, "query": "How long?", "text": "90 days."},
    ),
    "a tool of version 2": (
        {
            "gen_ai.tool.name": "get_retention",
            "gen_ai.tool.call.id": "c",
            "tool_arguments": '{"project": "help"}',
            "tool_response": "90",
        },
        {"kind": "tool_call", "tool_name": "get_retention", "call_id": "c", "arguments": '{"project": "help"}'},
    ),
    "a chat of Logfire": (
        {
            "gen_ai.request.model": "gpt",
            "request_data": '{"messages": [{"role": "user", "content": "How long?"}], "model": "gpt"}',
            "response_data": '{"message": {"role": "assistant", "content": "90 days."}}',
        },
        {"kind": "answer", "model_call": True, "query": "How long?", "text": "90 days."},
    ),
    "a streamed answer of Logfire": (
        {"gen_ai.request.model": "gpt", "response_data": '{"combined_chunk_content": "90 days.", "chunk_count": 4}'},
        {"text": "90 days."},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_mapped(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
