"""Names of metrics, and what they say of a metric's values. Pure."""

from assay_evals.dataset.scorer_specs import SCORE
from assay_evals.metrics.answer_coverage import (
    ABSTAINED,
    ANSWERED,
    CHECK_FAILED,
    COVERAGE,
    NO_CONTEXT,
    NULL_REFUSED,
    REPEATED,
)
from assay_evals.metrics.case_metrics import PATH

#: Metrics that are cut off at a rank: those at other ranks than the default ones have the same rule.
AT_RANK = ("recall", "precision", "ndcg", "hit")
#: Metrics that are a quantile over cases of the column `latency_ms`, not a mean.
QUANTILES = {"latency_p50_ms": 0.5, "latency_p95_ms": 0.95}
LATENCY = "latency_ms"
#: Metrics, not cut off at a rank, whose values are between 0 and 1.
SHARES = frozenset(
    {
        "mrr", "null_accuracy",
        "faithfulness", "citation_precision", "citation_recall", "answer_relevancy", "hallucination_rate",
        "correctness", "context_recall", "context_precision", "reference_contradicted",
        "temporal_accuracy", "actor_attribution", "answer_f1", "required_citations", "required_entities",
        ABSTAINED, ANSWERED, COVERAGE, NO_CONTEXT, NULL_REFUSED, REPEATED,
    }
)  # fmt: skip


def is_share(metric: str) -> bool:
    """True if its values are between 0 and 1. A judge may measure metrics that are not."""
    kind, at, rank = metric.partition("@")
    by_name = metric in SHARES or metric.startswith((PATH, CHECK_FAILED, SCORE))
    return by_name or bool(at and kind in AT_RANK and rank.isdecimal())
