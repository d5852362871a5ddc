"""Map observations of Langfuse's SDK, versions 3 to 5."""

from typing import Any

import pytest

from assay_assembler.span import Attributes
from tests.support.steps import DOCUMENT, fields

TYPE, INPUT, OUTPUT = "langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output"
HIT = '[{"id": "4101", "content": "Rows are kept for 90 days.", "score": 0.5, "metadata": {"source": "retention.md"}}]'

CASES: dict[str, tuple[Attributes, dict[str, Any]]] = {
    "generation": (
        {
            TYPE: "generation",
            INPUT: '[{"role": "system", "content": "s"}, {"role": "user", "content": "How long?"}]',
            OUTPUT: '{"role": "assistant", "content": "90 days."}',
            "langfuse.observation.model.name": "gpt",
            "session.id": "s-1",
            "user.id": "u-1",
        },
        {
            "kind": "answer", "model_call": True, "query": "How long?", "text": "90 days.", "model": "gpt",
            "session_id": "s-1", "user": "u-1", "requests_tool": False,
        },
    ),
    "generation that asks for a tool": (
        {TYPE: "generation", INPUT: "[]", OUTPUT: '{"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}'},
        {"kind": "answer", "text": "", "requests_tool": True},
    ),
    "texts of version 3 are quoted": (
        {TYPE: "generation", INPUT: '"How long?"', OUTPUT: '"90 days."'},
        {"query": "How long?", "text": "90 days."},
    ),
    "agent": (
        {TYPE: "agent", INPUT: '{"args": ["How long?"], "kwargs": {}}', OUTPUT: "90 days."},
        {"kind": "answer", "model_call": False, "query": "How long?", "text": "90 days.", "uncertain": False},
    ),
    "chain with an output that is not text": (
        {TYPE: "chain", INPUT: "How long?", OUTPUT: '{"answer": "90 days."}'},
        {"kind": "answer", "text": "90 days.", "uncertain": True},
    ),
    "retriever": (
        {TYPE: "retriever", INPUT: '{"args": [], "kwargs": {"query": "How long?"}}', OUTPUT: HIT},
        {"kind": "retrieval", "query": "How long?", "documents": (DOCUMENT,)},
    ),
    "tool with keyword arguments": (
        {TYPE: "tool", INPUT: '{"args": [], "kwargs": {"project": "help"}}', OUTPUT: '"90"'},
        {"kind": "tool_call", "tool_name": "step", "arguments": {"project": "help"}, "failed": False},
    ),
    "tool that failed": (
        {TYPE: "tool", INPUT: "{}", "langfuse.observation.level": "ERROR"},
        {"kind": "tool_call", "failed": True},
    ),
    "embedding": ({TYPE: "embedding"}, {"kind": "none", "reason": "embedding"}),
    "guardrail": ({TYPE: "guardrail"}, {"kind": "none", "reason": "other_step"}),
    "span says nothing": ({TYPE: "span", INPUT: '"x"'}, {"kind": "none", "reason": "unknown"}),
    "span of another convention": (
        {TYPE: "span", "openinference.span.kind": "LLM", "output.value": "90 days."},
        {"kind": "answer", "convention": "openinference"},
    ),
    "its type takes precedence over the operation": (
        {TYPE: "tool", "gen_ai.operation.name": "chat"},
        {"kind": "tool_call", "convention": "langfuse"},
    ),
    "a type of a wrong type": ({TYPE: 3}, {"kind": "none", "reason": "unknown"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_observation_is_mapped_by_its_type(name: str) -> None:
    attributes, expected = CASES[name]
    assert fields(attributes, expected) == expected
