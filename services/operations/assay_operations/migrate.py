"""Create or update the tables of the store and their retention: `plan_migrate`, then `apply`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import TABLE, Trail
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_schema.settings import RetentionSettings, Settings

if TYPE_CHECKING:
    from assay_runtime.retention import Change
    from assay_runtime.store import Client


@dataclass(frozen=True)
class Plan:
    """The migrations to apply, and the tables whose retention changes."""

    #: Data directory of the settings.
    data: Path
    #: Names of the pending migrations.
    migrations: tuple[str, ...]
    retention: "tuple[Change, ...]"
    #: Days a row is kept: of all projects, and of those that are named.
    days: int
    projects: dict[str, int]
    #: Shards that get a watermark, and those whose watermark is removed because there are fewer shards than before.
    new_shards: tuple[int, ...]
    removed_shards: tuple[int, ...]
    shards: int

    @property
    def changes(self) -> int:
        """Number of migrations, tables and watermarks to change."""
        return len(self.migrations) + len(self.retention) + len(self.new_shards) + len(self.removed_shards)

    @property
    def shorter(self) -> "tuple[Change, ...]":
        """The tables whose rows expire earlier than before."""
        return tuple(change for change in self.retention if change.shorter)

    @property
    def target(self) -> dict[str, Any]:
        """Return what changes, for the audit record."""
        parts = {
            "migrations": self.migrations,
            "retention": [
                f"{each.table}: {each.before or 'none'} to {each.after}, about {each.expiring} rows expire"
                for each in self.retention
            ],
            "removed_shards": self.removed_shards,
        }
        return {name: value for name, value in parts.items() if value}

    def lines(self, verb: str) -> list[str]:
        """Describe the changes, a line each, with `would` or `will` as their verb."""
        lines = [f"{verb} apply {name}" for name in self.migrations]
        for change in self.retention:
            before = change.before or "no retention of Assay"
            count = f"about {change.expiring:,} of {change.rows:,} stored row(s) expire"
            lines.append(f"{verb} keep rows of {change.table} for {change.after}, not {before}: {count}")
        removed = "which is no longer configured"
        lines += [f"{verb} remove the watermark of shard {shard}, {removed}" for shard in self.removed_shards]
        return lines if self.changes else [*lines, "the store's tables are up to date"]


def plan_migrate(data: Path) -> Plan:
    """Compare the store with this code and the settings.

    Raises `OperationError` if the store does not answer or refuses, and `MigrationError` for one that this code cannot migrate.
    """
    from assay_runtime import migrate, retention

    settings = settings_for("owner", data)
    retention.check(settings.retention)
    base = settings.store.base_database
    with open_store(settings.store, database="default") as client:
        pending = migrate.pending_with(client, base)
        changes = retention.changes(client, base, settings.retention)
        new, removed = migrate.watermark_changes(client, base, settings.redis.shards)
    return Plan(
        data,
        tuple(migration.name for migration in pending),
        tuple(changes),
        settings.retention.days,
        dict(settings.retention.projects),
        tuple(new),
        tuple(removed),
        settings.redis.shards,
    )


def apply(plan: Plan, actor: Actor) -> list[str]:
    """Apply the planned migrations and settings. Returns the names of the migrations applied.

    Idempotent, also for concurrent runs. On a store without the table of audit records, migrations come first, because they create it:
    they only add, and the table `schema_migrations` records them. Raises `OperationError` of kind `conflict` if rows of another table
    would expire than planned.
    """
    if not plan.changes:
        return []
    from assay_runtime import migrate

    settings = _planned(plan, settings_for("owner", plan.data))
    trail, base = Trail(plan.data, settings.store), settings.store.base_database
    with open_store(settings.store, database="default") as client:
        applied = [] if migrate.has_table(client, base, TABLE) else _migrations(client, settings, plan)
        attempt = trail.attempt(
            "migrate", actor, identity=settings.store.user, target=plan.target, planned=plan.changes
        )
        with attempt:
            attempt.changed = len(applied)
            applied += _migrations(client, settings, plan)
            attempt.changed = len(applied)
            _check_retention(client, settings, plan)
            migrate.apply_settings(client, settings)
            attempt.changed = plan.changes - len(plan.migrations) + len(applied)
    return applied


def _planned(plan: Plan, settings: Settings) -> Settings:
    """Return the settings of the plan, which was agreed to, with the access of now."""
    redis = settings.redis.model_copy(update={"shards": plan.shards})
    days = RetentionSettings(days=plan.days, projects=plan.projects)
    return settings.model_copy(update={"redis": redis, "retention": days})


def _migrations(client: "Client", settings: Settings, plan: Plan) -> list[str]:
    from assay_runtime import migrate

    pending = {migration.name for migration in migrate.pending_with(client, settings.store.base_database)}
    if unplanned := sorted(pending - set(plan.migrations)):
        raise OperationError("conflict", f"{unplanned[0]} is pending and was not planned", "run this again")
    return [migration.name for migration in migrate.apply_pending(client, settings)]


def _check_retention(client: "Client", settings: Settings, plan: Plan) -> None:
    """Raise `OperationError` if a table's retention gets shorter that was planned otherwise."""
    from assay_runtime import retention

    planned = {change.table: change.before for change in plan.retention}
    for change in retention.changes(client, settings.store.base_database, settings.retention):
        if change.before is None and not change.expiring:
            continue  # a rollup that a migration has created, and that the store is already filling
        if change.shorter and (change.table not in planned or planned[change.table] != change.before):
            raise OperationError(
                "conflict",
                f"the retention of {change.table} was changed meanwhile",
                "run this again to see what would expire",
            )
