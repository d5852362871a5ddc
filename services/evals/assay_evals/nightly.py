"""The nightly evaluation: schedule, outcome and alerts.

At most once a day: an attempt with a result settles its night. A failed attempt (an error, no key, a killed process)
may be retried after an hour, three times in total, so that no record blocks permanently. Records from the future are
ignored.
"""

import hashlib
import re
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import orjson

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.comparison import MetricComparison
from assay_evals.compare.floors import FloorCheck
from assay_evals.compare.slices import SliceCheck, worst
from assay_evals.compare.verdicts import Stage, Verdict
from assay_evals.report.wording import shrinkage
from assay_runtime.store import Client, insert_json_rows
from assay_schema.alert_actions import nightly_group, query_of
from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, handed_in, one_line, transition_id
from assay_schema.settings import StoreSettings

#: Least time between two attempts that came to a result, and between an attempt that did not and the next.
APART, AGAIN_AFTER = timedelta(hours=20), timedelta(hours=1)
#: Attempts of a night that may fail to come to a result.
TRIES = 3
#: How far ahead of this clock a record may be: another host's clock.
CLOCK_SKEW = timedelta(minutes=5)
#: How long back attempts are read.
REMEMBERED_DAYS = 60


class Outcome(StrEnum):
    """Outcome of an attempt; `started` while it runs, or permanently if it was killed. The set is closed."""

    STARTED = "started"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"
    BUDGET_EXCEEDED = "budget_exceeded"
    RATE_LIMITED = "rate_limited"
    NO_JUDGE_KEY = "no_judge_key"


#: Outcomes that settle a night.
SETTLED = frozenset({Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.BUDGET_EXCEEDED})
_UNSETTLED = frozenset({Outcome.ERROR, Outcome.NO_JUDGE_KEY})


@dataclass(frozen=True)
class Attempt:
    """One attempt as stored. Times are in UTC; `alerts` are the JSON of its transitions."""

    attempt_id: uuid.UUID
    evaluation: str
    project: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome = Outcome.STARTED
    run_id: uuid.UUID | None = None
    run_name: str = ""
    baseline: str = ""
    cases: int = 0
    errored: int = 0
    failed_metrics: list[str] = field(default_factory=list)
    cost_usd: float = 0.0
    detail: str = ""
    alerts: list[str] = field(default_factory=list)


def evaluation_of(dataset: str, target: str) -> str:
    """Return the common name of a series of attempts: the dataset's name, and a hash of the target's."""
    return f"{dataset}@{hashlib.sha256(target.encode()).hexdigest()[:8]}"


def night_of(now: datetime, hour: int) -> datetime:
    """Return the start of the night that `now` belongs to."""
    began = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return began if began <= now else began - timedelta(days=1)


def why_not(attempts: Sequence[Attempt], now: datetime, hour: int, deadline: timedelta) -> str | None:
    """Return why no attempt may start now; None if one may."""
    believed = [each for each in attempts if each.started_at <= now + CLOCK_SKEW]
    night = night_of(now, hour)
    since = min(night, now - APART)
    if settled := [each for each in believed if each.outcome in SETTLED and each.started_at >= since]:
        return f"the last one ended as {settled[-1].outcome} at {settled[-1].started_at:%Y-%m-%d %H:%M} UTC; it runs once a day"
    tonight = [each for each in believed if each.started_at >= night and each.outcome is not Outcome.RATE_LIMITED]
    if [each for each in tonight if each.outcome is Outcome.STARTED and now - each.started_at < deadline]:
        return "an attempt is running, or was killed: it counts as an error after evals.deadline_minutes"
    failed = [each for each in tonight if each.outcome in _UNSETTLED or each.outcome is Outcome.STARTED]
    if len(failed) >= TRIES:
        return f"{len(failed)} attempts of this night had no result; the next night tries again"
    if failed and now - max(each.ended_at or each.started_at for each in failed) < AGAIN_AFTER:
        return "an attempt within the last hour had no result"
    return None


def last_passed(attempts: Sequence[Attempt]) -> Attempt | None:
    """Return the latest attempt that passed and has a run, which the next is compared with."""
    passed = [each for each in attempts if each.outcome is Outcome.PASS and each.run_id]
    return max(passed, key=lambda each: each.started_at, default=None)


def worth_comparing(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts to compare the next one with, in order of preference.

    These are the latest that passed, and the oldest inconclusive one since then, so that small losses do not add up
    unnoticed. The latter matters if no night has passed yet, as with floors of slices with too few cases.
    """
    passed = last_passed(attempts)
    undecided = [each for each in attempts if each.outcome is Outcome.INCONCLUSIVE and each.run_id]
    since = [each for each in undecided if passed is None or each.started_at > passed.started_at]
    return [*([passed] if passed else []), *sorted(since, key=lambda each: each.started_at)]


def judged(
    attempt: Attempt,
    paired: PairedRuns | None,
    floors: Sequence[FloorCheck] = (),
    checks: Sequence[SliceCheck] = (),
) -> Attempt:
    """Return the attempt with the outcome of its comparison, its floors, and the floors of slices.

    Without a baseline, a run passes if no case ended in an error and the floors are reached.
    """
    if attempt.cases and attempt.errored == attempt.cases:
        return replace(attempt, outcome=Outcome.ERROR, detail="every case ended in an error: is the target running?")
    if paired is None and attempt.errored:
        return replace(attempt, outcome=Outcome.ERROR, detail=f"{attempt.errored} cases ended in an error")
    verdict = worst(paired.comparison.verdict() if paired else Verdict.PASS, checks)
    missed = [each for each in floors if each.blocks]
    unscored = [each for each in floors if each.undecided]
    below = [each for each in checks if each.verdict is Verdict.FAIL and each.stage is Stage.BLOCK]
    failed = (
        [each.metric for each in _failed(paired)] + [each.metric for each in missed] + [each.name for each in below]
    )
    sentences = ["the first run: there is nothing to compare with"]
    if paired:
        sentences = [f"compared with {paired.baseline.run_id} over {paired.comparison.paired} cases"]
        sentences += [f"{attempt.errored} cases ended in an error"] if attempt.errored else []
        sentences += [shrinkage(each) for each in paired.comparison.shrunk if each.verdict is Verdict.FAIL]
    sentences += [f"floor: {each}" for each in (*missed, *unscored)] + [f"floor: {each.name}: {each}" for each in below]
    held = [(each.name, each.verdict, each.stage) for each in checks]
    if paired:
        held = [(each.metric, each.verdict, each.rule.stage) for each in paired.comparison.metrics] + held
    if undecided := [name for name, found, stage in held if found is Verdict.INCONCLUSIVE and stage is Stage.BLOCK]:
        sentences.append(f"too few cases for a decision: {', '.join(undecided)}")
    outcome = Outcome.FAIL if missed else Outcome(verdict.value)
    if unscored and outcome is not Outcome.FAIL:  # no baseline for the next: what was not scored is asked again
        outcome = Outcome.ERROR
    return replace(attempt, outcome=outcome, failed_metrics=list(dict.fromkeys(failed)), detail="; ".join(sentences))


def beyond_budget(attempt: Attempt, detail: str) -> Attempt:
    """Return the attempt if its budget did not cover all answers. A measured failure stays a failure."""
    if attempt.failed_metrics or attempt.errored:
        return replace(attempt, detail=f"{attempt.detail}; {detail}")
    return replace(attempt, outcome=Outcome.BUDGET_EXCEEDED, detail=detail)


def _failed(paired: PairedRuns | None) -> list[MetricComparison]:
    """Return the metrics for which it failed; non-blocking ones are only in the run."""
    blocking = [each for each in paired.comparison.metrics if each.rule.stage is Stage.BLOCK] if paired else []
    return [each for each in blocking if each.verdict is Verdict.FAIL]


#: Alerts on the quality, and on there being a result at all: what opens an episode, what ends it, what it says then.
_EPISODES = (
    (
        AlertKind.SCORE_DRIFT,
        {Outcome.FAIL},
        {Outcome.PASS, Outcome.INCONCLUSIVE},  # few cases pass seldom, and would leave an alert open for good
        "the nightly evaluation {0} no longer fails",
    ),
    (
        AlertKind.SILENCE,
        {Outcome.ERROR, Outcome.NO_JUDGE_KEY, Outcome.BUDGET_EXCEEDED},
        {Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE},
        "the nightly evaluation {0} has results again",
    ),
)


def transitions(attempts: Sequence[Attempt], attempt: Attempt, paired: PairedRuns | None = None) -> list[Alert]:
    """Return an attempt's alerts: an episode lasts from the first bad night to the first good one."""
    earlier_alerts = [Alert.model_validate_json(text) for each in attempts for text in each.alerts]
    found = []
    for kind, opens, closes, over in _EPISODES:
        of_kind = [alert for alert in earlier_alerts if alert.kind is kind]
        last = max(of_kind, key=lambda alert: (alert.at, alert.sequence), default=None)
        is_open = last is not None and last.state is not AlertState.RESOLVED
        if attempt.outcome in opens and not is_open:
            found.append(_opened(kind, attempt, paired))
        elif attempt.outcome in closes and is_open and last is not None:
            sequence = last.sequence + 1
            change = {
                "sequence": sequence,
                "transition_id": handed_in(transition_id(last.alert_id, sequence)),
                "previous": last.state,
                "state": AlertState.RESOLVED,
                "severity": Severity.INFO,
                "at": attempt.ended_at or attempt.started_at,
                "summary": one_line(over.format(attempt.evaluation))[:500],
            }
            found.append(last.model_copy(update=change))
    return found


def _opened(kind: AlertKind, attempt: Attempt, paired: PairedRuns | None) -> Alert:
    at = attempt.ended_at or attempt.started_at
    identity = handed_in(uuid.uuid5(attempt.attempt_id, kind))
    loss = (
        max(_failed(paired), key=lambda each: abs(each.delta), default=None) if kind is AlertKind.SCORE_DRIFT else None
    )
    summary = f"the nightly evaluation {attempt.evaluation} had no result: {attempt.outcome}"
    numbers: dict[str, object] = {}
    if kind is AlertKind.SCORE_DRIFT:
        summary = (
            f"the nightly evaluation {attempt.evaluation} failed: {', '.join(attempt.failed_metrics) or attempt.detail}"
        )
    if loss:
        relative = loss.delta / abs(loss.baseline) if loss.baseline else None
        numbers = {
            "metric": re.sub(r"[^a-z0-9_]", "_", loss.metric.replace("@", "_at_").lower())[:64],
            "value": loss.candidate,
            "baseline": loss.baseline,
            "effect": relative,
            "n": loss.n,
        }
    made = Alert.model_validate(
        {
            "alert_id": identity,
            "transition_id": handed_in(transition_id(identity, 1)),
            "sequence": 1,
            "kind": kind,
            "state": AlertState.WARN,
            "previous": AlertState.OK,
            "severity": Severity.WARNING,
            "project": attempt.project,
            "series": one_line(attempt.evaluation),
            "since": attempt.started_at,
            "at": at,
            "group": nightly_group(attempt.project),
            "summary": one_line(summary)[:500],
            **numbers,
        }
    )
    return made.model_copy(update={"query": query_of(made)})


def store_attempt(client: Client, settings: StoreSettings, attempt: Attempt) -> None:
    """Store an attempt: once at its start, once at its end.

    Repeat after an error. Raises the driver's errors.
    """
    row = {**asdict(attempt), "schema_version": 1, "detail": attempt.detail[:2_000]}
    line = orjson.dumps(row, default=str) + b"\n"
    insert_json_rows(client, f"{settings.base_database}.eval_outcomes", line, 1)


def read_attempts(client: Client, evaluation: str, project: str) -> list[Attempt]:
    """Return the attempts of the last days, the latest last. The client uses the views' database."""
    rows = client.query(
        "SELECT attempt_id, evaluation, project, toUnixTimestamp64Milli(started_at), toUnixTimestamp64Milli(ended_at),"  # noqa: S608  # constants
        " toString(outcome), run_id, run_name, baseline, cases, errored, failed_metrics, cost_usd, detail, alerts"
        " FROM eval_outcomes WHERE project = {project:String} AND evaluation = {evaluation:String}"
        f" AND started_at > now() - toIntervalDay({REMEMBERED_DAYS}) ORDER BY started_at, attempt_id",
        parameters={"project": project, "evaluation": evaluation},
    ).result_rows
    return [
        Attempt(row[0], row[1], row[2], _moment(row[3]), _moment(row[4]) if row[4] else None, Outcome(row[5]), *row[6:])
        for row in rows
    ]


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
