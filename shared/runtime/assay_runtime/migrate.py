"""Migrations: bring the store's tables to the version of this code.

Forward only. `migrations/NNNN_name.sql` contains statements, each ending with a semicolon at the end of a line;
`${base}` and `${views}` stand for the two databases. Every statement is idempotent (IF NOT EXISTS and the like),
because the engine has neither transactions nor locks: an interrupted run starts its file again, and two concurrent runs
do the same work twice and end in the same state.
"""

import hashlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files

from clickhouse_connect.driver.exceptions import DatabaseError

from assay_runtime import retention
from assay_runtime.store import Client, StoreError, connect
from assay_schema.settings import Settings

#: The oldest supported engine: from 24.10 on, refreshable materialized views with APPEND are not experimental.
ENGINE_MIN = (24, 10)

_FILE_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 60, 81
#: Errors caused by a concurrent run: the object exists by now, is being created, is being changed, or was dropped to be created again.
_RACES = {57, 58, _UNKNOWN_TABLE, 82, 84, 517}
_RACE_ATTEMPTS = 20


class MigrationError(StoreError):
    """The schema cannot be migrated. The message names the file and the fix."""


@dataclass(frozen=True)
class Migration:
    """One migration file."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def statements(self, base_database: str, database: str) -> list[str]:
        """Return the file's statements with the databases filled in."""
        lines = [line for line in self.text.splitlines() if not line.lstrip().startswith("--")]
        text = "\n".join(lines).replace("${base}", f"`{base_database}`").replace("${views}", f"`{database}`")
        return [part.strip() for part in re.split(r";[ \t]*(?:\n|$)", text) if part.strip()]


def migrations() -> list[Migration]:
    """Return all migrations of this code, in order."""
    found = [
        Migration(int(match[1]), file.name, file.read_text(encoding="utf-8"))
        for file in files("assay_runtime").joinpath("migrations").iterdir()
        if (match := _FILE_NAME.match(file.name))
    ]
    found.sort(key=lambda migration: migration.version)
    assert [migration.version for migration in found] == list(range(1, len(found) + 1)), "numbered without gaps"
    return found


def migrate(settings: Settings) -> list[Migration]:
    """Apply pending migrations, set retention, and give every shard a watermark. Returns those applied.

    Idempotent, also for concurrent runs. Raises `MigrationError`, or the driver's errors if the store is away or
    refuses.
    """
    with _client(settings) as client:
        return migrate_with(client, settings)


def pending(settings: Settings) -> list[Migration]:
    """Return the migrations that `migrate` would apply. Raises the same errors."""
    with _client(settings) as client:
        return pending_with(client, settings.store.base_database)


def schema_version(client: Client, base_database: str = "assay_base") -> int:
    """Return the number of the store's last migration, 0 for none."""
    return max((version for version, _ in _applied(client, base_database)), default=0)


def migrate_with(client: Client, settings: Settings) -> list[Migration]:
    """Run `migrate` with an existing client, whose database exists."""
    retention.check(settings.retention)
    todo = apply_pending(client, settings)
    apply_settings(client, settings)
    return todo


def apply_pending(client: Client, settings: Settings) -> list[Migration]:
    """Apply pending migrations, which only add to the store. Returns those applied."""
    store = settings.store
    todo = pending_with(client, store.base_database)
    for migration in todo:
        for statement in migration.statements(store.base_database, store.database):
            _execute(client, statement)
        client.insert(
            f"`{store.base_database}`.schema_migrations",
            [[migration.version, migration.name, migration.checksum]],
            column_names=["version", "name", "checksum"],
            column_type_names=["UInt32", "String", "String"],
        )
    return todo


def apply_settings(client: Client, settings: Settings) -> None:
    """Set the retention of the tables, and give every shard a watermark.

    A shorter retention deletes rows.
    """
    base_database = settings.store.base_database
    retention.check(settings.retention)
    for statement in retention.statements(client, base_database, settings.retention):
        _execute(client, statement)
    missing, removed = watermark_changes(client, base_database, settings.redis.shards)
    _seed_watermarks(client, base_database, missing, removed)


def watermark_changes(client: Client, base_database: str, shards: int) -> tuple[list[int], list[int]]:
    """Return the shards without a watermark, and those with one that no longer exist.

    Without the table, neither.
    """
    try:
        rows = client.query(f"SELECT DISTINCT shard FROM `{base_database}`.watermarks").result_rows  # noqa: S608
    except DatabaseError as error:
        if error.code in (_UNKNOWN_TABLE, _UNKNOWN_DATABASE):
            return [], []
        raise
    present = {int(row[0]) for row in rows}
    return sorted(set(range(shards)) - present), sorted(present - set(range(shards)))


def has_table(client: Client, base_database: str, table: str) -> bool:
    """Return True if the store has a table."""
    found = client.query(
        "SELECT count() FROM system.tables WHERE database = {database:String} AND name = {table:String}",
        parameters={"database": base_database, "table": table},
    ).result_rows
    return bool(found[0][0])


def pending_with(client: Client, base_database: str) -> list[Migration]:
    """Run `pending` with an existing client."""
    _require_engine(client)
    by_version = {migration.version: migration for migration in migrations()}
    applied: set[int] = set()
    for version, checksum in _applied(client, base_database):
        if version not in by_version:
            raise MigrationError(
                f"the store's schema is at version {version}, but this code supports up to {max(by_version)}: a newer Assay migrated it. "
                "Upgrade Assay on this host."
            )
        if checksum != by_version[version].checksum:
            raise MigrationError(
                f"{by_version[version].name} was changed after it was applied to the store. Restore its text, and "
                "change the schema with a new migration."
            )
        applied.add(version)
    return [migration for version, migration in by_version.items() if version not in applied]


@contextmanager
def _client(settings: Settings) -> Iterator[Client]:
    client = connect(settings.store, database="default")
    try:
        yield client
    finally:
        client.close()


def _applied(client: Client, base_database: str) -> list[tuple[int, str]]:
    try:
        rows = client.query(
            f"SELECT DISTINCT version, checksum FROM `{base_database}`.schema_migrations ORDER BY version"  # noqa: S608  # an identifier by its pattern
        ).result_rows
    except DatabaseError as error:
        if error.code in (_UNKNOWN_TABLE, _UNKNOWN_DATABASE):
            return []
        raise
    return [(int(version), str(checksum)) for version, checksum in rows]


def _require_engine(client: Client) -> None:
    version = str(client.query("SELECT version()").result_rows[0][0])
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < ENGINE_MIN:
        raise MigrationError(
            f"the store is ClickHouse {version}; Assay needs {ENGINE_MIN[0]}.{ENGINE_MIN[1]} or newer. "
            "Upgrade it, or set store.url (ASSAY_STORE_URL) to another store."
        )


def _execute(client: Client, statement: str) -> None:
    for attempt in range(_RACE_ATTEMPTS):
        try:
            client.command(statement)
        except DatabaseError as error:
            if error.code not in _RACES or attempt == _RACE_ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
        else:
            return


def _seed_watermarks(client: Client, base_database: str, missing: list[int], removed: list[int]) -> None:
    """Insert a row of 0 for each shard without one, so that a shard without rows keeps the lowest watermark at 0."""
    table = f"`{base_database}`.watermarks"
    if rows := [[shard, 0] for shard in missing]:
        client.insert(table, rows, column_names=["shard", "watermark"], column_type_names=["UInt8", "UInt64"])
    if removed:
        # Its streams were drained before the number of shards was reduced, so nothing waits for it any more.
        _execute(client, f"DELETE FROM {table} WHERE shard IN ({', '.join(map(str, removed))})")  # noqa: S608
