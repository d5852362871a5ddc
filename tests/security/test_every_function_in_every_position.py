"""No role gets at a function that it may not call, wherever in a statement it is named."""

import random
from collections.abc import Iterator

import pytest

from assay_store.names import listed
from assay_store.roles import Role
from tests.integration.test_store_rights import ask
from tests.security.embedded import Attempt, Embedded
from tests.security.positions import BY_NAME, CALLS, TABLES
from tests.support.store import StoreServer

pytestmark = pytest.mark.xdist_group("security")

RESTRICTED = [role.value for role in Role if role.restricted]
MARK = "mark-of-a-file"


def filled(template: str, name: str) -> str:
    return template.replace("NAME", name).replace("ARGS", "'/etc/hostname'")


def functions(embedded: Embedded) -> list[str]:
    return embedded.ask("SELECT name FROM system.functions ORDER BY name").split()


def attempts(embedded: Embedded) -> Iterator[tuple[str, str]]:
    """Every refused name in every position, with the role that tries it."""
    names = listed()
    for name in functions(embedded):
        if names.allows(name):
            continue
        roles = [*RESTRICTED, "owner"] if name.lower() in names.nobody_functions else RESTRICTED
        yield from ((role, filled(template, name)) for template in CALLS + BY_NAME for role in roles)
    for name in embedded.ask("SELECT name FROM system.table_functions ORDER BY name").split():
        if name.lower() in names.table_functions:
            continue
        roles = RESTRICTED if name.lower() in names.owner_table_functions else [*RESTRICTED, "owner"]
        yield from ((role, filled(template, name)) for template in TABLES for role in roles)


def test_no_refused_function_passes_in_any_position(embedded: Embedded) -> None:
    tried = list(attempts(embedded))
    assert len(tried) > 40_000
    for template in CALLS + BY_NAME:
        embedded.parse(filled(template, name) for name in functions(embedded) if not listed().allows(name))
    codes = embedded.judge((role, sql, {}, "") for role, sql in tried)
    passed = [attempt for attempt, code in zip(tried, codes, strict=True) if code == 0]
    assert not passed, f"{len(passed)} passed: {passed[:20]}"


def test_the_positions_are_those_where_a_function_can_stand(embedded: Embedded) -> None:
    """Most of them pass with a function that everybody may call: else the test above would refuse everything for its form."""
    allowed = [filled(template, "lower") for template in CALLS + BY_NAME]
    allowed += [template.replace("NAME", "numbers").replace("ARGS", "3") for template in TABLES]
    for role, least in (("owner", 100), ("writer", 70), ("sre", 60)):
        codes = embedded.judge((role, sql, {}, "") for sql in allowed)
        assert codes.count(0) >= least, [sql for sql, code in zip(allowed, codes, strict=True) if code]


@pytest.mark.parametrize("name", ["FILE", "File", "`fi\\x6ce`", '"fi\\x6ce"', "“file”"])
def test_no_spelling_of_a_name_passes(embedded: Embedded, name: str) -> None:
    """Quoted, escaped, in another case, or in quotation marks of a text processor, which the engine takes for its own."""
    templates = [template for template in CALLS + BY_NAME if "`NAME`" not in template and '"NAME"' not in template]
    tried: list[Attempt] = [
        (role, filled(template, name), {}, "") for template in templates for role in [*RESTRICTED, "owner"]
    ]
    codes = embedded.judge(tried)
    assert not [attempt[:2] for attempt, code in zip(tried, codes, strict=True) if code == 0]


def test_a_function_that_nobody_knows_is_refused(embedded: Embedded) -> None:
    """One that an owner made, or one of a later engine."""
    for name in ("fileIf", "fileOrNull", "readsWhateverTheNextVersionReads"):
        tried: list[Attempt] = [(role, filled(template, name), {}, "") for template in CALLS for role in RESTRICTED]
        codes = embedded.judge(tried)
        assert not [attempt[:2] for attempt, code in zip(tried, codes, strict=True) if code == 0]


@pytest.mark.parametrize("role", [*RESTRICTED, "owner"])
def test_no_name_by_a_parameter_passes(embedded: Embedded, role: str) -> None:
    for sql in (
        "SELECT arrayMap({f:Identifier}, ['/etc/hostname'])",
        "SELECT * APPLY ({f:Identifier}) FROM (SELECT '/etc/hostname' AS x)",
        "SELECT {f:Identifier}('/etc/hostname')",
        "SELECT * FROM {f:Identifier}('/etc/hostname')",
    ):
        assert embedded.judge([(role, sql, {"f": "file"}, "")]) != [0], sql
        assert role == "owner" or embedded.judge([(role, sql, {}, "")]) != [0], sql


def test_columns_of_external_tables_are_names_and_types(embedded: Embedded) -> None:
    def table(columns: str) -> Attempt:
        return ("external", f"CREATE TEMPORARY TABLE t ({columns}) ENGINE = Memory", {}, "")

    fine = [
        "a UInt8",
        "a Array(Nullable(String)), b Enum8('x' = 1, 'y' = 2)",
        "a Tuple(b String, c Map(String, UInt8))",
        "`a b` DateTime64(3, 'UTC')",
    ]
    assert embedded.judge(map(table, fine)) == [0] * len(fine)
    for kind in ("DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL"):
        assert embedded.judge([table(f"a String {kind} lower('x')")]) != [0]
    for columns in (
        "a UInt8 CODEC(ZSTD)",
        "a UInt8 TTL now()",
        "a UInt8, CONSTRAINT c CHECK a > 1",
        "a UInt8) AS SELECT (1",
        "a UInt8, INDEX i a TYPE minmax",
    ):
        assert embedded.judge([table(columns)]) != [0], columns


def test_a_file_of_rows_is_read_only_where_the_store_put_it(embedded: Embedded) -> None:
    sql = "INSERT INTO t FROM INFILE '/etc/passwd' FORMAT TSV"
    for role in ("owner", "writer", "evaluator", "operator", "console"):
        assert embedded.judge([(role, sql, {}, "")]) == [497]
        assert embedded.judge([(role, sql, {}, "/tmp/other")]) == [497]
        assert embedded.judge([(role, sql.replace("/etc/passwd", "/tmp/rows"), {}, "/tmp/rows")]) == [0]


def test_a_sample_of_all_attempts_fails_over_http_too(embedded: Embedded, migrated: StoreServer) -> None:
    secret = migrated.directory / "secret"
    secret.write_text(MARK)
    chance = random.Random(11)
    for role, sql in chance.sample(list(attempts(embedded)), 300):
        text = sql.replace("/etc/hostname", str(secret))
        code, answer = ask(migrated, role, text)
        assert code, (role, text, answer[:200])
        assert MARK not in answer
    for role in [*RESTRICTED, "owner"]:
        for template in CALLS + BY_NAME + TABLES:
            text = filled(template, "file").replace("/etc/hostname", str(secret))
            code, answer = ask(migrated, role, text)
            assert code, (role, text, answer[:200])
            assert MARK not in answer
