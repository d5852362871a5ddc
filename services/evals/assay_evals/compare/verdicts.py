"""Verdicts on metrics: rules, stages, and the meaning of a change with its interval. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from assay_evals.metrics.answer_coverage import (
    ABSTAINED,
    ANSWERED,
    CHECK_FAILED,
    COVERAGE,
    JUDGE_NOISE,
    NO_CONTEXT,
    NULL_REFUSED,
    REPEATED,
)
from assay_evals.metrics.case_metrics import PATH
from assay_evals.metrics.metric_names import AT_RANK
from assay_evals.metrics.retrieval import DEFAULT_CUTOFFS, below
from assay_evals.statistics.intervals import Interval

#: Significance level: how often a comparison may call some metric worse although none is, and separately, better.
ALPHA = 0.05


class Verdict(StrEnum):
    """Verdict of a gate on one metric, or on all."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """Weight of a metric's verdict.

    Teams begin with informational and tighten it as they learn its noise.
    """

    INFORMATIONAL = "informational"
    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True)
class Rule:
    """Rule for one metric.

    `threshold`: the change for the worse that matters, in the metric's own unit, above 0. `floor`: the minimum of the
    candidate's mean (the maximum for lower-is-better metrics).
    """

    threshold: float
    lower_is_better: bool = False
    stage: Stage = Stage.BLOCK
    floor: float | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.threshold) or self.threshold < 0:
            raise ValueError("a threshold must be a number, 0 or more")
        if self.floor is not None and not np.isfinite(self.floor):
            raise ValueError("a floor must be a number")


_FIVE, _THREE = Rule(0.05), Rule(0.03)
#: Default rules. A metric that is not listed is informational, with a threshold of 0.05.
DEFAULT_RULES: dict[str, Rule] = {
    "mrr": _FIVE,
    **{f"{metric}@{k}": _FIVE for metric in AT_RANK for k in DEFAULT_CUTOFFS},
    "null_accuracy": _FIVE,
    "faithfulness": _THREE,
    "citation_precision": _THREE,
    "citation_recall": _FIVE,
    "answer_relevancy": _FIVE,
    "hallucination_rate": Rule(0.02, lower_is_better=True),
    **dict.fromkeys((ANSWERED, COVERAGE), _FIVE),
    **dict.fromkeys((ABSTAINED, NO_CONTEXT), Rule(0.05, lower_is_better=True)),
    REPEATED: Rule(0.2, lower_is_better=True),
    NULL_REFUSED: Rule(0.05, stage=Stage.WARN),
    **dict.fromkeys(("temporal_accuracy", "actor_attribution", "answer_f1"), Rule(0.05, stage=Stage.INFORMATIONAL)),
    **dict.fromkeys(("correctness", "context_recall", "context_precision"), Rule(0.05, stage=Stage.INFORMATIONAL)),
    "reference_contradicted": Rule(0.05, lower_is_better=True, stage=Stage.INFORMATIONAL),
    "latency_p50_ms": Rule(100.0, lower_is_better=True, stage=Stage.INFORMATIONAL),
    "latency_p95_ms": Rule(100.0, lower_is_better=True, stage=Stage.INFORMATIONAL),
}
#: A check that fails more often.
CHECK_RULE = Rule(0.05, lower_is_better=True)
#: The judge's disagreement with itself does not describe the answers.
NOISE_RULE = Rule(0.05, lower_is_better=True, stage=Stage.INFORMATIONAL)
#: How much smaller the share of cases may be that a metric is measured of.
MEASURED = Rule(0.05)
OTHER_RULE = Rule(0.05, stage=Stage.INFORMATIONAL)
#: Search paths are neutral: no change fails, because a share cannot fall by that much, unless its own rule is
#: given.
PATH_RULE = Rule(2.0, stage=Stage.INFORMATIONAL)


def rule_of(metric: str, rules: Mapping[str, Rule]) -> Rule:
    """Return the rule of a metric: its own, or that of its kind."""
    kind, at, rank = metric.partition("@")
    if at and kind in AT_RANK and rank.isdecimal():
        return rules.get(metric, _FIVE)
    of_kind = PATH_RULE if metric.startswith(PATH) else CHECK_RULE if metric.startswith(CHECK_FAILED) else OTHER_RULE
    of_kind = NOISE_RULE if metric.startswith(JUDGE_NOISE) else of_kind
    return rules.get(metric, of_kind)


def is_significant(bounds: Interval, p_value: float | None, p_adjusted: float | None) -> bool:
    """True if a change is statistically significant.

    By the test of this metric and by that of all; by its interval if there is no test. The tests keep their level on
    few and skewed cases. An interval of a share is wider: it allows for values that no case has shown yet.
    """
    if p_value is None or p_adjusted is None:
        return bounds.method != "degenerate" and (bounds.low > 0 or bounds.high < 0)
    return p_value < ALPHA and p_adjusted < ALPHA


def decide(delta: float, bounds: Interval, candidate: float, rule: Rule, *, significant: bool | None = None) -> Verdict:
    """Return the verdict on one metric, from its change and the interval of that.

    The interval is 95 %: each bound is a one-sided 97.5 % bound. `significant`: True if the change is significant; None, by
    its interval. Only the interval excludes a change for the worse: cases that did not vary exclude none, unless the
    values are bounded.
    """
    sign = -1.0 if rule.lower_is_better else 1.0
    gain, low, high = sign * delta, *sorted((sign * bounds.low, sign * bounds.high))
    if rule.floor is not None and below(sign * candidate, sign * rule.floor):
        return Verdict.FAIL
    varied = bounds.method != "degenerate"
    if gain < 0 and not below(-rule.threshold, gain) and (varied and high < 0 if significant is None else significant):
        return Verdict.FAIL
    return Verdict.PASS if varied and low > -rule.threshold else Verdict.INCONCLUSIVE
