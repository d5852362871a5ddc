"""Build sample transitions of an alert episode."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, transition_id

EPISODE = uuid.UUID("00000000-0000-4000-8000-000000000001")
#: A whole episode, from quiet to quiet, with every state.
STATES = [AlertState.WARN, AlertState.CRITICAL, AlertState.RECOVERING, AlertState.RESOLVED]
_SEVERITY = {AlertState.WARN: Severity.WARNING, AlertState.CRITICAL: Severity.CRITICAL}


def transition(sequence: int, state: AlertState, previous: AlertState = AlertState.OK, **changes: Any) -> Alert:
    """Return one transition with all fields set."""
    alert_id = changes.pop("alert_id", EPISODE)
    now = datetime.now(UTC)
    facts: dict[str, Any] = {
        "alert_id": alert_id,
        "transition_id": transition_id(alert_id, sequence),
        "sequence": sequence,
        "kind": "score_drift",
        "state": state,
        "previous": previous,
        "severity": _SEVERITY.get(state, Severity.INFO),
        "project": "shop",
        "service": "search",
        "metric": "faithfulness",
        "series": "1f2e3d4c",
        "since": now - timedelta(hours=2),
        "at": now,
        "value": 0.7123456,
        "baseline": 0.85,
        "effect": -0.162,
        "interval": [0.68, 0.74],
        "n": 1234,
        "summary": "Faithfulness fell by 16 %.",
        "query": "SELECT day, value FROM quality_by_day WHERE metric = 'faithfulness'",
        "acknowledge": f"assay drift acknowledge {alert_id}",
    }
    facts |= changes
    return Alert.model_validate(facts | {"kind": AlertKind(facts["kind"])})


def episode(alert_id: uuid.UUID = EPISODE, **changes: Any) -> list[Alert]:
    """Return a whole episode in order."""
    before = [AlertState.OK, *STATES]
    return [
        transition(number, state, before[number - 1], alert_id=alert_id, **changes)
        for number, state in enumerate(STATES, 1)
    ]
