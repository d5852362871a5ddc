"""Comparisons and their three-valued verdict."""

import numpy as np
import pytest

from assay_evals.compare.comparison import Comparison, compare
from assay_evals.compare.verdicts import DEFAULT_RULES, Rule, Stage, Verdict, decide
from assay_evals.metrics.metric_names import QUANTILES, is_share
from assay_evals.report.wording import meaning
from assay_evals.statistics.intervals import Interval

BASE = np.random.default_rng(7).beta(8, 2, 300)


def verdict_of(shift: float, n: int = 300, noise: float = 0.05) -> Verdict:
    values = BASE[:n]
    after = values + shift + np.random.default_rng(8).normal(0, noise, n)
    return compare({"mrr": values}, {"mrr": after}, resamples=2000).verdict()


def test_a_drop_beyond_the_threshold_fails() -> None:
    assert verdict_of(-0.1) is Verdict.FAIL


def test_no_change_passes_when_there_are_cases_enough() -> None:
    assert verdict_of(0.0) is Verdict.PASS


def test_an_improvement_passes() -> None:
    assert verdict_of(0.2) is Verdict.PASS


def test_a_drop_that_is_sure_but_smaller_than_the_threshold_passes() -> None:
    assert verdict_of(-0.02, noise=0.01) is Verdict.PASS


def test_few_noisy_cases_decide_nothing_and_say_how_many_would() -> None:
    values = BASE[:12]
    after = values + np.random.default_rng(9).normal(-0.04, 0.3, 12)
    found = compare({"mrr": values}, {"mrr": after})
    assert found.verdict() is Verdict.INCONCLUSIVE
    needed = found.metrics[0].cases_needed
    assert needed is not None
    assert needed > 12
    assert found.verdict(inconclusive=Verdict.FAIL) is Verdict.FAIL
    assert found.verdict(inconclusive=Verdict.PASS) is Verdict.PASS


def test_a_loss_beyond_the_threshold_that_is_not_significant_needs_the_cases_that_detect_it() -> None:
    """Not those that tell it from the threshold: they would be the more, the closer the loss is to it."""
    noise = np.random.default_rng(9).normal(0, 0.2, 30)
    noise -= noise.mean()
    before = np.full(30, 0.5)
    needed = []
    for loss in (0.051, 0.06, 0.07):
        [metric] = compare({"mrr": before}, {"mrr": before + noise - loss}).metrics
        assert metric.verdict is Verdict.INCONCLUSIVE
        assert meaning(metric).startswith("worse, but not significantly: about ")
        needed.append(metric.cases_needed or 0)
    assert needed == sorted(needed, reverse=True)
    assert 60 < needed[2] < needed[0] < 250, needed


def test_a_significant_change_whose_interval_includes_0_says_which_test_decided() -> None:
    before, after = np.full(40, 1.0), np.full(40, 1.0)
    after[:8] = 0.5
    [metric] = compare({"mrr": before}, {"mrr": after}).metrics
    assert (metric.verdict, metric.interval.low < 0 <= metric.interval.high) == (Verdict.FAIL, True), metric
    assert "by the test that p is of; the interval is wider" in meaning(metric)
    [clear] = compare({"mrr": BASE}, {"mrr": BASE - 0.1}).metrics
    assert meaning(clear) == "significant: worse"


def test_lower_is_better_turns_the_direction() -> None:
    worse = compare({"hallucination_rate": BASE}, {"hallucination_rate": BASE + 0.1})
    assert worse.metrics[0].verdict is Verdict.FAIL
    assert worse.metrics[0].is_regression
    better = compare({"hallucination_rate": BASE}, {"hallucination_rate": BASE - 0.1})
    assert better.metrics[0].verdict is Verdict.PASS
    assert better.metrics[0].is_improvement


def test_a_mean_below_its_floor_fails_however_it_was_before() -> None:
    low = np.full(50, 0.6)
    assert compare({"mrr": low}, {"mrr": low}, rules={"mrr": Rule(0.05, floor=0.7)}).verdict() is Verdict.FAIL


def test_only_what_blocks_decides() -> None:
    rules = {"mrr": Rule(0.05, stage=Stage.WARN)}
    found = compare({"mrr": BASE}, {"mrr": BASE - 0.3}, rules=rules)
    assert found.metrics[0].verdict is Verdict.FAIL
    assert found.verdict() is Verdict.PASS


def test_cases_that_only_one_run_has_fail() -> None:
    assert Comparison([], 5, only_candidate=["x"]).verdict() is Verdict.FAIL
    assert Comparison([], 5, only_baseline=["x"]).verdict() is Verdict.FAIL


def test_a_slow_tail_fails() -> None:
    before = np.random.default_rng(10).exponential(50, 300)
    found = {m.metric: m for m in compare({"latency_ms": before}, {"latency_ms": before + 300}).metrics}
    assert found["latency_p95_ms"].verdict is Verdict.FAIL
    assert found["latency_p95_ms"].delta == pytest.approx(300)


def test_a_metric_that_applies_to_no_pair_is_left_out() -> None:
    nothing = np.full(5, np.nan)
    found = compare({"mrr": BASE[:5], "null_accuracy": nothing}, {"mrr": BASE[:5], "null_accuracy": nothing})
    assert [m.metric for m in found.metrics] == ["mrr"]


def test_the_same_seed_gives_the_same_comparison() -> None:
    after = BASE + np.random.default_rng(11).normal(0, 0.1, 300)
    assert compare({"mrr": BASE}, {"mrr": after}, seed=4) == compare({"mrr": BASE}, {"mrr": after}, seed=4)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), -0.1])
def test_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        Rule(threshold)


@pytest.mark.parametrize(
    ("delta", "low", "high", "expected"),
    [
        (-0.05, -0.08, -0.01, Verdict.FAIL),
        (-0.05, -0.11, 0.01, Verdict.INCONCLUSIVE),
        (-0.03, -0.06, -0.001, Verdict.INCONCLUSIVE),
        (-0.01, -0.049, 0.03, Verdict.PASS),
        (0.0, -0.05, 0.05, Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_follows_the_interval(delta: float, low: float, high: float, expected: Verdict) -> None:
    assert decide(delta, Interval(low, high, "percentile"), 0.9, Rule(0.05)) is expected


@pytest.mark.parametrize(("metric", "cases"), [*(("null_accuracy", n) for n in (1, 2, 3, 4)), ("score:polite", 3)])
def test_a_collapse_fails_however_few_cases_another_metric_has(metric: str, cases: int) -> None:
    ranks, few = np.concatenate([BASE[:293], [np.nan] * cases]), np.full(293 + cases, np.nan)
    few[-cases:] = 1.0
    before = {"mrr": ranks, "recall@10": ranks, metric: few}
    rules = {metric: Rule(0.05)}
    found = compare(before, {name: values * 0.0 for name, values in before.items()}, rules=rules)
    assert found.verdict() is Verdict.FAIL
    verdicts = {each.metric: (each.verdict, each.p_worse) for each in found.metrics}
    assert verdicts["mrr"][0] is Verdict.FAIL
    assert verdicts["mrr"][1] is not None
    assert verdicts["mrr"][1] < 0.001


def test_runs_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(ValueError, match="pair them by id"):
        compare({"mrr": BASE}, {"mrr": BASE[:3]})


def test_what_many_metrics_find_by_chance_fails_no_gate() -> None:
    rng = np.random.default_rng(21)
    before = {f"m{number}": BASE[:100] for number in range(20)}
    rules = dict.fromkeys(before, Rule(0.0))
    failed = 0
    for seed in range(40):
        after = {name: BASE[:100] + rng.normal(0, 0.1, 100) for name in before}
        found = compare(before, after, rules=rules, seed=seed, resamples=500)
        failed += any(metric.verdict is Verdict.FAIL for metric in found.metrics)
    assert failed <= 5, "without an adjustment about 16 would"


def test_what_fails_is_a_regression_that_is_told_from_chance() -> None:
    after = BASE - 0.1 + np.random.default_rng(8).normal(0, 0.05, 300)
    (found,) = compare({"mrr": BASE}, {"mrr": after}, resamples=2000).metrics
    assert (found.verdict, found.is_regression) == (Verdict.FAIL, True)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, Verdict.INCONCLUSIVE), (71, Verdict.INCONCLUSIVE), (120, Verdict.PASS)]
)
def test_few_cases_that_hardly_move_exclude_no_worsening(count: int, expected: Verdict) -> None:
    before, after = np.full(count, 0.5), np.full(count, 0.49)
    assert compare({"mrr": before}, {"mrr": after}).verdict() is expected


def test_a_single_cluster_tells_nothing_however_many_cases_it_has() -> None:
    after = BASE - 0.01 + np.random.default_rng(8).normal(0, 0.01, 300)
    assert compare({"mrr": BASE}, {"mrr": after}, clusters=["one"] * 300).verdict() is Verdict.INCONCLUSIVE


def spiky(rng: np.random.Generator, n: int) -> np.ndarray:
    """Milliseconds around 300, three in a hundred 3 s longer."""
    return rng.lognormal(np.log(300), 0.3, n) + np.where(rng.random(n) < 0.03, 3_000.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 225])
def test_a_latency_that_blocks_lets_an_unchanged_system_through(n: int) -> None:
    rules = {name: Rule(100.0, lower_is_better=True) for name in ("latency_p50_ms", "latency_p95_ms")}
    rng, passed = np.random.default_rng(21), 0
    for _ in range(200):
        columns = ({"latency_ms": spiky(rng, n)}, {"latency_ms": spiky(rng, n)})
        passed += compare(*columns, rules=rules).verdict() is Verdict.PASS
    assert passed >= 190, "95 in 100"
    slower = spiky(rng, n) + 400
    assert compare({"latency_ms": spiky(rng, n)}, {"latency_ms": slower}, rules=rules).verdict() is Verdict.FAIL


def test_a_single_latency_tells_nothing() -> None:
    one = {m.metric: m for m in compare({"latency_ms": np.array([10.0])}, {"latency_ms": np.array([900.0])}).metrics}
    assert one["latency_p95_ms"].verdict is Verdict.INCONCLUSIVE


def test_cases_count_by_their_weight() -> None:
    change = np.where(np.arange(300) < 60, -0.2, 0.1) + np.random.default_rng(8).normal(0, 0.01, 300)
    weights = np.where(np.arange(300) < 60, 10.0, 1.0)
    (plain,) = compare({"mrr": BASE}, {"mrr": BASE + change}).metrics
    (weighed,) = compare({"mrr": BASE}, {"mrr": BASE + change}, weights=weights).metrics
    assert (plain.verdict, weighed.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert weighed.delta == pytest.approx(np.average(change, weights=weights))
    assert weighed.candidate - weighed.baseline == pytest.approx(weighed.delta)


def test_what_only_one_run_measured_is_named_and_the_rest_compared() -> None:
    nothing = np.full(300, np.nan)
    found = compare({"mrr": BASE, "hit@5": BASE, "old": BASE}, {"mrr": BASE, "hit@5": nothing, "new": BASE})
    assert [metric.metric for metric in found.metrics] == ["mrr"]
    assert (found.metrics_only_baseline, found.metrics_only_candidate) == (["hit@5", "old"], ["new"])


@pytest.mark.parametrize("others", [0, 30])
def test_metrics_that_do_not_block_make_the_gate_no_less_sensitive(others: int) -> None:
    rng = np.random.default_rng(5)
    after = {"mrr": BASE - 0.06 + rng.normal(0, 0.3, 300)}
    before = dict.fromkeys(("mrr", *(f"other{number}" for number in range(others))), BASE)
    after |= {name: BASE + rng.normal(0, 0.1, 300) for name in before if name != "mrr"}
    found = compare(before, after, seed=1).metrics[0]
    assert found.p_value == found.p_holm < 0.05
    assert found.verdict is Verdict.FAIL


def test_metrics_that_move_together_do_not_hide_each_others_fall() -> None:
    drop = np.random.default_rng(14).normal(-0.05, 0.12, 40)
    alone = compare({"mrr": BASE[:40]}, {"mrr": BASE[:40] + drop}, rules={"mrr": Rule(0.0)}).metrics[0]
    names = ["mrr", *(f"m{number}" for number in range(8))]
    together = compare(
        dict.fromkeys(names, BASE[:40]), dict.fromkeys(names, BASE[:40] + drop), rules=dict.fromkeys(names, Rule(0.0))
    )
    assert 0.001 < alone.p_worse < 0.05
    assert [metric.p_worse for metric in together.metrics] == pytest.approx([alone.p_worse] * 9, abs=3e-4)
    assert {metric.verdict for metric in together.metrics} == {Verdict.FAIL}
    assert together.metrics[0].p_holm > 0.05, "Holm would have hidden it"


def test_worse_and_better_are_two_questions() -> None:
    noise = np.random.default_rng(15).normal(0, 0.05, 300)
    worse, better, slower = compare(
        {"mrr": BASE, "recall@5": BASE, "hallucination_rate": BASE},
        {"mrr": BASE - 0.1 + noise, "recall@5": BASE + 0.1 + noise, "hallucination_rate": BASE + 0.1 + noise},
    ).metrics
    assert worse.p_worse < 0.001 < 0.9 < worse.p_better
    assert better.p_better < 0.001 < 0.9 < better.p_worse
    assert slower.p_worse < 0.001 < 0.9 < slower.p_better
    assert [m.is_regression for m in (worse, better, slower)] == [True, False, True]
    assert [m.is_improvement for m in (worse, better, slower)] == [False, True, False]


@pytest.mark.parametrize(("mean", "improved"), [(0.030, False), (0.036, True)])
def test_a_change_that_only_the_one_sided_test_tells_is_not_called_one(mean: float, improved: bool) -> None:
    change = np.random.default_rng(16).normal(0, 1, 40)
    change = 0.1 * (change - change.mean()) / change.std() + mean
    (found,) = compare({"mrr": BASE[:40]}, {"mrr": BASE[:40] + change}).metrics
    assert found.p_better < 0.05
    assert found.p_value is not None
    assert (found.p_value < 0.05, found.is_improvement) == (improved, improved)


@pytest.mark.parametrize("metric", ["recall@1", "ndcg@3", "precision@20", "hit@100"])
def test_retrieval_blocks_at_whichever_rank_it_is_cut_off(metric: str) -> None:
    assert compare({metric: BASE}, {metric: BASE - 0.3}).verdict() is Verdict.FAIL
    gentle = {metric: Rule(0.05, stage=Stage.WARN)}
    assert compare({metric: BASE}, {metric: BASE - 0.3}, rules=gentle).verdict() is Verdict.PASS


@pytest.mark.parametrize("metric", ["novel", "novel@5", "recall@x", "recall"])
def test_a_metric_that_nobody_named_only_informs(metric: str) -> None:
    assert compare({metric: BASE}, {metric: BASE - 0.3}).verdict() is Verdict.PASS


def test_a_mean_that_only_rounding_keeps_from_its_floor_passes() -> None:
    values = np.array([0.1, 0.2, 0.3] * 30)
    floor = float(np.nextafter(values.mean(), 1))
    assert compare({"mrr": values}, {"mrr": values}, rules={"mrr": Rule(0.05, floor=floor)}).verdict() is Verdict.PASS


def test_every_default_rule_is_of_a_share_or_of_a_latency() -> None:
    assert {name for name in DEFAULT_RULES if not is_share(name)} == QUANTILES.keys()
