"""`assay eval report`, and `--report` of `assay eval run`: send a run to an experiment tracker."""

from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import RunsFolder
from assay_cli.output.terminal import echo
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.reports import open_reporters, report_run
from assay_operations.evaluations.runs import DEFAULT_RUNS, find_run


def report(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Name or folder of the run.")],
    to: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[=WHERE]",
            help="files, clickhouse, otel, mlflow, braintrust, langfuse, or the name of a plugin; repeatable.",
        ),
    ],
    runs: RunsFolder = DEFAULT_RUNS,
    report_text: Annotated[
        bool, typer.Option("--report-text", help="Include the questions and expected answers of --dataset.")
    ] = False,
    dataset: Annotated[Path | None, typer.Option(help="Dataset of the run; only for --report-text.")] = None,
) -> None:
    """Send a run to an experiment tracker.

    It gets names, IDs and numbers, and text only with --report-text. Safe to repeat.
    """
    if report_text != (dataset is not None):
        raise CommandError("--report-text and --dataset belong together: pass both or neither")
    reporters = open_reporters(to, "--to")
    run, golden = find_run(name, runs), load(dataset, "--dataset") if dataset else None
    if golden is not None and golden.fingerprint != run.config.dataset_fingerprint:
        raise CommandError(
            f"--dataset: {dataset} is not the dataset of {run.run_id}: its texts would be paired with other answers"
        )
    report_run(run, reporters, golden, lambda text: echo(text, err=True))
