"""`assay eval report`, and `--report` of `assay eval run`: a run handed over to where people already look at experiments."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import RunsFolder
from assay_cli.output.terminal import echo
from assay_operations.errors import OperationError
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.runs import DEFAULT_RUNS, find_run
from assay_operations.evaluations.target import log_no_tries

if TYPE_CHECKING:
    from assay_evals.dataset import Dataset
    from assay_evals.reporters import Reporter
    from assay_evals.runs import Run


def open_reporters(names: list[str] | None, option: str) -> "list[tuple[str, Reporter]]":
    """Each reporter with its name. Raises `CommandError` before anything is asked or paid."""
    from assay_evals.reporters import ReporterError, open_reporter

    try:
        return [(each.partition("=")[0], open_reporter(each)) for each in names or ()]
    except ReporterError as error:
        raise CommandError(f"{option}: {error}") from None


def report_run(run: "Run", reporters: "list[tuple[str, Reporter]]", texts: "Dataset | None") -> None:
    """Hand a run to each, and say where it is. One that cannot take it keeps it from no other. Raises `CommandError` at the end."""
    from assay_evals.reporters import Report, ReporterError

    log_no_tries()
    cases = {result.case_id for result in run.results}
    told = {case.id: case for case in texts.cases if case.id in cases} if texts else {}
    failed: dict[str, str] = {}
    for name, reporter in reporters:
        try:
            echo(f"{name}: {reporter.report(Report(run, told))}", err=True)
        except (ReporterError, OperationError) as error:
            failed[name] = str(error)
    if failed:
        again = " ".join(f"--to {name}" for name in failed)
        why = f"{'; '.join(failed.values())}; the run is kept"
        raise CommandError(f"{why}, report it again with: assay eval report {run.run_id} {again}")


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
    report_run(run, reporters, golden)
