"""One answer through the real SDK, a real socket and a real Redis: every way a call can go ends in exactly one state, rightly paid."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from assay_judge.alerts import AlertPublisher
from assay_judge.api import Api
from assay_judge.breaker import Breaker
from assay_judge.call_budget import NotJudgedError
from assay_judge.evaluator import Evaluator
from assay_judge.judge_config import load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Ledger
from assay_judge.pricing import tariff_of
from assay_judge.prompt import PROMPT_HASH, SCHEMA_HASH
from assay_judge.sampling import Draw
from assay_runtime.clock import clock
from assay_runtime.connection import Client, connect
from assay_schema.alerts import ALL_PROJECTS, Alert
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import Metric, Score, ScoreStatus
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import ALERTS
from tests.support.answers import SECRET, answer
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.redis import RedisServer
from tests.support.wait import until_async

pytestmark = pytest.mark.one_day

DRAWN = Draw(sampled=True, base=True, base_probability=0.05, inclusion_probability=0.05)
JUDGE = JudgeIdentity("anthropic", "claude-haiku-5-5", PROMPT_HASH, SCHEMA_HASH, "low")


@pytest.fixture(scope="module")
def shared_api() -> Iterator[AnthropicServer]:
    with AnthropicServer(slow_s=60.0) as server:
        yield server


@pytest.fixture
def api(shared_api: AnthropicServer) -> AnthropicServer:
    """The API, with books of its own for each test."""
    shared_api.keys, shared_api.retry_after, shared_api.nano = {KEY}, None, 0
    for counter in (shared_api.asked, shared_api.billed, shared_api.ended):
        counter.clear()
    shared_api.bodies.clear()
    return shared_api


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


class Rig:
    """A judge with books."""

    def __init__(self, client: Client, url: str, **settings: Any) -> None:
        defaults = {"api_key": KEY, "base_url": url, "deadline_s": 60.0, "request_timeout_s": 60.0}
        self.settings = JudgeSettings.model_validate(defaults | settings)
        assert urlsplit(self.settings.base_url or "").hostname == "127.0.0.1", "no test may reach the real API"
        self.ledger = Ledger(
            client,
            1,
            cap_nano=int(self.settings.budget_usd_per_day * 1e9),
            record_days=1,
            total_nano=int(self.settings.budget_usd_per_day_all_projects * 1e9),
        )
        self.client = client
        self.callers: list[Api] = []
        self.evaluator = self.another()

    def another(self) -> Evaluator:
        """One more judge with the same books: a replica, or the next life of this one."""
        tariff = tariff_of(load_judge_config(None), self.settings.model, batch=False)
        caller = Api(self.settings, self.settings.api_key.get_secret_value())
        self.callers.append(caller)
        breaker = Breaker(asyncio.get_running_loop().time)
        alerts = AlertPublisher(self.client, 1, JUDGE.fingerprint, self.settings)
        return Evaluator(self.settings, JUDGE, tariff, self.ledger, caller, breaker, alerts)

    async def score(self, event: ScrubbedAnswer) -> Score:
        found = await self.evaluator.score(event, DRAWN, {"ok": True})
        assert found is not None
        assert SECRET.encode() not in found
        return Score.model_validate_json(found)

    async def spent(self) -> int:
        return await self.ledger.spent("acme", datetime.now(UTC).date())

    async def alerts(self) -> list[Alert]:
        return [Alert.model_validate_json(fields[b"data"]) for _, fields in await self.client.xrange(ALERTS.key())]


NewRig = Callable[..., Rig]


@pytest.fixture
async def new_rig(client: Client, api: AnthropicServer) -> AsyncIterator[NewRig]:
    """Makes judges whose connections are closed after the test."""
    made = []

    def make(url: str = api.url, **settings: Any) -> Rig:
        made.append(Rig(client, url, **settings))
        return made[-1]

    yield make
    for rig in made:
        for caller in rig.callers:
            await caller.close()


async def test_a_verdict_becomes_a_score_with_its_cost(new_rig: NewRig, api: AnthropicServer) -> None:
    rig = new_rig()
    score = await rig.score(answer())
    assert score.status is ScoreStatus.SCORED
    assert score.metrics == {
        Metric.FAITHFULNESS: 0.5,
        Metric.HALLUCINATION_RATE: 0.5,
        Metric.CITATION_PRECISION: 1.0,
        Metric.CITATION_RECALL: 0.5,
        Metric.ANSWER_RELEVANCY: 1.0,
    }
    assert (score.claims, score.base, score.inclusion_probability) == (2, True, 0.05)
    assert score.fingerprint == JUDGE.fingerprint
    assert round(score.cost_usd * 1e9) == api.nano == await rig.spent()


async def test_the_request_is_what_the_api_documents(new_rig: NewRig, api: AnthropicServer) -> None:
    await new_rig().score(answer())
    (body,) = api.bodies
    assert set(body) == {"model", "max_tokens", "system", "messages", "output_config"}
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert body["system"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(
    "mark", ["once:fail:429", "once:fail:529", "once:fail:500", "once:malformed", "once:slow", "once:cut"]
)
async def test_a_try_that_fails_is_followed_by_one_that_does_not(
    new_rig: NewRig, api: AnthropicServer, mark: str
) -> None:
    rig = new_rig(request_timeout_s=2 if mark == "once:slow" else 60)
    score = await rig.score(answer(f"[{mark}] Is it?"))
    assert score.status is ScoreStatus.SCORED
    assert sum(api.asked.values()) == 2
    assert await rig.spent() == round(score.cost_usd * 1e9) >= api.nano, (
        "what may have been billed is counted as billed"
    )


@pytest.mark.parametrize(
    ("mark", "detail", "tries"),
    [
        ("truncate", "ReplyTruncated", 2),
        ("refuse", "ReplyRefused", 2),
        ("malformed", "ReplyNotJson", 2),
        ("misfit", "ReplyMisfit", 2),
        ("fail:400", "BadRequestError", 1),
        ("fail:413", "ContentTooLargeError", 1),
    ],
)
async def test_an_answer_that_gets_no_verdict_is_a_judge_error_and_paid_for_as_billed(
    new_rig: NewRig, api: AnthropicServer, mark: str, detail: str, tries: int
) -> None:
    rig = new_rig()
    score = await rig.score(answer(f"[{mark}] Is it?"))
    assert (score.status, score.detail, score.metrics) == (ScoreStatus.JUDGE_ERROR, detail, {})
    assert sum(api.asked.values()) == tries
    assert round(score.cost_usd * 1e9) == api.nano == await rig.spent()


@pytest.mark.parametrize("mark", ["half", "sorry"])
async def test_a_reply_that_does_not_tell_its_cost_takes_what_was_set_aside(
    new_rig: NewRig, api: AnthropicServer, mark: str
) -> None:
    rig = new_rig()
    score = await rig.score(answer(f"[{mark}] Is it?"))
    assert (score.status, score.detail) == (ScoreStatus.JUDGE_ERROR, "ReplyUnreadable")
    assert round(score.cost_usd * 1e9) == await rig.spent() > api.nano > 0


async def test_an_api_that_stays_away_costs_an_answer_its_deadline_and_no_money(
    new_rig: NewRig, api: AnthropicServer
) -> None:
    rig = new_rig("http://127.0.0.1:9", deadline_s=1.0)
    score = await rig.score(answer())
    assert score.status is ScoreStatus.JUDGE_ERROR
    assert score.detail == "APIConnectionError (no time left: judge.deadline_s)"
    assert (score.cost_usd, await rig.spent()) == (0, 0)


async def test_an_hours_retry_after_does_not_put_the_judge_to_sleep(new_rig: NewRig, api: AnthropicServer) -> None:
    api.retry_after = "3600"
    rig = new_rig()
    judging = asyncio.ensure_future(rig.score(answer("[once:fail:429] Is it?")))
    await until_async(lambda: api.ended["429"])
    rig.evaluator.draining.set()
    with pytest.raises(NotJudgedError):
        await asyncio.wait_for(judging, 60)
    assert await rig.spent() == 0
    assert await rig.ledger.take("x", 1, 100, 1_000) <= 60


async def test_a_try_that_was_not_billed_counts_among_the_minutes_requests(new_rig: NewRig) -> None:
    rig = new_rig()
    assert (await rig.score(answer("[once:fail:529] Is it?"))).status is ScoreStatus.SCORED
    assert await rig.ledger.take("x", 1, 2, 10**9) > 0, "two requests were made"
    assert await rig.ledger.take("x", 1, 3, 10**9) == 0


@pytest.mark.parametrize(
    ("text", "passages", "status"),
    [
        ("", ("p",), ScoreStatus.ABSTAINED),
        ("It is.", (), ScoreStatus.NO_CONTEXT),
        ("It is.", ("  ",), ScoreStatus.NO_CONTEXT),
        ("It is.", ("x" * 250_000,), ScoreStatus.JUDGE_ERROR),
    ],
)
async def test_what_needs_no_judge_costs_nothing_and_has_no_number(
    new_rig: NewRig, api: AnthropicServer, text: str, passages: tuple[str, ...], status: ScoreStatus
) -> None:
    score = await new_rig().score(answer("q", text, passages=passages))
    assert (score.status, score.metrics, score.cost_usd) == (status, {}, 0)
    assert not api.bodies


async def test_an_answer_without_claims_has_no_number_but_its_price(new_rig: NewRig, api: AnthropicServer) -> None:
    score = await new_rig().score(answer("[nothing] Is it?", "I don't know."))
    assert (score.status, score.metrics) == (ScoreStatus.ABSTAINED, {})
    assert score.cost_usd > 0


async def test_at_the_cap_answers_are_recorded_as_skipped_and_one_alert_says_so(
    new_rig: NewRig, api: AnthropicServer
) -> None:
    limits = {"requests_per_minute": 1_000_000, "tokens_per_minute": 10**9}
    rig = new_rig(budget_usd_per_day=0.01, concurrency=4, **limits)
    replicas = [rig.evaluator, *(rig.another() for _ in range(3))]
    found = await asyncio.gather(*(replicas[n % 4].score(answer(f"{n}"), DRAWN, {}) for n in range(100)))
    states = [Score.model_validate_json(each or b"").status for each in found]
    assert set(states) == {ScoreStatus.SCORED, ScoreStatus.SKIPPED_BUDGET}
    assert api.nano == await rig.spent() <= 10_000_000
    (alert,) = await rig.alerts()
    assert (alert.kind.value, alert.state.value, alert.project) == ("budget", "warn", "acme")


async def test_without_a_budget_nothing_is_called(new_rig: NewRig, api: AnthropicServer) -> None:
    score = await new_rig(budget_usd_per_day=0).score(answer())
    assert score.status is ScoreStatus.SKIPPED_BUDGET
    assert not api.bodies


@pytest.mark.parametrize("mark", ["401", "402", "403"])
async def test_a_refused_key_stops_judging_and_alerts_once_and_no_answer_is_lost(
    new_rig: NewRig, api: AnthropicServer, mark: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.breaker.STOPPED_S", 0.3)
    monkeypatch.setattr("assay_judge.breaker.Breaker.stop.__defaults__", (0.3,))
    rig = new_rig()
    question = "Is it?" if mark == "401" else f"[once:fail:{mark}] Is it?"
    if mark == "401":
        api.keys = set()
    with caplog.at_level(logging.CRITICAL):
        waiting = asyncio.gather(*(rig.score(answer(f"{n} {question}")) for n in range(3)))
        await until_async(lambda: api.ended[mark])
        api.keys = {KEY}
        scores = await asyncio.wait_for(waiting, 60)
    assert {score.status for score in scores} == {ScoreStatus.SCORED}
    opened, *closed = await rig.alerts()
    assert (opened.kind.value, opened.state.value) == ("judge_stopped", "critical")
    assert {alert.state.value for alert in closed} <= {"resolved"}
    assert all(KEY not in record.getMessage() and SECRET not in record.getMessage() for record in caplog.records)


async def test_an_answer_that_comes_again_is_neither_called_for_nor_paid_again(
    new_rig: NewRig, api: AnthropicServer
) -> None:
    rig, event = new_rig(), answer()
    first = await rig.evaluator.score(event, DRAWN, {})
    again = await rig.another().score(event, DRAWN, {})
    assert first == again
    assert sum(api.billed.values()) == 1
    assert await rig.spent() == api.nano


async def test_an_answer_that_two_judges_get_at_once_is_judged_by_one(new_rig: NewRig, api: AnthropicServer) -> None:
    rig, event = new_rig(), answer()
    found = await asyncio.gather(*(judge.score(event, DRAWN, {}) for judge in (rig.evaluator, rig.another())))
    assert found[0] == found[1]
    assert sum(api.billed.values()) == 1


async def test_an_answer_whose_judge_died_during_the_call_is_not_called_for_again(
    new_rig: NewRig, api: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.ledger.LEASE_S", 0.3)
    rig, event = new_rig(), answer("[slow] Is it?")
    dying = asyncio.ensure_future(rig.score(event))
    await until_async(lambda: api.billed)
    dying.cancel()
    with suppress(asyncio.CancelledError):
        await dying
    rig.evaluator = rig.another()
    score = await asyncio.wait_for(rig.score(event), 60)
    assert score.status is ScoreStatus.JUDGE_ERROR
    assert score.detail.startswith("Interrupted")
    assert sum(api.asked.values()) == 1
    assert await rig.spent() == round(score.cost_usd * 1e9) >= api.nano


async def test_a_stop_of_the_service_leaves_what_has_not_begun(new_rig: NewRig, api: AnthropicServer) -> None:
    rig = new_rig(requests_per_minute=1)
    await rig.score(answer())
    waiting = asyncio.ensure_future(rig.score(answer()))
    await asyncio.sleep(0)
    rig.evaluator.draining.set()
    with pytest.raises(NotJudgedError):
        await asyncio.wait_for(waiting, 60)
    assert len(api.bodies) == 1


async def test_calls_that_wait_over_midnight_take_the_new_days_budget(
    new_rig: NewRig, api: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten are asked for before midnight and wait for the minute's limit until after it; the old day's budget is used up."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    times = [midnight - timedelta(seconds=1)]
    monkeypatch.setattr(clock, "now", lambda: times[-1])
    rig = new_rig(budget_usd_per_day=0.02, concurrency=10)
    yesterday, today = ((midnight + timedelta(days=back)).date() for back in (-1, 0))
    take = rig.ledger.take

    async def after_midnight(*arguments: Any) -> float:
        times.append(midnight + timedelta(seconds=1))
        return await take(*arguments)

    monkeypatch.setattr(rig.ledger, "take", after_midnight)
    await asyncio.gather(*(rig.evaluator.score(answer(f"{n}"), DRAWN, {}) for n in range(10)))
    assert await rig.ledger.spent("acme", yesterday) == 0
    assert 0 < await rig.ledger.spent("acme", today) <= 0.02e9
    assert api.nano == await rig.ledger.spent("acme", today)


async def test_at_the_cap_of_all_projects_one_alert_says_so(new_rig: NewRig) -> None:
    rig = new_rig(budget_usd_per_day_all_projects=0)
    for n in range(2):
        score = await rig.score(answer(f"{n}", project=f"invented-{n}"))
        assert score.status is ScoreStatus.SKIPPED_BUDGET
        assert score.detail == "judge.budget_usd_per_day_all_projects is used up"
    (alert,) = await rig.alerts()
    assert (alert.kind.value, alert.project) == ("budget", ALL_PROJECTS)
    assert "for all projects together" in alert.summary
