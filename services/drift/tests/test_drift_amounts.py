"""Latency and cost: a change is told by day and never pages, noise is not told, and no death in between changes anything."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis

from assay_drift.amounts import MARGIN, quantile
from assay_drift.app import READERS, event_sample, handlers
from assay_drift.monitor import Monitor, Observation
from assay_drift.state import GROUP, Sample, ShardState
from assay_runtime.entries import Entry
from assay_runtime.same_redis import redis_here
from assay_schema.alert_actions import query_of, samples_of
from assay_schema.alerts import Alert, AlertKind, AlertState
from assay_schema.scores import AMOUNTS, QUANTILES
from assay_schema.settings import DriftSettings
from assay_schema.streams import ALERTS, EVENTS, FIELD
from assay_schema.validation import parse_alert
from tests.support.drift_samples import HASHED, QUICK, START_MS, monitor, noise_of, uuid7
from tests.support.latency_series import Latencies, latencies, run_amounts
from tests.support.redis import RedisServer

MINUTE = 60_000.0
LIMITED = QUICK.model_copy(update={"clean_evaluations": 4})
#: Learned in two days for the limit and two for the share; slower from day 7 on.
SLOWER = {"days": 9, "per_day": 200, "from_day": 7, "factor": 2.0}


def amounts(
    days: float, per_day: int, *, from_day: float = 1e9, back_at: float = 1e9, factor: float = 1.0, first: float = 0.0
) -> Iterator[tuple[float, str, float]]:
    """Times, ids and milliseconds around 800."""
    noise = noise_of("amounts")
    for number in range(int(first * per_day), int(days * per_day)):
        day = number / per_day
        usual = 800 * 2 ** noise.gauss(0, 0.6)
        at_ms = START_MS + day * MINUTE
        yield at_ms, str(uuid7(at_ms, number)), usual * (factor if from_day <= day < back_at else 1.0)


def feed(watched: Monitor, what: str = "latency", operation: str = "answer", **changes: Any) -> list[Alert]:
    for at_ms, event_id, value in amounts(**changes):
        took = Observation(event_id, "acme", at_ms, None, operation=operation, amounts={what: value}, follows=True)
        watched.observe_traffic([took], at_ms)
    return watched.take_alerts()


def states(alerts: list[Alert], metric: str) -> list[str]:
    return [alert.state.value for alert in alerts if alert.metric == metric]


def test_what_stays_as_it_is_is_not_told() -> None:
    assert feed(monitor(LIMITED), days=25, per_day=200) == []


@pytest.mark.parametrize(("what", "unit"), [("latency", " ms"), ("cost", " characters")])
def test_a_doubling_is_a_warning_of_both_series_and_never_pages(what: str, unit: str) -> None:
    alerts = feed(monitor(LIMITED), what, **SLOWER)
    assert {alert.metric for alert in alerts} == {f"{what}_p50", f"{what}_p95"}
    assert {alert.state for alert in alerts} == {AlertState.WARN}
    first = alerts[0]
    assert (first.kind, first.series, first.project) == (AlertKind.SCORE_DRIFT, "answer", "acme")
    assert START_MS + 7 * MINUTE < first.at.timestamp() * 1000 < START_MS + 8 * MINUTE
    assert abs(first.since.timestamp() * 1000 - (START_MS + 7 * MINUTE)) < MINUTE
    assert first.summary.startswith(f"{what} of answers of acme (")
    assert f"{unit}, now" in first.summary
    assert first.value is not None
    assert first.baseline is not None
    assert first.value > first.baseline, "it is the share above the limit"


def test_what_comes_back_is_resolved() -> None:
    alerts = feed(monitor(LIMITED), **{**SLOWER, "days": 16, "back_at": 9})
    for metric in ("latency_p50", "latency_p95"):
        assert states(alerts, metric) == ["warn", "recovering", "resolved"]
    assert any("is back: " in alert.summary for alert in alerts)


def test_a_few_very_slow_answers_move_the_upper_series_alone() -> None:
    watched, found = monitor(LIMITED), []
    for number, (at_ms, event_id, value) in enumerate(amounts(days=14, per_day=200)):
        slow = at_ms > START_MS + 7 * MINUTE and number % 6 == 0
        took = {"latency": 20_000.0 if slow else value}
        watched.observe_traffic([Observation(event_id, "acme", at_ms, None, operation="search", amounts=took)], at_ms)
        found += watched.take_alerts()
    assert {alert.metric for alert in found} == {"latency_p95"}
    assert "latency of searches of acme (95th percentile) rose" in found[0].summary


def test_a_change_below_the_margin_is_not_told_even_where_amounts_are_all_alike() -> None:
    watched = monitor(LIMITED)
    for number in range(4_000):
        at_ms = START_MS + number / 200 * MINUTE
        value = 5.0 if number < 2_000 else 5.0 * MARGIN - 0.01
        took = Observation(
            str(uuid7(at_ms, number)), "acme", at_ms, None, operation="answer", amounts={"latency": value}
        )
        watched.observe_traffic([took], at_ms)
    assert watched.take_alerts() == []


def test_an_acknowledged_latency_is_the_new_normal() -> None:
    watched = monitor(LIMITED)
    alerts = feed(watched, **SLOWER)
    watched.acknowledge([str(alert.alert_id) for alert in alerts], START_MS)
    done = watched.take_alerts()
    assert {alert.state for alert in done} == {AlertState.RESOLVED}
    assert all("acknowledged by an operator: a new baseline is being learned" in alert.summary for alert in done)
    assert feed(watched, days=25, per_day=200, from_day=0, factor=2.0, first=9) == []
    again = feed(watched, days=28, per_day=200, from_day=0, factor=4.0, first=25)
    assert {alert.state for alert in again} == {AlertState.WARN}


def test_state_of_an_earlier_assay_is_read_and_what_is_written_is_read_again() -> None:
    watched = monitor(LIMITED)
    feed(watched, days=3, per_day=200)
    kept = {name: data for name, data in watched.changes().items() if data}
    assert {name.split("/")[2] for name in kept if name.startswith("amount/")} == {"latency_p50", "latency_p95"}
    again = monitor(LIMITED, kept)
    assert {key: amount.dump() for key, amount in again.amounts.items()} == {
        key: amount.dump() for key, amount in watched.amounts.items()
    }


@pytest.mark.parametrize(
    "noise",
    [
        {"weekend": 1.2, "night": 1.3},
        {"day_deviation": 0.1, "day_correlation": 0.5},
        {"session": 10, "sunday": 0.1},
        {"correlation": 0.5, "volume": 10},
    ],
)
def test_half_a_year_of_noise_is_not_told(noise: dict[str, Any]) -> None:
    days, values = latencies(Latencies(days=150, per_day=100, **noise), 3)
    for name in QUANTILES:
        assert run_amounts(days, values, DriftSettings(), name, streams=12).episodes == 0


def test_a_quantile_lies_between_its_neighbours() -> None:
    assert quantile([1.0], 0.95) == 1.0
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2.0
    assert quantile([0.0, 10.0], 0.95) == pytest.approx(9.5)


@pytest.mark.parametrize("operation", ["answer", "search"])
def test_an_alert_names_a_query_and_no_score_is_asked_for(operation: str) -> None:
    alert = feed(monitor(LIMITED), operation=operation, **SLOWER)[0]
    assert ("assay.answers" in query_of(alert)) is (operation == "answer")
    assert "latency_ms" in query_of(alert)
    for metric in AMOUNTS:
        with pytest.raises(ValueError, match="not of scores"):
            samples_of(metric)


def event(kind: str, number: int, at_ms: float, **payload: Any) -> str:
    identity = str(uuid7(at_ms, number))
    return json.dumps({"kind": kind, "event_id": identity, "project": "acme", "payload": payload})


def answer(number: int, at_ms: float, latency_ms: float, **changes: Any) -> str:
    told = {"query": "where?", "answer": "here", "contexts": [{"id": "1", "text": "it is here"}]} | changes
    return event("answer", number, at_ms, latency_ms=latency_ms, **told)


def sample_of(document: str) -> Observation:
    found = event_sample(Entry("1-1", document.encode()))
    assert isinstance(found, Sample)
    asked: Observation = found.content
    return asked


def test_what_events_say_of_latency_and_cost() -> None:
    alone = sample_of(answer(1, START_MS, 12.5))
    assert (alone.operation, alone.amounts, alone.query) == ("answer", {"latency": 12.5, "cost": 20.0}, "where?")
    follows = sample_of(answer(1, START_MS, 12.5, retrieval_event_id=str(uuid7(START_MS, 9))))
    assert (follows.query, follows.follows) == (None, True), "its question was counted with its retrieval"
    found = sample_of(event("retrieval", 1, START_MS, query="where?", tool_name="search", latency_ms=3))
    assert (found.operation, found.amounts) == ("search", {"latency": 3.0})


async def test_deaths_and_redeliveries_change_nothing(redis_server: RedisServer) -> None:
    documents = [
        answer(number, at_ms, value) for number, (at_ms, _, value) in enumerate(amounts(**(SLOWER | {"per_day": 100})))
    ]

    def count(monitor: Monitor) -> list[Alert]:
        for document in documents:
            asked = sample_of(document)
            monitor.observe_traffic([asked], START_MS)
        return monitor.take_alerts()

    expected = count(monitor(LIMITED))
    assert {alert.metric for alert in expected} == {"latency_p50", "latency_p95"}
    with redis_server.client() as client:
        client.xgroup_create(EVENTS.key(), GROUP, id="0", mkstream=True)
        for document in documents:
            client.xadd(EVENTS.key(), {FIELD: document})
        async with AsyncRedis(port=redis_server.port) as shared:
            await _die_after_every_step(shared)
        found = published(client)
    assert [each.transition_id for each in found] == [each.transition_id for each in expected]
    assert [each.summary for each in found] == [each.summary for each in expected]


def published(client: "redis.Redis[bytes]") -> list[Alert]:
    return [parse_alert(fields[FIELD.encode()]) for _, fields in client.xrange(ALERTS.key())]


async def _die_after_every_step(client: "AsyncRedis[bytes]") -> None:
    """Read, die, read again, finish, forget the answer, finish again, die."""
    while answers := await client.xreadgroup(GROUP, "one", {EVENTS.key(): ">"}, count=40):
        entries = [Entry(entry_id.decode(), fields[FIELD.encode()]) for entry_id, fields in answers[0][1]]
        outcomes = [READERS[EVENTS][1](entry) for entry in entries]
        for left in (len(entries), 0):
            state = ShardState(client, LIMITED, 0, 1, HASHED)
            assert (
                await state.finish(EVENTS, outcomes, await redis_here(client), handlers(lambda: START_MS)[EVENTS])
                == left
            )
