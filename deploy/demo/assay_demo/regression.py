"""Scenario of a bad deployment: the best hits are missing, and passages are of other documents.

The service keeps answering, fast and without errors; only the quality drops. Its answers still quote the summaries of the documents, but
the passages that it returns no longer support them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol
from zlib import crc32

from assay_demo.corpus import Document
from assay_demo.search import Detail, Result, Search

#: Number of best hits that are lost.
LOST = 4
#: Number of documents of ten with a wrong passage.
MIXED_UP = 7


class Retriever(Protocol):
    """Interface that the service needs: hits for a question, and the passage of a hit."""

    def search(self, query: str, k: int = 10, detail: Detail | None = None, *, expand: bool = False) -> Result:
        """Return the best `k` hits for a query."""

    def passage(self, document: Document) -> str:
        """Return the passage of a document that is shown for a hit."""


class Regressed:
    """A search after the bad deployment.

    Deterministic: the passage of a document is always wrong, or never.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._documents = search.corpus.documents
        self._place = {document.id: place for place, document in enumerate(self._documents)}

    def search(self, query: str, k: int = 10, detail: Detail | None = None, *, expand: bool = False) -> Result:
        """Return the hits without the best ones; at least the last one."""
        found = self._search.search(query, k + LOST, detail, expand=expand)
        return replace(found, hits=found.hits[LOST:] or found.hits[-1:])

    def passage(self, document: Document) -> str:
        """Return the passage of a hit: for most documents, that of another one."""
        if crc32(document.id.encode()) % 10 >= MIXED_UP:
            return document.text
        return self._documents[(self._place[document.id] + len(self._documents) // 2) % len(self._documents)].text
