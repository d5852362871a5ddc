"""Charts over time as SVG, without script and without colour, and with a table behind each. Pure.

A chart is a `<figure>`: an SVG with a title, classes that the stylesheet colours in light, dark and forced colours, and
a `<details>` with the numbers as a table. `static/console.js` adds the crosshair and arrow keys from the `data-` attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from markupsafe import Markup, escape

from assay_ui.axes import (
    BOTTOM,
    DAY_MS,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    grid,
    points_of,
    ticks,
    time_axis,
    time_label,
    time_scale,
    value_scale,
)
from assay_ui.formats import NONE, number, visible

#: The shape of a state of an alert, so that it is not said by colour alone.
_SHAPES = {"critical": "▲", "warn": "◆", "recovering": "●"}


@dataclass(frozen=True)
class Series:
    """A row of numbers of a chart: name, class in the stylesheet, a value or None for each place."""

    name: str
    kind: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Alerted:
    """The worst state that an alert had at a point, as a class of the stylesheet, and its words."""

    state: str
    words: str


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
    #: An alert within the time of the point.
    alert: Alerted | None = None


@dataclass(frozen=True)
class Shade:
    """A period that is shaded: its class in the stylesheet, its words, and its ends (Unix ms)."""

    kind: str
    label: str
    from_ms: float
    to_ms: float


def bars(
    title: str,
    starts_ms: Sequence[float],
    width_ms: float,
    series: Sequence[Series],
    *,
    height: int = 140,
    unit: str = "",
    brush: bool = True,
) -> Markup:
    """Draw stacked bars over time, of which people can choose a range (`brush`).

    The numbers are in a table below.
    """
    totals = [sum(row.values[place] or 0 for row in series) for place in range(len(starts_ms))]
    if not any(totals):
        return Markup("")
    first, last = starts_ms[0], starts_ms[-1] + width_ms
    top = max(totals)
    y = value_scale(0, top, height)
    x = time_scale(first, last)
    parts = [grid(ticks(0, top, 3), y)]
    # A chart has up to a thousand bars: `Markup.format` would take as long for them as the rest of the page does.
    kinds = [escape(row.kind) for row in series]
    marks = []
    for place, start in enumerate(starts_ms):
        if not totals[place]:
            continue
        left, width = x(start) + 0.4, max(0.8, x(start + width_ms) - x(start) - 0.8)
        base, bottom = 0.0, y(0)
        stack = []
        for kind, row in zip(kinds, series, strict=True):
            if value := row.values[place]:
                base += value
                edge = y(base)
                stack.append(
                    f'<rect class="s-{kind}" x="{left:.1f}" y="{edge:.1f}" width="{width:.1f}" height="{bottom - edge:.1f}"/>'
                )
                bottom = edge
        words = ", ".join(f"{row.name} {number(row.values[place])}" for row in series if row.values[place])
        label = escape(f"{time_label(start, width_ms, last - first)}: {words}{unit}")
        marks.append(
            f'<g class="mark" data-at="{start:.0f}" data-x="{x(start + width_ms / 2):.1f}" data-label="{label}">'
            f"{''.join(stack)}</g>"
        )
    parts.append(Markup("".join(marks)))  # noqa: S704  # texts are escaped above
    parts.append(time_axis(first, last, x, height))
    head = ("time (UTC)", *(row.name for row in series))
    rows = [
        (_iso(start), *(number(row.values[place] or 0) for row in series))
        for place, start in enumerate(starts_ms)
        if totals[place]
    ]
    legend = [(row.name, row.kind) for row in series if any(row.values)]
    return _figure(
        title, parts, height, head, rows, legend, {"from": first, "to": last} | ({"brush": "1"} if brush else {})
    )


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
    first, last = ends(points)
    has_alert = any(p.alert for p in known)
    head = ("time (UTC)", "mean", "95 % low", "95 % high", "n", "baseline", *(("alert",) if has_alert else ()))
    rows = [
        (
            *(
                _iso(p.at_ms),
                number(p.mean, 4),
                number(p.low, 4),
                number(p.high, 4),
                number(p.n),
                number(p.baseline, 4),
            ),
            *((p.alert.words if p.alert else "",) if has_alert else ()),
        )
        for p in known
    ]
    has_baseline = any(p.baseline is not None for p in points)
    legend = [("mean with 95 % interval", "mean"), *([("baseline", "baseline")] if has_baseline else [])]
    legend += [(each, each) for each in dict.fromkeys(shade.kind for shade in shades)]
    marks = [*band_marks(points, shades, height, bounds), time_axis(first, last, time_scale(first, last), height)]
    return _figure(title, marks, height, head, rows, legend, {"from": first, "to": last})


def ends(points: Sequence[BandPoint]) -> tuple[float, float]:
    """Return the first and the last time of a chart (Unix ms); they differ."""
    return points[0].at_ms, max(points[-1].at_ms, points[0].at_ms + 1)


def band_marks(
    points: Sequence[BandPoint], shades: Sequence[Shade], height: int, bounds: tuple[float, float] | None = None
) -> list[Markup]:
    """Return the marks of a band chart, without the axis of time. At least one point has a mean."""
    values = [each for p in points for each in (p.mean, p.low, p.high, p.baseline) if each is not None]
    times = [p.at_ms for p in points]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.05
    low, high = low - margin, high + margin
    if bounds:
        low, high = max(bounds[0], low), min(bounds[1], high)
    first, last = ends(points)
    apart = min((later - at for at, later in pairwise(times) if later > at), default=DAY_MS)
    y, x = value_scale(low, high, height), time_scale(first, last)
    parts = [
        Markup(
            '<rect class="shade {0}" x="{1:.1f}" y="{2}" width="{3:.1f}" height="{4}"><title>{5}</title></rect>'
            '<text class="shape {0}" x="{1:.1f}" y="{2}">{6}</text>'
        ).format(
            each.kind, start, TOP, max(2.0, x(min(last, each.to_ms)) - start), height - TOP - BOTTOM, visible(each.label),
            _SHAPES.get(each.kind, ""),
        )
        for each in shades
        if each.to_ms >= first and each.from_ms <= last
        for start in (x(max(first, each.from_ms)),)
    ]  # fmt: skip
    parts.append(grid(ticks(low, high), y))
    for run in _runs(points):
        edge = [(x(p.at_ms), y(p.high if p.high is not None else p.mean or 0)) for p in run]
        edge += [(x(p.at_ms), y(p.low if p.low is not None else p.mean or 0)) for p in reversed(run)]
        parts.append(Markup('<polygon class="band" points="{}"/>').format(points_of(edge)))
        parts.append(
            Markup('<polyline class="mean" points="{}"/>').format(
                points_of([(x(p.at_ms), y(p.mean or 0)) for p in run])
            )
        )
        if len(run) == 1 and run[0].low is not None and run[0].high is not None:  # a band of one point has no area
            parts.append(
                Markup('<line class="whisker" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>').format(
                    x(run[0].at_ms), y(run[0].low), y(run[0].high)
                )
            )
    base = [(x(p.at_ms), y(p.baseline)) for p in points if p.baseline is not None]
    if base:
        parts.append(Markup('<polyline class="baseline" points="{}"/>').format(points_of(base)))
    for p in points:
        if p.breaks:
            parts.append(
                Markup(
                    '<line class="break" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"><title>{3}</title></line>'
                ).format(x(p.at_ms), TOP, height - BOTTOM, visible(p.breaks))
            )
        if p.mean is not None:
            words = f"{time_label(p.at_ms, apart, last - first)}: {number(p.mean, 3)} [{number(p.low, 3)}, {number(p.high, 3)}], n {p.n:,}"
            if p.alert:
                words += f"; {p.alert.words}"
                parts.append(
                    Markup('<path class="alerted {}" d="M{:.1f} {:.1f}l6 10h-12z"><title>{}</title></path>').format(
                        p.alert.state, x(p.at_ms), max(TOP, y(p.mean) - 16), visible(p.alert.words)
                    )
                )
            parts.append(
                Markup(
                    '<circle class="mark" r="2.5" cx="{:.1f}" cy="{:.1f}" data-at="{:.0f}" data-x="{:.1f}" data-label="{}"/>'
                ).format(x(p.at_ms), y(p.mean), p.at_ms, x(p.at_ms), words)
            )
    return parts


def trail(
    points: Sequence[tuple[float, float]], ends: tuple[float, float], top: int, height: int, limit: float, name: str
) -> list[Markup]:
    """Return the marks of a line below another chart: values from 0 to 1, and their limit."""
    x, y = time_scale(*ends), Scale(0, 1, top + height, top)
    line = points_of([(x(at_ms), y(min(1.0, max(0.0, value)))) for at_ms, value in points])
    return [
        Markup(
            '<line class="limit" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/><text class="tick" x="{3}" y="{4:.1f}">alert</text>'
        ).format(LEFT, WIDTH - RIGHT, y(limit), LEFT - 6, y(limit) + 4),
        Markup('<text x="{}" y="{}">{}</text>').format(LEFT, top - 5, name),
        Markup('<polyline class="trail" points="{}"/>').format(line),
    ]


def _runs(points: Sequence[BandPoint]) -> list[list[BandPoint]]:
    """Return the parts of a line: it is interrupted where a value is missing or something changed."""
    runs: list[list[BandPoint]] = [[]]
    for point in points:
        if point.mean is None or point.breaks:
            runs.append([])
        if point.mean is not None:
            runs[-1].append(point)
    return [run for run in runs if run]


def _figure(
    title: str, parts: Sequence[Markup], height: int, head: Sequence[str], rows: Sequence[Sequence[str]],
    legend: Sequence[tuple[str, str]], data: dict[str, object],
) -> Markup:  # fmt: skip
    title = visible(title)
    marks = Markup("").join(
        Markup('<span class="key s-{}">{}</span>').format(kind, visible(name)) for name, kind in legend
    )
    attributes = Markup("").join(Markup(' data-{}="{}"').format(name, value) for name, value in data.items())
    cells = Markup(  # noqa: S704  # texts are escaped
        "".join(
            f"<tr><th scope=row>{escape(row[0])}</th>{''.join(f'<td>{escape(each or NONE)}</td>' for each in row[1:])}</tr>"
            for row in rows
        )
    )
    heads = Markup("").join(Markup("<th scope=col>{}</th>").format(each) for each in head)
    return Markup(
        '<figure class="chart"{}><figcaption>{} <span class="legend">{}</span></figcaption>'
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" tabindex="0">'
        '<g class="marks">{}</g><line class="cross" y1="{}" y2="{}"/></svg>'
        '<output class="readout" aria-live="polite"></output>'
        '<details class="numbers"><summary>Numbers</summary><div class="wide"><table>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details></figure>"
    ).format(attributes, title, marks, WIDTH, height, title, Markup("").join(parts), TOP, height - BOTTOM, heads, cells)


def _iso(at_ms: float) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
