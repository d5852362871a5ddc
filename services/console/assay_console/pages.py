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
    requeue,
)

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    live.PAGE,
    events.PAGE,
    differs.PAGE,
    event.PAGE,
    alerts.PAGE,
    alerts.ONE,
    alerts.CONFIRM,
    quality.PAGE,
    failures.PAGE,
    requeue.PAGE,
    arrivals.PAGE,
    health.PAGE,
)
ACTIONS: tuple[Action, ...] = (alerts.ACKNOWLEDGE, requeue.ACTION)
