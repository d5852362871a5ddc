"""`assay eval longmemeval` with models behind APIs over a real socket: who answers, who judges, what it costs, and what fails."""

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_evals.longmemeval.rows import Row
from assay_operations.evaluations import paid_calls
from assay_operations.evaluations.longmemeval_judge import Graded, Grader
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.longmemeval import rows, write
from tests.support.openai_server import OpenAiServer, settings_toml

Assay = Callable[..., Result]


def reply(document: dict[str, Any]) -> str:
    """Answer from sessions, or judge: correct is a response with the expected answer, or without one for abstention."""
    if "sessions" in document:
        thing = document["question"].rstrip("?").split()[-1]
        known = [each["text"] for each in document["sessions"] if f"my {thing} is" in each["text"]]
        return json.dumps({"answer": "It is blue." if known and not thing.endswith("_abs") else "I do not know it."})
    expected = document.get("expected_answer", document.get("rubric", "not know"))
    return json.dumps({"correct": "yes" if expected in document["response"] else "no"})


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiServer]:
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    with OpenAiServer(reply=reply) as server:
        yield server


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: OpenAiServer) -> Assay:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "lme.json", rows(12))
    configure(tmp_path, monkeypatch, settings_toml(api.url, KEY))

    def run(*arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, ["eval", "longmemeval", "lme.json", "--progress", "none", *arguments])
        assert found.exit_code == code, found.output
        return found

    return run


def configure(directory: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (directory / "judge.toml").write_text(text)
    (directory / "judge.toml").chmod(0o600)
    monkeypatch.setenv("ASSAY_CONFIG", str(directory / "judge.toml"))


def lines(path: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def summary() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out.jsonl.summary.json").read_text())
    return found


def spent(output: str) -> list[int]:
    """Return the reservations and settlements of a run, in nano-dollars."""
    return [json.loads(line)["nano"] for line in Path(f"{output}.judge.ndjson").read_text().splitlines()]


def documents(api: AnthropicServer) -> list[dict[str, Any]]:
    return [json.loads(body["messages"][-1]["content"]) for body in api.bodies]


def test_a_model_judges_the_memory_s_answers_by_the_criteria_of_their_type(assay: Assay, api: OpenAiServer) -> None:
    found = assay("--judge", "openai", "--output", "out.jsonl")
    assert len(api.bodies) == 12
    kinds = {tuple(sorted(each)) for each in documents(api)}
    assert kinds == {
        ("expected_answer", "question", "response"),
        ("question", "response", "rubric"),
        ("explanation", "question", "response"),
    }
    systems = {body["messages"][0]["content"] for body in api.bodies}
    assert len(systems) == 5, "plain, temporal, update, preference, abstention"
    assert all(each["autoeval_label"]["model"] == "local-judge" for each in lines())
    accuracy = summary()["accuracy"]
    assert (accuracy["overall"]["right"], accuracy["answerable"]["right"], accuracy["abstention"]["right"]) == (
        11,
        11,
        0,
    )
    assert "accuracy by local-judge; not comparable with published figures" in found.stdout
    assert f"models cost ${api.nano / 1e9:.4f}; 0 question(s) skipped by the budget" in found.stderr


def price(directory: Path, monkeypatch: pytest.MonkeyPatch, url: str, model: str, written: float = 0.5) -> None:
    """Give a model its own price, with a rules file."""
    config = yaml.safe_load(files("assay_judge").joinpath("rules.yaml").read_text())
    config["prices"]["models"][model] = {"input": 0.1, "output": written}
    (directory / "rules.yaml").write_text(yaml.safe_dump(config))
    configure(directory, monkeypatch, settings_toml(url, KEY, rules_file=str(directory / "rules.yaml")))


def test_a_model_that_answers_needs_its_own_price(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "'local-reader' has no price" in assay("--model", "local-reader", code=2).output
    price(tmp_path, monkeypatch, api.url, "local-reader", written=1_000)
    said = assay("--model", "local-reader", "--judge-budget", "1", "--output", "out.jsonl").stderr
    assert "12 question(s) skipped by the budget" in said  # one call may cost 4 dollars
    assert api.bodies == []


def test_a_model_of_another_name_answers_from_the_retrieved_sessions(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price(tmp_path, monkeypatch, api.url, "local-reader")
    assay("--judge", "openai", "--model", "local-reader", "--output", "out.jsonl", "--top-k", "2")
    by_model = {
        name: [body for body in api.bodies if body["model"] == name] for name in ("local-reader", "local-judge")
    }
    assert {name: len(bodies) for name, bodies in by_model.items()} == {"local-reader": 12, "local-judge": 12}
    for each in documents(api):
        if "sessions" in each:
            assert each["question_date"] == "2023/05/30 (Tue) 23:40"
            assert 1 <= len(each["sessions"]) <= 2
            assert each["sessions"][0]["date"].startswith("2023/05/")
    assert {each["hypothesis"] for each in lines()} == {"It is blue.", "I do not know it."}
    assert summary()["accuracy"]["overall"]["right"] == 12
    assert summary()["model"] == "local-reader"


def test_nothing_is_spent_above_the_budget_and_a_larger_one_judges_the_rest_without_asking_again(
    assay: Assay, api: OpenAiServer
) -> None:
    assay("--judge", "openai", "--output", "before.jsonl")
    entries = spent("before.jsonl")
    enough_for_some = max(entries) + 3 * sum(entries) // 12  # a call needs its upper bound first, and costs less
    api.bodies.clear()
    assay("--judge", "openai", "--judge-budget", "0", "--output", "out.jsonl")
    assert api.bodies == []
    assert (summary()["unjudged"], summary()["accuracy"]["overall"]["right"]) == (12, 0)
    assert {each["judge_error"] for each in lines()} == {"not judged: the budget is used up (--judge-budget)"}
    hypotheses = [each["hypothesis"] for each in lines()]
    assay("--judge", "openai", "--judge-budget", f"{enough_for_some / 1e9:.9f}", "--output", "out.jsonl", "--resume")
    some = len(api.bodies)
    assert 0 < some < 12
    assay("--judge", "openai", "--judge-budget", "1", "--output", "out.jsonl", "--resume")
    assert len(api.bodies) == 12, "each answer is judged once"
    assert [each["hypothesis"] for each in lines()] == hypotheses
    assert summary()["unjudged"] == 0
    assert sum(spent("before.jsonl")) + sum(spent("out.jsonl")) == api.nano


def test_answers_that_were_left_unjudged_are_judged_several_at_a_time(
    assay: Assay, api: OpenAiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("--judge", "openai", "--concurrency", "3", "--output", "out.jsonl")
    assay(*run, "--judge-budget", "0")
    at_once, most, label = 0, 0, Grader.label

    async def counted(self: Grader, row: Row, hypothesis: str) -> Graded:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await label(self, row, hypothesis)
        finally:
            at_once -= 1

    monkeypatch.setattr(Grader, "label", counted)
    api.latency_s = 0.05
    assay(*run, "--resume")
    assert most == 3, "as many as --concurrency"
    assert len(api.bodies) == 12
    assert summary()["unjudged"] == 0


def test_a_budget_for_one_call_at_a_time_suffices_for_all_questions(assay: Assay, api: OpenAiServer) -> None:
    """A reservation is much larger than the cost of a call: with several at once, the others wait for it."""
    assay("--judge", "openai", "--output", "before.jsonl")
    entries = spent("before.jsonl")
    budget = max(entries) + sum(entries)
    api.latency_s = 0.05
    assay("--judge", "openai", "--concurrency", "8", "--judge-budget", f"{budget / 1e9:.9f}", "--output", "out.jsonl")
    assert summary()["unjudged"] == 0
    assert budget < 2 * max(entries)


def test_a_question_whose_reading_failed_is_asked_again(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price(tmp_path, monkeypatch, api.url, "local-reader")
    api.reply = lambda document: "no JSON" if "sessions" in document else reply(document)
    assay("--model", "local-reader", "--output", "out.jsonl")
    assert {each["judge_error"] for each in lines()} == {"no answer by the model: ReplyMisfit"}
    assert summary()["accuracy"]["overall"] | {"low": 0, "high": 0} == {
        "right": 0, "total": 12, "rate": 0.0, "low": 0, "high": 0, "errors": 12, "without_errors": None,
    }  # fmt: skip
    assert summary()["recall"]["aggregate"]["hit"] == 11, "retrieval does not depend on the model"
    api.reply = reply
    assay("--model", "local-reader", "--output", "out.jsonl", "--resume")
    assert summary()["accuracy"]["overall"]["errors"] == 0


@pytest.mark.parametrize("said", ['{"correct": "perhaps"}', '{"grade": "yes"}', "[]", "", "maybe"])
def test_a_reply_that_is_no_label_is_an_error_of_the_judge(assay: Assay, api: OpenAiServer, said: str) -> None:
    api.reply = lambda _: said
    assay("--judge", "openai", "--limit", "2", "--output", "out.jsonl")
    assert summary()["unjudged"] == 2


@pytest.mark.parametrize("said", ["Yes.", "yes", '```json\n{"correct": "yes"}\n```', '{"correct": "yes"}'])
def test_a_reply_in_the_benchmark_s_own_form_is_a_label_too(assay: Assay, api: OpenAiServer, said: str) -> None:
    api.reply = lambda _: said
    assay("--judge", "openai", "--limit", "2", "--output", "out.jsonl")
    assert summary()["accuracy"]["overall"]["right"] == 2


def test_a_key_that_is_refused_ends_the_run_with_2(assay: Assay, api: OpenAiServer) -> None:
    api.keys = {"another"}
    found = assay("--judge", "openai", "--output", "out.jsonl", code=2)
    assert "the judge's API rejects the call" in found.output
    assert KEY not in found.output


def test_another_model_is_another_judge_and_does_not_continue_a_run(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assay("--judge", "openai", "--output", "out.jsonl")
    configure(tmp_path, monkeypatch, settings_toml(api.url, KEY, model="other-judge"))
    found = assay("--judge", "openai", "--output", "out.jsonl", "--resume", code=2)
    assert "was started with another --judge, or its model" in found.output
    assay("--judge", "openai", "--output", "other.jsonl", "--baseline", "out.jsonl")
    notes = json.loads(Path("other.jsonl.summary.json").read_text())["comparison"]["notes"]
    assert notes == ["accuracy is not compared: the baseline was judged by local-judge, this run by other-judge"]


def test_a_model_with_other_settings_does_not_continue_a_run_in_which_it_answers(
    assay: Assay, api: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("--model", "local-judge", "--judge", "lexical", "--output", "out.jsonl")
    assay(*run)
    assay(*run, "--resume")
    with OpenAiServer(reply=reply) as other:
        configure(tmp_path, monkeypatch, settings_toml(other.url, KEY))
        found = assay(*run, "--resume", code=2)
    assert "was started with another --model, or its settings" in found.output


def test_the_other_api_judges_as_well(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(reply=reply) as server:
        configure(tmp_path, monkeypatch, f'[judge]\napi_key = "{KEY}"\nbase_url = "{server.url}"\n')
        assay("--judge", "anthropic", "--output", "out.jsonl")
        assert len(server.bodies) == 12
    assert summary()["accuracy"]["overall"]["right"] == 11
    assert "has no price" in assay("--model", "unheard-of", "--output", "o.jsonl", code=2).output
