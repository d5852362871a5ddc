"""Find the fields in which a selection of events differs from other events."""

from dataclasses import dataclass
from math import hypot
from typing import TYPE_CHECKING, Literal, cast

from assay_operations.errors import OperationError
from assay_operations.events.filters import OPEN_END_MS, EventFilter, Range
from assay_operations.events.queries import OutOfTimeError, Queries
from assay_operations.events.rows import SOURCES, conditions, moment, parameters
from assay_runtime.shares import Estimate, wilson
from assay_schema.fields import Kind

if TYPE_CHECKING:
    from assay_runtime.store import Client

BUDGET_S = 5.0
#: Values of one field that are compared: those with the most events.
VALUES_MAX = 50
Dimension = Literal["kind", "project", "service", "tool", "model", "status", "hits", "passages", "document", "pii"]
#: Fields that a condition decides, although they have other names.
_DECIDED = {
    "has=pii": {"pii"},
    "has=no-result": {"status", "hits"},
    "has=uncited": {"status"},
    "status=no_result": {"hits"},
}
_NUMBER = "multiIf({0} <= 5, toString({0}), {0} <= 10, '6 to 10', 'more than 10')"
_DOCUMENTS = {
    Kind.RETRIEVAL: (
        "multiIf(notEmpty(e.retrieved_slugs), arrayMap(d -> toString(d), e.retrieved_slugs), notEmpty(e.retrieved_ids),"
        " arrayMap(d -> toString(d), e.retrieved_ids), notEmpty(e.passages.id), arrayMap(d -> toString(d), e.passages.id),"
        " arrayMap(d -> toString(d), e.retrieved_chunk_ids))"
    ),
    Kind.ANSWER: "arrayMap((d, source) -> toString(ifNull(source, d)), e.contexts.id, e.contexts.source_id)",
}
#: Stands for all events among the values.
_TOTAL = ("", "")
#: The parameters with the edges of the range, and of the range to compare with.
_EDGES = (("span_from_ms", "span_to_ms"), ("other_from_ms", "other_to_ms"))


@dataclass(frozen=True)
class Difference:
    """A value whose share differs, or may differ, between the selection and the rest."""

    #: The field: `status` has `no_result`; `hits` of a retrieval and `passages` of an answer are numbers; `document` was retrieved, or
    #: given to the answer; `pii` is a family of personal data.
    dimension: Dimension
    value: str
    selected: int
    rest: int
    #: Shares of all events of the selection and of the rest.
    selected_share: float
    rest_share: float
    #: `selected_share - rest_share`, with its 95 % interval.
    difference: float
    low: float
    high: float
    #: The interval excludes 0.
    significant: bool

    @property
    def strength(self) -> float:
        """The least difference that the interval allows, in either direction; 0 if it is not significant."""
        return max(self.low, -self.high, 0.0)


@dataclass(frozen=True)
class Differences:
    """Differences, the strongest first. Of 20 values that do not differ, one is significant by chance."""

    differences: tuple[Difference, ...]
    selected: int
    rest: int
    rows_read: int


def what_differs(
    client: "Client",
    selection: EventFilter,
    span: Range,
    *,
    against: Range | None = None,
    budget_s: float = BUDGET_S,
) -> Differences:
    """Compare the events of a filter with the other events of the same kinds, project and range.

    With `against`, compare them with the events of the same filter in another range, such as the hours before an alert. Fields that
    the filter decides are left out. Raises `OperationError`, also if the store needs longer than `budget_s`.
    """
    ranges = (span, against) if against else (span,)
    if any(each.to_ms >= OPEN_END_MS or not each.from_ms for each in ranges):
        raise OperationError("invalid", "choose a range with a start and an end to compare events")
    if against and span.from_ms < against.to_ms and against.from_ms < span.to_ms:
        raise OperationError("invalid", "the two ranges overlap: an event would be compared with itself")
    if not selection.possible_kinds:
        return Differences((), 0, 0, 0)
    queries = Queries(client)
    parts = [_part(kind, selection, against is not None) for kind in selection.possible_kinds]
    counts = _counts(queries, parts, selection, (span, against or span), budget_s)
    selected, rest = counts.pop(_TOTAL, (0, 0))
    differences = [
        _difference(*key, *numbers, selected, rest)
        for key, numbers in counts.items()
        if selected and rest and numbers != (selected, rest)  # what all events have does not differ
    ]
    ordered = sorted(differences, key=lambda each: (-each.strength, -abs(each.difference), each.dimension, each.value))
    return Differences(tuple(ordered), selected, rest, queries.rows_read)


def difference_of_shares(selected: int, of_selected: int, rest: int, of_rest: int) -> Estimate:
    """Return the difference of two independent shares and its 95 % interval. Pure.

    Newcombe (1998), method 10: from the Wilson intervals of both shares.
    """
    one, other = wilson(selected, of_selected), wilson(rest, of_rest)
    if one is None or other is None:
        raise ValueError("a share of nothing")
    value = one.value - other.value
    low = value - hypot(one.value - one.low, other.high - other.value)
    high = value + hypot(one.high - one.value, other.value - other.low)
    return Estimate(value, max(-1.0, low), min(1.0, high))


def _difference(dimension: str, value: str, selected: int, rest: int, of_selected: int, of_rest: int) -> Difference:
    estimate = difference_of_shares(selected, of_selected, rest, of_rest)
    return Difference(
        cast("Dimension", dimension),
        value,
        selected,
        rest,
        selected / of_selected,
        rest / of_rest,
        difference=estimate.value,
        low=estimate.low,
        high=estimate.high,
        significant=estimate.low > 0 or estimate.high < 0,
    )


def decided_by(selection: EventFilter) -> set[str]:
    """Return the fields whose values the conditions of a filter decide. Pure."""
    found = set[str]()
    for name, value in selection.pairs():
        found |= {name} | _DECIDED.get(f"{name}={value}", set())
    return found


def _part(kind: Kind, selection: EventFilter, by_time: bool) -> str:
    """Return a SELECT of one kind: what is compared of each event, and whether it is selected."""
    in_span, in_other = (f"(e.event_time >= {moment(low)} AND e.event_time < {moment(high)})" for low, high in _EDGES)
    chosen = conditions(selection, kind)
    if by_time:
        selected, where = in_span, [f"({in_span} OR {in_other})", *chosen]
    else:
        in_project = conditions(EventFilter(project=selection.project), kind)
        selected, where = f"({' AND '.join(chosen) or '1'})", [in_span, *in_project]
    source = SOURCES[kind]
    number = source.results and _NUMBER.format(source.results)
    values = {
        "project": "toString(e.project)",
        "service": "toString(e.service)",
        "tool": source.tool,
        "model": source.model,
        "status": source.status,
        "hits": number if kind is Kind.RETRIEVAL else None,
        "passages": number if kind is Kind.ANSWER else None,
        "kind": repr(kind.value),
    }
    lists = {"pii": "arrayMap(family -> toString(family), mapKeys(e.pii_families))", "document": _DOCUMENTS.get(kind)}
    decided = decided_by(selection)
    pairs = [f"('{name}', {sql})" for name, sql in values.items() if sql and name not in decided]
    several = [
        f"arrayMap(each -> ('{name}', each), arrayDistinct({sql}))"
        for name, sql in lists.items()
        if sql and name not in decided
    ]
    single = f"[{', '.join([*pairs, f'{_TOTAL}'])}]"
    return (
        f"SELECT toUInt8(ifNull({selected}, 0)) AS selected,"  # noqa: S608 - parts of this package
        f" arrayConcat({', '.join([single, *several])}) AS pairs"
        f" FROM {source.view} AS e WHERE {' AND '.join(where)}"
    )


def _counts(
    queries: Queries, parts: list[str], selection: EventFilter, ranges: tuple[Range, Range], budget_s: float
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the events with each dimension and value, in the selection and in the rest; `_TOTAL` has all."""
    # Values that are frequent on either side: a small selection has others than all that is compared with it.
    sql = (
        "SELECT pair.1 AS dimension, pair.2 AS value, countIf(selected) AS inside, countIf(NOT selected) AS outside,"  # noqa: S608
        " greatest(1, sum(if(dimension = '', inside, 0)) OVER ()) AS all_inside,"
        " greatest(1, sum(if(dimension = '', outside, 0)) OVER ()) AS all_outside"
        f" FROM ({' UNION ALL '.join(f'({part})' for part in parts)}) ARRAY JOIN pairs AS pair"
        " WHERE dimension = '' OR value != '' GROUP BY dimension, value"
        " ORDER BY greatest(inside / all_inside, outside / all_outside) DESC, value LIMIT {values:UInt32} BY dimension"
    )
    values = parameters(selection) | {"values": VALUES_MAX}
    values |= {"low_ms": min(each.from_ms for each in ranges), "upper_ms": max(each.to_ms for each in ranges)}
    for (low, high), each in zip(_EDGES, ranges, strict=True):
        values |= {low: each.from_ms, high: each.to_ms}
    try:
        rows = queries.rows(sql, values, seconds=budget_s)
    except OutOfTimeError:
        raise OperationError(
            "unavailable", f"the comparison took longer than {budget_s:g} s", "choose a shorter range, or one project"
        ) from None
    return {(dimension, value): (int(inside), int(outside)) for dimension, value, inside, outside, *_ in rows}
