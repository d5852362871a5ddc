"""Map spans of OpenInference."""

from typing import Any

import pytest

from assay_assembler.documents import Document
from assay_assembler.span import Attributes
from tests.support.steps import DOCUMENT, fields

KIND = "openinference.span.kind"

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "llm": (
        {
            KIND: "LLM",
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": "s",
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.content": "first",
            "llm.input_messages.10.message.role": "user",
            "llm.input_messages.10.message.content": "How long?",
            "llm.input_messages.9.message.role": "user",
            "llm.input_messages.9.message.content": "ninth",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "90 days.",
            "llm.model_name": "gpt",
            "input.value": '{"messages": []}',
        },
        {
            "kind": "answer",
            "model_call": True,
            "query": "How long?",
            "text": "90 days.",
            "model": "gpt",
            "requests_tool": False,
        },
    ),
    "parts of messages": (
        {
            KIND: "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.contents.0.message_content.type": "text",
            "llm.input_messages.0.message.contents.0.message_content.text": "Read this.",
            "llm.input_messages.0.message.contents.1.message_content.type": "image",
            "llm.input_messages.0.message.contents.2.message_content.type": "text",
            "llm.input_messages.0.message.contents.2.message_content.text": "How long?",
            "llm.output_messages.0.message.contents.0.message_content.type": "text",
            "llm.output_messages.0.message.contents.0.message_content.text": "90 days.",
        },
        {"query": "Read this.\nHow long?", "text": "90 days."},
    ),
    "llm that asks for a tool": (
        {
            KIND: "LLM",
            "llm.output_messages.0.message.content": "Let me look.",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_retention",
        },
        {"requests_tool": True},
    ),
    "completion": (
        {KIND: "LLM", "llm.prompts.0.prompt.text": "How long?", "llm.choices.0.completion.text": "90 days."},
        {"query": "How long?", "text": "90 days."},
    ),
    "llm with values only": (
        {
            KIND: "LLM",
            "input.value": '{"messages": [{"role": "user", "content": "How long?"}]}',
            "output.value": "90 days.",
        },
        {"query": "How long?", "text": "90 days."},
    ),
    "chain": (
        {KIND: "CHAIN", "input.value": "How long?", "output.value": "90 days."},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "uncertain": False},
    ),
    "chain that prints an object": (
        {KIND: "CHAIN", "input.value": '{"input": "How long?"}', "output.value": "StopEvent(result='90 days.')"},
        {"query": "How long?", "text": ""},
    ),
    "chain with messages": (
        {
            KIND: "CHAIN",
            "input.value": '{"messages": [{"role": "user", "content": "How long?"}]}',
            "output.value": '{"messages": [{"type": "human", "content": "How long?"}, {"type": "ai", "content": "90 days."}]}',
        },
        {"query": "How long?", "text": "90 days.", "uncertain": True},
    ),
    "retriever": (
        {
            KIND: "RETRIEVER",
            "input.value": "How long?",
            "retrieval.documents.0.document.id": 4101,
            "retrieval.documents.0.document.content": "Rows are kept for 90 days.",
            "retrieval.documents.0.document.score": 0.5,
            "retrieval.documents.0.document.metadata": '{"source": "retention.md"}',
        },
        {"kind": "retrieval", "query": "How long?", "documents": (DOCUMENT,)},
    ),
    "score and id of the metadata": (
        {
            KIND: "RETRIEVER",
            "retrieval.documents.0.document.content": "t",
            "retrieval.documents.0.document.metadata": '{"_id": "a", "score": 0.25, "url": "https://example.com/a"}',
        },
        {"documents": (Document("a", "t", 0.25, "https://example.com/a", "https://example.com/a"),)},
    ),
    "reranker": (
        {
            KIND: "RERANKER",
            "reranker.query": "How long?",
            "reranker.input_documents.0.document.id": "x",
            "reranker.output_documents.0.document.id": "y",
        },
        {"kind": "retrieval", "query": "How long?", "documents": (Document("y", "", None, "", ""),), "reranks": True},
    ),
    "tool": (
        {KIND: "TOOL", "tool.name": "get_retention", "input.value": '{"project": "help"}', "tool.parameters": "{}"},
        {"kind": "tool_call", "tool_name": "get_retention", "arguments": '{"project": "help"}'},
    ),
    "embedding": (
        {KIND: "EMBEDDING", "embedding.model_name": "small"},
        {"kind": "none", "reason": "embedding", "embedding_model": "small"},
    ),
    "prompt": ({KIND: "PROMPT"}, {"kind": "none", "reason": "other_step"}),
    "lower case": ({KIND: "tool", "tool.name": "x"}, {"kind": "tool_call"}),
    "a role of a huge index": (
        {
            KIND: "LLM",
            "llm.input_messages.99999999999.message.role": "user",
            "llm.input_messages.².message.role": "user",
        },
        {"kind": "answer", "query": ""},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_span_is_mapped_by_its_kind(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
