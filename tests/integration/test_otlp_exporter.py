"""The OTLP exporter's process on a real Redis with its own user, and a backend over a real socket.

Every span arrives, with the same id each time; a backend that is away, refuses or is slow loses none and is told to
nobody but the operator.
"""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_operations.doctor import host_checks
from assay_operations.doctor.finding import Status
from assay_operations.doctor.probes import state_of
from assay_schema.ids import new_event_id
from assay_schema.published import examples
from assay_schema.streams import EVENTS, FAILURES, FIELD, SCORES
from tests.support.gateway import redis_with_identities
from tests.support.otlp_backend import OtlpBackend, Received
from tests.support.redis import RedisServer
from tests.support.service_process import ServiceProcess
from tests.support.wait import until

STAGE = "otlp_exporter"
KEY = "secret-key-of-the-backend"
SECRET = "a text of the user"
SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DOCUMENTS = {
    stream: {each.name: orjson.loads(each.document_bytes) for each in examples(stream)}
    for stream in ("events", "scores")
}


def tool_call(**changes: Any) -> dict[str, Any]:
    document = DOCUMENTS["events"]["tool-call-full"]
    payload = document["payload"] | {"args_summary": {"query": SECRET}}
    return document | {"event_id": new_event_id(), "origin": "sdk", "payload": payload} | changes


def another(name: str, **changes: Any) -> dict[str, Any]:
    return DOCUMENTS["events"][name] | {"event_id": new_event_id(), "origin": "sdk"} | changes


class Exporter(ServiceProcess):
    def __init__(self, directory: Path, redis: RedisServer, backend: OtlpBackend, **settings: str) -> None:
        own = {
            "ASSAY_OTLP_EXPORTER_ENDPOINT": backend.url,
            "ASSAY_OTLP_EXPORTER_HEADERS": f"x-api-key={KEY}",
            "ASSAY_DELIVERY_CONSUMER": "exporter-1",  # a permanent name: a restart resumes at once
            "ASSAY_TELEMETRY_LOG_LEVEL": "DEBUG",
        }
        super().__init__(STAGE, directory, redis, "otlp_exporter.log", **own | settings)

    def notes(self) -> str:
        return self.health("/readyz")[1]


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = redis_with_identities(tmp_path_factory.mktemp("otlp-exporter"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def backend() -> Iterator[OtlpBackend]:
    running = OtlpBackend()
    yield running
    running.close()


@pytest.fixture(scope="module")
def running(redis: RedisServer, backend: OtlpBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    process = Exporter(tmp_path_factory.mktemp("process"), redis, backend, ASSAY_OTLP_EXPORTER_VERDICTS="true").start()
    yield process
    process.kill()


@pytest.fixture
def exporter(running: Exporter, redis: RedisServer, backend: OtlpBackend) -> Exporter:
    """The process, with nothing left to do."""
    backend.reset()
    until(lambda: unfinished(redis) == 0, "entries of an earlier test are unfinished")
    backend.reset()
    with redis.client() as client:
        client.delete(FAILURES.key())
    return running


def append(redis: RedisServer, *events: dict[str, Any], stream: str = EVENTS.key()) -> list[str]:
    """Append events in one step, so that they are in one batch."""
    with redis.client() as client:
        pipeline = client.pipeline()
        for event in events:
            pipeline.xadd(stream, {FIELD: orjson.dumps(event)})
        pipeline.execute()
    return [event["event_id"] for event in events]


def unfinished(redis: RedisServer) -> int:
    with redis.client() as client:
        count = 0
        for stream in (EVENTS, SCORES):
            for group in client.xinfo_groups(stream.key()) if client.exists(stream.key()) else ():
                if group["name"] == STAGE.encode():
                    newer = client.xrange(stream.key(), min=b"(" + group["last-delivered-id"], count=1)
                    count += group["pending"] + len(newer)
        return count


def failures(redis: RedisServer) -> list[dict[str, Any]]:
    with redis.client() as client:
        return [orjson.loads(fields[FIELD.encode()]) for _, fields in client.xrange(FAILURES.key())]


def deliveries(redis: RedisServer) -> set[int]:
    with redis.client() as client:
        return {each["times_delivered"] for each in client.xpending_range(EVENTS.key(), STAGE, "-", "+", 1_000)}


def test_chosen_events_and_verdicts_arrive_and_are_acknowledged(
    exporter: Exporter, redis: RedisServer, backend: OtlpBackend
) -> None:
    expected = append(redis, tool_call(traceparent=SAMPLED, service="a"), tool_call(traceparent=None, service="b"))
    append(redis, another("answer-full"), another("session-full"), tool_call(origin="otlp"))
    with redis.client() as client:
        client.xadd(EVENTS.key(), {FIELD: b'{"kind":"tool_call", broken'})
    expected += append(redis, DOCUMENTS["scores"]["full"] | {"traceparent": SAMPLED}, stream=SCORES.key())
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 1)
    by_event = {each.event_id: each for each in backend.taken}
    child = by_event[expected[0]]
    assert child.span.parent_span_id.hex() == "b7ad6b7169203331"
    assert child.resource["service.name"] == "a"
    assert by_event[expected[1]].resource["service.name"] == "b"
    assert [event.name for event in by_event[expected[2]].span.events] == ["gen_ai.evaluation.result"] * 5
    assert {request.headers["x-api-key"] for request in backend.requests} == {KEY}
    assert SECRET.encode() not in b"".join(each.span.SerializeToString() for each in backend.taken)
    assert failures(redis) == []  # the writer records the broken entry
    assert exporter.metric('assay_otlp_exporter_spans_total{outcome="otlp_origin"}') == 1


def test_a_span_that_is_refused_keeps_no_other_back(
    exporter: Exporter, redis: RedisServer, backend: OtlpBackend
) -> None:
    events = [tool_call() for _ in range(20)]
    wrong = events[13]["event_id"]
    backend.answer = lambda spans: 400 if wrong in {each.event_id for each in spans} else 200
    append(redis, *events)
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == {each["event_id"]: 1 for each in events if each["event_id"] != wrong}
    [failure] = failures(redis)
    assert (failure["event_id"], failure["stage"], failure["error_class"]) == (wrong, STAGE, "HTTP400")
    assert SECRET not in str(failure)
    assert "refused 1 spans" in exporter.notes()


def test_an_outage_blames_no_entry_and_sends_each_once(
    exporter: Exporter, redis: RedisServer, backend: OtlpBackend
) -> None:
    busy = iter([503, 429, 500, 502, 504, 404])
    backend.answer = lambda _: (next(busy, 200), {"retry-after": "0"})
    expected = append(redis, *(tool_call() for _ in range(3)))
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 1)
    assert len(backend.requests) >= 7
    assert {failure["entry_id"] for failure in failures(redis)} == {None}  # an incident: no event was lost


def test_a_backend_that_refuses_the_key_is_waited_for_and_the_setting_is_named(
    exporter: Exporter, redis: RedisServer, backend: OtlpBackend
) -> None:
    backend.answer = lambda _: 401
    expected = append(redis, tool_call())
    until(lambda: "otlp_exporter.headers" in exporter.notes())
    state = state_of("127.0.0.1", exporter.health_port)
    assert state
    found = host_checks.otlp_exporter(*state)  # as `assay doctor` does
    assert (found.status, "otlp_exporter.headers" in found.summary) == (Status.WARN, True)
    assert deliveries(redis) == {1}
    backend.answer = lambda _: 200
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 1)
    until(lambda: exporter.health("/readyz")[0] == 200)
    assert "otlp_exporter.headers" not in exporter.notes()
    assert host_checks.otlp_exporter([], []).status is Status.OK
    assert KEY not in exporter.log() + exporter.notes() + exporter.health("/metrics")[1]
    assert SECRET not in exporter.log()


def test_what_is_sent_when_the_exporter_is_killed_is_sent_again_with_the_same_id(
    redis: RedisServer, backend: OtlpBackend, exporter: Exporter
) -> None:
    arrived, release = threading.Event(), threading.Event()

    def answer(_: list[Received]) -> int:
        arrived.set()
        release.wait(60)
        return 200

    backend.answer = answer
    expected = append(redis, *(tool_call() for _ in range(3)))
    assert arrived.wait(60)
    exporter.kill()
    release.set()
    until(lambda: backend.times_taken() == dict.fromkeys(expected, 1), "the backend has them, unacknowledged")
    assert unfinished(redis) == 3
    exporter.start()
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 2)
    assert len({each.span.span_id for each in backend.taken}) == 3


def test_a_stop_ends_a_long_wait_and_loses_nothing(
    redis: RedisServer, backend: OtlpBackend, exporter: Exporter
) -> None:
    backend.answer = lambda _: (429, {"retry-after": "3600"})
    expected = append(redis, tool_call())
    until(lambda: backend.requests)
    assert exporter.stop() == 0
    assert "spans wait: 127.0.0.1" in exporter.log()
    backend.answer = lambda _: 200
    exporter.start()
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 1)


def test_a_wrong_address_from_the_start_loses_nothing(
    redis: RedisServer, backend: OtlpBackend, exporter: Exporter
) -> None:
    """A backend that answers 400 to everything refuses no span: a setting is wrong."""
    exporter.stop()
    backend.answer = lambda _: 400
    exporter.start()
    expected = append(redis, *(tool_call() for _ in range(5)))
    until(lambda: "it refuses every span" in exporter.notes())
    assert {failure["entry_id"] for failure in failures(redis)} <= {None}
    backend.answer = lambda _: 200
    until(lambda: unfinished(redis) == 0)
    assert backend.times_taken() == dict.fromkeys(expected, 1)


def test_it_does_not_start_without_an_endpoint(redis: RedisServer, backend: OtlpBackend, tmp_path: Path) -> None:
    process = Exporter(tmp_path, redis, backend, ASSAY_OTLP_EXPORTER_ENDPOINT="", ASSAY_OTLP_EXPORTER_HEADERS="").start(
        ready=False
    )
    assert process.process
    assert process.process.wait(60) == 2
    assert re.search("set otlp_exporter.endpoint", process.log())
