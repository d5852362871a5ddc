"""Detector: where in a text the families find something.

Pure, and linear in the length of the text. A text is looked at through gates, each a search for one literal or a count of
a few bytes; patterns run only behind a gate that opened.
"""

import re
from collections.abc import Callable, Sequence

from .announced import words_of
from .custom import search_windows
from .encoded import base64_at
from .family import MIN_RUN_DIGITS, Always, Announced, Digits, Family, Literals, LongWords, Marks, Rule, Shapes, View
from .projection import project, unfold

_NOT_DIGITS = bytes(b for b in range(256) if not 0x30 <= b <= 0x39)
# What prose is made of is left out, the rest is short: most gates are a look at a few bytes. All that assigns is ':'.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ,.'\n\t\r?!;\"()[]{}/*#+~|`^$"
_MARKS = bytes.maketrans(b"=>", b"::")
_WORD_CLASSES = bytes(0x77 if bytes([b]).isalnum() or b in b"_-" else 0x20 for b in range(256))
_LONG_WORD = b"w" * 16
_LONG_WORDS = re.compile(_LONG_WORD + rb"w*+")  # begins with a literal, which the search skips to
_LONGEST_BEFORE_DOT, _LONGEST_AFTER_DOT = 40, 130
# No number, date or id that a word announces has fewer digits.
_FEWEST_ANNOUNCED = 4
# How far rules look around a run of digits: a sign or parenthesis before, a word character after.
_LEAD, _TRAIL = 4, 2
# Above this a run's number of digits makes no difference to the rules: no number of any family is longer.
_MANY_DIGITS = 32

# A rule of a numeric family, its bound search, the shape it needs, its rank: looked up once, for the innermost loop.
_NumericRule = tuple[Rule, Callable[..., re.Match[bytes] | None], bytes, int]
Span = tuple[int, int, int]  # start, end, rank
_LiteralPart = tuple[Literals, tuple[Rule, ...], int]


def _covers(span: Span, start: int, shape: bytes) -> bool:
    """True when `span` holds all digits of the run: nothing is left for another rule to find."""
    return span[0] <= start and span[1] >= start + len(shape.rstrip(b"-"))


class Detector:
    """Looks for the families it is made with. Safe to share between threads."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._keyed = tuple(family for family in families if family.keyed is not None)
        parts = [(gate, rules, family.rank) for family in families for gate, rules in family.parts]
        self._always = tuple((rules, rank) for gate, rules, rank in parts if isinstance(gate, Always))
        self._literal = tuple((gate, rules, rank) for gate, rules, rank in parts if isinstance(gate, Literals))
        self._prose = tuple(row for row in self._literal if row[0].prose)
        self._announced: dict[bytes, list[tuple[Rule, int]]] = {}
        for gate, rules, rank in parts:
            if isinstance(gate, Announced):
                for rule in rules:
                    self._announced.setdefault(rule.needle, []).append((rule, rank))
        self._announcing = frozenset(self._announced)
        self._marks = tuple((gate, rules, rank) for gate, rules, rank in parts if isinstance(gate, Marks))
        self._shapes = tuple(
            (gate.fewest, rule, rank) for gate, rules, rank in parts if isinstance(gate, Shapes) for rule in rules
        )
        self._fewest_in_shapes = min((fewest for fewest, _, _ in self._shapes), default=1 << 62)
        self._long = tuple(
            (rule, rule.pattern.match if rule.anchored else rule.pattern.search, rank)
            for gate, rules, rank in parts
            if isinstance(gate, LongWords)
            for rule in rules
        )
        self._set_numeric([(gate.fewest, rules, rank) for gate, rules, rank in parts if isinstance(gate, Digits)])

    def _set_numeric(self, numeric: list[tuple[int, tuple[Rule, ...], int]]) -> None:
        self._fewest_digits = min((fewest for fewest, _, _ in numeric), default=1 << 62)
        rows = [(rule, rule.pattern.search, rule.shape, rank) for _, rules, rank in numeric for rule in rules]
        rows.sort(key=lambda row: row[0].fallback)  # stable: by rank, fallbacks last
        fewest = {rank: fewest for fewest, _, rank in numeric}
        # One row of rules for every number of digits that a run can have; the last one for all above.
        self._numeric: tuple[tuple[_NumericRule, ...], ...] = tuple(
            tuple(row for row in rows if max(row[0].fewest, fewest[row[3]]) <= digits <= row[0].most)
            for digits in range(_MANY_DIGITS + 1)
        )

    def detect(self, text: str, hint: bytes) -> list[Span]:
        """(start, end, rank of the family) of what is found, unordered; `hint` is read as if it stood before the text."""
        raw = project(text)
        marks = raw.translate(_MARKS, _PLAIN)
        spans = self._search(raw, marks, hint)
        if b"%" in marks or b"\\" in marks or b"&" in marks or not marks.isascii():
            unfolded = unfold(raw)
            if unfolded is not None:
                seen = unfolded.seen
                for start, end, rank in self._search(seen, seen.translate(_MARKS, _PLAIN), hint):
                    spans.append((*unfolded.origin(start, end), rank))
        return spans

    def _search(self, raw: bytes, marks: bytes, hint: bytes, *, decode: bool = True) -> list[Span]:
        """`marks`: what is left of `raw` without letters, spaces and commas. `decode`: look into base64 too."""
        view = View(raw, raw.lower(), hint)
        spans: list[Span] = []
        self._search_literals(view, self._literal if marks else self._prose, marks, spans)
        if hint:
            for family in self._keyed:
                span = family.keyed(view) if family.keyed else None
                if span is not None:
                    spans.append((*span, family.rank))
        words = raw.translate(_WORD_CLASSES)
        if _LONG_WORD in words:
            self._search_long_words(view, words, spans, decode=decode)
        if marks:
            self._search_marks(view, marks, spans)
        for rules, rank in self._always:
            for rule in rules:
                for match in search_windows(rule.pattern, raw):
                    span = rule.accept(view, match)
                    if span is not None:
                        spans.append((*span, rank))
        return spans

    def _search_literals(self, view: View, parts: tuple[_LiteralPart, ...], marks: bytes, spans: list[Span]) -> None:
        low = view.low
        for gate, rules, rank in parts:
            if gate.mark in marks:
                for needle in gate.needles:
                    if needle in low:
                        break
                else:
                    continue
                for rule in rules:
                    if rule.needle in low:
                        for match in rule.pattern.finditer(low if rule.lower else view.raw):
                            span = rule.accept(view, match)
                            if span is not None:
                                spans.append((*span, rank))

    def _search_marks(self, view: View, marks: bytes, spans: list[Span]) -> None:
        """Families that need more than letters, spaces and commas."""
        for gate, rules, rank in self._marks:
            if gate.mark in marks and marks.count(gate.mark) >= gate.fewest:
                for rule in rules:
                    for match in rule.pattern.finditer(view.raw):
                        span = rule.accept(view, match)
                        if span is not None:
                            spans.append((*span, rank))
        digits = len(marks.translate(None, _NOT_DIGITS))
        if digits < _FEWEST_ANNOUNCED:
            return
        self._search_announced(view, spans)
        if digits >= self._fewest_in_shapes:
            self._search_shapes(view, digits, spans)
        if digits >= self._fewest_digits:
            self._search_runs(view, spans)

    def _search_shapes(self, view: View, digits: int, spans: list[Span]) -> None:
        shape = view.shape()
        for fewest, rule, rank in self._shapes:
            if digits >= fewest and rule.shape in shape:
                for match in rule.pattern.finditer(shape):
                    span = rule.accept(view, match)
                    if span is not None:
                        spans.append((*span, rank))

    def _search_announced(self, view: View, spans: list[Span]) -> None:
        head, skipped = view.hint + view.low, len(view.hint)
        for word in self._announcing.intersection(words_of(head)):
            for rule, rank in self._announced[word]:
                for match in rule.pattern.finditer(head):
                    span = rule.accept(view, match)
                    if span is not None and span[0] >= skipped:
                        spans.append((span[0] - skipped, span[1] - skipped, rank))

    def _search_long_words(self, view: View, words: bytes, spans: list[Span], *, decode: bool) -> None:
        raw, size, decoded_to = view.raw, len(view.raw), 0
        for word in _LONG_WORDS.finditer(words):
            start, end = word.span()
            dotted = raw[start - 1 : start] == b"." or raw[end : end + 1] == b"."
            for rule, find, rank in self._long:
                if rule.dotted:
                    if not dotted:
                        continue
                    first, last = max(0, start - _LONGEST_BEFORE_DOT), min(size, end + _LONGEST_AFTER_DOT)
                else:
                    first, last = start if rule.anchored else max(0, start - _LEAD), min(size, end + _TRAIL)
                match = find(raw, first, last)
                while match is not None:
                    span = rule.accept(view, match)
                    if span is not None:
                        spans.append((*span, rank))
                    match = None if rule.anchored else find(raw, max(match.end(), match.start() + 1), last)
            if decode and start >= decoded_to:
                decoded_to = self._search_encoded(raw, decoded_to, start, spans)

    def _search_encoded(self, raw: bytes, before: int, start: int, spans: list[Span]) -> int:
        """Looks into the base64 around `start`; returns where it ends. What holds a finding goes whole."""
        found = base64_at(raw, before, start)
        if found is None:
            return start
        first, last, text = found
        if text:
            inner = project(text)
            ranks = [rank for _, _, rank in self._search(inner, inner.translate(_MARKS, _PLAIN), b"", decode=False)]
            if ranks:
                spans.append((first, last, min(ranks)))
        return last

    def _search_runs(self, view: View, spans: list[Span]) -> None:
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
