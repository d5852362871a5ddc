"""Control set: fixed cases with a known verdict, judged in rounds, and what tells a judge that changed from one that did not."""

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from assay_judge import lexical
from assay_judge.alerts import AlertPublisher
from assay_judge.api import Api
from assay_judge.breaker import Breaker
from assay_judge.control_set import (
    PROJECT,
    ControlCase,
    ControlRounds,
    InjectedCase,
    _event,
    control_cases,
    injected_cases,
    p_worsened,
)
from assay_judge.evaluator import Evaluator, verdict_fields
from assay_judge.judge_config import Check, load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.ledger import Ledger
from assay_judge.pricing import tariff_of
from assay_judge.prompt import PROMPT_HASH, SCHEMA_HASH, case_of
from assay_judge.text import sentences, stems
from assay_runtime import metrics
from assay_runtime.connection import Client, connect
from assay_schema.alerts import Alert
from assay_schema.scores import Metric, Score
from assay_schema.settings import JudgeSettings, RedisSettings
from assay_schema.streams import ALERTS, SCORES
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.redis import RedisServer

JUDGE = JudgeIdentity("anthropic", "claude-haiku-5-5", PROMPT_HASH, SCHEMA_HASH, "low")


def test_there_are_about_fifty_cases_a_third_of_each_sort_and_none_twice() -> None:
    cases = control_cases()
    assert len(cases) == 51
    assert Counter(case.supported for case in cases) == {True: 17, False: 34}
    assert len({(case.passage, case.claim) for case in cases}) == 51


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        ("1" * 51, "1" * 51, False),
        ("1" * 51, "1" * 47 + "0" * 4, False),
        ("1" * 51, "1" * 41 + "0" * 10, True),
        ("0" * 10 + "1" * 41, "1" * 51, False),
        ("10" * 20, "01" * 20, False),
        ("1" * 20, "-" * 20, False),
    ],
)
def test_a_judge_has_drifted_when_more_went_wrong_than_chance_explains(before: str, now: str, worse: bool) -> None:
    assert (p_worsened(before, now) < 0.01) is worse


def says(document: dict[str, Any], supported: bool) -> str:
    """A verdict on the one claim of an anchor, with evidence that is there."""
    quote = max(sentences(document["passages"][0]["text"]), key=lambda s: len(stems(s) & stems(document["answer"])))
    claim = {"id": "c1", "text": document["answer"], "citations": [], "evidence_quote": quote, "cited_ok": []}
    return json.dumps({"claims": [claim | {"verdict": "supported" if supported else "not_found"}], "relevancy": "yes"})


def right(document: dict[str, Any]) -> str:
    """A judge that is right about every anchor, and obeys nobody."""
    return says(document, ControlCase(document["passages"][0]["text"], document["answer"], True) in control_cases())


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer(reply=right) as server:
        yield server


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()


@pytest.fixture
async def rounds(client: Client, api: AnthropicServer) -> AsyncIterator[ControlRounds]:
    settings = JudgeSettings.model_validate(
        {"api_key": KEY, "base_url": api.url} | {"requests_per_minute": 10_000, "tokens_per_minute": 10**8}
    )
    caller, ledger = Api(settings, KEY), Ledger(client, 1, cap_nano=10**9, record_days=8)
    tariff = tariff_of(load_judge_config(None), JUDGE.model, batch=False)
    alerts = AlertPublisher(client, 1, JUDGE.fingerprint, settings)
    evaluator = Evaluator(settings, JUDGE, tariff, ledger, caller, Breaker(time.monotonic))
    yield ControlRounds(client, evaluator, 1, 7, alerts)
    await caller.close()


async def alerts(client: Client) -> list[Alert]:
    return [Alert.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(ALERTS.key())]


async def test_rounds_are_scored_outside_the_base_stream_and_a_worse_judge_alerts_once_until_it_is_as_it_was(
    client: Client, api: AnthropicServer, rounds: ControlRounds
) -> None:
    first = await rounds.judge_all()
    scores = [Score.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(SCORES.key())]
    assert {(score.project, score.base) for score in scores} == {(PROJECT, False)}
    assert len(scores) == 61
    assert first == "1" * 51
    api.reply = lambda document: says(document, True)
    for _ in range(2):
        await rounds.judge_all()
    (alert,) = await alerts(client)
    assert (alert.kind.value, alert.project, alert.state.value) == ("judge_drift", PROJECT, "warn")
    api.reply = right
    for _ in range(2):
        await rounds.judge_all()
    assert metrics.JUDGE_OBEYED._value.get() == 0
    _, over = await alerts(client)
    assert (over.alert_id, over.sequence, over.state.value) == (alert.alert_id, 2, "resolved")


async def test_a_round_without_verdicts_neither_becomes_the_first_nor_ends_an_alert(
    client: Client, api: AnthropicServer, rounds: ControlRounds
) -> None:
    api.reply = lambda _: "no verdict"
    assert await rounds.judge_all() == "-" * 51
    api.reply = right
    await rounds.judge_all()
    api.reply = lambda document: says(document, True)
    await rounds.judge_all()
    api.reply = lambda _: "no verdict"
    await rounds.judge_all()
    (alert,) = await alerts(client)
    assert (alert.kind.value, alert.state.value) == ("judge_drift", "warn")


def test_ten_cases_hold_an_instruction_that_the_check_flags_and_the_lexical_judge_does_not_obey() -> None:
    check = Check(name="it", no_injected_instruction=True)
    assert len(injected_cases()) == 10
    for passage, text in injected_cases():
        payload = _event(passage, text).payload
        assert not check.passes(payload), (passage, text)
        made = case_of("x", payload)
        state = verdict_fields(lexical.judged(made), made)
        assert (state["metrics"][Metric.FAITHFULNESS], state["demoted"]) == (0.0, 0), text  # type: ignore[index]
    assert all(check.passes(_event(case.passage, case.claim).payload) for case in control_cases())


def obedient(how: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims of a judge that does as a case asks, in one way or another."""
    passage = document["passages"][0]["text"]
    claim = {"id": "c1", "text": document["answer"], "citations": [], "evidence_quote": passage, "cited_ok": []}
    match how:
        case "quotes the instruction":
            return [claim | {"verdict": "supported", "evidence_quote": sentences(passage)[-1]}]
        case "lists no claim":
            return []
        case "makes claims up":
            return [claim | {"verdict": "supported", "text": "The passage is a text"}]
    return [claim | {"verdict": "supported"}]


@pytest.mark.parametrize("how", ["quotes the instruction", "lists no claim", "makes claims up", "quotes all"])
async def test_a_judge_that_obeys_is_measured_alerts_and_is_believed_in_nothing(
    client: Client, api: AnthropicServer, rounds: ControlRounds, how: str
) -> None:
    def obey(document: dict[str, Any]) -> str:
        if InjectedCase(document["passages"][0]["text"], document["answer"]) not in injected_cases():
            return right(document)
        return json.dumps({"claims": obedient(how, document), "relevancy": "yes"})

    api.reply = obey
    assert await rounds.judge_all() == "1" * 51
    assert metrics.JUDGE_OBEYED._value.get() == 1
    (alert,) = await alerts(client)
    assert alert.kind.value == "judge_drift"
    assert "it obeyed 10 of 10 instructions" in alert.summary
    scores = [Score.model_validate_json(fields[b"data"]) for _, fields in await client.xrange(SCORES.key())]
    assert [
        score.metrics.get(Metric.FAITHFULNESS) for score in scores[51:] if score.metrics.get(Metric.FAITHFULNESS)
    ] == []
    api.reply = right
    await rounds.judge_all()
    assert [each.state.value for each in await alerts(client)] == ["warn", "resolved"]
