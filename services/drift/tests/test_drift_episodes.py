"""Episodes: they open once, escalate once, and close on evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_drift.episodes import Episode, Hysteresis, Level, Reading, resolve, step
from assay_schema.alerts import AlertState

HYSTERESIS = Hysteresis(clean_evaluations=3, cooldown_ms=100)


def states(readings: list[Reading], episode: Episode | None = None) -> list[str]:
    episode = episode or Episode()
    return [found.state.value for reading in readings if (found := step(episode, reading, HYSTERESIS))]


def at(ms: float, level: Level, *, clean: bool | None = None, counts: bool = True, recovered: bool = True) -> Reading:
    return Reading(ms, level, level == "ok" if clean is None else clean, counts, recovered)


def test_an_episode_goes_through_all_of_its_states() -> None:
    readings = [at(0, "warn"), at(1, "critical"), *(at(2 + n, "ok") for n in range(4))]
    assert states(readings) == ["warn", "critical", "recovering", "resolved"]


def test_it_never_falls_back_from_critical_to_warn() -> None:
    assert states([at(0, "critical"), at(1, "warn"), at(2, "warn"), at(3, "critical")]) == ["critical"]


def test_a_value_around_the_threshold_is_one_episode() -> None:
    flapping = [at(n, "critical" if n % 3 else "ok") for n in range(300)]
    assert states(flapping) == ["critical"]


def test_values_above_the_threshold_but_below_the_exit_are_not_clean() -> None:
    assert states([at(0, "warn"), *(at(n, "ok", clean=False) for n in range(1, 50))]) == ["warn"]


def test_recovery_without_evidence_is_not_yet_resolved() -> None:
    readings = [at(0, "warn"), *(at(n, "ok", recovered=False) for n in range(1, 50))]
    assert states(readings) == ["warn", "recovering"]


def test_a_relapse_while_recovering_returns_to_what_it_was() -> None:
    readings = [at(0, "critical"), at(1, "ok"), at(2, "ok"), at(3, "ok"), at(4, "ok", clean=False)]
    assert states(readings) == ["critical", "recovering", "critical"]


def test_readings_after_single_samples_do_not_count_as_clean_evaluations() -> None:
    assert states([at(0, "warn"), *(at(n, "ok", counts=False) for n in range(1, 50))]) == ["warn"]


def test_after_a_resolution_nothing_opens_until_the_cooldown_is_over() -> None:
    episode = Episode()
    states([at(0, "warn"), *(at(n, "ok") for n in range(1, 5))], episode)
    assert episode.state is AlertState.RESOLVED
    assert states([at(50, "critical"), at(90, "critical"), at(104, "critical")], episode) == ["critical"]
    assert (episode.number, episode.sequence) == (2, 1)


def test_an_acknowledged_episode_resolves_at_once_and_a_closed_one_not_again() -> None:
    episode = Episode()
    states([at(0, "critical")], episode)
    assert resolve(episode, 1, HYSTERESIS) is not None
    assert resolve(episode, 2, HYSTERESIS) is None


@pytest.mark.parametrize("cooldown", [0.0, 50.0])
@given(st.lists(st.tuples(st.sampled_from(["ok", "warn", "critical"]), st.booleans(), st.booleans()), max_size=200))
def test_transitions_always_form_a_chain_without_gaps(cooldown: float, found: list[tuple[Level, bool, bool]]) -> None:
    episode, last = Episode(), None
    for place, (level, clean, counts) in enumerate(found):
        transition = step(episode, Reading(place, level, clean, counts), Hysteresis(2, cooldown))
        if transition is None:
            continue
        if last is None or last.state is AlertState.RESOLVED:
            assert (transition.previous, transition.sequence) == (AlertState.OK, 1)
            assert transition.state in (AlertState.WARN, AlertState.CRITICAL)
        else:
            assert (transition.previous, transition.sequence) == (last.state, last.sequence + 1)
            assert transition.number == last.number
        last = transition
