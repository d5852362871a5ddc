"""The test notice: an episode that is marked as a test and ends at once.

Pure except for the clock and a new id.
"""

import uuid
from datetime import UTC, datetime

from assay_notifier.notice import Notice
from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, transition_id


def sample_notices() -> list[Notice]:
    """Return a warning and its end."""
    alert_id, now = uuid.uuid4(), datetime.now(UTC)

    def notice(sequence: int, state: AlertState, previous: AlertState, severity: Severity) -> Notice:
        alert = Alert(
            alert_id=alert_id,
            transition_id=transition_id(alert_id, sequence),
            sequence=sequence,
            kind=AlertKind.SCORE_DRIFT,
            state=state,
            previous=previous,
            severity=severity,
            project="test",
            since=now,
            at=now,
            value=0.7,
            baseline=0.85,
            effect=-0.18,
            interval=[0.66, 0.74],
            n=500,
            summary="This is a test of `assay alerts test`; nothing is wrong.",
            query="SELECT 'a test'",
            acknowledge="nothing to do",
        )
        return Notice(alert, Severity.WARNING)

    return [
        notice(1, AlertState.WARN, AlertState.OK, Severity.WARNING),
        notice(2, AlertState.RESOLVED, AlertState.WARN, Severity.INFO),
    ]
