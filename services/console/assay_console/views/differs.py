"""The page on how a selection of events differs from the rest, or from an earlier range."""

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.views.events import FILTER, filters_of, wanted_of
from assay_operations.errors import OperationError
from assay_operations.events.differs import what_differs
from assay_operations.events.filters import Range

#: Differences that are shown.
SHOWN = 60


class Difference(Document):
    """A value whose share differs, or may differ, between the selection and what it is compared with."""

    dimension: str
    value: str
    selected: int
    rest: int
    selected_share: float
    rest_share: float
    difference: float
    low: float
    high: float
    significant: bool


class Compared(Document):
    """Differences, the strongest first, and the number of events on both sides."""

    selected: int
    rest: int
    differences: tuple[Difference, ...]


class Differs(Document):
    """Differences between the events of a filter and others."""

    filters: dict[str, str]
    against: str
    found: Panel[Compared]
    #: False: no condition selects a part of the events, so nothing is compared.
    selects: bool


async def read(ask: Ask) -> Differs:
    """Compare. `against=before` compares with the range of the same length before this one."""
    filters, against = filters_of(ask), ask.text("against", "rest")
    selects = bool(filters.keys() - {"kind"}) or against == "before"
    if not selects:
        return Differs(filters=filters, against=against, found=Panel(state="ready"), selects=False)
    scope = ask.scope
    before = Range(max(1, 2 * scope.from_ms - scope.to_ms), scope.from_ms) if against == "before" else None
    span = Range(scope.from_ms, scope.to_ms)
    try:
        panel = await ask.panel(what_differs, wanted_of(ask), span, against=before)
    except OperationError as error:
        if error.kind == "invalid":
            raise
        panel = Panel(state="unavailable", message=error.message, fix=error.fix)
    value = None
    if panel.value is not None:
        shown = panel.value.differences[:SHOWN]
        value = Compared(
            selected=panel.value.selected,
            rest=panel.value.rest,
            differences=tuple(
                Difference(
                    dimension=each.dimension,
                    value=each.value,
                    selected=each.selected,
                    rest=each.rest,
                    selected_share=each.selected_share,
                    rest_share=each.rest_share,
                    difference=each.difference,
                    low=each.low,
                    high=each.high,
                    significant=each.significant,
                )
                for each in shown
            ),
        )
    found: Panel[Compared] = Panel(
        state=panel.state, value=value, message=panel.message, fix=panel.fix, age_s=panel.age_s
    )
    return Differs(filters=filters, against=against, found=found, selects=True)


PAGE = Page(
    "differs",
    "/events/differs",
    "What differs?",
    "In which fields do these events differ from the others?",
    read,
    Differs,
    (
        *FILTER,
        Parameter(
            "against", "Compare with the other events, or with the same filter before.", ("rest", "before"), "rest"
        ),
    ),
    within="events",
    by_project=True,
)
