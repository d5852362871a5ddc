"""Alerts: what got worse, since when, and what to do."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from assay_console.page import Action, Ask, Document, Done, Page, Panel, Parameter, redis_panel
from assay_console.people import Role
from assay_console.scope import iso, link
from assay_operations.actor import Actor
from assay_operations.drift.acknowledge import apply, plan_acknowledge
from assay_operations.drift.episodes import (
    Episode,
    EpisodeList,
    History,
    Transition,
    began_ms,
    history,
    listed,
    transitions,
)
from assay_operations.errors import OperationError
from assay_operations.operator_config import data_of
from assay_operations.overview.flow import newest_of_group
from assay_schema.alert_actions import acknowledge_command, acknowledge_meaning, explain_command
from assay_schema.alerts import AlertKind
from assay_schema.scores import LOWER_IS_BETTER, SESSION_METRICS, Metric
from assay_schema.streams import EVENTS, SCORES

#: Longest comment, as `assay drift acknowledge` takes it.
_COMMENT_MAX = 500


class Alerts(Document):
    """Episodes, worst first. `detector`: seconds since it read its newest sample; None if unknown."""

    state: str
    kind: str
    rows: Panel[EpisodeList]
    detector: Panel[float | None]


class Alert(Document):
    """One episode: its samples, its transitions, and what to do about it."""

    episode: Episode
    transitions: tuple[Transition, ...]
    began: datetime
    history: Panel[History]
    #: Answers of the window, and as many hours before it; empty for an episode of the whole system.
    events_during: str
    events_before: str
    #: In which fields the events of the window differ from those before it.
    differs: str
    explain: str
    #: Empty if the episode cannot be acknowledged, or is over.
    acknowledge: str
    #: Link to the answers that scored worst; empty if the episode is not about their scores.
    worst: str
    meaning: str
    #: True if this console has the operator's credentials, and the person is an operator.
    may_acknowledge: bool


async def read_list(ask: Ask) -> Alerts:
    """Read episodes."""
    state, kind = ask.text("state", "open"), ask.text("kind")
    since = 0 if state == "open" else ask.scope.from_ms
    rows, detector = await asyncio.gather(
        ask.panel(listed, state=state, kind=kind, project=ask.scope.project, since_ms=since),
        redis_panel(newest_of_group(ask.redis, ask.settings.redis.shards, (SCORES, EVENTS), "drift")),
    )
    return Alerts(state=state, kind=kind, rows=rows, detector=detector)


async def read_one(ask: Ask) -> Alert:
    """Read one episode, then its samples."""
    episode, steps = await ask.store(transitions, ask.path["alert_id"], ask.scope.project)
    began = began_ms(episode, steps)
    samples = await ask.panel(history, episode, steps, began, ask.scope.to_ms)
    over = not episode.open
    end = ask.scope.to_ms if episode.open else round(episode.at.timestamp() * 1000)
    length = max(60_000, end - began)
    own = {"project": episode.project} | _rows_of(episode)
    named = episode.project != "all"
    command = "" if over else acknowledge_command(episode.alert_id, episode.kind)
    return Alert(
        episode=episode,
        transitions=steps,
        began=datetime.fromtimestamp(began / 1000, UTC),
        history=samples,
        events_during=link("/events", own, {"from": iso(began), "to": iso(end)}) if named else "",
        events_before=link("/events", own, {"from": iso(began - length), "to": iso(began)}) if named else "",
        differs=link("/events/differs", own, {"from": iso(began), "to": iso(end), "against": "before"})
        if named
        else "",
        worst=_worst(episode, {"project": episode.project, "from": iso(began), "to": iso(end)}),
        explain=explain_command(episode.alert_id, episode.kind, episode.metric),
        acknowledge=command,
        meaning=acknowledge_meaning(episode.kind),
        may_acknowledge=bool(command)
        and ask.settings.console.operator_config is not None
        and ask.person.role >= Role.OPERATOR,
    )


def _rows_of(episode: Episode) -> dict[str, str]:
    """Return the filter of the events that an episode is about. Pure."""
    retrieval = episode.kind == AlertKind.RETRIEVAL_DRIFT or episode.series in ("query", "search")
    return {"kind": "retrieval" if retrieval else "answer"} if episode.kind != AlertKind.FAILURES else {}


def _worst(episode: Episode, scope: dict[str, str]) -> str:
    """Return a link to the answers whose score is nearer to the level since the change than to the one before. Pure."""
    metric, value, baseline = episode.metric, episode.value, episode.baseline
    if (
        episode.kind != AlertKind.SCORE_DRIFT
        or metric not in set(Metric) - SESSION_METRICS
        or value is None
        or baseline is None
    ):
        return ""
    middle = (value + baseline) / 2
    if metric in LOWER_IS_BETTER:
        metric, middle = Metric.FAITHFULNESS, 1 - middle
    return link("/events", {"kind": "answer", f"metric.{metric}<": f"{middle:.3g}"}, scope)


async def acknowledge(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Acknowledge an episode with the operator's credentials, as `assay drift acknowledge` does."""
    file = ask.settings.console.operator_config
    alert_id = ask.path["alert_id"]
    if file is None:
        raise OperationError(
            "refused", "this console has no credentials of an operator", f"run: assay drift acknowledge {alert_id}"
        )

    def run() -> bool:
        actor = Actor(ask.person.name, "console", "console", fields.get("comment", ""))
        return apply(plan_acknowledge(data_of(file), alert_id, file), actor)

    taken = await asyncio.to_thread(run)
    return Done(f"/alerts/{alert_id}", "taken" if taken else "noted")


KIND = Parameter("kind", "Kind of alert; empty: all.", tuple(AlertKind))
PAGE = Page(
    "alerts",
    "/alerts",
    "Alerts",
    "What got worse, since when?",
    read_list,
    Alerts,
    (Parameter("state", "Which episodes.", ("open", "resolved", "all"), "open"), KIND),
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
    (Parameter("comment", "Why, for the audit record.", longest=_COMMENT_MAX),),
)
