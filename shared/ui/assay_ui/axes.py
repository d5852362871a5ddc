"""Scales, grid and axes of charts. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

#: Size of a chart, and the margins of its drawing, in units of its `viewBox`.
WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 22
_DAY_MS = 86_400_000


class Scale:
    """A linear map from values to places in the drawing."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._span = low, (high - low) or 1
        self._start, self._length = start, end - start

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        return self._start + self._length * (value - self._low) / self._span


def value_scale(low: float, high: float, height: int) -> Scale:
    """Return the scale of the vertical axis: larger values are higher up."""
    return Scale(low, high, height - BOTTOM, TOP)


def time_scale(first: float, last: float) -> Scale:
    """Return the scale of the horizontal axis, from Unix ms."""
    return Scale(first, last, LEFT, WIDTH - RIGHT)


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


def grid(values: Sequence[float], y: Scale) -> Markup:
    """Draw a horizontal line with a label at each value."""
    return Markup("").join(
        Markup(
            '<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/><text class="tick" x="{3}" y="{4:.1f}">{5}</text>'
        ).format(LEFT, WIDTH - RIGHT, y(value), LEFT - 6, y(value) + 4, _short(value))
        for value in values
    )


def time_axis(first: float, last: float, x: Scale, height: int) -> Markup:
    """Draw five times below the drawing, from the first to the last (Unix ms)."""
    places = [first + (last - first) * share for share in (0, 0.25, 0.5, 0.75, 1)]
    anchors = ("start", "middle", "middle", "middle", "end")
    return Markup("").join(
        Markup('<text class="time" x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
            x(at), height - 6, anchor, time_label(at, last - first)
        )
        for at, anchor in zip(places, anchors, strict=True)
    )


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
    return f"{value:,.10g}".replace("-", "−")


def points_of(points: Sequence[tuple[float, float]]) -> str:
    """Return the `points` of a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
