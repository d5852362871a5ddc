"""`assay up`: the whole system on one machine."""

from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError


def up(
    data: Annotated[Path, typer.Option(help="Data directory; created when missing.")] = Path("data"),
    port_base: Annotated[
        int,
        typer.Option(
            envvar="PORT_BASE", min=1, max=65_000, help="First of the ports: Redis; then store, scrubber, writer."
        ),
    ] = 9100,
    demo: Annotated[bool, typer.Option("--demo", help="Drive the demo producer, then print a summary.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --demo: exit after the summary; 1 unless all is accounted for.")
    ] = False,
    keep_logs: Annotated[bool, typer.Option("--keep-logs", help="Append to the logs of earlier runs.")] = False,
) -> None:
    """Start Redis, the store, the scrubber and the writer; stop them all on Ctrl-C."""
    raise CommandError("not written yet")
