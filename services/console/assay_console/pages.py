"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts, arrivals, failures, health, overview, quality

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    alerts.PAGE,
    alerts.ONE,
    alerts.CONFIRM,
    quality.PAGE,
    failures.PAGE,
    arrivals.PAGE,
    health.PAGE,
)
ACTIONS: tuple[Action, ...] = (alerts.ACKNOWLEDGE,)
