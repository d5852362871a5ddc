"""The open traces of one shard, in Redis, changed atomically with their entries.

A trace waits for its last spans: its answer is made when it closes. Its spans wait in Redis, so a restart loses
nothing, and replicas share them. Every change names the version that it is based on, and gives the trace a new one, which
is random: a number would come back once a trace closed, or once Redis lost the end of its log. A change that is based on
another version changes nothing and is made again. An event is published once, because its id is a function of one of its
spans, and the trace remembers the ids that were sent. A closed trace remembers the spans of its events too, for a while.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from redis.exceptions import RedisError

from assay_assembler.decode import decode
from assay_assembler.decode_logs import LogEvent, decode_logs
from assay_assembler.span import Span
from assay_assembler.step import Reason
from assay_assembler.trace import OpenFeedback, Options, Trace
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client, server_of
from assay_runtime.dead_letter_writer import NO_ROOM
from assay_runtime.entries import Entry, Outcome, failure_of
from assay_runtime.lua import script
from assay_runtime.same_redis import guarded
from assay_runtime.scripts import DEAD_LETTER
from assay_schema.failures import Failure
from assay_schema.failures import Reason as FailureReason
from assay_schema.settings import AssemblerSettings
from assay_schema.span_entry import parse_span_entry
from assay_schema.streams import (
    CAPTURE,
    DEAD,
    FAILURES,
    SPANS,
    answer_of_response_key,
    answer_of_trace_key,
    open_bytes_key,
    open_traces_key,
    trace_key,
    unassembled_key,
)

log = logging.getLogger(__name__)

GROUP = "assembler"
#: What a failure says of spans that became dead letters.
KEPT = "kept as a dead letter for a while; see assay dead list"
#: Times that a change is made again because another replica was first, before the entries are left for redelivery.
_TRIES = 20
#: Traces read in one step, and steps of a tick.
_PAGE, _PAGES = 100, 20
#: Memory of the id of a sent event or of an assembled span.
_REMEMBERED_BYTES = 128
#: Seconds for which a trace is postponed that should become dead letters while there is no room.
_POSTPONED_S = 60
TAKE = script("assay_assembler", "take")
CLOSE = script("assay_assembler", "close")
REFUSE = script("assay_assembler", "refuse")


@dataclass(frozen=True, slots=True)
class Arrival(Outcome):
    """An entry with its spans."""

    project: str = ""
    service: str = ""
    trace_id: str = ""
    data: bytes = b""
    spans: tuple[Span, ...] = ()
    logs: tuple[LogEvent, ...] = ()


@dataclass
class _Known:
    """A trace as this process knows it: its spans, the number of their entries, and its version."""

    trace: Trace
    entries: int = 0
    version: str = ""
    bytes: int = 0

    def add(self, arrival: Arrival) -> None:
        """Add the spans of an entry."""
        for span in arrival.spans:
            self.trace.add(span)
        for record in arrival.logs:
            self.trace.log(record.span_id, record.event)
        self.bytes += len(arrival.data)


class OpenTraces:
    """The open traces of one shard."""

    def __init__(
        self, client: Client, settings: AssemblerSettings, shard: int, dead_bytes: int, user_key: bytes = b""
    ) -> None:
        self._client = client
        self._user_key = user_key
        self._dead_bytes = dead_bytes
        self._settings = settings
        self._shard = shard
        self._take = guarded(client, TAKE)
        self._refuse = guarded(client, REFUSE)
        self._bury = guarded(client, DEAD_LETTER)
        self._close = client.register_script(CLOSE)
        #: Least recently used first. Redis has the truth; this saves reading it.
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._known_bytes = 0

    async def finish(self, outcomes: Sequence[Outcome], redis: str) -> int:
        """Add spans to their traces.

        Returns the number of entries that were still ours. Raises `OtherRedisError`.
        """
        refused = [each for each in outcomes if each.failure is not None]
        done = await self._refused(refused, redis) if refused else 0
        traces: dict[str, list[Arrival]] = {}
        for each in outcomes:
            if isinstance(each, Arrival):
                traces.setdefault(trace_key(self._shard, each.project, each.trace_id), []).append(each)
        for key, arrivals in traces.items():
            done += await self._added(key, arrivals, redis)
        return done

    async def _refused(self, outcomes: list[Outcome], redis: str) -> int:
        arguments: list[Any] = [redis, GROUP]
        for outcome in outcomes:
            assert outcome.failure is not None
            arguments += (outcome.entry_id, outcome.failure.model_dump_json())
        return int(await self._refuse(keys=[SPANS.key(self._shard), FAILURES.key(self._shard)], args=arguments))

    async def _added(self, key: str, arrivals: list[Arrival], redis: str) -> int:
        for attempt in range(_TRIES):
            if not arrivals:
                return 0
            known = (
                await self._read(key, arrivals[0]) if attempt else self._forget(key) or _Known(self._new(arrivals[0]))
            )
            version = uuid4().hex
            try:
                for each in arrivals:
                    known.add(each)
                arguments = self._taking(known, version, arrivals, redis)
            except Exception as error:  # noqa: BLE001  # a bug in mapping must not stop other traces
                return await self._unmapped(key, arrivals, redis, type(error).__name__)
            keys = [SPANS.key(self._shard), CAPTURE.key(self._shard), *self._keys(key)]
            answer = await self._take(keys=keys, args=arguments)
            if answer[0] == b"ok":
                known.entries += len(arrivals)
                known.version = version
                self._remember(key, known)
                if answer[1]:
                    metrics.ASSEMBLER_LATE.inc(sum(len(each.spans) for each in arrivals))
                return len(arrivals)
            gone = {found.decode() for found in answer[1:]}
            arrivals = [each for each in arrivals if each.entry_id not in gone]
        return 0  # they stay pending and are redelivered

    async def _unmapped(self, key: str, arrivals: list[Arrival], redis: str, error_class: str) -> int:
        """Make a dead letter of the entry whose spans cannot be mapped, and add the others."""
        if len(arrivals) > 1:
            return sum([await self._added(key, [each], redis) for each in arrivals])
        (one,) = arrivals
        entry = Entry(one.entry_id, one.data)
        failure = failure_of(entry, GROUP, FailureReason.OTHER, error_class, f"the spans cannot be mapped; {KEPT}")
        keys = [SPANS.key(self._shard), DEAD.key(self._shard), FAILURES.key(self._shard)]
        arguments = [redis, GROUP, one.entry_id, GROUP, failure.reason.value, error_class, 1]
        done = await self._bury(keys=keys, args=[*arguments, failure.model_dump_json(), self._dead_bytes])
        if done == NO_ROOM:
            log.error("no room for another dead letter; the spans stay in their stream: raise delivery.dead_bytes")
        return int(done == 1)

    def _taking(self, known: _Known, version: str, arrivals: list[Arrival], redis: str) -> list[Any]:
        limits = self._settings
        times = (limits.grace_s, limits.idle_s, limits.longest_s)
        arguments: list[Any] = [redis, GROUP, known.entries, int(known.trace.rooted), len(known.trace)]
        arguments += [*(int(each * 1000) for each in times), limits.trace_spans, limits.trace_bytes]
        arguments += [known.version, version, len(arrivals)]
        for each in arrivals:
            arguments += (each.entry_id, each.data)
        return arguments + _listed((made.event_id, made.data) for made in known.trace.ready())

    async def close_due(self) -> None:
        """Close the traces whose time has come; the next ones too while all need more memory than they may.

        The time is Redis's, which dated them. If it was set back, they wait no longer than a trace may.
        """
        key = open_traces_key(self._shard)
        now_ms = await self._now_ms()
        latest_ms = now_ms + int(1000 * max(self._settings.grace_s, self._settings.idle_s, _POSTPONED_S))
        for name in await self._client.zrangebyscore(key, f"({latest_ms}", "+inf", start=0, num=_PAGE * _PAGES):
            await self._client.zadd(key, {name: latest_ms}, lt=True, xx=True)
        for _ in range(_PAGES):
            over = int(await self._client.get(open_bytes_key(self._shard)) or 0) > self._settings.open_bytes
            until: Any = "+inf" if over else now_ms
            names = await self._client.zrangebyscore(key, "-inf", until, start=0, num=_PAGE)
            closed = sum([await self._closed_or_given_up(name.decode()) for name in names])
            if not closed or (len(names) < _PAGE and not over):
                break
        metrics.OPEN_TRACES.labels(str(self._shard)).set(await self._client.zcard(key))

    async def _now_ms(self) -> int:
        seconds, microseconds = await server_of(self._client, self._shard).time()
        return int(seconds) * 1000 + int(microseconds) // 1000

    async def _closed_or_given_up(self, key: str) -> bool:
        """Close a trace; one that cannot be assembled becomes a failure. False if it has changed meanwhile."""
        version = await self._client.hget(key, "version") or b""
        try:
            return await self._closed(key)
        except RedisError:
            raise
        except Exception as error:  # noqa: BLE001  # a bug in mapping must not stop other traces
            error_class = type(error).__name__
        log.error("a trace cannot be assembled", extra={"error_class": error_class})
        entries, first = int(await self._client.hget(key, "entries") or 0), await self._client.hget(key, "first")
        failure = Failure(
            failure_id=uuid5(NAMESPACE_OID, f"{GROUP}/{key}/{version.decode()}"),
            entry_id=first.decode() if first else None,
            project=_parts(key)[0],
            stage=GROUP,
            reason=FailureReason.OTHER,
            error_class=error_class,
            detail=f"a trace of {entries} entries cannot be assembled; {KEPT}",
            created_at=datetime.fromtimestamp(clock.now_ms() / 1000, UTC),
        )
        head = [entries, int(self._settings.memory_s * 1000), version, failure.model_dump_json(), error_class]
        head += [self._dead_bytes, _POSTPONED_S * 1000]
        done = await self._close(keys=self._closing(key), args=[*head, 0, "", 0, uuid4().hex, 0, 0, 0])
        if done == NO_ROOM:
            log.error("no room for another dead letter; a trace stays open: raise delivery.dead_bytes")
        return bool(done == 1)

    async def _closed(self, key: str) -> bool:
        known = await self._read(key)
        trace = known.trace
        made = trace.close()
        for feedback in trace.open_feedback:
            target = await self._target(trace.project, feedback) or feedback.otherwise
            event = feedback.made(target) if target else None
            if event is None:
                trace.counts[Reason.INVALID if target else Reason.NO_TARGET] += 1
            else:
                made.append(event)
        counts = {reason: count for reason, count in trace.counts.items() if count}
        targets = [(f"t{span_id}", event_id) for span_id, event_id in trace.targets.items()]
        arguments: list[Any] = [known.entries, int(self._settings.memory_s * 1000), known.version, "", "", 0, 0]
        arguments += [int(self._settings.answer_memory_s * 1000), trace.answer, trace.answer_rank, uuid4().hex]
        arguments += _listed((each.event_id, each.data) for each in made) + _listed(targets)
        arguments += _listed((f"{trace.project}/{reason.value}", count) for reason, count in counts.items())
        arguments += trace.responses.values()
        responses = [answer_of_response_key(self._shard, trace.project, each) for each in trace.responses]
        if not await self._close(keys=self._closing(key) + responses, args=arguments):
            return False  # it has more spans now, or another replica closed it
        for reason, count in counts.items():
            metrics.ASSEMBLER_SPANS.labels(metrics.project_label(trace.project), reason.value).inc(count)
        return True

    async def _target(self, project: str, feedback: OpenFeedback) -> str:
        """Return the `event_id` that feedback is about; empty if it is not known."""
        found = None
        if response_id := feedback.verdict.response_id:
            found = await self._client.get(answer_of_response_key(self._shard, project, response_id))
        if not found and feedback.target_span:
            key = trace_key(self._shard, project, feedback.target_trace)
            found = await self._client.hget(key, f"t{feedback.target_span}")
            if not found and not await self._client.hget(key, "closed"):
                return ""  # its spans are forgotten, and the verdict may be about any of them
        found = found or await self._client.get(answer_of_trace_key(self._shard, project, feedback.target_trace))
        return found.decode() if found else ""

    def _new(self, arrival: Arrival, fields: Iterable[bytes] = ()) -> Trace:
        """Return the trace of an arrival, without its spans. `fields` are those of the trace in Redis."""
        settings = self._settings
        options = Options(
            default_service=arrival.service,
            retrieval_tools=tuple(settings.retrieval_tools.get(arrival.project, ())),
            contexts_from_prompt=tuple(settings.contexts_from_prompt.get(arrival.project, ())),
            feedback_names=frozenset(settings.feedback_names.get(arrival.project, ())),
            user_key=self._user_key,
        )
        sent = [name[1:].decode() for name in fields if name.startswith(b"s")]
        assembled = [name[1:].decode() for name in fields if name.startswith(b"t")]
        return Trace(arrival.project, arrival.trace_id, options, sent=sent, assembled=assembled)

    def _keys(self, key: str) -> list[str]:
        return [open_traces_key(self._shard), key, open_bytes_key(self._shard)]

    def _closing(self, key: str) -> list[str]:
        today = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date()
        unassembled = unassembled_key(self._shard, today)
        streams = [stream.key(self._shard) for stream in (FAILURES, SPANS, DEAD)]
        answer = answer_of_trace_key(self._shard, *_parts(key))
        return [CAPTURE.key(self._shard), *self._keys(key), unassembled, *streams, answer]

    async def _read(self, key: str, new: Arrival | None = None) -> _Known:
        """Return a trace as Redis has it. One without entries, such as a closed one, is that of a new arrival."""
        cached = self._forget(key)
        if cached and await self._client.hget(key, "version") == cached.version.encode():
            return cached
        fields = await self._client.hgetall(key)
        arrivals = [arrival_of("", fields[b"b%d" % number]) for number in range(int(fields.get(b"entries", 0)))]
        first = next(iter(arrivals), new)
        trace = self._new(first, fields) if first else Trace(*_parts(key))
        remembered = _REMEMBERED_BYTES * (len(fields) - len(arrivals))
        known = _Known(trace, len(arrivals), version=fields.get(b"version", b"").decode(), bytes=remembered)
        for each in arrivals:
            known.add(each)
        return known

    def _remember(self, key: str, known: _Known) -> None:
        self._known[key] = known
        self._known_bytes += known.bytes
        while self._known_bytes > self._settings.cache_bytes:
            self._known_bytes -= self._known.popitem(last=False)[1].bytes

    def _forget(self, key: str) -> _Known | None:
        known = self._known.pop(key, None)
        self._known_bytes -= known.bytes if known else 0
        return known


def _parts(key: str) -> tuple[str, str]:
    """Return project and trace id of a trace's key."""
    project, _, trace_id = key.partition(":trace:")[2].partition("/")
    return project, trace_id


def _listed(pairs: Iterable[tuple[str, Any]]) -> list[Any]:
    """Return pairs as arguments of a script, after their number."""
    flat = [part for pair in pairs for part in pair]
    return [len(flat) // 2, *flat]


def arrival_of(entry_id: str, data: bytes) -> Arrival:
    """Return an entry with its spans. Raises `SpanEntryError` or `UndecodableError`."""
    entry = parse_span_entry(data)
    spans = decode(entry.body, entry.encoding) if entry.signal == "traces" else []
    logs = decode_logs(entry.body, entry.encoding) if entry.signal == "logs" else []
    return Arrival(
        entry_id,
        project=entry.project,
        service=entry.service,
        trace_id=entry.trace_id,
        data=data,
        spans=tuple(span for span in spans if span.trace_id == entry.trace_id),
        logs=tuple(record for record in logs if record.trace_id == entry.trace_id),
    )
