"""Judge one answer, from its draw to its score, as a paid task."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

from assay_judge.alerts import NO_ALERTS, Alerts
from assay_judge.api import Reply
from assay_judge.breaker import Breaker
from assay_judge.call_budget import Bill
from assay_judge.evidence import Proof, demote_unsupported
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Ledger
from assay_judge.messages import EMPTY_ANSWER, INPUT_TOO_LARGE, NO_CLAIM, NO_PASSAGES, foreign_claims
from assay_judge.pricing import Tariff, dollars
from assay_judge.prompt import Case, case_of, message_of
from assay_judge.sampling import Draw
from assay_judge.task_runner import Attempted, Result, TaskRunner
from assay_judge.verdict import Verdict, metrics_of
from assay_runtime.clock import clock
from assay_schema.events import ScrubbedAnswer
from assay_schema.ids import event_ms
from assay_schema.scores import VERDICTS_MAX, Score, ScoreStatus, score_id
from assay_schema.settings import JudgeSettings


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
            "traceparent": event.traceparent,
            "origin": event.origin,
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


def verdict_fields(verdict: Verdict, case: Case) -> Result:
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


def before_judging(event: ScrubbedAnswer, case: Case, max_input_bytes: int) -> Result | None:
    """Return the status of an answer that needs no judge, or None."""
    if not event.payload.answer.strip():
        return {"status": ScoreStatus.ABSTAINED, "detail": EMPTY_ANSWER}
    if not any(text.strip() for text in case.passages.values()):
        return {"status": ScoreStatus.NO_CONTEXT, "detail": NO_PASSAGES}
    if case.size > max_input_bytes:
        return {"status": ScoreStatus.JUDGE_ERROR, "detail": INPUT_TOO_LARGE}
    return None


class AnswerTask:
    """The verdict on an answer, as a task."""

    def __init__(
        self,
        event: ScrubbedAnswer,
        draw: Draw,
        checks: dict[str, bool],
        case: Case,
        judge: JudgeIdentity,
        caller: Caller,
    ) -> None:
        self.project = event.project
        self.name = str(event.event_id)
        self._event, self._draw, self._checks = event, draw, checks
        self._case, self._judge, self._caller = case, judge, caller

    @property
    def message_bytes(self) -> int:
        """Bytes of the message."""
        return len(message_of(self._case).encode())

    async def attempt(self, timeout_s: float) -> Attempted:
        """Make one attempt. Raises a `CallError`."""
        reply = await self._caller.call(self._case, timeout_s)
        return Attempted(verdict_fields(reply.verdict, self._case), reply.usage, reply.limit, reply.pause_s)

    def document(self, result: Result, bill: Bill) -> bytes:
        """Return the JSON of the score."""
        cost = {
            "cost_usd": dollars(bill.nano),
            "input_tokens": bill.usage.read,
            "output_tokens": bill.usage.output,
        }
        fields = {name: value for name, value in result.items() if name != "status"}
        score = score_of(self._judge, self._event, self._draw, self._checks, result["status"], **cost, **fields)
        return score.model_dump_json().encode()


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
        draining: asyncio.Event | None = None,
    ) -> None:
        self.judge = judge
        self.ledger = ledger
        self.breaker = breaker
        self._max_input_bytes = settings.max_input_bytes
        self._caller = caller
        self._runner = TaskRunner(settings, judge.fingerprint, tariff, ledger, breaker, alerts, draining)
        #: Set when the service stops: no new calls start.
        self.draining = self._runner.draining

    async def score(self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool]) -> bytes | None:
        """Judge an answer and return the JSON of its score; None if it was published before.

        Raises `NotJudgedError`, `RedisError`.
        """
        case = case_of(str(event.event_id), event.payload)
        task = AnswerTask(event, draw, checks, case, self.judge, self._caller)
        return await self._runner.run(task, before_judging(event, case, self._max_input_bytes))

    async def keep_alive(self) -> None:
        """Renew the leases of running calls."""
        await self._runner.keep_alive()
