"""SQL for rows of events of several kinds: one SELECT, or one per kind with the same columns. Pure.

The view `events` answers if the conditions are the same for every kind: the engine plans it in half the time that the
views of the kinds take. All values are parameters. Columns are named through the alias `e`, because the engine would
otherwise read some of them as the aliases of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from assay_operations.events.filters import KINDS, EventFilter
from assay_operations.events.position import Position
from assay_operations.time_bounds import utc
from assay_schema.fields import Kind

#: Characters of a row's text.
TEXT_CHARS = 200
#: Feedback counts for an event if it was given within this time after it, in milliseconds (7 days). A page of one event shows all.
FEEDBACK_WITHIN_MS = 7 * 86_400_000
#: Feedback may have an earlier time than its event, by another producer's clock; in milliseconds.
FEEDBACK_BEFORE_MS = 86_400_000


@dataclass(frozen=True)
class Source:
    """The view of a kind, and the SQL of the common columns; None for those that the kind does not have."""

    view: str
    #: Text that is shown, and texts that are searched.
    text: str
    searched: tuple[str, ...]
    status: str
    tool: str | None = None
    model: str | None = None
    latency: str | None = None
    results: str | None = None
    error_kind: str | None = None


#: True for a retrieval without hits, as the rollups count it.
_NO_RESULT = "(empty(e.retrieved_chunk_ids) AND empty(e.retrieved_ids) AND empty(e.passages.id))"

SOURCES: dict[Kind, Source] = {
    Kind.RETRIEVAL: Source(
        "candidates",
        "e.query",
        ("e.query",),
        f"if({_NO_RESULT}, 'no_result', 'found')",
        tool="toString(e.tool_name)",
        model="ifNull(toString(e.embedding_model), '')",
        latency="e.latency_ms",
        results="greatest(length(e.retrieved_chunk_ids), length(e.retrieved_ids), length(e.passages.id))",
    ),
    Kind.ANSWER: Source(
        "answers",
        "e.query",
        ("e.query", "e.answer"),
        "if(empty(e.citations), 'uncited', 'cited')",
        model="toString(e.model)",
        latency="e.latency_ms",
        results="length(e.contexts)",
    ),
    Kind.FEEDBACK: Source("feedback", "ifNull(e.text, '')", ("ifNull(e.text, '')",), "toString(e.verdict)"),
    Kind.TOOL_CALL: Source(
        "tool_calls",
        "ifNull(e.args_summary, '')",
        ("ifNull(e.args_summary, '')", "ifNull(e.result_summary, '')", "ifNull(toString(e.error_kind), '')"),
        "toString(e.status)",
        tool="toString(e.tool_name)",
        latency="e.duration_ms",
        error_kind="toString(e.error_kind)",
    ),
    Kind.SERVER_EVENT: Source("server_events", "e.message", ("e.message",), "toString(e.event_subtype)"),
}

#: The columns of a row, in the order of the SELECT.
COLUMNS = (
    "kind", "time", "event_id", "project", "service", "tool", "model", "text", "text_chars", "status", "error_kind", "latency_ms",
    "results", "pii", "traceparent", "session_id",
)  # fmt: skip


@dataclass(frozen=True)
class EventRow:
    """One event in a list."""

    event_id: str
    #: Time inside the event's id.
    time: datetime
    kind: Kind
    project: str
    service: str
    #: The operation of a retrieval, or the tool called; empty for other kinds.
    tool: str
    #: The model of an answer, or the embedding model of a retrieval; empty without one.
    model: str
    #: The first characters of the question, comment, arguments or message, scrubbed.
    text: str
    #: Characters of all of that text.
    text_chars: int
    #: One of the statuses of its kind (`filters.STATUSES`).
    status: str
    error_kind: str | None
    latency_ms: float | None
    #: Hits of a retrieval, passages of an answer; None for other kinds.
    results: int | None
    #: Findings of personal data that were removed, by family.
    pii: dict[str, int]
    trace_id: str | None
    session_id: str | None
    #: Outcome of judging an answer, by the judge that judged it last; None if it was not judged.
    judged: str | None = None
    faithfulness: float | None = None
    #: The metric that the list is filtered by, and its value by the same judge; none if it is faithfulness or there is no such filter.
    metric: str = ""
    measured: float | None = None
    #: `positive`, `negative` or `mixed` feedback within 7 days; None without any. That of feedback itself is its `status`.
    feedback: str | None = None

    @property
    def position(self) -> Position:
        """The place after this row."""
        return Position(unix_ms(self.time), self.event_id, self.kind, self.project)


def unix_ms(moment: datetime) -> int:
    """Return a time in whole Unix milliseconds."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def from_unix_ms(ms: int) -> datetime:
    """Return the time of Unix milliseconds, exactly."""
    return datetime.fromtimestamp(ms // 1_000, UTC).replace(microsecond=ms % 1_000 * 1_000)


def event_row(values: Sequence[Any]) -> EventRow:
    """Make a row from the columns of `select`."""
    found = dict(zip(COLUMNS, values, strict=True))
    traceparent = found.pop("traceparent")
    return EventRow(
        **found
        | {
            "event_id": str(found["event_id"]),
            "time": utc(found["time"]),
            "kind": Kind(found["kind"]),
            "pii": dict(found["pii"]),
            "status": found["status"] or ("found" if found["results"] else "no_result"),
        },
        trace_id=None if traceparent is None else traceparent[3:35],
    )


def moment(name: str) -> str:
    """Return the SQL of a parameter with Unix milliseconds, as a time."""
    return f"fromUnixTimestamp64Milli({{{name}:Int64}}, 'UTC')"


def conditions(wanted: EventFilter, kind: Kind) -> list[str]:
    """Return the conditions of a filter on one kind, without those on time.

    Parameters are those of `parameters`; conditions on feedback and scores also use `low_ms` and `upper_ms`, the bounds of the events.
    """
    source = SOURCES[kind]
    found = []
    if wanted.project is not None:
        found.append("e.project = {project:String}")
    lists = (
        ("services", "e.service", wanted.services),
        ("tools", source.tool, wanted.tools),
        ("models", source.model, wanted.models),
        ("statuses", source.status, wanted.statuses),
    )
    found += [f"has({{{name}:Array(String)}}, {column or repr('')})" for name, column, values in lists if values]
    if wanted.latency_over_ms is not None:
        found.append(f"{source.latency or 'NULL'} > {{latency_over_ms:Float64}}")
    if wanted.text is not None:
        matches = [f"positionCaseInsensitiveUTF8({text}, {{text:String}}) > 0" for text in source.searched]
        found.append(f"({' OR '.join(matches)})")
    if wanted.trace_id is not None:
        found.append("substring(e.traceparent, 4, 32) = {trace_id:String}")
    if wanted.session_id is not None:
        found.append("e.session_id = {session_id:String}")
    return found + _flags(wanted, kind) + _scores(wanted)


def _flags(wanted: EventFilter, kind: Kind) -> list[str]:
    found = []
    if "pii" in wanted.has:
        found.append("notEmpty(e.pii_families)")
    if "no-result" in wanted.has:
        found.append(_NO_RESULT if kind is Kind.RETRIEVAL else "e.status = 'empty'")
    if "uncited" in wanted.has:
        found.append("empty(e.citations)")
    if "negative" in wanted.has and kind is Kind.FEEDBACK:
        found.append("e.verdict = 'negative'")
    elif wanted.has & {"feedback", "negative"}:
        only = " AND verdict = 'negative'" if "negative" in wanted.has else ""
        before, within = FEEDBACK_BEFORE_MS, FEEDBACK_WITHIN_MS
        found.append(
            "(e.event_id, e.project) IN (SELECT target_event_id, project FROM feedback"  # noqa: S608 - parts of this module
            f" WHERE event_time >= {moment('low_ms')} - toIntervalMillisecond({before})"
            f" AND event_time < {moment('upper_ms')} + toIntervalMillisecond({within}){only})"
        )
    return found


def _scores(wanted: EventFilter) -> list[str]:
    """Return the condition on the scores of answers: one score has to meet all of it."""
    found = []
    if "judged" in wanted.has:
        found.append("status = 'scored'")
    if "failed-check" in wanted.has:
        found.append("arrayExists(passed -> NOT passed, mapValues(checks))")
    for number in range(len(wanted.metrics_below)):
        name = f"{{metric_{number}:String}}"
        found.append(f"mapContains(metrics, {name}) AND metrics[{name}] < {{below_{number}:Float64}}")
    if not found:
        return []
    where = [*(part.replace("e.", "") for part in within()), "session_id IS NULL", *found]
    return [f"(e.event_id, e.project) IN (SELECT event_id, project FROM scores WHERE {' AND '.join(where)})"]  # noqa: S608


def parameters(wanted: EventFilter) -> dict[str, Any]:
    """Return the values of the parameters that `conditions` names."""
    return {
        "project": wanted.project or "",
        "services": list(wanted.services),
        "tools": list(wanted.tools),
        "models": list(wanted.models),
        "statuses": list(wanted.statuses),
        "latency_over_ms": wanted.latency_over_ms or 0.0,
        "text": wanted.text or "",
        "trace_id": wanted.trace_id or "",
        "session_id": wanted.session_id or "",
        **{f"metric_{number}": name for number, (name, _) in enumerate(wanted.metrics_below)},
        **{f"below_{number}": value for number, (_, value) in enumerate(wanted.metrics_below)},
    }


def within() -> list[str]:
    """Return the conditions on time: `low_ms <= time < upper_ms`."""
    return [f"e.event_time >= {moment('low_ms')}", f"e.event_time < {moment('upper_ms')}"]


def after(position: Position) -> list[str]:
    """Return the condition for the rows after a position, which `position_parameters` gives.

    `kind` in it is a column of the result.
    """
    if position.event_id is None:
        return []
    key = "(e.event_time, e.event_id, kind, toString(e.project))"
    return [f"{key} < ({moment('at_ms')}, {{at_id:UUID}}, {{at_kind:String}}, {{at_project:String}})"]


def position_parameters(position: Position) -> dict[str, Any]:
    """Return the values of the parameters that `after` names."""
    if position.event_id is None:
        return {}
    return {
        "at_ms": position.ms,
        "at_id": position.event_id,
        "at_kind": position.kind,
        "at_project": position.project,
    }


def select_keys(
    where: Mapping[Kind, Sequence[str]], order: str = "ms DESC, event_id DESC, kind DESC, project DESC"
) -> str:
    """Return a query for the keys of the newest `limit` rows that meet the conditions of their kind.

    Columns: kind, Unix milliseconds, id, project. The engine takes five times as long to plan the same query with all columns.
    """
    columns = "toUnixTimestamp64Milli(e.event_time) AS ms, e.event_id AS event_id, toString(e.project) AS project"
    if (same := _same_for_all(where)) is not None:
        return (
            f"SELECT e.kind AS kind, {columns} FROM events AS e WHERE {' AND '.join(same)}"  # noqa: S608 - parts of this module
            f" ORDER BY {order} LIMIT {{limit:UInt32}}"
        )
    parts = [
        f"(SELECT {kind.value!r} AS kind, {columns} FROM {SOURCES[kind].view} AS e WHERE {' AND '.join(found)})"  # noqa: S608
        for kind, found in where.items()
    ]
    return (
        f"SELECT kind, ms, event_id, project FROM ({' UNION ALL '.join(parts)}) ORDER BY {order} LIMIT {{limit:UInt32}}"  # noqa: S608
    )


def select_newest(where: Mapping[Kind, Sequence[str]]) -> str:
    """Return a query for the newest `limit` rows that meet the conditions of their kind."""
    order = "time DESC, event_id DESC, kind DESC, project DESC"
    return f"SELECT * FROM ({select(where)}) ORDER BY {order} LIMIT {{limit:UInt32}}"  # noqa: S608 - parts of this module


def select(where: Mapping[Kind, Sequence[str]]) -> str:
    """Return a query for the rows of each kind that meet its conditions, in any order."""
    if (same := _same_for_all(where)) is not None:
        return _ALL.format(where=" AND ".join(same))
    return " UNION ALL ".join(f"({_select_one(kind, found)})" for kind, found in where.items())


def _same_for_all(where: Mapping[Kind, Sequence[str]]) -> Sequence[str] | None:
    """Return the conditions if they are the same for every kind: then they name columns of `events` only."""
    found = list(where.values())
    return found[0] if len(found) == len(KINDS) and all(each == found[0] for each in found) else None


def with_ids() -> list[str]:
    """Return the conditions for the events of `ids` in `projects`, within the bounds of time."""
    return [*within(), "e.project IN {projects:Array(String)}", "e.event_id IN {ids:Array(UUID)}"]


_ALL = f"""SELECT e.kind AS kind, e.event_time AS time, e.event_id AS event_id, e.project AS project, e.service AS service,
    e.tool AS tool, e.model AS model, leftUTF8(e.text, {TEXT_CHARS}) AS text, lengthUTF8(e.text) AS text_chars, e.status AS status,
    e.error_kind AS error_kind, e.latency_ms AS latency_ms, e.results AS results, e.pii_families AS pii, e.traceparent AS traceparent,
    e.session_id AS session_id
FROM events AS e WHERE {{where}}"""  # noqa: S608 - constants


def _select_one(kind: Kind, where: Sequence[str]) -> str:
    # The engine plans a query for longer than it runs it, for about a millisecond an expression: the rest is `event_row`'s.
    source = SOURCES[kind]
    null_text, null_float, null_count = (f"CAST(NULL, 'Nullable({name})')" for name in ("String", "Float64", "UInt64"))
    columns = {
        "kind": repr(kind.value),
        "time": "e.event_time",
        "event_id": "e.event_id",
        "project": "e.project",
        "service": "e.service",
        "tool": source.tool or "''",
        "model": source.model or "''",
        "text": f"leftUTF8({source.text}, {TEXT_CHARS})",
        "text_chars": f"lengthUTF8({source.text})",
        "status": "''" if kind is Kind.RETRIEVAL else source.status,
        "error_kind": f"CAST({source.error_kind}, 'Nullable(String)')" if source.error_kind else null_text,
        "latency_ms": f"toNullable({source.latency})" if source.latency else null_float,
        "results": f"toNullable(toUInt64({source.results}))" if source.results else null_count,
        "pii": "e.pii_families",
        "traceparent": "e.traceparent",
        "session_id": "e.session_id",
    }
    return (
        f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in columns.items())} FROM {source.view} AS e"  # noqa: S608
        f" WHERE {' AND '.join(where)}"
    )
