"""The sample: reproducible, unbiased, nested, and never too small."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_judge.sampling import base_rate, draw, uniform
from assay_schema.ids import new_event_id

TODAY = date(2026, 3, 9)
IDS = [f"019b7f2e-5c00-7a3b-8c4d-{n:012x}" for n in range(20_000)]


def test_an_event_draws_the_same_number_whenever_and_however_it_comes() -> None:
    event_id = new_event_id()
    assert uniform(event_id, "assay") == uniform(event_id.upper(), "assay")
    assert uniform(event_id, "assay") != uniform(event_id, "another")


def test_numbers_are_spread_evenly() -> None:
    drawn = [uniform(event_id, "assay") for event_id in IDS]
    assert all(0 <= u < 1 for u in drawn)
    for edge in (0.05, 0.25, 0.5, 0.9):
        assert sum(u < edge for u in drawn) / len(drawn) == pytest.approx(edge, abs=0.012)


@given(st.floats(0, 1, exclude_max=True), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_boost_only_adds_to_the_base_stream(u: float, rate: float, boosted: float) -> None:
    plain, more = draw(u, rate), draw(u, rate, [("boost", boosted)])
    assert plain.base == more.base == (u < rate)
    assert more.sampled == (u < max(rate, boosted))
    assert not plain.sampled or more.sampled
    assert more.inclusion_probability == max(rate, boosted)
    assert more.base_probability == rate


def test_weights_undo_a_boost_of_bad_answers() -> None:
    """Bad answers are judged five times as often; the unweighted mean is wrong by far, the weighted one is not."""
    population = [(event_id, 0.0 if n % 10 == 0 else 1.0) for n, event_id in enumerate(IDS)]
    sample = []
    for event_id, value in population:
        drawn = draw(uniform(event_id, "assay"), 0.1, [("bad", 0.5)] if value == 0 else [])
        if drawn.sampled:
            sample.append((value, drawn.inclusion_probability))
    assert sum(value for value, _ in sample) / len(sample) < 0.75
    total, size = sum(value / chance for value, chance in sample), sum(1 / chance for _, chance in sample)
    assert total / size == pytest.approx(0.9, abs=0.02)
    assert total == pytest.approx(18_000, rel=0.05)


@pytest.mark.parametrize(
    ("yesterday", "rate"),
    [(10, 1.0), (50, 1.0), (100, 0.5), (1_000, 0.05), (100_000, 0.05)],
)
def test_a_quiet_project_is_judged_more_often(yesterday: int, rate: float) -> None:
    assert base_rate({TODAY - timedelta(days=1): yesterday}, TODAY, 0.05, 50) == rate


def test_a_day_without_traffic_is_passed_over_and_a_later_day_does_not_count() -> None:
    counts = {TODAY - timedelta(days=3): 100, TODAY + timedelta(days=1): 7}
    assert base_rate(counts, TODAY, 0.05, 50) == 0.5


def drawn_on(counts: dict[date, int], day: date, volume: int, pays_for: float | None = None) -> list[float]:
    """The share that each answer of a day met, in order."""
    return [base_rate(counts | {day: n}, day, 0.05, 50, pays_for) for n in range(volume)]


def test_a_monday_is_not_expected_to_be_a_sunday() -> None:
    monday, sunday = date(2026, 3, 9), date(2026, 3, 8)
    week = {monday - timedelta(days=back): 40 if back in (1, 2, 8, 9) else 5_000 for back in range(1, 15)}
    assert sum(drawn_on(week, monday, 5_000)) == pytest.approx(250, rel=0.01)
    assert sum(drawn_on(week, sunday, 40)) == 40
    first_week = {day: n for day, n in week.items() if day > monday - timedelta(days=5)}
    assert sum(drawn_on(first_week, monday, 5_000)) == pytest.approx(250, rel=0.01), "the busiest day of the week"
    after_a_holiday = week | {monday - timedelta(days=7): 40}
    assert sum(drawn_on(after_a_holiday, monday, 5_000)) == pytest.approx(250, rel=0.01)


def test_a_hundredfold_day_is_not_drawn_as_the_quiet_one_it_was_taken_for() -> None:
    expected = sum(drawn_on({TODAY - timedelta(days=1): 100}, TODAY, 10_000))
    assert 500 < expected < 700


@pytest.mark.parametrize("volume", [50_000, 100_000, 130_000, 300_000])
def test_the_budget_lasts_for_the_whole_day_at_whatever_volume(volume: int) -> None:
    shares = drawn_on({TODAY - timedelta(days=7): 100_000}, TODAY, volume, pays_for=1_111)
    assert sum(shares) <= 1_111
    assert min(shares) > 0
    if volume <= 100_000:
        assert len(set(shares)) == 1, "the same share from the first hour to the last"
        assert sum(shares) == pytest.approx(0.8 * 1_111 * volume / 100_000, rel=0.01)


def test_a_budget_that_pays_for_nothing_leaves_a_share_that_can_be_weighed() -> None:
    assert 0 < base_rate({TODAY - timedelta(days=1): 100}, TODAY, 0.05, 50, 0.0) < 1e-5


def test_a_new_project_begins_with_its_floor() -> None:
    assert base_rate({}, TODAY, 0.05, 50) == 1.0
    assert base_rate({TODAY: 49}, TODAY, 0.05, 50) == 1.0
    assert base_rate({TODAY: 50}, TODAY, 0.05, 50) == 0.05


def test_the_share_is_fixed_while_the_day_brings_what_was_expected() -> None:
    before = {TODAY - timedelta(days=1): 200}
    assert {base_rate(before | {TODAY: n}, TODAY, 0.05, 50) for n in range(200)} == {0.25}


def test_without_a_floor_the_share_is_as_it_is_set() -> None:
    assert base_rate({}, TODAY, 0.05, 0) == 0.05
