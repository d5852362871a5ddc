"""Tool calls and tool servers: what events they make, and that the tool's own behaviour is unchanged."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from assay_capture import Capture
from assay_capture.tool_block import ToolBlock, outcome_of
from assay_schema.event_file import FIELDS
from assay_schema.events import Event
from assay_schema.settings import Settings
from tests.support.redis import RedisServer

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
NOWHERE = "redis://127.0.0.1:1/0"


class Evil:
    """Raises from everything a careless library might call."""

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("evil")

    __str__ = __repr__ = __bool__ = __len__ = __iter__ = __eq__ = __hash__ = __getattr__ = _raise  # type: ignore[assignment]


@pytest.fixture
def capture(make_capture: Any, redis_server: RedisServer) -> Capture:
    made: Capture = make_capture(redis_server.url)
    return made


@pytest.fixture
def events(capture: Capture, redis_server: RedisServer, arrived: Any) -> Callable[[], list[dict[str, Any]]]:
    """The events that have arrived, each accepted by the contract."""

    def read() -> list[dict[str, Any]]:
        assert capture.flush(60)
        assert capture.stats().dropped == {}
        found = arrived(redis_server)
        for event in found:
            EVENT.validate_json(orjson.dumps(event))
        return list(found)

    return read


@pytest.fixture
def only(events: Any) -> Callable[[], dict[str, Any]]:
    def read() -> dict[str, Any]:
        [event] = events()
        payload: dict[str, Any] = event["payload"]
        return payload

    return read


def test_a_tool_call_has_the_eleven_fields_in_order_and_one_time(capture: Capture, events: Any) -> None:
    when = datetime(2026, 5, 17, 14, 32, 7, 114523, tzinfo=UTC)
    event_id = capture.tool_call(
        tool_name="find_relevant_tables",
        args_summary={"query": "customer churn"},
        result_summary={"matches": 3},
        duration_ms=47.3,
        call_id="7",
        agent_name="planner",
        parent_call_id="6",
        exit_code=0,
        session_id="chat-1",
        project="help",
        occurred_at=when,
    )
    [event] = events()
    assert list(event["payload"])[:11] == list(FIELDS)
    assert event["payload"] == {
        "timestamp": "2026-05-17T14:32:07.114523Z",
        "server_session_id": capture.server_session_id,
        "kind": "tool_call",
        "tool_name": "find_relevant_tables",
        "args_summary": {"query": "customer churn"},
        "status": "success",
        "error_kind": None,
        "duration_ms": 47.3,
        "result_summary": {"matches": 3},
        "event_subtype": None,
        "message": None,
        "call_id": "7",
        "agent_name": "planner",
        "parent_call_id": "6",
        "exit_code": 0,
        "seq": 0,
    }
    envelope = {name: event[name] for name in ("event_id", "kind", "project", "session_id", "occurred_at")}
    assert envelope == {
        "event_id": event_id,
        "kind": "tool_call",
        "project": "help",
        "session_id": "chat-1",
        "occurred_at": "2026-05-17T14:32:07.114523Z",
    }


def test_a_call_without_occurred_at_has_the_same_time_in_envelope_and_payload(capture: Capture, events: Any) -> None:
    capture.tool_call(tool_name="t", duration_ms=1)
    capture.server_event(event_subtype="events_path_init", message="m")
    assert [event["payload"]["timestamp"] == event["occurred_at"] for event in events()] == [True, True]


# Statuses


@pytest.mark.parametrize("status", ["success", "empty", "partial", "degraded", "error", "refused"])
def test_the_status_of_an_envelope_is_used(status: str, capture: Capture, only: Any) -> None:
    with capture.calling_tool("t") as call:
        call.result({"status": status, "error": {"kind": "pii_blocked", "message": "secret"}})
    payload = only()
    # An error kind beside another status would make the event invalid.
    assert (payload["status"], payload["error_kind"]) == (
        status,
        "pii_blocked" if status in ("error", "refused") else None,
    )


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, ("success", None)),
        (3, ("success", None)),
        ("error", ("success", None)),
        ({"status": 200}, ("success", None)),
        ({"status": "ok"}, ("success", None)),
        ({"status": ["error"]}, ("success", None)),
        ({"status": "error"}, ("error", None)),
        ({"status": "error", "error": None}, ("error", None)),
        ({"status": "error", "error": "unknown_name"}, ("error", "unknown_name")),
        ({"status": "error", "error": {"kind": 7}}, ("error", None)),
        (SimpleNamespace(status="refused", error=SimpleNamespace(kind="policy_blocked")), ("refused", "policy_blocked")),
        (SimpleNamespace(status="empty"), ("empty", None)),
        pytest.param(Evil(), ("success", None), id="evil"),
    ],
)  # fmt: skip
def test_an_outcome_is_read_from_any_result(result: Any, expected: tuple[str, str | None]) -> None:
    assert tuple(outcome_of(result)) == expected


def test_what_result_is_told_wins_over_the_envelope(capture: Capture, events: Any) -> None:
    with capture.calling_tool("a") as call:
        call.result({"status": "success"}, status="refused", error_kind="cost_cap_exceeded", summary={"rows": 1})
    with capture.calling_tool("b") as call:
        call.result(exit_code=2)
    with capture.calling_tool("c") as call:
        call.result(exit_code=0)
    with capture.calling_tool("d"):
        pass
    shown = [event["payload"] for event in events()]
    assert [(p["tool_name"], p["status"], p["error_kind"], p["exit_code"], p["result_summary"]) for p in shown] == [
        ("a", "refused", "cost_cap_exceeded", None, {"rows": 1}),
        ("b", "error", "exit_code", 2, {}),
        ("c", "success", None, 0, {}),
        ("d", "success", None, None, {}),
    ]


# Exceptions and cancellation


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OwnError("secret text"), "OwnError"),
        (TimeoutError(), "timeout"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (SystemExit(3), "SystemExit"),
        (GeneratorExit(), "GeneratorExit"),
    ],
)
def test_a_tool_that_raises_is_one_event_and_its_exception_passes_unchanged(
    error: BaseException, kind: str, capture: Capture, only: Any
) -> None:
    @capture.captured_tool()
    def tool() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        tool()
    assert caught.value is error
    payload = only()
    assert (payload["tool_name"], payload["status"], payload["error_kind"]) == ("tool", "error", kind)
    assert "secret text" not in str(payload)


async def test_a_coroutine_that_is_cancelled_is_one_event(capture: Capture, only: Any) -> None:
    started = asyncio.Event()

    @capture.captured_tool("slow")
    async def tool(place: str) -> None:
        started.set()
        await asyncio.sleep(3600)

    task = asyncio.ensure_future(tool(place="x"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    payload = only()
    assert (payload["tool_name"], payload["status"], payload["error_kind"]) == ("slow", "error", "cancelled")
    assert payload["args_summary"] == {"place": "x"}


async def test_async_blocks_and_functions_are_captured(capture: Capture, events: Any) -> None:
    @capture.captured_tool(describe=lambda result: {"matches": len(result["data"])})
    async def find(text: str, *, limit: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"status": "partial", "data": [text] * limit}

    assert await find("a", limit=2) == {"status": "partial", "data": ["a", "a"]}
    async with capture.calling_tool("block", ["positional", 2]) as call:
        call.result({"status": "empty"})
    first, second = (event["payload"] for event in events())
    assert (first["status"], first["result_summary"]) == ("partial", {"matches": 2})
    assert first["args_summary"] == {"__args": ["a"], "limit": 2}
    assert (second["status"], second["args_summary"]) == ("empty", {"__args": ["positional", 2]})
    assert first["duration_ms"] >= 0


# Arguments


def test_a_method_is_captured_without_its_object(capture: Capture, only: Any) -> None:
    class Tools:
        @capture.captured_tool()
        def find(self, text: str) -> str:
            return text

    assert Tools().find("x") == "x"
    assert only()["args_summary"] == {"__args": ["x"]}


def test_arguments_are_those_of_the_call_even_if_the_tool_changes_them(capture: Capture, only: Any) -> None:
    @capture.captured_tool()
    def tool(options: dict[str, int]) -> None:
        options.clear()

    tool({"limit": 3})
    assert only()["args_summary"] == {"__args": [{"limit": 3}]}


def test_iterators_are_never_consumed(capture: Capture, only: Any) -> None:
    @capture.captured_tool(describe=list)
    def tool(items: Iterator[int]) -> Iterator[int]:
        return iter(list(items))

    given = (number for number in range(3))
    assert list(tool(given)) == [0, 1, 2]
    payload = only()
    assert payload["args_summary"] == {"__args": ["<generator>"]}
    assert payload["result_summary"] == {"__describe": "not called: the result is an iterator"}


def test_generator_functions_are_refused(capture: Capture) -> None:
    def tool() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match=r"calling_tool\(\) block"):
        capture.captured_tool()(tool)


def test_a_describe_that_raises_costs_only_the_summary(capture: Capture, only: Any) -> None:
    @capture.captured_tool(describe=lambda result: {"rows": result["secret"]})
    def tool() -> dict[str, int]:
        return {}

    assert tool() == {}
    assert only()["result_summary"] == {"__describe": "raised KeyError"}


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: Any = []
for _ in range(1000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"\xff\xfe", "<bytes:2>"),
        ("\ud83d", "?"),
        (2**70, "<int>"),
        (float("nan"), None),
        pytest.param(Evil(), "<Evil>", id="evil"),
        pytest.param(Evil, "<type>", id="evil class"),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "<tuple>": "c"}),
        ({"s"}, ["s"]),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        pytest.param("x" * 2_000_000, "<truncated:2000000 bytes>", id="long text"),
        pytest.param(["x" * 2000] * 1000, {"__all": "..."}, id="much text"),
    ],
)
@pytest.mark.parametrize("by", ["block", "call"])
def test_any_argument_leaves_exactly_one_event(value: Any, shown: Any, by: str, capture: Capture, only: Any) -> None:
    if by == "call":
        capture.tool_call(tool_name="t", duration_ms=1, args_summary={"value": value}, result_summary={"value": value})
    else:
        with capture.calling_tool("t", {"value": value}) as call:
            call.result(summary={"value": value})
    payload = only()
    for summary in (payload["args_summary"], payload["result_summary"]):
        if isinstance(shown, dict) and "__all" in shown:
            assert list(summary) == ["__all"]
            assert summary["__all"].startswith("<truncated:")
        else:
            assert summary == {"value": shown}


@pytest.mark.parametrize("value", [CYCLE, DEEP], ids=["cycle", "deep"])
def test_endless_and_deep_arguments_are_cut(value: Any, capture: Capture, events: Any) -> None:
    with capture.calling_tool("t", {"value": value, "other": 1}):
        pass
    [event] = events()
    assert event["payload"]["args_summary"]["other"] == 1
    assert "<list>" in str(event["payload"]["args_summary"]["value"])


def test_hostile_values_in_any_field_never_raise(make_capture: Any) -> None:
    capture: Capture = make_capture(NOWHERE, durability="memory")
    fields: dict[str, Any] = {"tool_name": "t", "duration_ms": 1.0}
    names = ["args_summary", "status", "error_kind", "call_id", "seq", "session_id", "server_session_id", "project"]
    for name in [*fields, *names, "result_summary", "occurred_at"]:
        capture.tool_call(**{**fields, name: Evil()})
        with capture.calling_tool(
            **{"tool_name": "t", **({name: Evil()} if name in ("call_id", "session_id") else {})}
        ):
            pass
    stats = capture.stats()
    assert stats.captured == 24
    assert set(stats.dropped) == {"unserialisable"}


# The server


def test_a_server_session_begins_and_ends_with_an_event_and_numbers_those_between(
    capture: Capture, events: Any
) -> None:
    process = capture.server_session_id
    with capture.server_session() as run:
        assert run == capture.server_session_id != process
        capture.tool_call(tool_name="a", duration_ms=1)
    capture.tool_call(tool_name="b", duration_ms=1)
    shown = [event["payload"] for event in events()]
    assert [(p["server_session_id"], p["seq"], p["event_subtype"] or p["tool_name"]) for p in shown] == [
        (run, 0, "server_start"),
        (run, 1, "a"),
        (run, 2, "server_stop"),
        (process, 0, "b"),
    ]
    assert all(shown[0][name] is None for name in ("tool_name", "status", "error_kind", "duration_ms", "args_summary"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), RuntimeError("secret text")])
def test_a_server_that_ends_by_an_exception_has_stopped_too(
    error: BaseException, capture: Capture, events: Any
) -> None:
    with pytest.raises(type(error)) as caught, capture.server_session():
        raise error
    assert caught.value is error
    start, stop = (event["payload"] for event in events())
    assert (start["event_subtype"], stop["event_subtype"]) == ("server_start", "server_stop")
    assert stop["message"] == f"the server stopped by {type(error).__name__}"


def test_a_forked_child_that_leaves_the_block_stops_no_server(capture: Capture, events: Any) -> None:
    with capture.server_session() as run:
        child = os.fork()
        if child == 0:
            try:
                capture.tool_call(tool_name="child", duration_ms=1)
                own = capture.server_session_id
                with capture.server_session():
                    pass
                sys.exit(0 if own != run else 1)
            except SystemExit as end:
                capture.__class__.close(capture)
                os._exit(int(end.code or 0))
        assert os.waitpid(child, 0)[1] == 0
    shown = [event["payload"] for event in events()]
    assert [p["event_subtype"] for p in shown if p["server_session_id"] == run] == ["server_start", "server_stop"]
    assert len(shown) == 5


def test_ctrl_c_in_a_real_process_leaves_a_stop_event(redis_server: RedisServer, arrived: Any, tmp_path: Any) -> None:
    program = (
        "import signal, sys, os\n"
        "from assay_capture import Capture\n"
        "capture = Capture.from_env()\n"
        "with capture.server_session():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
    )
    environment = {**os.environ, "ASSAY_CAPTURE": "1", "ASSAY_REDIS_URL": redis_server.url,
                   "ASSAY_CAPTURE_SPOOL_DIR": str(tmp_path / "spool")}  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, cwd=tmp_path, timeout=120
    )
    assert b"KeyboardInterrupt" in run.stderr
    assert [event["payload"]["event_subtype"] for event in arrived(redis_server)] == ["server_start", "server_stop"]


# Sessions


def test_every_call_takes_a_session_and_a_block_sets_it_for_all(capture: Capture, retrieve: Any, events: Any) -> None:
    def all_of_them(**fields: Any) -> None:
        retrieve(capture, **fields)
        capture.answer(query="q", answer="a", model="m", latency_ms=1, **fields)
        capture.feedback(target_event_id=retrieve(capture, **fields), verdict="positive", **fields)
        capture.tool_call(tool_name="t", duration_ms=1, **fields)
        capture.server_event(event_subtype="events_path_init", message="m", **fields)
        with capture.retrieving(tool_name="query", query="q", **fields) as retrieval:
            retrieval.result(slugs=[], chunk_ids=[])
        with capture.calling_tool("t", **fields):
            pass

    all_of_them()
    with capture.in_session("outer"):
        all_of_them()
        with capture.in_session("inner"):
            all_of_them()
        all_of_them(session_id="own")
    all_of_them()
    sessions = [event["session_id"] for event in events()]
    assert sessions == [session for session in (None, "outer", "inner", "own", None) for _ in range(8)]


def test_a_block_also_sets_the_user_of_everything_in_it_and_keeps_that_of_the_block_around_it(
    capture: Capture, retrieve: Any, events: Any
) -> None:
    first, second = "9f" * 16, "c1" * 32
    with capture.in_session("outer", user_hash=first):
        retrieve(capture)
        with capture.in_session("inner"):
            capture.tool_call(tool_name="t", duration_ms=1)
            capture.answer(query="q", answer="a", model="m", latency_ms=1, user_hash=second)
        capture.feedback(target_event_id=retrieve(capture), verdict="positive", user_hash="u-1")
    with capture.calling_tool("t", user_hash=second):
        pass
    retrieve(capture)
    assert [(event["session_id"], event["user_hash"]) for event in events()] == [
        ("outer", first), ("inner", first), ("inner", second), ("outer", first), ("outer", first), (None, second), (None, None),
    ]  # fmt: skip


async def test_sessions_of_tasks_do_not_mix(capture: Capture, events: Any) -> None:
    async def one(name: str) -> None:
        async with capture.in_session(name):
            await asyncio.sleep(0.01)
            capture.tool_call(tool_name=name, duration_ms=1)

    await asyncio.gather(*(one(f"s{number}") for number in range(20)))
    assert all(event["session_id"] == event["payload"]["tool_name"] for event in events())


def test_nothing_is_done_while_capture_is_off(tmp_path: Any) -> None:
    off = Capture(Settings.model_validate({"redis": {"url": NOWHERE}}), enabled=False)
    assert off.tool_call(tool_name="t", duration_ms=1)
    with off.server_session(), off.calling_tool("t", Evil(), describe=lambda _: Evil()) as call:  # type: ignore[arg-type]
        call.result(Evil())
    assert off.captured_tool()(lambda value: value)(3) == 3
    assert off.stats().captured == 0


@pytest.mark.parametrize(
    ("status", "kept"), [("partial", None), ("success", None), ("error", "timeout"), ("refused", "timeout")]
)
def test_an_error_kind_that_the_status_does_not_allow_is_left_out_and_the_event_stays(
    status: Any, kept: str | None
) -> None:
    recorded: list[dict[str, Any]] = []
    with ToolBlock(lambda **fields: recorded.append(fields) or "", "read", None, None, {}) as block:
        block.result(status=status, error_kind="timeout")
    [call] = recorded
    assert (call["status"], call["error_kind"]) == (status, kept)
