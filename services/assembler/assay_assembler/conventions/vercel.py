"""Vercel's AI SDK 4 to 6, and the legacy exporter of 7: `ai.operationId`, `ai.response.*`, and so on."""

from assay_assembler import shapes
from assay_assembler.messages import Message, last_user, question
from assay_assembler.span import Attributes, Span
from assay_assembler.step import Reason, Said, Step, no_step
from assay_assembler.values import container, first, first_text, text

NAME = "vercel"


def step(span: Span) -> Step | None:
    """Map a span by its operation, such as `ai.generateText.doGenerate`."""
    attributes = span.attributes
    operation = text(attributes.get("ai.operationId")) or text(attributes.get("operation.name")).partition(" ")[0]
    if not operation.startswith("ai."):
        return None
    if ".embed" in operation:
        return no_step(Reason.EMBEDDING, embedding_model=text(attributes.get("ai.model.id")), convention=NAME)
    if operation.endswith((".doGenerate", ".doStream")):
        return shapes.model_call(span, _asked(attributes), _answered(attributes), NAME)
    if operation == "ai.toolCall":
        arguments = attributes.get("ai.toolCall.args")
        name, result = text(attributes.get("ai.toolCall.name")), attributes.get("ai.toolCall.result")
        made = shapes.tool_call(span, name, arguments, result, NAME)
        return made._replace(call_id=made.call_id or text(attributes.get("ai.toolCall.id")))
    return shapes.agent(span, _said, NAME)


def _said(span: Span) -> Said:
    said = _answered(span.attributes)
    return Said(_asked(span.attributes), said.text, container(said.text) is not None)


def _asked(attributes: Attributes) -> str:
    found = last_user(attributes.get("ai.prompt.messages"))
    return found or question(attributes.get("ai.prompt"))


def _answered(attributes: Attributes) -> Message:
    found = first_text(attributes, "ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object")
    calls = container(first(attributes, "ai.response.toolCalls", "ai.result.toolCalls"))
    stopped = text(attributes.get("ai.response.finishReason")) == "tool-calls"
    return Message("assistant", found, calls=bool(calls) or stopped)
