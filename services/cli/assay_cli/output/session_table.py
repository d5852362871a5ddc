"""The list of sessions on a terminal: the columns that there is room for, and the title in the rest."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from assay_schema.printable import printable

#: On a narrow terminal the last of these are left out first.
_COLUMNS = (
    "session_id", "title", "last_at", "status", "source", "turns", "tools", "tool_errors", "cost_usd", "complete", "faithfulness",
    "positive", "negative", "project",
)  # fmt: skip
#: They are shown only if one of the sessions has another value.
_USUAL: dict[str, tuple[Any, ...]] = {
    "complete": (True,),
    "cost_usd": (None,),
    "faithfulness": (None,),
    "positive": (0,),
    "negative": (0,),
    "tool_errors": (0,),
}
#: Between two columns, the least for a title, and the shortest beginning of an id that `assay sessions show` is given.
_GAP = 3
_TITLE_MIN = 24
_ID_MIN = 8
#: The title that OpenCode gives a session before its model has named it.
_PLACEHOLDER = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")


def fitted(rows: Sequence[dict[str, Any]], columns: int) -> list[dict[str, Any]]:
    """Return the rows for a table of at most this many terminal columns. Pure.

    A session without a title has its first prompt there. If there is no room, ids are cut to the shortest beginnings that are
    different, then columns are left out, and titles are cut with an ellipsis.
    """
    from rich.cells import cell_len

    shown = [_row(row) for row in rows]
    names = [name for name in _COLUMNS if name in shown[0] and _says_something(name, rows)]

    def width(name: str) -> int:
        return max(cell_len(name), *(cell_len(str("" if row[name] is None else row[name])) for row in shown))

    def room() -> int:
        return columns - sum(width(name) + _GAP for name in names if name != "title")

    title = min(_TITLE_MIN, width("title"))
    if room() < title:
        size = _unique([row["session_id"] for row in shown])
        shown = [row | {"session_id": row["session_id"][:size]} for row in shown]
    while room() < title and len(names) > 2:
        names.pop()
    left = max(room(), title)
    return [{name: _cut(row[name], left) if name == "title" else row[name] for name in names} for row in shown]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    title, prompt = row["title"] or "", row["first_prompt"]
    last = row["last_at"]
    return row | {
        "title": " ".join(printable(prompt if prompt and (not title or _PLACEHOLDER.match(title)) else title).split()),
        "last_at": f"{last:%Y-%m-%d %H:%M}" if isinstance(last, datetime) else last,
    }


def _says_something(name: str, rows: Sequence[dict[str, Any]]) -> bool:
    values = {row[name] for row in rows}
    return len(values) > 1 if name == "project" else not values <= set(_USUAL.get(name, ()))


def _unique(names: Sequence[str]) -> int:
    """Return the least number of characters by which different names differ."""
    longest = max(map(len, names))
    different = len(set(names))
    return next(
        (size for size in range(_ID_MIN, longest) if len({name[:size] for name in names}) == different), longest
    )


def _cut(text: str, columns: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"
