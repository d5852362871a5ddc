"""Prometheus Alertmanager (API v2), the preferred channel for on-call.

Alertmanager silences, groups, inhibits and routes alerts. An alert stays active as long as it is renewed: each post
carries an end in the future, and `keep_alive` posts it again while the episode is open. A resolved episode is posted
with its end. Alertmanager identifies an alert by its labels, so a repeated post changes nothing.
"""

import base64
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from assay_notifier.channel import Channel, NotDeliveredError
from assay_notifier.http import Post
from assay_notifier.notice import Notice, annotations, is_over, labels
from assay_runtime.clock import clock
from assay_schema.alerts import Alert, Severity

PATH = "/api/v2/alerts"


def posted(notice: Notice, expires: datetime, data: str = "") -> list[dict[str, Any]]:
    """Build the post for a transition. Pure.

    `severity` is a label, because routes depend on it. When it changes, the same post ends the alert with the previous
    severity.
    """
    alert = notice.alert
    ended = max(alert.at, alert.since)
    documents = [_document(alert, notice.severity, ended if is_over(alert) else expires, data)]
    if notice.former:
        documents.append(_document(alert, notice.former, ended, data))
    return documents


def _document(alert: Alert, severity: Severity, end: datetime, data: str) -> dict[str, Any]:
    return {
        "labels": labels(alert, severity),
        "annotations": annotations(alert, data),
        "startsAt": alert.since.isoformat(),
        "endsAt": end.isoformat(),
    }


class Alertmanager(Channel):
    """One Alertmanager, or all members of a cluster.

    Every member gets the post. One that accepts it is enough, because members share their alerts.
    """

    name = "alertmanager"

    def __init__(self, members: Sequence[Post], expire_s: float, data: str = "") -> None:
        self._members = members
        self._expire = timedelta(seconds=expire_s)
        self._data = data

    async def send(self, notices: Sequence[Notice]) -> None:
        """Post the notices to every member; raise `NotDeliveredError` if none accepts them."""
        expires = clock.now() + self._expire
        content = json.dumps(
            [document for notice in notices for document in posted(notice, expires, self._data)]
        ).encode()
        refusals: list[NotDeliveredError] = []
        for member in self._members:
            try:
                await member(content)
            except NotDeliveredError as error:
                refusals.append(error)
        if len(refusals) == len(self._members):
            raise refusals[0]


def member_address(url: str) -> tuple[str, dict[str, str]]:
    """Return the API address below a base address, and the header for its user and password. Pure.

    The user and password are removed from the address.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    headers = {}
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/") + PATH, parts.query, "")), headers
