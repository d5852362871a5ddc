"""The list of scenarios, as `make chaos CHAOS=--list` prints it."""

from tests.chaos.catalogue import PROOFS, SCENARIOS
from tests.chaos.sabotage import MECHANISMS


def test_every_scenario_says_what_it_does() -> None:
    scenarios = [scenario for group in SCENARIOS.values() for scenario in group]
    assert [scenario.name for scenario in scenarios if len(scenario.description.split()) < 4] == []
    descriptions = [scenario.description for scenario in scenarios]
    assert sorted(descriptions) == sorted(set(descriptions))


def test_every_mechanism_that_can_be_switched_off_has_a_proof() -> None:
    assert sorted(PROOFS) == sorted(MECHANISMS)
