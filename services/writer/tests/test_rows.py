"""From entries to rows: every published example, and entries that are no row."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from assay_schema.alerts import Alert
from assay_schema.failures import Failure
from assay_schema.published import Example, examples
from assay_schema.scores import Score
from assay_schema.validation import parse_scrubbed
from assay_writer.rows import RowError, alert_row, event_row, failure_row, score_row
from docs.generate.table_reference import views
from tests.support.sample_rows import ALWAYS, JSON_COLUMNS, ROW_OF, by_column

MODELS = ROW_OF
#: Made by the tables.
MADE = {"event_time", "stored_at"}


def columns(table: str) -> set[str]:
    return {name for view in views() if view.name == table for name, _, _ in view.columns} - MADE


@pytest.mark.parametrize("example", examples("events"), ids=lambda example: example.name)
def test_a_row_has_exactly_the_columns_of_its_table_and_the_values_of_its_event(example: Example) -> None:
    table, data, identity = event_row(example.document_bytes)
    row = by_column(table, data)
    event = parse_scrubbed(example.document_bytes)
    assert row.keys() | ALWAYS.get(table, {}).keys() == columns(table)
    assert identity == f"{event.id}:{event.event_id}"
    for name in JSON_COLUMNS & row.keys():
        row[name] = orjson.loads(row[name] or "null")
    exported = MODELS[table].model_validate_json(orjson.dumps(ALWAYS.get(table, {}) | row))
    for name in exported.model_fields_set:
        source: Any = event.payload if name in type(event.payload).model_fields else event
        expected = source.created if name == "updated" and source.updated is None else getattr(source, name)
        assert getattr(exported, name) == expected, name


@pytest.mark.parametrize("example", examples("failures"), ids=lambda example: example.name)
def test_a_failure_has_exactly_the_columns_of_its_table_and_the_values_it_came_with(example: Example) -> None:
    table, data, identity = failure_row(example.document_bytes)
    row, failure = by_column(table, data), Failure.model_validate_json(example.document_bytes)
    assert (table, row.keys()) == ("capture_failures", columns("capture_failures"))
    assert Failure.model_validate_json(orjson.dumps(row)) == failure
    assert identity == str(failure.failure_id)


@pytest.mark.parametrize("example", examples("scores"), ids=lambda example: example.name)
def test_a_score_has_exactly_the_columns_of_its_table_and_the_values_it_came_with(example: Example) -> None:
    table, data, identity = score_row(example.document_bytes)
    row, score = by_column(table, data), Score.model_validate_json(example.document_bytes)
    assert (table, row.keys()) == ("scores", columns("scores"))
    assert Score.model_validate_json(orjson.dumps(row | {"event_time": score.event_time})) == score
    assert identity.startswith(f"{score.score_id}:")


def test_a_score_without_its_identity_is_no_row() -> None:
    with pytest.raises(RowError, match=r"score_id: missing"):
        score_row(b'{"status":"scored"}')


@pytest.mark.parametrize("example", examples("alerts"), ids=lambda example: example.name)
def test_an_alert_has_exactly_the_columns_of_its_table_and_the_values_it_came_with(example: Example) -> None:
    table, data, identity = alert_row(example.document_bytes)
    row, alert = by_column(table, data), Alert.model_validate_json(example.document_bytes)
    assert (table, row.keys()) == ("alerts", columns("alerts"))
    assert Alert.model_validate_json(orjson.dumps({**row, "interval": row["interval"] or None})) == alert
    assert identity == str(alert.transition_id)


def event(**fields: Any) -> bytes:
    payload = {"target_event_id": "019b7f2e-6b21-7d10-9a55-0c1b2a394857", "verdict": "positive"}
    base = {
        "schema_version": 1,
        "id": 7,
        "event_id": "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d",
        "kind": "feedback",
        "service": "s",
        "occurred_at": datetime(2026, 1, 2, tzinfo=UTC),
        "created_at": datetime(2026, 1, 2, tzinfo=UTC),
        "policy": "p",
        "payload": payload,
    }
    return orjson.dumps({name: value for name, value in {**base, **fields}.items() if value is not ...})


def test_what_a_newer_scrubber_adds_stays_out() -> None:
    payload = {"target_event_id": "x", "verdict": "positive", "mood": 3}
    row = by_column(*event_row(event(colour="blue", payload=payload))[:2])
    assert row.keys() == columns("feedback")


def test_a_key_of_the_payload_never_takes_the_place_of_the_envelopes() -> None:
    payload = {"target_event_id": "x", "verdict": "positive", "id": 99, "project": "other", "event_id": "y"}
    row = by_column(*event_row(event(project="mine", payload=payload))[:2])
    assert (row["id"], row["project"]) == (7, "mine")


@pytest.mark.parametrize(
    ("own", "envelopes", "stored"),
    [("u-5f2c", "9f" * 16, "u-5f2c"), (None, "9f" * 16, "9f" * 16), ("u-5f2c", None, "u-5f2c"), (None, None, None)],
)
def test_feedback_has_the_user_hash_of_its_payload_else_that_of_the_envelope(
    own: str | None, envelopes: str | None, stored: str | None
) -> None:
    payload = {"target_event_id": "x", "verdict": "positive", "user_hash": own}
    row = by_column(*event_row(event(user_hash=envelopes, payload=payload))[:2])
    assert row["user_hash"] == stored


def test_a_user_hash_in_the_payload_of_another_kind_is_an_unknown_key() -> None:
    payload = {"query": "q", "answer": "a", "model": "m", "latency_ms": 1, "user_hash": "jane.doe@example.com"}
    row = by_column(*event_row(event(kind="answer", payload=payload))[:2])
    assert row["user_hash"] is None


def test_params_are_kept_as_json_text_that_reads_back_the_same() -> None:
    params = {"a": {"b": [1, None, 0.1 + 0.2, 2**53, "é\n\"'\\"]}, "": {}}
    example = next(example for example in examples("events") if example.name.startswith("retrieval"))
    document = orjson.loads(example.document_bytes)
    document["payload"]["params"] = params
    row = by_column(*event_row(orjson.dumps(document))[:2])
    assert orjson.loads(row["params"]) == params


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "entry: not JSON"),
        (b"{", "entry: not JSON"),
        (b"\xff", "entry: not JSON"),
        (b"[1]", "entry: not a JSON object"),
        (b"{}", "kind: missing"),
        (event(kind="vision"), "kind: has no table in this version"),
        (event(kind=[]), "payload: does not have the shape of its kind"),
        (event(policy=...), "policy: missing"),
        (event(payload={}), "target_event_id: missing"),
        (event(payload="hunter2"), "payload: does not have the shape of its kind"),
        (event(payload=None), "payload: does not have the shape of its kind"),
        (event(kind="answer", payload={"contexts": ["hunter2"]}), "query: missing"),
    ],
)
def test_an_entry_that_is_no_row_names_the_field_and_never_a_value(data: bytes, message: str) -> None:
    with pytest.raises(RowError) as raised:
        event_row(data)
    assert str(raised.value) == message


def test_an_alert_that_is_no_row_names_the_field() -> None:
    with pytest.raises(RowError, match=r"^alert_id: missing$"):
        alert_row(b"{}")


def test_a_failure_that_is_no_row_names_the_field() -> None:
    with pytest.raises(RowError, match=r"^failure_id: missing$"):
        failure_row(b"{}")
