"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts, differs, event, events, live, overview

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    live.PAGE,
    events.PAGE,
    differs.PAGE,
    event.PAGE,
    alerts.PAGE,
    alerts.ONE,
    alerts.CONFIRM,
)
ACTIONS: tuple[Action, ...] = (alerts.ACKNOWLEDGE,)
