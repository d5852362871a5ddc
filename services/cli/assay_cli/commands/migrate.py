"""`assay migrate`: create or update the tables of the store."""

from functools import partial
from typing import Annotated

import typer

from assay_cli.options import Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.terminal import echo
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.migrate import Plan, apply, plan_migrate


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Yes = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Create or update the store's databases, tables, views and retention.

    Safe to repeat; needs the credentials of `owner`. If the settings keep rows for fewer days than the tables do, it shows how many would
    expire, and asks first.
    """
    actor = local_actor(comment)
    plan = plan_migrate(data)
    if dry_run:
        _show(plan, "would", err=False)
        return
    show = partial(_show, plan, "will", err=True)
    if plan.retention and (yes or not plan.shorter):
        show()
    elif plan.shorter and not agreed(
        show, "Delete the rows that expire?", yes=yes, undone="changed", dry_run="show what would expire"
    ):
        return
    for name in apply(plan, actor):
        echo(f"applied {name}", err=True)
    echo("the store's tables are up to date", err=True)


def _show(plan: Plan, verb: str, *, err: bool) -> None:
    for line in plan.lines(verb):
        echo(line, err=err)
