"""Options of every command that asks a system under test."""

from typing import Annotated

import typer

from assay_cli.output.target_errors import ERRORS_SHOWN

TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="What is asked: http://host/path, module:function, or 'command: program --flag'.",
        show_default=False,
    ),
]
Workspace = Annotated[str | None, typer.Option(help="Sent to an HTTP target as X-Workspace-ID.")]
Concurrency = Annotated[int, typer.Option(help="Questions asked at a time.")]
Deadline = Annotated[float, typer.Option("--deadline", help="Seconds that one question may take, with all its tries.")]
Retries = Annotated[int, typer.Option(help="Tries beyond the first where the target may fare better.")]
ShowErrors = Annotated[
    bool,
    typer.Option(
        "--show-errors",
        help=f"Print the first {ERRORS_SHOWN} errors in full on stderr. They may hold what was asked, and are in no file.",
    ),
]
