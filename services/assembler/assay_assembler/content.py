"""Find question and answer of a step in all generations of attributes and events.

Which instrumentation sends which is not a question of its version: several generations are in use side by side.
"""

from collections.abc import Iterable

from assay_assembler.messages import NO_MESSAGE, Message, content, final, last_user, question, reply
from assay_assembler.span import Attributes, Span
from assay_assembler.values import container, first, indexed, text

#: Reasons to stop that mean: run a tool and call again.
_TOOL_STOPS = frozenset({"tool_calls", "tool_call", "tool-calls", "tool_use", "function_call"})
_DETAILS = "gen_ai.client.inference.operation.details"
#: Whole conversations, with the question and the answer.
_CONVERSATIONS = ("pydantic_ai.all_messages", "all_messages_events", "events")


def asked(span: Span) -> str:
    """Return the last text of the user that a step was given; empty without content."""
    attributes = span.attributes
    raw = attributes.get("gen_ai.input.messages")
    found = last_user(raw) if raw is not None else ""
    if not found and span.events:
        found = _asked_in_events(span)
    return found or _asked_before(attributes) or question(first(attributes, "traceloop.entity.input", "input.value"))


def has_unreadable(attributes: Attributes) -> bool:
    """Return whether a step has messages that are not JSON, such as a plain text or JSON that an SDK cut."""
    given = (attributes.get(name) for name in ("gen_ai.input.messages", "gen_ai.output.messages"))
    return any(isinstance(each, str) and bool(each.strip()) and container(each) is None for each in given)


def _asked_before(attributes: Attributes) -> str:
    """Return the user's text in older generations of attributes."""
    for name, value in attributes.items():  # `gen_ai.prompt.N.role`, without grouping all of them
        if name.startswith("gen_ai.prompt."):
            found = _last_prompt(attributes) or _only_prompt(attributes)
            if found:
                return found
            break
        if name == "gen_ai.prompt" and (found := question(value)):
            return found
    for name in _CONVERSATIONS:
        if name in attributes and (found := last_user(attributes[name])):
            return found
    data = container(attributes.get("request_data"))  # Logfire
    return question(data) if isinstance(data, dict) else ""


def _last_prompt(attributes: Attributes) -> str:
    places = [
        int(number)
        for name, value in attributes.items()
        if value == "user"
        and name.startswith("gen_ai.prompt.")
        and name.endswith(".role")
        and len(number := name[14:-5]) <= 9
        and number.isascii()
        and number.isdecimal()
    ]
    for place in sorted(places, reverse=True):
        found = content(attributes.get(f"gen_ai.prompt.{place}.content"))[0]
        if found:
            return found
    return ""


def _only_prompt(attributes: Attributes) -> str:
    """Return the one prompt of a text completion, which has no role."""
    alone = attributes.get("gen_ai.prompt.0.content")
    return (
        text(alone) if "gen_ai.prompt.0.role" not in attributes and "gen_ai.prompt.1.content" not in attributes else ""
    )


def _asked_in_events(span: Span) -> str:
    found = ""
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.user.message":
            found = content(attributes.get("content"))[0] or question(attributes) or found
        elif event.name == "gen_ai.content.prompt":
            found = question(attributes.get("gen_ai.prompt")) or found
        elif event.name == _DETAILS:
            found = last_user(attributes.get("gen_ai.input.messages")) or found
    return found


def answered(span: Span) -> Message:
    """Return what the model answered: text, and whether it asks for a tool. Both empty without content."""
    attributes = span.attributes
    raw = attributes.get("gen_ai.output.messages")
    found = final(raw) if raw is not None else NO_MESSAGE
    if not _says(found) and span.events:
        found = _answered_in_events(span)
    if not _says(found):
        found = _answered_before(attributes)
    if not _says(found):
        found = reply(first(attributes, "traceloop.entity.output", "output.value"))
    return Message("assistant", found.text, calls=True) if not found.calls and stopped_for_tool(attributes) else found


def _answered_before(attributes: Attributes) -> Message:
    for name, value in attributes.items():
        if name.startswith("gen_ai.completion."):
            found = _completions(attributes)
            if _says(found):
                return found
            break
        if name == "gen_ai.completion" and _says(found := reply(value)):
            return found
    result = attributes.get("final_result")
    if result:
        return reply(result)
    for name in _CONVERSATIONS:
        if name in attributes and _says(found := final(attributes[name])):
            return found
    data = container(attributes.get("response_data"))  # Logfire
    return _logfire(data) if isinstance(data, dict) else NO_MESSAGE


def _logfire(data: dict[str, object]) -> Message:
    streamed = data.get("combined_chunk_content")
    return Message("assistant", streamed, calls=False) if isinstance(streamed, str) else reply(data)


def _completions(attributes: Attributes) -> Message:
    found, calls = "", False
    for group in indexed(attributes, "gen_ai.completion."):
        said, asks = content(group.get("content"))
        found = found or said
        calls = calls or asks or text(group.get("finish_reason")) in _TOOL_STOPS
        calls = calls or any(name.startswith("tool_calls.") for name in group)
    return Message("assistant", found, calls=calls)


def _answered_in_events(span: Span) -> Message:
    found = NO_MESSAGE
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.choice":
            said = reply(_choice(attributes))
        elif event.name == "gen_ai.content.completion":
            said = reply(attributes.get("gen_ai.completion"))
        elif event.name == _DETAILS:
            said = final(attributes.get("gen_ai.output.messages"))
        else:
            continue
        found = said if _says(said) else found
    return found


def _choice(attributes: Attributes) -> dict[str, object]:
    message = container(attributes.get("message"))
    if isinstance(message, dict):
        return {"role": "assistant", **message}
    body = first(attributes, "content", "message.content", "message")
    return {"role": "assistant", "content": body, "tool_calls": attributes.get("tool_calls")}


def stopped_for_tool(attributes: Attributes) -> bool:
    """Return whether the model stopped to let a tool run."""
    reasons = attributes.get("gen_ai.response.finish_reasons")
    if isinstance(reasons, str):
        reasons = container(reasons) or [reasons]
    return isinstance(reasons, list) and _any_of(reasons)


def _any_of(reasons: Iterable[object]) -> bool:
    return any(isinstance(reason, str) and reason in _TOOL_STOPS for reason in reasons)


def _says(message: Message) -> bool:
    return bool(message.text) or message.calls
