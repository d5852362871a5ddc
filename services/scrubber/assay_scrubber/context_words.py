"""Rules for values that are recognised by the keyword before them: `passport no. X1234567`.

Such a rule runs on the lower-case text with the value's key in front, so a key counts as a keyword too. The keyword is looked up among the
text's words, and the pattern begins with it: a text without the keyword costs one look-up.
"""

import re
from collections.abc import Iterable, Iterator

from .family import Accept, AnnouncedRule

#: Filler that may stand between a keyword and its value: names of numbers, verbs, articles, possessives, HTML tags.
FILLERS = frozenset(
    """
number numbers num nbr no nr nos n is was are id code card and of the my his her their your value us uk usa on in account acct date for
valid customer user patient redacted text new old primary current it as with day holder bearer reads
numero numeros n\x80mero n\x80meros num\x80ro num\x80ros es era fue mi su el la de del du le les est \x80tait mon ma sa son votre
\x80 e il suo mio della o os meu sua seu do da dos em sie
nummer nummern nummeret numret nummeren lautet ist war mein meine meiner ihre seine der die das den am vom
is van op het mijn zijn haar er \x80r var mitt min hans hennes af av som on oli
numer numeru jest to m\x80j moja dnia \x80\x80slo cislo \x80\x80sla je moje moj broj sz\x80m sz\x80ma a az num\x80rul numarul este meu
td th strong span dd dt li br tr div label value field
numara numaras\x80 numarasi numaram numaran\x80z numaral\x80 nolu tarihi tarih bilgisi tanggal
""".encode("latin-1").split()
)
_LONGEST_FIRST = sorted(sorted(FILLERS), key=len, reverse=True)
_WORDS = b"|".join(_LONGEST_FIRST)
#: At most six short words with separators. Every repeat is possessive, so a failed match reads them once. The character after a
#: backslash is part of an escape.
FILLER = rb"(?:[^a-z0-9\x80\n]{1,6}+(?:%b|n\x80)(?![a-z0-9\x80])){0,6}+[^a-z0-9\x80]{0,6}+(?<!\\)" % _WORDS
_TO_WORDS = bytes(b if bytes([b]).isalpha() or b == 0x80 else 0x20 for b in range(256))


def words_of(text: bytes) -> list[bytes]:
    """Return the words of a lower-case text: its runs of letters."""
    return text.translate(_TO_WORDS).split()


def rules_after(
    words: str, value: bytes, accept: Accept | None = None, phrases: Iterable[bytes] = ()
) -> Iterator[AnnouncedRule]:
    """Yield one rule for each of `words` (separated by spaces) and of `phrases`.

    Its pattern is the word, filler, and `value` with one group. `accept` defaults to taking the group. The rules share one pattern, which
    is tried only where a rule's own word stands.
    """
    needles = [*(word.encode("latin-1") for word in words.split()), *phrases]
    any_of_them = b"|".join(map(re.escape, needles))
    pattern = re.compile(rb"(?<![a-z\x80])(?:%b)(?![a-z\x80])%b%b" % (any_of_them, FILLER, value))
    for needle in needles:
        yield AnnouncedRule(pattern, accept or span_of_value, needle=needle)


def span_of_value(_: object, match: re.Match[bytes]) -> tuple[int, int]:
    """Accept every match, and return the span of its first group."""
    return match.span(1)
