"""BM25 search over the corpus, the system whose quality the demo measures.

It has two modes, like the retrieval tools of the capture schema: `query` expands the question with a table of synonyms,
`search` uses its words unchanged. Both omit documents that cover too little of a question, even if nothing is left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import bm25s
import numpy as np
from numpy.typing import NDArray

from assay_demo.corpus import Corpus, Document
from assay_demo.text import synonyms, terms

Detail = Literal["low", "medium", "high"]

#: Maximum number of hits from one top module, so that a large package does not crowd out the others.
HITS_PER_SOURCE: dict[Detail, int | None] = {"low": 2, "medium": 5, "high": None}
#: Weight of the name of a document, which describes it better than a sentence of its text.
NAME_WEIGHT = 3
#: Weight of a synonym, relative to a word of the question.
EXPANSION_WEIGHT = 0.35
#: Minimum share of the information of a question (summed inverse document frequency) that a hit covers.
MIN_COVERAGE = 0.38
#: Share of the information of a word that a document with only a synonym covers.
SYNONYM_COVERAGE = 0.7
_SHORTLIST = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """One result.

    `score` is that of BM25 (higher is better, no upper bound), `coverage` the share of the question found.

    `found_by`: matched by `words` of the question, by `synonyms` of them, or both.
    """

    document: Document
    score: float
    coverage: float
    found_by: tuple[str, ...] = ("words",)


@dataclass(frozen=True, slots=True)
class Result:
    """Hits, best first, and the terms that the question was expanded with."""

    hits: tuple[Hit, ...]
    detail_resolved: Detail
    expansion_applied: bool


class Search:
    """An in-memory index of a corpus. Building it takes about a second; several threads can search it."""

    def __init__(self, corpus: Corpus, *, min_coverage: float = MIN_COVERAGE) -> None:
        self.corpus = corpus
        self._min_coverage = min_coverage
        tokens = [_document_terms(document) for document in corpus.documents]
        self._bags = [frozenset(bag) for bag in tokens]
        counts = Counter(term for bag in self._bags for term in bag)
        total = len(tokens)
        self._idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in counts.items()}
        self._unknown_idf = math.log(1 + (total + 0.5) / 0.5)
        self._index = bm25s.BM25(method="lucene")
        self._index.index(tokens, show_progress=False)

    def search(self, query: str, k: int = 10, detail: Detail | None = None, *, expand: bool = False) -> Result:
        """Return the `k` best documents for a question, best first; none if none covers enough of it.

        `detail` of None depends on the length of the question: a long one is specific enough for one module.
        """
        asked = terms(query)
        resolved: Detail = detail or ("medium" if len(asked) < 8 else "high")
        also = synonyms(query) if expand else {}
        added = sorted({term for others in also.values() for term in others} - set(asked))
        if not asked:
            return Result((), resolved, expansion_applied=False)
        by_words, by_synonyms = self._scores(asked), self._scores(added)
        scores = by_words + EXPANSION_WEIGHT * by_synonyms
        shortlist = np.argsort(-scores, kind="stable")[:_SHORTLIST]
        hits: list[Hit] = []
        taken: Counter[str] = Counter()
        cap = HITS_PER_SOURCE[resolved]
        for place in shortlist:
            document = self.corpus.documents[place]
            if len(hits) == k or scores[place] <= 0:
                break
            if cap is not None and taken[document.source_id] >= cap:
                continue
            coverage = self._coverage(asked, also, self._bags[place])
            if coverage >= self._min_coverage:
                ways = (("words", by_words), ("synonyms", by_synonyms))
                found_by = tuple(name for name, found in ways if found[place] > 0)
                hits.append(Hit(document, round(float(scores[place]), 4), round(coverage, 4), found_by))
                taken[document.source_id] += 1
        return Result(tuple(hits), resolved, expansion_applied=bool(added))

    def passage(self, document: Document) -> str:
        """Return the passage of a hit."""
        return document.text

    def _scores(self, asked: list[str]) -> NDArray[np.float32]:
        known = [term for term in asked if term in self._idf]
        if not known:
            return np.zeros(len(self._bags), dtype=np.float32)
        scores: NDArray[np.float32] = self._index.get_scores(known)
        return scores

    def _coverage(self, asked: list[str], also: Mapping[str, tuple[str, ...]], bag: frozenset[str]) -> float:
        weights = {term: self._idf.get(term, self._unknown_idf) for term in asked}
        covered = 0.0
        for term, weight in weights.items():
            if term in bag:
                covered += weight
            elif any(other in bag for other in also.get(term, ())):
                covered += SYNONYM_COVERAGE * weight
        return covered / sum(weights.values())


def _document_terms(document: Document) -> list[str]:
    return terms(document.text) + terms(document.id.removeprefix("builtins.")) * NAME_WEIGHT
