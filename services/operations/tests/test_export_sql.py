"""The SQL of an export, and which rows it is about."""

import pytest

from assay_operations.export.plan import Chunk
from assay_operations.export.run import Window, window
from assay_operations.export.sql import LINE_START, SOURCES, Selection, counts, line, lines, literal
from assay_operations.time_bounds import Bound
from assay_schema.export import RetrievalRow
from assay_schema.fields import Kind
from assay_schema.limits import SAFE_INTEGER_MAX

SEED_FIELDS = [
    "schema_version", "id", "tool_name", "query", "retrieved_slugs", "retrieved_chunk_ids", "source_ids", "expand_enabled", "detail",
    "detail_resolved", "vector_enabled", "expansion_applied", "latency_ms", "remote", "job_id", "subagent_id", "created_at",
]  # fmt: skip


def test_the_seventeen_fields_come_first_and_in_their_order() -> None:
    sql = line(RetrievalRow)
    places = [sql.index(f'"{name}":') for name in SEED_FIELDS]
    assert places == sorted(places)
    assert all(sql.index(f'"{name}":') > places[-1] for name in list(RetrievalRow.model_fields)[17:])
    assert list(RetrievalRow.model_fields)[:17] == SEED_FIELDS


@pytest.mark.parametrize("kind", list(SOURCES))
def test_every_field_of_the_model_is_in_the_line_and_the_version_is_first(kind: Kind) -> None:
    sql = line(SOURCES[kind].row)
    assert sql.startswith(f"concat('{LINE_START}\"id\":'")
    assert all(f'"{name}":' in sql for name in SOURCES[kind].row.model_fields)


@pytest.mark.parametrize(
    ("text", "sql"),
    [("plain", "'plain'"), ("o'neil", r"'o\'neil'"), ("back\\slash", r"'back\\slash'"), ("\\' OR 1", r"'\\\' OR 1'")],
)
def test_names_that_people_type_are_quoted(text: str, sql: str) -> None:
    assert literal(text) == sql


def test_a_selection_is_half_open_and_quotes_its_project() -> None:
    assert Selection(Kind.RETRIEVAL, 7, 9, "query", "it's").conditions() == [
        "id > 7", "id <= 9", "tool_name = 'query'", r"project = 'it\'s'",
    ]  # fmt: skip


def test_lines_are_asked_for_newest_first_and_found_by_the_time_of_their_events() -> None:
    chunk = Chunk(created=(1_000, 2_000), ids=(5, 8), events=(900, 1_900), rows=3)
    sql = lines("assay", Selection(Kind.ANSWER, 1, 10), chunk, 2)
    assert sql.endswith("ORDER BY created_at DESC, id DESC LIMIT 2 FORMAT TSVRaw")
    assert "event_time BETWEEN fromUnixTimestamp64Milli(900, 'UTC') AND fromUnixTimestamp64Milli(1900, 'UTC')" in sql
    assert "FROM assay.answers WHERE" in sql


def test_counting_the_whole_selection_is_one_row_and_cutting_a_chunk_one_row_a_slice() -> None:
    chunk = Chunk(created=(1_000, 9_999), ids=(5, 8), events=(900, 1_900), rows=3)
    selection = Selection(Kind.FEEDBACK, 1, 10)
    assert "GROUP BY" not in counts("assay", selection)
    assert "intDiv(toUnixTimestamp64Milli(created_at) - 1000, 9)" in counts("assay", selection, chunk, "created")
    assert "intDiv(id - 5, 1)" in counts("assay", selection, chunk, "ids")


def cursor(place: int) -> Bound:
    return Bound(place, is_cursor=True)


def moment(place: int) -> Bound:
    return Bound(place, is_cursor=False)


@pytest.mark.parametrize(
    ("since", "until", "watermark", "expected"),
    [
        (None, None, 100, Window(-1, 100, 100)),
        (None, None, 0, Window(-1, 0, 0)),
        (cursor(40), None, 100, Window(40, 100, 100)),
        (cursor(40), cursor(70), 100, Window(40, 70, 70)),
        (None, moment(70), 100, Window(-1, 70, 70)),
        (cursor(40), moment(400), 100, Window(40, 100, 100)),
        # A cursor never goes back, even if the store was restored from an older backup.
        (cursor(120), None, 100, Window(120, 100, 120)),
        (cursor(40), cursor(30), 100, Window(40, 30, 40)),
        # What arrived before a time may be stored later: it is for the next window, which starts at the watermark.
        (moment(120), None, 100, Window(120, 100, 100)),
        (moment(40), None, 100, Window(40, 100, 100)),
    ],
)
def test_a_window_ends_at_the_watermark_and_the_next_one_starts_there(
    since: Bound | None, until: Bound | None, watermark: int, expected: Window
) -> None:
    assert window(since, until, watermark) == expected


def test_a_window_without_edges_is_everything_up_to_the_watermark() -> None:
    assert window(None, None, SAFE_INTEGER_MAX) == Window(-1, SAFE_INTEGER_MAX, SAFE_INTEGER_MAX)
