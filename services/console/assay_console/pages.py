"""The table of pages and actions, in the order of the navigation."""

from assay_console.page import Action, Page
from assay_console.views import alerts

PAGES: tuple[Page, ...] = (alerts.PAGE,)
ACTIONS: tuple[Action, ...] = ()
