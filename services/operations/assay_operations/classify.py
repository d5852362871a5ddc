"""Classify the columns of a database by sensitivity and category of personal data.

Names, types and a sample of values count. Nothing of the sample is kept or returned.
"""

import json
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_scrubber.columns import Classification

_INTEGER = ("int", "serial")


@dataclass(frozen=True)
class Column:
    """A column with its type and sampled values; `table` has the database or schema in front of it."""

    table: str
    name: str
    type: str = ""
    values: tuple[Any, ...] = ()

    @property
    def key(self) -> str:
        """Return the name by which overrides call it."""
        return f"{self.table}.{self.name}"


@dataclass(frozen=True)
class Classified:
    """A column with its classification; `source`: `override`, or `name and values`."""

    column: Column
    classification: "Classification"
    source: str

    def row(self) -> dict[str, Any]:
        """Return what is shown of it."""
        found = self.classification
        return {
            "table": self.column.table,
            "column": self.column.name,
            "type": self.column.type,
            "sensitivity": found.sensitivity.name.lower(),
            "categories": sorted(map(str, found.categories)),
            "source": self.source,
        }


def classify(columns: Iterable[Column], overrides: "Mapping[str, Classification]") -> Iterator[Classified]:
    """Classify columns. An override replaces what would be found. Pure."""
    from assay_scrubber.columns import classify_column

    for column in columns:
        if (given := overrides.get(column.key)) is not None:
            yield Classified(column, given, "override")
            continue
        # An empty table's integers are keys, like those of a full one.
        values = column.values or ((1,) if any(word in column.type.lower() for word in _INTEGER) else ())
        table = column.table.rpartition(".")[2]
        yield Classified(column, classify_column(column.name, values, table=table), "name and values")


def unknown_columns(overrides: Iterable[str], found: Iterable[Classified]) -> list[str]:
    """Return a note for each override whose column was not found, with the name that is nearest. Pure."""
    keys = {each.column.key for each in found}
    notes = []
    for name in overrides:
        if name not in keys:
            near = get_close_matches(name, keys, 1) or [key for key in sorted(keys) if key.endswith(f".{name}")][:1]
            notes.append(f"{name!r}{f' (perhaps {near[0]!r})' if near else ''}")
    return notes


def columns_of(source: str, rows: int) -> Iterator[Column]:
    """Yield the columns of a source, with up to `rows` values each.

    `sqlite:///file`, or `http(s)://[user[:password]@]host:port/database` of a ClickHouse server, or a file of rows as NDJSON. Raises
    `OperationError`.
    """
    parts = urlsplit(source)
    if parts.scheme == "sqlite":
        return _sqlite(Path(parts.path.removeprefix("/") if not parts.path.startswith("//") else parts.path[1:]), rows)
    if parts.scheme in ("http", "https"):
        return _clickhouse(source, rows)
    if "://" in source:
        raise OperationError(
            "invalid",
            f"{parts.scheme}:// is not supported; use sqlite:///file.db, http://user@host:8123/database of a ClickHouse server, "
            "or a file of rows as NDJSON",
        )
    return _ndjson(Path(source), rows)


def read_overrides(file: Path) -> "dict[str, Classification]":
    """Read overrides: `["database.table.column"]` with `sensitivity` or `categories`.

    Raises `OperationError`.
    """
    from assay_scrubber.columns import Classification, Sensitivity
    from assay_scrubber.taxonomy import Category

    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperationError("invalid", f"{file} cannot be read: {error.strerror or type(error).__name__}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OperationError("invalid", f"{file}: not TOML: {error}") from None
    found: dict[str, Classification] = {}
    for key, value in given.items():
        where = f"{file}: [{key!r}]"
        if not isinstance(value, dict) or not value.keys() <= {"sensitivity", "categories"} or not value:
            raise OperationError("invalid", f'{where}: give it sensitivity = "internal" or categories = ["contact"]')
        try:
            categories = frozenset(Category(name) for name in value.get("categories", ()))
            level = value.get("sensitivity", "pii" if categories else "public")
            found[key] = Classification(Sensitivity[level.upper()], categories)
        except (KeyError, ValueError, AttributeError, TypeError):
            raise OperationError(
                "invalid",
                f"{where}: sensitivity is one of {', '.join(level.name.lower() for level in Sensitivity)}, pii with at least one of "
                f"the categories {', '.join(sorted(Category))}",
            ) from None
    return found


def _sqlite(file: Path, rows: int) -> Iterator[Column]:
    if not file.is_file():
        raise OperationError(
            "not_found", f"{file}: no such file; an absolute path has four slashes: sqlite:////var/shop.db"
        )
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as database:
            tables = database.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            ).fetchall()
            for (table,) in tables:
                quoted = table.replace('"', '""')
                described = database.execute(f'PRAGMA table_info("{quoted}")').fetchall()
                sample = database.execute(f'SELECT * FROM "{quoted}" LIMIT {int(rows)}').fetchall()  # noqa: S608 - quoted
                for place, (_, name, kind, *_rest) in enumerate(described):
                    yield Column(table, name, kind, tuple(row[place] for row in sample))
    except sqlite3.Error as error:
        raise OperationError("invalid", f"{file}: not a readable SQLite database ({type(error).__name__})") from None


def _clickhouse(url: str, rows: int) -> Iterator[Column]:
    import clickhouse_connect
    from clickhouse_connect.driver.exceptions import ClickHouseError

    parts = urlsplit(url)
    try:
        port = parts.port or 8123
    except ValueError:  # its message quotes the address, which can contain a password
        raise OperationError(
            "invalid", "the address has no valid port; write special characters of a password as %XX"
        ) from None
    database = parts.path.strip("/") or "default"
    shown = f"{parts.scheme}://{parts.hostname}:{port}"
    try:
        with closing(
            clickhouse_connect.get_client(
                host=parts.hostname, port=port, secure=parts.scheme == "https", username=unquote(parts.username or "default"),
                password=unquote(parts.password or ""), autogenerate_session_id=False, connect_timeout=10,
            )
        ) as client:  # fmt: skip
            described = client.query(
                "SELECT table, name, type FROM system.columns WHERE database = {database:String} ORDER BY table, position",
                parameters={"database": database},
            ).result_rows
            tables: dict[str, list[tuple[str, str]]] = {}
            for table, name, kind in described:
                tables.setdefault(table, []).append((name, kind))
            if not tables:
                raise OperationError(
                    "not_found", f"{shown}: no tables in the database {database} that this user may read"
                )
            for table, columns in tables.items():
                sample = client.query(f"SELECT * FROM {_name(database)}.{_name(table)} LIMIT {int(rows)}")  # noqa: S608 - quoted
                for name, kind in columns:
                    place = sample.column_names.index(name) if name in sample.column_names else None
                    values = () if place is None else tuple(row[place] for row in sample.result_rows)
                    yield Column(f"{database}.{table}", name, kind, values)
    except ClickHouseError as error:
        raise OperationError(
            "unavailable", f"{shown}: {type(error).__name__}; check the address, user and password"
        ) from None


def _name(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _ndjson(file: Path, rows: int) -> Iterator[Column]:
    names: dict[str, list[Any]] = {}
    try:
        with file.open(encoding="utf-8") as opened:
            for number, line in zip(range(1, rows + 1), opened, strict=False):
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise OperationError("invalid", f"{file}: line {number}: not a JSON object")
                for name, value in row.items():
                    names.setdefault(name, []).append(value)
    except OSError as error:
        raise OperationError("invalid", f"{file} cannot be read: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise OperationError(
            "invalid", f"{file}: not rows as NDJSON: line {number + 1 if names else 1} is not JSON"
        ) from None
    for name, values in names.items():
        yield Column(file.stem, name, "", tuple(values))
