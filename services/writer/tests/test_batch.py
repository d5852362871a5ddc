"""Batches, tokens, and the search for rows that a store refuses."""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_runtime.entries import Entry
from assay_writer.batch import Batch, batches, insert_isolating
from assay_writer.rows import Row, RowError


class RefusedError(Exception):
    """What a store says about a row."""


def to_row(data: bytes) -> Row:
    if data.startswith(b"poison"):
        raise RowError("entry: not JSON")
    table, _, rest = data.partition(b":")
    return table.decode(), b'["%s"]' % rest, rest.decode()


def batch(size: int) -> Batch:
    [made], _ = batches((Entry(f"{number}-0", b"t:%d" % number) for number in range(size)), to_row)
    return made


class Store:
    """Takes a batch whole or not at all, as a table with a constraint does."""

    def __init__(self, refuses: set[str]) -> None:
        self.refuses, self.stored, self.inserts = refuses, [], 0  # type: ignore[var-annotated]

    def insert(self, part: Batch) -> None:
        self.inserts += 1
        if self.refuses.intersection(part.identities):
            raise RefusedError
        self.stored += part.identities


def blames_rows(error: Exception) -> bool:
    return isinstance(error, RefusedError)


def test_entries_go_to_one_batch_per_table_in_their_order_and_poison_blocks_nobody() -> None:
    entries = [Entry("1-0", b"a:1"), Entry("2-0", b"poison"), Entry("3-0", b"b:2"), Entry("4-0", b"a:3")]
    [first, second], [poison] = batches(entries, to_row)
    assert (first.table, first.entry_ids, first.payload) == ("a", ("1-0", "4-0"), b'["1"]\n["3"]\n')
    assert (second.table, second.entry_ids, len(second)) == ("b", ("3-0",), 1)
    assert (poison.entry_id, poison.data, poison.rule) == ("2-0", b"poison", "entry: not JSON")


def test_no_entries_make_no_batch() -> None:
    assert batches([], to_row) == ([], [])


@given(size=st.integers(1, 200), refused=st.sets(st.integers(0, 199), max_size=5))
def test_exactly_the_refused_rows_are_isolated_and_all_others_are_stored_once(size: int, refused: set[int]) -> None:
    refused = {number for number in refused if number < size}
    store = Store({str(number) for number in refused})
    found = insert_isolating(batch(size), store.insert, blames_rows)
    assert [part.entry_ids for part, _ in found] == [(f"{number}-0",) for number in sorted(refused)]
    assert store.stored == [str(number) for number in range(size) if number not in refused]
    assert store.inserts <= 1 + 2 * len(refused) * max(1, ceil(log2(size)))


def test_a_batch_without_fault_is_one_insert() -> None:
    store = Store(set())
    assert insert_isolating(batch(1000), store.insert, blames_rows) == []
    assert store.inserts == 1


def test_an_error_that_blames_no_row_ends_the_search_and_is_raised() -> None:
    def insert(part: Batch) -> None:
        raise RefusedError if len(part) > 2 else ConnectionResetError

    with pytest.raises(ConnectionResetError):
        insert_isolating(batch(8), insert, blames_rows)
