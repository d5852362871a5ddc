"""What a scenario sets, and what it leaves."""

from pathlib import Path

from assay_local.scenario import Scenario, directory_of, over, settings_of


def test_without_a_scenario_nothing_is_set() -> None:
    assert settings_of(None, None) == {}
    assert over({"redis": {"shards": 2}}, {}) == {"redis": {"shards": 2}}


def test_a_scenario_goes_before_a_persons_settings_and_leaves_the_others() -> None:
    changed = over({"judge": {"salt": "mine", "base_rate": 0.1}}, settings_of(Scenario.REGRESSION, 9107))
    assert changed["judge"] == {"salt": "mine", "base_rate": 1.0}
    assert changed["notifier"]["alertmanager_urls"] == "http://127.0.0.1:9107"
    assert changed["console"]["alertmanager_url"] == "http://127.0.0.1:9107", "its pages print the command of a silence"


def test_without_an_alertmanager_none_is_told() -> None:
    changed = settings_of(Scenario.REGRESSION, None)
    assert ("alertmanager_urls" in changed["notifier"], "console" in changed) == (False, False)


def test_commands_in_notices_name_a_data_directory_that_is_not_the_default() -> None:
    assert directory_of(Path("data")) == {}
    assert directory_of(Path("data/regression")) == {"notifier": {"data_directory": "data/regression"}}
