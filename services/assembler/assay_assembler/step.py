"""A step: the fields of a span that events are made of."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from assay_assembler.documents import Document
from assay_assembler.span import Span


class StepKind(StrEnum):
    """Role of a span in its trace."""

    #: A model call, or an agent or chain around some: an answer if it has a text.
    ANSWER = "answer"
    RETRIEVAL = "retrieval"
    TOOL_CALL = "tool_call"
    FEEDBACK = "feedback"
    NONE = "none"


class Reason(StrEnum):
    """Reasons why a span made no event. The values are labels of a metric."""

    #: No content: the instrumentation does not capture it, or it was empty.
    NO_CONTENT = "no_content"
    #: The output of a retrieval is in a form that no rule reads. It is not an empty result.
    UNREADABLE = "unreadable"
    #: The producer's SDK dropped attributes, and the rest is not sufficient for an event.
    DROPPED_ATTRIBUTES = "dropped_attributes"
    #: The answer has no question.
    NO_QUERY = "no_query"
    #: The model asked for a tool instead of answering.
    TOOL_REQUEST = "tool_request"
    #: Another event has it: a model call below an agent, a retriever in a retriever, an MCP server's span.
    MERGED = "merged"
    #: The same span, or the same response of a model, came before.
    DUPLICATE = "duplicate"
    #: An embedding call: it makes no event.
    EMBEDDING = "embedding"
    #: A known kind of step that makes no event, such as a guardrail or a prompt template.
    OTHER_STEP = "other_step"
    #: A span without a kind that a rule knows.
    UNKNOWN = "unknown"
    #: A score by a model or a program, which is not feedback of a person.
    NOT_A_PERSON = "not_a_person"
    #: Feedback without a clear verdict.
    NO_VERDICT = "no_verdict"
    #: Feedback on an answer, tool call or retrieval that is not known.
    NO_TARGET = "no_target"
    #: The span came after its trace was closed.
    LATE = "late"
    #: Its times or texts cannot be stored.
    INVALID = "invalid"
    #: Assay exported it, and a collector or a setting sent it back.
    EXPORTED = "exported"


class Verdict(NamedTuple):
    """A person's or a program's evaluation on a span."""

    name: str
    verdict: Literal["positive", "negative"] | None
    text: str
    by_person: bool
    #: `trace` or `span`: whether it judges the whole trace.
    scope: Literal["span", "trace"]
    user: str = ""
    #: Id of the model's response that it judges, if it names one.
    response_id: str = ""


class Said(NamedTuple):
    """Input and output of an agent or chain."""

    query: str
    text: str
    uncertain: bool


class Step(NamedTuple):
    """One span, mapped. Fields that do not belong to its kind have their defaults."""

    kind: StepKind
    #: The user's text, or the query of a retrieval.
    query: str = ""
    #: The answer of a model call, or the output of an agent.
    text: str = ""
    #: True for a model call, False for an agent or chain.
    model_call: bool = False
    #: True if the model asked for a tool.
    requests_tool: bool = False
    #: True for a step whose text may be JSON or a printed object: the text of the last model call takes precedence.
    uncertain: bool = False
    model: str = ""
    response_id: str = ""
    #: Hits of a retrieval; for an answer, what the project's `contexts_from_prompt` found in its prompt.
    documents: tuple[Document, ...] = ()
    #: True if the documents replace those of earlier retrievals.
    reranks: bool = False
    embedding_model: str = ""
    params: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    tool_name: str = ""
    arguments: Any = None
    result: Any = None
    failed: bool = False
    error_kind: str = ""
    call_id: str = ""
    agent_name: str = ""
    server_session: str = ""
    session_id: str = ""
    user: str = ""
    verdicts: tuple[Verdict, ...] = ()
    #: Name of the convention that mapped it.
    convention: str = ""
    #: How to read query, text and `uncertain` of an agent or chain; None if they are read. Few are needed: those of the
    #: outermost one, and of those around a retrieval without a query.
    unread: "Callable[[Span], Said] | None" = None
    #: Why a step of kind NONE has no event.
    reason: Reason | None = None


def no_step(reason: Reason, **fields: Any) -> Step:
    """Return a step that makes no event."""
    return Step(StepKind.NONE, reason=reason, **fields)


#: A span that is not about AI: only its place in the trace is known.
BARE = Step(StepKind.NONE)
