"""Pure parts of the pages about quality, arrivals and health."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from assay_console import drawings
from assay_console.page import Panel
from assay_console.views.arrivals import QUIET_S, Refused, quiet_s, told, told_outside
from assay_console.views.health import summary
from assay_console.views.overview import Service
from assay_console.views.quality import Watched, blind, detector_of, why_nothing
from assay_operations.arrivals import Arrival, Producer
from assay_operations.doctor.finding import Finding, Status
from assay_operations.failures import Failures, Group
from assay_operations.judging.quality import Calibration, Day, Judged, Metric, Spell
from assay_operations.overview.flow import Hop
from assay_operations.turned_away import Refusal
from assay_ui import formats

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
STORED = Arrival("answer", "a", "shop", "search", NOW, NOW, NOW)
WAITING = Arrival("answer", "a", "shop", "search", NOW, NOW, None)
REFUSED = Failures((), more=False, lost=3, recovered=0, incidents=0, checked_at=NOW)


@pytest.mark.parametrize(
    ("found", "steps", "refused", "away", "state", "words"),
    [
        ([STORED], [], None, "", "good", "stored 0 ms later"),
        ([WAITING], [Hop("stored", "writer", 7, None, None, None)], None, "", "warn", "7 entries wait for the writer"),
        ([], [], None, "no answer", "bad", "It is not known whether events arrive: no answer."),
        ([], [Hop("scrubbed", "scrubber", 9, None, None, None)], None, "", "warn", "9 raw entries of all producers wait"),
        ([], [], REFUSED, "", "bad", "Events arrive and are refused: 3 in 24 h"),
        ([], None, None, "", "warn", "Waiting for the first event."),
    ],
)  # fmt: skip
def test_the_sentence_says_whether_events_arrive(
    found: list[Arrival], steps: list[Hop] | None, refused: Failures | None, away: str, state: str, words: str
) -> None:
    said = told(found, steps, refused, away, now=NOW)
    assert said[0] == state
    assert words in said[1]


@pytest.mark.parametrize("found", [[STORED], []])
def test_the_sentence_names_what_never_reached_the_log(found: list[Arrival]) -> None:
    refused = [
        Refused(of=Refusal("event", "", "project_forbidden", "", 2), rose_s=None),
        Refused(of=Refusal("event", "", "literal_error", "", 1), rose_s=31.0),
        Refused(of=Refusal("login", "", "WRONGPASS", "", 1), rose_s=31.0),
    ]
    outside = told_outside(refused)
    assert (
        outside
        == " Since they started, the gateway and Redis refused 3 events and 1 login of all producers: see below."
    )
    assert told(found, [], None, "", now=NOW, outside=outside)[1].endswith(outside)
    assert told_outside([]) == ""
    rising = refused[0].model_copy(update={"rose_s": 2.0})
    assert "of all producers; more are being refused now: see below." in told_outside([rising, *refused[1:]])


def test_events_that_arrive_while_others_are_refused_are_not_green() -> None:
    groups = tuple(
        Group("check_violation", "scrubber", "E", "r", "shop", name, 2, 0, 0, NOW, dead=False) for name in "abcd"
    )
    state, words = told([STORED], [], replace(REFUSED, groups=groups, lost=8), "", now=NOW)
    assert state == "warn"
    assert words.startswith("Events arrive; 8 were refused or lost in 24 h (a, b, c and 1 more): the newest came")


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(("labels", "kappa"), [(49, None), (50, 0.0)])
def test_agreement_with_few_labels_is_hidden_as_on_the_page_of_labels(labels: int, kappa: float | None) -> None:
    known = Calibration("shop", "faithfulness", "f", 0.0, labels, 0.5, 0.5, 0.8, pages=False, calibrated_at=NOW)
    found = blind(Metric("shop", "faithfulness", "local", "f", (), known, ()), 50).calibration
    assert found is not None
    assert (found.kappa, found.labels) == (kappa, labels)
    assert (found.tpr is None, found.tnr is None) == (kappa is None, kappa is None)


@pytest.mark.parametrize(
    ("away", "now", "others", "state", "words"),
    [
        ("", after(299), (), "good", "stored 0 ms later."),
        ("", after(840), (), "warn", "Nothing arrived for 14 min: the newest came into the log at 12:00:00 UTC."),
        ("no answer", NOW, (), "bad", "whether events arrive: no answer. The newest one that is known came at 12:00:00 UTC."),
        ("", NOW, (Producer("shop", "slow", 9, after(-301)),), "warn", "Nothing came for more than 5 min from slow."),
        ("", NOW, (Producer("shop", "retired", 9, after(-90_000)),), "good", "stored 0 ms later."),
    ],
)  # fmt: skip
def test_old_events_and_silent_services_are_not_green(
    away: str, now: datetime, others: tuple[Producer, ...], state: str, words: str
) -> None:
    said = told([STORED], [], None, away, now=now, others=others)
    assert said[0] == state
    assert words in said[1]


@pytest.mark.parametrize(("seconds", "quiet"), [(299, False), (840, True)])
def test_the_checklist_is_for_events_that_stopped_as_well(seconds: float, quiet: bool) -> None:
    assert (quiet_s([STORED], after(seconds)) > QUIET_S) is quiet
    assert quiet_s([], NOW) == 0


def judged(**counts: int) -> Judged:
    values = dict.fromkeys(("sampled", "scored", "abstained", "no_context", "judge_error", "skipped_budget", "seen"), 0)
    return Judged("shop", "answer", **(values | counts), cost_usd=0.0, backend="lexical", fingerprint="f")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (None, "It is not known why"),
        ((), "No answer of this time was seen by the judge"),
        ((judged(seen=5),), "sampled none: see judge.base_rate"),
        ((judged(sampled=9, judge_error=8, no_context=1),), "The judge failed on 8 of 9 sampled answers"),
        ((judged(sampled=9, skipped_budget=9),), "The budget was used up for 9 of 9"),
        ((judged(sampled=9, no_context=9),), "9 of 9 sampled answers have no passage"),
        ((judged(sampled=9, abstained=9),), "9 of 9 sampled answers make no claim"),
    ],
)
def test_an_empty_page_of_quality_says_why_nothing_is_judged(counts: tuple[Judged, ...] | None, words: str) -> None:
    assert words in why_nothing(counts)


def test_coverage_is_unknown_without_a_sample() -> None:
    assert judged().coverage is None
    assert judged(sampled=4, scored=1, abstained=1, no_context=1, judge_error=1).coverage == 0.75


def metric(*judges: str, spells: tuple[Spell, ...] = ()) -> Metric:
    days = tuple(
        Day(date(2026, 11, number + 1), judge, 10, 0.8, 0.7, 0.9, None, None, None, None)
        for number, judge in enumerate(judges)
    )
    return Metric("shop", "faithfulness", "lexical", judges[-1], days, None, spells)


def test_another_judge_breaks_the_line_and_only_its_days_have_the_baseline() -> None:
    first = datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000
    drawn = str(drawings.quality(metric("a", "a", "b"), 0.85, first, first + 5 * 86_400_000))
    assert drawn.count('class="break"') == 1
    assert "from here on another judge: b" in drawn
    assert drawn.count('class="mean"') == 2
    assert 'class="break"' not in str(drawings.quality(metric("a", "a"), 0.85, first, first + 5 * 86_400_000))


def test_an_open_episode_is_shaded_to_the_end_of_the_range() -> None:
    first = datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000
    drawn = str(
        drawings.quality(metric("a", spells=(Spell("critical", first, None),)), None, first, first + 86_400_000)
    )
    assert 'class="shade critical"' in drawn


def test_an_alert_of_some_minutes_is_on_the_mark_of_its_day() -> None:
    """The mean of a day hides them."""
    first = datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000
    begins = first + 86_400_000 + 3 * 3_600_000
    spells = (
        Spell("warn", begins - 60_000, begins),
        Spell("critical", begins, begins + 600_000),
        Spell("recovering", begins + 600_000, None),
    )
    drawn = str(drawings.quality(metric("a", "a", "a", spells=spells), None, first, first + 3 * 86_400_000))
    labels = re.findall(r'data-label="([^"]*)"', drawn)
    assert ["critical 03:00 to 03:10" in each for each in labels] == [False, True, False]
    assert drawn.count('class="alerted critical"') == 1
    assert "<th scope=col>alert</th>" in drawn
    assert drawn.count("<td>critical 03:00 to 03:10</td>") == 1, "the numbers say it too"
    assert "alerted" not in str(drawings.quality(metric("a", "a"), None, first, first + 2 * 86_400_000))


@pytest.mark.parametrize(
    ("spells", "words"),
    [
        ((), None),
        ((Spell("recovering", 0, None),), None),
        ((Spell("warn", 0, None),), "warn 00:00 to now"),
        ((Spell("warn", -5, 0), Spell("critical", 86_400_000, None)), None),
        ((Spell("warn", 3_600_000, 7_200_000), Spell("critical", 60_000, 120_000)), "critical 00:01 to 00:02"),
        (tuple(Spell("warn", each * 120_000, each * 120_000 + 60_000) for each in range(5)),
         "warn 00:00 to 00:01, 00:02 to 00:03, 00:04 to 00:05 and 2 more"),
    ],
)  # fmt: skip
def test_the_worst_state_of_a_day_is_named_with_its_times(spells: tuple[Spell, ...], words: str | None) -> None:
    found = drawings.worst_of(spells, 0, 86_400_000)
    assert (found and found.words) == words


def test_the_detectors_series_is_that_of_the_latest_judge() -> None:
    def series(fingerprint: str) -> Watched:
        return Watched(
            project="shop", metric="faithfulness", series=fingerprint, state="ok", baseline=0.9, last_day=0.9, n_last_day=3,
            evidence=0.1, note="",
        )  # fmt: skip

    assert detector_of(metric("a", "b"), [series("a"), series("b")]) == series("b")
    assert detector_of(metric("a", "b"), [series("a")]) is None
    assert detector_of(metric("a"), None) is None


def test_evidence_far_above_the_threshold_is_not_a_row_of_zeros() -> None:
    assert [formats.evidence(each) for each in (None, 0.5, 10.0, 1e22)] == ["–", "0.50", "10.00", "over 10"]


@pytest.mark.parametrize(
    ("statuses", "panel", "service", "expected"),
    [
        ([Status.OK], "ready", "good", ("good", "All 1 checks passed.")),
        ([Status.OK, Status.WARN], "ready", "off", ("warn", "No check failed, 1 warning.")),
        ([Status.FAIL, Status.WARN], "ready", "good", ("bad", "1 check failed, 1 warning.")),
        ([], "unavailable", "good", ("bad", "1 check failed.")),
        ([Status.OK], "ready", "bad", ("bad", "1 check failed.")),
    ],
)
def test_health_is_as_its_worst_check(
    statuses: list[Status], panel: str, service: str, expected: tuple[str, str]
) -> None:
    findings = [Finding("a check", status, "") for status in statuses]
    panels: list[Panel[list[Finding]]] = [Panel(state=panel)]  # type: ignore[arg-type]
    assert summary(findings, panels, [Service(name="writer", state=service, problems=[])]) == expected


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.613, "share", "61.3\N{NO-BREAK SPACE}%"),
        (None, "share", "–"),
        (12_000, "entries", "12,000\N{NO-BREAK SPACE}entries"),
        (1.5, "USD", "$1.50"),
        (3.25, "", "3.250"),
    ],
)
def test_the_value_of_an_alert_has_its_unit(value: float | None, unit: str, shown: str) -> None:
    assert formats.measured(value, unit) == shown


def test_the_interval_of_an_alert_has_its_unit() -> None:
    assert formats.measured_interval(0.5, 0.6, "share") == "50.0\N{NO-BREAK SPACE}% to 60.0\N{NO-BREAK SPACE}%"
    assert formats.measured_interval(1, 2, "minutes") == "1 to 2\N{NO-BREAK SPACE}minutes"
    assert formats.measured_interval(None, 2, "share") == "–"
