"""`assay dead`: list, show, requeue or drop dead letters (entries that failed too many deliveries)."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.tables import print_table
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA, run_with_redis
from assay_operations.dead_letters.choose import Choice, called, matching, the_one
from assay_operations.dead_letters.drop import apply as apply_drop
from assay_operations.dead_letters.drop import plan_drop
from assay_operations.dead_letters.letters import Name, by_stream, filter_of, name_of, tally
from assay_operations.dead_letters.requeue import Requeued, plan_requeue
from assay_operations.dead_letters.requeue import apply as apply_requeue
from assay_schema.settings import Settings
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_runtime.connection import Client

#: Maximum rows of the table; --json shows all.
_ROWS = 100
#: Columns of the table. The complete metadata is in --json and `show`.
_COLUMNS = (
    "id", "buried_at", "stream", "stage", "reason", "error_class", "deliveries", "bytes", "project", "service", "event_id",
)  # fmt: skip

dead = typer.Typer(
    no_args_is_help=True, help="List, show, requeue or drop dead letters, the entries that failed too many deliveries."
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="IDs as shown by `assay dead list`.")]
Reasons = Annotated[str | None, typer.Option("--reason", help="Only dead letters with this reason; default: all.")]
Stages = Annotated[str | None, typer.Option("--stage", help="Only dead letters of this service; default: all.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="Only dead letters since then: a duration ago (2h) or an ISO 8601 time; default: all."
    ),
]
All = Annotated[bool, typer.Option("--all", help="Select all dead letters.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count them, and change nothing.")]


@dead.command("list")
def list_letters(
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line; counts go to stderr.")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List dead letters, oldest first, and count them by stage and reason. Their content is not shown."""
    wanted = filter_of(reason, stage, since)

    async def work(client: "Client", settings: Settings) -> None:
        kept, counts = timedelta(days=settings.delivery.dead_days), Counter[tuple[str, str]]()
        rows: list[dict[str, Any]] = []
        async for letter in matching(client, settings, wanted):
            counts[letter.stage, letter.reason] += 1
            if as_json:
                emit(json.dumps(letter.metadata(kept)))
            elif len(rows) < _ROWS:
                rows.append(letter.metadata(kept) | {"id": called(letter, settings)})
        if rows:
            print_table(list(_COLUMNS), ([row[column] for column in _COLUMNS] for row in rows), null="unknown")
        total = counts.total()
        if total > len(rows) and not as_json:
            echo(f"only the first {_ROWS} of {total:,} are shown; --json prints all", err=True)
        echo(f"{counted(total, 'dead letter')}{': ' if total else ''}{tally(counts)}", err=as_json)

    with ends_quietly():
        run_with_redis("operator", data, work)


@dead.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="ID as shown by `assay dead list`.")],
    unsafe_raw: Annotated[
        bool, typer.Option("--unsafe-raw", help="Also show unscrubbed text, which can contain personal data.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show one dead letter. Its content is shown only if it is scrubbed, or with --unsafe-raw."""
    wanted = name_of(name)

    async def work(client: "Client", settings: Settings) -> None:
        letter = await the_one(client, settings, wanted)
        facts: dict[str, Any] = letter.metadata(timedelta(days=settings.delivery.dead_days))
        shown = letter.data.decode(errors="replace") if letter.scrubbed or unsafe_raw else None
        if as_json:
            emit(json.dumps(facts | {"content": shown}))
            return
        for fact, value in facts.items():
            echo(f"{fact:<12} {printable('unknown' if value is None else str(value))}")
        echo(
            "content"
            if shown is not None
            else "content      not shown: it is not scrubbed; pass --unsafe-raw to show it"
        )
        for line in _indented(shown or ""):
            echo(printable(line))

    with ends_quietly():
        run_with_redis("operator", data, work)


@dead.command()
def requeue(
    ids: Ids = None,
    everything: All = False,
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    dry_run: DryRun = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Requeue dead letters under their original `event_id`.

    Fix the cause first. Exit code 1 if any was not requeued.
    """
    chosen, actor = Choice("requeue", ids, everything, filter_of(reason, stage, since)), local_actor(comment)

    with ends_quietly():
        plan, done = plan_requeue(data, chosen), Requeued()
        for line in plan.unfit:
            echo(line, err=True)
        if dry_run:
            echo(f"would requeue {by_stream(plan.streams)}")
        else:
            try:
                apply_requeue(plan, actor, progress=done)
            finally:  # also if Redis disconnects halfway: requeued letters stay requeued
                for line in done.gone:
                    echo(line, err=True)
                echo(f"requeued {by_stream(done.streams)}")
        if _tell_missing(plan.missing) or plan.unfit or done.gone:
            raise typer.Exit(FINDING)


@dead.command()
def drop(
    ids: Ids = None,
    everything: All = False,
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete dead letters permanently; their rows in `capture_failures` stay.

    Exit code 1 if a given ID does not exist.
    """
    chosen, actor = Choice("drop", ids, everything, filter_of(reason, stage, since)), local_actor(comment)

    with ends_quietly():
        plan = plan_drop(data, chosen)
        summary = f"{counted(len(plan.names), 'dead letter')}{f': {plan.tally}' if plan.tally else ''}"
        if dry_run:
            echo(f"would drop {summary}")
        else:
            show = partial(echo, f"about to drop {summary}", err=True)
            if plan.names and not agreed(show, "Drop them permanently?", yes=yes, undone="dropped"):
                return
            dropped = apply_drop(plan, actor)
            echo(f"dropped {counted(dropped, 'dead letter')}")
            if gone := len(plan.names) - dropped:
                echo(f"{counted(gone, 'dead letter')} gone meanwhile: requeued, dropped or expired", err=True)
        if _tell_missing(plan.missing):
            raise typer.Exit(FINDING)


def _tell_missing(missing: Sequence[Name]) -> bool:
    """Print the given IDs that do not exist. Return True if there are any."""
    for name in missing:
        echo(f"not found: {name}", err=True)
    return bool(missing)


def _indented(text: str) -> list[str]:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return text.splitlines()
