"""Find the retrievals of a trace. Nested retrievers are one; a project may name tools that retrieve."""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from assay_assembler.documents import Document, documents, is_unread
from assay_assembler.messages import question
from assay_assembler.node import Node, by_end
from assay_assembler.step import Reason, StepKind


@dataclass(frozen=True)
class Found:
    """One retrieval."""

    node: Node
    query: str
    documents: tuple[Document, ...]
    #: True if the documents replace those of earlier retrievals.
    reranks: bool
    embedding_model: str
    vector: bool
    #: The node, and the spans within it that are the same retrieval.
    sources: list[Node]
    #: Why it makes no event, or None.
    reason: Reason | None


def found_retrievals(nodes: Collection[Node], retrieval_tools: tuple[str, ...]) -> list[Found]:
    """Return the retrievals that these spans name, by their end."""
    found = [_found(node) for node in nodes if _is_outermost(node)]
    if retrieval_tools:
        found.extend(_of_tool(node) for node in nodes if _is_retrieval_tool(node, retrieval_tools))
    return sorted(found, key=lambda each: by_end(each.node))


def _is_outermost(node: Node) -> bool:
    if node.step.kind is not StepKind.RETRIEVAL:
        return False
    return not any(above.step.kind is StepKind.RETRIEVAL for above in node.ancestors())


def _found(node: Node) -> Found:
    below = list(node.descendants())
    sources = [node, *(each for each in below if each.step.kind is StepKind.RETRIEVAL)]
    own_query = next((each.step.query for each in sources if each.step.query), "")
    # The outermost has the final result. Of those within it the last one that has documents is the closest to it.
    hits = node.step.documents or next(
        (each.step.documents for each in sorted(sources, key=by_end, reverse=True) if each.step.documents), ()
    )
    dropped = any(each.dropped for each in sources)
    query = own_query or asked_above(node)
    reason = None
    if not query or not (own_query or hits):
        reason = Reason.DROPPED_ATTRIBUTES if dropped else Reason.NO_CONTENT
    elif not hits and any(is_unread(each.step.result) for each in sources):
        reason = Reason.UNREADABLE
    model = next((each.step.embedding_model for each in [node, *below] if each.step.embedding_model), "")
    vector = bool(model) or any(_is_vector(each) for each in [node, *below])
    return Found(node, query, _with_texts(hits, sources), node.step.reranks, model, vector, sources, reason)


def _with_texts(hits: tuple[Document, ...], sources: list[Node]) -> tuple[Document, ...]:
    """Return hits with the texts that only another span of the same retrieval has."""
    if all(hit.text for hit in hits):
        return hits
    texts = {hit.id: hit.text for each in sources for hit in each.step.documents if hit.id and hit.text}
    return tuple([hit if hit.text else hit._replace(text=texts.get(hit.id, "")) for hit in hits])


def _is_vector(node: Node) -> bool:
    return node.step.reason is Reason.EMBEDDING or node.step.convention == "db"


def _is_retrieval_tool(node: Node, patterns: tuple[str, ...]) -> bool:
    if node.step.kind is not StepKind.TOOL_CALL or not any(fnmatchcase(node.step.tool_name, each) for each in patterns):
        return False
    return not any(below.step.kind is StepKind.RETRIEVAL for below in node.descendants())


def _of_tool(node: Node) -> Found:
    query = question(node.step.arguments) or asked_above(node)
    hits = documents(node.step.result)
    reason = None if query and hits else Reason.NO_CONTENT
    return Found(node, query, hits, reranks=False, embedding_model="", vector=False, sources=[node], reason=reason)


def asked_above(node: Node) -> str:
    """Return the user's text of the nearest ancestor that has one."""
    above = (each.read().query for each in node.ancestors() if each.step.kind is StepKind.ANSWER)
    return next((query for query in above if query), "")


def ended_before(found: list[Found], moment_ns: int) -> list[Found]:
    """Return the retrievals that ended before a moment, by their end."""
    return [each for each in found if each.node.end_ns <= moment_ns]


def passages(found: list[Found]) -> tuple[Document, ...]:
    """Return the documents of retrievals in their order, each once. A reranker's replace those before it."""
    last_rerank = max((place for place, each in enumerate(found) if each.reranks and each.documents), default=0)
    return tuple(dict.fromkeys(document for each in found[last_rerank:] for document in each.documents))
