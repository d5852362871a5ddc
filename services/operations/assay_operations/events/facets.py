"""Count the values of fields that a filter can choose."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from assay_operations.events.bounds import DAY, DAYS_FROM_MS, HOUR, MINUTE, Unit, rollup_parameters
from assay_operations.events.filters import STATUSES, EventFilter, Range
from assay_operations.events.histogram import counted_span, not_applied
from assay_operations.events.queries import Queries
from assay_operations.events.rows import EventRow
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Values of a facet, those with the most events first.
VALUES_MAX = 20
#: Length of a range from which on it is counted by hours, in milliseconds (20 hours).
_HOURS_FROM_MS = 20 * 3_600_000
Source = Literal["all counted events", "of the rows shown"]
#: The dimensions of the rollups: the names of the parameters and columns.
_DIMENSIONS = ("project", "service", "kind", "tool")
#: The kinds whose statuses the rollups count.
_COUNTED = (Kind.RETRIEVAL, Kind.FEEDBACK, Kind.TOOL_CALL)
_STATUSES = (
    "arrayConcat(arrayMap((status, n) -> (status, toUInt64(n)), mapKeys(by_status), mapValues(by_status)),"
    " if(of_kind = 'retrieval', [('no_result', none_found), ('found', toUInt64(n - none_found))], []),"
    " if(of_kind = 'feedback', [('positive', good), ('negative', bad)], []))"
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
    rows_read: int
    #: What the rollups counted: whole buckets, so more than the range at both ends. None if only rows shown were counted.
    counted: Range | None = None
    #: The buckets: `minute`, `hour` or `day`.
    unit: str = ""


def facets(client: "Client", wanted: EventFilter, span: Range, shown: Sequence[EventRow] = ()) -> Facets:
    """Return counts of the values that a filter could choose. Raises `OperationError`.

    The values of a field are counted without the filter's condition on this field. The rollups count every minute, hour or day that the
    range touches: hours from a range of 20 hours on, and days from 20 days on, because a day has far more minutes to read. A field
    that they do not have, and every field if they do not know a condition of the filter, is counted on the rows shown.
    """
    queries = Queries(client)
    unknown = set(not_applied(wanted)) - {"status"}
    names = [] if unknown or wanted.statuses else [*_DIMENSIONS]
    if not unknown and not set(wanted.possible_kinds) - set(_COUNTED):
        names.append("status")
    all_names = (*_DIMENSIONS, "model", "status")
    if not names:
        return Facets(tuple(of_rows(name, shown) for name in all_names), queries.rows_read)
    span = counted_span(queries, EventFilter(), span)
    unit = _unit_of(span)
    counted = _of_rollups(queries, wanted, span, unit, names)
    found = tuple(counted.get(name) or of_rows(name, shown) for name in all_names)
    edges = unit.buckets(span.from_ms, span.to_ms)
    return Facets(found, queries.rows_read, Range(edges["first_ms"], edges["last_ms"]), unit.column)


def _unit_of(span: Range) -> Unit:
    """Return the coarsest rollup with which the ends of a range weigh little. Pure."""
    length_ms = span.to_ms - span.from_ms
    return DAY if length_ms >= DAYS_FROM_MS else HOUR if length_ms >= _HOURS_FROM_MS else MINUTE


def of_rows(name: str, shown: Sequence[EventRow]) -> Facet:
    """Count the values of a field on rows. Pure."""
    counts = Counter(str(getattr(row, name)) for row in shown if getattr(row, name) != "")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Facet(name, tuple(ordered[:VALUES_MAX]), "of the rows shown", max(0, len(ordered) - VALUES_MAX))


def _of_rollups(
    queries: Queries, wanted: EventFilter, span: Range, unit: Unit, names: Sequence[str]
) -> dict[str, Facet]:
    """Count the values of several fields in one query: each event once for each field."""
    wanted = replace(wanted, statuses=())
    conditions = {
        "project": "of_project = {project:String}" if wanted.project is not None else "",
        "service": "has({services:Array(String)}, of_service)" if wanted.services else "",
        "kind": "has({kinds:Array(String)}, of_kind)",
        "tool": "has({tools:Array(String)}, of_tool)" if wanted.tools else "",
    }
    items = []
    for name in names:
        others = " AND ".join(sql for field, sql in conditions.items() if sql and field != name) or "true"
        pairs = _STATUSES if name == "status" else f"[(of_{name}, n)]"
        items.append(f"if({others}, arrayMap(pair -> ({name!r}, pair.1, pair.2), {pairs}), [])")
    where = " AND ".join([*unit.within(), "has({any_kinds:Array(String)}, toString(kind))"])
    sql = (
        "SELECT item.1 AS name, item.2 AS value, sum(item.3) AS counted, count() OVER (PARTITION BY name) AS values FROM"  # noqa: S608
        " (SELECT toString(project) AS of_project, toString(service) AS of_service, toString(kind) AS of_kind,"
        " toString(tool) AS of_tool, sum(events) AS n, sum(without_result) AS none_found, sum(positive) AS good,"
        " sum(negative) AS bad, CAST(sumMap(statuses), 'Map(String, UInt64)') AS by_status"
        f" FROM {unit.view} WHERE {where} GROUP BY of_project, of_service, of_kind, of_tool)"
        f" ARRAY JOIN arrayConcat({', '.join(items)}) AS item"
        " GROUP BY name, value HAVING counted > 0 AND value != '' ORDER BY counted DESC, value LIMIT {limit:UInt32} BY name"
    )
    any_kinds = [str(kind) for kind in replace(wanted, kinds=()).possible_kinds]
    values = rollup_parameters(wanted) | unit.buckets(span.from_ms, span.to_ms)
    allowed = {status for kind in wanted.possible_kinds for status in STATUSES[kind]}
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    every = dict.fromkeys(names, 0)
    for name, value, counted, number in queries.counts(sql, values | {"any_kinds": any_kinds, "limit": VALUES_MAX}):
        if name != "status" or value in allowed:
            found[name].append((value, int(counted)))
        every[name] = int(number)
    return {
        name: Facet(name, tuple(of), "all counted events", max(0, every[name] - VALUES_MAX))
        for name, of in found.items()
    }
