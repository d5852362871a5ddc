"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts, differs, event, events, live, overview, sessions, sql

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    live.PAGE,
    events.PAGE,
    differs.PAGE,
    event.PAGE,
    alerts.PAGE,
    sessions.LIST,
    sessions.ONE,
    sql.PAGE,
)
ACTIONS: tuple[Action, ...] = ()
