"""Map spans of OpenLLMetry, of the old and the new generation."""

from typing import Any

import pytest

from assay_assembler.documents import Document
from assay_assembler.span import Attributes
from tests.support.steps import fields

KIND, NAME, INPUT, OUTPUT = (
    "traceloop.span.kind",
    "traceloop.entity.name",
    "traceloop.entity.input",
    "traceloop.entity.output",
)

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "numbered prompts before 0.50": (
        {
            "llm.request.type": "chat",
            "gen_ai.system": "OpenAI",
            "gen_ai.prompt.0.role": "system",
            "gen_ai.prompt.0.content": "s",
            "gen_ai.prompt.1.role": "user",
            "gen_ai.prompt.1.content": "first",
            "gen_ai.prompt.10.role": "user",
            "gen_ai.prompt.10.content": '[{"type": "text", "text": "How long?"}]',
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "90 days.",
            "gen_ai.completion.0.finish_reason": "stop",
            "gen_ai.request.model": "gpt",
        },
        {"kind": "answer", "model_call": True, "query": "How long?", "text": "90 days.", "requests_tool": False},
    ),
    "numbered tool calls": (
        {
            "llm.request.type": "chat",
            "gen_ai.completion.0.finish_reason": "tool_calls",
            "gen_ai.completion.0.tool_calls.0.name": "get_retention",
        },
        {"kind": "answer", "requests_tool": True},
    ),
    "a text completion": (
        {
            "llm.request.type": "completion",
            "gen_ai.prompt.0.content": "How long?",
            "gen_ai.completion.0.content": "90 days.",
        },
        {"query": "How long?", "text": "90 days."},
    ),
    "an embedding": (
        {"llm.request.type": "embedding", "gen_ai.request.model": "s"},
        {"kind": "none", "reason": "embedding"},
    ),
    "a decorated workflow": (
        {KIND: "workflow", NAME: "support", INPUT: '{"args": ["How long?"], "kwargs": {}}', OUTPUT: '"90 days."'},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "uncertain": False},
    ),
    "a workflow of LangChain": (
        {
            KIND: "workflow",
            INPUT: '{"inputs": {"input": "How long?"}, "tags": [], "metadata": {}, "kwargs": {"name": "x"}}',
            OUTPUT: '{"outputs": {"output": "90 days."}, "kwargs": {"tags": []}}',
        },
        {"query": "How long?", "text": "90 days.", "uncertain": True},
    ),
    "a task of LlamaIndex": (
        {KIND: "task", NAME: "query", INPUT: '{"args": [], "kwargs": {"str_or_query_bundle": "How long?"}}'},
        {"kind": "answer", "query": "How long?"},
    ),
    "a retriever by its name": (
        {
            KIND: "task",
            NAME: "VectorStoreRetriever",
            INPUT: '{"query": "How long?", "tags": []}',
            OUTPUT: '{"documents": [{"page_content": "t", "metadata": {"source": "a.md"}}]}',
        },
        {"kind": "retrieval", "query": "How long?", "documents": (Document("", "t", None, "a.md", "a.md"),)},
    ),
    "nodes of LlamaIndex as JSON within JSON": (
        {
            KIND: "task",
            NAME: "HelpRetriever.task",
            INPUT: '{"str_or_query_bundle": {"query_str": "How long?"}}',
            OUTPUT: '["{\\"node\\": {\\"id_\\": \\"1\\", \\"text\\": \\"t\\"}, \\"score\\": 0.5}"]',
        },
        {"kind": "retrieval", "query": "How long?", "documents": (Document("1", "t", 0.5, "", ""),)},
    ),
    "a tool with printed arguments": (
        {
            KIND: "tool",
            NAME: "get_retention",
            INPUT: "{\"input_str\": \"{'project': 'help', 'days': (1, None)}\", \"tags\": []}",
        },
        {"kind": "tool_call", "tool_name": "get_retention", "arguments": {"project": "help", "days": [1, None]}},
    ),
    "a decorated tool": (
        {KIND: "tool", NAME: "t", INPUT: '{"args": [], "kwargs": {"project": "help"}}'},
        {"arguments": {"project": "help"}},
    ),
    "an operation takes precedence": (
        {KIND: "task", "gen_ai.operation.name": "execute_tool", NAME: "x", INPUT: '{"inputs": {"a": 1}, "kwargs": {}}'},
        {"kind": "tool_call", "arguments": {"a": 1}},
    ),
    "properties": (
        {
            KIND: "workflow",
            "traceloop.association.properties.session_id": "s",
            "traceloop.association.properties.user_id": "u",
        },
        {"session_id": "s", "user": "u"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_mapped_by_its_kind(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
