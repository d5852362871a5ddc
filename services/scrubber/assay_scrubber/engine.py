"""Scrubber: from a text to the text without personal data, and where it was.

Pure: no I/O, no clock, no state between calls. Work is linear in the length of the text. Scrubbing a scrubbed text
changes nothing: after a replacement the result is searched again, until nothing more is found.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from .custom import search_windows
from .family import MIN_RUN_DIGITS, Always, Digits, Family, Literals, Rule, View
from .policy import Action, Policy
from .projection import project, unfold
from .replacement import markers, renderers
from .taxonomy import Category
from .walk import ScrubbedJson, scrub_json

_NOT_DIGITS = bytes(b for b in range(256) if not 0x30 <= b <= 0x39)
# How far rules look around a run of digits: a sign or parenthesis before, a word character after.
_LEAD, _TRAIL = 4, 2
# One pass finds all but what only a replacement brings into reach of its announcing word; more than three never occur.
_MOST_PASSES = 8
# Above this a run's number of digits makes no difference to the rules: no number of any family is longer.
_MANY_DIGITS = 32

# A rule of a numeric family, its bound search, the shape it needs, its rank: looked up once, for the innermost loop.
_NumericRule = tuple[Rule, Callable[..., re.Match[bytes] | None], bytes, int]
_Span = tuple[int, int, int]  # start, end, rank


class ScrubError(RuntimeError):
    """The text could not be scrubbed. Its caller must not store it."""


class Finding(NamedTuple):
    """What was found where: offsets of code points in the original text, end exclusive. Never the text itself."""

    family: str
    category: Category
    start: int
    end: int


class Scrubbed(NamedTuple):
    """`findings` are in order of their position and do not overlap."""

    text: str
    findings: list[Finding]


def merge(spans: list[_Span]) -> list[_Span]:
    """Spans that overlap become one, named by the smallest rank among them; in order of position."""
    spans.sort()
    merged: list[_Span] = []
    for start, end, rank in spans:
        if merged and start < merged[-1][1]:
            last_start, last_end, last_rank = merged[-1]
            merged[-1] = (last_start, max(last_end, end), min(last_rank, rank))
        else:
            merged.append((start, end, rank))
    return merged


def _replace(text: str, spans: list[_Span], replacements: list[str]) -> str:
    parts, position = [], 0
    for (start, end, _), replacement in zip(spans, replacements, strict=True):
        parts.append(text[position:start])
        parts.append(replacement)
        position = end
    parts.append(text[position:])
    return "".join(parts)


def _absorb(spans: list[_Span], replacements: list[str], again: list[_Span]) -> list[_Span]:
    """`again` was found in the replaced text: add it to `spans`, in offsets of the original."""
    starts, shift = [], 0  # of each replacement, in the replaced text
    for (start, end, _), replacement in zip(spans, replacements, strict=True):
        starts.append(start + shift)
        shift += len(replacement) - (end - start)

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


def _covers(span: _Span, start: int, shape: bytes) -> bool:
    """True when `span` holds all digits of the run: nothing is left for another rule to find."""
    return span[0] <= start and span[1] >= start + len(shape.rstrip(b"-"))


class Scrubber:
    """Applies one policy, and families of its own beside the registry's. Safe to share between threads."""

    def __init__(self, policy: Policy | None = None, custom: Iterable[Family] = ()) -> None:
        policy = policy if policy is not None else Policy()
        self.policy = replace(policy, custom=(*policy.custom, *custom)) if custom else policy
        self.fingerprint = self.policy.fingerprint
        families = self.policy.members()
        self._render = renderers(self.policy, families)
        self._marker = markers(self.policy)
        self._allowed = frozenset(f.rank for f in families if self.policy.action(f.name) is Action.ALLOW)
        self._always = tuple(family for family in families if isinstance(family.gate, Always))
        self._by_rank = {family.rank: family for family in families}
        literal = [(family, family.gate.needles) for family in families if isinstance(family.gate, Literals)]
        self._literal = tuple((needle, family) for family, needles in literal for needle in needles)
        numeric = [(family, family.gate.fewest) for family in families if isinstance(family.gate, Digits)]
        self._fewest_digits = min((fewest for _, fewest in numeric), default=1 << 62)
        rows = [(rule, rule.pattern.search, rule.shape, family.rank) for family, _ in numeric for rule in family.rules]
        rows.sort(key=lambda row: row[0].fallback)  # stable: by rank, fallbacks last
        fewest = {family.rank: fewest for family, fewest in numeric}
        # One row of rules for every number of digits that a run can have; the last one for all above.
        self._numeric: tuple[tuple[_NumericRule, ...], ...] = tuple(
            tuple(row for row in rows if max(row[0].fewest, fewest[row[3]]) <= digits <= row[0].most)
            for digits in range(_MANY_DIGITS + 1)
        )

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """The text without what the policy's families find in it, but for what the policy allows.

        `hint` is read as if it stood before the text (lower case): the key that a JSON value stands under.
        Raises ScrubError when the result does not settle.
        """
        found = self._detect(text, hint)
        if not found:
            return Scrubbed(text, [])
        spans = self._removed(text, found)
        allowed = self._let_through(found, spans) if self._allowed else []
        if not spans:
            return Scrubbed(text, self._findings(allowed))
        for _ in range(_MOST_PASSES):
            replacements = self._replacements(text, spans)
            result = _replace(text, spans, replacements)
            again = self._detect(result, hint)
            if again:
                again = self._removed(result, again)
            if not again:
                return Scrubbed(result, self._findings(sorted(spans + allowed) if allowed else spans))
            spans = _absorb(spans, replacements, again)
            allowed = self._let_through(allowed, spans) if allowed else []
        raise ScrubError("scrubbing did not settle; the text must not be stored")

    def scrub_json(self, value: Any) -> ScrubbedJson:
        """Every value of a JSON document scrubbed, and findings by family; see `walk.scrub_json`."""
        return scrub_json(self, value)

    def _replacements(self, text: str, spans: list[_Span]) -> list[str]:
        render = self._render
        if render is None:
            return [self.policy.replacement] * len(spans)
        return [render[rank](text[start:end]) for start, end, rank in spans]

    def _findings(self, spans: list[_Span]) -> list[Finding]:
        by_rank = self._by_rank
        return [Finding((f := by_rank[rank]).name, f.category, start, end) for start, end, rank in spans]

    def _removed(self, text: str, spans: list[_Span]) -> list[_Span]:
        """What of `spans` has to go: not what is allowed, nor what is a replacement already. In order, without overlap."""
        if self._allowed:
            spans = [span for span in spans if span[2] not in self._allowed]
        if spans and "[" in text:
            marked = [match.span() for match in self._marker.finditer(text)]
            if marked:
                starts = [start for start, _ in marked]
                spans = [
                    span
                    for span in spans
                    if (place := bisect_right(starts, span[0]) - 1) < 0 or marked[place][1] < span[1]
                ]
        return merge(spans) if len(spans) > 1 else spans

    def _let_through(self, found: list[_Span], removed: list[_Span]) -> list[_Span]:
        """The allowed spans that touch nothing that is removed: where both claim a stretch, it goes."""
        allowed = merge([span for span in found if span[2] in self._allowed])
        starts = [start for start, _, _ in removed]
        return [
            span
            for span in allowed
            if (place := bisect_right(starts, span[1] - 1) - 1) < 0 or removed[place][1] <= span[0]
        ]

    def _detect(self, text: str, hint: bytes) -> list[_Span]:
        raw = project(text)
        spans = self._search(raw, hint)
        unfolded = unfold(raw)
        if unfolded is not None:
            for start, end, rank in self._search(unfolded.seen, hint):
                spans.append((*unfolded.origin(start, end), rank))
        return spans

    def _search(self, raw: bytes, hint: bytes) -> list[_Span]:
        low = raw.lower()
        spans: list[_Span] = []
        view: View | None = None
        for needle, family in self._literal:
            if needle in low:
                if view is None:
                    view = View(raw, low, hint)
                for rule in family.rules:
                    accept = rule.accept
                    for match in rule.pattern.finditer(low if rule.lower else raw):
                        span = accept(view, match)
                        if span is not None:
                            spans.append((*span, family.rank))
        if len(raw.translate(None, _NOT_DIGITS)) >= self._fewest_digits:
            self._search_runs(view or View(raw, low, hint), spans)
        for family in self._always:
            for rule in family.rules:
                for match in search_windows(rule.pattern, raw):
                    span = rule.accept(view or View(raw, low, hint), match)
                    if span is not None:
                        spans.append((*span, family.rank))
        return spans

    def _search_runs(self, view: View, spans: list[_Span]) -> None:
        runs = view.runs()
        if not runs:
            return
        raw = view.raw
        absent: set[Rule] = set()
        present: set[Rule] = set()
        for start, end, digits, shape in runs:
            first, last, before = max(0, start - _LEAD), end + _TRAIL, len(spans)
            for rule, search, needle, rank in self._numeric[min(digits, _MANY_DIGITS)]:
                if needle not in shape or (rule.fallback and len(spans) > before):
                    continue
                if rule.words is not None and rule not in present:
                    if rule in absent or not view.mentions(rule.words):
                        absent.add(rule)
                        continue
                    present.add(rule)
                # Most runs match nothing, and a failing search costs half of an empty finditer.
                match = search(raw, first, last)
                while match is not None:
                    span = rule.accept(view, match)
                    if span is not None:
                        spans.append((*span, rank))
                    position = match.end()
                    match = search(raw, position, last) if last - position > MIN_RUN_DIGITS else None
                if len(spans) == before + 1 and _covers(spans[before], start, shape):
                    break
