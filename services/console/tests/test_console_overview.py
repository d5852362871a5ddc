"""Rows of the overview: which project is wrong, and why."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from assay_console.page import Panel
from assay_console.views.overview import badness, facts, row
from assay_operations.overview.flow import FlowHistory, Hop
from assay_operations.overview.stored import Open, Quality, Stored, Traffic
from assay_operations.overview.verdict import verdict

BUSY = Traffic("shop", hours=(10,) * 24, usual=(12.0,) * 24, events=240, newest_at=datetime(2026, 11, 27, tzinfo=UTC))


@pytest.mark.parametrize(
    ("traffic", "opened", "lost", "state", "why"),
    [
        (BUSY, None, {}, "good", "fine"),
        (BUSY, Open("shop", 1, 2, 3), {}, "bad", "1 critical, 2 warnings"),
        (BUSY, None, {"shop": 1200}, "bad", "1,200 lost"),
        (BUSY, None, {"other": 5}, "good", "fine"),
        (BUSY, Open("shop", 0, 1, 0), None, "warn", "1 warning"),
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


def test_the_worst_project_is_first_whatever_its_traffic() -> None:
    critical, lossy = Open("critical", 1, 0, 1), {"lossy": 20, "quiet": 1}
    projects = [
        Traffic(name, events=events)
        for name, events in (("busy", 9999), ("quiet", 900), ("lossy", 90), ("critical", 9))
    ]
    rows = [row(each, None, critical if each.project == "critical" else None, lossy) for each in projects]
    assert [each.name for each in sorted(rows, key=badness)] == ["critical", "lossy", "quiet", "busy"]


def test_events_that_only_the_minutes_have_are_said_to_be_counted_soon() -> None:
    found = row(Traffic("shop", events=3, recent=40), None, None, None)
    assert (found.counting, found.state) == (True, "good")
    assert not row(BUSY, None, None, None).counting


def test_the_worst_critical_alert_of_the_shown_projects_is_named() -> None:
    at = datetime(2026, 11, 27, 12, tzinfo=UTC)
    opened: Panel[tuple[Open, ...]] = Panel(
        state="ready",
        value=(Open("shop", 1, 0, 1, "faithfulness", at, 0.3), Open("other", 1, 0, 1, "hallucination_rate", at, 4.0)),
    )
    for project, words in (
        ("", "hallucination rate of other since 2026-11-27 12:00 UTC"),
        ("shop", "faithfulness of shop since"),
    ):
        assert words in facts(STORED, [BUSY], JUDGED, opened, LOST, HOPS, 0.0, FlowHistory(), True, project).worst


def test_shares_are_unknown_without_events() -> None:
    found = row(Traffic("shop"), None, None, None)
    assert (found.without_result, found.pii, found.lost) == (None, None, None)


STORED: Panel[Stored] = Panel(state="ready", value=Stored((BUSY,), None))
OPENED: Panel[tuple[Open, ...]] = Panel(
    state="ready", value=(Open("shop", 1, 0, 1), Open("all", 0, 1, 0), Open("other", 5, 5, 5))
)
LOST: Panel[dict[str, int]] = Panel(state="ready", value={"shop": 1, "other": 9})
JUDGED: Panel[tuple[Quality, ...]] = Panel(
    state="ready", value=(Quality("shop", "faithfulness", date(2026, 11, 27), 0.9, 0.8, 1.0, 10, None, None),)
)
HOPS: Panel[list[Hop]] = Panel(state="ready", value=[])


def test_the_facts_of_one_project_include_alerts_of_the_whole_system() -> None:
    found = facts(STORED, [BUSY], JUDGED, OPENED, LOST, HOPS, 0.0, FlowHistory(), True, "shop")
    assert (found.critical, found.warnings, found.lost, found.judged) == (1, 1, 1, True)
    assert found.unknown == ()


@pytest.mark.parametrize("state", ["stale", "unavailable"])
@pytest.mark.parametrize("away", ["open alerts", "losses", "quality"])
def test_what_could_not_be_read_is_named_and_is_no_reason_to_say_that_all_is_fine(away: str, state: str) -> None:
    def of(panel: Panel[Any], name: str) -> Panel[Any]:
        return panel if name != away else Panel(state=state, value=panel.value if state == "stale" else None)

    calm: Panel[tuple[Open, ...]] = Panel(state="ready", value=())
    none_lost: Panel[dict[str, int]] = Panel(state="ready", value={})
    found = facts(
        STORED,
        [BUSY],
        of(JUDGED, "quality"),
        of(calm, "open alerts"),
        of(none_lost, "losses"),
        HOPS,
        0.0,
        FlowHistory(),
        True,
        "",
    )
    said = verdict(found)
    assert found.unknown == (away,)
    assert said.state == "warn"
    assert f"not known now: {away}" in said.sentence
    claim = {"open alerts": "no open alert", "losses": "none lost", "quality": "no alert on quality"}
    assert claim[away] not in said.sentence
    assert all(each in said.sentence for name, each in claim.items() if name not in (away, "quality", "open alerts"))
