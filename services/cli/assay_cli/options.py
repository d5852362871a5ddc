"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from assay_operations.evaluations.rules import SLICE_FIELDS

DataDirectory = Annotated[
    Path,
    typer.Option(
        "--data", help="Data directory of `assay up`. Its credentials are used unless the settings name others."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AsJsonObject = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
Comment = Annotated[
    str, typer.Option("--comment", help="Why, for the audit record; at most 500 characters; default: none.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt (required without a terminal).")]
InStore = Annotated[bool, typer.Option("--store", help="Read from the store instead of from files.")]
Rules = Annotated[
    Path | None, typer.Option(help="File of scorers, thresholds and floors, .toml or .yaml; default: none.")
]
Slices = Annotated[
    list[str] | None,
    typer.Option(
        "--slice", metavar="FIELD", help=f"Also show slices by this field: {', '.join(SLICE_FIELDS)}; repeatable."
    ),
]
Scorers = Annotated[
    list[str] | None,
    typer.Option(
        "--scorer",
        metavar="NAME=TYPE:VALUE",
        help="Score each answer, for example polite=contains:please or NAME=module:function; repeatable.",
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="Folder of the runs.")]
DatasetFile = Annotated[Path, typer.Argument(help="Dataset: JSON, or NDJSON with or without a header line.")]
