"""Migrations, retention and the tables' own rules, against the real engine."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from assay_runtime import migrate as runner
from assay_runtime import retention
from assay_runtime.migrate import Migration, MigrationError, migrate, migrations, pending, schema_version
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.settings import RedisSettings, RetentionSettings, Settings, SettingsError
from tests.support.sample_rows import ALWAYS, answer, candidate, event_id_at, failure, feedback, iso, lines
from tests.support.store import StoreServer


@pytest.fixture(scope="module")
def server(migrated: StoreServer) -> StoreServer:
    return migrated


@pytest.fixture(scope="module")
def client(server: StoreServer) -> Iterator[Client]:
    with connect(server.settings().store) as client:
        yield client


def databases(server: StoreServer, name: str) -> Settings:
    """Settings for databases of a test's own."""
    return server.settings(base_database=f"{name}_base", database=name)


def test_a_migration_is_applied_once_and_leaves_nothing_pending(server: StoreServer) -> None:
    settings = databases(server, "once")
    assert [migration.version for migration in pending(settings)] == [m.version for m in migrations()]
    assert migrate(settings) == migrations()
    assert pending(settings) == []
    assert migrate(settings) == []
    with connect(settings.store) as client:
        assert schema_version(client, "once_base") == migrations()[-1].version


def test_an_empty_store_is_at_version_0(server: StoreServer) -> None:
    with connect(server.settings().store, database="default") as client:
        assert schema_version(client, "no_such_base") == 0


def test_two_runs_at_once_both_succeed_and_record_each_migration_once(server: StoreServer, tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from assay_runtime.config import load_settings\n"
        "from assay_runtime.migrate import migrate\n"
        "settings = load_settings()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "migrate(settings)\n"
    )
    config = tmp_path / "assay.toml"
    store = databases(server, "race").store
    config.write_text(
        f'[store]\nurl = "{store.url}"\nuser = "{store.user}"\npassword = "{store.password.get_secret_value()}"\n'
        f'base_database = "{store.base_database}"\ndatabase = "{store.database}"\n'
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"ASSAY_CONFIG": str(config), "PATH": "/usr/bin:/bin"},
        )
        for _ in range(2)
    ]
    for run in runs:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    ends = [run.communicate(timeout=200) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    with connect(store) as client:
        rows = client.query(
            "SELECT version, count() FROM schema_migrations GROUP BY version ORDER BY version"
        ).result_rows
    assert [tuple(row) for row in rows] == [(migration.version, 1) for migration in migrations()]


def test_a_run_that_died_half_way_is_finished_by_the_next(server: StoreServer) -> None:
    settings = databases(server, "half")
    with connect(settings.store, database="default") as client:
        for statement in migrations()[0].statements("half_base", "half")[:4]:
            client.command(statement)
    assert migrate(settings) == migrations()


def test_an_applied_migration_whose_text_changed_is_refused_by_name(
    server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = server.settings()
    assert migrate(settings) == []
    first, *rest = migrations()
    monkeypatch.setattr(runner, "migrations", lambda: [Migration(1, first.name, first.text + "\n-- later\n"), *rest])
    with pytest.raises(MigrationError, match=r"0001_tables\.sql was changed"):
        migrate(settings)


def test_a_store_newer_than_the_code_is_refused_with_what_to_upgrade(
    server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = server.settings()
    assert pending(settings) == []
    monkeypatch.setattr(runner, "migrations", lambda: migrations()[:1])
    with pytest.raises(MigrationError, match=r"at version 2, but this code supports up to 1.*Upgrade Assay"):
        pending(settings)


def test_an_engine_that_is_too_old_is_refused() -> None:
    class Old:
        def query(self, _: str) -> object:
            return type("Result", (), {"result_rows": [("24.3.18.7",)]})()

    with pytest.raises(MigrationError, match=r"ClickHouse 24\.3\.18\.7; Assay needs 24\.10 or newer"):
        runner.pending_with(Old(), "assay_base")  # type: ignore[arg-type]


def test_every_column_of_a_view_has_the_type_and_comment_of_its_table(client: Client) -> None:
    def columns(database: str) -> dict[tuple[str, str], tuple[str, str]]:
        rows = client.query(
            "SELECT table, name, type, comment FROM system.columns WHERE database = {database:String}",
            parameters={"database": database},
        ).result_rows
        return {(table, name): (type_, comment) for table, name, type_, comment in rows}

    base, views = columns("assay_base"), columns("assay")
    computed = {"p50_ms", "p95_ms", "p99_ms"}
    always = {(view, name) for view, columns in ALWAYS.items() for name in columns}
    engine_only = {
        ("scores", "created_at"),
        ("labels", "withdrawn"),
        ("dataset_cases", "retired"),
        *((f"rollup_{bucket}", "fingerprint") for bucket in ("minute", "hour", "day")),
        *((table, "created_at") for table in ("eval_runs", "eval_results", "eval_outcomes")),
        ("contradiction_runs", "created_at"),
    }
    summaries = {
        "watermark", "judge_spend", "open_episodes", "quality_by_day", "judging_by_day", "feedback_by_day", "operations",
        "sessions", "session_tool_calls", "dataset_case_versions", "events",
    }  # fmt: skip
    shown = {
        key: value
        for key, value in views.items()
        if key[0] not in summaries and key[1] not in computed and key not in always
    }
    assert set(shown) == {
        key
        for key in base
        if key[1] != "ver"
        and key not in engine_only
        and not key[0].endswith(("_source", "_stale", "_differing", "_refresh", "_repair"))
    }
    assert {key: base.get(key) for key in shown} == shown
    assert [key for key, (_, comment) in views.items() if not comment] == []


def test_retention_follows_the_settings_by_project_and_settles(own_store: StoreServer) -> None:
    settings = own_store.settings()
    changed = own_store.settings(days=30, projects={"short": 1, "long": 36_500})
    with connect(settings.store) as client:
        assert retention.statements(client, "assay_base", settings.retention) == []
        assert len(retention.statements(client, "assay_base", changed.retention)) == len(retention.TABLES)
        migrate(changed)
        assert retention.statements(client, "assay_base", changed.retention) == []
        kept = [feedback(project="short"), feedback(days_old=300, project="long"), feedback(days_old=29)]
        expired = [feedback(days_old=2, project="short"), feedback(days_old=31)]
        insert_json_rows(client, "assay_base.feedback", lines(kept + expired), 5)
        client.command("OPTIMIZE TABLE assay_base.feedback FINAL")
        stored = {row[0] for row in client.query("SELECT id FROM feedback").result_rows}
        assert stored == {row["id"] for row in kept}


def test_retention_of_what_cannot_be_is_refused_before_anything_is_changed() -> None:
    for projects, message in (({"a b": 3}, "not the name of a project"), ({"a": 0}, r"retention\.projects\.a: days")):
        with pytest.raises(SettingsError, match=message):
            retention.check(RetentionSettings(projects=projects))


def test_the_watermark_is_the_least_of_all_shards_and_0_while_one_has_stored_nothing(own_store: StoreServer) -> None:
    def watermark(client: Client) -> int:
        return int(client.query("SELECT watermark FROM watermark").result_rows[0][0])

    one = own_store.settings()
    two = one.model_copy(update={"redis": RedisSettings(shards=2)})
    with connect(one.store) as client:
        assert watermark(client) == 0
        for value in (30, 20):  # written out of order: the greater stands
            client.insert("assay_base.watermarks", [[0, value]], column_names=["shard", "watermark"])
        assert watermark(client) == 30
        migrate(two)
        assert watermark(client) == 0
        client.insert("assay_base.watermarks", [[1, 25]], column_names=["shard", "watermark"])
        assert watermark(client) == 25
        migrate(two)
        assert watermark(client) == 25
        migrate(one)
        assert watermark(client) == 30


def test_of_several_copies_of_an_event_the_earliest_arrival_is_shown_whatever_their_order(client: Client) -> None:
    first = candidate()
    later = {**first, "id": first["id"] + 5, "query": "again"}
    for rows in ([later], [first], [later, first]):
        insert_json_rows(client, "assay_base.candidates", lines(rows), len(rows))
    found = client.query(
        "SELECT id, query FROM candidates WHERE event_id = {event:UUID}", parameters={"event": first["event_id"]}
    ).result_rows
    assert [tuple(row) for row in found] == [(first["id"], first["query"])]


def test_rows_come_back_exactly_as_they_went_in(client: Client) -> None:
    for table, row in (
        ("candidates", candidate(retrieved_scores=[5e-324, 1.7976931348623157e308, 0.1 + 0.2, -0.0], job_id=2**53 - 1)),
        (
            "candidates",
            candidate(query="a\nb\tc \u0000 \U0001f511 'quoted' \\", expand_enabled=None, embedding_model=None),
        ),
        ("answers", answer(contexts=[], citations=[{"context_id": "x", "claim": 'said "so"'}])),
        ("answers", answer(retrieval_event_id="018f05c9-4ab8-7b86-b64e-c9f03fbd45d1")),
        ("feedback", feedback(text="", user_hash="u")),
        ("feedback", feedback(text=None)),
    ):
        insert_json_rows(client, f"assay_base.{table}", lines([row]), 1)
        text = client.raw_query(
            f"SELECT {', '.join(row)} FROM {table} WHERE event_id = {{event:UUID}}",  # noqa: S608
            parameters={"event": row["event_id"]},
            settings={"output_format_json_quote_64bit_integers": 0, "date_time_output_format": "iso"},
            fmt="JSONEachRow",
        )
        stored = json.loads(text)
        assert stored.pop("occurred_at").startswith(row["occurred_at"].rstrip("Z"))
        assert stored == {name: value for name, value in row.items() if name != "occurred_at"}


@pytest.mark.parametrize(
    ("table", "row", "constraint"),
    [
        ("candidates", candidate(query="x" * 51_201), "query_length"),
        ("candidates", candidate(schema_version=2), "schema_version_is_1"),
        ("candidates", candidate(id=2**53), "id_below_2_53"),
        ("candidates", candidate(event_id="5a7e1efa-3e7c-4e51-8f09-a4c2ad1d6a21"), "event_id_is_uuidv7"),
        ("candidates", candidate(event_id="ffffffff-ffff-7b86-b64e-c9f03fbd45d1"), "event_id_at_most_a_day_ahead"),
        ("candidates", candidate(created_at=iso(int(time.time() * 1000) - 86_401_000)), "event_id_at_most_a_day_ahead"),
        ("candidates", candidate(project="a b"), "project_is_a_name"),
        ("candidates", candidate(service=""), "service_length"),
        ("candidates", candidate(latency_ms=-1.0), "latency_is_not_negative"),
        ("candidates", candidate(retrieved_chunk_ids=[1] * 10_001), "retrieved_chunk_ids_items"),
        ("answers", answer(answer="x" * 262_145), "answer_length"),
        ("answers", answer(contexts=[{"id": "c", "text": "x" * 262_145}]), "context_length"),
        ("answers", answer(citations=[{"context_id": "c", "claim": "x" * 262_145}]), "claim_length"),
        ("feedback", feedback(text="x" * 262_145), "text_length"),
        ("capture_failures", failure(detail="x" * 2_001), "detail_length"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_row_over_a_limit_is_refused_by_the_constraint_named_for_it(
    client: Client, table: str, row: dict[str, object], constraint: str
) -> None:
    with pytest.raises(DatabaseError, match=f"Constraint `{constraint}`"):
        insert_json_rows(client, f"assay_base.{table}", lines([row]), 1)


def test_rows_exactly_at_their_limits_are_stored(client: Client) -> None:
    insert_json_rows(client, "assay_base.candidates", lines([candidate(query="\u00e9" * 51_200)]), 1)
    insert_json_rows(client, "assay_base.answers", lines([answer(answer="x" * 262_144)]), 1)


def test_one_batch_may_touch_more_days_than_the_engine_allows_by_default(client: Client) -> None:
    now = int(time.time() * 1000)
    rows = [feedback(event_id=event_id_at(now - day * 86_400_000), project="spool") for day in range(150)]
    insert_json_rows(client, "assay_base.feedback", lines(rows), len(rows))
    assert client.query("SELECT count() FROM feedback WHERE project = 'spool'").result_rows[0][0] == 150


def test_a_filter_on_a_view_reaches_partitions_sorting_key_and_indexes(client: Client) -> None:
    insert_json_rows(client, "assay_base.candidates", lines([candidate(days_old=3), candidate()]), 2)
    plan = "\n".join(
        row[0]
        for row in client.query(
            "EXPLAIN indexes = 1 SELECT query FROM candidates "
            "WHERE event_time > now() - INTERVAL 1 HOUR AND project = 'default' AND id > 7"
        ).result_rows
    )
    assert "toYYYYMMDD(event_time)" in plan
    assert "PrimaryKey" in plan
    assert "Name: id_range" in plan


def test_an_sre_reads_the_views_and_not_the_base_tables(server: StoreServer) -> None:
    with connect(server.settings("sre").store) as sre:
        assert sre.query("SELECT count() FROM candidates").result_rows
        with pytest.raises(DatabaseError, match="ACCESS_DENIED"):
            sre.query("SELECT count() FROM assay_base.candidates")
