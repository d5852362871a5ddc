"""What a notice says: what, since when, how much, where, which query, how to acknowledge."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from assay_notifier.alertmanager import member_address, posted
from assay_notifier.notice import annotations, body, grouped, labels, line, noticed, title
from assay_schema.alerts import AlertState, Severity
from tests.support.alert_samples import episode, transition

WARN, CRITICAL, RECOVERING, RESOLVED = episode()
LATER = datetime.now(UTC) + timedelta(minutes=15)


def test_a_notice_says_what_since_when_how_much_where_which_query_and_how_to_acknowledge() -> None:
    text = body(CRITICAL)
    assert title(CRITICAL) == "[CRITICAL] score drift of faithfulness in project shop, service search"
    for fact in (
        CRITICAL.summary,
        f"Since: {CRITICAL.since:%Y-%m-%d %H:%M:%S}Z",
        "now 0.7123, baseline 0.85, effect -0.162, 95 % interval 0.68 to 0.74, n 1,234",
        "project shop, service search, series 1f2e3d4c",
        f'assay query "{CRITICAL.query}"',
        f"Explain: assay drift explain {CRITICAL.alert_id}",
        f"To accept the current level as the new baseline: assay drift acknowledge {CRITICAL.alert_id}",
        f"Episode {CRITICAL.alert_id}, transition 2",
    ):
        assert fact in text
    assert CRITICAL.acknowledge in line(CRITICAL)
    assert f"explain: assay drift explain {CRITICAL.alert_id}" in line(CRITICAL)
    assert annotations(CRITICAL)["explain"] == f"assay drift explain {CRITICAL.alert_id}"
    assert annotations(CRITICAL)["acknowledge_means"] == "accept the current level as the new baseline"


def test_the_commands_of_a_notice_name_the_data_directory_of_the_system_that_sent_it() -> None:
    command = f"assay drift acknowledge {CRITICAL.alert_id} --data 'data/my run'"
    text = body(CRITICAL, "data/my run")
    assert text.count(" --data 'data/my run'") == 3, "of the query, the explanation and the acknowledgement"
    assert command in text
    assert line(CRITICAL, "data/my run").endswith(command)
    assert annotations(CRITICAL, "data/my run")["acknowledge"] == command


def test_a_notice_about_an_ended_episode_offers_nothing_to_acknowledge() -> None:
    assert "acknowledge" not in body(RESOLVED) + line(RESOLVED)
    assert "acknowledge" not in annotations(RESOLVED)


@pytest.mark.parametrize(("kind", "says"), [("failures", "forget the losses"), ("judge_errors", "forget the errors")])
def test_a_notice_says_what_acknowledging_a_condition_does(kind: str, says: str) -> None:
    alert = transition(1, AlertState.WARN, kind=kind, acknowledge="assay drift acknowledge 1")
    assert says in body(alert)
    assert "baseline:" not in body(alert)


def test_what_is_not_known_is_left_out() -> None:
    bare = transition(
        1, AlertState.WARN, kind="lag", project="all", service=None, metric=None, series=None,
        value=None, baseline=None, effect=None, interval=None, n=None, query="", acknowledge="",
    )  # fmt: skip
    assert "explain" not in annotations(bare) | {"line": line(bare)}
    assert title(bare) == "[WARN] lag in the whole system"
    assert not [word for word in ("None", "How much", "Look", "Explain", "Acknowledge", "series") if word in body(bare)]
    assert set(labels(bare, Severity.WARNING)) == {"alertname", "severity", "project", "alert_id"}


def test_several_transitions_are_one_notice_with_the_worst_first() -> None:
    head, text = grouped([WARN, RESOLVED, CRITICAL])
    assert head == "[CRITICAL] 3 alerts in project shop: 1 critical, 1 warn, 1 resolved"
    assert text.index(title(CRITICAL)) < text.index(title(WARN)) < text.index(title(RESOLVED))


def test_labels_stay_the_same_through_an_episode_but_for_severity() -> None:
    seen = [labels(alert, Severity.CRITICAL) for alert in episode()]
    assert all(each == seen[0] for each in seen)
    assert seen[0]["alertname"] == "AssayScoreDrift"
    assert labels(WARN, Severity.WARNING) == seen[0] | {"severity": "warning"}
    assert annotations(WARN)["transition_id"] != annotations(CRITICAL)["transition_id"]


@pytest.mark.parametrize(
    ("alert", "known", "severity", "former"),
    [
        (WARN, {}, "warning", None),
        (CRITICAL, {1: "warning"}, "critical", "warning"),
        (CRITICAL, {1: "warning", 2: "critical"}, "critical", "warning"),
        (RECOVERING, {1: "warning", 2: "critical"}, "critical", None),
        (RESOLVED, {1: "warning", 2: "critical"}, "critical", None),
        (RESOLVED, {1: "warning"}, "warning", None),
        (RECOVERING, {}, "critical", None),
        (transition(5, AlertState.WARN, AlertState.RECOVERING), {1: "warning", 2: "critical"}, "warning", "critical"),
    ],
)  # fmt: skip
def test_the_severity_of_an_episode_is_that_of_its_last_warning(
    alert: object, known: dict[int, str], severity: str, former: str | None
) -> None:
    assert isinstance(alert, type(WARN))
    notice = noticed(alert, {place: Severity(each) for place, each in known.items()})
    assert (notice.severity, notice.former) == (severity, former)


def test_alertmanager_is_told_the_end_of_what_is_over_and_of_a_former_severity() -> None:
    (open_one,) = posted(noticed(WARN, {}), LATER)
    assert open_one["endsAt"] == LATER.isoformat()
    assert open_one["startsAt"] == WARN.since.isoformat()
    critical, warning = posted(noticed(CRITICAL, {1: Severity.WARNING}), LATER)
    assert (critical["labels"]["severity"], critical["endsAt"]) == ("critical", LATER.isoformat())
    assert (warning["labels"]["severity"], warning["endsAt"]) == ("warning", CRITICAL.at.isoformat())
    assert warning["labels"] == open_one["labels"]
    (over,) = posted(noticed(RESOLVED, {2: Severity.CRITICAL}), LATER)
    assert over["endsAt"] == RESOLVED.at.isoformat()
    assert over["labels"] == critical["labels"]


def test_an_end_is_never_before_its_beginning() -> None:
    strange = transition(1, AlertState.RESOLVED, since=datetime.now(UTC) + timedelta(days=1), alert_id=uuid.uuid4())
    (document,) = posted(noticed(strange, {}), LATER)
    assert document["endsAt"] >= document["startsAt"]


def test_the_api_is_below_the_address_and_credentials_do_not_stay_in_it() -> None:
    assert member_address("http://am:9093") == ("http://am:9093/api/v2/alerts", {})
    address, headers = member_address("https://ann:p%40ss@am.example.com/prefix/")
    assert address == "https://am.example.com/prefix/api/v2/alerts"
    assert headers == {"authorization": "Basic YW5uOnBAc3M="}
