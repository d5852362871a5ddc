"""Marks of generative AI: they separate the spans to read from all others, cheaply."""

from collections.abc import Iterable

#: Beginnings of attribute names. A span that has none of them, and no event below, is not read.
PREFIXES = (
    "gen_ai.", "openinference.", "llm.", "traceloop.", "langfuse.", "langsmith.", "ai.", "mcp.", "pydantic_ai.",
    "retrieval.documents.", "all_messages_events",
)  # fmt: skip
#: Beginnings of names of span events that are read.
EVENT_PREFIXES = ("gen_ai.", "db.query.result", "db.search.result")


def is_marked(names: Iterable[str], events: Iterable[str]) -> bool:
    """Return whether a span with these attributes and events is to be read."""
    for name in names:
        if name.startswith(PREFIXES):
            return True
    return any(name.startswith(EVENT_PREFIXES) for name in events)
