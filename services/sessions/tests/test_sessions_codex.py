"""The traps of Codex's logs, each in an invented log."""

from pathlib import Path
from typing import Any

import pytest

from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from tests.support.agent_logs import AT, Json, codex, read, run, shown, spoken, typed, written


def session(tmp_path: Path, *payloads: tuple[str, Json]) -> Transcript:
    [found], problems = read("codex", written(tmp_path / "rollout-x.jsonl", codex(*payloads)))
    assert problems == []
    return found


def event(kind: str, **fields: Any) -> tuple[str, Json]:
    return "event_msg", {"type": kind, **fields}


@pytest.mark.parametrize(
    ("output", "call"),
    [
        ("Wall time: 1\nProcess exited with code 0\nOutput:\nProcess exited with code 9", "2 exec success 0"),
        ("Wall time: 1\nOutput:\nProcess exited with code 9", "2 exec success"),
        ("Exit code: 2\nWall time: 1 seconds\nOutput:\nno", "2 exec error exit_code 2"),
        ('{"output": "no", "metadata": {"exit_code": 4}}', "2 exec error exit_code 4"),
        ('{"answer": 42}', "2 exec success"),
        ("unsupported call: exec", "2 exec error unknown_name"),
        ("exec command rejected by user", "2 exec refused user_refused"),
        ("Wall time: 0.1 seconds\naborted by user", "2 exec error interrupted"),
        ("aborted by user after 3.1s", "2 exec error interrupted"),
        ("failed to parse function arguments: x", "2 exec error invalid_arguments"),
        ("the manual says: Exit code: 2", "2 exec success"),
    ],
)
def test_the_result_of_a_call(tmp_path: Path, output: str, call: str) -> None:
    found = session(tmp_path, *typed("work"), *run("c0", "exec", {}, output), *spoken("Done."))
    assert shown(found)[2] == [call]


def test_results_as_objects_and_as_parts(tmp_path: Path) -> None:
    calls = [*run("c0", "view", {}, None), *run("c1", "view", {}, None)]
    answers: list[Any] = [
        {"content": "no such file", "success": False},
        [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}],
    ]
    outputs = [
        ("response_item", {"type": "function_call_output", "call_id": f"c{number}", "output": output})
        for number, output in enumerate(answers)
    ]
    found = session(tmp_path, *typed("work"), *calls, *outputs, *spoken("Done."))
    [model, _] = found.messages[1:]
    assert [(call.status, call.output) for call in model.calls] == [("error", "no such file"), ("success", "one\ntwo")]


def test_an_id_of_a_call_that_is_used_again_has_the_next_result(tmp_path: Path) -> None:
    first, second = run("c0", "exec", {"n": 1}, "one"), run("c0", "exec", {"n": 2}, "two")
    found = session(tmp_path, *typed("work"), *first, *second, *spoken("Done."))
    assert [call.output for message in found.messages for call in message.calls] == ["one", "two"]


def test_other_kinds_of_calls_are_calls(tmp_path: Path) -> None:
    items: list[Json] = [
        {"type": "custom_tool_call", "call_id": "c0", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c0", "output": "patch rejected by user"},
        {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "c1", "output": "Exit code: 0\nOutput:\na"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    ]
    found = session(tmp_path, *typed("work"), *(("response_item", item) for item in items), *spoken("Done."))
    assert shown(found)[2] == [
        "2 apply_patch refused user_refused",
        "2 local_shell success 0",
        "2 web_search success",
    ]
    calls = [call.args for message in found.messages for call in message.calls]
    assert calls == [{"input": "*** Begin"}, {"command": ["ls"]}, {"type": "search", "query": "q"}]


def test_a_log_without_events_of_the_user_has_the_words_of_items(tmp_path: Path) -> None:
    [item, _] = typed("work")
    context = ("response_item", typed("# AGENTS.md instructions for /w")[0][1])
    assert shown(session(tmp_path, context, item, *spoken("Done.")))[:2] == (["user: work"], "Done.")


def test_a_task_that_did_not_end_is_aborted_and_one_that_ended_is_not(tmp_path: Path) -> None:
    start, end = event("task_started"), event("task_complete", last_agent_message="Done.")
    assert shown(session(tmp_path, start, *typed("work"), *spoken("Half."))) == (["user: work"], "Half.", [], "aborted")
    assert shown(session(tmp_path, start, *typed("work"), *spoken("Done."), end))[3] == "answered"
    again = session(tmp_path, start, *typed("work"), event("turn_aborted"), *typed("again"), *spoken("Done."))
    assert shown(again)[:2] == (["user: work\n\nagain"], "Done.")
    failed = event("task_complete", error={"message": "429"})
    assert shown(session(tmp_path, start, *typed("work"), failed))[3] == "unanswered"
    assert shown(session(tmp_path, start, *typed("work"), *spoken("Half."), failed))[3] == "aborted"


def test_turns_that_were_rolled_back_are_left_out(tmp_path: Path) -> None:
    back = event("thread_rolled_back", num_turns=1)
    found = session(tmp_path, *typed("one"), *spoken("A."), *typed("two"), *spoken("B."), back, *typed("three"))
    assert shown(found)[:2] == (["user: one", "model: A.", "user: three"], None)


def test_the_last_sum_of_tokens_counts_without_the_cached_twice(tmp_path: Path) -> None:
    counts = [
        event("token_count", info={"total_token_usage": {"input_tokens": n, "cached_input_tokens": 40, "output_tokens": n}})
        for n in (50, 100)
    ]  # fmt: skip
    found = session(tmp_path, *typed("work"), *counts, event("token_count", info=None), *spoken("Done."))
    assert dict(found.tokens) == {"input": 60, "output": 100, "cache_read": 40}


def test_sub_agents_and_forks_name_their_sessions(tmp_path: Path) -> None:
    rows = codex(*typed("work"), *spoken("Done."))
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "x-0", "depth": 1}}}
    rows[0]["payload"] |= {"source": spawn, "forked_from_id": "x-9"}
    origin = {"timestamp": AT.format(1), "type": "session_meta", "payload": {"id": "x-9"}}
    [found], _ = read("codex", written(tmp_path / "rollout-x.jsonl", [rows[0], origin, *rows[1:]]))
    assert (found.session_id, found.parent_session_id, found.forked_from) == ("x-1", "x-0", "x-9")


def test_rows_of_2025_have_no_payload(tmp_path: Path) -> None:
    rows: list[Json] = [
        {"id": "old-1", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "work"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c0"},
        {"type": "function_call_output", "call_id": "c0", "output": '{"output": "a", "metadata": {"exit_code": 0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    [found], problems = read("codex", written(tmp_path / "rollout-x.jsonl", rows))
    assert shown(found) == (["user: work"], "Done.", ["2 shell success 0"], "answered")
    assert (found.session_id, problems) == ("old-1", [])


def test_a_session_without_its_first_row_has_the_id_of_its_file(tmp_path: Path) -> None:
    name = "rollout-2026-11-25T14-30-00-0199c0de-0000-7000-8000-000000000001.jsonl"
    [found], _ = read("codex", written(tmp_path / name, codex(*typed("work"))[1:]))
    assert found.session_id == "0199c0de-0000-7000-8000-000000000001"


def test_stores_are_the_rollouts_below_the_folders_of_sessions(tmp_path: Path) -> None:
    reader = READERS["codex"]
    folders = reader.locations(tmp_path, {})
    assert folders == [tmp_path / ".codex" / "sessions", tmp_path / ".codex" / "archived_sessions"]
    assert reader.locations(tmp_path, {"CODEX_HOME": "/c"})[0] == Path("/c/sessions")
    one = written(folders[0] / "2026" / "11" / "25" / "rollout-a.jsonl", [])
    two = written(folders[1] / "rollout-b.jsonl", [])
    written(tmp_path / ".codex" / "history.jsonl", [])
    assert list(reader.discover(folders)) == [one, two]
