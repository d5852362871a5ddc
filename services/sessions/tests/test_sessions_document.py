"""The document of a session: merged turns, tool calls at their turn, and the final text apart."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from assay_sessions.document import derived, document
from assay_sessions.record import Call, Json, Message, Transcript

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


def made(*messages: Message, **fields: Any) -> Json:
    return document(Transcript("ses_1", "opencode", MOMENT, MOMENT, messages, **fields))


def user(text: str, *calls: Call) -> Message:
    return Message("user", text, calls)


def model(text: str, *calls: Call) -> Message:
    return Message("model", text, calls)


def call(name: str = "bash", **fields: Any) -> Call:
    return Call(name, {"command": "ls"}, **fields)


def words(made: Json) -> list[tuple[str, str]]:
    return [(content["role"], content["parts"][0]["text"]) for content in made["request"]["contents"]]


def answer(made: Json) -> str | None:
    return next((one["content"]["parts"][0]["text"] for one in made["response"]["candidates"]), None)


def turns(made: Json) -> list[int]:
    return [event["turn"] for event in made["intermediate_events"]]


RAN = call(executed_by="user")

CASES: list[tuple[str, list[Message], list[tuple[str, str]], str | None, list[int], str]] = [
    ("no messages", [], [], None, [], "unanswered"),
    ("no answer", [user("a")], [("user", "a")], None, [], "unanswered"),
    ("an answer", [user("a"), model("b")], [("user", "a")], "b", [], "answered"),
    ("two answers in a row", [user("a"), model("b"), model("c")], [("user", "a")], "b\n\nc", [], "answered"),
    ("two prompts in a row", [user("a"), user("b"), model("c")], [("user", "a\n\nb")], "c", [], "answered"),
    (
        "calls between texts",
        [user("a"), model("b", call(), call()), model("c"), user("d"), model("", call()), model("e")],
        [("user", "a"), ("model", "b\n\nc"), ("user", "d")],
        "e",
        [2, 2, 4],
        "answered",
    ),
    (
        "a turn of calls alone keeps its place",
        [user("a"), model("", call()), user("b"), model("c")],
        [("user", "a"), ("model", ""), ("user", "b")],
        "c",
        [2],
        "answered",
    ),
    ("calls and no text", [user("a"), model("", call()), model("")], [("user", "a")], None, [2], "unanswered"),
    ("a text before the last call", [user("a"), model("b", call())], [("user", "a")], "b", [2], "unanswered"),
    (
        "a failed model makes no turn",
        [user("a"), model(""), user("b"), model("c")],
        [("user", "a\n\nb")],
        "c",
        [],
        "answered",
    ),
    ("a command of the user", [user("", RAN), user("a"), model("b")], [("user", "a")], "b", [1], "answered"),
    ("a command after the answer", [user("a"), model("b"), user("", RAN)], [("user", "a")], "b", [2], "answered"),
    ("a file without words", [user(""), model("b")], [("user", "")], "b", [], "answered"),
    ("a model that begins", [model("a"), user("b"), model("c")], [("model", "a"), ("user", "b")], "c", [], "answered"),
    ("a model alone", [model("a", call()), model("b")], [], "a\n\nb", [1], "answered"),
]


@pytest.mark.parametrize(
    ("messages", "contents", "final", "places", "status"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_session_becomes_merged_turns(
    messages: Iterable[Message], contents: list[tuple[str, str]], final: str | None, places: list[int], status: str
) -> None:
    document = made(*messages)
    assert words(document) == contents
    assert answer(document) == final
    assert turns(document) == places
    assert document["metadata"]["status"] == status


def test_an_aborted_session_keeps_its_text_and_is_not_answered() -> None:
    document = made(user("a"), model("Once upon"), aborted=True)
    assert answer(document) == "Once upon"
    assert document["metadata"]["status"] == "aborted"


def test_metadata_counts_merged_turns_and_the_agents_own_calls() -> None:
    metadata = made(user("", RAN), user("a"), user("b"), model("", call()), user("c"), model("", call()), model("d"))[
        "metadata"
    ]
    assert {name: metadata[name] for name in ("total_turns", "user_turns", "model_turns", "total_tools")} == {
        "total_turns": 4,
        "user_turns": 2,
        "model_turns": 2,
        "total_tools": 2,
    }


def test_a_call_keeps_its_result_status_and_times() -> None:
    failed = Call(
        "bash",
        {"command": "exit 3"},
        "no such file",
        status="error",
        error_kind="exit_code",
        exit_code=3,
        call_id="call_1",
        truncated=True,
        started_at=MOMENT,
        duration_ms=12.5,
        child_session_id="ses_2",
    )
    assert made(user("a"), model("", failed))["intermediate_events"] == [
        {
            "function_call": {"name": "bash", "args": {"command": "exit 3"}},
            "function_response": {
                "name": "bash",
                "response": {"error": "no such file", "exit_code": 3, "truncated": True},
            },
            "turn": 2,
            "call_id": "call_1",
            "status": "error",
            "error_kind": "exit_code",
            "exit_code": 3,
            "executed_by": "agent",
            "started_at": "2026-03-04T05:06:07.089Z",
            "duration_ms": 12.5,
            "child_session_id": "ses_2",
        }
    ]


def test_metadata_has_what_is_known_and_extra_fields_do_not_replace_it() -> None:
    there = timezone(timedelta(hours=2))
    document = made(
        user("a"),
        title="t" * 2000,
        model="m-1",
        source_version="1.2",
        parent_session_id="ses_0",
        cost_usd=0.25,
        tokens={"input": 7},
        extra={"agent": "build", "status": "mine", "huge": "x" * 40_000, "last": 1},
    )
    assert document["metadata"] == {
        "total_turns": 1,
        "user_turns": 1,
        "model_turns": 0,
        "total_tools": 0,
        "source": "opencode",
        "source_version": "1.2",
        "status": "unanswered",
        "updated": "2026-03-04T05:06:07.089Z",
        "model": "m-1",
        "parent_session_id": "ses_0",
        "cost_usd": 0.25,
        "tokens": {"input": 7},
        "agent": "build",
        "last": 1,
    }
    assert document["title"] == "t" * 1000
    moved = Transcript("ses_1", "x", MOMENT.astimezone(there), MOMENT, ())
    assert document["created"] == globals()["document"](moved)["created"] == "2026-03-04T05:06:07.089Z"


def test_the_flat_fields_are_those_of_the_published_schema() -> None:
    document = made(
        user("a", RAN), model("b", call(output="x")), user("c"), model("", call(output="y", status="error")), model("d")
    )
    exported = derived(document)
    assert list(exported) == [
        "session_id",
        "title",
        "created",
        "request",
        "response",
        "intermediate_events",
        "prompt",
        "prompt_concat",
        "response_concat",
        "conversation_history",
        "generated_trajectory",
        "metadata",
    ]
    assert exported["prompt"] == "c"
    assert exported["prompt_concat"] == "a\n\nc"
    assert exported["response_concat"] == "b\n\nd"
    assert exported["conversation_history"] == document["request"]["contents"][:2]
    assert exported["generated_trajectory"] == [
        {"tool": "bash", "args": {"command": "ls"}, "output": "x", "turn": 2},
        {"tool": "bash", "args": {"command": "ls"}, "output": "y", "turn": 4},
    ]
    assert {name: exported[name] for name in document} == document


def test_a_session_without_turns_has_empty_flat_fields() -> None:
    exported = derived(made())
    assert (exported["prompt"], exported["prompt_concat"], exported["response_concat"]) == ("", "", "")
    assert exported["conversation_history"] == exported["generated_trajectory"] == []
