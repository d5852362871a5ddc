"""The channel that is always present: a line in the notifier's own log."""

import logging
from collections.abc import Sequence

from assay_notifier.channel import Channel
from assay_notifier.notice import Notice, line
from assay_schema.alerts import AlertState

log = logging.getLogger("assay.alerts")

_LEVELS = {AlertState.CRITICAL: logging.ERROR, AlertState.RESOLVED: logging.INFO, AlertState.OK: logging.INFO}


class LogChannel(Channel):
    """Logs an error for `critical`, information when an episode ends, and a warning otherwise."""

    name = "log"

    def __init__(self, data: str = "") -> None:
        self._data = data

    async def send(self, notices: Sequence[Notice]) -> None:
        """Log one line per notice."""
        for notice in notices:
            log.log(_LEVELS.get(notice.alert.state, logging.WARNING), "%s", line(notice.alert, self._data))
