"""JSON lines as sessions: exported documents come back as they were, and other records and messages are understood."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given

from assay_sessions.document import derived, document
from assay_sessions.readers import READERS, Problem, opencode
from assay_sessions.record import Call, Message, Transcript
from tests.support.opencode_logs import ABORTED, START_MS, Session, assistant, database, tool, user
from tests.support.random_sessions import TRANSCRIPTS

Json = dict[str, Any]
START = datetime(2026, 11, 25, tzinfo=UTC)


def read(path: Path) -> tuple[list[Transcript], list[Problem]]:
    found = list(READERS["jsonl"].read(path, None))
    problems = [each for each in found if isinstance(each, Problem)]
    return [each for each in found if isinstance(each, Transcript)], problems


def lines(path: Path, *rows: Json) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows))
    return path


SESSIONS = [
    Session("turns", [user("List."), assistant("I look.", tool("glob"), tool("read")), assistant("Two."), user("More."), assistant("No.")]),
    Session("tools", [user("Go."), assistant(tool("bash", metadata={"exit": 3})), assistant("It failed.")]),
    Session("aborted", [user("Sleep."), assistant("Waiting.", tool("bash", "error", error="Tool execution aborted"), error=ABORTED)]),
    Session("unanswered", [user("Hello?")]),
    Session("silent", [user("Sleep."), assistant(tool("bash")), user("Back?"), assistant("Yes.")]),
    Session("child", [user("Look."), assistant("Seen.")], fields={"parent_id": "ses_turns"}),
    Session("empty", []),
]  # fmt: skip


def test_an_exported_session_comes_back_exactly(tmp_path: Path) -> None:
    database(tmp_path / "opencode.db", "1.18", SESSIONS)
    read_back = [each for each in opencode.READER.read(tmp_path / "opencode.db", None) if isinstance(each, Transcript)]
    made = {each.session_id: document(each) for each in read_back}
    assert len(made) == len(SESSIONS)
    found, problems = read(lines(tmp_path / "sessions.jsonl", *(derived(each) for each in made.values())))
    assert problems == []
    assert {each.session_id: document(each) for each in found} == made


@given(TRANSCRIPTS)
def test_any_exported_session_comes_back_exactly(transcript: Transcript) -> None:
    made = document(transcript)
    with TemporaryDirectory() as folder:
        [found], problems = read(lines(Path(folder) / "s.jsonl", derived(made)))
    assert problems == []
    assert document(found) == made


def test_a_session_that_ended_with_a_call_stays_unanswered_though_it_said_something_before(tmp_path: Path) -> None:
    made = document(
        Transcript(
            "s1", "codex", START, START, (Message("user", "Go."), Message("model", "I look.", (Call("ls", {}),)))
        )
    )
    assert (made["metadata"]["status"], len(made["response"]["candidates"])) == ("unanswered", 1)
    [found], _ = read(lines(tmp_path / "s.jsonl", derived(made)))
    assert document(found) == made


def test_a_record_that_ends_with_a_turn_of_the_model_has_it_as_its_answer_and_keeps_its_tools(tmp_path: Path) -> None:
    record = {
        "session_id": "ses_1",
        "title": "Session Title",
        "created": "2026-02-16T09:00:00+01:00",
        "request": {
            "contents": [
                {"role": "user", "parts": [{"text": "User input"}]},
                {"role": "model", "parts": [{"text": "Agent response"}]},
            ]
        },
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Agent response"}]}}]},
        "intermediate_events": [
            {
                "function_call": {"name": "fs.list", "args": {"path": "src"}},
                "function_response": {"name": "fs.list", "response": {"output": "a.py"}},
                "turn": 1,
            }
        ],
        "metadata": {"total_turns": 2, "total_tools": 1, "team": "blue"},
    }
    [found], _ = read(lines(tmp_path / "seed.jsonl", record))
    made = document(found)
    assert [content["role"] for content in made["request"]["contents"]] == ["user"]
    assert made["response"]["candidates"][0]["content"]["parts"][0]["text"].startswith("Agent response")
    [event] = made["intermediate_events"]
    assert (event["function_call"], event["turn"], event["status"]) == (
        {"name": "fs.list", "args": {"path": "src"}},
        2,
        "success",
    )
    assert made["created"] == "2026-02-16T08:00:00.000Z"
    assert made["metadata"]["team"] == "blue"
    assert (made["metadata"]["source"], made["metadata"]["total_tools"]) == ("jsonl", 1)


MESSAGES: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather in Bonn?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}},
            {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "not json"}},
            {"id": "c3", "type": "function", "function": {"name": "gone", "arguments": {}}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "tool", "tool_call_id": "c2", "content": "no clock", "is_error": True},
    {"role": "assistant", "content": "Sunny."},
]
CALLS = (
    Call("weather", {"city": "Bonn"}, "sunny", call_id="c1"),
    Call("time", {"raw": "not json"}, "no clock", "error", "tool_error", call_id="c2"),
    Call("gone", {}, "", "error", "interrupted", call_id="c3"),
)


def test_messages_of_one_session_in_a_line_or_one_message_in_a_line_are_the_same_session(tmp_path: Path) -> None:
    one = lines(tmp_path / "one.jsonl", {"session_id": "s1", "created": "2026-01-01T00:00:00Z", "messages": MESSAGES})
    many = lines(tmp_path / "many.jsonl", *({"session_id": "s1", **each} for each in MESSAGES))
    file = lines(tmp_path / "named-by-file.jsonl", *MESSAGES)
    for path, name in ((one, "s1"), (many, "s1"), (file, "named-by-file")):
        [found], problems = read(path)
        assert (found.session_id, problems) == (name, [])
        assert found.messages == (
            Message("user", "Weather in Bonn?"), Message("model", "", CALLS), Message("model", "Sunny."),
        )  # fmt: skip


BLOCKS: list[Json] = [
    {"role": "user", "content": [{"type": "text", "text": "Weather in Bonn?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bonn"}},
            {"type": "tool_use", "id": "t2", "name": "time", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sunny"}, {"type": "image", "source": {}}]},
            {"type": "tool_result", "tool_use_id": "t2", "content": "no clock", "is_error": True},
        ],
    },
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t3", "name": "gone", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3"}, {"type": "text", "text": "And now?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}]},
]  # fmt: skip


def test_tool_calls_in_blocks_of_the_content_are_calls_and_a_turn_of_results_alone_is_none(tmp_path: Path) -> None:
    [found], problems = read(lines(tmp_path / "blocks.jsonl", {"session_id": "s1", "messages": BLOCKS}))
    assert problems == []
    assert found.messages == (
        Message("user", "Weather in Bonn?"),
        Message("model", "I look.", (
            Call("weather", {"city": "Bonn"}, "sunny", call_id="t1"),
            Call("time", {}, "no clock", "error", "tool_error", call_id="t2"),
        )),
        Message("model", "", (Call("gone", {}, call_id="t3"),)),
        Message("user", "And now?"),
        Message("model", "Sunny."),
    )  # fmt: skip
    metadata = document(found)["metadata"]
    assert (metadata["user_turns"], metadata["total_tools"], metadata["status"]) == (2, 3, "answered")


def test_a_search_that_the_api_made_has_its_hits_as_the_result(tmp_path: Path) -> None:
    hits = {
        "type": "web_search_tool_result",
        "tool_use_id": "w1",
        "content": [{"type": "web_search_result", "url": "https://a.test"}],
    }
    content = [
        {"type": "server_tool_use", "id": "w1", "name": "web_search", "input": {"query": "a"}},
        hits,
        {"type": "text", "text": "Found."},
    ]
    rows = [{"role": "user", "content": "Search."}, {"role": "assistant", "content": content}]
    [found], problems = read(lines(tmp_path / "search.jsonl", *rows))
    [call] = found.messages[1].calls
    assert (call.name, json.loads(call.output), found.messages[2], problems) == (
        "web_search", {"type": "web_search_result", "url": "https://a.test"}, Message("model", "Found."), [],
    )  # fmt: skip


def test_blocks_that_are_not_known_and_results_without_a_call_are_counted_and_named(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "hologram", "data": "planted"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hi."}, {"type": "hologram"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": "planted"}]},
    ]
    [found], problems = read(lines(tmp_path / "odd.jsonl", *rows))
    assert found.messages == (Message("user", "Hi."), Message("model", "Hi."))
    assert problems == [
        Problem("unknown_type", "odd.jsonl", 2, "block hologram"),
        Problem("unknown_type", "odd.jsonl", 1, "tool result without its call"),
    ]


def test_a_former_function_call_has_the_next_result_of_its_name(tmp_path: Path) -> None:
    rows: list[Json] = [
        {"role": "user", "content": "Weather in Bonn?"},
        {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": '{"city": "Bonn"}'}},
        {"role": "assistant", "content": "Again.", "function_call": {"name": "weather", "arguments": "{}"}},
        {"role": "function", "name": "weather", "content": "sunny"},
        {"role": "assistant", "function_call": {"name": "time", "arguments": "{}"}},
        {"role": "function", "name": "time", "content": "no clock", "is_error": True},
        {"role": "function", "name": "time", "content": "lost"},
        {"role": "assistant", "content": "Sunny.", "function_call": None},
    ]
    [found], problems = read(lines(tmp_path / "functions.jsonl", *rows))
    assert found.messages == (
        Message("user", "Weather in Bonn?"),
        Message("model", "", (Call("weather", {"city": "Bonn"}, "", "error", "interrupted"),)),
        Message("model", "Again.", (Call("weather", {}, "sunny"),)),
        Message("model", "", (Call("time", {}, "no clock", "error", "tool_error"),)),
        Message("model", "Sunny."),
    )
    assert problems == [Problem("unknown_type", "functions.jsonl", 1, "tool result without its call")]


def test_damaged_lines_are_counted_and_the_first_ones_named_by_number(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    good = '{"role": "user", "content": "Hi."}'
    path.write_text(f"{{\n\n{good}\nplanted\n{good}\n[1]\n7\n{{")
    [found], problems = read(path)
    assert problems == [Problem("damaged", "cut.jsonl", 5, "lines 1, 4, 6 and 2 more")]
    assert len(found.messages) == 2
    path.write_text(f"{good}\n{{")
    assert read(path)[1] == [Problem("damaged", "cut.jsonl", 1, "line 2")]


def test_calls_that_share_an_id_have_their_results_in_order(tmp_path: Path) -> None:
    rows: list[Json] = [{"role": "user", "content": "Go."}]
    for output in ("one", "two"):
        rows += [
            {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": "next", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_0", "content": output},
        ]
    [found], _ = read(lines(tmp_path / "same.jsonl", *rows))
    assert [call.output for message in found.messages for call in message.calls] == ["one", "two"]


def test_the_metadata_of_messages_is_kept(tmp_path: Path) -> None:
    metadata = {"source": "my-agent", "model": "m-1", "cost_usd": 0.5, "team": "blue", "total_tools": 99}
    row = {"session_id": "s", "messages": [{"role": "user", "content": "Hi."}], "metadata": metadata}
    [found], _ = read(lines(tmp_path / "s.jsonl", row))
    assert (found.source, found.model, found.cost_usd, found.extra) == ("my-agent", "m-1", 0.5, {"team": "blue"})


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"session_id": "s", "messages": []}, "no_content"),
        ({"request": {"contents": []}}, "no_session_id"),
        ({"messages": []}, "no_session_id"),
        ({"session_id": "s", "messages": [{"role": "system", "content": "planted"}]}, "nothing_said"),
        ({"role": "system", "content": "planted"}, "nothing_said"),
        ({"spans": []}, "unknown_type"),
        ({"session_id": "s", "messages": [{"role": "wizard", "content": "planted"}]}, "unknown_type"),
    ],
)
def test_a_line_without_an_id_or_a_known_form_is_counted(tmp_path: Path, row: Json, kind: str) -> None:
    found, problems = read(lines(tmp_path / "odd.jsonl", row))
    assert kind in [each.kind for each in problems]
    assert found == []
    assert "planted" not in str(problems)


def test_values_of_the_wrong_type_are_left_out_and_never_stop_the_import(tmp_path: Path) -> None:
    odd = {
        "session_id": "s", "title": 7, "created": "yesterday", "request": {"contents": "none"}, "response": [],
        "intermediate_events": [7, {"turn": "x", "function_call": 1, "function_response": {"response": "text"}}],
        "metadata": {"cost_usd": -1, "tokens": {"input": "many"}, "status": 9, "updated": START_MS},
    }  # fmt: skip
    [found], problems = read(lines(tmp_path / "odd.jsonl", odd))
    assert (found.title, found.cost_usd, dict(found.tokens), problems) == (None, None, {}, [])
    assert json.dumps(document(found))


def test_the_lines_on_the_page_are_sessions_with_the_same_call(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/agents.md").read_text(encoding="utf-8")
    section = page.partition("\n## Your own agent's sessions\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```json\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    path = tmp_path / "documented.jsonl"
    path.write_text("".join(blocks), encoding="utf-8")
    found, problems = read(path)
    assert problems == []
    assert sorted(each.session_id for each in found) == ["blocks-1", "chat-1", "functions-1", "lines-1", "record-1"]
    for each in found:
        made = document(each)
        [event] = made["intermediate_events"]
        assert (event["function_call"], event["function_response"]["response"]["output"], event["status"]) == (
            {"name": "weather", "args": {"city": "Bonn"}}, "rain", "success",
        )  # fmt: skip
        assert (made["metadata"]["user_turns"], made["metadata"]["status"]) == (1, "answered")
    [chat] = [each for each in found if each.session_id == "chat-1"]
    assert (chat.title, chat.source, chat.model, chat.cost_usd, chat.extra) == (
        "Weather", "my-agent", "my-model", 0.01, {"team": "blue"},
    )  # fmt: skip
    [many] = [each for each in found if each.session_id == "lines-1"]
    assert (many.updated - many.created).total_seconds() == 5
