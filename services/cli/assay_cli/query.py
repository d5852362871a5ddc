"""`assay query`: questions to the store, by name or in SQL."""

import csv
import io
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.terminal import data_output, echo, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.export.lines import BrokenAnswerError, Lines
from assay_operations.query import blocks, names_a_format, resolve, rows_of

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Rows a table shows: for a person at a terminal, and elsewhere, where all of them have to be in memory to align the columns.
_ROWS_TERMINAL = 100
_ROWS_TABLE = 10_000
#: Decimals of a float in a table, or significant digits below 1; JSON and CSV have them all.
_FLOAT_DIGITS = 6
#: What a cell begins with that a spreadsheet takes for a formula, as it is or after it has trimmed it; full-width forms too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


class Format(StrEnum):
    """How answers are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def query(
    question: Annotated[
        str | None, typer.Argument(metavar="NAME|SQL", help="A named query, SQL, or - for SQL from stdin.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="Show the named queries and their parameters.")] = False,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A parameter, {NAME:Type} in SQL; may be repeated.")
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="A table, one JSON object a line, or CSV with names.")
    ] = Format.TABLE,
    keep_formulas: Annotated[
        bool,
        typer.Option("--keep-formulas", help="CSV: leave text that a spreadsheet would run as a formula as it is."),
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Ask the store, reading only. Without a question: show the named ones."""
    with ends_quietly():
        if list_names or question is None:
            _list()
            return
        sql, values = resolve(sys.stdin.read() if question == "-" else question, param or [])
        if names_a_format(sql):
            raise CommandError("leave FORMAT out; use --format table|json|csv")
        settings = settings_for("sre", data).store
        with open_store(settings) as client:
            _answer(client, sql, values, output, keep_formulas)


def _list() -> None:
    from assay_runtime.queries import named_queries

    for named in named_queries().values():
        echo(f"{named.name}\n    {named.summary}")
        for each in named.parameters:
            echo(f"    --param {each.name}={each.default or repr('')}  {each.meaning}")


def _answer(client: "Client", sql: str, values: dict[str, str], output: Format, keep_formulas: bool) -> None:
    try:
        if output is Format.JSON:
            out = data_output()
            for piece in Lines("{").through(blocks(client, sql, values, "JSONEachRow")):
                out.write(piece)
            out.flush()
            return
        rows = rows_of(client, sql, values)
        names = [str(name) for name in next(rows, [])]
        if output is Format.CSV:
            _csv(names, rows, keep_formulas)
        elif names:
            print_table(names, rows)
    except BrokenAnswerError as error:
        raise CommandError(f"store: {error}") from None


def _text(value: Any, null: str) -> str:
    if value is None:
        return null
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _cell(value: Any, null: str = "null") -> str:
    """A value in a table, which is for people: a float without the digits that only a machine needs. Pure."""
    if isinstance(value, float):
        value = round(value, _FLOAT_DIGITS) if abs(value) >= 1 else float(f"{value:.{_FLOAT_DIGITS}g}")
    return _text(value, null)


def no_formula(text: str) -> str:
    """Text that a spreadsheet shows instead of running it: with a `'` before what begins a formula. Numbers stay. Pure."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _csv(names: list[str], rows: Iterator[list[Any]], keep_formulas: bool) -> None:
    shown = (lambda text: text) if keep_formulas else no_formula
    out = io.TextIOWrapper(data_output(), encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(out)
        writer.writerow(map(shown, names))
        for row in rows:
            writer.writerow([shown(value) if isinstance(value, str) else _text(value, "") for value in row])
        out.flush()
    finally:
        out.detach()


def print_table(names: list[str], rows: Iterator[list[Any]], null: str = "null") -> None:
    """Rows as a table: as wide as the terminal, and as wide as it takes elsewhere."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from assay_local.console import Console

    terminal = sys.stdout.isatty()
    most = _ROWS_TERMINAL if terminal else _ROWS_TABLE
    shown = list(islice(rows, most))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(names):
        numbers = bool(shown) and all(isinstance(row[place], int | float) or row[place] is None for row in shown)
        table.add_column(Text(printable(name)), justify="right" if numbers else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(printable(_cell(value, null))) for value in row))
    Console(width=None if terminal else 10_000).print(table)
    if next(rows, None) is not None:
        echo(f"only the first {most:,} rows are shown; --format csv or --format json prints all", err=True)
