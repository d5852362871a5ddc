"""LangSmith's OpenTelemetry export: `langsmith.span.kind`.

Its operation names are often wrong, so the kind decides.
"""

from assay_assembler import shapes
from assay_assembler.content import answered, asked
from assay_assembler.documents import documents
from assay_assembler.messages import question, reply
from assay_assembler.span import Span
from assay_assembler.step import Reason, Said, Step, no_step
from assay_assembler.values import container, first_text, literal

NAME = "langsmith"


def step(span: Span) -> Step | None:
    """Map a run by its kind. Inputs and outputs are JSON in `gen_ai.prompt` and `gen_ai.completion`."""
    attributes = span.attributes
    kind = attributes.get("langsmith.span.kind")
    if not isinstance(kind, str) or not kind:
        return None
    given, made = attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    if kind == "llm":
        return shapes.model_call(span, question(given) or asked(span), answered(span), NAME)
    if kind == "chain":
        return shapes.agent(span, _said, NAME)
    if kind == "retriever":
        return shapes.retrieval(span, question(given), documents(made), NAME)
    if kind == "tool":
        name = first_text(attributes, "gen_ai.tool.name", "langsmith.trace.name")
        return shapes.tool_call(span, span.name or name, _input(given), made, NAME)
    return no_step(Reason.EMBEDDING if kind == "embedding" else Reason.OTHER_STEP, convention=NAME)


def _said(span: Span) -> Said:
    made = span.attributes.get("gen_ai.completion")
    plain = _only_output(made)
    query = question(span.attributes.get("gen_ai.prompt")) or asked(span)
    return Said(query, plain or reply(made).text, not plain)


def _only_output(made: object) -> str:
    """Return the text of `{"output": "text"}`, the form of a run whose result is a text."""
    found = container(made)
    if isinstance(found, dict) and len(found) == 1:
        [value] = found.values()
        return value if isinstance(value, str) and literal(value) is None else ""
    return ""


def _input(given: object) -> object:
    """Return the arguments of a tool: LangChain's have them as printed text under `input`."""
    found = container(given)
    if isinstance(found, dict) and isinstance(found.get("input"), str | dict) and len(found) == 1:
        return found["input"]
    return given
