"""Apprise channels: Slack, PagerDuty, Teams, e-mail and a hundred others.

Transitions that arrive together are sent as one notice.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay_notifier.channel import Channel, NotDeliveredError
from assay_notifier.notice import Notice, grouped, is_over
from assay_schema.alerts import Alert, AlertState

if TYPE_CHECKING:
    import apprise

#: Maximum number of transitions in one notice: chats truncate long messages.
MOST_IN_ONE = 10


class AppriseChannel(Channel):
    """One Apprise address.

    Delivery: at least once. These receivers know no ids, so a notice may appear twice after a crash.
    """

    def __init__(self, name: str, address: "apprise.Apprise", settings: str, data: str = "") -> None:
        self.name = name
        self._address = address
        self._settings = settings
        self._data = data

    def groups(self, notices: Sequence[Notice]) -> list[list[Notice]]:
        """Group transitions by alert group or project, at most `MOST_IN_ONE` in one notice."""
        together: dict[str, list[Notice]] = {}
        for notice in notices:
            together.setdefault(notice.alert.group or notice.alert.project, []).append(notice)
        return [
            found[start : start + MOST_IN_ONE]
            for found in together.values()
            for start in range(0, len(found), MOST_IN_ONE)
        ]

    async def send(self, notices: Sequence[Notice]) -> None:
        """Send one message for all notices; raise `NotDeliveredError` if the service rejects it."""
        alerts = [notice.alert for notice in notices]
        title, body = grouped(alerts, self._data)
        # Declared as text, it is escaped if the receiver expects HTML.
        taken: Any = await self._address.async_notify(
            body=body, title=title, notify_type=_type(alerts), body_format="text"
        )
        if not taken:
            raise NotDeliveredError(
                f"the service rejected the notice or cannot be reached; check its address in {self._settings}",
                passing=True,
            )


def _type(alerts: Sequence[Alert]) -> Any:
    import apprise

    states = {alert.state for alert in alerts}
    if AlertState.CRITICAL in states:
        return apprise.NotifyType.FAILURE
    if AlertState.WARN in states:
        return apprise.NotifyType.WARNING
    return apprise.NotifyType.SUCCESS if all(map(is_over, alerts)) else apprise.NotifyType.INFO


def address_of(url: str) -> "apprise.Apprise | None":
    """Parse an Apprise address; None if Apprise does not support it. The library is loaded on first use."""
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its log messages contain addresses
    # Truncation would cut the query and the acknowledgement; a long notice becomes several messages.
    address = apprise.Apprise(asset=apprise.AppriseAsset(secure_logging=True, app_id="Assay", app_desc="Assay alerts"))
    return address if address.add(url) else None
