"""The part of `Capture` for tools: their calls, and the server that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from types import TracebackType
from typing import Any, Literal, TypeVar
from uuid import uuid4

from assay_capture.recorder import Recorder
from assay_capture.tool_block import DescribeResult, ToolBlock, captured_function
from assay_schema.fields import ToolStatus
from assay_schema.ids import new_event_id

F = TypeVar("F", bound=Callable[..., Any])
Subtype = Literal["server_start", "server_stop", "schema_version_mismatch", "events_path_init"]


class ServerRun:
    """One run of a server: its id, the positions of its events, and the process that it runs in."""

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.next_seq = count().__next__
        self.pid = os.getpid()


class ToolCapture(Recorder):
    """The methods of `Capture` for tools."""

    _run: ServerRun

    @property
    def server_session_id(self) -> str:
        """Return the id of the server's run: that of `server_session()`, else one for the process."""
        return self._run.id

    def tool_call(
        self,
        *,
        tool_name: str,
        duration_ms: float,
        status: ToolStatus = "success",
        args_summary: Mapping[str, Any] | None = None,
        result_summary: Mapping[str, Any] | None = None,
        error_kind: str | None = None,
        call_id: str | None = None,
        agent_name: str | None = None,
        parent_call_id: str | None = None,
        exit_code: int | None = None,
        seq: int | None = None,
        server_session_id: str | None = None,
        session_id: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one tool call and return its `event_id`.

        The fields are those of `assay_schema.events.ToolCall`; `error_kind` only with the status `error` or `refused`.
        Values of the summaries that have no JSON form are replaced by a mark. `seq` defaults to the position among
        the events of the server's run.
        """
        if not self._enabled:
            return new_event_id()
        moment = datetime.now(UTC) if occurred_at is None else occurred_at
        run = self._run
        return self._record(
            "tool_call",
            {
                "timestamp": moment,
                "server_session_id": run.id if server_session_id is None else server_session_id,
                "kind": "tool_call",
                "tool_name": tool_name,
                "args_summary": {} if args_summary is None else args_summary,
                "status": status,
                "error_kind": error_kind,
                "duration_ms": duration_ms,
                "result_summary": {} if result_summary is None else result_summary,
                "event_subtype": None,
                "message": None,
                "call_id": call_id,
                "agent_name": agent_name,
                "parent_call_id": parent_call_id,
                "exit_code": exit_code,
                "seq": run.next_seq() if seq is None and server_session_id is None else seq,
            },
            new_event_id(),
            project,
            moment,
            session_id,
            user_hash,
        )

    def server_event(
        self,
        *,
        event_subtype: Subtype,
        message: str,
        seq: int | None = None,
        server_session_id: str | None = None,
        session_id: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
        occurred_at: datetime | None = None,
    ) -> str:
        """Capture one event of the server that runs the tools, and return its `event_id`."""
        if not self._enabled:
            return new_event_id()
        moment = datetime.now(UTC) if occurred_at is None else occurred_at
        run = self._run
        return self._record(
            "server_event",
            {
                "timestamp": moment,
                "server_session_id": run.id if server_session_id is None else server_session_id,
                "kind": "server_event",
                "tool_name": None,
                "args_summary": None,
                "status": None,
                "error_kind": None,
                "duration_ms": None,
                "result_summary": None,
                "event_subtype": event_subtype,
                "message": message,
                "seq": run.next_seq() if seq is None and server_session_id is None else seq,
            },
            new_event_id(),
            project,
            moment,
            session_id,
            user_hash,
        )

    def server_session(self) -> ServerSessionBlock:
        """Return a block for one run of a server. It captures `server_start` and `server_stop`.

        The latter also if the block ends by an exception, as of Ctrl-C, which passes through unchanged. Tool calls
        captured meanwhile, in any thread of the process, belong to this run. The value of the block is the
        `server_session_id`.
        """
        return ServerSessionBlock(self)

    def calling_tool(
        self,
        tool_name: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        describe: DescribeResult | None = None,
        call_id: str | None = None,
        agent_name: str | None = None,
        parent_call_id: str | None = None,
        server_session_id: str | None = None,
        session_id: str | None = None,
        user_hash: str | None = None,
        project: str | None = None,
    ) -> ToolBlock:
        """Return a `with` or `async with` block that times a tool call.

        It captures exactly one event at its end, also if the tool raises or is cancelled; the exception passes through
        unchanged. `args` are copied when the block begins; a sequence goes under the key `__args`. Pass the tool's
        result to `result()`: its status is used if it is an envelope.
        """
        named = {
            "call_id": call_id,
            "agent_name": agent_name,
            "parent_call_id": parent_call_id,
            "server_session_id": server_session_id,
            "session_id": session_id,
            "user_hash": user_hash,
            "project": project,
        }
        return ToolBlock(self.tool_call if self._enabled else None, tool_name, args, describe, named)

    def captured_tool(
        self,
        tool_name: str | None = None,
        *,
        describe: DescribeResult | None = None,
        agent_name: str | None = None,
        project: str | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function, or a coroutine function, that is a tool. It is timed and otherwise unchanged.

        Every call is exactly one event, also one that raises or is cancelled. `tool_name` defaults to the function's
        name. `describe(result)` returns the `result_summary`; if it raises, the summary names the exception. A generator function
        is refused.
        """

        def decorate(function: F) -> F:
            name = function.__name__ if tool_name is None else tool_name
            return captured_function(
                function,
                lambda args: self.calling_tool(name, args, describe=describe, agent_name=agent_name, project=project),
            )

        return decorate


class ServerSessionBlock:
    """One run of a server, for `with` or `async with`. Use it once at a time."""

    def __init__(self, capture: ToolCapture) -> None:
        self._capture = capture
        self._run: ServerRun | None = None
        self._before: ServerRun | None = None

    def __enter__(self) -> str:
        capture = self._capture
        self._before, self._run = capture._run, ServerRun()  # noqa: SLF001  (a part of the same class)
        capture._run = self._run  # noqa: SLF001
        self._say("server_start", "the server started")
        return self._run.id

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        run = self._run
        if run is None or run.pid != os.getpid():  # a forked child that leaves its parent's block
            return
        by = "" if exception_type is None else f" by {exception_type.__name__}"
        self._say("server_stop", f"the server stopped{by}")
        if self._before is not None:
            self._capture._run = self._before  # noqa: SLF001

    async def __aenter__(self) -> str:
        return self.__enter__()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exception_type, exception, traceback)

    def _say(self, subtype: Subtype, message: str) -> None:
        run = self._run
        assert run is not None
        self._capture.server_event(event_subtype=subtype, message=message, server_session_id=run.id, seq=run.next_seq())
