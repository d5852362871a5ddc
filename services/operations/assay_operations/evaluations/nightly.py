"""Run each configured evaluation once a day, store its outcome, and publish its alerts.

A killed process leaves its attempt as `started`, which blocks others until the deadline at most; the next attempt of the night resumes the
same run. Alerts are part of the outcome's row and are published after it is stored. If a process dies in between, the next one publishes
them at its start. Consumers of alerts detect a repeated one by its `transition_id`.
"""

import asyncio
import fcntl
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.clients import DEFAULT_DATA, open_store
from assay_operations.errors import OperationError
from assay_operations.evaluations.nightly_benchmarks import CrossModalNight, LongMemEvalNight
from assay_operations.evaluations.nightly_contradictions import ContradictionsNight
from assay_operations.evaluations.nightly_golden import GoldenNight
from assay_operations.evaluations.nightly_work import Work
from assay_operations.evaluations.paid_calls import NoKeyError
from assay_runtime.private import opener
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.nightly import Attempt

log = logging.getLogger(__name__)

#: Maximum age of an outcome whose alerts are published again at a start.
CATCH_UP = timedelta(days=2)
#: Seconds between two checks of the clock.
CHECK_EVERY_S = 60.0
_LOCK = ".nightly.lock"


def nightly_evaluations(
    settings: Settings,
    now: Callable[[], datetime],
    *,
    rules: Path | None = None,
    scorers: list[str] | None = None,
    source: str = "the settings",
    data: Path = DEFAULT_DATA,
) -> "list[Nightly]":
    """Return the configured evaluations in the order in which they run.

    Raises `OperationError` if there is none.

    `now` is the clock, in UTC. `rules`: a file that replaces the one of the settings. `scorers`: values of `--scorer`.
    `source`: the file that the settings came from, for messages. `data`: the directory of the identities.
    """
    found: list[Work] = []
    if settings.evals.dataset is not None and settings.evals.target:
        found.append(GoldenNight(settings, rules, scorers))
    if settings.nightly_longmemeval.dataset is not None:
        found.append(LongMemEvalNight(settings))
    if settings.nightly_cross_modal.panel is not None:
        found.append(CrossModalNight(settings))
    if settings.nightly_contradictions.queries is not None:
        found.append(ContradictionsNight(settings, data))
    if not found:
        raise OperationError(
            "invalid",
            f"no nightly evaluation in {source}: set evals.dataset and evals.target there or as ASSAY_EVALS_DATASET and "
            "ASSAY_EVALS_TARGET; `assay up` takes both from ./assay.toml when it starts",
        )
    return [Nightly(settings, now, work) for work in found]


class Nightly:
    """Runs one evaluation. `now` is the clock, in UTC."""

    def __init__(self, settings: Settings, now: Callable[[], datetime], work: Work) -> None:
        self.settings = settings
        self._now = now
        self._work = work
        self.evaluation = work.evaluation
        self._deadline = timedelta(minutes=settings.evals.deadline_minutes)
        self._caught_up = False

    def why_not(self, attempts: "Sequence[Attempt] | None" = None) -> str | None:
        """Return the reason why no attempt may begin now; None if one may."""
        from assay_evals.nightly import why_not

        attempts = self._attempts() if attempts is None else attempts
        return why_not(attempts, self._now(), self.settings.evals.hour, self._deadline)

    def attempt(self) -> "Attempt":
        """Make an attempt, if one may begin: stores its outcome and publishes its alerts."""
        from assay_evals.nightly import Attempt, Outcome, transitions

        evals = self.settings.evals
        attempt = Attempt(uuid.uuid4(), self.evaluation, evals.project, self._now())
        with self._alone() as alone:
            attempts = self._attempts()
            self._catch_up(attempts)
            reason = self.why_not(attempts) if alone else "another process is running it"
            if reason is not None:
                attempt = replace(attempt, outcome=Outcome.RATE_LIMITED, ended_at=self._now(), detail=reason)
                self._store(attempt)
                return attempt
            self._store(attempt)
            attempt, paired = self._evaluate(attempt, attempts)
            attempt = replace(attempt, ended_at=self._now(), cost_usd=self._work.cost_usd)
            alerts = transitions(attempts, attempt, paired)
            attempt = replace(attempt, alerts=[alert.model_dump_json() for alert in alerts])
            self._store(attempt)
            self._publish(attempt)
        return attempt

    def _evaluate(self, attempt: "Attempt", attempts: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Run the evaluation. Never raises: an error is an outcome."""
        from assay_evals.errors import EvalsError
        from assay_evals.nightly import Outcome

        self._work.cost_usd = 0.0
        try:
            return self._work.run(attempt, attempts)
        except NoKeyError as error:
            return replace(attempt, outcome=Outcome.NO_JUDGE_KEY, detail=str(error)), None
        except TimeoutError:
            detail = f"not done within {self.settings.evals.deadline_minutes:g} minutes (evals.deadline_minutes)"
            return replace(attempt, outcome=Outcome.ERROR, detail=detail), None
        except (OperationError, EvalsError) as error:
            return replace(attempt, outcome=Outcome.ERROR, detail=str(error).splitlines()[0]), None
        except Exception as error:  # any error is the outcome of the attempt
            log.exception("the nightly evaluation failed")
            return replace(attempt, outcome=Outcome.ERROR, detail=type(error).__name__), None

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Yield True if no other process of this host runs it; the kernel releases the lock of a dead one."""
        runs = Path(self.settings.evals.runs_dir)
        runs.mkdir(parents=True, exist_ok=True)
        with open(runs / _LOCK, "a", opener=opener) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def _attempts(self) -> "list[Attempt]":
        from assay_evals.nightly import read_attempts

        with open_store(self.settings.store) as client:
            return read_attempts(client, self.evaluation, self.settings.evals.project)

    def _store(self, attempt: "Attempt") -> None:
        from assay_evals.nightly import store_attempt

        with open_store(self.settings.store) as client:
            store_attempt(client, self.settings.store, attempt)

    def _catch_up(self, attempts: "Sequence[Attempt]") -> None:
        """Publish the alerts that an earlier process might not have published; once per process."""
        recent = [past for past in attempts if past.alerts and self._now() - past.started_at < CATCH_UP]
        if recent and not self._caught_up:
            self._publish(recent[-1])
        self._caught_up = True

    def _publish(self, attempt: "Attempt") -> None:
        """Publish the transitions of an attempt as alerts. Without Redis they stay in the row, for the next start."""
        from redis.exceptions import RedisError

        from assay_runtime.connection import connect
        from assay_schema.streams import alert_inbox_key, shard_of

        async def publish() -> None:
            client = connect(self.settings.redis)
            try:
                key = alert_inbox_key(shard_of(attempt.project, self.settings.redis.shards))
                for alert in attempt.alerts:
                    await client.rpush(key, alert)
            finally:
                with suppress(RedisError):
                    await client.aclose()

        if attempt.alerts:
            try:
                asyncio.run(publish())
            except RedisError as error:
                self._caught_up = False
                log.warning("alerts wait in eval_outcomes: %s", type(error).__name__)


def serve(evaluations: Sequence[Nightly], stop: threading.Event, tell: Callable[[str], None]) -> None:
    """Make an attempt whenever one is due, one evaluation after another, until `stop` is set.

    `tell` gets outcomes and errors; errors are retried.
    """
    while not stop.is_set():
        for each in evaluations:
            try:
                if not stop.is_set() and each.why_not() is None:
                    attempt = each.attempt()
                    tell(f"{each.evaluation}: {attempt.outcome}: {attempt.detail}")
            except OperationError as error:  # the store is unavailable
                tell(f"assay: {error}")
        stop.wait(CHECK_EVERY_S)
