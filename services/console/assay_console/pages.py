"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import (
    alerts,
    arrivals,
    differs,
    event,
    events,
    failures,
    health,
    live,
    overview,
    quality,
    sessions,
    sql,
)

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    live.PAGE,
    events.PAGE,
    differs.PAGE,
    event.PAGE,
    sessions.LIST,
    sessions.ONE,
    alerts.PAGE,
    alerts.ONE,
    alerts.CONFIRM,
    quality.PAGE,
    failures.PAGE,
    arrivals.PAGE,
    sql.PAGE,
    health.PAGE,
)
ACTIONS: tuple[Action, ...] = (alerts.ACKNOWLEDGE,)
