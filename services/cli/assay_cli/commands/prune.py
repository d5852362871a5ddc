"""`assay prune`: delete old rows before retention does."""

import time
from functools import partial
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.export.sql import SOURCES
from assay_operations.prune import apply, plan_prune
from assay_operations.time_bounds import duration_ms
from assay_schema.fields import Kind


def prune(
    older_than: Annotated[
        str, typer.Option(help="Delete rows that arrived this long ago or earlier, for example 30d; 0d is everything.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows, and delete nothing.")] = False,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help=f"Only this kind, and no failures: {', '.join(Kind)}; default: all."),
    ] = None,
    yes: Yes = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete rows permanently by the time they arrived (`created_at`), failures and scores included."""
    with ends_quietly():
        if kind is not None and kind not in {k.value for k in SOURCES}:
            raise CommandError(f"--kind: {kind!r} is not one of {', '.join(SOURCES)}")
        actor = local_actor(comment)
        age_ms = duration_ms(older_than, "--older-than")
        upto_ms = None if age_ms == 0 else max(0, time.time_ns() // 1_000_000 - age_ms)
        plan = plan_prune(data, upto_ms=upto_ms, project=project, kind=Kind(kind) if kind else None)
        planned = [(table.table, table.visible, table.stored) for table in plan.tables]
        if dry_run:
            _report(planned, "would delete")
            return
        show = partial(_report, planned, "about to delete", err=True)
        if plan.stored and not agreed(show, "Delete them permanently?", yes=yes):
            return
        with Progress(Mode.AUTO) as counter:
            pruned = apply(plan, actor, progress=counter)
        _report([(table.table, table.visible, table.stored) for table in pruned], "deleted")
        if left := sum(table.left for table in pruned):
            echo(f"{left} more row(s) of that age were stored meanwhile; run this again to delete them", err=True)


def _report(tables: list[tuple[str, int, int]], what: str, *, err: bool = False) -> None:
    echo(f"{'table':<18}{'visible rows':>14}{'stored rows':>14}", err=err)
    for name, of_table, with_copies in tables:
        echo(f"{name:<18}{of_table:>14,}{with_copies:>14,}", err=err)
    visible, stored = sum(table[1] for table in tables), sum(table[2] for table in tables)
    copies = f" ({stored:,} with copies)" if stored != visible else ""
    echo(f"{what} {visible:,} row(s){copies}", err=err)
