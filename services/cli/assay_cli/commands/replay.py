"""`assay replay`: replay captured queries, and report how much the results changed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.target_errors import ERRORS_SHOWN, ErrorsOfTarget
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
from assay_cli.target_options import Concurrency, Deadline, Retries, ShowErrors, TargetName, Workspace
from assay_operations.evaluations.replay import Replay
from assay_operations.evaluations.target import TargetConfig

if TYPE_CHECKING:
    from assay_evals.replay.replay_metrics import ReplaySummary, RowResult

#: Characters of a query that a line for people shows.
_QUERY_SHOWN = 60


def replay(
    against: Annotated[Path, typer.Option(help="Captured rows as NDJSON: an export, a baseline, or written by hand.")],
    target: TargetName,
    limit: Annotated[
        int | None, typer.Option(help="Only the first N rows (of an export, the newest); default: all.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", help="Compare the first K results; default: as many as were captured.")
    ] = None,
    top_regressions: Annotated[int, typer.Option(help="Number of rows to show, those that changed most.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --json: also print the result of every row.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the result of each row here as NDJSON, so that --resume works; default: none."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue with the rows that are missing in --output and those that errored; "
            "same --target, -k and --against.",
        ),
    ] = False,
    workspace: Workspace = None,
    concurrency: Concurrency = 5,
    deadline: Deadline = 30.0,
    retries: Retries = 2,
    show_errors: ShowErrors = False,
    progress: Annotated[Mode, typer.Option(help="Format of progress on stderr.")] = Mode.AUTO,
) -> None:
    """Replay captured queries against a system and report how much its results changed.

    Exit code 0 for any change; see `assay gate`.
    """
    if verbose and not as_json:
        raise CommandError("--verbose needs --json: pass both")
    errors = ErrorsOfTarget(show_errors)
    system = TargetConfig(target, workspace, concurrency, deadline, retries, on_error=errors, keep_message=show_errors)
    replayed = Replay(against, system, limit=limit, k=k, top=top_regressions, output=output, resume=resume)
    summary, report = replayed.summary, _Report() if as_json and verbose else None

    def kept() -> str:
        count = f"{summary.rows_total:,} rows are done"
        if output is None:
            return f"{count}, and nothing was kept: --output FILE keeps each row as it is done"
        return f"{count} and kept; to continue, run the same command with: --resume"

    with ends_quietly(stopped=kept), Progress(progress) as counter:
        replayed.run(counter, report.add if report else None)
        if report:
            report.end(summary)
    if as_json and not report:
        document = {"schema_version": 1, "summary": summary.as_json()}
        emit(json.dumps(document, ensure_ascii=False, indent=2))
    elif not as_json:
        _say(summary)
    errors.say_how()
    if not summary.rows_replayed:
        raise CommandError(f"nothing was replayed: {_why_none(summary)}")


class _Report:
    """Document of `--json --verbose`: `schema_version`, `results`, `summary`. Rows are written as they are done, to save memory."""

    def __init__(self) -> None:
        self._rows = 0

    def add(self, result: "RowResult") -> None:
        """Write the result of the next row."""
        before = ",\n    " if self._rows else '{\n  "schema_version": 1,\n  "results": [\n    '
        emit(before + json.dumps(result.as_json(), ensure_ascii=False), nl=False)
        self._rows += 1

    def end(self, summary: "ReplaySummary") -> None:
        """Write the summary and close the document."""
        shape = json.dumps(summary.as_json(), ensure_ascii=False, indent=2).replace("\n", "\n  ")
        emit(f'\n  ],\n  "summary": {shape}\n}}')


def _say(summary: "ReplaySummary") -> None:
    echo(
        f"Replayed {summary.rows_replayed:,} of {summary.rows_total:,} captured queries "
        f"({summary.rows_skipped:,} skipped, {summary.rows_errored:,} errored)"
    )
    if summary.rows_replayed:
        _say_how_far(summary)
    for result in summary.errors[:ERRORS_SHOWN]:
        echo(printable(f"errored: row {result.row.id}: {result.error}"), err=True)
    if (more := summary.rows_errored - min(len(summary.errors), ERRORS_SHOWN)) and summary.errors:
        echo(f"errored: and {more:,} more", err=True)


def _why_none(summary: "ReplaySummary") -> str:
    reasons = ((summary.rows_skipped, "row(s) have an empty question"), (summary.rows_errored, "row(s) errored"))
    return ", ".join(f"{count:,} {what}" for count, what in reasons if count)


def _say_how_far(summary: "ReplaySummary") -> None:
    ratio = "" if summary.latency_ratio is None else f" ({summary.latency_ratio:.2f}×)"
    echo(
        f"Mean Jaccard@k:   {summary.mean_jaccard:.3f}\n"
        f"Top-1 stability:  {summary.top1_stability_rate:.1%}\n"
        f"Mean nDCG@k:      {summary.as_json()['mean_ndcg']:.3f}  (against the captured order)\n"
        f"Mean latency Δ:   {summary.mean_latency_delta_ms:+,.0f} ms{ratio}, {summary.rows_over_2x_latency:,} over 2×"
    )
    if summary.rows_source_ambiguous:
        count = f"{summary.rows_source_ambiguous:,} row(s)"
        echo(f"{count} were captured from several sources without a source per slug: compared by slug alone")
    if summary.worst:
        echo(f"\nTop {len(summary.worst)} regression(s):")
    for result in summary.worst:
        query = printable(result.row.query)
        shown = query if len(query) <= _QUERY_SHOWN else query[: _QUERY_SHOWN - 1] + "…"
        echo(
            f"  jaccard={result.jaccard:.2f} captured={len(result.row.slugs)} current={len(result.current)}  {shown!r}"
        )
