"""Traffic, latency, losses, quality and open alerts of every project, from the store."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from assay_operations.time_bounds import utc

if TYPE_CHECKING:
    from assay_runtime.store import Client

HOURS, WEEKS = 24, 4
#: Days back within which the latest judged day of a project is its quality.
_QUALITY_DAYS = 7

# The last 24 hours that have begun, and the same hours of the four weeks before; the last ten minutes; the newest event; the watermark.
# In one query, because each one takes the store some milliseconds.
_TRAFFIC = """SELECT 'hours' AS of, toString(project) AS project, intDiv(ago, 168) AS week, 23 - ago % 168 AS place, sum(counted) AS events,
    NULL AS at
FROM
(
    SELECT project, events AS counted, dateDiff('hour', hour, toStartOfHour(now('UTC'))) AS ago
    FROM rollup_hour WHERE kind != 'failure' AND hour > toStartOfHour(now('UTC')) - toIntervalHour(4 * 168 + 24)
)
WHERE ago >= 0 AND ago % 168 < 24
GROUP BY project, week, place
UNION ALL
SELECT 'minutes', toString(project), 0, 0, sum(events), max(created_at)
FROM rollup_minute WHERE kind != 'failure' AND minute > toStartOfMinute(now('UTC')) - toIntervalMinute(10)
GROUP BY project
UNION ALL
SELECT 'days', toString(project), 0, 0, 0, max(created_at)
FROM rollup_day WHERE kind != 'failure' AND day >= today() - 90
GROUP BY project
UNION ALL
SELECT 'watermark', '', 0, 0, 0, updated_at FROM watermark"""
_TOTALS = """SELECT
    project, sumIf(r.events, kind != 'failure') AS events, sumIf(r.events, kind = 'retrieval') AS retrievals,
    sumIf(r.without_result, kind = 'retrieval') AS without_result, sum(r.pii_events) AS pii,
    sumMapIf(r.latency_us, kind = 'retrieval') AS found_us, sumMapIf(r.latency_us, kind = 'answer') AS answered_us,
    arrayFirst((us, upto) -> upto >= 0.95 * arraySum(mapValues(found_us)), mapKeys(found_us), arrayCumSum(mapValues(found_us))),
    arrayFirst(
        (us, upto) -> upto >= 0.95 * arraySum(mapValues(answered_us)), mapKeys(answered_us), arrayCumSum(mapValues(answered_us))
    )
FROM rollup_hour AS r
WHERE hour > toStartOfHour(now('UTC')) - toIntervalHour(24)
GROUP BY project"""
_QUALITY = """SELECT project, metric, day, mean, mean_low, mean_high, n, kappa, labels
FROM quality_by_day WHERE day > today() - {days:UInt16}
ORDER BY day DESC, metric = 'faithfulness' DESC, n DESC LIMIT 1 BY project"""
# Open episodes, and those of 24 hours that were accepted, which are resolved.
_OPEN = """SELECT project, countIf(state = 'critical'), countIf(state NOT IN ('critical', 'resolved')),
    countIf(kind LIKE '%drift' AND state != 'resolved'),
    argMaxIf((ifNull(toString(metric), toString(kind)), since), abs(ifNull(effect, 0)), state = 'critical') AS worst,
    maxIf(abs(ifNull(effect, 0)), state = 'critical'), uniqExactIf(alert_id, state = 'resolved')
FROM
(
    SELECT project, alert_id, state, kind, metric, since, effect FROM open_episodes
    UNION ALL
    SELECT project, alert_id, state, kind, metric, since, effect FROM alerts
    WHERE state = 'resolved' AND at > now() - toIntervalHour(24) AND position(summary, {words:String}) > 0
)
GROUP BY project"""


@dataclass(frozen=True)
class Traffic:
    """Traffic of a project: 24 hours, the mean of the same hours of four weeks, and totals of 24 hours."""

    project: str
    hours: tuple[int, ...] = (0,) * HOURS
    #: Empty without a week to compare with.
    usual: tuple[float, ...] = ()
    events: int = 0
    recent: int = 0
    newest_at: datetime | None = None
    retrievals: int = 0
    without_result: int = 0
    pii_events: int = 0
    p95_retrieval_ms: float | None = None
    p95_answer_ms: float | None = None


@dataclass(frozen=True)
class Stored:
    """Traffic of every project, and when the watermark moved."""

    projects: tuple[Traffic, ...]
    watermark_at: datetime | None


@dataclass(frozen=True)
class Quality:
    """The latest judged day of a project: mean of one metric with its 95 % interval."""

    project: str
    metric: str
    day: date
    mean: float
    low: float
    high: float
    n: int
    kappa: float | None
    labels: int | None


@dataclass(frozen=True)
class Open:
    """Open episodes of a project, by severity; `drift` counts those about quality.

    `accepted`: episodes of 24 hours that an operator accepted as normal.
    `worst`: metric or kind of the critical one that changed most, by `worst_effect` of the usual; empty without one.
    """

    project: str
    critical: int
    warnings: int
    drift: int
    worst: str = ""
    worst_since: datetime | None = None
    worst_effect: float = 0.0
    accepted: int = 0


def traffic(client: "Client") -> Stored:
    """Count the events of every project by hour, from rollups."""
    hours: dict[str, list[int]] = {}
    weeks: dict[str, dict[int, list[int]]] = {}
    recent: dict[str, int] = {}
    newest: dict[str, datetime] = {}
    watermark_at = None
    for of, project, week, place, events, at in client.query(_TRAFFIC).result_rows:
        if of == "watermark":
            watermark_at = utc(at)
        elif of == "hours" and not week:
            hours.setdefault(project, [0] * HOURS)[place] = int(events)
        elif of == "hours":
            weeks.setdefault(project, {}).setdefault(week, [0] * HOURS)[place] = int(events)
        else:
            newest[project] = max(utc(at), newest.get(project, utc(at)))
            recent[project] = recent.get(project, 0) + int(events)
    totals = {row[0]: row[1:] for row in client.query(_TOTALS).result_rows}
    found = []
    for project in sorted({*hours, *newest}):
        events, retrievals, empty, pii, found_us, answered_us, p95, answer_p95 = totals.get(
            project, (0, 0, 0, 0, {}, {}, 0, 0)
        )
        found.append(
            Traffic(
                project=project,
                hours=tuple(hours.get(project, [0] * HOURS)),
                usual=usual(list(weeks.get(project, {}).values())),
                events=int(events),
                recent=recent.get(project, 0),
                newest_at=newest.get(project),
                retrievals=int(retrievals),
                without_result=int(empty),
                pii_events=int(pii),
                p95_retrieval_ms=p95 / 1000 if found_us else None,
                p95_answer_ms=answer_p95 / 1000 if answered_us else None,
            )
        )
    return Stored(tuple(found), watermark_at)


def usual(weeks: list[list[int]]) -> tuple[float, ...]:
    """Return the mean of each hour over the weeks that have events. Pure."""
    return tuple(sum(hour) / len(weeks) for hour in zip(*weeks, strict=True)) if weeks else ()


def quality(client: "Client") -> tuple[Quality, ...]:
    """Read the latest judged day of every project."""
    rows = client.query(_QUALITY, parameters={"days": _QUALITY_DAYS}).result_rows
    return tuple(Quality(*row) for row in rows)


def open_by_project(client: "Client") -> tuple[Open, ...]:
    """Count the open episodes of every project, and those that an operator accepted as normal lately."""
    from assay_drift.messages import ACKNOWLEDGED_BY

    rows = client.query(_OPEN, parameters={"words": ACKNOWLEDGED_BY}).result_rows
    return tuple(
        Open(str(project), int(critical), int(warnings), int(drift), *_worst(worst), float(effect), int(accepted))
        for project, critical, warnings, drift, worst, effect, accepted in rows
    )


def _worst(found: tuple[str, datetime]) -> tuple[str, datetime | None]:
    name, since = found
    return name, utc(since) if name else None


def lost_by_project(client: "Client") -> dict[str, int]:
    """Count the events of 24 hours that were lost and not recovered since, by project."""
    from assay_runtime.queries import named_queries

    question, lost = named_queries()["failures"], dict[str, int]()
    for row in client.query(question.sql, parameters=question.defaults).named_results():
        lost[str(row["project"])] = lost.get(str(row["project"]), 0) + int(row["lost"])
    return lost
