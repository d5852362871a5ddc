"""Count the values of fields that a filter can choose."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from assay_operations.events.bounds import counted_to, rollup_parameters
from assay_operations.events.filters import STATUSES, EventFilter, Range
from assay_operations.events.histogram import counted_span, narrowed, not_applied, width_of
from assay_operations.events.reads import Reads
from assay_operations.events.rows import EventRow
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Values of a facet, those with the most events first.
VALUES_MAX = 20
Source = Literal["all counted events", "of the rows shown"]
#: The dimensions of the rollups: name of the parameter, column, and the field of the filter.
_DIMENSIONS: tuple[tuple[str, str, str, Any], ...] = (
    ("project", "project", "project", None),
    ("service", "service", "services", ()),
    ("kind", "toString(kind)", "kinds", ()),
    ("tool", "tool", "tools", ()),
)
#: The kinds whose statuses the rollups count.
_COUNTED = (Kind.RETRIEVAL, Kind.FEEDBACK, Kind.TOOL_CALL)
_STATUSES = (
    "arrayConcat(arrayMap((status, n) -> (toString(status), toInt64(n)), mapKeys(statuses), mapValues(statuses)),"
    " if(kind = 'retrieval', [('no_result', toInt64(without_result)), ('found', toInt64(events) - toInt64(without_result))], []),"
    " if(kind = 'feedback', [('positive', toInt64(positive)), ('negative', toInt64(negative))], []))"
)


@dataclass(frozen=True)
class Facet:
    """The values of one field with their numbers of events, greatest first."""

    #: The URL parameter that chooses a value.
    name: str
    values: tuple[tuple[str, int], ...]
    source: Source
    #: Number of further values; None if it is not known.
    more: int | None = 0


@dataclass(frozen=True)
class Facets:
    """Counts by project, service, kind, tool, model and status."""

    facets: tuple[Facet, ...]
    counted_to: datetime | None
    rows_read: int


def facets(client: "Client", wanted: EventFilter, span: Range, shown: Sequence[EventRow] = ()) -> Facets:
    """Return counts of the values that a filter could choose. Raises `OperationError`.

    The values of a field are counted without the filter's condition on this field. The rollups count whole buckets of the range. A field
    that they do not have, and every field if they do not know a condition of the filter, is counted on the rows shown.
    """
    reads = Reads(client)
    span = counted_span(reads, EventFilter(), span)
    unknown = set(not_applied(wanted)) - {"status"}
    found = [of_rows(name, shown) for name, *_ in _DIMENSIONS] if unknown or wanted.statuses else None
    if found is None:
        found = _of_rollups(reads, wanted, span)
    statuses = of_rows("status", shown)
    if not unknown and not set(wanted.possible_kinds) - set(_COUNTED):
        statuses = _statuses(reads, replace(wanted, statuses=()), span)
    models = of_rows("model", shown)
    return Facets((*found, models, statuses), counted_to(reads), reads.rows_read)


def of_rows(name: str, shown: Sequence[EventRow]) -> Facet:
    """Count the values of a field on rows. Pure."""
    counts = Counter(str(getattr(row, name)) for row in shown if getattr(row, name) != "")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Facet(name, tuple(ordered[:VALUES_MAX]), "of the rows shown", max(0, len(ordered) - VALUES_MAX))


def _of_rollups(reads: Reads, wanted: EventFilter, span: Range) -> list[Facet]:
    found = []
    for name, column, field, nothing in _DIMENSIONS:
        others = replace(wanted, **{field: nothing})
        found.append(_count(reads, name, f"[({column}, toInt64(events))]", others, span))
    return found


def _statuses(reads: Reads, wanted: EventFilter, span: Range) -> Facet:
    facet = _count(reads, "status", _STATUSES, wanted, span)
    allowed = {status for kind in wanted.possible_kinds for status in STATUSES[kind]}
    return replace(facet, values=tuple(item for item in facet.values if item[0] in allowed))


def _count(reads: Reads, name: str, pairs: str, wanted: EventFilter, span: Range) -> Facet:
    """Return the sums of pairs of a value and a number, which each row of a rollup has."""
    _, unit = width_of(span)
    where = " AND ".join([*unit.within(), *narrowed(wanted)])
    sql = (
        "SELECT toString(pair.1) AS value, sum(pair.2) AS counted, count() OVER () AS values"  # noqa: S608 - constants
        f" FROM {unit.view} ARRAY JOIN {pairs} AS pair WHERE {where}"
        " GROUP BY value HAVING counted > 0 AND value != '' ORDER BY counted DESC, value LIMIT {limit:UInt32}"
    )
    values = rollup_parameters(wanted) | unit.buckets(span.from_ms, span.to_ms) | {"limit": VALUES_MAX}
    rows = reads.rows(sql, values)
    more = int(rows[0][2]) - len(rows) if rows else 0
    return Facet(name, tuple((str(value), int(counted)) for value, counted, _ in rows), "all counted events", more)
