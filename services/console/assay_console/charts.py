"""Charts as SVG, drawn here: no script, no colour in the drawing, a table behind each. Pure.

A chart is a `<figure>`: an SVG with a title, classes that the stylesheet colours in light, dark and forced colours, and
a `<details>` with the numbers as a table. `static/console.js` adds the crosshair and arrow keys from the `data-` attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

from assay_console.formats import NONE, number

_WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 10, 22
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Series:
    """A row of numbers of a chart: name, class in the stylesheet, a value or None for each place."""

    name: str
    kind: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class BandPoint:
    """One point of a band chart: time (Unix ms), mean and its 95 % interval, samples, baseline."""

    at_ms: float
    mean: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    baseline: float | None = None
    #: What changed here, such as a new judge; a vertical line. Empty: nothing.
    breaks: str = ""


@dataclass(frozen=True)
class Shade:
    """A period that is shaded: its class in the stylesheet, its words, and its ends (Unix ms)."""

    kind: str
    label: str
    from_ms: float
    to_ms: float


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round values between two bounds, about as many as asked."""
    span = high - low
    if not isfinite(span) or span <= 0:
        return [low]
    raw = span / about
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, floor(high / step + 1e-9) + 1)]


def time_label(at_ms: float, span_ms: float) -> str:
    """Format a time as precisely as a range of this length needs, UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if span_ms > 3 * _DAY_MS:
        return f"{at:%m-%d}"
    return f"{at:%m-%d %H:%M}" if span_ms > _DAY_MS else f"{at:%H:%M}" if span_ms > 1_800_000 else f"{at:%H:%M:%S}"


def sparkline(values: Sequence[float | None], label: str, usual: Sequence[float | None] = ()) -> Markup:
    """Draw values as bars in a cell, with the usual values as a line behind them."""
    width, height = 120, 24
    top = max([each for each in (*values, *usual) if each is not None], default=0) or 1
    step = width / max(1, len(values))
    parts = [
        Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
            place * step, height - height * value / top, max(0.8, step - 0.6), height * value / top
        )
        for place, value in enumerate(values)
        if value
    ]
    line = " ".join(
        f"{place * step + step / 2:.1f},{height - height * value / top:.1f}"
        for place, value in enumerate(usual)
        if value is not None
    )
    behind = Markup('<polyline class="usual" points="{}"/>').format(line) if line else ""
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}" preserveAspectRatio="none">{}{}</svg>'
    ).format(width, height, width, height, label, Markup("").join(parts), behind)


def bars(
    title: str,
    starts_ms: Sequence[float],
    width_ms: float,
    series: Sequence[Series],
    *,
    height: int = 140,
    unit: str = "",
) -> Markup:
    """Draw stacked bars over time. The numbers are in a table below."""
    totals = [sum(row.values[place] or 0 for row in series) for place in range(len(starts_ms))]
    if not any(totals):
        return Markup("")
    first, last = starts_ms[0], starts_ms[-1] + width_ms
    top = max(totals)
    y = _scale(0, top, height)
    x = _time_scale(first, last)
    parts = [_grid(ticks(0, top, 3), y, height)]
    for place, start in enumerate(starts_ms):
        base = 0.0
        marks = []
        for row in series:
            value = row.values[place] or 0
            if value:
                marks.append(
                    Markup('<rect class="s-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                        row.kind,
                        x(start) + 0.4,
                        y(base + value),
                        max(0.8, x(start + width_ms) - x(start) - 0.8),
                        y(base) - y(base + value),
                    )
                )
                base += value
        if marks:
            words = ", ".join(f"{row.name} {number(row.values[place])}" for row in series if row.values[place])
            parts.append(
                Markup('<g class="mark" data-at="{:.0f}" data-x="{:.1f}" data-label="{}">{}</g>').format(
                    start,
                    x(start + width_ms / 2),
                    f"{time_label(start, last - first)}: {words}{unit}",
                    Markup("").join(marks),
                )
            )
    parts.append(_time_axis(first, last, x, height))
    head = ("time (UTC)", *(row.name for row in series))
    rows = [
        (_iso(start), *(number(row.values[place] or 0) for row in series))
        for place, start in enumerate(starts_ms)
        if totals[place]
    ]
    legend = [(row.name, row.kind) for row in series if any(row.values)]
    return _figure(title, parts, height, head, rows, legend, {"from": first, "to": last, "brush": "1"})


def band(
    title: str,
    points: Sequence[BandPoint],
    shades: Sequence[Shade] = (),
    *,
    height: int = 220,
    bounds: tuple[float, float] | None = None,
) -> Markup:
    """Draw means with their 95 % band, the baseline and shaded periods. The numbers are in a table below."""
    known = [point for point in points if point.mean is not None]
    if not known:
        return Markup("")
    values = [each for p in known for each in (p.mean, p.low, p.high, p.baseline) if each is not None]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.05
    low, high = low - margin, high + margin
    if bounds:
        low, high = max(bounds[0], low), min(bounds[1], high)
    first, last = points[0].at_ms, max(points[-1].at_ms, points[0].at_ms + 1)
    y, x = _scale(low, high, height), _time_scale(first, last)
    parts = [
        Markup('<rect class="shade {}" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>').format(
            each.kind, x(max(first, each.from_ms)), _TOP, max(2.0, x(min(last, each.to_ms)) - x(max(first, each.from_ms))),
            height - _TOP - _BOTTOM, each.label,
        )
        for each in shades
        if each.to_ms >= first and each.from_ms <= last
    ]  # fmt: skip
    parts.append(_grid(ticks(low, high), y, height))
    for run in _runs(points):
        edge = [(x(p.at_ms), y(p.high if p.high is not None else p.mean or 0)) for p in run]
        edge += [(x(p.at_ms), y(p.low if p.low is not None else p.mean or 0)) for p in reversed(run)]
        parts.append(Markup('<polygon class="band" points="{}"/>').format(_points(edge)))
        parts.append(
            Markup('<polyline class="mean" points="{}"/>').format(_points([(x(p.at_ms), y(p.mean or 0)) for p in run]))
        )
        if len(run) == 1 and run[0].low is not None and run[0].high is not None:  # a band of one point has no area
            parts.append(
                Markup('<line class="whisker" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>').format(
                    x(run[0].at_ms), y(run[0].low), y(run[0].high)
                )
            )
    base = [(x(p.at_ms), y(p.baseline)) for p in points if p.baseline is not None]
    if base:
        parts.append(Markup('<polyline class="baseline" points="{}"/>').format(_points(base)))
    for p in points:
        if p.breaks:
            parts.append(
                Markup(
                    '<line class="break" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"><title>{3}</title></line>'
                ).format(x(p.at_ms), _TOP, height - _BOTTOM, p.breaks)
            )
        if p.mean is not None:
            words = f"{time_label(p.at_ms, last - first)}: {number(p.mean, 3)} [{number(p.low, 3)}, {number(p.high, 3)}], n {p.n:,}"
            parts.append(
                Markup(
                    '<circle class="mark" r="2.5" cx="{:.1f}" cy="{:.1f}" data-at="{:.0f}" data-x="{:.1f}" data-label="{}"/>'
                ).format(x(p.at_ms), y(p.mean), p.at_ms, x(p.at_ms), words)
            )
    parts.append(_time_axis(first, last, x, height))
    head = ("time (UTC)", "mean", "95 % low", "95 % high", "n", "baseline")
    rows = [
        (_iso(p.at_ms), number(p.mean, 4), number(p.low, 4), number(p.high, 4), number(p.n), number(p.baseline, 4))
        for p in known
    ]
    legend = [("mean with 95 % interval", "mean"), *([("baseline", "baseline")] if base else [])]
    legend += [(each, each) for each in dict.fromkeys(shade.kind for shade in shades)]
    return _figure(title, parts, height, head, rows, legend, {"from": first, "to": last})


def dot(low: float, value: float, high: float, bounds: tuple[float, float], label: str) -> Markup:
    """Draw one value with its 95 % interval in a cell."""
    width, height = 120, 16
    span = (bounds[1] - bounds[0]) or 1

    def x(each: float) -> float:
        return 3 + (width - 6) * min(1.0, max(0.0, (each - bounds[0]) / span))

    return Markup(
        '<svg class="dot" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        '<line class="axis" x1="3" x2="{3}" y1="8" y2="8"/><line class="range" x1="{4:.1f}" x2="{5:.1f}" y1="8" y2="8"/>'
        '<circle r="3" cx="{6:.1f}" cy="8"/></svg>'
    ).format(width, height, label, width - 3, x(low), x(high), x(value))


@dataclass(frozen=True)
class ForestRow:
    """A row of a forest plot: a change with its interval, its threshold, and the verdict on it.

    Values are gains: above 0 is better. `threshold` is the change that fails, 0 or below; None if there is none.
    """

    name: str
    low: float
    value: float
    high: float
    threshold: float | None
    verdict: str
    label: str


def forest(title: str, rows: Sequence[ForestRow]) -> Markup:
    """Draw a line for each change: interval, value, threshold.

    Right is better. The numbers are in a table next to the chart.
    """
    if not rows:
        return Markup("")
    worst = max(0.02, *(-each.low for each in rows), *(-(each.threshold or 0) for each in rows)) * 1.1
    best = max(0.02, 0.25 * worst, *(each.high for each in rows)) * 1.1
    left, step = 210, 26
    height = step * len(rows) + 40
    x = _Scale(-worst, best, left, _WIDTH - _RIGHT)
    parts = [Markup('<line class="zero" x1="{0:.1f}" x2="{0:.1f}" y1="10" y2="{1}"/>').format(x(0), height - 24)]
    for place, each in enumerate(rows):
        y = 24 + place * step
        limit = Markup("")
        if each.threshold is not None:
            limit = Markup('<line class="limit" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(
                x(each.threshold), y - 8, y + 8
            )
        parts.append(
            Markup(
                '<g class="v-{}"><title>{}</title><text class="tick" x="{}" y="{}">{}</text>{}'
                '<line class="reach" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>{}</g>'
            ).format(
                each.verdict, each.label, left - 10, y + 4, each.name, limit, x(each.low), x(each.high), y, y,
                _mark(each.verdict, x(each.value), y),
            )
        )  # fmt: skip
    parts.append(
        Markup(
            '<text x="{0}" y="{1}">worse by {2:.2f}</text><text x="{3}" y="{1}" text-anchor="end">better by {4:.2f}</text>'
        ).format(left, height - 6, worst, _WIDTH - _RIGHT, best)
    )
    return Markup(
        '<figure class="chart forest"><figcaption>{} <span class="legend">line: 95 % interval; dashed: the change that '
        'fails; right is better</span></figcaption><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></figure>'
    ).format(title, _WIDTH, height, title, Markup("").join(parts))


def _mark(verdict: str, x: float, y: float) -> Markup:
    """Return a mark whose shape is the verdict: circle, triangle or diamond."""
    if verdict == "fail":
        return Markup('<polygon points="{}"/>').format(_points([(x, y - 7), (x + 7, y + 5), (x - 7, y + 5)]))
    if verdict == "inconclusive":
        return Markup('<polygon points="{}"/>').format(_points([(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)]))
    return Markup('<circle r="5" cx="{:.1f}" cy="{:.1f}"/>').format(x, y)


class _Scale:
    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._span = low, (high - low) or 1
        self._start, self._length = start, end - start

    def __call__(self, value: float) -> float:
        return self._start + self._length * (value - self._low) / self._span


def _scale(low: float, high: float, height: int) -> _Scale:
    return _Scale(low, high, height - _BOTTOM, _TOP)


def _time_scale(first: float, last: float) -> _Scale:
    return _Scale(first, last, _LEFT, _WIDTH - _RIGHT)


def _runs(points: Sequence[BandPoint]) -> list[list[BandPoint]]:
    """Return the parts of a line: it is interrupted where a value is missing or something changed."""
    runs: list[list[BandPoint]] = [[]]
    for point in points:
        if point.mean is None or point.breaks:
            runs.append([])
        if point.mean is not None:
            runs[-1].append(point)
    return [run for run in runs if run]


def _grid(values: Sequence[float], y: _Scale, height: int) -> Markup:
    del height
    return Markup("").join(
        Markup(
            '<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/><text class="tick" x="{3}" y="{4:.1f}">{5}</text>'
        ).format(_LEFT, _WIDTH - _RIGHT, y(value), _LEFT - 6, y(value) + 4, _short(value))
        for value in values
    )


def _time_axis(first: float, last: float, x: _Scale, height: int) -> Markup:
    places = [first + (last - first) * share for share in (0, 0.25, 0.5, 0.75, 1)]
    anchors = ("start", "middle", "middle", "middle", "end")
    return Markup("").join(
        Markup('<text class="time" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            x(at), height - 6, anchor, time_label(at, last - first)
        )
        for at, anchor in zip(places, anchors, strict=True)
    )


def _figure(
    title: str, parts: Sequence[Markup], height: int, head: Sequence[str], rows: Sequence[Sequence[str]],
    legend: Sequence[tuple[str, str]], data: dict[str, object],
) -> Markup:  # fmt: skip
    marks = Markup("").join(Markup('<span class="key s-{}">{}</span>').format(kind, name) for name, kind in legend)
    attributes = Markup("").join(Markup(' data-{}="{}"').format(name, value) for name, value in data.items())
    cells = Markup("").join(
        Markup("<tr><th scope=row>{}</th>{}</tr>").format(
            row[0], Markup("").join(Markup("<td>{}</td>").format(each or NONE) for each in row[1:])
        )
        for row in rows
    )
    heads = Markup("").join(Markup("<th scope=col>{}</th>").format(each) for each in head)
    return Markup(
        '<figure class="chart"{}><figcaption>{} <span class="legend">{}</span></figcaption>'
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" tabindex="0">'
        '<g class="marks">{}</g><line class="cross" y1="{}" y2="{}"/></svg>'
        '<output class="readout" aria-live="polite"></output>'
        '<details class="numbers"><summary>Numbers</summary><div class="wide"><table>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details></figure>"
    ).format(
        attributes, title, marks, _WIDTH, height, title, Markup("").join(parts), _TOP, height - _BOTTOM, heads, cells
    )


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
    return f"{value:,.10g}".replace("-", "−")


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _iso(at_ms: float) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
