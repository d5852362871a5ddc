"""Comparing two runs and reporting on it, in every form."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET  # reads what the project itself wrote

import pytest

from assay_evals.compare.compare_runs import PairedRuns, comparable, compare_runs
from assay_evals.compare.sides import sides
from assay_evals.compare.verdicts import Rule, Stage, Verdict
from assay_evals.dataset.model import Case
from assay_evals.metrics.metric_names import QUANTILES
from assay_evals.report.document import as_json
from assay_evals.report.html import html
from assay_evals.report.junit import junit
from assay_evals.report.markdown import markdown
from assay_evals.report.text import comparison_text, run_text
from assay_evals.report.wording import meaning, notes, verdict_in_words
from assay_evals.run.case_results import case_error, case_result, score
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.target.response import TargetResponse

CASES = [
    Case(id=f"c{n}", query="a <b>secret</b> question", expected_ids=["x"], query_type="status" if n % 2 else "actor")
    for n in range(80)
]
GOOD, BAD = TargetResponse(["x", "<y>"], 10.0), TargetResponse(["<y>"], 12.0)


def a_run(label: str, answers: list[TargetResponse], cases: list[Case] = CASES) -> Run:
    config = RunConfig("golden", "1.0.0", "f", "module:function", label=label)
    rows = score(cases, answers, config)
    results = [case_result(case, answer, row, 1) for case, answer, row in zip(cases, answers, rows, strict=True)]
    return Run(label, config, "2026-11-22T00:00:00+00:00", "2026-11-22T00:01:00+00:00", results)


def paired(worse: int = 20, **options: object) -> PairedRuns:
    before = a_run("main", [GOOD] * 80)
    return compare_runs(before, a_run("change", [BAD] * worse + [GOOD] * (80 - worse)), **options)  # type: ignore[arg-type]


def with_results(run: Run, results: list[CaseResult]) -> Run:
    return Run(run.run_id, run.config, run.started_at, run.completed_at, results)


def test_a_regression_is_found_and_the_same_run_passes() -> None:
    assert paired(20).comparison.verdict() is Verdict.FAIL
    assert paired(0).comparison.verdict() is Verdict.PASS


def test_cases_are_paired_by_id_in_whatever_order() -> None:
    before = a_run("main", [GOOD] * 40 + [BAD] * 40)
    after = with_results(before, list(reversed(before.results)))
    assert {each.delta for each in compare_runs(before, after).comparison.metrics} == {0.0}


def test_cases_that_one_run_lacks_or_that_errored_fail_and_are_named() -> None:
    before = a_run("main", [GOOD] * 80)
    fewer = compare_runs(before, with_results(before, before.results[:-1]))
    assert (fewer.comparison.only_baseline, fewer.comparison.verdict()) == (["c79"], Verdict.FAIL)
    broken = compare_runs(before, with_results(before, [case_error(CASES[0], "HTTP 503", 3), *before.results[1:]]))
    assert (broken.comparison.errored, broken.comparison.verdict()) == (["c0"], Verdict.FAIL)
    assert "1 case ended in an error: c0" in markdown(broken, Verdict.FAIL)


def test_nothing_compared_is_no_pass() -> None:
    before = a_run("main", [GOOD] * 80)
    after = with_results(before, [])
    assert compare_runs(before, after).comparison.verdict() is Verdict.FAIL


def test_the_worst_cases_come_worst_first() -> None:
    worst = paired(3).worst("mrr", 2)
    assert [before.case_id for before, _, _ in worst] == ["c0", "c1"]
    assert worst[0][2] == -1.0


def test_a_breakdown_has_both_means_by_type_of_query() -> None:
    assert paired(40).by_query_type("mrr") == {"actor": (40, 1.0, 0.5), "status": (40, 1.0, 0.5)}


def test_markdown_names_metrics_and_cases_and_quotes_no_question() -> None:
    text = markdown(paired(40), Verdict.FAIL)
    assert "❌ Retrieval evaluation: fail" in text
    assert "| ❌ | mrr | 80 | 1.000 | 0.500 | -0.500 [" in text
    assert "`c0` -1.00" in text
    assert "secret" not in text


def test_json_has_every_metric_with_its_interval_and_significance() -> None:
    document = json.loads(json.dumps(as_json(paired(20), Verdict.FAIL)))
    mrr = next(each for each in document["metrics"] if each["metric"] == "mrr")
    assert (document["schema_version"], document["verdict"]) == (1, "fail")
    assert mrr["is_regression"] is True
    assert mrr["interval"]["low"] < mrr["delta"] < mrr["interval"]["high"]
    assert mrr["rule"]["stage"] == "block"


def suite(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314


def test_junit_has_a_test_a_metric() -> None:
    found = suite(junit(paired(20)))
    assert found.get("tests") == str(len(found))
    failed = {case.get("name") for case in found if case.find("failure") is not None}
    assert {"mrr", "recall@10"} <= failed
    assert found.get("failures") == str(len(failed))


def test_junit_fails_nothing_that_does_not_block() -> None:
    rules = {each.metric: Rule(0.05, stage=Stage.WARN) for each in paired().comparison.metrics}
    assert suite(junit(paired(20, rules=rules))).get("failures") == "0"


def test_junit_is_no_greener_than_the_exit_code() -> None:
    few = compare_runs(a_run("main", [GOOD] * 6, CASES[:6]), a_run("change", [GOOD] * 6, CASES[:6]))
    assert few.comparison.verdict() is Verdict.INCONCLUSIVE
    found = suite(junit(few))
    blocking = [each for each in few.comparison.metrics if each.rule.stage is Stage.BLOCK]
    assert (found.get("errors"), found.get("failures")) == (str(len(blocking)), "0")
    passed = suite(junit(few, inconclusive=Verdict.PASS))
    assert (passed.get("errors"), passed.get("failures"), passed.get("skipped")) == ("0", "0", "0")


@pytest.mark.parametrize(("undecided", "failures"), [(Verdict.FAIL, True), (Verdict.PASS, False)])
def test_what_undecided_metrics_count_as_is_the_callers_choice(undecided: Verdict, failures: bool) -> None:
    few = compare_runs(
        a_run("main", [GOOD, BAD] * 3, CASES[:6]), a_run("change", [BAD, GOOD] * 2 + [GOOD, BAD], CASES[:6])
    )
    assert few.comparison.verdict() is Verdict.INCONCLUSIVE
    assert (suite(junit(few, inconclusive=undecided)).get("failures") != "0") is failures


class Balance(HTMLParser):
    """Counts what is opened and closed, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[str, int] = {}
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.open[tag] = self.open.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        self.open[tag] = self.open.get(tag, 0) - 1

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_escaped_and_asks_nobody(tmp_path: Path) -> None:
    page = html(paired(20), Verdict.FAIL, relevance={"c0": {"x"}})
    parser = Balance()
    parser.feed(page)
    assert {tag: parser.open.get(tag) for tag in ("div", "table", "svg", "section", "h2", "g")} == dict.fromkeys(
        ("div", "table", "svg", "section", "h2", "g"), 0
    )
    assert "<y>" in parser.text, "an id that looks like markup is text"
    assert page.count("● expected") == 1
    for outside in ("://", "<script", "src="):
        assert outside not in page
    assert "secret" not in page


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"dataset_fingerprint": "other"}, "the dataset was changed"),
        ({"gain": "burges"}, "gain"),
        ({"cutoffs": (5, 20)}, "cut-offs differ"),
        ({"judge": "another"}, "different judges"),
    ],
)
def test_runs_that_were_not_measured_alike_fail_and_say_why(config: dict[str, Any], words: str) -> None:
    before = a_run("main", [GOOD] * 80)
    before = replace(before, config=replace(before.config, judge="one"))
    found = compare_runs(before, replace(before, config=replace(before.config, **config)))
    assert found.comparison.verdict() is Verdict.FAIL
    assert words in markdown(found, Verdict.FAIL)
    assert words in as_json(found, Verdict.FAIL)["unlike"][0]


def test_a_latency_that_blocks_is_compared_where_as_many_were_asked_at_a_time() -> None:
    before = a_run("main", [GOOD] * 80)
    before = replace(before, config=replace(before.config, concurrency=1))
    after = replace(before, config=replace(before.config, concurrency=5))
    blocks = {"latency_p95_ms": Rule(100.0, lower_is_better=True)}
    assert compare_runs(before, after).comparison.unlike == [], "latency informs"
    (told,) = compare_runs(before, after, rules=blocks).comparison.unlike
    assert "1 in the baseline and 5 in the candidate" in told
    unknown = replace(before, config=replace(before.config, concurrency=None))
    assert compare_runs(unknown, after, rules=blocks).comparison.unlike == []


def test_a_blocking_metric_that_the_candidate_no_longer_measures_fails() -> None:
    before = a_run("main", [GOOD] * 80)
    judged = with_results(
        before, [replace(each, metrics=each.metrics | {"faithfulness": 0.9}) for each in before.results]
    )
    assert compare_runs(before, judged).comparison.verdict() is Verdict.PASS, "a new metric is welcome"
    found = compare_runs(judged, before)
    assert found.comparison.verdict() is Verdict.FAIL
    assert found.comparison.unlike == ["the candidate does not measure faithfulness"]


def test_a_run_with_a_new_metric_is_compared_with_one_without_it() -> None:
    before = a_run("main", [GOOD] * 80)
    after = with_results(before, [replace(each, metrics=each.metrics | {"novel": 0.9}) for each in before.results])
    for one, other, side in ((before, after, "candidate"), (after, before, "baseline")):
        found = compare_runs(one, other)
        assert found.comparison.verdict() is Verdict.PASS
        assert [each.metric for each in found.comparison.metrics] == ["mrr", *before.names[1:9], *QUANTILES]
        assert as_json(found, Verdict.PASS)[f"metrics_only_{side}"] == ["novel"]
        for text in (markdown(found, Verdict.PASS), html(found, Verdict.PASS)):
            assert f"Only the {side} measures novel: not compared." in text


def test_an_earlier_run_serves_as_long_as_the_dataset_and_the_judge_are_the_same() -> None:
    before = a_run("main", [GOOD] * 80)
    assert comparable(before, replace(before.config, target="another", code_version="next")) is before
    assert comparable(before, replace(before.config, dataset_fingerprint="edited")) is None
    assert comparable(before, replace(before.config, judge="another")) is None


def test_the_verdict_ends_with_what_decided_it() -> None:
    assert verdict_in_words(paired(0), Verdict.PASS) == "verdict: pass"
    told = verdict_in_words(paired(20), Verdict.FAIL)
    assert told == "verdict: fail, because mrr, recall@5, precision@5, ndcg@5, hit@5 and 3 more failed"
    few = compare_runs(a_run("main", [GOOD] * 6, CASES[:6]), a_run("change", [GOOD] * 6, CASES[:6]))
    for verdict in (Verdict.INCONCLUSIVE, Verdict.FAIL):
        told = verdict_in_words(few, verdict)
        assert (
            told == f"verdict: {verdict}, because mrr, recall@5, precision@5, ndcg@5, hit@5 and 4 more are inconclusive"
        )
    before = a_run("main", [GOOD] * 80)
    broken = with_results(before, [case_error(CASES[0], "HTTP 503", 3), *before.results[1:-1]])
    found = compare_runs(before, broken)
    reasons = "verdict: fail, because 1 case ended in an error; 1 case is in only one run"
    assert verdict_in_words(found, Verdict.FAIL) == reasons
    for text in (comparison_text(found, Verdict.FAIL), markdown(found, Verdict.FAIL), html(found, Verdict.FAIL)):
        assert reasons[1:] in text
    assert as_json(found, Verdict.FAIL)["verdict_in_words"] == reasons


def test_a_run_of_the_first_cases_is_told_from_an_edited_dataset() -> None:
    before = a_run("main", [GOOD] * 80)
    config = replace(before.config, dataset_fingerprint="ten")
    limited = replace(with_results(before, before.results[:10]), config=config)
    (told,) = compare_runs(before, limited).comparison.unlike
    assert told.startswith("the candidate ran only 10 of 80 cases: if that was --limit, run both with the same one")
    edited = replace(limited, config=replace(config, dataset_version="1.1.0"))
    assert "the dataset was changed" in compare_runs(before, edited).comparison.unlike[0]


def test_an_interrupted_run_is_named_with_how_to_complete_it() -> None:
    before = a_run("main", [GOOD] * 80)
    killed = replace(before, run_id="killed", results=before.results[:16], completed_at=None)
    assert "interrupted: complete it with --resume" in run_text(killed)
    assert "interrupted" not in run_text(before)
    for one, other in ((before, killed), (killed, before)):
        told = comparison_text(compare_runs(one, other), Verdict.FAIL)
        assert "killed was interrupted after 16 cases: complete it with --resume" in told


def test_the_table_has_the_runs_a_header_p_and_thresholds_in_columns_that_hold_long_names() -> None:
    long = f"score:{'a' * 40}"
    before = a_run("main", [GOOD] * 80)
    scored = with_results(before, [replace(each, metrics=each.metrics | {long: 1.0}) for each in before.results])
    lines = comparison_text(compare_runs(scored, scored), Verdict.PASS).splitlines()
    assert lines[0] == "main compared with main, 80 cases of golden 1.0.0."
    assert " ".join(lines[1].split()) == "verdict metric n baseline candidate change [95 %] p threshold stage meaning"
    (mrr,) = [line for line in lines if " mrr " in line]
    (own,) = [line for line in lines if long in line]
    stages = {line.index(name) for line, name in ((lines[1], "stage"), (mrr, "block"), (own, "informational"))}
    assert len(stages) == 1
    assert mrr.split()[-10:-8] == ["1.000", "0.050"]
    assert f"  {long} 1.000" in run_text(scored)


def test_the_p_that_is_shown_is_below_5_percent_exactly_if_the_change_is_significant() -> None:
    seen = set()
    for worse in range(8):
        for each in paired(worse).comparison.metrics:
            assert each.p is not None
            assert (each.p < 0.05) is each.significant, (each.metric, worse)
            seen.add(each.significant)
    assert seen == {True, False}


def test_a_significant_loss_below_the_threshold_is_called_one() -> None:
    found = paired(20, rules={"mrr": Rule(0.5)}).comparison.metrics
    (mrr,) = [each for each in found if each.metric == "mrr"]
    assert (mrr.verdict, meaning(mrr)) == (Verdict.PASS, "significantly worse, but by less than its threshold")
    (mrr,) = [each for each in paired(20, rules={"mrr": Rule(0.3)}).comparison.metrics if each.metric == "mrr"]
    assert (
        meaning(mrr)
        == "significantly worse, but perhaps by less than its threshold: about 669 cases needed, 80 measured"
    )


def test_null_cases_are_what_a_null_metric_needs() -> None:
    cases = [*CASES[:20], *(Case(id=f"n{n}", query="q", query_type="null") for n in range(9))]
    run = a_run("main", [GOOD] * 20 + [TargetResponse([], 1.0)] * 9, cases)
    metrics = {each.metric: meaning(each) for each in compare_runs(run, run).comparison.metrics}
    assert metrics["null_accuracy"] == "inconclusive: about 72 null cases needed, 9 measured"
    assert metrics["mrr"] == "inconclusive: about 72 cases needed, 20 measured"


def test_a_threshold_above_half_of_the_baseline_is_pointed_out() -> None:
    before = a_run("main", [BAD] * 40 + [GOOD] * 40)
    found = [note for note in notes(compare_runs(before, before)) if "fails only after a loss" in note]
    (told,) = found
    assert told.startswith("precision@10 fails only after a loss of 0.050, its absolute threshold, which is more than")
    assert told.endswith("lower it with --threshold precision@10=NUMBER.")


def test_who_changes_a_scorer_begins_anew_with_its_metric_alone() -> None:
    made = a_run("main", [GOOD] * 80)
    scored = [replace(each, metrics=each.metrics | {"score:a": 1.0, "score:b": 1.0}) for each in made.results]
    before = replace(made, config=replace(made.config, scorers={"score:a": "1", "score:b": "1"}), results=scored)
    now = replace(before.config, scorers={"score:a": "1", "score:b": "2"})
    found = comparable(before, now)
    assert found is not None
    assert found.names == [*made.names, "score:a"]
    assert found.config.scorers == {"score:a": "1"}
    assert comparable(before, before.config) is before


@pytest.mark.parametrize(("worse", "p"), [(20, "< 0.001"), (4, "0.13"), (0, "1.000")])
def test_a_p_too_small_to_print_is_not_printed_as_0(worse: int, p: str) -> None:
    (row,) = [line for line in markdown(paired(worse), Verdict.FAIL).splitlines() if "| mrr |" in line]
    assert f"| {p}" in row
    assert '<td class="n" data-th="p">&lt; 0.001</td>' in html(paired(20), Verdict.FAIL)


def test_the_document_says_which_p_decides_and_keeps_the_others() -> None:
    metric = as_json(paired(20), Verdict.FAIL)["metrics"][0]
    assert metric["p_worse"] < 0.001
    assert metric["p_better"] == 1.0
    assert metric["p_holm"] >= metric["p_value"]


def with_faithfulness(run: Run, places: range) -> Run:
    return with_results(
        run,
        [
            replace(each, metrics=each.metrics | {"faithfulness": 0.9}) if place in places else each
            for place, each in enumerate(run.results)
        ],
    )


def test_cases_that_a_metric_is_compared_without_are_counted() -> None:
    before = a_run("main", [GOOD] * 80)
    found = compare_runs(with_faithfulness(before, range(80)), with_faithfulness(before, range(10)))
    words = "faithfulness is compared without 70 cases that have a value in only one run."
    assert words in markdown(found, Verdict.PASS)
    assert words in html(found, Verdict.PASS)
    assert as_json(found, Verdict.PASS)["unpaired"] == {"faithfulness": 70}


def test_a_case_that_errored_is_not_counted_again_for_each_metric() -> None:
    before = a_run("main", [GOOD] * 80)
    broken = compare_runs(before, with_results(before, [case_error(CASES[0], "HTTP 503", 3), *before.results[1:]]))
    assert broken.comparison.unpaired == {}


def test_a_blocking_metric_of_no_case_in_common_fails() -> None:
    before = a_run("main", [GOOD] * 80)
    found = compare_runs(with_faithfulness(before, range(20)), with_faithfulness(before, range(20, 40)))
    assert found.comparison.verdict() is Verdict.FAIL
    assert found.comparison.unlike == ["the candidate does not measure faithfulness"]


def test_a_cluster_named_as_another_case_takes_that_case_not_in() -> None:
    cases = [case.model_copy(update={"cluster": "c79"}) if number < 2 else case for number, case in enumerate(CASES)]
    before = a_run("main", [GOOD] * 80, cases)
    assert len({each.unit for each in before.results}) == 79
    assert before.results[0].unit == before.results[1].unit != before.results[79].unit


def test_one_case_is_said_to_be_too_few() -> None:
    found = compare_runs(a_run("main", [GOOD], CASES[:1]), a_run("change", [BAD], CASES[:1])).comparison
    (mrr,) = [each for each in found.metrics if each.metric == "mrr"]
    assert (mrr.delta, mrr.verdict, meaning(mrr)) == (
        -1.0,
        Verdict.INCONCLUSIVE,
        "worse, but not significantly: about 72 cases needed, 1 measured",
    )


def test_intervals_of_shares_stay_where_shares_can_be() -> None:
    before, after = a_run("main", [GOOD, GOOD], CASES[:2]), a_run("change", [GOOD, BAD], CASES[:2])
    mrr = after.summary()["mrr"]
    assert 0 < mrr.low < 0.02
    assert 0.98 < mrr.high < 1
    (change,) = [each for each in compare_runs(before, after).comparison.metrics if each.metric == "mrr"]
    assert -1 < change.interval.low < change.interval.high < 1


def test_a_page_that_passes_says_that_failures_of_what_informs_do_not_decide() -> None:
    rules = {each.metric: Rule(0.05, stage=Stage.INFORMATIONAL) for each in paired().comparison.metrics}
    found = paired(20, rules=rules)
    assert found.comparison.verdict() is Verdict.PASS
    for text in (html(found, Verdict.PASS), markdown(found, Verdict.PASS)):
        assert "Metrics of the stage informational do not decide, and mrr, recall@5" in text
        assert "meaning" in text
    assert not [note for note in notes(paired(20)) if "do not decide" in note]


def test_the_worst_cases_say_what_marks_them_and_where_nothing_came_back() -> None:
    before, nothing = a_run("main", [GOOD] * 80), TargetResponse([], 10.0)
    found = compare_runs(before, a_run("change", [nothing] * 20 + [GOOD] * 60))
    assert "No results." in html(found, Verdict.FAIL)
    assert "Give --dataset too" in html(found, Verdict.FAIL)
    assert "Give --dataset too" not in html(found, Verdict.FAIL, relevance={"c0": {"x"}})
    assert "No results." not in html(paired(20), Verdict.FAIL)


def test_the_picture_gives_the_side_where_nothing_moved_less_room_and_names_its_marks() -> None:
    picture = html(paired(20), Verdict.FAIL)
    worse, better = (float(picture.partition(f"{side} by ")[2][:4]) for side in ("worse", "better"))
    assert worse > 2 * better > 0
    assert "dashed: the change that fails" in picture


HOSTILE = "c0`|<img src=x onerror=alert(1)>\n## \u2705 Retrieval evaluation: pass\n[click](http://evil.test) @everyone\x1b[2J\x00\u202e"
HOSTILE_CASES = [case.model_copy(update={"id": f"{HOSTILE}{n}", "query_type": HOSTILE}) for n, case in enumerate(CASES)]


def hostile_pair() -> PairedRuns:
    """A comparison in which every name that comes from outside is hostile, metrics' too."""
    answers = [TargetResponse(["x", HOSTILE], 10.0)] * 80, [TargetResponse([HOSTILE], 12.0)] * 80
    before, after = (a_run(HOSTILE, each, HOSTILE_CASES) for each in answers)

    def renamed(run: Run) -> Run:
        metrics = [{HOSTILE: result.metrics["ndcg@10"]} for result in run.results[1:]]
        return with_results(run, [replace(each, metrics=m) for each, m in zip(run.results[1:], metrics, strict=True)])

    errored = case_error(HOSTILE_CASES[0], HOSTILE, 1)
    return compare_runs(renamed(before), with_results(after, [errored, *renamed(after).results]))


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_page_escapes_every_name_and_lets_the_browser_run_and_load_nothing() -> None:
    shown = html(hostile_pair(), Verdict.FAIL)
    page = _Page()
    page.feed(shown)
    assert not page.tags & {"script", "img", "a", "iframe", "object", "form"}
    assert not {each for each in page.attributes if each.startswith("on")}
    assert "default-src 'none'" in shown.split("<body>")[0]
    assert not set(shown) & {"\x1b", "\x00", "\u202e"}


def test_markdown_is_written_by_the_report_alone_whatever_ids_and_labels_say() -> None:
    written = markdown(hostile_pair(), Verdict.FAIL)
    lines = written.splitlines()
    assert [line for line in lines if line.startswith("#")] == [lines[0]]
    assert {line.count("|") for line in lines if line.startswith("|")} == {11}
    for live in ("<img", "](", "http://", "@everyone", "\x1b", "\x00", "\u202e"):
        assert live not in written, live
    assert all(line.count("`") % 2 == 0 for line in lines)


def test_junit_is_xml_whatever_ids_say() -> None:
    suite = ET.fromstring(junit(hostile_pair()))  # noqa: S314  # our own
    assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert all("\n" not in (case.get("name") or "") for case in suite)


def test_the_worst_cases_of_a_lower_is_better_metric_are_those_that_rose() -> None:
    before = a_run("main", [GOOD] * 80)
    values = {0: 0.1, 1: 0.9}
    one, other = (
        with_results(
            before,
            [
                replace(each, metrics=each.metrics | {"hallucination_rate": values.get(place, 0.5) if changed else 0.5})
                for place, each in enumerate(before.results)
            ],
        )
        for changed in (False, True)
    )
    (worst,) = compare_runs(one, other).worst("hallucination_rate", 5)
    assert (worst[0].case_id, worst[2]) == (before.results[1].case_id, pytest.approx(0.4))


def test_each_side_stands_by_itself_too() -> None:
    compared = paired(20)
    before, after = sides(compared)["mrr"]
    assert (before.mean, before.median, before.p95, before.n) == (1.0, 1.0, 1.0, 80)
    assert before.low < 1.0, "80 equal cases leave room for a worse one"
    assert (after.mean, after.median) == (0.75, 1.0)
    assert after.low < 0.75 < after.high
    quick, slow = sides(compared)["latency_ms"]
    assert (quick.median, slow.p95) == (10.0, 12.0)
    document = as_json(compared, Verdict.FAIL)["sides"]["mrr"]
    assert document["candidate"]["n"] == 80
    page = html(compared, Verdict.FAIL)
    assert "Each run, over the common cases" in page
    assert 'mrr</bdi></td><td class="n">80</td>' in page
    assert "Intervals of shares are Gaffke&#39;s bounds" in page


def test_a_side_counts_only_cases_that_both_measured() -> None:
    before = a_run("main", [GOOD] * 80)
    results = [replace(each, metrics=each.metrics | {"mrr": None}) for each in before.results[:30]]
    found = sides(compare_runs(before, with_results(before, [*results, *before.results[30:]])))
    assert [side.n for side in found["mrr"]] == [50, 50]
    assert [side.n for side in found["recall@5"]] == [80, 80]
