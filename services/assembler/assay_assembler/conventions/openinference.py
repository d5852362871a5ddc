"""OpenInference: `openinference.span.kind`, with lists in numbered attributes."""

from assay_assembler import shapes
from assay_assembler.content import answered, asked
from assay_assembler.documents import Document, document_of, documents
from assay_assembler.messages import Message, content, question, reply
from assay_assembler.span import Attributes, Span
from assay_assembler.step import Reason, Said, Step, no_step
from assay_assembler.values import container, first_text, identifier, indexed, literal, numbered, text

NAME = "openinference"


def step(span: Span) -> Step | None:
    """Map a span by its kind."""
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    if not isinstance(kind, str) or not kind:
        return None
    kind = kind.upper()
    if kind == "LLM":
        return shapes.model_call(span, _asked(span), _answered(span), NAME)
    if kind in ("CHAIN", "AGENT"):
        return shapes.agent(span, _said, NAME)
    if kind == "RETRIEVER":
        found = _with_ids(_listed(attributes, "retrieval.documents."), attributes)
        return shapes.retrieval(span, question(attributes.get("input.value")), found, NAME)
    if kind == "RERANKER":
        query = text(attributes.get("reranker.query")) or question(attributes.get("input.value"))
        return shapes.retrieval(span, query, _listed(attributes, "reranker.output_documents."), NAME, reranks=True)
    if kind == "TOOL":
        return _tool(span)
    if kind == "EMBEDDING":
        model = first_text(attributes, "embedding.model_name", "gen_ai.request.model")
        return no_step(Reason.EMBEDDING, embedding_model=model, convention=NAME)
    return no_step(Reason.OTHER_STEP, convention=NAME)


def _said(span: Span) -> Said:
    attributes = span.attributes
    output = attributes.get("output.value")
    said = reply(output)
    query = _asked_in_messages(attributes) or question(attributes.get("input.value")) or asked(span)
    uncertain = not isinstance(output, str) or literal(output) is not None
    return Said(query, said.text, uncertain)


def _tool(span: Span) -> Step:
    attributes = span.attributes
    name = first_text(attributes, "tool.name", "gen_ai.tool.name")
    arguments = attributes.get("input.value")
    return shapes.tool_call(span, name, arguments, attributes.get("output.value"), NAME)


def _asked(span: Span) -> str:
    attributes = span.attributes
    found = _asked_in_messages(attributes) or question(attributes.get("input.value"))
    return found or text(attributes.get("llm.prompts.0.prompt.text")) or asked(span)


def _asked_in_messages(attributes: Attributes) -> str:
    """Return the last message of the user, by its role: messages may be many, so they are not grouped."""
    places = [
        int(number)
        for name, value in attributes.items()
        if value == "user"
        and name.startswith("llm.input_messages.")
        and name.endswith(".message.role")
        and len(number := name[19:-13]) <= 9
        and number.isascii()
        and number.isdecimal()
    ]
    groups: dict[int, Attributes] | None = None
    for place in sorted(places, reverse=True):
        found = content(attributes.get(f"llm.input_messages.{place}.message.content"))[0]
        if not found:  # its parts; all messages are grouped at once, and only if one has none but parts
            if groups is None:
                groups = numbered(attributes, "llm.input_messages.")
            found = _parts(groups.get(place, {}))
        if found:
            return found
    return ""


def _parts(message: Attributes) -> str:
    return "\n".join(_texts(indexed(message, "message.contents.")))


def _texts(parts: list[Attributes]) -> list[str]:
    texts = (
        text(part.get("message_content.text")) for part in parts if part.get("message_content.type", "text") == "text"
    )
    return [found for found in texts if found]


def _answered(span: Span) -> Message:
    attributes = span.attributes
    found, calls, seen = "", False, False
    for group in indexed(attributes, "llm.output_messages."):
        seen = True
        said = content(group.get("message.content"))[0] or _parts(group)
        found = found or said
        calls = calls or any(name.startswith("message.tool_calls.") for name in group)
        calls = calls or "message.function_call_name" in group
    if seen and (found or calls):
        return Message("assistant", found, calls=calls)
    said_alone = text(attributes.get("llm.choices.0.completion.text"))
    if said_alone:
        return Message("assistant", said_alone, calls=False)
    reply_found = reply(attributes.get("output.value"))
    return reply_found if reply_found.text or reply_found.calls else answered(span)


def _listed(attributes: Attributes, prefix: str) -> tuple[Document, ...]:
    groups = indexed(attributes, prefix)
    found = (document_of({name.removeprefix("document."): value for name, value in group.items()}) for group in groups)
    return tuple([document for document in found if document is not None])


def _with_ids(found: tuple[Document, ...], attributes: Attributes) -> tuple[Document, ...]:
    """Return documents with the ids that only the output has; those of LangChain are not in the attributes."""
    if found and all(document.id for document in found):
        return found
    output = container(attributes.get("output.value"))
    if output is None:
        return found
    if not found:
        return documents(output)
    by_text = {document.text: document.id for document in documents(output) if document.id and document.text}
    return tuple(
        [
            document if document.id else document._replace(id=identifier(by_text.get(document.text)))
            for document in found
        ]
    )
