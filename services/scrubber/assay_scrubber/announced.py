"""Values that only the word before them gives away: `passport no. X1234567`, `date of birth: 12 March 1985`.

Such a rule runs on the text in lower case with the value's key before it, so a key announces as a word does. Its word is
looked up among the text's words, and its pattern begins with it: a text without such a word costs one look-up.
"""

import re
from collections.abc import Iterator

from .family import Accept, Rule

FILLERS = [
    "number",
    "numbers",
    "numero",
    "nummer",
    "num",
    "nbr",
    "no",
    "nr",
    "nos",
    "n",
    "is",
    "was",
    "are",
    "id",
    "code",
    "card",
    "and",
    "of",
    "the",
    "my",
    "his",
    "her",
    "their",
    "your",
    "value",
    "us",
    "usa",
    "uk",
    "on",
    "in",
    "de",
    "du",
    "del",
    "la",
    "le",
    "account",
    "acct",
    "date",
    "for",
    "valid",
    "customer",
    "user",
    "patient",
    "redacted",
    "text",
    "new",
    "old",
    "primary",
    "current",
    "it",
    "as",
    "with",
    "day",
]
#: At most six short words and what stands between them; every repeat is possessive, so a failure reads it once.
FILLER = rb"(?:[^a-z0-9\x80\n]{1,6}+(?:%b|n\x80)(?![a-z0-9\x80])){0,6}+[^a-z0-9\x80]{0,6}+" % "|".join(FILLERS).encode()
_TO_WORDS = bytes(b if bytes([b]).isalpha() or b == 0x80 else 0x20 for b in range(256))


def words_of(text: bytes) -> list[bytes]:
    """The words of a text in lower case: its stretches of letters."""
    return text.translate(_TO_WORDS).split()


def rules_after(words: str, value: bytes, accept: Accept | None = None) -> Iterator[Rule]:
    """One rule for each of `words` (separated by spaces): the word, filler, `value` with one group.

    `accept` defaults to taking the group.
    """
    for word in words.split():
        written = word.encode("latin-1")
        pattern = rb"%b(?<![a-z\x80]%b)(?![a-z\x80])%b%b" % (written, written, FILLER, value)
        yield Rule(re.compile(pattern), accept or span_of_value, needle=written)


def span_of_value(_: object, match: re.Match[bytes]) -> tuple[int, int]:
    """Accepts every match: its first group."""
    return match.span(1)
