"""Generate `deploy/clickhouse/cluster/assay.sql`, the schema of a ClickHouse cluster.

Every shard has the tables of a single server: the unchanged migrations in the databases `assay_base_local` and
`assay_local`, with replicated engines. In front of each table and view is a Distributed table with its public name. A
query's filters therefore reach a shard's partitions and indexes through that shard's own view, and each shard refreshes
the rollups of its own events.

Rows are sharded by the id of their subject, so that a redelivered event meets its first copy and FINAL sees both.

`python -m docs.generate.cluster_ddl` prints it; `--write` writes it to deploy/, `--check` exits 1 if that file is
outdated.
"""

import re
import sys
from pathlib import Path

from assay_runtime import retention
from assay_runtime.migrate import migrations
from assay_schema.settings import RetentionSettings, StoreSettings
from docs.generate.keep import keep

DOCUMENT = Path(__file__).parents[2] / "deploy" / "clickhouse" / "cluster" / "assay.sql"

#: The public databases, and those of one shard.
BASE, VIEWS = StoreSettings().base_database, StoreSettings().database
LOCAL_BASE, LOCAL_VIEWS = f"{BASE}_local", f"{VIEWS}_local"
#: The user whose rights views use: in a cluster each server runs the statement itself, so "the current user" would be a
#: different one.
DEFINER = "owner"
#: Sharding key of each table: the identity of a row. Rollups stay on the shard that counted them.
SHARDING_KEYS = {
    "candidates": "cityHash64(event_id)",
    "answers": "cityHash64(event_id)",
    "feedback": "cityHash64(event_id)",
    "tool_calls": "cityHash64(event_id)",
    "server_events": "cityHash64(event_id)",
    "session_parts": "cityHash64(event_id)",
    "capture_failures": "cityHash64(failure_id)",
    "scores": "cityHash64(event_id)",
    "calibrations": "cityHash64(calibration_id)",
    "alerts": "cityHash64(alert_id)",
    "eval_runs": "cityHash64(run_id)",
    "eval_results": "cityHash64(run_id)",
    "eval_outcomes": "cityHash64(attempt_id)",
    "contradiction_runs": "cityHash64(run_id)",
    "contradiction_pairs": "cityHash64(run_id)",
    "contradiction_labels": "cityHash64(run_id)",
    "operations_audit": "cityHash64(operation_id)",
    "labels": "cityHash64(event_id)",
    "dataset_cases": "cityHash64(case_id)",
    "audit_rows": "cityHash64(log)",
    "audit_leaves": "cityHash64(log)",
    "audit_disclosures": "cityHash64(log)",
    "audit_checkpoints": "cityHash64(log)",
    "audit_anchors": "cityHash64(log)",
    "watermarks": "cityHash64(shard)",
    "schema_migrations": "cityHash64(version)",
}
#: Views with one row about all rows: they read distributed tables, instead of being distributed themselves.
OF_ALL_SHARDS = (
    "watermark", "judge_spend", "quality_by_day", "judging_by_day", "feedback_by_day", "sessions", "session_tool_calls",
)  # fmt: skip

_ON_CLUSTER = "ON CLUSTER '{cluster}'"
_HEAD = re.compile(
    r"^(CREATE (?:DATABASE|TABLE|VIEW|MATERIALIZED VIEW) IF NOT EXISTS \S+|CREATE OR REPLACE VIEW \S+|DROP (?:VIEW|TABLE) IF EXISTS \S+"
    r"|ALTER TABLE \S+)"
)
_CREATED = re.compile(r"^CREATE (?:OR REPLACE )?(TABLE|VIEW) (?:IF NOT EXISTS )?`(\w+)`\.(\w+)")
_COLUMNS = re.compile(r"^\(\n.*?^\)$", re.MULTILINE | re.DOTALL)
_ENGINE = re.compile(r"^ENGINE = (Replacing)?MergeTree(?:\((\w+)\))?$", re.MULTILINE)
_WINDOW = re.compile(r"\bnon_replicated_deduplication_window = (\d+)")

_INTRODUCTION = f"""-- The schema of Assay for a ClickHouse cluster. Made from the migrations: python -m docs.generate.cluster_ddl --write
-- How to run it, and what has not been tried: docs/cluster.md. Every statement may be repeated.
--
-- {LOCAL_BASE} and {LOCAL_VIEWS}: what each shard holds. {BASE} and {VIEWS}: the same names over all shards, for programs and people.
"""


def local(statement: str) -> str:
    """Convert a migration's statement for the databases of a shard.

    Raises for an unknown kind of statement.
    """
    text, known = _HEAD.subn(rf"\1 {_ON_CLUSTER}", statement, count=1)
    if not known:
        raise ValueError(f"add support for this statement in a cluster to {__name__}: {statement.splitlines()[0]}")
    text = _ENGINE.sub(_replicated, text)
    text = _WINDOW.sub(r"replicated_deduplication_window = \1", text)
    return text.replace("DEFINER = CURRENT_USER", f"DEFINER = {DEFINER}")


def _replicated(match: re.Match[str]) -> str:
    kind, version = match[1] or "", f", {match[2]}" if match[2] else ""
    return f"ENGINE = Replicated{kind}MergeTree('/clickhouse/tables/{{uuid}}/{{shard}}', '{{replica}}'{version})"


def distributed(statement: str) -> str | None:
    """Return the Distributed table in front of the table or view that a local statement creates, if any."""
    created = _CREATED.match(statement)
    if created is None:
        return None
    kind, database, name = created.groups()
    key = ""
    if kind == "TABLE":
        shown, columns = BASE, f"AS `{database}`.{name}"
        if name in SHARDING_KEYS:
            key = f", {SHARDING_KEYS[name]}"
    elif database == LOCAL_VIEWS and (declared := _COLUMNS.search(statement)):
        shown, columns = VIEWS, declared[0]  # the engine cannot create a table AS a view
    else:
        return None
    return (
        f"CREATE TABLE IF NOT EXISTS `{shown}`.{name} {_ON_CLUSTER}\n{columns}\n"
        f"ENGINE = Distributed('{{cluster}}', '{database}', '{name}'{key})"
    )


def statements(settings: RetentionSettings | None = None, redis_shards: int = 1) -> list[str]:
    """Return all statements in order: shard tables, distributed tables, retention, initial records."""
    statements_so_far: list[str] = []
    of_all: list[str] = []
    databases = [f"CREATE DATABASE IF NOT EXISTS `{database}` {_ON_CLUSTER}" for database in (BASE, VIEWS)]
    fronts: dict[str, str] = {}  # by name: a redefined view has one distributed table, with its last columns
    for migration in migrations():
        for statement in migration.statements(LOCAL_BASE, LOCAL_VIEWS):
            created = _CREATED.match(statement)
            if created and created[2] == LOCAL_VIEWS and created[3] in OF_ALL_SHARDS:
                of_all.append(
                    local(statement).replace(f"`{LOCAL_VIEWS}`", f"`{VIEWS}`").replace(f"`{LOCAL_BASE}`", f"`{BASE}`")
                )
                continue
            statements_so_far.append(local(statement))
            if front := distributed(statement):
                fronts[front.partition("\n")[0]] = front
    ttl = retention.expression(settings or RetentionSettings())
    kept = [f"ALTER TABLE `{LOCAL_BASE}`.{table} {_ON_CLUSTER} MODIFY TTL {ttl}" for table in retention.TABLES]
    shards = ", ".join(f"({shard}, 0)" for shard in range(redis_shards))
    records = [f"INSERT INTO `{BASE}`.watermarks (shard, watermark) VALUES {shards}"]  # noqa: S608  # numbers
    records += [
        f"INSERT INTO `{BASE}`.schema_migrations (version, name, checksum) "  # noqa: S608  # of this repository
        f"VALUES ({migration.version}, '{migration.name}', '{migration.checksum}')"
        for migration in migrations()
    ]
    return [*statements_so_far, *databases, *fronts.values(), *of_all, *kept, *records]


def document() -> str:
    """Return the text of deploy/clickhouse/cluster/assay.sql."""
    return _INTRODUCTION + "".join(f"\n{statement};\n" for statement in statements())


def main(arguments: list[str]) -> int:
    """Run the command."""
    return keep({DOCUMENT: document()}, arguments, "python -m docs.generate.cluster_ddl")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
