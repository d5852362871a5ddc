"""Checks, boosts and prices: what comes with Assay, what a file changes, and what it is refused for."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay_judge.api import failure_of, limits, retry_after
from assay_judge.backends import judge_of
from assay_judge.breaker import FAILURES, OPEN_S, STOPPED_S, Breaker
from assay_judge.judge_config import Check, Price, load_judge_config
from assay_judge.pricing import Tariff, Usage, tariff_of
from assay_schema.events import Answer
from assay_schema.settings import JudgeSettings, SettingsError, settings_from


def answer(text: str = "It is.", query: str = "Is it?", **more: Any) -> Answer:
    return Answer.model_validate({"query": query, "answer": text, "model": "m", "latency_ms": 10.0} | more)


CONTEXTS = [{"id": "a", "text": "x", "score": 0.2}, {"id": "b", "text": "y", "score": None}]


@pytest.mark.parametrize(
    ("asks", "given", "passes"),
    [
        ({"not_empty": True}, {"text": " \n"}, False),
        ({"not_empty": True}, {}, True),
        ({"citations_exist": True}, {"citations": [{"context_id": "z"}], "contexts": CONTEXTS}, False),
        ({"citations_exist": True}, {"citations": [{"context_id": "a"}], "contexts": CONTEXTS}, True),
        ({"citations_exist": True}, {"text": "So it is [2].", "contexts": CONTEXTS}, True),
        ({"citations_exist": True}, {"text": "So it is [3].", "contexts": CONTEXTS}, False),
        ({"citations_exist": True}, {"text": "arr[3] = 1"}, True),
        ({"must_match": "^It"}, {}, True),
        ({"must_match": "^Is"}, {}, False),
        ({"must_not_match": "(?i)as an ai"}, {"text": "As an AI I"}, False),
        ({"characters_at_least": 7}, {}, False),
        ({"characters_at_most": 6}, {}, True),
        ({"latency_ms_at_most": 5}, {}, False),
        ({"citations_at_least": 1}, {}, False),
        ({"citations_at_least": 1}, {"text": "So [1].", "contexts": CONTEXTS}, True),
        ({"same_script_as_query": True}, {"text": "Да, это так."}, False),
        ({"same_script_as_query": True}, {"text": "はい、そうです。", "query": "そうですか"}, True),
        ({"same_script_as_query": True}, {"text": "42"}, True),
        ({"not_empty": True, "characters_at_least": 100}, {}, False),
    ],
)
def test_a_check_passes_if_all_that_it_asks_for_holds(
    asks: dict[str, Any], given: dict[str, Any], passes: bool
) -> None:
    assert Check(name="it", **asks).passes(answer(**given)) is passes


def test_what_comes_with_assay_is_valid_and_dated() -> None:
    config = load_judge_config(None)
    assert config.prices.as_of == "2026-11-21"
    assert JudgeSettings().model in config.prices.models
    assert config.check(answer())["answer_is_not_empty"]


def test_a_file_replaces_checks_and_boosts_and_adds_prices(tmp_path: Path) -> None:
    file = tmp_path / "judge.yaml"
    file.write_text(
        "checks: [{name: short, characters_at_most: 3}]\n"
        "boosts: [{name: weak, probability: 0.5, top_score_below: 0.3}, {name: acme, probability: 1, project: acme}]\n"
        "prices: {as_of: 2027-01-01, models: {other: {input: 1, output: 2}}}\n"
    )
    config = load_judge_config(file)
    assert config.check(answer()) == {"short": False}
    weak = answer(contexts=CONTEXTS)
    assert config.boosts_for("x", weak, {}) == [("weak", 0.5)]
    assert config.boosts_for("acme", answer(), {}) == [("acme", 1.0)]
    assert {"other", "claude-haiku-5-5"} <= set(config.prices.models)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("checks: [", "is not YAML"),
        ("- a", "must contain checks, boosts or prices"),
        ("checks: [{name: x}]", "has no condition"),
        ("checks: [{name: x, must_match: '('}]", "not a regular expression"),
        ("checks: [{name: 'Not A Name', not_empty: true}]", "checks.0.name"),
        ("boosts: [{name: x, probability: .nan}]", "boosts.0.probability"),
        ("boosts: [{name: x, probability: 0}]", "boosts.0.probability"),
        ("prices: {as_of: 2027-01-01, models: {m: {input: -1, output: 1}}}", "prices.models.m.input"),
        ("prices: {as_of: 2027-01-01, models: {m: {input: cheap, output: 1}}}", "prices.models.m.input"),
        ("sampling: 3", "sampling: Extra inputs are not permitted"),
        ("checks: [{name: x, not_empty: true}, {name: x, not_empty: true}]", "named twice: x"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "judge.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_judge_config(file)
    assert message in str(refused.value)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "a lot", ""])
def test_a_budget_that_is_no_amount_refuses_to_start(value: str) -> None:
    with pytest.raises(SettingsError, match=r"judge\.budget_usd_per_day"):
        settings_from({"ASSAY_JUDGE_BUDGET_USD_PER_DAY": value})


def test_a_model_without_a_price_refuses_to_start_and_says_how_to_add_one() -> None:
    with pytest.raises(SettingsError, match=r"'gpt-9' has no price.*claude-haiku-5-5.*judge\.rules_file"):
        tariff_of(load_judge_config(None), "gpt-9", batch=False)


def test_the_judge_is_the_lexical_baseline_without_a_key_and_a_model_with_one(tmp_path: Path) -> None:
    def settings(**values: Any) -> JudgeSettings:
        return JudgeSettings.model_validate(values)

    assert judge_of(settings()).backend == "lexical"
    assert judge_of(settings(api_key="k")).backend == "anthropic"
    assert judge_of(settings(api_key="k", backend="lexical")).backend == "lexical"
    (tmp_path / "key").write_text("k\n")
    assert judge_of(settings(api_key_file=tmp_path / "key", backend="anthropic-batch")).backend == "anthropic-batch"
    with pytest.raises(SettingsError, match="there is no key"):
        judge_of(settings(backend="anthropic"))
    with pytest.raises(SettingsError, match="ASSAY_JUDGE_API_KEY_FILE"):
        judge_of(settings(api_key_file=tmp_path / "none"))


def test_costs_follow_the_price_table_and_stay_below_their_bound() -> None:
    price = Price(input=0.10, output=0.50, cache_read=0.01, cache_write=0.125)
    assert Tariff(price).cost(Usage(input=4_900, output=700)) == 4_900 * 100 + 700 * 500
    assert Tariff(price).cost(Usage(cache_read=1_000, cache_write=1_000)) == 1_000 * 10 + 1_000 * 125
    assert Tariff(price, batch=True).cost(Usage(input=1_000)) == 50_000
    assert Tariff(price).bound(10_000, 4_096) > Tariff(price).cost(Usage(cache_write=10_000, output=4_096))


def test_errors_of_the_api_mean_what_its_documentation_says() -> None:
    names = {status: type(failure_of(status, "X", {})).__name__ for status in (400, 401, 402, 403, 404, 408, 409, 413)}
    names |= {status: type(failure_of(status, "X", {})).__name__ for status in (422, 429, 500, 503, 529)}
    assert names == {
        400: "RejectedError", 401: "StoppedError", 402: "StoppedError", 403: "StoppedError", 404: "RejectedError",
        408: "TryAgainError", 409: "TryAgainError", 413: "RejectedError", 422: "RejectedError", 429: "TryAgainError",
        500: "TryAgainError", 503: "TryAgainError", 529: "TryAgainError",
    }  # fmt: skip


def test_headers_tell_limits_and_pauses() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    assert retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) == 0
    now = datetime(2026, 1, 2, 3, 4, 0, tzinfo=UTC)
    used_up = {"anthropic-ratelimit-input-tokens-remaining": "0"}
    used_up |= {"anthropic-ratelimit-input-tokens-reset": "2026-01-02T03:04:12Z"}
    assert limits(used_up | {"anthropic-ratelimit-requests-limit": "50"}, now) == (50, 12.0)
    complete = {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "3"}
    assert limits(complete, now) == (50, 0.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_circuit_opens_after_failures_in_a_row_and_lets_one_call_try() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        breaker.failed()
    assert breaker.wait_s() == 0
    breaker.failed()
    assert breaker.wait_s() == OPEN_S
    clock.now = OPEN_S
    assert (breaker.wait_s(), breaker.wait_s() > 0) == (0, True), "one goes, the next waits for its fate"
    breaker.failed()
    assert breaker.wait_s() == 2 * OPEN_S
    clock.now += 2 * OPEN_S
    assert breaker.wait_s() == 0
    breaker.succeeded()
    assert [breaker.wait_s() for _ in range(3)] == [0, 0, 0]


def test_a_probe_that_was_never_made_lets_the_next_one_try() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    breaker.stop("the key is refused")
    clock.now = STOPPED_S
    assert breaker.wait_s() == 0
    breaker.abandoned()
    assert breaker.wait_s() == 0


def test_a_stop_is_news_once_and_ends_with_a_call_that_goes_well() -> None:
    breaker = Breaker(Clock())
    assert breaker.succeeded(), "the first success may end the stop of an earlier process"
    assert breaker.stop("the key is refused")
    assert not breaker.stop("the key is refused")
    assert breaker.wait_s() == STOPPED_S
    assert breaker.succeeded()
    assert not breaker.succeeded()
