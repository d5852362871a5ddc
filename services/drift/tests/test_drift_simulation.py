"""The detector keeps its promises on simulated scores: a small, seeded piece of `make bench SUITE=drift`. And its parts, one by one."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_drift.baseline import Total
from assay_drift.charts import Chart, Point, Span, svg, terminal
from assay_drift.detector import STAKES, Detector
from assay_drift.embedding import hashed
from assay_drift.fdr import evidence_needed
from assay_drift.retrieval import ks_distance, place_in
from assay_drift.simulation import Scenario, run, samples
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings

SETTINGS = DriftSettings()


def test_weekends_and_noisy_days_raise_nothing_in_a_hundred_days() -> None:
    assert run(*samples(Scenario(days=100), seed=11), SETTINGS).transitions == ()


def test_a_drop_of_15_percent_is_critical_within_a_day() -> None:
    delays = []
    for seed in range(3):
        found = run(*samples(Scenario(days=34, shape="step", drop=0.15, at_day=31 + seed / 3), seed), SETTINGS)
        delays.append(found.first(AlertState.CRITICAL, after=31 + seed / 3))
    assert None not in delays
    assert statistics.median(delay for delay in delays if delay is not None) < 0.6


def _steady(mean: float, days: int, *, right_or_wrong: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    scenario = Scenario(days=days, mean=mean, right_or_wrong=right_or_wrong, weekend=1.0, day_deviation=0.0)
    return samples(scenario, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "right_or_wrong"), [(0.85, 0.8, False), (0.85, 0.8, True), (0.95, 0.9, True)]
)
def test_a_small_drop_for_good_is_one_episode_that_is_never_called_over(
    before: float, after: float, right_or_wrong: bool
) -> None:
    for seed in (1, 2):
        days, scores = _steady(before, 40, right_or_wrong=right_or_wrong, seed=seed)
        later, worse = _steady(after, 60, right_or_wrong=right_or_wrong, seed=seed + 10)
        found = run(np.concatenate([days, later + 40]), np.concatenate([scores, worse]), SETTINGS, streams=5)
        assert found.episodes == 1
        assert found.first(AlertState.RESOLVED, after=0) is None


@pytest.mark.slow
@pytest.mark.parametrize("right_or_wrong", [False, True])
def test_what_is_back_is_called_over_within_days(right_or_wrong: bool) -> None:
    for seed in (1, 2):
        parts = [
            _steady(mean, days, right_or_wrong=right_or_wrong, seed=seed + place)
            for place, (mean, days) in enumerate(((0.85, 40), (0.77, 20), (0.85, 25)))
        ]
        times = np.concatenate([days + start for (days, _), start in zip(parts, (0, 40, 60), strict=True)])
        found = run(times, np.concatenate([scores for _, scores in parts]), SETTINGS, streams=5)
        over = found.first(AlertState.RESOLVED, after=40)
        assert over is not None
        assert 20 < over < 32


@given(st.lists(st.floats(0, 1), max_size=200), st.floats(0, 0.999))
def test_bets_stay_finite_and_no_less_than_nothing_whatever_comes(values: list[float], floor: float) -> None:
    detector = Detector()
    for place, value in enumerate(values):
        detector.update(value, place, floor, 1 + place % 3)
        assert all(0 <= bet < float("inf") for bet in detector.bets)
    assert Detector.load(detector.dump()) == detector
    assert len(detector.dump()) == len(STAKES) + 6 == 10


def test_the_change_is_dated_to_where_it_began() -> None:
    detector = Detector()
    for place in range(1_000):
        detector.update(0.9 if place < 600 else 0.6, place, 0.85)
    assert abs(detector.since_ms - 599) < 10
    assert detector.mean == pytest.approx(0.6, abs=0.01)


def test_one_series_of_many_needs_evidence_for_all_of_them_and_many_together_need_less() -> None:
    assert evidence_needed([15.0, 0.1, 0.1], streams=20) == 20
    assert evidence_needed([21.0, 0.1], streams=20) == 20
    assert evidence_needed([6.0] * 5, streams=20) == pytest.approx(4)
    assert evidence_needed([], streams=3) == 3


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_totals_add_up_to_what_numpy_says(values: list[float]) -> None:
    total = Total()
    for value in values:
        total.add(value)
    assert total.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert total.deviation == pytest.approx(np.std(values, ddof=1), abs=1e-6)


@pytest.mark.parametrize(
    ("value", "place"), [(-5.0, 0.0), (0.0, 0.0), (5.0, 0.5), (7.5, 0.75), (10.0, 1.0), (99.0, 1.0)]
)
def test_a_raw_score_has_its_place_among_the_reference(value: float, place: float) -> None:
    assert place_in([float(x) for x in range(11)], value) == pytest.approx(place)


def test_the_distance_of_samples_is_that_of_kolmogorov_and_smirnov() -> None:
    assert ks_distance([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]) == 0
    assert ks_distance([1.0, 2.0], [3.0, 4.0]) == 1
    assert ks_distance([1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]) == 0.5


def test_hashed_texts_have_length_one_and_similar_ones_are_near() -> None:
    first, second, other, empty = hashed(
        ["waterproof hiking boots", "hiking boots waterproof", "reset my password", ""]
    )
    assert np.linalg.norm(first) == pytest.approx(1)
    assert first @ second > first @ other
    assert not empty.any()


POINTS = tuple(
    Point(86_400_000.0 * d, 0.85 - 0.01 * d, 0.8 - 0.01 * d, 0.9, 50, 0.85, 10.0 ** (d - 5)) for d in range(8)
)


def test_a_chart_shows_every_day_and_marks_the_episode() -> None:
    chart = Chart("faithfulness of <acme>", POINTS, (Span("critical", 86_400_000.0 * 6, 86_400_000.0 * 8),))
    text = terminal(chart)
    assert "······CC" in text
    assert "baseline 0.850" in text
    picture = svg(chart)
    assert "faithfulness of &lt;acme&gt;" in picture
    assert picture.startswith("<svg ")
    assert "<title>critical</title>" in picture
    assert "Liberation Sans, Arial" in picture, "a PNG of it needs families by name"
    assert "var(" not in picture, "programs that convert SVG know no variables"
    assert "@media (prefers-color-scheme: dark)" in picture
    assert "no samples" in terminal(Chart("empty", ()))
    assert svg(Chart("empty", ())).endswith("</svg>")


@pytest.mark.parametrize(("mean", "per_day"), [(0.85, 150), (0.6, 150)])
def test_answers_that_are_right_or_wrong_raise_nothing_though_some_days_are_worse(mean: float, per_day: int) -> None:
    rng = np.random.default_rng(per_day)
    days = np.sort(rng.uniform(0, 200, 200 * per_day))
    found = run(days, (rng.random(len(days)) < mean).astype(float), SETTINGS)
    assert found.transitions == (), "without its standard errors the plain rule alone raises 7 to 33"


@pytest.mark.slow
def test_long_sessions_raise_nothing_though_some_days_are_worse() -> None:
    for seed in (0, 1):
        noise = Scenario(per_day=200, weekend=1.0, day_deviation=0.0, right_or_wrong=True, session=30)
        assert run(*samples(noise, seed), SETTINGS, streams=5).episodes == 0, (
            "the baseline's deviation alone raises 2 and 1"
        )
