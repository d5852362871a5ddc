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

# The last 24 hours that have begun, and the same hours of the four weeks before.
_HOURS = """SELECT project, intDiv(ago, 168) AS week, 23 - ago % 168 AS place, sum(counted) AS events
FROM
(
    SELECT project, events AS counted, dateDiff('hour', hour, toStartOfHour(now('UTC'))) AS ago
    FROM rollup_hour WHERE kind != 'failure' AND hour > toStartOfHour(now('UTC')) - toIntervalHour(4 * 168 + 24)
)
WHERE ago >= 0 AND ago % 168 < 24
GROUP BY project, week, place"""
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
_RECENT = """SELECT project, sum(events), max(created_at)
FROM rollup_minute WHERE kind != 'failure' AND minute > toStartOfMinute(now('UTC')) - toIntervalMinute(10)
GROUP BY project"""
_NEWEST = (
    "SELECT project, max(created_at) FROM rollup_day WHERE kind != 'failure' AND day >= today() - 90 GROUP BY project"
)
_QUALITY = """SELECT project, metric, day, mean, mean_low, mean_high, n, kappa, labels
FROM quality_by_day WHERE day > today() - {days:UInt16}
ORDER BY day DESC, metric = 'faithfulness' DESC, n DESC LIMIT 1 BY project"""
_OPEN = """SELECT project, countIf(state = 'critical'), countIf(state != 'critical'), countIf(kind LIKE '%drift'),
    argMaxIf((ifNull(toString(metric), toString(kind)), since), abs(ifNull(effect, 0)), state = 'critical') AS worst,
    maxIf(abs(ifNull(effect, 0)), state = 'critical')
FROM open_episodes GROUP BY project"""
_ACCEPTED = """SELECT project, uniqExact(alert_id) FROM alerts
WHERE state = 'resolved' AND at > now() - toIntervalHour(24) AND position(summary, {words:String}) > 0
GROUP BY project"""
_WATERMARK = "SELECT updated_at FROM watermark"


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
    for project, week, place, events in client.query(_HOURS).result_rows:
        if week == 0:
            hours.setdefault(project, [0] * HOURS)[place] = int(events)
        else:
            weeks.setdefault(project, {}).setdefault(week, [0] * HOURS)[place] = int(events)
    totals = {row[0]: row[1:] for row in client.query(_TOTALS).result_rows}
    recent = {row[0]: row[1:] for row in client.query(_RECENT).result_rows}
    newest = {project: utc(at) for project, at in client.query(_NEWEST).result_rows}
    found = []
    for project in sorted({*hours, *newest, *recent}):
        events, retrievals, empty, pii, found_us, answered_us, p95, answer_p95 = totals.get(
            project, (0, 0, 0, 0, {}, {}, 0, 0)
        )
        latest = [at for at in (newest.get(project), utc(recent[project][1]) if project in recent else None) if at]
        found.append(
            Traffic(
                project=project,
                hours=tuple(hours.get(project, [0] * HOURS)),
                usual=usual(list(weeks.get(project, {}).values())),
                events=int(events),
                recent=int(recent[project][0]) if project in recent else 0,
                newest_at=max(latest, default=None),
                retrievals=int(retrievals),
                without_result=int(empty),
                pii_events=int(pii),
                p95_retrieval_ms=p95 / 1000 if found_us else None,
                p95_answer_ms=answer_p95 / 1000 if answered_us else None,
            )
        )
    moved = client.query(_WATERMARK).result_rows
    return Stored(tuple(found), utc(moved[0][0]) if moved else None)


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

    rows = client.query(_ACCEPTED, parameters={"words": ACKNOWLEDGED_BY}).result_rows
    accepted = {str(project): int(alerts) for project, alerts in rows}
    found = [
        Open(str(project), int(critical), int(warnings), int(drift), *_worst(worst), float(effect), accepted.pop(str(project), 0))
        for project, critical, warnings, drift, worst, effect in client.query(_OPEN).result_rows
    ]  # fmt: skip
    return (*found, *(Open(project, 0, 0, 0, accepted=alerts) for project, alerts in accepted.items()))


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
