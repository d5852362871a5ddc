"""Delete old rows before retention does: `plan_prune`, then `apply`."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail
from assay_operations.clients import engine_message, open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.sql import SOURCES, literal
from assay_operations.progress import Counts, Unseen
from assay_schema.fields import Kind
from assay_schema.limits import EVENT_AHEAD_MAX_MS
from assay_schema.settings import StoreSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client


#: Identities per statement when later copies are deleted by identity.
_NAMED_AT_ONCE = 1_000
#: Error codes of a part that the engine merged into another since it was listed.
_PART_GONE = {232, 384}
#: Seconds between polls of the engine's progress: the first, and the maximum.
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.02, 1.0


@dataclass(frozen=True)
class Target:
    """A table, the column that identifies a row (copies share it), and the column of its arrival."""

    name: str
    identity: str
    has_event_time: bool
    arrived: str = "created_at"
    #: Condition for the rows of its kind, if the table has several kinds.
    only: str = ""


SCORES = Target("scores", "score_id", has_event_time=True, arrived="judged_at")
#: The kinds that are judged, and the condition for their scores.
_SCORES_OF = {Kind.ANSWER: "session_id IS NULL", Kind.SESSION: "session_id IS NOT NULL"}
_PARTS = Target("session_parts", "event_id", has_event_time=True)
FAILURES = Target("capture_failures", "failure_id", has_event_time=False)
#: A label has the arrival of its answer as `created_at`, so both go at once.
LABELS = Target("labels", "label_id", has_event_time=True)
#: Pairs that were judged for contradictions contain texts, and labels of them notes.
PAIRS = (
    Target("contradiction_pairs", "result_id", has_event_time=False),
    Target("contradiction_labels", "label_id", has_event_time=False),
)
CASES = Target("dataset_cases", "case_id", has_event_time=False)


def targets(kind: Kind | None, *, erases_project: bool = False) -> list[Target]:
    """Return the tables of a kind; without a kind all, failures included.

    Answers and sessions come with their scores, answers also with their labels. Pairs of documents that were judged go with all kinds.
    Cases of datasets are kept, unless a whole project is erased.
    """
    events = [
        Target(source.view, "event_id", has_event_time=True) for k, source in SOURCES.items() if kind in (None, k)
    ]
    if kind is None:
        events.append(SCORES)
    elif kind in _SCORES_OF:
        events.append(replace(SCORES, only=_SCORES_OF[kind]))
    if kind in (None, Kind.ANSWER):
        events.append(LABELS)
    if kind:
        return events
    return [*events, FAILURES, *PAIRS, CASES] if erases_project else [*events, FAILURES, *PAIRS]


@dataclass(frozen=True)
class Selection:
    """The rows to delete: by arrival, by the time they were stored, and optionally of a project.

    Times are Unix milliseconds.
    """

    #: Arrival up to this time; None: any.
    upto_ms: int | None
    #: Stored up to this time, by the store's clock: that of the plan, so that later rows stay.
    stored_upto_ms: int
    project: str | None = None
    base_database: str = "assay_base"

    @property
    def erases_project(self) -> bool:
        """True if everything of a project is to be deleted."""
        return self.upto_ms is None and self.project is not None

    def of_age(self, target: Target) -> list[str]:
        """Return WHERE conditions for the rows of this age, whenever they were stored."""
        by_time = [] if self.upto_ms is None else [self._by_time(target, self.upto_ms)]
        by_project = [] if self.project is None else [f"project = {literal(self.project)}"]
        return by_time + by_project + ([target.only] if target.only else [])

    def _by_time(self, target: Target, upto_ms: int) -> str:
        old = f"{target.arrived} <= {_moment(upto_ms)}"
        if target.name != SCORES.name:
            return old
        # Scores of sessions have text of theirs: they go when the last part of the session goes, however late they were judged.
        doomed = " AND ".join(self.conditions(_PARTS))
        stay = f"SELECT project, session_id FROM {self.base_database}.session_parts WHERE NOT ({doomed})"  # noqa: S608 - checked or quoted
        return f"if(session_id IS NULL, {old}, (project, assumeNotNull(session_id)) NOT IN ({stay}))"

    def conditions(self, target: Target) -> list[str]:
        """Return WHERE conditions for the rows to delete."""
        return [*self.of_age(target), self.stored]

    @property
    def stored(self) -> str:
        """The condition for what was stored when the plan was made."""
        return f"stored_at <= {_moment(self.stored_upto_ms)}"


def _moment(ms: int) -> str:
    return f"fromUnixTimestamp64Milli({ms}, 'UTC')"


def later_copies(table: str, target: Target, chosen: Selection) -> str | None:
    """Return a query for later copies of rows to delete, as a producer's retry leaves them.

    They are deleted too: without the first copy, a later copy would become visible under another `id`. A copy that was stored after the
    plan stays, as an event that is sent again after it was deleted.
    """
    if chosen.upto_ms is None:
        return None
    (arrived, *others) = chosen.conditions(target)
    later = [f"NOT ({arrived})", *others]
    if (
        target.has_event_time
    ):  # an event is received at most a day before its own time, so its copies have no later time
        later.append(f"event_time <= {_moment(chosen.upto_ms + EVENT_AHEAD_MAX_MS)}")
    return (
        f"SELECT DISTINCT {target.identity} FROM {table} WHERE {' AND '.join([arrived, *others])}"  # noqa: S608 - checked or quoted
        f" AND {target.identity} IN (SELECT {target.identity} FROM {table} WHERE {' AND '.join(later)})"
    )


@dataclass(frozen=True)
class Part:
    """One part of a table: its number of rows, and how many of them are to be deleted."""

    partition: str
    name: str
    rows: int
    doomed: int


def sort_out(parts: Iterable[Part]) -> tuple[list[Part], dict[str, int]]:
    """Return the parts to drop whole, and the partitions with single rows to delete, with counts. Pure."""
    whole = [part for part in parts if part.doomed == part.rows]
    mixed: dict[str, int] = {}
    for part in parts:
        if 0 < part.doomed < part.rows:
            mixed[part.partition] = mixed.get(part.partition, 0) + part.doomed
    return whole, mixed


class TablePruning:
    """Deletion of old rows of one table."""

    def __init__(self, client: "Client", settings: StoreSettings, target: Target, chosen: Selection) -> None:
        self.target = target
        self.visible = 0
        self.stored = 0
        self._client = client
        self._view = f"{settings.database}.{target.name}"
        self._base = f"{settings.base_database}.{target.name}"
        self._where = " AND ".join(chosen.conditions(target))
        self._of_age = " AND ".join(chosen.of_age(target)) or "1"
        self._stored_by_then = chosen.stored
        self._late_query = later_copies(self._base, target, chosen)
        self._late: list[str] = []

    def count(self) -> None:
        """Count the rows to delete."""
        self.visible = self._shown(self._where)
        self._late = [str(identity) for (identity,) in self._rows(self._late_query)] if self._late_query else []
        copies = sum(self._stored(condition) for condition in self._late_conditions())
        self.stored = sum(part.doomed for part in self._parts()) + copies

    def left(self) -> int:
        """Count the visible rows of this age: those that were stored after the plan."""
        return self._shown(self._of_age)

    def _shown(self, condition: str) -> int:
        return int(self._rows(f"SELECT count() FROM {self._view} WHERE {condition}")[0][0])  # noqa: S608 - checked or quoted

    def run(self, seen: Counts, attempt: Attempt) -> "Pruned":
        """Delete the rows, and count those that were there. Safe to repeat after an interruption."""
        self.count()  # others may have deleted some since the plan was made
        before = attempt.changed

        def done(rows: int) -> None:
            seen.rows += rows
            attempt.changed += rows

        for condition in self._late_conditions():
            copies = self._stored(condition)
            delete_rows(self._client, self._base, f"WHERE {condition}", copies, attempt)
            seen.rows += copies
        whole, mixed = sort_out(self._parts())
        for part in whole:
            if self._drop(part):
                done(part.rows)
            else:
                mixed[part.partition] = mixed.get(part.partition, 0) + part.doomed
        for partition, rows in mixed.items():
            where = f"IN PARTITION ID {literal(partition)} WHERE {self._where}"
            delete_rows(self._client, self._base, where, rows, attempt)
            seen.rows += rows
        return Pruned(self.target.name, self.visible, attempt.changed - before, self.left())

    def _stored(self, condition: str) -> int:
        return int(self._rows(f"SELECT count() FROM {self._base} WHERE {condition}")[0][0])  # noqa: S608 - checked or quoted

    def _late_conditions(self) -> Iterator[str]:
        for start in range(0, len(self._late), _NAMED_AT_ONCE):
            named = ", ".join(literal(identity) for identity in self._late[start : start + _NAMED_AT_ONCE])
            yield f"{self.target.identity} IN ({named}) AND {self._stored_by_then} AND NOT ({self._where})"

    def _parts(self) -> list[Part]:
        query = (
            f"SELECT _partition_id, _part, count(), countIf({self._where}) FROM {self._base} GROUP BY ALL ORDER BY ALL"  # noqa: S608
        )
        return [Part(*row) for row in self._rows(query)]

    def _rows(self, query: str) -> Sequence[Sequence[Any]]:
        return self._client.query(query).result_rows

    def _drop(self, part: Part) -> bool:
        """Drop a part. Return False if the engine has merged it into another meanwhile.

        Parts instead of partitions, because a part never grows: rows that arrive meanwhile are in another part.
        """
        from clickhouse_connect.driver.exceptions import DatabaseError

        try:
            self._client.command(f"ALTER TABLE {self._base} DROP PART {literal(part.name)}")
        except DatabaseError as error:
            if getattr(error, "code", None) in _PART_GONE:
                return False
            raise
        return True


def delete_rows(client: "Client", table: str, where: str, rows: int, attempt: Attempt) -> None:
    """Rewrite parts of a base table without some rows, and count these in the audit record.

    The rows leave the disk minutes later, with the replaced parts. `where` is a WHERE clause, after a partition if one is named. The
    engine works asynchronously and is polled, so that a long rewrite is not mistaken for a store that does not answer.
    """
    client.command(f"ALTER TABLE {table} DELETE {where}", settings={"mutations_sync": 0})
    database, _, name = table.partition(".")
    still_at_work = (
        "SELECT latest_fail_reason FROM system.mutations"  # noqa: S608 - quoted
        f" WHERE database = {literal(database)} AND table = {literal(name)} AND NOT is_done AND NOT is_killed"
    )
    pause_s = _PAUSE_FIRST_S
    while unfinished := client.query(still_at_work).result_rows:
        if reasons := [str(reason) for (reason,) in unfinished if reason]:
            raise OperationError("unavailable", f"store: cannot delete rows of {table}: {engine_message(reasons[0])}")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)
    attempt.changed += rows


@dataclass(frozen=True)
class Pruned:
    """The rows of one table that were deleted: as readers saw them, and as stored, copies included."""

    table: str
    visible: int
    stored: int
    #: Rows of that age that were stored meanwhile.
    left: int


@dataclass(frozen=True)
class Count:
    """The rows of one table to delete: as readers see them, and as stored, copies included."""

    table: str
    visible: int
    stored: int


@dataclass(frozen=True)
class Plan:
    """The rows to delete, and their number by table."""

    #: Data directory of the settings.
    data: Path
    selection: Selection
    kind: Kind | None
    tables: tuple[Count, ...]

    @property
    def visible(self) -> int:
        """Number of rows to delete, as readers see them."""
        return sum(table.visible for table in self.tables)

    @property
    def stored(self) -> int:
        """Number of rows to delete, as stored, copies included."""
        return sum(table.stored for table in self.tables)

    @property
    def target(self) -> dict[str, Any]:
        """The selection, for the audit record."""
        chosen = {
            "upto_ms": self.selection.upto_ms,
            "stored_upto_ms": self.selection.stored_upto_ms,
            "project": self.selection.project,
            "kind": self.kind and self.kind.value,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def plan_prune(data: Path, *, upto_ms: int | None, project: str | None = None, kind: Kind | None = None) -> Plan:
    """Count the rows that arrived up to a Unix millisecond (None: all), optionally of a project or kind."""
    settings = settings_for("owner", data).store
    with open_store(settings) as client:
        now_ms = int(client.query("SELECT toUnixTimestamp64Milli(now64(3))").result_rows[0][0])
        chosen = Selection(upto_ms, now_ms, project, settings.base_database)
        tables = [
            TablePruning(client, settings, target, chosen)
            for target in targets(kind, erases_project=chosen.erases_project)
        ]
        for table in tables:
            table.count()
    counts = tuple(Count(table.target.name, table.visible, table.stored) for table in tables)
    return Plan(data, chosen, kind, counts)


def apply(plan: Plan, actor: Actor, *, progress: Counts | None = None) -> list[Pruned]:
    """Delete the rows that the plan selects, and count those that were still there. Later rows stay.

    Safe to repeat after an interruption.
    """
    if not plan.stored:
        return [Pruned(table.table, 0, 0, 0) for table in plan.tables]
    seen = progress or Unseen()
    seen.total = plan.stored
    settings = settings_for("owner", plan.data).store
    attempt = Trail(plan.data, settings).attempt(
        "prune", actor, identity=settings.user, target=plan.target, planned=plan.stored
    )
    with open_store(settings) as client, attempt:
        chosen = targets(plan.kind, erases_project=plan.selection.erases_project)
        tables = [TablePruning(client, settings, target, plan.selection) for target in chosen]
        return [table.run(seen, attempt) for table in tables]
