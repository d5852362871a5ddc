"""Tests of reading a captured retrieval for review."""

from typing import Any

from assay_operations.golden.retrievals import documents_of

NOTHING: dict[str, Any] = {
    "retrieved_slugs": [], "retrieved_ids": [], "retrieved_chunk_ids": [], "retrieved_scores": [],
    "passage_ids": [], "passage_texts": [],
}  # fmt: skip


def test_the_missing_documents_of_a_retrieval_that_found_nothing_are_typed_by_name() -> None:
    assert documents_of(NOTHING) == ((), False)


def test_a_retrieval_of_which_only_ids_of_chunks_are_known_names_chunks() -> None:
    documents, of_chunks = documents_of(NOTHING | {"retrieved_chunk_ids": [7]})
    assert ([each.name for each in documents], of_chunks) == (["7"], True)
