"""OpenTelemetry's GenAI conventions, of all generations: `gen_ai.operation.name`."""

from assay_assembler import shapes
from assay_assembler.content import answered, asked, has_unreadable
from assay_assembler.documents import Document, documents
from assay_assembler.messages import question
from assay_assembler.span import Attributes, Span
from assay_assembler.step import Reason, Said, Step, no_step
from assay_assembler.values import container, first, first_text, identifier, literal, text

NAME = "genai"
_MODEL_CALLS = frozenset(
    {
        "chat",
        "generate_content",
        "text_completion",
        "completion",
        "generate",
        "fetch_response",
        "llm_request",
        "responses",
    }
)
_AGENTS = frozenset({"invoke_agent", "invoke_workflow", "agent_step", "execute_task", "chain"})
_RETRIEVALS = frozenset({"retrieval", "vector_db_retrieve", "search_memory"})


def step(span: Span) -> Step | None:
    """Map a span by its operation."""
    operation = span.attributes.get("gen_ai.operation.name")
    if not isinstance(operation, str) or not operation:
        return None
    if operation in _MODEL_CALLS:
        return model_call(span)
    if operation == "execute_tool":
        return tool(span)
    if operation in _AGENTS:
        return agent(span, NAME)
    if operation in _RETRIEVALS:
        return retriever(span, NAME)
    if operation == "rerank":
        return retriever(span, NAME, reranks=True)
    if operation == "embeddings":
        model = first_text(span.attributes, "gen_ai.response.model", "gen_ai.request.model")
        return no_step(Reason.EMBEDDING, embedding_model=model, convention=NAME)
    return no_step(Reason.OTHER_STEP, convention=NAME)


def model_call(span: Span, convention: str = NAME) -> Step:
    """Map a call of a model with content in any generation."""
    query, said = asked(span), answered(span)
    silent = not query or not (said.text or said.calls)
    return shapes.model_call(span, query, said, convention, unreadable=silent and has_unreadable(span.attributes))


def agent(span: Span, convention: str) -> Step:
    """Map an agent, a chain or a workflow with content in any generation."""
    return shapes.agent(span, _said, convention)


def _said(span: Span) -> Said:
    said = answered(span)
    output = first(span.attributes, "gen_ai.output.messages", "final_result", "traceloop.entity.output", "output.value")
    uncertain = "gen_ai.output.messages" not in span.attributes and container(output) is not None
    query = asked(span)
    return Said(query, said.text, uncertain, not (query and said.text) and has_unreadable(span.attributes))


def retriever(span: Span, convention: str, *, reranks: bool = False) -> Step:
    """Map a retrieval. OpenTelemetry defines id and score of documents; some libraries add their text."""
    attributes = span.attributes
    found = documents(attributes.get("gen_ai.retrieval.documents")) or _in_events(span)
    found = found or documents(first(attributes, "traceloop.entity.output", "gen_ai.completion", "output.value"))
    query = first_text(
        attributes, "gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "reranker.query", "db.query.text"
    )
    query = query or question(
        first(attributes, "traceloop.entity.input", "gen_ai.prompt", "gen_ai.prompt.query", "input.value")
    )
    name = first_text(attributes, "gen_ai.data_source.id", "traceloop.entity.name")
    return shapes.retrieval(span, query, found, convention, reranks=reranks, name=name)


def _in_events(span: Span) -> tuple[Document, ...]:
    for event in span.events:
        if event.name.startswith("gen_ai.retrieval") and (
            found := documents(event.attributes.get("gen_ai.retrieval.documents"))
        ):
            return found
    return ()


def tool(span: Span, convention: str = NAME) -> Step:
    """Map the run of a tool, with its arguments under any of their names."""
    attributes = span.attributes
    arguments = first(attributes, "gen_ai.tool.call.arguments", "tool_arguments", "gen_ai.tool.arguments")
    if arguments is None:
        arguments = first(attributes, "traceloop.entity.input", "input.value")
    if "traceloop.span.kind" in attributes:
        arguments = _unwrapped(arguments)
    result = first(
        attributes,
        "gen_ai.tool.call.result",
        "tool_response",
        "gen_ai.tool.result",
        "traceloop.entity.output",
        "output.value",
    )
    return shapes.tool_call(span, tool_name(attributes), arguments, result, convention)


def _unwrapped(given: object) -> object:
    """Return the arguments within what OpenLLMetry records: LangChain's are printed within JSON."""
    found = container(given)
    if not isinstance(found, dict):
        return given
    if isinstance(found.get("inputs"), dict) and found["inputs"]:
        return found["inputs"]
    if "input_str" in found:
        inner = literal(found["input_str"])
        return found["input_str"] if inner is None else inner
    if "args" in found and "kwargs" in found:
        return found if found["args"] else found["kwargs"]
    return found


def tool_name(attributes: Attributes) -> str:
    """Return the name of a tool; empty if it has none."""
    found = text(attributes.get("gen_ai.tool.name")) or text(attributes.get("tool.name"))
    return found or identifier(attributes.get("traceloop.entity.name"))
