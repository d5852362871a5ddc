"""Episodes that began together are one incident."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from assay_operations.drift.episodes import Episode, Transition, incidents, raised_against

AT = datetime(2026, 11, 27, 12, tzinfo=UTC)


def episode(number: int, minutes: float = 0, **fields: object) -> Episode:
    first = Episode(
        alert_id=UUID(int=number), state="critical", kind="score_drift", severity="critical", project="shop", service=None,
        metric="faithfulness", series=None, value=0.5, baseline=0.9, effect=None, low=None, high=None, n=9, evidence=2.0,
        since=AT + timedelta(minutes=minutes), at=AT, summary="s", query="",
    )  # fmt: skip
    return replace(first, **fields)  # type: ignore[arg-type]


def step(state: str, baseline: float | None) -> Transition:
    return Transition("ok", state, AT, 0.5, baseline, 9, 2.0, "s")


def test_episodes_of_a_project_that_begin_within_an_hour_of_the_first_are_one_incident() -> None:
    rows = [
        episode(1),
        episode(2, 59),
        episode(3, 61),
        episode(4, 200),
        episode(5, 201),
        episode(6, 0, project="books"),
    ]
    found = [[each.alert_id.int for each in of.episodes] for of in incidents(rows)]
    assert found == [[1, 2], [4, 5]]


def test_an_incident_has_its_episodes_in_the_order_of_the_list() -> None:
    rows = [episode(2, 1, effect=2.5), episode(4, 3, effect=-0.5), episode(1, effect=-0.1), episode(3, 2, state="warn")]
    [found] = incidents(rows)
    assert [each.alert_id.int for each in found.episodes] == [2, 4, 1, 3]
    assert found.began == AT


def test_what_cannot_be_acknowledged_belongs_to_no_incident() -> None:
    rows = [episode(1), episode(2, kind="lag"), episode(3, state="resolved"), episode(4, 1, state="recovering")]
    assert [[each.alert_id.int for each in of.episodes] for of in incidents(rows)] == [[1, 4]]
    assert incidents(rows[:3]) == ()


def test_an_episode_is_shown_against_the_level_it_was_raised_against() -> None:
    over = episode(1, state="resolved", baseline=0.5)
    assert raised_against(over, (step("warn", 0.8), step("critical", 0.9), step("resolved", 0.5))) == 0.9
    assert raised_against(over, (step("resolved", 0.5),)) == 0.5
