"""Many sessions: rates, verdicts, exit codes, pass^k, and the reports."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from assay_runtime.shares import wilson
from assay_sessions.checks.checker import Checker
from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.rates import families, rate
from assay_sessions.checks.references import Reference, References
from assay_sessions.checks.repeats import Attempts, pass_power
from assay_sessions.checks.report import as_json, junit, markdown, session_json, text, verdict_in_words
from assay_sessions.checks.rules_file import Rules, default_rules, parse_rules
from assay_sessions.checks.tally import ChecksReport, RuleReport, Tally, exit_code
from tests.support.session_documents import call, document

ANSWERED = "[rules.answered]\nrequired = true\n"


def answered(number: int, **metadata: Any) -> dict[str, Any]:
    return document("hi", "hello", session_id=f"ses_{number}", **metadata)


def unanswered(number: int, **metadata: Any) -> dict[str, Any]:
    return document("hi", session_id=f"ses_{number}", **metadata)


def checked(rules: Rules, *documents: dict[str, Any], references: References | None = None) -> ChecksReport:
    checker, tally = Checker(rules, references=references), Tally(rules)
    for each in documents:
        tally.add(checker.check(each))
    return tally.report(references_unused=references.unused if references else None)


def rule(report: ChecksReport, name: str) -> RuleReport:
    return next(each for each in report.rules if each.name == name)


def test_a_session_to_which_a_rule_does_not_apply_is_in_no_rate() -> None:
    report = checked(parse_rules(ANSWERED), answered(1), answered(2), unanswered(3), unanswered(4, status="aborted"))
    found = rule(report, "answered")
    assert (found.passed, found.failed, found.not_applicable, found.applicable) == (2, 1, 1, 3)
    assert found.share == wilson(2, 3)
    assert [(each.session_id, each.detail) for each in found.failures] == [
        ("ses_3", "no answer after the last turn of the user")
    ]


def test_a_failed_required_rule_fails_and_another_does_not() -> None:
    sessions = (answered(1), unanswered(2))
    assert checked(parse_rules(ANSWERED), *sessions).verdict == "fail"
    assert checked(default_rules(), *sessions).verdict == "pass"
    assert rule(checked(default_rules(), *sessions), "answered").verdict == "fail"


def test_a_required_rule_that_applies_to_no_session_is_inconclusive() -> None:
    required = "[rules.no_call_after_refusal]\nrequired = true\n"
    report = checked(parse_rules(required), answered(1))
    assert (report.verdict, exit_code(report)) == ("inconclusive", 3)
    assert "no_call_after_refusal: applies to 0 session(s), at least 1 needed" in text(report)
    assert exit_code(report, inconclusive="pass") == 0
    assert exit_code(report, inconclusive="fail") == 1
    assert exit_code(checked(parse_rules(f"{required}min_applicable = 0"), answered(1))) == 0


@pytest.mark.parametrize(
    ("passed", "failed", "verdict"),
    [(5, 0, "inconclusive"), (40, 0, "pass"), (100, 1, "pass"), (90, 10, "inconclusive"), (70, 30, "fail")],
)
def test_a_minimum_below_one_is_compared_with_the_interval(passed: int, failed: int, verdict: str) -> None:
    rules = parse_rules(f"{ANSWERED}min_pass_rate = 0.9")
    good, bad = map(answered, range(passed)), map(unanswered, range(passed, passed + failed))
    report = checked(rules, *good, *bad)
    assert report.verdict == verdict
    assert exit_code(report) == {"pass": 0, "fail": 1, "inconclusive": 3}[verdict]


def test_without_sessions_nothing_can_be_told() -> None:
    report = checked(default_rules())
    assert (report.verdict, exit_code(report), exit_code(report, inconclusive="pass")) == ("inconclusive", 2, 2)
    assert text(report).endswith("verdict: inconclusive, because there are no sessions to check")


def test_copies_of_a_session_count_as_one_family() -> None:
    sessions = [answered(1), *(answered(number, forked_from="ses_1") for number in range(2, 11))]
    found = rule(checked(default_rules(), *sessions), "answered")
    one = wilson(1, 1)
    assert found.passed == 10
    assert found.share is not None
    assert one is not None
    assert found.share.low == pytest.approx(one.low)


def test_a_copy_of_a_copy_is_of_the_same_family() -> None:
    links = {"c": "b", "b": "a", "a": None, "x": "gone", "y": "gone", "one": "two", "two": "one"}
    found = families(links)
    assert found == {"a": "a", "b": "a", "c": "a", "x": "gone", "y": "gone", "one": "one", "two": "one"}


def test_clusters_widen_an_interval_by_their_design_effect() -> None:
    alone = rate([1, 0] * 20, range(40))
    pairs = rate([1, 0] * 20, [place // 2 for place in range(40)])
    alike = rate([1, 1, 0, 0] * 10, [place // 2 for place in range(40)])
    twenty = wilson(10, 20)
    assert alone == pairs == wilson(20, 40)
    assert alike is not None
    assert twenty is not None
    assert alike.value == 0.5
    assert (alike.low, alike.high) == (pytest.approx(twenty.low, abs=0.01), pytest.approx(twenty.high, abs=0.01))
    assert rate([], []) is None


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize(("n", "successes"), [(5, 5), (5, 3), (5, 0), (6, 5)])
def test_pass_power_is_the_share_of_draws_that_are_all_right(n: int, successes: int, k: int) -> None:
    attempts = [True] * successes + [False] * (n - successes)
    draws = [all(draw) for draw in combinations(attempts, k)]
    found = pass_power([Attempts(n, successes)], k)
    assert found.value is not None
    assert found.value.value == pytest.approx(sum(draws) / len(draws))


def test_tasks_with_fewer_than_k_attempts_are_counted_apart() -> None:
    found = pass_power([Attempts(1, 1), Attempts(2, 1), Attempts(4, 4)], 2)
    assert (found.tasks, found.excluded) == (2, 1)
    assert found.value is not None
    assert found.value.value == pytest.approx(0.5)
    assert pass_power([Attempts(1, 1)], 2).value is None
    with pytest.raises(ValueError, match="at least 1"):
        pass_power([], 0)


def test_repeated_sessions_are_those_with_the_same_prompt_or_key() -> None:
    sessions = [answered(1, task="a"), unanswered(2, task="a"), answered(3, task="b"), answered(4, task="b")]
    by_prompt = checked(parse_rules(ANSWERED), *sessions).repeats
    assert [(each.k, each.tasks, each.value and each.value.value) for each in by_prompt[:2]] == [
        (1, 1, 0.75),
        (2, 1, 0.5),
    ]
    assert len(by_prompt) == 4
    by_task = checked(parse_rules(f"{ANSWERED}[repeats]\nby = 'task'\nk = 2"), *sessions).repeats
    assert [(each.k, each.tasks, each.value and each.value.value) for each in by_task] == [(1, 2, 0.75), (2, 2, 0.5)]
    assert checked(default_rules(), *sessions).repeats == ()
    copies = (answered(number, forked_from="ses_1") for number in range(5, 9))
    assert checked(parse_rules(ANSWERED), *sessions, *copies).repeats == by_prompt


def reference(session_id: str, *names: str) -> Reference:
    return Reference.model_validate({"session_id": session_id, "calls": [{"name": name} for name in names]})


def with_references() -> tuple[ChecksReport, Checker]:
    rules = parse_rules("[rules.trajectory_in_order]\nrequired = true\n[rules.trajectory_recall]\nat_least = 0.5\n")
    references = References()
    for each in (
        reference("ses_1", "read", "edit"),
        reference("ses_2", "read", "edit"),
        reference("ses_3"),
        reference("ses_9"),
    ):
        references.add(each)
    sessions = [
        document("hi", "ok", session_id="ses_1", calls=(call("read"), call("bash"), call("edit"))),
        document("hi", "ok", session_id="ses_2", calls=(call("edit"), call("read", args={"path": "x"}))),
        document("hi", "ok", session_id="ses_3"),
        document("hi", "ok", session_id="ses_4", calls=(call("bash"),)),
    ]
    return checked(rules, *sessions, references=references), Checker(rules, references=references)


def test_trajectories_are_compared_where_there_is_a_reference() -> None:
    report, _ = with_references()
    means = {each.name: (each.n, each.excluded, each.mean and round(each.mean.value, 3)) for each in report.trajectory}
    assert means == {
        "exact": (3, 0, 0.333),
        "in_order": (3, 0, 0.667),
        "any_order": (3, 0, 0.667),
        "superset": (3, 0, 0.667),
        "unordered": (3, 0, 0.333),
        "precision": (2, 1, 0.583),
        "recall": (2, 1, 0.75),
    }
    assert (report.with_reference, len(report.references_unused or ()), report.verdict) == (3, 1, "fail")
    in_order, recall = rule(report, "trajectory_in_order"), rule(report, "trajectory_recall")
    assert (in_order.passed, in_order.failed, in_order.not_applicable) == (2, 1, 1)
    assert (recall.passed, recall.failed, recall.not_applicable) == (2, 0, 2)
    failure = in_order.failures[0]
    assert (failure.session_id, str(failure.place), failure.detail) == (
        "ses_2",
        "turn 2, call 2",
        "1 with other arguments (read)",
    )


def test_references_that_match_no_session_are_named_without_their_prompt() -> None:
    references = References()
    for line, given in enumerate(["ses_9", None, "ses_1", "ses_8", "ses_7"], 1):
        prompt = "planted" if given is None else None
        references.add(Reference(session_id=given, prompt=prompt, calls=[]), line)
    report = checked(default_rules(), answered(1), references=references)
    named = "4 references match no session: line 1 (ses_9), line 2 (by prompt), line 4 (ses_8) and 1 more"
    assert named in text(report)
    assert "- 4 references match no session: line 1" in markdown(report)
    trajectory = as_json(report)["trajectory"]
    assert trajectory["references_unused"] == 4
    assert trajectory["references_unused_first"][:2] == [
        {"line": 1, "session_id": "ses_9"}, {"line": 2, "session_id": None},
    ]  # fmt: skip
    assert "planted" not in text(report) + str(trajectory)


def test_a_rule_of_trajectories_without_references_says_which_option_gives_them() -> None:
    rules = parse_rules("[rules.trajectory_exact]\n[rules.trajectory_recall]\nrequired = true\n")
    report = checked(rules, answered(1))
    missing = "there are no reference trajectories: pass --references FILE"
    assert f"not checked: trajectory_exact, trajectory_recall: {missing}" in text(report)
    assert verdict_in_words(report) == f"verdict: inconclusive, because trajectory_recall: {missing}"
    assert missing in junit(report)
    references = References()
    references.add(Reference(session_id="ses_2", calls=[]))
    assert missing not in text(checked(rules, answered(1), references=references))


def test_the_document_of_a_session_explains_its_trajectory() -> None:
    _, checker = with_references()
    found = session_json(checker.check(document("hi", session_id="ses_1", calls=(call("read"), call("a b")))))
    assert found["trajectory"]["recall"] == 0.5
    assert found["trajectory"]["alignment"] == [
        {"outcome": "matched", "tool": "read", "reference": 0, "predicted": 0, "in_order": True},
        {"outcome": "missing", "tool": "edit", "reference": 1, "predicted": None, "in_order": True},
        {
            "outcome": "extra",
            "tool": "(a tool with an unusual name)",
            "reference": None,
            "predicted": 1,
            "in_order": True,
        },
    ]
    assert {each["rule"]: each["state"] for each in found["findings"]}["answered"] == "fail"
    assert json.loads(json.dumps(found)) == found
    assert session_json(checker.check(document("hi", session_id="ses_7")))["trajectory"] is None


def test_the_json_document_has_every_number_with_its_interval() -> None:
    report, _ = with_references()
    found = as_json(report)
    assert json.loads(json.dumps(found)) == found
    assert (found["schema_version"], found["verdict"], found["sessions"], found["sources"]) == (
        1,
        "fail",
        4,
        {"opencode": 4},
    )
    by_name = {each["rule"]: each for each in found["rules"]}
    in_order = by_name["trajectory_in_order"]
    assert in_order["share"] == pytest.approx(2 / 3)
    assert in_order["interval"] == [pytest.approx(0.208, abs=1e-3), pytest.approx(0.939, abs=1e-3)]
    assert in_order["failures"] == [
        {"session_id": "ses_2", "project": None, "turn": 2, "call": 2, "detail": "1 with other arguments (read)"}
    ]
    assert by_name["no_secrets"]["share"] is None
    assert found["verdict_in_words"] == "verdict: fail, because trajectory_in_order: 1 session(s) failed"


def test_text_and_markdown_name_the_rule_the_session_and_the_place() -> None:
    report, _ = with_references()
    shown = text(report)
    assert "  trajectory_in_order: ses_2 (turn 2, call 2): 1 with other arguments (read)" in shown
    assert "  trajectory recall     0.750 [" in shown
    assert "1 reference matches no session" in shown
    assert shown.endswith("verdict: fail, because trajectory_in_order: 1 session(s) failed")
    made = markdown(report)
    assert made.startswith("## ❌ Session checks: fail\n")
    assert "| ❌ | trajectory_in_order | 2 | 1 | 1 | 0.667 (0.208, 0.939) | 1 | required |" in made
    assert "trajectory_in_order: ses_2 (turn 2, call 2): 1 with other arguments (read)" in made


def test_a_session_that_is_in_two_projects_is_told_apart_in_every_report() -> None:
    rules = parse_rules(ANSWERED)
    sessions = [unanswered(1) | {"project": project} for project in ("shop", "search")]
    report = checked(rules, *sessions)
    failed = ["shop/ses_1: no answer", "search/ses_1: no answer"]
    assert all(each in made for each in failed for made in (text(report), markdown(report), junit(report)))
    [answered_rule] = [each for each in as_json(report)["rules"] if each["rule"] == "answered"]
    assert [each["project"] for each in answered_rule["failures"]] == ["shop", "search"]
    checker = Checker(rules)
    assert [session_json(checker.check(each))["project"] for each in sessions] == ["shop", "search"]
    assert session_json(checker.check(unanswered(1)))["project"] is None


def test_a_session_that_is_in_two_projects_is_one_attempt_at_its_task() -> None:
    rules = parse_rules(ANSWERED)
    twice = [answered(1) | {"project": project} for project in ("shop", "search")]
    assert checked(rules, *twice).repeats == ()
    [once, _] = checked(rules, *twice, answered(2)).repeats
    assert once.value is not None
    assert (once.k, once.tasks, checked(rules, *twice).sessions) == (1, 1, 2)


def test_many_failures_are_counted_and_the_first_ones_listed() -> None:
    report = checked(parse_rules(ANSWERED), *map(unanswered, range(50)))
    found = rule(report, "answered")
    assert (found.failed, len(found.failures)) == (50, 20)
    assert "answered: and 47 more" in text(report)
    assert "; and 47 more" in markdown(report)


def test_a_hostile_session_id_and_source_cannot_break_the_reports() -> None:
    report = checked(
        parse_rules(ANSWERED), document("hi", session_id="<!channel> | [x](http://e.vil)\n\x1b[31m", source="a|b\n`")
    )
    assert "\x1b" not in text(report)
    made = markdown(report)
    assert not any(bad in made for bad in ("<!", "](", "://", "\x1b", "a|b"))


def test_rules_are_read_from_a_file_and_applied(tmp_path: Path) -> None:
    from assay_sessions.checks.rules_file import read_rules

    file = tmp_path / "sessions.toml"
    file.write_text("[rules.max_turns]\nlimit = 1\nrequired = true\n")
    assert exit_code(checked(read_rules(file), answered(1))) == 1


def broken(**fields: Any) -> dict[str, Any]:
    return answered(1) | fields


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "it must be an object"),
        ({}, "session_id is missing"),
        (broken(intermediate_events=None), "intermediate_events is missing"),
        (broken(request={}), "request.contents"),
        (broken(request={"contents": [{"role": "user"}]}), "request.contents"),
        (broken(request={"contents": [{"role": "user", "parts": [{"text": 1}]}]}), "request.contents"),
        (broken(response={"candidates": [{}]}), "response.candidates"),
        (broken(intermediate_events=[call("f"), {}]), "intermediate_events.1 "),
        (broken(intermediate_events=[call("f", args="x")]), "intermediate_events.0 "),
    ],
)
def test_something_that_is_no_document_is_refused_by_its_key(value: Any, said: str) -> None:
    with pytest.raises(ChecksError, match=said):
        Checker(default_rules()).check(value)


def test_junit_has_a_test_for_each_rule_and_fails_what_the_exit_code_fails() -> None:
    required = "[rules.answered]\nrequired = true\n[rules.no_call_after_refusal]\nrequired = true\n"
    report = checked(parse_rules(required), answered(1), unanswered(2))
    suite = ET.fromstring(junit(report))  # noqa: S314 - our own
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    cases = {case.get("name"): case for case in suite}
    assert cases.keys() == {rule.name for rule in report.rules}
    failure = cases["answered"].find("failure")
    assert failure is not None
    assert "1 passed, 1 failed" in str(failure.get("message"))
    assert "ses_2" in str(failure.get("message"))
    assert ET.fromstring(junit(report, inconclusive="pass")).get("errors") == "0"  # noqa: S314
    assert ET.fromstring(junit(checked(default_rules(), unanswered(2)))).get("failures") == "0"  # noqa: S314
