"""The agent's log: a JSON document for each session, one a line, as docs/agents.md describes it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay_demo.agent.own_tools import Result
from assay_demo.agent.scenes import Ending

SOURCE = "stdlib-agent"
MODEL = "scripted-1"
#: Statuses of calls in a session; the others are a success there.
_FAILED = ("error", "refused")


class SessionLog:
    """The turns and tool calls of one session. Consecutive words of one role are one turn."""

    def __init__(self, session_id: str, title: str, parent_session_id: str | None = None) -> None:
        self.session_id = session_id
        self._head = {"session_id": session_id, "title": title, "created": _now()}
        self._parent = parent_session_id
        self._turns: list[tuple[str, list[str]]] = []
        self._calls: list[dict[str, Any]] = []

    def words(self, role: str, text: str) -> None:
        """Add words of the `user` or the `model`."""
        self._turn(role).append(text)

    def call(
        self, name: str, args: dict[str, Any], result: Result, duration_ms: float, child: str | None = None
    ) -> None:
        """Add a tool call to the current turn of the model.

        `child` is the session of the sub-agent that it started.
        """
        self._turn("model")
        status = result.status if result.status in _FAILED else "success"
        response = {"error" if status in _FAILED else "output": result.output}
        event = {
            "function_call": {"name": name, "args": args},
            "function_response": {"name": name, "response": response},
            "turn": len(self._turns),
            "status": status,
            "error_kind": result.error_kind,
            "exit_code": result.exit_code,
            "duration_ms": round(duration_ms, 3),
            "child_session_id": child,
        }
        self._calls.append({key: value for key, value in event.items() if value is not None})

    def document(self, ends: Ending) -> dict[str, Any]:
        """Return the session as JSON."""
        last_user = max((number for number, (role, _) in enumerate(self._turns, 1) if role == "user"), default=0)
        contents = [{"role": role, "parts": [{"text": "\n\n".join(texts)}]} for role, texts in self._turns]
        answers = [content for content, (_, texts) in zip(contents, self._turns, strict=True) if texts][last_user:]
        metadata = {"source": SOURCE, "model": MODEL, "status": ends, "updated": _now()}
        if self._parent:
            metadata["parent_session_id"] = self._parent
        return self._head | {
            "request": {"contents": contents[:last_user]},
            "response": {"candidates": [{"content": content} for content in answers]},
            "intermediate_events": self._calls,
            "metadata": metadata,
        }

    def _turn(self, role: str) -> list[str]:
        if not self._turns or self._turns[-1][0] != role:
            self._turns.append((role, []))
        return self._turns[-1][1]


class LogFile:
    """A file of sessions, which only its owner can read. It replaces that of the last run."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def append(self, document: dict[str, Any]) -> None:
        """Write one line."""
        os.write(self._descriptor, json.dumps(document, ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
