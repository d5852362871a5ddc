"""Alerts: what got worse, since when, and what to do."""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from assay_console.page import Action, Ask, Document, Done, Page, Panel, Parameter
from assay_console.people import Role
from assay_console.scope import iso, link
from assay_operations.actor import Actor
from assay_operations.drift.acknowledge import apply, apply_together, plan_acknowledge
from assay_operations.drift.episodes import (
    Episode,
    EpisodeList,
    History,
    Incident,
    Transition,
    began_ms,
    history,
    incidents,
    listed,
    raised_against,
    transitions,
)
from assay_operations.drift.explain import episode_named
from assay_operations.drift.present import Present, present
from assay_operations.errors import OperationError
from assay_operations.operator_config import data_of
from assay_operations.overview.flow import newest_of_group
from assay_operations.overview.frame import frame_facts
from assay_schema.alert_actions import acknowledge_command, acknowledge_meaning, explain_command
from assay_schema.alerts import AlertKind
from assay_schema.scores import LOWER_IS_BETTER, SESSION_METRICS, Metric
from assay_schema.streams import EVENTS, SCORES

#: Longest comment, as `assay drift acknowledge` takes it.
_COMMENT_MAX = 500
#: Comment of a silence.
_LOOKED_INTO = "being looked into"
#: Most episodes that are acknowledged with one press.
_TOGETHER_MAX = 100


class Alerts(Document):
    """Episodes, worst first. `detector`: seconds since it read its newest sample; None if unknown.

    `is_known`: whether the project of the link has events or losses; None if the store does not answer.
    """

    state: str
    kind: str
    rows: Panel[EpisodeList]
    detector: Panel[float | None]
    is_known: bool | None
    #: Episodes that began together, and can be acknowledged together.
    incidents: tuple[Incident, ...]
    #: True if this console has the operator's credentials, and the person is an operator.
    may_acknowledge: bool


class Alert(Document):
    """One episode: its samples, its transitions, and what to do about it."""

    episode: Episode
    transitions: tuple[Transition, ...]
    began: datetime
    history: Panel[History]
    #: The episode in the drift service, which knows more than the last transition; None if it does not have it.
    now: Present | None
    #: The level that the episode was raised against.
    baseline: float | None
    #: Answers of the window, and as many hours before it; empty for an episode of the whole system.
    events_during: str
    events_before: str
    #: In which fields the events of the window differ from those before it.
    differs: str
    #: Number of other open alerts of its incident.
    together: int
    explain: str
    #: Empty if the episode cannot be acknowledged, or is over.
    acknowledge: str
    #: Command that silences the alert in Alertmanager for two hours, and the address of Alertmanager's form of that, filled in; empty if it
    #: is not known.
    silence: str
    silence_form: str
    #: Link to the answers that scored low, and up to which score of which metric; empty if the episode is not about their scores.
    worst: str
    worst_metric: str
    worst_below: str
    meaning: str
    #: True if this console has the operator's credentials, and the person is an operator.
    may_acknowledge: bool


async def read_list(ask: Ask) -> Alerts:
    """Read episodes."""
    state, kind = ask.text("state", "open"), ask.text("kind")
    since = 0 if state == "open" else ask.scope.from_ms
    rows, facts, detector = await asyncio.gather(
        ask.panel(listed, state=state, kind=kind, project=ask.scope.project, since_ms=since),
        ask.panel(frame_facts, ask.scope.project),
        ask.redis_panel(newest_of_group, ask.settings.redis.shards, (SCORES, EVENTS), "drift"),
    )
    return Alerts(
        state=state,
        kind=kind,
        rows=rows,
        detector=detector,
        is_known=facts.value.known if facts.value else None,
        incidents=incidents(rows.value.rows) if rows.value else (),
        may_acknowledge=_may_acknowledge(ask),
    )


async def _present(ask: Ask, episodes: Iterable[Episode]) -> dict[str, Present]:
    """Return what the drift service has of open episodes; nothing if Redis does not answer."""
    wanted = {str(each.alert_id) for each in episodes if each.acceptable}
    return (await ask.redis_panel(present, ask.settings, wanted)).value or {}


def _may_acknowledge(ask: Ask) -> bool:
    return ask.settings.console.operator_config is not None and ask.person.role >= Role.OPERATOR


async def read_one(ask: Ask) -> Alert:
    """Read one episode, then its samples."""
    episode, steps = await ask.store(transitions, ask.path["alert_id"], ask.scope.project)
    began = began_ms(episode, steps)
    samples, states, others = await asyncio.gather(
        ask.panel(history, episode, steps, began, ask.scope.to_ms),
        _present(ask, (episode,)),
        ask.panel(listed, project=episode.project),
    )
    incident = _incident_of(str(episode.alert_id), others.value.rows if others.value else ())
    now = states.get(str(episode.alert_id))
    if now and not now.open and episode.open:  # closed, and not stored yet
        episode = replace(episode, state="resolved")
    over = not episode.open
    end = ask.scope.to_ms if episode.open else round(episode.at.timestamp() * 1000)
    length = max(60_000, end - began)
    own = {"project": episode.project} | _rows_of(episode)
    named = episode.project != "all"
    metric, below = lowest_of(episode)
    worst_of = {"project": episode.project, "from": iso(began), "to": iso(end)}
    command = "" if over else acknowledge_command(episode.alert_id, episode.kind)
    silence, silence_form = silence_of((episode.alert_id,), ask.settings.console.alertmanager_url)
    return Alert(
        episode=episode,
        transitions=steps,
        began=datetime.fromtimestamp(began / 1000, UTC),
        history=samples,
        now=now,
        baseline=raised_against(episode, steps),
        events_during=link("/events", own, {"from": iso(began), "to": iso(end)}) if named else "",
        events_before=link("/events", own, {"from": iso(began - length), "to": iso(began)}) if named else "",
        differs=link("/events/differs", own, {"from": iso(began), "to": iso(end), "against": "before"})
        if named
        else "",
        worst=link("/events", {"kind": "answer", f"metric.{metric}<": below}, worst_of) if below else "",
        worst_metric=metric,
        worst_below=below,
        together=len(incident.episodes) - 1 if incident else 0,
        explain=explain_command(episode.alert_id, episode.kind, episode.metric),
        acknowledge=command,
        silence=silence,
        silence_form=silence_form,
        meaning=acknowledge_meaning(episode.kind),
        may_acknowledge=bool(command) and _may_acknowledge(ask),
    )


def _incident_of(alert_id: str, episodes: Sequence[Episode]) -> Incident | None:
    """Return the incident that an episode belongs to; None if it began alone. Pure."""
    return next(
        (of for of in incidents(episodes) if alert_id in {str(each.alert_id) for each in of.episodes}),
        None,
    )


def _rows_of(episode: Episode) -> dict[str, str]:
    """Return the filter of the events that an episode is about. Pure."""
    retrieval = episode.kind == AlertKind.RETRIEVAL_DRIFT or episode.series in ("query", "search")
    return {"kind": "retrieval" if retrieval else "answer"} if episode.kind != AlertKind.FAILURES else {}


def silence_of(alert_ids: Sequence[UUID], alertmanager_url: str) -> tuple[str, str]:
    """Return the command that silences alerts in Alertmanager, and the address of its form. Pure.

    An address with a password, or one that a shell would read otherwise, is left out: `amtool` then takes the one of its configuration.
    """
    address = alertmanager_url.rstrip("/")
    if not re.fullmatch(r"https?://[A-Za-z0-9.:/_\[\]-]+", address, re.ASCII):
        address = ""
    operator, value = ("=", str(alert_ids[0])) if len(alert_ids) == 1 else ("=~", "|".join(map(str, alert_ids)))
    at = f" --alertmanager.url={shlex.quote(address)}" if address else ""
    matcher = shlex.quote(f"alert_id{operator}{value}")
    quoted = f'{{alert_id{operator}"{value}"}}'
    filled = f"filter={quote(quoted, safe='')}&comment={quote(_LOOKED_INTO)}"
    command = f'amtool silence add {matcher} --duration=2h --comment="{_LOOKED_INTO}"{at}'
    return command, f"{address}/#/silences/new?{filled}" if address else ""


def lowest_of(episode: Episode) -> tuple[str, str]:
    """Return the metric and the limit of the answers that score as they do since the change. Pure.

    Both are empty if the episode is not about scores of answers.
    """
    metric, value, baseline = episode.metric, episode.value, episode.baseline
    if (
        episode.kind != AlertKind.SCORE_DRIFT
        or metric not in set(Metric) - SESSION_METRICS
        or value is None
        or baseline is None
    ):
        return "", ""
    middle = (value + baseline) / 2
    if metric in LOWER_IS_BETTER:
        metric, middle = Metric.FAITHFULNESS, 1 - middle
    return metric, f"{middle:.3g}"


async def acknowledge(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Acknowledge an episode with the operator's credentials, as `assay drift acknowledge` does."""
    alert_id = ask.path["alert_id"]
    file = _operator_file(ask, alert_id)

    def run() -> bool:
        return apply(plan_acknowledge(data_of(file), alert_id, file), _actor(ask, fields))

    try:
        taken = await asyncio.to_thread(run)
    except OperationError as refused:
        if refused.kind not in ("conflict", "not_found"):
            raise
        raise await _closed(ask, alert_id) or refused from None
    return Done(f"/alerts/{alert_id}", "taken" if taken else "noted")


async def _closed(ask: Ask, alert_id: str) -> OperationError | None:
    """Return who closed an episode, and when; None if that is not stored yet, or it is open."""
    try:
        episode, _ = await ask.store(transitions, alert_id)
    except OperationError:
        return None
    if episode.open:
        return None
    how = f"was accepted as normal by {episode.accepted_by}" if episode.accepted_by else "is closed"
    return OperationError("conflict", f"this alert {how} already, at {iso(round(episode.at.timestamp() * 1000))}")


def _operator_file(ask: Ask, alert_id: str) -> Path:
    file = ask.settings.console.operator_config
    if file is None:
        raise OperationError(
            "refused", "this console has no credentials of an operator", f"run: assay drift acknowledge {alert_id}"
        )
    return file


def _actor(ask: Ask, fields: Mapping[str, str]) -> Actor:
    return Actor(ask.person.name, "console", "console", fields.get("comment", ""))


class Together(Document):
    """The incident of an episode; None if it is closed, or began alone."""

    alert_id: str
    incident: Incident | None
    #: Its episodes in the drift service, by id; those that it does not have are missing.
    now: dict[str, Present]
    #: Commands that acknowledge the episodes one by one.
    commands: tuple[str, ...]
    #: As of one alert, for all of them; empty without an incident.
    silence: str
    silence_form: str
    may_acknowledge: bool


async def read_together(ask: Ask) -> Together:
    """Read the open episodes that began together with one."""
    alert_id = str(episode_named(ask.path["alert_id"]))
    found = (await ask.store(listed, project=ask.scope.project)).rows
    incident = _incident_of(alert_id, found)
    ids = [each.alert_id for each in incident.episodes] if incident else []
    silence, silence_form = silence_of(ids, ask.settings.console.alertmanager_url) if ids else ("", "")
    return Together(
        alert_id=alert_id,
        incident=incident,
        now=await _present(ask, incident.episodes if incident else ()),
        commands=tuple(acknowledge_command(each.alert_id, each.kind) for each in incident.episodes) if incident else (),
        silence=silence,
        silence_form=silence_form,
        may_acknowledge=_may_acknowledge(ask),
    )


async def acknowledge_together(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Acknowledge the episodes that were chosen. One that is closed meanwhile is left out."""
    alert_id = ask.path["alert_id"]
    file = _operator_file(ask, alert_id)
    chosen = list(dict.fromkeys(str(episode_named(each)) for each in fields.get("episodes", "").split(",") if each))
    if not 1 <= len(chosen) <= _TOGETHER_MAX:
        raise OperationError("invalid", f"choose 1 to {_TOGETHER_MAX} episodes")

    def run() -> tuple[int, bool]:
        plans = []
        for each in chosen:
            try:
                plans.append(plan_acknowledge(data_of(file), each, file))
            except OperationError as error:
                if error.kind not in ("conflict", "not_found"):
                    raise
        return len(plans), bool(plans) and apply_together(plans, _actor(ask, fields))

    accepted, taken = await asyncio.to_thread(run)
    if not accepted:
        raise OperationError("conflict", "these episodes are closed already")
    closed = f" {len(chosen) - accepted} of the chosen were closed already." if accepted < len(chosen) else ""
    told = (
        f"● Accepted: the drift service has closed {accepted} alerts. The list follows when that is stored."
        if taken
        else f"◆ Noted: the drift service will close {accepted} alerts when it runs. To check: assay doctor"
    )
    return Done("/alerts", told + closed)


KIND = Parameter("kind", "Kind of alert; empty: all.", tuple(AlertKind))
PAGE = Page(
    "alerts",
    "/alerts",
    "Alerts",
    "What got worse, since when?",
    read_list,
    Alerts,
    (
        Parameter("state", "Which episodes.", ("open", "resolved", "all"), "open"),
        KIND,
    ),
    span="7d",
    key="a",
    by_project=True,
    sql="SELECT state, kind, project, metric, value, baseline, n, since, summary FROM open_episodes ORDER BY severity DESC",
    command="assay alerts list{and_project}",
)
ONE = Page(
    "alert",
    "/alerts/{alert_id}",
    "Alert",
    "What changed, and what now?",
    read_one,
    Alert,
    span="",
    by_project=True,
    within="alerts",
    command="assay drift explain {alert_id}",
)
CONFIRM = Page(
    "acknowledge",
    "/alerts/{alert_id}/acknowledge",
    "Accept as normal",
    "What does acknowledging change?",
    read_one,
    Alert,
    role=Role.OPERATOR,
    span="",
    within="alerts",
    command="assay drift acknowledge {alert_id}",
)
ACKNOWLEDGE = Action(
    "/alerts/{alert_id}/acknowledge",
    "Accept the level of an episode as the new baseline, and close the episode.",
    Role.OPERATOR,
    acknowledge,
    (Parameter("comment", "Why, for the audit record.", longest=_COMMENT_MAX, typed=True),),
)
TOGETHER = Page(
    "together",
    "/alerts/{alert_id}/together",
    "Accept an incident",
    "Which alerts began together?",
    read_together,
    Together,
    span="",
    within="alerts",
)
ACKNOWLEDGE_TOGETHER = Action(
    "/alerts/{alert_id}/together",
    "Accept the levels of several episodes as the new baselines, and close the episodes.",
    Role.OPERATOR,
    acknowledge_together,
    (
        Parameter("episodes", "Ids of episodes, separated by commas.", longest=40 * _TOGETHER_MAX),
        Parameter("comment", "Why, for the audit record.", longest=_COMMENT_MAX, typed=True),
    ),
)
