"""A session as the rules see it: the agent's calls and words, from the session's document. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.tools import ANY_AGENT, TOOL_NAMES, Role, ToolNames
from assay_sessions.document import content_text
from assay_sessions.readers.results import INTERRUPTED
from assay_sessions.trajectory import ToolCall, TrajectoryScore
from assay_sessions.trajectory_args import canonical

#: Returns the kinds of secrets in a text, such as `credential`; empty for none.
FindSecrets = Callable[[str], Collection[str]]


class Words(NamedTuple):
    """The text of the agent in one turn."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call of the agent. `number` counts all calls of the document from 1."""

    number: int
    turn: int
    name: str
    args: Mapping[str, Any]
    output: str
    status: str
    error_kind: str | None
    exit_code: int | None
    truncated: bool
    role: Role | None

    @property
    def failed(self) -> bool:
        """True if the call ended in an error, or its command with another exit code than 0."""
        return self.status == "error" or self.exit_code not in (None, 0)

    @property
    def outcome_known(self) -> bool:
        """True if it is known whether the command succeeded. One that was stopped did neither."""
        return self.exit_code is not None or (self.status == "error" and self.error_kind != INTERRUPTED)


class Session:
    """One session, read from its document."""

    def __init__(
        self,
        document: Mapping[str, Any],
        tools: Mapping[str, ToolNames] = TOOL_NAMES,
        *,
        find_secrets: FindSecrets | None = None,
        score: TrajectoryScore | None = None,
    ) -> None:
        self.document = document
        self.metadata: Mapping[str, Any] = document["metadata"]
        self.session_id: str = document["session_id"]
        self.find_secrets = find_secrets
        #: The comparison with the session's reference trajectory, if there is one.
        self.score = score
        self._tools = tools.get(self.source, ANY_AGENT)

    @property
    def project(self) -> str:
        """The project that the session is stored in; empty if the document has none."""
        project = self.document.get("project")
        return project if isinstance(project, str) else ""

    @property
    def source(self) -> str:
        """The agent, as in `metadata.source`."""
        return str(self.metadata.get("source", ""))

    @property
    def status(self) -> str:
        """`answered`, `unanswered` or `aborted`."""
        return str(self.metadata.get("status", ""))

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The turns up to the last one of the user."""
        contents: list[dict[str, Any]] = self.document["request"]["contents"]
        return contents

    @property
    def is_empty(self) -> bool:
        """True for a session without a turn of the user."""
        return not any(content["role"] == "user" for content in self.contents)

    @cached_property
    def words(self) -> list[Words]:
        """The turns in which the agent wrote something, in order."""
        turns = list(enumerate(self.contents, 1))
        turns += [(len(turns) + 1, candidate["content"]) for candidate in self.document["response"]["candidates"][:1]]
        return [
            Words(turn, text)
            for turn, content in turns
            if content["role"] == "model" and (text := content_text(content))
        ]

    @cached_property
    def calls(self) -> list[MadeCall]:
        """The calls of the agent, in order."""
        return [
            self._call(number, event)
            for number, event in enumerate(self.document["intermediate_events"], 1)
            if event.get("executed_by") != "user"
        ]

    @cached_property
    def call_keys(self) -> list[str]:
        """A text for each call that is equal for calls of the same tool with equal arguments."""
        return [f"{canonical(call.args)}{call.name}" for call in self.calls]

    @property
    def trajectory(self) -> list[ToolCall]:
        """The calls of the agent as a trajectory."""
        return [ToolCall(call.name, call.args) for call in self.calls]

    def seconds(self) -> float | None:
        """Return the time from the start of the session to its last change."""
        created, updated = self.document.get("created"), self.metadata.get("updated")
        if not created or not updated:
            return None
        return (datetime.fromisoformat(updated) - datetime.fromisoformat(created)).total_seconds()

    def _call(self, number: int, event: Mapping[str, Any]) -> MadeCall:
        call = event["function_call"]
        response = event.get("function_response", {}).get("response", {})
        output = response.get("output", response.get("error", ""))
        return MadeCall(
            number=number,
            turn=event["turn"],
            name=call["name"],
            args=call.get("args") or {},
            output=output if isinstance(output, str) else canonical(output),
            status=event.get("status", "success"),
            error_kind=event.get("error_kind"),
            exit_code=event.get("exit_code", response.get("exit_code")),
            truncated=bool(response.get("truncated")),
            role=self._tools.role(call["name"]),
        )


def expect_document(document: Any) -> None:
    """Raise `ChecksError` for a value that is not the document of a session."""
    kinds = {"session_id": str, "request": dict, "response": dict, "intermediate_events": list, "metadata": dict}
    if not isinstance(document, dict):
        raise ChecksError("not a session's document: it must be an object")
    for name, kind in kinds.items():
        if not isinstance(document.get(name), kind):
            raise ChecksError(f"not a session's document: {name} is missing or has another type")
    contents, candidates = document["request"].get("contents"), document["response"].get("candidates")
    if not isinstance(contents, list) or not all(map(_is_content, contents)):
        raise ChecksError("not a session's document: request.contents must have a role and parts in each turn")
    if not isinstance(candidates, list) or not all(
        isinstance(each, dict) and _is_content(each.get("content")) for each in candidates
    ):
        raise ChecksError("not a session's document: response.candidates must have a content with a role and parts")
    for place, event in enumerate(document["intermediate_events"]):
        if not _is_event(event):
            raise ChecksError(
                f"not a session's document: intermediate_events.{place} needs function_call.name and an integer turn"
            )


def _is_content(content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("parts"), list):
        return False
    texts = (part.get("text", "") if isinstance(part, dict) else None for part in content["parts"])
    return content.get("role") in ("user", "model") and all(isinstance(text, str) for text in texts)


def _is_event(event: Any) -> bool:
    if not isinstance(event, dict) or not isinstance(event.get("turn"), int):
        return False
    call, response = event.get("function_call"), event.get("function_response", {})
    return (
        isinstance(call, dict)
        and isinstance(call.get("name"), str)
        and isinstance(call.get("args", {}), dict)
        and isinstance(response, dict)
        and isinstance(response.get("response", {}), dict)
    )
