"""Results of SQL as a file or a chart. Pure."""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import orjson

from assay_console.page import Document
from assay_operations.sql import SqlAnswer, SqlRows
from assay_ui.charts import Series

#: Rows that are formatted at a time.
_ROWS = 500
#: What a spreadsheet runs as a formula.
_FORMULA = re.compile(r"[\s\x00]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_TIME = re.compile(r"(Nullable\(|LowCardinality\()*Date(32|Time(64)?)?\b")
#: Values that are all smaller are not drawn: an axis has no ticks for them.
_LEAST_DRAWN = 1e-300
_NUMBER = re.compile(r"(Nullable\()*(U?Int|Float|Decimal)\d*\b")


class Chart(Document):
    """Values over time: the first column is a time, the second a number from 0."""

    name: str
    starts_ms: tuple[float, ...]
    values: tuple[float, ...]
    width_ms: float

    @property
    def series(self) -> Series:
        """The values, to draw."""
        return Series(self.name, "retrieval", self.values)


def ndjson(found: SqlRows) -> Iterator[bytes]:
    """Yield one JSON object a line. Of columns with the same name the last one counts."""
    names = [name for name, _ in found.columns]
    for at in range(0, len(found.rows), _ROWS):
        lines = (dict(zip(names, row, strict=True)) for row in found.rows[at : at + _ROWS])
        yield b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def csv_lines(found: SqlRows) -> Iterator[bytes]:
    """Yield a table as CSV (RFC 4180).

    A text that a spreadsheet would run as a formula begins with an apostrophe; NULL is empty.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_cell(name) for name, _ in found.columns])
    for at in range(0, len(found.rows), _ROWS):
        writer.writerows([_cell(value) for value in row] for row in found.rows[at : at + _ROWS])
        yield out.getvalue().encode()
        out.seek(0)
        out.truncate()
    yield out.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    return f"'{value}" if _FORMULA.match(value) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    """Return if a text is a plain number, and not a formula."""
    return re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text, re.ASCII) is not None


def chart_of(found: SqlAnswer) -> Chart | None:
    """Return a chart of an answer whose columns are a time and a number; None if it has others."""
    if len(found.columns) != 2 or len(found.rows) < 2:
        return None
    (_, time), (name, number) = found.columns
    if not (_TIME.match(time) and _NUMBER.match(number)):
        return None
    try:
        points = sorted(_points(found.rows))
    except ValueError:  # a time or a number that Python does not read
        return None
    starts, values = [at for at, _ in points], [value for _, value in points]
    if len(set(starts)) < 2 or len(set(starts)) < len(starts):
        return None
    if min(values) < 0 or max(values) < _LEAST_DRAWN:
        return None
    width = min(after - before for before, after in pairwise(starts))
    return Chart(name=name, starts_ms=tuple(starts), values=tuple(values), width_ms=width)


def _points(rows: Sequence[Sequence[str | None]]) -> Iterator[tuple[float, float]]:
    for at, value in rows:
        if at is None or value is None:
            continue
        amount = float(value)
        if math.isfinite(amount):
            moment = datetime.fromisoformat(at)
            yield (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000, amount
