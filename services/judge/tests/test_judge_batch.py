"""Batches: sent together, fetched in any order, published once, at half the price."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from assay_judge.alerts import NO_ALERTS, Alerts, NoAlerts
from assay_judge.batch import GIVEN_UP_S, Batches
from assay_judge.judge_config import load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Ledger
from assay_judge.pricing import tariff_of
from assay_judge.prompt import PROMPT_HASH, SCHEMA_HASH
from assay_judge.sampling import Draw
from assay_runtime.connection import Client, connect
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import SCORES
from tests.support.answers import SECRET, answer
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.redis import RedisServer

pytestmark = pytest.mark.one_day

DRAWN = Draw(sampled=True, base=False, base_probability=0.05, inclusion_probability=0.5, boosts=("weak",))
JUDGE = JudgeIdentity("anthropic-batch", "claude-haiku-5-5", PROMPT_HASH, SCHEMA_HASH, "low")


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer() as server:
        yield server


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


@pytest.fixture
async def batches(client: Client, api: AnthropicServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Batches]:
    monkeypatch.setattr("assay_judge.batch.POLL_EVERY_S", 0.0)
    made = new(client, api)
    yield made
    await made.close()


class Recorded(NoAlerts):
    """Keeps the reasons of stops."""

    def __init__(self) -> None:
        self.stops: list[str] = []

    async def stopped(self, why: str) -> None:
        self.stops.append(why)


def new(client: Client, api: AnthropicServer, alerts: Alerts = NO_ALERTS, **settings: Any) -> Batches:
    defaults = {"api_key": KEY, "base_url": api.url, "batch_requests": 3}
    chosen = JudgeSettings.model_validate(defaults | settings)
    ledger = Ledger(client, 1, cap_nano=int(chosen.budget_usd_per_day * 1e9), record_days=8)
    tariff = tariff_of(load_judge_config(None), chosen.model, batch=True)
    return Batches(client, chosen, JUDGE, tariff, ledger, KEY, 0, alerts)


async def published(client: Client) -> list[Score]:
    return [Score.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(SCORES.key())]


async def spent(client: Client) -> int:
    return int(await client.get(f"assay:{{0}}:judge:spend:acme:{datetime.now(UTC).date().isoformat()}") or 0)


async def test_answers_are_sent_together_and_their_scores_published_once(
    client: Client, api: AnthropicServer, batches: Batches
) -> None:
    events = [answer(f"{n}") for n in range(3)]
    for event in events[:2]:
        assert await batches.add(event, DRAWN, {"ok": True}) is None
    await batches.poll()
    assert not api.batches, "it waits for more, or for judge.batch_wait_s"
    await batches.add(events[2], DRAWN, {"ok": True})
    api.batch_open = True
    await batches.poll()
    assert [len(requests) for requests in api.batches.values()] == [3]
    assert await published(client) == []
    api.batch_open = False
    for _ in range(3):
        await batches.poll()
    scores = await published(client)
    assert {score.event_id for score in scores} == {event.event_id for event in events}
    assert len(scores) == 3
    assert all(score.metrics["faithfulness"] == 0.5 and score.boosts == ["weak"] for score in scores)
    assert sum(round(score.cost_usd * 1e9) for score in scores) == await spent(client) == api.nano // 2
    assert SECRET not in "".join(score.model_dump_json() for score in scores)


async def test_an_answer_that_comes_again_is_sent_once(client: Client, api: AnthropicServer, batches: Batches) -> None:
    events = [answer(f"{n}") for n in range(3)]
    for _ in range(2):
        for event in events:
            assert await batches.add(event, DRAWN, {}) is None
    await batches.poll()
    await batches.poll()
    assert sum(api.billed.values()) == 3
    assert await batches.add(events[0], DRAWN, {}) is not None, (
        "its score is known; publishing it again is refused later"
    )
    assert sum(len(requests) for requests in api.batches.values()) == 3


async def test_what_errs_expires_or_is_cut_ends_as_a_judge_error_paid_as_billed(
    client: Client, api: AnthropicServer, batches: Batches
) -> None:
    for mark in ("fail:500", "slow", "truncate"):
        await batches.add(answer(f"[{mark}] Is it?"), DRAWN, {})
    await batches.poll()
    await batches.poll()
    details = {score.detail for score in await published(client)}
    assert details == {"Batch: the request errored", "Batch: the request expired", "ReplyTruncated"}
    assert {score.status for score in await published(client)} == {ScoreStatus.JUDGE_ERROR}
    assert await spent(client) == api.nano // 2


async def test_a_refused_batch_waits_again(client: Client, api: AnthropicServer, batches: Batches) -> None:
    api.keys = set()
    for n in range(3):
        await batches.add(answer(f"{n}"), DRAWN, {})
    await batches.poll()
    api.keys = {KEY}
    await batches.poll()
    await batches.poll()
    assert len(await published(client)) == 3


async def test_a_batch_that_was_never_sent_waits_again(
    client: Client, api: AnthropicServer, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.batch.POLL_EVERY_S", 0.0)
    unreachable = new(client, api, base_url="http://127.0.0.1:9")
    for n in range(3):
        await unreachable.add(answer(f"{n}"), DRAWN, {})
    await unreachable.poll()
    await unreachable.close()
    await batches.poll()
    await batches.poll()
    assert len(await published(client)) == 3


async def test_a_batch_that_cannot_be_had_keeps_no_other_waiting_and_ends_with_its_day(
    client: Client, api: AnthropicServer, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = [answer(f"{n}") for n in range(3)], [answer(f"{n}") for n in range(3, 6)]
    api.batch_open = True
    for events in (first, second):
        for event in events:
            await batches.add(event, DRAWN, {})
        await batches.poll()
    del api.batches["msgbatch_1"]
    api.batch_open = False
    await batches.poll()
    assert {score.event_id for score in await published(client)} == {event.event_id for event in second}
    monkeypatch.setattr("assay_judge.batch.GIVEN_UP_S", -1)
    await batches.poll()
    lost = [score for score in await published(client) if score.status is ScoreStatus.JUDGE_ERROR]
    assert {score.event_id for score in lost} == {event.event_id for event in first}


async def test_a_key_that_is_refused_while_fetching_stops_judging_until_it_is_taken(
    client: Client, api: AnthropicServer, batches: Batches
) -> None:
    batches = new(client, api, alerts=(alerts := Recorded()))
    for n in range(3):
        await batches.add(answer(f"{n}"), DRAWN, {})
    api.batch_open = True
    await batches.poll()
    api.batch_open, api.keys = False, set()
    await batches.poll()
    assert "the key is refused" in alerts.stops[-1]
    api.keys = {KEY}
    await batches.poll()
    assert len(await published(client)) == 3
    await batches.close()


async def test_a_batch_nobody_knows_the_id_of_is_given_up_at_the_end_of_its_day(
    client: Client, api: AnthropicServer, batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(_: Any) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "_create", dies)
    for n in range(3):
        await batches.add(answer(f"{n}"), DRAWN, {})
    with pytest.raises(KeyboardInterrupt):
        await batches.poll()
    aside = await spent(client)
    later = new(client, api)
    await later.poll()
    assert await published(client) == []
    monkeypatch.setattr("assay_judge.batch.GIVEN_UP_S", -1)
    await later.poll()
    scores = await published(client)
    assert [score.detail for score in scores] == ["Interrupted: the batch never came back"] * 3
    assert aside == await spent(client) > 0, "it may have been billed"
    assert GIVEN_UP_S > 24 * 3_600


async def test_at_the_cap_answers_are_skipped_and_what_needs_no_judge_does_not_wait(
    client: Client, api: AnthropicServer
) -> None:
    poor = new(client, api, budget_usd_per_day=0)
    skipped = await poor.add(answer(), DRAWN, {})
    assert skipped is not None
    assert Score.model_validate_json(skipped).status is ScoreStatus.SKIPPED_BUDGET
    without = await poor.add(answer(passages=()), DRAWN, {})
    assert without is not None
    assert Score.model_validate_json(without).status is ScoreStatus.NO_CONTEXT
