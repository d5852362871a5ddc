"""Batch the entries of one delivery by table, and find the rows that make an insert fail. Pure.

An entry that is not a row, or that the store rejects, never blocks the others of its batch.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from assay_runtime.entries import Entry
from assay_writer.rows import Row, RowError


@dataclass(frozen=True)
class Poison:
    """An entry that is not a row: its stream id, its bytes, and the violated rule (never a value)."""

    entry_id: str
    data: bytes
    rule: str


@dataclass(frozen=True)
class Batch:
    """Rows of one table, in the order of their entries."""

    table: str
    entry_ids: tuple[str, ...]
    rows: tuple[bytes, ...]
    identities: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def payload(self) -> bytes:
        """Return the rows, one JSON array per line."""
        return b"\n".join(self.rows) + b"\n"

    def split(self) -> tuple["Batch", "Batch"]:
        """Split the batch into halves."""
        middle = len(self.rows) // 2
        return self._part(slice(None, middle)), self._part(slice(middle, None))

    def _part(self, part: slice) -> "Batch":
        return Batch(self.table, self.entry_ids[part], self.rows[part], self.identities[part])


def batches(entries: Iterable[Entry], to_row: Callable[[bytes], Row]) -> tuple[list[Batch], list[Poison]]:
    """Sort entries into one batch per table, and those that are not rows."""
    tables: dict[str, tuple[list[str], list[bytes], list[str]]] = {}
    poison = []
    for entry_id, data, _ in entries:
        try:
            table, row, identity = to_row(data)
        except RowError as error:
            poison.append(Poison(entry_id, data, str(error)))
            continue
        if table not in tables:
            tables[table] = ([], [], [])
        entry_ids, rows, identities = tables[table]
        entry_ids.append(entry_id)
        rows.append(row)
        identities.append(identity)
    return [
        Batch(table, tuple(entry_ids), tuple(rows), tuple(identities))
        for table, (entry_ids, rows, identities) in tables.items()
    ], poison


def bisection(batch: Batch) -> Generator[Batch, Exception | None, list[tuple[Batch, Exception]]]:
    """Find the rows that the store rejects, by bisection.

    Yields a batch to insert; send back None if it was written, or the error if it was rejected. Returns the rejected
    rows as batches of one, with their errors. One bad row among n costs 2 log2(n) further inserts. Only for errors that
    blame the rows: raise any other error out of the loop, and have the whole batch redelivered later. Rows written
    before that do no harm.
    """
    todo, refused = [batch], []
    while todo:
        part = todo.pop()
        error = yield part
        if error is None:
            continue
        if len(part) == 1:
            refused.append((part, error))
        else:
            first, second = part.split()
            todo += [second, first]
    return refused


def insert_isolating(
    batch: Batch, insert: Callable[[Batch], None], blames_rows: Callable[[Exception], bool]
) -> list[tuple[Batch, Exception]]:
    """Insert all rows that the store accepts and return the rejected ones (see `bisection`).

    An error that blames no row is raised unchanged.
    """
    search = bisection(batch)
    part = next(search)
    while True:
        error: Exception | None = None
        try:
            insert(part)
        except Exception as raised:
            if not blames_rows(raised):
                raise
            error = raised
        try:
            part = search.send(error)
        except StopIteration as end:
            refused: list[tuple[Batch, Exception]] = end.value
            return refused
