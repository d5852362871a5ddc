"""Count the events of a filter without each of its conditions in turn, to explain an empty list."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay_operations.events.filters import EventFilter, Range, parse_filter
from assay_operations.events.listing import list_events

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Events that are counted at most.
COUNT_MAX = 100
#: Seconds for all counts together.
BUDGET_S = 3.0


@dataclass(frozen=True)
class Without:
    """The number of events if one condition is removed; `range` stands for the range of time."""

    name: str
    events: int
    #: False if there are more: counting ends at `COUNT_MAX`, or when the time is used up.
    exact: bool


def without_each(
    client: "Client", wanted: EventFilter, span: Range, *, budget_s: float = BUDGET_S
) -> tuple[Without, ...]:
    """Return the counts by parameter of the URL, then that of all times. Raises `OperationError`."""
    pairs = list(wanted.pairs())
    names = list(dict.fromkeys(name for name, _ in pairs))
    questions = [(name, parse_filter(pair for pair in pairs if pair[0] != name), span) for name in names]
    questions.append(("range", wanted, Range()))
    deadline = time.monotonic() + budget_s
    found = []
    for left, (name, without, within) in zip(range(len(questions), 0, -1), questions, strict=True):
        share = max(0.1, (deadline - time.monotonic()) / left)
        page = list_events(client, without, within, limit=COUNT_MAX, budget_s=share)
        found.append(Without(name, len(page.rows), page.next is None))
    return tuple(found)
