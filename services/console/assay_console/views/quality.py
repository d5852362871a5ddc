"""Quality by day: means, corrections by people, the baseline of the detector, episodes, coverage."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.scope import Scope, link
from assay_console.views.events import FILTER
from assay_operations.drift.monitor import watched
from assay_operations.judging.quality import Judged, Metric, judged, quality
from assay_runtime.connection import Client
from assay_schema.settings import Settings


class Watched(Document):
    """The detector's state of a series. An `evidence` of 1 raises an alert."""

    project: str
    metric: str
    series: str
    state: str
    baseline: float | None
    last_day: float | None
    n_last_day: int | None
    evidence: float | None
    note: str


class MetricRow(Document):
    """A metric, and what the detector knows of it; None if it watches no such series."""

    of: Metric
    detector: Watched | None
    #: The answers with the lowest values of this range; empty for a metric that is not of answers, or better when low.
    lowest: str


class JudgedRow(Document):
    """Counts of judged answers, with the share of sampled ones that ended well."""

    counts: Judged
    coverage: float | None


class QualityPage(Document):
    """Every metric of every project, what the detector knows of it, and how much was judged."""

    metric: str
    days: int
    metrics: Panel[list[MetricRow]]
    #: Labels that a calibration needs before its figures are shown (`drift.calibration_labels`).
    labels_needed: int
    #: True if `drift.page_uncalibrated` lets alerts of a judge be critical that people did not confirm.
    pages_anyway: bool
    more: bool
    watched: Panel[list[Watched]]
    judged: Panel[list[JudgedRow]]
    #: Why nothing is judged; empty if something is.
    why: str


async def read(ask: Ask) -> QualityPage:
    """Read days, the detector's state and coverage at the same time."""
    last = datetime.fromtimestamp((ask.scope.to_ms - 1) / 1000, UTC).date()
    first = datetime.fromtimestamp(ask.scope.from_ms / 1000, UTC).date()
    first = max(first, last - timedelta(days=366))
    metrics, counts, series = await asyncio.gather(
        ask.panel(quality, first, last, ask.scope.project, ask.text("metric")),
        ask.panel(judged, first, last, ask.scope.project),
        ask.redis_panel(_watched, ask.settings, ask.scope.project),
    )
    rows = None if counts.value is None else [JudgedRow(counts=each, coverage=each.coverage) for each in counts.value]
    found, needed = None, ask.settings.drift.calibration_labels
    if metrics.value is not None:
        found = [
            MetricRow(of=blind(each, needed), detector=detector_of(each, series.value), lowest=lowest(each, ask.scope))
            for each in metrics.value.metrics
        ]
    return QualityPage(
        metric=ask.text("metric"),
        days=(last - first).days + 1,
        metrics=metrics.holding(found),
        labels_needed=needed,
        pages_anyway=ask.settings.drift.page_uncalibrated,
        more=metrics.value is not None and metrics.value.more,
        watched=series,
        judged=counts.holding(rows),
        why="" if metrics.value is None or metrics.value.metrics else why_nothing(counts.value),
    )  # fmt: skip


def blind(metric: Metric, needed: int) -> Metric:
    """Hide the agreement of a metric with people while there are too few labels. Pure.

    It would sway who labels.
    """
    known = metric.calibration
    if known is None or known.labels >= needed:
        return metric
    return replace(metric, calibration=replace(known, kappa=None, tpr=None, tnr=None))


def why_nothing(counts: tuple[Judged, ...] | None) -> str:
    """Return the reason why no metric has a value. Pure."""
    if counts is None:
        return "It is not known why: the store does not tell how much was judged."
    if not counts:
        return "No answer of this time was seen by the judge: is it running, are answers captured, is the range long enough?"
    total = {
        name: sum(getattr(each, name) for each in counts)
        for name in ("sampled", "judge_error", "skipped_budget", "no_context", "abstained")
    }
    if not total["sampled"]:
        return "The judge saw answers, and sampled none: see judge.base_rate."
    of = f"of {total['sampled']:,} sampled answers"
    worst = max(("judge_error", "skipped_budget", "no_context", "abstained"), key=lambda name: total[name])
    return {
        "judge_error": f"The judge failed on {total[worst]:,} {of}: is its key right?",
        "skipped_budget": f"The budget was used up for {total[worst]:,} {of}: see judge.budget_usd_per_day.",
        "no_context": f"{total[worst]:,} {of} have no passage to judge them by: pass contexts= to the SDK.",
        "abstained": f"{total[worst]:,} {of} make no claim to judge.",
    }[worst]


def lowest(metric: Metric, scope: Scope) -> str:
    """Return the link to answers that scored below the mean of the latest day. Pure."""
    name = f"metric.{metric.metric}<"
    if name not in {each.name for each in FILTER} or metric.metric == "hallucination_rate":
        return ""
    own = {"project": metric.project, "kind": "answer", name: f"{metric.days[-1].mean:.2f}"}
    return link("/events", scope.parameters(), own)


def detector_of(metric: Metric, series: list[Watched] | None) -> Watched | None:
    """Return what the detector knows of a metric by its latest judge. Pure."""
    return next(
        (each for each in series or () if (each.project, each.metric, each.series) == (metric.project, metric.metric, metric.fingerprint)),
        None,
    )  # fmt: skip


async def _watched(redis: Client, settings: Settings, project: str) -> list[Watched]:
    rows: list[dict[str, Any]] = await watched(redis, settings)
    names = Watched.model_fields
    return [
        Watched.model_validate({name: row[name] for name in names})
        for row in rows
        if row["watched"] == "score" and row["metric"] and row["series"] and project in ("", row["project"])
    ]


PAGE = Page(
    "quality",
    "/quality",
    "Quality",
    "Is it still good?",
    read,
    QualityPage,
    (Parameter("metric", "Only this metric; empty: all.", longest=64),),
    span="30d",
    key="q",
    by_project=True,
    sql="SELECT * FROM quality_by_day WHERE day > today() - 30 ORDER BY day DESC, project, metric",
    command="assay query quality",
)
