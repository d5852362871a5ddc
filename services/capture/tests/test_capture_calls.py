"""The calls: what events they make, and that nothing a caller does with them comes back at it."""

import asyncio
import itertools
import logging
import math
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from pydantic import TypeAdapter

from assay_capture import Capture
from assay_schema.events import AnswerEvent, Event, FeedbackEvent, RetrievalEvent
from assay_schema.settings import Settings
from tests.support.redis import RedisServer

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
NOWHERE = "redis://127.0.0.1:1/0"


class Evil:
    """Raises from everything a careless library might call."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("evil")

    __str__ = __repr__ = __bool__ = __len__ = __iter__ = __eq__ = __hash__ = __getattr__ = _raise  # type: ignore[assignment]


HOSTILE = {
    "none": None,
    "number": 5,
    "NaN": math.nan,
    "bytes": b"\xff",
    "lone surrogate": "\ud83d",
    "10 MB of text": "x" * 10_000_000,
    "evil object": Evil(),
    "evil class": Evil,
    "generator": (i for i in range(2)),
    "cycle": (lambda loop: loop.append(loop) or loop)([]),
}
RETRIEVAL = {"tool_name": "query", "query": "q", "retrieved_slugs": [], "retrieved_chunk_ids": [], "latency_ms": 1.0}
RETRIEVAL_FIELDS = [
    *RETRIEVAL, "source_ids", "expand_enabled", "detail", "vector_enabled", "job_id", "retrieved_scores", "embedding_model",
    "params", "retrieved_ids", "passages", "user_hash", "project", "occurred_at",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
def test_no_field_of_a_retrieval_can_make_the_call_raise(value: str, make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")
    for field in RETRIEVAL_FIELDS:
        capture.retrieval(**{**RETRIEVAL, field: HOSTILE[value]})
    stats = capture.stats()
    assert stats.captured == len(RETRIEVAL_FIELDS)
    assert stats.captured == stats.queue_entries + sum(stats.dropped.values())
    assert set(stats.dropped) <= {"unserialisable", "too_large"}


@pytest.mark.parametrize("value", HOSTILE)
def test_no_field_of_an_answer_or_feedback_can_make_the_call_raise(value: str, make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")
    answer: dict[str, Any] = {"query": "q", "answer": "a", "model": "m", "latency_ms": 1.0}
    for field in [*answer, "contexts", "citations", "retrieval_event_id"]:
        capture.answer(**{**answer, field: HOSTILE[value]})
    feedback: dict[str, Any] = {"target_event_id": "x", "verdict": "positive"}
    for field in [*feedback, "text", "user_hash"]:
        capture.feedback(**{**feedback, field: HOSTILE[value]})
    assert capture.stats().captured == 7 + 4


@pytest.mark.parametrize(
    ("method", "fields", "place"),
    [
        ("retrieval", {**RETRIEVAL, "query": "secret \ud83d"}, "unserialisable.*in retrieval.query"),
        ("retrieval", {**RETRIEVAL, "params": {"a": b"secret"}}, "unserialisable.*in retrieval.params"),
        ("answer", {"query": "q", "answer": "secret" * 300_000, "model": "m", "latency_ms": 1.0}, "too_large.*in answer.answer"),
        ("retrieval", {**RETRIEVAL, "query": "s" * 500_000, "params": {"a": "s" * 600_000}}, "too_large.*in retrieval.params"),
        ("tool_call", {"tool_name": "t", "duration_ms": 1, "args_summary": {"a": b"x"}, "call_id": b"secret"}, ".*in tool_call.call_id"),
        ("retrieval", {**RETRIEVAL, "occurred_at": b"secret"}, "unserialisable.*in retrieval.occurred_at"),
    ],
)  # fmt: skip
def test_the_log_names_the_kind_and_the_field_of_the_first_event_that_is_dropped(
    method: str,
    fields: dict[str, Any],
    place: str,
    make_capture: Any,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="assay_capture")
    capture: Capture = make_capture(NOWHERE, durability="memory")
    getattr(capture, method)(**fields)
    eventually(lambda: "dropping" in caplog.text, lambda: caplog.text)
    assert re.search(f"dropping events .{place}$", caplog.text, re.MULTILINE)
    assert "secret" not in caplog.text


def test_drops_are_counted_by_reason_and_logged_once_a_reason_without_content(
    make_capture: Any, retrieve: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="assay_capture")
    capture: Capture = make_capture(NOWHERE, durability="memory")
    for _ in range(3):
        retrieve(capture, "secret \ud83d")
        retrieve(capture, "secret" * 1_000_000)

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if "dropping" in record.getMessage()]

    eventually(lambda: len(logged()) >= 2, logged)
    assert capture.stats().dropped == {"unserialisable": 3, "too_large": 3}
    capture.close(0)
    assert len(logged()) == 2
    assert "secret" not in caplog.text


def test_every_event_of_every_form_keeps_the_contract(
    make_capture: Any, redis_server: RedisServer, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, project="team-a")
    switches = itertools.product(
        ["query", "search"], [None, True, False], [None, "low", "medium", "high"], [True, False]
    )
    for tool, expand, detail, on in switches:
        capture.retrieval(
            tool_name=tool,  # type: ignore[arg-type]
            query="how?",
            retrieved_slugs=("a", "b", "a"),
            retrieved_chunk_ids=[3, 1, 3],
            source_ids={"wiki"},
            expand_enabled=expand,
            detail=detail,  # type: ignore[arg-type]
            detail_resolved=detail,  # type: ignore[arg-type]
            vector_enabled=on,
            expansion_applied=on,
            latency_ms=12.5,
            remote=on,
            job_id=4,
            subagent_id=5,
            retrieved_scores=[0.5, 0.4, 0.3],
            embedding_model="e5",
            params={"top_k": 3, "nested": {"deep": [1]}},
        )
    first = capture.retrieval(tool_name="query", query="q", retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=0)
    with capture.retrieving(tool_name="query", query="q") as block:
        block.result(slugs=["a"], chunk_ids=[1])
    answer = capture.answer(
        query="q",
        answer="a",
        model="m",
        latency_ms=3.5,
        contexts=[{"id": "a#1", "source_id": "wiki", "text": "t", "score": 0.5}, {"id": "b", "text": "u"}],
        citations=[{"context_id": "a#1", "claim": "c"}, {"context_id": "b"}],
        retrieval_event_id=first,
    )
    capture.feedback(target_event_id=answer, verdict="negative", text="wrong", user_hash="u1", project="team-b")
    assert capture.flush(60)
    events = [EVENT.validate_python(EVENT.dump_python(EVENT.validate_json(raw))) for raw in _raw(redis_server)]
    assert len(events) == 48 + 4
    assert [type(event) for event in events[-4:]] == [RetrievalEvent, RetrievalEvent, AnswerEvent, FeedbackEvent]
    assert {event.project for event in events[:-1]} == {"team-a"}
    assert {event.service for event in events} == {"tests"}
    assert events[-1].project == "team-b"
    assert (events[0].payload.retrieved_slugs, events[0].payload.retrieved_chunk_ids) == (["a", "b"], [3, 1, 3])
    assert str(events[-2].payload.retrieval_event_id) == first
    assert len({event.event_id for event in events}) == len(events)
    assert [event.event_id for event in events] == sorted(event.event_id for event in events)


def _raw(server: RedisServer) -> list[bytes]:
    with server.client() as client:
        return [fields[b"data"] for _, fields in client.xrange("assay:{0}:capture")]


def test_what_the_caller_changes_afterwards_changes_nothing(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url, flush_interval_ms=200)
    slugs, params = ["a"], {"deep": {"list": [1]}}
    retrieve(capture, retrieved_slugs=slugs, params=params)
    slugs.append("b")
    params["deep"]["list"].append(2)
    capture.flush(60)
    [event] = arrived(redis_server)
    assert (event["payload"]["retrieved_slugs"], event["payload"]["params"]) == (["a"], {"deep": {"list": [1]}})


def test_an_event_carries_the_callers_trace(
    make_capture: Any, redis_server: RedisServer, retrieve: Any, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)
    span = TracerProvider().get_tracer("t").start_span("caller")
    retrieve(capture)
    token = context.attach(trace.set_span_in_context(span))
    try:
        retrieve(capture)
    finally:
        context.detach(token)
    capture.flush(60)
    ids = span.get_span_context()
    without, within = arrived(redis_server)
    assert without["traceparent"] is None
    assert within["traceparent"] == f"00-{ids.trace_id:032x}-{ids.span_id:016x}-{ids.trace_flags:02x}"


# Blocks


def test_a_block_with_a_result_is_captured_with_its_duration_and_a_known_event_id(
    make_capture: Any, redis_server: RedisServer, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)
    with capture.retrieving(tool_name="search", query="q", remote=True, project="p") as block:
        block.result(slugs=["a"], chunk_ids=[1], source_ids=["wiki"], retrieved_scores=[0.5])
    capture.flush(60)
    [event] = arrived(redis_server)
    payload = event["payload"]
    assert (event["event_id"], event["project"]) == (block.event_id, "p")
    assert payload.pop("latency_ms") > 0
    assert payload == {
        "tool_name": "search",
        "query": "q",
        "remote": True,
        "retrieved_slugs": ["a"],
        "retrieved_chunk_ids": [1],
        "source_ids": ["wiki"],
        "retrieved_scores": [0.5],
    }


def test_a_callers_exception_passes_a_block_untouched_and_only_a_result_makes_an_event(make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")
    raised = KeyError("the caller's")
    with pytest.raises(KeyError) as before, capture.retrieving(tool_name="query", query="q"):
        raise raised
    assert before.value is raised
    assert capture.stats().captured == 0
    with pytest.raises(KeyError) as after, capture.retrieving(tool_name="query", query="q") as block:  # noqa: PT012
        block.result(slugs=[], chunk_ids=[])
        raise raised
    assert after.value is raised
    assert (capture.stats().captured, capture.stats().dropped) == (1, {})


def test_a_block_that_forgets_its_result_is_counted(make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")
    with capture.retrieving(tool_name="query", query="q"):
        pass
    assert capture.stats().dropped == {"no_result": 1}


def test_a_block_used_again_captures_another_event_with_what_was_found_then(
    make_capture: Any, redis_server: RedisServer, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)
    block = capture.retrieving(tool_name="query", query="q")
    told = [block.event_id]
    for number in range(3):
        with block:
            told.append(block.event_id)
            if number != 1:
                block.result(slugs=[str(number)], chunk_ids=[], **({"detail": "low"} if number == 0 else {}))
        told.append(block.event_id)
    assert capture.flush(60)
    first, last = arrived(redis_server)
    assert capture.stats().dropped == {"no_result": 1}, "what the first time found is not the second's result"
    assert [first["payload"]["retrieved_slugs"], last["payload"]["retrieved_slugs"]] == [["0"], ["2"]]
    assert (first["payload"]["detail"], last["payload"].get("detail")) == ("low", None)
    assert told[:3] == [first["event_id"]] * 3, "an id holds from the start until the block begins again"
    assert told[-1] == last["event_id"] != first["event_id"]


def test_a_block_within_itself_makes_two_events(make_capture: Any, redis_server: RedisServer, arrived: Any) -> None:
    capture: Capture = make_capture(redis_server.url)
    block = capture.retrieving(tool_name="query", query="q")
    with block:
        with block:
            block.result(slugs=["inner"], chunk_ids=[])
        block.result(slugs=["outer"], chunk_ids=[])
    assert capture.flush(60)
    assert len({event["event_id"] for event in arrived(redis_server)}) == 2


@pytest.mark.parametrize("on", [True, False])
def test_a_misspelt_field_of_a_block_is_a_type_error_as_it_is_of_a_call(on: bool) -> None:
    capture = Capture(Settings(), service="tests", enabled=on)
    with pytest.raises(TypeError, match="retrieved_score;"):
        capture.retrieving(tool_name="query", query="q", retrieved_score=[])  # type: ignore[call-arg]
    block = capture.retrieving(tool_name="query", query="q")
    with pytest.raises(TypeError, match="detial"):
        block.result(slugs=[], chunk_ids=[], detial="low")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="detial"):
        capture.retrieval(**RETRIEVAL, detial="low")  # type: ignore[arg-type]
    capture.close()


async def test_an_async_block_is_captured_and_concurrent_blocks_do_not_mix(
    make_capture: Any, redis_server: RedisServer, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)

    async def search(number: int) -> None:
        async with capture.retrieving(tool_name="query", query=str(number)) as block:
            await asyncio.sleep(0)
            block.result(slugs=[], chunk_ids=[number])

    await asyncio.gather(*(search(number) for number in range(50)))
    assert await capture.aflush(60)
    pairs = {(event["payload"]["query"], event["payload"]["retrieved_chunk_ids"][0]) for event in arrived(redis_server)}
    assert pairs == {(str(number), number) for number in range(50)}
    await capture.aclose()
    assert capture.stats().published + capture.stats().replayed == 50


# Decorated functions


def _described(result: list[int], text: str, *, limit: int) -> dict[str, Any]:
    return {
        "tool_name": "query",
        "query": text,
        "retrieved_slugs": [],
        "retrieved_chunk_ids": result,
        "params": {"limit": limit},
    }


async def test_a_decorated_function_sync_or_async_is_captured_and_otherwise_unchanged(
    make_capture: Any, redis_server: RedisServer, arrived: Any
) -> None:
    capture: Capture = make_capture(redis_server.url)

    @capture.captured_retrieval(describe=_described)
    def search(text: str, *, limit: int) -> list[int]:
        """Finds."""
        return list(range(limit))

    @capture.captured_retrieval(describe=_described)
    async def asearch(text: str, *, limit: int) -> list[int]:
        await asyncio.sleep(0)
        return list(range(limit))

    assert (search.__name__, search.__doc__) == ("search", "Finds.")
    assert search("a", limit=2) == [0, 1]
    assert await asearch("b", limit=3) == [0, 1, 2]
    await capture.aflush(60)
    payloads = [event["payload"] for event in arrived(redis_server)]
    assert [(p["query"], p["retrieved_chunk_ids"], p["params"]) for p in payloads] == [
        ("a", [0, 1], {"limit": 2}),
        ("b", [0, 1, 2], {"limit": 3}),
    ]
    assert all(p["latency_ms"] > 0 for p in payloads)


async def test_what_a_decorated_function_raises_passes_through_and_is_not_captured(make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")

    @capture.captured_retrieval(describe=_described)
    def search() -> None:
        raise KeyError

    @capture.captured_retrieval(describe=_described)
    async def asearch() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        search()
    with pytest.raises(KeyError):
        await asearch()
    assert capture.stats().captured == 0


def _raises(_: str) -> dict[str, Any]:
    raise RuntimeError


def _takes_too_little() -> dict[str, Any]:
    return {}


def _says_nothing(_: str) -> None:
    return None


def _forgets(_: str) -> dict[str, Any]:
    return {"tool_name": "query", "query": "q", "retrieved_slugs": []}


def _misspells(_: str) -> dict[str, Any]:
    return {**_described([], "q", limit=1), "retrieved_score": []}


@pytest.mark.parametrize(
    ("describe", "told"),
    [
        (_raises, "it raised "),
        (_takes_too_little, "it raised TypeError"),
        (_says_nothing, "it raised TypeError"),
        (_forgets, "it did not return retrieved_chunk_ids"),
        (_misspells, "it returned 1 unknown field(s)"),
    ],
)
def test_a_describe_that_fails_is_counted_and_logged_and_the_caller_notices_nothing(
    describe: Any, told: str, make_capture: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")

    @capture.captured_retrieval(describe=describe)
    def search() -> str:
        return "found"

    assert search() == "found"
    assert capture.stats().dropped == {"describe_failed": 1}
    eventually(lambda: told in caplog.text, lambda: caplog.text)
    assert "retrieved_score" not in caplog.text.replace("retrieved_scores", "")


def test_a_result_that_is_an_iterator_reaches_the_caller_whole_and_is_counted(
    make_capture: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")

    @capture.captured_retrieval(describe=lambda hits: _described(list(hits), "q", limit=1))
    def search() -> Iterator[str]:
        return iter(["a", "b"])

    @capture.captured_retrieval(describe=lambda hits: _described(list(hits), "q", limit=1))
    async def stream() -> AsyncIterator[str]:
        async def hits() -> AsyncIterator[str]:
            yield "a"

        return hits()

    async def streamed() -> list[str]:
        return [hit async for hit in await stream()]

    assert list(search()) == ["a", "b"]
    assert asyncio.run(streamed()) == ["a"]
    assert capture.stats().dropped == {"describe_failed": 2}
    eventually(lambda: "returned an iterator" in caplog.text, lambda: caplog.text)


def test_a_generator_function_is_refused_when_it_is_decorated(make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")

    def hits() -> Iterator[str]:
        yield "a"

    async def more() -> AsyncIterator[str]:
        yield "a"

    for function in (hits, more):
        with pytest.raises(TypeError, match="cannot decorate a generator"):
            capture.captured_retrieval(describe=_described)(function)


@pytest.mark.parametrize(("value", "warned"), [("true", True), ("yes", True), ("0", False), ("", False), ("1", False)])
def test_a_switch_that_is_set_to_something_else_than_1_is_named_in_the_log(
    value: str, warned: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    capture = Capture.from_env(environment={"ASSAY_CAPTURE": value, "ASSAY_REDIS_URL": NOWHERE})
    try:
        assert capture.enabled == (value == "1")
        assert ("ASSAY_CAPTURE=1" in caplog.text) is warned
    finally:
        capture.close(0)


def test_events_after_close_are_dropped_and_counted(make_capture: Any, retrieve: Any) -> None:
    capture: Capture = make_capture(NOWHERE)
    capture.close(0)
    retrieve(capture)
    assert (capture.stats().captured, capture.stats().dropped) == (1, {"closed": 1})
