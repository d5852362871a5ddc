"""Recompute the history of a metric from its stored scores. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from assay_drift.charts import Chart, Point, Span
from assay_drift.readings import metric_total
from assay_drift.series import Calendar, Series
from assay_schema.alerts import AlertState
from assay_schema.scores import is_lower_better
from assay_schema.settings import DriftSettings


def replay(
    title: str,
    metric: str,
    samples: Iterable[tuple[float, float]],
    settings: DriftSettings,
    *,
    spans: Sequence[Span] | None = None,
    streams: int = 1,
) -> Chart:
    """Chart samples (Unix ms, value) in order of time.

    Without `spans`, the episodes are recomputed as well.
    """
    low = is_lower_better(metric)
    series, calendar = Series(), Calendar.of(settings)
    days: dict[int, Point] = {}
    steps: list[tuple[float, AlertState]] = []
    for at_ms, value in samples:
        series.observe(1 - value if low else value, at_ms, settings, calendar)
        if transition := series.evaluate(at_ms, streams, settings, calendar):
            steps.append((at_ms, transition.state))
        day = calendar.day(at_ms)
        total = metric_total(series, day, metric)
        if total is None:
            continue
        base = series.baseline.mean if series.baseline else None
        evidence = max(series.evidence(settings) / streams, 0.0)
        below, above = total.interval()
        shown = 1 - base if base is not None and low else base
        days[day] = Point(day * calendar.day_ms, total.mean, below, above, total.n, shown, evidence)
    if spans is None:
        ends = [*steps, (series.last_ms, AlertState.RESOLVED)] if steps else []
        spans = [Span(state.value, at, until) for (at, state), (until, _) in pairwise(ends)]
    return Chart(title, tuple(point for _, point in sorted(days.items())), tuple(spans), calendar.day_ms)
