"""Read projects, freshness and open alerts, for the frame of every page."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_runtime.store import Client

#: Days for which a project without events is still listed, and most projects in a list.
_PROJECT_DAYS = 90
_PROJECTS_MAX = 500

_PROJECTS = """SELECT DISTINCT project FROM
(
    SELECT project FROM rollup_day WHERE day >= today() - {days:UInt16}
    UNION ALL SELECT project FROM rollup_minute WHERE minute >= now() - INTERVAL 2 HOUR
)
ORDER BY project LIMIT {limit:UInt32}"""
_NEWEST = (
    """SELECT maxOrNull(created_at) FROM rollup_minute WHERE minute >= now() - INTERVAL 2 DAY AND kind != 'failure'"""
)
_OLDER = """SELECT maxOrNull(created_at) FROM rollup_day WHERE kind != 'failure'"""
_COUNTED = "SELECT maxOrNull(refreshed_at) FROM rollup_minute WHERE minute >= now() - INTERVAL 2 DAY"
_OPEN = "SELECT count() FROM open_episodes WHERE {project:String} = '' OR project IN ({project:String}, 'all')"


@dataclass(frozen=True)
class Frame:
    """Projects with events, arrival of the newest counted event, time counted up to, open alerts."""

    projects: tuple[str, ...]
    newest_at: datetime | None
    counted_to: datetime | None
    open_alerts: int


def frame(client: "Client", project: str = "") -> Frame:
    """Read it. Alerts are those of a project and of the whole system; all without a project."""
    parameters = {"days": _PROJECT_DAYS, "limit": _PROJECTS_MAX}
    projects = tuple(str(name) for (name,) in client.query(_PROJECTS, parameters=parameters).result_rows)
    newest = _time(client.query(_NEWEST).result_rows[0][0]) or _time(client.query(_OLDER).result_rows[0][0])
    counted = _time(client.query(_COUNTED).result_rows[0][0])
    ((alerts,),) = client.query(_OPEN, parameters={"project": project}).result_rows
    return Frame(projects, newest, counted, int(alerts))


def _time(value: datetime | None) -> datetime | None:
    """Return a time of the store with its zone."""
    return None if value is None else value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
