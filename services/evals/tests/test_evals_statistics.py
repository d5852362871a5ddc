"""Statistics of comparisons: against scipy, and against simulations whose truth is known."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import scipy  # loads `scipy.stats`, which takes a second, when a test asks for it
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_evals.statistics.bounded import bounded_intervals
from assay_evals.statistics.intervals import interval, student_quantile
from assay_evals.statistics.power import cases_needed, effect_size, unseen_cases
from assay_evals.statistics.resampling import RESAMPLES, resampled_means, resampled_quantile_changes
from assay_evals.statistics.significance import flip_tests, holm, quantile_tests


def skewed(rng: np.random.Generator, n: int) -> npt.NDArray[np.float64]:
    """Differences as changes of retrieval give them: most are 0, the rest of either sign and of any size, their mean 0."""
    return np.where(rng.random(n) < 0.7, 0.0, rng.choice([-1.0, 1.0], n) * rng.exponential(0.3, n))


def share_interval(successes: int, runs: int) -> tuple[float, float]:
    """Wilson's 99.9 % interval of a share."""
    bounds = scipy.stats.binomtest(successes, runs).proportion_ci(0.999, method="wilson")
    return float(bounds.low), float(bounds.high)


def test_changes_of_quantiles_are_tested_at_their_level_whatever_the_noise() -> None:
    rng, fell, rose = np.random.default_rng(4), [], []
    for seed in range(400):
        one, other = rng.lognormal(5, 1, 40), rng.lognormal(5, 1, 40)
        ((p_fell, p_rose),) = quantile_tests(one, other, [0.95], resamples=400, seed=seed)
        fell.append(p_fell)
        rose.append(p_rose)
    for p_values in (fell, rose):
        assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08
    ((p_fell, p_rose),) = quantile_tests(one, one * 3, [0.5], seed=1)
    assert p_rose < 0.001
    assert p_fell == 1.0
    assert quantile_tests(one, one, [0.5, 0.95], seed=1) == [(1.0, 1.0), (1.0, 1.0)], "nothing moved"


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


def test_a_resample_of_three_cases_is_as_likely_as_it_should_be() -> None:
    means = resampled_means(np.array([0.0, 1.0, 3.0]), seed=1, resamples=27_000)[:, 0]
    found = dict(zip(*np.unique(np.rint(3 * means), return_counts=True), strict=True))
    expected: dict[float, int] = {}
    for drawn in itertools.product([0.0, 1.0, 3.0], repeat=3):
        expected[sum(drawn)] = expected.get(sum(drawn), 0) + 1000
    assert found.keys() == expected.keys()
    assert all(found[total] == pytest.approx(count, abs=200) for total, count in expected.items())


@pytest.mark.parametrize("cases", [20, 1_000, 40_000])
@pytest.mark.parametrize("resamples", [1, 2, 3, 4, 5, 41])
def test_there_are_as_many_resamples_as_were_asked_for_and_no_two_alike(cases: int, resamples: int) -> None:
    values = np.random.default_rng(1).normal(size=cases)
    means = resampled_means(values, seed=1, resamples=resamples)[:, 0]
    assert len(set(means.tolist())) == len(means) == resamples
    assert np.all(np.abs(means - values.mean()) < 5 * values.std() / np.sqrt(cases))


def two_sided(deltas: npt.NDArray[np.float64], *, seed: int, resamples: int = RESAMPLES) -> float:
    return flip_tests(deltas, seed=seed, resamples=resamples)[0].two_sided


def test_the_sign_flip_test_is_that_of_scipy() -> None:
    deltas = np.random.default_rng(8).normal(0.3, 0.5, 40)
    theirs = scipy.stats.permutation_test(
        (deltas,), np.mean, permutation_type="samples", n_resamples=20_000, rng=2
    ).pvalue
    assert two_sided(deltas, seed=3) == pytest.approx(theirs, abs=0.005)
    assert 0.001 < theirs < 0.2


def test_no_difference_is_no_evidence() -> None:
    (found,) = flip_tests(np.zeros(10), seed=1)
    assert (found.two_sided, found.fell, found.rose) == (1.0, 1.0, 1.0)
    assert effect_size(np.zeros(10)) is None
    assert interval(np.zeros(10), np.zeros(100)).method == "degenerate"


@pytest.mark.parametrize("deltas", [[-0.1], [-0.1, -0.1, -0.1, -0.1], [-0.1, -0.1001, -0.1, -0.1]])
def test_a_fall_in_all_of_a_few_cases_is_as_rare_as_that_many_heads(deltas: list[float]) -> None:
    (found,) = flip_tests(np.array(deltas), seed=1)
    assert found.fell == pytest.approx(0.5 ** len(deltas), abs=0.02)
    assert found.rose == 1.0


def hall(values: npt.NDArray[np.float64]) -> float:
    n, skewness = len(values), scipy.stats.skew(values)
    u = values.mean() / values.std()
    return float(np.sqrt(n) * (u + skewness * u**2 / 3 + skewness**2 * u**3 / 27 + skewness / (6 * n)))


def test_the_test_of_a_family_is_the_textbooks_over_every_combination_of_signs() -> None:
    deltas = np.random.default_rng(4).normal([-0.5, -0.3, 0.1], 0.5, (8, 3)) @ np.array(
        [[1, 0.5, 0.2], [0, 1, 0.3], [0, 0, 1]]
    )
    observed = [-hall(column) for column in deltas.T]
    flipped = np.array(
        [
            [-hall(column) for column in (deltas * np.array(signs)[:, None]).T]
            for signs in itertools.product([-1, 1], repeat=8)
        ]
    )
    left, running, expected = {0, 1, 2}, 0.0, {}
    for place in sorted(left, key=lambda place: -observed[place]):
        running = max(running, float(np.mean(flipped[:, sorted(left)].max(axis=1) >= observed[place] - 1e-9)))
        expected[place] = running
        left.remove(place)
    found = flip_tests(deltas, seed=1, resamples=20_000)
    assert [each.fell for each in found] == pytest.approx([expected[place] for place in range(3)], abs=0.015)
    assert min(expected.values()) < 0.1 < max(expected.values())


def test_metrics_that_say_the_same_cost_no_more_than_one() -> None:
    deltas = skewed(np.random.default_rng(3), 60)[:, None] - 0.05
    (alone,) = flip_tests(deltas, seed=1)
    together = flip_tests(np.repeat(deltas, 9, axis=1) * np.arange(1, 10), seed=1)
    assert 0.001 < alone.fell < 0.2
    assert [each.fell for each in together] == pytest.approx([alone.fell] * 9, abs=3e-4)


def test_a_metric_that_surely_fell_does_not_hide_another() -> None:
    rng = np.random.default_rng(5)
    surely, perhaps = rng.normal(-1, 0.5, 50), rng.normal(-0.3, 1, 50)
    (alone,) = flip_tests(perhaps, seed=1)
    beside = flip_tests(np.column_stack([surely, perhaps]), seed=1)[1]
    assert beside.fell == pytest.approx(alone.fell, abs=3e-4)
    assert 0.001 < alone.fell < 0.1


@pytest.mark.parametrize("equal", [1, 2, 3, 4])
def test_a_few_equal_changes_of_one_metric_do_not_hide_the_fall_of_another(equal: int) -> None:
    """Equal changes have no variance: drawn with one sign, their statistic is infinite."""
    fell = np.random.default_rng(8).normal(-0.5, 0.3, 293)
    null = np.full(293, np.nan)
    null[:equal] = -1.0
    found = flip_tests(np.column_stack([fell, null]), seed=1)
    assert found[0].fell < 0.001
    assert found[1].fell >= 0.9 / 2**equal


def test_a_rise_is_the_fall_of_the_opposite() -> None:
    deltas = np.random.default_rng(6).exponential(size=(40, 3)) - 0.8
    for one, other in zip(flip_tests(deltas, seed=1), flip_tests(-deltas, seed=1), strict=True):
        assert (one.fell, one.rose, one.two_sided) == (other.rose, other.fell, other.two_sided)


def test_a_case_without_a_value_says_nothing_for_that_metric() -> None:
    values = np.random.default_rng(9).normal(-0.3, 1, 40)
    both = np.column_stack([values, np.where(np.arange(40) < 30, values, np.nan)])
    (short,) = flip_tests(values[:30], seed=1)
    found = flip_tests(both, seed=1)[1]
    assert found.two_sided == pytest.approx(short.two_sided, abs=0.02)
    with pytest.raises(ValueError, match="at least one case"):
        flip_tests(np.column_stack([values, np.full(40, np.nan)]), seed=1)


@pytest.mark.parametrize("n", [30, 50, 300])
def test_a_change_that_is_none_is_called_one_about_as_often_as_said(n: int) -> None:
    rng = np.random.default_rng(100 + n)
    runs = 400
    called = sum(two_sided(skewed(rng, n), seed=run, resamples=500) < 0.05 for run in range(runs))
    low, high = share_interval(called, runs)
    assert low < 0.07, called
    assert high > 0.02, called


@pytest.mark.parametrize("skewness", ["none", "many small losses, few large gains"])
def test_of_nine_correlated_metrics_that_did_not_change_one_is_called_worse_about_as_often_as_said(
    skewness: str,
) -> None:
    rng = np.random.default_rng(17)
    called, runs = 0, 400
    for run in range(runs):
        values = 0.7 * rng.normal(size=(50, 1)) + 0.7 * rng.normal(size=(50, 9))
        if skewness != "none":
            values = np.exp(0.5 * values) - np.exp(0.5**2 * 0.98 / 2)
        called += any(test.fell < 0.05 for test in flip_tests(values, seed=run, resamples=300))
    low, high = share_interval(called, runs)
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


def test_few_heavy_cases_among_many_light_ones_count_for_few() -> None:
    rng = np.random.default_rng(13)
    weights = np.where(np.arange(300) < 10, 300.0, 1.0)
    covered, runs = 0, 300
    for run in range(runs):
        values = rng.normal(size=300)
        bounds = interval(
            values, resampled_means(values, seed=run, weights=weights, resamples=300)[:, 0], weights=weights
        )
        covered += bounds.low <= 0 <= bounds.high
    assert bounds.method == "student"
    assert share_interval(covered, runs)[1] > 0.95, covered
    assert interval(values, values, weights=np.full(300, 7.0)).method == "percentile", "all of one weight are all"


def test_a_weighted_test_asks_about_the_weighted_mean() -> None:
    deltas = np.array([-0.2] * 10 + [0.2] * 10)
    assert two_sided(deltas, seed=1) > 0.9
    (weighed,) = flip_tests(deltas, seed=1, weights=np.array([9.0] * 10 + [1.0] * 10))
    assert weighed.two_sided < 0.05
    assert weighed.fell < 0.05 < weighed.rose


def test_cases_of_a_cluster_change_sign_together() -> None:
    deltas = np.repeat([-0.3, -0.2, -0.4], 20)
    clusters = np.repeat(np.arange(3), 20).tolist()
    assert flip_tests(deltas, seed=1)[0].fell < 0.001
    assert flip_tests(deltas, seed=1, clusters=clusters)[0].fell == pytest.approx(1 / 8, abs=0.01)


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (1, 20), (7, 20), (48, 50), (225, 225)])
def test_the_bounds_of_a_share_are_those_of_clopper_and_pearson(successes: int, trials: int) -> None:
    values = np.arange(trials) < successes
    (found,) = bounded_intervals(values.astype(float), 0, 1, seed=3, resamples=40_000)
    exact = scipy.stats.binomtest(successes, trials).proportion_ci(method="exact")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.004)


def test_equal_cases_leave_room_for_what_they_did_not_show() -> None:
    (found,) = bounded_intervals(np.zeros(20), -1, 1, seed=1)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((-0.168, 0.168), abs=0.01)
    assert (1 - 0.05) ** unseen_cases(0.05) <= 0.025 < (1 - 0.05) ** (unseen_cases(0.05) - 1)


@pytest.mark.parametrize("n", [20, 50, 225])
@pytest.mark.parametrize("moving", [0.02, 0.05, 0.2])
def test_a_bound_of_few_moving_cases_misses_the_truth_no_more_often_than_said(n: int, moving: float) -> None:
    rng = np.random.default_rng(n)
    missed, runs = 0, 300
    for run in range(runs):
        values = -(rng.random(n) < moving).astype(float)
        (found,) = bounded_intervals(values, -1, 1, seed=run, resamples=400)
        assert found is not None
        missed += found.low > -moving
    assert share_interval(missed, runs)[0] < 0.025, missed


def test_the_unseen_case_weighs_as_much_as_the_heaviest() -> None:
    rng = np.random.default_rng(4)
    missed, runs = 0, 300
    for run in range(runs):
        weights = np.where(rng.random(225) < 0.1, 10.0, 1.0)
        values = (rng.random(225) < 0.95).astype(float)
        (found,) = bounded_intervals(values, 0, 1, seed=run, resamples=400, weights=weights)
        assert found is not None
        missed += not found.low <= 0.95 <= found.high
    assert share_interval(missed, runs)[0] < 0.05, missed


def test_a_metric_without_a_value_has_no_bounds_and_disturbs_no_other() -> None:
    values = np.column_stack([np.linspace(0, 1, 9), np.full(9, np.nan)])
    both, (alone,) = bounded_intervals(values, 0, 1, seed=1), bounded_intervals(values[:, 0], 0, 1, seed=1)
    assert both == [alone, None]


def test_cases_of_a_cluster_have_one_weight() -> None:
    values = np.repeat(np.random.default_rng(5).random(20), 10)
    (apart,) = bounded_intervals(values, 0, 1, seed=1)
    (together,) = bounded_intervals(values, 0, 1, seed=1, clusters=np.repeat(np.arange(20), 10).tolist())
    (few,) = bounded_intervals(values[::10], 0, 1, seed=1)
    assert apart is not None
    assert few is not None
    assert together is not None
    assert (together.low, together.high) == pytest.approx((few.low, few.high), abs=1e-9)
    assert together.high - together.low > 2 * (apart.high - apart.low)
