"""`assay audit verify` and the rights on the log's tables: what is deployed is enough and no more, and anything wider is named."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from assay_operations.audit_grants import Granted, Rights, too_wide, wider_grants
from assay_operations.audit_log import AuditLog
from assay_operations.audit_verification import Result, verify
from assay_runtime.migrate import migrations
from assay_runtime.store import connect
from tests.integration.engine_roles import ADMIN, EngineError, EngineWithUsers
from tests.support.audited import Audited
from tests.support.deployed_secrets import make_secrets
from tests.support.store import StoreServer

ROOT = Path(__file__).parents[2]
USERS, CONFIG = ROOT / "deploy/clickhouse/users.d/assay.xml", ROOT / "deploy/clickhouse/config.d/assay.xml"
DATABASES = ("assay_base", "assay")


class EngineClient:
    """A client of the engine as one of the deployed users. Its users are roles, `as_NAME`: their names are those of users here."""

    def __init__(self, engine: EngineWithUsers, user: str) -> None:
        self._engine, self._user = engine, user

    def query(self, sql: str) -> Any:
        try:
            lines = self._engine.run(self._user, f"{sql} FORMAT JSONCompactEachRow").splitlines()
        except EngineError as error:
            raise DatabaseError(str(error), code=error.code) from None
        return SimpleNamespace(result_rows=[self._row(json.loads(line)) for line in lines])

    @staticmethod
    def _row(row: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(each.removeprefix("as_") if isinstance(each, str) else each for each in row)


@contextmanager
def deployed(directory: Path, more: dict[str, list[str]]) -> Iterator[EngineWithUsers]:
    """Start the engine with the deployed users, some of them with more grants."""
    text = USERS.read_text()
    # Unlike a server with the deployed configuration, the engine asks for these rights of who reads `system.grants`.
    for user, grants in {**more, "sre": [*more.get("sre", []), "GRANT SHOW USERS, SHOW ROLES ON *.*"]}.items():
        start = text.index(f"<{user}>")
        end = text.index("</grants>", start)
        text = text[:end] + "".join(f"<query>{each}</query>" for each in grants) + text[end:]
    make_secrets(directory / "secrets")
    (directory / "changed.xml").write_text(text)
    passwords = (directory / "secrets/clickhouse-passwords.xml").read_text()
    engine = EngineWithUsers(directory, directory / "changed.xml", passwords, CONFIG)
    try:
        yield engine
    finally:
        engine.stop()


def found(engine: EngineWithUsers, user: str = "sre") -> tuple[dict[str, str], str]:
    wider, unknown = wider_grants(EngineClient(engine, user), DATABASES)  # type: ignore[arg-type]
    return dict(wider), unknown


def test_the_deployed_users_have_no_more_than_select_and_the_auditor_insert(tmp_path: Path) -> None:
    with deployed(tmp_path, {}) as engine:
        assert found(engine) == ({}, "")
        for user in ("exporter", "auditor"):
            wider, unknown = found(engine, user)
            assert (wider, "cannot read system.grants" in unknown) == ({}, True)
        for migration in migrations():
            for statement in migration.statements(*DATABASES):
                engine.run("owner", statement)
        assert "assay_base.audit_rows" in engine.run(ADMIN, "SELECT database || '.' || name FROM system.tables")


def test_every_wider_grant_is_named_with_its_user(tmp_path: Path) -> None:
    more = {
        "writer": ["GRANT ALTER DELETE ON assay_base.audit_rows"],
        "console": ["GRANT ALL ON *.*"],
        "auditor": ["GRANT ALTER UPDATE(status) ON assay_base.audit_rows", "GRANT TRUNCATE ON assay_base.audit_leaves"],
        "evaluator": ["GRANT INSERT ON assay_base.audit_checkpoints"],
        "owner": ["GRANT ALTER DELETE ON assay_base.audit_leaves", "GRANT TRUNCATE ON assay_base.audit_anchors"],
        "operator": ["GRANT DROP VIEW ON assay.audit_rows"],
        "exporter": ["GRANT ALTER ON assay_base.*", "REVOKE ALTER ON assay_base.*"],
        "sre": ["GRANT OPTIMIZE ON assay_base.candidates", "GRANT CREATE TEMPORARY TABLE ON *.*"],
    }
    with deployed(tmp_path, more) as engine:
        wider, _ = found(engine)
    assert wider["writer"] == "ALTER DELETE ON assay_base.audit_rows"
    assert wider["auditor"] == "ALTER UPDATE ON assay_base.audit_rows, TRUNCATE ON assay_base.audit_leaves"
    assert wider["evaluator"] == "INSERT ON assay_base.audit_checkpoints"
    assert wider["owner"] == "ALTER TABLE ON assay_base.audit_leaves, TRUNCATE ON assay_base.audit_anchors"
    assert wider["operator"] == "DROP VIEW ON assay.audit_rows"
    assert "ALL ON assay_base.audit_rows" in wider["console"]
    assert wider.keys() == {"writer", "auditor", "evaluator", "owner", "operator", "console"}


def test_a_server_that_does_not_tell_prefixes_from_names_is_checked(tmp_path: Path) -> None:
    class Before(EngineClient):
        def query(self, sql: str) -> Any:
            if "is_wildcard" in sql:
                raise DatabaseError("Code: 47. DB::Exception: Unknown expression identifier `is_wildcard`", code=47)
            return super().query(sql)

    with deployed(tmp_path, {"writer": ["GRANT ALTER DELETE ON assay_base.audit_rows"]}) as engine:
        wider, unknown = wider_grants(Before(engine, "sre"), DATABASES)  # type: ignore[arg-type]
    assert (wider, unknown) == ([("writer", "ALTER DELETE ON assay_base.audit_rows")], "")


TREE = Rights(
    [
        ("ALL", "", ""),
        ("SELECT", "COLUMN", "ALL"),
        ("INSERT", "COLUMN", "ALL"),
        ("ALTER", "", "ALL"),
        ("ALTER DELETE", "COLUMN", "ALTER"),
        ("ALTER UPDATE", "COLUMN", "ALTER"),
        ("ACCESS MANAGEMENT", "", "ALL"),
        ("ROLE ADMIN", "GLOBAL", "ACCESS MANAGEMENT"),
        ("CREATE TEMPORARY TABLE", "GLOBAL", "ALL"),
        ("SET DEFINER", "DEFINER", "ALL"),
    ]
)


def names(*granted: Granted, members: Sequence[tuple[str, str]] = ()) -> list[str]:
    return [name for name, _ in too_wide(granted, members, TREE, DATABASES)]


def test_a_right_by_a_role_of_a_role_counts() -> None:
    right = Granted("inner", "ALTER DELETE", "assay_base", None)
    assert names(right) == []
    assert names(right, members=[("writer", "outer"), ("outer", "inner"), ("inner", "outer")]) == ["writer"]


def test_what_is_taken_back_does_not_count_and_a_part_of_it_does() -> None:
    wide = Granted("writer", "ALTER", "assay_base", None)

    def taken(right: str, column: str | None = None, holder: str = "writer") -> list[Granted]:
        tables = ("audit_rows", "audit_leaves", "audit_disclosures", "audit_checkpoints", "audit_anchors")
        return [Granted(holder, right, "assay_base", table, column, True) for table in tables]

    assert names(wide, *taken("ALTER")) == []
    assert names(wide, *taken("ALTER DELETE"), *taken("ALTER UPDATE")) == []
    assert names(wide, *taken("ALTER DELETE")) == ["writer"]
    assert names(wide, *taken("ALTER", column="status")) == ["writer"]
    assert names(wide, *taken("ALTER", holder="console")) == ["writer"]


@pytest.mark.parametrize(
    ("granted", "is_wide"),
    [
        (Granted("writer", "ALTER DELETE", "assay_base", "audit_", None, False, True), True),
        (Granted("writer", "ALTER DELETE", "assay_base", "cand", None, False, True), False),
        (Granted("writer", "ALTER DELETE", "assay_", None, None, False, True), True),
        (Granted("writer", "ALTER DELETE", "other", None), False),
        (Granted("writer", "ROLE ADMIN", None, None), True),
        (Granted("writer", "SET DEFINER", "owner", None), True),
        (Granted("writer", "SET DEFINER", "writer", None), False),
        (Granted("writer", "SET DEFINER", None, None), True),
        (Granted("writer", "CREATE TEMPORARY TABLE", None, None), False),
        (Granted("writer", "A RIGHT OF TOMORROW", None, None), True),
        (Granted("writer", "SELECT", None, None), False),
        (Granted("writer", "INSERT", None, None), True),
        (Granted("auditor", "INSERT", None, None), False),
        (Granted("owner", "ALTER", None, None), True),
        (Granted("owner", "ALTER", "assay_base", "audit_checkpoints"), True),
        (Granted("owner", "ALTER", "assay_base", "audit_rows"), False),
        (Granted("owner", "ALTER", "assay", None), False),
        (Granted("owner", "INSERT", None, None), False),
        (Granted("somebody", "ALTER", None, None), False),
    ],
)
def test_a_right_counts_if_it_may_change_a_table_of_the_log(granted: Granted, is_wide: bool) -> None:
    assert bool(names(granted)) == is_wide


def test_a_wider_grant_is_a_mismatch_of_a_verification(migrated: StoreServer, tmp_path: Path) -> None:
    with connect(migrated.settings().store) as owner, connect(migrated.settings("sre").store) as sre:
        audited = Audited(migrated, owner, tmp_path / "log")
        audited.audit()
        own = audited.settings().auditor

        class WithServersGrants(AuditLog):
            def wider_grants(self) -> tuple[list[tuple[str, str]], str]:
                wider, unknown = found(engine)
                return list(wider.items()), unknown

        with deployed(tmp_path, {"writer": ["GRANT ALTER DELETE ON assay_base.audit_rows"]}) as engine:
            [mismatch] = verify(WithServersGrants(sre, own), result := Result())
            assert (mismatch.kind, mismatch.leaf_index, result.mismatches) == ("grant", None, 1)
            assert mismatch.what == "writer may change the log: ALTER DELETE ON assay_base.audit_rows"
        # The embedded store has no grants that anybody could widen.
        assert list(verify(AuditLog(sre, own), result := Result())) == []
        assert not [note for note in result.notes if "rights" in note]
