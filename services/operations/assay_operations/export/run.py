"""Export captured events as lines of JSON, newest first."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from assay_operations.errors import OperationError
from assay_operations.export.cursor_file import read_cursor
from assay_operations.export.lines import BrokenAnswerError, Lines
from assay_operations.export.plan import Axis, Chunk, Pace, chunks
from assay_operations.export.sql import LINE_START, Selection, chunk_from, counts, lines
from assay_operations.progress import Counts
from assay_operations.time_bounds import Bound, bound
from assay_schema.fields import Kind
from assay_schema.limits import SAFE_INTEGER_MAX

if TYPE_CHECKING:
    from assay_runtime.store import Client


_BLOCK_BYTES = 256 * 1024
#: Settings for engines that let this user choose: do not escape `/`.
_WISHES = {"output_format_json_escape_forward_slashes": 0}
_AGAIN = "the export is not complete; run it again"


class Exported(StrEnum):
    """Kinds of event that can be exported."""

    RETRIEVAL = "retrieval"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    TOOL_CALL = "tool_call"
    SERVER_EVENT = "server_event"
    SESSION = "session"


class Tool(StrEnum):
    """Retrieval operations."""

    QUERY = "query"
    SEARCH = "search"


@dataclass(frozen=True)
class Window:
    """The rows with `after < id <= upto`; `cursor` is the start of the next window."""

    after: int
    upto: int
    cursor: int


def window(since: Bound | None, until: Bound | None, watermark: int) -> Window:
    """Return the window between two edges, bounded by the watermark, below which all rows are stored.

    Pure.

    A cursor never moves back. A time is not a guarantee: events that arrived before it might not be stored yet, so the next window
    starts at the watermark even if that is below `since`.
    """
    after = since.place if since else -1
    upto = min(until.place if until else SAFE_INTEGER_MAX, watermark)
    return Window(after, upto, max(upto, after if since and since.is_cursor else 0))


@dataclass(frozen=True)
class Request:
    """The validated options of an export."""

    since: Bound | None
    until: Bound | None
    limit: int | None
    tool: str | None
    kind: Kind
    project: str | None

    @classmethod
    def checked(
        cls,
        since: str | None,
        until: str | None,
        limit: int | None,
        tool: str | None,
        kind: str,
        project: str | None,
        cursor_file: Path | None,
    ) -> "Request":
        """Validate the options of an export. Raises `OperationError` naming the option."""
        if limit is not None and limit < 1:
            raise OperationError("invalid", f"--limit: {limit} is below 1")
        _one_of("--tool", tool, Tool)
        _one_of("--kind", kind, Exported)
        if tool is not None and kind != Exported.RETRIEVAL:
            raise OperationError(
                "invalid", f"--tool: rows of kind {kind} have no tool; omit it, or use --kind retrieval"
            )
        now_ms = time.time_ns() // 1_000_000
        lower = bound(since, now_ms, "--since") if since is not None else None
        upper = bound(until, now_ms, "--until") if until is not None else None
        kept = read_cursor(cursor_file) if cursor_file else None
        if kept is not None:
            lower = Bound(kept, is_cursor=True)
        elif lower and upper and upper.place < lower.place:
            raise OperationError("invalid", f"--until {until} is before --since {since}")
        return cls(lower, upper, limit, tool, Kind(kind), project)


def _one_of(option: str, value: str | None, choices: type[StrEnum]) -> None:
    if value is not None and value not in list(choices):
        raise OperationError("invalid", f"{option}: {value!r} is not one of {', '.join(choices)}")


def stored_watermark(client: "Client", database: str) -> int:
    """Return the watermark in the store; 0 if there is none."""
    rows = client.query(f"SELECT watermark FROM {database}.watermark").result_rows  # noqa: S608 - a checked setting
    return int(rows[0][0]) if rows else 0


def export(
    client: "Client", database: str, selection: Selection, limit: int | None, out: BinaryIO, seen: Counts
) -> None:
    """Write the selected rows.

    Raises `OperationError` if the store's answer breaks off, `BrokenPipeError` if the reader has left.
    """
    pace = Pace()

    def cut(chunk: Chunk, axis: Axis) -> list[Chunk]:
        rows = client.query(counts(database, selection, chunk, axis)).result_rows
        return [chunk_from(row, chunk, axis) for row in rows]

    whole = chunk_from(client.query(counts(database, selection)).result_rows[0])
    left = whole.rows if limit is None else min(limit, whole.rows)
    seen.total = left
    for chunk in chunks(whole, cut, pace):
        through = Lines(LINE_START)
        wanted = min(chunk.rows, left)
        try:
            for piece in through.through(_blocks(client, lines(database, selection, chunk, wanted))):
                out.write(piece)
                seen.rows += piece.count(b"\n")
        except BrokenAnswerError as error:
            raise OperationError("unavailable", f"store: {error}; {_AGAIN}") from None
        if through.rows != wanted and through.rows != min(_count(client, database, selection, chunk), left):
            raise OperationError("unavailable", f"store: received {through.rows} of {wanted} rows; {_AGAIN}")
        pace.learn(through.rows, through.size)
        left -= through.rows
        if not left:
            break


def _count(client: "Client", database: str, selection: Selection, chunk: Chunk) -> int:
    """Count the rows of a chunk: retention or `prune` may have deleted some since it was planned."""
    return int(client.query(counts(database, selection, chunk)).result_rows[0][-1])


def _blocks(client: "Client", query: str) -> Iterator[bytes]:
    from urllib3.exceptions import HTTPError

    settings = {name: value for name, value in _WISHES.items() if _may_set(client, name)}
    answer: Any = client.raw_stream(query, settings=settings)
    try:
        yield from answer.stream(_BLOCK_BYTES)
    except HTTPError as error:
        raise BrokenAnswerError(f"the connection broke off ({type(error).__name__})") from None
    finally:
        answer.close()


def _may_set(client: "Client", name: str) -> bool:
    setting = client.server_settings.get(name)
    return setting is not None and setting.readonly != 1
