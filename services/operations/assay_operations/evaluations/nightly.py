"""Run the configured evaluation once a day, store its outcome, and publish its alerts.

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

from assay_operations.clients import open_store
from assay_operations.errors import OperationError
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.nightly_rules import baseline_of, not_trusted, rules_for
from assay_operations.evaluations.rules import expect_slices, floors_of, scoring_of
from assay_operations.evaluations.target import log_no_tries
from assay_runtime.private import opener
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.nightly import Attempt
    from assay_evals.run.model import Run


log = logging.getLogger(__name__)

#: Maximum age of an outcome whose alerts are published again at a start.
CATCH_UP = timedelta(days=2)
#: Seconds between two checks of the clock.
CHECK_EVERY_S = 60.0
_LOCK = ".nightly.lock"


class Nightly:
    """Runs the configured evaluation.

    `now` is the clock, in UTC. Raises `OperationError` if none is configured.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], datetime],
        *,
        rules: Path | None = None,
        scorers: list[str] | None = None,
        source: str = "the settings",
    ) -> None:
        """`rules`: a file that replaces the one of the settings. `scorers`: values of `--scorer`.

        `source`: the file that the settings came from, for messages.
        """
        from assay_evals.nightly import evaluation_of
        from assay_runtime.config import is_implicit

        evals = settings.evals
        if evals.dataset is None or not evals.target:
            raise OperationError(
                "invalid",
                f"no nightly evaluation in {source}: set evals.dataset and evals.target there or as ASSAY_EVALS_DATASET and "
                "ASSAY_EVALS_TARGET; `assay up` takes both from ./assay.toml when it starts",
            )
        if is_implicit("evals", "target") and not evals.target.startswith(("http://", "https://")):
            raise not_trusted("target", "it is code to run")
        self.settings = settings
        self._now = now
        self._dataset = evals.dataset
        self._target = evals.target
        self._rules = rules
        self._scorers = scorers
        self.evaluation = evaluation_of(self._dataset.stem, self._target)
        self._deadline = timedelta(minutes=evals.deadline_minutes)
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
            attempt = replace(attempt, ended_at=self._now())
            alerts = transitions(attempts, attempt, paired)
            attempt = replace(attempt, alerts=[alert.model_dump_json() for alert in alerts])
            self._store(attempt)
            self._publish(attempt)
        return attempt

    def _evaluate(self, attempt: "Attempt", attempts: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        """Run the evaluation. Never raises: an error is an outcome."""
        from assay_evals.errors import EvalsError
        from assay_evals.nightly import Outcome

        try:
            return self._run(attempt, attempts)
        except _NoKeyError as error:
            return replace(attempt, outcome=Outcome.NO_JUDGE_KEY, detail=str(error)), None
        except TimeoutError:
            detail = f"not done within {self.settings.evals.deadline_minutes:g} minutes (evals.deadline_minutes)"
            return replace(attempt, outcome=Outcome.ERROR, detail=detail), None
        except (OperationError, EvalsError) as error:
            return replace(attempt, outcome=Outcome.ERROR, detail=str(error).splitlines()[0]), None
        except Exception as error:  # any error is the outcome of the attempt
            log.exception("the nightly evaluation failed")
            return replace(attempt, outcome=Outcome.ERROR, detail=type(error).__name__), None

    def _run(self, attempt: "Attempt", attempts: "Sequence[Attempt]") -> "tuple[Attempt, PairedRuns | None]":
        from assay_evals.compare.compare_runs import compare_runs
        from assay_evals.compare.slices import slice_checks
        from assay_evals.evaluation import evaluate_into
        from assay_evals.nightly import Outcome, beyond_budget, judged, night_of
        from assay_evals.run.folder import RunFolder
        from assay_evals.run.model import RunConfig, RunError
        from assay_evals.run.run_store import store_run
        from assay_evals.target.redaction import redact_target
        from assay_evals.target.runner import RunnerOptions
        from assay_evals.target.targets import open_target
        from assay_judge.pricing import dollars
        from assay_judge.reasons import reasons
        from assay_operations.evaluations.judge_options import with_spending
        from assay_operations.evaluations.run_judge import RunJudge

        log_no_tries()
        evals, began = self.settings.evals, attempt
        golden, held = load(self._dataset, "evals.dataset"), rules_for(self._rules, evals.rules)
        expect_slices(held, (), golden.cases)
        if evals.judge == "anthropic":
            self._require_key()
        judge = None if evals.judge == "none" else RunJudge(evals.judge, evals.budget_usd)
        asking = RunnerOptions()
        scoring = scoring_of(self._scorers, held, golden.cases, judge.rubric if judge else None, asking.deadline_s)
        config = RunConfig.of(
            golden,
            redact_target(self._target),
            judge=judge.fingerprint if judge else None,
            project=evals.project,
            label="nightly",
            scorers=scoring.digests,
        )
        name = night = f"nightly-{night_of(attempt.started_at, evals.hour):%Y%m%d}"
        try:
            folder = RunFolder(Path(evals.runs_dir) / name, config, resume=True, target=self._target)
        except RunError:  # the dataset, or a scorer, changed since an earlier attempt of this night
            name = f"{name}-{attempt.started_at:%H%M%S}"
            folder = RunFolder(Path(evals.runs_dir) / name, config, resume=True, target=self._target)
        with_spending(
            judge, folder, Path(evals.runs_dir) / night
        )  # one budget for all attempts of a night, regardless of their names
        asked = open_target(self._target)
        working = evaluate_into(folder, golden, asked, asking, judge=judge, scoring=scoring)

        async def work() -> "Run":
            try:
                async with asyncio.timeout(self._deadline.total_seconds()):
                    return await working
            finally:
                if judge is not None:
                    await judge.close()

        run = asyncio.run(work())
        with open_store(self.settings.store) as client:
            run_id = store_run(client, self.settings.store, run)
            attempt = replace(attempt, run_id=run_id, run_name=name, cases=len(run.results), errored=len(run.errored))
            before = baseline_of(client, evals, attempts, config)
        holding, floors = held.rules(), held.slice_floors()
        paired = compare_runs(before, run, rules=holding, floors=floors) if before else None
        checks = paired.checks if paired else slice_checks(run, held.fields, floors, holding)
        attempt = judged(attempt, paired, floors_of(run, held, scoring.rubrics(golden.cases)), checks)
        attempt = replace(attempt, baseline=before.run_id if before else "")
        if judge is not None:
            attempt = replace(attempt, cost_usd=dollars(judge.spent - judge.spent_before))
            if judge.failed:
                _, why = reasons(judge.failures)[0]
                detail = f"the judge gave no verdict for any of {judge.errors:,} answers, most often because: {why}"
                return replace(began, outcome=Outcome.ERROR, detail=detail, cost_usd=attempt.cost_usd), None
            if judge.skipped:
                detail = f"{judge.skipped} answers went unjudged: evals.budget_usd ({evals.budget_usd:g}) was used up"
                attempt = beyond_budget(attempt, detail)
        return attempt, paired

    def serve(self, stop: threading.Event, tell: Callable[[str], None]) -> None:
        """Make an attempt whenever one is due, until `stop` is set.

        `tell` gets outcomes and errors; errors are retried.
        """
        while not stop.is_set():
            try:
                if self.why_not() is None:
                    attempt = self.attempt()
                    tell(f"{attempt.outcome}: {attempt.detail}")
            except OperationError as error:  # the store is unavailable
                tell(f"assay: {error}")
            stop.wait(CHECK_EVERY_S)

    def _require_key(self) -> None:
        from assay_judge.backends import key_of

        if not key_of(self.settings.judge):
            raise _NoKeyError(
                'evals.judge is anthropic, and there is no key: set judge.api_key, or evals.judge = "lexical"'
            )

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


class _NoKeyError(Exception):
    """A judge is configured without its key."""
