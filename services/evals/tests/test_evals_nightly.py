"""When a nightly evaluation may run, and what its outcome tells whom."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from assay_evals.compare.compare_runs import compare_runs
from assay_evals.compare.floors import floor_checks
from assay_evals.compare.slices import SliceFloor, slice_checks
from assay_evals.compare.verdicts import Rule, Stage
from assay_evals.nightly import (
    Attempt,
    Outcome,
    beyond_budget,
    judged,
    last_passed,
    night_of,
    transitions,
    why_not,
    worth_comparing,
)
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_schema.alerts import AlertKind, AlertState

HOUR = 3
NIGHT = datetime(2026, 11, 20, HOUR, tzinfo=UTC)
DEADLINE = timedelta(hours=2)


def attempt(outcome: Outcome, at: datetime, *, ended: bool = True, **fields: object) -> Attempt:
    end = at + timedelta(minutes=10) if ended else None
    return Attempt(uuid.uuid4(), "golden@1", "p", at, end, outcome, **fields)  # type: ignore[arg-type]


def may(attempts: list[Attempt], now: datetime) -> bool:
    return why_not(attempts, now, HOUR, DEADLINE) is None


def test_a_night_begins_at_its_hour_and_lasts_a_day() -> None:
    assert night_of(NIGHT - timedelta(seconds=1), HOUR) == NIGHT - timedelta(days=1)
    assert night_of(NIGHT, HOUR) == NIGHT
    assert night_of(NIGHT + timedelta(hours=23), HOUR) == NIGHT


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.BUDGET_EXCEEDED])
def test_a_result_settles_its_night_and_the_next_night_is_due(outcome: Outcome) -> None:
    attempts = [attempt(outcome, NIGHT)]
    assert not may(attempts, NIGHT + timedelta(hours=23))
    assert may(attempts, NIGHT + timedelta(hours=24))


def test_a_late_result_holds_the_next_one_off_for_most_of_a_day() -> None:
    late = [attempt(Outcome.PASS, NIGHT + timedelta(hours=22))]
    assert not may(late, NIGHT + timedelta(hours=25))
    assert may(late, NIGHT + timedelta(hours=43))


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.NO_JUDGE_KEY])
def test_an_error_is_tried_again_after_an_hour_three_times_and_never_blocks_the_next_night(outcome: Outcome) -> None:
    attempts = [attempt(outcome, NIGHT)]
    assert not may(attempts, NIGHT + timedelta(minutes=30))
    assert may(attempts, NIGHT + timedelta(minutes=75))
    attempts += [attempt(outcome, NIGHT + timedelta(hours=hour)) for hour in (2, 4)]
    assert not may(attempts, NIGHT + timedelta(hours=20))
    assert may(attempts, NIGHT + timedelta(hours=24))


def test_a_killed_attempt_blocks_for_no_longer_than_the_deadline() -> None:
    killed = [attempt(Outcome.STARTED, NIGHT, ended=False)]
    assert not may(killed, NIGHT + timedelta(minutes=119))
    assert may(killed, NIGHT + timedelta(minutes=121))


def test_records_from_the_future_and_attempts_that_were_not_due_block_nothing() -> None:
    odd = [attempt(Outcome.PASS, NIGHT + timedelta(days=900)), attempt(Outcome.RATE_LIMITED, NIGHT)]
    assert may(odd, NIGHT + timedelta(minutes=1))


def a_run(name: str, value: float, cases: int = 90, errors: int = 0) -> Run:
    results = [
        CaseResult(f"c{n}", "technical", [], 10.0, {"mrr": min(1.0, value + 0.01 * (n % 3))}) for n in range(cases)
    ] + [CaseResult(f"e{n}", "technical", [], None, {}, "HTTP 500") for n in range(errors)]
    return Run(name, RunConfig("golden", "1", "f", "t"), "2026-11-20T03:00:00.000+00:00", None, results)


def ran(run: Run) -> Attempt:
    return attempt(Outcome.STARTED, NIGHT, run_id=uuid.uuid4(), cases=len(run.results), errored=len(run.errored))


def test_the_outcome_follows_the_comparison() -> None:
    good, bad, broken = a_run("good", 0.9), a_run("bad", 0.5), a_run("broken", 0.9, cases=0, errors=5)
    assert judged(ran(good), compare_runs(good, good)).outcome is Outcome.PASS
    failed = judged(ran(bad), compare_runs(good, bad))
    assert (failed.outcome, failed.failed_metrics) == (Outcome.FAIL, ["mrr"])
    assert judged(ran(broken), compare_runs(good, broken)).outcome is Outcome.ERROR
    assert judged(ran(good), None).outcome is Outcome.PASS
    assert judged(ran(a_run("some", 0.9, errors=1)), None).outcome is Outcome.ERROR


def test_the_next_night_is_compared_with_the_last_that_passed() -> None:
    nights = [
        attempt(outcome, NIGHT + timedelta(days=day), run_id=uuid.uuid4())
        for day, outcome in enumerate([Outcome.PASS, Outcome.PASS, Outcome.FAIL])
    ]
    assert last_passed(nights) == nights[1]
    assert last_passed([]) is None


def test_where_none_passed_the_oldest_that_could_not_tell_is_compared_with() -> None:
    outcomes = [Outcome.INCONCLUSIVE, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.INCONCLUSIVE]
    nights = [
        attempt(outcome, NIGHT + timedelta(days=day), run_id=uuid.uuid4()) for day, outcome in enumerate(outcomes)
    ]
    assert worth_comparing(nights[:3]) == [nights[0], nights[2]]
    assert worth_comparing(nights) == [nights[3], nights[4]]
    assert worth_comparing([]) == []


@pytest.mark.parametrize("first", [True, False], ids=["first", "compared"])
def test_a_floor_that_is_missed_fails_the_night_with_or_without_a_baseline(first: bool) -> None:
    rules = {"mrr": Rule(0.05, floor=0.95), "recall@5": Rule(0.05, floor=0.5, stage=Stage.WARN)}
    run = a_run("same", 0.9)
    paired = None if first else compare_runs(run, run, rules=rules)
    failed = judged(ran(run), paired, floor_checks(run, rules))
    assert (failed.outcome, failed.failed_metrics) == (Outcome.FAIL, ["mrr"])
    assert "floor: mrr: 0.910 misses its floor of 0.95" in failed.detail
    assert "recall" not in failed.detail, "a floor that only warns decides nothing"


@pytest.mark.parametrize(
    ("value", "cases", "outcome"),
    [(0.97, 90, Outcome.PASS), (0.5, 90, Outcome.FAIL), (0.97, 6, Outcome.INCONCLUSIVE)],
)
def test_the_floor_of_a_slice_decides_a_night_that_has_no_baseline(value: float, cases: int, outcome: Outcome) -> None:
    run, floors = a_run("sliced", value, cases), [SliceFloor("query_type", "mrr", 0.9)]
    came = judged(ran(run), None, (), slice_checks(run, (), floors, {}))
    assert came.outcome is outcome
    assert came.failed_metrics == (["query_type=technical mrr"] if outcome is Outcome.FAIL else [])
    assert ("too few cases for a decision: query_type=technical mrr" in came.detail) is (
        outcome is Outcome.INCONCLUSIVE
    )


@pytest.mark.parametrize("metric", ["score:Is-polite.2", "recall@10"])
def test_an_alert_on_any_metric_has_a_name_that_alerts_may_have(metric: str) -> None:
    def run(name: str, value: float) -> Run:
        results = [CaseResult(f"c{n}", "technical", [], 10.0, {metric: value}) for n in range(90)]
        return Run(name, RunConfig("golden", "1", "f", "t"), "2026-11-20T03:00:00.000+00:00", None, results)

    bad = run("bad", 0.2)
    paired = compare_runs(run("good", 0.9), bad, rules={metric: Rule(0.05)})
    (alert,) = transitions([], judged(ran(bad), paired), paired)
    assert alert.metric in ("score_is_polite_2", "recall_at_10")


def test_an_episode_opens_with_the_first_bad_night_and_ends_with_the_first_good_one() -> None:
    from dataclasses import replace

    story = [
        (Outcome.PASS, []),
        (Outcome.FAIL, [(AlertKind.SCORE_DRIFT, AlertState.WARN)]),
        (Outcome.FAIL, []),
        (Outcome.ERROR, [(AlertKind.SILENCE, AlertState.WARN)]),
        (
            Outcome.INCONCLUSIVE,
            [(AlertKind.SCORE_DRIFT, AlertState.RESOLVED), (AlertKind.SILENCE, AlertState.RESOLVED)],
        ),
        (Outcome.PASS, []),
        (Outcome.NO_JUDGE_KEY, [(AlertKind.SILENCE, AlertState.WARN)]),
    ]
    attempts: list[Attempt] = []
    episodes: list[tuple[uuid.UUID, int]] = []
    for day, (outcome, expected) in enumerate(story):
        one = attempt(outcome, NIGHT + timedelta(days=day), failed_metrics=["mrr"] if outcome is Outcome.FAIL else [])
        alerts = transitions(attempts, one)
        assert [(alert.kind, alert.state) for alert in alerts] == expected
        assert alerts == transitions(attempts, one), "published again, it is the same"
        episodes += [(alert.alert_id, alert.sequence) for alert in alerts]
        attempts.append(replace(one, alerts=[alert.model_dump_json() for alert in alerts]))
    assert len(set(episodes)) == 5
    assert len({alert_id for alert_id, _ in episodes}) == 3


def test_an_alert_names_the_metric_and_its_numbers() -> None:
    good, bad = a_run("good", 0.9), a_run("bad", 0.5)
    paired = compare_runs(good, bad)
    (alert,) = transitions([], judged(ran(bad), paired), paired)
    assert (alert.metric, alert.n) == ("mrr", 90)
    assert alert.baseline == pytest.approx(0.91)
    assert alert.value == pytest.approx(0.51)
    assert "mrr" in alert.summary


def test_a_regression_is_told_though_the_money_did_not_reach() -> None:
    good, bad, broken = a_run("good", 0.9), a_run("bad", 0.5), a_run("broken", 0.9, errors=5)
    failed = beyond_budget(judged(ran(bad), compare_runs(good, bad)), "3 answers went unjudged")
    assert (failed.outcome, failed.failed_metrics) == (Outcome.FAIL, ["mrr"])
    assert failed.detail.endswith("; 3 answers went unjudged")
    errored = beyond_budget(judged(ran(broken), None), "3 answers went unjudged")
    assert errored.outcome is Outcome.ERROR
    passed = beyond_budget(judged(ran(good), compare_runs(good, good)), "3 answers went unjudged")
    assert (passed.outcome, passed.detail) == (Outcome.BUDGET_EXCEEDED, "3 answers went unjudged")
