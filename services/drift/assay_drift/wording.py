"""Build the Alert documents of transitions. Pure; names and numbers only, never captured text."""

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from assay_drift.episodes import Transition
from assay_schema.alert_actions import acknowledge_command, query_of
from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, one_line, transition_id
from assay_schema.scores import ABSTAINED, CHECK_FAILED, NO_CONTEXT, is_amount, is_lower_better, is_of_answers

#: A limit in a summary, as `amount_text` formats it.
_LIMIT = re.compile(r"were above ([0-9][0-9,.e+-]{0,30}) (?:ms|characters)")
_SEVERITY = {AlertState.WARN: Severity.WARNING, AlertState.CRITICAL: Severity.CRITICAL}


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of an alert. `key` is unique within the project."""

    kind: AlertKind
    project: str
    key: str
    metric: str | None = None
    series: str | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of an alert: see the fields of `Alert`."""

    since_ms: float
    value: float | None = None
    baseline: float | None = None
    effect: float | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    evidence: float | None = None
    #: True if an operator accepted the current level; and the new baseline, once it is known.
    acknowledged: bool = False
    accepted: float | None = None
    #: The limit of an amount.
    limit: float | None = None
    #: The reason for a condition, as the rest of a sentence.
    why: str = ""


def alert_id(subject: Subject, number: int, opened_ms: float) -> uuid.UUID:
    """Return the id of an episode: every replica computes the same."""
    return uuid.uuid5(
        uuid.NAMESPACE_OID, f"drift/{subject.kind}/{subject.project}/{subject.key}/{number}/{opened_ms:.0f}"
    )


def alert(subject: Subject, transition: Transition, opened_ms: float, numbers: Numbers) -> Alert:
    """Build the alert document of a transition."""
    identity = alert_id(subject, transition.number, opened_ms)
    made = Alert(
        alert_id=identity,
        transition_id=transition_id(identity, transition.sequence),
        sequence=transition.sequence,
        kind=subject.kind,
        state=transition.state,
        previous=transition.previous,
        severity=_SEVERITY.get(transition.state, Severity.INFO),
        project=subject.project,
        metric=subject.metric,
        series=subject.series and one_line(subject.series),  # a producer's embedding model can have any name
        since=moment(numbers.since_ms),
        at=moment(transition.at_ms),
        value=_short(numbers.value),
        baseline=_short(numbers.baseline),
        effect=_short(numbers.effect),
        interval=[round(end, 6) for end in numbers.interval] if numbers.interval else None,
        n=numbers.n,
        evidence=_short(numbers.evidence),
        group=f"{subject.project}/{subject.kind}",
        summary=summary(subject, transition.state, numbers)[:500],
        acknowledge=acknowledge_command(identity, subject.kind),
    )
    return made.model_copy(update={"query": query_of(made)})


def moment(ms: float) -> datetime:
    """Convert Unix milliseconds to a time in UTC."""
    return datetime.fromtimestamp(round(ms) / 1000, UTC)


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"


def summary(subject: Subject, state: AlertState, numbers: Numbers) -> str:  # noqa: C901  # one line for each kind
    """Return one sentence: what happened, where, since when, and how much."""
    project, metric = subject.project, subject.metric or ""
    if numbers.acknowledged:
        return f"{_about(subject)} acknowledged by an operator{_learned_next(subject, numbers)}"
    over = state in (AlertState.RECOVERING, AlertState.RESOLVED)
    since = f"since {moment(numbers.since_ms):%Y-%m-%d %H:%M} UTC"
    value, base = _number(numbers.value), _number(numbers.baseline)
    match subject.kind:
        case AlertKind.SCORE_DRIFT if is_amount(metric):
            shares = f"{numbers.baseline or 0:.1%} of them were above {amount_text(metric, numbers.limit)}"
            if over:
                verb = "is back" if state is AlertState.RESOLVED else "is recovering"
                return f"{_about(subject)} {verb}: {shares}, now {numbers.value or 0:.1%} (n = {numbers.n})"
            return f"{_about(subject)} rose, {since}: {shares}, now {numbers.value or 0:.1%} (n = {numbers.n})"
        case AlertKind.SCORE_DRIFT:
            if over:
                verb = "is back" if state is AlertState.RESOLVED else "is recovering"
                return f"{_about(subject)} {verb}: {value}, baseline {base} (n = {numbers.n})"
            if is_of_answers(metric):
                shares = f"{numbers.baseline or 0:.1%} to {numbers.value or 0:.1%}"
                return f"{_about(subject)} rose from {shares} of its answers, {since} (n = {numbers.n})"
            verb = "rose" if is_lower_better(metric) else "fell"
            share = "" if numbers.effect is None else f", by {abs(numbers.effect):.1%}"
            judge = f", {numbers.why}" if numbers.why else ""
            return f"{_about(subject)} {verb} from {base} to {value}{share}, {since}{judge} (n = {numbers.n})"
        case AlertKind.RETRIEVAL_DRIFT:
            place = f"mean place {value} in the reference distribution, where 0.5 is unchanged (n = {numbers.n})"
            if over:
                return f"{_about(subject)} {'have recovered' if state is AlertState.RESOLVED else 'are recovering'}: {place}"
            distance = f"Kolmogorov-Smirnov distance {_number(numbers.effect)}"
            return f"{_about(subject)} shifted down {since} ({distance}): {place}"
        case AlertKind.QUERY_DRIFT:
            if over:
                return f"queries to {project} are back to their usual distribution"
            return f"queries to {project} have shifted: {value} standard deviations from usual days (limit {base})"
        case AlertKind.SILENCE:
            if over:
                return f"judging of {project} has resumed"
            why = f": {numbers.why}" if numbers.why else ""
            return f"only {value} answers of {project} were judged, {base} are usual{why}"
        case AlertKind.JUDGE_ERRORS:
            if over:
                return f"the judge has recovered for {project}: {value} of its answers end in an error"
            return f"the judge failed on {numbers.value or 0:.0%} of the answers of {project} in a day (limit {numbers.baseline or 0:.0%})"
        case AlertKind.FAILURES:
            return (
                f"no events of {project} were lost in a day"
                if over
                else f"{value} events of {project} were lost in a day"
            )
        case AlertKind.LAG:
            return f"{metric} has caught up" if over else f"{value} entries are waiting in {metric} (limit {base})"
        case AlertKind.WATERMARK_AGE:
            if over:
                return "storing has caught up"
            return f"events from more than {value} minutes ago are not all stored (limit {base} minutes)"
        case _:
            return f"{subject.kind}: {value} (limit {base})"


def _about(subject: Subject) -> str:
    match subject.kind:
        case AlertKind.SCORE_DRIFT if is_amount(subject.metric or ""):
            what, quantile = (subject.metric or "").rsplit("_", 1)
            part = "median" if quantile == "p50" else "95th percentile"
            done = {"answer": "answers", "search": "searches", "query": "queries"}.get(subject.series or "", "calls")
            return f"{what} of {done} of {subject.project} ({part})"
        case AlertKind.SCORE_DRIFT:
            return f"{_named(subject.metric or '')} of {subject.project}"
        case AlertKind.RETRIEVAL_DRIFT:
            return f"retrieval scores ({subject.metric}) of {subject.project}"
        case AlertKind.QUERY_DRIFT:
            return f"the queries to {subject.project}"
        case _:
            return f"{subject.kind.replace('_', ' ')} of {subject.project}"


def amount_text(metric: str, amount: float | None) -> str:
    """Format a latency or a cost with its unit.

    Events carry no tokens, so the unit of cost is characters.
    """
    if amount is None:
        return "their limit"
    return (
        f"{amount:,.0f} characters"
        if metric.startswith("cost")
        else f"{amount:,.3g} ms"
        if amount < 100
        else f"{amount:,.0f} ms"
    )


def limit_in(summary: str) -> float | None:
    """Parse the limit from the summary of an amount, as precisely as it is shown; None if there is none."""
    match = _LIMIT.search(summary)
    try:
        return float(match[1].replace(",", "")) if match else None
    except ValueError:
        return None


def _named(metric: str) -> str:
    """Return the display name of a metric."""
    if metric.startswith(CHECK_FAILED):
        return f"answers that fail the check {metric.removeprefix(CHECK_FAILED)}"
    return {ABSTAINED: "answers without a claim", NO_CONTEXT: "answers without passages"}.get(metric, metric)


def _learned_next(subject: Subject, numbers: Numbers) -> str:
    """Describe the effect of an acknowledgement. Conditions have no baseline to learn."""
    if subject.kind not in (AlertKind.SCORE_DRIFT, AlertKind.RETRIEVAL_DRIFT, AlertKind.QUERY_DRIFT):
        return ""
    if numbers.accepted is None:
        return ": a new baseline is being learned"
    return f": the baseline is now {_number(numbers.accepted)}, learned from the samples since the change"
