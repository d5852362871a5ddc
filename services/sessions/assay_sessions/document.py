"""The document of a session: its form in the store and in exports, independent of the agent. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from assay_sessions.portable import portable, portable_text
from assay_sessions.record import Call, Json, Message, SessionStatus, Transcript

#: A title is a line, and models write it. In characters.
TITLE_MAX = 1_000
#: Bytes of JSON of the fields that a reader adds to `metadata`.
EXTRA_MAX = 32 * 1024


class Turn(NamedTuple):
    """Consecutive messages of one role."""

    role: Literal["user", "model"]
    texts: list[str]

    def content(self) -> Json:
        """Return the turn as a Gemini API `Content`. A turn of tool calls alone has an empty text."""
        return {"role": self.role, "parts": [{"text": "\n\n".join(self.texts)}]}


def document(transcript: Transcript) -> Json:
    """Return the document of a session, as JSON.

    - `session_id`, `title`, `created` (RFC 3339, UTC)
    - `request.contents`: `[{role: user|model, parts: [{text}]}]`. Consecutive turns of one role are merged with a blank line. The
      last user turn is the last item. A turn of tool calls alone keeps its place with an empty text.
    - `response.candidates`: `[{content: {role: model, parts: [{text}]}}]`, the text after the last user turn; `[]` without one. It
      is the final answer only if `metadata.status` is `answered`.
    - `intermediate_events`: `[{function_call: {name, args}, function_response: {name, response: {output | error, exit_code?,
      truncated?}}, turn, call_id?, status, error_kind?, exit_code?, executed_by, started_at?, duration_ms?, child_session_id?}]`.
      `turn` is the index, from 1, of the turn in `request.contents`; it is one more for the last model turn. A command that the
      user ran makes no turn: it has the index of the turn before it, or 1.
    - `metadata`: `{total_turns, user_turns, model_turns, total_tools, source, source_version?, status, updated, model?,
      parent_session_id?, forked_from?, cost_usd?, tokens?, ...extra}`. Turns are those after merging. `total_tools` counts the
      agent's own calls. `status` is `answered` if the last message of the model has text and calls no tool, `aborted` if the
      session was interrupted there, and `unanswered` otherwise.

    Values are made portable: see `assay_sessions.portable`.
    """
    turns, events = _turns_and_events(transcript.messages)
    last_user = max((number for number, turn in enumerate(turns, 1) if turn.role == "user"), default=0)
    answer = "\n\n".join(turns[-1].texts) if len(turns) > last_user else ""
    title = transcript.title
    return {
        "session_id": portable_text(transcript.session_id),
        "title": None if title is None else portable_text(title[:TITLE_MAX]),
        "created": rfc3339(transcript.created),
        "request": {"contents": [turn.content() for turn in turns[:last_user]]},
        "response": {
            "candidates": [{"content": {"role": "model", "parts": [{"text": answer}]}}] if answer.strip() else []
        },
        "intermediate_events": events,
        "metadata": _metadata(transcript, turns, events),
    }


def derived(document: Json) -> Json:
    """Return a document with the flat fields that are made when it is exported, and never stored.

    They are `prompt` (the last user turn), `prompt_concat`, `response_concat`, `conversation_history` (the turns before the last
    user turn) and `generated_trajectory` (`[{tool, args, output, turn}]`, the agent's own calls).
    """
    contents: list[Json] = document["request"]["contents"]
    answers = [candidate["content"] for candidate in document["response"]["candidates"]]
    flat = {
        "prompt": content_text(contents[-1]) if contents else "",
        "prompt_concat": _concatenated(contents, "user"),
        "response_concat": _concatenated([*contents, *answers], "model"),
        "conversation_history": contents[:-1],
        "generated_trajectory": [_step(event) for event in agent_events(document)],
    }
    fields = {name: value for name, value in document.items() if name != "metadata"}
    return fields | flat | {"metadata": document["metadata"]}


def agent_events(document: Json) -> list[Json]:
    """Return the tool calls of the agent, without the commands that the user ran."""
    return [event for event in document["intermediate_events"] if event.get("executed_by") != "user"]


def content_text(content: Json) -> str:
    """Return the text of a Gemini API `Content`."""
    return "".join(part.get("text", "") for part in content["parts"])


def rfc3339(moment: datetime) -> str:
    """Return a time as RFC 3339 in UTC with milliseconds. A time without a zone is UTC."""
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _turns_and_events(messages: Sequence[Message]) -> tuple[list[Turn], list[Json]]:
    turns: list[Turn] = []
    events: list[Json] = []
    for message in messages:
        if _makes_turn(message):
            if not turns or turns[-1].role != message.role:
                turns.append(Turn(message.role, []))
            if message.text.strip():
                turns[-1].texts.append(portable_text(message.text))
        events += [_event(call, max(1, len(turns))) for call in message.calls]
    return turns, events


def _makes_turn(message: Message) -> bool:
    """An empty message of a user has a turn, such as an attached file, unless it only runs a command."""
    if message.text.strip() or any(call.executed_by == "agent" for call in message.calls):
        return True
    return message.role == "user" and not message.calls


def _event(call: Call, turn: int) -> Json:
    response: Json = {"output" if call.status == "success" else "error": portable_text(call.output)}
    if call.exit_code is not None:
        response["exit_code"] = call.exit_code
    if call.truncated:
        response["truncated"] = True
    name = portable_text(call.name)
    event: Json = {
        "function_call": {"name": name, "args": portable(call.args)},
        "function_response": {"name": name, "response": response},
        "turn": turn,
        "call_id": portable(call.call_id),
        "status": call.status,
        "error_kind": call.error_kind,
        "exit_code": call.exit_code,
        "executed_by": call.executed_by,
        "started_at": None if call.started_at is None else rfc3339(call.started_at),
        "duration_ms": call.duration_ms,
        "child_session_id": portable(call.child_session_id),
    }
    return {name: value for name, value in event.items() if value is not None}


def _metadata(transcript: Transcript, turns: Sequence[Turn], events: Sequence[Json]) -> Json:
    users = sum(turn.role == "user" for turn in turns)
    metadata: Json = {
        "total_turns": len(turns),
        "user_turns": users,
        "model_turns": len(turns) - users,
        "total_tools": sum(event["executed_by"] == "agent" for event in events),
        "source": transcript.source,
        "source_version": transcript.source_version,
        "status": _status(transcript),
        "updated": rfc3339(transcript.updated),
        "model": transcript.model,
        "parent_session_id": transcript.parent_session_id,
        "forked_from": transcript.forked_from,
        "cost_usd": transcript.cost_usd,
        "tokens": dict(transcript.tokens) or None,
    }
    own = portable({name: value for name, value in metadata.items() if value is not None})
    room = EXTRA_MAX
    for name, value in portable(transcript.extra).items():
        size = len(name) + len(repr(value))
        if name not in metadata and size <= room:
            own[name] = value
            room -= size
    return dict(own)


def _status(transcript: Transcript) -> SessionStatus:
    if transcript.aborted:
        return "aborted"
    own = [message for message in transcript.messages if _makes_turn(message)]
    if not own or own[-1].role == "user" or not own[-1].text.strip():
        return "unanswered"
    return "unanswered" if any(call.executed_by == "agent" for call in own[-1].calls) else "answered"


def _concatenated(contents: Sequence[Json], role: str) -> str:
    texts = [content_text(content) for content in contents if content["role"] == role]
    return "\n\n".join(text for text in texts if text)


def _step(event: Json) -> Json:
    response: dict[str, Any] = event["function_response"]["response"]
    call = event["function_call"]
    output = response["output"] if "output" in response else response.get("error", "")
    return {"tool": call["name"], "args": call["args"], "output": output, "turn": event["turn"]}
