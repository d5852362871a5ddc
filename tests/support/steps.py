"""Compare a step with the fields that a table of cases names."""

from typing import Any

from assay_assembler.documents import Document
from assay_assembler.mapping import step_of
from assay_assembler.node import Node
from assay_assembler.span import Attributes, Span
from tests.support.spans import span

DOCUMENT = Document("4101", "Rows are kept for 90 days.", 0.5, "retention.md", "retention.md")


def fields(given: Span | Attributes, names: dict[str, Any]) -> dict[str, Any]:
    """Return the named fields of a span's step, with the texts of agents read."""
    made = given if isinstance(given, Span) else span(given)
    step = Node.of(made, step_of(made)).read()
    return {name: getattr(step, name) for name in names}
