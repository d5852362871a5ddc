"""Options of every command that queries a system under test."""

from typing import Annotated

import typer

from assay_cli.output.target_errors import ERRORS_SHOWN

TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="System to query: http://host/path, module:function, or 'command: program --flag'.",
        show_default=False,
    ),
]
Workspace = Annotated[
    str | None, typer.Option(help="Value of the X-Workspace-ID header for an HTTP target; default: not sent.")
]
Concurrency = Annotated[int, typer.Option(help="Number of queries in flight at a time.")]
Deadline = Annotated[float, typer.Option("--deadline", help="Timeout of one query in seconds, retries included.")]
Retries = Annotated[int, typer.Option(help="Retries per query for errors that may be transient.")]
ShowErrors = Annotated[
    bool,
    typer.Option(
        "--show-errors",
        help=f"Print the first {ERRORS_SHOWN} errors in full on stderr. They can contain query text, and are never written to a file.",
    ),
]
