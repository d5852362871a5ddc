"""pydantic-ai and Logfire: an agent's root has the conversation, and may have no operation name."""

from assay_assembler.conventions import genai
from assay_assembler.span import Span
from assay_assembler.step import Step

NAME = "pydantic_ai"


def step(span: Span) -> Step | None:
    """Map the root of an agent's run."""
    attributes = span.attributes
    if "pydantic_ai.all_messages" in attributes or "all_messages_events" in attributes:
        return genai.agent(span, NAME)
    return None
