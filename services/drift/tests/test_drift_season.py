"""What a series does by itself is learned, and raises nothing: weeks, bad days, sessions. A drop is found all the same."""

import orjson
import pytest

from assay_drift.baseline import Total
from assay_drift.season import SLOTS, Means, Season, season_of, slot_of
from assay_drift.series import Calendar, Series
from assay_drift.simulation import DAY_MS, Scenario, run, samples
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings

SETTINGS = DriftSettings()
CALENDAR = Calendar(DAY_MS)
STEADY = {"per_day": 200, "weekend": 1.0, "day_deviation": 0.0}


def totals(*values: float) -> Total:
    made = Total()
    for value in values:
        made.add(value)
    return made


def watched(scenario: Scenario, seed: int, *, until: float = 1e9) -> Series:
    series = Series()
    for at, score in zip(*(each.tolist() for each in samples(scenario, seed)), strict=True):
        if at < until:
            series.observe(score, at * DAY_MS, SETTINGS, CALENDAR)
    return series


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        {"weekend": 0.92},
        {"weekend": 0.92, "volume": 10},
        {"weekend": 0.92, "sunday": 0.1},
        {"night": 0.85},
        {"day_deviation": 0.02, "per_day": 800},
        {"correlation": 0.5, "right_or_wrong": True},
        {"session": 10, "right_or_wrong": True},
        {"weekend": 0.97, "day_deviation": 0.01, "correlation": 0.5, "right_or_wrong": True},
    ],
    ids=lambda noise: ", ".join(f"{name} {value}" for name, value in noise.items()),
)
def test_what_happens_every_week_and_what_samples_have_in_common_raises_nothing(noise: dict[str, float]) -> None:
    for seed in range(2):
        scenario = Scenario(days=150, **STEADY | noise)  # type: ignore[arg-type]
        assert run(*samples(scenario, seed), SETTINGS, streams=5).transitions == (), "a project has five metrics"


def test_a_drop_is_critical_within_days_though_weekends_are_lower() -> None:
    for seed in range(3):
        scenario = Scenario(days=60, per_day=200, weekend=0.92, shape="step", drop=0.12, at_day=42 + seed)
        delay = run(*samples(scenario, seed), SETTINGS).first(AlertState.CRITICAL, after=scenario.at_day)
        assert delay is not None
        assert delay < 5


def test_the_week_is_learned_by_slots_of_six_hours() -> None:
    series = watched(Scenario(days=35, night=0.8, **STEADY), seed=1)  # type: ignore[arg-type]
    offsets = series.season.offsets
    assert len(offsets) == SLOTS
    nights, others = offsets[::4], [each for place, each in enumerate(offsets) if place % 4]
    assert all(-0.16 < each < -0.08 for each in nights), "0.8 of 0.85, and the mean is 0.81"
    assert all(0.01 < each < 0.07 for each in others)


def test_a_week_with_independent_samples_has_a_design_effect_of_about_one() -> None:
    effect = watched(Scenario(days=35, **STEADY), seed=2).season.design_effect  # type: ignore[arg-type]
    assert 1 <= effect < 2.5


def test_answers_of_a_session_count_as_few() -> None:
    noise = STEADY | {"session": 20}
    assert watched(Scenario(days=35, **noise), seed=3).season.design_effect > 4  # type: ignore[arg-type]


def test_more_samples_of_a_bad_day_are_no_more_days() -> None:
    assert Season(design_effect=3).effect_at(10) == 21
    assert Season(design_effect=3).effect_at(0.1) == 3
    assert Season().effect_at(10) == 1


def test_nothing_is_made_of_less_than_a_week_or_of_scores_that_never_differ() -> None:
    six = {day: totals(0.1, 0.9) for day in range(6)}
    assert season_of(six, {}) == Season(days=6)
    assert season_of({day: totals(1.0, 1.0) for day in range(20)}, {}).offsets == ()
    assert season_of({}, {}) == Season()


def test_a_slot_with_few_samples_is_hardly_believed() -> None:
    days = {day: totals(*[0.5, 0.9] * 50) for day in range(7)}
    slots = {slot_of(day * 24): Means.of([total]) for day, total in days.items()} | {1: Means.of([totals(0.0)])}
    season = season_of(days, slots)
    assert -0.1 < season.offsets[1] < 0, "one answer of 0 says little of the slot"


def test_the_season_survives_a_restart_and_is_absent_from_what_was_kept_before() -> None:
    series = watched(Scenario(days=20, **STEADY), seed=4)  # type: ignore[arg-type]
    kept = orjson.loads(orjson.dumps(series.dump()))
    assert Series.load(kept) == series
    del kept["season"], kept["slots"]
    assert Series.load(kept).season == Season()


def test_an_episode_is_not_learned_as_the_week() -> None:
    scenario = Scenario(days=36, per_day=500, weekend=1.0, shape="step", drop=0.3, at_day=14)
    before, after = (watched_with_episodes(scenario, until) for until in (14.01, 36.0))
    assert after.episode.open
    assert after.season == before.season


def watched_with_episodes(scenario: Scenario, until: float) -> Series:
    series = Series()
    for at, score in zip(*(each.tolist() for each in samples(scenario, 5)), strict=True):
        if at < until:
            series.observe(score, at * DAY_MS, SETTINGS, CALENDAR)
            series.evaluate(at * DAY_MS, 1, SETTINGS, CALENDAR)
    return series


def test_what_was_accepted_raises_nothing_again() -> None:
    """Days before the acknowledgement are no longer what later ones are compared with."""
    scenario = Scenario(days=75, per_day=500, weekend=0.97, shape="step", drop=0.14, at_day=40)
    series, opened = Series(), []
    for at, score in zip(*(each.tolist() for each in samples(scenario, 6)), strict=True):
        series.observe(score, at * DAY_MS, SETTINGS, CALENDAR)
        transition = series.evaluate(at * DAY_MS, 1, SETTINGS, CALENDAR)
        if transition and at > 45:
            opened.append((at, transition.state))
        if at > 45 and series.episode.open and not opened:
            series.acknowledge(at * DAY_MS, SETTINGS, CALENDAR)
    assert opened == []
