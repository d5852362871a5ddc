"""Rates and states of the steps on the way of an event."""

import pytest

from assay_operations.doctor.redis_checks import GroupFacts
from assay_operations.overview.flow import FlowHistory, judged_state
from assay_operations.overview.stored import usual
from assay_schema.settings import DeliverySettings


def test_a_rate_needs_two_readings_some_seconds_apart() -> None:
    history = FlowHistory()
    assert history.rate("stored", 100.0, 10) is None
    assert history.rate("stored", 101.0, 12) is None
    assert history.rate("stored", 110.0, 110) == 10.0


def test_a_rate_forgets_what_is_older_than_ten_minutes() -> None:
    history = FlowHistory()
    for minute in range(30):
        history.rate("stored", minute * 60.0, 0 if minute < 20 else 600 * (minute - 19))
    assert history.rate("stored", 30 * 60.0, 600 * 11) == pytest.approx(10.0)


def test_a_counter_that_begins_again_gives_no_negative_rate() -> None:
    history = FlowHistory()
    history.rate("stored", 0.0, 1_000)
    assert history.rate("stored", 10.0, 3) is None
    assert history.rate("stored", 20.0, 13) == 1.0


def test_a_counter_that_redis_lost_gives_no_rate() -> None:
    assert FlowHistory().rate("stored", 0.0, None) is None


def test_a_rise_has_a_time_only_between_readings_that_are_near() -> None:
    history = FlowHistory()
    readings = [
        (0.0, 5, None),
        (10.0, 5, None),
        (20.0, 6, 0.0),
        (30.0, 6, 10.0),
        (100.0, 9, 80.0),
        (110.0, 2, 90.0),
        (120.0, 3, 0.0),
    ]
    assert [history.since_rise_s("refused", at_s, count) for at_s, count, _ in readings] == [
        each[2] for each in readings
    ]


def test_the_silence_of_redis_is_counted_from_its_last_answer() -> None:
    history = FlowHistory()
    assert history.silent_s(100.0) == 0.0, "it has not answered before"
    history.answered(100.0)
    assert history.silent_s(130.0) == 30.0
    assert history.silent_s(90.0) == 0.0, "the clock was set back"


@pytest.mark.parametrize(
    ("groups", "optional", "expected"),
    [
        ([], True, ("off", "not started")),
        ([], False, ("warn", "has not started yet")),
        ([GroupFacts("writer", 1, 0, 0, silent_ms=10)], False, ("good", "")),
        ([GroupFacts("writer", 0, 0, 5)], False, ("bad", "no writer is running")),
        ([GroupFacts("judge", 0, 0, 0)], True, ("off", "no judge is running")),
        ([GroupFacts("writer", 1, 0, 5, silent_ms=900_000)], False, ("bad", "no sign of life of the writer for 15 min")),
        ([GroupFacts("writer", 1, 0, 10_000_000, silent_ms=10)], False, ("warn", "lag above delivery.lag_limit_entries")),
        ([GroupFacts("writer", 1, 3, 0, 9_000_000, silent_ms=10)], False, ("warn", "entries are stuck")),
    ],
)  # fmt: skip
def test_a_step_is_as_its_service_reads(groups: list[GroupFacts], optional: bool, expected: tuple[str, str]) -> None:
    assert judged_state(groups, DeliverySettings(), optional=optional) == expected


def test_usual_hours_are_the_mean_of_the_weeks_that_have_events() -> None:
    assert usual([[2, 4], [4, 0]]) == (3.0, 2.0)
    assert usual([]) == ()
