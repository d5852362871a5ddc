"""OpenCode's JSON files: its storage up to 1.1, and exports."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from assay_sessions.readers.loose_json import items, load_file, mapping, text
from assay_sessions.readers.opencode_session import Info, info_of_json, of_parts, of_rows
from assay_sessions.readers.reader import Problems, below
from assay_sessions.record import Json, Transcript

STORAGE_RANK: Final = 2
#: Part of a file's name, so that an id from a file cannot leave its folder.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")


def listed(folder: Path) -> dict[str, Path]:
    """Return the files of the sessions in a storage folder by their ids."""
    found = below(folder / "session", "*/*.json")
    return {path.stem: path for path in found if _ID.fullmatch(path.stem)}


def read_session(folder: Path, path: Path, problems: Problems) -> Transcript | None:
    """Return the session of a file with its messages and parts, or None if the file cannot be read."""
    info = load_file(path, "storage/session", problems)
    if not isinstance(info, dict):
        return None
    messages: list[tuple[Json, list[Json]]] = []
    for message in _files(folder / "message" / path.stem, "storage/message", problems):
        message_id = text(message.get("id"))
        own = folder / "part" / message_id
        parts = list(_files(own, "storage/part", problems)) if _ID.fullmatch(message_id) else []
        messages.append((message, sorted(parts, key=lambda part: text(part.get("id")))))
    messages.sort(key=lambda item: (_created(item[0]), text(item[0].get("id"))))
    return of_parts(_named(info_of_json(info), path.stem), messages, 0, problems, "storage", "json")


def exported(path: Path, problems: Problems) -> Transcript | None:
    """Return the session of an export, or None if the file is none.

    There are three forms: `{info, messages: [{info, parts}]}`, `{info, messages: [{type}]}`, and that of a shared session,
    `[{type: session|message|part, data}]`.
    """
    return of_export(load_file(path, path.name, problems), path, problems)


def of_export(value: Any, path: Path, problems: Problems) -> Transcript | None:
    """Return the session of the JSON of an export, or None if it is none."""
    if isinstance(value, list):
        return _shared(value, path.name, problems)
    info = mapping(mapping(value).get("info"))
    if not text(info.get("id")):
        if value is not None:
            problems.add("unknown_schema", path.name)
        return None
    messages = [message for message in items(value.get("messages")) if isinstance(message, dict)]
    if any("type" in message and "info" not in message for message in messages):
        return of_rows(info_of_json(info), messages, 0, problems, path.name, "export_v2")
    pairs = [(mapping(message.get("info")), _objects(message.get("parts"))) for message in messages]
    return of_parts(info_of_json(info), pairs, 0, problems, path.name, "export")


def _shared(entries: list[Any], name: str, problems: Problems) -> Transcript | None:
    info: Json = {}
    messages: list[Json] = []
    parts: dict[str, list[Json]] = {}
    for entry in map(mapping, entries):
        kind, data = entry.get("type"), mapping(entry.get("data"))
        if kind == "session":
            info = data
        elif kind == "message":
            messages.append(data)
        elif kind == "part":
            parts.setdefault(text(data.get("messageID")), []).append(data)
        elif kind not in {"session_diff", "model"}:
            problems.unknown(name, "share", kind)
    if not text(info.get("id")):
        problems.add("unknown_schema", name)
        return None
    messages.sort(key=lambda message: (_created(message), text(message.get("id"))))
    pairs = [
        (message, sorted(parts.get(text(message.get("id")), []), key=lambda part: text(part.get("id"))))
        for message in messages
    ]
    return of_parts(info_of_json(info), pairs, 0, problems, name, "share")


def _files(folder: Path, kind: str, problems: Problems) -> Iterator[Json]:
    for path in below(folder, "*.json"):
        value = load_file(path, kind, problems)
        if isinstance(value, dict):
            yield value


def _objects(value: Any) -> list[Json]:
    return [item for item in items(value) if isinstance(item, dict)]


def _created(message: Json) -> float:
    created = mapping(message.get("time")).get("created")
    return created if isinstance(created, int | float) else 0


def _named(info: Info, session_id: str) -> Info:
    return info if info.session_id else info_of_json({"id": session_id})
