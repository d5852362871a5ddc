"""Charts of drift: the history of a metric, or a simulation."""

import importlib
from collections.abc import Iterable
from pathlib import Path

from assay_drift.charts import Chart, Span, share_text, svg, terminal
from assay_drift.replay import replay
from assay_drift.simulation import DAY_MS, Scenario, samples
from assay_operations.errors import OperationError
from assay_schema.settings import DriftSettings

__all__ = ["Chart", "Scenario", "Span", "day_of", "png", "replay", "save", "share_text", "simulated", "svg", "terminal"]

#: 2026-01-01 in Unix milliseconds: the start of a simulation.
_START_MS = 1_767_225_600_000.0


def simulated(scenario: Scenario, seed: int, watched: DriftSettings) -> Chart:
    """Run the detector on simulated scores. Raises `OperationError` for scores that cannot exist."""
    mean, variance = scenario.mean, scenario.deviation**2
    if not 0.05 <= mean <= 0.95 or not 0 < variance < mean * (1 - mean) or not 0 <= scenario.drop < 1:
        raise OperationError(
            "invalid", "out of range: --mean 0.05 to 0.95, --deviation below sqrt(mean * (1 - mean)), --drop 0 to 1"
        )
    times, scores = samples(scenario, seed)
    pairs: Iterable[tuple[float, float]] = (
        (_START_MS + at * DAY_MS, score) for at, score in zip(times.tolist(), scores.tolist(), strict=True)
    )
    what = f"{100 * scenario.drop:g} % {'lost each day' if scenario.shape == 'ramp' else 'lost'} from day {scenario.at_day}"
    title = f"simulated, {what}, {scenario.per_day} scores a day"
    return replay(title, "faithfulness", pairs, watched.model_copy(update={"day_minutes": 1440.0}))


def day_of(at_ms: float) -> float:
    """Return the day of a simulation for a time in Unix milliseconds."""
    return (at_ms - _START_MS) / DAY_MS


def save(chart: Chart, svg_file: Path | None, png_file: Path | None) -> None:
    """Write a chart to files. Raises `OperationError` for PNG without the package for it."""
    picture = svg(chart)
    if svg_file:
        svg_file.write_text(picture, encoding="utf-8")
    if png_file:
        png_file.write_bytes(png(picture))


def png(picture: str) -> bytes:
    """Convert the SVG of a chart to PNG. Raises `OperationError` without the package for it."""
    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        raise OperationError(
            "unavailable", "--png needs the package resvg-py: pip install resvg-py (or use --svg)"
        ) from None
    return bytes(resvg.svg_to_bytes(svg_string=picture))
