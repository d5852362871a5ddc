"""Convert series to the numbers of an alert. Pure."""

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
    """True if an open episode is recovering."""
    return series.episode.open and (series.episode.state is AlertState.RECOVERING or series.episode.clean > 0)


def numbers_of(
    subject: Subject,
    series: Series,
    detector: Detector,
    calendar: Calendar,
    *,
    recovering: bool,
) -> Numbers:
    """Return an alert's numbers for a series as it was before a transition."""
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
    why = "" if series.baseline else "scored by a different judge than before"
    return Numbers(since, value, baseline, effect, interval, n, why=why)


def is_turned(kind: AlertKind, metric: str | None) -> bool:
    """True if samples are 1 - x of the metric, because lower values are better."""
    return kind is AlertKind.SCORE_DRIFT and is_lower_better(metric or "")


def shown(kind: AlertKind, metric: str | None, mean: float) -> float:
    """Convert a mean of oriented samples to the metric that people read."""
    return 1 - mean if is_turned(kind, metric) else mean


def metric_total(series: Series, day: int, metric: str) -> Total | None:
    """Return a day's samples as the metric that people read: a lower-is-better metric is inverted back."""
    total = series.days.get(day)
    if total is None or not is_lower_better(metric):
        return total
    return Total(total.n, total.n - total.total, total.n - 2 * total.total + total.squares)


def above(value: float, limit: float, level: Level) -> Finding:
    """Return a finding: `level` if the value is above its limit, else ok."""
    return Finding(level if value > limit else "ok", value, limit, 0)


def numbers_of_finding(finding: Finding, since_ms: float) -> Numbers:
    """Return an alert's numbers for a condition."""
    effect = finding.value / finding.limit - 1 if finding.limit else None
    return Numbers(since_ms, finding.value, finding.limit, effect, n=finding.n, why=finding.why)
