"""Convert series to the measurements of an alert. Pure."""

from math import sqrt

from assay_drift.alerts import Measurements, Subject
from assay_drift.baseline import Total
from assay_drift.conditions import Finding
from assay_drift.detector import Detector
from assay_drift.episodes import Level
from assay_drift.messages import OTHER_JUDGE
from assay_drift.series import HOURS, Calendar, Series
from assay_schema.alerts import AlertKind, AlertState
from assay_schema.scores import is_lower_better


def is_recovering(series: Series) -> bool:
    """True if an open episode is recovering."""
    return series.episode.open and (series.episode.state is AlertState.RECOVERING or series.episode.clean > 0)


def measurements_of(
    subject: Subject,
    series: Series,
    detector: Detector,
    calendar: Calendar,
    *,
    recovering: bool,
) -> Measurements:
    """Return an alert's measurements of a series as it was before a transition."""
    base = series.reference
    if base is None:
        return Measurements(since_ms=series.last_ms)
    total = series.window(HOURS, calendar) if recovering or not detector.n else None
    n, mean = (total.n, total.mean) if total else (int(detector.n), detector.mean or 0.0)
    half = 1.96 * base.deviation * sqrt(series.season.design_effect / n) if n else 0.0
    interval = (max(0.0, mean - half), min(1.0, mean + half)) if n else None
    since = detector.since_ms or series.episode.opened_ms or series.last_ms
    value, baseline = (
        (shown(subject.kind, subject.metric, mean) if n else None),
        shown(subject.kind, subject.metric, base.mean),
    )
    if interval and is_inverted(subject.kind, subject.metric):
        interval = (1 - interval[1], 1 - interval[0])
    effect = value / baseline - 1 if value is not None and baseline else None
    return Measurements(
        since_ms=since,
        value=value,
        baseline=baseline,
        effect=effect,
        interval=interval,
        n=n,
        why="" if series.baseline else OTHER_JUDGE,
    )


def is_inverted(kind: AlertKind, metric: str | None) -> bool:
    """True if samples are 1 - x of the metric, because lower values are better."""
    return kind is AlertKind.SCORE_DRIFT and is_lower_better(metric or "")


def shown(kind: AlertKind, metric: str | None, mean: float) -> float:
    """Convert a mean of oriented samples to the metric that people read."""
    return 1 - mean if is_inverted(kind, metric) else mean


def metric_total(series: Series, day: int, metric: str) -> Total | None:
    """Return a day's samples as the metric that people read: a lower-is-better metric is inverted back."""
    total = series.days.get(day)
    if total is None or not is_lower_better(metric):
        return total
    return Total(total.n, total.n - total.total, total.n - 2 * total.total + total.squares)


def above(value: float, limit: float, level: Level) -> Finding:
    """Return a finding: `level` if the value is above its limit, else ok."""
    return Finding(level if value > limit else "ok", value, limit, 0)


def measurements_of_finding(finding: Finding, since_ms: float) -> Measurements:
    """Return an alert's measurements of a condition."""
    effect = finding.value / finding.limit - 1 if finding.limit else None
    return Measurements(
        since_ms=since_ms,
        value=finding.value,
        baseline=finding.limit,
        effect=effect,
        n=finding.n,
        why=finding.why,
    )
