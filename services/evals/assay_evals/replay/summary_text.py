"""Report the summary of a replay as plain text, for a terminal. Pure."""

from assay_evals.replay.replay_metrics import ReplaySummary
from assay_schema.printable import printable

#: Errors that are listed; the rest is counted.
ERRORS_SHOWN = 3
#: Characters of a query that a line shows.
QUERY_SHOWN = 60


def summary_text(summary: ReplaySummary) -> str:
    """Return counts, means, and the rows that changed most."""
    left_out = f"{summary.rows_skipped:,} skipped, {summary.rows_errored:,} errored"
    lines = [f"Replayed {summary.rows_replayed:,} of {summary.rows_total:,} captured queries ({left_out})"]
    if not summary.rows_replayed:
        return lines[0]
    ratio = "" if summary.latency_ratio is None else f" ({summary.latency_ratio:.2f}×)"
    lines += [
        f"Mean Jaccard@k:   {summary.mean_jaccard:.3f}",
        f"Top-1 stability:  {summary.top1_stability_rate:.1%}",
        f"Mean nDCG@k:      {summary.as_json()['mean_ndcg']:.3f}  (against the captured order)",
        f"Mean latency Δ:   {summary.mean_latency_delta_ms:+,.0f} ms{ratio}, {summary.rows_over_2x_latency:,} over 2×",
    ]
    if summary.rows_source_ambiguous:
        count = f"{summary.rows_source_ambiguous:,} row(s)"
        lines.append(f"{count} were captured from several sources without a source per slug: compared by slug alone")
    if summary.rows_scrubbed:
        count = f"{summary.rows_scrubbed:,} row(s)"
        lines.append(f"personal data was removed from {count}: an unchanged system may answer those differently")
    if summary.worst:
        lines.append(f"\nTop {len(summary.worst)} regression(s):")
    for result in summary.worst:
        query = printable(result.row.query)
        shown = query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…"
        counts = f"captured={len(result.row.slugs)} current={len(result.current)}"
        mark = "  (scrubbed)" if result.row.scrubbed else ""
        lines.append(f"  jaccard={result.jaccard:.2f} {counts}  {shown!r}{mark}")
    return "\n".join(lines)


def error_lines(summary: ReplaySummary) -> list[str]:
    """Return a line for each of the first errors, and the number of others."""
    lines = [printable(f"errored: row {each.row.id}: {each.error}") for each in summary.errors[:ERRORS_SHOWN]]
    if (more := summary.rows_errored - min(len(summary.errors), ERRORS_SHOWN)) and summary.errors:
        lines.append(f"errored: and {more:,} more")
    return lines


def why_none(summary: ReplaySummary) -> str:
    """Return why no row was replayed."""
    reasons = ((summary.rows_skipped, "row(s) have an empty question"), (summary.rows_errored, "row(s) errored"))
    return ", ".join(f"{count:,} {what}" for count, what in reasons if count)
