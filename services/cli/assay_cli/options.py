"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from assay_operations.evaluations.rules import SLICE_FIELDS

DataDirectory = Annotated[
    Path,
    typer.Option(
        "--data", help="Data directory of `assay up`, whose credentials are used unless settings name others."
    ),
]
InStore = Annotated[bool, typer.Option("--store", help="Read from the store rather than from files.")]
Rules = Annotated[
    Path | None, typer.Option(help="A checked-in file of scorers, thresholds and floors, .toml or .yaml.")
]
Slices = Annotated[
    list[str] | None,
    typer.Option("--slice", metavar="FIELD", help=f"Show slices too: {', '.join(SLICE_FIELDS)}; may be repeated."),
]
Scorers = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer",
        metavar="NAME=TYPE:VALUE",
        help="Score each answer, such as polite=contains:please or NAME=module:function; may be repeated.",
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]
DatasetFile = Annotated[Path, typer.Argument(help="A dataset: JSON, or NDJSON with or without a header line.")]
