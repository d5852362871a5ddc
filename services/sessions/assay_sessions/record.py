"""The record of a session that a reader returns. Pure.

A reader returns a `Transcript`. `document` turns it into the session's document, whose keys do not depend on the agent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Json = dict[str, Any]
CallStatus = Literal["success", "error", "refused"]
SessionStatus = Literal["answered", "unanswered", "aborted"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a session.

    `output` is the text of the result, or of the error if `status` is not `success`. `executed_by` is `user` for a
    command that the person ran: it does not count as the agent's behaviour.
    """

    name: str
    args: Json
    output: str = ""
    status: CallStatus = "success"
    error_kind: str | None = None
    exit_code: int | None = None
    call_id: str | None = None
    executed_by: Literal["agent", "user"] = "agent"
    truncated: bool = False
    started_at: datetime | None = None
    duration_ms: float | None = None
    #: Id of the session of a sub-agent that the call started.
    child_session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """The words and tool calls of one message, in the order of the log. `text` may be empty."""

    role: Literal["user", "model"]
    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """One session as read from an agent's log.

    `updated` is the time of its last change. `cost_usd` and `tokens` are None or empty if the log has none.
    """

    session_id: str
    source: str
    created: datetime
    updated: datetime
    messages: tuple[Message, ...]
    title: str | None = None
    source_version: str | None = None
    model: str | None = None
    #: The session of the agent that started this one as a sub-agent.
    parent_session_id: str | None = None
    #: The session that this one continues as a copy.
    forked_from: str | None = None
    aborted: bool = False
    cost_usd: float | None = None
    #: By `input`, `output`, `reasoning`, `cache_read`, `cache_write`.
    tokens: Mapping[str, int] = field(default_factory=dict)
    #: Anything else that the reader kept, as JSON.
    extra: Json = field(default_factory=dict)
