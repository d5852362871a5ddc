"""Vector stores as OpenLLMetry instruments them: a span with an event for each hit."""

from collections.abc import Iterator

from assay_assembler import shapes
from assay_assembler.documents import DOCUMENTS_MAX, Document, document_of
from assay_assembler.messages import question
from assay_assembler.span import Span
from assay_assembler.step import Step
from assay_assembler.values import first, first_text, number

NAME = "db"
_EVENTS = ("db.query.result", "db.search.result")
_QUERIES = ("db.query.text", "db.vector.query.text", "db.chroma.query.query_texts", "db.search.query")


def step(span: Span) -> Step | None:
    """Map a query of a vector store. A hit's distance is a parameter and not a score: small is good."""
    if not any(event.name in _EVENTS for event in span.events):
        return None
    query = first_text(span.attributes, *_QUERIES[:2]) or question(first(span.attributes, *_QUERIES[2:]))
    made = shapes.retrieval(span, query, tuple(_hits(span)), NAME)
    distances = [
        number(event.attributes.get(f"{event.name}.distance")) for event in span.events if event.name in _EVENTS
    ]
    known = [distance for distance in distances if distance is not None]
    return made._replace(params={**made.params, "distances": known}) if known else made


def _hits(span: Span) -> Iterator[Document]:
    for event in span.events[:DOCUMENTS_MAX]:
        if event.name in _EVENTS:
            prefix = f"{event.name}."
            fields = {name.removeprefix(prefix): value for name, value in event.attributes.items()}
            document = document_of(fields)
            if document is not None:
                yield document
