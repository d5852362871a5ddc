"""The producer's API. No call waits for a disk or a network, and none raises, for any arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, Unpack
from uuid import UUID

from assay_capture import endings
from assay_capture.configuration import project_name, read_settings, refuse_credentials, service_name
from assay_capture.encoding import NotCapturedError, encoded, shard_from
from assay_capture.entry_queue import EntryQueue
from assay_capture.instrument import Described, RetrievalBlock, RetrievalFields, captured_function, refuse_unknown
from assay_capture.native import RLock, SimpleQueue
from assay_capture.owners import default_spool_dir
from assay_capture.publisher import Publisher
from assay_capture.redis_transport import Outcome, RedisTransport
from assay_capture.scrubbing import Scrubbing, load_scrubber
from assay_capture.spool import Spool
from assay_capture.stats import CaptureStats, ProblemLog, log
from assay_capture.trace import current_traceparent
from assay_schema.events import Detail
from assay_schema.ids import new_event_id
from assay_schema.limits import SCHEMA_VERSION
from assay_schema.settings import SWITCH_VARIABLE, Settings, capture_on
from assay_schema.streams import shard_of
from assay_schema.topology import destination

F = TypeVar("F", bound=Callable[..., Any])


class Capture:
    """Captures events of one producer.

    Create one per process, at start; share it between threads and tasks.

    Delivery: an event counts as captured when the call returns, and as safe when it is in Redis or in the spool
    (`flush` waits for that). A safe event becomes one row, or one failure row, despite any crash. In between, it is in
    this process's memory for about `capture.flush_interval_ms`; losses there are counted in `stats()` unless the
    process is killed.
    """

    _publisher: Publisher | None
    _spool: Spool | None

    def __init__(self, settings: Settings, *, service: str | None = None, enabled: bool | None = None) -> None:
        """Create a capture. Needs no Redis, and reads no file except a scrubbing policy.

        The policy is read if `capture.scrub` is `producer`. `enabled` defaults to the capture switch. Raises
        `SettingsError` for an invalid service or project name or address of Redis, and for a scrubber that is not
        installed or whose policy is unusable.
        """
        self._settings = settings
        self._service = service_name(service, settings, os.environ)
        self._project = project_name(settings)
        self._enabled = capture_on(settings.capture, os.environ) if enabled is None else enabled
        self._closed = False
        self._scrubber = load_scrubber(settings) if self._enabled and settings.capture.scrub == "producer" else None
        if self._scrubber is not None:
            refuse_credentials(self._scrubber, service=self._service, project=self._project)
        self._begin()
        if self._enabled:
            RedisTransport(settings.redis)  # rejects an unusable address while the program starts
            endings.watch(self, self._forked)
            if settings.capture.close_on_sigterm:
                endings.close_on_sigterm()

    @classmethod
    def from_env(cls, service: str | None = None, environment: Mapping[str, str] | None = None) -> Capture:
        """Create a capture from the environment and the settings file (`ASSAY_CONFIG`, else `./assay.toml`).

        Raises `SettingsError` with the valid values if a setting is invalid. An unavailable Redis is not an error.
        """
        environment = os.environ if environment is None else environment
        settings = read_settings(environment)
        enabled = capture_on(settings.capture, environment)
        if not enabled and settings.capture.enabled is None and environment.get(SWITCH_VARIABLE, "0") not in ("0", ""):
            log.warning("%s is set, but not to 1, so capture is off; set %s=1", SWITCH_VARIABLE, SWITCH_VARIABLE)
        return cls(settings, service=service_name(service, settings, environment), enabled=enabled)

    @property
    def enabled(self) -> bool:
        """True if events are captured. If not, every method returns at once and does nothing."""
        return self._enabled

    # Events

    def retrieval(
        self,
        *,
        tool_name: Literal["query", "search"],
        query: str,
        retrieved_slugs: Sequence[str],
        retrieved_chunk_ids: Sequence[int],
        source_ids: Collection[str] = (),
        expand_enabled: bool | None = None,
        detail: Detail | None = None,
        detail_resolved: Detail | None = None,
        vector_enabled: bool = False,
        expansion_applied: bool = False,
        latency_ms: float,
        remote: bool = False,
        job_id: int | None = None,
        subagent_id: int | None = None,
        retrieved_scores: Sequence[float] = (),
        embedding_model: str | None = None,
        params: Mapping[str, Any] | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one retrieval and return its `event_id`.

        The fields are those of `assay_schema.events.Retrieval`. `occurred_at` defaults to now; a naive datetime is read
        as UTC.
        """
        if not self._enabled:
            return new_event_id()
        return self._record(
            "retrieval",
            {
                "tool_name": tool_name,
                "query": query,
                "retrieved_slugs": retrieved_slugs,
                "retrieved_chunk_ids": retrieved_chunk_ids,
                "source_ids": source_ids,
                "expand_enabled": expand_enabled,
                "detail": detail,
                "detail_resolved": detail_resolved,
                "vector_enabled": vector_enabled,
                "expansion_applied": expansion_applied,
                "latency_ms": latency_ms,
                "remote": remote,
                "job_id": job_id,
                "subagent_id": subagent_id,
                "retrieved_scores": retrieved_scores,
                "embedding_model": embedding_model,
                "params": {} if params is None else params,
            },
            new_event_id(),
            project,
            occurred_at,
        )

    def answer(
        self,
        *,
        query: str,
        answer: str,
        model: str,
        latency_ms: float,
        contexts: Sequence[Mapping[str, Any]] = (),
        citations: Sequence[Mapping[str, Any]] = (),
        retrieval_event_id: str | UUID | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one answer and return its `event_id`.

        A context is `{"id", "text"}`, optionally with `source_id` and `score`; a citation is `{"context_id"}`,
        optionally with `claim`. `retrieval_event_id` is the id returned by `retrieval`.
        """
        if not self._enabled:
            return new_event_id()
        return self._record(
            "answer",
            {
                "query": query,
                "answer": answer,
                "contexts": contexts,
                "citations": citations,
                "model": model,
                "latency_ms": latency_ms,
                "retrieval_event_id": retrieval_event_id,
            },
            new_event_id(),
            project,
            occurred_at,
        )

    def feedback(
        self,
        *,
        target_event_id: str | UUID,
        verdict: Literal["positive", "negative"],
        text: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture a person's verdict on an earlier event, and return the `event_id` of the feedback."""
        if not self._enabled:
            return new_event_id()
        return self._record(
            "feedback",
            {"target_event_id": target_event_id, "verdict": verdict, "text": text, "user_hash": user_hash},
            new_event_id(),
            project,
            occurred_at,
        )

    def retrieving(
        self, *, tool_name: Literal["query", "search"], query: str, **fields: Unpack[RetrievalFields]
    ) -> RetrievalBlock:
        """Return a `with` or `async with` block that times a retrieval.

        The event is captured at the end of the block if `result()` was called in it. An exception raised in the block
        passes through unchanged.
        """
        refuse_unknown("retrieving", fields)
        return RetrievalBlock(self._record_retrieval, self._drop, {"tool_name": tool_name, "query": query, **fields})

    def captured_retrieval(self, *, describe: Described) -> Callable[[F], F]:
        """Decorate a function, or a coroutine function, that retrieves. It is timed and otherwise unchanged.

        `describe(result, *args, **kwargs)` turns a call into the fields of `retrieval()`, except `latency_ms`. If it
        raises, the event is counted as dropped and the caller notices nothing. A call that raises is not captured.
        Neither is one that returns an iterator, since `describe` would consume it; a generator function is refused.
        """
        return lambda function: captured_function(function, describe, self._record_retrieval, self._drop)

    # Delivery

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait up to `timeout` seconds until all captured events are safe. False if that was too short.

        Safe events are in Redis or in the spool.
        """
        publisher = self._publisher
        return True if publisher is None else publisher.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Send events for up to `timeout` seconds, spool or drop the rest, and stop.

        `timeout` defaults to `capture.exit_deadline_s`. Runs automatically at exit. Events captured afterwards are
        dropped and counted.
        """
        if not self._enabled:
            return
        self._closed = True
        if self._publisher is not None:
            self._publisher.close(self._settings.capture.exit_deadline_s if timeout is None else timeout)
        elif self._queue.entries:  # no thread could be started, as from Python 3.12 on at interpreter exit
            publisher = self._publisher = self._new_publisher()
            if self._scrubbing is not None:
                self._scrubbing.work_off(self._settings.capture.exit_deadline_s if timeout is None else timeout)
            publisher.end()
        endings.forget(self)

    async def aflush(self, timeout: float = 5.0) -> bool:  # noqa: ASYNC109  (the same signature as `flush`)
        """Run `flush` without blocking the event loop."""
        import asyncio  # a program with an event loop has imported it; others save the time

        return await asyncio.to_thread(self.flush, timeout)

    async def aclose(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  (the same signature as `close`)
        """Run `close` without blocking the event loop."""
        import asyncio

        await asyncio.to_thread(self.close, timeout)

    def stats(self) -> CaptureStats:
        """Return the counters of this process.

        Whenever it is idle, `captured == published + spooled + sum(dropped) + queue_entries`.
        """
        publisher, spool, dropped = self._publisher, self._spool, self._problems.dropped()
        return CaptureStats(
            captured=self._queue.accepted + self._problems.refused(),
            published=publisher.published if publisher else 0,
            spooled=publisher.spooled if publisher else 0,
            replayed=publisher.replayed if publisher else 0,
            adopted_segments=spool.adopted_segments if spool else 0,
            torn_lines=spool.torn_lines if spool else 0,
            scrubbed=dict(self._scrubbing.findings) if self._scrubbing else {},
            dropped=dropped,
            queue_entries=self._queue.entries,
            queue_bytes=self._queue.bytes,
            spool_bytes=spool.bytes_waiting() if spool else 0,
            redis=publisher.redis if publisher else "idle",
        )

    # Inside

    def _begin(self) -> None:
        """Create memory, counters and (at the first event) threads: at the start, and in a forked child."""
        capture = self._settings.capture
        self._shards = self._settings.redis.shards
        self._problems = ProblemLog()
        self._inbox: SimpleQueue[Outcome | None] = SimpleQueue()
        self._queue = EntryQueue(capture.queue_entries, capture.queue_bytes, capture.batch_entries, self._inbox.put)
        self._scrubbing = Scrubbing(self._scrubber, self._queue, self._problems) if self._scrubber is not None else None
        self._spool = None
        self._publisher = None
        self._start_lock = RLock()
        self._starting = False

    def _record_retrieval(self, event_id: str, fields: dict[str, Any]) -> None:
        if not self._enabled:
            return
        payload = dict(fields)
        project, occurred_at = payload.pop("project", None), payload.pop("occurred_at", None)
        self._record("retrieval", payload, event_id, project, occurred_at)

    def _record(
        self, kind: str, payload: dict[str, Any], event_id: str, project: str | None, occurred_at: datetime | None
    ) -> str:
        try:
            if self._closed:
                self._problems.refuse("closed")
                self._problems.log_new()  # here, because there is no thread to do it
                return event_id
            data = encoded(
                {
                    "schema_version": SCHEMA_VERSION,
                    "event_id": event_id,
                    "kind": kind,
                    "project": self._project if project is None else project,
                    "service": self._service,
                    "occurred_at": datetime.now(UTC) if occurred_at is None else occurred_at,
                    "traceparent": current_traceparent(),
                    "payload": payload,
                }
            )
            shard = 0 if self._shards == 1 else self._shard(project)
            if not self._queue.put(shard, data):
                self._drop(self._queue.full_reason)
        except NotCapturedError as refusal:
            self._drop(refusal.reason)
        except Exception:  # noqa: BLE001  (capture never raises)
            self._drop("internal")
        if self._publisher is None:
            self._start()
        return event_id

    def _shard(self, project: str | None) -> int:
        try:
            return shard_of(self._project if project is None else project, self._shards)
        except Exception:  # noqa: BLE001  (no project at all: the scrubber of the first shard refuses it)
            return 0

    def _drop(self, reason: str, detail: str = "") -> None:
        if self._enabled and self._problems.refuse(reason, detail):
            self._inbox.put(None)  # the publisher's thread logs new problems
            if self._publisher is None:
                self._start()

    def _start(self) -> None:
        """Start the publisher. If the system has no thread available, the next event retries."""
        if not self._start_lock.acquire(blocking=False):
            return  # another thread is starting it
        # this is a signal handler that interrupted the start, or a greenlet while another one imports
        if self._starting:
            self._start_lock.release()
            return
        self._starting = True
        try:
            if self._publisher is not None or self._closed:
                return
            publisher = self._new_publisher()
            publisher.start()
            self._publisher = publisher
            endings.close_before_a_child_of_multiprocessing_exits()
        except Exception:  # noqa: BLE001  (no thread, no address space: the event waits in memory)
            self._problems.log_once("start", "cannot start a thread; events wait in memory until one can be started")
        finally:
            self._starting = False
            self._start_lock.release()

    def _new_publisher(self) -> Publisher:
        settings, problems, shards = self._settings.capture, self._problems, self._shards
        if settings.durability != "memory" and self._spool is None:
            self._spool = Spool(
                settings.spool_dir or default_spool_dir(),
                destination(self._settings.redis),
                settings.spool_bytes,
                settings.durability == "fsync",
                lambda data: shard_from(data, shards),
                problems,
                frozenset(filter(None, map(str.strip, settings.spool_adopt.split(",")))),
            )
        link = RedisTransport(self._settings.redis)
        return Publisher(settings, shards, self._queue, self._inbox, link, self._spool, problems, self._scrubbing)

    def _forked(self) -> None:
        publisher = self._publisher
        self._begin()
        if publisher is not None:
            with suppress(Exception):  # the fork may have interrupted an open or close
                publisher.abandon()
