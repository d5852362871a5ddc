"""The assembler's process on a real Redis: each event once, despite order, repetition, kills, replicas and lateness."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from assay_assembler.span import Link
from assay_schema.streams import CAPTURE, FAILURES, SPANS, open_bytes_key, open_traces_key, trace_key, unassembled_key
from assay_schema.validation import parse_event
from tests.support.assembler import (
    AGENT,
    CHAT,
    RETRIEVAL,
    TOOL,
    Assembler,
    append,
    captured,
    entry,
    kinds,
)
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.spans import TRACE, span
from tests.support.wait import until

SECRET = "jane.doe@example.com"
WHOLE = Counter(retrieval=1, tool_call=1, answer=1)

ROOT = span({"http.route": "/ask"}, number=1, name="POST /ask", end_ms=900)
OUTER = span(AGENT, number=2, parent=1, end_ms=800)
SEARCH = span(RETRIEVAL, number=3, parent=2, start_ms=10, end_ms=50)
CALL = span(TOOL, number=4, parent=2, start_ms=60, end_ms=90)
SAID = span(CHAT, number=5, parent=2, start_ms=100, end_ms=700)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = redis_with_identities(tmp_path_factory.mktemp("assembler"))
    yield server
    server.stop()


@pytest.fixture
def fresh(redis: RedisServer) -> RedisServer:
    with redis.client() as client:
        client.flushall()
    return redis


@pytest.fixture
def assembler(fresh: RedisServer, tmp_path: Path) -> Iterator[Assembler]:
    running = Assembler(tmp_path, fresh).start()
    yield running
    running.kill()


def settled(redis: RedisServer) -> bool:
    """True if no span waits: not in the stream, and in no open trace."""
    with redis.client() as client:
        return not client.xlen(SPANS.key()) and not client.zcard(open_traces_key())


def unread(redis: RedisServer) -> int:
    with redis.client() as client:
        return int(client.xlen(SPANS.key()))


def closed(redis: RedisServer) -> Counter[str]:
    until(lambda: settled(redis), "a trace stays open")
    return kinds(redis)


def test_a_trace_in_one_request_becomes_its_events(fresh: RedisServer, assembler: Assembler) -> None:
    append(fresh, entry(ROOT, OUTER, SEARCH, CALL, SAID))
    until(lambda: kinds(fresh)["retrieval"], "the retrieval does not come at once")
    assert closed(fresh) == WHOLE
    found = {each["kind"]: each for each in captured(fresh)}
    assert found["answer"]["payload"]["query"] == "How long are rows kept?"
    assert [each["text"] for each in found["answer"]["payload"]["contexts"]] == ["Rows are kept for thirty days."]
    assert found["answer"]["payload"]["retrieval_event_id"] == found["retrieval"]["event_id"]
    assert {each["project"] for each in found.values()} == {"shop"}
    with fresh.client() as client:
        assert client.get(open_bytes_key()) == b"0"
        assert client.xlen(FAILURES.key()) == 0


def test_children_before_their_parents_in_five_requests_are_the_same_events(
    fresh: RedisServer, assembler: Assembler
) -> None:
    append(fresh, entry(ROOT, OUTER, SEARCH, CALL, SAID))
    assert closed(fresh) == WHOLE
    together = {each["event_id"]: each["payload"] for each in captured(fresh)}
    with fresh.client() as client:
        client.delete(CAPTURE.key(), trace_key(0, "shop", TRACE))
    for each in (CALL, SAID, SEARCH, OUTER, ROOT):
        append(fresh, entry(each))
    assert closed(fresh) == WHOLE
    assert {each["event_id"]: each["payload"] for each in captured(fresh)} == together


def test_the_same_batch_three_times_and_again_after_closing_makes_each_event_once(
    fresh: RedisServer, assembler: Assembler
) -> None:
    append(fresh, *[entry(ROOT, OUTER, SEARCH, CALL, SAID)] * 3)
    assert closed(fresh) == WHOLE
    append(fresh, entry(ROOT, OUTER, SEARCH, CALL, SAID))
    until(lambda: "assembler_late_spans_total 5" in assembler.health("/metrics")[1], "lateness is not counted")
    assert closed(fresh) == WHOLE


def test_a_program_that_dies_before_its_root_span_leaves_its_events(fresh: RedisServer, assembler: Assembler) -> None:
    append(fresh, entry(SEARCH, SAID))
    assert closed(fresh) == Counter(retrieval=1, answer=1)


def test_a_tool_call_of_another_process_waits_for_the_span_of_its_caller(
    fresh: RedisServer, assembler: Assembler
) -> None:
    mcp = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "get_retention"}
    served = span(
        mcp | {"gen_ai.tool.call.arguments": "{}"}, number=9, parent=4, local_root=True, start_ms=65, end_ms=85
    )
    append(fresh, entry(served))
    until(lambda: not unread(fresh), "the span is not read")
    assert kinds(fresh) == Counter()
    append(fresh, entry(CALL, OUTER, ROOT))
    assert closed(fresh)["tool_call"] == 1


def test_a_late_answer_is_an_event_of_its_own(fresh: RedisServer, assembler: Assembler) -> None:
    append(fresh, entry(ROOT, OUTER, SEARCH, SAID))
    closed(fresh)
    late = span(CHAT, number=8, parent=2, start_ms=710, end_ms=750)
    append(fresh, entry(late))
    assert closed(fresh) == Counter(retrieval=1, answer=2)


def test_entries_that_cannot_be_decoded_are_failures_and_leave_the_stream(
    fresh: RedisServer, assembler: Assembler
) -> None:
    whole = entry(ROOT, SEARCH)
    append(fresh, SECRET.encode(), whole[: whole.index(b"\n") + 1] + SECRET.encode(), b"", whole)
    assert closed(fresh) == Counter(retrieval=1)
    with fresh.client() as client:
        failures = client.xrange(FAILURES.key())
    assert len(failures) == 3
    assert SECRET not in str(failures) + assembler.log()


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_takes_spans_and_while_it_closes_traces_loses_nothing(
    fresh: RedisServer, tmp_path: Path
) -> None:
    traces = [f"{number:032x}" for number in range(1, 41)]
    sent = [
        entry(each._replace(trace_id=trace), trace=trace) for trace in traces for each in (SEARCH, CALL, SAID, ROOT)
    ]
    # No health is asked for, so no port is needed that another test may have taken meanwhile.
    running = Assembler(tmp_path, fresh, ASSAY_ASSEMBLER_PORT="0", ASSAY_ASSEMBLER_BATCH_ENTRIES="1")
    append(fresh, *sent)
    try:
        running.start(ready=False)
        until(lambda: unread(fresh) < len(sent), "no span is taken")
        running.kill()
        running.start(ready=False)
        until(lambda: kinds(fresh)["answer"], "no trace is closed")
        running.kill()
        running.start(ready=False)
        assert closed(fresh) == Counter({kind: len(traces) for kind in WHOLE})
    finally:
        running.kill()
    for each in captured(fresh):
        parse_event(orjson.dumps(each))


def test_replicas_share_the_work_and_repeat_nothing(fresh: RedisServer, tmp_path: Path) -> None:
    both = [Assembler(tmp_path, fresh, name).start() for name in ("one", "two")]
    traces = [f"{number:032x}" for number in range(1, 31)]
    for each in (SEARCH, CALL, SAID, OUTER, ROOT):
        append(fresh, *[entry(each._replace(trace_id=trace), trace=trace) for trace in traces])
    try:
        assert closed(fresh) == Counter({kind: len(traces) for kind in WHOLE})
    finally:
        for each in both:
            each.kill()


def test_traces_close_early_when_all_of_them_need_too_much_memory(fresh: RedisServer, tmp_path: Path) -> None:
    running = Assembler(tmp_path, fresh, ASSAY_ASSEMBLER_OPEN_BYTES="2000", ASSAY_ASSEMBLER_IDLE_S="3000").start()
    traces = [f"{number:032x}" for number in range(1, 21)]
    append(fresh, *[entry(SAID._replace(trace_id=trace), trace=trace) for trace in traces])
    try:
        until(lambda: kinds(fresh)["answer"] >= 15, "the traces stay open")
        assert running.stop() == 0
    finally:
        running.kill()


def test_what_makes_no_event_is_counted_by_its_reason(fresh: RedisServer, assembler: Assembler) -> None:
    silent = span({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}, number=6)
    append(fresh, entry(silent))
    assert closed(fresh) == Counter()
    with fresh.client() as client:
        counted = client.hgetall(unassembled_key(0, datetime.now(UTC).date()))
    assert counted == {b"shop/no_content": b"1"}
    assert 'reason="no_content"' in assembler.health("/metrics")[1]


def test_feedback_in_a_later_trace_finds_its_answer(fresh: RedisServer, assembler: Assembler) -> None:
    append(fresh, entry(ROOT, OUTER, SEARCH, SAID))
    closed(fresh)
    verdict = {
        "openinference.span.kind": "EVALUATOR",
        "annotations.0.annotation.name": "user feedback",
        "annotations.0.annotation.label": "thumbs-up",
        "annotations.0.annotation.score": 1.0,
        "annotations.0.annotation.annotator_kind": "HUMAN",
    }
    other = "c" * 32
    later = span(verdict, number=7, trace=other, links=(Link(TRACE, SAID.span_id),))
    append(fresh, entry(later, trace=other))
    assert closed(fresh) == Counter(retrieval=1, answer=1, feedback=1)
    found = {each["kind"]: each for each in captured(fresh)}
    assert found["feedback"]["payload"]["target_event_id"] == found["answer"]["event_id"]
