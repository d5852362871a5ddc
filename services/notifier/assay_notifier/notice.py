"""Text and labels of a notice, for people and for Alertmanager. Pure.

An alert contains no captured text, so neither does a notice. Every notice states what happened, since when, how much
and where, the query with details, the command that explains which part changed, and what the acknowledging command does.
With `data`, its commands name that data directory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from assay_schema.alert_actions import acknowledge_meaning, explain_command, in_directory
from assay_schema.alerts import ALL_PROJECTS, Alert, AlertState, Severity

#: Severity of an episode by its state; other states leave it unchanged.
SEVERITY = {AlertState.WARN: Severity.WARNING, AlertState.CRITICAL: Severity.CRITICAL}
#: The states in which an episode is over.
OVER = frozenset({AlertState.OK, AlertState.RESOLVED})
_MEANING = {
    AlertState.OK: "Healthy.",
    AlertState.WARN: "Warning: it may be getting worse.",
    AlertState.CRITICAL: "Critical: action needed.",
    AlertState.RECOVERING: "Recovering, but not resolved yet.",
    AlertState.RESOLVED: "The episode is closed.",
}
#: From worst to best.
_RANK = (AlertState.CRITICAL, AlertState.WARN, AlertState.RECOVERING, AlertState.RESOLVED, AlertState.OK)


@dataclass(frozen=True)
class Notice:
    """A transition to be sent, with the severity of its episode, and the previous severity if it changed."""

    alert: Alert
    severity: Severity
    former: Severity | None = None


def noticed(alert: Alert, known: Mapping[int, Severity]) -> Notice:
    """Build the notice of a transition. `known` has the episode's severities by sequence number."""
    before = [known[place] for place in sorted(known) if place < alert.sequence]
    if (own := SEVERITY.get(alert.state)) is None:
        return Notice(alert, before[-1] if before else SEVERITY.get(alert.previous, Severity.WARNING))
    return Notice(alert, own, before[-1] if before and before[-1] != own else None)


def is_over(alert: Alert) -> bool:
    """True if this transition ends its episode."""
    return alert.state in OVER


def title(alert: Alert) -> str:
    """Return one line: state, what happened, where."""
    return f"[{alert.state.upper()}] {_what(alert)} in {_where(alert)}"


def body(alert: Alert, data: str = "") -> str:
    """Return the details, one fact per line."""
    lines = [
        alert.summary,
        f"State: {alert.state}, previously {alert.previous}. {_MEANING[alert.state]}",
        f"Since: {_moment(alert.since)}. Changed at: {_moment(alert.at)}.",
    ]
    if measured := _measured(alert):
        lines.append(f"How much: {measured}.")
    lines.append(f"Where: {_where(alert)}{f', series {alert.series}' if alert.series else ''}.")
    if alert.query:
        lines.append("Look: " + in_directory(f'assay query "{alert.query}"', data))
    if explain := _explain(alert, data):
        lines.append(f"Explain: {explain}")
    if acknowledge := _acknowledge(alert, data):
        lines.append(f"To {acknowledge_meaning(alert.kind)}: {acknowledge}")
    lines.append(f"Episode {alert.alert_id}, transition {alert.sequence}.")
    return "\n".join(lines)


def grouped(alerts: Sequence[Alert], data: str = "") -> tuple[str, str]:
    """Return title and body of one notice about several transitions, the worst first."""
    if len(alerts) == 1:
        return title(alerts[0]), body(alerts[0], data)
    ranked = sorted(alerts, key=lambda alert: _RANK.index(alert.state))
    counts = {state: sum(alert.state == state for alert in alerts) for state in _RANK}
    states = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    projects = ", ".join(sorted({alert.project for alert in alerts}))
    head = f"[{ranked[0].state.upper()}] {len(alerts)} alerts in project {projects}: {states}"
    return head, "\n\n".join(f"{title(alert)}\n{body(alert, data)}" for alert in ranked)


def line(alert: Alert, data: str = "") -> str:
    """Return everything in one line, for a log."""
    measured = _measured(alert)
    parts = [f"{title(alert)}: {alert.summary}", f"({measured})" if measured else ""]
    explain = "" if is_over(alert) else _explain(alert, data)
    parts.append(f"explain: {explain}" if explain else "")
    acknowledge = _acknowledge(alert, data)
    parts.append(f"to {acknowledge_meaning(alert.kind)}: {acknowledge}" if acknowledge else "")
    return " ".join(part for part in parts if part)


def labels(alert: Alert, severity: Severity) -> dict[str, str]:
    """Return the labels that identify the alert in Alertmanager.

    They are constant during an episode, except for `severity`, which routes depend on.
    """
    named = {
        "alertname": "Assay" + "".join(part.capitalize() for part in alert.kind.split("_")),
        "severity": severity.value,
        "project": alert.project,
        "service": alert.service,
        "metric": alert.metric,
        "series": alert.series,
        "alert_id": str(alert.alert_id),
    }
    return {name: value for name, value in named.items() if value}


def annotations(alert: Alert, data: str = "") -> dict[str, str]:
    """Return the text for Alertmanager's templates; it may change during an episode."""
    facts = {
        "summary": title(alert),
        "description": body(alert, data),
        "state": alert.state.value,
        "transition": str(alert.sequence),
        "transition_id": str(alert.transition_id),
        "value": _number(alert.value),
        "baseline": _number(alert.baseline),
        "effect": _number(alert.effect),
        "interval": f"{_number(alert.interval[0])} to {_number(alert.interval[1])}" if alert.interval else "",
        "n": "" if alert.n is None else str(alert.n),
        "query": alert.query,
        "explain": _explain(alert, data),
        "acknowledge": (acknowledge := _acknowledge(alert, data)),
        "acknowledge_means": acknowledge and acknowledge_meaning(alert.kind),
    }
    return {name: text for name, text in facts.items() if text}


def _what(alert: Alert) -> str:
    kind = alert.kind.replace("_", " ")
    return f"{kind} of {alert.metric}" if alert.metric else kind


def _where(alert: Alert) -> str:
    where = "the whole system" if alert.project == ALL_PROJECTS else f"project {alert.project}"
    return where + (f", service {alert.service}" if alert.service else "")


def _explain(alert: Alert, data: str) -> str:
    return in_directory(explain_command(alert.alert_id, alert.kind, alert.metric), data)


def _acknowledge(alert: Alert, data: str) -> str:
    """Return the command that acknowledges the episode; '' if it is over: the command refuses that."""
    return "" if is_over(alert) else in_directory(alert.acknowledge, data)


def _measured(alert: Alert) -> str:
    parts = []
    if alert.value is not None:
        parts.append(f"now {_number(alert.value)}")
    if alert.baseline is not None:
        parts.append(f"baseline {_number(alert.baseline)}")
    if alert.effect is not None:
        parts.append(f"effect {_number(alert.effect)}")
    if alert.interval is not None:
        parts.append(f"95 % interval {_number(alert.interval[0])} to {_number(alert.interval[1])}")
    if alert.n is not None:
        parts.append(f"n {alert.n:,}")
    return ", ".join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _moment(moment: datetime) -> str:
    moment = moment.astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
