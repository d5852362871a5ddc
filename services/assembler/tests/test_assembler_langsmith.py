"""Map runs of LangSmith."""

from typing import Any

import pytest

from assay_assembler.documents import Document
from assay_assembler.span import Attributes
from tests.support.steps import fields

KIND = "langsmith.span.kind"
SERIALISED = (
    '{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "%s"], "kwargs": {"content": "%s"}}'
)
HUMAN, AI = SERIALISED % ("HumanMessage", "How long?"), SERIALISED % ("AIMessage", "90 days.")

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "llm": (
        {
            KIND: "llm",
            "gen_ai.prompt": f'{{"messages": [[{HUMAN}]]}}',
            "gen_ai.completion": f'{{"generations": [[{{"text": "90 days.", "message": {AI}}}]]}}',
            "gen_ai.request.model": "gpt",
            "langsmith.metadata.thread_id": "t-1",
        },
        {
            "kind": "answer",
            "model_call": True,
            "query": "How long?",
            "text": "90 days.",
            "model": "gpt",
            "session_id": "t-1",
        },
    ),
    "chain": (
        {KIND: "chain", "gen_ai.prompt": '{"input": "How long?"}', "gen_ai.completion": '{"output": "90 days."}'},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "uncertain": False},
    ),
    "chain with two outputs": (
        {KIND: "chain", "gen_ai.completion": '{"question": "q", "answer": "90 days."}'},
        {"text": "90 days.", "uncertain": True},
    ),
    "a retriever whose operation says embeddings": (
        {
            KIND: "retriever",
            "gen_ai.operation.name": "embeddings",
            "gen_ai.prompt": '{"query": "How long?"}',
            "gen_ai.completion": '{"documents": [{"id": "1", "page_content": "t", "metadata": {"source": "a.md"}}]}',
        },
        {"kind": "retrieval", "query": "How long?", "documents": (Document("1", "t", None, "a.md", "a.md"),)},
    ),
    "tool": (
        {KIND: "tool", "gen_ai.prompt": "{\"input\": \"{'project': 'help'}\"}"},
        {"kind": "tool_call", "tool_name": "step", "arguments": "{'project': 'help'}"},
    ),
    "a prompt whose operation says chat": (
        {KIND: "prompt", "gen_ai.operation.name": "chat", "gen_ai.prompt": "x", "gen_ai.completion": "y"},
        {"kind": "none", "reason": "other_step"},
    ),
    "parser": ({KIND: "parser"}, {"kind": "none", "reason": "other_step"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_mapped_by_its_kind(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
