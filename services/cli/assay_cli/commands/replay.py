"""`assay replay`: replay captured queries, and report how much the results changed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.option_groups import grouped
from assay_cli.output.progress import Progress
from assay_cli.output.terminal import echo, emit, ends_quietly, kept_stdout, own_stdout
from assay_cli.target_options import TargetOptions
from assay_operations.evaluations.replay import Replay

if TYPE_CHECKING:
    from assay_evals.replay.replay_metrics import ReplaySummary, RowResult


@grouped
def replay(
    against: Annotated[Path, typer.Option(help="Captured rows as NDJSON: an export, a baseline, or written by hand.")],
    target: TargetOptions,
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
) -> None:
    """Replay captured queries against a system and report how much its results changed.

    Exit code 0 for any change; see `assay gate`.
    """
    from assay_evals.replay.summary_text import error_lines, summary_text, why_none

    if verbose and not as_json:
        raise CommandError("--verbose needs --json: pass both")
    system, errors = target.config()
    replayed = Replay(against, system, limit=limit, k=k, top=top_regressions, output=output, resume=resume)
    summary, report = replayed.summary, _Report() if as_json and verbose else None

    def kept() -> str:
        count = f"{summary.rows_total:,} rows are done"
        if output is None:
            return f"{count}, and nothing was kept: --output FILE keeps each row as it is done"
        return f"{count} and kept; to continue, run the same command with: --resume"

    with ends_quietly(stopped=kept), own_stdout(), Progress(target.progress) as counter:
        replayed.run(counter, report.add if report else None)
        if report:
            report.end(summary)
    if as_json and not report:
        document = {"schema_version": 1, "summary": summary.as_json()}
        emit(json.dumps(document, ensure_ascii=False, indent=2))
    elif not as_json:
        echo(summary_text(summary))
        for line in error_lines(summary):
            echo(line, err=True)
    errors.say_how()
    if not summary.rows_replayed:
        raise CommandError(f"nothing was replayed: {why_none(summary)}")


class _Report:
    """Document of `--json --verbose`: `schema_version`, `results`, `summary`. Rows are written as they are done, to save memory."""

    def __init__(self) -> None:
        self._rows, self._out = 0, kept_stdout()

    def add(self, result: "RowResult") -> None:
        """Write the result of the next row."""
        before = ",\n    " if self._rows else '{\n  "schema_version": 1,\n  "results": [\n    '
        emit(before + json.dumps(result.as_json(), ensure_ascii=False), nl=False, out=self._out)
        self._rows += 1

    def end(self, summary: "ReplaySummary") -> None:
        """Write the summary and close the document."""
        shape = json.dumps(summary.as_json(), ensure_ascii=False, indent=2).replace("\n", "\n  ")
        emit(f'\n  ],\n  "summary": {shape}\n}}', out=self._out)
