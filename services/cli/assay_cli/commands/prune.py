"""`assay prune`: delete old rows before retention does."""

import time
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.confirm import agreed
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.export.sql import SOURCES
from assay_operations.prune import Plan, apply, plan_prune
from assay_operations.time_bounds import duration_ms
from assay_schema.events import Kind


def prune(
    older_than: Annotated[
        str, typer.Option(help="Delete rows that arrived this long ago or earlier, for example 30d; 0d is everything.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows, and delete nothing.")] = False,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="retrieval|answer|feedback", help="Only this kind, and no failures; default: all."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt (required without a terminal).")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete rows permanently by the time they arrived (`created_at`), failures and scores included."""
    with ends_quietly():
        if kind is not None and kind not in {k.value for k in SOURCES}:
            raise CommandError(f"--kind: {kind!r} is not one of {', '.join(SOURCES)}")
        age_ms = duration_ms(older_than, "--older-than")
        upto_ms = None if age_ms == 0 else max(0, time.time_ns() // 1_000_000 - age_ms)
        settings = settings_for("owner", data).store
        with open_store(settings) as client:
            plan = plan_prune(client, settings, upto_ms=upto_ms, project=project, kind=Kind(kind) if kind else None)
            if dry_run:
                _report(plan, "would delete")
                return
            if (
                not yes
                and plan.stored
                and not agreed(lambda: _report(plan, "about to delete", err=True), "Delete them permanently?")
            ):
                echo("nothing was deleted", err=True)
                return
            with Progress(Mode.AUTO) as counter:
                left = apply(plan, counter)
            _report(plan, "deleted")
            if left:
                echo(f"{left} more row(s) of that age were stored meanwhile; run this again to delete them", err=True)


def _report(plan: Plan, what: str, *, err: bool = False) -> None:
    echo(f"{'table':<18}{'visible rows':>14}{'stored rows':>14}", err=err)
    for table in plan.tables:
        echo(f"{table.target.name:<18}{table.visible:>14,}{table.stored:>14,}", err=err)
    copies = f" ({plan.stored:,} with copies)" if plan.stored != plan.visible else ""
    echo(f"{what} {plan.visible:,} row(s){copies}", err=err)
