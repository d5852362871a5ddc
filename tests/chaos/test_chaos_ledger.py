"""The books themselves: what counts as lost, twice, failed; and what windows that chain must hold."""

from collections.abc import Sequence

import pytest

from tests.chaos.__main__ import all_faults
from tests.chaos.ledger import Books, Ledger, Window, chain_faults, reconcile
from tests.chaos.runner import Report


def books(
    sent: str, visible: str = "", *, attempted: str = "", poison: str = "", failures: Sequence[tuple[str, str]] = ()
) -> Books:
    """One letter an event."""
    return Books(frozenset(sent), frozenset(sent + attempted), list(visible), frozenset(poison), failures)


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        pytest.param(books("abc", "cab"), [], id="all visible"),
        pytest.param(books(""), [], id="nothing sent"),
        pytest.param(books("abc", "ac"), ["1 lost"], id="one missing"),
        pytest.param(books("abc", "abcb"), ["1 seen twice"], id="one twice"),
        pytest.param(books("a", "aaa"), ["2 seen twice"], id="one three times"),
        pytest.param(books("a", "ax"), ["1 never sent"], id="a row of nobody's"),
        pytest.param(books("a", "ab", attempted="b"), [], id="tried, never confirmed, and arrived"),
        pytest.param(books("a", "a", attempted="b"), [], id="tried, never confirmed, and did not arrive"),
        pytest.param(books("a", "abb", attempted="b"), ["1 seen twice"], id="tried, never confirmed, and twice"),
        pytest.param(books("ab", "a", failures=[("b", "1-1")]), ["1 well but failed"], id="a good event failed"),
        pytest.param(
            books("ab", "ab", failures=[("b", "1-1")]),
            ["1 seen twice", "1 well but failed"],
            id="visible and failed as well",
        ),
        pytest.param(books("a", "a", poison="12", failures=[("", "1"), ("z", "2")]), [], id="poison failed"),
        pytest.param(books("a", "a", poison="12", failures=[("", "1")]), ["1 lost"], id="poison vanished"),
        pytest.param(
            books("a", "a", poison="1", failures=[("", "1"), ("", "1")]), ["1 seen twice"], id="poison failed twice"
        ),
        pytest.param(books("a", "a", failures=[("", "7-7")]), ["1 never sent"], id="a failure of nobody's"),
        pytest.param(books("a", "a", failures=[("x", "7-7")]), ["1 never sent"], id="a failure of an unknown event"),
    ],
)
def test_the_ledger_names_what_is_wrong_and_nothing_else(given: Books, faults: list[str]) -> None:
    assert reconcile(given).faults == faults


def test_what_the_sdk_dropped_is_a_fault_although_it_was_never_handed_over() -> None:
    assert reconcile(Books(frozenset("a"), frozenset("ab"), ["a"], dropped=1)).faults == ["1 dropped by the SDK"]


def test_what_is_sent_is_visible_or_failed_or_lost() -> None:
    ledger = reconcile(books("abcd", "abbx", attempted="y", poison="1", failures=[("c", "5"), ("", "1")]))
    assert ledger == Ledger(sent=5, visible=2, failed=2, lost=1, duplicates=1, unknown=1, wrongly_failed=1)
    assert ledger.sent == ledger.visible + ledger.failed + ledger.lost


LACKING = "window 1 of 2 (-1 to 5) lacks 1, from 2 to 2: 1 rows missed"
ROWS = [(1, "a"), (2, "b"), (5, "c"), (9, "d")]


def window(after: int, upto: int, *rows: tuple[int, str]) -> Window:
    return Window(after, upto, rows or [row for row in ROWS if after < row[0] <= upto])


@pytest.mark.parametrize(
    ("windows", "faults"),
    [
        pytest.param([window(-1, 2), window(2, 7), window(7, 9)], [], id="chained"),
        pytest.param([window(-1, 4), window(4, 4), window(4, 9)], [], id="an empty one between"),
        pytest.param([window(-1, 5)], [], id="not yet up to the end"),
        pytest.param([], [], id="none at all"),
        pytest.param(
            [window(-1, 2), window(5, 9)],
            ["a window starts at 5, the one before ended at 2", "no window reaches them: 1 rows missed"],
            id="a gap between",
        ),
        pytest.param(
            [window(-1, 5, (1, "a"), (5, "c")), window(5, 9)],
            [LACKING],
            id="a row missed",
        ),
        pytest.param(
            [window(-1, 5), window(5, 9, (9, "d"), (5, "c"))],
            ["1 rows outside their window", "1 events exported twice"],
            id="a row again",
        ),
        pytest.param(
            [window(-1, 5), window(5, 9, (8, "c"), (9, "d"))],
            ["1 events exported twice", "1 rows exported that are not there any more"],
            id="an event again under another id",
        ),
    ],
)
def test_chained_windows_hold_every_row_once(windows: list[Window], faults: list[str]) -> None:
    assert chain_faults(windows, ROWS) == faults


def played(scenario: str, recovery: float) -> Report:
    return Report(scenario, reconcile(books("a", "a")), 10.0, recovery)


def test_a_death_that_is_felt_for_longer_than_the_bound_fails_the_run_and_is_named() -> None:
    reports = [played("kill writer", 2.0), played("crash loop", 19.4), played("network cut", 30.0)]
    assert all_faults(reports, [], 7.0) == [
        "missed: recovery from a death took 19.4 s at p99, bound 7.0 s (crash loop 19.4 s)"
    ]


def test_a_run_is_well_when_no_scenario_has_a_fault_and_every_bound_was_held() -> None:
    reports = [played("kill writer", 6.9), played("network cut", 30.0)]
    assert all_faults(reports, [], 7.0) == []
    reports[1].faults.append("1 lost")
    assert all_faults(reports, ["a rollup counts wrong"], 7.0) == ["a rollup counts wrong", "network cut: 1 lost"]
