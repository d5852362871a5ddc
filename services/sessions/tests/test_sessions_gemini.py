"""The traps of Gemini CLI's logs, each in an invented log."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from tests.support.agent_logs import (
    AT,
    GEMINI_CONTEXT,
    GEMINI_START,
    Json,
    gemini,
    read,
    shown,
    tool_call,
    written,
)  # fmt: skip


def session(tmp_path: Path, *rows: Json) -> Transcript:
    [found], problems = read("gemini", written(tmp_path / "session-1.jsonl", [GEMINI_START, *rows]))
    assert problems == []
    return found


def called(tmp_path: Path, call: Json) -> list[str]:
    rows = gemini(1, "user", "work"), gemini(2, "gemini", "", toolCalls=[call]), gemini(3, "gemini", "Done.")
    return shown(session(tmp_path, *rows))[2]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (tool_call("t", "success", output="fine"), "2 t success"),
        (tool_call("t", "success", output="Output: x\nExit Code: 0\nPGID: 7"), "2 t success 0"),
        (tool_call("t", "success", output="Output: x\nExit Code: 2"), "2 t error exit_code 2"),
        (tool_call("t", "success", output="Exit Code: 2" + "." * 5000), "2 t success"),
        (tool_call("t", "success", output="Output: x\nSignal: SIGKILL"), "2 t error interrupted"),
        (tool_call("t", "error", error='Tool "t" not found. Did you mean x?'), "2 t error unknown_name"),
        (tool_call("t", "error", error="disk full"), "2 t error tool_error"),
        (
            tool_call("t", "cancelled", error="[Operation Cancelled] Reason: User did not allow"),
            "2 t refused user_refused",
        ),
        ({"id": "t_1", "name": "t", "args": {}, "status": "scheduled"}, "2 t error interrupted"),
    ],
)
def test_the_result_of_a_call(tmp_path: Path, call: Json, expected: str) -> None:
    assert called(tmp_path, call) == [expected]


def test_a_resumed_session_has_its_results_beside_the_message_of_the_same_id(tmp_path: Path) -> None:
    asked = gemini(1, "user", "work")
    use: Json = {"functionCall": {"id": "t_1", "name": "t", "args": {"x": 1}}}
    answer: Json = {"functionResponse": {"id": "t_1", "name": "t", "response": {"output": "fine"}}}
    again = [
        GEMINI_CONTEXT,
        asked,
        gemini(2, "gemini", [use]),
        gemini(2, "user", [answer]),
        gemini(3, "gemini", "Done."),
    ]
    found = session(tmp_path, {"$set": {"messages": again}})
    assert shown(found) == (["user: work"], "Done.", ["2 t success"], "answered")
    assert [call.output for message in found.messages for call in message.calls] == ["fine"]


@pytest.mark.parametrize("to", ["g3", {"id": "g3"}, {"messageId": "g3"}])
def test_a_session_goes_on_after_it_was_rewound(tmp_path: Path, to: Any) -> None:
    rows = [gemini(1, "user", "one"), gemini(2, "gemini", "A."), gemini(3, "user", "two"), gemini(4, "gemini", "B.")]
    found = session(tmp_path, *rows, {"$rewindTo": to}, gemini(5, "user", "three"), gemini(6, "gemini", "C."))
    assert shown(found)[:2] == (["user: one", "model: A.", "user: three"], "C.")


@pytest.mark.parametrize(
    "rows",
    [
        [{"$set": {"messages": [GEMINI_CONTEXT]}}],
        [gemini(1, "user", "a prompt that is taken back"), {"$set": {"messages": [GEMINI_CONTEXT]}}],
    ],
)
def test_a_file_without_words_and_calls_is_no_session(tmp_path: Path, rows: list[Json]) -> None:
    assert read("gemini", written(tmp_path / "session-1.jsonl", [GEMINI_START, *rows])) == ([], [])


def test_thoughts_notes_and_contexts_are_no_words(tmp_path: Path) -> None:
    thought: Json = {"text": "I think.", "thought": True}
    rows = [
        GEMINI_CONTEXT,
        gemini(1, "user", [{"text": "work"}, {"inlineData": {"data": "aGk="}}]),
        gemini(2, "info", "Update available"),
        gemini(3, "gemini", [thought, {"text": "Done."}], thoughts=[{"subject": "x"}]),
        gemini(4, "error", "quota"),
    ]
    assert shown(session(tmp_path, *rows)) == (["user: work"], "Done.", [], "answered")


def test_a_killed_session_has_a_call_without_a_result(tmp_path: Path) -> None:
    call: Json = {"id": "t_1", "name": "t", "args": {}, "status": "executing"}
    found = session(tmp_path, gemini(1, "user", "work"), gemini(2, "gemini", "Wait.", toolCalls=[call]))
    assert shown(found)[2:] == (["2 t error interrupted"], "aborted")


def test_changes_set_the_fields_of_the_session(tmp_path: Path) -> None:
    found = session(
        tmp_path, gemini(1, "user", "work"), {"$set": {"summary": "A title", "lastUpdated": "2026-11-25T16:00:00Z"}}
    )
    assert (found.title, found.updated.hour, found.created.isoformat()[:19]) == ("A title", 16, "2026-11-25T14:30:00")


def test_cached_tokens_are_not_counted_twice(tmp_path: Path) -> None:
    tokens = {"input": 100, "output": 7, "cached": 40, "thoughts": 3, "tool": 0, "total": 110}
    first = gemini(2, "gemini", "A.", tokens=tokens)
    found = session(tmp_path, gemini(1, "user", "work"), first, first, gemini(3, "gemini", "B.", tokens=tokens))
    assert dict(found.tokens) == {"input": 120, "output": 14, "reasoning": 6, "cache_read": 80}


def test_an_older_session_is_one_json_file(tmp_path: Path) -> None:
    messages = [
        gemini(1, "user", "work"),
        gemini(2, "gemini", "Done.", toolCalls=[tool_call("t", "success", output="x")]),
    ]
    whole = {"sessionId": "g-0", "startTime": AT.format(0), "lastUpdated": AT.format(5), "messages": messages}
    path = tmp_path / "session-0.json"
    path.write_text(json.dumps(whole, indent=2))
    [found], problems = read("gemini", path)
    assert (found.session_id, problems, shown(found)[2]) == ("g-0", [], ["2 t success"])
    path.write_text(json.dumps(whole)[:200])
    sessions, problems = read("gemini", path)
    assert (sessions, [each.kind for each in problems]) == ([], ["damaged"])


def test_stores_are_the_files_of_chats(tmp_path: Path) -> None:
    reader = READERS["gemini"]
    [root] = reader.locations(tmp_path, {})
    assert reader.locations(tmp_path, {"GEMINI_CLI_HOME": "/g"}) == [Path("/g/.gemini/tmp")]
    one = written(root / "work" / "chats" / "session-1.jsonl", [])
    two = written(root / "work" / "chats" / "session-2.json", [])
    written(root / "work" / "logs.json", [])
    assert list(reader.discover([root])) == [one, two]
