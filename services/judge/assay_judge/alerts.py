"""Alerts of the judge itself: judging stopped, a budget used up, the judge drifted.

Each episode is announced once when it begins and once when it ends.
"""

import uuid
from collections.abc import Callable
from datetime import date, datetime
from typing import Literal, Protocol

from assay_judge import messages
from assay_judge.scripts import ALERT
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_schema.alert_actions import query_of
from assay_schema.alerts import ALL_PROJECTS, Alert, AlertKind, AlertState, Severity, one_line, transition_id
from assay_schema.settings import JudgeSettings
from assay_schema.streams import ALERTS, PREFIX, shard_of

#: Milliseconds for which an open episode is remembered.
KNOWN_MS = 30 * 86_400_000
#: Project of the anchors' scores and alerts.
ANCHORS_PROJECT = "assay-anchors"


class Alerts(Protocol):
    """Receives the conditions of a judge that operators are alerted to."""

    async def stopped(self, why: str) -> None:
        """Report that judging stopped because the API refuses our calls; an empty reason: it resumed."""

    async def budget(self, project: str, used_up: bool) -> None:
        """Report that today's budget, of a project or of all, is used up or available again."""

    async def judge_drift(self, worse: str) -> None:
        """Report that the control set's results became worse; with an empty string, that they recovered."""


class NoAlerts:
    """Ignores all conditions."""

    async def stopped(self, why: str) -> None:
        """Do nothing."""

    async def budget(self, project: str, used_up: bool) -> None:
        """Do nothing."""

    async def judge_drift(self, worse: str) -> None:
        """Do nothing."""


NO_ALERTS = NoAlerts()


class AlertPublisher:
    """Publishes alerts, one episode at a time over all replicas and restarts.

    The key of an open episode in Redis, with its start, guarantees this.
    """

    def __init__(self, client: Client, shards: int, fingerprint: str, settings: JudgeSettings) -> None:
        self._script = client.register_script(ALERT)
        self._client = client
        self._shards = shards
        self._fingerprint = fingerprint
        self._settings = settings
        #: Alerts that this process published or found settled, with the day.
        self._seen: dict[tuple[AlertKind, str, bool], date] = {}

    async def stopped(self, why: str) -> None:
        """Report that judging stopped because the API refuses our calls; an empty reason: it resumed."""
        if why:
            await self._open(AlertKind.JUDGE_STOPPED, ALL_PROJECTS, messages.judging_stopped(why))
        else:
            await self._close(AlertKind.JUDGE_STOPPED, ALL_PROJECTS, messages.JUDGING_RESUMED, before=None)

    async def budget(self, project: str, used_up: bool) -> None:
        """Report that today's budget, of a project or of all, is used up or available again.

        Available money ends the episode of an earlier day.
        """
        today, asked = clock.now().date(), (AlertKind.BUDGET, project, used_up)
        if self._seen.get(asked) == today:
            return
        if used_up:
            scope: Literal["project", "all"] = "all" if project == ALL_PROJECTS else "project"
            summary = messages.budget_used_up(self._budget(project), scope)
            await self._open(AlertKind.BUDGET, project, summary)
        else:
            await self._close(AlertKind.BUDGET, project, messages.BUDGET_AVAILABLE, before=today)
        self._seen[asked] = today

    async def judge_drift(self, worse: str) -> None:
        """Report that the control set's results became worse; with an empty string, that they recovered."""
        if worse:
            await self._open(AlertKind.JUDGE_DRIFT, ANCHORS_PROJECT, messages.judge_changed(worse))
        else:
            await self._close(AlertKind.JUDGE_DRIFT, ANCHORS_PROJECT, messages.JUDGE_RECOVERED, before=None)

    def _budget(self, project: str) -> float:
        """Return the budget in US dollars per day."""
        if project == ALL_PROJECTS:
            return self._settings.budget_usd_per_day_all_projects
        return self._settings.budget_usd_per_day

    def _keys(self, kind: AlertKind, project: str) -> list[str]:
        shard = shard_of(project, self._shards)
        return [f"{PREFIX}:{{{shard}}}:judge:episode:{kind.value}:{project}", ALERTS.key(shard)]

    async def _open(self, kind: AlertKind, project: str, summary: str) -> None:
        at = clock.now()
        alert = self._alert(kind, project, since=at, at=at, sequence=1, summary=summary)
        arguments = ["open", alert.model_dump_json(), at.isoformat(), KNOWN_MS]
        await self._script(keys=self._keys(kind, project), args=arguments)

    async def _close(self, kind: AlertKind, project: str, summary: str, *, before: date | None) -> None:
        keys = self._keys(kind, project)
        begun = await self._client.get(keys[0])
        since = datetime.fromisoformat(begun.decode()) if begun else None
        if since is None or (before is not None and since.date() >= before):
            return
        alert = self._alert(kind, project, since=since, at=clock.now(), sequence=2, summary=summary)
        await self._script(keys=keys, args=["close", alert.model_dump_json(), since.isoformat(), KNOWN_MS])

    def _alert(
        self, kind: AlertKind, project: str, *, since: datetime, at: datetime, sequence: int, summary: str
    ) -> Alert:
        alert_id = uuid.uuid5(uuid.NAMESPACE_OID, f"judge/{kind.value}/{project}/{since.isoformat()}")
        budget, opening = kind is AlertKind.BUDGET, sequence == 1
        stopped = kind is AlertKind.JUDGE_STOPPED
        opened, severity = (AlertState.CRITICAL, Severity.CRITICAL) if stopped else (AlertState.WARN, Severity.WARNING)
        made = Alert(
            alert_id=alert_id,
            transition_id=transition_id(alert_id, sequence),
            sequence=sequence,
            kind=kind,
            state=opened if opening else AlertState.RESOLVED,
            previous=AlertState.OK if opening else opened,
            severity=severity if opening else Severity.INFO,
            project=project,
            series=self._fingerprint,
            since=since,
            at=at,
            value=self._budget(project) if budget else None,
            baseline=self._budget(project) if budget else None,
            summary=one_line(summary)[:500],
        )
        return made.model_copy(update={"query": query_of(made)})


class CommandAlerts(AlertPublisher):
    """For commands: the budget is alerted, and an API that refuses our calls stops the command."""

    def __init__(
        self, client: Client, shards: int, fingerprint: str, settings: JudgeSettings, stop: Callable[[], None]
    ) -> None:
        super().__init__(client, shards, fingerprint, settings)
        self._stop = stop
        #: Why the API refuses our calls; empty if it does not.
        self.refused = ""

    async def stopped(self, why: str) -> None:
        """Stop the command, and keep the reason."""
        if why:
            self.refused = why
            self._stop()
