"""Stored samples and episodes of a metric."""

import time
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_schema.printable import printable
from assay_schema.settings import DriftSettings

if TYPE_CHECKING:
    from assay_drift.charts import Span
    from assay_runtime.store import Client as Store


_SCORES = """
SELECT toUnixTimestamp64Milli(event_time), VALUE FROM scores
WHERE project = {project:String} AND fingerprint = {series:String} AND base AND HAS_ONE
  AND event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
ORDER BY event_time, event_id
"""
_LATEST = """
SELECT argMax(fingerprint, event_time) FROM scores WHERE project = {project:String} AND base AND HAS_ONE
"""
_STEPS = """
SELECT toString(alert_id), toString(state), toUnixTimestamp64Milli(at) FROM alerts
WHERE project = {project:String} AND metric = {metric:String} AND series = {series:String} ORDER BY alert_id, sequence
"""


def latest(store: "Store", project: str, metric: str) -> str:
    """Return the judge's latest fingerprint for a metric. Raises `OperationError` without scores."""
    fingerprint = str(store.query(_of(_LATEST, metric), parameters={"project": project}).result_rows[0][0])
    if not fingerprint:
        raise OperationError(
            "invalid",
            f"no scores of {printable(metric)} for {printable(project)}; `assay drift status` lists the series",
        )
    return fingerprint


def samples(store: "Store", project: str, metric: str, series: str, since_ms: int) -> list[tuple[float, float]]:
    """Return the samples of a series as (Unix milliseconds, value)."""
    named = {"project": project, "series": series, "since": since_ms}
    rows = store.query(_of(_SCORES, metric), parameters=named).result_rows
    return [(float(at_ms), float(value)) for at_ms, value in rows]


def _of(statement: str, metric: str) -> str:
    """Fill a statement with the columns of a metric."""
    from assay_schema.alert_actions import samples_of
    from assay_schema.scores import is_amount

    if is_amount(metric):
        raise OperationError(
            "invalid", f"--metric: {metric} is not a score; its alert (assay alerts list) has a query that shows it"
        )
    try:
        value, has_one = samples_of(metric)
    except ValueError:
        raise OperationError(
            "invalid", f"--metric: {printable(metric)!r} is not a metric; `assay drift status` lists them"
        ) from None
    return statement.replace("VALUE", value).replace("HAS_ONE", has_one)


def spans_of(store: "Store", project: str, metric: str, series: str) -> "list[Span]":
    """Return the spans of time in which the series' episodes had each state."""
    from assay_drift.charts import Span

    rows = store.query(_STEPS, parameters={"project": project, "metric": metric, "series": series}).result_rows
    now_ms = time.time() * 1000
    spans = []
    for index, (alert_id, state, at_ms) in enumerate(rows):
        following = rows[index + 1] if index + 1 < len(rows) else None
        until = float(following[2]) if following and following[0] == alert_id else now_ms
        spans.append(Span(str(state), float(at_ms), until))
    return spans


def settings_note(drift: DriftSettings, source: str) -> str:
    """Return a note about the settings behind a history.

    With settings other than the service's, its baseline differs from that of `status`.
    """
    return (
        f"  recomputed: a day is {drift.day_minutes:g} minutes, a baseline needs {drift.learning_samples} samples "
        f"over {drift.learning_days:g} days; settings of {source}"
    )
