"""The way of an event through the system, step by step: lag, rate and newest entry, from Redis."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay_operations.doctor.redis_checks import GroupFacts, StreamFacts, unread
from assay_schema.settings import DeliverySettings
from assay_schema.streams import ALERTS, CAPTURE, EVENTS, SCORES, Stream

if TYPE_CHECKING:
    from assay_runtime.connection import Client

State = Literal["good", "warn", "bad", "off"]

#: Seconds over which a rate is measured at most, and at least.
RATE_S, RATE_LEAST_S = 600.0, 5.0
#: Seconds between two readings within which a rise of a counter has a time.
RISE_S = 30.0


@dataclass(frozen=True)
class Hop:
    """One step on the way of an event.

    `waiting`: entries that wait for it; None if nothing can wait. `newest_ms`: arrival of the newest entry it has taken
    (Unix ms). `done`: counter of its entries; None if Redis lost count. `note` says what is wrong.
    """

    name: str
    service: str
    waiting: int | None
    oldest_ms: int | None
    newest_ms: float | None
    done: int | None
    state: State = "good"
    note: str = ""


#: The steps: name, the service that does it, the stream it takes from, and the stream and group that show what it has done.
_STEPS: tuple[tuple[str, str, Stream, Stream, str], ...] = (
    ("scrubbed", "scrubber", CAPTURE, EVENTS, ""),
    ("stored", "writer", EVENTS, EVENTS, "writer"),
    ("judged", "judge", EVENTS, SCORES, "writer"),
    ("notified", "notifier", ALERTS, ALERTS, "notifier"),
)


@dataclass(frozen=True)
class Place:
    """The end of a stream, or of what a group has read: counter (None if lost) and newest id (Unix ms)."""

    done: int | None
    newest_ms: float | None


async def hops(client: "Client", shards: int, settings: DeliverySettings) -> list[Hop]:
    """Read every step on the way of an event, over all shards. Needs no right to read captured entries."""
    from assay_operations.doctor.probes import stream_facts

    facts = await stream_facts(client, shards)
    found = [Hop("captured", "producers", None, None, *await _captured(client, shards))]
    for name, service, taken, made, group in _STEPS:
        places = [await _place(client, made, shard, group) for shard in range(shards)]
        groups = _groups(facts, taken, service)
        state, note = judged_state(groups, settings, optional=service in taken.optional)
        done = [place.done for place in places]
        found.append(
            Hop(
                name,
                service,
                sum(each.waiting for each in groups) if groups else None,
                max((each.oldest_pending_ms for each in groups if each.oldest_pending_ms is not None), default=None),
                max((place.newest_ms for place in places if place.newest_ms), default=None),
                None if None in done else sum(each or 0 for each in done),
                state,
                note,
            )
        )
    return found


def judged_state(groups: list[GroupFacts], settings: DeliverySettings, *, optional: bool) -> tuple[State, str]:
    """Return the state of a step from the groups of its service, and what is wrong. Pure."""
    if not groups:
        return ("off", "not started") if optional else ("warn", "has not started yet")
    for group in groups:
        why = unread(group, settings.visibility_timeout_s)
        if why and group.waiting:
            return "bad", why.removeprefix("unread stream: ")
        if why:
            return ("off" if optional else "warn"), why.removeprefix("unread stream: ")
    if any(group.lag > settings.lag_limit_entries for group in groups):
        return "warn", "lag above delivery.lag_limit_entries"
    if any((group.oldest_pending_ms or 0) > 3_000 * settings.visibility_timeout_s for group in groups if group.pending):
        return "warn", "entries are stuck"
    return "good", ""


def _groups(facts: list[StreamFacts], stream: Stream, service: str) -> list[GroupFacts]:
    return [group for each in facts if each.name == stream.name for group in each.groups if group.name == service]


async def _captured(client: "Client", shards: int) -> tuple[float | None, int | None]:
    """Return the newest captured entry that was read (Unix ms), and how many were captured."""
    newest, count = [], []
    for shard in range(shards):
        place = await _place(client, CAPTURE, shard, "scrubber")
        newest.append(place.newest_ms)
        waiting = int(await client.xlen(CAPTURE.key(shard)))
        count.append(None if place.done is None else place.done + waiting)
    return (
        max((each for each in newest if each), default=None),
        None if None in count else sum(each or 0 for each in count),
    )


async def _place(client: "Client", stream: Stream, shard: int, group: str) -> Place:
    """Return how far a group has read a stream, or, without a group, how far it was written."""
    from redis.exceptions import ResponseError

    key = stream.key(shard)
    try:
        if not group:
            whole = await client.xinfo_stream(key)
            return Place(int(whole["entries-added"]), _ms(whole["last-generated-id"]))
        for each in await client.xinfo_groups(key):
            if each["name"].decode() == group:
                read = each.get("entries-read")
                return Place(None if read is None else int(read), _ms(each["last-delivered-id"]))
    except ResponseError as error:
        if "no such key" not in str(error).lower():
            raise
    return Place(0, None)


def _ms(entry: bytes) -> float | None:
    return float(entry.partition(b"-")[0]) or None


@dataclass
class _Rise:
    """A reading of a counter, when it was made, and when one last showed a rise (Unix s)."""

    count: int
    at_s: float
    rose_s: float | None = None


class FlowHistory:
    """The readings of counters that one process has made, and the time when Redis last answered."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._rises: dict[str, _Rise] = {}
        self._answered_s: float | None = None

    def answered(self, at_s: float) -> None:
        """Note that Redis answered (Unix s)."""
        self._answered_s = at_s

    def silent_s(self, at_s: float) -> float:
        """Return the seconds since Redis last answered; 0 if it never did."""
        return 0.0 if self._answered_s is None else max(0.0, at_s - self._answered_s)

    def rate(self, name: str, at_s: float, count: int | None) -> float | None:
        """Note a reading of a counter, and return its entries per second over ten minutes at most.

        None without two readings some seconds apart.
        """
        if count is None:
            return None
        seen = self._seen.setdefault(name, deque())
        if seen and count < seen[-1][1]:
            seen.clear()  # another Redis, which counts from its own start
        while seen and at_s - seen[0][0] > RATE_S:
            seen.popleft()
        if not seen or at_s - seen[-1][0] >= RATE_LEAST_S:
            seen.append((at_s, count))
        first_s, first = seen[0]
        return (count - first) / (at_s - first_s) if at_s - first_s >= RATE_LEAST_S else None

    def since_rise_s(self, name: str, at_s: float, count: int) -> float | None:
        """Note a reading of a counter, and return the seconds since its last rise; None if none was seen.

        A rise is seen between two readings that are `RISE_S` seconds apart or less.
        """
        seen = self._rises.setdefault(name, _Rise(count, at_s))
        if count > seen.count and at_s - seen.at_s <= RISE_S:
            seen.rose_s = at_s
        seen.count, seen.at_s = count, at_s
        return None if seen.rose_s is None else at_s - seen.rose_s


async def newest_of_group(client: "Client", shards: int, streams: tuple[Stream, ...], group: str) -> float | None:
    """Return the seconds since the newest entry arrived that a group has read; None if it has read none."""
    import time

    places = [await _place(client, stream, shard, group) for shard in range(shards) for stream in streams]
    newest = max((place.newest_ms for place in places if place.newest_ms), default=None)
    return None if newest is None else round(max(0.0, time.time() - newest / 1000), 1)
