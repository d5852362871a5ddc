"""Say how many cases of a dataset a comparison of two runs needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_operations.golden.datasets import SavedCase


@dataclass(frozen=True)
class Enough:
    """Cases that decide about retrieval, and how many a verdict needs at least.

    `answerable`: cases with expected documents; null cases decide about another metric. `needed`: as many that did not change exclude a
    loss of `threshold`, the default threshold of metrics of retrieval. With changes it takes more.
    """

    answerable: int
    needed: int
    threshold: float


def enough_of(cases: "Iterable[SavedCase]") -> Enough:
    """Return how many cases count for retrieval, and how many a verdict needs at least. Pure."""
    from assay_evals.compare.verdicts import DEFAULT_RULES
    from assay_evals.statistics.power import unseen_cases

    threshold = DEFAULT_RULES["mrr"].threshold
    answerable = sum(not (case.null_case or case.retired) for case in cases)
    return Enough(answerable, unseen_cases(threshold), threshold)
