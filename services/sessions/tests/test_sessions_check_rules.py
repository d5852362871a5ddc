"""Rules on one session: each passes, fails at a place, or does not apply."""

from typing import Any

import pytest

from assay_sessions.checks.finding import Finding, Place
from assay_sessions.checks.rules_file import RULES
from assay_sessions.checks.session import Session
from assay_sessions.checks.words import WordPattern
from tests.support.session_documents import call, document

READ, EDIT = call("read", args={"filePath": "/w/src/a.py"}), call("edit", args={"filePath": "/w/src/a.py", "new": "1"})
TESTS_FAILED = call("bash", args={"command": "cd w && pytest -q"}, exit_code=1, status="error")
TESTS_PASSED = call("bash", args={"command": "pytest"}, exit_code=0)
PASS, FAIL, NOT = "pass", "fail", "not_applicable"


def ls(turn: int = 2, **fields: Any) -> dict[str, Any]:
    return call("bash", turn, args={"command": "ls"}, **fields)


def finding(rule: str, session: dict[str, Any], settings: dict[str, Any]) -> Finding:
    return RULES[rule].model_validate(settings).check(Session(session))


#: rule, settings, document, state, turn and call that decided
CASES: list[tuple[str, dict[str, Any], dict[str, Any], str, tuple[int | None, int | None]]] = [
    ("answered", {}, document("hi", "hello"), PASS, (None, None)),
    ("answered", {}, document("hi"), FAIL, (None, None)),
    ("answered", {}, document("hi", "I will", status="unanswered"), FAIL, (None, None)),
    ("answered", {}, document("hi", "I will", status="aborted"), NOT, (None, None)),
    ("answered", {}, document(), NOT, (None, None)),
    ("not_aborted", {}, document("hi", "hello"), PASS, (None, None)),
    ("not_aborted", {}, document("hi", status="aborted"), FAIL, (None, None)),
    ("not_aborted", {}, document(status="aborted"), NOT, (None, None)),
    ("no_loops", {}, document("hi", calls=(ls(), ls(), ls())), FAIL, (2, 3)),
    ("no_loops", {}, document("hi", calls=(ls(), ls(), READ, ls())), PASS, (None, None)),
    ("no_loops", {}, document("hi", calls=(ls(), ls())), NOT, (None, None)),
    ("no_loops", {"overall": 3}, document("hi", calls=(ls(), ls(), READ, ls(4))), FAIL, (4, 4)),
    ("no_loops", {"in_a_row": 0, "overall": 2}, document("hi", calls=(ls(), READ, ls())), FAIL, (2, 3)),
    ("no_loops", {"in_a_row": 2}, document("hi", calls=(ls(), ls(executed_by="user"))), NOT, (None, None)),
    (
        "no_loops",
        {"in_a_row": 2},
        document("hi", calls=(call("f", args={"n": 1, "m": 2}), call("f", args={"m": 2.0, "n": 1.0}))),
        FAIL,
        (2, 2),
    ),
    (
        "no_loops",
        {"in_a_row": 2},
        document("hi", calls=(call("f", args={"n": 1}), call("f", args={"n": True}))),
        PASS,
        (None, None),
    ),
    ("no_call_after_refusal", {}, document("hi", calls=(ls(),)), NOT, (None, None)),
    ("no_call_after_refusal", {}, document("hi", calls=(ls(status="refused"), READ)), PASS, (None, None)),
    ("no_call_after_refusal", {}, document("hi", calls=(ls(status="refused"), READ, ls())), FAIL, (2, 3)),
    ("no_call_after_refusal", {}, document("hi", calls=(ls(status="refused"), ls(4))), PASS, (None, None)),
    ("reads_before_edits", {}, document("hi", calls=(READ, EDIT)), PASS, (None, None)),
    ("reads_before_edits", {}, document("hi", calls=(ls(), EDIT)), FAIL, (2, 2)),
    ("reads_before_edits", {}, document("hi", calls=(READ,)), NOT, (None, None)),
    ("reads_before_edits", {}, document("hi", calls=(EDIT | {"status": "error"},)), NOT, (None, None)),
    ("reads_before_edits", {}, document("hi", calls=(READ | {"status": "error"}, EDIT)), FAIL, (2, 2)),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("read", args={"filePath": "./src/../src/a.py"}), EDIT)),
        PASS,
        (None, None),
    ),
    ("reads_before_edits", {}, document("hi", calls=(call("read", args={"filePath": "rc/a.py"}), EDIT)), FAIL, (2, 2)),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("write", args=READ["function_call"]["args"]), EDIT)),
        PASS,
        (None, None),
    ),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("bash", args={"command": "sed -n 1,9p src/a.py"}), EDIT)),
        PASS,
        (None, None),
    ),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("bash", args={"command": "cat src/aa.py a.pyc"}), EDIT)),
        FAIL,
        (2, 2),
    ),
    (
        "reads_before_edits",
        {},
        document(
            "hi",
            calls=(call("Read", args={"file_path": "a"}), call("Edit", args={"file_path": "a"})),
            source="claude-code",
        ),
        PASS,
        (None, None),
    ),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("replace", args={"file_path": "a"}),), source="gemini"),
        FAIL,
        (2, 1),
    ),
    (
        "reads_before_edits",
        {},
        document(
            "hi",
            calls=(call("apply_patch", args={"input": "*** Begin Patch\n*** Update File: a.py\n"}),),
            source="codex",
        ),
        FAIL,
        (2, 1),
    ),
    (
        "reads_before_edits",
        {},
        document(
            "hi",
            calls=(
                call("shell", args={"command": ["cat", "a.py"]}),
                call("apply_patch", args={"input": "*** Add File: b.py\n+x\n*** Update File: a.py\n"}),
                call("apply_patch", args={"input": "*** Update File: b.py\n"}),
            ),
            source="codex",
        ),
        PASS,
        (None, None),
    ),
    (
        "reads_before_edits",
        {},
        document("hi", calls=(call("Edit", args={"path": "a"}),), source="my-agent"),
        FAIL,
        (2, 1),
    ),
    ("no_forbidden_tools", {"tools": ["web*"]}, document("hi", calls=(ls(), call("webfetch"))), FAIL, (2, 2)),
    ("no_forbidden_tools", {"tools": ["web*"]}, document("hi", calls=(ls(),)), PASS, (None, None)),
    ("no_forbidden_tools", {"tools": ["web*"]}, document(), NOT, (None, None)),
    ("required_tools", {"tools": ["read", "b?sh"]}, document("hi", calls=(READ, ls())), PASS, (None, None)),
    ("required_tools", {"tools": ["read", "grep"]}, document("hi", calls=(READ,)), FAIL, (None, None)),
    (
        "no_unknown_tools",
        {},
        document("hi", calls=(ls(), call("x", status="error", error_kind="unknown_name"))),
        FAIL,
        (2, 2),
    ),
    ("no_unknown_tools", {}, document("hi", calls=(ls(status="error"),)), PASS, (None, None)),
    ("no_unknown_tools", {}, document("hi"), NOT, (None, None)),
    ("no_failed_commands", {}, document("hi", calls=(ls(exit_code=0), ls(exit_code=2))), FAIL, (2, 2)),
    ("no_failed_commands", {}, document("hi", calls=(ls(exit_code=0),)), PASS, (None, None)),
    ("no_failed_commands", {}, document("hi", calls=(ls(),)), NOT, (None, None)),
    ("no_failed_commands", {}, document("hi", calls=(ls(status="error"),)), FAIL, (2, 1)),
    (
        "no_failed_commands",
        {},
        document("hi", calls=(ls(status="error", error_kind="interrupted"),)),
        NOT,
        (None, None),
    ),
    ("no_failed_commands", {"ignore": ["^ls"]}, document("hi", calls=(ls(exit_code=2),)), NOT, (None, None)),
    ("no_failed_commands", {}, document("hi", calls=(READ | {"exit_code": 1},)), NOT, (None, None)),
    ("no_truncated_outputs", {}, document("hi", calls=(ls(), ls(truncated=True))), FAIL, (2, 2)),
    ("no_truncated_outputs", {}, document("hi", calls=(ls(),)), PASS, (None, None)),
    ("no_truncated_outputs", {}, document("hi"), NOT, (None, None)),
    ("no_false_success", {}, document("hi", "All tests pass.", calls=(TESTS_FAILED,)), FAIL, (2, 1)),
    ("no_false_success", {}, document("hi", "One test fails.", calls=(TESTS_FAILED,)), PASS, (None, None)),
    ("no_false_success", {}, document("hi", "All tests pass.", calls=(TESTS_PASSED,)), NOT, (None, None)),
    ("no_false_success", {}, document("hi", "All tests pass.", calls=(TESTS_FAILED, TESTS_PASSED)), NOT, (None, None)),
    ("no_false_success", {}, document("hi", "All tests pass.", calls=(ls(exit_code=1),)), NOT, (None, None)),
    ("no_false_success", {}, document("hi", "ok", "go", "Tests are green now.", calls=(TESTS_FAILED,)), FAIL, (4, 1)),
    (
        "no_false_success",
        {},
        document("hi", "All tests pass.", "and?", calls=(TESTS_FAILED | {"turn": 4},)),
        NOT,
        (None, None),
    ),
    ("max_turns", {"limit": 2}, document("a", "b"), PASS, (None, None)),
    ("max_turns", {"limit": 2}, document("a", "b", "c"), FAIL, (None, None)),
    ("max_turns", {"limit": 0}, document(), NOT, (None, None)),
    ("max_calls", {"limit": 1}, document("hi", calls=(ls(executed_by="user"), ls(), ls())), FAIL, (2, 3)),
    ("max_calls", {"limit": 1}, document("hi", calls=(ls(),)), PASS, (None, None)),
    ("max_calls", {"limit": 1}, document("hi"), PASS, (None, None)),
    ("max_errors", {"limit": 1}, document("hi", calls=(ls(status="error"), ls(), ls(status="error"))), FAIL, (2, 3)),
    ("max_errors", {"limit": 1}, document("hi", calls=(ls(status="error"), ls(status="refused"))), PASS, (None, None)),
    ("max_errors", {"limit": 1}, document("hi"), NOT, (None, None)),
    ("max_cost_usd", {"limit": 0.5}, document("hi", cost_usd=0.6), FAIL, (None, None)),
    ("max_cost_usd", {"limit": 0.5}, document("hi", cost_usd=0.5), PASS, (None, None)),
    ("max_cost_usd", {"limit": 0.5}, document("hi"), NOT, (None, None)),
    ("max_seconds", {"limit": 59.5}, document("hi"), FAIL, (None, None)),
    ("max_seconds", {"limit": 60}, document("hi"), PASS, (None, None)),
    ("max_seconds", {"limit": 60}, document("hi", updated=None), NOT, (None, None)),
    ("no_secrets", {}, document("hi", "hello"), NOT, (None, None)),
]
IDS = [f"{number}-{case[0]}-{case[3]}" for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("rule", "settings", "session", "state", "place"), CASES, ids=IDS)
def test_a_rule_passes_fails_at_a_place_or_does_not_apply(
    rule: str,
    settings: dict[str, Any],
    session: dict[str, Any],
    state: str,
    place: tuple[int | None, int | None],
) -> None:
    found = finding(rule, session, settings)
    assert (found.state, found.place) == (state, Place(*place))
    assert bool(found.detail) is (state == FAIL)


@pytest.mark.parametrize(
    "claim",
    [
        "All tests pass.",
        "Fixed the bug. All 12 tests are passing now.",
        "The test suite passes",
        "12 tests passed, 0 failed.",
        "The tests pass with no errors.",
        "Everything is green!",
        "I ran it again:\n- all checks passed",
        "All tests pass after the fix, ready to merge.",
        "It now passes all the tests.",
    ],
)
def test_a_claim_of_passing_tests_is_recognized(claim: str) -> None:
    assert finding("no_false_success", document("hi", claim, calls=(TESTS_FAILED,)), {}).state == FAIL


@pytest.mark.parametrize(
    "words",
    [
        "The tests do not pass.",
        "The tests don’t pass yet.",
        "All tests pass except one.",
        "11 tests passed, 1 failed.",
        "The tests should pass now.",
        "Let me check that all tests pass.",
        "Once the tests pass, we can merge.",
        "Do all tests pass?",
        "None of the tests pass.",
        "I changed a.py. The password is set.",
        "The tests passed before my change.",
    ],
)
def test_a_denial_a_plan_and_a_question_are_no_claims(words: str) -> None:
    assert finding("no_false_success", document("hi", words, calls=(TESTS_FAILED,)), {}).state == PASS


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        ".venv/bin/python -m pytest",
        "cd x && npm run test",
        "npm test",
        "go test ./...",
        "cargo nextest run",
        "make -j4 check",
        "./gradlew :app:test",
        ["bash", "-lc", "pytest tests"],
        "yarn vitest run",
    ],
)
def test_test_commands_are_recognized(command: Any) -> None:
    failed = call("bash", args={"command": command}, exit_code=1)
    assert finding("no_false_success", document("hi", "Tests pass.", calls=(failed,)), {}).state == FAIL


@pytest.mark.parametrize(
    "command", ["cat pytest.ini", "pip install pytest-xdist", "ls tests", "git add test.py", "echo latest"]
)
def test_other_commands_are_no_tests(command: str) -> None:
    failed = call("bash", args={"command": command}, exit_code=1)
    assert finding("no_false_success", document("hi", "Tests pass.", calls=(failed,)), {}).state == NOT


@pytest.mark.parametrize(
    ("expect", "texts", "state", "turn"),
    [
        ("absent", ("hi", "fine", "more", "sorry"), FAIL, 4),
        ("absent", ("sorry", "fine"), PASS, None),
        ("present", ("hi", "sorry", "more", "fine"), PASS, None),
        ("present", ("sorry", "fine"), FAIL, None),
        ("present", ("sorry",), NOT, None),
        ("absent", ("sorry",), NOT, None),
    ],
)
def test_a_pattern_is_searched_in_the_agents_words_alone(
    expect: Any, texts: tuple[str, ...], state: str, turn: int | None
) -> None:
    rule = WordPattern(name="apology", pattern="(?i)SORRY", expect=expect)
    found = rule.check(Session(document(*texts)))
    assert (found.state, found.place.turn) == (state, turn)


def test_secrets_are_searched_in_results_and_words() -> None:
    def find(text: str) -> list[str]:
        return ["credential"] if "hunter2" in text else []

    def state(session: dict[str, Any]) -> Finding:
        return RULES["no_secrets"]().check(Session(session, find_secrets=find))

    assert state(document("hunter2")).state == NOT
    assert state(document("hi", "fine", calls=(ls(),))).state == PASS
    assert state(document("hi", calls=(ls(), ls(output="pw hunter2")))).place == Place(2, 2)
    found = state(document("hi", "pw hunter2"))
    assert (found.place, found.detail) == (Place(2, None), "credential in the agent's words")


def test_a_tool_that_does_not_exist_is_named_with_who_can_add_it() -> None:
    made = call("deploy", status="error", error_kind="unknown_name")
    detail = finding("no_unknown_tools", document("hi", calls=(made,)), {}).detail
    assert detail == "deploy is not a tool of the agent, according to its log; only the agent's settings add one"


def test_details_contain_no_captured_text() -> None:
    """A model can call a tool by any name; arguments, outputs and words are captured text in any case."""
    secret = "my card is 4111 1111 1111 1111"
    bad = call(
        secret, args={"command": secret, secret: secret}, output=secret, status="error", truncated=True, exit_code=1
    )
    session = document(secret, secret, calls=(bad, bad, bad | {"error_kind": "unknown_name"}), status="aborted")
    settings: dict[str, dict[str, Any]] = {
        "no_forbidden_tools": {"tools": ["*"]},
        "required_tools": {"tools": ["read"]},
        **{name: {"limit": 0} for name in ("max_turns", "max_calls", "max_errors", "max_seconds", "max_cost_usd")},
    }
    found = [finding(name, session, settings.get(name, {})) for name in RULES]
    assert sum(each.state == FAIL for each in found) > 7
    assert not any("4111" in str(each) or "card" in str(each) for each in found)
