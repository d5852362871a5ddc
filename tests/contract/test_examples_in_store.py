"""Every published example of a stored event goes through the writer's rows into the real tables and comes back exactly."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from assay_runtime.migrate import migrate
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.export import AnswerRow, FeedbackRow, RetrievalRow
from assay_schema.failures import Failure
from assay_schema.published import Example, examples
from assay_schema.validation import parse_scrubbed
from assay_writer.rows import event_row, failure_row
from tests.store_server import StoreServer

pytestmark = pytest.mark.xdist_group("store")

MODELS: dict[str, Any] = {"candidates": RetrievalRow, "answers": AnswerRow, "feedback": FeedbackRow}
FORMAT = {"output_format_json_quote_64bit_integers": 0, "date_time_output_format": "iso"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with StoreServer(tmp_path_factory.mktemp("store")) as server:
        settings = server.settings(days=36_500)  # the examples' times are fixed
        migrate(settings)
        with connect(settings.store) as client:
            yield client


@pytest.mark.parametrize("example", examples("events"), ids=lambda example: example.name)
def test_an_event_comes_back_exactly(client: Client, example: Example) -> None:
    client.command("TRUNCATE TABLE assay_base.candidates")
    client.command("TRUNCATE TABLE assay_base.answers")
    client.command("TRUNCATE TABLE assay_base.feedback")
    document = orjson.loads(example.document_bytes)
    if (
        document["id"] == 0
    ):  # the least id came on the log's first day; its event's own time is later, which a table refuses
        document["created_at"] = "2026-01-02T03:04:05.700Z"
    table, row, _ = event_row(orjson.dumps(document))
    insert_json_rows(client, f"assay_base.{table}", row, 1)
    columns = ", ".join(MODELS[table].model_fields)
    text = client.raw_query(f"SELECT {columns} FROM {table}", settings=FORMAT, fmt="JSONEachRow")
    stored = orjson.loads(text)
    if "params" in stored:
        stored["params"] = orjson.loads(stored["params"])
    exported = MODELS[table].model_validate_json(orjson.dumps(stored))
    event = parse_scrubbed(orjson.dumps(document))
    for name in MODELS[table].model_fields:
        source = event.payload if name in type(event.payload).model_fields else event
        assert getattr(exported, name) == getattr(source, name), name


@pytest.mark.parametrize("example", examples("failures"), ids=lambda example: example.name)
def test_a_failure_comes_back_exactly(client: Client, example: Example) -> None:
    client.command("TRUNCATE TABLE assay_base.capture_failures")
    insert_json_rows(client, "assay_base.capture_failures", failure_row(example.document_bytes)[1], 1)
    columns = ", ".join(Failure.model_fields)
    text = client.raw_query(f"SELECT {columns} FROM capture_failures", settings=FORMAT, fmt="JSONEachRow")
    assert Failure.model_validate_json(text) == Failure.model_validate_json(example.document_bytes)
