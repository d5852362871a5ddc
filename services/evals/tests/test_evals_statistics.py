"""Statistics of comparisons: against scipy, and against simulations whose truth is known."""

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_evals.statistics import (
    cases_needed,
    effect_size,
    holm,
    interval,
    resampled_means,
    resampled_quantile_changes,
    sign_flip_p,
    student_quantile,
    wilson,
)


def skewed(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Differences as changes of retrieval give them: most are 0, the rest of either sign and of any size, their mean 0."""
    return np.where(rng.random(n) < 0.7, 0.0, rng.choice([-1.0, 1.0], n) * rng.exponential(0.3, n))


@pytest.mark.parametrize("n", [30, 300])
def test_percentiles_are_those_of_scipy_within_the_noise_of_resampling(n: int) -> None:
    values = np.random.default_rng(n).exponential(size=n)
    ours = interval(values, resampled_means(values, seed=3, resamples=40_000)[:, 0], student=False)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method="percentile", rng=4
    ).confidence_interval
    noise = 0.12 * values.std() / np.sqrt(n)  # a tail's quantile of 40,000 resamples wanders by 2 % of a standard error
    assert ours.low == pytest.approx(theirs.low, abs=noise)
    assert ours.high == pytest.approx(theirs.high, abs=noise)


@pytest.mark.parametrize("n", [5, 30, 99])
def test_few_cases_have_students_interval(n: int) -> None:
    values = np.random.default_rng(n).exponential(size=n)
    ours = interval(values, resampled_means(values, seed=3, resamples=40_000)[:, 0])
    low, high = scipy.stats.t.interval(0.95, n - 1, values.mean(), scipy.stats.sem(values))
    assert ours.method == "student"
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.03 * (high - low))


@pytest.mark.parametrize("freedom", [1, 2, 5, 9, 10, 11, 20, 100, 10_000])
def test_students_quantile_is_exact_to_three_places(freedom: int) -> None:
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), abs=6e-4)


def test_clusters_count_as_units() -> None:
    values = np.repeat(np.random.default_rng(5).normal(size=6), 50)
    means = resampled_means(values, seed=1, clusters=np.repeat(np.arange(6), 50).tolist())[:, 0]
    assert interval(values, means, units=6).method == "student"
    assert interval(values, means).method == "percentile"


def test_all_columns_share_their_resamples() -> None:
    values = np.random.default_rng(1).normal(size=50)
    means = resampled_means(np.column_stack([values, 2 * values]), seed=1, resamples=200)
    assert np.allclose(means[:, 1], 2 * means[:, 0])


def test_a_case_that_a_metric_does_not_apply_to_is_in_none_of_its_means() -> None:
    values = np.array([[1.0, np.nan], [1.0, 5.0], [1.0, 5.0]])
    means = resampled_means(values, seed=1, resamples=500)
    assert np.all(means[:, 0] == 1.0)
    present = ~np.isnan(means[:, 1])
    assert np.all(means[present, 1] == 5.0)
    assert 0.9 < present.mean() < 1.0, "one resample in 27 draws no case that has a value"


def test_cases_of_a_cluster_are_drawn_together() -> None:
    values = np.repeat(np.random.default_rng(5).normal(size=20), 10)
    clusters = np.repeat(np.arange(20), 10).tolist()
    together = resampled_means(values, seed=1, clusters=clusters).std()
    apart = resampled_means(values, seed=1).std()
    assert together == pytest.approx(apart * np.sqrt(10), rel=0.1)


def test_the_sign_flip_test_is_that_of_scipy() -> None:
    deltas = np.random.default_rng(8).normal(0.3, 0.5, 40)
    theirs = scipy.stats.permutation_test(
        (deltas,), np.mean, permutation_type="samples", n_resamples=20_000, rng=2
    ).pvalue
    assert sign_flip_p(deltas, seed=3) == pytest.approx(theirs, abs=0.005)
    assert 0.001 < theirs < 0.2


def test_no_difference_is_no_evidence() -> None:
    assert sign_flip_p(np.zeros(10), seed=1) == 1.0
    assert effect_size(np.zeros(10)) is None
    assert interval(np.zeros(10), np.zeros(100)).method == "degenerate"


@pytest.mark.parametrize("n", [30, 50, 300])
def test_a_change_that_is_none_is_called_one_about_as_often_as_said(n: int) -> None:
    rng = np.random.default_rng(100 + n)
    runs = 400
    called = sum(sign_flip_p(skewed(rng, n), seed=run, resamples=500) < 0.05 for run in range(runs))
    low, high = wilson(called, runs, 0.999)
    assert low < 0.07, called
    assert high > 0.02, called


def test_holm_multiplies_the_smallest_most_and_never_reverses_the_order() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=12))
def test_holm_only_raises_and_keeps_the_order(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)
    assert all(p_values[name] <= adjusted[name] <= 1 for name in p_values)
    ordered = sorted(p_values, key=lambda name: p_values[name])
    assert [adjusted[name] for name in ordered] == sorted(adjusted.values())


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"), [(12, 50, 0.14297, 0.37413), (0, 20, 0.0, 0.16113), (10, 10, 0.72247, 1.0)]
)
def test_wilson_gives_known_intervals(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=1e-5)


def test_cases_needed_are_those_of_the_textbook() -> None:
    deltas = np.random.default_rng(2).normal(size=2000)
    deltas = 0.25 * (deltas - deltas.mean()) / deltas.std(ddof=1)
    assert cases_needed(deltas, 0.03) == pytest.approx(545, abs=1)
    assert cases_needed(deltas, 0.05) == pytest.approx(197, abs=1)


def test_a_slower_tail_is_seen_in_the_tail_alone() -> None:
    before = np.random.default_rng(3).exponential(100, 400)
    after = np.where(before > np.quantile(before, 0.9), before + 500, before)
    changes = resampled_quantile_changes(before, after, [0.5, 0.95], seed=1)
    assert np.quantile(changes[:, 1], 0.025) > 300
    assert abs(np.quantile(changes[:, 0], 0.975)) < 5


def test_weighted_means_are_those_of_as_many_copies_of_each_case() -> None:
    values = np.random.default_rng(12).normal(size=40)
    weights = np.where(np.arange(40) < 20, 9.0, 1.0)
    means = resampled_means(values, seed=1, weights=weights)[:, 0]
    centre = np.average(values, weights=weights)
    assert means.mean() == pytest.approx(centre, abs=0.02)
    bounds = interval(values, means, weights=weights)
    assert (bounds.low + bounds.high) / 2 == pytest.approx(centre)
    whole = resampled_means(values, seed=1, weights=weights, clusters=list(range(40)))[:, 0]
    assert np.allclose(whole, means), "clusters of one case each change nothing"


def test_a_weighted_test_asks_about_the_weighted_mean() -> None:
    deltas = np.array([-0.2] * 10 + [0.2] * 10)
    assert sign_flip_p(deltas, seed=1) > 0.9
    assert sign_flip_p(deltas, seed=1, weights=np.array([9.0] * 10 + [1.0] * 10)) < 0.05
