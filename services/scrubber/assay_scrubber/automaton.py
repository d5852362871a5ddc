"""Match many patterns in one pass over a text, with automata of RE2."""

import re
from collections.abc import Callable, Iterable

import re2

#: Returns the numbers of the patterns that a text contains.
Matches = Callable[[bytes], list[int]]


def at_once(patterns: Iterable[bytes]) -> Matches:
    """Compile one automaton that finds in one pass which of `patterns` a text contains.

    The patterns must be literals or nearly so: the automaton then has few states, and no text makes it slow or fills its memory.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    together = re2.Set.SearchSet(options)
    for pattern in patterns:
        together.Add(pattern)
    together.Compile()
    # Call the function behind the method: the method would first check whether its argument is bytes.
    matches: Matches = together._set.Match  # noqa: SLF001
    return matches


def whole_word(word: bytes) -> bytes:
    """Return an RE2 pattern that matches `word` as a whole word."""
    return _whole(re.escape(word))


def whole_phrase(phrases: Iterable[bytes]) -> bytes:
    """Return an RE2 pattern that matches one of `phrases` as a whole, with non-letters between its words."""
    written = (rb"[^a-z\x80]+".join(map(re.escape, phrase.split())) for phrase in sorted(phrases))
    return _whole(b"|".join(written))


def _whole(pattern: bytes) -> bytes:
    return rb"(?:^|[^a-z\x80])(?:%b)(?:[^a-z\x80]|$)" % pattern
