"""What alerts say: the metric itself, the right distance by its name, and who ended an episode."""

from functools import cache

import pytest

from assay_drift.alerts import Measurements, Subject, alert
from assay_drift.charts import Chart, Point, Span, terminal
from assay_drift.episodes import Transition
from assay_drift.messages import acknowledged_by, limit_in, summary
from assay_schema.alerts import Alert, AlertKind, AlertState
from tests.support.drift_samples import START_MS, asked, monitor, noise_of, score, stream

MINUTE = 60_000.0
FALLEN = Subject(AlertKind.SCORE_DRIFT, "acme", "acme/faithfulness/x", "faithfulness", "x")
RISEN = Subject(AlertKind.SCORE_DRIFT, "acme", "acme/hallucination_rate/x", "hallucination_rate", "x")
RETRIEVAL = Subject(AlertKind.RETRIEVAL_DRIFT, "acme", "acme/top_1/bm25", "top_1", "bm25")


@cache
def of_fallen_retrieval() -> tuple[Alert, Alert]:
    """The alert on scores of retrievals that fell, and what follows its acknowledgement an hour after the last sample."""
    watched, noise = monitor(), noise_of(5)
    for number in range(2_000):
        at_ms = START_MS + number / 250 * MINUTE
        watched.observe_traffic([asked(at_ms, number, scores=(noise.gauss(10 if number < 1_250 else 8, 1.5),))], at_ms)
    [*_, opened] = watched.take_alerts()
    watched.acknowledge([str(opened.alert_id)], START_MS + 68 * MINUTE)
    [ended] = watched.take_alerts()
    return opened, ended


def test_a_fall_and_a_rise_are_told_as_from_what_to_what() -> None:
    assert summary(
        FALLEN, AlertState.WARN, Measurements(since_ms=START_MS, value=0.68, baseline=0.85, effect=-0.2, n=30)
    ) == ("faithfulness of acme fell from 0.850 to 0.680, since 2026-01-05 00:00 UTC (n = 30)")
    assert summary(RISEN, AlertState.CRITICAL, Measurements(since_ms=START_MS, value=0.54, baseline=0.0809, n=30)) == (
        "hallucination rate of acme rose from 0.081 to 0.540, since 2026-01-05 00:00 UTC (n = 30)"
    )


def test_the_limit_of_an_amount_can_be_read_in_its_alert() -> None:
    for metric, limit in (("latency_p95", 12.34), ("latency_p50", 1_234_567.0), ("cost_p95", 48_211.0)):
        subject = Subject(AlertKind.SCORE_DRIFT, "acme", f"acme/{metric}/answer", metric, "answer")
        for state in (AlertState.WARN, AlertState.RESOLVED):
            told = summary(
                subject, state, Measurements(since_ms=START_MS, value=0.4, baseline=0.05, n=300, limit=limit)
            )
            assert limit_in(told) == pytest.approx(limit, rel=0.005), told
        assert (
            limit_in(
                summary(subject, AlertState.WARN, Measurements(since_ms=START_MS, value=0.4, baseline=0.05, n=300))
            )
            is None
        )
    assert limit_in("of them were above 1..2 ms") is None


def test_the_effect_on_a_lower_is_better_metric_is_relative_to_that_metric() -> None:
    watched = monitor()
    for number, (at_ms, value) in enumerate(stream(8, 200, drop_from=5, drop=0.3)):
        watched.observe_score(score(at_ms, value, number, metrics={"hallucination_rate": round(1 - value, 6)}), at_ms)
    [*_, found] = [each for each in watched.take_alerts() if each.kind is AlertKind.SCORE_DRIFT]
    assert found.value is not None
    assert found.baseline is not None
    assert found.effect is not None
    assert abs(found.effect - (found.value / found.baseline - 1)) < 1e-4
    assert "hallucination rate of acme rose from 0.1" in found.summary


def test_a_fall_of_retrieval_scores_is_told_as_the_share_of_usual_scores_below_them() -> None:
    opened, _ = of_fallen_retrieval()
    assert opened.value is not None
    assert f"a score is above {opened.value:.1%} of the usual ones, where 50% is unchanged" in opened.summary
    assert "distribution" not in opened.summary


def test_an_acknowledged_episode_says_so_with_the_time_of_the_acknowledgement() -> None:
    opened, ended = of_fallen_retrieval()
    assert (ended.alert_id, ended.state) == (opened.alert_id, AlertState.RESOLVED)
    assert ended.at.timestamp() * 1000 == START_MS + 68 * MINUTE
    hits = {"top_1": "first hit", "mean_of_k": "mean of all hits"}[opened.metric or ""]
    assert ended.summary == (
        f"retrieval scores ({hits}) of acme acknowledged by an operator: a new baseline is being learned"
    )
    assert acknowledged_by(ended.summary) == "an operator"
    assert acknowledged_by(opened.summary) == ""


def test_a_baseline_that_an_acknowledgement_finds_is_named_as_people_read_the_metric() -> None:
    watched = monitor()
    for number, (at_ms, value) in enumerate(stream(9, 200, drop_from=5, drop=0.2)):
        watched.observe_score(score(at_ms, value, number, metrics={"hallucination_rate": round(1 - value, 6)}), at_ms)
    [*_, opened] = watched.take_alerts()
    identity = str(opened.alert_id)
    watched.acknowledge([identity], START_MS + 9 * MINUTE, {identity: "ana (a new\nmodel)"})
    [ended] = watched.take_alerts()
    assert "acknowledged by ana (a new model): the baseline is now 0.3" in ended.summary
    assert acknowledged_by(ended.summary) == "ana (a new model)"


def test_what_came_back_by_itself_is_still_told_as_being_back() -> None:
    step = Transition(AlertState.RECOVERING, AlertState.RESOLVED, 1, 4, START_MS)
    fallen = Measurements(since_ms=START_MS, value=0.84, baseline=0.85, n=9)
    retrieval = Measurements(since_ms=START_MS, value=0.48, baseline=0.5, n=9)
    assert "is back: 0.840, usual 0.850" in alert(FALLEN, step, START_MS, fallen).summary
    assert (
        "have recovered: a score is above 48.0% of the usual ones"
        in alert(RETRIEVAL, step, START_MS, retrieval).summary
    )


def test_a_history_in_short_days_marks_each_day_with_its_own_episodes() -> None:
    points = tuple(Point(START_MS + day * MINUTE, 0.8, 0.7, 0.9, 50, 0.8, 0.0) for day in range(4))
    spans = (Span("critical", START_MS + 2 * MINUTE, START_MS + 4 * MINUTE),)
    drawn = terminal(Chart("faithfulness", points, spans, MINUTE))
    assert "episodes  ··CC" in drawn
    assert "2026-01-05 00:00:00 to 2026-01-05 00:03:00" in drawn
