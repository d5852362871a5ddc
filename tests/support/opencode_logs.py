"""Data folders of OpenCode as its versions write them, with invented sessions: files, databases and exports."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
START_MS = 1_780_000_000_000

_TIMES = "time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL"
#: The columns that versions added to `session`, after those of 1.2.
_SESSION = f"""id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL,
 title TEXT NOT NULL, version TEXT NOT NULL, share_url TEXT, revert TEXT, permission TEXT, {_TIMES}, time_compacting INTEGER,
 time_archived INTEGER"""
_SESSION_1_18 = f"""{_SESSION}, workspace_id TEXT, path TEXT, metadata TEXT, cost REAL DEFAULT 0 NOT NULL,
 tokens_input INTEGER DEFAULT 0 NOT NULL, tokens_output INTEGER DEFAULT 0 NOT NULL, tokens_reasoning INTEGER DEFAULT 0 NOT NULL,
 tokens_cache_read INTEGER DEFAULT 0 NOT NULL, tokens_cache_write INTEGER DEFAULT 0 NOT NULL, agent TEXT, model TEXT"""
_SESSION_2 = (
    _SESSION_1_18.replace("title TEXT NOT NULL", "title TEXT")
    + ", fork_session_id TEXT, fork_boundary TEXT, time_idle INTEGER"
)
_PARTS = f"""CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, {_TIMES}, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, {_TIMES}, data TEXT NOT NULL);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_session_idx ON part (session_id);"""
_ROWS = f"""CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL,
 {_TIMES}, data TEXT NOT NULL);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);"""
SCHEMAS = {
    "1.2": f"CREATE TABLE __drizzle_migrations (id INTEGER); CREATE TABLE session ({_SESSION}); {_PARTS}",
    "1.18": f"CREATE TABLE migration (id TEXT); CREATE TABLE session ({_SESSION_1_18}); {_PARTS} {_ROWS}",
    "2.0": f"""CREATE TABLE migration (id TEXT); CREATE TABLE session ({_SESSION_1_18}); {_PARTS}
 CREATE TABLE session_v2 ({_SESSION_2}); {_ROWS}""",
}


@dataclass
class Session:
    """A session: its messages with parts, or its session messages, and fields of its row."""

    name: str
    messages: Sequence[tuple[Json, Sequence[Json]]] = ()
    rows: Sequence[Json] = ()
    fields: Json = field(default_factory=dict)
    start_ms: int = START_MS

    @property
    def id(self) -> str:
        return f"ses_{self.name}"

    def info(self) -> Json:
        """Return the fields as a file or an export has them."""
        info: Json = {"id": self.id, "title": self.fields.get("title", f"Title of {self.name}"), "version": "1.1.65"}
        names = {"parent_id": "parentID", "fork_session_id": "forkSessionID"}
        for column in ("parent_id", "fork_session_id", "revert", "model", "agent"):
            if column in self.fields:
                info[names.get(column, column)] = self.fields[column]
        return info | {"time": {"created": self.start_ms, "updated": self.start_ms + 60_000}}

    def numbered(self) -> list[tuple[Json, list[Json]]]:
        """Return the messages with ids and times, as an export has them."""
        made = []
        for number, (info, parts) in enumerate(self.messages):
            message_id = f"msg_{self.name}{number:03}"
            moment = {"created": info.get("created", self.start_ms + number * 1000)}
            if info["role"] == "assistant" and not info.get("running"):
                moment["completed"] = moment["created"] + 500
            own = {key: value for key, value in info.items() if key not in {"created", "running"}}
            own |= {"id": message_id, "sessionID": self.id, "time": moment}
            if info["role"] == "assistant":
                own["parentID"] = next(
                    f"msg_{self.name}{at:03}" for at in range(number, -1, -1) if self.messages[at][0]["role"] == "user"
                )
            ids = [f"prt_{self.name}{number:03}{at:03}" for at in range(len(parts))]
            made.append(
                (
                    own,
                    [
                        part | {"id": ids[at], "messageID": message_id, "sessionID": self.id}
                        for at, part in enumerate(parts)
                    ],
                )
            )
        return made

    def seen(self) -> list[Json]:
        """Return the session messages with ids and times, as an export has them."""
        return [
            row
            | {
                "id": f"msg_{self.name}{number:03}",
                "time": {"created": self.start_ms + number * 1000} | row.get("time", {}),
            }
            for number, row in enumerate(self.rows)
        ]


def user(*parts: Json | str, **info: Any) -> tuple[Json, list[Json]]:
    """A message of the user, with parts or words."""
    return {"role": "user", "agent": "build", "summary": {"diffs": []}} | info, [said(one) for one in parts]


def assistant(*parts: Json | str, **info: Any) -> tuple[Json, list[Json]]:
    """A message of the model with the parts that mark a step, and `finish` unless it has an error or is running."""
    calls = any(isinstance(one, dict) and one["type"] == "tool" for one in parts)
    own: Json = {
        "role": "assistant",
        "mode": "build",
        "agent": "build",
        "modelID": "m-1",
        "providerID": "p",
        "cost": 0.01,
    }
    own["tokens"] = {"input": 10, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}
    if "error" not in info and not info.get("running"):
        own["finish"] = "tool-calls" if calls else "stop"
    return own | info, [{"type": "step-start"}, *(said(one) for one in parts), {"type": "step-finish"}]


def said(part: Json | str) -> Json:
    return {"type": "text", "text": part} if isinstance(part, str) else part


def tool(name: str, status: str = "completed", **state: Any) -> Json:
    """A part with a call."""
    moments = (
        {"start": START_MS + 10, "end": START_MS + 35} if status in {"completed", "error"} else {"start": START_MS + 10}
    )
    own: Json = {"status": status, "input": {"path": "a.txt"}, "time": moments}
    if status == "completed":
        own |= {"output": "done", "title": "", "metadata": {"truncated": False}}
    return {"type": "tool", "tool": name, "callID": f"call_{name}", "state": own | state}


ABORTED: Json = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
#: What a command of the user leaves behind.
SHELL = (
    (
        {"role": "user", "agent": "build"},
        [{"type": "text", "text": "The following tool was executed by the user", "synthetic": True}],
    ),
    (
        {"role": "assistant", "mode": "build", "agent": "build", "tokens": {"input": 0, "output": 0}},
        [tool("bash", input={"command": "ls"}, output="a.txt\n")],
    ),
)


def storage(data: Path, sessions: Iterable[Session]) -> None:
    """Write the files of a version up to 1.1."""
    for session in sessions:
        _file(data / "storage/session/project_1" / f"{session.id}.json", session.info())
        for info, parts in session.numbered():
            _file(data / "storage/message" / session.id / f"{info['id']}.json", info)
            for part in parts:
                _file(data / "storage/part" / info["id"] / f"{part['id']}.json", part)


def database(path: Path, version: str, sessions: Iterable[Session], *, table: str = "session") -> None:
    """Write a database of a version, or add sessions to it. It is closed, so that it has no write-ahead log."""
    with sqlite3.connect(path) as connection:
        fill(connection, version, sessions, table=table)
    connection.close()


def fill(connection: sqlite3.Connection, version: str, sessions: Iterable[Session], *, table: str = "session") -> None:
    """Add sessions to an open database."""
    connection.execute("PRAGMA journal_mode = wal")
    if not connection.execute("SELECT name FROM sqlite_master").fetchall():
        connection.executescript(SCHEMAS[version])
    for session in sessions:
        known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        row: Json = {
            "id": session.id,
            "project_id": "project_1",
            "slug": "slug",
            "directory": "/w",
            "title": f"Title of {session.name}",
        }
        row |= {
            "version": "1.18.33",
            "time_created": session.start_ms,
            "time_updated": session.start_ms + 60_000,
        } | session.fields
        _insert(connection, table, {name: _column(value) for name, value in row.items() if name in known})
        for info, parts in session.numbered():
            _row(connection, "message", info, {"session_id": session.id}, ("id", "sessionID"))
            for part in parts:
                moment = {"time": {"created": info["time"]["created"]}}
                _row(
                    connection,
                    "part",
                    moment | part,
                    {"session_id": session.id, "message_id": info["id"]},
                    ("id", "messageID", "sessionID"),
                )
        for number, row in enumerate(session.seen()):
            # one sequence with other events, so that it has gaps
            _row(
                connection,
                "session_message",
                row,
                {"session_id": session.id, "type": row["type"], "seq": 2 + number * 3},
                ("id", "type"),
            )
    connection.commit()


def export(path: Path, session: Session) -> None:
    """Write what `opencode export` prints."""
    _file(
        path,
        {"info": session.info(), "messages": [{"info": info, "parts": parts} for info, parts in session.numbered()]},
    )


def export_v2(path: Path, session: Session) -> None:
    """Write what `opencode session export` of version 2 prints."""
    _file(path, {"info": session.info(), "messages": session.seen()})


def share(path: Path, session: Session) -> None:
    """Write the data of a shared session."""
    entries: list[Json] = [{"type": "session", "data": session.info()}, {"type": "model", "data": []}]
    for info, parts in session.numbered():
        entries += [{"type": "part", "data": part} for part in reversed(parts)]
        entries.append({"type": "message", "data": info})
    _file(path, entries)


def _row(connection: sqlite3.Connection, table: str, data: Json, columns: Json, left_out: Sequence[str]) -> None:
    created = data["time"].get("created", START_MS)
    stored = {key: value for key, value in data.items() if key not in left_out}
    if table == "part" and set(stored.get("time", {})) == {"created"}:
        del stored["time"]
    _insert(
        connection,
        table,
        columns | {"id": data["id"], "time_created": created, "time_updated": created, "data": json.dumps(stored)},
    )


def _insert(connection: sqlite3.Connection, table: str, row: Json) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def _column(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict) else value


def _file(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
