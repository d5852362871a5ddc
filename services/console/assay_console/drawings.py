"""Charts of what operations and pages return. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from markupsafe import Markup

from assay_operations.drift.episodes import Episode, History, Transition
from assay_operations.events.filters import KINDS
from assay_operations.judging.quality import Metric, Spell
from assay_ui.charts import Alerted, BandPoint, Series, Shade, band, bars

if TYPE_CHECKING:
    from assay_console.views.contradictions import JudgedSeries
    from assay_console.views.events import Histogram

_HALF_DAY_MS = 43_200_000
#: Periods of a day that are named.
_PARTS = 3


def events(found: "Histogram") -> Markup:
    """Draw the events over time by kind."""
    starts = [each.start.timestamp() * 1000 for each in found.buckets]
    rows = [
        Series(str(kind).replace("_", " "), str(kind), tuple(each.events.get(str(kind)) for each in found.buckets))
        for kind in KINDS
    ]
    return bars("Events over time", starts, found.bucket_s * 1000, rows, height=76)


def episode(of: Episode, against: float | None, steps: Sequence[Transition], history: History) -> Markup:
    """Draw the samples around an episode, with the level that it was raised against and its states."""
    scale = 100 if of.unit == "share" and history.has_baseline else 1
    baseline = scale * against if history.has_baseline and against is not None else None
    half = history.width_ms / 2

    def scaled(value: float | None) -> float | None:
        return None if value is None else scale * value

    points = [
        BandPoint(
            min(each.at_ms + half, history.to_ms),
            scaled(each.mean),
            scaled(each.low),
            scaled(each.high),
            each.n,
            baseline,
        )
        for each in history.samples
    ]
    # The ends of the range, so that the chart is as long as it says.
    points = [
        BandPoint(history.from_ms, None, baseline=baseline),
        *points,
        BandPoint(history.to_ms, None, baseline=baseline),
    ]
    title = f"{history.unit.replace('_', ' ')}{' in %' if scale == 100 else ''}, {of.project}"
    return band(title, points, states(steps, history.to_ms))


def states(steps: Sequence[Transition], until_ms: float) -> list[Shade]:
    """Return the periods of an episode's states; the last open one lasts until the end of the chart."""
    ends = [*(step.at.timestamp() * 1000 for step in steps[1:]), until_ms]
    return [
        Shade(step.state, f"{step.state} since {step.at:%Y-%m-%d %H:%M:%S}", step.at.timestamp() * 1000, end)
        for step, end in zip(steps, ends, strict=True)
        if step.state in ("warn", "critical", "recovering")
    ]


def quality(of: Metric, baseline: float | None, from_ms: float, to_ms: float) -> Markup:
    """Draw the days of a metric, with a break where another judge begins, and the episodes of the metric."""
    points: list[BandPoint] = []
    judge = of.days[0].fingerprint
    for day in of.days:
        at_ms = datetime(day.day.year, day.day.month, day.day.day, 12, tzinfo=UTC).timestamp() * 1000
        changed = "" if day.fingerprint == judge else f"from here on another judge: {day.fingerprint}"
        judge = day.fingerprint
        if changed and points:
            points.append(BandPoint(at_ms - _HALF_DAY_MS, None, breaks=changed))
        # The detector's baseline is that of the latest judge.
        points.append(
            BandPoint(
                at_ms, day.mean, day.low, day.high, day.n, baseline if judge == of.fingerprint else None,
                alert=worst_of(of.spells, at_ms - _HALF_DAY_MS, at_ms + _HALF_DAY_MS),
            )
        )  # fmt: skip
    shades = [
        Shade(each.state, f"{each.state}: an episode of {of.metric}", each.from_ms, each.to_ms or to_ms)
        for each in of.spells
    ]
    first, last = min(from_ms, points[0].at_ms), max(to_ms, points[-1].at_ms)
    points = [BandPoint(first, None, baseline=baseline if judge == of.days[0].fingerprint else None), *points]
    points.append(BandPoint(last, None, baseline=baseline))
    title = f"{of.metric.replace('_', ' ')} of {of.project} by day, mean and 95 % interval"
    return band(title, points, shades, height=180, bounds=(0.0, 1.0))


def worst_of(spells: Sequence[Spell], from_ms: float, to_ms: float) -> Alerted | None:
    """Return the worst state that an episode had in a period, and when. Pure."""
    found = [
        each
        for each in spells
        if each.state in ("warn", "critical") and each.from_ms < to_ms and (each.to_ms is None or each.to_ms > from_ms)
    ]
    if not found:
        return None
    state = "critical" if any(each.state == "critical" for each in found) else "warn"
    parts = [
        f"{_clock(max(from_ms, each.from_ms))} to {'now' if each.to_ms is None else _clock(min(to_ms, each.to_ms))}"
        for each in found
        if each.state == state
    ]
    more = f" and {len(parts) - _PARTS} more" if len(parts) > _PARTS else ""
    return Alerted(state, f"{state} {', '.join(parts[:_PARTS])}{more}")


def _clock(at_ms: float) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M}"


def contradictions(of: "JudgedSeries", from_ms: float, to_ms: float) -> Markup:
    """Draw the share of contradictory pairs of each run of a series; a run without a rate is a gap."""
    points = [
        BandPoint(each.started_at.timestamp() * 1000, None)
        if each.rate is None
        else BandPoint(
            each.started_at.timestamp() * 1000,
            100 * each.rate.estimate,
            100 * each.rate.low,
            100 * each.rate.high,
            each.judged,
        )
        for each in of.runs
    ]
    first, last = min(from_ms, points[0].at_ms), max(to_ms, points[-1].at_ms)
    points = [BandPoint(first, None), *points, BandPoint(last, None)]
    return band("contradictory pairs by run, in %", points, height=150, bounds=(0.0, 100.0))
