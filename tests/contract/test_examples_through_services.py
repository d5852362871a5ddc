"""Every published example goes through the services that meet it: what is valid is stored, what is not is refused by its rule."""

import pytest

from assay_operations.export.sql import SOURCES
from assay_runtime.entries import Entry, Outcome
from assay_schema.failures import Reason
from assay_schema.ids import row_id
from assay_schema.published import Example, examples
from assay_schema.validation import parse_event, parse_failure, parse_scrubbed
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.process import Processor
from assay_writer.rows import alert_row, event_row, failure_row
from tests.support.sample_rows import by_column

ENTRY_ID = "1795300000000-7"


def name_of(example: Example) -> str:
    return example.name


def scrub(document: bytes) -> Outcome:
    [outcome] = Processor(Scrubber(Policy())).process(iter([Entry(ENTRY_ID, document)]))
    return outcome


@pytest.mark.parametrize("example", examples("capture"), ids=name_of)
def test_a_valid_event_is_scrubbed_and_becomes_the_row_of_its_table(example: Example) -> None:
    outcome = scrub(example.document_bytes)
    assert outcome.event is not None, outcome.failure
    published = b'{"id":%d,' % (row_id(ENTRY_ID) or 0) + outcome.event[1:]  # as the script that forwards it does
    event = parse_scrubbed(published)
    assert event.event_id == parse_event(example.document_bytes).event_id
    table, row, identity = event_row(published)
    assert table == SOURCES[event.kind].view
    assert by_column(table, row)["id"] == row_id(ENTRY_ID)
    assert identity == f"{row_id(ENTRY_ID)}:{event.event_id}"


@pytest.mark.parametrize("example", examples("capture", valid=False), ids=name_of)
def test_an_invalid_event_is_refused_by_the_rule_it_breaks_and_its_failure_is_a_row(example: Example) -> None:
    outcome = scrub(example.document_bytes)
    assert outcome.event is None
    assert outcome.failure is not None
    assert outcome.failure.reason is Reason.CHECK_VIOLATION
    assert outcome.failure.error_class == example.breaks
    document = outcome.failure.model_dump_json().encode()
    assert parse_failure(document) == outcome.failure
    assert failure_row(document)[0] == "capture_failures"


@pytest.mark.parametrize("example", examples("events"), ids=name_of)
def test_every_scrubbed_example_becomes_a_row(example: Example) -> None:
    assert by_column(*event_row(example.document_bytes)[:2])["schema_version"] == 1


@pytest.mark.parametrize("example", examples("failures"), ids=name_of)
def test_every_failure_example_becomes_a_row(example: Example) -> None:
    assert by_column(*failure_row(example.document_bytes)[:2])["schema_version"] == 1


@pytest.mark.parametrize("example", examples("alerts"), ids=name_of)
def test_every_alert_example_becomes_a_row(example: Example) -> None:
    assert by_column(*alert_row(example.document_bytes)[:2])["schema_version"] == 1
