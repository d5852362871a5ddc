"""Rows of the overview: which project is wrong, and why."""

from datetime import UTC, date, datetime

import pytest

from assay_console.page import Panel
from assay_console.views.overview import facts, row
from assay_operations.overview.stored import Open, Quality, Stored, Traffic

BUSY = Traffic("shop", hours=(10,) * 24, usual=(12.0,) * 24, events=240, newest_at=datetime(2026, 11, 27, tzinfo=UTC))


@pytest.mark.parametrize(
    ("traffic", "opened", "lost", "state", "why"),
    [
        (BUSY, None, {}, "good", "fine"),
        (BUSY, Open("shop", 1, 2, 3), {}, "bad", "1 critical, 2 open"),
        (BUSY, None, {"shop": 1200}, "bad", "1,200 lost"),
        (BUSY, None, {"other": 5}, "good", "fine"),
        (BUSY, Open("shop", 0, 1, 0), None, "warn", "1 open"),
        (Traffic("shop", hours=(9,) * 22 + (0, 0), usual=(12.0,) * 24, events=198), None, {}, "warn", "silent for an hour"),
        (Traffic("shop", hours=(9,) * 22 + (0, 0), usual=(2.0,) * 24, events=198), None, {}, "good", "fine"),
        (Traffic("shop"), None, {}, "off", "no event in 24 h"),
    ],
)  # fmt: skip
def test_a_project_says_what_is_wrong_with_it(
    traffic: Traffic, opened: Open | None, lost: dict[str, int] | None, state: str, why: str
) -> None:
    found = row(traffic, None, opened, lost)
    assert (found.state, found.why) == (state, why)


def test_shares_are_unknown_without_events() -> None:
    found = row(Traffic("shop"), None, None, None)
    assert (found.without_result, found.pii, found.lost) == (None, None, None)


def test_the_facts_of_one_project_include_alerts_of_the_whole_system() -> None:
    opened = [Open("shop", 1, 0, 1), Open("all", 0, 1, 0), Open("other", 5, 5, 5)]
    judged = (Quality("shop", "faithfulness", date(2026, 11, 27), 0.9, 0.8, 1.0, 10, None, None),)
    stored: Panel[Stored] = Panel(state="ready", value=Stored((BUSY,), None, None))
    found = facts(
        stored, [BUSY], judged, opened, {"shop": 1, "other": 9}, Panel(state="ready", value=[]), 0.0, True, "shop"
    )
    assert (found.critical, found.warnings, found.lost, found.judged) == (1, 1, 1, True)
