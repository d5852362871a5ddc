"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import (
    alerts,
    arrivals,
    datasets,
    differs,
    evals,
    event,
    events,
    failures,
    health,
    label,
    live,
    overview,
    quality,
    review,
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
    evals.PAGE,
    evals.RUN,
    evals.COMPARE,
    evals.CASE,
    label.PAGE,
    review.PAGE,
    datasets.PAGE,
    datasets.ONE,
    failures.PAGE,
    arrivals.PAGE,
    health.PAGE,
)
ACTIONS: tuple[Action, ...] = (
    alerts.ACKNOWLEDGE,
    label.LABEL,
    label.UNDO,
    review.SAVE,
    datasets.RETIRE,
)
