"""Retrieval metrics of one question, as the benchmark's own code has them and in standard form.

Pure. Rankings are sessions, best first.
"""

import math
from collections.abc import Collection, Sequence

from assay_evals.longmemeval.rows import Row
from assay_evals.metrics.retrieval import judge, retrieval_metrics

#: Cut-offs of the benchmark; those up to the number of requested results are reported, and that number itself.
CUTOFFS = (1, 3, 5, 10, 30, 50)
Metrics = dict[str, float]


def cutoffs(top_k: int) -> tuple[int, ...]:
    """Return the cut-offs that are measured for so many requested results."""
    return tuple(sorted({k for k in CUTOFFS if k <= top_k} | {top_k}))


def reference_metrics(ranked: Sequence[str], evidence: Collection[str], at: Sequence[int]) -> Metrics:
    """Compute `recall_any@k`, `recall_all@k` and `ndcg_any@k` as the benchmark's code does.

    Its nDCG is an old form: the first two ranks are not discounted, rank r counts 1 / log2(r). A session that is ranked twice counts
    twice in it, as in the reference.
    """
    relevant = set(evidence)
    gains = [float(each in relevant) for each in ranked]
    ideal = max(len(relevant), int(sum(gains)))
    found: Metrics = {}
    for k in at:
        first = set(ranked[:k])
        best = _discounted([1.0] * min(ideal, k))
        found[f"recall_any@{k}"] = float(bool(relevant & first))
        found[f"recall_all@{k}"] = float(relevant <= first)
        found[f"ndcg_any@{k}"] = _discounted(gains[:k]) / best if best else 0.0
    return found


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(max(rank, 2)) for rank, gain in enumerate(gains, start=1))


def standard_metrics(ranked: Sequence[str], evidence: Collection[str], at: Sequence[int]) -> Metrics:
    """Compute the metrics of golden datasets: recall, precision, nDCG, hit at k, and MRR."""
    judged = judge([dict.fromkeys(evidence, 1)], [list(ranked)], depth=max(at))
    return {name: float(values[0]) for name, values in retrieval_metrics(judged, at).items() if name != "null_accuracy"}


def measured(row: Row, ranked: Sequence[str], top_k: int) -> dict[str, Metrics]:
    """Compute the metrics of a question in each convention that covers it.

    Neither covers abstention: such a question has no place with its answer. The reference covers a question only if its evidence is in
    a marked user's turn.
    """
    if row.abstention:
        return {}
    at, found = cutoffs(top_k), dict[str, Metrics]()
    if row.evidence:
        found["standard"] = standard_metrics(ranked, row.evidence, at)
    if row.reference_evidence:
        found["reference"] = reference_metrics(ranked, row.reference_evidence, at)
    return found
