"""Replays and gates as a notebook or a test calls them."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay_evals import evaluate, replay_captured, run_gate
from assay_evals.dataset.captured_rows import CapturedError, captured
from assay_evals.dataset.model import Case, Dataset
from assay_evals.dataset.qrels import KnownQuery
from assay_evals.dataset.scorer_specs import ScorerSpec
from assay_evals.errors import EvalsError
from assay_evals.metrics.scorers import Scoring
from assay_evals.replay.baseline import Thresholds, publish
from assay_evals.replay.correctness import Floors
from assay_evals.replay.replay_metrics import RowResult

ROWS = [
    captured(
        number,
        {
            "schema_version": 1, "id": number, "tool_name": "query", "query": f"q{number}",
            "retrieved_slugs": ["a", "b"], "source_ids": [], "latency_ms": 10,
        },
    )
    for number in range(1, 31)
]  # fmt: skip
KNOWN = [KnownQuery(f"k{number}", f"q{number}0", [("default", "a")], ("default", "a")) for number in range(12)]


def same(query: str) -> dict[str, Any]:
    return {"results": ["a", "b"], "latency_ms": 10}


def other(query: str) -> dict[str, Any]:
    return {"results": ["z"], "latency_ms": 10}


def broken(query: str) -> list[str]:
    if query == "q3":
        raise LookupError
    return ["a", "b"]


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "main.baseline.ndjson"
    path.write_text("\n".join(publish(ROWS, label="main", published_at="t", thresholds=Thresholds())))
    return path


def test_a_replay_counts_and_hands_on_every_row(baseline: Path) -> None:
    seen: list[RowResult] = []
    found = replay_captured(baseline, broken, on_result=seen.append)
    assert (found.rows_total, found.rows_errored, found.mean_jaccard) == (30, 1, 1.0)
    assert [each.row.query for each in seen if each.error] == ["q3"]
    assert replay_captured(iter(ROWS), other, limit=3).as_json()["mean_jaccard"] == 0.0


def test_a_gate_names_the_error_of_a_target_that_answers_nothing_and_not_that_of_a_scorer(baseline: Path) -> None:
    def dead(query: str) -> list[str]:
        raise ConnectionError

    found = run_gate(dead, baseline=baseline, qrels=KNOWN)
    assert found["verdict"] == "fail"
    assert found["error"].startswith("the target answered none of 42 questions, most often because of: ConnectionError")
    assert "error" not in run_gate(broken, baseline=baseline)
    scoring = Scoring([ScorerSpec(type="function", name="broken", value="operator:truediv")])
    unscored = run_gate(same, baseline=baseline, scoring=scoring)
    assert (unscored["verdict"], "error" in unscored) == ("fail", False)


def test_a_file_that_cannot_be_read_is_an_error_that_says_which(tmp_path: Path) -> None:
    missing, binary = tmp_path / "none", tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path, words in ((missing, "no file .*none"), (tmp_path, "is a folder"), (binary, "line 1 is not UTF-8 text")):
        for read in (
            lambda path=path: replay_captured(path, same),
            lambda path=path: run_gate(same, baseline=path),
            lambda path=path: run_gate(same, qrels=path),
            lambda path=path: evaluate(path, same, tmp_path / "runs", "r"),
        ):
            with pytest.raises(EvalsError, match=words):
                read()


def test_a_replay_of_what_is_no_row_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_text(json.dumps(ROWS[0].record) + "\n{]\n")
    with pytest.raises(CapturedError, match="line 2"):
        replay_captured(tmp_path / "rows.ndjson", same)


@pytest.mark.parametrize(("target", "verdict"), [(same, "pass"), (other, "fail"), (broken, "fail")])
def test_a_gate_gives_the_verdict_of_the_command(baseline: Path, target: Any, verdict: str) -> None:
    found = run_gate(target, baseline=baseline, qrels=KNOWN)
    assert found["verdict"] == verdict
    assert found["regression_gate"]["baseline_path"] == str(baseline)
    assert found["correctness_gate"]["ran"] is True


def test_thresholds_and_floors_of_a_call_win(baseline: Path) -> None:
    assert run_gate(other, baseline=baseline, thresholds=Thresholds(jaccard=0, top1=0))["verdict"] == "pass"
    assert run_gate(other, qrels=KNOWN, floors=Floors(0, 0, 0))["verdict"] == "pass"


def test_a_gate_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="passes everything"):
        run_gate(same)
    with pytest.raises(ValueError, match="passes everything"):
        run_gate(same, qrels=[])


async def test_they_run_where_a_loop_is_running_already_as_in_a_notebook(baseline: Path, tmp_path: Path) -> None:
    assert run_gate(same, baseline=baseline)["verdict"] == "pass"
    assert replay_captured(baseline, same).mean_jaccard == 1.0
    dataset = Dataset(cases=[Case(id="a", query="q", expected_ids=["a"])])
    assert evaluate(dataset, same, tmp_path, "run").summary()["mrr"].mean == 1.0
