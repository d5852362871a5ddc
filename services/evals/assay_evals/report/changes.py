"""Rows of a comparison, as pages show them: metrics, query types, result lists. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns


@dataclass(frozen=True)
class MetricChange:
    """Change of one metric between two runs, as `assay eval compare` gives it."""

    metric: str
    n: int
    baseline: float
    candidate: float
    delta: float
    low: float
    high: float
    p: float | None
    #: None if no change is large enough: the metric is for information.
    threshold: float | None
    floor: float | None
    lower_is_better: bool
    stage: str
    verdict: str
    meaning: str


@dataclass(frozen=True)
class TypeChange:
    """Change of the shown metric for the cases of one query type."""

    query_type: str
    n: int
    baseline: float
    candidate: float


@dataclass(frozen=True)
class Move:
    """An item of a result list.

    `was`: its rank in the other list; None if it is not there. `expected`: None if that is not known.
    """

    rank: int
    name: str
    was: int | None
    expected: bool | None


def metric_changes(paired: "PairedRuns") -> tuple[MetricChange, ...]:
    """Return the change of each metric."""
    from assay_evals.metrics.case_metrics import PATH
    from assay_evals.report.wording import meaning

    return tuple(
        MetricChange(
            each.metric, each.n, each.baseline, each.candidate, each.delta, each.interval.low, each.interval.high, each.p,
            None if each.metric.startswith(PATH) else each.rule.threshold,
            each.rule.floor, each.rule.lower_is_better, each.rule.stage.value, each.verdict.value, meaning(each),
        )
        for each in paired.comparison.metrics
    )  # fmt: skip


def type_changes(paired: "PairedRuns", metric: str) -> tuple[TypeChange, ...]:
    """Return the change of a metric for each query type; none without a metric."""
    found = paired.by_query_type(metric) if metric else {}
    return tuple(TypeChange(kind, *means) for kind, means in sorted(found.items()))


def moves(own: Sequence[str], other: Sequence[str], expected: frozenset[str] | None) -> tuple[Move, ...]:
    """Return a result list with the rank of each item in the other list.

    `expected`: None if that is not known.
    """
    ranks = {name: rank for rank, name in reversed(list(enumerate(other, 1)))}
    return tuple(
        Move(rank, name, ranks.get(name), None if expected is None else name in expected)
        for rank, name in enumerate(own, 1)
    )
