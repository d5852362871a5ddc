"""Charts of drift: the history of a metric, or a simulation."""

import importlib
from collections.abc import Iterable

from assay_drift.charts import Chart, Span, share_text, svg, terminal
from assay_drift.replay import replay
from assay_drift.simulation import DAY_MS, Scenario, samples
from assay_operations.errors import OperationError
from assay_schema.settings import DriftSettings

__all__ = ["Chart", "Scenario", "Span", "day_of", "png", "replay", "share_text", "simulated", "svg", "terminal"]

#: 2026-01-01 in Unix milliseconds: the start of a simulation.
_START_MS = 1_767_225_600_000.0


def simulated(scenario: Scenario, seed: int, watched: DriftSettings) -> Chart:
    """Run the detector on simulated scores."""
    times, scores = samples(scenario, seed)
    pairs: Iterable[tuple[float, float]] = (
        (_START_MS + at * DAY_MS, score) for at, score in zip(times.tolist(), scores.tolist(), strict=True)
    )
    what = f"{scenario.drop:.0%} {'lost each day' if scenario.shape == 'ramp' else 'lost'} from day {scenario.at_day}"
    title = f"simulated, {what}, {scenario.per_day} scores a day"
    return replay(title, "faithfulness", pairs, watched.model_copy(update={"day_minutes": 1440.0}))


def day_of(at_ms: float) -> float:
    """Return the day of a simulation for a time in Unix milliseconds."""
    return (at_ms - _START_MS) / DAY_MS


def png(picture: str) -> bytes:
    """Convert the SVG of a chart to PNG. Raises `OperationError` without the package for it."""
    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        raise OperationError(
            "unavailable", "--png needs the package resvg-py: pip install resvg-py (or use --svg)"
        ) from None
    return bytes(resvg.svg_to_bytes(svg_string=picture))
