"""Tests of what the pages of alerts say."""

import shlex
from dataclasses import replace
from urllib.parse import unquote
from uuid import UUID

import pytest

from assay_console.rendering import environment
from assay_console.views.alerts import lowest_of, silence_of
from assay_console.views.patterns import PATTERNS
from assay_operations.drift.episodes import Episode

CRITICAL, LATENCY, _, HALLUCINATION = PATTERNS.episodes
ID, OTHER = UUID(int=7), UUID(int=8)


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
    ("url", "end"),
    [
        ("", '"being looked into"'),
        ("http://alertmanager-1:9093/", "--alertmanager.url=http://alertmanager-1:9093"),
        ("http://user:password@alertmanager:9093", '"being looked into"'),
        ("http://alertmanager:9093/$(id)", '"being looked into"'),
    ],
)
def test_the_silencing_command_has_a_plain_address_and_no_password(url: str, end: str) -> None:
    command, form = silence_of((ID,), url)
    assert command.startswith(f"amtool silence add alert_id={ID} --duration=2h ")
    assert command.endswith(end)
    assert bool(form) == ("--alertmanager.url" in command)


@pytest.mark.parametrize(("ids", "matcher"), [((ID,), f'alert_id="{ID}"'), ((ID, OTHER), f'alert_id=~"{ID}|{OTHER}"')])
def test_the_link_to_the_form_of_a_silence_fills_in_the_matcher_and_the_comment(
    ids: tuple[UUID, ...], matcher: str
) -> None:
    """The form reads percent-encoding, and no `+` for a blank, from the part of the address after `#`."""
    command, form = silence_of(ids, "https://alerts.example/am/")
    address, _, query = form.partition("?")
    assert address == "https://alerts.example/am/#/silences/new"
    assert [unquote(part) for part in query.split("&")] == [f"filter={{{matcher}}}", "comment=being looked into"]
    assert shlex.split(command)[3] == matcher.replace('"', "")


def test_a_number_in_the_list_of_events_has_the_name_of_its_metric() -> None:
    parts = environment().get_template("events_parts.html").module
    assert "faithfulness</small> 0.910" in parts.verdicts(PATTERNS.rows[1])


def test_a_mean_of_a_judge_has_three_digits_and_a_share_of_answers_is_a_percentage() -> None:
    shown = environment().from_string(
        "{{ of.value | measured(of.unit) }}, {{ of.low | measured_interval(of.high, of.unit) }}"
    )
    mean = replace(CRITICAL, value=0.6, low=0.5, high=1.0)
    assert shown.render(of=mean) == "0.600, 0.500 to 1.000"
    for metric in ("no_context", "check_failed_no_pii", "latency_p95"):
        words = shown.render(of=replace(mean, metric=metric)).replace("\N{NO-BREAK SPACE}", " ")
        assert words == "60.0 %, 50.0 % to 100.0 %"
