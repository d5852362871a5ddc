"""The agent: a client of the MCP server that plays the scenes and logs its sessions.

Its sub-agent is another client.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, Implementation

from assay_capture import Capture
from assay_demo.agent.own_tools import OwnTools, Result
from assay_demo.agent.scenes import Counts, Scene, Step
from assay_demo.agent.server import ToolServer
from assay_demo.agent.session_log import SOURCE, LogFile, SessionLog
from assay_demo.pii import FAMILIES
from assay_demo.search import Search
from assay_demo.service import Reply, SearchService

SUB_AGENT = "stdlib-librarian"
#: What braces stand for before there is something to fill in, as after a search without a result.
_NOTHING = {"found": "no page", "next": "no page", "gist": "It says nothing.", "answer": "", "report": ""}


@dataclass(slots=True)
class _Session:
    """A session that is being played: its log, its client, and what fills in the braces of its steps."""

    log: SessionLog
    agent: str
    client: Client
    values: dict[str, str]
    reply: Reply | None = None
    #: Last words of the agent.
    said: str = ""

    def filled(self, value: Any) -> Any:
        """Fill in the braces of a text, or of all texts in arguments."""
        if isinstance(value, str):
            return value.format_map(self.values)
        if isinstance(value, Mapping):
            return {name: self.filled(each) for name, each in value.items()}
        return [self.filled(each) for each in value] if isinstance(value, list) else value


class Agent:
    """Plays scenes. `counts` grows by what it did, also if it is interrupted."""

    def __init__(
        self, scenes: Mapping[str, Scene], search: Search, service: SearchService, capture: Capture, *, seed: int = 0
    ) -> None:
        self.counts = Counts()
        self._scenes = scenes
        self._service = service
        self._capture = capture
        self._rng = random.Random(seed)  # noqa: S311  (reproducible fakes, nothing is secret)
        self._server = ToolServer(search, capture)

    def play(self, file: Path, prefix: str) -> None:
        """Play all scenes, in sessions whose ids begin with `prefix`.

        `file` has a line for each session that does not end as `open`.
        """
        with tempfile.TemporaryDirectory() as directory, closing(LogFile(file)) as log:
            self._own, self._log = OwnTools(Path(directory)), log
            asyncio.run(self._play(prefix))

    async def _play(self, prefix: str) -> None:
        async with self._client(SOURCE) as self._agent, self._client(SUB_AGENT) as self._sub_agent:
            self.counts.captured["server_event"] += 2  # its start, and its stop
            for scene in self._scenes.values():
                for number, ask in enumerate(scene.asks, 1):
                    planted = {family: make(self._rng, number).value for family, make in FAMILIES.items()}
                    session_id = f"{prefix}{scene.name}-{number}"
                    await self._session(scene, session_id, {"ask": ask, **_NOTHING, **planted})

    def _client(self, name: str) -> Client:
        return Client(self._server.mcp, client_info=Implementation(name=name, version="1"))

    async def _session(self, scene: Scene, session_id: str, values: dict[str, str], parent: str | None = None) -> str:
        """Play one session. Returns the last words of the agent."""
        log = SessionLog(session_id, scene.title.format_map(values), parent)
        name, client = (SUB_AGENT, self._sub_agent) if parent else (SOURCE, self._agent)
        session = _Session(log, name, client, values)
        with self._capture.in_session(session_id):
            for step in scene.steps:
                await self._step(step, session)
        self.counts.sessions[scene.ends] += 1
        if scene.ends != "open":
            self._log.append(log.document(scene.ends))
        return session.said

    async def _step(self, step: Step, session: _Session) -> None:
        if step.user:
            session.log.words("user", session.filled(step.user))
        elif step.say:
            session.said = session.filled(step.say)
            session.log.words("model", session.said)
        elif step.ask:
            session.reply = self._service.ask(session.filled(step.ask))
            session.values["answer"] = session.reply.text
            self.counts.captured.update(("retrieval", "answer"))
        elif step.rate and session.reply:
            self._service.rate(session.reply, step.rate, step.text)
            self.counts.captured["feedback"] += 1
        else:
            for _ in range(step.times):
                await self._call(step, session)

    async def _call(self, step: Step, session: _Session) -> None:
        """Make one tool call: start a sub-agent, use a tool of the agent, or one of the server."""
        name, args = step.call or "delegate", session.filled(step.args or {"to": SUB_AGENT, "scene": step.delegate})
        child, began = None, time.perf_counter()
        if step.delegate:
            child = f"{session.log.session_id}-{step.delegate}"
            result = await self._delegate(self._scenes[step.delegate], args, child, session)
        elif name in OwnTools.NAMES:
            with self._capture.calling_tool(name, args, agent_name=session.agent) as call:
                result = self._own.run(name, args)
                call.result(status=result.status, error_kind=result.error_kind, exit_code=result.exit_code)
        else:
            result = await self._server_call(step, name, args, session)
        self.counts.tool_calls[result.status] += 1
        self.counts.captured["tool_call"] += 1
        session.log.call(name, args, result, (time.perf_counter() - began) * 1000, child)

    async def _delegate(self, scene: Scene, args: dict[str, Any], child: str, session: _Session) -> Result:
        with self._capture.calling_tool("delegate", args, agent_name=session.agent):
            session.values["report"] = await self._session(scene, child, dict(session.values), session.log.session_id)
        return Result(session.values["report"])

    async def _server_call(self, step: Step, name: str, args: dict[str, Any], session: _Session) -> Result:
        call = asyncio.ensure_future(session.client.call_tool(name, args))
        if step.gives_up or step.interrupt:
            await self._server.endless.get()  # not before the tool runs: a call that never arrived is not captured
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            return Result("no result", "error", "timeout" if step.gives_up else "interrupted")
        answer = await call
        text = "".join(getattr(block, "text", "") for block in answer.content)
        if answer.is_error:
            return Result(text, "error", "unknown_name" if text.startswith("Unknown tool") else "tool_error")
        envelope = answer.structured_content or {}
        pages = [page for page in envelope.get("pages", ()) if "says" in page]
        for name_of, page in zip(("found", "next"), pages, strict=False):
            session.values[name_of] = page["page"]
        if pages:
            session.values["gist"] = pages[0]["says"]
        return Result(text, envelope["status"], envelope.get("error", {}).get("kind"))
