"""Read a captured retrieval whose documents a reviewer ticks, with the texts that are known of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.events.one import RELATED_MS
from assay_operations.labelling.queues import checked_event, checked_name
from assay_operations.time_bounds import utc

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

_RETRIEVAL = """
SELECT toString(c.event_id) AS event_id, c.event_time AS event_time, query, retrieved_slugs, retrieved_ids,
    retrieved_chunk_ids, retrieved_scores,
    c.passages.id AS passage_ids, c.passages.text AS passage_texts
FROM candidates AS c
WHERE c.project = {project:String} AND c.event_id = {event:UUID} AND c.event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
"""

_OF_ANSWER = """
SELECT toString(retrieval_event_id) FROM answers
WHERE project = {project:String} AND event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
    AND retrieval_event_id IS NOT NULL
"""

#: The passages that answers of a retrieval were given: those of its first answer.
_GIVEN = """
SELECT a.contexts.id AS ids, a.contexts.source_id AS sources, a.contexts.text AS texts FROM answers AS a
WHERE a.project = {project:String} AND a.retrieval_event_id = {event:UUID} AND notEmpty(a.contexts.id)
    AND a.event_time BETWEEN UUIDv7ToDateTime({event:UUID}, 'UTC') - toIntervalMillisecond({within:UInt32})
        AND UUIDv7ToDateTime({event:UUID}, 'UTC') + toIntervalMillisecond({within:UInt32})
ORDER BY a.event_time LIMIT 1
"""


#: Newest retrievals of a project among which a document is looked for.
LOOKED_AT = 200_000
_KNOWN = """
SELECT arrayFilter(name -> NOT has(known, name), {names:Array(String)})
FROM
(
    SELECT groupUniqArrayArray(arrayFilter(name -> has({names:Array(String)}, name),
        arrayConcat(retrieved_slugs, arrayMap(id -> toString(id), retrieved_chunk_ids), retrieved_ids, names_of_passages))) AS known
    FROM
    (
        SELECT retrieved_slugs, retrieved_chunk_ids, retrieved_ids, c.passages.id AS names_of_passages FROM candidates AS c
        WHERE c.project = {project:String} ORDER BY c.event_time DESC LIMIT {most:UInt64}
    )
)
"""


@dataclass(frozen=True)
class Document:
    """A document of the list.

    `rank` is 1 for the first. `score` and `text` are None if the producer does not send them. The passages of a document that has
    several are joined by empty lines.
    """

    rank: int
    name: str
    score: float | None
    text: str | None


@dataclass(frozen=True)
class Retrieval:
    """A question with the documents that were retrieved, each once."""

    event_id: str
    event_time: datetime
    project: str
    query: str
    documents: tuple[Document, ...]
    #: True if the documents are named by ids of chunks.
    of_chunks: bool


def retrieval_of(store: "Store", project: str, event_id: str) -> Retrieval:
    """Return a retrieval, or the one that an answer was made from.

    Raises `OperationError` if it is not stored in the project.
    """
    checked_name(project, "project")
    event = checked_event(event_id)
    row = _row(store, _RETRIEVAL, project, event)
    if row is None:
        answer = store.query(_OF_ANSWER, parameters={"project": project, "event": event}).result_rows
        row = _row(store, _RETRIEVAL, project, str(answer[0][0])) if answer else None
    if row is None:
        raise OperationError("not_found", f"no retrieval {event}, or answer of one, is stored in project {project}")
    documents, of_chunks = documents_of(row)
    if any(each.text is None for each in documents):
        values = {"project": project, "event": row["event_id"], "within": RELATED_MS}
        given = store.query(_GIVEN, parameters=values).result_rows
        documents = with_texts(documents, zip(*given[0], strict=True) if given else ())
    return Retrieval(row["event_id"], utc(row["event_time"]), project, row["query"], documents, of_chunks)


def never_retrieved(store: "Store", project: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the documents that none of the newest `LOOKED_AT` retrievals of a project returned.

    Documents are named by their slug, their id, or the id of a chunk.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return ()
    rows = store.query(_KNOWN, parameters={"project": project, "names": wanted, "most": LOOKED_AT}).result_rows
    return tuple(map(str, rows[0][0])) if rows else tuple(wanted)


def _row(store: "Store", sql: str, project: str, event: str) -> dict[str, Any] | None:
    rows = store.query(sql, parameters={"project": project, "event": event}).named_results()
    return next((dict(row) for row in rows), None)


def documents_of(row: dict[str, Any]) -> tuple[tuple[Document, ...], bool]:
    """Return the distinct documents of a retrieval, and True if only ids of chunks name them. Pure."""
    passages, chunks = list(row["passage_ids"]), [str(each) for each in row["retrieved_chunk_ids"]]
    names = list(row["retrieved_slugs"]) or list(row["retrieved_ids"]) or passages or chunks
    scores = row["retrieved_scores"] if len(row["retrieved_scores"]) == len(names) else [None] * len(names)
    texts = dict(zip(passages, row["passage_texts"], strict=True))
    in_order = row["passage_texts"] if len(passages) == len(names) else [None] * len(names)
    found: dict[str, Document] = {}
    for name, score, text in zip(names, scores, in_order, strict=True):
        if name and name not in found:
            found[name] = Document(len(found) + 1, name, score, texts.get(name, text))
    # A retrieval that found nothing names no chunks: its missing documents are typed by name.
    return tuple(found.values()), bool(chunks) and not (row["retrieved_slugs"] or row["retrieved_ids"] or passages)


def with_texts(documents: Iterable[Document], passages: Iterable[tuple[str, str | None, str]]) -> tuple[Document, ...]:
    """Return documents with the texts of passages, given as id, source and text. Pure.

    A passage belongs to the document that its id or its source names. A document that has a text keeps it.
    """
    texts: dict[str, list[str]] = {}
    for identity, source, text in passages:
        for name in {identity, source} - {None, ""}:
            texts.setdefault(str(name), []).append(text)
    return tuple(
        replace(each, text="\n\n".join(texts[each.name])) if each.text is None and each.name in texts else each
        for each in documents
    )
