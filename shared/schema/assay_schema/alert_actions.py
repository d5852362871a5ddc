"""Actions for an alert: the SQL with details, and the commands to explain and acknowledge it. Pure.

They are built from an alert's validated names and numbers only, never from its text: a user that may append to the
stream `alerts` must not control what on-call engineers paste into a shell.
"""

import re
import shlex
from datetime import timedelta
from uuid import UUID

from assay_schema.alerts import Alert, AlertKind, is_handed_in
from assay_schema.scores import CHECK_FAILED, QUANTILES, is_amount, is_of_answers

#: Kinds that cannot be acknowledged: a lag is not a new baseline, and the judge's own episodes end by themselves.
_ENDS_BY_ITSELF = {
    AlertKind.LAG,
    AlertKind.WATERMARK_AGE,
    AlertKind.BUDGET,
    AlertKind.JUDGE_STOPPED,
    AlertKind.JUDGE_DRIFT,
}
#: Kinds whose episodes can be split into parts: a mean, a share or a mix over all of a project's answers, retrievals or
#: queries.
EXPLAINED = frozenset({AlertKind.SCORE_DRIFT, AlertKind.RETRIEVAL_DRIFT, AlertKind.QUERY_DRIFT, AlertKind.JUDGE_ERRORS})
#: Names that are harmless in a shell and in SQL, inside quotes of either kind.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@+-]*")
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Operations of `candidates`, and the columns of an amount.
RETRIEVALS = ("query", "search")
_AMOUNTS = {
    "latency": "latency_ms",
    "cost": "lengthUTF8(query) + lengthUTF8(answer) + arraySum(arrayMap(text -> lengthUTF8(text), contexts.text))",
}
#: How far before the change a query begins.
_BEFORE = timedelta(days=2)


def nightly_group(project: str) -> str:
    """Return the group of alerts about a project's nightly evaluation."""
    return f"{project}/nightly"


def acknowledge_command(alert_id: UUID | str, kind: str) -> str:
    """Return the command that acknowledges an episode; '' for kinds that cannot be acknowledged.

    Raises `ValueError` for an invalid id.
    """
    return "" if kind in _ENDS_BY_ITSELF else f"assay drift acknowledge {UUID(str(alert_id))}"


def acknowledge_meaning(kind: str) -> str:
    """Return what the acknowledging command does to an episode of this kind, as an imperative clause."""
    match kind:
        case AlertKind.FAILURES:
            return "close the episode and forget the losses counted so far"
        case AlertKind.JUDGE_ERRORS:
            return "close the episode and forget the errors counted so far"
        case AlertKind.SILENCE:
            return "close the episode until the next hour without judged answers"
        case _:
            return "accept the current level as the new baseline"


def in_directory(command: str, data: str) -> str:
    """Return a command that names its data directory; other commands stay unchanged."""
    return f"{command} --data {shlex.quote(data)}" if data and command.startswith("assay ") else command


def explain_command(alert_id: UUID | str, kind: str, metric: str | None) -> str:
    """Return the command that explains which part changed; '' for kinds without parts.

    These are conditions of a whole, and evaluations, which are not of traffic. Raises `ValueError` for an invalid id.
    """
    identity = UUID(str(alert_id))
    if kind not in EXPLAINED or is_handed_in(identity) or (kind == AlertKind.SCORE_DRIFT and not metric):
        return ""
    return f"assay drift explain {identity}"


def amount_of(metric: str) -> str:
    """Return SQL over `answers` or `candidates` for an amount. Raises `KeyError` for other metrics."""
    return _AMOUNTS[metric.rsplit("_", 1)[0]]


def samples_of(metric: str) -> tuple[str, str]:
    """Return SQL over `scores`: the sample of a metric, and the condition for rows that have one.

    Raises `ValueError` for an invalid name.
    """
    if not _METRIC.fullmatch(metric):
        raise ValueError("not a metric's name")
    if is_amount(metric):
        raise ValueError("not of scores")
    if metric.startswith(CHECK_FAILED):
        check = metric.removeprefix(CHECK_FAILED)
        return f"toFloat64(NOT checks['{check}'])", f"status != 'not_sampled' AND mapContains(checks, '{check}')"
    if is_of_answers(metric):
        return (
            f"toFloat64(status = '{metric}')",
            "session_id IS NULL AND status IN ('scored', 'abstained', 'no_context')",
        )
    return f"metrics['{metric}']", f"status = 'scored' AND mapContains(metrics, '{metric}')"


def query_of(alert: Alert) -> str:
    """Return SQL with details for `assay query`; '' if no table has any."""
    project = f"project = '{alert.project}'"
    since = f"toDateTime64('{alert.since - _BEFORE:%Y-%m-%d %H:%M:%S}', 3, 'UTC')"
    if alert.group == nightly_group(alert.project):
        return (
            "SELECT started_at, outcome, run_name, baseline, failed_metrics, detail FROM eval_outcomes"  # noqa: S608  # validated names
            f" WHERE {project} ORDER BY started_at DESC LIMIT 14"
        )
    match alert.kind:
        case AlertKind.SCORE_DRIFT if is_amount(alert.metric or ""):
            quantile, amount = (alert.metric or "").rsplit("_", 1)[1], amount_of(alert.metric or "")
            table = "assay.candidates" if alert.series in RETRIEVALS else "assay.answers"
            operation = f"AND tool_name = '{alert.series}' " if alert.series in RETRIEVALS else ""
            return (
                f"SELECT toStartOfHour(event_time) AS hour, quantile({QUANTILES[quantile]})({amount}) AS {quantile}, "  # noqa: S608
                f"count() AS n FROM {table} WHERE {project} {operation}AND event_time >= {since} GROUP BY hour ORDER BY hour"
            )
        case AlertKind.SCORE_DRIFT:
            judge = f"AND fingerprint = '{alert.series}' " if _PLAIN.fullmatch(alert.series or "") else ""
            value, has_one = samples_of(alert.metric or "faithfulness")
            return (
                f"SELECT toStartOfHour(event_time) AS hour, avg({value}) AS mean, count() AS n "  # noqa: S608
                f"FROM assay.scores WHERE {project} {judge}"
                f"AND base AND {has_one} AND event_time >= {since} GROUP BY hour ORDER BY hour"
            )
        case AlertKind.RETRIEVAL_DRIFT:
            return (
                "SELECT toStartOfHour(event_time) AS hour, avg(retrieved_scores[1]) AS top_1, "  # noqa: S608
                "avg(arrayAvg(retrieved_scores)) AS mean_of_k, count() AS n FROM assay.candidates "
                f"WHERE {project} AND notEmpty(retrieved_scores) AND event_time >= {since} GROUP BY hour ORDER BY hour"
            )
        case AlertKind.SILENCE | AlertKind.JUDGE_ERRORS:
            return (
                "SELECT toStartOfHour(event_time) AS hour, status, count() AS n FROM assay.scores "  # noqa: S608
                f"WHERE {project} AND base AND session_id IS NULL AND event_time >= {since} GROUP BY hour, status ORDER BY hour, status"
            )
        case AlertKind.FAILURES:
            return (
                "SELECT reason, stage, error_class, count() AS n FROM assay.capture_failures "  # noqa: S608
                f"WHERE {project} AND entry_id IS NOT NULL AND created_at >= {since} GROUP BY reason, stage, error_class"
            )
        case AlertKind.LAG | AlertKind.WATERMARK_AGE:
            return "SELECT * FROM assay.watermarks"
        case AlertKind.BUDGET:
            return f"SELECT * FROM judge_spend WHERE {project} ORDER BY day DESC LIMIT 14"  # noqa: S608
        case _:
            return ""
