"""Judge one answer, from its draw to its score.

Money is reserved first, attempts end at a deadline, and the result is exactly one status.
"""

import asyncio
import contextlib
import logging
import time
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from assay_judge.alerts import NO_ALERTS, Alerts
from assay_judge.api import CallError, Reply
from assay_judge.breaker import Breaker
from assay_judge.call_budget import Bill, CallBudget, NextStep, NotJudgedError, classify
from assay_judge.evidence import Proof, demote_unsupported
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Call, Ledger
from assay_judge.messages import (
    EMPTY_ANSWER,
    INPUT_TOO_LARGE,
    INTERRUPTED,
    NO_CLAIM,
    NO_PASSAGES,
    SKIPPED,
    foreign_claims,
)
from assay_judge.pricing import Tariff, Usage, dollars
from assay_judge.prompt import Case, case_of, message_of
from assay_judge.sampling import Draw
from assay_judge.verdict import Verdict, metrics_of
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_schema.alerts import ALL_PROJECTS
from assay_schema.events import ScrubbedAnswer
from assay_schema.ids import event_ms
from assay_schema.scores import VERDICTS_MAX, Score, ScoreStatus, score_id
from assay_schema.settings import JudgeSettings

log = logging.getLogger(__name__)


class Caller(Protocol):
    """Makes one attempt of a call: `assay_judge.api.Api`, or a stand-in."""

    async def call(self, case: Case, timeout_s: float) -> Reply:
        """Make one attempt and return the reply."""


def score_of(
    judge: JudgeIdentity,
    event: ScrubbedAnswer,
    draw: Draw,
    checks: dict[str, bool],
    status: ScoreStatus,
    **more: object,
) -> Score:
    """Build a score document; `more` contains the fields of its status."""
    fingerprint = judge.fingerprint
    return Score.model_validate(
        {
            "score_id": score_id(event.event_id, fingerprint),
            "event_id": event.event_id,
            "project": event.project,
            "service": event.service,
            "event_time": datetime.fromtimestamp(event_ms(event.event_id) / 1000, UTC),
            "judged_at": clock.now(),
            "status": status,
            "base": draw.base,
            "inclusion_probability": draw.inclusion_probability,
            "base_probability": draw.base_probability,
            "checks": checks,
            "boosts": list(draw.boosts),
            "fingerprint": fingerprint,
            "backend": judge.backend,
            "model": judge.model,
            "prompt_hash": judge.prompt_hash,
            "schema_hash": judge.schema_hash,
            "effort": judge.effort,
            **more,
        }
    )


def verdict_fields(verdict: Verdict, case: Case) -> dict[str, object]:
    """Return the status and the numbers of a verdict after its checks."""
    if not verdict.claims:
        return {"status": ScoreStatus.ABSTAINED, "detail": NO_CLAIM}
    checked = demote_unsupported(verdict, case)
    claims = checked.verdict.claims
    if not claims:  # a reply of an API without claims was rejected earlier
        return {"status": ScoreStatus.JUDGE_ERROR, "detail": "ReplyUnanchored"}
    return {
        "status": ScoreStatus.SCORED,
        "metrics": metrics_of(checked.verdict),
        "claims": len(claims),
        "contradicted": sum(claim.verdict == "contradicted" for claim in claims),
        "demoted": checked.demoted,
        "verdicts": _verdicts(checked.proofs, case),
        "detail": foreign_claims(checked.foreign),
    }


def _verdicts(proofs: list[Proof], case: Case) -> list[dict[str, object]]:
    """Return the locations of claims and evidence. If there are too many, unsupported claims come first."""
    chosen = sorted(range(len(proofs)), key=lambda n: (proofs[n].claim.verdict == "supported", n))[:VERDICTS_MAX]
    return [_placed(proofs[n], case) for n in sorted(chosen)]


def _placed(proof: Proof, case: Case) -> dict[str, object]:
    claim, demoted, said, passage, quote = proof
    made = {"verdict": claim.verdict, "demoted": demoted, "answer_from": said.start, "answer_to": said.end}
    if passage is None or quote is None:
        return {**made}
    return {**made, "passage": case.places[passage], "quote_from": quote.start, "quote_to": quote.end}


def before_judging(event: ScrubbedAnswer, case: Case, max_input_bytes: int) -> dict[str, object] | None:
    """Return the status of an answer that needs no judge, or None."""
    if not event.payload.answer.strip():
        return {"status": ScoreStatus.ABSTAINED, "detail": EMPTY_ANSWER}
    if not any(text.strip() for text in case.passages.values()):
        return {"status": ScoreStatus.NO_CONTEXT, "detail": NO_PASSAGES}
    if case.size > max_input_bytes:
        return {"status": ScoreStatus.JUDGE_ERROR, "detail": INPUT_TOO_LARGE}
    return None


#: The status of an answer and the further fields of its score.
Result = dict[str, object]


class AlreadyJudged(NamedTuple):
    """The answer has a score: empty if it was published."""

    score: bytes


class Evaluator:
    """Judges answers with a model, within a budget."""

    def __init__(
        self,
        settings: JudgeSettings,
        judge: JudgeIdentity,
        tariff: Tariff,
        ledger: Ledger,
        caller: Caller,
        breaker: Breaker,
        alerts: Alerts = NO_ALERTS,
    ) -> None:
        self.judge = judge
        self.ledger = ledger
        self.breaker = breaker
        self._alerts = alerts
        self._settings = settings
        self._tariff = tariff
        self._caller = caller
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._running: set[Call] = set()
        #: Set when the service stops: no new calls start.
        self.draining = asyncio.Event()

    async def score(self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool]) -> bytes | None:
        """Judge an answer and return the JSON of its score; None if it was published before.

        Raises `NotJudgedError`, `RedisError`.
        """
        async with self._slots:
            if self.draining.is_set():
                raise NotJudgedError
            case = case_of(str(event.event_id), event.payload)
            if (result := before_judging(event, case, self._settings.max_input_bytes)) is not None:
                return self._document(event, draw, checks, result, Bill(self._tariff))
            return await self._on_a_budget(event, draw, checks, case)

    async def _on_a_budget(
        self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool], case: Case
    ) -> bytes | None:
        call = self.ledger.call(event.project, str(event.event_id), self.judge.fingerprint)
        self._running.add(call)
        try:
            async with self._budget(call, case) as budget:
                result = await self._attempts(event.project, case, budget)
                if isinstance(result, AlreadyJudged):
                    return result.score or None
                document = self._document(event, draw, checks, result, budget.bill)
                if result["status"] is ScoreStatus.SKIPPED_BUDGET and not budget.bill.nano:
                    if not await self.ledger.keep(call, document):
                        return await self._score_by_another(event)
                elif await budget.settle(document):
                    metrics.JUDGE_COST.labels(metrics.project_label(event.project)).inc(dollars(budget.bill.nano))
                else:
                    return await self._score_by_another(event)
                return document
        finally:
            self._running.discard(call)

    def _budget(self, call: Call, case: Case) -> CallBudget:
        return CallBudget(
            self.ledger,
            self._tariff,
            call,
            message_bytes=len(message_of(case).encode()),
            max_output_tokens=self._settings.max_output_tokens,
            deadline_s=self._settings.deadline_s,
        )

    async def _score_by_another(self, event: ScrubbedAnswer) -> bytes:
        """Return the score by the judge that took over the answer.

        While that judge is at work, the entry is its to finish.
        """
        if (score := await self.ledger.known(event.project, str(event.event_id), self.judge.fingerprint)) is None:
            raise NotJudgedError
        return score

    async def _attempts(self, project: str, case: Case, budget: CallBudget) -> Result | AlreadyJudged:
        """Make attempts until there is a result."""
        while True:
            request = await self._await_permission(budget)
            if (final := await self._reserve(project, budget)) is not None:
                self.breaker.abandoned()
                return final
            started = time.monotonic()
            try:
                reply = await self._caller.call(case, min(budget.left_s, self._settings.request_timeout_s))
            except CallError as error:
                await self._record_failure(request, error)
                match budget.after(error):
                    case NextStep.RECORD:
                        return {"status": ScoreStatus.JUDGE_ERROR, "detail": budget.detail(error)}
                    case NextStep.RETRY:
                        await self._sleep(budget.next_pause_s())
            else:
                await self._record_success(request, reply, time.monotonic() - started)
                budget.charge(reply.usage)
                return verdict_fields(reply.verdict, case)

    async def _reserve(self, project: str, budget: CallBudget) -> Result | AlreadyJudged | None:
        """Reserve money for an attempt. None if reserved, else the final result of the answer."""
        while True:
            reservation = await budget.reserve()
            match reservation.what:
                case "ok":
                    await self._alerts.budget(project, False)
                    await self._alerts.budget(ALL_PROJECTS, False)
                    return None
                case "done":
                    return AlreadyJudged(reservation.score)
                case "busy":
                    await self._sleep(min(1.0, reservation.wait_s + 0.01))
                case "interrupted":
                    return {"status": ScoreStatus.JUDGE_ERROR, "detail": INTERRUPTED}
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

    async def _record_success(self, request: str, reply: Reply, seconds: float) -> None:
        metrics.JUDGE_CALLS.labels("ok").inc()
        metrics.JUDGE_CALL_SECONDS.observe(seconds)
        if self.breaker.succeeded():
            metrics.JUDGE_STOPPED.set(0)
            await self._alerts.stopped("")
        usage = reply.usage
        tokens = None if usage is None else usage.input + usage.cache_write + usage.output
        await self.ledger.learn(request, tokens=tokens, pause_s=reply.pause_s, limit=reply.limit)

    async def _record_failure(self, request: str, error: CallError) -> None:
        metrics.JUDGE_CALLS.labels(error.kind.partition(":")[0]).inc()
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

    def _document(
        self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool], result: Result, bill: Bill
    ) -> bytes:
        cost = {
            "cost_usd": dollars(bill.nano),
            "input_tokens": bill.usage.read,
            "output_tokens": bill.usage.output,
        }
        fields = {name: value for name, value in result.items() if name != "status"}
        status = result["status"]
        assert isinstance(status, ScoreStatus)
        return score_of(self.judge, event, draw, checks, status, **cost, **fields).model_dump_json().encode()
