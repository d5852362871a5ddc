"""The file of events (`capture.sink = "file"`): its path, and the form of its lines. Pure.

A line is one JSON object in ASCII. A tool call and an event of a tool server have the fields of `FIELDS` in this order, then those of the
additional fields that are set. Every other kind is the event itself.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Fields that every line of a tool call or server event has, in their order.
FIELDS = (
    "timestamp",
    "server_session_id",
    "kind",
    "tool_name",
    "args_summary",
    "status",
    "error_kind",
    "duration_ms",
    "result_summary",
    "event_subtype",
    "message",
)
#: Further fields, which a line has if they are not null: of the payload, then of the envelope.
MORE_FIELDS = ("call_id", "agent_name", "parent_call_id", "exit_code", "seq")
ENVELOPE_FIELDS = ("event_id", "project", "service", "session_id", "user_hash", "traceparent")
#: Names the file for producers and for `assay tail`.
PATH_VARIABLE = "ASSAY_CAPTURE_FILE_PATH"

_KINDS = ("tool_call", "server_event")
_WHOLE_SECOND = len("2026-05-17T14:32:07Z")


def default_path(environment: Mapping[str, str], uid: int) -> Path:
    """Return the default path: `assay/events.jsonl` in the user's state directory.

    For users without a home it is in the temporary directory, in a separate directory.
    """
    state = environment.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "assay" / "events.jsonl"
    try:
        return Path.home() / ".local" / "state" / "assay" / "events.jsonl"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"assay-{uid}" / "events.jsonl"


def line_of(event: Mapping[str, Any]) -> bytes:
    """Return the line of an event, with its line feed."""
    payload = event.get("payload")
    if event.get("kind") not in _KINDS or not isinstance(payload, Mapping):
        return _line(event)
    shown = {name: payload.get(name) for name in FIELDS}
    shown["timestamp"] = _with_microseconds(shown["timestamp"])
    shown |= {name: payload[name] for name in MORE_FIELDS if payload.get(name) is not None}
    shown |= {name: event[name] for name in ENVELOPE_FIELDS if event.get(name) is not None}
    return _line(shown)


def _line(value: Mapping[str, Any]) -> bytes:
    # ASCII: some readers also end a line at U+2028, U+2029 or U+0085.
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _with_microseconds(moment: Any) -> Any:
    """Return an ISO 8601 time in UTC with exactly six decimals: a whole second is written without any."""
    if isinstance(moment, str) and len(moment) == _WHOLE_SECOND and moment.endswith("Z"):
        return moment[:-1] + ".000000Z"
    return moment
