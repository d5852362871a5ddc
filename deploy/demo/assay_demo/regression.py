"""A bad deployment of the retriever, to be noticed: after a re-index the best hits are missing, and passages are those of other documents.

The service goes on answering, fast and without an error: only the quality falls. Its answers still quote the documents' summaries, but the
passages handed on beside them no longer say so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol
from zlib import crc32

from assay_demo.corpus import Document
from assay_demo.search import Detail, Result, Search

#: Best hits that are lost.
LOST = 4
#: Of ten documents, those whose passage is another's.
MIXED_UP = 7


class Retriever(Protocol):
    """What the service needs: hits for a question, and the passage to hand on for a hit."""

    def search(self, query: str, k: int = 10, detail: Detail | None = None, *, expand: bool = False) -> Result: ...

    def passage(self, document: Document) -> str: ...


class Regressed:
    """The same search after the bad deployment. Deterministic: a document's passage is wrong every time, or never."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._documents = search.corpus.documents
        self._place = {document.id: place for place, document in enumerate(self._documents)}

    def search(self, query: str, k: int = 10, detail: Detail | None = None, *, expand: bool = False) -> Result:
        """Hits from the fifth on, where there are so many."""
        found = self._search.search(query, k + LOST, detail, expand=expand)
        return replace(found, hits=found.hits[LOST:] or found.hits[-1:])

    def passage(self, document: Document) -> str:
        """For most documents the text of another one."""
        if crc32(document.id.encode()) % 10 >= MIXED_UP:
            return document.text
        return self._documents[(self._place[document.id] + len(self._documents) // 2) % len(self._documents)].text
