"""Recognise encoded spans and log records about AI by the names of their attributes. Pure.

A shared collector sends many spans of other kinds. They are accepted and dropped, so they should cost little.
"""

from collections import Counter
from collections.abc import Generator

#: Every convention that is read has one of these in each of its spans. Names of attributes, or their beginnings.
MARKS = (
    b"gen_ai.", b"openinference.span.kind", b"traceloop.", b"langfuse.observation", b"langsmith.span.kind", b"mcp.method.name",
    b"ai.operationId", b"ai.toolCall", b"pydantic_ai.", b"llm.request.type", b"db.query.result", b"db.search.result",
)  # fmt: skip
#: Log records about AI have these.
LOG_MARKS = (b"gen_ai.",)

#: A span that names a call of a model, a tool or a retriever has one of these if its instrumentation records content.
_CONTENT = (
    b"gen_ai.input.messages", b"gen_ai.output.messages", b"gen_ai.prompt", b"gen_ai.completion", b"gen_ai.content.",
    b"gen_ai.tool.call.arguments", b"gen_ai.tool.call.result", b"gen_ai.retrieval.", b"gen_ai.evaluation",
    b".message", b"gen_ai.choice", b"input.value", b"output.value", b"llm.input_messages", b"llm.output_messages",
    b"traceloop.entity.input", b"traceloop.entity.output", b"langfuse.observation.input",
    b"langfuse.observation.output", b"ai.prompt", b"ai.response.", b"ai.toolCall.args", b"ai.toolCall.result",
    b"all_messages", b"tool_arguments", b"tool_response", b"db.query.result", b"db.search.result",
    b"retrieval.documents", b"annotations.", b"evaluations.", b"response_data",
)  # fmt: skip
_CALL = (b"gen_ai.request.model", b"gen_ai.tool.name", b"llm.model_name", b"ai.model.id", b"RETRIEVER")
#: Agents may leave the texts to the calls below them, and embeddings make no event.
_NO_CALL = (b"invoke_agent", b"create_agent", b"embedding", b"EMBEDDING")
#: Which variable makes an instrumentation record content, by a mark of its spans; the first that is found decides.
_REMEDIES = (
    (b"openinference.", "OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false"),
    (b"traceloop.", "TRACELOOP_TRACE_CONTENT=true"),
    (b"llm.request.type", "TRACELOOP_TRACE_CONTENT=true"),
    (b"ai.operationId", "experimental_telemetry.recordInputs and .recordOutputs"),
    (b"logfire.", "include_content of the instrumentation"),
    (
        b"gen_ai.",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (SPAN_ONLY with OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental)",
    ),
)


#: Bytes that one step searches.
_SEARCHED = 1024 * 1024


class Marks:
    """Find the marks in a body, from its beginning to its end.

    A search from one span on usually passes many others, which are then known to have none.
    """

    def __init__(self, body: bytes, marks: tuple[bytes, ...] = MARKS) -> None:
        self._body = body
        self._marks = marks
        #: For each mark, the position before which it is not found again, and whether it is at that position.
        self._next = [0] * len(marks)
        self._hit = [False] * len(marks)
        #: No mark begins before this position, except in what was asked about before.
        self.clear = 0

    def within(self, begin: int, end: int) -> Generator[None, None, bool]:
        """Return whether a mark is in a part of the body, and yield where others should run.

        The parts are asked about in their order. One that ends before `clear` needs no question.
        """
        for number, mark in enumerate(self._marks):
            while (position := self._next[number]) + len(mark) <= end:
                if position >= begin and self._hit[number]:
                    return True
                start = max(begin, position)
                found = self._body.find(mark, start, start + _SEARCHED)
                self._hit[number] = found >= 0
                if found >= 0:
                    self._next[number] = found
                else:
                    self._next[number] = start + _SEARCHED - len(mark) + 1
                    yield
        self.clear = min(self._next)
        return False


def without_content(span: bytes) -> str:
    """Return the setting that turns content on, for a span of a call without its text; empty for others."""
    if any(mark in span for mark in (*_CONTENT, *_NO_CALL)) or not any(mark in span for mark in _CALL):
        return ""
    return next((remedy for mark, remedy in _REMEDIES if mark in span), "")


def warning(remedies: Counter[str]) -> str:
    """Return what the answer says about spans without content; empty if there are none."""
    return "; ".join(f"{count} spans have no content: set {remedy}" for remedy, count in remedies.most_common(3))
