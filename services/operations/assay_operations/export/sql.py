"""SQL of an export. Pure: text in, text out.

The store formats each line of NDJSON, and this program only passes bytes on: numbers keep every digit, captured JSON stays unchanged,
and the result does not depend on engine settings, which a reader might not be allowed to change.
"""

import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel

from assay_operations.export.plan import Axis, Chunk
from assay_schema.export import ROWS
from assay_schema.fields import Kind
from assay_schema.limits import SCHEMA_VERSION


@dataclass(frozen=True)
class Source:
    """The view of a kind, and the model of its rows."""

    view: str
    row: type[BaseModel]


_VIEWS = {
    Kind.RETRIEVAL: "candidates",
    Kind.ANSWER: "answers",
    Kind.FEEDBACK: "feedback",
    Kind.TOOL_CALL: "tool_calls",
    Kind.SERVER_EVENT: "server_events",
    Kind.SESSION: "session_parts",
}
SOURCES = {kind: Source(view, ROWS[kind]) for kind, view in _VIEWS.items()}

#: Start of every line.
LINE_START = f'{{"schema_version":{SCHEMA_VERSION},'


def _bare(annotation: Any) -> Any:
    """Return a type without the constraints of its annotation."""
    return annotation.__origin__ if typing.get_origin(annotation) is typing.Annotated else annotation


def _json(column: str, annotation: object) -> str:
    """Return an SQL expression for a column as JSON text, by its type in the model."""
    annotation = _bare(annotation)
    origin, arguments = typing.get_origin(annotation), [_bare(argument) for argument in typing.get_args(annotation)]
    if origin in (typing.Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return f"if(isNull({column}), 'null', {_json(f'assumeNotNull({column})', inner)})"
    if annotation is bool:
        return f"if({column}, 'true', 'false')"
    if annotation in (int, float) or (origin is list and arguments[0] in (int, float)):
        return f"toString({column})"
    if annotation in (datetime, AwareDatetime):
        return f"""concat('"', replaceOne(toString({column}, 'UTC'), ' ', 'T'), 'Z"')"""
    if annotation in (str, UUID) or (origin is typing.Literal and all(isinstance(value, str) for value in arguments)):
        return f"toJSONString(toString({column}))"
    if origin is list and arguments[0] is str:
        return f"toJSONString(CAST({column}, 'Array(String)'))"
    if origin is dict and arguments[1] is int:
        return f"toJSONString(CAST({column}, 'Map(String, UInt32)'))"
    if origin is list and isinstance(arguments[0], type) and issubclass(arguments[0], BaseModel):
        item = _object(arguments[0], lambda name: f"tupleElement(item, '{name}')")
        return f"concat('[', arrayStringConcat(arrayMap(item -> {item}, {column}), ','), ']')"
    if origin is dict or (origin is list and typing.get_origin(arguments[0]) is dict):
        return (
            f"replaceAll({column}, '\\n', ' ')"  # the captured JSON text, which can contain line feeds between values
        )
    raise TypeError(f"no JSON form for {column}: {annotation}")


def _object(model: type[BaseModel], column: Callable[[str], str], start: str = "{") -> str:
    """Return an SQL expression for a JSON object: the model's fields in order, after `start`."""
    parts: list[str] = []
    for name, field in model.model_fields.items():
        if name != "schema_version":
            parts += [f"""'{"," if parts else start}"{name}":'""", _json(column(name), field.annotation)]
    return f"concat({', '.join(parts)}, '}}')"


def line(row: type[BaseModel]) -> str:
    """Return an SQL expression for one line of the export, without its line feed."""
    return _object(row, lambda name: name, LINE_START)


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class Selection:
    """The rows of an export: `after < id <= upto`, and optionally one tool or project."""

    kind: Kind
    after: int
    upto: int
    tool: str | None = None
    project: str | None = None

    def conditions(self) -> list[str]:
        """Return the conditions of its WHERE clause."""
        parts = [f"id > {self.after}", f"id <= {self.upto}"]
        if self.tool is not None:
            parts.append(f"tool_name = {literal(self.tool)}")
        if self.project is not None:
            parts.append(f"project = {literal(self.project)}")
        return parts


def _moment(unix_ms: int) -> str:
    return f"fromUnixTimestamp64Milli({unix_ms}, 'UTC')"


def _within(column: str, bounds: tuple[int, int]) -> str:
    return f"{column} BETWEEN {_moment(bounds[0])} AND {_moment(bounds[1])}"


def _chunk_conditions(chunk: Chunk) -> list[str]:
    return [
        _within("event_time", chunk.events),
        _within("created_at", chunk.created),
        f"id BETWEEN {chunk.ids[0]} AND {chunk.ids[1]}",
    ]


def counts(database: str, selection: Selection, chunk: Chunk | None = None, axis: Axis | None = None) -> str:
    """Return a query for the slices of a chunk along an axis, newest first; without a chunk, for all.

    Columns: bounds of `created_at`, of `id` and of the event's own time (Unix milliseconds), and the number of rows.
    """
    conditions = selection.conditions() + (_chunk_conditions(chunk) if chunk else [])
    query = (
        "SELECT toUnixTimestamp64Milli(min(created_at)), toUnixTimestamp64Milli(max(created_at)), min(id), max(id),"  # noqa: S608 - checked or quoted
        " toUnixTimestamp64Milli(min(event_time)), toUnixTimestamp64Milli(max(event_time)), count()"
        f" FROM {database}.{SOURCES[selection.kind].view} WHERE {' AND '.join(conditions)}"
    )
    if chunk and axis:
        number = "toUnixTimestamp64Milli(created_at)" if axis == "created" else "id"
        low = chunk.created[0] if axis == "created" else chunk.ids[0]
        query += f" GROUP BY intDiv({number} - {low}, {chunk.slice_width(axis)}) AS slice ORDER BY slice DESC"
    return query


def chunk_from(row: Sequence[int], parent: Chunk | None = None, axis: Axis | None = None) -> Chunk:
    """Make a chunk from a row of `counts`."""
    return Chunk(
        created=(row[0], row[1]),
        ids=(row[2], row[3]),
        events=(row[4], row[5]),
        rows=row[6],
        whole_milliseconds=axis != "ids" and (parent is None or parent.whole_milliseconds),
    )


def lines(database: str, selection: Selection, chunk: Chunk, limit: int) -> str:
    """Return a query for the lines of a chunk, newest first."""
    source = SOURCES[selection.kind]
    conditions = " AND ".join(_chunk_conditions(chunk) + selection.conditions())
    return (
        f"SELECT {line(source.row)} FROM {database}.{source.view} WHERE {conditions}"  # noqa: S608 - checked or quoted
        f" ORDER BY created_at DESC, id DESC LIMIT {limit} FORMAT TSVRaw"
    )
