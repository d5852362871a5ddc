"""The judge service: judges a sample of the answers in `events` and publishes scores to `scores`.

Delivery: an entry is acknowledged in the step that publishes its score, and a score is published once. If a judge dies,
the next one takes over its entries; an answer whose verdict had arrived is not paid for twice.

Its rights in Redis are in docs/security.md. Store: nothing; the writer stores scores.
"""

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime

from redis.exceptions import RedisError

from assay_judge.alerts import AlertPublisher
from assay_judge.backends import api_of, judge_of, key_of, tariff_for
from assay_judge.batch import Batches
from assay_judge.breaker import Breaker
from assay_judge.call_budget import NotJudgedError
from assay_judge.control_set import ControlRounds
from assay_judge.evaluator import Evaluator, score_of
from assay_judge.judge_config import JudgeConfig, load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import RENEW_S, Ledger, ledger_of, publish_finish
from assay_judge.lexical_score import lexical_score
from assay_judge.pricing import dollars
from assay_judge.sampling import Draw, base_rate, draw, uniform
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.entries import Bounds, Entry, Outcome, Process
from assay_runtime.service import Service, main
from assay_schema.alerts import Alert
from assay_schema.events import ScrubbedAnswer, ScrubbedEvent
from assay_schema.ids import event_ms
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import ALERTS, EVENTS, SCORES, shard_of
from assay_schema.validation import InvalidEvent, parse_scrubbed

log = logging.getLogger(__name__)

STAGE = "judge"
#: Every answer contains this in its JSON; few other events do.
_ANSWER = b'"kind":"answer"'


class JudgeService:
    """The work of the service, with one judge."""

    def __init__(
        self,
        service: Service,
        config: JudgeConfig,
        judge: JudgeIdentity,
        ledger: Ledger,
        evaluator: Evaluator | None = None,
        batches: Sequence[Batches] = (),
    ) -> None:
        self._service = service
        self._config = config
        self._judge = judge
        self._ledger = ledger
        self._evaluator = evaluator
        #: By shard; empty unless the judge works in batches.
        self._batches = batches
        self._settings = service.settings.judge
        self._salt = self._settings.salt.get_secret_value()

    def process(self) -> Process:
        """Return the handler of a shard of `events`."""

        async def work(entries: Sequence[Entry]) -> list[Outcome]:
            answers = {entry.id: answer for entry in entries if (answer := answer_of(entry)) is not None}
            draws = await self._draws(list(answers.values()))
            outcomes = [Outcome(entry.id) for entry in entries if entry.id not in answers]
            alive = asyncio.create_task(self._keep_alive())
            try:
                scores = await asyncio.gather(
                    *(self._score(answer, *drawn) for answer, drawn in zip(answers.values(), draws, strict=True)),
                    return_exceptions=True,
                )
            finally:
                alive.cancel()
            for entry_id, score in zip(answers, scores, strict=True):
                if isinstance(score, NotJudgedError):
                    continue
                if isinstance(score, BaseException):
                    raise score
                outcomes.append(Outcome(entry_id, event=score))
            return outcomes

        return work

    async def _keep_alive(self) -> None:
        while self._evaluator is not None:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                await self._evaluator.keep_alive()

    async def _draws(self, answers: Sequence[ScrubbedAnswer]) -> list[tuple[Draw, dict[str, bool]]]:
        """Run the checks (layer 1) and draw each answer."""
        self._salt = self._salt or await self._ledger.salt()
        days: dict[str, Counter[date]] = defaultdict(Counter)
        for answer in answers:
            days[answer.project][_day(answer)] += 1
        rates: dict[tuple[str, date], float] = {}
        for project, added in days.items():
            counts = await self._ledger.traffic(project, dict(added))
            pays_for = None if self._judge.backend == "lexical" else await self._ledger.pays_for(project)
            for day in added:
                rates[project, day] = base_rate(
                    counts, day, self._settings.base_rate, self._settings.base_floor_per_day, pays_for
                )
        found = []
        for answer in answers:
            checks = self._config.check(answer.payload)
            for name, passed in checks.items():
                if not passed:
                    metrics.CHECKS_FAILED.labels(metrics.project_label(answer.project), name).inc()
            boosts = self._config.boosts_for(answer.project, answer.payload, checks)
            u = uniform(str(answer.event_id), self._salt)
            found.append((draw(u, rates[answer.project, _day(answer)], boosts), checks))
        return found

    async def _score(self, answer: ScrubbedAnswer, drawn: Draw, checks: dict[str, bool]) -> bytes | None:
        score: bytes | None
        if not drawn.sampled:
            status = ScoreStatus.NOT_SAMPLED
            score = score_of(self._judge, answer, drawn, checks, status).model_dump_json().encode()
        elif self._batches:
            score = await self._batches[shard_of(answer.project, len(self._batches))].add(answer, drawn, checks)
        elif self._evaluator is not None:
            score = await self._evaluator.score(answer, drawn, checks)
        else:
            score = await asyncio.to_thread(
                lexical_score, self._judge, answer, drawn, checks, self._settings.max_input_bytes
            )
        if score is not None:
            status = Score.model_validate_json(score).status if drawn.sampled else ScoreStatus.NOT_SAMPLED
            metrics.JUDGED.labels(metrics.project_label(answer.project), status.value).inc()
        return score

    async def report_spend(self) -> None:
        """Report the day's spend of the projects seen by this process as metrics."""
        today = clock.now().date()
        for project in metrics.labelled_projects():
            metrics.JUDGE_SPENT.labels(project).set(dollars(await self._ledger.spent(project, today)))


def answer_of(entry: Entry) -> ScrubbedAnswer | None:
    """Return the answer in an entry; None for other or broken events, which the writer records."""
    if _ANSWER not in entry.data:
        return None
    try:
        event = parse_scrubbed(entry.data)
    except InvalidEvent:
        return None
    return event if isinstance(event, ScrubbedAnswer) else None


def _day(answer: ScrubbedAnswer) -> date:
    return datetime.fromtimestamp(event_ms(answer.event_id) / 1000, UTC).date()


def build(settings: Settings) -> Service:
    """Build the service, ready to run. Raises `SettingsError`."""
    config = load_judge_config(settings.judge.rules_file)
    judge = judge_of(settings.judge)
    is_batch = judge.backend == "anthropic-batch"
    tariff = None if judge.backend == "lexical" else tariff_for(settings.judge, config, batch=is_batch)
    service = Service(STAGE, settings, settings.judge.port)
    ledger = ledger_of(service.client, settings)
    evaluator = None
    batches: list[Batches] = []
    alerts = AlertPublisher(service.client, settings.redis.shards, judge.fingerprint, settings.judge)
    if tariff is not None and is_batch:
        key = key_of(settings.judge)
        for shard in range(settings.redis.shards):
            batches.append(Batches(service.client, settings.judge, judge, tariff, ledger, key, shard, alerts))
            service.every_tick(batches[shard].poll)
    elif tariff is not None:
        breaker = Breaker(asyncio_clock)
        evaluator = Evaluator(settings.judge, judge, tariff, ledger, api_of(settings.judge), breaker, alerts)
        service.at_stop(evaluator.draining.set)
        every_days = settings.judge.anchors_every_days
        service.every_tick(ControlRounds(service.client, evaluator, settings.redis.shards, every_days, alerts).poll)
        service.notes(lambda: [f"judging stopped: {breaker.stopped}"] if breaker.stopped else [])
    metrics.JUDGE_BUDGET.set(settings.judge.budget_usd_per_day)
    worker = JudgeService(service, config, judge, ledger, evaluator, batches)
    bounds = Bounds(entries=4 * settings.judge.concurrency, bytes=4 * ENTRY_MAX_BYTES, age_s=0.2)
    for shard in range(settings.redis.shards):
        finish = publish_finish(service.client, ledger, STAGE, shard)
        service.consume(EVENTS, shard, process=worker.process(), finish=finish, bounds=bounds, document=ScrubbedEvent)
        service.publishes(SCORES, shard, Score)
        service.publishes(ALERTS, shard, Alert)
    service.every_tick(worker.report_spend)
    log.info("judging", extra={"backend": judge.backend, "fingerprint": judge.fingerprint})
    return service


def asyncio_clock() -> float:
    """Return the time of the running loop's clock."""
    return asyncio.get_running_loop().time()


def run() -> None:
    """Entry point of `python -m assay_judge`."""
    main(STAGE, build)
