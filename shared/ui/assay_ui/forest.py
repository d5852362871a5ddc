"""Forest plots: a line for each change, with its interval and the verdict on it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup

from assay_ui.axes import RIGHT, WIDTH, Scale, points_of
from assay_ui.formats import signed, visible


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


class Change(Protocol):
    """The change of a metric between two runs, its interval, and the loss that fails."""

    @property
    def metric(self) -> str:
        """The metric's name."""
        ...

    @property
    def delta(self) -> float:
        """Candidate less baseline."""
        ...

    @property
    def low(self) -> float:
        """Lower end of the 95 % interval."""
        ...

    @property
    def high(self) -> float:
        """Upper end of the 95 % interval."""
        ...

    @property
    def threshold(self) -> float | None:
        """The loss that fails; None if no change does."""
        ...

    @property
    def lower_is_better(self) -> bool:
        """True if a gain is below 0."""
        ...

    @property
    def verdict(self) -> str:
        """pass, fail or inconclusive."""
        ...


def changes_drawn(metrics: Sequence[Change]) -> Markup:
    """Draw the changes of shares with their intervals; search paths have no better or worse."""
    rows = []
    for each in metrics:
        if each.metric.endswith("_ms") or each.metric.startswith("path:"):
            continue
        sign = -1.0 if each.lower_is_better else 1.0
        low, high = sorted((sign * each.low, sign * each.high))
        label = f"{each.metric}: {signed(each.delta)} [{signed(each.low)}, {signed(each.high)}], {each.verdict}"
        limit = None if each.threshold is None else -each.threshold
        rows.append(ForestRow(each.metric, low, sign * each.delta, high, limit, each.verdict, label))
    return forest("Change of each metric", rows)


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
    x = Scale(-worst, best, left, WIDTH - RIGHT)
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
                each.verdict, visible(each.label), left - 10, y + 4, visible(each.name), limit, x(each.low), x(each.high), y, y,
                _mark(each.verdict, x(each.value), y),
            )
        )  # fmt: skip
    parts.append(
        Markup(
            '<text x="{0}" y="{1}">worse by {2:.2f}</text><text x="{3}" y="{1}" text-anchor="end">better by {4:.2f}</text>'
        ).format(left, height - 6, worst, WIDTH - RIGHT, best)
    )
    return Markup(
        '<figure class="chart forest"><figcaption>{} <span class="legend">line: 95 % interval; dashed: the change that '
        'fails; right is better</span></figcaption><svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg></figure>'
    ).format(visible(title), WIDTH, height, visible(title), Markup("").join(parts))


def _mark(verdict: str, x: float, y: float) -> Markup:
    """Return a mark whose shape is the verdict: circle, triangle or diamond."""
    if verdict == "fail":
        return Markup('<polygon points="{}"/>').format(points_of([(x, y - 7), (x + 7, y + 5), (x - 7, y + 5)]))
    if verdict == "inconclusive":
        return Markup('<polygon points="{}"/>').format(points_of([(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)]))
    return Markup('<circle r="5" cx="{:.1f}" cy="{:.1f}"/>').format(x, y)
