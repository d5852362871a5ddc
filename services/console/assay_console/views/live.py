"""The page of the live tail."""

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.passing import Passing, Wanted
from assay_console.scope import values_of
from assay_schema.fields import Kind

#: Rows of the first screen.
LIMIT = 100


class Newest(Document):
    """The newest events of the stream, newest first, and the position for `/api/v1/live?after=`."""

    rows: tuple[Passing, ...]
    position: str


class LivePage(Document):
    """Events that pass now."""

    filters: dict[str, str]
    newest: Panel[Newest]


def wanted_of(ask: Ask) -> Wanted:
    """Return the filter of a URL."""
    kinds, services = (tuple(values_of(ask.text(name))) for name in ("kind", "service"))
    return Wanted(ask.scope.project, kinds, services, ask.text("q"))


async def read(ask: Ask) -> LivePage:
    """Read the newest events from the stream."""
    filters = {name: ask.text(name) for name in ("kind", "service", "q") if ask.text(name)}
    found = await ask.redis_panel_within(5.0, ask.live.newest, wanted_of(ask), LIMIT)
    value = Newest(rows=tuple(found.value[0]), position=found.value[1]) if found.value else None
    return LivePage(filters=filters, newest=found.holding(value))


PAGE = Page(
    "live",
    "/live",
    "Live",
    "What is passing?",
    read,
    LivePage,
    (
        Parameter("kind", "Kinds of events.", tuple(map(str, Kind)), many=True),
        Parameter("service", "Services.", many=True),
        Parameter(
            "q", "Part of the question or answer, within the first 2,000 characters, in any case.", longest=1_000
        ),
        Parameter("after", "Position to go on from, of the stream."),
    ),
    span="",
    key="l",
    by_project=True,
    command="assay tail{and_project}",
    api="/live/newest",
    stream="/live",
)
