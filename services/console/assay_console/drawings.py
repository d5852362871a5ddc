"""Charts of what operations return. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

from assay_console.charts import BandPoint, Shade, band
from assay_operations.drift.episodes import Episode, History, Transition


def episode(of: Episode, steps: Sequence[Transition], history: History) -> Markup:
    """Draw the samples around an episode, with its baseline and its states."""
    baseline = of.baseline if history.has_baseline else None
    half = history.width_ms / 2
    points = [
        BandPoint(sample.at_ms + half, sample.mean, sample.low, sample.high, sample.n, baseline)
        for sample in history.samples
    ]
    # The ends of the range, so that the chart is as long as it says.
    points = [
        BandPoint(history.from_ms, None, baseline=baseline),
        *points,
        BandPoint(history.to_ms, None, baseline=baseline),
    ]
    return band(f"{history.unit.replace('_', ' ')}, {of.project}", points, states(steps, history.to_ms))


def states(steps: Sequence[Transition], until_ms: float) -> list[Shade]:
    """Return the periods of an episode's states; the last open one lasts until the end of the chart."""
    ends = [*(step.at.timestamp() * 1000 for step in steps[1:]), until_ms]
    return [
        Shade(step.state, f"{step.state} since {step.at:%Y-%m-%d %H:%M:%S}", step.at.timestamp() * 1000, end)
        for step, end in zip(steps, ends, strict=True)
        if step.state in ("warn", "critical", "recovering")
    ]
