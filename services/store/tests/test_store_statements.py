"""Where an INSERT's rows begin, however its text arrives."""

import pytest

from assay_store.statements import Insert, NeedMore, Statement, recognise, tokens

INSERTS = [
    (b"INSERT INTO t FORMAT Native\n\x01\x00rows", b"INSERT INTO t ", "Native", b"\x01\x00rows"),
    (b"insert into t (a, b) format JSONEachRow {}", b"insert into t (a, b) ", "JSONEachRow", b"{}"),
    (b"INSERT INTO t FORMAT CSV\r\n\n1", b"INSERT INTO t ", "CSV", b"\n1"),
    (b"INSERT INTO t VALUES (1, 'FORMAT CSV')", b"INSERT INTO t ", "Values", b" (1, 'FORMAT CSV')"),
    (b"/* FORMAT x */ INSERT INTO `for mat` -- VALUES\n(a) VALUES(1)", None, "Values", b"(1)"),
    (b"INSERT INTO db.format VALUES (1)", b"INSERT INTO db.format ", "Values", b" (1)"),
    (
        b"INSERT INTO t SETTINGS async_insert = 0 FORMAT TSV\n1",
        b"INSERT INTO t SETTINGS async_insert = 0 ",
        "TSV",
        b"1",
    ),
    (b'INSERT INTO t (`values`, "format") FORMAT CSV\n1,2', b'INSERT INTO t (`values`, "format") ', "CSV", b"1,2"),
    (
        b"INSERT INTO FUNCTION null('FORMAT CSV') FORMAT TSV\n1",
        b"INSERT INTO FUNCTION null('FORMAT CSV') ",
        "TSV",
        b"1",
    ),
]


@pytest.mark.parametrize(("text", "head", "name", "rows"), INSERTS)
def test_an_insert_is_split_before_its_rows(text: bytes, head: bytes | None, name: str, rows: bytes) -> None:
    found = recognise(text, complete=True)
    assert isinstance(found, Insert)
    assert (found.format, text[found.data_at :]) == (name, rows)
    assert head is None or found.head == head


@pytest.mark.parametrize("text", [text for text, *_ in INSERTS])
def test_an_insert_that_arrives_in_pieces_is_split_at_the_same_place(text: bytes) -> None:
    whole = recognise(text, complete=True)
    for end in range(1, len(text)):
        found = recognise(text[:end], complete=False)
        assert isinstance(found, NeedMore) or found == whole, text[:end]


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        (b"select 1", "SELECT"),
        (b"  -- INSERT\n WITH a AS (SELECT 1) SELECT * FROM a", "WITH"),
        (b"(SELECT 1)", ""),
        (b"", ""),
        (b"INSERT INTO t SELECT * FROM u FORMAT CSV", "INSERT SELECT"),
        (b"INSERT INTO t (a) WITH x AS (SELECT 1) SELECT * FROM x", "INSERT SELECT"),
        (b"INSERT INTO t (a) (SELECT 1)", "INSERT SELECT"),
        (b"INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV", "INSERT SELECT"),
    ],
)
def test_any_other_statement_is_known_by_its_first_keyword(text: bytes, keyword: str) -> None:
    assert recognise(text, complete=True) == Statement(keyword)


def test_a_word_that_may_still_become_insert_waits_for_more() -> None:
    assert recognise(b"ins", complete=False) == NeedMore()
    assert recognise(b"-- a comment\n", complete=False) == NeedMore()


def test_the_format_values_is_a_format_too() -> None:
    found = recognise(b"INSERT INTO t FORMAT Values (1)", complete=True)
    assert isinstance(found, Insert)
    assert (found.head, found.format) == (b"INSERT INTO t ", "Values")


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (b"WITH 1 AS x INSERT INTO t FORMAT TSV\nc;\n", b"WITH 1 AS x INSERT INTO t "),
        (b"with x as (insert into y select 1) insert into t(a) format TSV\nc;\n", None),
        (b"WITH 'INSERT INTO a FORMAT TSV' AS insert INSERT INTO t FORMAT TSV\nc;\n", None),
    ],
)
def test_with_may_stand_before_an_insert(text: bytes, head: bytes | None) -> None:
    found = recognise(text, complete=True)
    assert isinstance(found, Insert)
    assert (found.format, text[found.data_at :]) == ("TSV", b"c;\n")
    assert head is None or found.head == head
    for end in range(len(text) - 3):
        early = recognise(text[:end], complete=False)
        assert isinstance(early, NeedMore) or early == found


@pytest.mark.parametrize(
    "text",
    [
        b"WITH 1 AS insert SELECT insert INTO OUTFILE 'x'",
        b"WITH x AS (SELECT 1) SELECT * FROM x",
        b"WITH 1 AS x",
        b"WITH",
    ],
)
def test_with_is_a_query_otherwise(text: bytes) -> None:
    assert recognise(text, complete=True) == Statement("WITH")


@pytest.mark.parametrize(
    "head",
    [
        "INSERT INTO t SETTINGS log_comment=‘ SELECT ’ ".encode(),
        "INSERT INTO t (“values”) ".encode(),
        b"INSERT INTO t SETTINGS log_comment=$a$ SELECT $a$ ",
        b"INSERT INTO t SETTINGS log_comment='it''s SELECT \\' SELECT ' ",
        b"INSERT INTO a$b$ ",
    ],
)
def test_quotations_of_every_kind_are_not_looked_into(head: bytes) -> None:
    assert recognise(head + b"VALUES (1)", complete=True) == Insert(head, "Values", len(head) + 6)


@pytest.mark.parametrize("opening", [b"/* ", b"$a$", b"$$", b"'", b"`", b'"', "‘".encode(), "“".encode(), b"-", b"/"])
def test_an_opening_without_its_end_costs_no_more_than_its_length(opening: bytes) -> None:
    """Each opening once made the lexer look through the rest of the text."""
    text = b"INSERT INTO t " + opening * (1 << 18)
    assert sum(1 for _ in tokens(text)) <= len(text)
    assert recognise(text, complete=False) == NeedMore()
