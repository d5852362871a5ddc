"""`assay alerts`: what is open, and whether everybody who should hear of it does."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, emit
from assay_operations.alerts import alerts_listed, send_test_notice
from assay_operations.clients import DEFAULT_DATA, settings_for
from assay_schema.printable import printable

alerts = typer.Typer(
    no_args_is_help=True, help="Alerts on the quality of answers: list them, or test how they are told."
)


@alerts.command("list")
def list_alerts(
    everything: Annotated[bool, typer.Option("--all", help="Every transition, those of ended episodes too.")] = False,
    project: Annotated[str, typer.Option(help="Of one project only.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show the episodes that are open, the worst first. Exit code 1 if there are any, 0 if none."""
    rows = alerts_listed(data, everything=everything, project=project)
    for row in rows:
        if as_json:
            emit(json.dumps(row, default=str))
        else:
            echo(line(row, data))
    if everything:
        return
    if not rows:
        echo("no open alerts", err=as_json)
    raise typer.Exit(FINDING if rows else 0)


def line(row: dict[str, Any], data: Path) -> str:
    """An episode for people; its commands reach the same system as the one that lists it. Pure."""
    what = f"{row['kind']}{' of ' + row['metric'] if row['metric'] else ''}"
    where = f"{row['project']}{'/' + row['service'] if row['service'] else ''}"
    moment = row["at"].strftime("%Y-%m-%d %H:%M:%SZ")
    commands = ""
    for name in ("explain", "acknowledge"):
        if command := row.get(name) or "":
            elsewhere = f" --data {shlex.quote(str(data))}" if data != DEFAULT_DATA else ""
            commands += f"\n    {name}: {command}{elsewhere}"
    return printable(f"{moment}  {str(row['state']).upper():10} {where:20} {what}: {row['summary']}") + commands


@alerts.command("test")
def send_test(data: DataDirectory = DEFAULT_DATA) -> None:
    """Send a test notice through every configured channel, and its end. Exit code 1 if one did not take it."""
    found = send_test_notice(settings_for("notifier", data).notifier)
    for channel, why in found.items():
        echo(f"{channel}: {'took the test notice' if why is None else why}")
    if len(found) == 1:
        echo(_nobody(data), err=True)
    raise typer.Exit(FINDING if any(why is not None for why in found.values()) else 0)


def _nobody(data: Path) -> str:
    return (
        "only the log is told: set alertmanager_urls, webhook_urls or apprise_urls under [notifier] in assay.toml, "
        f"then start the notifier again (`assay up` writes them to {data / 'secrets/notifier.toml'})"
    )
