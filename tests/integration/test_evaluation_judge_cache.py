"""Verdicts that were paid for once, and answers that are judged several times."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from tests.support.anthropic_server import KEY, AnthropicServer, verdict

CASES = 8
TARGET = """\
def find(query, limit=10):
    context = {"id": query, "text": f"The valve {query} opens at noon."}
    return {"results": [query], "answer": context["text"], "contexts": [context], "latency_ms": 1.0}
"""
Evaluate = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer() as server:
        yield server


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: AnthropicServer) -> Evaluate:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cached_target.py").write_text(TARGET)
    cases = [{"id": f"q{n}", "query": f"v{n}", "expected_ids": [f"v{n}"]} for n in range(CASES)]
    (tmp_path / "golden.json").write_text(json.dumps({"version": "1", "cases": cases}))
    (tmp_path / "judge.toml").write_text(f'[judge]\napi_key = "{KEY}"\nbase_url = "{api.url}"\n')
    (tmp_path / "judge.toml").chmod(0o600)
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "judge.toml"))

    def run(name: str, *more: str, code: int = 0) -> tuple[dict[str, Any], str]:
        command = ("eval", "run", "--dataset", "golden.json", "--target", "cached_target:find", "--judge", "anthropic")
        found: Result = CliRunner().invoke(app, [*command, "--name", name, "--progress", "none", *more])
        assert found.exit_code == code, found.output
        shown = CliRunner().invoke(app, ["eval", "show", name, "--json"])
        return (json.loads(shown.stdout) if shown.exit_code == 0 else {}), found.output

    return run


def test_what_was_paid_for_once_is_not_paid_again(evaluate: Evaluate, api: AnthropicServer) -> None:
    first, told = evaluate("one")
    assert f"0 of {CASES} verdicts reused, which saved $0.0000" in told
    paid = api.nano
    again, told = evaluate("two", "--judge-budget", "0")
    assert api.nano == paid
    assert (
        f"judged for $0.0000; 0 skipped by the budget, 0 without a verdict; {CASES} of {CASES} verdicts reused" in told
    )
    assert f"which saved ${paid / 1e9:.4f}" in told
    assert again["metrics"]["faithfulness"] == first["metrics"]["faithfulness"]
    assert first["judge_cache"] == {"hits": 0, "calls": CASES, "saved_usd": 0.0}
    kept = {"hits": CASES, "calls": CASES, "saved_usd": pytest.approx(paid / 1e9)}
    assert again["judge_cache"] == kept
    shown = CliRunner().invoke(app, ["eval", "show", "two"]).output
    assert f"judge cache: {CASES} of {CASES} verdicts reused" in shown
    resumed, _ = evaluate("two", "--resume")
    assert resumed["judge_cache"] == kept, "nothing was asked again"


def test_what_is_said_of_the_cache_in_a_file_that_somebody_changed_breaks_nothing(evaluate: Evaluate) -> None:
    evaluate("one")
    document = json.loads(Path("runs/one/run.json").read_text())
    for wrong in ({"calls": 3}, {"calls": "3", "hits": 1, "saved_usd": 0}, [], 7, None):
        Path("runs/one/run.json").write_text(json.dumps(document | {"judge_cache": wrong}))
        assert "judge cache" not in CliRunner().invoke(app, ["eval", "show", "one"]).output


def test_no_cache_is_read_or_written_where_none_is_wanted(evaluate: Evaluate, api: AnthropicServer) -> None:
    _, told = evaluate("one", "--no-judge-cache")
    assert "verdicts reused" not in told
    assert not Path("runs/.judge-cache").exists()
    evaluate("two", "--no-judge-cache")
    assert sorted(api.billed.values()) == [2] * CASES


def test_a_cache_that_somebody_else_made_gives_no_verdict(
    evaluate: Evaluate, api: AnthropicServer, tmp_path: Path
) -> None:
    api.keys.add("another-key")
    own = (tmp_path / "judge.toml").read_text()
    (tmp_path / "judge.toml").write_text(own.replace(KEY, "another-key"))
    evaluate("theirs")
    files = [path for path in Path("runs/.judge-cache").rglob("*") if path.is_file()]
    assert len(files) == CASES
    assert not any(b"valve" in path.read_bytes() for path in files)
    (tmp_path / "judge.toml").write_text(own)
    _, told = evaluate("ours")
    assert f"0 of {CASES} verdicts reused" in told
    assert sorted(api.billed.values()) == [2] * CASES


def test_a_cache_that_cannot_be_used_is_no_error(evaluate: Evaluate) -> None:
    Path("runs").mkdir()
    Path("runs/.judge-cache").write_text("not a folder")
    run, _ = evaluate("one")
    assert run["metrics"]["faithfulness"]["n"] == CASES


def test_repeats_are_paid_for_each_and_tell_how_far_the_judge_is_from_itself(
    evaluate: Evaluate, api: AnthropicServer
) -> None:
    def wavering(document: dict[str, Any]) -> str:
        said = json.loads(verdict(document))
        if document["question"] == "v0" and api.asked["v0"] == 2:
            said["claims"][0] |= {"verdict": "not_found", "evidence_quote": ""}
        return json.dumps(said)

    api.reply = wavering
    run, _ = evaluate("one", "--repeats", "4")
    assert sorted(api.billed.values()) == [4] * CASES
    assert run["config"]["options"] == {"repeats": 4}
    metrics = {name: found["mean"] for name, found in run["metrics"].items()}
    assert metrics["faithfulness"] == pytest.approx(1 - 0.25 / CASES)
    assert metrics["judge_noise_faithfulness"] == pytest.approx(0.5 / CASES)
    assert metrics["judge_noise_flips"] == pytest.approx(1 / CASES)
    paid = api.nano
    evaluate("two", "--repeats", "4", "--judge-budget", "0")
    assert api.nano == paid, "each repeat was kept"


@pytest.mark.parametrize("repeats", ["1", "11", "0"])
def test_repeats_have_bounds(evaluate: Evaluate, repeats: str) -> None:
    _, told = evaluate("one", "--repeats", repeats, code=2)
    assert "--repeats must be 2 to 10" in told
