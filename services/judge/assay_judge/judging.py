"""Judge one answer, from its draw to its score.

Money is reserved first, attempts end at a deadline, and the result is exactly one status.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from assay_judge.api import BadReplyError, CallError, RejectedError, Reply, StoppedError, TryAgainError
from assay_judge.breaker import Breaker
from assay_judge.evidence import Proof, believed
from assay_judge.fingerprint import Judge
from assay_judge.ledger import Call, Ledger
from assay_judge.pricing import Tariff, Usage, bound_tokens, dollars
from assay_judge.prompt import Case, case_of, message_of
from assay_judge.sampling import Draw
from assay_judge.verdict import Verdict, measured
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_schema.alerts import ALL_PROJECTS
from assay_schema.events import ScrubbedAnswer
from assay_schema.ids import event_ms
from assay_schema.scores import VERDICTS_MAX, Score, ScoreStatus, score_id
from assay_schema.settings import JudgeSettings

log = logging.getLogger(__name__)

#: Attempts per answer that are, or may be, billed.
BILLED_TRIES = 2
#: Details of a status, by the ledger's reply.
SKIPPED = {
    "budget": "judge.budget_usd_per_day is used up for this project",
    "all_budgets": "judge.budget_usd_per_day_all_projects is used up",
}
INTERRUPTED = "Interrupted: the judge died during the call, which may have been billed; assay judge rejudge asks again"


class NotJudgedError(Exception):
    """The service stopped before the answer was judged. Its entry stays pending, and nothing was spent."""


class Caller(Protocol):
    """Makes one attempt of a call: `assay_judge.api.Api`, or a stand-in."""

    async def call(self, case: Case, timeout_s: float) -> Reply: ...


@dataclass
class _Bill:
    """Cost of one answer so far. `unknown` is reserved for attempts that may have been billed."""

    tariff: Tariff
    #: The call, which determines the day that is charged.
    call: Call | None = None
    usage: Usage = field(default_factory=Usage)
    known: int = 0
    unknown: int = 0

    def add(self, usage: Usage | None, bound: int) -> None:
        if usage is None:
            self.unknown += bound
        else:
            self.usage += usage
            self.known += self.tariff.cost(usage)

    @property
    def nano(self) -> int:
        return self.known + self.unknown


def score_of(
    judge: Judge, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool], status: ScoreStatus, **more: object
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
        return {"status": ScoreStatus.ABSTAINED, "detail": "the answer makes no claim"}
    checked = believed(verdict, case)
    claims = checked.verdict.claims
    if not claims:  # a reply of an API without claims was rejected earlier
        return {"status": ScoreStatus.JUDGE_ERROR, "detail": "ReplyUnanchored"}
    left_out = f"{checked.foreign} claims of the reply are not in the answer" if checked.foreign else ""
    return {
        "status": ScoreStatus.SCORED,
        "metrics": measured(checked.verdict),
        "claims": len(claims),
        "contradicted": sum(claim.verdict == "contradicted" for claim in claims),
        "demoted": checked.demoted,
        "verdicts": _verdicts(checked.proofs, case),
        "detail": left_out,
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
        return {"status": ScoreStatus.ABSTAINED, "detail": "the answer is empty"}
    if not any(text.strip() for text in case.passages.values()):
        return {"status": ScoreStatus.NO_CONTEXT, "detail": "the answer has no passages"}
    if case.size > max_input_bytes:
        return {"status": ScoreStatus.JUDGE_ERROR, "detail": "InputTooLarge: above judge.max_input_bytes"}
    return None


class Judging:
    """Judges answers with a model, within a budget."""

    def __init__(
        self, settings: JudgeSettings, judge: Judge, tariff: Tariff, ledger: Ledger, caller: Caller, breaker: Breaker
    ) -> None:
        self.judge = judge
        self.ledger = ledger
        self.breaker = breaker
        self._settings = settings
        self._tariff = tariff
        self._caller = caller
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._at_work: set[Call] = set()
        #: Set when the service stops: no new calls start.
        self.draining = asyncio.Event()
        #: Called when judging stops because of a refused key, and when it resumes: (reason, or '' for resumed).
        self.on_stop: Callable[[str], Awaitable[None]] = _nothing
        #: Called when a project's budget is used up, and when there is money again: (project, True if used up).
        self.on_budget: Callable[[str, bool], Awaitable[None]] = _nothing_either

    async def score(self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool]) -> bytes | None:
        """Judge an answer and return the JSON of its score; None if it was published before.

        Raises `NotJudgedError`, `RedisError`.
        """
        async with self._slots:
            if self.draining.is_set():
                raise NotJudgedError
            case = case_of(str(event.event_id), event.payload)
            if (state := before_judging(event, case, self._settings.max_input_bytes)) is not None:
                return self._document(event, draw, checks, state, _Bill(self._tariff))
            return await self._on_a_budget(event, draw, checks, case)

    async def _on_a_budget(
        self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool], case: Case
    ) -> bytes | None:
        call = self.ledger.call(event.project, str(event.event_id), self.judge.fingerprint)
        bill = _Bill(self._tariff, call)
        self._at_work.add(call)
        try:
            state = await self._tries(event.project, call, case, bill)
            if isinstance(state, bytes):
                return state or None
            document = self._document(event, draw, checks, state, bill)
            if state["status"] is not ScoreStatus.SKIPPED_BUDGET or bill.nano:
                if not await self.ledger.settle(bill.call or call, bill.nano, document):
                    return await self._of_another(event)
                metrics.JUDGE_COST.labels(metrics.project_label(event.project)).inc(dollars(bill.nano))
            elif not await self.ledger.keep(call, document):
                return await self._of_another(event)
            return document
        finally:
            self._at_work.discard(call)

    async def _of_another(self, event: ScrubbedAnswer) -> bytes:
        """Return the score by the judge that took over the answer.

        While that judge is at work, the entry is its to finish.
        """
        if (score := await self.ledger.known(event.project, str(event.event_id), self.judge.fingerprint)) is None:
            raise NotJudgedError
        return score

    async def _tries(self, project: str, call: Call, case: Case, bill: _Bill) -> dict[str, object] | bytes:
        """Make attempts until there is a status. Returns bytes if the score is already known."""
        size = len(message_of(case).encode())
        bound, tokens = self._tariff.bound(size, self._settings.max_output_tokens), bound_tokens(size)
        reserved, attempt, requests, bad, deadline, pause = False, 1, 0, 0, 0.0, 0.5
        error: CallError
        while True:
            requests += 1  # each request counts towards its minute, billed or not
            name, since = f"{call.owner}/{requests}", time.monotonic()
            await self._until_a_call_may_go(call, reserved=reserved, unbilled=not bill.nano, name=name, tokens=tokens)
            now = time.monotonic()
            # Waiting for the breaker and the rate limits does not count towards the deadline.
            deadline = deadline + now - since if deadline else now + self._settings.deadline_s
            if not reserved:
                if not bill.nano:  # it may have waited past midnight; earlier charges stay on their day
                    bill.call = call = self.ledger.today(call)
                if (found := await self._reserve(project, call, attempt, bound, bill)) is not None:
                    self.breaker.abandoned()
                    return found
                reserved = True
            started = time.monotonic()
            left = max(0.1, deadline - started)
            try:
                reply = await self._caller.call(case, min(left, self._settings.request_timeout_s))
            except CallError as raised:
                error = raised
            else:
                metrics.JUDGE_CALLS.labels("ok").inc()
                metrics.JUDGE_CALL_SECONDS.observe(time.monotonic() - started)
                await self._went_well(name, reply)
                bill.add(reply.usage, bound)
                return verdict_fields(reply.verdict, case)
            metrics.JUDGE_CALLS.labels(error.kind.partition(":")[0]).inc()
            await self._went_wrong(name, error)
            if isinstance(error, StoppedError):
                continue
            bill_more = error.usage is None or error.usage != Usage()
            if bill_more:
                bill.add(error.usage, bound)
                reserved, attempt = False, attempt + 1
            bad += bill_more or isinstance(error, BadReplyError)
            over = time.monotonic() + pause >= deadline
            if isinstance(error, RejectedError) or bad >= BILLED_TRIES or over:
                late = " (no time left: judge.deadline_s)" if over and isinstance(error, TryAgainError) else ""
                return {"status": ScoreStatus.JUDGE_ERROR, "detail": f"{error.kind}{late}"}
            if isinstance(error, TryAgainError):
                await self._sleep(pause * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
                pause = min(2 * pause, 8.0)

    async def _reserve(
        self, project: str, call: Call, attempt: int, bound: int, bill: _Bill
    ) -> dict[str, object] | bytes | None:
        """Reserve money.

        None if reserved, else the final status of the answer, or its score if already judged.
        """
        while True:
            answered = await self.ledger.reserve(call, attempt, bound)
            match answered.what:
                case "ok":
                    await self.on_budget(project, False)
                    await self.on_budget(ALL_PROJECTS, False)
                    return None
                case "done":
                    return answered.score
                case "busy":
                    await self._sleep(min(1.0, answered.wait_s + 0.01))
                case "interrupted":
                    bill.unknown += answered.nano
                    return {"status": ScoreStatus.JUDGE_ERROR, "detail": INTERRUPTED}
                case "budget" | "all_budgets":
                    await self.on_budget(project if answered.what == "budget" else ALL_PROJECTS, True)
                    return {"status": ScoreStatus.SKIPPED_BUDGET, "detail": SKIPPED[answered.what]}

    async def _until_a_call_may_go(self, call: Call, *, reserved: bool, unbilled: bool, name: str, tokens: int) -> None:
        """Wait for the breaker, then for the rate limits. A stop of the service ends the wait."""
        passed = False
        while True:
            if self.draining.is_set():
                if passed:
                    self.breaker.abandoned()
                if reserved and unbilled:
                    await self.ledger.release(call)
                raise NotJudgedError  # charges stay spent, and the next judge finds the answer interrupted
            waits = 0.0 if passed else self.breaker.wait_s()
            if not waits:
                passed = True
                settings = self._settings
                waits = await self.ledger.take(name, tokens, settings.requests_per_minute, settings.tokens_per_minute)
                if not waits:
                    return
            await self._sleep(min(waits, 1.0))

    async def _went_well(self, name: str, reply: Reply) -> None:
        if self.breaker.succeeded():
            metrics.JUDGE_STOPPED.set(0)
            await self.on_stop("")
        usage = reply.usage
        used = None if usage is None else usage.input + usage.cache_write + usage.output
        await self.ledger.learn(name, tokens=used, pause_s=reply.pause_s, limit=reply.limit)

    async def _went_wrong(self, name: str, error: CallError) -> None:
        log.warning("a call returned no verdict", extra={"error_class": error.kind.partition(":")[0]})
        match error:
            case StoppedError():
                if self.breaker.stop(error.kind):
                    log.critical("judging stopped: %s", error.kind)
                metrics.JUDGE_STOPPED.set(1)
                await self.on_stop(error.kind)
            case TryAgainError():
                self.breaker.failed()
            case _:
                self.breaker.succeeded()
        unread = error.usage == Usage()  # nothing was read, so the tokens of this minute are still available
        if unread or error.pause_s:
            await self.ledger.learn(name, tokens=0 if unread else None, pause_s=error.pause_s)

    async def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.draining.wait()

    async def keep_alive(self) -> None:
        """Renew the leases of running calls."""
        await self.ledger.renew(list(self._at_work))

    def _document(
        self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool], state: dict[str, object], bill: _Bill
    ) -> bytes:
        usage = {
            "cost_usd": dollars(bill.nano),
            "input_tokens": bill.usage.read,
            "output_tokens": bill.usage.output,
        }
        more = {name: value for name, value in state.items() if name != "status"}
        status = state["status"]
        assert isinstance(status, ScoreStatus)
        return score_of(self.judge, event, draw, checks, status, **usage, **more).model_dump_json().encode()


async def _nothing(_: str) -> None:
    pass


async def _nothing_either(_: str, __: bool) -> None:
    pass
