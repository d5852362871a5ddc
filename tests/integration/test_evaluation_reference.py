"""Answers and passages held against the expected answer by the judge's model: in its budget, with its cache, beside its own verdicts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.anthropic_server import KEY, AnthropicServer, verdict
from tests.support.assay_command import Assay, assay_in, write_cases, write_target
from tests.support.openai_server import OpenAiServer

METRICS = ("correctness", "reference_contradicted", "context_recall", "context_precision")
#: The target's one passage is "a text".
CASES = [
    {"expected_answer": "The valve opens. This is a text."},
    {"expected_answer": "The valve closes."},
    {"expected_answer": "Something else."},
    {},
    {"expected_answer": "Nobody knows.", "query_type": "null", "expected_ids": []},
]
ANSWERS = {
    "q0": "The valve opens.",
    "q1": "Not: The valve closes.",
    "q2": "I do not know.",
    "q3": "It is red.",
    "q4": "Blue.",
}


def compared(document: dict[str, Any]) -> str:
    """The judge's verdicts, and to a reference what a reader of words alone would say."""
    if "reference" not in document:
        return verdict(document)
    statements = []
    for each in document["reference"]:
        said = each["text"] in document["answer"]
        negated = said and document["answer"].startswith("Not")
        evidence = [
            {"passage": passage["id"], "quote": passage["text"]}
            for passage in document["passages"]
            if passage["text"] in each["text"]
        ]
        statements.append(
            {
                "id": each["id"],
                "answer_quote": each["text"] if said else "",
                "in_answer": "contradicted" if negated else "said" if said else "missing",
                "evidence": evidence,
            }
        )
    return json.dumps({"statements": statements})


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer(reply=compared) as server:
        yield server


def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    file = tmp_path / "judge.toml"
    file.write_text("\n".join(["[judge]", f'api_key = "{KEY}"', *lines]))
    file.chmod(0o600)
    monkeypatch.setenv("ASSAY_CONFIG", str(file))


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: AnthropicServer) -> Assay:
    settings(tmp_path, monkeypatch, f'base_url = "{api.url}"')
    write_cases(tmp_path / "d.jsonl", CASES)
    return assay_in(tmp_path, monkeypatch)


def command(tmp_path: Path, name: str, judge: str = "anthropic") -> list[str]:
    target = write_target(tmp_path, ANSWERS, f"target_of_{tmp_path.name.replace('-', '_')}")
    return [
        *("eval", "run", "--dataset", "d.jsonl", "--target", target, "--name", name, "--judge", judge),
        *("--progress", "none"),
    ]


def run(assay: Assay, tmp_path: Path, name: str, *more: str, judge: str = "anthropic", code: int = 0) -> dict[str, Any]:
    assay(*command(tmp_path, name, judge), "--reference", *more, code=code)
    found: dict[str, Any] = json.loads(assay("eval", "show", name, "--json").stdout)
    return found


def values(found: dict[str, Any]) -> dict[str, tuple[float | None, ...]]:
    """By case, its four metrics; without those that have none of them."""
    return {
        each["case_id"]: tuple(each["metrics"][name] for name in METRICS)
        for each in found["results"]
        if METRICS[0] in each["metrics"]
    }


EXPECTED = {"c0": (0.5, 0.0, 0.5, 1.0), "c1": (0.0, 1.0, 0.0, 0.0), "c2": (0.0, 0.0, 0.0, 0.0)}


def asked(api: AnthropicServer) -> int:
    return sum("reference" in json.loads(body["messages"][-1]["content"]) for body in api.bodies)


def test_cases_with_an_expected_answer_have_four_more_metrics(
    assay: Assay, tmp_path: Path, api: AnthropicServer
) -> None:
    found = run(assay, tmp_path, "one")
    assert values(found) == EXPECTED
    assert asked(api) == 3, "neither where nothing is expected, nor where there is no answer to expect"
    assert found["metrics"]["correctness"]["n"] == 3


def test_a_run_without_it_is_judged_as_ever(assay: Assay, tmp_path: Path, api: AnthropicServer) -> None:
    assay(*command(tmp_path, "plain"))
    plain = json.loads(assay("eval", "show", "plain", "--json").stdout)
    assert asked(api) == 0
    assert not set(METRICS) & plain["metrics"].keys()
    found = run(assay, tmp_path, "one")
    assert found["config"]["judge"] == plain["config"]["judge"]
    assert {name: value for name, value in found["metrics"].items() if name not in METRICS} == plain["metrics"]
    assert "not measured alike" not in assay("eval", "compare", "plain", "one", code=3).output


def test_it_informs_unless_a_team_has_it_block(assay: Assay, tmp_path: Path, api: AnthropicServer) -> None:
    run(assay, tmp_path, "one")
    api.reply = lambda document: compared(document | ({"answer": ""} if "reference" in document else {}))
    run(assay, tmp_path, "two", "--no-judge-cache")
    told = json.loads(assay("eval", "compare", "one", "two", "--json", code=3).stdout)  # five cases exclude no harm
    stages = {each["metric"]: each["rule"]["stage"] for each in told["metrics"]}
    assert {stages[name] for name in METRICS} == {"informational"}
    (tmp_path / "rules.toml").write_text("[metrics.correctness]\nfloor = 0.9\nstage = 'block'\n")
    output = assay(*command(tmp_path, "three"), "--reference", "--rules", "rules.toml", code=1).output
    assert "floor" in output
    assert "correctness" in output


def test_what_was_paid_for_once_is_kept(assay: Assay, tmp_path: Path, api: AnthropicServer) -> None:
    run(assay, tmp_path, "one")
    paid = api.nano
    assert values(run(assay, tmp_path, "two", "--judge-budget", "0")) == EXPECTED
    assert api.nano == paid


def test_what_the_budget_does_not_reach_has_no_value_and_is_asked_later(assay: Assay, tmp_path: Path) -> None:
    found = run(assay, tmp_path, "one", "--judge-budget", "0")
    assert set(values(found).values()) == {(None,) * 4}, "not a 0, which would be the answer's fault"
    assert values(run(assay, tmp_path, "one", "--judge-budget", "1", "--resume")) == EXPECTED


def test_a_bad_reply_costs_these_metrics_and_no_others(assay: Assay, tmp_path: Path, api: AnthropicServer) -> None:
    api.reply = lambda document: "{}" if "reference" in document else verdict(document)
    output = assay(*command(tmp_path, "one"), "--reference").output
    found = json.loads(assay("eval", "show", "one", "--json").stdout)
    assert set(values(found).values()) == {(None,) * 4}
    assert "3 without a verdict" in output
    assert found["metrics"]["coverage"]["n"] == 4
    assert found["metrics"]["faithfulness"]["n"] == 5
    api.reply = compared
    assert values(run(assay, tmp_path, "one", "--resume")) == EXPECTED


def test_repeats_are_averaged_and_their_noise_is_told(assay: Assay, tmp_path: Path, api: AnthropicServer) -> None:
    said: dict[str, int] = {}

    def wavering(document: dict[str, Any]) -> str:
        if "reference" in document:
            said[document["question"]] = said.get(document["question"], 0) + 1
            if said[document["question"]] % 2:
                return compared(document | {"answer": ""})
        return compared(document)

    api.reply = wavering
    found = run(assay, tmp_path, "one", "--repeats", "2")
    assert values(found)["c0"] == (0.25, 0.0, 0.5, 1.0)
    assert found["metrics"]["judge_noise_correctness"]["mean"] > 0
    assert found["metrics"]["judge_noise_flips"]["mean"] == 0, "of the judge's own verdicts, which do not waver"


def test_the_other_api_is_asked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAiServer(reply=compared) as server:
        lines = ('backend = "openai"', f'base_url = "{server.url}"', 'model = "small"')
        settings(tmp_path, monkeypatch, *lines, "price_input_usd = 0.1", "price_output_usd = 0.4")
        write_cases(tmp_path / "d.jsonl", CASES)
        assert values(run(assay_in(tmp_path, monkeypatch), tmp_path, "one", judge="openai")) == EXPECTED


def test_it_needs_a_model_and_something_that_is_expected(assay: Assay, tmp_path: Path) -> None:
    target = command(tmp_path, "one")[:-4]
    for more in ((), ("--judge", "lexical")):
        assert "--judge anthropic or openai" in assay(*target, "--reference", *more, code=2).output
    write_cases(tmp_path / "d.jsonl", [{}])
    assert "no case has an expected_answer" in assay(*target, "--judge", "anthropic", "--reference", code=2).output
    assert not (tmp_path / "runs/one").exists()


def test_a_blank_answer_says_nothing_of_what_is_expected(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: AnthropicServer
) -> None:
    monkeypatch.setitem(ANSWERS, "q0", " ")
    found = run(assay, tmp_path, "one")
    case = next(each["metrics"] for each in found["results"] if each["case_id"] == "c0")
    assert (case["correctness"], case["reference_contradicted"]) == (0.0, 0.0)
    assert asked(api) == 2
