"""`assay eval report`, and `--report` of `assay eval run`: a run handed over to where people already look at experiments."""

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
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or its folder.")],
    to: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[=WHERE]",
            help="files, clickhouse, otel, mlflow, braintrust, langfuse, or another package's; may be repeated.",
        ),
    ],
    runs: RunsFolder = DEFAULT_RUNS,
    report_text: Annotated[
        bool, typer.Option("--report-text", help="With the questions and expected answers of --dataset.")
    ] = False,
    dataset: Annotated[Path | None, typer.Option(help="The dataset that was asked.")] = None,
) -> None:
    """Hand a run over to where people look at experiments: names, ids and numbers, no text unless you ask. Doing it again is safe."""
    if report_text != (dataset is not None):
        raise CommandError("--report-text and --dataset belong together: the texts are the dataset's")
    reporters = open_reporters(to, "--to")
    run, golden = find_run(name, runs), load(dataset, "--dataset") if dataset else None
    if golden is not None and golden.fingerprint != run.config.dataset_fingerprint:
        raise CommandError(
            f"--dataset: {dataset} is not what {run.run_id} was asked: its texts would stand beside answers to others"
        )
    report_run(run, reporters, golden, lambda text: echo(text, err=True))
