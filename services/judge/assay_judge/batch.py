"""Anthropic's message batches: half the price, results within a day.

Answers wait in Redis, are sent together, and their verdicts are fetched. Hashes of a shard contain the waiting answers,
the sent answers, the batches (our name to the API's id) and the answers of each batch. Every step can be repeated:
money is reserved in the step that queues an answer, a batch takes an answer in one atomic step however many judges
poll, and an answer leaves `sent` in the step that publishes its score. If a judge dies after sending a batch and before
storing its id, the answers wait until their day ends. They then become `judge_error`, and the reserved money counts as
spent, because the batch may have been billed. A batch that the API rejects permanently is halved until the rejected
answers are isolated.
"""

import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter

from assay_judge.alerts import NO_ALERTS, Alerts
from assay_judge.api import (
    BadReplyError,
    CallError,
    RejectedError,
    StoppedError,
    TryAgainError,
    connect,
    failure_of,
    parameters,
    prompt_of,
    usage_of,
    verdict_of,
)
from assay_judge.call_budget import NotJudgedError
from assay_judge.evaluator import before_judging, score_of, verdict_fields
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Call, Ledger, Waits
from assay_judge.messages import NO_BATCH_RESULT, REJUDGE, SKIPPED, interrupted
from assay_judge.pricing import Tariff, Usage, dollars
from assay_judge.prompt import Case, case_of, message_of
from assay_judge.sampling import Draw
from assay_judge.scripts import FETCHED, LOCK, SEND, UNSEND
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_schema.alerts import ALL_PROJECTS
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import ScoreStatus
from assay_schema.settings import JudgeSettings
from assay_schema.streams import PREFIX, SCORES

log = logging.getLogger(__name__)

#: A batch ends within a day; if it is not back two hours later, it counts as failed.
GIVEN_UP_S = 26 * 3_600
#: Seconds between polls, and the seconds for which a judge without heartbeat keeps the lock.
POLL_EVERY_S, LOCK_S = 10.0, 120
#: Maximum number of rejected batches per poll: if all answers are at fault, each is isolated in turn.
REFUSED_MOST = 40
_ANSWER = TypeAdapter(ScrubbedAnswer)


class Batches:
    """The batches of one shard."""

    def __init__(
        self,
        client: Client,
        settings: JudgeSettings,
        judge: JudgeIdentity,
        tariff: Tariff,
        ledger: Ledger,
        key: str,
        shard: int,
        alerts: Alerts = NO_ALERTS,
    ) -> None:
        self._client = client
        self._alerts = alerts
        self._settings = settings
        self._judge = judge
        self._tariff = tariff
        self._ledger = ledger
        self._send = client.register_script(SEND)
        self._unsend = client.register_script(UNSEND)
        self._fetched = client.register_script(FETCHED)
        self._lock = client.register_script(LOCK)
        self._key = key
        self._shard = shard
        self._owner = uuid.uuid4().hex
        self._names = {
            name: f"{PREFIX}:{{{shard}}}:judge:batch:{name}" for name in ("waiting", "sent", "ids", "answers", "lock")
        }
        self._api: Any = None
        self._next = 0.0

    async def add(self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool]) -> bytes | None:
        """Queue an answer for a batch.

        Returns its score if it is already final (no judging needed, or skipped); None if it will be published later.
        """
        case = case_of(str(event.event_id), event.payload)
        if (state := before_judging(event, case, self._settings.max_input_bytes)) is not None:
            return self._document(event, draw, checks, state, 0, Usage())
        call = self._ledger.call(event.project, str(event.event_id), self._judge.fingerprint)
        bound = self._tariff.bound(len(message_of(case).encode()), self._settings.max_output_tokens)
        event_id = str(event.event_id)
        waiting = {
            "event": event.model_dump_json(),
            "draw": [draw.base, draw.base_probability, draw.inclusion_probability, list(draw.boosts)],
            "checks": checks,
            "call": list(call),
            "bound": bound,
            "at": clock.now_ms() / 1000,
        }
        waits = Waits(self._names["waiting"], event_id, orjson.dumps(waiting))
        reservation = await self._ledger.reserve(call, 1, bound, lease_s=GIVEN_UP_S, waits=waits)
        match reservation.what:
            case "done":
                return reservation.score or None
            case "budget" | "all_budgets":
                whose = event.project if reservation.what == "budget" else ALL_PROJECTS
                await self._alerts.budget(whose, True)
                detail = SKIPPED[reservation.what]
                return self._document(
                    event, draw, checks, {"status": ScoreStatus.SKIPPED_BUDGET, "detail": detail}, 0, Usage()
                )
            case "interrupted":  # a judge that makes single calls had started it
                state = {"status": ScoreStatus.JUDGE_ERROR, "detail": interrupted(REJUDGE)}
                document = self._document(event, draw, checks, state, reservation.nano, Usage())
                await self._ledger.settle(call, reservation.nano, document)
                return document
            case "busy" if not await self._is_known(event_id):
                raise NotJudgedError  # such a judge is working on it or died; the entry will be redelivered
            case "ok":
                await self._alerts.budget(event.project, False)
                await self._alerts.budget(ALL_PROJECTS, False)
        return None  # it is queued, now or since an earlier delivery

    async def _is_known(self, event_id: str) -> bool:
        """True if an answer is waiting or sent; checked in this order, because answers move in this order."""
        return bool(
            await self._client.hget(self._names["waiting"], event_id)
            or await self._client.hget(self._names["sent"], event_id)
        )

    async def poll(self) -> None:
        """Send due answers and fetch finished batches. One judge at a time does this."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + POLL_EVERY_S
        if not await self._client.set(self._names["lock"], self._owner, nx=True, ex=LOCK_S):
            return
        try:
            await self._send_due()
            await self._fetch()
        finally:
            await self._lock(keys=[self._names["lock"]], args=[self._owner, "0"])

    async def _renew_lock(self) -> None:
        """Renew the lock. A second judge at the same time does no harm: each step is safe by itself."""
        await self._lock(keys=[self._names["lock"]], args=[self._owner, str(LOCK_S * 1000)])

    async def _send_due(self) -> None:
        waiting = await self._client.hgetall(self._names["waiting"])
        if not waiting:
            return
        oldest = min(orjson.loads(each)["at"] for each in waiting.values())
        if (
            len(waiting) < self._settings.batch_requests
            and clock.now_ms() / 1000 - oldest < self._settings.batch_wait_s
        ):
            return
        queue = [list(waiting)[: self._settings.batch_requests]]
        refused = 0
        while queue and refused < REFUSED_MOST:
            chosen = queue.pop()
            await self._renew_lock()
            match await self._sent(chosen, waiting):
                case "refused permanently" if len(chosen) > 1:
                    refused += 1
                    queue += [chosen[len(chosen) // 2 :], chosen[: len(chosen) // 2]]
                case "refused for now":
                    return
                case "refused permanently":
                    refused += 1

    async def _sent(self, chosen: list[bytes], waiting: Mapping[bytes, bytes]) -> str:
        """Send answers that are still waiting as one batch.

        Returns `sent`, `refused for now` or `refused permanently`.
        """
        name, at = uuid.uuid4().hex, clock.now_ms() / 1000
        keys = [self._names[each] for each in ("waiting", "sent", "ids", "answers")]
        taken: list[bytes] = await self._send(keys=keys, args=[name, str(at), *chosen])
        if not taken:
            return "sent"
        requests = []
        for event_id in taken:
            event = _ANSWER.validate_json(orjson.loads(waiting[event_id])["event"])
            body = parameters(prompt_of(case_of(event_id.decode(), event.payload)), self._settings)
            requests.append({"custom_id": event_id.decode(), "params": body})
        try:
            batch_id = await self._create(requests)
        except CallError as error:
            metrics.JUDGE_CALLS.labels("batch_refused").inc()
            permanent = isinstance(error, RejectedError)
            if permanent and len(taken) == 1:
                state: dict[str, object] = {"status": ScoreStatus.JUDGE_ERROR, "detail": f"Batch: {error.kind}"}
                await self._end(taken[0].decode(), state, 0, Usage())
                await self._forget(name)
            else:
                # it was certainly not accepted: the answers wait again
                await self._unsend(keys=keys, args=[name, *taken])
            return "refused permanently" if permanent else "refused for now"
        await self._client.hset(self._names["ids"], name, orjson.dumps([batch_id, at]))
        return "sent"

    async def _forget(self, name: str | bytes) -> None:
        await self._client.hdel(self._names["answers"], name)
        await self._client.hdel(self._names["ids"], name)

    async def _create(self, requests: list[Any]) -> str:
        """Create a batch and return its id. Raises `CallError` if it was certainly not accepted."""
        import anthropic

        try:
            batch = await self._connected().messages.batches.create(requests=requests)
        except anthropic.APIStatusError as error:
            raise await self._refused(error) from None
        except anthropic.APIConnectionError as error:
            if "ConnectError" not in repr(error.__cause__):
                raise  # it may have been accepted, but its id is unknown
            log.warning("a batch was not sent", extra={"error_class": type(error).__name__})
            raise TryAgainError("APIConnectionError") from None
        metrics.JUDGE_CALLS.labels("batch").inc()
        metrics.JUDGE_STOPPED.set(0)
        await self._alerts.stopped("")
        return str(batch.id)

    async def _refused(self, error: Any) -> CallError:
        """Record an error reply of the API, and stop judging if the API accepts none of our calls."""
        failure = failure_of(error.status_code, type(error).__name__, error.response.headers)
        log.error("a batch was refused", extra={"error_class": failure.kind.partition(":")[0]})
        if isinstance(failure, StoppedError):
            metrics.JUDGE_STOPPED.set(1)
            await self._alerts.stopped(failure.kind)
        return failure

    async def _fetch(self) -> None:
        """Fetch all batches independently: one that cannot be fetched does not delay the others."""
        for name, data in (await self._client.hgetall(self._names["ids"])).items():
            batch_id, at = orjson.loads(data)
            await self._renew_lock()
            if batch_id and await self._fetched_whole(str(batch_id)):
                await self._end_held(name, NO_BATCH_RESULT)
                await self._forget(name)
            elif clock.now_ms() / 1000 - at > GIVEN_UP_S:
                await self._give_up(name)

    async def _fetched_whole(self, batch_id: str) -> bool:
        """True if a batch has ended and all its verdicts are published."""
        import anthropic

        batches = self._connected().messages.batches
        try:
            if (await batches.retrieve(batch_id)).processing_status != "ended":
                return False
            async for line in await batches.results(batch_id):
                await self._result(line.custom_id, line.result)
                await self._renew_lock()
        except anthropic.APIStatusError as error:
            await self._refused(error)
            return False
        except anthropic.APIConnectionError as error:
            log.warning("a batch could not be fetched", extra={"error_class": type(error).__name__})
            return False
        return True

    async def _result(self, event_id: str, result: Any) -> None:
        data = await self._client.hget(self._names["sent"], event_id)
        if data is None:
            return
        case = case_of(event_id, _ANSWER.validate_json(orjson.loads(data)["event"]).payload)
        state, usage = self._state(result, case)
        await self._end(event_id, state, self._tariff.cost(usage), usage)

    async def _end(self, event_id: str, state: dict[str, object], nano: int | None, usage: Usage) -> None:
        """Publish the result of a sent answer. `nano` is its cost; None stands for the reserved amount."""
        data = await self._client.hget(self._names["sent"], event_id)
        if data is None:
            return
        sent = orjson.loads(data)
        event = _ANSWER.validate_json(sent["event"])
        await self._publish(event, sent, state, sent["bound"] if nano is None else nano, usage)

    @staticmethod
    def _state(result: Any, case: Case) -> tuple[dict[str, object], Usage]:
        if result.type != "succeeded":
            return {"status": ScoreStatus.JUDGE_ERROR, "detail": f"Batch: the request {result.type}"}, Usage()
        usage = usage_of(result.message.usage)
        try:
            return verdict_fields(verdict_of(result.message, case, usage), case), usage
        except BadReplyError as error:
            return {"status": ScoreStatus.JUDGE_ERROR, "detail": error.kind}, usage

    async def _give_up(self, name: bytes) -> None:
        """End the answers of a batch whose id was never stored, or which never ended."""
        detail = "Interrupted: the batch never came back"
        if not await self._end_held(name, detail):
            for event_id in await self._older_than_a_day():
                await self._end(event_id, {"status": ScoreStatus.JUDGE_ERROR, "detail": detail}, None, Usage())
        await self._forget(name)

    async def _end_held(self, name: bytes, detail: str) -> bool:
        """End the answers of a batch that have no result. False if the list of its answers was not stored."""
        held = await self._client.hget(self._names["answers"], name)
        for event_id in orjson.loads(held or b"[]"):
            await self._end(event_id, {"status": ScoreStatus.JUDGE_ERROR, "detail": detail}, None, Usage())
        return held is not None

    async def _older_than_a_day(self) -> list[str]:
        """Return the answers of batches of an older version, which did not store their list of answers."""
        noted = {
            each
            for held in (await self._client.hgetall(self._names["answers"])).values()
            for each in orjson.loads(held)
        }
        sent = {
            name.decode(): orjson.loads(data)
            for name, data in (await self._client.hgetall(self._names["sent"])).items()
        }
        now = clock.now_ms() / 1000
        return [name for name, each in sent.items() if name not in noted and now - each["at"] > GIVEN_UP_S]

    async def _publish(
        self, event: ScrubbedAnswer, sent: Mapping[str, Any], state: dict[str, object], nano: int, usage: Usage
    ) -> None:
        base, base_probability, inclusion, boosts = sent["draw"]
        draw = Draw(True, base, base_probability, inclusion, tuple(boosts))
        document = self._document(event, draw, dict(sent["checks"]), state, nano, usage)
        call = Call(*sent["call"])
        await self._ledger.settle(call, nano, document)
        keys = [self._names["sent"], SCORES.key(self._shard), call.record]
        if await self._fetched(keys=keys, args=[str(event.event_id), document]):
            metrics.JUDGED.labels(metrics.project_label(event.project), str(state["status"])).inc()
            metrics.JUDGE_COST.labels(metrics.project_label(event.project)).inc(dollars(nano))

    def _document(
        self,
        event: ScrubbedAnswer,
        draw: Draw,
        checks: dict[str, bool],
        state: Mapping[str, object],
        nano: int,
        usage: Usage,
    ) -> bytes:
        more = {name: value for name, value in state.items() if name != "status"}
        paid = {"cost_usd": dollars(nano), "input_tokens": usage.read, "output_tokens": usage.output}
        status = state["status"]
        assert isinstance(status, ScoreStatus)
        return score_of(self._judge, event, draw, checks, status, **paid, **more).model_dump_json().encode()

    def _connected(self) -> Any:
        if self._api is None:
            self._api = connect(self._settings, self._key)
        return self._api

    async def close(self) -> None:
        """Close the connections."""
        if self._api is not None:
            await self._api.close()
