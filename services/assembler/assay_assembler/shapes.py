"""Make steps of each kind, with the fields that all conventions share."""

from collections.abc import Callable, Mapping
from typing import Any

from assay_assembler.documents import Document
from assay_assembler.messages import Message
from assay_assembler.span import Attributes, Span
from assay_assembler.step import Said, Step, StepKind
from assay_assembler.values import first, first_text, identifier, text

_MODELS = (
    "gen_ai.response.model", "llm.response.model_name", "ai.response.model", "llm.model_name",
    "langfuse.observation.model.name", "gen_ai.request.model", "ai.model.id", "llm.request.model_name",
)  # fmt: skip
_SESSIONS = (
    "gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id", "langsmith.metadata.session_id", "langsmith.metadata.thread_id",
    "ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId",
)  # fmt: skip
_USERS = (
    "user.id", "langfuse.user.id", "enduser.id", "traceloop.association.properties.user_id", "langsmith.metadata.user_id",
    "ai.telemetry.metadata.userId", "ai.settings.context.userId",
)  # fmt: skip
#: Outputs of a retrieval.
_RESULTS = (
    "gen_ai.retrieval.documents", "langfuse.observation.output", "traceloop.entity.output", "gen_ai.completion", "output.value",
)  # fmt: skip
#: Parameters of a retrieval that are kept, by their name in the event.
_PARAMS = {
    "data_source": ("gen_ai.data_source.id",),
    "top_k": ("gen_ai.retrieval.top_k", "gen_ai.request.top_k", "reranker.top_k", "db.vector.query.top_k"),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "db.system", "db.system.name"),
    "reranker": ("reranker.model_name",),
}


def session(attributes: Attributes) -> str:
    """Return the conversation that a span belongs to; empty if it names none."""
    if attributes.keys().isdisjoint(_SESSIONS):
        return ""
    for name in _SESSIONS:
        value = attributes.get(name)
        if value:
            return identifier(value)
    return ""


def user(attributes: Attributes) -> str:
    """Return the id of the user that a span names; empty if it names none."""
    if attributes.keys().isdisjoint(_USERS):
        return ""
    for name in _USERS:
        value = attributes.get(name)
        if value:
            return identifier(value)
    return ""


def model_call(span: Span, query: str, said: Message, convention: str, *, unreadable: bool = False) -> Step:
    """Return the step of a call of a model."""
    attributes = span.attributes
    return Step(
        StepKind.ANSWER,
        query,
        said.text,
        model_call=True,
        requests_tool=said.calls,
        unreadable=unreadable,
        model=first_text(attributes, *_MODELS),
        response_id=first_text(attributes, "gen_ai.response.id", "ai.response.id"),
        session_id=session(attributes),
        user=user(attributes),
        failed=span.status == "error",
        convention=convention,
    )


def agent(span: Span, read: Callable[[Span], Said], convention: str) -> Step:
    """Return the step of an agent, a chain or a workflow. `read` is called when its texts are needed."""
    attributes = span.attributes
    return Step(
        StepKind.ANSWER,
        model=first_text(attributes, *_MODELS),
        agent_name=first_text(attributes, "gen_ai.agent.name", "agent.name", "agent_name"),
        session_id=session(attributes),
        user=user(attributes),
        failed=span.status == "error",
        convention=convention,
        unread=read,
    )


def retrieval(
    span: Span, query: str, found: tuple[Document, ...], convention: str, *, reranks: bool = False, name: str = ""
) -> Step:
    """Return the step of a retrieval, or of a reranker."""
    attributes = span.attributes
    params: dict[str, Any] = {"retriever": name or span.name}
    for key, names in _PARAMS.items():
        value = next((attributes[each] for each in names if isinstance(attributes.get(each), str | int | float)), None)
        if value is not None and value != "":
            params[key] = value
    return Step(
        StepKind.RETRIEVAL,
        query,
        documents=found,
        result=None if found else first(attributes, *_RESULTS),
        reranks=reranks,
        params=params,
        embedding_model=first_text(attributes, "embedding.model_name"),
        session_id=session(attributes),
        user=user(attributes),
        failed=span.status == "error",
        convention=convention,
    )


def tool_call(span: Span, name: str, arguments: Any, result: Any, convention: str, *, failed: bool = False) -> Step:
    """Return the step of a tool's run."""
    attributes = span.attributes
    kind = text(attributes.get("error.type"))
    failed = failed or span.status == "error" or bool(kind)
    return Step(
        StepKind.TOOL_CALL,
        tool_name=name or span.name,
        arguments=arguments,
        result=result,
        failed=failed,
        error_kind=kind or (_exception(span) if failed else ""),
        call_id=identifier(attributes.get("gen_ai.tool.call.id")) or identifier(attributes.get("tool.id")),
        agent_name=first_text(attributes, "gen_ai.agent.name", "agent.name"),
        server_session=first_text(attributes, "mcp.session.id"),
        session_id=session(attributes),
        user=user(attributes),
        convention=convention,
    )


def _exception(span: Span) -> str:
    """Return the class of the exception that a span recorded."""
    found: Mapping[str, Any]
    for event in reversed(span.events):
        found = event.attributes
        if event.name == "exception":
            return text(found.get("exception.type"))
    return ""
