"""The page of events."""

import asyncio
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.scope import joined, values_of
from assay_operations.events.bounds import counted_to
from assay_operations.events.facets import Facet, Facets, facets, of_rows
from assay_operations.events.filters import KINDS, STATUSES, EventFilter, Range, parse_filter
from assay_operations.events.histogram import Histogram as Buckets
from assay_operations.events.histogram import histogram
from assay_operations.events.listing import Page as Rows
from assay_operations.events.listing import is_search, list_events
from assay_operations.events.removed import Without, without_each
from assay_operations.events.rows import SOURCES, EventRow, conditions, from_unix_ms, parameters, within
from assay_schema.limits import NAME_MAX_CHARS
from assay_schema.scores import SESSION_METRICS, Metric

#: Rows of a page.
LIMIT = 50
_HAS = ("feedback", "negative", "pii", "no-result", "judged", "uncited", "failed-check")
#: Parameters of the filter, without the project, which is part of every page's scope.
FILTER = (
    Parameter("kind", "Kinds of events.", tuple(map(str, KINDS)), many=True),
    Parameter("service", "Services.", longest=4_000, many=True),
    Parameter("tool", "Operations of retrievals, or tools called.", longest=4_000, many=True),
    Parameter("model", "Models of answers, or embedding models.", longest=4_000, many=True),
    Parameter("status", "Statuses.", tuple(dict.fromkeys(each for of in STATUSES.values() for each in of)), many=True),
    Parameter("has", "Properties that an event must all have.", _HAS, many=True),
    Parameter("latency>", "Latency above this, in milliseconds."),
    *(
        Parameter(f"metric.{metric}<", f"{metric} below this, from 0 to 1.")
        for metric in Metric
        if metric not in SESSION_METRICS
    ),
    Parameter("q", "Part of the text, in any case.", longest=1_000),
    Parameter("trace", "Trace id: 32 hexadecimal digits."),
    Parameter("session", "Session id.", longest=NAME_MAX_CHARS),
)
_NAMES = frozenset(each.name for each in FILTER)
_MANY = frozenset(each.name for each in FILTER if each.many)


class Count(Document):
    """Events of one bucket of time, by kind."""

    start: datetime
    events: dict[str, int]


class Histogram(Document):
    """Events over time. `not_applied` are the conditions that the counts ignore."""

    buckets: tuple[Count, ...]
    counted_to: datetime | None
    not_applied: tuple[str, ...]
    bucket_s: int


class Value(Document):
    """A value of a facet. `toggled` is the parameter's value after it is chosen, or left out if it is."""

    value: str
    events: int
    chosen: bool
    toggled: str


class Choices(Document):
    """A facet: the values of one parameter. `more`: number of further values; None if unknown."""

    name: str
    values: tuple[Value, ...]
    of_rows_shown: bool
    more: int | None


class Counted(Document):
    """The time that facets count: whole buckets of `unit`, so more than the range at both ends."""

    from_time: datetime
    to_time: datetime
    unit: str


class Removed(Document):
    """The number of events if one condition is removed. `exact` is False if there are more."""

    name: str
    events: int
    exact: bool


class EventList(Document):
    """A page of events, newest first. `next` is the cursor of the next page."""

    rows: tuple[EventRow, ...]
    next: str | None
    #: Every matching event from here to the cursor is on this page or an earlier one.
    searched_from: datetime
    complete: bool


class Events(Document):
    """Events that meet a filter."""

    filters: dict[str, str]
    listed: Panel[EventList]
    histogram: Panel[Histogram]
    facets: Panel[tuple[Choices, ...]]
    #: None if the facets count the rows shown.
    facets_of: Counted | None
    #: Why the page is empty: counts without each condition.
    removed: tuple[Removed, ...]
    #: The command that exports these events, as far as it knows the conditions, and the conditions that it does not know.
    export: str
    export_ignores: tuple[str, ...]
    #: SQL that lists the same events, and the values of its parameters.
    sql: str
    sql_parameters: dict[str, str]

    @property
    def judged_answers(self) -> tuple[str, ...]:
        """The rows that show a score."""
        return judged_of(self.listed.value.rows) if self.listed.value else ()


def judged_of(rows: Iterable[EventRow]) -> tuple[str, ...]:
    """Return the ids of the rows that show what a judge found. Pure."""
    return tuple(row.event_id for row in rows if row.judged == "scored")


def wanted_of(ask: Ask) -> EventFilter:
    """Return the filter of a URL. Raises `OperationError`."""
    return parse_filter(_pairs(ask.parameters, ask.scope.project))


def _pairs(parameters: Mapping[str, str], project: str) -> Iterator[tuple[str, str]]:
    yield "project", project
    for name in _NAMES:
        given = parameters.get(name, "")
        for value in values_of(given) if name in _MANY else [given]:
            yield name, value


def filters_of(ask: Ask) -> dict[str, str]:
    """Return the conditions of the URL without the project, in a fixed order."""
    return {each.name: ask.parameters[each.name] for each in FILTER if ask.parameters.get(each.name)}


async def read(ask: Ask) -> Events:
    """Read the rows, counts over time and facets at once."""
    wanted = wanted_of(ask)
    span = Range(ask.scope.from_ms, ask.scope.to_ms)
    rows, counts, choices, counted = await asyncio.gather(
        (ask.search if is_search(wanted) else ask.panel)(
            list_events, wanted, span, after=ask.text("after"), limit=LIMIT
        ),
        ask.panel(histogram, wanted, span),
        ask.panel(facets, wanted, span),
        ask.panel(counted_to),
    )
    removed: tuple[Without, ...] = ()
    if rows.state == "ready" and rows.value and not rows.value.rows and rows.value.complete and not ask.text("after"):
        removed = await ask.rollup(without_each, wanted, span)
    filters = filters_of(ask)
    shown = rows.value.rows if rows.value else ()
    command, ignored = _export(ask, filters)
    # A key of one project must not learn the names and sizes of others.
    hidden = {"project"} if ask.person.project is not None else set()
    counted_values = [each for each in choices.value.facets if each.name not in hidden] if choices.value else None
    return Events(
        filters=filters,
        listed=rows.holding(_listed(rows.value) if rows.value else None),
        histogram=counts.holding(_histogram(counts.value, counted.value) if counts.value else None),
        facets=choices.holding(
            None if counted_values is None else tuple(_choices(each, shown, filters) for each in counted_values),
        ),
        facets_of=_counted(choices.value) if choices.value else None,
        removed=tuple(
            Removed(name=each.name, events=each.events, exact=each.exact) for each in removed if each.name not in hidden
        ),
        export=command,
        export_ignores=ignored,
        sql=(sql := _sql(wanted)),
        sql_parameters=_sql_parameters(sql, wanted, span),
    )


def _listed(page: Rows) -> EventList:
    return EventList(rows=page.rows, next=page.next, searched_from=page.searched_from, complete=page.complete)


def _histogram(found: Buckets, counted_at: datetime | None) -> Histogram:
    buckets = tuple(Count(start=each.start, events=each.events) for each in found.buckets)
    return Histogram(buckets=buckets, counted_to=counted_at, not_applied=found.not_applied, bucket_s=found.width_s)


def _counted(found: Facets) -> Counted | None:
    if found.counted is None:
        return None
    first, last = from_unix_ms(found.counted.from_ms), from_unix_ms(found.counted.to_ms)
    return Counted(from_time=first, to_time=last, unit=found.unit)


def _choices(facet: Facet, shown: tuple[EventRow, ...], filters: Mapping[str, str]) -> Choices:
    if facet.source == "of the rows shown":
        facet = of_rows(facet.name, shown)
    chosen = values_of(filters.get(facet.name, ""))
    counts = dict(facet.values)
    values = (
        Value(
            value=value,
            events=counts.get(value, 0),
            chosen=value in chosen,
            toggled=joined([each for each in chosen if each != value] if value in chosen else [*chosen, value]),
        )
        for value in dict.fromkeys((*chosen, *counts))
    )
    return Choices(
        name=facet.name, values=tuple(values), of_rows_shown=facet.source == "of the rows shown", more=facet.more
    )


def _export(ask: Ask, filters: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the command that exports the events, and the conditions that it does not know."""
    kinds = values_of(filters.get("kind", ""))
    words = ["assay export", f"--kind {kinds[0] if kinds else 'retrieval'}"]
    words += [f"--project {shlex.quote(ask.scope.project)}"] if ask.scope.project else []
    words += [
        f"--since {ask.scope.span}" if ask.scope.span else f"--since {ask.scope.from_iso} --until {ask.scope.to_iso}"
    ]
    ignored = [name for name in filters if name != "kind"] + (["kind"] if len(kinds) > 1 else [])
    return " ".join(words), tuple(ignored)


def _sql(wanted: EventFilter) -> str:
    parts = []
    for kind in wanted.possible_kinds:
        source = SOURCES[kind]
        columns = f"{kind.value!r} AS kind, {source.text} AS text, {source.status} AS status"
        where = " AND ".join([*within(), *conditions(wanted, kind)])
        parts.append(
            f"SELECT e.event_time AS time, {columns}, e.project AS project, e.service AS service, e.event_id AS event_id\n"
            f"FROM {source.view} AS e\nWHERE {where}"
        )
    if not parts:
        return ""
    inner = "\nUNION ALL\n".join(parts)
    return f"SELECT * FROM\n(\n{inner}\n)\nORDER BY time DESC LIMIT {LIMIT}"


def _sql_parameters(sql: str, wanted: EventFilter, span: Range) -> dict[str, str]:
    values = parameters(wanted) | {"low_ms": span.from_ms, "upper_ms": span.to_ms}
    return {name: _sql_text(value) for name, value in values.items() if f"{{{name}:" in sql}


def _sql_text(value: Any) -> str:
    if isinstance(value, list):
        quoted = (each.replace("\\", "\\\\").replace("'", "\\'") for each in value)
        return "[" + ",".join(f"'{each}'" for each in quoted) + "]"
    return str(value)


PAGE = Page(
    "events",
    "/events",
    "Events",
    "Which events are like this?",
    read,
    Events,
    (*FILTER, Parameter("after", "Cursor of a page: `next` of the page before it.")),
    key="e",
    by_project=True,
)
