"""Have the judge score a sample of the sessions: `plan_judging`, then `apply`.

Sampling, budget, rate limits and scores are those of answers: a score goes to the stream `scores`, so that it is stored, monitored for
drift and calibrated like theirs. Delivery: a session that was paid for is scored once, also if the process dies between two steps; a
score that is published twice is stored and counted once.
"""

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, operator_trail, redis_user
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.sessions.judge_sample import Plan, SessionToJudge, judge_of_sessions
from assay_operations.sessions.judge_sample import plan_judging as plan_judging
from assay_operations.sessions.judge_tasks import ItemsTask, Judged, VerdictsTask, Written, session_score
from assay_operations.sessions.stored import document_of
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import Settings, SettingsError
from assay_sessions.form import malformed
from assay_sessions.rubric import RubricReplyError
from assay_sessions.rubric_view import View, view_of

if TYPE_CHECKING:
    from assay_judge.api import Calls
    from assay_judge.breaker import Breaker
    from assay_judge.ledger import Ledger
    from assay_judge.task_runner import TaskRunner
    from assay_runtime.store import Client as Store

#: Seconds without a reply of an API that fails after which the command ends; the judge's service would wait.
GIVE_UP_S = 60.0
UNREADABLE = "Unreadable: it has not the form of a session; assay sessions show names the place"


def apply(plan: Plan, actor: Actor, *, progress: Callable[[Score], None] | None = None) -> Counter[str]:
    """Judge the planned sessions within the judge's budget, and publish their scores.

    Returns the counts by status; `left` are those that another process judges, or that were deleted meanwhile. At SIGINT or SIGTERM calls
    that run come to their end, and `KeyboardInterrupt` is raised. Raises `OperationError`, and `SettingsError` if the API refuses the key.
    """
    if not plan.sampled and not plan.not_sampled:
        return Counter()
    reader, settings = settings_for("sre", plan.data), settings_for("judge", plan.data)
    attempt = operator_trail(plan.data, otherwise=reader.store).attempt(
        "sessions judge",
        actor,
        identity=redis_user(settings.redis),
        target=plan.target,
        planned=len(plan.sampled) + len(plan.not_sampled),
    )
    with open_store(reader.store) as store, attempt:
        judging = _Judging(store, settings, plan, progress)
        counts = asyncio.run(judging.run(attempt))
        if judging.stopped:
            raise KeyboardInterrupt
        return counts


class _Judging:
    """Judging the sessions of a plan."""

    def __init__(
        self, store: "Store", settings: Settings, plan: Plan, progress: Callable[[Score], None] | None
    ) -> None:
        from assay_operations.scrub import policies
        from assay_scrubber.engine import Scrubber

        self._store, self._settings, self._plan = store, settings, plan
        self._progress = progress
        self._judge = judge_of_sessions(settings)
        self._scrubber = Scrubber(policies(None).of(plan.project))
        self._counts: Counter[str] = Counter()
        self._reading = asyncio.Lock()
        #: True if a signal ended it.
        self.stopped = False

    async def run(self, attempt: Attempt) -> Counter[str]:
        """Judge the sessions, several at once, and return the counts by status."""
        from redis.exceptions import RedisError

        from assay_judge.alerts import CommandAlerts
        from assay_judge.backends import api_of, tariff_for
        from assay_judge.breaker import Breaker
        from assay_judge.judge_config import load_judge_config
        from assay_judge.ledger import ledger_of
        from assay_judge.messages import REJUDGE_SESSIONS
        from assay_judge.task_runner import TaskRunner
        from assay_runtime.connection import connect

        settings, fingerprint = self._settings.judge, self._judge.fingerprint
        client = connect(self._settings.redis)
        api = api_of(settings)
        tariff = tariff_for(settings, load_judge_config(settings.rules_file))
        breaker = Breaker(asyncio.get_running_loop().time)
        ledger = ledger_of(client, self._settings)
        draining = asyncio.Event()
        alerts = CommandAlerts(client, self._settings.redis.shards, fingerprint, settings, draining.set)
        runner = TaskRunner(settings, fingerprint, tariff, ledger, breaker, alerts, draining, REJUDGE_SESSIONS)
        try:
            for session in self._plan.not_sampled:
                score = session_score(self._judge, session.judged, ScoreStatus.NOT_SAMPLED)
                await self._publish(ledger, attempt, session.judged, score)
            async with _kept_alive(runner, breaker), _stoppable(self, draining):
                for start in range(0, len(self._plan.sampled), settings.concurrency):
                    page = self._plan.sampled[start : start + settings.concurrency]
                    # Each comes to its end: what is paid for is published, also if another fails.
                    ends = await asyncio.gather(
                        *(self._one(ledger, runner, api, attempt, session) for session in page), return_exceptions=True
                    )
                    for error in ends:
                        if error is not None:
                            raise error
                    if draining.is_set():
                        break
            if alerts.refused:
                raise SettingsError(alerts.refused)
            if draining.is_set() and not self.stopped:
                raise OperationError(
                    "unavailable",
                    f"the model's API fails: {runner.last_error}; see judge.base_url",
                    "nothing was charged for what is left; run it again",
                )
        except RedisError as error:
            raise OperationError("unavailable", f"redis: {type(error).__name__}", "what was paid for is kept") from None
        finally:
            await api.close()
            await client.aclose()
        return self._counts

    async def _one(
        self, ledger: "Ledger", runner: "TaskRunner", api: "Calls", attempt: Attempt, session: SessionToJudge
    ) -> None:
        from assay_judge.call_budget import NotJudgedError

        judged = session.judged
        try:
            view = await self._view(session)
            score = (
                await self._score(runner, api, session, view)
                if view
                else session_score(self._judge, judged, ScoreStatus.JUDGE_ERROR, detail=UNREADABLE, **judged.cost())
            )
        except (NotJudgedError, _GoneError):
            score = None
        if score is None:
            self._counts["left"] += 1
        else:
            await self._publish(ledger, attempt, judged, score)

    async def _view(self, session: SessionToJudge) -> View | None:
        """Return what the judge sees of a session; None if it has not the form of one."""
        judged, most = session.judged, self._settings.judge.max_input_bytes

        def read() -> View | None:
            try:
                document = document_of(self._store, judged.project, judged.session_id, judged.revision, session.digest)
            except OperationError as error:  # parts of it were deleted, or a newer revision replaced it
                raise _GoneError from error
            return None if malformed(document) else view_of(document, most)

        async with self._reading:  # a session may be large, and the store's client serves one query at a time
            return await asyncio.to_thread(read)

    async def _score(self, runner: "TaskRunner", api: "Calls", session: SessionToJudge, view: View) -> Score | None:
        """Return the score of a session; None if another process has published it."""
        judged, written = session.judged, session.written
        if written is None:
            data = await runner.run(ItemsTask(judged, view, api, self._scrubbed))
            if data is None:
                return None
            written = Written.of(data)
        if written.status is not ScoreStatus.SCORED:
            cost = judged.cost(written.cost)
            return session_score(self._judge, judged, written.status, detail=written.detail, **cost)
        data = await runner.run(VerdictsTask(judged, view, api, self._judge, written))
        return None if data is None else Score.model_validate_json(data)

    def _scrubbed(self, text: str) -> str:
        from assay_scrubber.engine import ScrubError

        try:
            return self._scrubber.scrub(text).text
        except ScrubError:
            raise RubricReplyError("ReplyUnscrubbed", "items.criterion: could not be scrubbed") from None

    async def _publish(self, ledger: "Ledger", attempt: Attempt, judged: Judged, score: Score) -> None:
        if not await ledger.publish_session(score, [judged.task_name(step) for step in ("items", "verdicts")]):
            return
        self._counts[score.status.value] += 1
        attempt.changed += 1
        if self._progress:
            self._progress(score)


class _GoneError(Exception):
    """A session that is not stored any more."""


@contextlib.asynccontextmanager
async def _stoppable(judging: _Judging, draining: asyncio.Event) -> AsyncIterator[None]:
    """Let calls that run come to their end at the first SIGINT or SIGTERM; the second has its usual effect."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)

    def stop() -> None:
        judging.stopped = True
        draining.set()
        for each in signals:
            loop.remove_signal_handler(each)

    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # in another thread than the main one
        for each in signals:
            loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)


@contextlib.asynccontextmanager
async def _kept_alive(runner: "TaskRunner", breaker: "Breaker") -> AsyncIterator[None]:
    """While the block runs, renew the leases of calls, and give up an API that fails all the time."""
    from redis.exceptions import RedisError

    from assay_judge.ledger import RENEW_S

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                await runner.keep_alive()

    async def give_up() -> None:
        well_at = time.monotonic()
        while time.monotonic() - well_at < GIVE_UP_S:
            await asyncio.sleep(0.2)
            if not breaker.is_open:
                well_at = time.monotonic()
        runner.draining.set()

    tasks = [asyncio.create_task(each()) for each in (renew, give_up)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
