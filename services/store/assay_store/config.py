"""The engine's configuration files, written at every start from the options and roles."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from assay_store.roles import GRANTS, NAMED_SETTINGS, Limits, Role

BACKUP_DISK = "backups"
"""Disk that `BACKUP ... TO Disk('backups', 'name/')` may write to: `DIR/backups`."""

# The engine has an overlay database for reading files by name, called `default` unless configured, and would require
# the right to read files for every unqualified name. We rename it, so that `default` is an ordinary database.
OVERLAY_DATABASE = "_engine"
_DEFAULT_DATABASE = "ATTACH DATABASE _ UUID '7b2c6a80-5a1e-4f00-8000-000000000001'\nENGINE = Atomic\n"


OLD_PARTS_SECONDS = 120
"""Seconds that parts replaced by a merge are kept.

That is until the merge is certainly written completely (`writes`), and on disk too, where the kernel writes within some
35 s.

The engine's default is one second.
"""

BROKEN_PARTS_BYTES = 1 << 40
"""Maximum bytes of unreadable parts with which a table still opens: a merge can be 150 GiB.

The parts it replaced still exist.
"""

BLOCK_ROWS = 1024
"""Rows that a new table is read in at least, unless its statement says otherwise.

A page of the console reads one block or two of each project in each table. The engine's default is 8192. A table keeps the number
that it was created with: the engine can change it in none.
"""

FIXED_SETTINGS = (
    "dialect",
    "additional_table_filters",
    "additional_result_filter",
    "implicit_table_at_top_level",
    "send_logs_level",
    "input_format_record_errors_file_path",
    "output_format_schema",
    "format_schema",
    "format_template_row",
    "format_template_resultset",
    "parallel_replicas_custom_key",
    "ast_fuzzer_runs",
    "ast_fuzzer_any_query",
)
"""Settings that no one may change.

Each would run or read something that `sql_policy` cannot see (SQL in a string, another language, a hidden table, a file),
or write statements to the log.
"""


OWN_SETTINGS = frozenset({"readonly", "profile", "database", "max_result_bytes"})
"""Settings that the store itself sets on a handle after applying its limits.

A client that names them is refused (`sql_policy`).
"""

LITERAL_VALUES = {
    "input_format_values_interpret_expressions": 0,
    "input_format_values_deduce_templates_of_expressions": 0,
}
"""The rows of INSERT ...

VALUES are literals, except for the owner: an expression in them would be unchecked SQL.
"""


def engine_directory(data: Path) -> Path:
    """Return the directory of the engine's files."""
    return data / "engine"


def write(
    data: Path, max_memory_bytes: int, keep_free_bytes: int, limits: dict[Role, Limits], settings: Iterable[str]
) -> Path:
    """Write the configuration and prepare the engine's directory. Returns the path of the main file."""
    conf, engine = data / "conf", engine_directory(data)
    for directory in (conf, data / "backups", data / "user_files", data / "tmp", engine / "metadata"):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    default = engine / "metadata" / "default.sql"
    if not default.exists():
        default.write_text(_DEFAULT_DATABASE, encoding="utf-8")
    link = engine / "metadata" / "default"
    if link.is_symlink():
        # The overlay would take the identity in this file and collide with `default` itself; the engine creates it
        # again.
        link.unlink()
    _replace(conf / "users.xml", users_xml(limits, settings))
    main = conf / "config.xml"
    _replace(main, config_xml(data, conf / "users.xml", max_memory_bytes, keep_free_bytes))
    return main


def _replace(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return  # a store can start even if its disk is full
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o600)
    os.replace(fresh, path)  # noqa: PTH105


def config_xml(data: Path, users: Path, max_memory_bytes: int, keep_free_bytes: int) -> str:
    """Return the engine's main configuration."""

    def path(name: str) -> str:
        return escape(f"{data / name}/")

    return f"""<clickhouse>
  <users_config>{escape(str(users))}</users_config>
  <default_database>{OVERLAY_DATABASE}</default_database>
  <timezone>UTC</timezone>
  <max_server_memory_usage>{max_memory_bytes}</max_server_memory_usage>
  <mark_cache_size>67108864</mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <index_mark_cache_size>16777216</index_mark_cache_size>
  <user_files_path>{path("user_files")}</user_files_path>
  <tmp_path>{path("tmp")}</tmp_path>
  <background_pool_size>2</background_pool_size>
  <background_schedule_pool_size>4</background_schedule_pool_size>
  <background_common_pool_size>2</background_common_pool_size>
  <background_move_pool_size>1</background_move_pool_size>
  <background_fetches_pool_size>1</background_fetches_pool_size>
  <storage_configuration>
    <disks>
      <default><keep_free_space_bytes>{keep_free_bytes}</keep_free_space_bytes></default>
      <{BACKUP_DISK}><type>local</type><path>{path("backups")}</path></{BACKUP_DISK}>
    </disks>
  </storage_configuration>
  <merge_tree>
    <old_parts_lifetime>{OLD_PARTS_SECONDS}</old_parts_lifetime>
    <max_suspicious_broken_parts_bytes>{BROKEN_PARTS_BYTES}</max_suspicious_broken_parts_bytes>
    <index_granularity>{BLOCK_ROWS}</index_granularity>
  </merge_tree>
  <backups><allowed_disk>{BACKUP_DISK}</allowed_disk></backups>
</clickhouse>
"""


def users_xml(limits: dict[Role, Limits], settings: Iterable[str]) -> str:
    """Return the roles with their grants, and one profile of constraints for each role.

    A role other than the owner may change only those of the engine's `settings` that are listed for it, within its
    limits. The engine knows one user (`default`), to whom every role is granted; a handle takes one role with SET ROLE.
    Copies of a row within one insert wait for a merge, like copies in two inserts: merging each insert separately took
    a tenth of its time.
    """
    setting_names = list(settings)
    roles = "\n".join(
        f"    <{name}><grants>{''.join(f'<query>{escape(grant)}</query>' for grant in grants)}</grants></{name}>"
        for name, grants in GRANTS.items()
    )
    profiles = "\n".join(
        f"    <{role}>{_profile(role, limit, setting_names)}</{role}>" for role, limit in limits.items()
    )
    return f"""<clickhouse>
  <profiles>
    <default>
      <readonly>0</readonly><async_insert>0</async_insert><optimize_on_insert>0</optimize_on_insert>
      <constraints>{_fixed()}</constraints>
    </default>
{profiles}
  </profiles>
  <quotas><default/></quotas>
  <roles>
{roles}
  </roles>
  <users><default>
    <password></password><profile>default</profile><quota>default</quota>
    <grants><query>GRANT {", ".join(GRANTS)}</query></grants>
  </default></users>
</clickhouse>
"""


def limit_settings(limit: Limits) -> dict[str, int]:
    """Return the limits as the engine's settings, without unlimited ones."""
    named = {
        "max_memory_usage": limit.memory_bytes,
        "max_execution_time": limit.seconds,
        "max_result_rows": limit.result_rows,
    }
    return {name: value for name, value in named.items() if value}


def _profile(role: Role, limit: Limits, settings: Iterable[str]) -> str:
    # A minimum of 1 as well: 0 means "no limit", so a maximum alone would let a client remove the limit.
    bounds = "".join(
        f"<{name}><min>1</min><max>{value}</max></{name}>" for name, value in limit_settings(limit).items()
    )
    if limit.priority:
        bounds += f"<priority><min>{limit.priority}</min></priority>"
    if role is Role.OWNER:
        fixed: set[str] = set(FIXED_SETTINGS)
    else:
        changed = OWN_SETTINGS if role.read_only else OWN_SETTINGS - {"readonly"}
        fixed = set(FIXED_SETTINGS) | set(settings) - NAMED_SETTINGS[role] - changed
    return f"<readonly>{2 if role.read_only else 0}</readonly><constraints>{bounds}{_fixed(fixed)}</constraints>"


def _fixed(names: Iterable[str] = FIXED_SETTINGS) -> str:
    return "".join(f"<{name}><readonly/></{name}>" for name in sorted(names))
