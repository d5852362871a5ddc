"""Alert episodes: one line each, and one with its transitions and the samples behind its metric."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from assay_operations.drift.explain import episode_named
from assay_operations.errors import OperationError
from assay_operations.time_bounds import utc
from assay_schema.alert_actions import acknowledge_command
from assay_schema.alerts import AlertKind

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Most episodes of a list.
EPISODES_MAX = 500
#: Episodes that begin within this time of the first one belong to one incident.
TOGETHER_MS = 3_600_000
#: Points of a chart, at most, and the widths that they may have, in seconds.
_POINTS = 60
_WIDTHS_S = (1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
#: A chart begins this many times the episode's length before it, and shows at least and at most so many ms.
_BEFORE, _SPAN_MIN_MS, _SPAN_MAX_MS = 1.5, 120_000, 45 * 86_400_000

_COLUMNS = (
    "alert_id, toString(state) AS state, toString(kind) AS kind, toString(severity) AS severity, project, service, metric, series, value, "
    "baseline, effect, interval AS range, n, evidence, since, at, summary, query"
)
_LIST = f"""SELECT {_COLUMNS}
FROM (SELECT * FROM alerts WHERE SINCE ORDER BY sequence DESC LIMIT 1 BY alert_id)
WHERE ({{state:String}} = 'all' OR (state IN ('warn', 'critical', 'recovering')) = ({{state:String}} = 'open'))
  AND ({{kind:String}} = '' OR toString(kind) = {{kind:String}})
  AND ({{project:String}} = '' OR project IN ({{project:String}}, 'all'))
ORDER BY state IN ('ok', 'resolved'), severity = 'critical' DESC, state = 'critical' DESC,
  abs(ifNull(effect, 0)) DESC, at DESC LIMIT {{limit:UInt32}}"""  # noqa: S608
_LAST_RESOLVED = "SELECT max(at) FROM alerts WHERE state = 'resolved' AND ({project:String} = '' OR project IN ({project:String}, 'all'))"
_TRANSITIONS = f"""SELECT toString(previous) AS previous, {_COLUMNS}
FROM alerts WHERE alert_id = {{id:UUID}} ORDER BY sequence"""  # noqa: S608


#: `share`: of answers, of claims, or of usual scores that are lower, from 0 to 1; `deviations`: standard deviations from usual days.
Unit = Literal["share", "score", "deviations", "answers", "events", "entries", "minutes", "USD", ""]
_UNITS: dict[str, Unit] = {
    AlertKind.SCORE_DRIFT: "share",
    AlertKind.RETRIEVAL_DRIFT: "share",
    AlertKind.JUDGE_ERRORS: "share",
    AlertKind.QUERY_DRIFT: "deviations",
    AlertKind.SILENCE: "answers",
    AlertKind.FAILURES: "events",
    AlertKind.LAG: "entries",
    AlertKind.WATERMARK_AGE: "minutes",
    AlertKind.BUDGET: "USD",
}


@dataclass(frozen=True)
class Episode:
    """An episode as of its latest transition. `low` and `high`: the 95 % interval of `value`."""

    alert_id: UUID
    state: str
    kind: str
    severity: str
    project: str
    service: str | None
    metric: str | None
    series: str | None
    value: float | None
    baseline: float | None
    effect: float | None
    low: float | None
    high: float | None
    n: int | None
    evidence: float | None
    since: datetime
    at: datetime
    summary: str
    query: str

    @property
    def open(self) -> bool:
        """True until it is resolved."""
        return self.state in ("warn", "critical", "recovering")

    @property
    def accepted_by(self) -> str:
        """Return who accepted its level as normal, and why; empty if it is open or recovered."""
        from assay_drift.messages import acknowledged_by

        return "" if self.open else acknowledged_by(self.summary)

    @property
    def unit(self) -> Unit:
        """Unit of `value`, `baseline`, `low` and `high`."""
        from assay_schema.scores import is_share

        if self.kind == AlertKind.SCORE_DRIFT and not is_share(self.metric or ""):
            return "score"
        return _UNITS.get(self.kind, "")

    @property
    def acceptable(self) -> bool:
        """True if it is open and can be acknowledged."""
        return self.open and bool(acknowledge_command(self.alert_id, self.kind))


@dataclass(frozen=True)
class EpisodeList:
    """Episodes, worst first; `more`: there are others. `resolved_at`: when the last one was resolved."""

    rows: tuple[Episode, ...]
    more: bool
    resolved_at: datetime | None


@dataclass(frozen=True)
class Incident:
    """At least two episodes of a project that began together and can be acknowledged, in list order."""

    project: str
    began: datetime
    episodes: tuple[Episode, ...]


@dataclass(frozen=True)
class Transition:
    """One change of an episode's state."""

    previous: str
    state: str
    at: datetime
    value: float | None
    baseline: float | None
    n: int | None
    evidence: float | None
    summary: str


@dataclass(frozen=True)
class Sample:
    """The samples of a metric in a short time: mean and its 95 % interval."""

    at_ms: int
    mean: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class History:
    """Samples around an episode. `unit` describes their `mean`; without samples `why` has the reason."""

    samples: tuple[Sample, ...]
    width_ms: int
    from_ms: int
    to_ms: int
    unit: str = ""
    #: True if the alert's baseline is in the same unit.
    has_baseline: bool = False
    why: str = ""


def listed(
    client: "Client", *, state: str = "open", kind: str = "", project: str = "", since_ms: int = 0, limit: int = EPISODES_MAX
) -> EpisodeList:  # fmt: skip
    """List episodes.

    Open ones of any age; `resolved` ones, or `all`, by their latest transition since a Unix ms.
    """
    bounded = "1" if state == "open" else "at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
    named = {"state": state, "kind": kind, "project": project, "since": since_ms, "limit": limit + 1}
    answer = client.query(_LIST.replace("SINCE", bounded), parameters=named)
    rows = [_episode(dict(row)) for row in answer.named_results()]
    ((resolved,),) = client.query(_LAST_RESOLVED, parameters={"project": project}).result_rows
    at = None if resolved is None else utc(resolved)
    return EpisodeList(tuple(rows[:limit]), len(rows) > limit, at if at and at.year > 1970 else None)


def incidents(rows: Sequence[Episode]) -> tuple[Incident, ...]:
    """Group episodes that began within `TOGETHER_MS` of the first of them, by project. Pure.

    An incident has its episodes in the order of `rows`.
    """
    place = {row.alert_id: number for number, row in enumerate(rows)}
    found: list[list[Episode]] = []
    for each in sorted((row for row in rows if row.acceptable), key=lambda row: (row.project, row.since, row.alert_id)):
        last = found[-1][0] if found else None
        if last and last.project == each.project and _ms(each.since) - _ms(last.since) <= TOGETHER_MS:
            found[-1].append(each)
        else:
            found.append([each])
    return tuple(
        Incident(of[0].project, of[0].since, tuple(sorted(of, key=lambda each: place[each.alert_id])))
        for of in found
        if len(of) > 1
    )


def raised_against(episode: Episode, steps: tuple[Transition, ...]) -> float | None:
    """Return the baseline that an episode was raised against. Pure.

    A closed one may have a newer baseline.
    """
    raised = (step.baseline for step in reversed(steps) if step.state in ("warn", "critical"))
    return next(raised, episode.baseline)


def transitions(client: "Client", alert_id: str, project: str = "") -> tuple[Episode, tuple[Transition, ...]]:
    """Read an episode with all its transitions.

    Raises `OperationError` if it is not stored, or of another project. Episodes of the whole system are those of every project.
    """
    rows = [dict(row) for row in client.query(_TRANSITIONS, parameters={"id": episode_named(alert_id)}).named_results()]
    if not rows or (project and rows[-1]["project"] not in (project, "all")):
        raise OperationError("not_found", "no such episode is stored", "`assay alerts list --all` shows those that are")
    names = ("previous", "state", "value", "baseline", "n", "evidence", "summary")
    found = [Transition(at=utc(row["at"]), **{name: row[name] for name in names}) for row in rows]
    return _episode(rows[-1]), tuple(found)


def began_ms(episode: Episode, steps: tuple[Transition, ...]) -> int:
    """Return when the change began, but not after its first transition (Unix ms). Pure."""
    return min(_ms(episode.since), *(_ms(step.at) for step in steps))


def history(client: "Client", episode: Episode, steps: tuple[Transition, ...], began: int, now_ms: int) -> History:
    """Read the samples of the episode's metric, from before its change to its end or the newest one."""
    try:
        table, unit, value, of = _samples(episode, steps)
    except ValueError as error:
        return History((), 0, began, now_ms, why=str(error))
    where = (
        f"FROM {table} WHERE project = {{project:String}} AND {of} "  # validated names
        "AND event_time >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Milli({to:Int64}, 'UTC')"
    )
    end_ms = now_ms if episode.open else min(now_ms, 2 * _ms(episode.at) - began + _SPAN_MIN_MS)
    named = {"project": episode.project, "series": episode.series or "", "from": began, "to": end_ms}
    ((newest,),) = client.query(f"SELECT max(event_time) {where}", parameters=named).result_rows
    to_ms = max(began + _SPAN_MIN_MS // 4, min(end_ms, _ms(utc(newest)) + 1_000))
    from_ms = max(began - max(_SPAN_MIN_MS, round(_BEFORE * (to_ms - began))), to_ms - _SPAN_MAX_MS)
    width_s = next((each for each in _WIDTHS_S if each * _POINTS * 1000 >= to_ms - from_ms), _WIDTHS_S[-1])
    rows = client.query(
        "SELECT toUnixTimestamp(toStartOfInterval(event_time, toIntervalSecond({width:UInt32}))) * 1000 AS t, "
        f"avg({value}) AS m, count() AS c, if(c > 1, 1.96 * stddevSamp({value}) / sqrt(c), NULL) AS half {where} GROUP BY t ORDER BY t",
        parameters=named | {"width": width_s, "from": from_ms, "to": to_ms},
    ).result_rows
    comparable = episode.kind in (AlertKind.SCORE_DRIFT, AlertKind.JUDGE_ERRORS)
    lowest, highest = (0.0, 1.0) if comparable else (-math.inf, math.inf)  # metrics and shares are between 0 and 1
    samples = tuple(
        Sample(
            int(at),
            float(mean),
            None if half is None else max(lowest, mean - half),
            None if half is None else min(highest, mean + half),
            int(n),
        )
        for at, mean, n, half in rows
    )
    why = "" if samples else "no sample of this time is stored any more"
    return History(samples, width_s * 1000, from_ms, to_ms, unit, comparable, why)


def _samples(episode: Episode, steps: tuple[Transition, ...]) -> tuple[str, str, str, str]:
    """Return table, unit, value and condition of an episode's samples. Raises `ValueError` if there are none."""
    from assay_schema.alert_actions import samples_of
    from assay_schema.scores import is_amount

    metric = episode.metric or ""
    if episode.kind == AlertKind.RETRIEVAL_DRIFT and metric == "top_1":
        return "candidates", "score of the first hit", "retrieved_scores[1]", "notEmpty(retrieved_scores)"
    if episode.kind == AlertKind.RETRIEVAL_DRIFT and metric == "mean_of_k":
        return "candidates", "mean score of the hits", "arrayAvg(retrieved_scores)", "notEmpty(retrieved_scores)"
    if episode.kind == AlertKind.JUDGE_ERRORS:
        judged = "base AND session_id IS NULL AND status IN ('scored', 'abstained', 'judge_error')"
        return "scores", "share of answers on which the judge failed", "toFloat64(status = 'judge_error')", judged
    if episode.kind == AlertKind.SCORE_DRIFT and is_amount(metric):
        return _amount(episode, steps)
    if episode.kind == AlertKind.SCORE_DRIFT and metric:
        value, has_one = samples_of(metric)
        return "scores", metric, value, f"base AND fingerprint = {{series:String}} AND {has_one}"
    raise ValueError("an alert of this kind has no samples to draw; its query shows more")


def _amount(episode: Episode, steps: tuple[Transition, ...]) -> tuple[str, str, str, str]:
    """Return table, unit, value and condition of an amount's samples. Raises `ValueError`."""
    from assay_drift.messages import amount_text, limit_in
    from assay_schema.alert_actions import RETRIEVALS, amount_of

    metric = episode.metric or ""
    # The last transition of an acknowledged episode does not repeat the limit.
    limit = next((found for step in reversed(steps) if (found := limit_in(step.summary)) is not None), None)
    if limit is None:
        raise ValueError("the alert names no limit, so its share cannot be drawn; its query shows the amounts")
    things = "retrievals" if episode.series in RETRIEVALS else "answers"
    of = "tool_name = {series:String}" if episode.series in RETRIEVALS else "1"
    value = f"toFloat64({amount_of(metric)} > {float(limit)!r})"
    return (
        "candidates" if things == "retrievals" else "answers",
        f"share of {things} above {amount_text(metric, limit)}",
        value,
        of,
    )


def _episode(row: dict[str, Any]) -> Episode:
    low, high = row["range"] if len(row["range"]) == 2 else (None, None)
    names = set(Episode.__dataclass_fields__) - {"low", "high", "since", "at"}
    return Episode(
        low=low,
        high=high,
        since=utc(row["since"]),
        at=utc(row["at"]),
        **{name: row[name] for name in names},
    )


def _ms(value: datetime) -> int:
    return round(value.timestamp() * 1000)
