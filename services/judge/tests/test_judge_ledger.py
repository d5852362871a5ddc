"""The books in Redis: the cap holds to the cent, every try is paid once, limits are shared."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta

import orjson
import pytest

from assay_judge.ledger import Ledger, publish_finish
from assay_runtime.connection import Client, connect
from assay_runtime.entries import Outcome
from assay_runtime.same_redis import redis_here
from assay_schema.ids import new_event_id
from assay_schema.settings import RedisSettings
from assay_schema.streams import EVENTS, SCORES
from tests.support.redis import RedisServer
from tests.support.redis import each_redis_binary as each_redis_binary

pytestmark = pytest.mark.one_day


def today() -> date:
    return datetime.now(UTC).date()


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


def ledger(client: Client, cap: int = 1_000) -> Ledger:
    return Ledger(client, 1, cap_nano=cap, record_days=1)


async def test_what_is_set_aside_and_spent_never_exceeds_the_cap_however_many_ask_at_once(client: Client) -> None:
    books = [ledger(client) for _ in range(4)]
    asked = [books[n % 4].reserve(books[n % 4].call("acme", new_event_id(), "f" * 16), 1, 30) for n in range(200)]
    given = await asyncio.gather(*asked)
    assert [answered.what for answered in given].count("ok") == 33
    assert await books[0].spent("acme", today()) == 990


async def test_projects_have_budgets_of_their_own(client: Client) -> None:
    books = ledger(client, 100)
    assert (await books.reserve(books.call("a", new_event_id(), "f" * 16), 1, 100)).what == "ok"
    assert (await books.reserve(books.call("a", new_event_id(), "f" * 16), 1, 1)).what == "budget"
    assert (await books.reserve(books.call("b", new_event_id(), "f" * 16), 1, 100)).what == "ok"


async def test_the_real_cost_takes_the_place_of_what_was_set_aside_once(client: Client) -> None:
    books = ledger(client)
    call = books.call("acme", new_event_id(), "f" * 16)
    await books.reserve(call, 1, 900)
    for _ in range(3):  # an answer of Redis that was lost makes the client say it again
        assert await books.settle(call, 40, b'{"n":1}')
    assert await books.spent("acme", today()) == 40
    again = books.call("acme", call.record.split(":")[-2], "f" * 16)
    assert await books.reserve(again, 1, 900) == ("done", b'{"n":1}', 0, 0.0)
    assert await books.spent("acme", today()) == 40


async def test_asking_again_for_the_same_try_sets_nothing_aside_and_a_further_try_does(client: Client) -> None:
    books = ledger(client)
    call = books.call("acme", new_event_id(), "f" * 16)
    for _ in range(3):
        assert (await books.reserve(call, 1, 300)).what == "ok"
    assert (await books.reserve(call, 2, 300)).what == "ok"
    assert await books.spent("acme", today()) == 600
    assert (await books.reserve(call, 3, 500)).what == "budget"
    await books.settle(call, 350, b"{}")
    assert await books.spent("acme", today()) == 350


async def test_what_was_surely_not_billed_is_given_back_once(client: Client) -> None:
    books = ledger(client)
    call = books.call("acme", new_event_id(), "f" * 16)
    await books.reserve(call, 1, 300)
    for _ in range(2):
        await books.release(call)
    assert await books.spent("acme", today()) == 0
    assert (await books.reserve(call, 1, 300)).what == "ok"


async def test_an_answer_another_judge_is_at_is_left_to_it_until_it_shows_no_life(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.ledger.LEASE_S", 0.3)
    books, event_id = ledger(client), new_event_id()
    first, second = books.call("acme", event_id, "f" * 16), books.call("acme", event_id, "f" * 16)
    await books.reserve(first, 1, 300)
    assert (await books.reserve(second, 1, 300)).what == "busy"
    deadline = asyncio.get_running_loop().time() + 60
    while (answered := await books.reserve(second, 1, 300)).what == "busy":
        assert asyncio.get_running_loop().time() < deadline
    assert (answered.what, answered.nano) == ("interrupted", 300)
    assert not await books.settle(first, 40, b"late"), "whoever was thought dead comes too late"
    assert await books.settle(second, 300, b"{}")
    assert await books.spent("acme", today()) == 300, "its call may have been billed"


async def test_a_judge_that_shows_life_keeps_its_answer(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay_judge.ledger.LEASE_S", 0.5)
    books, event_id = ledger(client), new_event_id()
    first = books.call("acme", event_id, "f" * 16)
    await books.reserve(first, 1, 300)
    until = asyncio.get_running_loop().time() + 1.5
    while asyncio.get_running_loop().time() < until:
        await books.renew([first])
        assert (await books.reserve(books.call("acme", event_id, "f" * 16), 1, 300)).what == "busy"


async def test_no_minute_has_more_calls_or_tokens_than_the_limits(client: Client) -> None:
    books = ledger(client)
    given = [await books.take(f"call-{n}", 10, 5, 1_000) for n in range(10)]
    assert [not waits for waits in given] == [True] * 5 + [False] * 5
    assert all(0 < waits <= 1 for waits in given[5:])
    assert await books.take("call-0", 10, 5, 1_000) == 0, "asked again"


async def test_tokens_count_as_they_were_used_once_that_is_known(client: Client) -> None:
    books = ledger(client)
    assert await books.take("a", 900, 100, 1_000) == 0
    assert await books.take("b", 900, 100, 1_000) > 0
    await books.learn("a", tokens=50)
    assert await books.take("b", 900, 100, 1_000) == 0


async def test_a_call_above_the_limit_of_tokens_goes_alone(client: Client) -> None:
    books = ledger(client)
    assert await books.take("a", 5_000, 100, 1_000) == 0
    assert await books.take("b", 1, 100, 1_000) > 0


async def test_a_pause_that_one_judge_was_asked_for_holds_for_all_but_not_for_an_hour(client: Client) -> None:
    await ledger(client).learn("a", pause_s=3_600)
    waits = await ledger(client).take("b", 1, 100, 1_000)
    assert 50 < waits <= 60


async def test_a_limit_that_the_api_tells_counts_too(client: Client) -> None:
    books = ledger(client)
    await books.take("a", 1, 100, 1_000)
    await books.learn("a", limit=1)
    assert await books.take("b", 1, 100, 1_000) > 0


async def test_traffic_is_counted_by_day_and_old_days_go(client: Client) -> None:
    books, day = ledger(client), date(2026, 3, 9)
    assert await books.traffic("acme", {day - timedelta(days=30): 5, day - timedelta(days=1): 7}) == {}
    await books.traffic("acme", {day: 2})
    assert await books.traffic("acme", {day: 3}) == {day - timedelta(days=1): 7, day: 2}


async def test_an_answer_that_was_passed_over_is_not_paid_for_by_another_judge(client: Client) -> None:
    books, event_id = ledger(client), new_event_id()
    first, second = books.call("acme", event_id, "f" * 16), books.call("acme", event_id, "f" * 16)
    assert await books.keep(first, b"skipped")
    assert (await books.reserve(second, 1, 300)).score == b"skipped"
    other = books.call("acme", new_event_id(), "f" * 16)
    await books.reserve(other, 1, 300)
    assert not await books.keep(other, b"skipped"), "a judge is at it"
    assert await books.spent("acme", today()) == 300


async def test_the_salt_is_drawn_once_for_all_judges_and_differs_between_installations(client: Client) -> None:
    drawn = await asyncio.gather(*(ledger(client).salt() for _ in range(8)))
    assert len(set(drawn)) == 1
    assert len(drawn[0]) >= 32
    assert await ledger(client).salt() == drawn[0], "also after a restart of the judge"
    await client.flushall()
    assert await ledger(client).salt() != drawn[0]


async def test_all_projects_together_have_a_cap_whatever_names_a_producer_invents(client: Client) -> None:
    books = Ledger(client, 1, cap_nano=100, record_days=1, total_nano=250)
    calls = [books.call(f"invented-{n}", new_event_id(), "f" * 16) for n in range(6)]
    found = [(await books.reserve(call, 1, 60)).what for call in calls]
    assert found == ["ok"] * 4 + ["all_budgets"] * 2
    await books.settle(calls[0], 10, b"{}")
    await books.release(calls[1])
    assert int(await client.get(calls[0].total)) == 130
    assert (await books.reserve(calls[4], 1, 60)).what == "ok"
    assert await books.spent("invented-5", today()) == 0, "what is refused sets nothing aside"


async def test_the_cap_of_all_projects_holds_over_shards(client: Client) -> None:
    books = Ledger(client, 4, cap_nano=10_000, record_days=1, total_nano=400)
    for n in range(200):
        await books.reserve(books.call(f"p{n}", new_event_id(), "f" * 16), 1, 30)
    totals = [int(await client.get(f"assay:{{{shard}}}:judge:total:{today().isoformat()}") or 0) for shard in range(4)]
    assert totals == [90] * 4


async def test_what_an_older_version_set_aside_is_not_taken_off_the_spend_of_all(client: Client) -> None:
    books = Ledger(client, 1, cap_nano=1_000, record_days=1, total_nano=1_000)
    call = books.call("acme", new_event_id(), "f" * 16)
    await client.hset(call.record, mapping={"state": "reserved", "owner": call.owner, "try": 1, "amount": 300})
    await client.set(call.spend, 300)
    assert await books.settle(call, 40, b"{}")
    assert (await books.spent("acme", today()), await client.get(call.total)) == (40, None)


async def test_a_call_that_waited_over_midnight_counts_to_the_day_its_money_is_set_aside_in(client: Client) -> None:
    books = ledger(client, cap=100)
    call = books.call("acme", new_event_id(), "f" * 16)
    waited = call._replace(spend=books.spend_key("acme", today() - timedelta(days=1)))
    assert books.today(waited) == call
    other = books.call("a:b-2020-01-01", new_event_id(), "f" * 16)
    assert books.today(other) == other


async def test_what_an_answer_costs_is_learnt_from_those_that_were_paid(client: Client) -> None:
    books = ledger(client, cap=10_000)
    for n in range(20):
        assert (await books.pays_for("acme") is None) is (n < 20)
        call = books.call("acme", new_event_id(), "f" * 16)
        await books.reserve(call, 1, 100)
        await books.settle(call, 25, b"{}")
    assert await books.pays_for("acme") == 400
    assert await books.pays_for("another") is None


async def test_a_copy_that_is_not_sampled_does_not_replace_the_score_of_the_first(client: Client) -> None:
    books, event_id = ledger(client), new_event_id()
    await client.xgroup_create(EVENTS.key(), "judge", id="0", mkstream=True)
    entries = [await client.xadd(EVENTS.key(), {"data": "x"}) for _ in range(3)]
    await client.xreadgroup("judge", "a", {EVENTS.key(): ">"})
    finish = publish_finish(client, books, "judge", 0)
    score = {"project": "acme", "event_id": event_id, "fingerprint": "f" * 16}
    for entry, status, who in zip(
        entries, ("scored", "not_sampled", "not_sampled"), (event_id, event_id, "other"), strict=True
    ):
        await finish(
            [Outcome(entry, event=orjson.dumps(score | {"status": status, "event_id": who}))], await redis_here(client)
        )
    found = [orjson.loads(fields[b"data"]) for _, fields in await client.xrange(SCORES.key())]
    assert [(each["status"], each["event_id"]) for each in found] == [("scored", event_id), ("not_sampled", "other")]
    assert (await client.xpending(EVENTS.key(), "judge"))["pending"] == 0
