"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts, differs, events

PAGES: tuple[Page, ...] = (
    events.PAGE,
    differs.PAGE,
    alerts.PAGE,
)
ACTIONS: tuple[Action, ...] = ()
