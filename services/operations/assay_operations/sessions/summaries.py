"""Read rows as the view `sessions` has them, from a part of the tables.

The view itself reads every event that was ever captured.
"""

from typing import Any, NamedTuple

from assay_operations.errors import OperationError
from assay_operations.events.bounds import Bounds
from assay_operations.events.filters import OPEN_END_MS, EventFilter, Range
from assay_operations.events.queries import Queries
from assay_operations.events.rows import moment
from assay_schema.fields import Kind

#: About how many events a list reads at first, the newest; it reads more while it is not full.
ROWS_FIRST = 100_000
_WIDEN = 8
_DAY_MS = 86_400_000
#: A call that failed.
FAILED = "status IN ('error', 'refused')"
#: Views of captured events, and what one counts as.
_COUNTS: dict[str, dict[str, str]] = {
    "candidates": {},
    "answers": {"answer": "1"},
    "tool_calls": {"call": "1", "failed": FAILED},
    "feedback": {"liked": "verdict = 'positive'", "disliked": "verdict = 'negative'"},
}
_KINDS = (Kind.RETRIEVAL, Kind.ANSWER, Kind.FEEDBACK, Kind.TOOL_CALL)
_IN_PROJECT = "({project:String} = '' OR project = {project:String})"
_BETWEEN = f"event_time >= {moment('low_ms')} AND event_time < {moment('upper_ms')}"


class Place(NamedTuple):
    """The place of a session in the list: Unix microseconds of its last change, then its project and id."""

    us: int
    project: str
    session_id: str

    def __str__(self) -> str:
        """Return the cursor."""
        return f"{self.us}:{self.project}:{self.session_id}"


def parse_place(text: str) -> Place:
    """Return the place of a cursor. Raises `OperationError`."""
    us, _, rest = text.partition(":")
    project, colon, session_id = rest.partition(":")
    if not (us.isascii() and us.isdecimal() and int(us) <= OPEN_END_MS * 1000 and colon) or "\0" in text:
        raise OperationError("invalid", "after: not a cursor of this list", "leave it out to begin with the newest")
    return Place(int(us), project, session_id)


def _captured(where: str) -> str:
    """Return the SQL of sessions as captured events know them."""
    parts = []
    for view, counted in _COUNTS.items():
        counts = dict.fromkeys(("answer", "call", "failed", "liked", "disliked"), "0") | counted
        columns = ", ".join(f"toUInt64({sql}) AS {name}" for name, sql in counts.items())
        parts.append(
            f"SELECT project, assumeNotNull(t.session_id) AS session, occurred_at AS at, created_at AS received, {columns}"  # noqa: S608
            f" FROM {view} AS t WHERE t.session_id IS NOT NULL AND {where} AND {_IN_PROJECT}"
        )
    return f"""SELECT project, session AS session_id, min(at) AS first_at, max(at) AS last_at, sum(answer) AS turns, sum(call) AS tools,
    sum(failed) AS tool_errors, sum(liked) AS positive, sum(disliked) AS negative, max(received) AS created_at
FROM ({" UNION ALL ".join(parts)})
GROUP BY project, session_id"""  # noqa: S608 - constants


def _imported(where: str) -> str:
    """Return the SQL of the newest revision of imported sessions."""
    return f"""SELECT project, session_id, revision, digest, any(source) AS source, any(source_version) AS source_version,
    toString(any(status)) AS status, max(parts) AS parts, uniqExact(part) AS parts_stored, any(title) AS title,
    min(created) AS first_at, max(updated) AS last_at, any(parent_session_id) AS parent_session_id, any(forked_from) AS forked_from,
    any(model) AS model, any(turns) AS turns, any(tools) AS tools, any(tool_errors) AS tool_errors, any(cost_usd) AS cost_usd,
    any(input_tokens) AS input_tokens, any(output_tokens) AS output_tokens, max(created_at) AS created_at,
    toUnixTimestamp64Milli(min(event_time)) AS parts_from_ms, toUnixTimestamp64Milli(max(event_time)) AS parts_to_ms
FROM session_parts WHERE {where} AND {_IN_PROJECT}
GROUP BY project, session_id, revision, digest
ORDER BY revision DESC, max(id) DESC
LIMIT 1 BY project, session_id"""  # noqa: S608 - constants


def _sessions(captured: str, imported: str) -> str:
    """Return the SQL of sessions from these conditions, without what the judge says of them. `answers` are those captured."""
    return f"""SELECT if(i.session_id != '', i.project, c.project) AS project,
    if(i.session_id != '', i.session_id, c.session_id) AS session_id, if(i.session_id != '', toString(i.source), 'capture') AS source,
    i.source_version AS source_version, if(i.session_id != '', i.status, 'open') AS status,
    CAST(i.parts = i.parts_stored, 'Bool') AS complete, i.revision AS revision, i.digest AS digest, i.title AS title,
    i.parts_from_ms AS parts_from_ms, i.parts_to_ms AS parts_to_ms,
    if(i.session_id != '', i.first_at, c.first_at) AS first_at, greatest(i.last_at, c.last_at) AS last_at,
    i.parent_session_id AS parent_session_id, i.forked_from AS forked_from, i.model AS model,
    if(i.session_id != '', i.turns, c.turns) AS turns, if(i.session_id != '', i.tools, c.tools) AS tools,
    if(i.session_id != '', i.tool_errors, c.tool_errors) AS tool_errors, i.cost_usd AS cost_usd, i.input_tokens AS input_tokens,
    i.output_tokens AS output_tokens, c.positive AS positive, c.negative AS negative, c.turns AS answers,
    greatest(i.created_at, c.created_at) AS created_at
FROM ({_imported(imported)}) AS i
FULL JOIN ({_captured(captured)}) AS c ON i.project = c.project AND i.session_id = c.session_id"""  # noqa: S608 - constants


#: Captured events of one session, by project: what a list counts, and which kinds there are between which times.
_ONE_CAPTURED = f"""SELECT project, session_id, minIf(occurred_at, kind != 'server_event') AS first_at,
    maxIf(occurred_at, kind != 'server_event') AS last_at, countIf(kind = 'answer') AS turns, countIf(kind = 'tool_call') AS tools,
    countIf(kind = 'tool_call' AND {FAILED}) AS tool_errors, countIf(kind = 'feedback' AND status = 'positive') AS positive,
    countIf(kind = 'feedback' AND status = 'negative') AS negative, maxIf(created_at, kind != 'server_event') AS created_at,
    arraySort(groupUniqArray(kind)) AS kinds, toUnixTimestamp64Milli(min(event_time)) AS events_from_ms,
    toUnixTimestamp64Milli(max(event_time)) + 1 AS events_to_ms
FROM events WHERE session_id = {{session:String}} AND {_IN_PROJECT}
GROUP BY project, session_id"""  # noqa: S608 - constants
#: With this the engine looks whether another copy of an event says that it is of another session, for which it reads everything between the
#: keys of the blocks that the indexes name: most of a table. Without it no event is missed.
_EXACT = "use_skip_indexes_if_final_exact_mode"
#: The same of a session without events.
_NO_EVENTS: dict[str, Any] = dict.fromkeys(("turns", "positive", "negative", "events_from_ms", "events_to_ms"), 0) | {
    "kinds": []
}
#: The answers that the judge scored, and the mean of their faithfulness, by session.
_JUDGED = f"""SELECT project, session_id, count(), avg(s.faithfulness)
FROM answers AS a
INNER JOIN
(
    SELECT event_id, argMax(metrics['faithfulness'], judged_at) AS faithfulness FROM scores
    WHERE {_BETWEEN} AND status = 'scored' AND mapContains(metrics, 'faithfulness')
      AND event_id IN (SELECT event_id FROM answers WHERE session_id IN {{ids:Array(String)}} AND {_BETWEEN})
    GROUP BY event_id
) AS s USING (event_id)
WHERE a.session_id IN {{ids:Array(String)}} AND {_BETWEEN}
GROUP BY project, session_id"""  # noqa: S608 - constants
_LIST = f"""SELECT project, session_id, source, status, complete, title, last_at, turns, tools, tool_errors, cost_usd, positive, negative,
    answers
FROM
({_sessions(_BETWEEN, "true")})
WHERE last_at >= {moment("since_ms")} AND last_at < {moment("until_ms")} AND ({{source:String}} = '' OR source = {{source:String}})
  AND ({{subagents:Bool}} OR parent_session_id IS NULL)
  AND ({{after_us:Int64}} < 0 OR (-toUnixTimestamp64Micro(toDateTime64(last_at, 6)), toString(project), session_id)
    > (-{{after_us:Int64}}, {{after_project:String}}, {{after_session:String}}))
ORDER BY last_at DESC, project, session_id
LIMIT {{limit:UInt32}}"""  # noqa: S608 - constants
_ONE_IMPORTED = _imported("session_id = {session:String}")


def newest_sessions(
    queries: Queries,
    span: Range,
    *,
    project: str,
    source: str,
    subagents: bool,
    limit: int,
    after: Place | None = None,
    rows_first: int = ROWS_FIRST,
) -> list[dict[str, Any]]:
    """Return the sessions that changed last within a range, newest first, or those after a place.

    Of captured events it reads about the newest `rows_first` before the end of the range and a day after it, and more while these have
    fewer than `limit` sessions of the range. A session that began before these has the counts of the events that were read.
    """
    bounds = Bounds(queries, EventFilter(_KINDS, project or None), Range(0, span.to_ms))
    values = {
        "project": project, "source": source, "subagents": subagents, "limit": limit, "since_ms": span.from_ms,
        "until_ms": span.to_ms, "upper_ms": min(span.to_ms + _DAY_MS, OPEN_END_MS),
        "after_us": after.us if after else -1, "after_project": after.project if after else "",
        "after_session": after.session_id if after else "",
    }  # fmt: skip
    rows = rows_first
    while True:
        low_ms = bounds.lower(span.to_ms, None, rows).low_ms
        found = queries.named(_LIST, values | {"low_ms": low_ms})
        if len(found) >= limit or low_ms <= span.from_ms:
            return _judged(queries, found, low_ms, OPEN_END_MS)
        rows *= _WIDEN


def sessions_of_id(queries: Queries, session_id: str, project: str) -> list[dict[str, Any]]:
    """Return the rows of an id: one for each project that has it.

    The indexes of `session_id` lead to its events: they are asked once, and everything else about these is read between the times that are
    found (`events_from_ms`, `events_to_ms`), of their `kinds`. The parts are joined here: the engine plans their join for longer than it
    reads them.
    """
    values = {"session": session_id, "project": project}
    with queries.threads() as threads:
        parts = [
            threads.submit(queries.named, _ONE_IMPORTED, values),
            threads.submit(queries.named, _ONE_CAPTURED, values, without=_EXACT),
        ]
    imported, captured = ({row["project"]: row for row in part.result()} for part in parts)
    # Server events make no session, but belong to it.
    names = imported.keys() | {name for name, row in captured.items() if row["kinds"] != [Kind.SERVER_EVENT]}
    rows = [_joined(imported.get(each), captured.get(each)) for each in sorted(names)]
    low_ms = min((row["events_from_ms"] for row in captured.values()), default=0)
    return _judged(queries, rows, low_ms, max((row["events_to_ms"] for row in captured.values()), default=0))


def _joined(imported: dict[str, Any] | None, captured: dict[str, Any] | None) -> dict[str, Any]:
    """Return a row as `_sessions` has it, and where its events are. Pure."""
    counts = captured or _NO_EVENTS
    both = [part for part in (imported, captured) if part is not None]
    row = both[0]
    parts = {} if imported is None else imported
    names = ("source_version", "title", "parent_session_id", "forked_from", "model", "cost_usd")
    return {
        **{name: row[name] for name in ("project", "session_id", "first_at", "turns", "tools", "tool_errors")},
        **{name: parts.get(name) for name in names},
        "source": parts.get("source", "capture"),
        "status": parts.get("status", "open"),
        "complete": parts.get("parts") == parts.get("parts_stored"),
        "revision": parts.get("revision", 0),
        "digest": parts.get("digest", ""),
        "parts_from_ms": parts.get("parts_from_ms", 0),
        "parts_to_ms": parts.get("parts_to_ms", 0),
        "last_at": max(part["last_at"] for part in both),
        "input_tokens": parts.get("input_tokens", 0),
        "output_tokens": parts.get("output_tokens", 0),
        "positive": counts["positive"],
        "negative": counts["negative"],
        "answers": counts["turns"],
        **{name: counts[name] for name in ("kinds", "events_from_ms", "events_to_ms")},
        "created_at": max(part["created_at"] for part in both),
    }


def _judged(queries: Queries, found: list[dict[str, Any]], low_ms: int, upper_ms: int) -> list[dict[str, Any]]:
    """Add the number of scored answers and their mean faithfulness."""
    ids = [row["session_id"] for row in found if row["answers"]]
    rows = queries.rows(_JUDGED, {"ids": ids, "low_ms": low_ms, "upper_ms": upper_ms}) if ids else []
    scores = {(project, session): (scored, mean) for project, session, scored, mean in rows}
    for row in found:
        row["scored"], row["faithfulness"] = scores.get((row["project"], row["session_id"]), (0, None))
    return found
