"""`assay feedback`: user feedback on answers and retrievals."""

from typing import Annotated

import typer

from assay_cli.options import AsJsonLines, DataDirectory
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.feedback import summary as feedback_by_day
from assay_operations.time_bounds import duration_ms

feedback = typer.Typer(no_args_is_help=True, help="Summarize user feedback on answers and retrievals.")


@feedback.callback()
def _group() -> None:
    """Summarize user feedback on answers and retrievals."""


@feedback.command()
def summary(
    since: Annotated[str, typer.Option(help="Length of the period that ends now, for example 30d.")] = "30d",
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Count feedback by day, project, service and kind.

    The kind is answer, retrieval, or unknown if the event is not stored.
    """
    seconds = duration_ms(since, "--since") // 1000
    with ends_quietly():
        rows = feedback_by_day(data, seconds=seconds, project=project)
        show_rows(rows, as_json, "no feedback yet: send it with the SDK's capture.feedback")
