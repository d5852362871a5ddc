"""Find numbers: apply the rules of numeric families to runs of digits and separators."""

import re
from collections.abc import Callable, Sequence

from .automaton import at_once
from .changes import Changes
from .family import MIN_RUN_DIGITS, Accept, Run, RunRule, Span, View

# How far rules look around a run of digits: a sign or parenthesis before it, a word character after it.
LEAD, TRAIL = 4, 2
# The context that decides what a run contains: 48 bytes before a match, which may begin LEAD bytes early, and the words after it.
_RUN_SEES_BEFORE, _RUN_SEES_AFTER = 64, 64
_LONGEST_KNOWN, _MOST_KNOWN = 256, 4096  # limits memory to about a megabyte
# Longer runs are treated alike: no family has longer numbers.
_MANY_DIGITS = 32
_FEW_RUNS = 2
_LONGEST_SHAPE, _MOST_SHAPES = 32, 4096
# Seven digits with only separators between them; fewer digits are not a run.
RUN_IN_SHAPE = rb"9(?:[ \t.\-()/_]*9){6}"

# A rule of a numeric family for the innermost loop: required shape, search, check, rank, whether it is a fallback, the number of the
# keyword it needs nearby (-1: none), the sign it needs.
_NumericRule = tuple[re.Pattern[bytes], Callable[..., re.Match[bytes] | None], Accept, int, bool, int, bytes]
Known = dict[tuple[int, bytes], list[Span]]
"""Findings in a run of digits, by the run and its context; offsets count from the start of the run."""


def _covers(span: Span, start: int, shape: bytes) -> bool:
    """Return whether `span` covers all digits of the run, which leaves none for another rule."""
    return span[0] <= start and span[1] >= start + len(shape.rstrip(b"-"))


class Numbers:
    """Search the digit runs of a text for numeric families. Safe to share between threads."""

    def __init__(self, numeric: Sequence[tuple[int, tuple[RunRule, ...], int]]) -> None:
        """Compile the rules. `numeric`: fewest digits, rules and rank of each family."""
        wakers: dict[bytes, int] = {}
        rows: list[tuple[int, int, _NumericRule]] = []
        for fewest, rules, rank in numeric:
            for rule in rules:
                number = wakers.setdefault(rule.near, len(wakers)) if rule.near else -1
                row = (re.compile(rule.shape), rule.pattern.search, rule.accept, rank, rule.fallback, number, rule.sign)
                rows.append((max(rule.fewest, fewest), rule.most, row))
        self._wakers = at_once(wakers)
        rows.sort(key=lambda row: row[2][4])  # stable: by rank, fallbacks last
        # One row of rules for every number of digits that a run can have; the last row is for all larger numbers.
        self._numeric: tuple[tuple[_NumericRule, ...], ...] = tuple(
            tuple(row for fewest, most, row in rows if fewest <= digits <= most) for digits in range(_MANY_DIGITS + 1)
        )
        # Runs have few distinct shapes, so the rules that can match a shape are computed once. The cache is bounded and safe to race on.
        self._by_shape: dict[bytes, tuple[_NumericRule, ...]] = {}

    def _rules_in(self, shape: bytes, digits: int) -> tuple[_NumericRule, ...]:
        """Return the rules that can match in a run of this shape."""
        rules = self._by_shape.get(shape)
        if rules is None:
            rules = tuple(row for row in self._numeric[min(digits, _MANY_DIGITS)] if row[0].search(shape))
            if len(shape) <= _LONGEST_SHAPE and len(self._by_shape) < _MOST_SHAPES:
                self._by_shape[shape] = rules
        return rules

    def _awake(self, text: bytes) -> int:
        """Return the bit set of the keywords that occur in `text`."""
        awake = 0
        for number in self._wakers(text):
            awake |= 1 << number
        return awake

    def search(self, view: View, spans: list[Span], known: Known | None, changes: Changes | None) -> None:
        """Add findings to `spans`; `known` and `changes` are those of `Detector.detect`."""
        raw, runs = view.raw, view.runs()
        # A keyword that is not in the text is not near any run: with several runs, search the whole text once.
        awake = self._awake(view.hint + view.low) if len(runs) > _FEW_RUNS else -1
        for run in runs:
            start, end = run[0], run[1]
            if changes is not None and not changes.near(start - _RUN_SEES_BEFORE, end + _RUN_SEES_AFTER):
                continue
            if known is None or end - start > _LONGEST_KNOWN:
                self._search_run(view, run, awake, spans)
                continue
            # Near the start of a text the hint is part of the context, so the position is too.
            place = start if start < _RUN_SEES_BEFORE else -1
            key = (place, raw[max(0, start - _RUN_SEES_BEFORE) : end + _RUN_SEES_AFTER])
            found = known.get(key)
            if found is None:
                before = len(spans)
                self._search_run(view, run, awake, spans)
                if len(known) < _MOST_KNOWN:
                    known[key] = [(a - start, b - start, rank) for a, b, rank in spans[before:]]
            elif found:
                spans += [(a + start, b + start, rank) for a, b, rank in found]

    def _search_run(self, view: View, run: Run, awake: int, spans: list[Span]) -> None:
        """Search one run. `awake`: keywords that occur in the text; a rule still needs its keyword near the run."""
        raw, (start, end, digits, shape) = view.raw, run
        first, last, before, here = max(0, start - LEAD), end + TRAIL, len(spans), -1
        for _, search, accept, rank, fallback, waker, sign in self._rules_in(shape, digits):
            if fallback and len(spans) > before:
                break
            if waker >= 0:
                if not awake >> waker & 1:
                    continue
                if here < 0:
                    here = self._awake(view.near(start, end))
                if not here >> waker & 1:
                    continue
            elif sign and raw.find(sign, first, start) < 0:
                continue
            # Most runs match nothing, and a failing search costs half of an empty finditer.
            match = search(raw, first, last)
            while match is not None:
                span = accept(view, match)
                if span is not None:
                    spans.append((*span, rank))
                position = match.end()
                match = search(raw, position, last) if last - position > MIN_RUN_DIGITS else None
            if len(spans) == before + 1 and _covers(spans[before], start, shape):
                break
