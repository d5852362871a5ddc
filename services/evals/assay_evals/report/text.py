"""Report a run and a comparison as plain text, for a terminal. Pure."""

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.verdicts import Verdict
from assay_evals.report.wording import change, meaning, notes, number, problems, slices_in_words
from assay_evals.run.model import Run
from assay_schema.printable import printable

#: Errors of a run that are listed; the rest is counted.
ERRORS_SHOWN = 3


def run_text(run: Run) -> str:
    """Summarize a run in a screenful: its metrics with intervals, latency, and the first errors."""
    config = run.config
    lines = [
        f"{run.run_id}: {len(run.results):,} cases of {config.dataset} {config.dataset_version}, {len(run.errored)} errored",
        *(
            f"  {name:20} {metric.mean:.3f}  [{metric.low:.3f}, {metric.high:.3f}]  n={metric.n}"
            for name, metric in run.summary().items()
        ),
        *(f"  {name:20} {value:,.1f}" for name, value in run.latency().items()),
    ]
    if (cached := run.judge_cache).get("calls"):
        saved = f"{cached['hits']:,} of {cached['calls']:,} verdicts reused, which saved ${cached['saved_usd']:.4f}"
        lines.append(f"  judge cache: {saved}")
    lines += [f"  errored: {result.case_id}: {result.error}" for result in run.errored[:ERRORS_SHOWN]]
    if (more := len(run.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))


def comparison_text(paired: PairedRuns, verdict: Verdict) -> str:
    """Return a line for each metric, slice and note, and the verdict."""
    lines = [
        f"{row.verdict.value:13} {row.metric:16} {number(row.baseline, row.metric):>9} {number(row.candidate, row.metric):>9}"
        f"  {change(row):32} {row.rule.stage.value:14} {meaning(row)}"
        for row in paired.comparison.metrics
    ]
    sliced = slices_in_words([*paired.checks, *paired.changes])
    return "\n".join(map(printable, [*problems(paired), *lines, *sliced, *notes(paired), f"verdict: {verdict.value}"]))
