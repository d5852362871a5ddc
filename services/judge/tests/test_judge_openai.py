"""Any API that speaks OpenAI's chat completions, over a real socket: each way a call can go has one meaning, and costs what is known."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from assay_judge.api import BadReplyError, RejectedError, StoppedError, TryAgainError
from assay_judge.backends import api_of, judge_of, tariff_for
from assay_judge.judge_config import load_judge_config
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.openai_api import OpenAiApi, body_of, failure, pause_of, usage_in
from assay_judge.pricing import Usage
from assay_judge.prompt import SYSTEM, Case, case_of
from assay_schema.events import Answer
from assay_schema.settings import JudgeSettings, SettingsError, settings_from
from tests.support.anthropic_server import KEY
from tests.support.openai_server import OpenAiServer
from tests.support.ports import free_port

Ask = Any


@pytest.fixture(scope="module")
def shared_api() -> Iterator[OpenAiServer]:
    with OpenAiServer(slow_s=60.0) as server:
        yield server


@pytest.fixture
def api(shared_api: OpenAiServer) -> OpenAiServer:
    """The API as it is at first."""
    shared_api.keys, shared_api.retry_after, shared_api.usage, shared_api.code = {KEY}, None, ..., None
    shared_api.around, shared_api.headers = "{}", {}
    shared_api.asked.clear()
    shared_api.bodies.clear()
    shared_api.heard.clear()
    return shared_api


def settings(url: str | None, **more: Any) -> JudgeSettings:
    given = {"backend": "openai", "model": "local-judge", "base_url": url, "request_timeout_s": 60.0}
    return JudgeSettings.model_validate(given | more)


def case(mark: str = "") -> Case:
    payload = {
        "query": f"Is the boot waterproof? {mark}",
        "answer": "The boot is waterproof [1].",
        "model": "m",
        "latency_ms": 1.0,
    }
    contexts = [{"id": "a", "text": "The boot is waterproof. It has a zip."}]
    return case_of("event", Answer.model_validate(payload | {"contexts": contexts}))


@pytest.fixture
async def ask(api: OpenAiServer) -> AsyncIterator[Ask]:
    """Judges a case with a mark."""
    opened = []

    async def ask(mark: str = "", *, timeout_s: float = 60.0, **more: Any) -> Any:
        given = settings(more.pop("url", api.url), **{"api_key": KEY} | more)
        caller = api_of(given)
        assert isinstance(caller, OpenAiApi)
        opened.append(caller)
        return await caller.call(case(mark), timeout_s)

    yield ask
    for caller in opened:
        await caller.close()


async def test_a_verdict_comes_with_the_tokens_it_took(api: OpenAiServer, ask: Ask) -> None:
    reply = await ask()
    assert [claim.verdict for claim in reply.verdict.claims] == ["supported"]
    assert reply.usage == Usage(input=len(json.dumps(api.bodies[0])) // 4, output=60)
    sent = api.bodies[0]
    assert sent["response_format"]["json_schema"]["strict"] is True
    assert sent["messages"][0] == {"role": "system", "content": SYSTEM}
    assert sent["max_tokens"] == JudgeSettings().max_output_tokens
    assert not {"temperature", "effort", "reasoning_effort"} & sent.keys()


@pytest.mark.parametrize(
    ("mark", "raises", "kind", "known"),
    [
        ("[fail:429]", TryAgainError, "Http429", True),
        ("[fail:500]", TryAgainError, "Http500", True),
        ("[fail:503]", TryAgainError, "Http503", True),
        ("[fail:400]", RejectedError, "Http400: the model does not accept judge.json_mode", True),
        ("[fail:413]", RejectedError, "Http413", True),
        ("[fail:402]", StoppedError, "Http402", True),
        ("[fail:403]", StoppedError, "Http403", True),
        ("[fail:404]", StoppedError, "Http404: model or address not found", True),
        ("[cut]", TryAgainError, "APIConnectionError", False),
        ("[truncate]", BadReplyError, "ReplyTruncated", True),
        ("[refuse]", BadReplyError, "ReplyRefused", True),
        ("[malformed]", BadReplyError, "ReplyNotJson", True),
        ("[misfit]", BadReplyError, "ReplyMisfit", True),
        ("[nothing]", BadReplyError, "ReplyUnanchored", True),
        ("[half]", BadReplyError, "ReplyUnreadable", False),
        ("[sorry]", BadReplyError, "ReplyUnreadable", False),
    ],
)
async def test_what_goes_wrong_says_what_to_do_and_what_is_known_of_its_cost(
    ask: Ask, mark: str, raises: type[Exception], kind: str, known: bool
) -> None:
    with pytest.raises(raises) as refused:
        await ask(mark)
    assert str(refused.value).startswith(kind)
    assert (refused.value.usage is not None) is known  # type: ignore[attr-defined]


async def test_a_busy_api_says_how_long_and_one_that_does_not_leaves_it_to_us(api: OpenAiServer, ask: Ask) -> None:
    for header, pause in (("7", 7.0), (None, 0.0)):
        api.retry_after = header
        with pytest.raises(TryAgainError) as busy:
            await ask("[fail:429]")
        assert busy.value.pause_s == pause


async def test_a_refused_key_a_slow_reply_and_no_server_are_told_apart(api: OpenAiServer, ask: Ask) -> None:
    with pytest.raises(StoppedError, match="the key is refused"):
        await ask(api_key="wrong")
    with pytest.raises(TryAgainError, match="APITimeoutError") as slow:
        await ask("[slow]", timeout_s=0.2)
    assert slow.value.usage is None, "whoever hangs up may pay all the same"
    with pytest.raises(TryAgainError, match="APIConnectionError") as nobody:
        await ask(url=f"http://127.0.0.1:{free_port()}/v1")
    assert nobody.value.usage == Usage(), "nobody was reached, nobody is paid"


async def test_a_redirect_is_not_followed_with_the_key(api: OpenAiServer, ask: Ask) -> None:
    with pytest.raises(StoppedError, match=r"judge\.base_url"):
        await ask(url=api.url.replace("/v1", "/moved"))
    assert api.heard == []


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {},
        {"prompt_tokens": 10},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": "10", "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 10**9, "completion_tokens": 1},
        {"prompt_tokens": 10, "completion_tokens": 10**9},
    ],
)
async def test_usage_that_cannot_be_true_is_not_believed(api: OpenAiServer, ask: Ask, usage: Any) -> None:
    api.usage = usage
    assert (await ask()).usage is None


def test_what_the_api_kept_of_the_prompt_is_counted_once() -> None:
    told = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    assert usage_in({"usage": told}, 1_000, 1_000) == Usage(input=40, output=5, cache_read=60)
    told["prompt_tokens_details"] = {"cached_tokens": 600}
    assert usage_in({"usage": told}, 1_000, 1_000) == Usage(input=100, output=5)


@pytest.mark.parametrize("around", ["```json\n{}\n```", "<think>It says {so}.</think>\n{}", "\n {} \n"])
@pytest.mark.parametrize("mode", ["json_object", "none"])
async def test_a_model_that_is_held_to_no_schema_is_told_it(
    api: OpenAiServer, ask: Ask, mode: str, around: str
) -> None:
    api.around = around.replace("{so}", "so")
    assert (await ask(json_mode=mode)).verdict.claims
    sent = api.bodies[0]
    assert sent.get("response_format") == ({"type": "json_object"} if mode == "json_object" else None)
    assert '"evidence_quote"' in sent["messages"][0]["content"].removeprefix(SYSTEM)


async def test_an_api_without_a_key_is_sent_none(api: OpenAiServer, ask: Ask) -> None:
    api.keys = set()
    assert (await ask(api_key="")).verdict.claims
    assert api.heard == [None]


def test_the_limit_has_the_name_that_the_api_takes() -> None:
    from assay_judge.api import prompt_of

    body = body_of(prompt_of(case()), settings(None))
    assert "max_completion_tokens" in body
    assert "max_tokens" not in body


def test_no_more_money_is_no_crowd() -> None:
    quota = json.dumps({"error": {"code": "insufficient_quota"}}).encode()
    assert isinstance(failure(429, {}, quota), StoppedError)
    for body in (b"", b"[]", b"{", b'{"error": "busy"}', None):
        assert isinstance(failure(429, {}, body), TryAgainError)
    long = json.dumps({"error": {"code": "context_length_exceeded"}}).encode()
    assert failure(400, {}, long).kind == "Http400"


def test_a_limit_that_is_used_up_is_waited_for() -> None:
    def headers(reset: str, remaining: str = "0") -> dict[str, str]:
        return {"x-ratelimit-remaining-tokens": remaining, "x-ratelimit-reset-tokens": reset}

    found = [pause_of(headers(reset)) for reset in ("1s", "6m0s", "20ms", "3", "soon")]
    assert found == [1.0, 360.0, 0.02, 3.0, 0.0]
    assert pause_of(headers("6m0s", "1")) == pause_of({}) == 0.0
    assert failure(429, headers("2s") | {"retry-after": "1"}, None).pause_s == 2.0


def test_each_path_of_a_gateway_is_a_judge_and_the_usual_path_changes_no_fingerprint() -> None:
    def judge(address: str) -> JudgeIdentity:
        return judge_of(settings(url=address))

    usual = [judge(f"http://127.0.0.1:2{path}") for path in ("/v1", "/v1/", "", "/")]
    assert {each.endpoint for each in usual} == {"127.0.0.1:2 json_schema"}, "as before paths counted"
    one, other = (judge(f"http://127.0.0.1:2/{name}-of-a-secret/v1") for name in ("one", "other"))
    assert len({usual[0].fingerprint, one.fingerprint, other.fingerprint}) == 3
    assert one.fingerprint == judge("http://127.0.0.1:2/one-of-a-secret/v1/").fingerprint
    assert "secret" not in repr(one)


def test_each_api_model_and_way_of_asking_is_a_judge_of_its_own() -> None:
    given: list[dict[str, Any]] = [
        {}, {"model": "other"}, {"base_url": "http://127.0.0.1:1/v1"}, {"base_url": "https://api.test/v1"}, {"json_mode": "none"}
    ]  # fmt: skip
    judges = [
        judge_of(
            settings(**{"url": "http://127.0.0.1:2/v1"} | {"url" if k == "base_url" else k: v for k, v in each.items()})
        )
        for each in given
    ]  # type: ignore[arg-type]
    assert len({judge.fingerprint for judge in judges}) == len(given)
    assert {judge.backend for judge in judges} == {"openai"}
    anthropic = JudgeSettings.model_validate({"api_key": "k", "model": "local-judge"})
    assert judge_of(anthropic).fingerprint not in {judge.fingerprint for judge in judges}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_url": None}, "api_key_file"),
        ({"base_url": "ftp://api.test/v1"}, "base_url"),
        ({"base_url": "http://me:secret@127.0.0.1/v1"}, "base_url"),
        ({"base_url": "api.test"}, "base_url"),
        ({"base_url": "http://api.test/v1", "api_key": "secret"}, "unencrypted"),
        ({"base_url": "https://api.test/v1", "api_key": "s\u00e9cret"}, "ASCII"),
    ],
)
def test_settings_that_do_not_fit_refuse_to_start(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as refused:
        judge_of(JudgeSettings.model_validate({"backend": "openai", "model": "m"} | given))
    assert "cret" not in str(refused.value).replace("api_key", "")


def test_the_default_model_is_not_taken_for_another_apis() -> None:
    with pytest.raises(SettingsError, match=r"judge\.model"):
        judge_of(JudgeSettings.model_validate({"backend": "openai", "api_key": "k"}))


def test_a_model_without_a_price_is_refused_with_the_settings_that_give_one() -> None:
    rules, given = load_judge_config(None), settings("http://127.0.0.1:1/v1")
    with pytest.raises(SettingsError, match=r"judge\.price_input_usd.*judge\.price_output_usd"):
        tariff_for(given, rules)
    with pytest.raises(SettingsError, match="set both"):
        tariff_for(settings("http://127.0.0.1:1/v1", price_input_usd=1), rules)
    free = tariff_for(settings("http://127.0.0.1:1/v1", price_input_usd=0, price_output_usd=0), rules)
    assert free.bound(10**6, 4_096) == free.cost(Usage(10**6, 10**6)) == 0
    priced = tariff_for(settings("http://127.0.0.1:1/v1", price_input_usd=0.1, price_output_usd=0.5), rules)
    assert priced.cost(Usage(input=10, output=10, cache_read=10)) == 7_000


def test_batches_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="batches exist only for Anthropic's API"):
        settings_from({"ASSAY_JUDGE_BACKEND": "openai-batch"})


def test_a_file_that_just_lies_there_does_not_send_the_key_to_another_api() -> None:
    with pytest.raises(SettingsError, match=r"judge\.backend comes from"):
        settings_from({"ASSAY_JUDGE_API_KEY": "secret"}, '[judge]\nbackend = "openai"\nmodel = "m"\n', implicit=True)
    settings_from({"ASSAY_JUDGE_API_KEY": "secret"}, '[judge]\nbackend = "anthropic"\n', implicit=True)
