"""Search of the demo as a system under test: `assay eval run --target assay_demo.target:search`.

Four more functions represent proposed changes: `neutral` returns the same answers by another way, `degraded` reads only the first words of
a question, `abstaining` refuses nine questions in ten, and `slow` takes longer. An evaluation has to pass the first and detect the others.
"""

from __future__ import annotations

import time
from typing import Any

from assay_demo.abstaining import REFUSAL, refuses
from assay_demo.corpus import load_corpus
from assay_demo.search import Detail, Search
from assay_demo.service import extract_answer

#: Number of words of a question that `degraded` reads.
WORDS_READ = 3
#: Delay of `slow` in seconds.
SLOWER_BY_S = 0.25
#: Built on import, so that no question waits for it.
_INDEX = Search(load_corpus())


def search(
    query: str,
    limit: int = 10,
    detail: Detail | None = None,
    tool_name: str = "query",
    expand_enabled: bool | None = None,
) -> dict[str, Any]:
    """Return documents with sources and scores, and an extractive answer, as the service does."""
    expand = tool_name == "query" if expand_enabled is None else expand_enabled
    started = time.perf_counter()
    result = _INDEX.search(query, limit, detail, expand=expand)
    elapsed = (time.perf_counter() - started) * 1000
    answer = extract_answer(result.hits)
    return {
        "results": [
            {
                "slug": hit.document.id,
                "source_id": hit.document.source_id,
                "score": hit.score,
                "found_by": list(hit.found_by),
            }
            for hit in result.hits
        ],
        "answer": answer.text,
        "citations": answer.citations,
        "contexts": [{"id": context["id"], "text": context["text"]} for context in answer.contexts],
        "latency_ms": elapsed,
    }


def neutral(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """Return the results of `search` by requesting more and dropping the rest."""
    found = search(query, limit * 2, detail, tool_name)
    return found | {"results": found["results"][:limit]}


def degraded(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """Search with only the first words of the question."""
    return search(" ".join(query.split()[:WORDS_READ]), limit, detail, tool_name)


def abstaining(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """Return the results of `search`, and for most questions no answer."""
    found = search(query, limit, detail, tool_name)
    return found | {"answer": REFUSAL, "citations": []} if refuses(query) else found


def slow(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """Return the results of `search` after a delay."""
    found = search(query, limit, detail, tool_name)
    time.sleep(SLOWER_BY_S)
    return found | {"latency_ms": found["latency_ms"] + SLOWER_BY_S * 1000}
