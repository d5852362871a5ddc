"""Explain each kind of problem in plain words, with the fix. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from assay_sessions.readers.reader import Problem, ProblemKind


class Explanation(NamedTuple):
    """The words for a kind of problem, and the fix."""

    words: str
    fix: str


EXPLANATIONS: Final[dict[ProblemKind, Explanation]] = {
    "permission_denied": Explanation("permission denied", "let the user who imports read the file, and import again"),
    "unreadable": Explanation("cannot be opened", "correct what the brackets name, and import again"),
    "empty_file": Explanation("empty file", "nothing to do, unless the agent should have written sessions to it"),
    "damaged": Explanation(
        "damaged", "import again if the agent was writing, otherwise repair or delete it (the rest was read)"
    ),
    "missing_wal": Explanation(
        "write-ahead log missing",
        "copy the database again with its -wal file, which has the sessions, and import again",
    ),
    "unknown_schema": Explanation(
        "unknown format", "check that the file is a log of the agent in --from, then update Assay and import again"
    ),
    "unknown_type": Explanation("unknown type", "update Assay and import again (the rest is stored)"),
    "other_format": Explanation("another format", "import it with the option in brackets"),
    "no_content": Explanation(
        "no messages", "see the setting or field in brackets, and have the agent record its messages"
    ),
    "nothing_said": Explanation(
        "nothing was asked or answered", "add the messages of the user and the assistant, or leave the session out"
    ),
    "no_session_id": Explanation("no session id", "give each session a session_id, and import again"),
    "too_large": Explanation("too large to be split", "shorten the text or key in the log, and import again"),
}


def in_words(problem: Problem) -> str:
    """Return a problem in plain words: what it is, in which file, and how often."""
    detail = f" ({problem.detail})" if problem.detail else ""
    often = f": {problem.count:,}" if problem.count > 1 else ""
    return f"{EXPLANATIONS[problem.kind].words}{detail} in {problem.path}{often}"


def fixes(kinds: Iterable[ProblemKind]) -> list[str]:
    """Return the fixes of these kinds with their words, each once."""
    return [f"{EXPLANATIONS[kind].words}: {EXPLANATIONS[kind].fix}" for kind in dict.fromkeys(kinds)]
