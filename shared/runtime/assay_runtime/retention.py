"""Retention: days until rows expire, by project, as a TTL of the tables that follows the settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay_runtime.store import Client
from assay_schema.limits import PROJECT_PATTERN
from assay_schema.settings import RetentionSettings, SettingsError

#: Tables whose rows expire, counted from `created_at` (arrival). Not from the producer's clock: a wrong one must not
#: delete new rows.
TABLES = (
    "candidates", "answers", "feedback", "tool_calls", "server_events", "session_parts",
    "capture_failures", "scores", "labels", "rollup_minute", "rollup_hour", "rollup_day",
    "eval_runs", "eval_results", "eval_outcomes", "contradiction_runs", "contradiction_pairs", "contradiction_labels",
)  # fmt: skip

_PROJECT = re.compile(PROJECT_PATTERN)
_DAYS_MAX = 36_500
#: End of 32-bit times. A TTL beyond it would wrap around and delete rows at once.
_TIME_MAX = 4_294_967_295
_DAY_S = 86_400
#: The rule in a table's definition, as `_plain` returns it.
_RULE = re.compile(
    rf"toUnixTimestampcreated_at\+{_DAY_S}\*(?:transformproject,\[([^\]]*)\],\[([0-9,]*)\],)?([0-9]+),{_TIME_MAX}"
)


def check(settings: RetentionSettings) -> None:
    """Raise `SettingsError` for an invalid project or number of days."""
    for project, days in settings.projects.items():
        if not _PROJECT.fullmatch(project):
            raise SettingsError(f"[retention.projects]: {project!r} is not the name of a project")
        if not 1 <= days <= _DAYS_MAX:
            raise SettingsError(f"retention.projects.{project}: days must be 1 to {_DAYS_MAX}, not {days}")


@dataclass(frozen=True)
class Days:
    """Days until rows expire: of a project that is named, and of all others."""

    default: int
    projects: Mapping[str, int] = field(default_factory=dict)

    def shorter_than(self, other: "Days") -> bool:
        """True if rows of any project expire earlier than by the other rule."""
        named = self.projects.keys() | other.projects.keys()
        return self.default < other.default or any(self.of(project) < other.of(project) for project in named)

    def of(self, project: str) -> int:
        """Return the days of a project."""
        return self.projects.get(project, self.default)

    def __str__(self) -> str:
        named = ", ".join(f"{project} {days}" for project, days in sorted(self.projects.items()))
        return f"{self.default} days" + (f" ({named})" if named else "")


@dataclass(frozen=True)
class Change:
    """A table whose retention differs from the settings."""

    table: str
    #: The rule of the table; None if it has none, or one that is not Assay's.
    before: Days | None
    after: Days
    #: Rows that expire because of the change, about: copies and rows that are already expired count too.
    expiring: int
    #: Rows in the table.
    rows: int

    @property
    def shorter(self) -> bool:
        """True if rows that are stored now expire earlier than before."""
        return bool(self.rows) and (self.before is None or self.after.shorter_than(self.before))


def expression(settings: RetentionSettings | Days) -> str:
    """Return the TTL expression: the UTC time at which a row expires."""
    default = settings.days if isinstance(settings, RetentionSettings) else settings.default
    days = str(default)
    if settings.projects:
        names = ", ".join(f"'{project}'" for project in sorted(settings.projects))
        numbers = ", ".join(str(settings.projects[project]) for project in sorted(settings.projects))
        days = f"transform(project, [{names}], [{numbers}], {days})"
    return f"toDateTime(least(toUnixTimestamp(created_at) + {_DAY_S} * {days}, {_TIME_MAX}), 'UTC')"


def statements(client: Client, base_database: str, settings: RetentionSettings) -> list[str]:
    """Return the statements that change the existing tables to `settings`; none if they are current.

    The TTL applies to existing rows without rewriting them.
    """
    wanted, current = expression(settings), _engines(client, base_database)
    return [
        f"ALTER TABLE `{base_database}`.{table} MODIFY TTL {wanted}"
        for table in TABLES
        if table in current and _plain(wanted) not in _plain(current[table])
    ]


def changes(client: Client, base_database: str, settings: RetentionSettings) -> list[Change]:
    """Return the existing tables that `statements` would change, with the rows that would expire."""
    wanted = expression(settings)
    return [
        _change(client, base_database, table, days_of(engine), Days(settings.days, dict(settings.projects)))
        for table, engine in sorted(_engines(client, base_database).items())
        if _plain(wanted) not in _plain(engine)
    ]


def days_of(engine: str) -> Days | None:
    """Read the rule from a table's definition; None if it has none, or one that is not Assay's. Pure."""
    found = _RULE.search(_plain(engine))
    if not found:
        return None
    names, numbers, default = found.groups()
    projects = zip(
        (name.strip("'") for name in (names or "").split(",") if name), (numbers or "").split(","), strict=False
    )
    return Days(int(default), {project: int(days) for project, days in projects})


def _change(client: Client, base_database: str, table: str, before: Days | None, after: Days) -> Change:
    expires = f"{expression(after)} <= now()"
    if before is not None:
        expires += f" AND {expression(before)} > now()"
    counted = client.query(f"SELECT countIf({expires}), count() FROM `{base_database}`.{table}").result_rows  # noqa: S608 - checked
    return Change(table, before, after, int(counted[0][0]), int(counted[0][1]))


def _engines(client: Client, base_database: str) -> dict[str, str]:
    tables = client.query(
        "SELECT name, engine_full FROM system.tables WHERE database = {database:String} AND name IN {tables:Array(String)}",
        parameters={"database": base_database, "tables": list(TABLES)},
    ).result_rows
    return {str(name): str(engine) for name, engine in tables}


def _plain(sql: str) -> str:
    """Normalize an expression: the engine returns it with its own spaces and parentheses."""
    return re.sub(r"[\s()`]", "", sql)
