"""Metrics of a replay: captured retrievals repeated, and how much their results changed.

Pure, in memory independent of the number of rows.

Replay needs no judgements: it compares with what was captured, which need not have been right. Definitions, each held by a test:

- Both sides are cut at K = as many as were captured (or `k` if that is less; where nothing was captured, `k`, 10 by default): a system
  that now returns more is not punished for it.
- Documents are compared as `source::slug` where the captured row names exactly one source. A row of several sources does not say which
  slug came from which: its slugs are compared alone, and counted in `rows_source_ambiguous`.
- Jaccard@K = shared / all documents of both; 1 when both are empty. Top-1 is stable when the first documents are the same, or both are
  empty. nDCG@K takes the captured order as the ideal one: the first of K has the gain K, the last the gain 1.
- Skipped and errored rows are counted, and are in no mean. A gate fails on errored rows.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay_evals.dataset.captured_rows import Captured
from assay_evals.dataset.model import Document
from assay_evals.target.response import TargetResponse

#: Documents compared where nothing was captured.
DEFAULT_K = 10
#: Slugs of each side that a row's result keeps.
SHOWN_SLUGS = 50


@dataclass(frozen=True)
class RowResult:
    """One replayed row. `jaccard`, `ndcg` and latencies are meaningful unless it was skipped or errored."""

    row: Captured
    jaccard: float = 0.0
    top1: bool = False
    ndcg: float = 0.0
    current: list[str] = field(default_factory=list)
    current_latency_ms: float = 0.0
    skip_reason: str | None = None
    error: str | None = None

    @property
    def counted(self) -> bool:
        """True if it counts in the means."""
        return self.skip_reason is None and self.error is None

    @property
    def latency_delta_ms(self) -> float:
        """Current minus captured latency, in milliseconds."""
        return self.current_latency_ms - self.row.latency_ms

    @property
    def over_2x(self) -> bool:
        """True if it took more than twice as long; a captured latency of 0 does not count."""
        return self.row.latency_ms > 0 and self.current_latency_ms > 2 * self.row.latency_ms

    def as_json(self) -> dict[str, Any]:
        """Return the row of `--json --verbose`."""
        shape: dict[str, Any] = {
            "id": self.row.id,
            "tool_name": self.row.tool_name,
            "query": self.row.query,
            "jaccard": self.jaccard,
            "top1Match": self.top1,
            "captured_slugs": self.row.slugs[:SHOWN_SLUGS],
            "current_slugs": self.current[:SHOWN_SLUGS],
            "current_latency_ms": self.current_latency_ms,
            "latency_delta_ms": self.latency_delta_ms if self.counted else 0.0,
            "ndcg": self.ndcg,
        }
        if self.skip_reason is not None:
            shape |= {"skipped": True, "skip_reason": self.skip_reason}
        if self.error is not None:
            shape |= {"errored": True, "error_message": self.error}
        return shape


def skip_reason(row: Captured) -> str | None:
    """Return why a row cannot be replayed; None if it can."""
    return "empty query" if not row.query.strip() else None


def compare_row(row: Captured, current: TargetResponse, k: int | None = None) -> RowResult:
    """Compare the current answer with the captured one."""
    with_source = row.source is not None and any(current.sources)
    before: list[Document] = [(row.source if with_source else None, slug) for slug in row.slugs]
    cut = min(len(before), k or len(before)) or k or DEFAULT_K
    before, after = before[:cut], current.documents(with_source)[:cut]
    union = set(before) | set(after)
    gains = {document: float(len(before) - place) for place, document in enumerate(before)}
    return RowResult(
        row=row,
        jaccard=len(set(before) & set(after)) / len(union) if union else 1.0,
        top1=before[:1] == after[:1],
        ndcg=_ndcg(gains, after),
        current=current.slugs,
        current_latency_ms=current.latency_ms,
    )


def _ndcg(gains: dict[Document, float], order: Sequence[Document]) -> float:
    if not gains:
        return 0.0 if order else 1.0
    discount = 1.0 / np.log2(np.arange(2, max(len(gains), len(order)) + 2))
    best = float(np.dot(sorted(gains.values(), reverse=True), discount[: len(gains)]))
    return float(np.dot([gains.get(each, 0.0) for each in order], discount[: len(order)])) / best


@dataclass
class ReplaySummary:
    """Running totals over rows, the worst of them, and the first errors.

    Keeps at most `top` rows of each.
    """

    top: int = 5
    rows_total: int = 0
    rows_skipped: int = 0
    rows_errored: int = 0
    rows_over_2x_latency: int = 0
    rows_source_ambiguous: int = 0
    #: Rows in the means from which personal data was removed.
    rows_scrubbed: int = 0
    _jaccard: float = 0.0
    _top1: int = 0
    _ndcg: float = 0.0
    _delta: float = 0.0
    _captured: float = 0.0
    _current: float = 0.0
    #: (minus jaccard, minus the number of the row, result): the heap's first is the best of the worst.
    _worst: list[tuple[float, int, RowResult]] = field(default_factory=list)
    errors: list[RowResult] = field(default_factory=list)

    def add(self, result: RowResult) -> None:
        """Count one row."""
        self.rows_total += 1
        if result.skip_reason is not None:
            self.rows_skipped += 1
            return
        if result.error is not None:
            self.rows_errored += 1
            if len(self.errors) < self.top:
                self.errors.append(result)
            return
        self.rows_over_2x_latency += result.over_2x
        self.rows_source_ambiguous += len(result.row.source_ids) > 1
        self.rows_scrubbed += result.row.scrubbed
        self._jaccard += result.jaccard
        self._top1 += result.top1
        self._ndcg += result.ndcg
        self._delta += result.latency_delta_ms
        self._captured += result.row.latency_ms
        self._current += result.current_latency_ms
        if self.top and result.jaccard < 1:
            entry = (-result.jaccard, -self.rows_total, result)
            if len(self._worst) < self.top:
                heapq.heappush(self._worst, entry)
            else:
                heapq.heappushpop(self._worst, entry)

    @property
    def rows_replayed(self) -> int:
        """Number of rows in the means."""
        return self.rows_total - self.rows_skipped - self.rows_errored

    @property
    def worst(self) -> list[RowResult]:
        """Return the rows that changed most, worst first."""
        return [result for _, _, result in sorted(self._worst, key=lambda entry: (-entry[0], -entry[1]))]

    @property
    def mean_jaccard(self) -> float:
        """Mean Jaccard@K, 0 without rows."""
        return self._mean(self._jaccard)

    @property
    def top1_stability_rate(self) -> float:
        """Share of rows whose first document stayed the same, 0 without rows."""
        return self._mean(self._top1)

    @property
    def mean_latency_delta_ms(self) -> float:
        """Mean of current minus captured latency, in milliseconds."""
        return self._mean(self._delta)

    @property
    def latency_ratio(self) -> float | None:
        """Total current latency divided by total captured latency; None without captured latencies."""
        return self._current / self._captured if self._captured > 0 else None

    def _mean(self, total: float) -> float:
        return total / self.rows_replayed if self.rows_replayed else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the `summary` of `--json`: the keys of version 1, then later ones."""
        return {
            "rows_total": self.rows_total,
            "rows_replayed": self.rows_replayed,
            "rows_skipped": self.rows_skipped,
            "rows_errored": self.rows_errored,
            "mean_jaccard": self.mean_jaccard,
            "top1_stability_rate": self.top1_stability_rate,
            "mean_latency_delta_ms": self.mean_latency_delta_ms,
            "rows_over_2x_latency": self.rows_over_2x_latency,
            "mean_ndcg": self._mean(self._ndcg),
            "latency_ratio": self.latency_ratio,
            "rows_source_ambiguous": self.rows_source_ambiguous,
            "rows_scrubbed": self.rows_scrubbed,
        }
