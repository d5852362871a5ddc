"""Retention: days until rows expire, by project, as a TTL of the tables that follows the settings."""

import re

from assay_runtime.store import Client
from assay_schema.settings import RetentionSettings, SettingsError

#: Tables whose rows expire, counted from `created_at` (arrival). Not from the producer's clock: a wrong one must not
#: delete new rows.
TABLES = (
    "candidates", "answers", "feedback", "capture_failures", "scores", "rollup_minute", "rollup_hour",
    "eval_runs", "eval_results", "eval_outcomes",
)  # fmt: skip

_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DAYS_MAX = 36_500
#: End of 32-bit times. A TTL beyond it would wrap around and delete rows at once.
_TIME_MAX = 4_294_967_295
_DAY_S = 86_400


def check(settings: RetentionSettings) -> None:
    """Raise `SettingsError` for an invalid project or number of days."""
    for project, days in settings.projects.items():
        if not _PROJECT.fullmatch(project):
            raise SettingsError(f"[retention.projects]: {project!r} is not the name of a project")
        if not 1 <= days <= _DAYS_MAX:
            raise SettingsError(f"retention.projects.{project}: days must be 1 to {_DAYS_MAX}, not {days}")


def expression(settings: RetentionSettings) -> str:
    """Return the TTL expression: the UTC time at which a row expires."""
    days = str(settings.days)
    if settings.projects:
        names = ", ".join(f"'{project}'" for project in sorted(settings.projects))
        numbers = ", ".join(str(settings.projects[project]) for project in sorted(settings.projects))
        days = f"transform(project, [{names}], [{numbers}], {days})"
    return f"toDateTime(least(toUnixTimestamp(created_at) + {_DAY_S} * {days}, {_TIME_MAX}), 'UTC')"


def statements(client: Client, base_database: str, settings: RetentionSettings) -> list[str]:
    """Return the statements that change the tables to `settings`; none if they are current.

    The TTL applies to existing rows without rewriting them.
    """
    wanted = expression(settings)
    tables = client.query(
        "SELECT name, engine_full FROM system.tables WHERE database = {database:String} AND name IN {tables:Array(String)}",
        parameters={"database": base_database, "tables": list(TABLES)},
    ).result_rows
    current = {str(name): str(engine) for name, engine in tables}
    return [
        f"ALTER TABLE `{base_database}`.{table} MODIFY TTL {wanted}"
        for table in TABLES
        if _plain(wanted) not in _plain(current.get(table, ""))
    ]


def _plain(sql: str) -> str:
    """Normalize an expression: the engine returns it with its own spaces and parentheses."""
    return re.sub(r"[\s()`]", "", sql)
