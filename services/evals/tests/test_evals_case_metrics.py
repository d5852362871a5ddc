"""Metrics of one case beyond its ranks: when each applies, and what it comes to."""

from datetime import UTC, datetime
from typing import Any

import pytest

from assay_evals.compare.compare_runs import compare_runs
from assay_evals.compare.verdicts import Rule, Stage, Verdict
from assay_evals.dataset.file_format import read_dataset
from assay_evals.dataset.model import Case, TimeWindow
from assay_evals.metrics.case_metrics import answer_f1, case_metrics
from assay_evals.report.changes import metric_changes
from assay_evals.report.wording import meaning
from assay_evals.run.case_results import case_result, score
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.target.response import ResultMetadata, TargetResponse
from assay_evals.target.response_parsing import parse_response
from assay_ui.forest import changes_drawn

FEBRUARY = {"since": "2026-02-01", "until": "2026-03-01"}
CONFIG = RunConfig("golden", "1", "f", "module:function")


def a_case(**fields: Any) -> Case:
    return Case.model_validate({"id": "c", "query": "q", "expected_ids": ["x", "y"]} | fields)


def measured(case: Case, hits: list[Any], **more: Any) -> dict[str, float]:
    return case_metrics(case, parse_response({"results": hits, **more}, 1.0), depth=10)


def found(slug: str, **facts: Any) -> dict[str, Any]:
    return {"slug": slug, **facts}


@pytest.mark.parametrize(
    ("expected", "answer", "f1"),
    [
        ("Paris", "paris.", 1.0),
        ("the Eiffel Tower", "Eiffel tower!", 1.0),
        ("in 1889", "1889", 2 / 3),
        ("a b b c", "b b d", 2 * 2 / (3 + 3)),  # the article falls
        ("blue", "red", 0.0),
        ("", "", 1.0),
        ("the", "blue", 0.0),
        ("blue", "", 0.0),
        ("“Ätna” – Sizilien", "ätna sizilien", 1.0),
        ("don't", "dont", 1.0),
        ("theatre", "theatre", 1.0),
    ],
)
def test_an_answer_scores_by_the_words_it_shares(expected: str, answer: str, f1: float) -> None:
    assert answer_f1(expected, answer) == pytest.approx(f1)
    assert answer_f1(answer, expected) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("expected", "given", "value"),
    [("Paris", "Paris", 1.0), ("Paris", "", 0.0), ("Paris", None, None), (None, "Paris", None)],
)
def test_an_answer_is_scored_where_one_is_expected_and_one_is_given(
    expected: str | None, given: str | None, value: float | None
) -> None:
    found = measured(a_case(expected_answer=expected), ["x"], answer=given)
    assert found == ({} if value is None else {"answer_f1": value})


def test_a_target_without_answers_is_not_held_to_what_answers_should_say() -> None:
    case = a_case(required_citations=["x"], required_entities=["Paris"])
    assert measured(case, ["x"]) == {}
    assert measured(case, ["x"], answer="") == {"required_citations": 0.0, "required_entities": 0.0}
    assert measured(case, ["x"], citations=["x"]) == {"required_citations": 1.0}


def test_results_count_that_are_of_the_time_that_was_asked_for() -> None:
    case = a_case(time_window=FEBRUARY)
    hits = [
        found("x", time="2026-02-01T00:00:00Z"),  # the first moment is inside
        found("y", time="2026-03-01"),  # the last is not
        found("z", time="2026-02-28T23:30:00-05:00"),  # March in UTC
        found("w", time=datetime(2026, 2, 5, tzinfo=UTC).timestamp()),
        found("v"),  # of no known time
    ]
    assert measured(case, hits) == {"temporal_accuracy": pytest.approx(2 / 5)}
    assert measured(case, hits[:1]) == {"temporal_accuracy": 1.0}
    assert measured(a_case(time_window={"since": "2026-02-20"}), hits) == {"temporal_accuracy": pytest.approx(2 / 5)}


def test_results_count_that_concern_whom_was_asked_about() -> None:
    case = a_case(expected_actors=["Sarah  Chen", "bob"])
    hits = [found("x", actors="sarah chen"), found("y", actors=["Alice", "BOB"]), found("z", actors="Al"), found("w")]
    assert measured(case, hits) == {"actor_attribution": 0.5}


def test_a_path_is_credited_with_the_relevant_documents_that_it_found() -> None:
    hits = [
        found("x", found_by=["vector", "entity"]),
        found("other", found_by="actor"),  # not relevant
        found("y", found_by="vector"),
    ]
    assert measured(a_case(), hits) == {"path:entity": 0.5, "path:vector": 1.0}


def test_a_document_that_comes_back_twice_counts_once_with_all_that_is_said_of_it() -> None:
    case = a_case(time_window=FEBRUARY, expected_actors=["bob"])
    hits = [
        found("x", found_by="vector", actors="al"),
        found("x", found_by="entity", actors="bob", time="2026-02-03"),
        found("z", time="2025-01-01"),
    ]
    assert measured(case, hits) == {
        "temporal_accuracy": 0.5, "actor_attribution": 0.5, "path:entity": 1.0, "path:vector": 1.0,
    }  # fmt: skip


def test_the_same_slug_of_another_source_has_facts_of_its_own() -> None:
    case = a_case(expected_ids=["wiki::x"], time_window=FEBRUARY)
    hits = [
        found("x", source_id="mail", time="2025-01-01", found_by="vector"),
        found("x", source_id="wiki", time="2026-02-03", found_by="entity"),
    ]
    assert measured(case, hits) == {"temporal_accuracy": 0.5, "path:entity": 1.0}


def test_only_results_before_the_deepest_cut_off_count() -> None:
    answer = parse_response([found("x", time="2026-02-03"), found("z", time="2025-01-01")], 1.0)
    assert case_metrics(a_case(time_window=FEBRUARY), answer, depth=1) == {"temporal_accuracy": 1.0}


@pytest.mark.parametrize(
    ("fields", "hits"),
    [
        ({"time_window": FEBRUARY, "expected_actors": ["bob"]}, []),  # nothing came back
        ({"time_window": FEBRUARY, "expected_actors": ["bob"]}, ["x", "y"]),  # the target says neither
        (
            {"time_window": FEBRUARY},
            [found("x", time="yesterday"), found("y", time=float("nan")), found("z", time=True)],
        ),
        ({}, [found("x", time="2026-02-03", actors="bob")]),  # the case asks for neither
        ({}, [found("other", found_by="vector")]),  # nothing relevant came back
        ({}, [found("x", found_by=["a name with spaces", "", 3, "x" * 40])]),
        ({"query_type": "null", "expected_ids": [], "time_window": FEBRUARY}, [found("x", time="2026-02-03")]),
    ],
)
def test_a_metric_that_does_not_apply_is_absent(fields: dict[str, Any], hits: list[Any]) -> None:
    assert measured(a_case(**fields), hits) == {}


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ({}, "since, until, or both"),
        ({"since": "2026-03-01", "until": "2026-02-01"}, "before"),
        ({"from": "2026-03-01"}, "from"),
        ({"since": "soon"}, "since"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(window: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TimeWindow.model_validate(window)


def test_a_dataset_without_the_later_fields_has_the_fingerprint_it_always_had() -> None:
    text = (
        '{"record":"dataset","version":"1.0.0"}\n'
        '{"id":"a","query":"q","expected_ids":["x"],"notes":"n"}\n'
        '{"id":"n","query":"none","query_type":"null"}\n'
    )
    dataset = read_dataset(text)
    assert dataset.fingerprint == "57f40b8db370888f763cf93bc42790a4fd734d0d9e06978ca65e2ec2042a93d5"
    later = [case.model_copy(update={"time_window": TimeWindow.model_validate(FEBRUARY)}) for case in dataset.cases]
    assert dataset.model_copy(update={"cases": later}).fingerprint != dataset.fingerprint


def a_run(name: str, hits: list[list[Any]], cases: list[Case]) -> Run:
    answers = [parse_response(each, 1.0) for each in hits]
    rows = score(cases, answers, CONFIG)
    results = [case_result(case, answer, row, 1) for case, answer, row in zip(cases, answers, rows, strict=True)]
    return Run(name, CONFIG, "2026-11-22T00:00:00+00:00", None, results)


def test_a_path_that_found_nothing_of_a_case_counts_0_where_others_did() -> None:
    cases = [a_case(id="a"), a_case(id="b"), a_case(id="c")]
    run = a_run("r", [[found("x", found_by="vector")], [found("x", found_by="entity")], ["x"]], cases)
    assert {name: each.mean for name, each in run.summary().items() if name.startswith("path:")} == {
        "path:vector": 0.5, "path:entity": 0.5,
    }  # fmt: skip
    assert run.results[2].value("path:vector") is None, "how this one was found is not known"


def test_they_inform_and_stop_nothing_unless_a_team_says_so() -> None:
    cases = [a_case(id=f"c{n}", time_window=FEBRUARY, expected_answer="Paris") for n in range(80)]
    good = [[found("x", time="2026-02-03", found_by="vector")]] * 80
    late = [[found("x", time="2026-05-03", found_by="entity")]] * 80
    before, after = a_run("main", good, cases), a_run("change", late, cases)
    paired = compare_runs(before, after)
    by_name = {each.metric: each for each in paired.comparison.metrics}
    assert paired.comparison.verdict() is Verdict.PASS
    assert by_name["temporal_accuracy"].verdict is Verdict.FAIL
    assert (by_name["path:vector"].delta, by_name["path:entity"].delta) == (-1.0, 1.0)
    assert by_name["path:vector"].verdict is Verdict.PASS
    blocking = compare_runs(before, after, rules={"temporal_accuracy": Rule(0.05, stage=Stage.BLOCK)})
    assert blocking.comparison.verdict() is Verdict.FAIL


def test_a_change_of_paths_is_reported_and_is_neither_better_nor_worse() -> None:
    cases = [a_case(id=f"c{n}") for n in range(40)]
    one = a_run("main", [[found("x", found_by="vector"), found("y", found_by="entity")]] * 40, cases)
    other = a_run("change", [[found("x", found_by="vector"), found("y", found_by=["vector", "entity"])]] * 40, cases)
    compared = compare_runs(one, other)
    metrics = {each.metric: each for each in compared.comparison.metrics}
    assert metrics["path:vector"].verdict is metrics["path:entity"].verdict is Verdict.PASS
    assert meaning(metrics["path:vector"]) == "statistically significant change"
    assert meaning(metrics["path:entity"]) == "no significant change"
    assert "path:" not in changes_drawn(metric_changes(compared))


def test_a_slug_may_hold_the_separator_of_sources() -> None:
    hits = [found("std::map", source_id="cpp"), found("std::vector", source_id="cpp"), found("std::vector")]
    plain = a_case(expected_ids=["std::vector"])
    sourced = a_case(expected_ids=["cpp::std::vector"])
    answer = parse_response(hits, 1.0)
    assert score([plain], [answer], CONFIG)[0]["mrr"] == score([sourced], [answer], CONFIG)[0]["mrr"] == 0.5
    assert case_result(plain, answer, {}, 1).retrieved == ["cpp::std::map", "std::vector"]
    assert case_result(sourced, answer, {}, 1).retrieved == ["cpp::std::map", "cpp::std::vector", "std::vector"]


def test_times_of_a_function_may_be_without_a_zone_or_beyond_all_calendars() -> None:
    case = a_case(time_window=FEBRUARY)
    naive = TargetResponse(["x"], 1.0, metadata=[ResultMetadata(time=datetime(2026, 2, 3))])  # noqa: DTZ001  # what somebody may return
    assert case_metrics(case, naive, 10) == {"temporal_accuracy": 1.0}
    for time in (10**30, -(10**30), 1e308, "9" * 5_000, [], {}):
        assert measured(case, [found("x", time=time)]) == {}


def test_results_of_a_run_say_nothing_of_times_and_actors() -> None:
    case = a_case(expected_actors=["bob"])
    result = case_result(case, TargetResponse(["x"], 1.0, metadata=[ResultMetadata(actors=("bob",))]), {}, 1)
    assert isinstance(result, CaseResult)
    assert "bob" not in repr(result)
