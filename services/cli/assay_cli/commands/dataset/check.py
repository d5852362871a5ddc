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

    counts = asdict(dataset_stats(load(file)))
    if as_json:
        emit(json.dumps({"schema_version": 1} | counts, indent=2))
        return
    for name, value in counts.items():
        title = name.replace("_", " ")
        if isinstance(value, dict):
            echo(f"{title + ':':22}" + ", ".join(f"{key} {count}" for key, count in value.items()))
        else:
            echo(f"{title + ':':22}{value:.2f}" if isinstance(value, float) else f"{title + ':':22}{value:,}")


def diff(old: DatasetFile, new: DatasetFile, as_json: AsJson = False) -> None:
    """List the cases that were added, removed or changed, and a change of version.

    Exit code 1 if any case differs.
    """
    from assay_evals.dataset.changes import diff_datasets

    before, after = load(old), load(new)
    changes = diff_datasets(before, after)
    if as_json:
        versions = {"old_version": before.version, "new_version": after.version}
        emit(json.dumps({"schema_version": 1} | asdict(changes) | versions, indent=2))
    else:
        for mark, names in (("+", changes.added), ("-", changes.removed)):
            for name in names:
                echo(printable(f"{mark} {name}"))
        for name, fields in changes.changed.items():
            echo(printable(f"~ {name}: {', '.join(fields)}"))
        counts = f"{len(changes.added)} added, {len(changes.removed)} removed, {len(changes.changed)} changed"
        version = f"; version {before.version} became {after.version}" if before.version != after.version else ""
        echo(counts + version, err=True)
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
