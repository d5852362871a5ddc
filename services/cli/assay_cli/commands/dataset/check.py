"""`assay dataset`: golden datasets. Check them, count them, compare and join them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.options import DatasetFile
from assay_cli.output.terminal import echo, emit, printable
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import lines_of

AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


def validate(file: DatasetFile, as_json: AsJson = False) -> None:
    """Check a dataset. Exits 1 and names every problem with its line if there are any."""
    from assay_evals.dataset import DatasetError, read_dataset

    try:
        found = read_dataset("".join(lines_of(file, "FILE")))
    except DatasetError as error:
        if as_json:
            emit(json.dumps({"schema_version": 1, "valid": False, "problems": error.problems}, indent=2))
        else:
            for problem in error.problems:
                echo(problem, err=True)
            echo(f"{file}: {len(error.problems)} problem(s)", err=True)
        raise typer.Exit(FINDING) from None
    if as_json:
        shape = {"name": found.name, "version": found.version, "cases": len(found.cases)}
        emit(json.dumps({"schema_version": 1, "valid": True} | shape | {"fingerprint": found.fingerprint}))
    else:
        echo(f"{file}: {len(found.cases):,} cases, version {found.version}, fingerprint {found.fingerprint[:16]}")


def stats(file: DatasetFile, as_json: AsJson = False) -> None:
    """Count a dataset's cases by type of query, source and complexity."""
    from assay_evals.dataset import dataset_stats

    found = asdict(dataset_stats(load(file)))
    if as_json:
        emit(json.dumps({"schema_version": 1} | found, indent=2))
        return
    for name, value in found.items():
        title = name.replace("_", " ")
        if isinstance(value, dict):
            echo(f"{title + ':':22}" + ", ".join(f"{key} {count}" for key, count in value.items()))
        else:
            echo(f"{title + ':':22}{value:.2f}" if isinstance(value, float) else f"{title + ':':22}{value:,}")


def diff(old: DatasetFile, new: DatasetFile, as_json: AsJson = False) -> None:
    """Say which cases came, went or changed, and whether the version did. Exits 1 if any case did."""
    from assay_evals.dataset import diff_datasets

    before, after = load(old), load(new)
    found = diff_datasets(before, after)
    if as_json:
        versions = {"old_version": before.version, "new_version": after.version}
        emit(json.dumps({"schema_version": 1} | asdict(found) | versions, indent=2))
    else:
        for mark, names in (("+", found.added), ("-", found.removed)):
            for name in names:
                echo(printable(f"{mark} {name}"))
        for name, fields in found.changed.items():
            echo(printable(f"~ {name}: {', '.join(fields)}"))
        counts = f"{len(found.added)} added, {len(found.removed)} removed, {len(found.changed)} changed"
        version = f"; version {before.version} became {after.version}" if before.version != after.version else ""
        echo(counts + version, err=True)
    if not found.same:
        raise typer.Exit(FINDING)


def merge(
    files: Annotated[
        list[Path], typer.Argument(help="Datasets; a case that stands in several must be the same in each.")
    ],
    version: Annotated[str | None, typer.Option(help="The result's version; default: the first one's.")] = None,
) -> None:
    """Join datasets, and print the result as NDJSON."""
    from assay_evals.dataset import merge_datasets, write_dataset

    if len(files) < 2:
        raise CommandError("name two datasets or more")
    first, *others = [load(file) for file in files]
    for line in write_dataset(merge_datasets(first, others, version=version)):
        emit(line)
