"""Arrivals of a producer's events: the newest, stored or not, with the time of each step."""

from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import TYPE_CHECKING, Any

from assay_operations.time_bounds import utc
from assay_schema.streams import EVENTS, FIELD

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client

#: Newest events of a list, and newest entries of the stream that are looked at, a shard.
EVENTS_MAX, ENTRIES_MAX = 20, 200
#: Longest time back, in ms, and how much later an event may arrive than it happened, in hours: longer is a spool.
SINCE_MAX_MS, _LATE_H = 86_400_000, 24
#: Seconds by which a producer's clock may be ahead before it is worth a word.
SKEW_S = 1.0
#: Seconds after which an event is late, and most services whose clock is named.
LATE_S, NOTES_MAX = 60.0, 3

_KINDS = {
    "retrieval": "candidates", "answer": "answers", "feedback": "feedback", "tool_call": "tool_calls",
    "server_event": "server_events", "session": "session_parts",
}  # fmt: skip
_NEWEST = " UNION ALL ".join(
    f"SELECT '{kind}' AS kind, toString(event_id) AS event_id, project, service, occurred_at, created_at, stored_at FROM {table} "  # noqa: S608  # names of ours
    "WHERE created_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') "
    "AND event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') - toIntervalHour({late:UInt8}) "
    "AND ({project:String} = '' OR project = {project:String}) AND ({service:String} = '' OR service = {service:String}) "
    "ORDER BY created_at DESC LIMIT {limit:UInt16}"
    for kind, table in _KINDS.items()
)
_SERVICES = """SELECT project, service, sum(r.events) AS events, max(r.created_at) AS newest
FROM rollup_day AS r WHERE kind != 'failure' AND day >= today() - 7 AND ({project:String} = '' OR project = {project:String})
GROUP BY project, service ORDER BY newest DESC LIMIT 100"""


@dataclass(frozen=True)
class Arrival:
    """An event: when it happened (producer's clock), came into the log, and was stored (None: not yet)."""

    kind: str
    event_id: str
    project: str
    service: str
    happened_at: datetime
    logged_at: datetime
    stored_at: datetime | None

    @property
    def to_log_ms(self) -> float:
        """Milliseconds from the producer to the log. Negative if the producer's clock is ahead."""
        return (self.logged_at - self.happened_at).total_seconds() * 1000

    @property
    def to_store_ms(self) -> float | None:
        """Milliseconds from the log to the table; None before."""
        return None if self.stored_at is None else (self.stored_at - self.logged_at).total_seconds() * 1000


@dataclass(frozen=True)
class Producer:
    """A service that sent events in the last seven days."""

    project: str
    service: str
    events: int
    newest_at: datetime


def stored(client: "Client", since_ms: int, project: str = "", service: str = "") -> tuple[Arrival, ...]:
    """Read the newest stored events that came into the log since a Unix ms."""
    named = {"since": since_ms, "late": _LATE_H, "project": project, "service": service, "limit": EVENTS_MAX}
    rows = client.query(
        f"SELECT * FROM ({_NEWEST}) ORDER BY created_at DESC LIMIT {{limit:UInt16}}",  # noqa: S608
        parameters=named,
    ).result_rows
    return tuple(
        Arrival(kind, event_id, of, by, utc(happened), utc(logged), utc(put))
        for kind, event_id, of, by, happened, logged, put in rows
    )


def producers(client: "Client", project: str = "") -> tuple[Producer, ...]:
    """List the services that sent events in the last seven days, newest first."""
    rows = client.query(_SERVICES, parameters={"project": project}).result_rows
    return tuple(Producer(of, by, int(events), utc(newest)) for of, by, events, newest in rows)


async def logged(
    client: "Redis", shards: int, since_ms: int, project: str = "", service: str = ""
) -> tuple[Arrival, ...]:
    """Read the newest events in the log, whether stored or not."""
    found = []
    for shard in range(shards):
        for entry, fields in await client.xrevrange(EVENTS.key(shard), min=str(since_ms), count=ENTRIES_MAX):
            arrival = arrival_of(int(entry.partition(b"-")[0]), fields.get(FIELD.encode(), b""))
            if arrival and project in ("", arrival.project) and service in ("", arrival.service):
                found.append(arrival)
    return tuple(sorted(found, key=lambda each: each.logged_at, reverse=True)[:EVENTS_MAX])


def arrival_of(entry_ms: int, data: bytes) -> Arrival | None:
    """Return the times of an entry of the log, and nothing of its text; None if it is not an event. Pure."""
    from assay_operations.tail import event_of

    event: dict[str, Any] = event_of(data) or {}
    try:
        return Arrival(
            str(event["kind"]), str(event["event_id"]), str(event["project"]), str(event["service"]),
            utc(datetime.fromisoformat(event["occurred_at"])),
            utc(datetime.fromisoformat(event["created_at"])) if "created_at" in event
            else datetime.fromtimestamp(entry_ms / 1000, UTC),
            None,
        )  # fmt: skip
    except (KeyError, ValueError, TypeError):
        return None


def together(in_store: tuple[Arrival, ...], in_log: tuple[Arrival, ...]) -> list[Arrival]:
    """Merge stored events with those that are only in the log yet, newest first. Pure."""
    known = {each.event_id for each in in_store}
    oldest = min((each.logged_at for each in in_store), default=None) if len(in_store) >= EVENTS_MAX else None
    waiting = [each for each in in_log if each.event_id not in known and (oldest is None or each.logged_at >= oldest)]
    return sorted([*in_store, *waiting], key=lambda each: each.logged_at, reverse=True)[:EVENTS_MAX]


def clock_note(arrivals: list[Arrival]) -> str:
    """Return what the times say about the clock or spool of each service; empty if nothing is odd. Pure."""
    by_service: dict[str, list[float]] = {}
    for each in arrivals:
        by_service.setdefault(each.service, []).append(each.to_log_ms)
    notes = []
    for service, times in sorted(by_service.items()):
        middle_s = median(times) / 1000
        if middle_s < -SKEW_S:
            notes.append(f"The clock of {service} is {_span(-middle_s)} ahead of Redis's: set it by NTP.")
        elif middle_s > LATE_S:
            notes.append(
                f"Events of {service} came {_span(middle_s)} after they happened: they waited in a spool, or its clock is behind."
            )
    more = [f"And {len(notes) - NOTES_MAX} more services."] if len(notes) > NOTES_MAX else []
    return " ".join([*notes[:NOTES_MAX], *more])


def _span(seconds: float) -> str:
    """Return a duration as a person says it: `40 s`, `1 h`, `2 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if round(seconds) >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"
