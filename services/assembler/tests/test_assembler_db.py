"""Map queries of vector stores as OpenLLMetry records them."""

from assay_assembler.documents import Document
from assay_assembler.span import SpanEvent
from tests.support.spans import span
from tests.support.steps import fields


def hit(name: str, **values: object) -> SpanEvent:
    return SpanEvent(name, {f"{name}.{key}": value for key, value in values.items()})


def test_each_event_is_a_hit() -> None:
    given = span(
        {"db.system": "chroma", "db.operation": "query"},
        events=(
            hit("db.query.result", id="4101", document="Rows are kept.", distance=0.1, metadata='{"source": "a.md"}'),
            SpanEvent("exception", {}),
            hit("db.query.result", id="4102", document="Set per project.", distance=0.2),
        ),
    )
    expected = {
        "kind": "retrieval",
        "documents": (
            Document("4101", "Rows are kept.", None, "a.md", "a.md"),
            Document("4102", "Set per project.", None, "", ""),
        ),
    }
    assert fields(given, expected) == expected


def test_a_score_is_kept_and_a_distance_is_not_a_score() -> None:
    given = span({"db.system": "milvus"}, events=(hit("db.search.result", id=7, score=0.9, distance=0.1),))
    expected = {
        "kind": "retrieval",
        "documents": (Document("7", "", 0.9, "", ""),),
        "params": {"retriever": "step", "provider": "milvus", "distances": [0.1]},
    }
    assert fields(given, expected) == expected


def test_a_statement_without_hits_is_unknown() -> None:
    assert fields({"db.system": "postgresql"}, {"kind": ""}) == {"kind": "none"}
