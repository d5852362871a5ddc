"""The demo's search as a system under test: `assay eval run --target assay_demo.target:search`.

Four more functions stand for changes that somebody might propose: `neutral` gives the same answers by other means, `degraded` reads only
the first words of a question, `abstaining` refuses nine questions in ten, and `slow` takes longer. Which of them an
evaluation lets pass is its proof.
"""

from __future__ import annotations

import time
from typing import Any

from assay_demo.abstaining import REFUSAL, refuses
from assay_demo.corpus import load_corpus
from assay_demo.search import Detail, Search
from assay_demo.service import extract_answer

#: Words of a question that the degraded search reads.
WORDS_READ = 3
#: What the slow search adds, in seconds.
SLOWER_BY_S = 0.25
#: Built when the module is imported: no question has to wait for it.
_INDEX = Search(load_corpus())


def search(
    query: str,
    limit: int = 10,
    detail: Detail | None = None,
    tool_name: str = "query",
    expand_enabled: bool | None = None,
) -> dict[str, Any]:
    """What the demo's service answers: documents with their sources and scores, and an extractive answer with citations."""
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
    """The same results, found by asking for more and cutting off the rest."""
    found = search(query, limit * 2, detail, tool_name)
    return found | {"results": found["results"][:limit]}


def degraded(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """A search that reads only the first words of a question."""
    return search(" ".join(query.split()[:WORDS_READ]), limit, detail, tool_name)


def abstaining(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """The same results, and mostly no answer made of them."""
    found = search(query, limit, detail, tool_name)
    return found | {"answer": REFUSAL, "citations": []} if refuses(query) else found


def slow(query: str, limit: int = 10, detail: Detail | None = None, tool_name: str = "query") -> dict[str, Any]:
    """The same results, later."""
    found = search(query, limit, detail, tool_name)
    time.sleep(SLOWER_BY_S)
    return found | {"latency_ms": found["latency_ms"] + SLOWER_BY_S * 1000}
