"""Paid tasks: money is reserved first, attempts end at a deadline, the result is one status.

A task is what a model is asked for in one call: the verdict on an answer, or one step of judging a session. All tasks share the day's
budget, the rate limits and the breaker.
"""

import asyncio
import contextlib
import logging
import time
from typing import Any, NamedTuple, Protocol

from assay_judge.alerts import NO_ALERTS, Alerts
from assay_judge.api import CallError
from assay_judge.breaker import Breaker
from assay_judge.call_budget import Bill, CallBudget, NextStep, NotJudgedError, classify
from assay_judge.ledger import Call, Ledger
from assay_judge.messages import REJUDGE, SKIPPED, interrupted
from assay_judge.pricing import Tariff, Usage, dollars
from assay_runtime import metrics
from assay_schema.alerts import ALL_PROJECTS
from assay_schema.scores import ScoreStatus
from assay_schema.settings import JudgeSettings

log = logging.getLogger(__name__)

#: The status of a task, as `status`, and the further fields of its document.
Result = dict[str, Any]


class Attempted(NamedTuple):
    """A successful attempt: its result, its usage (None if unknown), and the API's limit and pause."""

    result: Result
    usage: Usage | None
    limit: int | None = None
    pause_s: float = 0.0


class Task(Protocol):
    """Something that a model is asked for in one call."""

    @property
    def project(self) -> str:
        """The tenant whose budget is charged."""

    @property
    def name(self) -> str:
        """Name of its record in the books: the same in every process and for every attempt."""

    @property
    def message_bytes(self) -> int:
        """Bytes of the request beyond the system prompt for answers, which every bound includes."""

    async def attempt(self, timeout_s: float) -> Attempted:
        """Make one attempt. Raises a `CallError`."""

    def document(self, result: Result, bill: Bill) -> bytes:
        """Return the outcome of the task as it is stored."""


class AlreadyDone(NamedTuple):
    """The task was done before. Its document is empty if it was published."""

    document: bytes


class TaskRunner:
    """Runs tasks within a budget."""

    def __init__(
        self,
        settings: JudgeSettings,
        fingerprint: str,
        tariff: Tariff,
        ledger: Ledger,
        breaker: Breaker,
        alerts: Alerts = NO_ALERTS,
        draining: asyncio.Event | None = None,
        command: str = REJUDGE,
    ) -> None:
        """Prepare the runner. `command` runs an interrupted task again: its score names it."""
        self.ledger = ledger
        self.breaker = breaker
        self._alerts = alerts
        self._settings = settings
        self._fingerprint = fingerprint
        self._tariff = tariff
        self._command = command
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._running: set[Call] = set()
        #: Set when the process stops: no new calls start.
        self.draining = draining or asyncio.Event()
        #: Kind of the latest failure.
        self.last_error = ""

    async def run(self, task: Task, unpaid: Result | None = None) -> bytes | None:
        """Run a task and return its document; None if it was published before.

        `unpaid` is the result of a task that needs no call. Raises `NotJudgedError`, `RedisError`.
        """
        async with self._slots:
            if self.draining.is_set():
                raise NotJudgedError
            if unpaid is not None:
                return task.document(unpaid, Bill(self._tariff))
            call = self.ledger.call(task.project, task.name, self._fingerprint)
            self._running.add(call)
            try:
                async with self._budget(call, task) as budget:
                    return await self._within(budget, call, task)
            finally:
                self._running.discard(call)

    async def _within(self, budget: CallBudget, call: Call, task: Task) -> bytes | None:
        result = await self._attempts(task, budget)
        if isinstance(result, AlreadyDone):
            return result.document or None
        document = task.document(result, budget.bill)
        if result["status"] is ScoreStatus.SKIPPED_BUDGET and not budget.bill.nano:
            if not await self.ledger.keep(call, document):
                return await self._by_another(task)
        elif await budget.settle(document):
            metrics.JUDGE_COST.labels(metrics.project_label(task.project)).inc(dollars(budget.bill.nano))
        else:
            return await self._by_another(task)
        return document

    def _budget(self, call: Call, task: Task) -> CallBudget:
        return CallBudget(
            self.ledger,
            self._tariff,
            call,
            message_bytes=task.message_bytes,
            max_output_tokens=self._settings.max_output_tokens,
            deadline_s=self._settings.deadline_s,
        )

    async def _by_another(self, task: Task) -> bytes:
        """Return the document by the process that took over the task.

        While that process is at work, the task is its to finish.
        """
        if (document := await self.ledger.known(task.project, task.name, self._fingerprint)) is None:
            raise NotJudgedError
        return document

    async def _attempts(self, task: Task, budget: CallBudget) -> Result | AlreadyDone:
        """Make attempts until there is a result."""
        while True:
            request = await self._await_permission(budget)
            if (final := await self._reserve(task.project, budget)) is not None:
                self.breaker.abandoned()
                return final
            started = time.monotonic()
            try:
                attempted = await task.attempt(min(budget.left_s, self._settings.request_timeout_s))
            except CallError as error:
                await self._record_failure(request, error)
                match budget.after(error):
                    case NextStep.RECORD:
                        return {"status": ScoreStatus.JUDGE_ERROR, "detail": budget.detail(error)}
                    case NextStep.RETRY:
                        await self._sleep(budget.next_pause_s())
            else:
                await self._record_success(request, attempted, time.monotonic() - started)
                budget.charge(attempted.usage)
                return attempted.result

    async def _reserve(self, project: str, budget: CallBudget) -> Result | AlreadyDone | None:
        """Reserve money for an attempt. None if reserved, else the final result of the task."""
        while True:
            reservation = await budget.reserve()
            match reservation.what:
                case "ok":
                    await self._alerts.budget(project, False)
                    await self._alerts.budget(ALL_PROJECTS, False)
                    return None
                case "done":
                    return AlreadyDone(reservation.score)
                case "busy":
                    if self.draining.is_set():
                        raise NotJudgedError
                    await self._sleep(min(1.0, reservation.wait_s + 0.01))
                case "interrupted":
                    return {"status": ScoreStatus.JUDGE_ERROR, "detail": interrupted(self._command)}
                case "budget" | "all_budgets":
                    await self._alerts.budget(project if reservation.what == "budget" else ALL_PROJECTS, True)
                    return {"status": ScoreStatus.SKIPPED_BUDGET, "detail": SKIPPED[reservation.what]}

    async def _await_permission(self, budget: CallBudget) -> str:
        """Wait for the breaker, then for the rate limits. Returns the id of the request.

        Raises `NotJudgedError` if the service stops.
        """
        request, since = budget.new_request(), time.monotonic()
        while waits := self.breaker.wait_s():
            if self.draining.is_set():
                raise NotJudgedError
            await self._sleep(min(waits, 1.0))
        per_minute = self._settings.requests_per_minute, self._settings.tokens_per_minute
        while not self.draining.is_set():
            if not (waits := await self.ledger.take(request, budget.tokens, *per_minute)):
                budget.start(time.monotonic() - since)
                return request
            await self._sleep(min(waits, 1.0))
        self.breaker.abandoned()
        raise NotJudgedError

    async def _record_success(self, request: str, reply: Attempted, seconds: float) -> None:
        metrics.JUDGE_CALLS.labels("ok").inc()
        metrics.JUDGE_CALL_SECONDS.observe(seconds)
        if self.breaker.succeeded():
            metrics.JUDGE_STOPPED.set(0)
            await self._alerts.stopped("")
        usage = reply.usage
        tokens = None if usage is None else usage.input + usage.cache_write + usage.output
        await self.ledger.learn(request, tokens=tokens, pause_s=reply.pause_s, limit=reply.limit)

    async def _record_failure(self, request: str, error: CallError) -> None:
        self.last_error = error.kind.partition(":")[0]
        metrics.JUDGE_CALLS.labels(self.last_error).inc()
        log.warning("a call returned no verdict", extra={"error_class": error.kind.partition(":")[0]})
        match classify(error):
            case NextStep.STOP:
                if self.breaker.stop(error.kind):
                    log.critical("judging stopped: %s", error.kind)
                metrics.JUDGE_STOPPED.set(1)
                await self._alerts.stopped(error.kind)
            case NextStep.RETRY:
                self.breaker.failed()
            case _:
                self.breaker.succeeded()
        unread = error.usage == Usage()  # nothing was read, so the tokens of this minute are still available
        if unread or error.pause_s:
            await self.ledger.learn(request, tokens=0 if unread else None, pause_s=error.pause_s)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not beyond a stop of the service."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.draining.wait()

    async def keep_alive(self) -> None:
        """Renew the leases of running calls."""
        await self.ledger.renew(list(self._running))
