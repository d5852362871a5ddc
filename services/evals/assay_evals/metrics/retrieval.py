"""Retrieval metrics over explicit ranks, for many queries at once. Pure numpy.

Semantics, each held by a test:

- The order given is the order judged. Scores are not looked at, so there are no ties to break (trec_eval sorts by score, then by id).
- A query the run does not answer counts as 0, and stays in the denominator.
- A document that is retrieved twice counts at its first rank only, and the ranks behind it close up: recall never exceeds 1.
- A null query (nothing is relevant) has no rank to measure: it is `nan` in every ranked metric, left out of their means, and judged by
  `null_accuracy` alone: 1 when nothing was returned.
- Precision at K divides by K, however few were returned. Recall at K divides by all that are relevant.
- nDCG: gain is the grade (`linear`, as trec_eval) or `2^grade - 1` (`burges`; Burges et al. 2005); discount `1 / log2(rank + 1)`
  (Jarvelin and Kekalainen 2002); the ideal order is of all judged documents, cut at K.
- Reciprocal rank at depth K is 0 when the first relevant document stands behind rank K.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Gain = Literal["linear", "burges"]
#: Cut-offs that are reported unless others are asked for.
DEFAULT_CUTOFFS = (5, 10)


@dataclass(frozen=True)
class Judged:
    """Rankings with their relevance judgements, for Q queries to a depth of D.

    `grades[q, r]` is the grade of the document at rank r + 1, 0 where there is none; `ideal[q, r]` the same for the best possible order;
    `relevant[q]` how many documents have a grade above 0; `returned[q]` how many distinct documents came back, at any depth.
    """

    grades: Floats
    ideal: Floats
    relevant: npt.NDArray[np.int64]
    returned: npt.NDArray[np.int64]

    @property
    def null(self) -> npt.NDArray[np.bool_]:
        """True for queries that expect nothing."""
        return np.equal(self.relevant, 0)


def judge(relevance: Sequence[Mapping[str, int]], rankings: Sequence[Sequence[str]], *, depth: int = 10) -> Judged:
    """Look up the grade of every retrieved document.

    `relevance[q]` maps document ids to grades of 0 and more, `rankings[q]` holds ids, best first; an empty one where nothing came back.
    Raises `ValueError` when the two differ in length, a grade is negative, or `depth` is below 1.
    """
    if len(relevance) != len(rankings):
        raise ValueError(f"{len(relevance)} queries have judgements and {len(rankings)} have rankings: give each both")
    if depth < 1:
        raise ValueError("depth must be 1 or more")
    queries = len(relevance)
    flat: list[int] = []
    best: list[int] = []
    counts = np.zeros(queries, np.int64)
    relevant = np.zeros(queries, np.int64)
    returned = np.zeros(queries, np.int64)
    lengths = []
    for number, (judged, ranking) in enumerate(zip(relevance, rankings, strict=True)):
        distinct: Sequence[str] = ranking
        if len(set(ranking)) != len(ranking):
            distinct = list(dict.fromkeys(ranking))
        returned[number] = len(distinct)
        grade = judged.get
        grades_found = [grade(document, 0) for document in distinct[:depth]]
        flat += grades_found
        counts[number] = len(grades_found)
        ideal = sorted(judged.values(), reverse=True)
        if ideal and ideal[-1] < 0:
            raise ValueError("a grade is below 0")
        relevant[number] = len(ideal) if ideal and ideal[-1] > 0 else sum(value > 0 for value in ideal)
        best += ideal[:depth]
        lengths.append(min(len(ideal), depth))
    return Judged(_padded(flat, counts, depth), _padded(best, np.asarray(lengths, np.int64), depth), relevant, returned)


def _padded(flat: list[int], counts: npt.NDArray[np.int64], width: int) -> Floats:
    matrix = np.zeros((len(counts), width))
    matrix[np.arange(width) < counts[:, None]] = flat
    return matrix


def reciprocal_rank(judged: Judged, k: int | None = None) -> Floats:
    """Return 1 / rank of the first relevant document within `k`; 0 without one; `nan` for null queries."""
    hits = judged.grades[:, :k] > 0
    first = hits.argmax(axis=1)
    return _ranked(judged, np.where(hits.any(axis=1), 1.0 / (first + 1), 0.0))


def hit(judged: Judged, k: int) -> Floats:
    """Return 1 if a relevant document is among the first `k`, else 0."""
    return _ranked(judged, (judged.grades[:, :k] > 0).any(axis=1).astype(float))


def recall(judged: Judged, k: int) -> Floats:
    """Return the share of the relevant documents that are among the first `k`."""
    return _ranked(judged, (judged.grades[:, :k] > 0).sum(axis=1) / np.maximum(judged.relevant, 1))


def precision(judged: Judged, k: int) -> Floats:
    """Return the share of the first `k` places that contain a relevant document."""
    return _ranked(judged, (judged.grades[:, :k] > 0).sum(axis=1) / k)


def ndcg(judged: Judged, k: int, gain: Gain = "linear") -> Floats:
    """Return the normalized discounted cumulative gain of the first `k`, in [0, 1]."""
    depth = min(k, judged.grades.shape[1])
    discount = 1.0 / np.log2(np.arange(2, depth + 2))
    best = _gains(judged.ideal[:, :depth], gain) @ discount
    with np.errstate(invalid="ignore", divide="ignore"):
        return _ranked(judged, (_gains(judged.grades[:, :depth], gain) @ discount) / best)


def null_accuracy(judged: Judged) -> Floats:
    """Return 1 if a null query returned nothing, else 0; `nan` for queries that expect something."""
    return np.where(judged.null, (judged.returned == 0).astype(float), np.nan)


def _gains(grades: Floats, gain: Gain) -> Floats:
    return grades if gain == "linear" else np.exp2(grades) - 1


def _ranked(judged: Judged, values: Floats) -> Floats:
    return np.where(judged.null, np.nan, values)


def retrieval_metrics(
    judged: Judged, cutoffs: Sequence[int] = DEFAULT_CUTOFFS, gain: Gain = "linear"
) -> dict[str, Floats]:
    """Compute every metric by name, with one value per query.

    These are `mrr`, `null_accuracy`, and `recall@K`, `precision@K`, `ndcg@K`, `hit@K` for each cut-off.

    Raises `ValueError` for a cut-off below 1 or beyond the depth that was judged.
    """
    depth = judged.grades.shape[1]
    if bad := [k for k in cutoffs if not 1 <= k <= depth]:
        raise ValueError(f"cut-off {bad[0]} is not between 1 and the depth of {depth}")
    by_name = {"mrr": reciprocal_rank(judged)}
    for k in cutoffs:
        by_name |= {
            f"recall@{k}": recall(judged, k),
            f"precision@{k}": precision(judged, k),
            f"ndcg@{k}": ndcg(judged, k, gain),
            f"hit@{k}": hit(judged, k),
        }
    return by_name | {"null_accuracy": null_accuracy(judged)}


def below(value: float, least: float) -> bool:
    """True if a mean is below its minimum by more than rounding: equality passes."""
    return value < least - 1e-9


def mean(values: Floats, weights: Floats | None = None) -> float | None:
    """Return the mean of the values that are numbers, weighted (Hajek) if weights are given, or None."""
    present = ~np.isnan(values)
    if not present.any():
        return None
    return float(np.average(values[present], weights=None if weights is None else weights[present]))
