"""Charts of the size of a table's cell. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

from assay_ui.formats import visible


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
    ).format(width, height, width, height, visible(label), Markup("").join(parts), behind)


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
    ).format(width, height, visible(label), width - 3, x(low), x(high), x(value))
