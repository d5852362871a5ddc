"""`assay up`: run the whole system on one machine."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING, OK, OPERATIONAL
from assay_local.scenario import Scenario


def up(
    data: Annotated[Path, typer.Option(help="Data directory; created if missing.")] = Path("data"),
    port_base: Annotated[
        int,
        typer.Option(
            envvar="PORT_BASE",
            min=1,
            max=65_000,
            help="First of fifteen ports: Redis; store; health of scrubber, writer, judge, drift, notifier; a scenario's Alertmanager; "
            "HTTP of the gateway; its health; that of the assembler and the OTLP exporter; the console; its health; that of the auditor.",
        ),
    ] = 9100,
    demo: Annotated[bool, typer.Option("--demo", help="Run the demo producer, then print a summary.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --demo: exit after the summary, with code 1 if an event is missing.")
    ] = False,
    keep_logs: Annotated[
        bool, typer.Option("--keep-logs", help="Append to the logs of earlier runs instead of replacing them.")
    ] = False,
    scenario: Annotated[
        Scenario | None,
        typer.Option(
            help="With --demo: degrade the retriever, or refuse most questions, and wait for the alert; default: none."
        ),
    ] = None,
    no_quality: Annotated[
        bool, typer.Option("--no-quality", help="Start no judge, drift service or notifier; only capture and store.")
    ] = False,
) -> None:
    """Start Redis, the store and all services. On Ctrl-C, drain and stop them all."""
    if once and not demo:
        raise CommandError("--once needs --demo: pass --demo too")
    if scenario and (no_quality or not demo):
        raise CommandError("--scenario needs --demo, and cannot be combined with --no-quality")
    from assay_local.launcher import Ending, Options, launch

    options = Options(data.absolute(), port_base, demo, once, keep_logs, not no_quality, scenario)
    ending = asyncio.run(launch(options))
    raise typer.Exit(
        {Ending.COMPLETE: OK, Ending.INCOMPLETE: FINDING, Ending.STOPPED: OPERATIONAL if once else OK}[ending]
    )
