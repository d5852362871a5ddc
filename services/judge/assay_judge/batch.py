"""Anthropic's message batches: half the price, within a day. Answers wait in Redis, are sent together, and their verdicts are fetched.

One hash of a shard holds what waits, one what was sent (by answer), one the batches (name of ours to the API's id). Every step may be done
again: an answer leaves `sent` in the step that publishes its score. A judge that dies between sending a batch and noting its id leaves the
answers to the end of their day: they end as `judge_error`, with what was set aside counted as spent, since the batch may have been billed.
"""

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter

from assay_judge.api import BadReplyError, StoppedError, connect, failure_of, parameters, usage_of, verdict_of
from assay_judge.fingerprint import Judge
from assay_judge.judging import before_judging, score_of, verdict_fields
from assay_judge.ledger import Call, Ledger
from assay_judge.pricing import Tariff, Usage, dollars
from assay_judge.prompt import Case, case_of, message_of
from assay_judge.sampling import Draw
from assay_judge.scripts import FETCHED, SEND
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import ScoreStatus
from assay_schema.settings import JudgeSettings
from assay_schema.streams import PREFIX, SCORES

log = logging.getLogger(__name__)

#: A batch ends within a day; what is not back two hours later never will be.
GIVEN_UP_S = 26 * 3_600
#: Seconds between two looks at batches, and how long one judge has the look to itself.
LOOK_EVERY_S, LOCK_S = 10.0, 120
_ANSWER = TypeAdapter(ScrubbedAnswer)


class Batches:
    """The batches of one shard."""

    def __init__(
        self,
        client: Client,
        settings: JudgeSettings,
        judge: Judge,
        tariff: Tariff,
        ledger: Ledger,
        key: str,
        shard: int,
    ) -> None:
        self._client, self._settings, self._judge, self._tariff, self._ledger = client, settings, judge, tariff, ledger
        self._send, self._fetched = client.register_script(SEND), client.register_script(FETCHED)
        self._key, self._shard = key, shard
        self._names = {
            name: f"{PREFIX}:{{{shard}}}:judge:batch:{name}" for name in ("waiting", "sent", "ids", "look", "lock")
        }
        self._api: Any = None
        self._next = 0.0
        #: Told when the API refuses us, and when it takes a batch (with an empty reason).
        self.on_stop: Callable[[str], Awaitable[None]] = _nothing
        #: Told of a project whose budget is used up, or is not.
        self.on_budget: Callable[[str, bool], Awaitable[None]] = _nothing_either

    async def add(self, event: ScrubbedAnswer, draw: Draw, checks: dict[str, bool]) -> bytes | None:
        """Let an answer wait for its batch. Bytes are its score when it needs none, or is skipped; None: it will be published."""
        case = case_of(str(event.event_id), event.payload)
        if (state := before_judging(event, case, self._settings.max_input_bytes)) is not None:
            return self._document(event, draw, checks, state, 0, Usage())
        call = self._ledger.call(event.project, str(event.event_id), self._judge.fingerprint)
        bound = self._tariff.bound(len(message_of(case).encode()), self._settings.max_output_tokens)
        answered = await self._ledger.reserve(call, 1, bound, lease_s=GIVEN_UP_S)
        match answered.what:
            case "done":
                return answered.score or None
            case "budget":
                await self.on_budget(event.project, True)
                detail = "judge.budget_usd_per_day is used up for this project"
                return self._document(
                    event, draw, checks, {"status": ScoreStatus.SKIPPED_BUDGET, "detail": detail}, 0, Usage()
                )
            case "ok":
                await self.on_budget(event.project, False)
                waiting = {
                    "event": event.model_dump_json(),
                    "draw": [draw.base, draw.base_probability, draw.inclusion_probability, list(draw.boosts)],
                    "checks": checks,
                    "call": list(call),
                    "bound": bound,
                    "at": clock.now_ms() / 1000,
                }
                await self._client.hset(self._names["waiting"], str(event.event_id), orjson.dumps(waiting))
        return None  # it waits, now or since an earlier delivery

    async def look(self) -> None:
        """Send what is due, fetch what is ready. One judge at a time does it."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_EVERY_S
        if not await self._client.set(self._names["lock"], "1", nx=True, ex=LOCK_S):
            return
        try:
            await self._send_due()
            await self._fetch()
        finally:
            await self._client.delete(self._names["lock"])

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
        chosen = list(waiting)[: self._settings.batch_requests]
        name = uuid.uuid4().hex
        keys = [self._names["waiting"], self._names["sent"], self._names["ids"]]
        await self._send(keys=keys, args=[name, str(clock.now_ms() / 1000), *chosen])
        requests = []
        for event_id in chosen:
            event = _ANSWER.validate_json(orjson.loads(waiting[event_id])["event"])
            body = parameters(case_of(event_id.decode(), event.payload), self._settings)
            requests.append({"custom_id": event_id.decode(), "params": body})
        if (found := await self._create(requests)) is not None:
            await self._client.hset(self._names["ids"], name, orjson.dumps([found, clock.now_ms() / 1000]))
            return
        await self._send(
            keys=[keys[1], keys[0], keys[2]], args=[name, "", *chosen]
        )  # it was surely not taken: they wait again
        metrics.JUDGE_CALLS.labels("batch_refused").inc()

    async def _create(self, requests: list[Any]) -> str | None:
        import anthropic

        try:
            batch = await self._connected().messages.batches.create(requests=requests)
        except anthropic.APIStatusError as error:
            await self._refused(error)
            return None
        except anthropic.APIConnectionError as error:
            if "ConnectError" not in repr(error.__cause__):
                raise  # it may have been taken: nobody knows its id
            log.warning("a batch was not sent", extra={"error_class": type(error).__name__})
            return None
        metrics.JUDGE_CALLS.labels("batch").inc()
        metrics.JUDGE_STOPPED.set(0)
        await self.on_stop("")
        return str(batch.id)

    async def _refused(self, error: Any) -> None:
        """The API answered with an error: say so, and that judging stops if it will take nothing of ours."""
        failure = failure_of(error.status_code, type(error).__name__, error.response.headers)
        log.error("a batch was refused", extra={"error_class": failure.kind.partition(":")[0]})
        if isinstance(failure, StoppedError):
            metrics.JUDGE_STOPPED.set(1)
            await self.on_stop(failure.kind)

    async def _fetch(self) -> None:
        """Each batch by itself: one that cannot be had keeps no other waiting, and ends with its day."""
        for name, data in (await self._client.hgetall(self._names["ids"])).items():
            batch_id, at = orjson.loads(data)
            if batch_id and await self._fetched_whole(str(batch_id)):
                await self._client.hdel(self._names["ids"], name)
            elif clock.now_ms() / 1000 - at > GIVEN_UP_S:
                await self._give_up(name)

    async def _fetched_whole(self, batch_id: str) -> bool:
        """Whether a batch has ended and all its verdicts are published."""
        import anthropic

        batches = self._connected().messages.batches
        try:
            if (await batches.retrieve(batch_id)).processing_status != "ended":
                return False
            async for line in await batches.results(batch_id):
                await self._result(line.custom_id, line.result)
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
        sent = orjson.loads(data)
        event = _ANSWER.validate_json(sent["event"])
        case = case_of(event_id, event.payload)
        state, usage = self._state(result, case)
        await self._publish(event, sent, state, self._tariff.cost(usage), usage)

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
        """A batch whose id was never noted, or that never ended."""
        for data in (await self._client.hgetall(self._names["sent"])).values():
            sent = orjson.loads(data)
            if clock.now_ms() / 1000 - sent["at"] > GIVEN_UP_S:
                state: dict[str, object] = {
                    "status": ScoreStatus.JUDGE_ERROR,
                    "detail": "Interrupted: the batch never came back",
                }
                await self._publish(_ANSWER.validate_json(sent["event"]), sent, state, sent["bound"], Usage())
        await self._client.hdel(self._names["ids"], name)

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


async def _nothing(_: str) -> None:
    pass


async def _nothing_either(_: str, __: bool) -> None:
    pass
