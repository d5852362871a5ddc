"""The judge's books with an API that speaks OpenAI's chat completions, over real sockets and a real Redis: each answer is rightly paid."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from assay_judge.alerts import ANCHORS_PROJECT, AlertPublisher
from assay_judge.api import Calls
from assay_judge.backends import api_of, judge_of, tariff_for
from assay_judge.breaker import Breaker
from assay_judge.call_budget import NotJudgedError
from assay_judge.control_set import ControlRounds, control_cases
from assay_judge.evaluator import Evaluator
from assay_judge.judge_config import load_judge_config
from assay_judge.ledger import Ledger
from assay_judge.prompt import case_of, message_of
from assay_judge.sampling import Draw
from assay_runtime.connection import Client, connect
from assay_schema.alerts import Alert
from assay_schema.events import ScrubbedAnswer
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import ALERTS
from tests.support.answers import answer
from tests.support.anthropic_server import KEY
from tests.support.openai_server import OpenAiServer
from tests.support.redis import RedisServer
from tests.support.wait import until_async

pytestmark = pytest.mark.one_day

DRAWN = Draw(sampled=True, base=True, base_probability=0.05, inclusion_probability=0.05)
#: What APIs say of their usage that cannot be true, or nothing.
UNTOLD = [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 10**9, "completion_tokens": 1}, "?"]


@pytest.fixture
def api() -> Iterator[OpenAiServer]:
    with OpenAiServer(slow_s=60.0) as server:
        yield server


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


class Rig:
    """A judge with books."""

    def __init__(self, client: Client, url: str) -> None:
        given = {"backend": "openai", "model": "local-judge", "base_url": url, "api_key": KEY}
        prices = {"price_input_usd": 0.1, "price_output_usd": 0.5}
        times = {"deadline_s": 60.0, "request_timeout_s": 60.0}
        self.settings = JudgeSettings.model_validate(given | prices | times)
        self.client, self.judge = client, judge_of(self.settings)
        self.tariff = tariff_for(self.settings, load_judge_config(None))
        self.ledger = Ledger(client, 1, cap_nano=10**10, record_days=1, total_nano=10**11)
        self.callers: list[Calls] = []
        self.evaluator = self.another()

    def another(self) -> Evaluator:
        """One more judge with the same books: a replica, or the next life of this one."""
        self.callers.append(api_of(self.settings))
        breaker = Breaker(asyncio.get_running_loop().time)
        alerts = AlertPublisher(self.client, 1, self.judge.fingerprint, self.settings)
        return Evaluator(self.settings, self.judge, self.tariff, self.ledger, self.callers[-1], breaker, alerts)

    async def score(self, event: ScrubbedAnswer) -> Score:
        found = await self.evaluator.score(event, DRAWN, {})
        assert found is not None
        return Score.model_validate_json(found)

    def bound(self, event: ScrubbedAnswer) -> int:
        """What is set aside for one try."""
        size = len(message_of(case_of(str(event.event_id), event.payload)).encode())
        return self.tariff.bound(size, self.settings.max_output_tokens)

    async def spent(self, project: str = "acme") -> int:
        return await self.ledger.spent(project, datetime.now(UTC).date())


@pytest.fixture
async def rig(client: Client, api: OpenAiServer) -> AsyncIterator[Rig]:
    rig = Rig(client, api.url)
    yield rig
    for caller in rig.callers:
        await caller.close()


async def test_a_verdict_becomes_a_score_that_says_by_whom_and_for_how_much(rig: Rig, api: OpenAiServer) -> None:
    score = await rig.score(answer())
    assert (score.status, score.backend, score.model) == (ScoreStatus.SCORED, "openai", "local-judge")
    assert score.fingerprint == rig.judge.fingerprint
    assert round(score.cost_usd * 1e9) == await rig.spent() == score.input_tokens * 100 + 60 * 500 == api.nano


async def test_a_retry_after_is_heard_and_a_stop_does_not_wait_for_it(rig: Rig, api: OpenAiServer) -> None:
    api.retry_after = "3600"
    judging = asyncio.ensure_future(rig.score(answer("[once:fail:429] Is it?")))
    await until_async(lambda: api.ended["429"])
    rig.evaluator.draining.set()
    with pytest.raises(NotJudgedError):
        await asyncio.wait_for(judging, 60)
    assert (len(api.bodies), await rig.spent()) == (1, 0)


@pytest.mark.parametrize("usage", UNTOLD)
async def test_a_reply_that_does_not_tell_its_usage_costs_what_was_set_aside(
    rig: Rig, api: OpenAiServer, usage: object
) -> None:
    api.usage, event = usage, answer()
    score = await rig.score(event)
    assert (score.status, score.input_tokens) == (ScoreStatus.SCORED, 0)
    assert round(score.cost_usd * 1e9) == await rig.spent() == rig.bound(event) > api.nano


@pytest.mark.parametrize("usage", [..., None])
async def test_a_reply_that_is_cut_short_is_paid_for_both_times_and_no_score(
    rig: Rig, api: OpenAiServer, usage: object
) -> None:
    api.usage, event = usage, answer("[truncate] Is it?")
    score = await rig.score(event)
    assert (score.status, score.detail, score.metrics) == (ScoreStatus.JUDGE_ERROR, "ReplyTruncated", {})
    paid = api.nano if usage is ... else 2 * rig.bound(event)
    assert (len(api.bodies), round(score.cost_usd * 1e9), await rig.spent()) == (2, paid, paid)


async def test_a_refused_key_stops_judging_says_so_once_and_loses_nothing(
    rig: Rig, api: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.breaker.Breaker.stop.__defaults__", (0.3,))
    api.keys = {"another"}
    waiting = asyncio.gather(*(rig.score(answer(f"{n}")) for n in range(3)))
    await until_async(lambda: rig.evaluator.breaker.stopped)
    assert rig.evaluator.breaker.stopped == "Http401: the key is refused; see judge.api_key"
    assert not api.bodies
    api.keys = {KEY}
    scores = await asyncio.wait_for(waiting, 60)
    assert {score.status for score in scores} == {ScoreStatus.SCORED}

    async def told() -> list[str]:
        entries = await rig.client.xrange(ALERTS.key())
        return [Alert.model_validate_json(fields[b"data"]).state.value for _, fields in entries]

    async def is_over() -> bool:
        return len(await told()) >= 2

    await until_async(is_over)  # the alert is published behind the scores
    assert await told() == ["critical", "resolved"]
    assert await rig.spent() == api.nano


async def test_a_judge_that_dies_in_the_middle_pays_nothing_twice(
    rig: Rig, api: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_judge.ledger.LEASE_S", 0.3)
    before, event = answer(), answer("[slow] Is it?")
    known = await rig.score(before)
    dying = asyncio.ensure_future(rig.score(event))
    await until_async(lambda: api.ended["slow"])
    dying.cancel()
    with suppress(asyncio.CancelledError):
        await dying
    rig.evaluator = rig.another()
    score = await asyncio.wait_for(rig.score(event), 60)
    assert score.detail.startswith("Interrupted")
    assert await rig.score(before) == known
    assert len(api.bodies) == 2
    assert await rig.spent() == round((known.cost_usd + score.cost_usd) * 1e9)
    assert round(score.cost_usd * 1e9) == rig.bound(event)


async def test_a_round_of_anchors_is_judged_and_paid_for_where_usage_is_not_told(rig: Rig, api: OpenAiServer) -> None:
    api.usage = None
    found = await ControlRounds(rig.client, rig.evaluator, 1, 1.0).judge_all()
    assert (len(found), "-" in found) == (len(control_cases()), False)
    assert await rig.spent(ANCHORS_PROJECT) > api.nano > 0
