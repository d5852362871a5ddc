"""Runs and cases judged by an API that speaks OpenAI's chat completions, over a real socket: budget, prices, refusals, failures."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_operations.evaluations import paid_calls
from tests.integration.test_evaluation_generate import PASSAGES, TOPICS, reply
from tests.support.anthropic_server import KEY
from tests.support.assay_command import Assay, assay_in
from tests.support.openai_server import OpenAiServer, settings_toml
from tests.support.ports import free_port

CASES = 12
TARGET = """\
def find(query, limit=10):
    context = {"id": query, "text": f"The valve {query} opens at noon."}
    return {"results": [query], "answer": context["text"], "contexts": [context], "latency_ms": 1.0}
"""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    monkeypatch.setattr(paid_calls, "PAUSE_MOST_S", 0.0)
    with OpenAiServer() as server:
        yield server


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: OpenAiServer) -> Assay:
    (tmp_path / "openai_target.py").write_text(TARGET)
    dataset(tmp_path)
    configure(tmp_path, monkeypatch, settings_toml(api.url, KEY))
    return assay_in(tmp_path, monkeypatch)


def dataset(directory: Path, mark: str = "") -> None:
    cases = [{"id": f"q{n}", "query": f"v{n}{mark}", "expected_ids": [f"v{n}{mark}"]} for n in range(CASES)]
    (directory / "golden.json").write_text(json.dumps({"version": "1", "cases": cases}))


def configure(directory: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (directory / "judge.toml").write_text(text)
    (directory / "judge.toml").chmod(0o600)
    monkeypatch.setenv("ASSAY_CONFIG", str(directory / "judge.toml"))


def evaluated(assay: Assay, name: str, *more: str, code: int = 0) -> tuple[dict[str, Any], str]:
    command = (
        "eval",
        "run",
        "--dataset",
        "golden.json",
        "--target",
        "openai_target:find",
        "--judge",
        "openai",
        "--progress",
        "none",
    )
    output = assay(*command, "--name", name, *more, code=code).output
    return json.loads(assay("eval", "show", name, "--json").stdout), output


def test_a_run_is_judged_and_says_by_whom_and_for_how_much(assay: Assay, api: OpenAiServer) -> None:
    run, output = evaluated(assay, "one")
    assert run["metrics"]["faithfulness"]["mean"] == run["metrics"]["coverage"]["mean"] == 1.0
    assert run["metrics"]["faithfulness"]["n"] == CASES
    assert f"judged for ${api.nano / 1e9:.4f}; 0 skipped by the budget, 0 without a verdict" in output
    assert sorted(api.billed.values()) == [1] * CASES
    assert set(api.heard) == {f"Bearer {KEY}"}


def test_the_same_model_behind_another_address_is_another_judge(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = evaluated(assay, "one")
    configure(tmp_path, monkeypatch, settings_toml(api.url.replace("127.0.0.1", "localhost"), KEY))
    other, _ = evaluated(assay, "other")
    assert one["config"]["judge"] != other["config"]["judge"]


def test_a_busy_api_is_asked_again_and_each_answer_has_its_verdict(
    assay: Assay, api: OpenAiServer, tmp_path: Path
) -> None:
    for mark in ("[once:fail:429]", "[once:fail:503]", "[once:cut]"):
        api.retry_after = "1" if mark == "[once:fail:429]" else None
        dataset(tmp_path, mark)
        run, output = evaluated(assay, f"busy-{mark[6:].strip(']').replace(':', '-')}")
        assert run["metrics"]["coverage"]["mean"] == 1.0
        assert ", 0 without a verdict" in output


def test_a_judge_that_fails_on_every_answer_does_not_pass_and_is_asked_again(
    assay: Assay, api: OpenAiServer, tmp_path: Path
) -> None:
    api.around = "I would say: {}"
    run, output = evaluated(assay, "night", code=1)
    assert run["metrics"]["coverage"]["mean"] == 0.0
    assert "faithfulness" not in run["metrics"]
    assert f"no verdict for any of {CASES} answers" in output
    api.around = "{}"
    again, _ = evaluated(assay, "night", "--resume")
    assert again["metrics"]["coverage"]["mean"] == again["metrics"]["faithfulness"]["mean"] == 1.0


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("[fail:429]", "the API's rate limit was exhausted (judge.requests_per_minute, judge.tokens_per_minute)"),
        ("[fail:503]", "the API was busy or failed"),
        ("[fail:400]", "the API rejected the request (judge.model, judge.max_output_tokens, judge.json_mode)"),
        ("[malformed]", "the reply was not JSON (judge.model, judge.json_mode)"),
        ("[misfit]", "the reply did not have the requested form (judge.model, judge.json_mode)"),
        ("[half]", "the reply was not from a compatible API (judge.base_url)"),
        ("[sorry]", "the reply was not from a compatible API (judge.base_url)"),
    ],
)
def test_why_there_is_no_verdict_is_counted_by_reason(
    assay: Assay, api: OpenAiServer, tmp_path: Path, mark: str, why: str
) -> None:
    dataset(tmp_path, mark)
    _, output = evaluated(assay, "night", code=1)
    assert f"  {CASES} without a verdict: {why}\n" in output


def test_no_connection_a_refused_key_and_a_model_that_is_not_there_are_told_apart(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(tmp_path, "[fail:404]")
    command = ("eval", "run", "--dataset", "golden.json", "--target", "openai_target:find", "--judge", "openai")
    output = " ".join(assay(*command, "--name", "no-model", code=2).output.split())
    assert (
        "the judge's API rejects the call: Http404: model or address not found; check judge.model and judge.base_url"
        in output
    )
    configure(tmp_path, monkeypatch, settings_toml(api.url, "wrong"))
    output = " ".join(assay(*command, "--name", "no-key", code=2).output.split())
    assert "the judge's API rejects the call: Http401: the key is refused; see judge.api_key" in output
    configure(tmp_path, monkeypatch, settings_toml(f"http://127.0.0.1:{free_port()}/v1", KEY))
    _, output = evaluated(assay, "nobody", code=1)
    assert f"  {CASES} without a verdict: no connection to the API (judge.base_url)\n" in output


def test_the_budget_holds_whatever_the_api_says_of_its_usage(assay: Assay, api: OpenAiServer) -> None:
    for place, usage in enumerate((None, {"prompt_tokens": 0, "completion_tokens": 0}, ...)):
        api.usage, before = usage, api.nano
        run, output = evaluated(assay, f"run-{place}", "--judge-budget", "0.015")
        assert 0 < api.nano - before <= 15_000_000
        left = CASES - run["metrics"]["faithfulness"]["n"]
        assert f"{left} skipped by the budget" in output


def test_a_model_of_ones_own_costs_nothing_and_needs_no_key(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.keys = set()
    free = settings_toml(api.url, price_input_usd=0, price_output_usd=0, json_mode="none")
    configure(tmp_path, monkeypatch, free)
    run, output = evaluated(assay, "free", "--judge-budget", "0")
    assert run["metrics"]["coverage"]["mean"] == 1.0
    assert "judged for $0.0000; 0 skipped" in output
    assert set(api.heard) == {None}


@pytest.mark.parametrize(
    ("text", "judge", "words"),
    [
        (
            'backend = "openai"\nbase_url = "URL"\nmodel = "m"\n',
            "openai",
            ("judge.price_input_usd", "judge.price_output_usd"),
        ),
        ('backend = "openai"\nbase_url = "URL"\n', "openai", ("judge.model",)),
        ('api_key = "k"\nbase_url = "URL"\n', "openai", ("judge.backend", "judge.base_url")),
        ('backend = "openai"\nbase_url = "URL"\nmodel = "m"\n', "anthropic", ("judge.backend", "openai")),
        (
            'backend = "openai"\nbase_url = "http://api.test/v1"\nmodel = "m"\napi_key = "k"\n',
            "openai",
            ("unencrypted",),
        ),
        ('backend = "openai-batch"\nmodel = "m"\n', "openai", ("batches",)),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_anything_is_asked(
    assay: Assay,
    api: OpenAiServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    judge: str,
    words: tuple[str, ...],
) -> None:
    configure(tmp_path, monkeypatch, "[judge]\n" + text.replace("URL", api.url))
    command = ("eval", "run", "--dataset", "golden.json", "--target", "openai_target:find", "--judge", judge)
    output = " ".join(assay(*command, code=2).output.split())
    assert all(word in output for word in words), output
    assert api.bodies == []


def test_cases_are_written_by_the_same_api(assay: Assay, api: OpenAiServer, tmp_path: Path) -> None:
    api.reply = reply
    (tmp_path / "passages.ndjson").write_text("\n".join(map(json.dumps, PASSAGES)))
    (tmp_path / "finding_target.py").write_text(
        f"def find(query, limit=10):\n    return [f'doc-{{topic}}' for topic in {TOPICS!r} if topic != 'logs']\n"
    )
    made = assay("dataset", "generate", "--from", "passages.ndjson", "--target", "finding_target:find")
    assert "doc-mail" in made.stdout
    assert {body["model"] for body in api.bodies} == {"local-judge"}
