"""The page on how a selection of events differs from the rest, or from an earlier range."""

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.views.events import FILTER, filters_of, wanted_of
from assay_operations.events.differs import Difference, what_differs
from assay_operations.events.filters import Range

#: Differences that are shown.
SHOWN = 60


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
    panel = await ask.panel(what_differs, wanted_of(ask), span, against=before)
    found = panel.value and Compared(
        selected=panel.value.selected, rest=panel.value.rest, differences=panel.value.differences[:SHOWN]
    )
    return Differs(filters=filters, against=against, found=panel.holding(found), selects=True)


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
