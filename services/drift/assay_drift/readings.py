"""Means as people read them, and the numbers of an alert. Pure."""

from math import sqrt

from assay_drift.baseline import Total
from assay_drift.conditions import Finding
from assay_drift.detector import Detector
from assay_drift.episodes import Level
from assay_drift.series import HOURS, Calendar, Series
from assay_drift.wording import Numbers, Subject
from assay_schema.alerts import AlertKind, AlertState
from assay_schema.scores import is_lower_better


def is_recovering(series: Series) -> bool:
    """Whether an open episode is on its way out."""
    return series.episode.open and (series.episode.state is AlertState.RECOVERING or series.episode.clean > 0)


def numbers_of(
    subject: Subject,
    series: Series,
    detector: Detector,
    calendar: Calendar,
    *,
    recovering: bool,
) -> Numbers:
    """How much, since when, of how many: of a series as it was before a transition."""
    base = series.reference
    if base is None:
        return Numbers(series.last_ms)
    total = series.window(HOURS, calendar) if recovering or not detector.n else None
    n, mean = (total.n, total.mean) if total else (int(detector.n), detector.mean or 0.0)
    half = 1.96 * base.deviation * sqrt(series.season.design_effect / n) if n else 0.0
    interval = (max(0.0, mean - half), min(1.0, mean + half)) if n else None
    since = detector.since_ms or series.episode.opened_ms or series.last_ms
    value, baseline = (
        (shown(subject.kind, subject.metric, mean) if n else None),
        shown(subject.kind, subject.metric, base.mean),
    )
    if interval and is_turned(subject.kind, subject.metric):
        interval = (1 - interval[1], 1 - interval[0])
    effect = value / baseline - 1 if value is not None and baseline else None
    why = "" if series.baseline else "by another judge than before"
    return Numbers(since, value, baseline, effect, interval, n, why=why)


def is_turned(kind: AlertKind, metric: str | None) -> bool:
    """Whether the samples of a series are 1 - x of its metric, because that is better when lower."""
    return kind is AlertKind.SCORE_DRIFT and is_lower_better(metric or "")


def shown(kind: AlertKind, metric: str | None, mean: float) -> float:
    """A mean of oriented samples as the metric itself, which people read."""
    return 1 - mean if is_turned(kind, metric) else mean


def metric_total(series: Series, day: int, metric: str) -> Total | None:
    """A day's samples as the metric is read by people: a lower-is-better one is turned back."""
    total = series.days.get(day)
    if total is None or not is_lower_better(metric):
        return total
    return Total(total.n, total.n - total.total, total.n - 2 * total.total + total.squares)


def above(value: float, limit: float, level: Level) -> Finding:
    """A finding of `level` where a value is above its limit."""
    return Finding(level if value > limit else "ok", value, limit, 0)


def numbers_of_finding(finding: Finding, since_ms: float) -> Numbers:
    """The numbers of a condition."""
    effect = finding.value / finding.limit - 1 if finding.limit else None
    return Numbers(since_ms, finding.value, finding.limit, effect, n=finding.n, why=finding.why)
