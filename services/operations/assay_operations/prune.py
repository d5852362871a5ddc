"""Delete what arrived long ago, before retention would: `plan_prune`, then `apply`."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_operations.clients import engine_message
from assay_operations.errors import OperationError
from assay_operations.export.sql import SOURCES, literal
from assay_operations.progress import Counts
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


class TablePruning:
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

    def run(self, seen: Counts) -> None:
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
                raise OperationError(
                    "unavailable", f"store: rows of {self._base} cannot be removed: {engine_message(reasons[0])}"
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)


@dataclass(frozen=True)
class Plan:
    """What a pruning would delete, table by table."""

    tables: list[TablePruning]

    @property
    def visible(self) -> int:
        """Rows that readers see and that are to go."""
        return sum(table.visible for table in self.tables)

    @property
    def stored(self) -> int:
        """The same with their copies, as they are stored."""
        return sum(table.stored for table in self.tables)


def plan_prune(
    client: "Client", settings: StoreSettings, *, upto_ms: int | None, project: str | None, kind: Kind | None
) -> Plan:
    """Count what arrived up to a Unix millisecond (None: everything), of one project or kind if one is named."""
    tables = [TablePruning(client, settings, target, upto_ms, project) for target in targets(kind)]
    for table in tables:
        table.count()
    return Plan(tables)


def apply(plan: Plan, seen: Counts) -> int:
    """Delete what was planned. Returns how many rows that old were stored meanwhile. Safe to repeat after an interruption."""
    seen.total = plan.stored
    for table in plan.tables:
        table.run(seen)
    return sum(table.left() for table in plan.tables)
