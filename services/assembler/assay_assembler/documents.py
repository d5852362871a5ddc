"""Read the documents of a retrieval in the forms that retrievers and stores send. Pure; never raises."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from assay_assembler.values import container, first, first_text, identifier, number

#: Documents of one retrieval that are read, like the items of an event.
DOCUMENTS_MAX = 10_000
_IDS = ("id", "document_id", "doc_id", "chunk_id", "chunk", "_id", "id_", "node_id")
_METADATA_IDS = ("id", "doc_id", "chunk_id", "chunk", "_id", "document_id")
_TEXTS = ("content", "text", "page_content", "pageContent", "document", "passage", "snippet", "chunk_text", "body")
_SCORES = ("score", "similarity", "similarity_score", "relevance_score", "_score")
_SOURCES = ("source", "url", "file_name", "title", "source_id", "file_path")
_SLUGS = ("slug", "source", "url", "file_name")
#: Fields of an output that hold a list of documents.
_LISTS = (
    "documents",
    "results",
    "matches",
    "hits",
    "nodes",
    "output",
    "data",
    "source_nodes",
    "context",
    "chunks",
    "response",
)
LEVELS_MAX = 4
_EMPTY = re.compile(r'\s*(?:""|null|None|\(\))?\s*')


class Document(NamedTuple):
    """One hit. Any field may be empty."""

    id: str
    text: str
    score: float | None
    source: str
    slug: str


def documents(value: Any, level: int = 0) -> tuple[Document, ...]:
    """Return the documents of a list, of the JSON of one, or of an object with one."""
    found = container(value)
    if isinstance(found, dict) and level < LEVELS_MAX:
        return next((each for name in _LISTS if found.get(name) and (each := documents(found[name], level + 1))), ())
    if not isinstance(found, list):
        return ()
    if len(found) == 1 and isinstance(found[0], list) and level < LEVELS_MAX:
        return documents(found[0], level + 1)
    return tuple(_each(found))


def in_prompt(attributes: Mapping[str, Any], names: Collection[str]) -> tuple[Document, ...]:
    """Return the values of a prompt's variables: the documents of a list of them, else one for each text.

    OpenTelemetry and OpenLLMetry have an attribute for each variable, OpenInference has the JSON of all.
    """
    template = container(attributes.get("llm.prompt_template.variables"))
    if not isinstance(template, dict):
        template = {}
    found: list[Document] = []
    for name in names:
        value = attributes.get(f"gen_ai.prompt.variable.{name}", template.get(name))
        texts = value if isinstance(value, list) else [value]
        found.extend(documents(value) or _of_texts(texts[:DOCUMENTS_MAX]))
    return tuple(found)


def _of_texts(values: list[Any]) -> Iterator[Document]:
    return (Document("", each, None, "", "") for each in values if isinstance(each, str) and each.strip())


def is_unread(result: Any) -> bool:
    """Return whether the output of a retrieval without documents is more than an empty list of them."""
    found = container(result)
    if isinstance(found, dict):
        return any(found.get(name) for name in _LISTS)
    return bool(found) if isinstance(found, list) else isinstance(result, str) and not _EMPTY.fullmatch(result)


def _each(found: list[Any]) -> Iterator[Document]:
    for item in found[:DOCUMENTS_MAX]:
        # OpenLLMetry sends LlamaIndex's nodes as JSON within JSON.
        document = document_of(container(item) if isinstance(item, str) else item)
        if document is not None:
            yield document


def document_of(item: Any) -> Document | None:
    """Return one document, or None if a value has neither an id nor a text of one."""
    if not isinstance(item, dict):
        return None
    outer = item
    for name in ("node", "kwargs", "document"):  # LlamaIndex, serialised LangChain, search results around a document
        if isinstance(item.get(name), dict):
            item = item[name]
            break
    metadata = container(first(item, "metadata", "payload", "properties", "entity")) or {}
    if not isinstance(metadata, dict):
        metadata = {}
    text = (
        first_text(item, *_TEXTS)
        or first_text(outer, *_TEXTS)
        or first_text(metadata, "text", "content", "page_content")
    )
    known = (
        identifier(first(item, *_IDS)) or identifier(first(outer, *_IDS)) or identifier(first(metadata, *_METADATA_IDS))
    )
    if not text and not known:
        return None
    score = number(first(outer, *_SCORES))
    if score is None:
        score = number(first(item, *_SCORES))
    if score is None:
        score = number(first(metadata, *_SCORES))
    return Document(
        known,
        text,
        score,
        first_text(metadata, *_SOURCES) or first_text(item, *_SOURCES),
        first_text(metadata, *_SLUGS) or first_text(item, *_SLUGS),
    )
