"""Correctness of a target by relevance judgements: recall, first hits, and what was missed. Pure."""

import math
from dataclasses import dataclass, field
from typing import Any

from assay_evals.dataset.model import Document, document_id
from assay_evals.dataset.qrels import DEFAULT_SOURCE, KnownQuery, QrelsError
from assay_evals.target.response import TargetResponse

#: Figures of the verdict, each a mean over questions.
FIGURES = RECALL, FIRST, TOP1 = "mean_recall_at_k", "first_relevant_hit_rate", "expected_top1_hit_rate"
#: Errors that the verdict quotes by query id.
SHOWN_ERRORS = 5
#: Questions that the verdict lists because something of theirs was missed, and documents that it names of each.
SHOWN_MISSES, SHOWN_MISSING = 20, 5


@dataclass(frozen=True)
class Floors:
    """Minimum values of a correctness gate, each a share between 0 and 1."""

    recall: float = 0.70
    first_relevant: float = 0.60
    expected_top1: float = 0.50

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise QrelsError(f"floor {name} must be a number")
            if not 0 <= value <= 1:
                raise QrelsError(f"floor {name} must be between 0 and 1")


@dataclass(frozen=True)
class Miss:
    """An answered question with missing documents. `first` is the first returned document, or None."""

    query_id: str
    recall: float
    missing: list[Document]
    first: Document | None
    first_is_relevant: bool
    expected_top1: Document | None
    #: Explains a document returned under a different source than expected: which one, and the fix.
    hint: str | None

    def as_json(self) -> dict[str, Any]:
        """Return an entry of the gate's `missed`."""
        return {
            "query_id": self.query_id,
            "recall_at_k": self.recall,
            "missing": [_name(each) for each in self.missing[:SHOWN_MISSING]],
            "missing_total": len(self.missing),
            "first": _name(self.first) if self.first else None,
            "first_is_relevant": self.first_is_relevant,
            "expected_top1": _name(self.expected_top1) if self.expected_top1 else None,
            "hint": self.hint,
        }


def _name(document: Document) -> str:
    source, slug = document
    return document_id(slug, source)


def _miss(known: KnownQuery, current: TargetResponse, k: int) -> Miss | None:
    documents = _with_default_source(current)[:k]
    missing = [each for each in known.relevant if each not in documents]
    first = documents[0] if documents else None
    wrong_top = known.expected_top1 is not None and first != known.expected_top1
    if not missing and first in known.relevant and not wrong_top:
        return None
    expected = [*missing, known.expected_top1] if wrong_top and known.expected_top1 else missing
    hints = (_hint(each, current.documents(with_source=True)) for each in expected)
    return Miss(
        known.query_id,
        1 - len(missing) / len(known.relevant),
        missing,
        first,
        first in known.relevant,
        known.expected_top1 if wrong_top else None,
        next((each for each in hints if each), None),
    )


def _hint(expected: Document, returned: list[Document]) -> str | None:
    """Explain if the expected document was returned under another source."""
    source, slug = expected
    for found, name in returned:
        if name == _name(expected) and not found:
            return f"{name} was returned as one name: let the target return source_id and slug separately"
        if name == slug and (found or DEFAULT_SOURCE) != source:
            came = f"{slug} was returned with source {found}" if found else f"{slug} was returned without a source"
            if source == DEFAULT_SOURCE:
                return f"{came}, but is expected without one: name it in the file as {{source_id, slug}}"
            return f"{came}, but is expected with source {source}"
    return None


@dataclass
class Correctness:
    """Running totals over relevance judgements. Recall never exceeds 1: a document counts once."""

    k: int = 10
    queries_total: int = 0
    queries_errored: int = 0
    #: By figure, a value for each answered question; for `expected_top1_hit_rate`, of those with an expected first
    #: document.
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in FIGURES})
    #: (query_id, class of the error) of the first few.
    errors: list[tuple[str, str]] = field(default_factory=list)
    #: Answered questions of which something was missed, in the order of the answers.
    misses: list[Miss] = field(default_factory=list)

    def add(self, known: KnownQuery, current: TargetResponse) -> None:
        """Count one answered question."""
        self.queries_total += 1
        documents = _with_default_source(current)[: self.k]
        self.values[RECALL].append(len(set(documents) & set(known.relevant)) / len(known.relevant))
        self.values[FIRST].append(float(bool(documents) and documents[0] in known.relevant))
        if known.expected_top1 is not None:
            self.values[TOP1].append(float(documents[:1] == [known.expected_top1]))
        if miss := _miss(known, current, self.k):
            self.misses.append(miss)

    def worst(self) -> list[Miss]:
        """Return the `SHOWN_MISSES` worst misses, lowest recall first."""
        return sorted(self.misses, key=lambda miss: (miss.recall, miss.first_is_relevant))[:SHOWN_MISSES]

    def fail(self, known: KnownQuery, error: str) -> None:
        """Count one question that the target could not answer."""
        self.queries_total += 1
        self.queries_errored += 1
        if len(self.errors) < SHOWN_ERRORS:
            self.errors.append((known.query_id, error))

    @property
    def queries_run(self) -> int:
        """Number of answered questions."""
        return self.queries_total - self.queries_errored

    def as_json(self) -> dict[str, Any]:
        """Return the correctness gate's `summary`."""
        means = {name: sum(found) / len(found) if found else 0.0 for name, found in self.values.items()}
        counts = {
            "k": self.k,
            "queries_total": self.queries_total,
            "queries_run": self.queries_run,
            "queries_errored": self.queries_errored,
        }
        return counts | means | {"expected_top1_denominator": len(self.values[TOP1])}


def _with_default_source(current: TargetResponse) -> list[Document]:
    return list(dict.fromkeys((source or DEFAULT_SOURCE, slug) for source, slug in current.documents(with_source=True)))
