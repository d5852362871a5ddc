"""Reader of OpenCode's sessions: five shapes on disk, and three forms of exports.

| Versions | Place | Shape |
|---|---|---|
| up to 1.1 | `storage/session`, `storage/message`, `storage/part` | `json` |
| 1.2 to 1.18 | `opencode.db`: `session`, `message`, `part` | `message_part` |
| V2 API of 1.18 | `opencode.db`: `session`, `session_message` | `session_message` |
| 2.0 | `opencode.db`: `session_v2`, `session_message` | `session_v2` |

Versions migrate sessions with their ids and leave the older copy where it is, and one data folder can have all shapes. A session is
read once, from the best of its sources: the lowest row of the table first. A session that only an older source has is read there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from assay_sessions.readers import opencode_database, opencode_files
from assay_sessions.readers.opencode_session import SOURCE
from assay_sessions.readers.reader import Found, Mark, Problems, Reader, below, file_mark
from assay_sessions.record import Transcript

_DATABASES: Final = "opencode*.db"
_EXPORT_RANK: Final = 2
_SANITIZED_RANK: Final = 1


class Source(NamedTuple):
    """A place of one session."""

    rank: int
    path: Path
    kind: str


def locations(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Return the data folder of OpenCode, and the database that `OPENCODE_DB` names."""
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    named = environment.get("OPENCODE_DB")
    return [data, *([data / named] if named and named != ":memory:" else [])]


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the data folders, databases and exports at or below the paths."""
    seen: set[Path] = set()
    for path in paths:
        inner = path / "opencode"
        found = inner if _is_data(inner) and not _is_data(path) else path
        if found.exists() and not (found in seen or (found.parent in seen and found.match(_DATABASES))):
            seen.add(found)
            yield found


def read(store: Path, since: datetime | None) -> Found:
    """Yield the sessions of a data folder, a database or exports, and then the problems."""
    return read_some(store, since, None)


def pieces(store: Path) -> dict[str, Mark]:
    """Return the sessions of a store with their marks.

    The mark of a session in a database changes if the database is replaced.
    """
    sources = _sources(store, Problems())
    if sources is None:
        return {str(store): file_mark(store)}
    return {
        name: (source.rank, *file_mark(source.path)[: 1 if source.kind == "database" else None])
        for name, source in sources.items()
    }


def read_some(store: Path, since: datetime | None, only: Collection[str] | None) -> Found:
    """Yield some sessions of a store, and then the problems."""
    problems = Problems()
    sources = _sources(store, problems)
    if sources is None:
        found = opencode_files.exported(store, problems)
        if found and (since is None or found.updated >= since):
            yield found
        sources = {}
    chosen = {name: source for name, source in sources.items() if only is None or name in only}
    yield from _read(chosen, since, problems)
    yield from problems


READER: Final = Reader(SOURCE, locations, discover, read, pieces, read_some)


def _sources(store: Path, problems: Problems) -> dict[str, Source] | None:
    """Return the best source of each session of a folder or a database; None for an export."""
    sources: dict[str, Source] = {}
    if store.is_dir():
        _list_folder(store, sources, problems)
    elif _is_database(store):
        _list_database(store, sources, problems)
    else:
        return None
    return sources


def _is_data(folder: Path) -> bool:
    return (folder / "storage" / "session").is_dir() or any(below(folder, _DATABASES))


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00" or path.suffix == ".db"
    except OSError:  # counted when it is read
        return path.suffix == ".db"


def _list_folder(folder: Path, sources: dict[str, Source], problems: Problems) -> None:
    if not _is_data(folder):
        for path in below(folder, "*.json", problems):
            ignored = Problems()  # counted when the file is read
            found = opencode_files.exported(path, ignored)
            session_id = found.session_id if found else f"\x00{path.name}"
            rank = _SANITIZED_RANK if found and found.extra.get("sanitized") else _EXPORT_RANK
            _offer(sources, session_id, Source(rank, path, "export"))
        return
    for database in below(folder, _DATABASES, problems):
        _list_database(database, sources, problems)
    for session_id, path in opencode_files.listed(folder / "storage", problems).items():
        _offer(sources, session_id, Source(opencode_files.STORAGE_RANK, path, "storage"))


def _list_database(path: Path, sources: dict[str, Source], problems: Problems) -> None:
    for session_id, rank in opencode_database.listed(path, problems).items():
        _offer(sources, session_id, Source(rank, path, "database"))


def _offer(sources: dict[str, Source], session_id: str, offered: Source) -> None:
    known = sources.get(session_id)
    if known is None or offered.rank > known.rank:
        sources[session_id] = offered


def _read(sources: Mapping[str, Source], since: datetime | None, problems: Problems) -> Iterator[Transcript]:
    for database in dict.fromkeys(source.path for source in sources.values() if source.kind == "database"):
        wanted = {name: source.rank for name, source in sources.items() if source.path == database}
        yield from opencode_database.read(database, wanted, since, problems)
    for source in sources.values():
        if source.kind == "storage":
            one = opencode_files.read_session(source.path.parents[2], source.path, problems)
        elif source.kind == "export":
            one = opencode_files.exported(source.path, problems)
        else:
            continue
        if one and (since is None or one.updated >= since):
            yield one
