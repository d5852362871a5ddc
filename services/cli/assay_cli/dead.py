"""`assay dead`: entries given up after too many deliveries. Look at them, send them on their way again, or drop them."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from assay_cli.confirm import agreed
from assay_cli.errors import FINDING, CommandError
from assay_cli.options import DataDirectory
from assay_cli.terminal import echo, emit, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA, settings_for
from assay_operations.dead_letters.letters import DeadLetter, Filter, Name, NotRequeueableError, name_of, tally
from assay_operations.time_bounds import moment_ms
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client

#: Letters that a table shows; --json shows all.
_ROWS = 100
#: Columns of the table. A letter's whole metadata is in --json and `show`.
_COLUMNS = (
    "id", "buried_at", "stream", "stage", "reason", "error_class", "deliveries", "bytes", "project", "service", "event_id",
)  # fmt: skip

Result = TypeVar("Result")

dead = typer.Typer(
    no_args_is_help=True, help="Entries given up after too many deliveries: list, show, requeue or drop them."
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Letters, by the id that list shows.")]
Reasons = Annotated[str | None, typer.Option("--reason", help="Only those given up for this reason.")]
Stages = Annotated[str | None, typer.Option("--stage", help="Only those that this service gave up.")]
Since = Annotated[
    str | None, typer.Option("--since", help="Only those given up since: a duration ago (2h) or an ISO 8601 time.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count.")]


@dead.command("list")
def list_letters(
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line; the counts go to stderr.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List dead letters, oldest first, and count them by stage and reason. Nothing of their content is shown."""
    wanted = _filter(reason, stage, since)

    async def work(client: "Client", settings: Settings) -> None:
        kept, counts = _kept(settings), Counter[tuple[str, str]]()
        rows: list[dict[str, Any]] = []
        async for letter in _matching(client, settings, wanted):
            counts[letter.stage, letter.reason] += 1
            if as_json:
                emit(json.dumps(letter.metadata(kept)))
            elif len(rows) < _ROWS:
                rows.append(letter.metadata(kept) | {"id": _called(letter, settings)})
        if rows:
            _table(rows)
        total = counts.total()
        if total > len(rows) and not as_json:
            echo(f"only the first {_ROWS} of {total:,} are shown; --json prints all", err=True)
        echo(f"{_letters(total)}{': ' if total else ''}{tally(counts)}", err=as_json)

    with ends_quietly():
        _run(data, work)


@dead.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="The letter, by the id that list shows.")],
    unsafe_raw: Annotated[
        bool, typer.Option("--unsafe-raw", help="Also show text that was never scrubbed; it may hold personal data.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show one dead letter. Its content only if it is scrubbed, unless --unsafe-raw."""
    named = name_of(name)

    async def work(client: "Client", settings: Settings) -> None:
        found = [letter async for letter in _named(client, settings, named)]
        if not found:
            raise CommandError(f"no dead letter {named}; `assay dead list` shows those there are")
        if len(found) > 1:
            several = " or ".join(_called(letter, settings) for letter in found)
            raise CommandError(f"several shards have {named}; name one of them: {several}")
        letter = found[0]
        facts: dict[str, Any] = letter.metadata(_kept(settings))
        shown = letter.data.decode(errors="replace") if letter.scrubbed or unsafe_raw else None
        if as_json:
            emit(json.dumps(facts | {"content": shown}))
            return
        for fact, value in facts.items():
            echo(f"{fact:<12} {printable('unknown' if value is None else str(value))}")
        echo("content" if shown is not None else "content      not shown: it was not scrubbed; see --unsafe-raw")
        for line in _indented(shown or ""):
            echo(printable(line))

    with ends_quietly():
        _run(data, work)


@dead.command()
def requeue(
    ids: Ids = None,
    everything: All = False,
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    dry_run: DryRun = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Send dead letters on their way again, under their own `event_id`; mend first what they died of. Exit code 1 if any was left."""
    chosen = _Choice("requeue", ids, everything, _filter(reason, stage, since))

    async def work(client: "Client", settings: Settings) -> bool:
        sent = _Requeued(dry_run)
        try:
            await sent.all_of(client, settings, chosen)
        finally:  # also when Redis goes away in the middle: what was sent is sent
            echo(sent.summary())
        return chosen.tell_missing() or bool(sent.left)

    with ends_quietly():
        if _run(data, work):
            raise typer.Exit(FINDING)


class _Requeued:
    """Requeues, page by page, and keeps count."""

    def __init__(self, dry_run: bool) -> None:
        self.left = 0
        self._dry_run = dry_run
        self._sent = Counter[str]()

    async def all_of(self, client: "Client", settings: Settings, chosen: "_Choice") -> None:
        """All that was chosen."""
        from assay_runtime.dead import PAGE

        waiting: list[DeadLetter] = []
        async for letter in chosen.letters(client, settings):
            if waiting and (len(waiting) == PAGE or letter.shard != waiting[0].shard):
                await self._send(client, settings, waiting)
                waiting = []
            waiting.append(letter)
        await self._send(client, settings, waiting)

    async def _send(self, client: "Client", settings: Settings, letters: list[DeadLetter]) -> None:
        from assay_runtime.dead import Move
        from assay_runtime.dead import requeue as move

        moves = []
        for letter in letters:
            try:
                moves.append(Move(letter.id, *letter.requeued()))
            except NotRequeueableError as error:
                self._leave(letter, settings, f"cannot be requeued: {error}; drop it")
        if self._dry_run:
            self._sent.update(each.target.name for each in moves)
            return
        by_id = {letter.id: letter for letter in letters}
        done = await move(client, letters[0].shard, moves) if moves else []
        for each, moved in zip(moves, done, strict=True):
            if moved:
                self._sent[each.target.name] += 1
            else:
                self._leave(by_id[each.letter_id], settings, "gone meanwhile: requeued, dropped or expired")

    def _leave(self, letter: DeadLetter, settings: Settings, why: str) -> None:
        self.left += 1
        echo(f"{_called(letter, settings)} {why}", err=True)

    def summary(self) -> str:
        """What was done, in exact numbers."""
        where = ", ".join(f"{count:,} to {stream}" for stream, count in sorted(self._sent.items()))
        verb = "would requeue" if self._dry_run else "requeued"
        return f"{verb} {_letters(self._sent.total())}{f': {where}' if where else ''}"


@dead.command()
def drop(
    ids: Ids = None,
    everything: All = False,
    reason: Reasons = None,
    stage: Stages = None,
    since: Since = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Needed where nobody can be asked.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete dead letters for ever; their rows in `capture_failures` stay. Exit code 1 if a named one is not there."""
    chosen = _Choice("drop", ids, everything, _filter(reason, stage, since))

    async def choose(client: "Client", settings: Settings) -> tuple[list[Name], str]:
        doomed, counts = [], Counter[tuple[str, str]]()
        async for letter in chosen.letters(client, settings):
            doomed.append(Name(letter.shard, letter.id))
            counts[letter.stage, letter.reason] += 1
        return doomed, tally(counts)

    with ends_quietly():
        doomed, counts = _run(data, choose)
        summary = f"{_letters(len(doomed))}{f': {counts}' if counts else ''}"
        if dry_run:
            echo(f"would drop {summary}")
        elif (
            doomed and not yes and not agreed(lambda: echo(f"about to drop {summary}", err=True), "Drop them for ever?")
        ):
            echo("nothing was dropped", err=True)
            return
        else:
            echo(f"dropped {_letters(_drop(data, doomed))}")
        if chosen.tell_missing():
            raise typer.Exit(FINDING)


def _drop(data: Path, doomed: list[Name]) -> int:
    async def work(client: "Client", settings: Settings) -> int:
        from assay_runtime.dead import drop as delete

        shards = range(settings.redis.shards)
        return sum(
            [await delete(client, shard, [name.id for name in doomed if name.shard == shard]) for shard in shards]
        )

    return _run(data, work) if doomed else 0


def _filter(reason: str | None, stage: str | None, since: str | None) -> Filter:
    now_ms = time.time_ns() // 1_000_000
    return Filter(reason, stage, None if since is None else max(0, moment_ms(since, now_ms, "--since")))


class _Choice:
    """Which letters a command is to change; to say nothing must not mean all. No ids: all that the filter wants."""

    def __init__(self, command: str, ids: list[str] | None, everything: bool, wanted: Filter) -> None:
        self._names = list(dict.fromkeys(map(name_of, ids or [])))
        self._wanted = wanted
        self._missing: list[Name] = []
        if self._names and everything:
            raise CommandError(f"{command}: give ids or --all, not both")
        if not (self._names or everything or wanted):
            raise CommandError(f"{command}: which ones? give ids, a filter (--reason, --stage, --since) or --all")

    async def letters(self, client: "Client", settings: Settings) -> AsyncIterator[DeadLetter]:
        """The named ones that pass the filter, or all that pass it when none is named."""
        if not self._names:
            async for letter in _matching(client, settings, self._wanted):
                yield letter
        for name in self._names:
            found = False
            async for letter in _named(client, settings, name):
                found = True
                if self._wanted.wants(letter):
                    yield letter
            if not found:
                self._missing.append(name)

    def tell_missing(self) -> bool:
        """Say which of the named are not there; whether there are such."""
        for name in self._missing:
            echo(f"not there: {name}", err=True)
        return bool(self._missing)


def _run(data: Path, work: Callable[["Client", Settings], Awaitable[Result]]) -> Result:
    settings = settings_for("operator", data)
    from assay_runtime.connection import connect

    async def run() -> Result:
        # No second try: a step whose answer was lost may have been done, and would then be miscounted.
        client = connect(settings.redis, attempts=0)
        try:
            return await work(client, settings)
        finally:
            await client.aclose()

    return asyncio.run(run())


async def _matching(client: "Client", settings: Settings, wanted: Filter) -> AsyncIterator[DeadLetter]:
    """All that pass, shard by shard, oldest first."""
    from assay_runtime.dead import letters

    for shard in range(settings.redis.shards):
        async for page in letters(client, shard, wanted.first):
            for letter_id, fields in page:
                letter = DeadLetter.of(shard, letter_id, fields)
                if wanted.wants(letter):
                    yield letter


async def _named(client: "Client", settings: Settings, name: Name) -> AsyncIterator[DeadLetter]:
    """Those of this name: one at most, unless several shards have it."""
    from assay_runtime.dead import letter

    for shard in range(settings.redis.shards):
        if name.shard in (None, shard) and (found := await letter(client, shard, name.id)):
            yield DeadLetter.of(shard, *found)


def _kept(settings: Settings) -> timedelta:
    return timedelta(days=settings.delivery.dead_days)


def _called(letter: DeadLetter, settings: Settings) -> str:
    return str(Name(letter.shard if settings.redis.shards > 1 else None, letter.id))


def _letters(count: int) -> str:
    return f"{count:,} dead letter{'' if count == 1 else 's'}"


def _indented(text: str) -> list[str]:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).splitlines()
    except ValueError:
        return text.splitlines()


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from assay_local.console import Console

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in _COLUMNS:
        numbers = column in ("deliveries", "bytes")
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        cells = ("unknown" if row[column] is None else str(row[column]) for column in _COLUMNS)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    Console(width=None if sys.stdout.isatty() else 10_000).print(table)
