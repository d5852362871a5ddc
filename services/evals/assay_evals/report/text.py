"""Report a run and a comparison as plain text, for a terminal. Pure."""

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.verdicts import Verdict
from assay_evals.report.wording import (
    METRIC_COLUMNS,
    _between,
    metric_cells,
    notes,
    problems,
    slices_in_words,
    verdict_in_words,
)
from assay_evals.run.model import Run
from assay_evals.run.run_store import StoredRun
from assay_schema.printable import printable

#: Errors of a run that are listed; the rest is counted.
ERRORS_SHOWN = 3


def run_text(run: Run) -> str:
    """Summarize a run in a screenful: its metrics with intervals, latency, and the first errors."""
    config, summary, latency = run.config, run.summary(), run.latency()
    wide = max(20, *(len(printable(name)) for name in summary), 0)
    lines = [
        f"{run.run_id}: {len(run.results):,} cases of {config.dataset} {config.dataset_version}, {len(run.errored)} errored",
        *(
            f"  {name:{wide}} {metric.mean:.3f}  [{metric.low:.3f}, {metric.high:.3f}]  n={metric.n}"
            for name, metric in summary.items()
        ),
        *(f"  {name:{wide}} {value:,.1f}" for name, value in latency.items()),
    ]
    if run.completed_at is None:
        lines.insert(1, "  interrupted: complete it with --resume")
    if (cached := run.judge_cache).get("calls"):
        saved = f"{cached['hits']:,} of {cached['calls']:,} verdicts reused, which saved ${cached['saved_usd']:.4f}"
        lines.append(f"  judge cache: {saved}")
    lines += [f"  errored: {result.case_id}: {result.error}" for result in run.errored[:ERRORS_SHOWN]]
    if (more := len(run.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))


_COLUMNS = ("verdict", *METRIC_COLUMNS)
_NUMBERS = {"n", "baseline", "candidate", "p", "threshold"}


def comparison_text(paired: PairedRuns, verdict: Verdict) -> str:
    """Return a table of the metrics, a line for each slice and note, and the verdict with its reasons."""
    rows = [(row.verdict.value, *metric_cells(row)) for row in paired.comparison.metrics]
    sliced = slices_in_words([*paired.checks, *paired.changes])
    head = [f"{_between(paired)}.", *problems(paired)]
    closing = [*sliced, *notes(paired), verdict_in_words(paired, verdict)]
    return "\n".join(map(printable, [*head, *(_aligned([_COLUMNS, *rows]) if rows else []), *closing]))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; numbers are on the right of their columns."""
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if name in _NUMBERS else "<" for name in _COLUMNS]
    cells = [[f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)] for row in rows]
    return ["  ".join(row).rstrip() for row in cells]


def run_line(run: Run) -> str:
    """Return the line of a run in the list of a folder."""
    config = run.config
    state = "complete" if run.completed_at else "interrupted: continue with --resume"
    made = [config.branch or "", "changed files" if config.dirty else "", *config.tags]
    where = "".join(f", {part}" for part in made if part)
    return (
        _line(run.run_id, run.started_at, config.dataset, config.dataset_version, len(run.results), len(run.errored))
        + f", {state}{where}"
    )


def stored_run_line(run: StoredRun) -> str:
    """Return the line of a run in the list of the store."""
    state = "complete" if run.completed_at else "interrupted"
    return (
        _line(run.name, run.started_at, run.dataset, run.dataset_version, run.cases, run.errored)
        + f", {state}  {run.run_id}"
    )


def _line(name: str, started_at: str, dataset: str, version: str, cases: int, errored: int) -> str:
    return f"{name:28} {started_at[:19]}  {dataset} {version}  {cases:,} cases, {errored} errored"
