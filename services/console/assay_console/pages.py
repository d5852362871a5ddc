"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts, differs, event, events, label, overview

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    events.PAGE,
    differs.PAGE,
    event.PAGE,
    alerts.PAGE,
    alerts.ONE,
    alerts.CONFIRM,
    label.PAGE,
)
ACTIONS: tuple[Action, ...] = (
    alerts.ACKNOWLEDGE,
    label.LABEL,
    label.UNDO,
)
