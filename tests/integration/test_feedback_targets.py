"""Verdicts on answers by the id of their trace or of the model's response: assembler and gateway on a real Redis."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_access.api_keys import KeyKind
from assay_assembler.open_traces import GROUP, OpenTraces
from assay_assembler.span import Span
from assay_gateway.feedback import Target
from assay_gateway.refusal import RefusedError
from assay_gateway.targets import Targets
from assay_runtime.connection import connect
from assay_schema.ids import new_event_id
from assay_schema.settings import AssemblerSettings, RedisSettings
from assay_schema.streams import CAPTURE, SPANS, answer_of_trace_key, shard_of
from tests.support.assembler import AGENT, CHAT, Assembler, append, captured, entry, take
from tests.support.gateway import Answer, Gateway, running_gateway
from tests.support.ports import free_port
from tests.support.spans import TRACE, request, span
from tests.support.wait import until

RESPONSE = "resp_0123456789"
UNKNOWN = ("f" * 32, "resp_unknown")
CALLED = span(CHAT | {"gen_ai.response.id": RESPONSE}, number=2, parent=1, start_ms=10, end_ms=80)
ASKED = span(AGENT, number=1, end_ms=90)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("feedback"), ASSAY_GATEWAY_FEEDBACK_PER_MINUTE="0") as running:
        yield running


@pytest.fixture
def fresh(gateway: Gateway) -> Gateway:
    with gateway.redis.client() as client:
        client.delete(CAPTURE.key(), SPANS.key(), *client.keys("assay:{0}:answer:*"), *client.keys("*:trace:*"))
        client.xgroup_create(SPANS.key(), GROUP, id="0", mkstream=True)
    return gateway


def assemble(gateway: Gateway, *spans: Span, close: bool = True, **settings: Any) -> str:
    """Let an assembler make the events of a trace of the project shop. Return the `event_id` of its answer."""

    async def run() -> None:
        url = f"redis://assembler:assembler-password@127.0.0.1:{gateway.redis.port}/0"
        client = connect(RedisSettings(url=url))
        try:
            one = OpenTraces(client, AssemblerSettings(grace_s=0, **settings), 0, 2**20)
            append(gateway.redis, entry(*spans))
            assert await take(client, one) == 1
            if close:
                await one.close_due()
        finally:
            await client.aclose()

    asyncio.run(run())
    return next((each["event_id"] for each in captured(gateway.redis) if each["kind"] == "answer"), "")


def judge(gateway: Gateway, key: str, **changes: Any) -> Answer:
    body = {"target": {"trace_id": TRACE}, "verdict": "negative"} | changes
    return gateway.send("/v1/feedback", orjson.dumps(body), key)


def verdicts(gateway: Gateway) -> list[dict[str, Any]]:
    return [each for each in gateway.stored() if each["kind"] == "feedback"]


@pytest.mark.parametrize("target", [{"trace_id": TRACE}, {"trace_id": TRACE.upper()}, {"response_id": RESPONSE}])
def test_a_verdict_finds_the_answer_of_a_trace_or_of_a_response(fresh: Gateway, target: dict[str, str]) -> None:
    answer = assemble(fresh, CALLED, ASKED)
    key = fresh.key(KeyKind.FEEDBACK)
    sent = [judge(fresh, key, target=target, text="wrong price", id="click-1") for _ in range(2)]
    assert [each.status for each in sent] == [202, 202]
    (first, again) = verdicts(fresh)
    assert first["event_id"] == again["event_id"] == sent[0].json["event_id"]  # the writer stores it once
    assert first["payload"] == {"target_event_id": answer, "verdict": "negative", "text": "wrong price"}
    assert answer not in sent[0].body.decode()


def test_a_page_can_judge_what_an_exporter_sent_once_its_trace_is_closed(fresh: Gateway, tmp_path: Path) -> None:
    assembler = Assembler(tmp_path, fresh.redis).start(ready=False)
    try:
        exported = request(CALLED, ASKED).SerializeToString()
        sent = fresh.send("/v1/traces", exported, fresh.key(), Content_Type="application/x-protobuf")
        assert sent.status == 200
        key = fresh.key(KeyKind.FEEDBACK)
        until(lambda: judge(fresh, key, id="click-1").status == 202, "the answer stays unknown")
    finally:
        assembler.kill()
    (answer,) = [each["event_id"] for each in captured(fresh.redis) if each["kind"] == "answer"]
    assert [each["payload"]["target_event_id"] for each in verdicts(fresh)] == [answer]


@pytest.mark.parametrize("target", [{"trace_id": UNKNOWN[0]}, {"response_id": UNKNOWN[1]}])
def test_a_verdict_on_an_unknown_answer_is_a_404_that_may_be_sent_again(fresh: Gateway, target: dict[str, str]) -> None:
    assemble(fresh, CALLED, ASKED)
    refused = judge(fresh, fresh.key(KeyKind.FEEDBACK), target=target)
    assert (refused.status, refused.json["error"]["code"]) == (404, "unknown_target")
    assert 1 <= int(refused.headers["retry-after"]) <= 5
    assert verdicts(fresh) == []


def test_an_answer_is_unknown_until_its_trace_closes(fresh: Gateway) -> None:
    key = fresh.key(KeyKind.FEEDBACK)
    assemble(fresh, CALLED, ASKED, close=False)
    assert judge(fresh, key).status == 404


@pytest.mark.parametrize("target", [{"trace_id": TRACE}, {"response_id": RESPONSE}])
def test_the_answers_of_another_project_are_unknown(fresh: Gateway, target: dict[str, str]) -> None:
    assemble(fresh, CALLED, ASKED)
    assert judge(fresh, fresh.key(KeyKind.FEEDBACK, project="other"), target=target).status == 404
    assert verdicts(fresh) == []


def test_an_answer_is_forgotten_after_the_time_that_is_set(fresh: Gateway) -> None:
    key = fresh.key(KeyKind.FEEDBACK)
    assemble(fresh, CALLED, ASKED, answer_memory_s=0.001)
    until(lambda: judge(fresh, key).status == 404, "the answer is still known")


def test_verdicts_on_unknown_answers_count_towards_the_rate_of_the_key(fresh: Gateway) -> None:
    key = fresh.key(KeyKind.INGEST, events_per_s=0.001)
    assert [judge(fresh, key).status for _ in range(2)] == [404, 429]


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"trace_id": TRACE, "response_id": RESPONSE},
        {"trace_id": TRACE[1:]},
        {"trace_id": TRACE[1:] + "g"},
        {"trace_id": TRACE + "\n"},
        {"response_id": ""},
        {"response_id": "x" * 4097},
        {"response_id": 7},
        {"trace_id": None},
        {"trace_id": TRACE, "span_id": "0" * 16},
    ],
    ids=range(10),
)
def test_a_target_is_exactly_one_id_in_its_form(fresh: Gateway, target: dict[str, Any]) -> None:
    assemble(fresh, CALLED, ASKED)
    refused = judge(fresh, fresh.key(KeyKind.FEEDBACK), target=target)
    assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_feedback")
    assert refused.json["error"]["message"].startswith("target")


def find(url: str, project: str, shards: int = 1) -> str:
    async def run() -> str:
        client = connect(RedisSettings(url=url, connect_timeout_s=0.5, command_timeout_s=0.5), attempts=0)
        try:
            return str(await Targets(client, shards).find(project, Target(trace_id=TRACE)))
        finally:
            await client.aclose()

    return asyncio.run(run())


def found_as(url: str) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        find(url, "shop")
    return refused.value


def test_an_answer_is_looked_up_in_the_shard_of_its_project(fresh: Gateway) -> None:
    project = next(name for name in ("a", "b", "c", "d") if shard_of(name, 2) == 1)
    answer = new_event_id()
    with fresh.redis.client() as client:
        client.set(answer_of_trace_key(1, project, TRACE), answer, ex=60)
    url = f"redis://gateway:gateway-password@127.0.0.1:{fresh.redis.port}/0"
    assert find(url, project, shards=2) == answer
    with pytest.raises(RefusedError, match="no answer"):
        find(url, project, shards=1)


def test_a_redis_that_does_not_look_up_is_a_503(gateway: Gateway) -> None:
    without_right = found_as(f"redis://producer:producer-password@127.0.0.1:{gateway.redis.port}/0")
    assert (without_right.status, without_right.code) == (503, "redis_refuses")
    away = found_as(f"redis://127.0.0.1:{free_port()}/0")
    assert (away.status, away.code) == (503, "redis_away")
