"""Read projects, the newest event and open alerts, for the frame of every page."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assay_operations.time_bounds import utc
from assay_schema.failures import UNKNOWN

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Days for which a project without events is still listed, and most projects in a list.
_PROJECT_DAYS = 90
_PROJECTS_MAX = 500
#: Losses of events whose project could not be read are stored under this name.
UNREADABLE_PROJECT = UNKNOWN

# The rollup by day is the smallest, and is counted every minute like the others. Losses whose project could not be read are of no project.
_FRAME = """SELECT
    arraySlice(arraySort(groupUniqArrayIf(toString(project), kind != 'failure' OR project != {unreadable:String})), 1, {limit:UInt32}),
    maxOrNullIf(created_at, kind != 'failure'),
    (SELECT count() FROM open_episodes WHERE {project:String} = '' OR project IN ({project:String}, 'all')),
    {project:String} = '' OR countIf(project = {project:String}) > 0
FROM rollup_day WHERE day >= today() - {days:UInt16}"""


_JUDGED = """SELECT arraySlice(arraySort(groupUniqArray(toString(project))), 1, {limit:UInt32})
FROM contradiction_runs"""


@dataclass(frozen=True)
class FrameFacts:
    """Projects with events in 90 days, arrival of the newest event of these that is counted, open alerts.

    `known`: whether the project that was asked for has events or losses in that time.
    """

    projects: tuple[str, ...]
    newest_at: datetime | None
    open_alerts: int
    known: bool = True


def frame_facts(client: "Client", project: str = "") -> FrameFacts:
    """Read it. Alerts are those of a project and of the whole system; all without a project."""
    parameters = {"days": _PROJECT_DAYS, "limit": _PROJECTS_MAX, "project": project, "unreadable": UNREADABLE_PROJECT}
    ((projects, newest, alerts, known),) = client.query(_FRAME, parameters=parameters).result_rows
    return FrameFacts(tuple(projects), None if newest is None else utc(newest), int(alerts), bool(known))


def projects_with_judged_pairs(client: "Client") -> tuple[str, ...]:
    """Return the projects with runs of `assay eval contradictions`, which may have no events."""
    ((projects,),) = client.query(_JUDGED, parameters={"limit": _PROJECTS_MAX}).result_rows
    return tuple(projects)
