"""The read API against its OpenAPI document: whatever is asked, every answer has a status and a form that it lists."""

from typing import Any

import pytest

from tests.console.conftest import Shop
from tests.security.openapi_client import DocumentedClient, operations

#: The live tail never ends; tests/console/test_console_live.py reads it.
OPERATIONS = [each for each in operations("console") if not each.definition.raw["operationId"].endswith("_stream")]
READS = [each for each in OPERATIONS if each.method == "get"]
SEED = 20261127


@pytest.fixture
def client(shop: Shop) -> DocumentedClient:
    session = {**shop.console.session("OPERATOR"), "Sec-Fetch-Site": "same-origin"}
    return DocumentedClient(f"{shop.console.url}/api/v1", lambda _: session)


def known(shop: Shop, operation: Any) -> Any:
    """Return a request for rows that are stored."""
    rows = shop.rows
    places = {
        "event_id": rows.answer, "alert_id": rows.alert, "session_id": rows.session, "name": rows.dataset,
        "run_id": rows.runs[0], "case_id": rows.case, "row": "0",
    }  # fmt: skip
    asked = {"project": rows.project, "base": rows.runs[0], "change": rows.runs[1], "t": "30d", "event": rows.retrieval}
    taken = {each.name for each in operation.query}
    path = {each.name: places[each.name] for each in operation.path_parameters}
    query = {name: value for name, value in asked.items() if name in taken}
    if operation.path == "/sql/export":
        query["q"] = "SELECT 1 AS one"
    return operation.Case(path_parameters=path, query=query)


@pytest.mark.parametrize("operation", READS, ids=lambda each: each.label)
def test_a_document_with_rows_has_the_form_that_is_listed(shop: Shop, client: DocumentedClient, operation: Any) -> None:
    assert client.send(known(shop, operation)) == []
    # Without the credentials of an operator, what would be requeued is not known: the document says how to find out.
    assert client.answers == {f"{operation.label} 200": 1}


@pytest.mark.slow
def test_every_answer_is_one_that_the_openapi_document_lists(shop: Shop, client: DocumentedClient) -> None:
    assert client.send_all(OPERATIONS, examples=4, seed=SEED) == []
    assert {name.rpartition(" ")[0] for name in client.answers} == {each.label for each in OPERATIONS}
    statuses = {name.rpartition(" ")[2] for name in client.answers}
    assert {"200", "404", "422"} <= statuses <= {"200", "403", "404", "409", "422"}
    assert shop.console.metric("assay_memory_peak_bytes") < shop.console.metric("assay_memory_bound_bytes")
    assert "a page failed" not in shop.console.log()
    assert "Traceback" not in shop.console.log()
