"""Status of the monitored series, one row each. Pure."""

from typing import TYPE_CHECKING, Any

from assay_schema.scores import is_amount
from assay_schema.settings import DriftSettings

if TYPE_CHECKING:
    from assay_drift.amounts import Amount
    from assay_drift.monitor import Monitor
    from assay_drift.retrieval import Scaled
    from assay_drift.series import Calendar, Series

_EMPTY: dict[str, Any] = {"baseline": None, "last_day": None, "n_last_day": None, "evidence": None, "note": ""}


def rows_of(monitor: "Monitor", watched: DriftSettings) -> list[dict[str, Any]]:
    """Return the series of a shard. Means are in the metric's unit; `evidence` of 1 raises an alert."""
    from assay_drift.readings import shown
    from assay_drift.series import HOURS, Calendar
    from assay_schema.alerts import AlertKind

    calendar = Calendar.of(watched)
    series: list[tuple[AlertKind, str, Series, Scaled | Amount | None]] = [
        (AlertKind.SCORE_DRIFT, key, each, None) for key, each in monitor.scores.items()
    ]
    series += [(AlertKind.RETRIEVAL_DRIFT, key, each.series, each) for key, each in monitor.retrieval.items()]
    series += [(AlertKind.SCORE_DRIFT, key, each.series, each) for key, each in monitor.amounts.items()]
    rows: list[dict[str, Any]] = []
    for kind, key, each, of in series:
        project, metric, source = key.split("/", 2)
        recent, base = each.window(HOURS, calendar), each.baseline
        rows.append(
            {
                "watched": metric.rsplit("_", 1)[0] if is_amount(metric) else kind.value.removesuffix("_drift"),
                "project": project,
                "metric": metric,
                "series": source,
                "state": each.episode.state.value if base or each.episode.open else "learning",
                "baseline": base and round(shown(kind, metric, base.mean), 4),
                "last_day": round(shown(kind, metric, recent.mean), 4) if recent.n else None,
                "n_last_day": recent.n,
                "evidence": float(f"{monitor.share(each):.3g}") if base else None,
                "note": "; ".join(
                    filter(None, (_above(metric, of), _note(each, of, monitor.share(each), watched, calendar)))
                ),
            }
        )
    for key, queries in monitor.queries.items():
        project, _, source = key.partition("/")
        state = queries.episode.state.value if queries.reference else "learning"
        enough = sum(day.n >= watched.query_samples for day in queries.days.values())
        missing = f"{enough} of {watched.query_reference_days} days with {watched.query_samples} queries"
        rows.append(
            _EMPTY
            | {"watched": "queries", "project": project, "metric": "queries", "series": source, "state": state}
            | {"evidence": queries.shift and round(queries.shift.deviations / watched.query_deviations, 3)}
            | {"note": "" if queries.reference else missing}
        )
    for name, found in monitor.projects.items():
        rows += [
            _EMPTY
            | {"watched": kind.value, "project": name, "metric": None, "series": None, "state": episode.state.value}
            for kind, episode in found.episodes.items()
            if episode.open
        ]
    return rows


def _note(
    series: "Series", of: "Scaled | Amount | None", share: float, watched: DriftSettings, calendar: "Calendar"
) -> str:
    """Return the reason for the state of a series, if its numbers do not show it."""
    from assay_drift.amounts import Amount

    scaled, amount = (None, of) if isinstance(of, Amount) else (of, None)
    if amount and amount.limit is None:
        needed = (
            f"{amount.samples_needed(watched)} samples, {amount.days(calendar):.1f} of {amount.days_needed(watched):g}"
        )
        return f"its limit: {amount.seen} of {needed} days"
    if series.baseline is None:
        days = (series.last_ms - series.first_ms) / calendar.day_ms
        seen = scaled.seen if scaled else sum(total.n for total in series.days.values())
        return f"{seen} of {watched.learning_samples} samples, {days:.1f} of {watched.learning_days:g} days"
    if series.episode.open and share < 1:
        return "open until it recovers or is acknowledged"
    if scaled and not series.episode.open and share >= 1 and scaled.effect < watched.ks_effect:
        return f"too small to matter: Kolmogorov-Smirnov distance {scaled.effect:.2g}, below {watched.ks_effect:g}"
    return ""


def _above(metric: str, of: "Scaled | Amount | None") -> str:
    """Return the limit that a share of amounts refers to."""
    from assay_drift.amounts import Amount
    from assay_drift.messages import amount_text

    return f"share above {amount_text(metric, of.limit)}" if isinstance(of, Amount) and of.limit is not None else ""
