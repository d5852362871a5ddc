"""Tests of how many cases a verdict needs."""

from datetime import UTC, datetime

import numpy as np
import pytest

from assay_evals.compare.verdicts import DEFAULT_RULES, Verdict, decide
from assay_evals.statistics.bounded import bounded_intervals
from assay_operations.golden.datasets import SavedCase
from assay_operations.golden.enough import enough_of


def case(number: int, *, null_case: bool = False, retired: bool = False) -> SavedCase:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    return SavedCase(
        "shop", "golden", f"case-{number}", 1, None, "How?", ("doc/a",), (), null_case, None, 1.0, "ada", at, retired
    )


def test_null_and_retired_cases_do_not_count_for_retrieval() -> None:
    cases = [*map(case, range(20)), case(20, null_case=True), case(21, retired=True)]
    assert enough_of(cases).answerable == 20


@pytest.mark.parametrize(("times", "verdict"), [(1.1, Verdict.PASS), (0.9, Verdict.INCONCLUSIVE)])
def test_an_unchanged_system_passes_from_about_the_needed_number_of_cases_on(times: float, verdict: Verdict) -> None:
    cases = round(times * enough_of(()).needed)
    (bounds,) = bounded_intervals(np.zeros((cases, 1)), -1.0, 1.0, seed=7)
    assert bounds is not None
    assert decide(0.0, bounds, 1.0, DEFAULT_RULES["mrr"], significant=False) is verdict
