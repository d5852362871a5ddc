"""Every published example of a stored event goes through the writer's rows into the real tables and comes back exactly."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.alerts import OPEN_STATES, Alert
from assay_schema.failures import Failure
from assay_schema.published import Example, examples
from assay_schema.scores import Score
from assay_schema.validation import parse_scrubbed
from assay_writer.rows import COLUMNS, Row, alert_row, event_row, failure_row, score_row
from tests.support.sample_rows import JSON_COLUMNS, ROW_OF
from tests.support.store import StoreServer

FORMAT = {"output_format_json_quote_64bit_integers": 0, "date_time_output_format": "iso"}


@pytest.fixture(scope="module")
def client(migrated: StoreServer) -> Iterator[Client]:
    settings = migrated.settings(days=36_500)  # the examples' times are fixed
    migrate(settings)
    with connect(settings.store) as client:
        yield client


def insert(client: Client, row: Row) -> str:
    """As the writer does; returns the table."""
    table, values, _ = row
    insert_json_rows(client, f"assay_base.{table}", values, 1, COLUMNS[table])
    return table


@pytest.mark.parametrize("example", examples("events"), ids=lambda example: example.name)
def test_an_event_comes_back_exactly(client: Client, example: Example) -> None:
    for name in ROW_OF:
        client.command(f"TRUNCATE TABLE assay_base.{name}")
    document = orjson.loads(example.document_bytes)
    if (
        document["id"] == 0
    ):  # the least id came on the log's first day; its event's own time is later, which a table refuses
        document["created_at"] = "2026-01-02T03:04:05.700Z"
    table = insert(client, event_row(orjson.dumps(document)))
    columns = ", ".join(ROW_OF[table].model_fields)
    text = client.raw_query(f"SELECT {columns} FROM {table}", settings=FORMAT, fmt="JSONEachRow")
    stored = orjson.loads(text)
    for name in JSON_COLUMNS & stored.keys():
        stored[name] = orjson.loads(stored[name] or "null")
    exported = ROW_OF[table].model_validate_json(orjson.dumps(stored))
    event = parse_scrubbed(orjson.dumps(document))
    for name in ROW_OF[table].model_fields:
        source: Any = event.payload if name in type(event.payload).model_fields else event
        expected = source.created if name == "updated" and source.updated is None else getattr(source, name)
        assert getattr(exported, name) == expected, name


@pytest.mark.parametrize("example", examples("failures"), ids=lambda example: example.name)
def test_a_failure_comes_back_exactly(client: Client, example: Example) -> None:
    client.command("TRUNCATE TABLE assay_base.capture_failures")
    insert(client, failure_row(example.document_bytes))
    columns = ", ".join(Failure.model_fields)
    text = client.raw_query(f"SELECT {columns} FROM capture_failures", settings=FORMAT, fmt="JSONEachRow")
    assert Failure.model_validate_json(text) == Failure.model_validate_json(example.document_bytes)


@pytest.mark.parametrize("example", examples("scores"), ids=lambda example: example.name)
def test_a_score_comes_back_exactly(client: Client, example: Example) -> None:
    client.command("TRUNCATE TABLE assay_base.scores")
    insert(client, score_row(example.document_bytes))
    columns = ", ".join(name for name in Score.model_fields if name not in ("traceparent", "origin"))  # the answer's
    text = client.raw_query(f"SELECT {columns} FROM scores", settings=FORMAT, fmt="JSONEachRow")
    assert Score.model_validate_json(text) == Score.model_validate_json(example.document_bytes)


def test_a_later_judgement_of_an_answer_replaces_the_earlier_one_and_spend_is_counted_once(client: Client) -> None:
    client.command("TRUNCATE TABLE assay_base.scores")
    by_name = {example.name: orjson.loads(example.document_bytes) for example in examples("scores")}
    later = by_name["full"] | {"judged_at": "2026-01-02T03:04:10Z"}
    for document in (by_name["skipped-budget"], later, by_name["skipped-budget"]):
        insert(client, score_row(orjson.dumps(document)))
    assert client.query("SELECT status FROM scores").result_rows == [("scored",)]
    spend = client.query("SELECT toString(day), judged, skipped_budget, cost_usd FROM judge_spend").result_rows
    assert [tuple(row) for row in spend] == [("2026-01-02", 1, 0, 0.00087)]


@pytest.mark.parametrize("example", examples("alerts"), ids=lambda example: example.name)
def test_an_alert_comes_back_exactly_and_its_episode_is_open_unless_it_is_resolved(
    client: Client, example: Example
) -> None:
    client.command("TRUNCATE TABLE assay_base.alerts")
    for _ in range(2):  # a redelivered transition
        insert(client, alert_row(example.document_bytes))
    columns = ", ".join(f"`{name}`" for name in Alert.model_fields)
    stored = orjson.loads(client.raw_query(f"SELECT {columns} FROM alerts", settings=FORMAT, fmt="JSONEachRow"))
    stored["interval"] = stored["interval"] or None
    alert = Alert.model_validate_json(example.document_bytes)
    assert Alert.model_validate_json(orjson.dumps(stored)) == alert
    assert client.query("SELECT count() FROM open_episodes").result_rows == [(int(alert.state in OPEN_STATES),)]
