"""How an export is cut into chunks."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from assay_operations.export.plan import CHUNK_BYTES, ROWS_MAX, Axis, Chunk, Pace, chunks

Row = tuple[int, int]  # created_at in milliseconds, id


def bounds(rows: list[Row], whole_milliseconds: bool) -> Chunk:
    created, ids = [row[0] for row in rows], [row[1] for row in rows]
    return Chunk(
        created=(min(created), max(created)),
        ids=(min(ids), max(ids)),
        events=(min(created), max(created)),
        rows=len(rows),
        whole_milliseconds=whole_milliseconds,
    )


class Table:
    """What the store answers, over rows in a list."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = sorted(rows, reverse=True)
        self.cuts = 0

    def read(self, chunk: Chunk) -> list[Row]:
        return [
            row
            for row in self.rows
            if chunk.created[0] <= row[0] <= chunk.created[1] and chunk.ids[0] <= row[1] <= chunk.ids[1]
        ]

    def cut(self, chunk: Chunk, axis: Axis) -> list[Chunk]:
        self.cuts += 1
        width, place = chunk.slice_width(axis), 0 if axis == "created" else 1
        low = (chunk.created if axis == "created" else chunk.ids)[0]
        slices: dict[int, list[Row]] = {}
        for row in self.read(chunk):
            slices.setdefault((row[place] - low) // width, []).append(row)
        return [bounds(slices[n], axis == "created" and chunk.whole_milliseconds) for n in sorted(slices, reverse=True)]


def export(table: Table, pace: Pace) -> tuple[list[Row], list[Chunk]]:
    if not table.rows:
        return [], []
    read, plan = [], []
    for chunk in chunks(bounds(table.rows, True), table.cut, pace):
        rows = table.read(chunk)
        assert len(rows) == chunk.rows, "a chunk's bounds hold the rows that were counted, no others"
        read += rows
        plan.append(chunk)
    return read, plan


def paced(rows: int) -> Pace:
    pace = Pace()
    pace.rows = rows
    return pace


# Ids mostly follow time, but an overflowing entry's may be ahead of later arrivals, and one millisecond may hold very many.
def table_rows() -> st.SearchStrategy[list[Row]]:
    times = st.one_of(st.integers(0, 20), st.integers(0, 10_000_000))
    rows = st.builds(lambda ms, place: (ms, ms * 10 + place), times, st.integers(0, 40))
    return st.lists(rows, max_size=120, unique_by=lambda row: row[1])


@given(rows=table_rows(), target=st.integers(1, 50))
def test_chunks_hold_every_row_once_and_newest_first(rows: list[Row], target: int) -> None:
    read, _ = export(Table(rows), paced(target))
    assert read == sorted(rows, reverse=True)


@given(rows=table_rows(), target=st.integers(1, 50))
def test_no_chunk_holds_more_rows_than_asked_for(rows: list[Row], target: int) -> None:
    _, plan = export(Table(rows), paced(target))
    assert all(chunk.rows <= target for chunk in plan)


def test_small_neighbours_are_read_together() -> None:
    table = Table([(ms * 1_000, ms) for ms in range(1_000)])
    _, plan = export(table, paced(100))
    assert len(plan) == 10
    assert table.cuts == 1


def test_a_burst_is_counted_again_in_finer_slices_and_a_single_millisecond_by_id() -> None:
    table = Table([(3_600_000 * hour, hour) for hour in range(100)] + [(50, 1_000 + n) for n in range(5_000)])
    read, plan = export(table, paced(500))
    assert read == sorted(table.rows, reverse=True)
    assert max(chunk.rows for chunk in plan) <= 500
    assert bisect_left([10, 20], table.cuts) == 0, f"{table.cuts} queries to find the chunks of 5,100 rows"


def test_nothing_to_export_asks_for_no_chunk() -> None:
    assert list(chunks(Chunk((0, 0), (0, 0), (0, 0), 0), Table([]).cut, Pace())) == []


def test_the_pace_aims_at_a_chunk_of_so_many_bytes_speeds_up_by_steps_and_slows_down_at_once() -> None:
    pace = paced(1_000)
    pace.learn(1_000, 1_000 * 1_024)
    assert pace.rows == 4_000
    pace.learn(4_000, 4_000 * 2_048)
    assert pace.rows == CHUNK_BYTES // 2_048
    pace.learn(1_000, 1_000 * 1_024 * 1_024)
    assert pace.rows == CHUNK_BYTES // (1_024 * 1_024)
    pace.learn(2, 100 * CHUNK_BYTES)
    assert pace.rows == 1
    for _ in range(20):
        pace.learn(10, 100)
    assert pace.rows == ROWS_MAX
    pace.learn(0, 0)
    assert pace.rows == ROWS_MAX
