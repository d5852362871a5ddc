"""Rows of a query: a table if it fits the terminal, else one value per line."""

import shutil
import sys
from typing import Any

import orjson

from assay_cli.output.terminal import echo, emit, printable


def show_rows(rows: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    """Print rows as JSON lines or as a table; print `nothing` to stderr if there are none."""
    if as_json:
        for row in rows:
            emit(orjson.dumps(row, default=str).decode())
        return
    if not rows:
        echo(nothing, err=True)
        return
    from assay_cli.output.tables import print_table

    if sys.stdout.isatty() and width(rows) > shutil.get_terminal_size().columns:
        echo(stacked(rows))
        return
    print_table(list(rows[0]), ([_plain(value) for value in row.values()] for row in rows), null="")


def width(rows: list[dict[str, Any]]) -> int:
    """Return the number of terminal columns that the rows need as a table. Pure."""
    return sum(3 + max(len(str(value)) for value in (name, *(row[name] for row in rows))) for name in rows[0]) - 3


def stacked(rows: list[dict[str, Any]]) -> str:
    """Format rows with one value per line, for a terminal that is too narrow for their table. Pure."""
    longest = max(map(len, rows[0]))
    return "\n\n".join(
        "\n".join(f"{name:{longest}}  {printable('' if value is None else str(value))}" for name, value in row.items())
        for row in rows
    )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else str(value)
