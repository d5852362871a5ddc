"""Documents of sessions for tests: turns as texts, calls as short tuples."""

from typing import Any


def call(name: str, turn: int = 2, output: str = "ok", **fields: Any) -> dict[str, Any]:
    """Return a call of the agent. `args`, `status`, `exit_code`, `error_kind`, `executed_by` and `truncated` are fields."""
    status = fields.pop("status", "success")
    response: dict[str, Any] = {"output" if status == "success" else "error": output}
    response |= {key: fields[key] for key in ("exit_code",) if key in fields}
    if fields.pop("truncated", False):
        response["truncated"] = True
    return {
        "function_call": {"name": name, "args": fields.pop("args", {})},
        "function_response": {"name": name, "response": response},
        "turn": turn,
        "status": status,
        "executed_by": "agent",
    } | fields


def document(*turns: str, calls: tuple[dict[str, Any], ...] = (), **metadata: Any) -> dict[str, Any]:
    """Return a document whose turns alternate between user and agent, beginning with the user."""
    contents = [
        {"role": "model" if place % 2 else "user", "parts": [{"text": text}]} for place, text in enumerate(turns)
    ]
    answer = [contents.pop()] if contents and contents[-1]["role"] == "model" else []
    return {
        "session_id": metadata.pop("session_id", "ses_1"),
        "title": None,
        "created": metadata.pop("created", "2026-11-25T10:00:00.000Z"),
        "request": {"contents": contents},
        "response": {"candidates": [{"content": each} for each in answer]},
        "intermediate_events": list(calls),
        "metadata": {
            "source": "opencode",
            "status": "answered" if answer else "unanswered",
            "updated": "2026-11-25T10:01:00.000Z",
            "total_turns": len(turns),
        }
        | metadata,
    }
