"""Audit records in the embedded store: who inserts and reads them, and that no role deletes or changes one."""

import pytest

from tests.integration.test_store_rights import ask
from tests.support.audit_attacks import A_RECORD, AUDIT, KEPT, LOG_LOSSES, LOSSES
from tests.support.store import ROLES, StoreServer

DENIED = "497"
VIEWS = ("assay.operations", "assay.operations_audit")
OTHERS = ("writer", "evaluator", "sre", "exporter", "console", "auditor")


@pytest.fixture(scope="module")
def recorded(migrated: StoreServer) -> StoreServer:
    """The store with a record of the owner and one of an operator, and an empty table of the same form."""
    for role, number in (("owner", 1), ("operator", 2)):
        assert ask(migrated, role, A_RECORD.format(f"00000000-0000-7000-8000-00000000000{number}")) == ("", "")
    assert ask(migrated, "owner", f"CREATE TABLE assay_base.empty_audit AS {AUDIT}") == ("", "")
    return migrated


def rows(server: StoreServer) -> str:
    code, text = ask(server, "owner", f"SELECT * FROM {AUDIT} ORDER BY ALL")
    assert code == ""
    return text


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("statement", LOSSES)
def test_nobody_deletes_or_changes_an_audit_record(recorded: StoreServer, role: str, statement: str) -> None:
    before = rows(recorded)
    assert ask(recorded, role, statement)[0]
    assert rows(recorded) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DROP DATABASE assay_base SYNC",
        "DETACH DATABASE assay_base",
        "RENAME DATABASE assay_base TO other",
        f"SYSTEM DROP REPLICA 'a' FROM TABLE {AUDIT}",
        "GRANT ALL ON *.* TO default",
        "SET ROLE ALL",
    ],
)
def test_the_owner_finds_no_way_around(recorded: StoreServer, statement: str) -> None:
    before = rows(recorded)
    assert ask(recorded, "owner", statement)[0]
    assert rows(recorded) == before


def test_a_backup_that_is_restored_over_the_audit_removes_nothing(recorded: StoreServer) -> None:
    before = rows(recorded)
    assert ask(recorded, "owner", "BACKUP TABLE assay_base.empty_audit TO Disk('backups', 'empty/')")[0] == ""
    ask(recorded, "owner", f"RESTORE TABLE assay_base.empty_audit AS {AUDIT} FROM Disk('backups', 'empty/')")
    assert rows(recorded) == before


@pytest.mark.parametrize("role", OTHERS)
def test_only_owner_and_operator_insert_audit_records(recorded: StoreServer, role: str) -> None:
    assert ask(recorded, role, A_RECORD.format("00000000-0000-7000-8000-000000000003"))[0] in {DENIED, "164"}


def test_an_operator_reads_the_views_of_the_audit_and_no_other(recorded: StoreServer) -> None:
    for view in VIEWS:
        assert ask(recorded, "operator", f"SELECT count() FROM {view}") == ("", "2\n")
    tables = ask(recorded, "owner", "SELECT database || '.' || name FROM system.tables WHERE database LIKE 'assay%'")
    others = [name for name in tables[1].split() if name not in VIEWS]
    assert len(others) > 20
    for name in others:
        assert ask(recorded, "operator", f"SELECT * FROM {name} LIMIT 1")[0] == DENIED, name
        assert ask(recorded, "operator", f"TRUNCATE TABLE {name}")[0] == DENIED, name
        if name != AUDIT:
            assert ask(recorded, "operator", f"INSERT INTO {name} FORMAT JSONEachRow", body=b"{}")[0] == DENIED, name
    seen = ask(
        recorded, "operator", "SELECT 'assay.' || name FROM system.tables WHERE database = 'assay' ORDER BY name"
    )
    assert tuple(seen[1].split()) == VIEWS


def test_limits_and_settings_of_an_operator_are_fixed(recorded: StoreServer) -> None:
    for statement in (
        "SET max_memory_usage = 0",
        "SET max_execution_time = 0",
        "SET profile = 'owner'",
        "SELECT 1 SETTINGS insert_allow_materialized_columns = 1",
        "SET ROLE owner",
    ):
        assert ask(recorded, "operator", statement)[0], statement


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("statement", LOG_LOSSES)
def test_the_owner_deletes_and_changes_no_leaf_checkpoint_or_anchor(
    migrated: StoreServer, table: str, statement: str
) -> None:
    assert ask(migrated, "owner", statement.format(f"assay_base.{table}"))[0] == DENIED


def test_the_owner_deletes_rows_of_the_log_and_adds_columns_to_its_tables(migrated: StoreServer) -> None:
    for table in ("audit_rows", "audit_disclosures"):
        assert ask(migrated, "owner", f"ALTER TABLE assay_base.{table} DELETE WHERE 1") == ("", "")
    for table in KEPT:
        assert ask(migrated, "owner", f"ALTER TABLE assay_base.{table} ADD COLUMN more String") == ("", "")


def test_an_exporter_reads_no_value_of_a_personal_field_of_the_audit_log(migrated: StoreServer) -> None:
    assert ask(migrated, "exporter", "SELECT log, leaf_index, digest FROM assay.audit_disclosures") == ("", "")
    for columns in ("disclosure", "*", "digest, disclosure"):
        assert ask(migrated, "exporter", f"SELECT {columns} FROM assay.audit_disclosures")[0] == DENIED, columns
