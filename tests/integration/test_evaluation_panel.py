"""`assay eval cross-modal` with judges of three families over real sockets: verdicts, budget, failures, cache, usage errors."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_operations.evaluations import paid_calls
from tests.support.anthropic_server import KEY
from tests.support.panel import Panel, scores

Assay = Callable[..., Result]


@pytest.fixture
def panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Panel]:
    monkeypatch.setattr(paid_calls, "RETRY_S", 0.0)
    monkeypatch.setattr(paid_calls, "PAUSE_MOST_S", 0.0)
    monkeypatch.setenv("PANEL_TEST_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield Panel(tmp_path, stack)


def cross_modal(panel: Panel, *options: str, code: int) -> dict[str, Any]:
    arguments = [
        "eval",
        "cross-modal",
        "--batch",
        "answers.jsonl",
        "--panel",
        "panel.toml",
        "--json",
        "--progress",
        "none",
    ]
    found = CliRunner().invoke(app, [*arguments, *options])
    assert found.exit_code == code, found.output
    summary: dict[str, Any] = json.loads(found.stdout)
    return summary


def refused(*options: str) -> str:
    found = CliRunner().invoke(app, ["eval", "cross-modal", *options])
    assert found.exit_code == 2, found.output
    return found.output


def test_every_answer_passes_with_three_families_and_the_cost_is_what_the_apis_billed(panel: Panel) -> None:
    panel.answers("9/8", "7", "10/7")
    summary = cross_modal(panel, "--output", "summary.json", code=0)
    assert (summary["verdict"], summary["pass"], summary["total"]) == ("pass", 3, 3)
    assert json.loads((panel.directory / "summary.json").read_text()) == summary
    assert (panel.directory / "summary.json").stat().st_mode & 0o077 == 0, "reasons quote answers"
    assert [len(each["scores"]) for each in summary["per_question"]] == [3, 3, 3]
    assert panel.asked == 9
    billed = sum(panel.openai.billed.values())
    assert billed == 3
    assert summary["cost_usd_by_family"]["local"] == 0
    assert summary["cost_usd"] == pytest.approx(sum(summary["cost_usd_by_family"].values()))
    assert 0 < summary["cost_usd"] < 5
    assert [slot["family"] for slot in summary["slots"]] == ["anthropic", "openai", "local"]


def test_one_failed_answer_is_exit_code_1_and_named_in_the_text(panel: Panel) -> None:
    panel.answers("9", "9/4")
    assert cross_modal(panel, code=1)["verdict"] == "fail"
    said = CliRunner().invoke(app, ["eval", "cross-modal", "--batch", "answers.jsonl", "--panel", "panel.toml"])
    assert said.exit_code == 1
    assert "fail: 1 pass, 1 fail" in said.output
    assert "q1: fail; correctness 9.00, directness 4.00" in said.output
    assert "pass rate 50.0% of 2 (95 % interval" in said.output


def test_a_judge_that_cannot_be_used_leaves_a_verdict_of_the_two_others(panel: Panel) -> None:
    panel.anthropic.keys = set()
    panel.answers("9", "9", "9", "9")
    summary = cross_modal(panel, "--concurrent", "1", code=0)
    assert summary["pass"] == 4
    assert all("anthropic/claude-haiku-5-5" in each["errors"] for each in summary["per_question"])
    assert panel.anthropic.ended["401"] == 1  # and is not asked again
    assert summary["cost_usd_by_family"]["anthropic"] == 0


def test_one_family_alone_gives_no_verdict_and_the_rest_is_not_asked(panel: Panel) -> None:
    panel.anthropic.keys = set()
    panel.openai.keys = {"another"}
    panel.answers("9", "9", "9")
    summary = cross_modal(panel, "--concurrent", "1", code=2)
    assert (summary["inconclusive"], summary["error"], summary["verdict"]) == (1, 2, "error")
    assert sum(panel.local.asked.values()) == 1
    assert summary["pass_rate"] is None


@pytest.mark.parametrize("mark", ["[malformed]", "[truncate]", "[refuse]", "[cut]", "[half]", "[fail:529]"])
def test_replies_that_are_no_scores_are_inconclusive_and_what_was_billed_is_counted(panel: Panel, mark: str) -> None:
    panel.answers("9", mark=mark)
    summary = cross_modal(panel, code=2)
    assert summary["inconclusive"] == 1
    assert len(summary["per_question"][0]["errors"]) == 3
    assert (summary["cost_usd"] > 0) == (mark != "[fail:529]")
    assert summary["verdict"] == "inconclusive"


def test_an_error_that_passes_is_asked_again(panel: Panel) -> None:
    panel.answers("9", mark="[once:fail:429]")
    assert cross_modal(panel, code=0)["pass"] == 1
    assert panel.asked == 6


def test_the_budget_is_never_exceeded_and_what_is_judged_is_a_random_part(panel: Panel) -> None:
    panel.answers(*["9"] * 40)
    whole = cross_modal(panel, "--limit", "40", "--no-judge-cache", code=0)
    cap = whole["cost_usd"] / 2
    part = cross_modal(panel, "--limit", "40", "--no-judge-cache", "--yes", "--max-usd", f"{cap:.9f}", code=2)
    assert part["cost_usd"] <= cap
    assert part["unjudged"] > 0
    assert part["pass"] > 0
    assert part["pass"] + part["unjudged"] == 40
    assert (part["verdict"], part["coverage"]) == ("inconclusive", part["pass"] / 40)
    judged = [int(each["question_id"][1:]) for each in part["per_question"] if each["verdict"] == "pass"]
    assert judged != sorted(judged)


def test_parallel_calls_wait_for_what_others_reserved_instead_of_giving_up(panel: Panel) -> None:
    """Three calls reserve more than the budget together, but cost less: all answers are judged."""
    panel.answers("9", "9", "9")
    cost = cross_modal(panel, "--no-judge-cache", code=0)["cost_usd"]
    panel.write(prices="price_input_usd = 0.1\nprice_output_usd = 0.5\nmax_output_tokens = 32000\n")
    again = cross_modal(panel, "--no-judge-cache", "--yes", "--max-usd", f"{cost + 0.017:.6f}", code=0)
    assert again["pass"] == 3
    assert again["cost_usd"] == pytest.approx(cost, rel=0.05)


def test_no_money_at_all_judges_nothing(panel: Panel) -> None:
    panel.answers("9")
    summary = cross_modal(panel, "--max-usd", "0", "--yes", code=2)
    assert (summary["unjudged"], summary["cost_usd"], sum(panel.anthropic.asked.values())) == (1, 0, 0)


def test_a_second_run_pays_for_no_reply_again(panel: Panel) -> None:
    panel.answers("9", "8")
    first = cross_modal(panel, "--cycles", "2", code=0)
    assert panel.asked == 2 * 2 * 3
    again = cross_modal(panel, "--cycles", "2", code=0)
    assert [sum(server.asked.values()) for server in panel.servers] == [4, 4, 8]  # without a key nothing is cached
    assert again["cost_usd"] == 0
    assert again["per_question"] == first["per_question"]


def test_errors_of_the_run_before_are_an_error_and_its_summary_is_no_question(panel: Panel) -> None:
    path = panel.answers("9", "9")
    with path.open("a") as file:
        file.write(json.dumps({"question_id": "q8", "question": "?", "hypothesis": "", "error": "timeout"}) + "\n")
        file.write(json.dumps({"schema_version": 1, "kind": "by_type_summary", "aggregate": {}}) + "\n")
    summary = cross_modal(panel, code=2)
    assert (summary["verdict"], summary["pass"], summary["upstream_error"], summary["total"]) == ("error", 2, 1, 3)


def test_self_preference_is_reported_where_the_family_of_the_answers_is_known(panel: Panel) -> None:
    panel.openai.reply = lambda document: scores(document | {"answer": "10"})
    panel.answers("7", "7")
    summary = cross_modal(panel, "--answers-by", "openai", code=0)
    assert summary["self_preference"]["openai"]["own"] == 3
    assert summary["self_preference"]["anthropic"]["others"] == -1.5
    assert "openai" not in json.dumps([body["messages"] for body in panel.anthropic.bodies])


def test_a_relative_key_file_is_in_the_folder_of_the_panel_file(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.answers("9")
    panel.write(key_file="key")
    (panel.directory / "elsewhere").mkdir()
    monkeypatch.chdir(panel.directory / "elsewhere")
    options = ("--batch", "../answers.jsonl", "--panel", "../panel.toml", "--json", "--progress", "none")
    found = CliRunner().invoke(app, ["eval", "cross-modal", *options])
    assert found.exit_code == 0, found.output
    assert sum(panel.anthropic.asked.values()) == 1


def test_usage_errors_name_what_is_wrong_and_call_nobody(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    panel.answers("9")
    usual = ("--batch", "answers.jsonl", "--panel", "panel.toml")
    for options, problem in (
        (("--batch", "none.jsonl", "--panel", "panel.toml"), "no file none.jsonl"),
        (("--batch", "answers.jsonl", "--panel", "none.toml"), "no file none.toml"),
        ((*usual, "--limit", "0"), "--limit must be 1 or more"),
        ((*usual, "--cycles", "4"), "--cycles must be 1 to 3"),
        ((*usual, "--concurrent", "0"), "--concurrent must be 1 to 32"),
        ((*usual, "--max-usd", "nan"), "--max-usd"),
        ((*usual, "--max-usd", "-1"), "--max-usd: below 0"),
        ((*usual, "--max-usd", "lots"), "not a number"),
        ((*usual, "--max-usd", "0.00001"), "pass --yes"),
        ((*usual, "--output", "none/summary.json"), "no folder none"),
        ((*usual, "--output", "x" * 254), "too long"),
        ((*usual, "--output", "."), "is a folder"),
        (usual[:2], "--panel"),
    ):
        assert problem in " ".join(refused(*options).split()), options
    monkeypatch.delenv("PANEL_TEST_KEY")
    assert "the environment has no PANEL_TEST_KEY" in " ".join(refused(*usual).split())
    monkeypatch.setenv("PANEL_TEST_KEY", KEY)
    panel.write(prices="")
    said = " ".join(refused(*usual).split())
    assert "openai/judge-2" in said  # a model without a price cannot be capped
    assert "set price_input_usd and price_output_usd" in said
    assert "ASSAY_JUDGE_PRICE" not in said
    panel.write(key_file="none")
    said = " ".join(refused(*usual).split())
    assert "cannot read the file in api_key_file" in said
    assert "ASSAY_JUDGE" not in said
    Path("answers.jsonl").write_text("\n")
    assert "no question in the file" in refused(*usual)
    assert panel.asked == 0
