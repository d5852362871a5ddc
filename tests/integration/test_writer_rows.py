"""Rows of the writer in a real store: fields that are absent, tables older and newer than the writer, a row that is refused."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from assay_runtime.entries import Entry, Outcome, SinkUnavailableError
from assay_runtime.store import Client, connect
from assay_schema.failures import Reason
from assay_schema.ids import first_row_at, new_event_id
from assay_writer.batch import batches
from assay_writer.rows import event_row
from assay_writer.sink import Sink
from tests.support.sample_rows import event_id_at, iso
from tests.support.store import StoreServer

NOW = 1_900_000_000_000
REQUIRED: dict[str, dict[str, Any]] = {
    "retrieval": {
        "tool_name": "query",
        "query": "q",
        "retrieved_slugs": ["a", "b"],
        "retrieved_chunk_ids": [7, 7],
        "latency_ms": 1.5,
    },
    "answer": {"query": "q", "answer": "a", "model": "m", "latency_ms": 2.5},
    "feedback": {"target_event_id": new_event_id(), "verdict": "negative"},
}
TABLES = {"retrieval": "candidates", "answer": "answers", "feedback": "feedback"}


def event(kind: str = "retrieval", number: int = 0, **payload: Any) -> bytes:
    """A scrubbed event with the fields that none may lack, and `payload`."""
    return orjson.dumps(
        {
            "schema_version": 1,
            "id": first_row_at(NOW + number),
            "created_at": iso(NOW + number),
            "event_id": event_id_at(NOW + number),
            "kind": kind,
            "service": "s",
            "occurred_at": iso(NOW + number),
            "policy": "p",
            "payload": REQUIRED[kind] | payload,
        }
    )


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings(days=36_500).store, database="assay_base") as client:
        for table in TABLES.values():
            client.command(f"TRUNCATE TABLE {table}")
        yield client


@pytest.fixture
def sink(migrated: StoreServer) -> Iterator[Sink]:
    sink = Sink(migrated.settings("writer").store)
    yield sink
    sink.close()


def write(sink: Sink, *events: bytes) -> list[Outcome]:
    entries = [Entry(f"{NOW}-{number}", data) for number, data in enumerate(events)]
    return sink.write(entries, *batches(entries, event_row))


@pytest.mark.parametrize("kind", TABLES)
def test_optional_fields_that_are_absent_get_their_defaults(sink: Sink, owner: Client, kind: str) -> None:
    [outcome] = write(sink, event(kind))
    assert outcome.failure is None
    [stored] = owner.query(f"SELECT * FROM {TABLES[kind]}").named_results()  # our names
    expected: dict[str, Any] = {"project": "default", "traceparent": None, "pii_families": {}, "pii_attempted": []}
    expected |= {
        "retrieval": {
            "params": "{}",
            "source_ids": [],
            "expand_enabled": None,
            "detail": None,
            "vector_enabled": False,
            "remote": False,
            "job_id": None,
            "retrieved_scores": [],
            "embedding_model": None,
            "latency_ms": 1.5,
        },
        "answer": {"contexts": [], "citations": [], "retrieval_event_id": None, "model": "m"},
        "feedback": {"text": None, "user_hash": None, "verdict": "negative"},
    }[kind]
    assert {name: stored[name] for name in expected} == expected
    made = owner.query(
        f"SELECT ver + id, event_time = created_at, stored_at > now() - 3600 FROM {TABLES[kind]}"  # our names
    )
    assert made.result_rows == [(2**53 - 1, 1, 1)]


def test_a_row_that_a_constraint_refuses_is_found_and_the_others_are_stored(sink: Sink, owner: Client) -> None:
    events = [event(number=number, latency_ms=-1 if number == 5 else 1) for number in range(12)]
    outcomes = write(sink, *events)
    refused = {number: outcome.failure for number, outcome in enumerate(outcomes) if outcome.failure}
    assert list(refused) == [5]
    failure = refused[5]
    assert (failure.reason, failure.error_class) == (Reason.CHECK_VIOLATION, "VIOLATED_CONSTRAINT")
    assert failure.detail == "violates the constraint latency_is_not_negative"
    assert owner.command("SELECT count() FROM candidates") == 11


def test_a_table_that_lacks_a_column_blames_no_row_and_takes_the_batch_once_it_is_migrated(
    sink: Sink, owner: Client
) -> None:
    data = event(embedding_model="e")
    owner.command("ALTER TABLE candidates RENAME COLUMN embedding_model TO not_there_yet")
    try:
        with pytest.raises(SinkUnavailableError) as raised:
            write(sink, data)
        assert (raised.value.reason, raised.value.error_class) == (Reason.OTHER, "NO_SUCH_COLUMN_IN_TABLE")
        assert owner.command("SELECT count() FROM candidates") == 0
    finally:
        owner.command("ALTER TABLE candidates RENAME COLUMN not_there_yet TO embedding_model")
    [outcome] = write(sink, data)
    assert outcome.failure is None
    assert owner.query("SELECT embedding_model FROM candidates").result_rows == [("e",)]


def test_a_column_that_only_a_newer_version_knows_gets_its_default_and_shifts_no_other(
    sink: Sink, owner: Client
) -> None:
    owner.command("ALTER TABLE candidates ADD COLUMN mood String DEFAULT concat(query, '!') AFTER id")
    try:
        [outcome] = write(sink, event(query="why", mood="from a newer producer"))
        assert outcome.failure is None
        stored = owner.query("SELECT mood, query, tool_name, retrieved_slugs FROM candidates").result_rows
        assert stored == [("why!", "why", "query", ["a", "b"])]
    finally:
        owner.command("ALTER TABLE candidates DROP COLUMN mood")
