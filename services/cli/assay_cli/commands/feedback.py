"""`assay feedback`: user feedback on answers and retrievals."""

import json
from datetime import date
from typing import Annotated, Any

import typer

from assay_cli.options import AsJsonLines, DataDirectory
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
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
        for row in rows:
            if as_json:
                emit(json.dumps(row, default=str))
            else:
                echo(_line(row))
        if not rows:
            echo("no feedback yet: send it with the SDK's capture.feedback", err=True)


def _line(row: dict[str, Any]) -> str:
    judged = row["positive"] + row["negative"]
    day = row["day"].isoformat() if isinstance(row["day"], date) else str(row["day"])
    where = printable(f"{row['project']}/{row['service']}")
    return (
        f"{day}  {where:28} {row['kind']:10} {row['positive']:>7,} good {row['negative']:>7,} bad"
        f"  {row['positive'] / judged:6.1%} of {row['events']:,} events"
    )
