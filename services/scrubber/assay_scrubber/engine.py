"""Scrub a text: return it without personal data, and where that was.

Pure: no I/O, no clock, no state between calls. The work is linear in the length of the text. Scrubbing a scrubbed text changes nothing:
after a replacement the result is searched again, until nothing more is found.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from . import vendor_keys
from .changes import Changes
from .detector import Detector
from .digit_runs import Known
from .family import Family, Span
from .finding import Finding, Scrubbed
from .json_scrub import ScrubbedJson, scrub_json
from .json_text import Numbers, within_json
from .keys import RemovedKeys, text_of_any
from .keys_in_text import removed_in
from .policy import Action, Policy
from .projection import project
from .registry import FAMILIES, SCRUB_KEY
from .replacement import markers, renderers, silencer

# A second pass finds values that a replacement moved next to a keyword, or separated from the number before them. Rows of numbers on
# one line can repeat this: after _PASSES passes, each further finding extends to the end of its line.
_PASSES, _MOST_PASSES = 8, 16
# Code points. Searching a shorter text again is cheaper than caching its findings.
_LONG = 1_000


_HARMLESS = re.compile(r"[A-Za-z_\[\](){}*#. \-]*")


class ScrubError(RuntimeError):
    """The text could not be scrubbed. The caller must not store it."""


def merge(spans: list[Span]) -> list[Span]:
    """Merge overlapping spans into one with their smallest rank; return them in order of position."""
    spans.sort()
    merged: list[Span] = []
    for start, end, rank in spans:
        if merged and start < merged[-1][1]:
            last_start, last_end, last_rank = merged[-1]
            merged[-1] = (last_start, max(last_end, end), min(last_rank, rank))
        else:
            merged.append((start, end, rank))
    return merged


def _replace(text: str, spans: list[Span], replacements: list[str]) -> tuple[str, tuple[list[int], list[int]]]:
    """Return the text with its replacements, and the start and end of each replacement."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = size = 0
    for (start, end, _), replacement in zip(spans, replacements):  # noqa: B905  # as many; the innermost loop
        parts += text[position:start], replacement
        size += start - position
        starts.append(size)
        size += len(replacement)
        ends.append(size)
        position = end
    parts.append(text[position:])
    return "".join(parts), (starts, ends)


def _absorb(spans: list[Span], replacements: list[str], starts: list[int], again: list[Span]) -> list[Span]:
    """Add `again`, found in the replaced text, to `spans`, in offsets of the original text.

    `starts`: where the replacements begin in the replaced text.
    """

    def origin(position: int, *, is_end: bool) -> int:
        index = bisect_right(starts, position - is_end) - 1
        if index < 0:
            return position
        start, end, _ = spans[index]
        beyond = position - starts[index] - len(replacements[index])
        if beyond > 0 or (beyond == 0 and not is_end):
            return end + beyond
        return end if is_end else start

    found = [(origin(a, is_end=False), origin(b, is_end=True), rank) for a, b, rank in again]
    return merge([*spans, *found])


def _to_ends_of_lines(text: str, spans: list[Span]) -> list[Span]:
    ends = [text.find("\n", end) for _, end, _ in spans]
    return [(start, end if end >= 0 else len(text), rank) for (start, _, rank), end in zip(spans, ends, strict=True)]


class Scrubber:
    """Apply one policy with its own families and the registry's. Safe to share between threads."""

    def __init__(self, policy: Policy | None = None, custom: Iterable[Family] = ()) -> None:
        """Compile the policy. Raises VendorKeysError if it asks for a catalogue that is not installed."""
        policy = policy if policy is not None else Policy()
        self.policy = replace(policy, custom=(*policy.custom, *custom)) if custom else policy
        self.fingerprint = self.policy.fingerprint
        families = self.policy.members()
        self._category_of = {family.name: str(family.category) for family in (*families, SCRUB_KEY)}
        self._render = renderers(self.policy, families)
        self._marker = markers(self.policy)
        #: The keys whose values the policy redacts, if any.
        self.removed_keys = self._removed_keys() if self.policy.scrub_keys else None
        self._allowed = frozenset(f.rank for f in families if self.policy.action(f.name) is Action.ALLOW)
        self._by_rank = {family.rank: family for family in (*families, SCRUB_KEY)}
        self._rank_of = {family.name: rank for rank, family in self._by_rank.items()}
        also = (vendor_keys.finder(), FAMILIES["api_key"].rank) if self.policy.catalogue else None
        self._silence = silencer(self.policy) if self._render is not None else None
        # A replacement with an assignment mark can turn text anywhere into a secret.
        self._assigns = _HARMLESS.fullmatch(self.policy.replacement) is None
        detector = Detector(families, also)
        self._detect, self.is_told_by = detector.detect, detector.is_told_by

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """Redact the findings of the policy's families, except those that the policy allows.

        `hint` is read as if it stood before the text (lower case): the key of a JSON value. Values under the policy's `scrub_keys` are
        redacted first, wherever the text contains JSON. Raises ScrubError if repeated passes keep finding more.
        """
        if self.removed_keys is None or ":" not in text:
            return self._scrub(text, hint)
        removed = list(removed_in(self.removed_keys, text))
        if not removed:
            return self._scrub(text, hint)
        under_keys = [(value.start, value.end, SCRUB_KEY.rank) for value in removed]
        shown = [value.shown for value in removed]
        without, places = _replace(text, under_keys, shown)
        result, findings = self._scrub(without, hint)
        others = [(found.start, found.end, self._rank_of[found.family]) for found in findings]
        return Scrubbed(result, self._findings(_absorb(under_keys, shown, places[0], others)))

    def _scrub(self, text: str, hint: bytes) -> Scrubbed:
        """Redact the findings of the families."""
        raw = self._projected(text)
        known: Known | None = {} if len(text) > _LONG else None
        found = self._detect(raw, hint, known)
        if not found:
            return Scrubbed(text, [])
        # The usual case needs no merging and no check for earlier replacements: one finding.
        plain = len(found) == 1 and not (self._allowed or '"' in text or self._may_be_marked(text))
        spans, numbers = (found, Numbers()) if plain else self._removed(text, found)
        allowed = self._let_through(found, spans) if self._allowed else []
        if not spans:
            return Scrubbed(text, self._findings(allowed))
        for number in range(_MOST_PASSES):
            replacements = self._replacements(text, spans, numbers)
            result, places = _replace(text, spans, replacements)
            again = self._detect(self._projected(result), hint, known, None if self._assigns else Changes(*places))
            if again:
                again, _ = self._removed(result, again)
            if not again:
                return Scrubbed(result, self._findings(sorted(spans + allowed) if allowed else spans))
            if number >= _PASSES:
                again = _to_ends_of_lines(result, again)
            spans, numbers = within_json(text, _absorb(spans, replacements, places[0], again))
            allowed = self._let_through(allowed, spans) if allowed else []
        raise ScrubError("scrubbing did not settle; the text must not be stored")

    def categories(self, families: Iterable[str]) -> list[str]:
        """Return the categories of `families`, each once, sorted by name."""
        return sorted({self._category_of[name] for name in families})

    def scrub_json(self, value: Any) -> ScrubbedJson:
        """Scrub every value of a JSON document and count the findings by family; see `json_scrub.scrub_json`."""
        return scrub_json(self, value)

    def _removed_keys(self) -> RemovedKeys:
        own = renderers(self.policy, [SCRUB_KEY])
        hashing = self.policy.action(SCRUB_KEY.name) is Action.HASH

        def render(value: Any) -> str:
            if own is None:
                return self.policy.replacement
            return own[SCRUB_KEY.rank](text_of_any(value) if hashing else "")

        return RemovedKeys(self.policy.scrub_keys, SCRUB_KEY.name, render, self._marker.fullmatch)

    def under_removed_key(self, value: Any) -> Finding:
        """Return the finding of a value that is redacted because of its key.

        For a list or an object it has no span.
        """
        chars = 0 if isinstance(value, dict | list | tuple) else len(str(value))
        return Finding(SCRUB_KEY.name, SCRUB_KEY.category, 0, chars)

    def _projected(self, text: str) -> bytes:
        raw = project(text)
        return self._silence(raw) if self._silence is not None and raw.find(b"[") >= 0 else raw

    def _replacements(self, text: str, spans: list[Span], numbers: Numbers) -> list[str]:
        """Return the replacements of `spans`. `numbers`: JSON numbers among them, whose replacements are in quotes."""
        render, plain = self._render, self.policy.replacement
        shown = [render[rank](text[start:end]) if render else plain for start, end, rank in spans]
        if not numbers:
            return shown
        quotes = [numbers.get(start, "") for start, _, _ in spans]
        return [f"{quote}{new}{quote}" for quote, new in zip(quotes, shown, strict=True)]

    def _findings(self, spans: list[Span]) -> list[Finding]:
        by_rank = self._by_rank
        return [Finding((f := by_rank[rank]).name, f.category, start, end) for start, end, rank in spans]

    def _may_be_marked(self, text: str) -> bool:
        return "[" in text or self.policy.replacement in text

    def _removed(self, text: str, spans: list[Span]) -> tuple[list[Span], Numbers]:
        """Return the spans to redact, in order and without overlap: neither allowed nor already a replacement.

        Also return where redacted JSON numbers begin, as `within_json` does.
        """
        if self._allowed:
            spans = [span for span in spans if span[2] not in self._allowed]
        spans, numbers = within_json(text, merge(spans))
        if not spans or not self._may_be_marked(text):
            return spans, numbers
        marked = [match.span() for match in self._marker.finditer(text)]
        starts = [start for start, _ in marked]
        new = [span for span in spans if (place := bisect_right(starts, span[0]) - 1) < 0 or marked[place][1] < span[1]]
        return new, numbers

    def _let_through(self, found: list[Span], removed: list[Span]) -> list[Span]:
        """Return the allowed spans that do not touch a redacted one: if both cover a stretch, it is redacted."""
        allowed = merge([span for span in found if span[2] in self._allowed])
        starts = [start for start, _, _ in removed]
        return [
            span
            for span in allowed
            if (place := bisect_right(starts, span[1] - 1) - 1) < 0 or removed[place][1] <= span[0]
        ]
