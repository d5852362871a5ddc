"""Automata that tell in one pass what a text contains, and the patterns they know. They are RE2's."""

import re
from collections.abc import Callable, Iterable

import re2

#: Which patterns a text contains, by their number.
Matches = Callable[[bytes], list[int]]


def at_once(patterns: Iterable[bytes]) -> Matches:
    """One automaton that tells in one pass which of `patterns` a text contains.

    They are literals, or nearly: its states are few whatever the text, so no text makes it slow, or fills its memory.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    together = re2.Set.SearchSet(options)
    for pattern in patterns:
        together.Add(pattern)
    together.Compile()
    # What its method calls for bytes: the method itself looks first whether they are.
    matches: Matches = together._set.Match  # noqa: SLF001
    return matches


def whole_word(word: bytes) -> bytes:
    """RE2's pattern of `word`, whole."""
    return _whole(re.escape(word))


def whole_phrase(phrases: Iterable[bytes]) -> bytes:
    """RE2's pattern of one of `phrases`, whole; between their words stands whatever is no letter."""
    written = (rb"[^a-z\x80]+".join(map(re.escape, phrase.split())) for phrase in sorted(phrases))
    return _whole(b"|".join(written))


def _whole(pattern: bytes) -> bytes:
    return rb"(?:^|[^a-z\x80])(?:%b)(?:[^a-z\x80]|$)" % pattern
