"""Rows for Vertex AI: only keys that its SDK accepts, and no call is lost."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_sessions.document import document as session_document
from assay_sessions.record import Message, Transcript
from assay_sessions.vertex import AGENT_KEYS, Refusal, vertex, vertex_agent
from tests.support.random_sessions import MESSAGES
from tests.support.session_documents import call, document

Json = dict[str, Any]
NOW = datetime(2026, 11, 25, tzinfo=UTC)
CALLS = (
    call("glob", 2, "src/calc.py", args={"pattern": "*.py"}, call_id="c1"),
    call("read", 2, "no", status="error", error_kind="tool_error"),
    call("bash", 4, "exit 1", status="error", exit_code=1),
    call("bash", 4, "2 passed", args={"command": "pytest"}),
)
TALK = document("List the files.", "A calculator.", "Run the tests.", "One fails.", calls=CALLS, session_id="ses_7")


def row(made: Json | Refusal) -> Json:
    assert not isinstance(made, Refusal)
    return made


def parts(made: Json, kind: str) -> list[Json]:
    found = []
    for turn in made["agent_data"]["turns"]:
        for event in turn["events"]:
            found += [part[kind] for part in event["content"]["parts"] if kind in part]
    return found


#: The keys of the objects of the Gemini API in a row.
GEMINI_KEYS = {
    "content": {"role", "parts"},
    "part": {"text", "function_call", "function_response"},
    "function_call": {"id", "name", "args"},
    "function_response": {"id", "name", "response"},
    "tool": {"function_declarations"},
    "declaration": {"name"},
}


def unknown_keys(made: Json) -> Iterator[str]:
    data = made["agent_data"]
    yield from data.keys() - AGENT_KEYS["agent_data"]
    for agent in data["agents"].values():
        yield from agent.keys() - AGENT_KEYS["agent"]
        for tool in agent.get("tools", []):
            yield from tool.keys() - GEMINI_KEYS["tool"]
            for declaration in tool["function_declarations"]:
                yield from declaration.keys() - GEMINI_KEYS["declaration"]
    contents = [made["prompt"], made["response"], *made["conversation_history"]]
    for turn in data["turns"]:
        yield from turn.keys() - AGENT_KEYS["turn"]
        for event in turn["events"]:
            yield from event.keys() - AGENT_KEYS["event"]
            contents.append(event["content"])
    for content in contents:
        yield from content.keys() - GEMINI_KEYS["content"]
        for part in content["parts"]:
            yield from part.keys() - GEMINI_KEYS["part"]
            for kind in ("function_call", "function_response"):
                yield from part.get(kind, {}).keys() - GEMINI_KEYS[kind]


def test_every_call_and_every_result_is_in_the_row_in_order() -> None:
    made = row(vertex_agent(TALK))
    calls, results = parts(made, "function_call"), parts(made, "function_response")
    assert [(one["name"], one["args"]) for one in calls] == [
        (e["function_call"]["name"], e["function_call"]["args"]) for e in CALLS
    ]
    assert [one["response"] for one in results] == [each["function_response"]["response"] for each in CALLS]
    assert [one["id"] for one in calls] == [one["id"] for one in results] == ["c1", "call_1", "call_2", "call_3"]
    assert all(isinstance(one["response"], dict) for one in results)


def test_calls_of_the_last_turn_stand_before_its_answer_and_those_of_a_turn_without_words_stay_in_it() -> None:
    talk = document("one", "", "two", "Done.", calls=(call("a", 2), call("b", 4), call("c", 4)))
    [first, second] = row(vertex_agent(talk))["agent_data"]["turns"]

    def said(turn: Json) -> list[str]:
        found = []
        for event in turn["events"]:
            [part] = event["content"]["parts"]
            found.append(part.get("text") or part.get("function_call", part.get("function_response"))["name"])
        return found

    assert said(first) == ["one", "a", "a"]
    assert said(second) == ["two", "b", "b", "c", "c", "Done."]


def test_each_call_has_an_id_of_its_own_also_where_the_agent_used_one_twice_or_none() -> None:
    ids = ("call_1", None, "c", "c", "call_3")
    talk = document("hi", "Done.", calls=tuple(call("t", 2, **({"call_id": one} if one else {})) for one in ids))
    made = row(vertex_agent(talk))
    calls, results = parts(made, "function_call"), parts(made, "function_response")
    assert [one["id"] for one in calls] == [one["id"] for one in results]
    assert len({one["id"] for one in calls}) == len(ids)
    assert [one["id"] for one in calls if one["id"] in ids] == ["call_1", "c", "call_3"]


def test_the_row_has_no_key_that_the_sdk_would_drop_it_for() -> None:
    made = row(vertex_agent(TALK))
    assert list(unknown_keys(made)) == []
    assert list(made) == ["session_id", "prompt", "response", "conversation_history", "agent_data"]


@pytest.mark.parametrize("form", [vertex, vertex_agent])
def test_the_project_of_a_session_is_in_no_row(form: Any) -> None:
    assert row(form(TALK | {"project": "shop"})) == row(form(TALK))


def test_a_turn_begins_with_the_user_and_results_do_not_begin_one() -> None:
    turns = row(vertex_agent(TALK))["agent_data"]["turns"]
    assert [turn["turn_index"] for turn in turns] == [0, 1]
    roles = [[event["content"]["role"] for event in turn["events"]] for turn in turns]
    assert roles == [["user", "model", "tool", "model", "tool", "model"]] * 2
    assert turns[1]["events"][0]["content"]["parts"] == [{"text": "Run the tests."}]


def test_prompts_are_contents_so_that_digits_stay_text() -> None:
    made = row(vertex_agent(document("0012", "2024")))
    assert made["prompt"] == {"role": "user", "parts": [{"text": "0012"}]}
    assert made["response"] == {"role": "model", "parts": [{"text": "2024"}]}
    assert made["conversation_history"] == []
    assert "tools" not in made["agent_data"]["agents"]["agent"]


def test_the_plain_row_ends_with_the_user_and_has_the_calls_with_their_turns_alone() -> None:
    made = row(vertex(TALK))
    assert made["request"]["contents"][-1]["role"] == "user"
    assert [list(event) for event in made["intermediate_events"]] == [
        ["function_call", "function_response", "turn"]
    ] * 4
    assert made["prompt"] == "Run the tests."
    assert [step["tool"] for step in made["generated_trajectory"]] == ["glob", "read", "bash", "bash"]


@given(st.lists(MESSAGES, max_size=8).map(tuple))
def test_nothing_of_any_call_or_any_word_of_a_random_session_is_lost(messages: tuple[Message, ...]) -> None:
    talk = session_document(Transcript("s1", "codex", NOW, NOW, messages))
    made = vertex_agent(talk)
    if isinstance(made, Refusal):
        assert talk["metadata"]["status"] != "answered" or not talk["request"]["contents"]
        return
    own = [each for each in talk["intermediate_events"] if each["executed_by"] == "agent"]
    calls, results = parts(made, "function_call"), parts(made, "function_response")
    assert [{k: v for k, v in each.items() if k != "id"} for each in calls] == [each["function_call"] for each in own]
    assert [{k: v for k, v in each.items() if k != "id"} for each in results] == [
        each["function_response"] for each in own
    ]
    contents = [*talk["request"]["contents"], talk["response"]["candidates"][0]["content"]]
    assert "".join(parts(made, "text")) == "".join(each["parts"][0]["text"] for each in contents)
    assert list(unknown_keys(made)) == []


def test_commands_of_the_user_are_not_the_agents() -> None:
    own = document("hi", "hello", calls=(call("bash", 1, executed_by="user"), call("read", 2)))
    assert [one["name"] for one in parts(row(vertex_agent(own)), "function_call")] == ["read"]
    assert len(row(vertex(own))["intermediate_events"]) == 1


@pytest.mark.parametrize("form", [vertex, vertex_agent])
@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (document(), "no turn of the user"),
        (document("hi"), "no final answer"),
        (document("hi", "I look.", calls=(call("read", 2),), status="unanswered"), "no final answer"),
        (document("hi", calls=(call("read", 2),), status="aborted"), "it was aborted before its answer was complete"),
        (document("hi", "hel", status="aborted"), "it was aborted before its answer was complete"),
    ],
)
def test_a_session_without_a_final_answer_has_no_row(form: Any, made: Json, reason: str) -> None:
    assert form(made) == Refusal(reason)
