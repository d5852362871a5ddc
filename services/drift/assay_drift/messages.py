"""Wording of alerts: one sentence for each kind. Pure; names and numbers only, never captured text."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from assay_schema.alerts import AlertKind, AlertState, one_line
from assay_schema.scores import ABSTAINED, CHECK_FAILED, NO_CONTEXT, is_amount, is_lower_better, is_of_answers, is_share
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_drift.alerts import Measurements, Subject

#: A limit in a summary, as `amount_text` formats it.
_LIMIT = re.compile(r"were above ([0-9][0-9,.e+-]{0,30}) (?:ms|characters)")
#: In the summary of the transition that closed an acknowledged episode: then who did it, and `_learned_next`.
ACKNOWLEDGED_BY = " acknowledged by "
_ACKNOWLEDGED = re.compile(ACKNOWLEDGED_BY + r"(.+?)(?:: a new baseline is being learned|: the baseline is now .*)?$")
#: The reason of an alert while a series is compared with the previous judge's.
OTHER_JUDGE = "scored by a different judge than before"


def moment(ms: float) -> datetime:
    """Convert Unix milliseconds to a time in UTC."""
    return datetime.fromtimestamp(round(ms) / 1000, UTC)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{value:.1%}"


def _level(metric: str, value: float | None) -> str:
    """Format a level of a series of scores: a share of answers as a percentage, a judge's metric as a mean from 0 to 1."""
    return _percent(value) if is_share(metric) else "?" if value is None else f"{value:.3f}"


def summary(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    """Return one sentence: what happened, where, since when, and how much."""
    if measured.acknowledged:
        by = one_line(measured.acknowledged_by)[:250] or "an operator"
        return f"{_about(subject)}{ACKNOWLEDGED_BY}{by}{_learned_next(subject, measured)}"
    kind = "amount" if subject.kind is AlertKind.SCORE_DRIFT and is_amount(subject.metric or "") else subject.kind
    sentence = _SENTENCES.get(kind, _other)
    return sentence(subject, state, measured)


def _is_over(state: AlertState) -> bool:
    return state in (AlertState.RECOVERING, AlertState.RESOLVED)


def _since(measured: "Measurements") -> str:
    return f"since {moment(measured.since_ms):%Y-%m-%d %H:%M} UTC"


def _returns(state: AlertState) -> str:
    return "is back" if state is AlertState.RESOLVED else "is recovering"


def _amount(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    limit = amount_text(subject.metric or "", measured.limit)
    shares = (
        f"{measured.baseline or 0:.1%} of them were above {limit}, now {measured.value or 0:.1%} (n = {measured.n})"
    )
    if _is_over(state):
        return f"{_about(subject)} {_returns(state)}: {shares}"
    return f"{_about(subject)} rose, {_since(measured)}: {shares}"


def _score(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    metric = subject.metric or ""
    value, base = _level(metric, measured.value), _level(metric, measured.baseline)
    if _is_over(state):
        return f"{_about(subject)} {_returns(state)}: {value}, usual {base} (n = {measured.n})"
    of = " of its answers" if is_of_answers(metric) else ""
    verb = "rose" if is_lower_better(metric) else "fell"
    judge = f", {measured.why}" if measured.why else ""
    return f"{_about(subject)} {verb} from {base} to {value}{of}, {_since(measured)}{judge} (n = {measured.n})"


def _retrieval(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    # The mean place of the new scores among those of the reference.
    place = f"a score is above {_percent(measured.value)} of the usual ones, where 50% is unchanged (n = {measured.n})"
    if _is_over(state):
        return f"{_about(subject)} {'have recovered' if state is AlertState.RESOLVED else 'are recovering'}: {place}"
    return f"{_about(subject)} fell {_since(measured)}: {place}"


def _queries(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    if _is_over(state):
        return f"queries to {subject.project} are back to their usual distribution"
    value, base = _number(measured.value), _number(measured.baseline)
    return f"queries to {subject.project} have shifted: {value} standard deviations from usual days (limit {base})"


def _silence(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    if _is_over(state):
        return f"judging of {subject.project} has resumed"
    value, base = _number(measured.value), _number(measured.baseline)
    why = f": {measured.why}" if measured.why else ""
    return f"only {value} answers of {subject.project} were judged, {base} are usual{why}"


def _judge_errors(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    project = subject.project
    if _is_over(state):
        return f"the judge has recovered for {project}: {_number(measured.value)} of its answers end in an error"
    share, limit = f"{measured.value or 0:.0%}", f"{measured.baseline or 0:.0%}"
    return f"the judge failed on {share} of the answers of {project} in a day (limit {limit})"


def _failures(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    if _is_over(state):
        return f"no event of {subject.project} was lost in a day"
    count = int(measured.value or 0)
    return f"{counted(count, 'event was', 'events were')} lost in a day, of {subject.project}"


def _lag(subject: "Subject", state: AlertState, measured: "Measurements") -> str:
    if _is_over(state):
        return f"{subject.metric or ''} has caught up"
    value, base = _number(measured.value), _number(measured.baseline)
    return f"{value} entries are waiting in {subject.metric or ''} (limit {base})"


def _watermark(_: "Subject", state: AlertState, measured: "Measurements") -> str:
    if _is_over(state):
        return "storing has caught up"
    value, base = _number(measured.value), _number(measured.baseline)
    return f"events from more than {value} minutes ago are not all stored (limit {base} minutes)"


def _other(subject: "Subject", _: AlertState, measured: "Measurements") -> str:
    return f"{subject.kind}: {_number(measured.value)} (limit {_number(measured.baseline)})"


_SENTENCES: dict[str, Callable[["Subject", AlertState, "Measurements"], str]] = {
    "amount": _amount,
    AlertKind.SCORE_DRIFT: _score,
    AlertKind.RETRIEVAL_DRIFT: _retrieval,
    AlertKind.QUERY_DRIFT: _queries,
    AlertKind.SILENCE: _silence,
    AlertKind.JUDGE_ERRORS: _judge_errors,
    AlertKind.FAILURES: _failures,
    AlertKind.LAG: _lag,
    AlertKind.WATERMARK_AGE: _watermark,
}


def _about(subject: "Subject") -> str:
    match subject.kind:
        case AlertKind.SCORE_DRIFT if is_amount(subject.metric or ""):
            what, quantile = (subject.metric or "").rsplit("_", 1)
            part = "median" if quantile == "p50" else "95th percentile"
            done = {"answer": "answers", "search": "searches", "query": "queries"}.get(subject.series or "", "calls")
            return f"{what} of {done} of {subject.project} ({part})"
        case AlertKind.SCORE_DRIFT:
            return f"{_named(subject.metric or '')} of {subject.project}"
        case AlertKind.RETRIEVAL_DRIFT:
            hits = {"top_1": "first hit", "mean_of_k": "mean of all hits"}.get(subject.metric or "", subject.metric)
            return f"retrieval scores ({hits}) of {subject.project}"
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


def acknowledged_by(summary: str) -> str:
    """Parse who acknowledged an episode from the summary of its last transition; empty if it recovered."""
    match = _ACKNOWLEDGED.search(summary)
    return match[1] if match else ""


def _named(metric: str) -> str:
    """Return the display name of a metric."""
    if metric.startswith(CHECK_FAILED):
        return f"answers that fail the check {metric.removeprefix(CHECK_FAILED)}"
    known = {ABSTAINED: "answers without a claim", NO_CONTEXT: "answers without passages"}
    return known.get(metric, metric.replace("_", " "))


def _learned_next(subject: "Subject", measured: "Measurements") -> str:
    """Describe the effect of an acknowledgement. Conditions have no baseline to learn."""
    if subject.kind not in (AlertKind.SCORE_DRIFT, AlertKind.RETRIEVAL_DRIFT, AlertKind.QUERY_DRIFT):
        return ""
    if measured.accepted is None:
        return ": a new baseline is being learned"
    is_score = subject.kind is AlertKind.SCORE_DRIFT
    level = _level(subject.metric or "", measured.accepted) if is_score else _number(measured.accepted)
    return f": the baseline is now {level}, learned from the samples since the change"
