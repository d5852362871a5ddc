"""What the drift service notices, and what it leaves alone."""

from typing import Any

import pytest

from assay_drift.monitor import LagSnapshot, Monitor
from assay_drift.series import Series
from assay_schema.alerts import Alert, AlertKind, AlertState
from assay_schema.scores import ScoreStatus
from assay_schema.settings import DriftSettings
from tests.support.drift_samples import DAY_MS, FINGERPRINT, QUICK, START_MS, asked, monitor, noise_of, score, stream

MINUTE = 60_000.0
DROP = {"days": 12, "per_day": 200, "drop_from": 5, "drop": 0.2, "back_at": 8}


def feed(watched: Monitor, **what: Any) -> list[Alert]:
    for number, (at_ms, value) in enumerate(stream(**what)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    return watched.take_alerts()


def of_faithfulness(watched: Monitor) -> list[Series]:
    return [series for key, series in watched.scores.items() if "/faithfulness/" in key]


def steps(alerts: list[Alert], kind: AlertKind = AlertKind.SCORE_DRIFT) -> list[str]:
    return [alert.state.value for alert in alerts if alert.kind is kind]


def test_a_quiet_series_raises_nothing() -> None:
    assert feed(monitor(), days=30, per_day=200) == []


def test_a_drop_is_one_episode_from_its_first_sign_to_its_resolution() -> None:
    alerts = [alert for alert in feed(monitor(), **DROP) if alert.kind is AlertKind.SCORE_DRIFT]
    states = steps(alerts)
    assert states[-2:] == ["recovering", "resolved"]
    assert set(states[:-2]) <= {"warn", "critical"}
    assert "critical" in states
    assert len({alert.alert_id for alert in alerts}) == 1
    assert [alert.sequence for alert in alerts] == list(range(1, len(alerts) + 1))
    assert len({alert.transition_id for alert in alerts}) == len(alerts)


def test_an_alert_says_what_since_when_how_much_and_what_to_do() -> None:
    alert = next(alert for alert in feed(monitor(), **DROP) if alert.state is AlertState.CRITICAL)
    assert (alert.project, alert.metric, alert.series) == ("acme", "faithfulness", FINGERPRINT)
    assert abs(alert.since.timestamp() * 1000 - (START_MS + 5 * MINUTE)) < 0.5 * MINUTE
    assert alert.value == pytest.approx(0.68, abs=0.06)
    assert alert.baseline == pytest.approx(0.85, abs=0.02)
    assert alert.effect == pytest.approx(-0.2, abs=0.07)
    assert alert.interval is not None
    assert alert.value is not None
    assert alert.interval[0] < alert.value < alert.interval[1]
    assert alert.n is not None
    assert alert.n >= QUICK.critical_samples
    assert alert.acknowledge == f"assay drift acknowledge {alert.alert_id}"
    assert "assay.scores" in alert.query
    assert alert.group == "acme/score_drift"


def test_a_metric_whose_judge_is_not_calibrated_never_pages() -> None:
    settings = QUICK.model_copy(update={"page_uncalibrated": False})
    assert "critical" not in steps(feed(monitor(settings), **DROP))
    assert "warn" in steps(feed(monitor(settings), **DROP))
    known = monitor(settings, calibrated=lambda *of: of == ("acme", FINGERPRINT, "faithfulness"))
    assert "critical" in steps(feed(known, **DROP))


def test_a_lower_is_better_metric_is_watched_for_its_rise() -> None:
    watched = monitor()
    for number, (at_ms, value) in enumerate(stream(**{**DROP, "back_at": 1e9})):
        document = score(at_ms, value, number, metrics={"hallucination_rate": round(1 - value, 6)})
        watched.observe_score(document, at_ms)
    [*_, alert] = [alert for alert in watched.take_alerts() if alert.kind is AlertKind.SCORE_DRIFT]
    assert alert.state is AlertState.CRITICAL
    assert alert.baseline == pytest.approx(0.15, abs=0.02)
    assert alert.value is not None
    assert alert.value > 0.25


def test_a_new_judge_starts_a_new_series_that_learns_first() -> None:
    watched = monitor()
    assert feed(watched, days=5, per_day=200) == []
    for number, (at_ms, value) in enumerate(stream(1, 200, start_ms=START_MS + 5 * MINUTE)):
        watched.observe_score(score(at_ms, value * 0.95, number, fingerprint="00000000aaaaaaaa"), at_ms)
    assert watched.take_alerts() == []
    assert [series.baseline is None for series in of_faithfulness(watched)] == [False, True]


def test_samples_outside_the_base_stream_and_passed_over_answers_say_nothing() -> None:
    watched = monitor()
    watched.observe_score(score(START_MS, 0.5, base=False), START_MS)
    watched.observe_score(score(START_MS, None, status=ScoreStatus.SKIPPED_BUDGET), START_MS)
    assert watched.scores == {}


def test_state_that_is_written_and_read_again_after_every_sample_makes_the_same_transitions() -> None:
    short = {"days": 8, "per_day": 60, "drop_from": 4, "drop": 0.3, "back_at": 5}
    settings = QUICK.model_copy(update={"clean_evaluations": 4, "critical_samples": 10})
    whole = feed(monitor(settings), **short)
    kept: dict[str, bytes] = {}
    found = []
    for number, (at_ms, value) in enumerate(stream(**short)):
        watched = monitor(settings, kept)
        watched.observe_score(score(at_ms, value, number), at_ms)
        kept = {name: data for name, data in {**kept, **watched.changes()}.items() if data is not None}
        found += watched.take_alerts()
    assert steps(found)[-1] == "resolved"
    assert found == whole


def test_acknowledging_accepts_what_is_as_the_new_normal() -> None:
    watched = monitor()
    alerts = feed(watched, **{**DROP, "days": 9, "back_at": 1e9})
    [done] = watched.acknowledge([alerts[-1].acknowledge.split()[-1]], START_MS)
    [resolved] = watched.take_alerts()
    assert (resolved.state, resolved.alert_id) == (AlertState.RESOLVED, alerts[-1].alert_id)
    assert done == str(resolved.alert_id)
    [series] = of_faithfulness(watched)
    assert series.baseline is not None
    assert series.baseline.mean == pytest.approx(0.68, abs=0.03)
    for number, (at_ms, value) in enumerate(stream(5, 200, start_ms=START_MS + 9 * MINUTE, seed=3)):
        watched.observe_score(score(at_ms, value * 0.8, 10_000 + number), at_ms)
    assert watched.take_alerts() == []


def test_the_present_level_of_an_episode_is_the_one_that_acknowledging_it_accepts() -> None:
    watched = monitor()
    alerts = feed(watched, **{**DROP, "days": 9, "back_at": 1e9})
    identity = str(alerts[-1].alert_id)
    [(found, (episode, measured))] = watched.present([identity, "unknown"]).items()
    assert (found, episode.open) == (identity, True)
    assert measured is not None
    assert measured.n != alerts[-1].n, "samples came after the last transition"
    watched.acknowledge([identity], START_MS)
    [resolved] = watched.take_alerts()
    assert (measured.value, measured.n) == (pytest.approx(resolved.value, rel=1e-5), resolved.n)
    [series] = of_faithfulness(watched)
    assert series.baseline is not None
    assert measured.accepted == pytest.approx(series.baseline.mean, abs=1e-9), "the level of the days after the change"
    assert watched.present([identity])[identity][0].open is False


def test_the_plain_rule_reports_a_day_that_is_more_than_ten_percent_worse() -> None:
    settings = QUICK.model_copy(update={"rule": "critical", "run_length_days": 1e30, "baseline_days": 5})
    what = {"days": 9, "per_day": 200, "drop_from": 6, "drop": 0.15}
    assert steps(feed(monitor(settings), **what))[0] == "critical"
    assert steps(feed(monitor(settings), **{**what, "drop": 0.05})) == []
    assert steps(feed(monitor(settings.model_copy(update={"rule": "off"})), **what)) == []


def test_a_slow_slide_that_drags_the_rolling_mean_along_is_measured_against_the_fixed_baseline() -> None:
    settings = QUICK.model_copy(update={"rule": "warn", "run_length_days": 1e30, "baseline_days": 5})
    watched = monitor(settings)
    for number, (at_ms, value) in enumerate(stream(40, 120)):
        worse = 1 - 0.005 * max(0.0, (at_ms - START_MS) / MINUTE - 8)
        watched.observe_score(score(at_ms, value * worse, number), at_ms)
    assert steps(watched.take_alerts())[:1] == ["warn"]


def test_silence_after_steady_traffic_is_an_alert_and_its_end_resolves_it() -> None:
    watched = monitor()
    feed(watched, days=5, per_day=240)
    last = START_MS + 5 * MINUTE
    watched.tick(last + MINUTE / 24, LagSnapshot())
    assert watched.take_alerts() == []
    for hour in range(2, 10):
        watched.tick(last + hour * MINUTE / 24, LagSnapshot())
    alerts = watched.take_alerts()
    assert steps(alerts, AlertKind.SILENCE) == ["warn", "critical"]
    for number, (at_ms, value) in enumerate(stream(1, 240, start_ms=last + 10 * MINUTE / 24)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    assert steps(watched.take_alerts(), AlertKind.SILENCE) == ["recovering", "resolved"]


def test_a_silence_ratio_of_zero_turns_the_alert_off() -> None:
    watched = monitor(QUICK.model_copy(update={"silence_ratio": 0.0}))
    feed(watched, days=5, per_day=240)
    for hour in range(1, 24):
        watched.tick(START_MS + (5 + hour / 24) * MINUTE, LagSnapshot())
    assert watched.take_alerts() == []


def test_nights_and_quiet_projects_are_no_silence() -> None:
    watched = monitor()
    for day in range(8):
        for number in range(200):  # all of a day's answers come in its first half
            at_ms = START_MS + (day + number / 400) * MINUTE
            watched.observe_score(score(at_ms, 0.9, number), at_ms)
        for hour in range(12, 24):
            watched.tick(START_MS + (day + hour / 24) * MINUTE, LagSnapshot())
    assert watched.take_alerts() == []


def test_judge_errors_above_five_percent_are_an_alert() -> None:
    for every, found in ((30, []), (8, ["warn"]), (1, ["critical"])):
        watched = monitor()
        for number, (at_ms, value) in enumerate(stream(1, 200)):
            watched.observe_score(score(at_ms, None if number % every == 0 else value, number), at_ms)
        assert steps(watched.take_alerts(), AlertKind.JUDGE_ERRORS) == found


def test_a_lost_event_is_an_alert_until_a_day_without_one() -> None:
    watched = monitor()
    watched.observe_lost("acme", START_MS, START_MS)
    for hour in range(1, 30):
        watched.tick(START_MS + hour * MINUTE / 24, LagSnapshot())
    assert steps(watched.take_alerts(), AlertKind.FAILURES) == ["warn", "recovering", "resolved"]


def test_losses_alert_within_seconds_in_the_middle_of_an_hour_with_their_number() -> None:
    watched = monitor(DriftSettings())
    for minute in range(90):
        watched.observe_score(score(START_MS + minute * 60_000, 0.9, minute), START_MS + minute * 60_000)
    lost_ms = START_MS + 90 * 60_000
    for _ in range(5):
        watched.observe_lost("acme", lost_ms, lost_ms)
    watched.tick(lost_ms + 2_000, LagSnapshot())
    [alert] = watched.take_alerts()
    assert (alert.kind, alert.state, alert.n) == (AlertKind.FAILURES, AlertState.WARN, 5)
    assert alert.summary == "5 events were lost in a day, of acme"


def test_losses_are_reported_again_when_they_have_grown_tenfold_also_by_a_monitor_that_read_the_state() -> None:
    watched, kept, alerts = monitor(DriftSettings()), dict[str, bytes | None](), list[Alert]()
    for number in range(120):
        at_ms = START_MS + number * 2_000
        watched.observe_lost("acme", at_ms, at_ms)
        watched.tick(at_ms, LagSnapshot())
        alerts += watched.take_alerts()
        kept |= watched.changes()
        watched = monitor(DriftSettings(), {name: data for name, data in kept.items() if data is not None})
    assert [(alert.state.value, alert.n, alert.sequence) for alert in alerts] == [
        ("warn", 1, 1), ("warn", 10, 2), ("warn", 100, 3),
    ]  # fmt: skip
    assert len({alert.alert_id for alert in alerts}) == 1
    assert alerts[0].summary == "1 event was lost in a day, of acme"


def test_a_loss_while_an_episode_recovers_opens_it_again() -> None:
    watched = monitor(DriftSettings())
    hours = (0.0, 1.0, *(float(hour) for hour in range(2, 25)))
    watched.observe_lost("acme", START_MS, START_MS)
    for hour in hours:
        watched.tick(START_MS + hour * 3_600_000, LagSnapshot())
    watched.observe_lost("acme", START_MS + 24.1 * 3_600_000, START_MS + 24.1 * 3_600_000)
    watched.tick(START_MS + 24.1 * 3_600_000, LagSnapshot())
    assert steps(watched.take_alerts(), AlertKind.FAILURES) == ["warn", "recovering", "warn"]


def test_lag_and_an_old_watermark_are_alerts_about_the_whole_system() -> None:
    watched = monitor(DriftSettings())
    for minute in range(20):
        late = minute < 5
        lags = LagSnapshot({"writer": 200_000 if late else 0}, 20.0 if late else 0.1)
        watched.tick(START_MS + minute * 60_000, lags)
    alerts = watched.take_alerts()
    assert steps(alerts, AlertKind.LAG) == ["warn", "recovering", "resolved"]
    assert steps(alerts, AlertKind.WATERMARK_AGE) == ["warn", "recovering", "resolved"]
    assert {alert.project for alert in alerts} == {"all"}
    assert {alert.acknowledge for alert in alerts} == {""}, "there is nothing to accept"


def test_a_lag_that_moves_around_its_limit_is_one_episode_however_long_it_lasts() -> None:
    watched, alerts = monitor(DriftSettings()), list[Alert]()
    kept: dict[str, bytes | None] = {}
    for second in range(0, 5_400, 2):
        late = second < 600 or (second < 3_600 and second % 20 < 4)
        watched.tick(START_MS + second * 1_000, LagSnapshot({"writer": 200_000 if late else 0}))
        alerts += watched.take_alerts()
        kept |= watched.changes()
        if second % 200 == 0:
            watched = Monitor(DriftSettings(), {name: data for name, data in kept.items() if data is not None})
    assert steps(alerts, AlertKind.LAG) == ["warn", "recovering", "resolved"]


def test_a_fall_of_retrieval_scores_is_found_on_whatever_scale_they_are() -> None:
    for scale in (1.0, 37.5):
        watched, noise = monitor(), noise_of(5)
        for number in range(2_000):
            day = number / 250
            at_ms = START_MS + day * MINUTE
            top = scale * noise.gauss(10 if day < 5 else 8.5, 1.5)
            watched.observe_traffic([asked(at_ms, number, scores=(top, top / 2))], at_ms)
        alerts = watched.take_alerts()
        assert {alert.metric for alert in alerts} == {"top_1", "mean_of_k"}
        assert {alert.kind for alert in alerts} == {AlertKind.RETRIEVAL_DRIFT}
        assert all(alert.at.timestamp() * 1000 > START_MS + 5 * MINUTE for alert in alerts)
        assert max(alert.effect or 0 for alert in alerts) >= QUICK.ks_effect


def topic(day: int, number: int, new: bool) -> str:
    noise = noise_of(f"{day}/{number}")
    topics = ["boots size", "tent repair", "rope knots", "stove fuel", "map reading", "rain jacket"]
    if new and noise.random() < 0.4:
        return f"refund invoice payment {noise.choice(['card', 'bank', 'late', 'wrong'])}"
    return f"{noise.choice(topics)} {noise.choice(['how', 'best', 'price', 'cheap', 'near me'])}"


def queries_of(watched: Monitor, days: range, *, new_from: int = 99) -> None:
    for day in days:
        at_ms = START_MS + day * MINUTE
        batch = [asked(at_ms + n, day * 1_000 + n, topic(day, n, day >= new_from)) for n in range(150)]
        watched.observe_traffic(batch, at_ms)


def test_people_asking_about_something_new_is_an_alert_that_quotes_nobody() -> None:
    watched = monitor()
    queries_of(watched, range(24), new_from=20)
    alerts = [alert for alert in watched.take_alerts() if alert.kind is AlertKind.QUERY_DRIFT]
    assert [alert.state for alert in alerts] == [AlertState.WARN]
    assert "refund" not in alerts[0].model_dump_json()
    [queries] = watched.queries.values()
    assert queries.shift is not None
    assert 1 <= len(queries.shift.grown) <= 3
    assert all(identity.count("-") == 4 for _, identities in queries.shift.grown for identity in identities)


def test_the_same_questions_day_after_day_are_no_drift() -> None:
    watched = monitor()
    queries_of(watched, range(32))
    assert watched.take_alerts() == []


def test_queries_written_and_read_again_every_day_are_compared_alike() -> None:
    whole = monitor()
    queries_of(whole, range(24), new_from=20)
    kept: dict[str, bytes] = {}
    found = []
    for day in range(24):
        watched = monitor(fields=kept)
        queries_of(watched, range(day, day + 1), new_from=20)
        kept = {name: data for name, data in {**kept, **watched.changes()}.items() if data is not None}
        found += watched.take_alerts()
    assert [alert.transition_id for alert in found] == [alert.transition_id for alert in whole.take_alerts()]


def test_many_series_that_move_together_alert_sooner_than_one_alone_and_share_a_group() -> None:
    def first_alert(moving: int) -> tuple[float, set[str]]:
        watched = monitor()
        for number, (at_ms, value) in enumerate(stream(days=8, per_day=100, drop_from=5, drop=0.08)):
            steady = next(iter(stream(1, 1, seed=number)))[1]
            metrics = {
                name: value if place < moving else steady
                for place, name in enumerate(
                    ("faithfulness", "citation_precision", "citation_recall", "answer_relevancy")
                )
            }
            watched.observe_score(score(at_ms, 0.5, number, metrics=metrics), at_ms)
        alerts = watched.take_alerts()
        return min(alert.at.timestamp() for alert in alerts), {alert.group for alert in alerts}

    alone, _ = first_alert(1)
    together, groups = first_alert(4)
    assert together < alone
    assert groups == {"acme/score_drift"}


def test_time_follows_the_samples_so_a_replay_of_last_year_is_no_silence() -> None:
    watched = monitor(DriftSettings())
    for number, (at_ms, value) in enumerate(stream(10, 60, day_ms=DAY_MS, start_ms=START_MS - 365 * DAY_MS)):
        watched.observe_score(score(at_ms, value, number), START_MS + number)
    watched.tick(START_MS + 3_600_000, LagSnapshot())
    assert watched.take_alerts() == []
