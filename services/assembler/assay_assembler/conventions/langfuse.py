"""Langfuse's SDK: `langfuse.observation.type`, with input and output as text or JSON."""

from assay_assembler import shapes
from assay_assembler.content import answered, asked
from assay_assembler.documents import documents
from assay_assembler.messages import question, reply
from assay_assembler.span import Span
from assay_assembler.step import Reason, Said, Step, no_step
from assay_assembler.values import first_text, literal

NAME = "langfuse"
_AGENTS = frozenset({"agent", "chain"})


def step(span: Span) -> Step | None:
    """Map an observation. Types `span` and `event` say nothing, so other conventions decide."""
    attributes = span.attributes
    kind = attributes.get("langfuse.observation.type")
    if not isinstance(kind, str) or kind in ("span", "event", ""):
        return None
    given = attributes.get("langfuse.observation.input")
    made = attributes.get("langfuse.observation.output")
    if kind == "generation":
        said = reply(made)
        return shapes.model_call(
            span, question(given) or asked(span), said if said.text or said.calls else answered(span), NAME
        )
    if kind == "retriever":
        return shapes.retrieval(span, question(given), documents(made), NAME)
    if kind == "tool":
        failed = attributes.get("langfuse.observation.level") == "ERROR"
        arguments, name = _arguments(given), first_text(attributes, "gen_ai.tool.name")
        return shapes.tool_call(span, name, arguments, made, NAME, failed=failed)
    if kind in _AGENTS:
        return shapes.agent(span, _said, NAME)
    return no_step(Reason.EMBEDDING if kind == "embedding" else Reason.OTHER_STEP, convention=NAME)


def _said(span: Span) -> Said:
    made = span.attributes.get("langfuse.observation.output")
    query = question(span.attributes.get("langfuse.observation.input")) or asked(span)
    return Said(query, reply(made).text, literal(made) is not None)


def _arguments(given: object) -> object:
    """Return the arguments of a tool; a decorated function has them in `args` and `kwargs`."""
    found = literal(given)
    if isinstance(found, dict) and set(found) == {"args", "kwargs"} and not found["args"]:
        return found["kwargs"]
    return given
