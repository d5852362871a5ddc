"""Messages with `role` and `content`, as in the APIs of models, as a conversation. Pure.

Tool calls and their results are in one of three places:

| API | calls | results |
|---|---|---|
| OpenAI's Chat Completions | `tool_calls` of a message | a message with the role `tool` and a `tool_call_id` |
| the same until 2023 | `function_call` of a message | the next message with the role `function` and the `name` |
| Anthropic's Messages | blocks `tool_use` in the content | blocks `tool_result` in the content of the next message |
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from assay_sessions.portable import portable
from assay_sessions.readers import results
from assay_sessions.readers.loose_json import arguments, items, mapping, some_text, text
from assay_sessions.readers.reader import Conversation, Problems
from assay_sessions.record import Call, Json

_SILENT_ROLES: Final = frozenset({"system", "developer"})
_USES: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
#: Blocks that a session does not keep: reasoning, pictures, sound and files.
_SILENT_BLOCKS: Final = frozenset(
    {
        "thinking", "redacted_thinking", "reasoning", "image", "image_url", "input_image", "document", "audio",
        "input_audio", "file", "input_file",
    }
)  # fmt: skip


def conversation(messages: Sequence[Json], name: str, problems: Problems) -> Conversation:
    """Return the turns of the messages with their calls.

    Roles and blocks that are not known, and results without a call, are counted in `problems` under the file's `name`.
    """
    answers = _answers(messages)
    of_functions = _function_answers(messages)
    found = Conversation()
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == "user":
            words = "\n".join(each for each in _said(content, answers, name, problems) if isinstance(each, str))
            if words or not any(map(_is_result, items(content))):  # results alone are no turn
                found.user(words.strip("\n"))
        elif role in ("assistant", "model"):
            calls = [_of_tool_call(mapping(call), answers) for call in items(message.get("tool_calls")) if call]
            if function := mapping(message.get("function_call")):
                calls.append(_made(function, function.get("arguments"), of_functions.pop(number, None)))
            found.model([*_said(content, answers, name, problems), *calls])
        elif role not in ("tool", "function") and role not in _SILENT_ROLES:
            problems.unknown(name, "role", role)
    if unused := sum(map(len, answers.values())) + len(of_functions):
        problems.add("unknown_type", name, "tool result without its call", unused)
    return found


_Answers = dict[str, list[Json]]


def _answers(messages: Sequence[Json]) -> _Answers:
    """Return the results by the ids of their calls, in order: some programs use an id again."""
    found: _Answers = defaultdict(list)
    for message in messages:
        if message.get("role") == "tool":
            found[text(message.get("tool_call_id"))].append(message)
        elif message.get("role") in ("user", "assistant", "model"):
            for block in filter(_is_result, items(message.get("content"))):
                found[text(block.get("tool_use_id"))].append(block)
    return found


def _function_answers(messages: Sequence[Json]) -> dict[int, Json]:
    """Return the results of functions by the number of the message that called: they have the function's name, and no id.

    A result without its call is kept by the number of its message.
    """
    found: dict[int, Json] = {}
    called: tuple[int, str] | None = None
    for number, message in enumerate(messages):
        if function := mapping(message.get("function_call")):
            called = number, text(function.get("name"))
        elif message.get("role") == "function":
            named = some_text(message.get("name"))
            at = called[0] if called and named in {None, called[1]} else number
            called = None if at != number else called
            found[at] = message
    return found


def _is_result(block: object) -> bool:
    return text(mapping(block).get("type")).endswith("tool_result")


def _said(content: object, answers: _Answers, name: str, problems: Problems) -> Iterator[str | Call]:
    """Yield the texts and calls of a content in their order. Consecutive texts are one, with a line break between them."""
    texts: list[str] = []
    for block in [content] if isinstance(content, str) else items(content):
        if (words := _words(block)) is not None:
            texts.append(words)
            continue
        kind = mapping(block).get("type")
        if kind in _USES:
            if texts:
                yield "\n".join(texts).strip("\n")
                texts = []
            yield _made(mapping(block), mapping(block).get("input"), _taken(answers, mapping(block)))
        elif kind not in _SILENT_BLOCKS and not _is_result(block):
            problems.unknown(name, "block", kind)
    if texts:
        yield "\n".join(texts).strip("\n")


def _words(block: object) -> str | None:
    """Return the text of a block, or None if it is of another type."""
    if isinstance(block, str):
        return block
    fields = mapping(block)
    kind = fields.get("type")
    if kind is None or kind in _TEXTS:
        words = fields.get("refusal" if kind == "refusal" else "text")
        return words if isinstance(words, str) else None
    return None


def _of_tool_call(call: Json, answers: _Answers) -> Call:
    function = mapping(call.get("function")) or call
    made = {"id": call.get("id"), "name": function.get("name")}
    return _made(made, function.get("arguments"), _taken(answers, made))


def _taken(answers: _Answers, call: Json) -> Json | None:
    """Take the result of a call: the first one with its id that no other call has."""
    waiting = answers.get(text(call.get("id")))
    return waiting.pop(0) if waiting else None


def _made(call: Json, args: object, answer: Json | None) -> Call:
    """Return a call with its result."""
    failed = answer is not None and (answer.get("is_error") is True or answer.get("status") == "error")
    result = (
        results.CUT_OFF
        if answer is None
        else results.Result("error", results.TOOL_ERROR)
        if failed
        else results.SUCCESS
    )
    return Call(
        text(call.get("name")),
        arguments(args),
        _output(answer.get("content")) if answer else "",
        status=result.status,
        error_kind=result.error_kind,
        call_id=some_text(call.get("id")),
    )


def _output(content: object) -> str:
    """Return the text of a result. Blocks without a text, such as the hits of a web search, are kept as JSON."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    return "\n".join(
        words if (words := _words(block)) is not None else _as_json(block)
        for block in blocks
        if mapping(block).get("type") not in _SILENT_BLOCKS
    ).strip("\n")


def _as_json(block: object) -> str:
    return orjson.dumps(portable(block)).decode()
