"""What a scenario sets, and what it leaves."""

from assay_local.scenario import Scenario, over, settings_of


def test_without_a_scenario_nothing_is_set() -> None:
    assert settings_of(None, None) == {}
    assert over({"redis": {"shards": 2}}, {}) == {"redis": {"shards": 2}}


def test_a_scenario_goes_before_a_persons_settings_and_leaves_the_others() -> None:
    changed = over({"judge": {"salt": "mine", "base_rate": 0.1}}, settings_of(Scenario.REGRESSION, 9107))
    assert changed["judge"] == {"salt": "mine", "base_rate": 1.0}
    assert changed["notifier"]["alertmanager_urls"] == "http://127.0.0.1:9107"


def test_without_an_alertmanager_none_is_told() -> None:
    assert "alertmanager_urls" not in settings_of(Scenario.REGRESSION, None)["notifier"]
