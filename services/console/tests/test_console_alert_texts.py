"""Tests of what the pages of alerts say."""

from uuid import UUID

import pytest
from pydantic import SecretStr

from assay_console.rendering import environment
from assay_console.views.alerts import lowest_of, silence_command
from assay_console.views.patterns import PATTERNS
from assay_operations.drift.episodes import Episode
from assay_schema.settings import NotifierSettings

CRITICAL, LATENCY, _, HALLUCINATION = PATTERNS.episodes
ID = UUID(int=7)


@pytest.mark.parametrize(
    ("episode", "answers"),
    [(CRITICAL, ("faithfulness", "0.745")), (HALLUCINATION, ("faithfulness", "0.955")), (LATENCY, ("", ""))],
    ids=("a score", "a rate of which lower is better", "an amount"),
)
def test_the_answers_to_read_are_named_by_metric_and_limit(episode: Episode, answers: tuple[str, str]) -> None:
    assert lowest_of(episode) == answers


@pytest.mark.parametrize("metric", ["top_1", "mean_of_k", "latency_p95"])
def test_the_name_of_a_metric_has_no_comma_that_would_make_two_of_one_in_a_list(metric: str) -> None:
    words = environment().get_template("ui.html").module.metric({"metric": metric, "kind": "", "series": "query"})
    assert "," not in words


@pytest.mark.parametrize(
    ("urls", "end"),
    [
        ("", '"being looked into"'),
        ("http://alertmanager-1:9093, http://alertmanager-2:9093", "--alertmanager.url=http://alertmanager-1:9093"),
        ("http://user:password@alertmanager:9093", '"being looked into"'),
        ("http://alertmanager:9093/$(id)", '"being looked into"'),
    ],
)
def test_the_silencing_command_has_a_plain_address_and_no_password(urls: str, end: str) -> None:
    command = silence_command(ID, NotifierSettings(alertmanager_urls=SecretStr(urls)))
    assert command.startswith(f"amtool silence add alert_id={ID} --duration=2h ")
    assert command.endswith(end)


def test_a_number_in_the_list_of_events_has_the_name_of_its_metric() -> None:
    parts = environment().get_template("events_parts.html").module
    assert "faithfulness</small> 0.91" in parts.verdicts(PATTERNS.rows[1])
