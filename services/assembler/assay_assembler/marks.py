"""Marks of generative AI: they separate the spans to read from all others, cheaply."""

from collections.abc import Iterable

#: Beginnings of attribute names. A span that has none of them, and no event below, is not read.
PREFIXES = (
    "gen_ai.", "openinference.", "llm.", "traceloop.", "langfuse.", "langsmith.", "ai.", "mcp.", "pydantic_ai.",
    "retrieval.documents.", "all_messages_events",
)  # fmt: skip
#: Beginnings of names of span events that are read.
EVENT_PREFIXES = ("gen_ai.", "db.query.result", "db.search.result")
#: Frequent attributes that no rule reads. Leaving out their values saves a tenth of the time of a span.
UNREAD = frozenset(
    {
        "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.total_tokens", "gen_ai.usage.raw",
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens", "gen_ai.tool.definitions",
        "gen_ai.request.max_tokens", "gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.is_streaming",
        "gen_ai.task.input", "gen_ai.task.output", "gen_ai.task.status",
        "llm.token_count.prompt", "llm.token_count.completion", "llm.token_count.total", "llm.invocation_parameters",
        "llm.tools.0.tool.json_schema", "llm.usage.total_tokens", "llm.is_streaming", "llm.provider", "llm.system",
        "input.mime_type", "output.mime_type", "tool.description", "gen_ai.tool.description",
        "logfire.msg", "logfire.msg_template", "logfire.json_schema", "logfire.level_num", "logfire.span_type", "logfire.tags",
        "traceloop.workflow.name", "traceloop.entity.path", "server.address", "server.port", "operation.cost",
    }
)  # fmt: skip


def is_marked(names: Iterable[str], events: Iterable[str]) -> bool:
    """Return whether a span with these attributes and events is to be read."""
    for name in names:
        if name.startswith(PREFIXES):
            return True
    return any(name.startswith(EVENT_PREFIXES) for name in events)
