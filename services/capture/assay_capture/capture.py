"""The producer's API. No call waits for a disk or a network, and none raises, for any arguments."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from assay_capture import endings
from assay_capture.configuration import project_name, read_settings, refuse_credentials, service_name
from assay_capture.conversation import SessionBlock, current_session, current_user
from assay_capture.encoding import NotCapturedError, encoded, shard_from
from assay_capture.entry_queue import EntryQueue
from assay_capture.event_file import EventFile
from assay_capture.native import RLock, SimpleQueue
from assay_capture.owners import default_spool_dir
from assay_capture.publisher import Publisher
from assay_capture.retrievals import RetrievalCapture
from assay_capture.scrubbing import Scrubbing, load_scrubber, needs_scrubber
from assay_capture.spool import Spool
from assay_capture.stats import CaptureStats, ProblemLog, log
from assay_capture.summary import TOOL_KINDS, encoded_tool_event, unfit_field
from assay_capture.tool_calls import ServerRun, ToolCapture
from assay_capture.trace import current_traceparent
from assay_capture.transport import Outcome
from assay_capture.transports import Route
from assay_schema.limits import SCHEMA_VERSION
from assay_schema.settings import SWITCH_VARIABLE, Settings, capture_on
from assay_schema.streams import shard_of


class Capture(RetrievalCapture, ToolCapture):
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
        self._to_redis = settings.capture.sink != "file"  # or to the gateway
        self._route = Route(settings)
        self._scrubber = load_scrubber(settings) if self._enabled and needs_scrubber(settings.capture) else None
        if self._scrubber is not None:
            refuse_credentials(self._scrubber, service=self._service, project=self._project)
        self._begin()
        if self._enabled:
            if self._to_redis:
                self._route.connect()  # rejects an unusable address while the program starts
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

    def in_session(self, session_id: str | None, *, user_hash: str | None = None) -> SessionBlock:
        """Return a `with` or `async with` block that sets the `session_id` of the events in it.

        It also sets their `user_hash`; without one, that of the enclosing block stays.
        """
        return SessionBlock(session_id, user_hash)

    # Delivery

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait up to `timeout` seconds until all captured events are safe. False if that was too short.

        Safe events are in Redis or in the spool, and have a line in the file of events, as `capture.sink` says.
        """
        began = time.monotonic()
        flushed = self._publisher is None or self._publisher.flush(timeout)
        rest = max(0.0, timeout - (time.monotonic() - began))
        return (self._file is None or self._file.flush(rest)) and flushed

    def close(self, timeout: float | None = None) -> None:
        """Send events for up to `timeout` seconds, spool or drop the rest, and stop.

        `timeout` defaults to `capture.exit_deadline_s`. Runs automatically at exit. Events captured afterwards are
        dropped and counted.
        """
        if not self._enabled:
            return
        self._closed = True
        seconds = self._settings.capture.exit_deadline_s if timeout is None else timeout
        deadline = time.monotonic() + seconds
        if self._publisher is not None:
            self._publisher.close(seconds)
        elif self._queue.entries:  # no thread could be started, as from Python 3.12 on at interpreter exit
            publisher = self._publisher = self._new_publisher()
            if self._scrubbing is not None:
                self._scrubbing.work_off(seconds)
            publisher.end()
        if self._file is not None:
            self._file.close(max(0.0, deadline - time.monotonic()))
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

        Whenever it is idle, `captured == published + spooled + sum(dropped) + queue_entries`, if events go to Redis, and
        `captured == file_lines + sum(file_dropped) + file_waiting`, if they go to a file.
        """
        publisher, spool, dropped = self._publisher, self._spool, self._problems.dropped()
        file = self._file
        state, transport = publisher.state if publisher else "idle", self._route.name
        to_redis = self._queue.accepted + self._problems.refused()
        return CaptureStats(
            captured=to_redis if self._to_redis or file is None else file.captured,
            published=publisher.published if publisher else 0,
            spooled=publisher.spooled if publisher else 0,
            replayed=publisher.replayed if publisher else 0,
            adopted_segments=spool.adopted_segments if spool else 0,
            torn_lines=spool.torn_lines if spool else 0,
            scrubbed=dict(self._scrubbing.findings) if self._scrubbing else {},
            dropped=dropped,
            file_lines=file.lines if file else 0,
            file_dropped=file.problems.dropped() if file else {},
            file_waiting=file.waiting if file else 0,
            file_invalid=file.invalid if file else 0,
            queue_entries=self._queue.entries,
            queue_bytes=self._queue.bytes,
            spool_bytes=spool.bytes_waiting() if spool else 0,
            redis=state if transport == "redis" else "idle",
            transport=transport,
            gateway=state if transport == "http" else "idle",
            rejected=dict(publisher.rejected) if publisher else {},
        )

    # Inside

    def _begin(self) -> None:
        """Create memory, counters and (at the first event) threads: at the start, and in a forked child."""
        capture = self._settings.capture
        self._shards = self._route.shards
        self._problems = ProblemLog()
        self._placed: set[str] = set()
        self._inbox: SimpleQueue[Outcome | None] = SimpleQueue()
        self._queue = EntryQueue(capture.queue_entries, capture.queue_bytes, capture.batch_entries, self._inbox.put)
        scrubber, producer = self._scrubber, self._to_redis and capture.scrub == "producer"
        self._scrubbing = (
            Scrubbing(scrubber, self._queue, self._problems) if scrubber is not None and producer else None
        )
        self._file = EventFile(capture, scrubber) if scrubber is not None and capture.sink != "redis" else None
        self._run = ServerRun()
        self._spool = None
        self._publisher = None
        self._start_lock = RLock()
        self._starting = self._started = False

    def _record(
        self,
        kind: str,
        payload: dict[str, Any],
        event_id: str,
        project: str | None,
        occurred_at: datetime | None,
        session_id: str | None,
        user_hash: str | None,
    ) -> str:
        event: dict[str, Any] = {}
        try:
            if self._closed:
                self._drop("closed")
                return event_id
            event = {
                "schema_version": SCHEMA_VERSION,
                "event_id": event_id,
                "kind": kind,
                "project": self._project if project is None else project,
                "service": self._service,
                "occurred_at": datetime.now(UTC) if occurred_at is None else occurred_at,
                "traceparent": current_traceparent(),
                "session_id": current_session() if session_id is None else session_id,
                "user_hash": current_user() if user_hash is None else user_hash,
                "origin": "sdk",
                "payload": payload,
            }
            if project is None and self._route.project_of_key:
                del event["project"]
            data = encoded_tool_event(event) if kind in TOOL_KINDS else encoded(event)
            if self._file is not None:
                self._file.put(data)
            if self._to_redis:
                shard = 0 if self._shards == 1 else self._shard(project)
                if not self._queue.put(shard, data):
                    self._refuse(self._queue.full_reason)
        except NotCapturedError as refusal:
            self._drop(refusal.reason, self._place(refusal.reason, event))
        except Exception:  # noqa: BLE001  (capture never raises)
            self._drop("internal")
        if not self._started:
            self._start()
        return event_id

    def _shard(self, project: str | None) -> int:
        try:
            return shard_of(self._project if project is None else project, self._shards)
        except Exception:  # noqa: BLE001  (no project at all: the scrubber of the first shard refuses it)
            return 0

    def _place(self, reason: str, event: dict[str, Any]) -> str:
        """Return the kind and field that the first event with this reason is dropped for, and '' for later ones."""
        if reason in self._placed:
            return ""
        self._placed.add(reason)
        with suppress(Exception):  # the caller's objects may raise anything, also at the second time
            return f"in {unfit_field(event)}"
        return ""

    def _drop(self, reason: str, detail: str = "") -> None:
        """Count an event that reaches no sink."""
        if not self._enabled:
            return
        if self._file is not None:
            self._file.refuse(reason, detail)
        if self._to_redis:
            self._refuse(reason, detail)
        if not self._started:
            self._start()

    def _refuse(self, reason: str, detail: str = "") -> None:
        """Count an event that does not reach Redis."""
        if self._problems.refuse(reason, detail):
            if self._closed:
                self._problems.log_new()  # here, because there is no thread to do it
            else:
                self._inbox.put(None)  # the publisher's thread logs new problems

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
            if self._started or self._closed:
                return
            if self._file is not None:
                self._file.start()
            if self._to_redis:
                publisher = self._new_publisher()
                publisher.start()
                self._publisher = publisher
            self._started = True
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
                self._route.destination(),
                settings.spool_bytes,
                settings.durability == "fsync",
                lambda data: shard_from(data, shards),
                problems,
                frozenset(filter(None, map(str.strip, settings.spool_adopt.split(",")))),
            )
        link = self._route.connect()
        return Publisher(settings, shards, self._queue, self._inbox, link, self._spool, problems, self._scrubbing)

    def _forked(self) -> None:
        inherited = (self._publisher, self._file)
        self._begin()
        for part in inherited:
            if part is not None:
                with suppress(Exception):  # the fork may have interrupted an open or close
                    part.abandon()
