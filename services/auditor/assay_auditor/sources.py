"""Sources of rows, read from the views: tool calls, server events, losses, what people changed.

Arguments, results and messages are not read: the store hashes them, however long they are.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay_auditor.rows import PRESENT_SQL, Source, record_id, time_sql
from assay_runtime.store import Client
from assay_schema.ids import PLACES

#: Services whose failures mean that an event is in no table.
LOSING_STAGES = ("gateway", "assembler", "scrubber", "writer")
#: Seconds before the newest record that are read again: an insert may become visible after one with a later `stored_at`.
OVERLAP_S = 3_600
#: Seconds before the place that the log has reached, or before the present if that is earlier, in which late sources are looked for.
LATE_S = 86_400
#: Kinds of rows whose place is the id of an event.
EVENT_KINDS = ("tool_call", "server_event")
_EVENT_TABLES = ("tool_calls", "server_events")
_NEXT = "WHERE id > {after:UInt64} AND id <= {upto:UInt64} ORDER BY id LIMIT {most:UInt64}"
#: Batches whose ends are looked up at once.
_BATCHES = 20
#: Places of a second: ids of events, and Unix microseconds of records.
_EVENT_SECOND, _RECORD_SECOND = 1_000 * PLACES, 1_000_000
#: Identifiers that one query names. A server refuses a parameter of more than 128 KiB, and each takes 39 bytes.
NAMED_AT_ONCE = 2_000


def _digest(column: str) -> str:
    return f"if(isNull({column}), NULL, lower(hex(SHA256(assumeNotNull({column})))))"


_CALLS = f"""
SELECT
    'tool_call', toString(event_id), id, {time_sql("occurred_at")}, {time_sql("created_at")}, toString(project), service,
    toString(tool_name), toString(status), server_session_id, toUInt64(least(round(duration_ms * 1000), 9e15)), toString(error_kind),
    CAST(pii_attempted, 'Array(String)'), CAST(pii_blocked, 'Array(String)'), toString(agent_name), {_digest("args_summary")},
    {_digest("result_summary")}, NULL, toString(policy)
FROM tool_calls
"""  # noqa: S608 - constants
_SERVER_EVENTS = f"""
SELECT
    'server_event', toString(event_id), id, {time_sql("occurred_at")}, {time_sql("created_at")}, toString(project), service,
    toString(event_subtype), 'success', server_session_id, NULL, NULL,
    CAST(pii_attempted, 'Array(String)'), CAST(pii_blocked, 'Array(String)'), toString(agent_name), {_digest("args_summary")},
    {_digest("result_summary")}, {_digest("toNullable(message)")}, toString(policy)
FROM server_events
"""  # noqa: S608 - constants
_LOSSES = "capture_failures WHERE isNotNull(entry_id) AND stage IN {stages:Array(String)}"
_LOST = f"""
SELECT
    toString(failure_id), toUnixTimestamp64Micro(toDateTime64(stored_at, 6, 'UTC')), {time_sql("created_at")}, toString(project), service,
    toString(stage), toString(reason), CAST(pii_attempted, 'Array(String)'), CAST(pii_blocked, 'Array(String)'),
    toString(error_class), detail, toString(event_id), entry_id
FROM {_LOSSES}
"""  # noqa: S608 - constants
#: A version of a case of a dataset is its own record, made by its reviewer: it is read like one. Its question and answers are not.
#: `source_id` is `rows.record_id`.
_RECORDS = """(
SELECT *, lower(hex(substring(SHA256(concat(operation_id, ' ', outcome)), 1, 16))) AS digits, toUUID(concat(
    substring(digits, 1, 12), '8', substring(digits, 14, 3),
    translate(substring(digits, 17, 1), '0123456789abcdef', '89ab89ab89ab89ab'), substring(digits, 18)
)) AS source_id
FROM (
    SELECT
        toString(operation_id) AS operation_id, toString(outcome) AS outcome, stored_at, at, toString(operation) AS operation,
        toString(actor) AS actor, toString(error_kind) AS error_kind, toString(host) AS host, toString(identity) AS identity, target,
        comment, toString(planned) AS planned, toString(changed) AS changed
    FROM operations_audit
    UNION ALL
    SELECT
        concat(project, '/', dataset, '/', toString(version), '/', case_id), 'done', stored_at, at,
        if(retired, 'dataset retire', 'dataset save'), reviewer, '', '', 'console',
        concat(
            '{"project":', toJSONString(toString(project)), ',"dataset":', toJSONString(toString(dataset)), ',"case_id":',
            toJSONString(case_id), ',"version":', toString(version), '}'
        ), '', '1', '1'
    FROM dataset_case_versions
)) AS records WHERE 1"""
_OPERATIONS = f"""
SELECT
    operation_id, outcome, toUnixTimestamp64Micro(stored_at), {time_sql("at")}, operation, actor, error_kind, host, identity, target,
    comment, planned, changed
FROM {_RECORDS}
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class _Stored:
    """Says where sources of a kind are stored.

    Tables with a condition, the columns of id and place, and the kinds of their leaves.
    """

    tables: tuple[str, ...]
    identity: str
    place: str
    second: int
    leaves: tuple[str, ...]
    #: Seconds before the place that the log has reached, or the present, that each pass reads anyway.
    read_s: int

    @property
    def hour(self) -> int:
        """Places that belong to one hour."""
        return 3_600 * self.second


_STORED_AT = "toUnixTimestamp64Micro(toDateTime64(stored_at, 6, 'UTC'))"
#: The kinds of sources, as in `Log.places`.
_KINDS = {
    "event": _Stored(
        tuple(f"{table} WHERE 1" for table in _EVENT_TABLES), "event_id", "id", _EVENT_SECOND, EVENT_KINDS, 0
    ),
    "lost": _Stored((_LOSSES,), "failure_id", _STORED_AT, _RECORD_SECOND, ("lost",), OVERLAP_S),
    "operation": _Stored((_RECORDS,), "source_id", _STORED_AT, _RECORD_SECOND, ("operation",), OVERLAP_S),
}


def _event(row: Sequence[Any], *, late: bool = False) -> Source:
    kind, event_id, place, occurred, created, project, service, tool, status, session, duration, error = row[:12]
    attempted, blocked, agent, arguments, result, message, policy = row[12:]
    return Source(
        kind=kind,
        source_id=event_id,
        place=place,
        occurred_at=occurred,
        created_at=created,
        project=project,
        service=service,
        tool_name=tool,
        status=status,
        server_session_id=session,
        duration_us=duration,
        error_kind=error,
        pii_attempted=attempted,
        pii_blocked=blocked,
        caller_id=agent,
        personal={
            "args_sha256": arguments,
            "result_sha256": result,
            "message_sha256": message,
            "policy": policy or None,
        },
        late=late,
    )


def _lost(row: Sequence[Any]) -> Source:
    failure_id, place, created, project, service, stage, reason, attempted, blocked, error, detail, event, entry = row
    return Source(
        kind="lost",
        source_id=failure_id,
        place=place,
        occurred_at=created,
        created_at=created,
        project=project,
        service=service,
        tool_name=stage,
        status="lost",
        error_kind=reason,
        pii_attempted=attempted,
        pii_blocked=blocked,
        personal={"error_class": error, "detail": detail or None, "event_id": event, "entry_id": entry},
    )


def _operation(row: Sequence[Any]) -> Source:
    operation_id, outcome, place, at, operation, actor, error, host, identity, target, comment, planned, changed = row
    return Source(
        kind="operation",
        source_id=record_id(operation_id, outcome),
        place=place,
        occurred_at=at,
        created_at=at,
        project="",
        service="assay",
        tool_name=operation,
        status=outcome,
        error_kind=error or None,
        caller_id=actor,
        personal={
            "operation_id": operation_id,
            "host": host,
            "identity": identity,
            "target": target,
            "comment": comment or None,
            "planned": planned,
            "changed": changed,
        },
    )


class Sources:
    """Reads sources that are not in the log yet. Synchronous; raises the driver's errors."""

    def __init__(self, client: Client, log: str) -> None:
        self._client = client
        self._log = log
        #: True if the last batch of events was full, and the ids at which the next batches end, the last one first.
        self._many = False
        self._ends: list[int] = []
        #: Ids of each kind that have a leaf, of those that the last pass read: they are not looked for again.
        self._known: dict[str, set[str]] = {"lost": set(), "operation": set()}
        #: What the window of each kind had when all of it had leaves: it is not read again while it has the same.
        self._written: dict[str, Sequence[Any]] = {}

    def watermark(self) -> int:
        """Return the closed watermark of all shards.

        Up to it, every captured event is stored or recorded as a failure.
        """
        rows = self._client.query("SELECT watermark FROM watermark").result_rows
        return int(rows[0][0]) if rows else 0

    def latest_place(self) -> int:
        """Return the greatest place that an event in the log may have.

        It is the watermark, or the present if that is later. The watermark goes back when a shard is added, and a clock that was set back
        is behind the watermark.
        """
        query = f"SELECT greatest(max(watermark), {PRESENT_SQL}) FROM watermark"  # noqa: S608 - constants
        return int(self._client.query(query).result_rows[0][0])

    def events(self, after: int, upto: int, most: int) -> list[Source]:
        """Return the next events with `after < id <= upto`, in their order."""
        if after >= upto:
            return []
        wanted = {"after": after, "upto": min(upto, self._end(after, upto, most)), "most": most}
        found: list[Source] = []
        for query in (_CALLS, _SERVER_EVENTS):
            found += [_event(row) for row in self._client.query(query + _NEXT, parameters=wanted).result_rows]
        self._many = len(found) >= most
        if not self._many:
            self._ends = []  # events may have been deleted meanwhile
        return sorted(found, key=_order)[:most]

    def _end(self, after: int, upto: int, most: int) -> int:
        """Return the id of the last event of a batch, if many follow: so that the store does not read all later ones for each batch."""
        while self._ends and self._ends[-1] <= after:
            self._ends.pop()
        if self._many and not self._ends:
            wanted = {"after": after, "upto": upto, "most": most * _BATCHES}
            ids: list[int] = []
            for table in _EVENT_TABLES:
                rows = self._client.query(f"SELECT id FROM {table} {_NEXT}", parameters=wanted).result_rows  # noqa: S608 - constants
                ids += [each for (each,) in rows]
            self._ends = sorted(ids)[: most * _BATCHES][most - 1 :: most][::-1]
        return self._ends[-1] if self._ends else upto

    def late(self, kind: str, reached: int, most: int, since: int | None = None) -> list[Source]:
        """Return sources of a kind that were stored after the log had passed their places.

        `kind`: "event", "lost" or "operation".

        Looks in the last day (`LATE_S`) below the place that the log has reached, or below the present if that is earlier: a clock that was
        ahead, and was set back since, leaves places that are later than the present. `since`: the place that the log had reached at the
        last look; the day is before it if it is earlier. Ids are compared in the store, hour by hour; only those of hours that differ are
        read.
        """
        own = _KINDS[kind]
        low, high = self._late_range(own, reached, reached if since is None else since)
        wanted = {
            "after": low,
            "upto": high,
            "log": self._log,
            "kinds": list(own.leaves),
            "stages": list(LOSING_STAGES),
        }
        between = f" AND {own.place} > {{after:UInt64}} AND {own.place} <= {{upto:UInt64}}"
        leaves = "audit_leaves WHERE log = {log:String} AND kind IN {kinds:Array(String)}"
        logged = self._by_hour(
            leaves + " AND place > {after:UInt64} AND place <= {upto:UInt64}", "source_id", "place", own.hour, wanted
        )
        stored: Counter[int] = Counter()
        for table in own.tables:
            stored += self._by_hour(table + between, own.identity, own.place, own.hour, wanted)
        missing: list[str] = []
        for hour in sorted(stored):
            if stored[hour] == logged[hour]:
                continue
            within = wanted | {"hour": hour}
            known = set(self._ids(f"{leaves} AND intDiv(place, {own.hour}) = {{hour:UInt64}}", "source_id", within))
            for table in own.tables:
                where = f"{table}{between} AND intDiv({own.place}, {own.hour}) = {{hour:UInt64}}"
                missing += self.unknown([each for each in self._ids(where, own.identity, within) if each not in known])
            if len(missing) >= most:
                break
        return self.by_ids([(own.leaves[0], each) for each in missing[:most]], late=True)

    def _late_range(self, own: _Stored, reached: int, since: int) -> tuple[int, int]:
        """Return the places, above the first and up to the second, that no other query of a pass reads."""
        present = PRESENT_SQL if own.leaves == EVENT_KINDS else "toUnixTimestamp64Micro(now64(6, 'UTC'))"
        [[now]] = self._client.query(f"SELECT {present}").result_rows
        base = min(reached, int(now))
        high = base - own.read_s * own.second if own.read_s else reached
        return max(0, min(base, since) - LATE_S * own.second), max(0, high)

    def _by_hour(self, rows: str, identity: str, place: str, hour: int, wanted: dict[str, Any]) -> "Counter[int]":
        """Return a sum of hashes of the ids of each hour: equal for equal sets."""
        query = f"SELECT intDiv({place}, {hour}) AS hour, sum(intDiv(cityHash64({identity}), 4294967296)) FROM {rows} GROUP BY hour"  # noqa: S608
        return Counter(
            {int(each): int(total) for each, total in self._client.query(query, parameters=wanted).result_rows}
        )

    def _ids(self, rows: str, identity: str, wanted: dict[str, Any]) -> list[str]:
        query = f"SELECT toString({identity}) FROM {rows}"  # noqa: S608
        return [str(row[0]) for row in self._client.query(query, parameters=wanted).result_rows]

    def lost(self, since_us: int, most: int) -> list[Source]:
        """Return lost events that are not in the log, by the time at which they were stored.

        `since_us`: in Unix microseconds. An hour before it is read again.
        """
        return self._records(_LOST, since_us, most, "lost")

    def operations(self, since_us: int, most: int) -> list[Source]:
        """Return records of operations that are not in the log, as `lost` does."""
        return self._records(_OPERATIONS, since_us, most, "operation")

    def _records(self, query: str, since_us: int, most: int, kind: str) -> list[Source]:
        made = _lost if kind == "lost" else _operation
        # The store's clock may have been set back: no record is later than its present.
        window = (
            "AND stored_at >= least(fromUnixTimestamp64Micro({since:Int64}, 'UTC'), now64(6, 'UTC')) "
            "- toIntervalSecond({overlap:UInt32})"
        )
        wanted = {"since": since_us, "overlap": OVERLAP_S, "stages": list(LOSING_STAGES)}
        [rows] = _KINDS[kind].tables
        identity = "failure_id" if kind == "lost" else "operation_id, outcome"
        now = self._client.query(
            f"SELECT count(), sum(cityHash64({identity}, stored_at)) FROM {rows} {window}",  # noqa: S608 - constants
            parameters=wanted,
        ).result_rows[0]
        if self._written.get(kind) == (since_us, *now):
            return []
        found: list[Source] = []
        known: set[str] = set()
        with self._client.query_row_block_stream(query + window + " ORDER BY stored_at", parameters=wanted) as blocks:
            for block in blocks:
                batch = [made(row) for row in block]
                ids = {each.source_id for each in batch}
                new = set(self.unknown(sorted(ids - self._known[kind])))
                known |= ids - new
                found += [each for each in batch if each.source_id in new]
                if len(found) >= most:
                    break
        self._known[kind] = known
        if not found:
            self._written[kind] = (since_us, *now)
        return sorted(found, key=_order)[:most]

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that no leaf has."""
        known: set[str] = set()
        for start in range(0, len(ids), NAMED_AT_ONCE):
            rows = self._client.query(
                "SELECT toString(source_id) FROM audit_leaves WHERE log = {log:String} AND source_id IN {ids:Array(UUID)}",
                parameters={"log": self._log, "ids": list(ids[start : start + NAMED_AT_ONCE])},
            ).result_rows
            known.update(row[0] for row in rows)
        return [each for each in dict.fromkeys(ids) if each not in known]

    def by_ids(self, wanted: Sequence[tuple[str, str]], *, late: bool = False) -> list[Source]:
        """Return the sources with these kinds and ids that are stored, in the order of events."""
        found: list[Source] = []
        for start in range(0, len(wanted), NAMED_AT_ONCE):
            part = wanted[start : start + NAMED_AT_ONCE]
            if ids := [each for kind, each in part if kind in EVENT_KINDS]:
                for query in (_CALLS, _SERVER_EVENTS):
                    rows = self._client.query(
                        query + "WHERE event_id IN {ids:Array(UUID)}", parameters={"ids": ids}
                    ).result_rows
                    found += [_event(row, late=late) for row in rows]
            if ids := [each for kind, each in part if kind == "lost"]:
                named = {"ids": ids, "stages": list(LOSING_STAGES)}
                rows = self._client.query(_LOST + "AND failure_id IN {ids:Array(UUID)}", parameters=named).result_rows
                found += [replace(_lost(row), late=late) for row in rows]
            if ids := [each for kind, each in part if kind == "operation"]:
                rows = self._client.query(
                    _OPERATIONS + "AND source_id IN {ids:Array(UUID)}", parameters={"ids": ids}
                ).result_rows
                found += [replace(_operation(row), late=late) for row in rows]
        return sorted(found, key=_order)


def _order(source: Source) -> tuple[int, str]:
    return source.place, source.source_id
