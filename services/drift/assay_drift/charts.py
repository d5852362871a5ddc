"""Chart of a metric: daily means with intervals, the baseline, the evidence and the episodes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from math import log10

_BARS = "▁▂▃▄▅▆▇█"
#: Named fonts: PNG converters do not know generic families and would leave out the text.
_FONTS = "Arial, Liberation Sans, DejaVu Sans, Noto Sans, sans-serif"
_WIDTH, _HEIGHT, _LEFT, _RIGHT = 960, 420, 64, 24
_TOP, _MIDDLE, _BOTTOM = (48, 280), (300, 384), 404
_COLOURS = {"warn": "#e6a700", "critical": "#c62828", "recovering": "#2e7d32"}


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
    """Draw the chart as a standalone SVG document: no scripts, no fonts, no references."""
    points = chart.points
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="{_FONTS}" font-size="12">'
    )
    parts = [
        head,
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="26" font-size="16">{escape(chart.title)}</text>',
    ]
    if not points:
        return "".join([*parts, f'<text x="{_LEFT}" y="60">no samples</text></svg>'])
    low, high = _bounds(points)
    first, last = points[0].at_ms, max(points[-1].at_ms, points[0].at_ms + 1)

    def x(at_ms: float) -> float:
        share = min(1.0, max(0.0, (at_ms - first) / (last - first)))
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(value: float, area: tuple[int, int], bottom: float, top: float) -> float:
        share = min(1.0, max(0.0, (value - bottom) / ((top - bottom) or 1)))
        return round(area[1] - share * (area[1] - area[0]), 1)

    for span in chart.spans:
        if span.state in _COLOURS and span.to_ms >= first and span.from_ms <= last:
            wide = max(2.0, x(span.to_ms) - x(span.from_ms))
            parts.append(
                f'<rect x="{x(span.from_ms)}" y="{_TOP[0]}" width="{wide:.1f}" height="{_TOP[1] - _TOP[0]}" '
                f'fill="{_COLOURS[span.state]}" fill-opacity="0.15"><title>{span.state}</title></rect>'
            )
    for place in range(5):
        value = low + (high - low) * place / 4
        at = y(value, _TOP, low, high)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}" stroke="#eceff1"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4}" text-anchor="end" fill="#546e7a">{value:.2f}</text>')
    band = [(x(p.at_ms), y(p.high, _TOP, low, high)) for p in points]
    band += [(x(p.at_ms), y(p.low, _TOP, low, high)) for p in reversed(points)]
    parts.append(f'<polygon points="{_joined(band)}" fill="#1565c0" fill-opacity="0.15"/>')
    parts.append(_line([(x(p.at_ms), y(p.mean, _TOP, low, high)) for p in points], "#1565c0"))
    baselines = [(x(p.at_ms), y(p.baseline, _TOP, low, high)) for p in points if p.baseline is not None]
    parts.append(_line(baselines, "#37474f", dashed=True))
    parts.append(_line([(x(p.at_ms), y(_strength(p.evidence), _MIDDLE, 0, 1)) for p in points], "#6a1b9a"))
    limit = y(_strength(1.0), _MIDDLE, 0, 1)
    parts.append(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{limit}" y2="{limit}" stroke="#c62828" stroke-dasharray="2 3"/>'
        f'<text x="{_LEFT - 8}" y="{limit + 4}" text-anchor="end" fill="#c62828">alert</text>'
        f'<text x="{_LEFT - 8}" y="{_MIDDLE[1]}" text-anchor="end" fill="#6a1b9a">evidence</text>'
    )
    for at_ms, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end")):
        parts.append(
            f'<text x="{x(at_ms)}" y="{_BOTTOM}" text-anchor="{anchor}" fill="#546e7a">{_date(at_ms, chart.day_ms)}</text>'
        )
    parts.append(
        f'<text x="{_WIDTH - _RIGHT}" y="26" text-anchor="end" fill="#546e7a">'
        "mean with 95 % interval, dashed: baseline, shaded: episodes</text></svg>"
    )
    return "".join(parts)


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
    marks = {"warn": "w", "critical": "C", "recovering": "r"}
    states = [s.state for s in chart.spans if s.from_ms < point.at_ms + chart.day_ms and s.to_ms > point.at_ms]
    worst = next((state for state in ("critical", "warn", "recovering") if state in states), "")
    return marks.get(worst, "·")


def _date(at_ms: float, day_ms: float) -> str:
    """Format a date; with the time if the configured day is shorter than 24 hours."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d}" if day_ms >= 86_400_000 else f"{moment:%Y-%m-%d %H:%M:%S}"


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _line(points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<polyline points="{_joined(points)}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>'
