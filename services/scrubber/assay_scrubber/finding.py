"""A finding, a scrubbed text, and the interface of a scrubber that the walk through JSON needs."""

from typing import Any, NamedTuple, Protocol

from .keys import RemovedKeys
from .taxonomy import Category


class Finding(NamedTuple):
    """A finding's family and place: code points in the original text, end exclusive. Never the text."""

    family: str
    category: Category
    start: int
    end: int


class Scrubbed(NamedTuple):
    """A scrubbed text; `findings` are in order of their position and do not overlap."""

    text: str
    findings: list[Finding]


class TextScrubber(Protocol):
    """A scrubber of single texts: `Scrubber`, and what is made from it."""

    @property
    def removed_keys(self) -> RemovedKeys | None:
        """The keys whose values go whole, if the policy names any."""

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """Return the text without personal data; `hint` is read as if it stood before the text."""

    def is_told_by(self, hint: bytes, /) -> bool:
        """Return whether the key of a JSON value, as words, announces anything."""

    def under_removed_key(self, value: Any) -> Finding:
        """Return the finding of a value that goes because of its key."""
