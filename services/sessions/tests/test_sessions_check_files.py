"""The rules file and the file of reference trajectories: their effect, and errors that name the key and what is allowed."""

from pathlib import Path

import pytest

from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.references import first_prompt, normal_prompt, read_references
from assay_sessions.checks.rules_file import RULES, default_rules, parse_rules, read_rules
from assay_sessions.checks.tools import TOOL_NAMES
from assay_sessions.trajectory import ToolCall
from tests.support.session_documents import document

WHOLE = """
[rules.answered]
required = true
min_pass_rate = 0.95

[rules.no_loops]
in_a_row = 4
overall = 10

[rules.max_cost_usd]
limit = 0.5

[rules.trajectory_in_order]
required = true

[[patterns]]
name = "no_apology"
pattern = "(?i)sorry"
expect = "absent"
required = true

[tools.opencode]
run = ["bash", "terminal"]

[tools.my-agent]
read = ["open"]
edit = ["change"]

[trajectory]
args = "superset"
tools = { bash = "ignore" }

[repeats]
by = "task"
k = 3
"""


def test_a_rules_file_names_the_rules_and_what_they_require() -> None:
    rules = parse_rules(WHOLE)
    assert rules.required == ["answered", "trajectory_in_order", "pattern:no_apology"]
    assert rules.by_name["answered"].min_pass_rate == 0.95
    assert rules.by_name["no_loops"].model_dump(include={"in_a_row", "overall"}) == {"in_a_row": 4, "overall": 10}
    assert "max_cost_usd" in rules.by_name
    assert "max_turns" not in rules.by_name
    assert (rules.matching.of("bash"), rules.matching.of("read")) == ("ignore", "superset")
    assert (rules.repeats.by, rules.repeats.k) == ("task", 3)


def test_tools_of_an_agent_replace_a_role_and_keep_the_others() -> None:
    tools = parse_rules(WHOLE).tools
    assert tools["opencode"].run == {"bash", "terminal"}
    assert tools["opencode"].read == TOOL_NAMES["opencode"].read
    assert [tools["my-agent"].role(name) for name in ("open", "change", "bash", "other")] == [
        "read",
        "edit",
        "run",
        None,
    ]


def test_without_a_file_all_rules_run_that_need_no_settings_and_none_is_required() -> None:
    rules = default_rules()
    assert rules.required == []
    assert set(RULES) - set(rules.by_name) == {
        "no_forbidden_tools",
        "required_tools",
        *(name for name in RULES if name.startswith(("max_", "trajectory_"))),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rules"),
        ("rules = [", "not TOML"),
        ("[rule.answered]", "rule: unknown key; did you mean rules?"),
        ("[rules.anwsered]", "rules.anwsered: no rule of that name; did you mean answered?"),
        ("[rules.zzz]", "rules.zzz: no rule of that name; the valid ones are answered, not_aborted, "),
        ("[rules.answered]\nrequird = true", "rules.answered.requird: unknown key; did you mean required?"),
        ("[rules.answered]\nrequired = 'maybe'", "rules.answered.required: "),
        ("[rules.answered]\nmin_pass_rate = 95", "rules.answered.min_pass_rate: must be less than or equal to 1"),
        ("[rules.answered]\nmin_pass_rate = 0", "rules.answered.min_pass_rate: must be greater than 0"),
        ("[rules.answered]\nmin_pass_rate = nan", "rules.answered.min_pass_rate: "),
        ("[rules.max_turns]\nrequired = true", "rules.max_turns.limit: is missing"),
        ("[rules.max_turns]\nlimit = -1", "rules.max_turns.limit: must be greater than or equal to 0"),
        ("[rules.no_loops]\nin_a_row = 1", "rules.no_loops: in_a_row and overall must be 0 or at least 2"),
        ("[rules.no_loops]\nin_a_row = 0", "rules.no_loops: in_a_row and overall are both 0"),
        ("[rules.no_forbidden_tools]\ntools = []", "rules.no_forbidden_tools.tools: "),
        ("rules = 3", "rules: must be an object"),
        ("[rules]\nanswered = 3", "rules.answered: must be an object"),
        (
            "[[patterns]]\nname = 'a'\npattern = '('\nexpect = 'absent'",
            "patterns.a.pattern: not a regular expression: ",
        ),
        (
            "[[patterns]]\nname = 'a'\npattern = '(?=x)'\nexpect = 'absent'",
            "patterns.a.pattern: not a regular expression: ",
        ),
        (
            "[[patterns]]\nname = 'a'\npattern = 'x'\nexpect = 'gone'",
            "patterns.a.expect: must be 'present' or 'absent'",
        ),
        ("[[patterns]]\nname = 'a'\npattern = 'x'\nexpct = 'absent'", "patterns.a.expect: is missing"),
        (
            "[rules.no_failed_commands]\nignore = ['a(']",
            "rules.no_failed_commands.ignore.0: not a regular expression: ",
        ),
        ("[tools.opencode]\nreads = ['x']", "tools.opencode.reads: unknown key; did you mean read?"),
        ("[tools.opencode]\nread = 'x'", "tools.opencode.read: "),
        ("[trajectory]\nargs = 'fuzzy'", "trajectory.args: must be 'exact', 'subset', 'superset' or 'ignore'"),
        ("[repeats]\nk = 0", "repeats.k: must be greater than or equal to 1"),
    ],
)
def test_an_error_names_the_file_the_key_and_what_is_allowed(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "sessions.toml"
    file.write_text(text)
    with pytest.raises(ChecksError) as error:
        read_rules(file)
    assert str(error.value).startswith(f"{file}: {said}")


def test_two_patterns_of_one_name_are_refused() -> None:
    patterns = "".join(f"[[patterns]]\nname = '{name}'\npattern = '{name}'\nexpect = 'absent'\n" for name in "aba")
    with pytest.raises(ChecksError, match="two patterns are called a: rename one"):
        parse_rules(patterns)


def test_a_pattern_that_backtracks_elsewhere_takes_linear_time() -> None:
    rules = parse_rules("[[patterns]]\nname = 'slow'\npattern = '^(a+)+$'\nexpect = 'absent'")
    from assay_sessions.checks.session import Session

    assert rules.by_name["pattern:slow"].check(Session(document("hi", "a" * 100_000 + "!"))).state == "pass"


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChecksError, match=r"none\.toml cannot be read: No such file"):
        read_rules(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(ChecksError, match="not UTF-8"):
        read_rules(tmp_path / "latin.toml")
    with pytest.raises(ChecksError, match=r"none\.jsonl cannot be read: No such file"):
        read_references(tmp_path / "none.jsonl")


REFERENCES = """\
{"session_id": "ses_1", "calls": [{"name": "read", "args": {"path": "a"}}, {"name": "ls"}]}

{"prompt": " Fix  the bug ", "calls": [{"tool_name": "read", "tool_input": {"path": "b"}}]}
"""


def test_a_reference_is_found_by_session_and_by_the_first_prompt(tmp_path: Path) -> None:
    file = tmp_path / "references.jsonl"
    file.write_text("\ufeff" + REFERENCES)
    references = read_references(file)
    assert references.of("ses_1", document("Fix the bug")) == [ToolCall("read", {"path": "a"}), ToolCall("ls", {})]
    assert [str(each) for each in references.unused] == ["line 3 (by prompt)"]
    by_prompt = [ToolCall("read", {"path": "b"})]
    assert references.of("ses_2", document('"Fix the\nbug"', "ok", "more")) == by_prompt
    assert references.of("ses_3", document("More", "ok", "Fix the bug")) is None
    assert references.unused == []


def test_a_prompt_is_compared_without_the_quotation_marks_of_a_command_line() -> None:
    assert normal_prompt('"say "hi" "') == 'say "hi"'
    assert normal_prompt('"') == '"'
    assert first_prompt(document("", "what?", "  hi ")) == "hi"
    assert first_prompt(document()) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no references"),
        ("\n{", "line 2: not JSON"),
        ('{"calls": []}', "line 1: give either session_id or prompt"),
        ('{"session_id": "a", "prompt": "b", "calls": []}', "line 1: give either session_id or prompt"),
        ('{"prompt": " ", "calls": []}', "line 1: prompt is blank"),
        ('{"session_id": "a"}', "line 1: calls: is missing"),
        (
            '{"session_id": "a", "calls": [], "x": 1}',
            "line 1: x: unknown key; the valid keys are session_id, prompt, calls",
        ),
        (
            '{"session_id": "a", "calls": [{"name": "f", "arg": {}}]}',
            "line 1: calls.0.arg: unknown key; the valid keys are name, args",
        ),
        ('{"session_id": "a", "calls": [{"name": "f", "args": "{}"}]}', "line 1: calls.0.args: must be an object"),
        (
            '{"session_id": "a", "calls": []}\n{"session_id": "a", "calls": []}',
            "line 2: a second reference for the same session_id",
        ),
        (
            '{"prompt": "a", "calls": []}\n{"prompt": " a", "calls": []}',
            "line 2: a second reference for the same prompt",
        ),
        ("[]", "line 1: must be an object"),
    ],
)
def test_an_error_in_the_references_names_the_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "references.jsonl"
    file.write_text(text)
    with pytest.raises(ChecksError) as error:
        read_references(file)
    assert str(error.value).startswith(f"{file}: {said}")
