"""Gates: thresholds hold at their edge, errors breach, and nothing passes for want of rows."""

import json
from typing import Any

import pytest

from assay_evals.compare.verdicts import Verdict
from assay_evals.dataset.captured_rows import captured
from assay_evals.replay.baseline import Baseline, Thresholds
from assay_evals.replay.correctness import Correctness, Floors
from assay_evals.replay.gates import NOT_RUN, correctness_gate, gate_verdict, regression_gate
from assay_evals.replay.replay_metrics import RowResult, compare_row
from assay_evals.target.response import TargetResponse


def a_row(number: int, latency: float = 10.0) -> Any:
    record = {"schema_version": 1, "id": number, "tool_name": "query", "query": f"q{number}"}
    return captured(number, record | {"retrieved_slugs": ["a", "b"], "source_ids": [], "latency_ms": latency})


def baseline(rows: int = 100, latency: float = 10.0) -> Baseline:
    return Baseline("main", "t", Thresholds(), latency, "hash", [a_row(n, latency) for n in range(rows)])


def replayed(source: Baseline, *, worse: int = 0, ms: float = 10.0) -> list[RowResult]:
    answers = [TargetResponse(["z"] if n < worse else ["a", "b"], ms) for n in range(len(source.rows))]
    return [compare_row(row, answer) for row, answer in zip(source.rows, answers, strict=True)]


def gate(results: list[RowResult], thresholds: Thresholds | None = None) -> dict[str, Any]:
    return regression_gate(baseline(), results, thresholds or Thresholds(), path="main.ndjson")


def breaches(results: list[RowResult], thresholds: Thresholds | None = None) -> list[str]:
    return [breach["metric"] for breach in gate(results, thresholds)["breaches"]]


def undecided(results: list[RowResult], thresholds: Thresholds | None = None) -> list[str]:
    return [each["metric"] for each in gate(results, thresholds)["undecided"]]


def test_a_replay_that_did_not_move_passes() -> None:
    assert breaches(replayed(baseline())) == []


def test_what_moved_breaches_both_of_its_thresholds() -> None:
    assert breaches(replayed(baseline(), worse=35)) == ["mean_jaccard", "top1_stability_rate"]


def test_what_lies_close_to_a_threshold_is_undecided_and_says_how_many_rows_would_tell() -> None:
    for worse in (15, 20, 25):
        rows = replayed(baseline(), worse=worse)
        assert (breaches(rows, Thresholds(jaccard=0.8, top1=0.8)), undecided(rows, Thresholds(0.8, 0.8))) == (
            [],
            ["mean_jaccard", "top1_stability_rate"],
        )
    (found, _) = gate(replayed(baseline(), worse=15), Thresholds(jaccard=0.8, top1=0.8))["undecided"]
    assert found["interval"][0] < 0.8 < found["observed"] == 0.85 < found["interval"][1]
    assert 300 < found["cases_needed"] < 800


def test_few_rows_that_did_not_move_prove_little() -> None:
    few = replayed(baseline(rows=5))
    assert (breaches(few), undecided(few)) == ([], ["mean_jaccard", "top1_stability_rate"])
    assert undecided(replayed(baseline(rows=23))) == []


def test_that_every_row_must_be_the_same_is_decided_by_the_rows_that_were_asked() -> None:
    every = Thresholds(jaccard=1.0, top1=1.0)
    few = replayed(baseline(rows=5))
    assert (breaches(few, every), undecided(few, every)) == ([], [])
    assert breaches(replayed(baseline(rows=5), worse=1), every) == ["mean_jaccard", "top1_stability_rate"]


def scrubbed(number: int) -> Any:
    record = {**a_row(number).record, "query": f"mail [REDACTED] {number}", "pii_families": {"email": 1}}
    return captured(number, record)


def test_rows_that_personal_data_was_taken_out_of_are_counted_apart_and_decide_nothing() -> None:
    moved = [compare_row(scrubbed(number), TargetResponse(["z"], 10.0)) for number in range(60)]
    found = gate([*replayed(baseline()), *moved])
    assert (found["breaches"], found["undecided"]) == ([], [])
    assert (found["summary"]["rows_total"], found["summary"]["rows_scrubbed"]) == (160, 60)
    assert (found["summary"]["rows_replayed"], found["summary"]["mean_jaccard"]) == (100, 1.0)
    assert found["scrubbed"] == {"rows_replayed": 60, "mean_jaccard": 0.0, "top1_stability_rate": 0.0}
    failed = [RowResult(scrubbed(1), error="HTTP 503")]
    assert breaches([*replayed(baseline()), *failed]) == ["rows_errored"], "an error is one all the same"


@pytest.mark.parametrize(
    ("whole", "apart", "verdict"),
    [(1, 99, "inconclusive"), (49, 60, "inconclusive"), (50, 500, "pass"), (30, 30, "pass")],
)
def test_a_few_rows_do_not_speak_for_many_that_were_scrubbed(whole: int, apart: int, verdict: str) -> None:
    rows = replayed(baseline(rows=whole))
    rows += [compare_row(scrubbed(number), TargetResponse(["z"], 10.0)) for number in range(apart)]
    found = gate(rows)
    document = gate_verdict(found, NOT_RUN, inconclusive=Verdict.PASS)
    assert document["verdict"] == verdict
    assert ("rows_replayed" in [each["metric"] for each in found["undecided"]]) == (verdict != "pass")


def test_a_baseline_of_nothing_but_scrubbed_rows_neither_fails_nor_passes() -> None:
    found = gate([compare_row(scrubbed(number), TargetResponse(["z"], 10.0)) for number in range(49)])
    for counts_as, verdict in (
        (Verdict.INCONCLUSIVE, "inconclusive"),
        (Verdict.PASS, "inconclusive"),
        (Verdict.FAIL, "fail"),
    ):
        assert gate_verdict(found, NOT_RUN, inconclusive=counts_as)["verdict"] == verdict
    assert "personal data was removed from every row" in found["undecided"][0]["reason"]


@pytest.mark.parametrize(("ms", "expected"), [(20.0, []), (20.1, ["latency_multiplier"])])
def test_a_slower_target_breaches_above_its_multiple(ms: float, expected: list[str]) -> None:
    assert breaches(replayed(baseline(), ms=ms)) == expected


def test_a_baseline_without_latency_says_that_it_skips_that_check() -> None:
    source = baseline(latency=0.0)
    gate = regression_gate(source, replayed(source, ms=1e6), Thresholds(), path="x")
    assert (gate["latency_skipped"], gate["breaches"]) == (True, [])


def test_one_errored_row_is_a_breach_with_its_reason() -> None:
    source = baseline()
    results = [*replayed(source)[:-1], RowResult(source.rows[-1], error="HTTP 503")]
    gate = regression_gate(source, results, Thresholds(), path="x")
    assert gate["breaches"] == [{"metric": "rows_errored", "observed": 1, "threshold": 0, "error_tail": "99: HTTP 503"}]


def test_a_replay_of_nothing_is_a_breach() -> None:
    assert breaches([]) == ["rows_replayed"]


def test_one_skipped_row_is_a_breach() -> None:
    results = [*replayed(baseline())[:-1], RowResult(baseline().rows[-1], skip_reason="empty query")]
    assert breaches(results) == ["rows_skipped"]


def test_the_summary_says_how_sure_its_means_are() -> None:
    summary = regression_gate(baseline(), replayed(baseline(), worse=3), Thresholds(), path="x")["summary"]
    low, high = summary["mean_jaccard_interval"]
    assert low < summary["mean_jaccard"] < high
    assert summary["latency_p_value"] == 1.0


def test_both_gates_must_pass() -> None:
    passing = regression_gate(baseline(), replayed(baseline()), Thresholds(), path="x")
    failing = correctness_gate(Correctness(), Floors(), path="y")
    assert gate_verdict(passing, NOT_RUN)["verdict"] == "pass"
    assert gate_verdict(passing, failing)["verdict"] == "fail"
    document = json.loads(json.dumps(gate_verdict(NOT_RUN, failing)))
    assert (document["schema_version"], document["verdict"]) == (1, "fail")
    assert set(document) == {"schema_version", "verdict", "regression_gate", "correctness_gate"}


def test_intervals_of_shares_stay_between_0_and_1() -> None:
    source = baseline(rows=2)
    summary = regression_gate(source, replayed(source, worse=1), Thresholds(), path="x")["summary"]
    for name in ("mean_jaccard_interval", "top1_stability_rate_interval"):
        low, high = summary[name]
        assert 0 < low < 0.02 < 0.98 < high < 1, name
