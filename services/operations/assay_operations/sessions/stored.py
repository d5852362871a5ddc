"""Sessions in the store: which revisions are complete, and their documents."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.errors import OperationError
from assay_operations.events.filters import Range
from assay_schema.limits import SAFE_INTEGER_MAX
from assay_sessions.form import malformed
from assay_sessions.parts import join

if TYPE_CHECKING:
    from assay_runtime.store import Client

Key = tuple[int, str]
_EVERY_TIME = Range()
#: Sessions that are looked up at once.
_PAGE = 500
_NEWEST_COMPLETE = """SELECT session_id, revision, groupUniqArray(digest) FROM
(
    SELECT session_id, revision, digest FROM session_parts WHERE project = {project:String}
    GROUP BY session_id, revision, digest HAVING uniqExact(part) = max(parts)
)
GROUP BY session_id, revision ORDER BY revision DESC LIMIT 1 BY session_id"""
_COMPLETE_OF = """SELECT session_id, revision, digest FROM session_parts
WHERE project = {project:String} AND session_id IN {sessions:Array(String)}
GROUP BY session_id, revision, digest HAVING uniqExact(part) = max(parts)"""
_NEWEST = """SELECT * FROM
(
    SELECT project, session_id, revision, digest, uniqExact(part) = max(parts) AS complete FROM session_parts
    WHERE id <= {upto:UInt64} AND (project, session_id) IN
    (
        SELECT project, session_id FROM session_parts
        WHERE id <= {upto:UInt64} AND id > {after:Int64}
          AND ({project:String} = '' OR project = {project:String})
          AND ({source:String} = '' OR source = {source:String})
          AND (empty({sessions:Array(String)}) OR session_id IN {sessions:Array(String)})
          AND (NOT {of_people:Bool} OR parent_session_id IS NULL)
    )
    GROUP BY project, session_id, revision, digest ORDER BY revision DESC, max(id) DESC LIMIT 1 BY project, session_id
)
ORDER BY revision, session_id"""
_PARTS = """SELECT part, parts, title, toString(created), request, response, intermediate_events, metadata FROM session_parts
WHERE project = {project:String} AND session_id = {session:String} AND revision = {revision:UInt64}
  AND digest = {digest:String} AND id <= {upto:UInt64}
  AND event_time BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
ORDER BY part LIMIT 1 BY part"""


@dataclass(frozen=True)
class Chosen:
    """The sessions to read: by project, agent and id, and with a part in `after < id <= upto`."""

    upto: int
    after: int = -1
    project: str | None = None
    source: str | None = None
    session_ids: tuple[str, ...] = ()
    #: Without the sessions of sub-agents.
    of_people: bool = False


@dataclass
class Seen:
    """Sessions that were read, that are not complete, or that have not the form of one."""

    read: int = 0
    incomplete: list[str] = field(default_factory=list)
    #: By session, the place that has not its form.
    malformed: dict[str, str] = field(default_factory=dict)


class Known:
    """The newest revision of each session, with its digests.

    It has several if two logs of one session differ at the same time of change.
    """

    def __init__(self, revisions: Iterable[tuple[str, int, Iterable[str]]] = ()) -> None:
        self._of = {session: (number, set(digests)) for session, number, digests in revisions}

    def has(self, session: str, key: Key) -> bool:
        """Return True if this revision is known, or a newer one."""
        number, digests = self._of.get(session, (-1, set[str]()))
        return key[0] < number or (key[0] == number and key[1] in digests)

    def add(self, session: str, key: Key) -> None:
        """Add a revision."""
        number, digests = self._of.get(session, (-1, set[str]()))
        if key[0] >= number:
            self._of[session] = (key[0], {key[1]} | (digests if key[0] == number else set()))


def complete_revisions(client: "Client", project: str) -> Known:
    """Return the newest complete revision of each session of a project."""
    found = client.query(_NEWEST_COMPLETE, parameters={"project": project}).result_rows
    return Known((str(session), int(number), map(str, digests)) for session, number, digests in found)


def waiting_for(client: "Client", project: str, wanted: dict[str, Key]) -> dict[str, Key]:
    """Return those of the wanted revisions that are not complete yet."""
    stored: set[tuple[str, int, str]] = set()
    names = list(wanted)
    for start in range(0, len(names), _PAGE):
        page = {"project": project, "sessions": names[start : start + _PAGE]}
        rows = client.query(_COMPLETE_OF, parameters=page).result_rows
        stored |= {(str(session), int(number), str(digest)) for session, number, digest in rows}
    return {session: key for session, key in wanted.items() if (session, *key) not in stored}


def documents(client: "Client", chosen: Chosen, seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield the documents of the chosen sessions with their `project`, scrubbed, the oldest first.

    Each is in its newest revision. A session whose newest revision is not complete, or has not the form of a session, is counted in `seen`
    and left out. Raises
    `OperationError` if parts are missing that were there a moment ago.
    """
    rows = client.query(
        _NEWEST,
        parameters={
            "upto": chosen.upto,
            "after": chosen.after,
            "project": chosen.project or "",
            "source": chosen.source or "",
            "sessions": list(chosen.session_ids),
            "of_people": chosen.of_people,
        },
    ).result_rows
    for project, session, number, digest, complete in rows:
        if not complete:
            seen.incomplete.append(str(session))
            continue
        document = document_of(client, str(project), str(session), int(number), str(digest), chosen.upto)
        if place := malformed(document):
            seen.malformed[str(session)] = place
            continue
        yield document
        seen.read += 1


def document_of(
    client: "Client",
    project: str,
    session: str,
    number: int,
    digest: str,
    upto: int = SAFE_INTEGER_MAX,
    *,
    span: Range = _EVERY_TIME,
) -> dict[str, Any]:
    """Return the document of a complete revision. Raises `OperationError` if parts of it are missing.

    `span` has the times of the events that are its parts, if they are known: other days are skipped.
    """
    key = {"project": project, "session": session, "revision": number, "digest": digest, "upto": upto}
    key |= {"from_ms": span.from_ms, "to_ms": span.to_ms}
    rows = client.query(_PARTS, parameters=key).result_rows
    if not rows or len(rows) != rows[0][1]:
        raise OperationError("unavailable", "parts of a session were deleted meanwhile; run it again")
    fragments = [
        {
            "project": project,
            "session_id": session,
            "title": title,
            "created": created.replace(" ", "T")[:23] + "Z",
            "request": orjson.loads(request),
            "response": orjson.loads(response),
            "intermediate_events": orjson.loads(events),
            "metadata": orjson.loads(metadata),
        }
        for _, _, title, created, request, response, events, metadata in rows
    ]
    return join(fragments)
