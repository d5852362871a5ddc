"""`assay alerts`: open alerts, and a test of the notification channels."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, emit
from assay_operations.alerts import alerts_listed, send_test_notice
from assay_operations.channels import unused_channels
from assay_operations.clients import DEFAULT_DATA, settings_for
from assay_schema.alert_actions import acknowledge_meaning, in_directory
from assay_schema.printable import printable

alerts = typer.Typer(
    no_args_is_help=True, help="List alerts on the quality of answers, or test the notification channels."
)


@alerts.command("list")
def list_alerts(
    everything: Annotated[bool, typer.Option("--all", help="List every transition, ended episodes included.")] = False,
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List open episodes, the most severe first, then by the size of the effect.

    Exit code 0 if there are none, 1 if there are any.
    """
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
    """Format an episode for people; the commands in it use the same data directory. Pure."""
    what = f"{row['kind']}{' of ' + row['metric'] if row['metric'] else ''}"
    where = f"{row['project']}{'/' + row['service'] if row['service'] else ''}"
    moment = row["at"].strftime("%Y-%m-%d %H:%M:%SZ")
    commands, elsewhere = "", str(data) if data != DEFAULT_DATA else ""
    for name, meaning in (("explain", "explain"), ("acknowledge", acknowledge_meaning(row["kind"]))):
        if command := row.get(name) or "":
            commands += f"\n    {meaning}: {in_directory(command, elsewhere)}"
    return printable(f"{moment}  {str(row['state']).upper():10} {where:20} {what}: {row['summary']}") + commands


@alerts.command("test")
def send_test(data: DataDirectory = DEFAULT_DATA) -> None:
    """Send a test notice and its resolution to every configured channel.

    Exit code 1 if a channel failed, if there is none but the log, or if the running notifier does not have the channels of
    assay.toml.
    """
    outcomes = send_test_notice(settings_for("notifier", data).notifier)
    for channel, why in outcomes.items():
        echo(f"{channel}: {'accepted the test notice' if why is None else why}")
    failed = any(why is not None for why in outcomes.values())
    if unused_channels(data):
        echo(
            "assay.toml names other channels than the running notifier has: restart `assay up`, then test again",
            err=True,
        )
        failed = True
    elif len(outcomes) == 1:
        echo(
            "alerts go to the log only: set alertmanager_urls, webhook_urls or apprise_urls under [notifier] in assay.toml, "
            "then restart `assay up`, or the notifier if it runs alone",
            err=True,
        )
        failed = True
    raise typer.Exit(FINDING if failed else 0)
