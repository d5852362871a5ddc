"""Chart of a metric: daily means with intervals, the baseline, the evidence and the episodes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log10

from assay_ui.axes import BOTTOM, time_axis, time_scale
from assay_ui.charts import BandPoint, Shade, band_marks, ends, trail
from assay_ui.picture import picture

_BARS = "▁▂▃▄▅▆▇█"
#: States of an episode that a chart shows, the worst first, and their letters in a terminal.
_MARKS = {"critical": "C", "warn": "w", "recovering": "r"}
#: Heights of the drawing of means, and of the evidence below it.
_HEIGHT, _TRAIL = 290, 80


@dataclass(frozen=True, slots=True)
class Point:
    """One day of a metric: start (Unix ms), mean, interval, samples, final baseline and evidence.

    An evidence of 1 raises an alert.
    """

    at_ms: float
    mean: float
    low: float
    high: float
    n: int
    baseline: float | None
    evidence: float


@dataclass(frozen=True, slots=True)
class Span:
    """Period that an episode spent in one state."""

    state: str
    from_ms: float
    to_ms: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Content of a chart."""

    title: str
    points: tuple[Point, ...]
    spans: tuple[Span, ...] = ()
    #: Length of a day (ms): `drift.day_minutes`.
    day_ms: float = 86_400_000.0


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Draw values as a line of bars between two bounds."""
    width = (high - low) or 1.0
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, round((value - low) / width * top)))] for value in values)


def terminal(chart: Chart, width: int = 72) -> str:
    """Draw the latest `width` days as a few lines of text."""
    points = chart.points[-width:]
    if not points:
        return f"{chart.title}: no samples\n"
    low, high = _bounds(points)
    state = "".join(_mark(chart, point) for point in points)
    strength = [_strength(point.evidence) for point in points]
    base = points[-1].baseline
    first, last = (_date(point.at_ms, chart.day_ms) for point in (points[0], points[-1]))
    rows = [
        chart.title,
        f"  mean      {sparkline([point.mean for point in points], low, high)}  {points[-1].mean:.3f} ({low:.2f} to {high:.2f})",
        f"  evidence  {sparkline(strength, 0, 1)}  {share_text(points[-1].evidence)}",
        f"  episodes  {state}  w warn, C critical, r recovering",
        f"  {first} to {last}, baseline {'learning' if base is None else f'{base:.3f}'}",
    ]
    return "\n".join(rows) + "\n"


def svg(chart: Chart) -> str:
    """Draw the chart as one SVG file, with the marks and colours of the console's charts."""
    if not chart.points:
        return picture(f"{chart.title}: no samples", (), 0)
    points = [BandPoint(p.at_ms, p.mean, p.low, p.high, p.n, p.baseline) for p in chart.points]
    shades = [Shade(s.state, s.state, s.from_ms, s.to_ms) for s in chart.spans if s.state in _MARKS]
    between = ends(points)
    evidence = [(p.at_ms, _strength(p.evidence)) for p in chart.points]
    marks = [
        *band_marks(points, shades, _HEIGHT, (0.0, 1.0)),
        *trail(evidence, between, _HEIGHT, _TRAIL, _strength(1.0), "evidence"),
        time_axis(*between, time_scale(*between), _HEIGHT + _TRAIL + BOTTOM),
    ]
    legend = "mean with 95 % interval; dashed: baseline; shaded: episodes"
    return picture(chart.title, marks, _HEIGHT + _TRAIL + BOTTOM, legend)


def share_text(share: float) -> str:
    """Format evidence relative to the alert threshold, without spurious digits."""
    if share >= 10:
        return "over 10 times the alert threshold"
    if share >= 1:
        return f"{share:.1f} times the alert threshold"
    return f"{share:.0%} of the alert threshold" if share >= 0.01 else "less than 1% of the alert threshold"


def _strength(evidence: float) -> float:
    """Evidence on a log scale, from a thousandth of the alert threshold (0) to 100 times it (1)."""
    return min(1.0, max(0.0, (log10(max(evidence, 1e-9)) + 3) / 5))


def _bounds(points: Sequence[Point]) -> tuple[float, float]:
    values = [value for p in points for value in (p.low, p.high, p.baseline) if value is not None]
    return max(0.0, min(values) - 0.01), min(1.0, max(values) + 0.01)


def _mark(chart: Chart, point: Point) -> str:
    states = [s.state for s in chart.spans if s.from_ms < point.at_ms + chart.day_ms and s.to_ms > point.at_ms]
    return next((letter for state, letter in _MARKS.items() if state in states), "·")


def _date(at_ms: float, day_ms: float) -> str:
    """Format a date; with the time if the configured day is shorter than 24 hours."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d}" if day_ms >= 86_400_000 else f"{moment:%Y-%m-%d %H:%M:%S}"
