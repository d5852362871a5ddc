"""`assay dataset export`: a golden dataset that people reviewed in the store."""

from typing import Annotated

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, emit_dataset, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.golden.datasets import dataset_of


def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the dataset.")],
    project: Annotated[
        str, typer.Option("--project", help="Project of the dataset; needed if several have one of this name.")
    ] = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print a dataset that people reviewed in the web console, as NDJSON for `assay eval run`."""
    with ends_quietly():
        with open_store(settings_for("sre", data).store) as store:
            found = dataset_of(store, name, project=project)
        emit_dataset(found)
        echo(
            printable(f"{len(found.cases):,} cases, version {found.version}, fingerprint {found.fingerprint}"), err=True
        )
