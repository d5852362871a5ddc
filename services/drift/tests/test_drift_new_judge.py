"""A drop that comes with another judge or prompt is told while the new series learns, and is not learned as what is normal."""

from dataclasses import replace
from typing import Any

import pytest

from assay_drift.monitor import Monitor
from assay_drift.simulation import Scenario
from assay_schema.alerts import Alert, AlertState
from assay_schema.settings import DriftSettings
from tests.bench.drift import told_while_learning
from tests.support.drift_samples import QUICK, START_MS, monitor, noise_of, score, stream

MINUTE = 60_000
OTHER = "1111222233334444"
#: The judge changes on day 6: learned for two days, watched for four.
CHANGED = 6.0


def feed(watched: Monitor, *, drop: float, days: float = 16, back_at: float = 1e9, per_day: int = 240) -> list[Alert]:
    alerts = []
    times = stream(days, per_day, drop_from=CHANGED, drop=drop, back_at=back_at)
    for number, (at_ms, value) in enumerate(times):
        changes: dict[str, Any] = {"fingerprint": OTHER} if at_ms >= START_MS + CHANGED * MINUTE else {}
        watched.observe_score(score(at_ms, value, number, **changes), at_ms)
        alerts += watched.take_alerts()
    return [alert for alert in alerts if alert.metric == "faithfulness"]


def test_a_drop_under_a_new_judge_is_a_warning_that_says_so_and_never_pages() -> None:
    alerts = feed(monitor(), drop=0.25)
    first = alerts[0]
    assert (first.state, first.series) == (AlertState.WARN, OTHER)
    assert first.at.timestamp() * 1000 < START_MS + (CHANGED + QUICK.learning_days) * MINUTE, "before it has learned"
    assert first.baseline == pytest.approx(0.85, abs=0.02)
    assert first.effect == pytest.approx(-0.25, abs=0.06)
    assert "scored by a different judge than before" in first.summary
    assert {alert.state for alert in alerts} == {AlertState.WARN}


def test_the_drop_is_not_learned_while_the_episode_is_open_and_is_when_it_is_accepted() -> None:
    watched = monitor()
    opened = feed(watched, drop=0.25, days=12)[0]
    series = watched.scores[f"acme/faithfulness/{OTHER}"]
    assert series.episode.open
    assert series.baseline is None
    watched = Monitor(QUICK, {name: data for name, data in watched.changes().items() if data})  # as after a restart
    watched.acknowledge([str(opened.alert_id)], START_MS + 13 * MINUTE)
    accepted = watched.scores[f"acme/faithfulness/{OTHER}"]
    assert not accepted.episode.open
    assert accepted.former is None
    assert accepted.baseline is not None
    assert accepted.baseline.mean == pytest.approx(0.64, abs=0.03)


def test_what_recovers_is_learned_without_its_bad_days() -> None:
    watched = monitor()
    alerts = feed(watched, drop=0.3, days=16, back_at=CHANGED + 2)
    assert [alert.state for alert in alerts] == [AlertState.WARN, AlertState.RECOVERING, AlertState.RESOLVED]
    baseline = watched.scores[f"acme/faithfulness/{OTHER}"].baseline
    assert baseline is not None
    assert baseline.mean == pytest.approx(0.85, abs=0.02)


@pytest.mark.parametrize("drop", [0.0, 0.05])
def test_a_judge_that_is_a_little_stricter_is_only_another_judge(drop: float) -> None:
    watched = monitor()
    assert feed(watched, drop=drop) == []
    assert watched.scores[f"acme/faithfulness/{OTHER}"].baseline is not None


SETTINGS = DriftSettings()
RIGHT_OR_WRONG = Scenario(per_day=200, weekend=1.0, day_deviation=0.0, right_or_wrong=True)


@pytest.mark.slow
def test_another_judge_of_long_sessions_raises_nothing() -> None:
    claims = sum(told_while_learning(replace(RIGHT_OR_WRONG, session=30), seed, SETTINGS) for seed in range(12))
    assert claims == 0, "without the first judge's design effect 35 in 100 are told"


def test_a_drop_of_a_fifth_under_another_judge_is_told_before_it_is_learned() -> None:
    assert sum(told_while_learning(RIGHT_OR_WRONG, seed, SETTINGS, drop=0.2) for seed in range(8)) >= 7


def test_the_first_judge_of_a_metric_has_nobody_to_be_compared_with() -> None:
    watched = monitor()
    feed(watched, drop=0.25, days=3)
    assert watched.scores["acme/faithfulness/9f2c4e1ab07d3355"].former is None


def test_a_share_that_no_judge_decides_goes_on_when_the_judge_changes() -> None:
    watched, alerts = monitor(), []
    noise = noise_of("shares")
    for number, (at_ms, _) in enumerate(stream(12, 240)):
        after = at_ms >= START_MS + CHANGED * MINUTE
        failed, abstained = noise.random() < (0.3 if after else 0.03), noise.random() < (0.3 if after else 0.05)
        changes: dict[str, Any] = {"fingerprint": OTHER} if after else {}
        changes |= {"checks": {"has_source": not failed}}
        if abstained:
            changes |= {"status": "abstained", "metrics": {}}
        watched.observe_score(score(at_ms, 0.85, number, **changes), at_ms)
        alerts += watched.take_alerts()
    opened = {alert.metric: alert for alert in alerts if alert.previous is AlertState.OK}
    assert opened.keys() == {"abstained", "check_failed_has_source"}
    for alert in opened.values():
        assert alert.series == OTHER
        assert alert.at.timestamp() * 1000 < START_MS + (CHANGED + 1) * MINUTE, "it does not learn first"
