"""Build the Alert documents of transitions. Pure; names and numbers only, never captured text."""

import uuid
from dataclasses import dataclass

from assay_drift.episodes import Transition
from assay_drift.messages import moment, summary
from assay_schema.alert_actions import acknowledge_command, query_of
from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, one_line, transition_id

_SEVERITY = {AlertState.WARN: Severity.WARNING, AlertState.CRITICAL: Severity.CRITICAL}


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of an alert. `key` is unique within the project."""

    kind: AlertKind
    project: str
    key: str
    metric: str | None = None
    series: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Measurements of an alert: see the fields of `Alert`."""

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
    #: Who acknowledged it, and why; empty if unknown.
    acknowledged_by: str = ""
    #: The limit of an amount.
    limit: float | None = None
    #: The reason for a condition, as the rest of a sentence.
    why: str = ""


def alert_id(subject: Subject, number: int, opened_ms: float) -> uuid.UUID:
    """Return the id of an episode: every replica computes the same."""
    return uuid.uuid5(
        uuid.NAMESPACE_OID, f"drift/{subject.kind}/{subject.project}/{subject.key}/{number}/{opened_ms:.0f}"
    )


def alert(subject: Subject, transition: Transition, opened_ms: float, measured: Measurements) -> Alert:
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
        since=moment(measured.since_ms),
        at=moment(transition.at_ms),
        value=_short(measured.value),
        baseline=_short(measured.baseline),
        effect=_short(measured.effect),
        interval=[round(end, 6) for end in measured.interval] if measured.interval else None,
        n=measured.n,
        evidence=_short(measured.evidence),
        group=f"{subject.project}/{subject.kind}",
        summary=summary(subject, transition.state, measured)[:500],
        acknowledge=acknowledge_command(identity, subject.kind),
    )
    return made.model_copy(update={"query": query_of(made)})


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")
