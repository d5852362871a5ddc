"""Import the sessions of agents: read their logs, and publish what the store does not have.

Delivery: a part counts as sent when Redis has it. An import that is repeated, also after it was killed, sends nothing twice that is
stored, and a part that is sent twice is stored once.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from re import fullmatch
from typing import TYPE_CHECKING

from assay_operations.clients import open_store, settings_for, with_redis
from assay_operations.errors import OperationError
from assay_operations.sessions.cutting import safe_cut
from assay_operations.sessions.events import Revision, revision, session_events
from assay_operations.sessions.last_import import remember
from assay_operations.sessions.stored import Key, Known, complete_revisions, waiting_for
from assay_schema.limits import PROJECT_PATTERN, PROJECT_RULE
from assay_sessions.parts import PartsError
from assay_sessions.readers import READERS, Problem, Reader, other_reader
from assay_sessions.record import Transcript

if TYPE_CHECKING:
    from assay_runtime.connection import Client
    from assay_schema.settings import Settings

#: Entries that wait in the log, above which an import pauses.
BACKLOG_MAX = 2_000
#: Seconds until an import stops waiting for the store.
STORED_WITHIN_S = 60.0
_POLL_S = 0.2
#: Seconds until an import gives up because nothing reads the log.
_EMPTIED_WITHIN_S = 120.0
#: Bytes that are sent at once.
_BATCH_BYTES = 1024 * 1024


@dataclass
class Imported:
    """The outcome of an import so far. Sessions are counted by source."""

    found: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    #: Sessions whose newest revision the store has.
    unchanged: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    size: int = 0
    #: By the agent whose reader met them.
    problems: Counter[tuple[str, Problem]] = field(default_factory=Counter)
    #: Sent, and not complete in the store when the wait was over.
    not_stored: int = 0
    #: The newest revision of each session, in the store or sent. Pass the result on to import again without asking the store.
    known: Known | None = None


@dataclass(frozen=True)
class Source:
    """One store of an agent: a file or a folder, and its reader."""

    reader: Reader
    path: Path
    #: Files or sessions in it that are read also if they did not change since the last look.
    fresh: frozenset[str] = frozenset()
    #: The user named the file or folder, so the agent may be the wrong one.
    named: bool = False


def sources(agents: Sequence[str], paths: Sequence[Path], environment: Mapping[str, str] | None = None) -> list[Source]:
    """Return the stores to read, of these agents (default: all), at these paths or the usual places.

    Raises `OperationError` for an unknown agent, for a path without one, and for a path that does not exist.
    """
    for agent in agents:
        if agent not in READERS:
            raise OperationError("invalid", f"--from: {agent!r} is not one of {', '.join(READERS)}")
    if paths and not agents:  # another agent's reader would report what it does not understand
        raise OperationError("invalid", f"{paths[0]}: name the agent whose log it is: --from {', '.join(READERS)}")
    for path in paths:
        if not path.exists():
            raise OperationError("not_found", f"{path}: does not exist")
    environment = os.environ if environment is None else environment
    found: list[Source] = []
    for reader in (READERS[agent] for agent in (agents or READERS)):
        places = list(paths) or reader.locations(Path.home(), environment)
        found += [Source(reader, store, named=bool(paths)) for store in reader.discover(places)]
    return found


def import_sessions(
    data: Path,
    stores: Sequence[Source],
    *,
    since: datetime | None = None,
    fresh_since: datetime | None = None,
    project: str | None = None,
    service: str | None = None,
    agents: Sequence[str] = (),
    wait: bool = True,
    progress: Callable[[Imported], None] = lambda _: None,
    done: Imported | None = None,
) -> Imported:
    """Import the sessions that changed at `since` or later. `project` is that of the settings by default.

    `agents` were looked for by name, and may have no store: `assay doctor` forgets what their import before did not read.

    Of the fresh pieces of a store, it imports those that changed at `fresh_since` or later. With `wait`, it returns when the store
    has the sessions, or after a minute. Raises `OperationError` if Redis or the store is away.
    """
    if project is not None and not fullmatch(PROJECT_PATTERN, project):
        raise OperationError("invalid", f"--project: {project!r} is not the name of a project: {PROJECT_RULE}")
    done = Imported() if done is None else done
    publishing, reading = settings_for("producer", data), settings_for("sre", data)
    project = project or publishing.capture.project
    with open_store(reading.store) as store:
        if done.known is None:
            done.known = complete_revisions(store, project)
        sent: dict[str, Key] = {}
        publisher = _Publisher(publishing, project)
        for source, made in _revisions(_items(stores, since, fresh_since), done, sent, progress):
            try:
                parts = list(session_events(made, project, service, time.time_ns() // 1_000_000, publisher.cut))
            except PartsError as error:
                done.problems[source.reader.name, Problem("too_large", source.path.name, 1, str(error))] += 1
                continue
            publisher.send(parts)
            sent[made.session_id] = made.key
            done.sent[made.document["metadata"]["source"]] += 1
            done.parts += len(parts)
            done.size += sum(map(len, parts))
            progress(done)
        publisher.flush()
        read = dict.fromkeys([*agents, *(source.reader.name for source in stores)])
        remember(data, read, done.problems, partial=since is not None)
        if wait and sent:
            deadline = time.monotonic() + STORED_WITHIN_S
            while (left := waiting_for(store, project, sent)) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            done.not_stored = len(left)
            sent = {session: key for session, key in sent.items() if session not in left}
        for session, key in sent.items():  # only now: what was not sent or stored is tried again
            done.known.add(session, key)
    return done


def _items(
    stores: Sequence[Source], since: datetime | None, fresh_since: datetime | None
) -> Iterator[tuple[Source, Transcript | Problem]]:
    """Yield what the readers find: the sessions of the fresh pieces of each store, and the others that changed."""
    for source in stores:
        seen: set[str] = set()
        if source.fresh:
            for item in source.reader.read_pieces(source.path, fresh_since, source.fresh):
                if isinstance(item, Transcript):
                    seen.add(item.session_id)
                    yield source, item
        for item in _changed(source, since):
            if not isinstance(item, Transcript) or item.session_id not in seen:
                yield source, item


def _changed(source: Source, since: datetime | None) -> Iterator[Transcript | Problem]:
    """Yield the sessions that changed, and then the problems.

    A file that the user named and that only another reader understands is one problem, which names that reader.
    """
    problems: list[Problem] = []
    is_read = False
    for item in source.reader.read(source.path, since):
        if isinstance(item, Problem):
            problems.append(item)
        else:
            is_read = True
            yield item
    if source.named and not is_read and problems and (other := other_reader(source.path, source.reader)):
        problems = [Problem("other_format", source.path.name, 1, f"it looks like {other}: --from {other}")]
    yield from problems


def _revisions(
    items: Iterator[tuple[Source, Transcript | Problem]],
    done: Imported,
    sent: Mapping[str, Key],
    progress: Callable[[Imported], None],
) -> Iterator[tuple[Source, Revision]]:
    """Yield the revisions that are newer than those of the store, one at a time."""
    for source, item in items:
        if not isinstance(item, Transcript):
            done.problems[source.reader.name, Problem(item.kind, item.path, 1, item.detail)] += item.count
            continue
        made = revision(item)
        done.found[item.source] += 1
        assert done.known is not None
        if done.known.has(made.session_id, made.key) or made.key <= sent.get(made.session_id, (-1, "")):
            done.unchanged[item.source] += 1
        else:
            yield source, made
        progress(done)


class _Publisher:
    """Appends events to the log, in batches, and waits while the log is long."""

    def __init__(self, settings: "Settings", project: str) -> None:
        from assay_schema.streams import CAPTURE, shard_of

        self._settings, self._project = settings, project
        self._key = CAPTURE.key(shard_of(project, settings.redis.shards))
        self._waiting: list[bytes] = []
        self._cut: Callable[[str, int], int] | None = None

    def cut(self, text: str, most: int) -> int:
        """Choose the place to cut a long text. The scrubber is loaded for the first one: most sessions have none."""
        if self._cut is None:
            from assay_operations.scrub import policies
            from assay_scrubber.engine import Scrubber

            self._cut = safe_cut(Scrubber(policies(None).of(self._project)))
        return self._cut(text, most)

    def send(self, events: Sequence[bytes]) -> None:
        """Take events, and append those that are waiting if they are many."""
        self._waiting += events
        if sum(map(len, self._waiting)) >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Append all waiting events. Raises `OperationError`."""
        from redis.exceptions import RedisError

        try:
            with_redis(self._settings, self._append)
        except RedisError as error:
            raise OperationError(
                "unavailable",
                f"Redis: {type(error).__name__}; run assay doctor, then import again: nothing is stored twice",
            ) from None
        self._waiting = []

    async def _append(self, client: "Client") -> None:
        deadline = time.monotonic() + _EMPTIED_WITHIN_S
        while int(await client.xlen(self._key)) > BACKLOG_MAX:  # another process empties it
            if time.monotonic() > deadline:
                raise OperationError(
                    "unavailable",
                    f"more than {BACKLOG_MAX:,} captured entries wait, and nothing empties the log; see assay doctor, then import again",
                )
            await asyncio.sleep(_POLL_S)
        for event in self._waiting:
            await client.xadd(self._key, {"data": event})
