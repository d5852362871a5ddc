"""`assay dataset validate|stats|diff|merge`: check, count, compare and merge golden datasets."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJson, DatasetFile
from assay_cli.output.terminal import echo, emit, emit_dataset, printable
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import lines_of


def validate(file: DatasetFile, as_json: AsJson = False) -> None:
    """Validate a dataset, and list every problem with its line. Exit code 1 if there are any."""
    from assay_evals.dataset.file_format import read_dataset
    from assay_evals.dataset.model import DatasetError

    try:
        dataset = read_dataset("".join(lines_of(file, "FILE")))
    except DatasetError as error:
        if as_json:
            emit(json.dumps({"schema_version": 1, "valid": False, "problems": error.problems}, indent=2))
        else:
            for problem in error.problems:
                echo(problem, err=True)
            echo(f"{file}: {len(error.problems)} problem(s)", err=True)
        raise typer.Exit(FINDING) from None
    if as_json:
        shape = {"name": dataset.name, "version": dataset.version, "cases": len(dataset.cases)}
        emit(json.dumps({"schema_version": 1, "valid": True} | shape | {"fingerprint": dataset.fingerprint}))
    else:
        echo(f"{file}: {len(dataset.cases):,} cases, version {dataset.version}, fingerprint {dataset.fingerprint[:16]}")


def stats(file: DatasetFile, as_json: AsJson = False) -> None:
    """Count the cases of a dataset by query type, source and complexity."""
    from assay_evals.dataset.changes import dataset_stats
    from assay_evals.report.dataset_text import stats_text

    counts = asdict(dataset_stats(load(file)))
    if as_json:
        emit(json.dumps({"schema_version": 1} | counts, indent=2))
        return
    echo(stats_text(counts))


def diff(old: DatasetFile, new: DatasetFile, as_json: AsJson = False) -> None:
    """List the cases that were added, removed or changed, and a change of version.

    Exit code 1 if any case differs.
    """
    from assay_evals.dataset.changes import diff_datasets
    from assay_evals.report.dataset_text import diff_counts, diff_lines

    before, after = load(old), load(new)
    changes = diff_datasets(before, after)
    if as_json:
        versions = {"old_version": before.version, "new_version": after.version}
        emit(json.dumps({"schema_version": 1} | asdict(changes) | versions, indent=2))
    else:
        for line in diff_lines(changes):
            echo(printable(line))
        version = f"; version {before.version} became {after.version}" if before.version != after.version else ""
        echo(diff_counts(changes) + version, err=True)
    if not changes.same:
        raise typer.Exit(FINDING)


def merge(
    files: Annotated[list[Path], typer.Argument(help="Datasets; a case that is in several must be identical in each.")],
    version: Annotated[
        str | None, typer.Option(help="Version of the result; default: that of the first dataset.")
    ] = None,
) -> None:
    """Merge datasets, and print the result as NDJSON."""
    from assay_evals.dataset.changes import merge_datasets

    if len(files) < 2:
        raise CommandError("pass at least two datasets")
    first, *others = [load(file) for file in files]
    emit_dataset(merge_datasets(first, others, version=version))
