"""A system that stops answering, or whose answers fail a check, is noticed; what nobody sampled or paid for is told apart from it."""

from typing import Any

import pytest

from assay_drift.monitor import LagSnapshot, Monitor
from assay_drift.replay import replay
from assay_schema.alert_actions import samples_of
from assay_schema.alerts import Alert, AlertKind
from assay_schema.scores import ScoreStatus
from assay_schema.settings import DriftSettings
from tests.support.drift_samples import DAY_MS, FINGERPRINT, QUICK, START_MS, asked, monitor, noise_of, score

MINUTE = 60_000.0
HOUR = MINUTE / 24
#: Nobody calibrated the judge.
UNCALIBRATED = QUICK.model_copy(update={"page_uncalibrated": False})


def days(
    watched: Monitor, first: int, end: int, *, per_day: int = 200, day_ms: float = MINUTE, **changes: Any
) -> list[Alert]:
    """Days of answers, of which one in fifty makes no claim and one in a hundred fails a check, but for `changes`."""
    noise = noise_of(f"{first}/{end}")
    for number in range(first * per_day, end * per_day):
        at_ms = START_MS + number / per_day * day_ms
        found = {
            "status": ScoreStatus.ABSTAINED if noise.random() < 0.02 else ScoreStatus.SCORED,
            "checks": {"not_empty": True, "citations_exist": noise.random() >= 0.01},
        } | changes
        if found["status"] is not ScoreStatus.SCORED:
            found["metrics"] = {}
        watched.observe_score(score(at_ms, min(1.0, noise.gauss(0.85, 0.1)), number, **found), at_ms)
    return watched.take_alerts()


@pytest.mark.parametrize(
    ("changes", "metric", "words"),
    [
        ({"status": ScoreStatus.ABSTAINED}, "abstained", "answers without a claim of acme rose from 1."),
        ({"status": ScoreStatus.NO_CONTEXT}, "no_context", "answers without passages of acme rose from 0.0% to 100.0%"),
        (
            {"checks": {"not_empty": True, "citations_exist": False}},
            "check_failed_citations_exist",
            "answers that fail the check citations_exist of acme rose from",
        ),
    ],
)
def test_a_day_on_which_nothing_is_scored_or_a_check_always_fails_opens_an_alert_that_pages(
    changes: dict[str, Any], metric: str, words: str
) -> None:
    watched = monitor(UNCALIBRATED)
    assert days(watched, 0, 5) == []
    alerts = [alert for alert in days(watched, 5, 6, **changes) if alert.metric == metric]
    assert alerts[-1].state.value == "critical", (
        "whether an answer came is no opinion that a judge could be wrong about"
    )
    assert alerts[0].at.timestamp() * 1000 - START_MS < 5.5 * MINUTE
    assert {(alert.kind, alert.series) for alert in alerts} == {(AlertKind.SCORE_DRIFT, FINGERPRINT)}
    assert words in alerts[-1].summary
    value, has_one = samples_of(metric)
    assert value in alerts[-1].query
    assert has_one in alerts[-1].query


def test_the_return_of_answers_resolves_the_episode() -> None:
    watched = monitor(QUICK.model_copy(update={"clean_evaluations": 4}))
    days(watched, 0, 5)
    opened = days(watched, 5, 6, status=ScoreStatus.ABSTAINED)
    closed = days(watched, 6, 12)
    states = [alert.state.value for alert in [*opened, *closed] if alert.metric == "abstained"]
    assert states[-2:] == ["recovering", "resolved"]


def test_what_the_budget_did_not_reach_for_is_neither_silence_nor_an_abstention() -> None:
    watched = monitor(UNCALIBRATED)
    days(watched, 0, 5, per_day=480)
    alerts = days(watched, 5, 7, per_day=480, status=ScoreStatus.SKIPPED_BUDGET)
    for hour in range(12):
        watched.tick(START_MS + 7 * MINUTE - (12 - hour) * HOUR, LagSnapshot())
    assert [*alerts, *watched.take_alerts()] == [], "the judge itself has said that the budget is used up"


def test_a_check_is_watched_where_nothing_was_judged() -> None:
    watched = monitor(UNCALIBRATED)
    days(watched, 0, 5)
    broken = {"status": ScoreStatus.SKIPPED_BUDGET, "checks": {"not_empty": False, "citations_exist": True}}
    assert {alert.metric for alert in days(watched, 5, 6, **broken)} == {"check_failed_not_empty"}


@pytest.mark.parametrize(
    ("answers", "questions", "words"),
    [
        (True, True, "120 answers arrived and 0 were sampled (judge.base_rate, judge.base_floor_per_day)"),
        (
            False,
            True,
            "120 questions arrived and the judge received 0 answers (run assay doctor to see if it is running)",
        ),
        (False, False, "0 questions arrived"),
    ],
)
def test_silence_says_whether_nothing_was_asked_nothing_drawn_or_the_judge_does_not_run(
    answers: bool, questions: bool, words: str
) -> None:
    watched = monitor(UNCALIBRATED)
    days(watched, 0, 5, per_day=480)
    last = START_MS + 5 * MINUTE
    for number in range(121):
        at_ms = last + number * HOUR / 20
        if answers:
            drawn = {"status": ScoreStatus.NOT_SAMPLED, "base": False, "metrics": {}}
            watched.observe_score(score(at_ms, 0.5, number, **drawn), at_ms)
        if questions:
            watched.observe_traffic([asked(at_ms, number)], at_ms)
    watched.tick(last + 6 * HOUR + 1, LagSnapshot())
    [*_, alert] = [alert for alert in watched.take_alerts() if alert.kind is AlertKind.SILENCE]
    assert alert.state.value == "critical"
    assert alert.summary.endswith(f"are usual: {words}")


def test_few_answers_that_come_at_random_are_no_silence() -> None:
    watched, noise = monitor(DriftSettings()), noise_of(3)
    at_ms = START_MS
    for number in range(60 * 90):
        at_ms += noise.expovariate(60) * DAY_MS
        watched.observe_score(score(at_ms, 0.85, number), at_ms)
    assert watched.take_alerts() == [], "half of what is usual alone told twelve in these ninety days"


def test_state_of_an_older_assay_is_read_and_counts_on() -> None:
    watched = monitor(UNCALIBRATED)
    days(watched, 0, 5, per_day=480)
    kept = {name: data for name, data in watched.changes().items() if data is not None}
    import orjson

    older = orjson.loads(kept["project/acme"])
    for name in ("asked", "answers", "skipped"):
        del older[name]
    again = monitor(UNCALIBRATED, kept | {"project/acme": orjson.dumps(older)})
    assert days(again, 5, 6, per_day=480) == []


def test_the_history_of_a_share_is_worked_out_from_stored_scores() -> None:
    samples = [(START_MS + number * MINUTE / 200, float(number >= 1_000)) for number in range(1_200)]
    chart = replay("abstained", "abstained", samples, QUICK)
    assert [span.state for span in chart.spans][-1:] == ["critical"]
    assert (chart.points[0].mean, chart.points[-1].mean) == (0.0, 1.0)
    with pytest.raises(ValueError, match="not a metric"):
        samples_of("faithfulness'] OR 1=1 --")


@pytest.mark.slow
def test_shares_that_stay_as_they_are_raise_nothing_however_many_series_a_project_has() -> None:
    """A hundred days at the default settings: five metrics, two shares, four checks, of 60 answers a day."""
    watched, noise = monitor(DriftSettings()), noise_of(9)
    at_ms = START_MS
    for number in range(60 * 100):
        at_ms += noise.expovariate(60) * DAY_MS
        chance = noise.random()
        status = (
            ScoreStatus.ABSTAINED if chance < 0.05 else ScoreStatus.NO_CONTEXT if chance < 0.07 else ScoreStatus.SCORED
        )
        right = {
            name: float(noise.random() < 0.85)
            for name in ("faithfulness", "citation_precision", "citation_recall", "answer_relevancy")
        }
        checks = {f"check_{place}": noise.random() >= 0.01 * place for place in range(4)}
        metrics = right if status is ScoreStatus.SCORED else {}
        watched.observe_score(score(at_ms, 0.5, number, status=status, metrics=metrics, checks=checks), at_ms)
    assert len(watched.scores) == 10
    assert watched.take_alerts() == []
