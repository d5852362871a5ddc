"""Define a finding, a scrubbed text, and the scrubber interface for the walk through JSON."""

from typing import Any, NamedTuple, Protocol

from .keys import RemovedKeys
from .taxonomy import Category


class Finding(NamedTuple):
    """A finding's family and span: code points in the original text, end exclusive. Never the text."""

    family: str
    category: Category
    start: int
    end: int


class Scrubbed(NamedTuple):
    """A scrubbed text; `findings` are in order of position and do not overlap."""

    text: str
    findings: list[Finding]


class TextScrubber(Protocol):
    """A scrubber of single texts: `Scrubber`, or a wrapper of one."""

    @property
    def removed_keys(self) -> RemovedKeys | None:
        """Return the keys whose values are redacted as a whole, if the policy has any."""

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """Return the text without personal data; `hint` is read as if it stood before the text."""

    def is_told_by(self, hint: bytes, /) -> bool:
        """Return whether the key of a JSON value, as words, contains a keyword."""

    def under_removed_key(self, value: Any) -> Finding:
        """Return the finding of a value that is redacted because of its key."""
