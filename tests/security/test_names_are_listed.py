"""Every function, table function and setting of the engine was looked at by a person before anybody may use it."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from assay_store.names import listed
from assay_store.roles import NAMED_SETTINGS, Role
from assay_store.syntax import NODES
from tests.security.embedded import Embedded
from tests.support.store import StoreServer

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["functions", "table_functions"])
def test_an_engine_with_a_name_that_nobody_judged_is_noticed(embedded: Embedded, kind: str) -> None:
    names = listed()
    known = (
        names.functions | names.owner_functions | names.nobody_functions
        if kind == "functions"
        else names.table_functions | names.owner_table_functions | names.nobody_table_functions
    )
    found = {name.lower() for name in embedded.ask(f"SELECT name FROM system.{kind}").split()}
    assert not found - known, "read what they do, and add them to services/store/assay_store/functions.toml"


def test_an_engine_with_a_combinator_that_nobody_judged_is_noticed(embedded: Embedded) -> None:
    found = {name.lower() for name in embedded.ask("SELECT name FROM system.aggregate_function_combinators").split()}
    assert not found - set(listed().combinators)


def test_no_name_is_judged_twice() -> None:
    names = listed()
    assert not names.functions & names.refused_functions
    assert not names.owner_functions & names.nobody_functions
    assert not names.table_functions & (names.owner_table_functions | names.nobody_table_functions)
    assert not names.owner_table_functions & names.nobody_table_functions


def test_a_new_function_is_refused_until_somebody_judges_it() -> None:
    assert not listed().allows("readsWhateverTheNextVersionReads")
    assert not listed().allows("fileIf")
    assert listed().allows("uniqExactIf")
    assert listed().allows("quantilesTDigestArrayIf")


def test_every_setting_that_may_be_changed_is_one_of_the_engine(embedded: Embedded) -> None:
    known = set(embedded.ask("SELECT name FROM system.settings").split())
    for role, named in NAMED_SETTINGS.items():
        assert not named - known, role


def test_a_reader_may_set_the_same_here_and_on_a_server() -> None:
    profiles = ET.parse(ROOT / "deploy/clickhouse/users.d/assay.xml").find("profiles")  # noqa: S314
    assert profiles is not None
    for role in (Role.SRE, Role.EXPORTER):
        on_server = {setting.tag for setting in profiles.findall(f"assay_{role}/constraints/*[changeable_in_readonly]")}
        assert on_server == NAMED_SETTINGS[role], role


def test_no_transformer_that_calls_a_function_by_name_is_allowed() -> None:
    assert "ColumnsApplyTransformer" not in NODES
    for kind in ("ShowTablesQuery", "ShowColumnsQuery", "ShowIndexesQuery"):
        assert not NODES[kind] & {"where_expression", "limit_length"}


def test_no_column_of_a_view_is_called_like_a_refused_function(migrated: StoreServer) -> None:
    """Such a column could not be asked for: a name may always be meant as a function."""
    sql = "SELECT DISTINCT name FROM system.columns WHERE database IN ('assay', 'assay_base', 'system', 'INFORMATION_SCHEMA')"
    columns = {name.lower() for name in re.split(r"\s+", migrated_ask(migrated, sql)) if name}
    assert "event_id" in columns
    assert not columns & listed().refused_functions


def migrated_ask(server: StoreServer, sql: str) -> str:
    from tests.integration.test_store_rights import ask

    code, text = ask(server, "owner", sql)
    assert code == "", text
    return text
