"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import (
    alerts,
    arrivals,
    datasets,
    differs,
    event,
    events,
    failures,
    health,
    label,
    live,
    overview,
    quality,
    requeue,
    review,
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
    label.PAGE,
    review.PAGE,
    datasets.PAGE,
    datasets.ONE,
    failures.PAGE,
    requeue.PAGE,
    arrivals.PAGE,
    sql.PAGE,
    health.PAGE,
)
ACTIONS: tuple[Action, ...] = (
    alerts.ACKNOWLEDGE,
    requeue.ACTION,
    label.LABEL,
    label.UNDO,
    review.SAVE,
    datasets.RETIRE,
)
