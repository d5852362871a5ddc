"""Alerts: what got worse, since when, and what to do."""

from typing import Any

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_operations.alerts import alerts_in


class Alerts(Document):
    """Episodes: the open ones, or every transition in the range."""

    state: str
    rows: Panel[list[dict[str, Any]]]


async def read(ask: Ask) -> Alerts:
    """Read open episodes, or all transitions."""
    state = ask.text("state", "open")
    rows = await ask.panel(alerts_in, everything=state == "all", project=ask.scope.project)
    return Alerts(state=state, rows=rows)


PAGE = Page(
    "alerts",
    "/alerts",
    "Alerts",
    "What got worse, since when?",
    read,
    Alerts,
    (Parameter("state", "Which episodes.", ("open", "all"), "open"),),
    key="a",
    by_project=True,
    command="assay alerts list{and_project}",
)
