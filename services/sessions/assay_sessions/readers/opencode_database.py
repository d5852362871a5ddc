"""OpenCode's SQLite database: messages with parts, session messages, or both."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from assay_sessions.readers.loose_json import DamagedError, load_object, text, whole
from assay_sessions.readers.opencode_session import Info, info_of_row, of_parts, of_rows
from assay_sessions.readers.reader import Problems
from assay_sessions.readers.sqlite import failure, has_lost_log, opened, rows, tables
from assay_sessions.record import Json, Transcript

#: Where a session's messages can be, best first: the newer copy of a migrated session is continued, the older one frozen.
RANKS = {"session_v2": 5, "session_message": 4, "message_part": 3}
EMPTY_RANK = 1


def listed(path: Path, problems: Problems) -> dict[str, int]:
    """Return the ids of a database's sessions, and how good a source it is for each."""
    ranks: dict[str, int] = {}
    try:
        with opened(path) as connection:
            present = tables(connection)
            sessions = present & {"session", "session_v2"}
            if not sessions:
                is_empty = not path.stat().st_size
                problems.add(
                    "missing_wal" if has_lost_log(path) else "empty_file" if is_empty else "unknown_schema", path.name
                )
                return {}
            for table in sorted(sessions):
                _rank(ranks, _ids(connection, f"SELECT id FROM {table}", path, problems), EMPTY_RANK)  # noqa: S608
            if "message" in present:
                _rank(
                    ranks,
                    _ids(connection, "SELECT DISTINCT session_id FROM message", path, problems),
                    RANKS["message_part"],
                )
            if "session_message" in present:
                spoken = set(_ids(connection, "SELECT DISTINCT session_id FROM session_message", path, problems))
                newer = (
                    set(_ids(connection, "SELECT id FROM session_v2", path, problems))
                    if "session_v2" in present
                    else set()
                )
                _rank(ranks, spoken - newer, RANKS["session_message"])
                _rank(ranks, spoken & newer, RANKS["session_v2"])
    except sqlite3.Error as error:
        problems.add(*failure(error, path.name))
    except OSError as error:
        problems.failed(path.name, error)
    return ranks


def read(path: Path, wanted: dict[str, int], since: datetime | None, problems: Problems) -> Iterator[Transcript]:
    """Yield the wanted sessions of a database, each with the rank that `listed` returned."""
    try:
        with opened(path) as connection:
            present = tables(connection)
            changed = None if since is None else _changed(connection, present, since)
            origins: dict[int, str] | None = None
            for session_id, rank in wanted.items():
                if changed is not None and session_id not in changed:
                    continue
                found = _in_one_state(connection, present, session_id, rank, problems, path.name)
                if found is None or (since is not None and found.updated < since):
                    continue
                if found.forked_from is None and found.extra.get("copied_messages"):
                    origins = _origins(connection) if origins is None else origins
                    found = _linked(connection, found, origins)
                yield found
    except sqlite3.Error as error:
        problems.add(*failure(error, path.name))
    except OSError as error:
        problems.failed(path.name, error)


def _in_one_state(
    connection: sqlite3.Connection, present: set[str], session_id: str, rank: int, problems: Problems, name: str
) -> Transcript | None:
    """Return a session as it was at one moment, or None if its rows are damaged."""
    try:
        connection.execute("BEGIN")
        return _session(connection, present, session_id, rank, problems, name)
    except sqlite3.Error as error:
        problems.add(*failure(error, name))
        return None
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _changed(connection: sqlite3.Connection, present: set[str], since: datetime) -> set[str]:
    """Return the ids of the sessions with a row that changed since."""
    columns = {
        "session": "id",
        "session_v2": "id",
        "message": "session_id",
        "part": "session_id",
        "session_message": "session_id",
    }
    since_ms = int(since.timestamp() * 1000)
    return {
        _decoded(found)
        for table, column in columns.items()
        if table in present
        for (found,) in connection.execute(
            f"SELECT DISTINCT {column} FROM {table} WHERE time_updated >= ?",  # noqa: S608
            (since_ms,),
        )
    }


def _origins(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the oldest session by the time of its first message."""
    query = (
        "SELECT session.id, min(message.time_created) FROM session JOIN message ON message.session_id = session.id "
        "GROUP BY session.id ORDER BY session.time_created DESC, session.id DESC"
    )
    return {first: _decoded(session_id) for session_id, first in connection.execute(query)}


def _linked(connection: sqlite3.Connection, found: Transcript, origins: dict[int, str]) -> Transcript:
    """Link a fork to the session that it copied: 1.x keeps the times of the messages, and no id."""
    query = "SELECT min(time_created) FROM message WHERE session_id = ?"
    (first,) = connection.execute(query, (found.session_id,)).fetchone()
    origin = origins.get(first)
    return found if origin in {None, found.session_id} else replace(found, forked_from=origin)


def _ids(connection: sqlite3.Connection, query: str, path: Path, problems: Problems) -> Iterator[str]:
    """Yield the ids of a query, as far as the file can be read."""
    try:
        for (found,) in connection.execute(query):
            if isinstance(found, bytes):
                yield found.decode("utf-8", "replace")
    except sqlite3.Error as error:
        problems.add(*failure(error, path.name))


def _rank(ranks: dict[str, int], ids: Any, rank: int) -> None:
    for session_id in ids:
        ranks[session_id] = max(rank, ranks.get(session_id, 0))


def _session(
    connection: sqlite3.Connection, present: set[str], session_id: str, rank: int, problems: Problems, name: str
) -> Transcript | None:
    info = _info(connection, present, session_id, rank)
    if rank in {RANKS["session_v2"], RANKS["session_message"]}:
        shape = "session_v2" if rank == RANKS["session_v2"] else "session_message"
        entries, changed = _entries(connection, session_id, problems, name)
        return of_rows(info, entries, changed, problems, name, shape)
    if "message" not in present:
        return of_parts(info, [], 0, problems, name, "message_part")
    messages, changed = _messages(connection, session_id, problems, name)
    return of_parts(info, messages, changed, problems, name, "message_part")


def _info(connection: sqlite3.Connection, present: set[str], session_id: str, rank: int) -> Info:
    """Return the row of a session, from the table that fits its messages; a session without a row has its id alone."""
    tables = ["session_v2", "session"] if rank == RANKS["session_v2"] else ["session", "session_v2"]
    for table in tables:
        if table in present:
            for row in rows(connection.execute(f"SELECT * FROM {table} WHERE id = ?", (session_id,))):  # noqa: S608
                return info_of_row(row)
    return info_of_row({"id": session_id})


def _entries(connection: sqlite3.Connection, session_id: str, problems: Problems, name: str) -> tuple[list[Json], int]:
    entries: list[Json] = []
    changed = 0
    query = "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq"
    for row in rows(connection.execute(query, (session_id,))):
        changed = max(changed, whole(row.get("time_updated")) or 0)
        data = _data(row, problems, name, "session_message")
        if data is not None:
            entries.append(data | {"id": _decoded(row.get("id")), "type": _decoded(row.get("type"))})
    return entries, changed


def _messages(
    connection: sqlite3.Connection, session_id: str, problems: Problems, name: str
) -> tuple[list[tuple[Json, list[Json]]], int]:
    parts: dict[str, list[Json]] = {}
    changed = 0
    for row in rows(connection.execute("SELECT * FROM part WHERE session_id = ? ORDER BY id", (session_id,))):
        changed = max(changed, whole(row.get("time_updated")) or 0)
        data = _data(row, problems, name, "part")
        if data is not None:
            parts.setdefault(_decoded(row.get("message_id")), []).append(data | {"id": _decoded(row.get("id"))})
    messages: list[tuple[Json, list[Json]]] = []
    query = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
    for row in rows(connection.execute(query, (session_id,))):
        changed = max(changed, whole(row.get("time_updated")) or 0)
        data = _data(row, problems, name, "message")
        if data is not None:
            message_id = _decoded(row.get("id"))
            messages.append((data | {"id": message_id}, parts.get(message_id, [])))
    return messages, changed


def _data(row: dict[str, Any], problems: Problems, name: str, table: str) -> Json | None:
    try:
        data = row.get("data")
        return load_object(data if isinstance(data, bytes | str) else b"")
    except DamagedError:
        problems.add("damaged", name, f"JSON in {table}")
        return None


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else text(value)
