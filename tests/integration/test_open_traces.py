"""Open traces in this process, on a real Redis: stale knowledge, bugs in mapping, many traces at once."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_assembler.open_traces import GROUP, OpenTraces
from assay_assembler.span import Span, SpanEvent
from assay_assembler.trace import Trace
from assay_operations.dead_letters.letters import DeadLetter
from assay_runtime.connection import Client, connect
from assay_runtime.dead_letters import Move, letters, requeue
from assay_schema.settings import AssemblerSettings, RedisSettings
from assay_schema.streams import (
    DEAD,
    FAILURES,
    FIELD,
    SPANS,
    answer_of_response_key,
    answer_of_trace_key,
    open_bytes_key,
    open_traces_key,
)
from tests.chaos.clocks import Clock, missing
from tests.support.assembler import AGENT, CHAT, RETRIEVAL, TOOL, append, captured, entry, kinds, take
from tests.support.gateway import redis_with_identities
from tests.support.redis import RedisServer
from tests.support.span_trees import EARLY, not_once, random_batches, random_spans
from tests.support.spans import TRACE, span

SECRET = "jane.doe@example.com"
#: Everything is due at once.
AT_ONCE = AssemblerSettings(grace_s=0, idle_s=0.0001)
SAID = span(CHAT, number=5, start_ms=100, end_ms=700)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    running = redis_with_identities(tmp_path_factory.mktemp("open-traces"))
    yield running
    running.stop()


@pytest.fixture
def redis(server: RedisServer) -> RedisServer:
    with server.client() as client:
        client.flushall()
        client.xgroup_create(SPANS.key(), GROUP, id="0", mkstream=True)
    return server


def with_assemblers(
    redis: RedisServer,
    test: Callable[[Client, OpenTraces, OpenTraces], Coroutine[Any, Any, None]],
    dead_bytes: int = 2**20,
    settings: AssemblerSettings = AT_ONCE,
) -> None:
    """Run a test with two assemblers that know of each other through Redis only."""

    async def run() -> None:
        address = RedisSettings(url=f"redis://assembler:assembler-password@127.0.0.1:{redis.port}/0")
        client = connect(address)
        try:
            await test(client, *[OpenTraces(client, settings, 0, dead_bytes) for _ in range(2)])
        finally:
            await client.aclose()

    asyncio.run(run())


def open_now(redis: RedisServer) -> list[tuple[bytes, float]]:
    """Return the keys of the open traces, and when they close."""
    with redis.client() as client:
        return list(client.zrange(open_traces_key(), 0, -1, withscores=True))


async def requeue_all(redis: RedisServer) -> None:
    """Requeue all dead letters, as `assay dead requeue --all` does."""
    client = connect(RedisSettings(url=redis.url))
    try:
        async for page in letters(client, 0):
            found = [DeadLetter.of(0, *each) for each in page]
            assert all(await requeue(client, 0, [Move(each.id, *each.requeued()) for each in found]))
    finally:
        await client.aclose()


def test_a_trace_that_another_replica_closed_meanwhile_is_not_taken_for_the_one_that_is_known(
    redis: RedisServer,
) -> None:
    async def test(client: Client, stale: OpenTraces, other: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, stale) == 1
        await other.close_due()
        append(redis, entry(span(CHAT, number=6, start_ms=800, end_ms=900)))
        assert await take(client, other) == 1  # again one entry: late, and another one
        append(redis, entry(span(CHAT, number=7, start_ms=910, end_ms=950)))
        assert await take(client, stale) == 1
        await stale.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 3


def test_a_trace_that_cannot_be_assembled_is_a_failure_and_stops_no_other(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, bad = Trace.close, "b" * 32

    def raising(trace: Trace) -> Any:
        if trace._envelope.trace_id == bad:
            raise RuntimeError(SECRET)
        return close(trace)

    monkeypatch.setattr(Trace, "close", raising)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID._replace(trace_id=bad), trace=bad), entry(SAID))
        assert await take(client, one) == 2
        await one.close_due()
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        ((_, fields),) = client.xrange(FAILURES.key())
        failure = orjson.loads(fields[FIELD.encode()])
        assert (failure["project"], failure["error_class"]) == ("shop", "RuntimeError")
        assert failure["entry_id"]
        assert SECRET not in str(failure)
        assert (client.zcard(open_traces_key()), client.get(open_bytes_key())) == (0, b"0")


def test_the_spans_of_a_trace_that_cannot_be_assembled_can_be_requeued(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(_: Trace) -> Any:
        raise RuntimeError(SECRET)

    early = span(CHAT, number=4, start_ms=10, end_ms=90)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Trace, "close", raising)
            append(redis, entry(SAID), entry(early))
            assert await take(client, one) == 2
            await one.close_due()
        assert kinds(redis)["answer"] == 0
        await requeue_all(redis)
        assert await take(client, one) == 2
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 2
    with redis.client() as client:
        assert (client.xlen(DEAD.key()), client.xlen(FAILURES.key()), client.xlen(SPANS.key())) == (0, 1, 0)


def test_without_room_for_dead_letters_a_broken_trace_stays_open_behind_the_others(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def raising(_: Trace) -> Any:
        raise RuntimeError(SECRET)

    with redis.client() as client:
        client.xadd(DEAD.key(), {FIELD: b"x"})

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, one) == 1
        ((key, due),) = open_now(redis)
        with monkeypatch.context() as broken:
            broken.setattr(Trace, "close", raising)
            await one.close_due()
        ((_, later),) = open_now(redis)
        assert 59_000 < later - due < 120_000
        await client.zadd(open_traces_key(), {key: due})
        await one.close_due()

    with_assemblers(redis, test, dead_bytes=1)
    assert "delivery.dead_bytes" in caplog.text
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        assert (client.exists(FAILURES.key()), client.get(open_bytes_key())) == (0, b"0")


def test_spans_that_cannot_be_mapped_are_a_failure_and_stop_no_other(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Trace.add

    def raising(trace: Trace, one: Any) -> None:
        if one.span_id == "0" * 15 + "9":
            raise RuntimeError(SECRET)
        add(trace, one)

    monkeypatch.setattr(Trace, "add", raising)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID), entry(span(CHAT, number=9)))
        assert await take(client, one) == 2
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == 1
    with redis.client() as client:
        assert client.xlen(FAILURES.key()) == 1
        assert client.xlen(SPANS.key()) == 0
        assert SECRET not in str(client.xrange(FAILURES.key()))
    monkeypatch.undo()

    async def after_the_mend(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        await requeue_all(redis)
        assert await take(client, one) == 1
        await one.close_due()

    with_assemblers(redis, after_the_mend)
    assert kinds(redis)["answer"] == 2


def test_without_room_for_dead_letters_spans_that_cannot_be_mapped_stay_in_their_stream(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(_: Trace, __: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Trace, "add", raising)
    with redis.client() as client:
        client.xadd(DEAD.key(), {FIELD: b"x"})

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, one) == 0

    with_assemblers(redis, test, dead_bytes=1)
    with redis.client() as client:
        assert (client.xlen(SPANS.key()), client.xpending(SPANS.key(), GROUP)["pending"]) == (1, 1)
        assert (client.xlen(DEAD.key()), client.exists(FAILURES.key())) == (1, 0)


def test_all_traces_that_are_due_close_in_one_tick(redis: RedisServer) -> None:
    traces = [f"{number:032x}" for number in range(1, 251)]

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, *[entry(SAID._replace(trace_id=trace), trace=trace) for trace in traces])
        assert await take(client, one) == len(traces)
        await one.close_due()

    with_assemblers(redis, test)
    assert kinds(redis)["answer"] == len(traces)


def answer_ids(redis: RedisServer) -> list[str]:
    """Return the event ids of the captured answers in their order."""
    return [each["event_id"] for each in captured(redis) if each["kind"] == "answer"]


def known_answer(redis: RedisServer, key: str) -> str:
    with redis.client() as client:
        found = client.get(key)
    return found.decode() if found else ""


#: A model call whose agent's span has not come.
CALLED = span(CHAT | {"gen_ai.response.id": "resp-1"}, number=3, parent=2, start_ms=20, end_ms=80)
#: That agent, as the first span of its trace.
ASKED = span(AGENT | {name: CHAT[name] for name in CHAT if "messages" in name}, number=2, end_ms=90)


def test_an_answer_is_known_by_its_trace_and_by_its_response_for_a_week(redis: RedisServer) -> None:
    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(CALLED))
        assert await take(client, one) == 1
        assert known_answer(redis, answer_of_trace_key(0, "shop", TRACE)) == ""
        await one.close_due()

    with_assemblers(redis, test)
    (answer,) = answer_ids(redis)
    with redis.client() as client:
        for key in (answer_of_trace_key(0, "shop", TRACE), answer_of_response_key(0, "shop", "resp-1")):
            assert known_answer(redis, key) == answer
            assert 604_700 < client.ttl(key) <= 604_800
        assert not client.exists(answer_of_trace_key(0, "other", TRACE), answer_of_response_key(0, "other", "resp-1"))


@pytest.mark.parametrize(
    ("late", "replaces"),
    [
        (ASKED, True),
        (ASKED._replace(span_id="0" * 15 + "7", parent_id="0" * 15 + "6"), True),
        (span(CHAT, number=8, parent=2, start_ms=85, end_ms=88), True),
        (span({"http.route": "/ask"}, number=9), False),
    ],
    ids=["its agent", "an agent elsewhere", "the next call", "no answer"],
)
def test_a_trace_that_closes_again_has_the_answer_nearest_to_its_first_span(
    redis: RedisServer, late: Any, replaces: bool
) -> None:
    async def test(client: Client, one: OpenTraces, other: OpenTraces) -> None:
        for assembler, each in ((one, CALLED), (other, late), (one, late)):
            append(redis, entry(each))
            assert await take(client, assembler) == 1
            await assembler.close_due()

    with_assemblers(redis, test)
    answers = answer_ids(redis)
    assert len(answers) == 1 + replaces
    assert known_answer(redis, answer_of_trace_key(0, "shop", TRACE)) == answers[-1]
    assert known_answer(redis, answer_of_response_key(0, "shop", "resp-1")) == answers[0]


def test_a_late_model_call_does_not_replace_the_answer_of_the_agent_around_it(redis: RedisServer) -> None:
    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        for each in (ASKED, CALLED):
            append(redis, entry(each))
            assert await take(client, one) == 1
            await one.close_due()

    with_assemblers(redis, test)
    agent, call = answer_ids(redis)
    assert known_answer(redis, answer_of_trace_key(0, "shop", TRACE)) == agent
    assert known_answer(redis, answer_of_response_key(0, "shop", "resp-1")) == call


def test_a_response_id_that_repeats_means_the_newest_answer_with_it(redis: RedisServer) -> None:
    other = CALLED._replace(trace_id="d" * 32)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        for each in (CALLED, other):
            append(redis, entry(each, trace=each.trace_id))
            assert await take(client, one) == 1
            await one.close_due()

    with_assemblers(redis, test)
    assert known_answer(redis, answer_of_response_key(0, "shop", "resp-1")) == answer_ids(redis)[1]


def test_an_evaluation_in_another_trace_finds_its_answer_by_the_response(redis: RedisServer) -> None:
    said = {"gen_ai.evaluation.name": "thumbs", "gen_ai.evaluation.score.label": "good"}
    events = (SpanEvent("gen_ai.evaluation.result", said | {"gen_ai.response.id": "resp-1"}),)
    judged = span({"gen_ai.operation.name": "evaluate"}, number=1, trace="c" * 32, events=events)

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        for each in (CALLED, judged):
            append(redis, entry(each, trace=each.trace_id))
            assert await take(client, one) == 1
            await one.close_due()

    with_assemblers(
        redis, test, settings=AssemblerSettings(grace_s=0, idle_s=0.0001, feedback_names={"shop": ["thumbs"]})
    )
    (verdict,) = [each for each in captured(redis) if each["kind"] == "feedback"]
    assert [verdict["payload"]["target_event_id"]] == answer_ids(redis)


HOUR_S = 3_600
#: The spans of a trace, in the order in which two exporters send them. They end in a retrieval, a tool call and an answer.
SPREAD = (
    span(RETRIEVAL, number=3, parent=2, start_ms=10, end_ms=50),
    span(TOOL, number=4, parent=2, start_ms=60, end_ms=90),
    span(CHAT, number=5, parent=2, start_ms=100, end_ms=700),
    span(AGENT, number=2, parent=1, end_ms=800),
    span({"http.route": "/ask"}, number=1, end_ms=900),
)
WHOLE = Counter(retrieval=1, tool_call=1, answer=1)


class Killed(BaseException):
    """The process ended: nothing in it catches this."""


def dying(client: Client, commands: int, *, answered: bool) -> None:
    """Let a client end its process with a command: before Redis has it, or after, so that the reply is lost."""
    execute, left = client.execute_command, commands

    async def execute_command(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0 and not answered:
            raise Killed
        reply = await execute(*arguments, **options)
        if left < 0:
            raise Killed
        return reply

    client.execute_command = execute_command


@pytest.mark.parametrize("answered", [False, True], ids=["command lost", "reply lost"])
def test_a_kill_at_any_command_loses_nothing_and_repeats_nothing(redis: RedisServer, answered: bool) -> None:
    kills = 0
    unsent: list[Span] = []

    async def work(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        for _step in SPREAD:
            if unsent:
                append(redis, entry(unsent.pop(0)))  # once: nothing is repeated from outside
            await take(client, one, pending=True)
            await take(client, one)
        await one.close_due()

    async def killed_at(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        dying(client, kills, answered=answered)
        await work(client, one, one)

    while True:
        unsent[:] = SPREAD
        with redis.client() as client:
            client.flushall()
            client.xgroup_create(SPANS.key(), GROUP, id="0", mkstream=True)
        try:
            with_assemblers(redis, killed_at, settings=AssemblerSettings(grace_s=0))
        except Killed:
            kills += 1
        else:
            break
        with_assemblers(redis, work, settings=AssemblerSettings(grace_s=0))
        assert kinds(redis) == WHOLE, f"after a kill at command {kills}"
        with redis.client() as client:
            assert (client.xlen(SPANS.key()), client.zcard(open_traces_key())) == (0, 0)
    assert kinds(redis) == WHOLE
    assert kills >= 20


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_clock_that_jumps_by_an_hour_loses_nothing_and_holds_no_trace_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_s: int, after: int
) -> None:
    clock = Clock(tmp_path, "redis")
    with monkeypatch.context() as preloaded:
        for name, value in clock.environment.items():
            preloaded.setenv(name, value)
        redis = redis_with_identities(tmp_path)
    try:
        with redis.client() as client:
            client.xgroup_create(SPANS.key(), GROUP, id="0", mkstream=True)

        async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
            for place, each in enumerate(SPREAD, start=1):
                append(redis, entry(each))
                assert await take(client, one) == 1
                if place == after:
                    clock.step(by_s)
                    await one.close_due()  # may close it early if the clock jumped ahead
            clock.step(by_s + 61)
            await one.close_due()
            assert open_now(redis) == []

        with_assemblers(redis, test, settings=AssemblerSettings())
        assert kinds(redis) == WHOLE
    finally:
        redis.stop()


def test_assemblers_that_take_the_spans_of_the_same_traces_at_once_make_each_event_once(redis: RedisServer) -> None:
    traces = [f"{number:032x}" for number in range(1, 13)]
    sent = [(trace, each) for trace in traces for each in SPREAD]
    random.Random(5).shuffle(sent)

    async def test(client: Client, *assemblers: OpenTraces) -> None:
        for place in range(0, len(sent), 6):
            append(
                redis, *[entry(each._replace(trace_id=trace), trace=trace) for trace, each in sent[place : place + 6]]
            )
            await asyncio.gather(*[take(client, each, count=3) for each in assemblers])
        with redis.client() as looking:
            assert looking.xlen(SPANS.key()) == 0
        for key, _ in open_now(redis):
            await client.zadd(open_traces_key(), {key: 0})
        await asyncio.gather(*[each.close_due() for each in assemblers])

    with_assemblers(redis, test, settings=AssemblerSettings())
    assert kinds(redis) == Counter({kind: len(traces) for kind in WHOLE})
    with redis.client() as client:
        assert (client.zcard(open_traces_key()), client.get(open_bytes_key())) == (0, b"0")


def test_two_projects_may_use_the_same_trace_id(redis: RedisServer) -> None:
    async def test(client: Client, one: OpenTraces, other: OpenTraces) -> None:
        for place, each in enumerate(SPREAD):
            append(redis, entry(each), entry(each, project="other"))
            assert await take(client, (one, other)[place % 2]) == 2
        await one.close_due()

    with_assemblers(redis, test)
    found = captured(redis)
    assert len({each["event_id"] for each in found}) == len(found)
    for project in ("shop", "other"):
        own = [each for each in found if each["project"] == project]
        assert Counter(each["kind"] for each in own) == WHOLE
        (answer,) = [each["event_id"] for each in own if each["kind"] == "answer"]
        assert known_answer(redis, answer_of_trace_key(0, project, TRACE)) == answer


def test_a_call_is_one_event_on_restarted_assemblers_that_share_the_spans_of_random_trees(redis: RedisServer) -> None:
    choose = random.Random(16)
    trees = {trace: random_spans(choose, trace) for trace in [f"{number:032x}" for number in range(1, 301)]}
    left = {trace: list(random_batches(choose, spans)) for trace, spans in trees.items()}

    async def test(client: Client, *assemblers: OpenTraces) -> None:
        sharing = list(assemblers)
        while left:
            for trace in list(left):
                append(redis, entry(*left[trace].pop(0), trace=trace))
                if not left[trace]:
                    del left[trace]
            for place, each in enumerate(sharing):
                await take(client, each, count=len(trees) if place else len(trees) // 2)
            choose.shuffle(sharing)
            if choose.random() < 0.5:
                sharing[0] = OpenTraces(client, AssemblerSettings(), 0, 2**20)  # it knows nothing
        for key, _ in open_now(redis):
            await client.zadd(open_traces_key(), {key: 0})
        await sharing[-1].close_due()

    with_assemblers(redis, test, settings=AssemblerSettings())
    sent: dict[str, list[str]] = {trace: [] for trace in trees}
    for each in captured(redis):
        if each["kind"] in EARLY:
            sent[each["traceparent"].split("-")[1]].append(each["event_id"])
    assert sum(map(len, sent.values())) > len(trees)
    for trace, spans in trees.items():
        assert not_once("shop", spans, sent[trace]) == [], f"trace {trace}: {spans}"


NESTED = span(TOOL, number=9, parent=4, start_ms=65, end_ms=85)


@pytest.mark.parametrize("again", [[NESTED], [SPREAD[1], NESTED], [NESTED, span(CHAT, number=5, parent=2)]])
def test_spans_that_are_sent_again_after_their_trace_closed_add_no_event(redis: RedisServer, again: list[Span]) -> None:
    async def test(client: Client, one: OpenTraces, other: OpenTraces) -> None:
        append(redis, entry(*SPREAD, NESTED))
        assert await take(client, one) == 1
        await one.close_due()
        append(redis, entry(*again))
        assert await take(client, other) == 1
        await other.close_due()
        assert open_now(redis) == []

    with_assemblers(redis, test, settings=AssemblerSettings(grace_s=0, idle_s=0.0001))
    assert kinds(redis) == WHOLE


def test_a_late_span_is_an_event_with_the_settings_of_its_project(redis: RedisServer) -> None:
    settings = AssemblerSettings(grace_s=0, idle_s=0.0001, retrieval_tools={"shop": ["get_*"]})
    more = {"gen_ai.tool.call.result": '[{"id": "1", "text": "one"}]', "gen_ai.tool.call.arguments": '{"query": "q"}'}

    async def test(client: Client, one: OpenTraces, _: OpenTraces) -> None:
        append(redis, entry(SAID))
        assert await take(client, one) == 1
        await one.close_due()
        append(redis, entry(span(TOOL | more, number=8, parent=5)))
        assert await take(client, one) == 1
        await one.close_due()

    with_assemblers(redis, test, settings=settings)
    assert kinds(redis) == WHOLE
