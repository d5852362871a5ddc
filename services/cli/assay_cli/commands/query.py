"""`assay query`: query the store, by name or in SQL."""

import csv
import io
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.tables import print_table, text_of
from assay_cli.output.terminal import data_output, echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.export.lines import BrokenAnswerError, Lines
from assay_operations.query import Reader, known_queries, names_a_format, reader, resolve
from assay_schema.printable import no_formula

#: Parameters that say how far back a query looks, with the value that the note on an empty answer proposes: a year.
_BACK = {"hours": "8760", "days": "365"}


class Format(StrEnum):
    """Output format of a query."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def query(
    question: Annotated[
        str | None, typer.Argument(metavar="NAME|SQL", help="Named query, SQL, or - for SQL from stdin.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the named queries and their parameters.")] = False,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter, {NAME:Type} in SQL; repeatable.")
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", help="Print a table, one JSON object per line, or CSV with a header.")
    ] = Format.TABLE,
    keep_formulas: Annotated[
        bool,
        typer.Option("--keep-formulas", help="CSV: do not escape text that a spreadsheet would run as a formula."),
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Query the store, read-only. Without an argument, list the named queries."""
    with ends_quietly():
        if list_names or question is None:
            _list()
            return
        sql, values = resolve(sys.stdin.read() if question == "-" else question, param or [])
        if names_a_format(sql):
            raise CommandError("leave FORMAT out; use --format table|json|csv")
        with reader(data) as store:
            if not _answer(store, sql, values, output, keep_formulas) and (note := nothing(question, values)):
                echo(note, err=True)


def _list() -> None:
    for named in known_queries():
        echo(f"{named.name}\n    {named.summary}")
        for parameter in named.parameters:
            echo(f"    --param {parameter.name}={parameter.default or repr('')}  {parameter.meaning}")


def nothing(question: str, values: dict[str, str]) -> str:
    """Return the note for a named query without rows: how to look further back. Pure."""
    named = next((each for each in known_queries() if each.name == question.strip()), None)
    back = next((name for name in _BACK if named and name in named.defaults), "")
    if not back or values[back] in ("0", _BACK[back]):
        return ""
    return f"no rows in the last {values[back]} {back}; look further back: --param {back}={_BACK[back]}"


def _answer(store: Reader, sql: str, values: dict[str, str], output: Format, keep_formulas: bool) -> bool:
    """Print the answer. Returns False if a table has no rows."""
    try:
        if output is Format.JSON:
            out = data_output()
            for piece in Lines("{").through(store.blocks(sql, values, "JSONEachRow")):
                out.write(piece)
            out.flush()
            return True
        rows = store.rows(sql, values)
        names = [str(name) for name in next(rows, [])]
        if output is Format.CSV:
            _csv(names, rows, keep_formulas)
        elif names:
            first = next(rows, None)
            print_table(names, rows if first is None else chain([first], rows))
            return first is not None
    except BrokenAnswerError as error:
        raise CommandError(f"store: {error}") from None
    return True


def _csv(names: list[str], rows: Iterator[list[Any]], keep_formulas: bool) -> None:
    shown = (lambda text: text) if keep_formulas else no_formula
    out = io.TextIOWrapper(data_output(), encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(out)
        writer.writerow(map(shown, names))
        for row in rows:
            writer.writerow([shown(value) if isinstance(value, str) else text_of(value, "") for value in row])
        out.flush()
    finally:
        out.detach()
