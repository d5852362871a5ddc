"""Define a family: a cheap prefilter (gate), precise patterns, and a check of each match."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .projection import LETTER
from .taxonomy import Category

Run = tuple[int, int, int, bytes]  # start, end, digits, shape: '9' for a digit, '-' for a separator
Span = tuple[int, int, int]  # start, end, rank of the family


class View:
    """One projected text under inspection.

    All offsets are offsets into `raw`; `low` is `raw` in lower case.
    """

    __slots__ = ("_runs", "_shape", "_spent", "hint", "judged", "low", "raw")

    def __init__(self, raw: bytes, low: bytes, hint: bytes) -> None:
        self.raw = raw
        self.low = low
        self.hint = hint
        self._runs: list[Run] | None = None
        self._shape: bytes | None = None
        self._spent = 0
        #: Results of costly checks of candidates, kept while the text is inspected: a number often occurs twice.
        self.judged: dict[tuple[str, bytes], bool] = {}

    def shape(self) -> bytes:
        """Return `raw` with every letter as 'A' and every digit as '9'; other bytes are unchanged."""
        if self._shape is None:
            self._shape = shape_of(self.raw)
        return self._shape

    def afford(self, cost: int = 1) -> bool:
        """Return whether the costly checks of a text are still within their budget.

        Beyond it, a candidate counts as a finding without a check. This keeps a text that is full of candidates cheap, and errs on the safe
        side. One unit is about 5 microseconds.
        """
        self._spent += cost
        return self._spent <= MOST_COSTLY_CHECKS

    def before(self, position: int, reach: int = 48) -> bytes:
        """Return up to `reach` bytes before `position` in lower case.

        At the start of a JSON value, its key comes first.
        """
        if position < reach:
            return self.hint + self.low[:position]
        return self.low[position - reach : position]

    def near(self, start: int, end: int) -> bytes:
        """Return `start` to `end` in lower case with 48 bytes before and 12 after.

        Near the start of a text, the hint comes first.
        """
        return self.hint + self.low[: end + 12] if start < 48 else self.low[start - 48 : end + 12]

    def runs(self) -> list[Run]:
        """Return the maximal runs of digits and their separators with at least seven digits."""
        if self._runs is None:
            classes = self.raw.translate(_NUMBER_CLASSES)
            self._runs = [
                (m.start(), m.end(), count, shape)
                for m in _RUN.finditer(classes)
                if (count := (shape := m.group()).count(b"9")) >= MIN_RUN_DIGITS
            ]
        return self._runs


MIN_RUN_DIGITS = 7
MOST_COSTLY_CHECKS = 5000
_SHAPE_CLASSES = bytes(
    0x39 if 0x30 <= b <= 0x39 else 0x41 if bytes([b]).isalpha() or b == LETTER else b for b in range(256)
)
_NUMBER_CLASSES = bytes(
    0x39 if 0x30 <= b <= 0x39 else 0x2D if b in b" \t.-()/_" else 0x3F for b in range(256)
)  # digits '9', separators '-', the rest '?'
# The literal first byte lets the search skip ahead without entering the matcher; possessive, so it never backtracks.
_RUN = re.compile(rb"9[9\-]{6,}+")


def shape_of(raw: bytes) -> bytes:
    """Return `raw` with every letter as 'A' and every digit as '9'; other bytes are unchanged."""
    return raw.translate(_SHAPE_CLASSES)


Accept = Callable[[View, "re.Match[bytes]"], tuple[int, int] | None]


def nothing(_: View, __: "re.Match[bytes]") -> None:
    """Accept no match; for a rule whose `spread` returns the spans to redact."""


Spread = Callable[[View, "re.Match[bytes]"], Iterable[tuple[int, int]]]
Judge = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A row of a family's table: a precise pattern, and the check of each match.

    The cost of `pattern` must be linear: start with a literal or use a gate of digits, and make every repeat bounded or possessive. It runs
    on the bytes of a view. `accept` returns the span to redact, or None. Each gate has its own kind of rule, whose extra fields prevent its
    rules from running where they cannot match.
    """

    pattern: re.Pattern[bytes]
    accept: Accept


@dataclass(frozen=True, slots=True, eq=False)
class LiteralRule(Rule):
    """A rule behind `Literals` or `Together`, for texts that contain a literal.

    `lower`: the pattern runs on the text in lower case.
    `needle`: the literal, searched for in lower case; without one, any of the gate's.
    `fewest`: digits that the text must have.
    `anchored`: the pattern matches only where its needle stands.
    `spread`: used instead of `accept` for a match with several spans to redact.
    `opens`: an RE2 pattern, nearly a literal, that the lower-case text must contain instead of the needle.
    """

    lower: bool = False
    needle: bytes = b""
    fewest: int = 0
    anchored: bool = False
    spread: Spread | None = None
    opens: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class RunRule(Rule):
    """A rule behind `Digits`, for runs of digits and separators.

    `near`: RE2's pattern that must be near the run, in lower case or in the hint.
    `sign`: must stand right before the run, or a few bytes away.
    `fewest`, `most`: digits in the run. `shape`: a pattern that the run's shape must contain.
    `fallback`: the rule applies only to runs in which no other rule has found anything.
    """

    near: bytes = b""
    sign: bytes = b""
    fewest: int = 0
    most: int = 1 << 62
    shape: bytes = b""
    fallback: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class WordRule(Rule):
    """A rule behind `LongWords`, for one long word.

    `anchored`: matches only at the word's start. `dotted`: only for a word next to a dot.
    """

    anchored: bool = False
    dotted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ShapeRule(Rule):
    """A rule behind `Shapes` or `Seen`. `anchored`: matches only where `needle` stands in the shape."""

    needle: bytes = b""
    anchored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AnnouncedRule(Rule):
    """A rule behind `Announced`; its pattern begins with `needle`, the keyword before the value."""

    needle: bytes = b""


@dataclass(frozen=True, slots=True)
class Literals:
    """Match if the text in lower case contains one of `needles`, and `mark`.

    `mark`: a byte that is rare in prose. Without one, the needles are searched for in every text, also in prose.
    """

    needles: tuple[bytes, ...]
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class Together:
    """`Literals` of the second automaton.

    It reads only texts that contain more than letters and full stops, or a quote. The rules run on texts of at least `fewest` digits. The
    states of an automaton multiply with the text it reads, so needles that are common in prose belong in separate automata.
    """

    fewest: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """Match as `Shapes` does; the rules run on the text itself."""

    pattern: bytes


@dataclass(frozen=True, slots=True)
class Shapes:
    """Match a text of four digits or more whose `view.shape()` contains `pattern`.

    The pattern is RE2's, and small; the rules run on the shape.
    """

    pattern: bytes


@dataclass(frozen=True, slots=True)
class LongWords:
    """Match a run of at least sixteen letters, digits, `_` and `-`.

    The rules then see only that run.
    """


@dataclass(frozen=True, slots=True)
class Digits:
    """Match a run of digits and separators with at least `fewest` digits.

    The rules then see only that run.
    """

    fewest: int


@dataclass(frozen=True, slots=True)
class Always:
    """Match every text. Only for the custom families of a policy."""


@dataclass(frozen=True, slots=True)
class Announced:
    """Match for each rule whose `needle` is a whole word of a text with digits, or of its hint.

    Words are in lower case, of letters only. The rule then runs on the hint and the text in lower case; offsets count from the start of the
    hint.
    """


Gate = Literals | Together | Announced | Seen | Digits | Shapes | LongWords | Always


@dataclass(frozen=True, slots=True)
class Family:
    """A family of personal data.

    If several families match a span, the one with the smallest `rank` names it.
    `more`: further gates with their own rules. `keyed`: returns the judge of a whole value for the words of its key, if any.
    `description`, `examples` and `counterexamples` are for readers: one line, and placeholders of values that are and are not found.
    """

    name: str
    category: Category
    rank: int
    gate: Gate
    rules: tuple[Rule, ...]
    description: str = ""
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
    keyed: Callable[[bytes], Judge | None] | None = None
    more: tuple[tuple[Gate, tuple[Rule, ...]], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Gate, tuple[Rule, ...]], ...]:
        """Return each gate with its rules."""
        return ((self.gate, self.rules), *self.more)
