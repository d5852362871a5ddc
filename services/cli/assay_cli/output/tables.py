"""Format rows as a table."""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

from assay_cli.output.terminal import echo, printable

#: Maximum rows of a table: on a terminal, and elsewhere, where all rows have to be in memory to align the columns.
_ROWS_TERMINAL = 100
_ROWS_TABLE = 10_000
#: Decimals of a float in a table, or significant digits below 1; JSON and CSV have them all.
_FLOAT_DIGITS = 6


def text_of(value: Any, null: str) -> str:
    """Return a value as text: text unchanged, anything else as JSON."""
    if value is None:
        return null
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def cell(value: Any, null: str = "null") -> str:
    """Return a value for a table cell: floats are rounded for people. Pure."""
    if isinstance(value, float):
        value = round(value, _FLOAT_DIGITS) if abs(value) >= 1 else float(f"{value:.{_FLOAT_DIGITS}g}")
    return text_of(value, null)


def print_table(names: list[str], rows: Iterator[list[Any]], null: str = "null") -> None:
    """Print rows as a table: as wide as the terminal, or as wide as needed without one."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from assay_local.console import Console

    terminal = sys.stdout.isatty()
    most = _ROWS_TERMINAL if terminal else _ROWS_TABLE
    shown = list(islice(rows, most))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column, name in enumerate(names):
        numbers = bool(shown) and all(isinstance(row[column], int | float) or row[column] is None for row in shown)
        table.add_column(Text(printable(name)), justify="right" if numbers else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(printable(cell(value, null))) for value in row))
    Console(width=None if terminal else 10_000).print(table)
    if next(rows, None) is not None:
        echo(f"only the first {most:,} rows are shown; --format csv or --format json prints all", err=True)
