"""deploy/clickhouse, judged by the engine: it reads the files, and each user may do its own work and nothing else.

What needs a server (logging in, quotas being counted, settings that are changeable though readonly) is not tested here.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from assay_access.identities import STORE_IDENTITIES
from assay_runtime import retention
from assay_runtime.migrate import migrations
from assay_schema.settings import RetentionSettings, StoreSettings
from assay_store.roles import FINDING_COLUMNS, LABEL_COLUMNS
from tests.integration.engine_roles import ADMIN, EngineWithUsers
from tests.support.audit_attacks import A_RECORD, AUDIT, KEPT, LOG_LOSSES, LOSSES
from tests.support.deployed_secrets import make_secrets

ROOT = Path(__file__).parents[2]
USERS = ROOT / "deploy/clickhouse/users.d/assay.xml"
CONFIG = ROOT / "deploy/clickhouse/config.d/assay.xml"
BASE, VIEWS = StoreSettings().base_database, StoreSettings().database
ACCESS_DENIED, READONLY, VIOLATED_CONSTRAINT = 497, 164, 469
VIOLATED_CONSTRAINT_OF_SETTING = 452
WRITTEN = {"candidates", "answers", "feedback", "capture_failures", "watermarks"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineWithUsers]:
    """The engine after `assay migrate` as `owner`."""
    directory = tmp_path_factory.mktemp("clickhouse")
    make_secrets(directory / "secrets")
    running = EngineWithUsers(directory, USERS, (directory / "secrets/clickhouse-passwords.xml").read_text(), CONFIG)
    try:
        for migration in migrations():
            for statement in migration.statements(BASE, VIEWS):
                running.run("owner", statement)
        yield running
    finally:
        running.stop()


def test_the_engine_reads_every_user_and_its_password_is_a_hash(engine: EngineWithUsers) -> None:
    listed = engine.run(ADMIN, "SELECT name, auth_type[1] FROM system.users WHERE name != 'default'").splitlines()
    assert {tuple(line.split("\t")) for line in listed} == {
        (identity.name, "sha256_password") for identity in STORE_IDENTITIES
    }


def test_without_the_generated_passwords_no_user_has_a_way_to_log_in() -> None:
    for user in ET.parse(USERS).findall("users/*"):  # noqa: S314
        assert not [child.tag for child in user if "password" in child.tag], user.tag


def test_the_user_without_a_password_is_removed() -> None:
    file = ROOT / "deploy/clickhouse/users.d/default-user.xml"
    users = ET.parse(file).findall("users/*")  # noqa: S314
    assert [(user.tag, user.attrib) for user in users] == [("default", {"remove": "remove"})]


def test_every_database_and_table_that_a_grant_names_exists(engine: EngineWithUsers) -> None:
    tables = set(engine.run("owner", "SELECT database || '.' || name FROM system.tables").split())
    databases = {name.partition(".")[0] for name in tables}
    for query in (str(query.text) for query in ET.parse(USERS).findall("users/*/grants/query")):  # noqa: S314
        database, _, table = query.rpartition(" ON ")[2].partition(".")
        if database == "*":  # the names of users and roles
            continue
        assert database in databases, query
        assert table == "*" or f"{database}.{table}" in tables, query
    assert {BASE, VIEWS} <= databases


def test_the_owner_sets_retention_deletes_and_reads_the_schema(engine: EngineWithUsers) -> None:
    wanted = retention.expression(RetentionSettings(days=30))
    for table in retention.TABLES:
        engine.run("owner", f"ALTER TABLE {BASE}.{table} MODIFY TTL {wanted}")
        engine.run("owner", f"ALTER TABLE {BASE}.{table} DELETE WHERE created_at < '2000-01-01'")
    engine.run("owner", f"DELETE FROM {BASE}.watermarks WHERE shard = 9")
    engine.run("owner", f"SELECT count() FROM {BASE}.schema_migrations")
    engine.run("owner", "SELECT count() FROM system.parts")


def test_the_owner_makes_no_users_and_reads_no_files(engine: EngineWithUsers) -> None:
    for statement in (
        "CREATE USER mine",
        "GRANT SELECT ON *.* TO default",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "CREATE DATABASE other",
        f"DROP DATABASE {BASE}",
    ):
        assert engine.code("owner", statement) == ACCESS_DENIED, statement


@pytest.mark.parametrize("table", sorted(WRITTEN))
def test_the_writer_inserts_what_it_stores(engine: EngineWithUsers, table: str) -> None:
    column = "shard" if table == "watermarks" else "schema_version"
    # The row itself breaks a constraint where there is one: the right to insert is what counts.
    assert engine.code("writer", f"INSERT INTO {BASE}.{table} ({column}) VALUES (7)") in {None, VIOLATED_CONSTRAINT}


def test_the_writer_reads_and_changes_nothing(engine: EngineWithUsers) -> None:
    for table in WRITTEN:
        assert engine.code("writer", f"SELECT * FROM {BASE}.{table}") == ACCESS_DENIED
        assert engine.code("writer", f"SELECT * FROM {VIEWS}.{table}") == ACCESS_DENIED
        assert engine.code("writer", f"TRUNCATE TABLE {BASE}.{table}") == ACCESS_DENIED
        assert engine.code("writer", f"ALTER TABLE {BASE}.{table} DELETE WHERE 1") == ACCESS_DENIED
    assert engine.code("writer", f"INSERT INTO {BASE}.schema_migrations (version) VALUES (7)") == ACCESS_DENIED


@pytest.fixture(scope="module")
def recorded(engine: EngineWithUsers) -> EngineWithUsers:
    """The engine with a record of the owner and one of an operator, and an empty table of the same form."""
    engine.run("owner", A_RECORD.format("00000000-0000-7000-8000-000000000001"))
    engine.run("operator", A_RECORD.format("00000000-0000-7000-8000-000000000002"))
    engine.run(ADMIN, f"CREATE TABLE {BASE}.empty_audit AS {AUDIT}")
    return engine


@pytest.mark.parametrize("user", ["owner", "operator", "writer", "evaluator", "sre", "exporter", "console"])
@pytest.mark.parametrize("statement", LOSSES)
def test_nobody_deletes_or_changes_an_audit_record(recorded: EngineWithUsers, user: str, statement: str) -> None:
    before = recorded.run(ADMIN, f"SELECT * FROM {AUDIT} ORDER BY ALL")
    assert recorded.code(user, statement)
    assert recorded.run(ADMIN, f"SELECT * FROM {AUDIT} ORDER BY ALL") == before


def test_the_database_of_the_audit_cannot_be_dropped_or_renamed(recorded: EngineWithUsers) -> None:
    for statement in (f"DROP DATABASE {BASE}", f"RENAME DATABASE {BASE} TO other", f"DETACH DATABASE {BASE}"):
        assert recorded.code("owner", statement), statement
    assert recorded.run(ADMIN, f"SELECT count() FROM {AUDIT}").strip() == "2"


@pytest.mark.parametrize("user", ["writer", "evaluator", "sre", "exporter", "console"])
def test_only_owner_and_operator_insert_audit_records(recorded: EngineWithUsers, user: str) -> None:
    statement = A_RECORD.format("00000000-0000-7000-8000-000000000003")
    assert recorded.code(user, statement) in {ACCESS_DENIED, READONLY}


def test_an_operator_reads_the_views_of_the_audit_and_no_other(recorded: EngineWithUsers) -> None:
    for view in ("operations_audit", "operations"):
        assert recorded.run("operator", f"SELECT count() FROM {VIEWS}.{view}").strip() == "2"
    for name in (AUDIT, *(f"{VIEWS}.{table}" for table in WRITTEN), f"{VIEWS}.eval_runs", f"{BASE}.candidates"):
        assert recorded.code("operator", f"SELECT * FROM {name}") == ACCESS_DENIED, name
    for table in (*WRITTEN, "eval_runs", "calibrations", "schema_migrations"):
        assert recorded.code("operator", f"INSERT INTO {BASE}.{table} SELECT * FROM {BASE}.{table}") == ACCESS_DENIED


def test_a_second_record_of_an_operation_does_not_change_what_the_first_said(recorded: EngineWithUsers) -> None:
    forged = A_RECORD.format("00000000-0000-7000-8000-000000000001").replace("'ana'", "'eve'")
    recorded.run("operator", forged)
    shown = recorded.run(ADMIN, f"SELECT actor, outcome FROM {VIEWS}.operations ORDER BY operation_id LIMIT 1")
    assert shown == "ana\tstarted\n"
    assert recorded.run(ADMIN, f"SELECT count() FROM {AUDIT} WHERE actor = 'eve'").strip() == "1"


def test_a_later_migration_may_still_add_a_column_to_the_audit(recorded: EngineWithUsers) -> None:
    recorded.run("owner", f"ALTER TABLE {AUDIT} ADD COLUMN IF NOT EXISTS more String COMMENT 'More.'")


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("statement", LOG_LOSSES)
def test_the_owner_deletes_and_changes_no_leaf_checkpoint_or_anchor(
    engine: EngineWithUsers, table: str, statement: str
) -> None:
    assert engine.code("owner", statement.format(f"{BASE}.{table}")) == ACCESS_DENIED


def test_the_owner_deletes_rows_of_the_log_and_adds_columns_to_its_tables(engine: EngineWithUsers) -> None:
    for table in ("audit_rows", "audit_disclosures"):
        engine.run("owner", f"ALTER TABLE {BASE}.{table} DELETE WHERE 1")
    for table in KEPT:
        engine.run("owner", f"ALTER TABLE {BASE}.{table} ADD COLUMN IF NOT EXISTS more String COMMENT 'More.'")


@pytest.mark.parametrize("reader", ["sre", "exporter", "console"])
def test_readers_see_every_view_and_no_table_behind_it(engine: EngineWithUsers, reader: str) -> None:
    engine.run("owner", f"INSERT INTO {BASE}.watermarks (shard, watermark) VALUES (0, 42)")
    assert engine.run(reader, f"SELECT max(watermark) FROM {VIEWS}.watermarks").split() == ["42"]
    for view in [*WRITTEN, "watermark", "schema_migrations"]:
        engine.run(reader, f"SELECT * FROM {VIEWS}.{view}")
    for table in [*WRITTEN, "schema_migrations"]:
        assert engine.code(reader, f"SELECT * FROM {BASE}.{table}") == ACCESS_DENIED


@pytest.mark.parametrize("reader", ["sre", "exporter", "console"])
@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO {BASE}.watermarks (shard) VALUES (1)",
        f"ALTER TABLE {BASE}.candidates DELETE WHERE 1",
        f"DROP VIEW {VIEWS}.candidates",
        f"CREATE TABLE {VIEWS}.mine (a UInt8) ENGINE = Memory",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SYSTEM FLUSH LOGS",
        "SET max_memory_usage = 0",
        "SET max_execution_time = 0",
    ],
)
def test_readers_change_nothing_and_reach_nothing_else(engine: EngineWithUsers, reader: str, statement: str) -> None:
    assert engine.code(reader, statement) in {ACCESS_DENIED, READONLY, VIOLATED_CONSTRAINT_OF_SETTING}


@pytest.mark.parametrize("reader", ["sre", "exporter"])
def test_readers_stay_read_only(engine: EngineWithUsers, reader: str) -> None:
    assert engine.code(reader, "SET readonly = 0") in {ACCESS_DENIED, READONLY}


@pytest.mark.parametrize("user", ["console", "exporter"])
def test_who_shows_or_exports_rows_reads_no_value_of_a_personal_field(engine: EngineWithUsers, user: str) -> None:
    engine.run(user, f"SELECT log, leaf_index, digest FROM {VIEWS}.audit_disclosures")
    for columns in ("disclosure", "*", "digest, disclosure"):
        assert engine.code(user, f"SELECT {columns} FROM {VIEWS}.audit_disclosures") == ACCESS_DENIED
    assert engine.code(user, f"SELECT 1 FROM {VIEWS}.audit_disclosures WHERE disclosure = ''") == ACCESS_DENIED


@pytest.mark.parametrize("table", ["labels", "dataset_cases", "contradiction_labels"])
def test_the_console_inserts_what_people_decide_and_changes_none_of_it(engine: EngineWithUsers, table: str) -> None:
    # The row itself breaks a constraint: the right to insert is what counts.
    assert engine.code("console", f"INSERT INTO {BASE}.{table} (schema_version) VALUES (7)") == VIOLATED_CONSTRAINT
    engine.run("console", f"SELECT * FROM {VIEWS}.{table}")
    for statement in (
        f"SELECT * FROM {BASE}.{table}",
        f"ALTER TABLE {BASE}.{table} DELETE WHERE 1",
        f"DELETE FROM {BASE}.{table} WHERE 1",
        f"TRUNCATE TABLE {BASE}.{table}",
        f"OPTIMIZE TABLE {BASE}.{table} FINAL DEDUPLICATE",
        f"DROP TABLE {BASE}.{table}",
    ):
        assert engine.code("console", statement) == ACCESS_DENIED, statement


@pytest.mark.parametrize("table", ["contradiction_runs", "contradiction_pairs"])
def test_the_evaluator_inserts_contradictions_and_reads_no_whole_row(engine: EngineWithUsers, table: str) -> None:
    # The row itself breaks a constraint: the right to insert is what counts.
    assert engine.code("evaluator", f"INSERT INTO {BASE}.{table} (schema_version) VALUES (7)") == VIOLATED_CONSTRAINT
    for statement in (f"SELECT * FROM {VIEWS}.{table}", f"DELETE FROM {BASE}.{table} WHERE 1"):
        assert engine.code("evaluator", statement) == ACCESS_DENIED, statement
    engine.run("sre", f"SELECT * FROM {VIEWS}.{table}")


def test_the_evaluator_recognizes_findings_and_reads_no_text_of_them(engine: EngineWithUsers) -> None:
    engine.run("evaluator", f"SELECT {FINDING_COLUMNS} FROM {VIEWS}.contradiction_pairs")
    for column in ("query", "texts", "claims", "reason", "documents"):
        assert engine.code("evaluator", f"SELECT {column} FROM {VIEWS}.contradiction_pairs") == ACCESS_DENIED
    engine.run("evaluator", f"SELECT {LABEL_COLUMNS} FROM {VIEWS}.contradiction_labels")
    for column in ("note", "labeller"):
        assert engine.code("evaluator", f"SELECT {column} FROM {VIEWS}.contradiction_labels") == ACCESS_DENIED


def test_the_console_inserts_into_no_other_table(engine: EngineWithUsers) -> None:
    for table in ("candidates", "scores", "eval_runs", "calibrations", "watermarks", "schema_migrations"):
        assert engine.code("console", f"INSERT INTO {BASE}.{table} SELECT * FROM {BASE}.{table}") == ACCESS_DENIED


def test_the_limits_of_the_console_are_in_force_and_its_quota_is_its_own(engine: EngineWithUsers) -> None:
    names = ["max_execution_time", "max_memory_usage", "max_result_rows"]
    row = engine.run("console", f"SELECT {', '.join(f'getSetting({name!r})' for name in names)}")
    assert row.split() == ["5", "1000000000", "1000000"]
    for name in names:
        assert engine.code("console", f"SELECT 1 SETTINGS {name} = 0") == VIOLATED_CONSTRAINT_OF_SETTING
    limits = engine.run(
        ADMIN,
        "SELECT duration, max_queries, max_execution_time FROM system.quota_limits"
        " WHERE quota_name = 'assay_console' ORDER BY duration",
    )
    assert limits.splitlines() == ["60\t3000\t\\N", "3600\t\\N\t7200"]
    held = engine.run(ADMIN, "SELECT apply_to_list FROM system.quotas WHERE name = 'assay_console'")
    assert held.strip() == "['console']"


def test_limits_of_people_are_in_force(engine: EngineWithUsers) -> None:
    names = ["readonly", "max_execution_time", "max_memory_usage", "max_result_rows"]
    row = engine.run("sre", f"SELECT {', '.join(f'getSetting({name!r})' for name in names)}")
    assert dict(zip(names, row.split(), strict=True)) == {
        "readonly": "1",
        "max_execution_time": "30",
        "max_memory_usage": "1000000000",
        "max_result_rows": "1000000",
    }
    tight = engine.run(
        ADMIN,
        "SELECT duration, max_queries, max_execution_time FROM system.quota_limits WHERE quota_name = 'assay_sre' ORDER BY duration",
    )
    assert tight.splitlines() == ["60\t300\t\\N", "3600\t\\N\t1800"]
    held = engine.run(ADMIN, "SELECT apply_to_list FROM system.quotas WHERE name = 'assay_sre'")
    assert held.strip() == "['sre']"


def test_no_insert_is_acknowledged_from_a_buffer(engine: EngineWithUsers) -> None:
    set_by = engine.run(
        ADMIN,
        "SELECT profile_name, value FROM system.settings_profile_elements"
        " WHERE setting_name = 'async_insert' AND value IS NOT NULL",
    )
    assert set_by.split() == ["default", "0"]
    for profile in ("assay_owner", "assay_writer"):
        inherits = "SELECT inherit_profile FROM system.settings_profile_elements WHERE profile_name = '{}'"
        assert "default" in engine.run(ADMIN, inherits.format(profile)).split()


def test_exports_write_slashes_as_they_are(engine: EngineWithUsers) -> None:
    assert engine.run("exporter", "SELECT 'a/b' AS x FORMAT JSONEachRow") == '{"x":"a/b"}\n'


def test_the_server_keeps_utc_and_no_log_without_an_end() -> None:
    config = ET.parse(CONFIG).getroot()  # noqa: S314
    assert config.findtext("timezone") == "UTC"
    logs = [element for element in config if element.tag.endswith("_log")]
    assert len(logs) > 10
    for log in logs:
        ttl = log.findtext("ttl") or ""
        assert log.get("remove") or re.fullmatch(r"event_date \+ INTERVAL \d+ DAY DELETE", ttl), log.tag


def test_only_http_is_served_over_tls_when_tls_is_asked_for() -> None:
    config = ET.parse(ROOT / "deploy/clickhouse/tls.xml").getroot()  # noqa: S314
    removed = config.find("http_port")
    assert removed is not None
    assert removed.get("remove")
    assert config.findtext("https_port") == "8443"
