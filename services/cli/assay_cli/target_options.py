"""Options of every command that queries a system under test."""

from dataclasses import dataclass
from typing import Annotated

import typer

from assay_cli.output.progress import Mode
from assay_cli.output.target_errors import ERRORS_SHOWN, ErrorsOfTarget
from assay_operations.evaluations.target import TargetConfig

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
ShowErrors = Annotated[
    bool,
    typer.Option(
        "--show-errors",
        help=f"Print the first {ERRORS_SHOWN} errors in full on stderr. They can contain query text, and are never written to a file.",
    ),
]


@dataclass(frozen=True)
class TargetOptions:
    """The target, and how it is queried."""

    target: TargetName
    workspace: Workspace = None
    concurrency: Annotated[int, typer.Option(help="Number of queries in flight at a time.")] = 5
    deadline: Annotated[float, typer.Option(help="Timeout of one query in seconds, retries included.")] = 30.0
    retries: Annotated[int, typer.Option(help="Retries per query for errors that may be transient.")] = 2
    show_errors: ShowErrors = False
    progress: Annotated[Mode, typer.Option(help="Format of progress on stderr.")] = Mode.AUTO

    def config(self) -> tuple[TargetConfig, ErrorsOfTarget]:
        """Return the system, and what counts its errors."""
        errors = ErrorsOfTarget(self.show_errors)
        return (
            TargetConfig(
                self.target, self.workspace, self.concurrency, self.deadline, self.retries,
                on_error=errors, keep_message=self.show_errors,
            ),
            errors,
        )  # fmt: skip
