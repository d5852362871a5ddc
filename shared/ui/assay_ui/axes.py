"""Scales, grid and axes of charts. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain, count
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

#: Size of a chart, and the margins of its drawing, in units of its `viewBox`.
WIDTH = 960
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 22
#: Room that a label of a time takes, in the same units. One that is so near to the end of the axis ends at its place.
_LABEL = 90
_MINUTE_MS, _HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
#: Distances between the times of an axis, in milliseconds. Longer ones are the last, doubled.
_STEPS_MS = (
    *(seconds * 1000 for seconds in (1, 2, 5, 10, 30)),
    *(minutes * _MINUTE_MS for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR_MS for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 4, 7, 14, 28)),
)


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


def time_label(at_ms: float, step_ms: float, span_ms: float) -> str:
    """Format a time as precisely as times this far apart need, in a range of this length, UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if step_ms >= DAY_MS:
        return f"{at:%m-%d}"
    clock = f"{at:%H:%M}" if step_ms >= _MINUTE_MS else f"{at:%H:%M:%S}"
    return f"{at:%m-%d} {clock}" if span_ms > DAY_MS else clock


def time_ticks(first: float, last: float) -> tuple[int, Sequence[float]]:
    """Return a step, and at most five of its multiples between two times, in Unix ms.

    A date stands where its day begins.
    """
    for step in chain(_STEPS_MS, (28 * DAY_MS << doubled for doubled in count(1))):
        places = range(ceil(first / step) * step, floor(last) + 1, step)
        if len(places) <= 5:  # more would touch each other on a phone
            return step, places
    raise AssertionError


def grid(values: Sequence[float], y: Scale) -> Markup:
    """Draw a horizontal line with a label at each value."""
    return Markup("").join(
        Markup(
            '<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/><text class="tick" x="{3}" y="{4:.1f}">{5}</text>'
        ).format(LEFT, WIDTH - RIGHT, y(value), LEFT - 6, y(value) + 4, _short(value))
        for value in values
    )


def time_axis(first: float, last: float, x: Scale, height: int) -> Markup:
    """Draw round times below the drawing, each with a mark at its place (Unix ms)."""
    step, places = time_ticks(first, last) if last - first > 1 else (DAY_MS, [first])
    drawn = []
    for at in places:
        name = 'class="time last"' if x(at) > WIDTH - RIGHT - _LABEL else 'class="time"'
        drawn.append(
            f'<line class="grid" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{height - BOTTOM}" y2="{height - BOTTOM + 4}"/>'
            f'<text {name} x="{x(at):.1f}" y="{height - 6}">{time_label(at, step, last - first)}</text>'
        )
    return Markup("".join(drawn))  # noqa: S704  # numbers and times


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
    return f"{value:,.10g}".replace("-", "−")


def points_of(points: Sequence[tuple[float, float]]) -> str:
    """Return the `points` of a polyline or polygon."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
