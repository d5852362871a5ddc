"""Answer SQL that a person writes, bounded in rows, bytes and time; list readable columns."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.clients import STARTS_OR_STOPS, engine_message
from assay_operations.errors import OperationError
from assay_operations.export.lines import BrokenAnswerError, Lines
from assay_operations.query import names_a_format

if TYPE_CHECKING:
    from assay_runtime.store import Client

ROWS_MAX, BYTES_MAX, BUDGET_S = 1_000, 8 << 20, 5
#: Rows and bytes of a file.
FILE_ROWS_MAX, FILE_BYTES_MAX = 50_000, 16 << 20
_BLOCK_BYTES = 64 * 1024
_FORMAT = "JSONCompactEachRowWithNamesAndTypes"
#: `{name:Type}`
_PARAMETER = re.compile(r"\{\s*(\w+)\s*:([^{}]*)\}")
#: Types whose values the engine reads as literals; it reads all others as tab-separated text, with escapes.
_LITERALS = ("Array", "Tuple", "Map")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_END = "; \t\r\n"
_CODE = re.compile(r"Code: (\d+)\.")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]{3,})\)")
_PLACE = re.compile(r"position (\d+)(?: \(.*?\))?(?: \(line (\d+), col (\d+)\))?", re.DOTALL)
_COLUMNS = """SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase() ORDER BY table, position"""


@dataclass(frozen=True)
class SqlAnswer:
    """Rows of an answer as text, and what it cost. `more`: there are more rows than are returned."""

    columns: tuple[tuple[str, str], ...]
    #: None is NULL.
    rows: tuple[tuple[str | None, ...], ...]
    more: bool
    elapsed_ms: float
    #: None if the store does not say.
    rows_read: int | None


@dataclass(frozen=True)
class SqlRows:
    """Rows of an answer for a file, each value as JSON. `more`: there are more rows than are returned."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[list[Any], ...]
    more: bool


@dataclass(frozen=True)
class SqlError:
    """The engine's refusal: code, name, message, and the place in the SQL (from 1), if it has one."""

    code: int
    name: str
    message: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class View:
    """A view with its columns: name, type, comment."""

    name: str
    columns: tuple[tuple[str, str, str], ...]


def sql_answer(client: "Client", sql: str, values: Mapping[str, str]) -> SqlAnswer | SqlError:
    """Return the answer to SQL, or the engine's error. Raises `OperationError` if the store is away.

    At most `ROWS_MAX` rows and `BYTES_MAX` bytes, within `BUDGET_S`; the rights are those of the client's user, without
    those to write. `values` are values of parameters as text, an array's in the engine's form: `['a','b']`. Those that the
    SQL does not name are left out.
    """
    if names_a_format(sql):
        raise OperationError("invalid", "leave out FORMAT: the page shows a table; `assay query --json` writes others")
    started = time.perf_counter()
    found = _lines(client, sql, values, ROWS_MAX, BYTES_MAX)
    if isinstance(found, SqlError):
        return found
    lines, more, summary = found
    elapsed_ms = (time.perf_counter() - started) * 1_000
    if len(lines) < 2:  # a statement without an answer
        return SqlAnswer((), (), False, elapsed_ms, None)
    names, types, *rows = lines
    return SqlAnswer(
        tuple(zip(map(str, names), map(str, types), strict=True)),
        tuple(tuple(None if each is None else _text(each) for each in row) for row in rows),
        more,
        elapsed_ms,
        int(summary["read_rows"]) if "read_rows" in summary else None,
    )


def sql_rows(client: "Client", sql: str, values: Mapping[str, str]) -> SqlRows | SqlError:
    """Return the rows of an answer for a file: at most `FILE_ROWS_MAX` and `FILE_BYTES_MAX`."""
    if names_a_format(sql):
        raise OperationError("invalid", "leave out FORMAT: choose the form of the file instead")
    found = _lines(client, sql, values, FILE_ROWS_MAX, FILE_BYTES_MAX)
    if isinstance(found, SqlError):
        return found
    lines, more, _ = found
    if len(lines) < 2:
        return SqlRows((), (), False)
    names, types, *rows = lines
    return SqlRows(tuple(zip(map(str, names), map(str, types), strict=True)), tuple(rows), more)


def _lines(
    client: "Client", sql: str, values: Mapping[str, str], rows_max: int, bytes_max: int
) -> tuple[list[list[Any]], bool, dict[str, Any]] | SqlError:
    """Return the first lines of an answer, if there are more, and the store's summary."""
    from clickhouse_connect.driver.exceptions import ClickHouseError

    try:
        stream = _reading(client, sql, values)
        try:
            lines, more = _first_lines(stream, rows_max, bytes_max)
            return lines, more, orjson.loads(stream.headers.get("X-ClickHouse-Summary") or "{}")
        finally:
            stream.close()  # before the end, this cancels the query
    except ClickHouseError as error:
        code = getattr(error, "code", None)
        if code == STARTS_OR_STOPS or (code is None and not _CODE.search(str(error))):
            raise  # the store is away: `store_errors` says how
        return error_of(str(error), sql, code)
    except BrokenAnswerError as error:
        if not _CODE.search(str(error)):
            raise OperationError("unavailable", "the connection to the store broke off") from None
        return error_of(str(error), sql, None)


def _reading(client: "Client", sql: str, values: Mapping[str, str]) -> Any:
    """Return the stream of the answer to a GET request: the store refuses all that writes in one, with every user's rights.

    The driver makes no GET requests of SQL. A setting `readonly` would do on a server, but the embedded store refuses it.
    """
    types = {name: type_.strip() for name, type_ in _PARAMETER.findall(sql)}
    given = {
        f"param_{name}": values[name] if type_.startswith(_LITERALS) else values[name].translate(_ESCAPES)
        for name, type_ in types.items()
        if name in values
    }
    asked = {"query": f"{sql.rstrip(_END)}\n FORMAT {_FORMAT}", "max_execution_time": str(BUDGET_S)}
    asked["priority"] = "2"  # a person's own query waits for rows that are written and pages that are read
    if client.database:
        asked["database"] = client.database
    return client._raw_request(  # type: ignore[attr-defined]  # noqa: SLF001
        b"", given | asked, method="GET", retries=client.query_retries, stream=True, server_wait=False
    )


def _first_lines(stream: Any, rows_max: int, bytes_max: int) -> tuple[list[list[Any]], bool]:
    """Return the first lines of an answer, and if there are more."""
    found: list[list[Any]] = []
    size = 0
    for piece in Lines("[").through(_blocks(stream)):
        for line in piece.splitlines():
            size += len(line)
            if len(found) == rows_max + 2 or (size > bytes_max and len(found) > 2):
                return found, True
            found.append(orjson.loads(line))
    return found, False


def _blocks(stream: Any) -> Iterator[bytes]:
    from urllib3.exceptions import HTTPError

    try:
        yield from stream.stream(_BLOCK_BYTES)
    except HTTPError as error:
        raise OperationError("unavailable", f"the connection to the store broke off ({type(error).__name__})") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def error_of(text: str, sql: str, code: int | None) -> SqlError:
    """Return the engine's error of a text, with its code. Pure."""
    found = _CODE.search(text)
    names, place = _NAME.findall(text), _PLACE.search(text)
    line = column = None
    if place:
        before = sql[: max(0, int(place[1]) - 1)]
        line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return SqlError(
        int(found[1]) if found else int(code or 0),
        names[-1] if names else "",
        engine_message(text).replace(f" FORMAT {_FORMAT}", ""),
        line,
        column,
    )


def schema(client: "Client") -> tuple[View, ...]:
    """Return the views that a client can read, with their columns."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for table, name, type_, comment in client.query(_COLUMNS).result_rows:
        found.setdefault(table, []).append((name, type_, comment))
    return tuple(View(name, tuple(columns)) for name, columns in found.items())
