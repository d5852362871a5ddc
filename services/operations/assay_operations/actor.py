"""The person behind an operation."""

import os
import pwd
import socket
from dataclasses import dataclass

from assay_operations.errors import OperationError
from assay_schema.printable import printable

#: Maximum lengths in characters, as in the table `operations_audit`.
NAME_CHARS, COMMENT_CHARS = 128, 500


@dataclass(frozen=True)
class Actor:
    """The origin of an operation: person, host, entry point and reason.

    The text comes from people and programs: control characters become spaces, long names are cut, and a comment is scrubbed. Raises
    `OperationError` for a comment that is too long.
    """

    name: str
    host: str
    #: Entry point, such as `command line`.
    through: str
    #: Why; empty if not given.
    comment: str = ""

    def __post_init__(self) -> None:
        for field in ("name", "host", "through"):
            object.__setattr__(self, field, _line(getattr(self, field))[:NAME_CHARS].strip() or "unknown")
        object.__setattr__(self, "comment", _comment(self.comment))


def local_actor(comment: str = "", *, through: str = "command line") -> Actor:
    """Return the account of this process on this host. `through`: the entry point.

    The login name is that of the operating system, not of the environment, which anyone can set. Raises `OperationError` for a comment
    that is too long.
    """
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # as in a container
        name = f"uid {uid}"
    return Actor(name, socket.gethostname(), through, comment)


def _line(text: str) -> str:
    # Lone surrogates, which an undecodable argument contains, are not UTF-8.
    return printable(text[: 2 * NAME_CHARS].encode(errors="replace").decode())


def _comment(text: str) -> str:
    if len(text) > COMMENT_CHARS:
        raise OperationError(
            "invalid", f"--comment: {len(text):,} characters are too long; the maximum is {COMMENT_CHARS}"
        )
    return scrubbed_words(text)[:COMMENT_CHARS]


def scrubbed_words(text: str) -> str:
    """Return what a person wrote about an operation or an event: one line, scrubbed."""
    if not text.strip():
        return ""
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy import Policy

    line = printable(text.encode(errors="replace").decode()).strip()
    return Scrubber(Policy()).scrub(line).text
