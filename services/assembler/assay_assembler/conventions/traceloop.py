"""OpenLLMetry: `traceloop.span.kind`, with input and output of workflows, tasks and tools as JSON."""

from typing import Any

from assay_assembler import shapes
from assay_assembler.content import asked
from assay_assembler.conventions import genai
from assay_assembler.documents import documents
from assay_assembler.messages import question
from assay_assembler.span import Span
from assay_assembler.step import Step
from assay_assembler.values import container, text

NAME = "traceloop"
_RETRIEVERS = ("Retriever", "Retriever.task")


def step(span: Span) -> Step | None:
    """Map a span by its kind; a task that is named after a retriever is a retrieval."""
    attributes = span.attributes
    kind = attributes.get("traceloop.span.kind")
    if not isinstance(kind, str) or not kind:
        return None
    name = text(attributes.get("traceloop.entity.name"))
    if kind == "tool":
        return genai.tool(span, NAME)
    if name.endswith(_RETRIEVERS) or span.name.endswith(_RETRIEVERS):
        query = _queried(attributes.get("traceloop.entity.input")) or asked(span)
        found = documents(attributes.get("traceloop.entity.output"))
        return shapes.retrieval(span, query, found, NAME, name=name)
    return genai.agent(span, NAME)


def _queried(given: Any) -> str:
    found = container(given)
    if isinstance(found, dict):
        for name in ("query", "query_str"):
            value = found.get(name)
            if isinstance(value, str):
                return value
    return question(given)
