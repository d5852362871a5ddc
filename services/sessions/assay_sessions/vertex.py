"""Rows for the Gen AI evaluation of Vertex AI, from the document of a session. Pure.

Its SDK looks at the first row to tell the format, and drops what it does not expect without an error. So rows have the same keys, and no
others than `AGENT_KEYS`; a test compares them. Files are read with pandas, which turns a column of digits into numbers: prompts are
`Content` objects, never texts.
"""

from itertools import count
from typing import Any, Final, NamedTuple

from assay_sessions.document import agent_events, derived
from assay_sessions.record import Json

#: The keys that the SDK accepts in each object of `agent_data`. One unknown key makes it drop all of it.
AGENT_KEYS: Final[dict[str, frozenset[str]]] = {
    "agent_data": frozenset({"agents", "turns"}),
    "agent": frozenset({"agent_id", "agent_type", "description", "instruction", "tools", "sub_agents"}),
    "turn": frozenset({"turn_index", "turn_id", "events"}),
    "event": frozenset({"author", "content", "event_time", "state_delta", "active_tools"}),
}
#: The agent's name in its own rows.
AGENT: Final = "agent"
_EVENT: Final = ("function_call", "function_response", "turn")
_STEP: Final = ("tool", "args", "output", "turn")


class Refusal(NamedTuple):
    """The reason why a session has no row."""

    reason: str


def vertex(document: Json) -> Json | Refusal:
    """Return the record of a session with `request` and `response`.

    Its contents end with the last turn of the user. It has the agent's own calls with `function_call`, `function_response` and `turn`,
    and the flat fields. Vertex reads the texts alone.
    """
    if refusal := _refused(document):
        return refusal
    row = derived(document)
    row.pop("project", None)
    row["intermediate_events"] = [{name: event[name] for name in _EVENT} for event in agent_events(document)]
    row["generated_trajectory"] = [{name: step[name] for name in _STEP} for step in row["generated_trajectory"]]
    return row


def vertex_agent(document: Json) -> Json | Refusal:
    """Return a row with `agent_data`, from which Vertex's metrics of tools read every call.

    `prompt`, `response` and `conversation_history` are there for its metrics of texts.
    """
    if refusal := _refused(document):
        return refusal
    contents: list[Json] = document["request"]["contents"]
    final: Json = document["response"]["candidates"][0]["content"]
    source = str(document["metadata"].get("source") or "agent")
    tools = sorted({event["function_call"]["name"] for event in agent_events(document)})
    agent: Json = {"agent_id": AGENT, "agent_type": source}
    if tools:
        agent["tools"] = [{"function_declarations": [{"name": name} for name in tools]}]
    return {
        "session_id": document["session_id"],
        "prompt": contents[-1],
        "response": final,
        "conversation_history": contents[:-1],
        "agent_data": {"agents": {AGENT: agent}, "turns": _turns([*contents, final], agent_events(document))},
    }


def _refused(document: Json) -> Refusal | None:
    if not document["request"]["contents"]:
        return Refusal("no turn of the user")
    status = document["metadata"].get("status", "answered")
    if status == "aborted":
        return Refusal("it was aborted before its answer was complete")
    if status != "answered" or not document["response"]["candidates"]:
        return Refusal("no final answer")
    return None


def _turns(contents: list[Json], events: list[Json]) -> list[Json]:
    """Group contents and calls into turns, each of which begins with the user."""
    calls: dict[int, list[Json]] = {}
    for event, identity in zip(events, _identities(events), strict=True):
        calls.setdefault(event["turn"], []).extend(_called(event, identity))
    turns: list[list[Json]] = []
    for number, content in enumerate(contents, 1):
        if content["role"] == "user" or not turns:
            turns.append([])
        spoken = [_said(content)] if any(part.get("text") for part in content["parts"]) else []
        called = calls.pop(number, [])
        turns[-1] += [*spoken, *called] if content["role"] == "user" else [*called, *spoken]
    return [
        {"turn_index": number, "turn_id": f"turn_{number}", "events": events} for number, events in enumerate(turns)
    ]


def _identities(events: list[Json]) -> list[str]:
    """Return an id for each call: its own, or a new one if it has none or another call of the session has the same."""
    own = {str(event["call_id"]) for event in events if event.get("call_id")}
    made: list[str] = []
    seen: set[str] = set()
    for place, event in enumerate(events):
        identity = str(event.get("call_id") or "")
        if not identity or identity in seen:
            names = (f"call_{place}" + "_again" * times for times in count())
            identity = next(name for name in names if name not in own and name not in seen)
        seen.add(identity)
        made.append(identity)
    return made


def _said(content: Json) -> Json:
    return {"author": "user" if content["role"] == "user" else AGENT, "content": content}


def _called(event: Json, identity: str) -> list[Json]:
    """Return the two events of a call.

    The role `tool` keeps the SDK from beginning a new turn at a result.
    """
    call, response = event["function_call"], event["function_response"]
    made: dict[str, Any] = {"id": identity, "name": call["name"], "args": call["args"]}
    answered = {"id": identity, "name": response["name"], "response": response["response"]}
    return [
        {"author": AGENT, "content": {"role": "model", "parts": [{"function_call": made}]}},
        {"author": AGENT, "content": {"role": "tool", "parts": [{"function_response": answered}]}},
    ]
