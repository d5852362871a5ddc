"""Find earlier retrievals of the same question that returned other documents."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.events.bounds import Bounds
from assay_operations.events.filters import EventFilter, Range
from assay_operations.events.queries import OutOfTimeError, Queries
from assay_operations.events.rows import from_unix_ms, moment
from assay_runtime.indexed import question_hash
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: How far back is looked, in milliseconds (30 days), and for how long, in seconds.
BACK_MS = 30 * 86_400_000
#: About how many retrievals of the project are looked at most, the newest: a question that is often asked is in every part of the table.
ROWS_MAX = 50_000
BUDGET_S = 3.0
#: Most lists of documents that are returned.
LISTS_MAX = 10

_DOCUMENTS = """multiIf(notEmpty(retrieved_slugs), CAST(retrieved_slugs, 'Array(String)'), notEmpty(retrieved_ids), retrieved_ids,
    notEmpty(passages.id), passages.id, arrayMap(each -> toString(each), retrieved_chunk_ids))"""
_EARLIER = f"""SELECT documents, count() AS times, toUnixTimestamp64Milli(max(event_time)) AS last_ms,
    argMax(event_id, event_time) AS newest
FROM
(
    SELECT {_DOCUMENTS} AS documents, event_time, event_id FROM candidates
    WHERE project = {{project:String}} AND {question_hash("query")} = {question_hash("{question:String}")}
      AND event_time >= {moment("low_ms")} AND event_time < {moment("upper_ms")}
)
GROUP BY documents ORDER BY last_ms DESC LIMIT {{limit:UInt32}}
SETTINGS use_skip_indexes_if_final_exact_mode = 0"""  # noqa: S608 - constants
# Exact mode reads all parts of a table that the index has skipped if they overlap in time with one that it has not: eight times the rows.


@dataclass(frozen=True)
class EarlierList:
    """A list of documents that the question returned before, and how it differs from the list now."""

    documents: tuple[str, ...]
    times: int
    last: datetime
    #: The newest retrieval that returned it.
    event_id: str
    #: Documents that were there then and not now, and the other way round.
    gone: tuple[str, ...]
    new: tuple[str, ...]


def documents_of(record: "dict[str, object]") -> tuple[str, ...]:
    """Return the documents of a row of `candidates`, as lists are compared. Pure."""
    for name in ("retrieved_slugs", "retrieved_ids"):
        found = record.get(name)
        if isinstance(found, list) and found:
            return tuple(map(str, found))
    passages = record.get("passages")
    if isinstance(passages, list) and passages:
        return tuple(str(each["id"]) for each in passages)
    chunks = record.get("retrieved_chunk_ids")
    return tuple(map(str, chunks)) if isinstance(chunks, list) else ()


def other_documents(
    client: "Client", project: str, question: str, documents: tuple[str, ...], at_ms: int, *, budget_s: float = BUDGET_S
) -> tuple[EarlierList, ...]:
    """Return the other lists that the question returned before a time, the newest first.

    Looks at the retrievals of 30 days, or at the newest `ROWS_MAX` of them. Questions are the same if they differ in case
    and white space only. If a producer sent an id twice with different questions, the later copy may count too. The
    store's user must be able to change settings, as the console's is. Raises `OperationError`.
    """
    queries = Queries(client)
    retrievals = EventFilter(kinds=(Kind.RETRIEVAL,), project=project)
    bounds = Bounds(queries, retrievals, Range(max(0, at_ms - BACK_MS), at_ms))
    low_ms = bounds.lower(at_ms, None, ROWS_MAX, hours_first=0).low_ms
    values = {"project": project, "question": question, "low_ms": low_ms, "upper_ms": at_ms, "limit": LISTS_MAX + 1}
    try:
        rows = queries.rows(_EARLIER, values, seconds=budget_s)
    except OutOfTimeError:
        raise OperationError(
            "unavailable", f"the search for the same question took longer than {budget_s:g} s"
        ) from None
    found = [(tuple(map(str, each)), *rest) for each, *rest in rows]
    return tuple(
        EarlierList(
            each,
            int(times),
            from_unix_ms(int(last_ms)),
            str(newest),
            tuple(name for name in dict.fromkeys(each) if name not in documents),
            tuple(name for name in dict.fromkeys(documents) if name not in each),
        )
        for each, times, last_ms, newest in found
        if each != documents
    )[:LISTS_MAX]
