"""`assay up`: the whole system on one machine, one command, nothing left behind."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING, OK, OPERATIONAL
from assay_local.scenario import Scenario


def up(
    data: Annotated[Path, typer.Option(help="Data directory; created when missing.")] = Path("data"),
    port_base: Annotated[
        int,
        typer.Option(
            envvar="PORT_BASE",
            min=1,
            max=65_000,
            help="First of eight ports: Redis, store, health of scrubber, writer, judge, drift, notifier; a scenario's Alertmanager.",
        ),
    ] = 9100,
    demo: Annotated[bool, typer.Option("--demo", help="Drive the demo producer, then print a summary.")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="With --demo: exit after the summary; 1 unless every event is accounted for.")
    ] = False,
    keep_logs: Annotated[bool, typer.Option("--keep-logs", help="Append to the logs of earlier runs.")] = False,
    scenario: Annotated[
        Scenario | None,
        typer.Option(
            help="With --demo: degrade the retriever half-way, or refuse most questions, and see the alert arrive."
        ),
    ] = None,
    no_quality: Annotated[
        bool, typer.Option("--no-quality", help="Capture and store only: start no judge, drift or notifier.")
    ] = False,
) -> None:
    """Start Redis, the store and all services; stop them all, drained, on Ctrl-C."""
    if once and not demo:
        raise CommandError("--once needs --demo: without it there is no summary to exit after")
    if scenario and (no_quality or not demo):
        raise CommandError("--scenario needs --demo, and what --no-quality leaves out")
    from assay_local.launcher import Ending, Options, launch

    options = Options(data.absolute(), port_base, demo, once, keep_logs, not no_quality, scenario)
    ending = asyncio.run(launch(options))
    raise typer.Exit(
        {Ending.COMPLETE: OK, Ending.INCOMPLETE: FINDING, Ending.STOPPED: OPERATIONAL if once else OK}[ending]
    )
