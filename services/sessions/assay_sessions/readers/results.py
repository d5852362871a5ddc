"""The result of a tool call in one vocabulary, from what four agents write.

| | OpenCode | Claude Code | Codex | Gemini CLI |
|---|---|---|---|---|
| exit code N | `metadata.exit` | "Exit code N" | "Process exited with code N" | "Exit Code: N" |
| unknown tool | tool `invalid` | "<tool_use_error>" | "unsupported call" | `error` |
| refused | a fixed text | a fixed text | a fixed text | `cancelled`, a fixed text |
| cut off | `running`, exit null | no result | no result | no result |
"""

import re
from typing import Final, NamedTuple

from assay_sessions.record import CallStatus

#: A call without a result, or one that was stopped.
INTERRUPTED: Final = "interrupted"
#: A command that ended with another exit code than 0.
EXIT_CODE: Final = "exit_code"
UNKNOWN_NAME: Final = "unknown_name"
INVALID_ARGUMENTS: Final = "invalid_arguments"
TIMEOUT: Final = "timeout"
#: Any other error of a tool.
TOOL_ERROR: Final = "tool_error"
#: A person refused the call.
USER_REFUSED: Final = "user_refused"
#: A rule of the agent refused the call.
RULE_REFUSED: Final = "rule_refused"


class Result(NamedTuple):
    """Status, kind of error and exit code of a call."""

    status: CallStatus = "success"
    error_kind: str | None = None
    exit_code: int | None = None


SUCCESS: Final = Result()
CUT_OFF: Final = Result("error", INTERRUPTED)

# Each text is that of an agent's source or log; a pattern matches at the beginning of the text.
_BY_TEXT: Final = tuple(
    (re.compile(pattern), result)
    for pattern, result in (
        # OpenCode
        (r"The user rejected permission|The user dismissed this question", Result("refused", USER_REFUSED)),
        (r"The user has specified a rule which prevents", Result("refused", RULE_REFUSED)),
        (r"Tool execution (aborted|interrupted)", CUT_OFF),
        (r"Unknown tool\b|Model tried to call unavailable tool", Result("error", UNKNOWN_NAME)),
        (r"Invalid tool input|Invalid input for tool", Result("error", INVALID_ARGUMENTS)),
        # Claude Code
        (r"The user doesn't want to (proceed with this tool use|take this action)", Result("refused", USER_REFUSED)),
        (
            r"Permission to use .{1,200} has been denied|Claude requested permissions to",
            Result("refused", RULE_REFUSED),
        ),
        (r"<tool_use_error>\s*(Error: )?No such tool", Result("error", UNKNOWN_NAME)),
        (r"<tool_use_error>\s*InputValidationError", Result("error", INVALID_ARGUMENTS)),
        (r"\[Request interrupted by user|Interrupted by user", CUT_OFF),
        # Codex
        (r"unsupported call|unsupported custom tool call", Result("error", UNKNOWN_NAME)),
        (r"(exec command )?rejected by user|patch rejected by user", Result("refused", USER_REFUSED)),
        (r"aborted( by user)?\b", CUT_OFF),
        (r"failed to parse function arguments", Result("error", INVALID_ARGUMENTS)),
        # Gemini CLI
        (r"Tool \"[^\"]{1,200}\" not found", Result("error", UNKNOWN_NAME)),
        (r"\[Operation Cancelled\]|User (did not allow|denied|cancelled)", Result("refused", USER_REFUSED)),
        (r"Tool execution (denied|blocked)", Result("refused", RULE_REFUSED)),
        (r"Invalid (tool )?parameters|params (must|/)", Result("error", INVALID_ARGUMENTS)),
    )
)


def by_text(text: str) -> Result | None:
    """Return the result that the fixed text of an agent stands for, or None for any other text."""
    head = text[:400].lstrip()
    return next((result for pattern, result in _BY_TEXT if pattern.match(head)), None)


def of_error(text: str) -> Result:
    """Return the result of a call that the agent marks as failed."""
    return by_text(text) or Result("error", TOOL_ERROR)


def of_exit(code: int) -> Result:
    """Return the result of a command with an exit code."""
    return Result(exit_code=0) if code == 0 else Result("error", EXIT_CODE, code)
