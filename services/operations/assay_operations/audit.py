"""Audit records of operations that delete stored data or change what it means.

They contain who, what range and why, never content. A record of the start is written before an operation changes anything, and one of its
end afterwards, so an operation that was killed has a start without an end. Records are rows of the table `operations_audit`. While the
store does not take them, they wait in a file of the data directory, and the next operation sends them. An operation that can be recorded
in neither place does not start.

A published baseline has its record in a file alone: one JSON line per attempt, one file per ISO week. It changes nothing in Redis or the
store, and is made on machines that have neither.
"""

import contextlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import orjson

from assay_access.errors import AccessError
from assay_operations.actor import NAME_CHARS, Actor
from assay_operations.append_only import append_line, lines_of, locked
from assay_operations.errors import OperationError
from assay_operations.time_bounds import iso
from assay_schema.ids import new_event_id
from assay_schema.printable import printable
from assay_schema.settings import RedisSettings, StoreSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

log = logging.getLogger(__name__)

FOLDER = "audit"
TABLE = "operations_audit"
#: Records that the store has not taken yet, and those that it never takes because they were changed in that file.
WAITING, REFUSED = "operations-waiting.jsonl", "operations-refused.jsonl"
#: Seconds that the store has for each answer about a record.
_STORE_S = 5.0
#: Limits of `target`: characters of a text, items of a list. Its JSON is under 16,000 characters then.
_TEXT_CHARS, _ITEMS = 200, 30

#: The columns of a record.
COLUMNS = frozenset(
    (
        "schema_version", "operation_id", "outcome", "at", "operation", "actor", "identity", "host", "through", "target",
        "planned", "changed", "comment", "error_kind", "version",
    )
)  # fmt: skip

Record = dict[str, Any]


def record(data: Path, kind: str, entry: Mapping[str, Any]) -> str:
    """Append an entry to the file of a kind, with its time as `ts`.

    Never raises: returns the reason of a failure, else ''.
    """
    now = datetime.now(UTC)
    year, week, _ = now.isocalendar()
    path = data / FOLDER / f"{kind}-{year}-W{week:02}.jsonl"
    line = json.dumps({"ts": now.isoformat(timespec="milliseconds")} | dict(entry), ensure_ascii=False) + "\n"
    try:
        with locked(path) as descriptor:
            append_line(descriptor, line.encode(errors="backslashreplace"))
    except (OSError, AccessError) as error:
        return f"not recorded in {path}: {_reason(error)}"
    return ""


@dataclass(frozen=True)
class Trail:
    """Destination of audit records.

    It is the table of a store, or a file below the data directory while the store does not take them.
    """

    data: Path
    store: StoreSettings

    def attempt(
        self, operation: str, actor: Actor, *, identity: str, target: Mapping[str, Any], planned: int
    ) -> "Attempt":
        """Return a context manager that records its block.

        `identity`: the user of Redis or the store that makes the change. `target`: the range, without content. `planned`: the number of
        items to change. Raises `OperationError` if the start can be recorded nowhere; the block does not run then.
        """
        return Attempt(self, self._facts(operation, actor, identity=identity, target=target, planned=planned))

    def note(
        self, client: "Store", operation: str, actor: Actor, *, identity: str, target: Mapping[str, Any], planned: int,
        outcome: str, error_kind: str = "",
    ) -> None:  # fmt: skip
        """Record an operation that changed nothing, after its end. Raises the driver's errors."""
        facts = self._facts(operation, actor, identity=identity, target=target, planned=planned)
        self.insert(client, _row_of(facts, outcome, changed=0, error_kind=error_kind))

    def _facts(
        self, operation: str, actor: Actor, *, identity: str, target: Mapping[str, Any], planned: int
    ) -> "Record":
        return {
            "schema_version": 1,
            "operation_id": new_event_id(),
            "operation": operation,
            "actor": actor.name,
            "identity": printable(identity)[:NAME_CHARS],
            "host": actor.host,
            "through": actor.through,
            "target": orjson.dumps({name: _short(value) for name, value in target.items()}).decode(),
            "planned": planned,
            "comment": actor.comment,
            "version": version("assay-operations"),
        }

    @property
    def file(self) -> Path:
        """The file of records that wait for the store."""
        return self.data / FOLDER / WAITING

    def send_waiting(self, client: "Store") -> None:
        """Send the records that wait in the file, and empty it.

        A process that is killed in between leaves them there; a record that is sent twice counts once.
        """
        if not self.file.exists():
            return
        with locked(self.file) as descriptor:
            for line in lines_of(descriptor):
                if not self._taken(client, line):
                    with locked(self.data / FOLDER / REFUSED) as refused:
                        append_line(refused, line + b"\n")
            os.ftruncate(descriptor, 0)
            os.fsync(descriptor)

    def _taken(self, client: "Store", line: bytes) -> bool:
        """Send a line of the file. Return False if it is not a record."""
        from assay_runtime.store import reason_of
        from assay_schema.failures import Reason

        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(row, dict) or row.keys() != COLUMNS:
            return False
        try:
            self.insert(client, row)
        except Exception as error:
            if reason_of(error) is Reason.CHECK_VIOLATION:
                return False
            raise
        return True

    def waiting(self) -> int:
        """Count the records that the store has not taken. Raises `OSError` if they cannot be read."""
        count = 0
        for name in (WAITING, REFUSED):
            with contextlib.suppress(FileNotFoundError):
                count += len((self.data / FOLDER / name).read_bytes().splitlines())
        return count

    def insert(self, client: "Store", row: Record) -> None:
        """Insert a record into the table."""
        from assay_runtime.store import insert_json_rows

        insert_json_rows(client, f"{self.store.base_database}.{TABLE}", orjson.dumps(row), 1)


def operator_trail(data: Path, *, otherwise: StoreSettings) -> Trail:
    """Return the trail of an operation whose own identity may insert no records: that of the operator.

    Without the operator's settings it has those of `otherwise`, which the store refuses: records wait in the file then.
    """
    from assay_operations.clients import settings_for

    try:
        return Trail(data, settings_for("operator", data).store)
    except OperationError:
        return Trail(data, otherwise)


class Attempt:
    """One recorded attempt. Its block sets `changed` as it goes on."""

    def __init__(self, trail: Trail, facts: Record) -> None:
        #: Items changed so far.
        self.changed = 0
        self._trail = trail
        self._facts = facts
        self._store = contextlib.ExitStack()
        self._client: Store | None = None

    @property
    def operation_id(self) -> str:
        """Its id in the table."""
        return str(self._facts["operation_id"])

    def __enter__(self) -> Self:
        row = self._row("started")
        try:
            self._client = self._connected()
            self._trail.insert(self._client, row)
            with contextlib.suppress(Exception):  # records of earlier operations do not hold this one back
                self._trail.send_waiting(self._client)
        except Exception:  # noqa: BLE001 - after any error, the file takes the record
            self._disconnect()
            try:
                self._write(row)
            except (OSError, AccessError) as error:
                raise OperationError(
                    "unavailable",
                    "nothing was changed, because there is no place for an audit record: "
                    f"the store does not take it, and {self._trail.file} cannot be written ({_reason(error)})",
                    "start the store, or name a data directory with --data",
                ) from error
        except BaseException:  # interrupted: the start may be in the store, and has its end then
            self._disconnect()
            with contextlib.suppress(OSError, AccessError):
                self._write(self._row("interrupted"))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        row = self._row(_outcome(error), error_kind=_kind(error))
        try:
            if self._client is None:  # after the start in the file
                self._write(row)
                return
            try:
                self._trail.insert(self._client, row)
            except Exception:  # noqa: BLE001 - as above
                self._write(row)
        except (OSError, AccessError) as problem:  # what was done stays done
            log.warning(
                "the end of operation %s could not be recorded: %s",
                self.operation_id,
                _reason(problem),
            )
        finally:
            self._disconnect()

    def _connected(self) -> "Store":
        from assay_operations.clients import open_store

        hurry = self._trail.store.model_copy(update={"timeout_s": min(self._trail.store.timeout_s, _STORE_S)})
        return self._store.enter_context(open_store(hurry))

    def _disconnect(self) -> None:
        self._client = None
        with contextlib.suppress(Exception):
            self._store.close()

    def _row(self, outcome: str, *, error_kind: str = "") -> Record:
        return _row_of(self._facts, outcome, changed=self.changed, error_kind=error_kind)

    def _write(self, row: Record) -> None:
        with locked(self._trail.file) as descriptor:
            append_line(descriptor, orjson.dumps(row) + b"\n")


def _row_of(facts: Record, outcome: str, *, changed: int, error_kind: str) -> Record:
    now = iso(datetime.now(UTC))
    return facts | {"outcome": outcome, "at": now, "changed": changed, "error_kind": error_kind}


def redis_user(settings: RedisSettings) -> str:
    """Return the user that a client of Redis logs in as."""
    return urlsplit(settings.url.get_secret_value()).username or "default"


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "done"
    return "failed" if isinstance(error, Exception) else "interrupted"


def _kind(error: BaseException | None) -> str:
    """Return the kind of a failure, or its class. Never its message, which may quote anything."""
    if error is None or not isinstance(error, Exception):
        return ""
    return error.kind if isinstance(error, OperationError) else type(error).__name__[:NAME_CHARS]


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value[:_TEXT_CHARS].encode(errors="replace").decode())
    if isinstance(value, Sequence):
        more = [f"and {len(value) - _ITEMS} more"] if len(value) > _ITEMS else []
        return [_short(item) for item in value[:_ITEMS]] + more
    return value


def _reason(error: OSError | AccessError) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
