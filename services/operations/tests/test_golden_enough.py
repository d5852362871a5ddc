"""Tests of how many cases a verdict needs."""

import numpy as np
import pytest

from assay_evals.compare.verdicts import DEFAULT_RULES, Verdict, decide
from assay_evals.statistics.bounded import bounded_intervals
from assay_operations.golden.enough import enough_of


def test_null_cases_do_not_count_for_retrieval() -> None:
    assert enough_of(24, 4).answerable == 20


@pytest.mark.parametrize(("times", "verdict"), [(1.1, Verdict.PASS), (0.9, Verdict.INCONCLUSIVE)])
def test_an_unchanged_system_passes_from_about_the_needed_number_of_cases_on(times: float, verdict: Verdict) -> None:
    cases = round(times * enough_of(24, 0).needed)
    (bounds,) = bounded_intervals(np.zeros((cases, 1)), -1.0, 1.0, seed=7)
    assert bounds is not None
    assert decide(0.0, bounds, 1.0, DEFAULT_RULES["mrr"], significant=False) is verdict
