"""Quality by day for every project and metric, from the base stream, with counts of judged answers."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from assay_operations.time_bounds import utc

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Most series of a document, each with its days.
SERIES_MAX = 60

_DAYS = """SELECT project, metric, day, fingerprint, backend, n, mean, mean_low, mean_high, raw_rate, ppi_rate, ppi_low, ppi_high
FROM quality_by_day
WHERE day >= {first:Date} AND day <= {last:Date}
  AND ({project:String} = '' OR project = {project:String}) AND ({metric:String} = '' OR metric = {metric:String})
ORDER BY project, metric = 'faithfulness' DESC, metric, day, n"""
_JUDGED = """SELECT
    project, kind, sum(j.sampled), sum(j.scored), sum(j.abstained), sum(j.no_context), sum(j.judge_error), sum(j.skipped_budget),
    sum(j.answers), sum(j.cost_usd), argMax(backend, day), argMax(fingerprint, day)
FROM judging_by_day AS j
WHERE day >= {first:Date} AND day <= {last:Date} AND ({project:String} = '' OR project = {project:String})
GROUP BY project, kind ORDER BY project, kind"""
_CALIBRATED = """SELECT project, metric, fingerprint, kappa, labels, tpr, tnr, threshold, pages, calibrated_at
FROM calibrations WHERE ({project:String} = '' OR project = {project:String})
ORDER BY calibrated_at DESC LIMIT 1 BY project, metric, fingerprint"""
_STATES = """SELECT project, metric, series, toString(state) AS state, at,
    leadInFrame(at) OVER (PARTITION BY alert_id ORDER BY sequence ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS until
FROM alerts
WHERE kind = 'score_drift' AND metric IS NOT NULL AND at >= toDateTime({first:Date}) - toIntervalDay(30)
  AND ({project:String} = '' OR project = {project:String})"""


@dataclass(frozen=True)
class Day:
    """A day of a metric by one judge: mean, 95 % interval, and the share of good answers if calibrated."""

    day: date
    fingerprint: str
    n: int
    mean: float
    low: float
    high: float
    raw_rate: float | None
    ppi_rate: float | None
    ppi_low: float | None
    ppi_high: float | None


@dataclass(frozen=True)
class Calibration:
    """Agreement of a judge with people. `pages`: alerts on the metric may be critical."""

    project: str
    metric: str
    fingerprint: str
    kappa: float | None
    labels: int
    tpr: float | None
    tnr: float | None
    threshold: float
    pages: bool
    calibrated_at: datetime


@dataclass(frozen=True)
class Spell:
    """A period in one state of an episode on a metric (Unix ms); `to_ms` is None if it lasts."""

    state: str
    from_ms: float
    to_ms: float | None


@dataclass(frozen=True)
class Metric:
    """A metric of a project: its days, its calibration by the latest judge, its episodes."""

    project: str
    metric: str
    backend: str
    fingerprint: str
    days: tuple[Day, ...]
    calibration: Calibration | None
    spells: tuple[Spell, ...]


@dataclass(frozen=True)
class Judged:
    """Counts of a project's answers or sessions by the outcome of judging."""

    project: str
    kind: str
    sampled: int
    scored: int
    abstained: int
    no_context: int
    judge_error: int
    skipped_budget: int
    seen: int
    cost_usd: float
    backend: str
    fingerprint: str

    @property
    def coverage(self) -> float | None:
        """Share of sampled answers with a score, an abstention or no context; None without any."""
        return (self.scored + self.abstained + self.no_context) / self.sampled if self.sampled else None


@dataclass(frozen=True)
class Quality:
    """Metrics, most important first, and `more` if there are others."""

    metrics: tuple[Metric, ...]
    more: bool


def quality(client: "Client", first: date, last: date, project: str = "", metric: str = "") -> Quality:
    """Read the days of every project and metric."""
    named = {"first": first, "last": last, "project": project, "metric": metric}
    days: dict[tuple[str, str], list[Day]] = {}
    backends: dict[tuple[str, str], str] = {}
    for of, name, day, fingerprint, backend, *rest in client.query(_DAYS, parameters=named).result_rows:
        days.setdefault((of, name), []).append(Day(day, fingerprint, *rest))
        backends[(of, name)] = backend
    calibrations = {
        (of, name, judge): Calibration(of, name, judge, kappa, int(labels), tpr, tnr, threshold, bool(pages), utc(at))
        for of, name, judge, kappa, labels, tpr, tnr, threshold, pages, at in client.query(
            _CALIBRATED, parameters=named
        ).result_rows
    }
    spells = _spells(client, named) if days else {}
    found = []
    for (of, name), each in days.items():
        judge = each[-1].fingerprint
        found.append(
            Metric(
                of, name, backends[(of, name)], judge, tuple(each), calibrations.get((of, name, judge)),
                tuple(spells.get((of, name), ())),
            )
        )  # fmt: skip
    return Quality(tuple(found[:SERIES_MAX]), len(found) > SERIES_MAX)


def judged(client: "Client", first: date, last: date, project: str = "") -> tuple[Judged, ...]:
    """Count what was judged, by project and kind."""
    rows = client.query(_JUDGED, parameters={"first": first, "last": last, "project": project}).result_rows
    return tuple(Judged(*row) for row in rows)


def _spells(client: "Client", named: dict[str, object]) -> dict[tuple[str, str], list[Spell]]:
    found: dict[tuple[str, str], list[Spell]] = {}
    for project, metric, _, state, at, until in client.query(_STATES, parameters=named).result_rows:
        if state in ("warn", "critical", "recovering"):
            end = utc(until).timestamp() * 1000
            found.setdefault((project, metric), []).append(
                Spell(state, utc(at).timestamp() * 1000, end if end > 0 else None)
            )
    return found
