"""Explain which rule found something, and the class of the text that it found, without quoting it.

For people who work on rules and policies. The text is searched a second time, by the same rules, each as a separate family, so that
scrubbing itself keeps no names of rules. Slow.
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any, NamedTuple

from . import vendor_keys
from .detector import Detector
from .engine import Scrubber
from .family import Family, Gate, Literals, Rule
from .finding import Finding, Scrubbed
from .lexicon import Announces
from .policy import Policy
from .projection import project
from .registry import FAMILIES, NAMES, SCRUB_KEY

#: Names for findings that no rule of a family made.
BY_KEY, BY_CATALOGUE, BY_MODEL, BY_POLICY, BESIDE_A_REPLACEMENT = (
    "under_key",
    "catalogue",
    "model",
    "policy",
    "beside_a_replacement",
)
_SPREAD = 10_000  # ranks of rules within the rank of their family
_LENGTHS = (4, 8, 16, 32, 64, 128)


class Told(NamedTuple):
    """The rule behind a finding.

    `rule`: its name, stable as long as the rule is the same; `shape`: the class of the text, such as `17-32 lower digit mark`.
    """

    rule: str
    shape: str


def shape_of(text: str) -> str:
    """Return the class of a span: a range of lengths, and kinds of characters.

    One class covers countless texts.
    """
    longest = next((length for length in _LENGTHS if len(text) <= length), 0)
    shortest = _LENGTHS[_LENGTHS.index(longest) - 1] + 1 if longest > _LENGTHS[0] else 1
    length = f"{shortest}-{longest}" if longest else f"over {_LENGTHS[-1]}"
    found = {_kind(character) for character in text}
    return " ".join([length, *(kind for kind in _KINDS if kind in found)])


_KINDS = ("lower", "upper", "letter", "digit", "space", "mark")


def _kind(character: str) -> str:
    if character.isalpha():
        return "lower" if character.islower() else "upper" if character.isupper() else "letter"
    return "digit" if character.isdecimal() else "space" if character.isspace() else "mark"


class _Named(NamedTuple):
    family: str
    rule: str


class Explaining(Scrubber):
    """A scrubber that also reports which rule made each finding of the last text.

    It scrubs exactly as the scrubber it is created with. Do not share it between threads.
    """

    def __init__(self, scrubber: Scrubber) -> None:
        super().__init__(scrubber.policy)
        self._scrubber = scrubber
        self._names: dict[int, _Named] = {}
        families = self._single(scrubber.policy)
        last = FAMILIES["api_key"].rank * _SPREAD + _SPREAD - 1
        self._names[last] = _Named("api_key", BY_CATALOGUE)
        self._rules = Detector(families, (vendor_keys.finder(), last) if scrubber.policy.catalogue else None)
        self._text, self._spans = "", list[tuple[int, int, int]]()
        self._starts, self._reach = list[int](), list[int]()

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """Scrub as `Scrubber.scrub` does; `told` then refers to this text."""
        scrubbed = self._scrubber.scrub(text, hint=hint)
        self._text = text
        self._spans = sorted(self._rules.detect(project(text), hint)) if scrubbed.findings else []
        self._starts = [start for start, _, _ in self._spans]
        self._reach = list(accumulate((end for _, end, _ in self._spans), max))
        return scrubbed

    def told(self, finding: Finding) -> Told:
        """Return the rule behind a finding of the last scrubbed text, and the class of its text."""
        if finding.family == SCRUB_KEY.name:
            return Told(BY_POLICY, "any")
        if finding.family in NAMES:
            return Told(BY_MODEL, "any")  # its position counts in the text after the families' replacements
        overlaps = [
            (min(end, finding.end) - max(start, finding.start), -rank)
            for start, end, rank in self._spans_at(finding)
            if self._names[rank].family == finding.family and finding.start < end
        ]
        rule = self._names[-max(overlaps)[1]].rule if overlaps else BESIDE_A_REPLACEMENT
        return Told(rule, shape_of(self._text[finding.start : finding.end]))

    def _spans_at(self, finding: Finding) -> Iterator[tuple[int, int, int]]:
        """Yield the spans that can overlap a finding, without reading all others: a text can have very many."""
        place = bisect_left(self._starts, finding.end)
        while place and self._reach[place - 1] > finding.start:
            place -= 1
            yield self._spans[place]

    def _single(self, policy: Policy) -> list[Family]:
        """Return a family for each rule, in the order of the rules."""
        families = []
        for family in policy.members():
            rows = [(gate, rule) for gate, rules in family.parts for rule in rules]
            names = ["pattern"] if family in policy.custom else names_of([rule for _, rule in rows])
            for number, ((gate, rule), name) in enumerate(zip(rows, names, strict=True)):
                families.append(self._alone(family, number, gate, (rule,), name))
            if family.keyed is not None:
                key = self._alone(family, len(rows), Literals(()), (), BY_KEY)
                families.append(replace(key, keyed=family.keyed))
        return families

    def _alone(self, family: Family, number: int, gate: Gate, rules: tuple[Rule, ...], name: str) -> Family:
        rank = family.rank * _SPREAD + number
        self._names[rank] = _Named(family.name, name)
        return Family(family.name, family.category, rank, gate, rules)


def names_of(rules: list[Rule]) -> list[str]:
    """Return names of one family's rules: the check, the needle, and digits if both are the same.

    The names do not depend on the order of the rules, so they are stable when others are added.
    """
    names = [_name(rule) for rule in rules]
    often = Counter(names)
    return [name if often[name] == 1 else f"{name}#{_digits(rule)}" for name, rule in zip(names, rules, strict=True)]


def _name(rule: Rule) -> str:
    accept = getattr(rule, "spread", None) or rule.accept
    check = getattr(accept, "__qualname__", type(accept).__name__).split(".")[0].strip("_<>")
    needle = getattr(rule, "needle", b"")
    return f"{check}:{_word(needle)}" if needle else check


def _word(needle: bytes) -> str:
    if len(needle) == 1 and needle[0] in list(Announces):
        return Announces(needle[0]).name.lower()
    return needle.decode("ascii", "backslashreplace")


def _digits(rule: Rule) -> str:
    """Return the digest of all fields that differ from their defaults, so that a new field changes no name."""
    made = [f"{f.name}={_written(value)}" for f in fields(rule) if (value := getattr(rule, f.name)) != f.default]
    return hashlib.blake2b("\0".join(made).encode(), digest_size=2).hexdigest()


def _written(value: Any) -> str:
    if isinstance(value, re.Pattern):
        return repr(value.pattern)
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    return repr(sorted(value) if isinstance(value, frozenset) else value)
