"""The base of the parts of `Capture`: what its methods need to capture an event."""

from datetime import datetime
from typing import Any


class Recorder:
    """Captures events, once `Capture` has implemented it."""

    _enabled: bool

    def _record(
        self,
        kind: str,
        payload: dict[str, Any],
        event_id: str,
        project: str | None,
        occurred_at: datetime | None,
        session_id: str | None,
        user_hash: str | None,
    ) -> str:
        raise NotImplementedError

    def _drop(self, reason: str, detail: str = "") -> None:
        raise NotImplementedError
