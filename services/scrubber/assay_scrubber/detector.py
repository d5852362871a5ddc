"""Find the spans of a text that match the rules of the families.

Pure, and linear in the length of the text. Each rule has a prefilter (a gate): a search for one literal, or a count of a few bytes. A
pattern runs only if its prefilter matched.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from .automaton import at_once, whole_word
from .changes import Changes
from .context_words import words_of
from .custom import search_windows
from .digit_runs import LEAD, RUN_IN_SHAPE, TRAIL, Known, Numbers
from .encoded import base64_at, base64_between_slashes
from .family import (
    Always,
    Announced,
    AnnouncedRule,
    Digits,
    Family,
    Gate,
    Judge,
    LiteralRule,
    Literals,
    LongWords,
    Rule,
    RunRule,
    Seen,
    ShapeRule,
    Shapes,
    Span,
    Together,
    View,
    WordRule,
    shape_of,
)
from .lexicon import Announces
from .projection import SHOWN, project, unfold
from .taxonomy import Category
from .vendor_keys import Finder

_NOT_DIGITS = bytes(b for b in range(256) if not 0x30 <= b <= 0x39)
# The characters that prose consists of are dropped; the rest is short, so most prefilters read a few bytes. `=` and `>` count as `:`.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ,.'\n\t\r?!;\"()[]{}/*#+~|`^$"
_MARKS = bytes.maketrans(b"=>", b"::")
_WORD_CLASSES = bytes(0x77 if bytes([b]).isalnum() or b in b"_-" else b if b == 0x2E else 0x20 for b in range(256))
_LONG_WORD = b"w" * 16
_LONG_WORDS = re.compile(_LONG_WORD + rb"w*+")  # begins with a literal, which the search skips to
_LONGEST_BEFORE_DOT, _LONGEST_AFTER_DOT = 40, 130
# Characters of words that no rule matches: names in code, and hashes and IDs in hexadecimal digits.
_SMALL = b"abcdefghijklmnopqrstuvwxyz_-"
_DECIMALS = b"0123456789"
_HEXADECIMAL = b"0123456789abcdef-"
_JOINS = (b"+", b"/")  # characters that join a long word to more of the same base64
# The fewest digits of any value that a keyword precedes; some countries' passport numbers are nearly all letters.
_FEWEST_ANNOUNCED, _FEWEST_SHAPED = 2, 4
# A MAC address has at least this many hyphens or colons, an IPv6 address as many colons or two in a row; neither needs a digit.
_FEWEST_PAIRED = 5
# How far the context of a long word reaches on either side: the parts that are joined to it by dots.
_WORD_SEES = 192
# How far the check of a match at a literal looks beyond the match.
_MATCH_SEES = 264

_FEW, _NO_RANK = 8, 1 << 62
_MOST_HINTS = 1024
_Said = tuple[tuple[int, ...], tuple[tuple[Judge, int], ...]]  # numbers of the keywords; judges and their ranks
_NOTHING_SAID: _Said = ((), ())
_LONGEST_KEYED = 4096
Long = tuple[int, int, bytes]  # start, end, the characters of it that are not lower-case letters
_LiteralRow = tuple[bytes, int, bytes, LiteralRule, int]  # required mark and number of digits, needle, rule, rank


def _opener(rule: LiteralRule) -> bytes:
    """Return the RE2 pattern that a text must contain for a rule to run."""
    return rule.opens or re.escape(rule.needle)


_Kind = TypeVar("_Kind", bound=Rule)


def _of(kind: type[_Kind], rules: tuple[Rule, ...]) -> tuple[_Kind, ...]:
    """Return the rules behind a gate; TypeError if a rule is of another gate's kind, since it would never run."""
    own = tuple(rule for rule in rules if isinstance(rule, kind))
    if len(own) < len(rules):
        raise TypeError(f"every rule behind this gate must be a {kind.__name__}")
    return own


def _marks_of(raw: bytes) -> bytes:
    """Return the characters of the text that prose does not consist of."""
    return raw.translate(_MARKS, _PLAIN)


def _has_pairs(marks: bytes) -> bool:
    return marks.count(b":") >= _FEWEST_PAIRED or marks.count(b"-") >= _FEWEST_PAIRED


def _long_words(raw: bytes, words: bytes) -> list[Long]:
    """Return the long words that are neither names in code nor hexadecimal."""
    found = []
    for word in _LONG_WORDS.finditer(words):
        start, end = word.span()
        written = raw[start:end]
        kinds = written.translate(None, _SMALL)
        if kinds and written.translate(None, _HEXADECIMAL):
            found.append((start, end, kinds))
    return found


def _has_assigned(text: bytes) -> bool:
    """Return whether the text contains an assignment mark; most rules for secrets need one."""
    return text.find(b":") >= 0 or text.find(b"=") >= 0 or text.find(b">") >= 0


def _is_old(raw: bytes, start: int, end: int, changes: Changes) -> bool:
    """Return whether the context of a long word, including the rest of its base64, is unchanged."""
    if changes.near(start - _WORD_SEES, end + _WORD_SEES):
        return False
    return raw[end : end + 1] not in _JOINS and raw[start - 1 : start] not in _JOINS


class Detector:
    """Search texts for the families that it is created with. Safe to share between threads."""

    def __init__(self, families: Sequence[Family], also: tuple[Finder, int] | None = None) -> None:
        """Prepare the prefilters. `also`: an extra finder for projected texts, and the rank of the family that names its findings."""
        self._also = also
        self._keyed = tuple(family for family in families if family.keyed is not None)
        parts = [(gate, rules, family.rank) for family in families for gate, rules in family.parts]
        self._always = tuple((rules, rank) for gate, rules, rank in parts if isinstance(gate, Always))
        self._rows: list[list[_LiteralRow]] = []
        self._announced: list[tuple[bytes, list[tuple[AnnouncedRule, int]]]] = []
        self._set_needles(parts)
        long = [
            (rule, rank) for gate, rules, rank in parts if isinstance(gate, LongWords) for rule in _of(WordRule, rules)
        ]
        self._first_long = min((rank for _, rank in long), default=0)
        self._long = tuple((rule, rule.pattern.search, rank) for rule, rank in long if not rule.anchored)
        self._long_at_start = tuple((rule, rank) for rule, rank in long if rule.anchored)
        starts = [rule.pattern.pattern for rule, _ in self._long_at_start]
        # One combined search: hardly any word matches at its start.
        self._at_start = re.compile(b"|".join(b"(?:%b)" % start for start in starts)) if starts else None
        # Credentials are never allowed, so a word that is already covered by one is not searched again, except to name it.
        self._credentials = frozenset(family.rank for family in families if family.category is Category.CREDENTIAL)
        self._numbers = Numbers(
            [(gate.fewest, _of(RunRule, rules), rank) for gate, rules, rank in parts if isinstance(gate, Digits)]
        )
        self._by_hint: dict[bytes, _Said] = {}

    def _set_needles(self, parts: list[tuple[Gate, tuple[Rule, ...], int]]) -> None:
        """Map each pattern of the automata to its rules.

        The second automaton reads only texts that contain more than letters and full stops.
        """
        literal: dict[bytes, list[_LiteralRow]] = {}
        announced: dict[bytes, list[tuple[AnnouncedRule, int]]] = {}
        together: dict[bytes, list[_LiteralRow]] = {}
        shapes: list[bytes] = []
        self._shapes: list[tuple[tuple[ShapeRule, ...], int, bool]] = []
        for gate, rules, rank in parts:
            if isinstance(gate, Shapes | Seen):
                shapes.append(gate.pattern)
                self._shapes.append((_of(ShapeRule, rules), rank, isinstance(gate, Shapes)))
            elif isinstance(gate, Announced):
                for word in _of(AnnouncedRule, rules):
                    announced.setdefault(word.needle, []).append((word, rank))
            elif isinstance(gate, Together):
                for rule in _of(LiteralRule, rules):
                    fewest = max(rule.fewest, gate.fewest)
                    together.setdefault(_opener(rule), []).append((b"", fewest, rule.needle, rule, rank))
            elif isinstance(gate, Literals):
                for rule in _of(LiteralRule, rules):
                    for needle in [rule.needle] if rule.needle or rule.opens else gate.needles:
                        opener = rule.opens or re.escape(needle)
                        literal.setdefault(opener, []).append((gate.mark, rule.fewest, needle, rule, rank))
        self._together, self._which = list(together.values()), at_once(together)
        self._rows, self._announced = list(literal.values()), list(announced.items())
        self._announcing = {word: number for number, word in enumerate(announced)}
        self._needles = at_once([*literal, *(whole_word(word) for word in announced)])
        self._in_shape = at_once([*shapes, RUN_IN_SHAPE])

    def detect(self, raw: bytes, hint: bytes, known: Known | None = None, changes: Changes | None = None) -> list[Span]:
        """Return (start, end, rank of the family) of each finding in a projected text, unordered.

        `hint` is read as if it stood before the text.

        `known`: findings in runs of digits of the same text or another version of it, under the same hint. A run whose context is unchanged
        is not searched again: decoding and replacing leave most of them unchanged.
        `changes`: where the text differs from one that was searched under the same hint, and whose findings have been replaced. Only
        findings in changed places are then guaranteed. No change may introduce the text's first assignment mark.
        """
        marks = _marks_of(raw)
        spans = self._search(raw, marks, hint, known, changes)
        if marks.translate(None, SHOWN):
            unfolded = unfold(raw)
            if unfolded is not None:
                if changes is not None:
                    changes = changes.unfolded(unfolded)
                elif (not unfolded.respelled and _has_assigned(raw)) or (
                    not unfolded.respelled and not _has_assigned(unfolded.seen)
                ):
                    changes = Changes(unfolded.gaps, unfolded.gaps)  # the rest of it has just been searched
                seen = unfolded.seen
                for start, end, rank in self._search(seen, _marks_of(seen), hint, known, changes):
                    spans.append((*unfolded.origin(start, end), rank))
        return spans

    def _search(
        self,
        raw: bytes,
        marks: bytes,
        hint: bytes,
        known: Known | None = None,
        changes: Changes | None = None,
        decode: bool = True,
    ) -> list[Span]:
        """Search one version of the text. `marks`: those of the text. `decode`: also search inside base64."""
        low, words = raw.lower(), raw.translate(_WORD_CLASSES)
        opened = self._needles(low)
        second, shapes, digits = self._opened_by(raw, low, marks)
        said = self._said_by(hint) if hint else _NOTHING_SAID
        has_long = words.find(_LONG_WORD) >= 0
        long = _long_words(raw, words) if has_long else []
        if not (
            opened or second or shapes or long or said is not _NOTHING_SAID or self._always or (has_long and self._also)
        ):
            return []  # nearly every text ends here
        view, spans, announcing = View(raw, low, hint), list[Span](), said[0]
        if opened:
            announcing = self._search_literals(view, opened, marks, digits, announcing, spans, changes)
        if second:
            self._search_together(view, second, digits, spans, changes)
        for judge, rank in said[1]:
            value = raw.strip()
            if value and len(value) <= _LONGEST_KEYED and judge(value):
                spans.append((0, len(raw), rank))
        if long:
            self._search_long_words(view, long, spans, changes, decode)
        if has_long and self._also is not None:
            find, rank = self._also
            spans += [(start, end, rank) for start, end in find(raw)]
        if announcing and digits >= _FEWEST_ANNOUNCED:
            self._search_announced(view, announcing, spans)
        if shapes:
            self._search_shapes(view, shapes, spans, known, changes)
        if self._always:
            self._search_always(view, spans)
        return spans

    def _opened_by(self, raw: bytes, low: bytes, marks: bytes) -> tuple[list[int] | None, list[int] | None, int]:
        """Return the matched needles of the second automaton, the matched shapes, and the number of digits.

        A text of letters and full stops alone has none of them.
        """
        if not marks:
            return (self._which(low) if raw.find(b"'") >= 0 or raw.find(b'"') >= 0 else None), None, 0
        digits = len(marks.translate(None, _NOT_DIGITS))
        shaped = digits >= _FEWEST_SHAPED or _has_pairs(marks) or raw.find(b"::") >= 0
        return self._which(low), self._in_shape(shape_of(raw)) if shaped else None, digits

    def is_told_by(self, hint: bytes) -> bool:
        """Return whether the key of a JSON value, as words, contains a keyword."""
        return bool(hint) and self._said_by(hint) is not _NOTHING_SAID

    def _said_by(self, hint: bytes) -> _Said:
        """Return the keywords in the key of a JSON value, and the judges of the whole value."""
        said = self._by_hint.get(hint)
        if said is None:
            words = (*words_of(hint), *(kind.byte for kind in Announces if hint.find(kind) >= 0))
            announcing = tuple(self._announcing[word] for word in words if word in self._announcing)
            judges = tuple(
                (judge, family.rank) for family in self._keyed if family.keyed and (judge := family.keyed(hint))
            )
            said = (announcing, judges) if announcing or judges else _NOTHING_SAID
            if len(self._by_hint) < _MOST_HINTS:
                self._by_hint[hint] = said
        return said

    def _search_literals(
        self,
        view: View,
        opened: list[int],
        marks: bytes,
        digits: int,
        said: tuple[int, ...],
        spans: list[Span],
        changes: Changes | None,
    ) -> tuple[int, ...]:
        """Run the rules whose needles matched (`opened`). Return the numbers of the keywords, including the hint's."""
        literals = len(self._rows)
        for number in opened:
            if number >= literals:
                said = said if number - literals in said else (*said, number - literals)
                continue
            for mark, fewest, needle, rule, rank in self._rows[number]:
                if digits >= fewest and marks.find(mark) >= 0:
                    _search_literal(view, needle, rule, rank, spans, changes)
        return said

    def _search_together(
        self, view: View, opened: list[int], digits: int, spans: list[Span], changes: Changes | None
    ) -> None:
        for number in opened:
            for _, fewest, needle, rule, rank in self._together[number]:
                if digits >= fewest:
                    _search_literal(view, needle, rule, rank, spans, changes)

    def _search_always(self, view: View, spans: list[Span]) -> None:
        for rules, rank in self._always:
            for rule in rules:
                for match in search_windows(rule.pattern, view.raw):
                    span = rule.accept(view, match)
                    if span is not None:
                        spans.append((*span, rank))

    def _search_shapes(
        self, view: View, shapes: list[int], spans: list[Span], known: Known | None, changes: Changes | None
    ) -> None:
        """Search for families that need digits or pairs of them."""
        for number in shapes:
            if number == len(self._shapes):
                self._numbers.search(view, spans, known, changes)
                continue
            rules, rank, shaped = self._shapes[number]
            text = view.shape() if shaped else view.raw
            for rule in rules:
                if rule.anchored:
                    _search_at(view, text, rule.needle, text, rule, rank, spans, changes)
                else:
                    _search_whole(view, text, rule, rank, spans)

    def _search_announced(self, view: View, announcing: tuple[int, ...], spans: list[Span]) -> None:
        head, skipped = view.hint + view.low, len(view.hint)
        for number in announcing:
            word, rules = self._announced[number]
            for rule, rank in rules:
                found = head.find(word)
                while found >= 0:
                    match = rule.pattern.match(head, found)
                    span = rule.accept(view, match) if match is not None else None
                    if span is not None and span[0] >= skipped:
                        spans.append((span[0] - skipped, span[1] - skipped, rank))
                    found = head.find(word, match.end() if match is not None else found + 1)

    def _search_long_words(
        self, view: View, long: list[Long], spans: list[Span], changes: Changes | None, decode: bool
    ) -> None:
        raw, decoded_to = view.raw, 0
        known = spans[:_FEW]  # findings of the literals; a text full of them is still searched
        for start, end, kinds in long:
            if changes is not None and _is_old(raw, start, end, changes):
                continue
            within = min((rank for a, b, rank in known if a <= start and end <= b), default=_NO_RANK)
            if within < self._first_long:
                continue
            self._search_long_word(view, start, end, spans)
            # Base64 of text has letters of both cases; hashes, IDs and names in code do not.
            if (
                decode
                and within not in self._credentials
                and start >= decoded_to
                and kinds.translate(None, _DECIMALS)
                and not raw[start:end].isupper()
            ):
                decoded_to = self._search_encoded(raw, decoded_to, start, spans)

    def _search_long_word(self, view: View, start: int, end: int, spans: list[Span]) -> None:
        raw, last = view.raw, min(len(view.raw), end + TRAIL)
        if self._at_start is not None and self._at_start.match(raw, start, last) is not None:
            for rule, rank in self._long_at_start:
                match = rule.pattern.match(raw, start, last)
                if match is not None and (span := rule.accept(view, match)) is not None:
                    spans.append((*span, rank))
        dotted = raw[start - 1 : start] == b"." or raw[end : end + 1] == b"."
        for rule, search, rank in self._long:
            if rule.dotted:
                if not dotted:
                    continue
                first, last = max(0, start - _LONGEST_BEFORE_DOT), min(len(raw), end + _LONGEST_AFTER_DOT)
            else:
                first, last = max(0, start - LEAD), min(len(raw), end + TRAIL)
            match = search(raw, first, last)
            while match is not None:
                if (span := rule.accept(view, match)) is not None:
                    spans.append((*span, rank))
                match = search(raw, max(match.end(), match.start() + 1), last)

    def _search_encoded(self, raw: bytes, before: int, start: int, spans: list[Span]) -> int:
        """Search inside the base64 around `start`; return its end. Base64 that contains a finding is redacted as a whole."""
        found = base64_at(raw, before, start)
        if found is None:
            return start
        first, last, text = found
        for a, b, inside in [found] if text else base64_between_slashes(raw, first, last):
            inner = project(inside)
            ranks = [rank for _, _, rank in self._search(inner, _marks_of(inner), b"", decode=False)]
            if not ranks and (unfolded := unfold(inner)) is not None:
                ranks = [
                    rank for _, _, rank in self._search(unfolded.seen, _marks_of(unfolded.seen), b"", decode=False)
                ]
            if ranks:
                spans.append((a, b, min(ranks)))
        return last


def _search_literal(
    view: View, needle: bytes, rule: LiteralRule, rank: int, spans: list[Span], changes: Changes | None
) -> None:
    text = view.low if rule.lower else view.raw
    if rule.anchored:
        _search_at(view, view.low, needle, text, rule, rank, spans, changes)
    else:
        _search_whole(view, text, rule, rank, spans)


def _search_at(
    view: View,
    haystack: bytes,
    needle: bytes,
    text: bytes,
    rule: LiteralRule | ShapeRule,
    rank: int,
    spans: list[Span],
    changes: Changes | None,
) -> None:
    """Add the rule's matches in `text` at each place where `haystack` contains `needle`."""
    find, at = haystack.find, rule.pattern.match
    spread = rule.spread if isinstance(rule, LiteralRule) else None
    found = find(needle)
    while found >= 0:
        match = at(text, found)
        if match is None:
            found = find(needle, found + 1)
            continue
        if changes is None or changes.near(found - _MATCH_SEES, match.end() + _MATCH_SEES):
            if spread is not None:
                spans += [(start, end, rank) for start, end in spread(view, match)]
            elif (span := rule.accept(view, match)) is not None:
                spans.append((*span, rank))
        found = find(needle, match.end())


def _search_whole(view: View, text: bytes, rule: LiteralRule | ShapeRule, rank: int, spans: list[Span]) -> None:
    spread = rule.spread if isinstance(rule, LiteralRule) else None
    for match in rule.pattern.finditer(text):
        if spread is not None:
            spans += [(start, end, rank) for start, end in spread(view, match)]
        elif (span := rule.accept(view, match)) is not None:
            spans.append((*span, rank))
