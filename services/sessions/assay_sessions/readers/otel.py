"""Reader of traces of agents: OpenTelemetry's JSON with spans of the conventions for generative AI.

Spans `chat`, `invoke_agent` and `execute_tool` with one `gen_ai.conversation.id` are a session; without one, those with one
`session.id`, and else those of one trace.

- Each `chat` span has all messages so far as its input. They are read once.
- A result of a tool is in its span, or in the input of the next `chat` span.
- Spans below a span of a tool are a sub-agent's: a session that is separate, linked to that of the call.
- Most instrumentations write no messages unless a setting turns that on. Sessions without any words are counted, and not read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from assay_sessions.portable import portable
from assay_sessions.readers import results
from assay_sessions.readers.loose_json import DamagedError, arguments, items, loads, mapping, some_text, text, whole
from assay_sessions.readers.otel_spans import Span, spans
from assay_sessions.readers.reader import Conversation, Found, Problems, Reader, changed_before, passed_ms, stores
from assay_sessions.readers.results import Result
from assay_sessions.record import Call, Json, Transcript

SOURCE: Final = "otel"
#: Tells the setting of most instrumentations that makes them write messages.
NO_CONTENT: Final = "no messages: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY where the agent runs"
_CHAT: Final = frozenset({"chat", "generate_content", "text_completion"})
_AGENT: Final = frozenset({"invoke_agent", "invoke_workflow"})
_TOOL: Final = "execute_tool"
_SILENT: Final = frozenset({"create_agent", "embeddings", "plan", "retrieval"})
_PARTS: Final = frozenset({"reasoning", "blob", "file", "uri"})
_USAGE: Final = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
}
#: The ids of a trace and of one of its spans.
_Place = tuple[str, str]
#: The ids of a session and of the one that started it.
_Key = tuple[str, str | None]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def locations(home: Path, environment: Mapping[str, str]) -> list[Path]:  # noqa: ARG001
    """Return no place: the file has to be named."""
    return []


def discover(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at or below the paths."""
    yield from stores(paths, "*.*json*", levels=3, suffixes={".json", ".jsonl", ".ndjson"})


def read(store: Path, since: datetime | None) -> Found:
    """Yield the sessions of a file, and then the problems.

    It holds the spans of the file in memory: those of one session can be anywhere in it.
    """
    problems = Problems()
    if not changed_before(store, since):
        groups, children = _sessions(store, problems)
        for (session_id, parent), group in groups.items():
            found = _session(session_id, parent, group, children, store.name, problems)
            if found and (since is None or found.updated >= since):
                yield found
    yield from problems


READER: Final = Reader(SOURCE, locations, discover, read)


def _sessions(store: Path, problems: Problems) -> tuple[dict[_Key, list[Span]], dict[_Place, str]]:
    """Return the spans of each session in the order of their beginnings, and the sessions that spans of tools started."""
    by_id: dict[_Place, Span] = {}
    own: list[Span] = []
    for span in spans(store, problems):
        by_id[span.trace_id, span.span_id] = span
        operation = span.operation
        if operation in _CHAT or operation in _AGENT or operation == _TOOL:
            own.append(span)
        elif operation and operation not in _SILENT:
            problems.unknown(store.name, "operation", operation)
    own = [span for span in own if by_id[span.trace_id, span.span_id] is span]  # a batch that was sent twice
    named: dict[str, set[str]] = {}
    for span in by_id.values():
        if name := _conversation_id(span):
            named.setdefault(span.trace_id, set()).add(name)
    groups: dict[_Key, list[Span]] = {}
    children: dict[_Place, str] = {}
    for span in sorted(own, key=lambda each: each.started or _EPOCH):
        above = list(_above(span, by_id))
        only = named.get(span.trace_id, set())
        name = next((name for each in (span, *above) if (name := _conversation_id(each))), None)
        session_id = name or (next(iter(only)) if len(only) == 1 else span.trace_id)
        parent = None
        for tool in reversed([each for each in above if each.operation == _TOOL]):
            session_id, parent = f"{session_id}/{tool.span_id}", session_id
            children[tool.trace_id, tool.span_id] = session_id
        groups.setdefault((session_id, parent), []).append(span)
    # A tool that only calls another, such as through MCP, is no sub-agent.
    agents = {
        key: group for key, group in groups.items() if key[1] is None or any(each.operation != _TOOL for each in group)
    }
    ids = {session_id for session_id, _ in agents}
    return agents, {place: session_id for place, session_id in children.items() if session_id in ids}


def _conversation_id(span: Span) -> str | None:
    return some_text(span.attributes.get("gen_ai.conversation.id")) or some_text(span.attributes.get("session.id"))


def _above(span: Span, by_id: Mapping[_Place, Span]) -> Iterator[Span]:
    seen = {span.span_id}
    above = by_id.get((span.trace_id, span.parent_id))
    while above and above.span_id not in seen:
        yield above
        seen.add(above.span_id)
        above = by_id.get((above.trace_id, above.parent_id))


@dataclass(frozen=True, slots=True)
class _Item:
    """A text or a call of a message. Two are equal if they say the same, whenever they were said."""

    role: str
    text: str = ""
    call_id: str = ""
    name: str = ""
    args: str = ""
    at: datetime = field(default=_EPOCH, compare=False)


@dataclass(slots=True)
class _Talk:
    """The texts and calls of a session, and the results of its calls by their ids."""

    said: list[_Item] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def hear(self, given: Sequence[_Item]) -> None:
        """Add what is new in the input of a model, which has what was said before, a part of it, or none of it."""
        known = next(
            (
                n
                for n in range(min(len(given), len(self.said)), 0, -1)
                if self.said[-n] == given[0] and self._ends_with(given[:n])
            ),
            0,
        )
        if not known and self.said:  # sent alone, or after a summary of what was said before
            known = max((number for number, item in enumerate(given, 1) if item.role != "user"), default=0)
            known = len(given) if self._ends_with(given[known:]) else known
        self.said += given[known:]

    def _ends_with(self, given: Sequence[_Item]) -> bool:
        return bool(given) and self.said[-len(given) :] == list(given)


def _session(
    session_id: str,
    parent: str | None,
    group: Sequence[Span],
    children: Mapping[_Place, str],
    file: str,
    problems: Problems,
) -> Transcript | None:
    chats = [span for span in group if span.operation in _CHAT]
    agents = [span for span in group if span.operation in _AGENT]
    tools = [span for span in group if span.operation == _TOOL]
    told = [span for span in chats if _has_messages(span)]
    told_of_agents = [] if told else [span for span in agents if _has_messages(span)]
    talk = _Talk()
    for span in told or told_of_agents:
        talk.hear(list(_items(span, "gen_ai.input.messages", span.started, talk, file, problems)))
        talk.said += _items(span, "gen_ai.output.messages", span.ended or span.started, talk, file, problems)
    for span in [] if told_of_agents else chats or agents:
        if not _has_messages(span):
            problems.add("no_content", file, NO_CONTENT)
    if not session_id:
        problems.add("no_session_id", file, "span")
        return None
    if not any(item.text.strip() for item in talk.said):
        return None
    found = _conversation(talk, tools, children)
    times = [moment for span in group for moment in (span.started, span.ended) if moment]
    last = [*agents, *chats]
    return Transcript(
        session_id=session_id,
        source=SOURCE,
        created=min(times, default=_EPOCH),
        updated=max(times, default=_EPOCH),
        messages=tuple(found.messages),
        model=_last(chats or agents, "gen_ai.response.model") or _last(chats or agents, "gen_ai.request.model"),
        parent_session_id=parent,
        aborted=found.aborted,
        tokens=_tokens(chats) or _tokens(agents),
        extra={
            name: value
            for name, value in (
                ("agent", _last(last, "gen_ai.agent.name")),
                ("service", some_text(group[-1].resource.get("service.name"))),
                ("instructions", _instructions(last)),
            )
            if value
        },
    )


def _has_messages(span: Span) -> bool:
    return "gen_ai.input.messages" in span.attributes or "gen_ai.output.messages" in span.attributes


def _structured(value: Any) -> Any:
    """Return a value that is an attribute itself, or its JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except DamagedError:
        return value


def _items(span: Span, name: str, at: datetime | None, talk: _Talk, file: str, problems: Problems) -> Iterator[_Item]:
    messages = _structured(span.attributes.get(name))
    if isinstance(messages, str) and messages:
        problems.add("damaged", file, name)
    for message in map(mapping, items(messages)):
        role = {"user": "user", "assistant": "model", "model": "model"}.get(text(message.get("role")), "")
        if not role and message.get("role") not in ("system", "developer", "tool"):
            problems.unknown(file, "role", message.get("role"))
        content = message.get("content")
        parts = [{"type": "text", "content": content}] if isinstance(content, str) else items(message.get("parts"))
        for part in map(mapping, parts):
            kind = part.get("type")
            if kind in ("text", "tool_call", "tool_call_response"):
                yield from _item(part, role, at or _EPOCH, talk)
            elif kind not in _PARTS:
                problems.unknown(file, "part", kind)


def _item(part: Json, role: str, at: datetime, talk: _Talk) -> Iterator[_Item]:
    call_id = text(part.get("id"))
    if part.get("type") == "text":
        if role and text(part.get("content")).strip():
            yield _Item(role, text(part.get("content")), at=at)
    elif part.get("type") == "tool_call":
        args = _json(arguments(part.get("arguments")))
        yield _Item("model", call_id=call_id, name=text(part.get("name")), args=args, at=at)
    else:
        talk.answers.setdefault(call_id, part["response"] if "response" in part else part.get("result"))


def _conversation(talk: _Talk, tools: Sequence[Span], children: Mapping[_Place, str]) -> Conversation:
    runs = _runs(talk, tools)
    ran = {id(span) for span in runs.values()}
    silent = [span for span in tools if id(span) not in ran]
    found = Conversation()
    said: list[str | Call] = []

    def flush() -> None:
        if said:
            found.model(said)
            said.clear()

    for number, item in enumerate(talk.said):
        while silent and (silent[0].started or _EPOCH) < item.at:
            said.append(_call(None, silent.pop(0), talk, children))
        if item.role == "user":
            flush()
            found.user(item.text)
        elif item.name or item.call_id:
            said.append(_call(item, runs.get(number), talk, children))
        else:
            said.append(item.text)
    said += [_call(None, span, talk, children) for span in silent]
    flush()
    return found


def _runs(talk: _Talk, tools: Sequence[Span]) -> dict[int, Span]:
    """Return the span of each call: the one with its id, or the next one of its name that has no id."""
    by_id: dict[str, list[Span]] = {}
    by_name: dict[str, list[Span]] = {}
    for span in tools:
        if call_id := some_text(span.attributes.get("gen_ai.tool.call.id")):
            by_id.setdefault(call_id, []).append(span)
        else:
            by_name.setdefault(_tool_name(span), []).append(span)
    runs: dict[int, Span] = {}
    for number, item in enumerate(talk.said):
        if (item.name or item.call_id) and (spans := by_id.get(item.call_id) or by_name.get(item.name)):
            runs[number] = spans.pop(0)
    return runs


def _tool_name(span: Span) -> str:
    return text(span.attributes.get("gen_ai.tool.name"))


def _call(item: _Item | None, span: Span | None, talk: _Talk, children: Mapping[_Place, str]) -> Call:
    own = span.attributes if span else {}
    call_id = item.call_id if item else text(own.get("gen_ai.tool.call.id"))
    answer = own.get("gen_ai.tool.call.result", talk.answers.get(call_id))
    output = answer if isinstance(answer, str) else "" if answer is None else _json(answer)
    result = _result(span, answer is not None, output)
    return Call(
        item.name if item and item.name else _tool_name(span) if span else "",
        mapping(loads(item.args)) if item else arguments(own.get("gen_ai.tool.call.arguments")),
        output or (span.message if span and result.status != "success" else ""),
        status=result.status,
        error_kind=result.error_kind,
        call_id=call_id or None,
        started_at=span.started if span else None,
        duration_ms=passed_ms(span.started, span.ended) if span else None,
        child_session_id=children.get((span.trace_id, span.span_id)) if span else None,
    )


def _result(span: Span | None, answered: bool, output: str) -> Result:
    if span is None:
        return results.SUCCESS if answered else results.CUT_OFF
    if span.error is None:
        return results.SUCCESS
    kind = span.error.lower()
    if "timeout" in kind:
        return Result("error", results.TIMEOUT)
    if "cancel" in kind:
        return results.CUT_OFF
    return results.of_error(output or span.message)


def _json(value: Any) -> str:
    return orjson.dumps(portable(value), option=orjson.OPT_SORT_KEYS).decode()


def _last(found: Sequence[Span], name: str) -> str | None:
    return next((value for span in reversed(found) if (value := some_text(span.attributes.get(name)))), None)


def _instructions(found: Sequence[Span]) -> str:
    for span in found:
        value = _structured(span.attributes.get("gen_ai.system_instructions"))
        if isinstance(value, str) and value:
            return value
        if said := "\n\n".join(text(mapping(part).get("content")) for part in items(value)).strip():
            return said
    return ""


def _tokens(found: Sequence[Span]) -> dict[str, int]:
    sums = {kind: sum(whole(span.attributes.get(name)) or 0 for span in found) for kind, name in _USAGE.items()}
    sums["input"] = max(0, sums["input"] - sums["cache_read"] - sums["cache_write"])
    return {kind: count for kind, count in sums.items() if count}
