"""`assay prune`: delete what arrived long ago, before retention would."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay_cli.confirm import agreed
from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.progress import Mode, Progress
from assay_cli.terminal import echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA, engine_message, open_store, settings_for
from assay_operations.export.sql import SOURCES, literal
from assay_operations.time_bounds import duration_ms
from assay_schema.events import Kind
from assay_schema.limits import EVENT_AHEAD_MAX_MS
from assay_schema.settings import StoreSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Identities in one statement when later copies are deleted by name.
_NAMED_AT_ONCE = 1_000
#: A part that the engine merged into another since it was listed.
_PART_GONE = {232, 384}
#: Seconds between two questions whether the engine has finished.
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.02, 1.0


@dataclass(frozen=True)
class Target:
    """A table, the column that tells its rows apart (copies of one row share it), and the one that says when a row arrived."""

    name: str
    identity: str
    has_event_time: bool
    arrived: str = "created_at"


SCORES = Target("scores", "score_id", has_event_time=True, arrived="judged_at")
FAILURES = Target("capture_failures", "failure_id", has_event_time=False)


def targets(kind: Kind | None) -> list[Target]:
    """The tables that hold a kind, with answers their scores; all of them, failures too, when no kind is named."""
    events = [
        Target(source.view, "event_id", has_event_time=True) for k, source in SOURCES.items() if kind in (None, k)
    ]
    if kind in (None, Kind.ANSWER):
        events.append(SCORES)
    return events if kind else [*events, FAILURES]


def conditions(upto_ms: int | None, project: str | None, arrived: str = "created_at") -> list[str]:
    """Parts of a WHERE clause: rows that arrived up to a Unix millisecond (None: all), and perhaps of one project."""
    found = [] if upto_ms is None else [f"{arrived} <= fromUnixTimestamp64Milli({upto_ms}, 'UTC')"]
    return found + ([] if project is None else [f"project = {literal(project)}"])


def later_copies(table: str, target: Target, upto_ms: int | None, project: str | None) -> str | None:
    """A query for the identities of rows that arrived later but are copies of one that is to go, as a producer's retry leaves them.

    They go too: without its first copy a row that no reader has seen would come into sight, under another `id`.
    """
    if upto_ms is None:
        return None
    (arrived, *of_project) = conditions(upto_ms, project, target.arrived)
    later = [f"NOT ({arrived})", *of_project]
    if (
        target.has_event_time
    ):  # an event is received at most a day before its own time, so its copies bear no later time
        later.append(f"event_time <= fromUnixTimestamp64Milli({upto_ms + EVENT_AHEAD_MAX_MS}, 'UTC')")
    return (
        f"SELECT DISTINCT {target.identity} FROM {table} WHERE {' AND '.join([arrived, *of_project])}"  # noqa: S608 - checked or quoted
        f" AND {target.identity} IN (SELECT {target.identity} FROM {table} WHERE {' AND '.join(later)})"
    )


@dataclass(frozen=True)
class Part:
    """One file of a table: how many rows, and how many of them are to go."""

    partition: str
    name: str
    rows: int
    doomed: int


def sort_out(parts: Iterable[Part]) -> tuple[list[Part], dict[str, int]]:
    """What can be dropped whole, and the partitions in which rows must be picked out, with their number. Pure."""
    whole = [part for part in parts if part.doomed == part.rows]
    mixed: dict[str, int] = {}
    for part in parts:
        if 0 < part.doomed < part.rows:
            mixed[part.partition] = mixed.get(part.partition, 0) + part.doomed
    return whole, mixed


def prune(
    older_than: Annotated[
        str, typer.Option(help="Delete what arrived this long ago or earlier, such as 30d; 0d is everything.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    project: Annotated[str | None, typer.Option(help="Only this project's.")] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="retrieval|answer|feedback", help="Only this kind, and no failures.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Needed where nobody can be asked.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Delete rows by when they arrived (`created_at`), failures and scores included; what is deleted cannot be brought back."""
    with ends_quietly():
        if kind is not None and kind not in {k.value for k in SOURCES}:
            raise CommandError(f"--kind: {kind!r} is not one of {', '.join(SOURCES)}")
        age_ms = duration_ms(older_than, "--older-than")
        upto_ms = None if age_ms == 0 else max(0, time.time_ns() // 1_000_000 - age_ms)
        settings = settings_for("owner", data).store
        with open_store(settings) as client:
            jobs = [
                _Job(client, settings, target, upto_ms, project) for target in targets(Kind(kind) if kind else None)
            ]
            for job in jobs:
                job.count()
            if dry_run:
                _report(jobs, "would delete")
                return
            if (
                not yes
                and any(job.stored for job in jobs)
                and not agreed(lambda: _report(jobs, "about to delete", err=True), "Delete them for ever?")
            ):
                echo("nothing was deleted", err=True)
                return
            with Progress(Mode.AUTO) as seen:
                seen.total = sum(job.stored for job in jobs)
                for job in jobs:
                    job.run(seen)
            _report(jobs, "deleted")
            left = sum(job.left() for job in jobs)
            if left:
                echo(f"{left} row(s) that old were stored meanwhile; run this again for them", err=True)


class _Job:
    """The pruning of one table."""

    def __init__(
        self, client: "Client", settings: StoreSettings, target: Target, upto_ms: int | None, project: str | None
    ) -> None:
        self.target = target
        self.visible = 0
        self.stored = 0
        self._client = client
        self._view = f"{settings.database}.{target.name}"
        self._base = f"{settings.base_database}.{target.name}"
        self._where = " AND ".join(conditions(upto_ms, project, target.arrived)) or "1"
        self._late_query = later_copies(self._base, target, upto_ms, project)
        self._late: list[str] = []

    def count(self) -> None:
        """Find out what there is to do."""
        self.visible = self.left()
        self._late = [str(identity) for (identity,) in self._rows(self._late_query)] if self._late_query else []
        copies = sum(
            self._rows(f"SELECT count() FROM {self._base} WHERE {condition}")[0][0]  # noqa: S608 - checked or quoted
            for condition in self._late_conditions()
        )
        self.stored = sum(part.doomed for part in self._parts()) + copies

    def left(self) -> int:
        """Visible rows that are to go and are still there."""
        return int(self._rows(f"SELECT count() FROM {self._view} WHERE {self._where}")[0][0])  # noqa: S608 - checked or quoted

    def run(self, seen: Progress) -> None:
        """Delete. Safe to repeat after an interruption."""
        for condition in self._late_conditions():
            self._delete("", condition)
        whole, mixed = sort_out(self._parts())
        for part in whole:
            if self._drop(part):
                seen.rows += part.rows
            else:
                mixed[part.partition] = mixed.get(part.partition, 0) + part.doomed
        for partition, rows in mixed.items():
            self._delete(f"IN PARTITION ID {literal(partition)}", self._where)
            seen.rows += rows

    def _late_conditions(self) -> Iterator[str]:
        for start in range(0, len(self._late), _NAMED_AT_ONCE):
            named = ", ".join(literal(identity) for identity in self._late[start : start + _NAMED_AT_ONCE])
            yield f"{self.target.identity} IN ({named}) AND NOT ({self._where})"

    def _parts(self) -> list[Part]:
        query = (
            f"SELECT _partition_id, _part, count(), countIf({self._where}) FROM {self._base} GROUP BY ALL ORDER BY ALL"  # noqa: S608
        )
        return [Part(*row) for row in self._rows(query)]

    def _rows(self, query: str) -> Sequence[Sequence[Any]]:
        return self._client.query(query).result_rows

    def _drop(self, part: Part) -> bool:
        """Drop a part, or return False when the engine has merged it into another meanwhile.

        Parts rather than partitions, because a part never grows: what arrives while this runs is in another one.
        """
        from clickhouse_connect.driver.exceptions import DatabaseError

        try:
            self._client.command(f"ALTER TABLE {self._base} DROP PART {literal(part.name)}")
        except DatabaseError as error:
            if getattr(error, "code", None) in _PART_GONE:
                return False
            raise
        return True

    def _delete(self, where_at: str, condition: str) -> None:
        """Rewrite without some rows: they leave the disk too, once the engine deletes the parts that it replaced, minutes later.

        The engine works on its own and is asked how far it is, so that a long rewrite is not taken for a store that does not answer.
        """
        self._client.command(
            f"ALTER TABLE {self._base} DELETE {where_at} WHERE {condition}", settings={"mutations_sync": 0}
        )
        database, _, table = self._base.partition(".")
        still_at_work = (
            "SELECT latest_fail_reason FROM system.mutations"  # noqa: S608 - quoted
            f" WHERE database = {literal(database)} AND table = {literal(table)} AND NOT is_done AND NOT is_killed"
        )
        pause_s = _PAUSE_FIRST_S
        while unfinished := self._rows(still_at_work):
            if reasons := [str(reason) for (reason,) in unfinished if reason]:
                raise CommandError(f"store: rows of {self._base} cannot be removed: {engine_message(reasons[0])}")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _report(jobs: list[_Job], what: str, *, err: bool = False) -> None:
    echo(f"{'table':<18}{'visible rows':>14}{'stored rows':>14}", err=err)
    for job in jobs:
        echo(f"{job.target.name:<18}{job.visible:>14,}{job.stored:>14,}", err=err)
    visible, stored = sum(job.visible for job in jobs), sum(job.stored for job in jobs)
    copies = f" ({stored:,} with copies)" if stored != visible else ""
    echo(f"{what} {visible:,} row(s){copies}", err=err)
