"""The published examples and schemas agree with the models, and with each other."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from assay_schema.events import ServerEvent, ToolCall
from assay_schema.export import ROWS, AnswerRow, FeedbackRow, RetrievalRow, Row, ServerEventRow, ToolCallRow
from assay_schema.fields import Kind
from assay_schema.published import FORMATS, Example, examples, published_schema
from assay_schema.validation import (
    InvalidEvent,
    parse_alert,
    parse_event,
    parse_failure,
    parse_row,
    parse_score,
    parse_scrubbed,
)

PARSERS: dict[str, Callable[[bytes], Any]] = {
    "capture": parse_event,
    "events": parse_scrubbed,
    "failures": parse_failure,
    "scores": parse_score,
    "alerts": parse_alert,
    **{f"export-{kind}": partial(parse_row, kind) for kind in Kind},
}
NAMES = [each.name for each in FORMATS]

#: Rules of the parser or of values, which JSON Schema has no words for.
BEYOND_JSON_SCHEMA = {
    "invalid_json",
    "invalid_utf8",
    "lone_surrogate",
    "finite_number",
    "integer_too_large",
    "nested_too_deep",
    "year_out_of_range",
    "error_kind_without_error",
    "part_beyond_parts",
}


def documents(*, valid: bool) -> list[Any]:
    return [
        pytest.param(name, each, id=f"{name}/{each.name}") for name in NAMES for each in examples(name, valid=valid)
    ]


def has_words_for(example: Example) -> bool:
    """But for calendar dates, and for Python's `$`, which lets a last line break pass where ECMA's does not."""
    return example.breaks not in BEYOND_JSON_SCHEMA and not example.name.endswith(("-is-no-day", "-ends-in-a-newline"))


@pytest.mark.parametrize(("name", "example"), documents(valid=True))
def test_a_valid_example_is_read_by_its_model_and_fits_its_schema(name: str, example: Example) -> None:
    PARSERS[name](example.document_bytes)
    Draft202012Validator(published_schema(name)).validate(json.loads(example.document_bytes))


@pytest.mark.parametrize(("name", "example"), documents(valid=False))
def test_an_invalid_example_breaks_the_rule_it_is_named_for(name: str, example: Example) -> None:
    with pytest.raises(InvalidEvent) as refused:
        PARSERS[name](example.document_bytes)
    assert refused.value.rule == example.breaks


@pytest.mark.parametrize(
    ("name", "example"), [each for each in documents(valid=False) if has_words_for(each.values[1])]
)
def test_what_the_model_refuses_the_schema_refuses_too_as_far_as_it_has_words(name: str, example: Example) -> None:
    document = json.loads(example.document_bytes)
    assert not Draft202012Validator(published_schema(name)).is_valid(document)


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_document_survives_being_written_and_read_again(name: str) -> None:
    for example in examples(name):
        once = PARSERS[name](example.document_bytes)
        assert PARSERS[name](once.model_dump_json().encode()) == once, example.name


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_examples_of_both_sorts_with_names_of_their_own(name: str) -> None:
    for valid in (True, False):
        names = [each.name for each in examples(name, valid=valid)]
        assert names
        assert len(set(names)) == len(names)
    assert all(each.breaks is None for each in examples(name))
    assert all(each.breaks for each in examples(name, valid=False))


def test_every_kind_has_a_minimal_and_a_full_example() -> None:
    seen = {each.name: parse_event(each.document_bytes).kind for each in examples("capture")}
    for kind in Kind:
        for size in ("minimal", "full"):
            assert seen[f"{kind.value.replace('_', '-')}-{size}"] is kind


def test_examples_of_an_unknown_stream_are_refused_with_the_names_there_are() -> None:
    with pytest.raises(KeyError, match="no stream or export clicks; the available ones are capture, events"):
        examples("clicks")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_itself_valid_and_describes_every_field(name: str) -> None:
    schema = published_schema(name)
    Draft202012Validator.check_schema(schema)
    for model in [schema, *schema.get("$defs", {}).values()]:
        assert model.get("description")
        for field, definition in model.get("properties", {}).items():
            assert definition.get("description"), f"{model.get('title')}.{field}"


def test_the_first_seventeen_fields_of_a_retrieval_row_are_fixed_for_ever() -> None:
    fixed = ["schema_version", "id", "tool_name", "query", "retrieved_slugs", "retrieved_chunk_ids", "source_ids"]
    fixed += ["expand_enabled", "detail", "detail_resolved", "vector_enabled", "expansion_applied", "latency_ms"]
    fixed += ["remote", "job_id", "subagent_id", "created_at"]
    assert list(RetrievalRow.model_fields)[:17] == fixed
    assert list(json.loads(examples("export-retrieval")[0].document_bytes))[:17] == fixed


@pytest.mark.parametrize("row", ROWS.values())
def test_a_row_begins_with_its_version_and_leaves_no_field_out_but_those_that_joined_later(row: type[Row]) -> None:
    assert next(iter(row.model_fields)) == "schema_version"
    optional = {name for name, field in row.model_fields.items() if not field.is_required()}
    # joined later: lines of an earlier version are without
    joined = {"user_hash", "origin", "partial"} - ({"user_hash"} if row is FeedbackRow else set())
    if row in (RetrievalRow, AnswerRow, FeedbackRow):
        joined |= {"pii_attempted", "pii_blocked", "session_id"}
    if row is RetrievalRow:
        joined |= {"retrieved_ids", "passages"}
    assert optional == joined


@pytest.mark.parametrize("row", [ToolCallRow, ServerEventRow])
def test_the_eleven_fields_of_the_event_file_follow_the_id_in_its_order(row: type[Row]) -> None:
    eleven = ["timestamp", "server_session_id", "kind", "tool_name", "args_summary", "status", "error_kind"]
    eleven += ["duration_ms", "result_summary", "event_subtype", "message"]
    assert list(row.model_fields)[2:13] == eleven
    assert list(ToolCall.model_fields)[:11] == list(ServerEvent.model_fields)[:11] == eleven


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("export-")])
def test_an_example_of_an_export_is_one_line(name: str) -> None:
    for example in examples(name):
        assert example.document_bytes.endswith(b"}\n")
        assert example.document_bytes.count(b"\n") == 1
