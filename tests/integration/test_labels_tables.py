"""The tables of labels and dataset cases, and the skip indexes by trace and question."""

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from assay_runtime.indexed import TRACE_ID, question_hash
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.ids import new_event_id
from assay_store.roles import REVIEW_TABLES
from tests.integration.test_store_rights import ask
from tests.support.sample_rows import (
    Json,
    answer,
    candidate,
    dataset_case,
    label,
    lines,
    server_event,
    tool_call,
)
from tests.support.store import StoreServer

DENIED = "497"
UNMERGED = ("max_bytes_to_merge_at_max_space_in_pool = 1", "max_bytes_to_merge_at_min_space_in_pool = 1")
MAKE = {"candidates": candidate, "answers": answer, "tool_calls": tool_call, "server_events": server_event}
ASKED = "' Where  are the keys?'"
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store, database="assay") as client:
        for table in (*MAKE, "labels", "dataset_cases"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        for table in MAKE:  # parts stay apart, so that an index has some to skip
            client.command(f"ALTER TABLE assay_base.{table} MODIFY SETTING {', '.join(UNMERGED)}")
        yield client


@pytest.fixture
def console(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings("console").store, database="assay") as client:
        yield client


def put(client: Client, table: str, *rows: Json) -> None:
    for row in rows:
        insert_json_rows(client, f"assay_base.{table}", lines([row]), 1)


def shown(client: Client, columns: str, view: str) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in client.query(f"SELECT {columns} FROM {view} ORDER BY ALL").result_rows]


def test_the_latest_label_of_each_labeller_queue_and_answer_is_shown(owner: Client, console: Client) -> None:
    event = label()["event_id"]
    first = label(event_id=event)
    put(console, "labels", first, label(event_id=event, label="bad", supersedes=first["label_id"]))
    put(console, "labels", label(event_id=event, labeller="bob"), label(event_id=event, queue="other", label="unsure"))
    put(console, "labels", label(1, labeller="eve", project="shop"))
    assert shown(console, "project, queue, labeller, label", "labels") == [
        ("default", "default", "ana", "bad"),
        ("default", "default", "bob", "good"),
        ("default", "other", "ana", "unsure"),
        ("shop", "default", "eve", "good"),
    ]
    assert shown(owner, "count()", "assay_base.labels") == [("5",)]


def test_a_withdrawn_label_is_not_shown_and_a_new_one_is(owner: Client, console: Client) -> None:
    first = label()
    withdrawal = {**first, "label_id": new_event_id(), "supersedes": first["label_id"], "withdrawn": True}
    put(console, "labels", first, withdrawal)
    assert shown(console, "label", "labels") == []
    put(console, "labels", {**first, "label_id": new_event_id(), "label": "bad", "supersedes": withdrawal["label_id"]})
    assert shown(console, "label", "labels") == [("bad",)]


def test_a_label_that_is_sent_again_neither_counts_twice_nor_comes_back(owner: Client, console: Client) -> None:
    first = label()
    second = {**first, "label_id": new_event_id(), "label": "bad", "supersedes": first["label_id"]}
    put(console, "labels", first, first, second, first, {**first, "label": "unsure", "note": "forged"})
    assert shown(console, "label, note", "labels") == [("bad", "")]


def test_the_latest_version_of_each_case_is_shown_without_retired_ones(owner: Client, console: Client) -> None:
    put(console, "dataset_cases", *(dataset_case(number) for number in range(3)))
    put(console, "dataset_cases", dataset_case(1, version=2, expected_slugs=["other"], expected_chunk_ids=[]))
    put(console, "dataset_cases", dataset_case(2, version=2, retired=True), dataset_case(0, project="shop"))
    assert shown(console, "project, case_id, version, expected_slugs", "dataset_cases") == [
        ("default", "case-0", "1", "['guides/keys']"),
        ("default", "case-1", "2", "['other']"),
        ("shop", "case-0", "1", "['guides/keys']"),
    ]
    put(console, "dataset_cases", dataset_case(2, version=3))
    assert ("default", "case-2", "3") in shown(console, "project, case_id, version", "dataset_cases")


def test_of_two_rows_of_one_version_the_first_counts(owner: Client, console: Client) -> None:
    put(console, "dataset_cases", dataset_case(reviewer="ana"), dataset_case(reviewer="bob"))
    assert shown(console, "reviewer", "dataset_cases") == [("ana",)]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("labels", label(label="fine")),
        ("labels", label(labeller="")),
        ("labels", label(queue="a b")),
        ("labels", label(event_id=str(uuid4()))),
        ("labels", label(note="n" * 2001)),
        ("labels", label(withdrawn=True)),
        ("labels", label(schema_version=2)),
        ("dataset_cases", dataset_case(null_case=True)),
        ("dataset_cases", dataset_case(version=0)),
        ("dataset_cases", dataset_case(inclusion_probability=0)),
        ("dataset_cases", dataset_case(query="")),
        ("dataset_cases", dataset_case(project="../x")),
    ],
)
def test_rows_that_break_the_contract_are_refused(owner: Client, console: Client, table: str, row: Json) -> None:
    with pytest.raises(Exception, match=r"constraint|UNKNOWN_ELEMENT_OF_ENUM|Unknown element|VIOLATED"):
        put(console, table, row)
    assert shown(owner, "count()", f"assay_base.{table}") == [("0",)]


def test_no_client_chooses_when_a_label_was_stored(owner: Client, console: Client) -> None:
    for table, row in (("labels", label()), ("dataset_cases", dataset_case())):
        with pytest.raises(Exception, match="stored_at"):
            put(console, table, {**row, "stored_at": "2000-01-01 00:00:00"})


@pytest.mark.parametrize("table", ["labels", "dataset_cases"])
def test_the_console_inserts_reads_through_the_view_and_loses_nothing(migrated: StoreServer, table: str) -> None:
    rows = {"labels": lines([label()]), "dataset_cases": lines([dataset_case()])}
    insert = ask(migrated, "console", f"INSERT INTO assay_base.{table} FORMAT JSONEachRow", body=rows[table])
    assert insert == ("", "")
    code, before = ask(migrated, "console", f"SELECT count() FROM assay.{table}")
    assert code == ""
    assert int(before) > 0
    for statement in (
        f"SELECT count() FROM assay_base.{table}",
        f"ALTER TABLE assay_base.{table} DELETE WHERE 1",
        f"ALTER TABLE assay_base.{table} UPDATE schema_version = 1 WHERE 1",
        f"DELETE FROM assay_base.{table} WHERE 1",
        f"TRUNCATE TABLE assay_base.{table}",
        f"OPTIMIZE TABLE assay_base.{table} FINAL DEDUPLICATE",
        f"DROP TABLE assay_base.{table}",
    ):
        assert ask(migrated, "console", statement)[0], statement
    assert ask(migrated, "console", f"SELECT count() FROM assay.{table}") == ("", before)


def test_the_console_writes_no_other_table_and_no_other_role_writes_its_tables(migrated: StoreServer) -> None:
    tables = ask(migrated, "owner", "SELECT name FROM system.tables WHERE database = 'assay_base'")[1].split()
    own = set(REVIEW_TABLES)
    assert own < set(tables)
    for table in set(tables) - own:
        insert = f"INSERT INTO assay_base.{table} FORMAT JSONEachRow"
        assert ask(migrated, "console", insert, body=b"{}")[0] == DENIED, table
    for role in ("sre", "exporter", "evaluator", "operator"):
        for table in REVIEW_TABLES:
            insert = f"INSERT INTO assay_base.{table} FORMAT JSONEachRow"
            assert ask(migrated, role, insert, body=b"{}")[0], (role, table)


def test_the_console_reads_every_view(migrated: StoreServer) -> None:
    views = ask(migrated, "owner", "SELECT name FROM system.tables WHERE database = 'assay'")[1].split()
    assert {"candidates", "eval_runs", "labels", "operations"} <= set(views)
    for view in set(views) - {"audit_disclosures"}:
        assert ask(migrated, "console", f"SELECT * FROM assay.{view} LIMIT 1")[0] == "", view


def test_the_console_knows_which_personal_fields_of_the_audit_log_are_kept_and_no_value(migrated: StoreServer) -> None:
    """Whoever is signed in writes SQL that runs as the console."""
    known = "SELECT log, leaf_index, digest FROM assay.audit_disclosures"
    assert ask(migrated, "console", known)[0] == ""
    for statement in (
        "SELECT disclosure FROM assay.audit_disclosures",
        "SELECT * FROM assay.audit_disclosures",
        "SELECT 1 FROM assay.audit_disclosures WHERE disclosure LIKE '%a%'",
        "SELECT digest FROM assay.audit_disclosures ORDER BY disclosure",
        "SELECT disclosure FROM assay_base.audit_disclosures",
        "SELECT count() FROM merge('assay', 'audit_disclosures') WHERE disclosure != ''",
    ):
        assert ask(migrated, "console", statement)[0], statement


def test_the_limits_of_the_console_cannot_be_raised(migrated: StoreServer) -> None:
    seconds, memory = (
        int(ask(migrated, "console", f"SELECT getSetting('{name}')")[1])
        for name in ("max_execution_time", "max_memory_usage")
    )
    assert seconds == 5
    assert 0 < memory <= 1_000_000_000
    for setting in ({"max_execution_time": "6"}, {"max_execution_time": "0"}, {"max_memory_usage": "1000000001"}):
        assert ask(migrated, "console", "SELECT 1", **setting)[0], setting
    assert ask(migrated, "console", "SELECT count() FROM numbers(1e12)")[0] == "159"


@pytest.mark.parametrize("view", MAKE)
def test_a_query_by_trace_skips_what_the_index_excludes(owner: Client, console: Client, view: str) -> None:
    parts = 12
    put(owner, view, *(MAKE[view](number, traceparent=f"00-{number:032x}-{7:016x}-01") for number in range(parts)))
    put(owner, view, MAKE[view](parts, traceparent=None), MAKE[view](99, traceparent=f"00-{TRACE}-{7:016x}-01"))
    assert used(console, view, f"{TRACE_ID} = '{TRACE}'", "trace_id_bloom") < parts
    found = shown(console, "traceparent", f"{view} WHERE {TRACE_ID} = '{TRACE}'")
    assert found == [(f"00-{TRACE}-{7:016x}-01",)]


@pytest.mark.parametrize("view", ["candidates", "answers"])
def test_a_query_by_question_skips_what_the_index_excludes(owner: Client, console: Client, view: str) -> None:
    parts = 12
    put(owner, view, *(MAKE[view](number, query=f"question {number}") for number in range(parts)))
    put(owner, view, MAKE[view](98, query="  Where are\t\nthe KEYS? "), MAKE[view](99, query="where are the keys?"))
    condition = f"{question_hash('query')} = {question_hash(ASKED)}"
    assert used(console, view, condition, "question_bloom") < parts
    assert len(shown(console, "query", f"{view} WHERE {condition}")) == 2


def used(client: Client, view: str, condition: str, index: str) -> int:
    """The granules that an index leaves of a view's table."""
    rows = client.query(f"EXPLAIN indexes = 1 SELECT event_id FROM {view} WHERE {condition}").result_rows
    plan = [str(row[0]).strip() for row in rows]
    at = plan.index(f"Name: {index}")
    granules = next(line for line in plan[at:] if line.startswith("Granules: "))
    left, _, read = granules.removeprefix("Granules: ").partition("/")
    assert int(read) >= 12, plan
    return int(left)


def test_two_reviewers_who_save_at_once_make_one_version(owner: Client, migrated: StoreServer) -> None:
    def save(reviewer: str) -> None:
        with connect(migrated.settings("console").store, database="assay") as client:
            put(client, "dataset_cases", dataset_case(reviewer=reviewer))

    threads = [threading.Thread(target=save, args=(name,)) for name in ("ana", "bob", "eve")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shown(owner, "version", "dataset_cases") == [("1",)]
    assert shown(owner, "count()", "assay_base.dataset_cases") == [("3",)]
