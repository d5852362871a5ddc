"""Read messages and conversations in the forms that instrumentations send. Pure; never raises.

Known forms: GenAI parts, OpenAI chat and responses, Anthropic blocks, Gemini parts, LangChain (plain and serialised),
LlamaIndex blocks, Vercel's AI SDK, pydantic-ai's events.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from assay_assembler.values import container, plain_text, unquoted

#: Levels that are searched for a text.
DEPTH_MAX = 8
#: Messages, parts or values of one level that are read, from the end for messages.
ITEMS_MAX = 2_000

_ROLES = {
    "user": "user", "human": "user", "humanmessage": "user", "humanmessagechunk": "user", "gen_ai.user.message": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant", "chatmessage": "assistant", "gen_ai.assistant.message": "assistant",
    "gen_ai.choice": "assistant", "function_call": "assistant", "chatbot": "assistant",
    "system": "system", "developer": "system", "systemmessage": "system", "gen_ai.system.message": "system",
    "tool": "tool", "function": "tool", "toolmessage": "tool", "gen_ai.tool.message": "tool",
    "function_call_output": "tool",
}  # fmt: skip
_PLAIN = frozenset({"user", "assistant", "system", "tool"})
#: Types of parts that are text, and of parts that ask the client to run a tool.
_TEXTS = frozenset({"text", "input_text", "output_text"})
_CALLS = frozenset({"tool_call", "tool-call", "tool_use", "function_call", "tool_calls"})
#: Fields of an input that hold the question, most specific first.
_QUESTIONS = (
    "messages", "question", "query", "query_str", "str_or_query_bundle", "query_bundle", "user_prompt", "user_message",
    "user_msg", "user_input", "input", "input_str", "prompt", "inputs", "chat_history", "message", "content", "text", "args",
    "kwargs", "contents",
)  # fmt: skip
#: Fields of an output that hold the answer, most specific first.
_ANSWERS = (
    "messages", "answer", "output_text", "final_output", "final_result", "choices", "generations", "message", "response",
    "output", "outputs", "result", "content", "text", "blocks", "parts", "candidates", "kwargs", "completion",
)  # fmt: skip


class Message(NamedTuple):
    """One message: who wrote it, its text without reasoning, whether it asks for a tool."""

    role: str
    text: str
    calls: bool


NO_MESSAGE = Message("", "", calls=False)


def backwards(value: Any) -> Iterator[Message]:
    """Yield the messages of a list, or of the JSON of one, from the last to the first."""
    found = container(value)
    if isinstance(found, dict):
        found = next((found[name] for name in ("messages", "input") if isinstance(found.get(name), list)), [found])
    if not isinstance(found, list):
        return
    while len(found) == 1 and isinstance(found[0], list):  # LangChain: a batch of conversations
        found = found[0]
    for item in reversed(found[-ITEMS_MAX:]):
        message = read(item)
        if message is not None:
            yield message


def last_user(value: Any) -> str:
    """Return the last text of the user in a list of messages; empty if there is none."""
    for message in backwards(value):
        if message.role == "user" and message.text:
            return message.text
    return ""


def final(value: Any) -> Message:
    """Return the assistant's messages at the end of a list as one: the last text, and any tool call."""
    last, calls = "", False
    for each in backwards(value):
        if each.role != "assistant":
            break
        last, calls = last or each.text, calls or each.calls
    return Message("assistant", last, calls=calls)


def read(item: Any) -> Message | None:
    """Return one message, or None if a value is not one."""
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str):
        role = _ROLES.get(item[0].lower())
        return Message(role, item[1], calls=False) if role else None
    if not isinstance(item, dict):
        return None
    plain, parts = item.get("role"), item.get("parts")
    if isinstance(parts, list) and isinstance(plain, str) and plain in _PLAIN and "tool_calls" not in item:
        found, calls = content(parts)  # the form of OpenTelemetry, which is the most frequent
        return Message(plain, found, calls=calls)
    inner = _inner(item)
    role = _role(item, inner)
    if not role:
        return None
    body = next((inner[name] for name in ("parts", "content", "blocks", "contents") if inner.get(name)), None)
    found, calls = content(body)
    more = inner.get("additional_kwargs")
    calls = (
        calls
        or bool(inner.get("tool_calls") or inner.get("function_call") or inner.get("toolCalls"))
        or (isinstance(kind := item.get("type"), str) and kind in _CALLS)
        or (isinstance(more, dict) and bool(more.get("tool_calls") or more.get("function_call")))
    )
    return Message(role, found, calls=calls)


def _inner(item: dict[str, Any]) -> dict[str, Any]:
    for name in ("kwargs", "data", "message"):
        inner = item.get(name)
        if isinstance(inner, dict) and ("content" in inner or "role" in inner or "tool_calls" in inner):
            return inner
    return item


def _role(item: dict[str, Any], inner: dict[str, Any]) -> str:
    kinds = item.get("id")
    named = kinds[-1] if isinstance(kinds, list) and kinds else None
    for value in (
        inner.get("role"),
        item.get("role"),
        inner.get("type"),
        item.get("type"),
        item.get("event.name"),
        named,
    ):
        if isinstance(value, str):
            role = _ROLES.get(value.lower().rpartition("messagerole.")[2])
            if role:
                return role
    kind = item.get("type")
    return "assistant" if isinstance(kind, str) and kind in ("message", "generation") else ""


def content(body: Any) -> tuple[str, bool]:
    """Return the text of a message's content, and whether it asks for a tool."""
    if isinstance(body, str):
        parsed = container(body) if body[:2] in ("[{", "[\n", "[ ") else None
        if not isinstance(parsed, list) or not _are_parts(parsed):
            return body, False
        body = parsed
    if isinstance(body, dict):
        body = [body]
    if not isinstance(body, list):
        return "", False
    texts: list[str] = []
    calls = False
    for part in body[:ITEMS_MAX]:
        if isinstance(part, dict):
            said, asks = _part(part)
            calls = calls or asks
            if said:
                texts.append(said)
        elif isinstance(part, str):
            texts.append(part)
    return "\n".join(texts), calls


def _part(part: dict[str, Any]) -> tuple[str, bool]:
    """Return the text of one part, and whether it asks for a tool.

    Reasoning, files and results of tools have no text.
    """
    kind = part.get("type", part.get("block_type"))
    if kind is not None and not isinstance(kind, str):
        return "", False
    if kind in _CALLS or "functionCall" in part or "function_call" in part:
        return "", True
    if kind is None or kind in _TEXTS or kind.lower() in _TEXTS:
        found = part.get("text", part.get("content"))
        return (found if isinstance(found, str) else ""), False
    return "", False


def _are_parts(parsed: list[Any]) -> bool:
    return bool(parsed) and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parsed)


def question(value: Any, depth: int = 0) -> str:
    """Return the user's text in the input of a step, in any form; empty if there is none."""
    if depth > DEPTH_MAX:
        return ""
    if isinstance(value, str):
        found = container(value)
        if found is None:
            inner = unquoted(value).strip()
            return question(inner, depth + 1) if inner[:1] in "{[" and inner != value else inner
        value = found
    if isinstance(value, list):
        said = last_user(value)
        if said:
            return said
        return next((found for each in value[:8] if not _is_message(each) and (found := question(each, depth + 1))), "")
    if isinstance(value, dict):
        message = read(value)
        if message is not None:
            return message.text if message.role == "user" else ""
        return next(
            (found for name in _QUESTIONS if value.get(name) and (found := question(value[name], depth + 1))), ""
        )
    return ""


def reply(value: Any, depth: int = 0) -> Message:
    """Return the assistant's message in the output of a step, in any form."""
    if depth > DEPTH_MAX:
        return NO_MESSAGE
    if isinstance(value, str):
        found = container(value)
        if found is None:
            inner = unquoted(value)
            if inner is not value and inner[:1] in ("{", "["):
                return reply(inner, depth + 1)
            return Message("assistant", plain_text(value), calls=False)
        value = found
    if isinstance(value, list):
        return _reply_of_list(value, depth)
    if not isinstance(value, dict):
        return NO_MESSAGE
    message = read(value)
    if message is not None:
        return message if message.role == "assistant" else NO_MESSAGE
    calls = any(value.get(name) for name in ("tool_calls", "toolCalls", "function_call"))
    for name in _ANSWERS:
        if value.get(name):
            found_message = reply(value[name], depth + 1)
            if found_message.text or found_message.calls:
                return Message("assistant", found_message.text, calls=calls or found_message.calls)
    return Message("assistant", "", calls=calls)


def _reply_of_list(value: list[Any], depth: int) -> Message:
    if next(backwards(value), None) is not None:
        return final(value)
    if _are_parts([each for each in value[:8] if each is not None]):
        found, calls = content(value)
        return Message("assistant", found, calls=calls)
    found_replies = (reply(each, depth + 1) for each in value[:8])
    return next((each for each in found_replies if each.text or each.calls), NO_MESSAGE)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and read(value) is not None
