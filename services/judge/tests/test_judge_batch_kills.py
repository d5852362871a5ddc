"""Batches whatever dies: killed between every two steps, two judges at once, an API that refuses. Real Redis, the API's stand-in."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from assay_judge.batch import Batches
from assay_judge.call_budget import NotJudgedError
from assay_judge.judge_config import load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Ledger, publish_finish
from assay_judge.pricing import tariff_of
from assay_judge.prompt import PROMPT_HASH, SCHEMA_HASH
from assay_judge.sampling import Draw
from assay_runtime.connection import Client, connect
from assay_runtime.entries import Outcome
from assay_runtime.same_redis import redis_here
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import EVENTS, SCORES
from assay_schema.validation import parse_scrubbed
from tests.support.answers import answer, answer_bytes
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.redis import RedisServer

pytestmark = pytest.mark.one_day

DRAWN = Draw(sampled=True, base=True, base_probability=0.5, inclusion_probability=0.5)
JUDGE = JudgeIdentity("anthropic-batch", "claude-haiku-5-5", PROMPT_HASH, SCHEMA_HASH, "low")
KEYS = {name: f"assay:{{0}}:judge:batch:{name}" for name in ("waiting", "sent", "ids", "answers", "lock")}
GROUP = "judge"


class KilledError(BaseException):
    """The process is gone; nothing it might do afterwards happens."""


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer() as server:
        yield server


@pytest.fixture
async def client(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr("assay_judge.batch.POLL_EVERY_S", 0.0)
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


def ledger(client: Client) -> Ledger:
    return Ledger(client, 1, cap_nano=10**9, record_days=8, total_nano=10**9)


def new(client: Client, api: AnthropicServer, requests: int = 3) -> Batches:
    chosen = JudgeSettings.model_validate({"api_key": KEY, "base_url": api.url, "batch_requests": requests})
    tariff = tariff_of(load_judge_config(None), chosen.model, batch=True)
    return Batches(client, chosen, JUDGE, tariff, ledger(client), KEY, 0)


async def work(client: Client, batches: Batches) -> None:
    """What a judge does: take what nobody acknowledged, let it wait, publish what needs no batch; then look."""
    _, entries, *_ = await client.xautoclaim(EVENTS.key(), GROUP, "a", min_idle_time=0, start_id="0")
    if not entries:
        found = await client.xreadgroup(GROUP, "a", {EVENTS.key(): ">"}, count=10)
        entries = found[0][1] if found else []
    outcomes = []
    for entry_id, fields in entries:
        event = parse_scrubbed(fields[b"data"])
        assert isinstance(event, ScrubbedAnswer)
        outcomes.append(Outcome(entry_id, event=await batches.add(event, DRAWN, {})))
    if outcomes:
        await publish_finish(client, ledger(client), GROUP, 0)(outcomes, await redis_here(client))
    for _ in range(2):
        await batches.poll()


class Mortal:
    """Counts the commands of a client, and kills its process before one of them, or after it took effect but before its answer came."""

    def __init__(self, client: Client, at: int, *, after: bool) -> None:
        self.steps, self._at, self._after = 0, at, after
        self._execute = client.execute_command

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        self.steps += 1
        if self._at and self.steps >= self._at + self._after:
            raise KilledError
        return await self._execute(*arguments, **options)


async def killed_at(redis_url: str, api: AnthropicServer, at: int, *, after: bool) -> int:
    """Work until the kill. Returns how many steps were made."""
    client = connect(RedisSettings.model_validate({"url": redis_url}))
    mortal = Mortal(client, at, after=after)
    client.execute_command = mortal.execute  # type: ignore[method-assign]
    batches = new(client, api)
    try:
        await work(client, batches)
    except KilledError:
        pass
    finally:
        client.execute_command = mortal._execute  # type: ignore[method-assign]
        await batches.close()
        await client.aclose()
    return mortal.steps


async def started(client: Client, api: AnthropicServer) -> list[str]:
    """A new log with three answers, one of them twice."""
    await client.flushall()
    api.batches.clear()
    api.billed.clear()
    api.nano = 0
    await client.xgroup_create(EVENTS.key(), GROUP, id="0", mkstream=True)
    data = [answer_bytes(f"{n}") for n in range(3)]
    for each in (*data, data[1]):
        await client.xadd(EVENTS.key(), {"data": each})
    return [orjson.loads(each)["event_id"] for each in data]


async def books(client: Client) -> tuple[int, int]:
    day = datetime.now(UTC).date().isoformat()
    keys = (f"assay:{{0}}:judge:spend:acme:{day}", f"assay:{{0}}:judge:total:{day}")
    spent, total = [int(await client.get(key) or 0) for key in keys]
    return spent, total


async def published(client: Client) -> list[Score]:
    return [Score.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(SCORES.key())]


@pytest.mark.parametrize("after", [False, True], ids=["before each command", "after each command"])
async def test_a_judge_killed_between_any_two_steps_loses_nothing_and_pays_nothing_twice(
    client: Client, api: AnthropicServer, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    await started(client, api)
    steps = await killed_at(redis_server.url, api, 0, after=False)
    assert steps > 20
    interrupted = 0
    for at in range(1, steps + 1):
        ids = await started(client, api)
        await killed_at(redis_server.url, api, at, after=after)
        await client.delete(KEYS["lock"])  # its time runs out
        batches = new(client, api)
        for _ in range(3):
            await work(client, batches)
        with monkeypatch.context() as later:
            later.setattr("assay_judge.batch.GIVEN_UP_S", -1)
            await batches.poll()
        await batches.close()
        scores = await published(client)
        assert Counter(str(score.event_id) for score in scores) == Counter(ids), f"step {at}"
        assert all(count == 1 for count in api.billed.values()), f"step {at}: paid twice"
        spent, total = await books(client)
        assert spent == total == sum(round(score.cost_usd * 1e9) for score in scores) >= api.nano // 2, f"step {at}"
        left = {name: await client.hlen(key) for name, key in KEYS.items() if name != "lock"}
        assert left == dict.fromkeys(left, 0), f"step {at}"
        assert (await client.xpending(EVENTS.key(), GROUP))["pending"] == 0
        interrupted += any(score.detail.startswith("Interrupted") for score in scores)
    assert 1 <= interrupted <= 3, "only between sending a batch and noting its id is it unknown whether it was billed"


async def test_two_judges_that_look_at_once_send_each_answer_once(client: Client, api: AnthropicServer) -> None:
    first, second = new(client, api), new(client, api)
    for n in range(3):
        await first.add(answer(f"{n}"), DRAWN, {})
    create = first._create

    async def slowly(requests: list[Any]) -> str:
        await client.set(KEYS["lock"], "another")  # the lock ran out meanwhile, and another judge took it
        await second._send_due()
        return await create(requests)

    first._create = slowly  # type: ignore[method-assign]
    await first.poll()
    assert await client.get(KEYS["lock"]) == b"another", "what is another's is not let go"
    await client.delete(KEYS["lock"])
    await second.poll()
    assert [len(requests) for requests in api.batches.values()] == [3]
    assert len(await published(client)) == 3
    assert all(count == 1 for count in api.billed.values())
    spent, _ = await books(client)
    assert spent == api.nano // 2
    await first.close()
    await second.close()


@pytest.mark.parametrize("status", [400, 413])
async def test_an_answer_the_api_will_never_take_ends_alone_and_the_others_are_judged(
    client: Client, api: AnthropicServer, status: int
) -> None:
    batches = new(client, api, requests=8)
    for n in range(7):
        await batches.add(answer(f"{n}"), DRAWN, {})
    bad = answer(f"[refused:{status}] Is it?")
    await batches.add(bad, DRAWN, {})
    for _ in range(2):
        await batches.poll()
    scores = {score.event_id: score for score in await published(client)}
    assert len(scores) == 8
    assert Counter(score.status for score in scores.values()) == {ScoreStatus.SCORED: 7, ScoreStatus.JUDGE_ERROR: 1}
    assert scores[bad.event_id].detail.startswith("Batch: ")
    assert scores[bad.event_id].cost_usd == 0
    assert (await books(client))[0] == api.nano // 2
    asked = api.ended[str(status)]
    await batches.poll()
    assert api.ended[str(status)] == asked, "it is not sent again"
    await batches.close()


async def test_an_old_batch_that_is_given_up_takes_no_answer_of_another_along(
    client: Client, api: AnthropicServer
) -> None:
    batches = new(client, api)
    api.batch_open = True
    for n in range(3):
        event = answer(f"{n}")
        await batches.add(event, DRAWN, {})
        kept = orjson.loads(await client.hget(KEYS["waiting"], str(event.event_id)))
        await client.hset(KEYS["waiting"], str(event.event_id), orjson.dumps(kept | {"at": 0}))  # it waited for days
    await client.hset(KEYS["ids"], "old", orjson.dumps(["", 0]))
    await batches.poll()
    assert await published(client) == []
    assert not await client.hexists(KEYS["ids"], "old")
    api.batch_open = False
    await batches.poll()
    assert {score.status for score in await published(client)} == {ScoreStatus.SCORED}
    await batches.close()


async def test_an_answer_that_a_judge_of_single_calls_is_at_is_left_to_it_and_not_lost(
    client: Client, api: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.ledger.LEASE_S", 0.2)
    batches, event = new(client, api), answer()
    other = ledger(client)
    await other.reserve(other.call("acme", str(event.event_id), JUDGE.fingerprint), 1, 300)
    with pytest.raises(NotJudgedError):
        await batches.add(event, DRAWN, {})
    found = None
    while found is None:
        try:
            found = await batches.add(event, DRAWN, {})
        except NotJudgedError:
            continue
    assert Score.model_validate_json(found).detail.startswith("Interrupted")
    assert await books(client) == (300, 300)
    await batches.close()
