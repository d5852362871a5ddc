"""The traps of Claude Code's logs, each in an invented log."""

from pathlib import Path
from typing import Any

import pytest

from assay_sessions.readers import READERS
from tests.support.agent_logs import SECRET, Claude, read, shown, use, words, written

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def log(tmp_path: Path, rows: Claude) -> Path:
    return written(tmp_path / "c-1.jsonl", rows.rows)


def test_results_of_parallel_calls_beside_the_path_are_used(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", use("t1", "Read")).model("m1", use("t2", "Glob"))
    rows.result("t1", "one").result("t2", "two").model("m2", words("Done."))
    rows.rows[3]["parentUuid"] = "u1"  # the result of t1 is a leaf beside the path
    rows.rows[4]["parentUuid"] = "u2"
    [found], _ = read("claude-code", log(tmp_path, rows))
    assert [(call.name, call.output) for message in found.messages for call in message.calls] == [
        ("Read", "one"),
        ("Glob", "two"),
    ]
    assert shown(found)[:2] == (["user: work"], "Done.")
    assert found.tokens["output"] == 2 * 7


def test_a_compacted_session_goes_on_over_its_boundary(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", words("One."))
    rows.row("system", {}, parent=None, logicalParentUuid="u1", subtype="compact_boundary")
    rows.user("a summary", isCompactSummary=True).user("more").model("m2", words("Two."))
    [found], problems = read("claude-code", log(tmp_path, rows))
    assert (shown(found)[:2], problems) == ((["user: work", "model: One.", "user: more"], "Two."), [])


def test_a_damaged_line_does_not_cut_the_session(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", words("One.")).user("more").model("m2", words("Two."))
    text = [*rows.rows[:2], '{"type": "user", "uuid": "u2", "mess', rows.rows[3]]
    [found], problems = read("claude-code", written(tmp_path / "c-1.jsonl", text))
    assert shown(found)[:2] == (["user: work"], "One.\n\nTwo.")
    assert [(each.kind, each.count) for each in problems] == [("damaged", 1)]


@pytest.mark.parametrize(
    ("content", "fields", "call", "status"),
    [
        ("Exit code 127\nnot found", {"is_error": True}, "2 Bash error exit_code 127", "answered"),
        (REFUSED, {"is_error": True}, "2 Bash refused user_refused", "answered"),
        ("<tool_use_error>InputValidationError: x", {"is_error": True}, "2 Bash error invalid_arguments", "answered"),
        ("<tool_use_error>File has not been read", {"is_error": True}, "2 Bash error tool_error", "answered"),
        ("Permission to use Bash has been denied.", {"is_error": True}, "2 Bash refused rule_refused", "answered"),
        ("Exit code 3 is what the manual says", {}, "2 Bash success", "answered"),
    ],
)
def test_the_result_of_a_call(tmp_path: Path, content: str, fields: dict[str, Any], call: str, status: str) -> None:
    rows = Claude().user("work").model("m1", use("t1", "Bash", command="x")).result("t1", content, **fields)
    [found], _ = read("claude-code", log(tmp_path, rows.model("m2", words("Done."))))
    assert shown(found)[2:] == ([call], status)


def test_a_command_stopped_by_the_user_was_interrupted_and_ends_the_session(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", use("t1", "Bash")).result("t1", "part of the output")
    rows.rows[-1]["toolUseResult"] = {"interrupted": True, "stdout": "part of the output"}
    rows.user([words("[Request interrupted by user for tool use]")])
    [found], _ = read("claude-code", log(tmp_path, rows))
    assert shown(found) == (["user: work"], None, ["2 Bash error interrupted"], "aborted")


def test_a_question_that_only_the_api_answered_with_an_error_is_unanswered(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", words("API Error: 529 overloaded"), isApiErrorMessage=True)
    rows.rows[-1]["message"]["model"] = "<synthetic>"
    rows.rows[-1]["message"]["usage"] = {"input_tokens": 0, "output_tokens": 0}
    [found], _ = read("claude-code", log(tmp_path, rows))
    assert shown(found) == (["user: work"], None, [], "unanswered")
    assert (found.model, dict(found.tokens)) == (None, {})


def test_rows_of_a_sub_agent_in_the_file_of_its_session_are_not_its_turns(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", use("t1", "Task", prompt="look"))
    rows.user("look", isSidechain=True, parent=None).model("m2", words("Seen."), isSidechain=True)
    rows.result("t1", "Seen.").model("m3", words("Done."))
    rows.rows[4]["parentUuid"] = "u1"
    [found], _ = read("claude-code", log(tmp_path, rows))
    assert shown(found) == (["user: work"], "Done.", ["2 Task success"], "answered")
    assert found.tokens["output"] == 2 * 7


def test_a_call_names_the_session_of_the_sub_agent_that_it_started(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", use("t1", "Task")).result("t1", "Seen.").model("m2", words("Done."))
    rows.rows[2]["toolUseResult"] = {"agentId": "7"}
    log(tmp_path, rows)
    agent = Claude().user("look", isSidechain=True).model("m2", words("Seen."), isSidechain=True)
    written(tmp_path / "c-1" / "subagents" / "agent-7.jsonl", agent.rows)
    found, _ = read("claude-code", tmp_path)
    children = [call.child_session_id for each in found for message in each.messages for call in message.calls]
    assert children == ["agent-7"]
    assert {each.session_id for each in found} == {"c-1", "agent-7"}


def test_commands_that_the_user_ran_are_the_users(tmp_path: Path) -> None:
    rows = Claude().user("<bash-input>git status</bash-input>")
    rows.user("<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>").user("commit").model("m1", words("No."))
    [found], _ = read("claude-code", log(tmp_path, rows))
    [call] = [call for message in found.messages for call in message.calls]
    assert (call.args, call.output, call.executed_by) == ({"command": "git status"}, "clean", "user")
    assert shown(found)[:2] == (["user: commit"], "No.")


def test_slash_commands_are_commands_of_the_user_and_no_turns(tmp_path: Path) -> None:
    rows = Claude().user(
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>"
    )
    rows.user("<local-command-stdout>Set model to m1</local-command-stdout>")
    rows.user(
        "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>src x</command-args>"
    )
    rows.user("Review the code below src x.", isMeta=True).model("m1", words("Fine."))
    [found], _ = read("claude-code", log(tmp_path, rows))
    calls = [call for message in found.messages for call in message.calls]
    assert [(call.name, call.args, call.output, call.executed_by) for call in calls] == [
        ("slash_command", {"command": "/model"}, "Set model to m1", "user"),
        ("slash_command", {"command": "/review src x"}, "", "user"),
    ]
    assert shown(found)[:2] == ([], "Fine.")


def test_words_said_while_the_model_worked_are_a_turn(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", words("One."))
    rows.row("attachment", {}, attachment={"type": "queued_command", "prompt": "hurry", "commandMode": "prompt"})
    rows.model("m2", words("Two."))
    [found], _ = read("claude-code", log(tmp_path, rows))
    assert shown(found)[:2] == (["user: work", "model: One.", "user: hurry"], "Two.")


def test_a_fork_names_the_session_that_it_copied(tmp_path: Path) -> None:
    first = Claude().user("work").model("m1", words("One."))
    written(tmp_path / "c-1.jsonl", first.user("more").model("m2", words("Two.")).rows)
    fork = Claude().user("work").model("m1", words("One."))
    fork.user("else", uuid="f2", timestamp="2026-11-25T15:00:00Z")
    written(tmp_path / "c-2.jsonl", fork.model("m3", words("Three."), uuid="f3", parent="f2").rows)
    found, _ = read("claude-code", tmp_path)
    assert {each.session_id: each.forked_from for each in found} == {"c-1": None, "c-2": "c-1"}


def test_a_title_that_the_user_gave_comes_before_one_of_the_program(tmp_path: Path) -> None:
    rows = Claude().user("work").model("m1", words("Done.")).rows
    titles = [{"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "Its"}]
    [found], problems = read("claude-code", written(tmp_path / "c-1.jsonl", [*rows, *titles]))
    assert (found.title, problems) == ("Mine", [])


def test_an_unknown_block_of_a_message_is_counted_without_its_content(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    rows = Claude().user("work").model("m1", thought, {"type": "hologram", "data": SECRET}, words("Done."))
    [found], problems = read("claude-code", log(tmp_path, rows))
    assert shown(found)[:2] == (["user: work"], "Done.")
    assert [(each.kind, each.detail) for each in problems] == [("unknown_type", "block hologram")]


def test_stores_are_the_folders_of_projects_and_named_files(tmp_path: Path) -> None:
    reader = READERS["claude-code"]
    [projects] = reader.locations(tmp_path, {})
    assert projects == tmp_path / ".claude" / "projects"
    assert reader.locations(tmp_path, {"CLAUDE_CONFIG_DIR": "/c"}) == [Path("/c/projects")]
    one = written(projects / "-work-a" / "c-1.jsonl", Claude().user("a").rows)
    written(projects / "-work-b" / "c-2.jsonl", Claude().user("b").rows)
    folders = [projects / "-work-a", projects / "-work-b"]
    for given, expected in ((projects, folders), (tmp_path / ".claude", folders), (one, [one]), (tmp_path / "no", [])):
        assert list(reader.discover([given])) == expected
