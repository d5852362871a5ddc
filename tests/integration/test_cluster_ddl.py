"""The cluster's schema, judged by the engine: it parses every statement, and runs them all as a cluster of one shard without replicas.

What needs several servers and a Keeper (replication, statements ON CLUSTER, rows spread over shards) is not tested here.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_runtime import retention
from assay_runtime.migrate import migrations
from assay_schema.settings import RetentionSettings
from docs.generate import cluster_ddl
from tests.support.sample_rows import Json, candidate, failure

#: A cluster of this process alone: the engine knows its own address, and asks itself without a network.
CONFIG = """<clickhouse><tcp_port>9000</tcp_port><timezone>UTC</timezone>
<remote_servers><one><shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard></one></remote_servers>
<macros><cluster>one</cluster><shard>1</shard><replica>r1</replica></macros></clickhouse>"""

#: Runs the statements that arrive, one JSON string a line.
SERVE = """
import json, sys
from chdb._chdb import connect
connection = connect(sys.argv[1])
for line in sys.stdin:
    try:
        answer = {"rows": bytes(connection.query(json.loads(line), "TabSeparated").bytes()).decode()}
    except RuntimeError as error:
        answer = {"error": str(error)[:2000]}
    print(json.dumps(answer), flush=True)
connection.close()
"""


class Engine:
    """A child process with the engine; it must be alone in its process."""

    def __init__(self, directory: Path) -> None:
        (directory / "config.xml").write_text(CONFIG)
        command = [sys.executable, "-c", SERVE, f"{directory}/data?config-file={directory}/config.xml"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, sql: str) -> str:
        """Tab-separated rows of a statement."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps(sql) + "\n")
        self._child.stdin.flush()
        answer = json.loads(self._child.stdout.readline())
        assert "error" not in answer, f"{sql[:200]}: {answer}"
        return str(answer["rows"])

    def stop(self) -> None:
        assert self._child.stdin
        self._child.stdin.close()
        try:
            self._child.wait(60)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(60)
        assert self._child.stdout
        self._child.stdout.close()


def without_replicas(statement: str) -> str:
    """What one server without a Keeper can run of a statement."""
    text = statement.replace(" ON CLUSTER '{cluster}'", "").replace(
        f"DEFINER = {cluster_ddl.DEFINER} ", "DEFINER = CURRENT_USER "
    )
    return re.sub(r"Replicated(Replacing)?MergeTree\('[^']*', '[^']*'(?:, (\w+))?\)", r"\1MergeTree(\2)", text)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("cluster"))
    try:
        for statement in cluster_ddl.statements():
            engine.run(without_replicas(statement))
        yield engine
    finally:
        engine.stop()


def insert(engine: Engine, table: str, row: Json) -> None:
    engine.run(f"INSERT INTO assay_base.{table} FORMAT JSONEachRow {json.dumps(row)}")


def test_the_file_is_what_the_migrations_make() -> None:
    assert cluster_ddl.main(["--check"]) == 0


def test_the_engine_parses_every_statement(engine: Engine) -> None:
    for statement in cluster_ddl.statements():
        quoted = statement.replace("\\", "\\\\").replace("'", "\\'")
        assert engine.run(f"SELECT formatQuery('{quoted}')")


def test_every_table_of_a_shard_is_replicated_and_every_definition_is_made_on_the_whole_cluster() -> None:
    for statement in cluster_ddl.statements():
        if statement.startswith(("CREATE", "ALTER")):
            assert "ON CLUSTER '{cluster}'" in statement.splitlines()[0]
        assert not re.search(r"ENGINE = (?!Replicated|Distributed)", statement)
        assert "CURRENT_USER" not in statement
        assert "non_replicated" not in statement


def test_every_table_and_view_of_one_server_has_its_name_over_all_shards(engine: Engine) -> None:
    plain = [statement for migration in migrations() for statement in migration.statements("assay_base", "assay")]
    views = {
        found[1] for statement in plain if (found := re.match(r"CREATE VIEW IF NOT EXISTS `assay`\.(\w+)", statement))
    }
    tables = {
        found[1]
        for statement in plain
        if (found := re.match(r"CREATE TABLE IF NOT EXISTS `assay_base`\.(\w+)", statement))
    }
    assert set(engine.run("SELECT name FROM system.tables WHERE database = 'assay'").split()) == views
    assert set(engine.run("SELECT name FROM system.tables WHERE database = 'assay_base'").split()) == tables
    columns = (
        "SELECT table, name, type, comment FROM system.columns"
        f" WHERE database = '{{}}' AND table NOT IN {cluster_ddl.OF_ALL_SHARDS} ORDER BY ALL"
    )
    assert engine.run(columns.format("assay")) == engine.run(columns.format("assay_local"))


def test_copies_of_a_row_go_to_the_same_shard(engine: Engine) -> None:
    for table, key in cluster_ddl.SHARDING_KEYS.items():
        sorted_by = engine.run(
            f"SELECT sorting_key FROM system.tables WHERE database = 'assay_base_local' AND name = '{table}'"
        )
        column = re.fullmatch(r"cityHash64\((\w+)\)", key)
        assert column is not None
        assert column[1] in re.split(r"\W+", sorted_by), f"{table}: FINAL tells rows apart by it"
    for table in (
        "candidates",
        "answers",
        "feedback",
        "capture_failures",
        "scores",
        "calibrations",
        "watermarks",
        "schema_migrations",
    ):
        assert "cityHash64" in engine.run(
            f"SELECT engine_full FROM system.tables WHERE database = 'assay_base' AND name = '{table}'"
        )


def test_a_redelivered_event_shows_once_through_the_whole_of_it(engine: Engine) -> None:
    row, lost = candidate(project="again"), failure(project="again")
    for _ in range(2):
        insert(engine, "candidates", row)
        insert(engine, "capture_failures", lost)
        insert(engine, "watermarks", {"shard": 0, "watermark": 7})
    assert engine.run("SELECT count(), any(event_id) FROM assay.candidates WHERE project = 'again'").split() == [
        "1",
        row["event_id"],
    ]
    for view in (
        "rollup_minute_refresh",
        "rollup_hour_refresh",
        "rollup_day_refresh",
    ) * 2:  # one that was under way may have begun before the rows
        engine.run(f"SYSTEM REFRESH VIEW assay_base_local.{view}")
        engine.run(f"SYSTEM WAIT VIEW assay_base_local.{view}")
    for bucket in ("minute", "hour", "day"):
        assert engine.run(
            f"SELECT sum(events), sum(failures) FROM assay.rollup_{bucket} WHERE project = 'again'"
        ).split() == ["1", "1"]
    assert engine.run("SELECT watermark FROM assay.watermark").split() == ["7"]
    assert engine.run("SELECT max(version) FROM assay.schema_migrations").split() == [str(migrations()[-1].version)]


def test_a_filter_reaches_the_partitions_of_a_shard(engine: Engine) -> None:
    insert(engine, "candidates", candidate(project="filtered"))
    plan = engine.run(
        "EXPLAIN indexes = 1 SELECT query FROM assay.candidates WHERE event_time > now() - INTERVAL 1 HOUR AND project = 'filtered'"
    )
    assert "toYYYYMMDD(event_time)" in plan
    assert "PrimaryKey" in plan


def test_retention_and_the_number_of_redis_shards_follow_the_settings() -> None:
    settings = RetentionSettings(days=7, projects={"short": 1})
    made = cluster_ddl.statements(settings, redis_shards=3)
    assert sum(retention.expression(settings) in statement for statement in made) == len(retention.TABLES)
    assert any(statement.endswith("VALUES (0, 0), (1, 0), (2, 0)") for statement in made)


def test_a_statement_of_an_unknown_kind_is_refused_rather_than_run_on_one_server_alone() -> None:
    with pytest.raises(ValueError, match=r"add support for this statement in a cluster to .*: RENAME TABLE"):
        cluster_ddl.local("RENAME TABLE a TO b")
