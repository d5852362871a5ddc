"""Map a span to a step: the first convention whose marks it has. Pure; never raises.

A vendor's kind takes precedence over `gen_ai.operation.name`, which some instrumentations set wrongly.
"""

from collections.abc import Callable, Collection

from assay_assembler.conventions import (
    db,
    genai,
    langfuse,
    langsmith,
    mcp,
    openinference,
    pydantic_ai,
    traceloop,
    vercel,
)
from assay_assembler.documents import in_prompt
from assay_assembler.span import Span
from assay_assembler.step import Reason, Step, StepKind, no_step
from assay_assembler.verdicts import has_verdicts, verdicts
from assay_schema.span_entry import EXPORTER_SCOPE


def _named_tool(span: Span) -> Step | None:
    """Map a span that only names a tool."""
    attributes = span.attributes
    return genai.tool(span) if "gen_ai.tool.name" in attributes or "gen_ai.tool.call.id" in attributes else None


def _named_model(span: Span) -> Step | None:
    """Map a span that only names a model, as OpenLLMetry did before operation names."""
    attributes = span.attributes
    if attributes.get("llm.request.type") in ("embedding", "rerank"):
        return no_step(Reason.EMBEDDING, convention=traceloop.NAME)
    if (
        "gen_ai.request.model" in attributes
        or "gen_ai.response.model" in attributes
        or "llm.request.type" in attributes
    ):
        return genai.model_call(span)
    return None


#: In order of precedence.
CONVENTIONS: tuple[Callable[[Span], Step | None], ...] = (
    langfuse.step,
    openinference.step,
    langsmith.step,
    vercel.step,
    mcp.step,
    genai.step,
    db.step,
    traceloop.step,
    _named_tool,
    pydantic_ai.step,
    _named_model,
)


def step_of(span: Span, feedback_names: Collection[str] = (), context_names: Collection[str] = ()) -> Step:
    """Return the step of a span.

    Evaluations with one of `feedback_names` count as feedback of a person. Variables of a prompt with one of
    `context_names` are documents of the call.
    """
    if span.source.scope == EXPORTER_SCOPE:
        return no_step(Reason.EXPORTED)
    found = None
    for convention in CONVENTIONS:
        found = convention(span)
        if found is not None:
            break
    else:
        found = no_step(Reason.UNKNOWN)
    if context_names and found.kind is StepKind.ANSWER:
        found = found._replace(documents=in_prompt(span.attributes, context_names))
    if has_verdicts(span):
        said = verdicts(span, feedback_names)
        if said:
            only = found.kind is StepKind.NONE
            return found._replace(verdicts=said, kind=StepKind.FEEDBACK if only else found.kind, reason=None)
    return found
