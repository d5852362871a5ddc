"""Relevance judgements (qrels) for the correctness gate: the expected documents. Pure.

Documents are compared by source and slug, with any characters. The source of an entry or a result without one is
`default`.
"""

from dataclasses import dataclass
from typing import Any

from assay_evals.dataset.file_format import looks_like_dataset
from assay_evals.dataset.model import Document
from assay_evals.errors import EvalsError
from assay_evals.strict_json import JsonError, JsonSyntaxError, loads

DEFAULT_SOURCE = "default"
VERSION = 1


class QrelsError(EvalsError):
    """An unusable file of relevance judgements. Names the entry; never quotes its query."""


@dataclass(frozen=True)
class KnownQuery:
    """One question. `relevant` are distinct documents, each with its source."""

    query_id: str
    query: str
    relevant: list[Document]
    expected_top1: Document | None


def read_qrels(text: str) -> list[KnownQuery]:
    """Parse the questions of a file. Raises `QrelsError`."""
    if looks_like_dataset(text):
        raise QrelsError(
            "this is a golden dataset, not relevance judgements: run it with `assay eval run --dataset FILE`, "
            "then compare two runs with `assay eval compare`"
        )
    try:
        whole = loads(text)
    except JsonError as error:
        place = f"line {error.line}: " if isinstance(error, JsonSyntaxError) else ""
        raise QrelsError(f"{place}{error}") from None
    if not isinstance(whole, dict):
        raise QrelsError('not a JSON object: write {"schema_version": 1, "queries": [...]}')
    if whole.get("schema_version") != VERSION or whole["schema_version"] is True:
        raise QrelsError(f"schema_version must be {VERSION}")
    queries = whole.get("queries")
    if not isinstance(queries, list) or not queries:
        raise QrelsError("queries must be an array with at least one entry")
    entries = [_entry(number, entry) for number, entry in enumerate(queries, start=1)]
    if len({each.query_id for each in entries}) < len(entries):
        raise QrelsError("two entries have the same query_id")
    return entries


def _entry(number: int, entry: Any) -> KnownQuery:
    if not isinstance(entry, dict):
        raise QrelsError(f"entry {number}: not an object")
    name = entry.get("query_id", f"entry-{number}")
    query = entry.get("query")
    if not isinstance(name, str) or not name:
        raise QrelsError(f"entry {number}: query_id must be a string")
    if not isinstance(query, str) or not query.strip():
        raise QrelsError(f"entry {number}: query must be a string that is not blank")
    if "relevant" in entry:
        listed = entry["relevant"]
        if not isinstance(listed, list) or not listed:
            raise QrelsError(f"entry {number}: relevant must be a non-empty array of {{source_id, slug}}")
        relevant = [_document(number, "relevant", each) for each in listed]
    else:
        slugs = entry.get("relevant_slugs")
        if not isinstance(slugs, list) or not slugs or not all(isinstance(slug, str) and slug for slug in slugs):
            raise QrelsError(f"entry {number}: relevant_slugs must be a non-empty array of strings, or give relevant")
        relevant = [(DEFAULT_SOURCE, slug) for slug in slugs]
    top: Document | None = None
    if entry.get("expected_top1") is not None:
        top = _document(number, "expected_top1", entry["expected_top1"])
    elif (first := entry.get("first_relevant_slug")) is not None:
        if not isinstance(first, str) or not first:
            raise QrelsError(f"entry {number}: first_relevant_slug must be a string")
        top = (DEFAULT_SOURCE, first)
    return KnownQuery(name, query, list(dict.fromkeys(relevant)), top)


def _document(number: int, field_name: str, value: Any) -> Document:
    parts = (value.get("source_id"), value.get("slug")) if isinstance(value, dict) else (None, None)
    if not all(isinstance(part, str) and part for part in parts):
        raise QrelsError(f"entry {number}: {field_name} needs a source_id and a slug: sources are never guessed")
    return str(parts[0]), str(parts[1])
