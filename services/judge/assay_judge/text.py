"""Text normalization for judges: normal forms, sentences, words, citation markers.

Pure and deterministic.
"""

import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from assay_schema.events import Answer

_MARKDOWN = re.compile(r"[*_`#>|~]+")
_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})
_MARKER = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")
#: A sentence ends at a full stop, question or exclamation mark before white space, or at the end of a line. "3.5" and
#: "e.g." stay whole enough.
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+(?=\S)|\n+")
_WORD = re.compile(r"[^\W_]+(?:[.,:'-][^\W_]+)*")
#: Scripts without spaces between words, or with attached particles; compared by pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+"
)
#: Without "one", which is more often a pronoun than a number.
_NUMBER_WORDS = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
    "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15", "sixteen": "16", "seventeen": "17",
    "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70",
    "eighty": "80", "ninety": "90",
}  # fmt: skip
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|nicht|nie|niemals|ohne|weder|kein\w{0,2})\b|n't\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could",
        "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in",
        "into", "is", "it", "its", "may", "more", "most", "of", "on", "one", "only", "or",
        "our", "out", "shall", "she", "should", "so", "some", "such", "than", "that", "the", "their",
        "them", "then", "there", "these", "they", "this", "those", "to", "up", "was", "we", "were",
        "what", "when", "where", "which", "who", "whose", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip


def normal(text: str) -> str:
    """Normalize compatibility characters, case, quotes, markdown and white space."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return _SPACE.sub(" ", _MARKDOWN.sub("", plain)).strip().casefold()


class Span(NamedTuple):
    """A part of a text: characters (code points) from `start` up to `end`, counted from 0."""

    start: int
    end: int


def sentence_spans(text: str) -> list[Span]:
    """Return the positions of the sentences, in order, without empty ones."""
    spans, start = [], 0
    for gap in (*_SENTENCE.finditer(text), None):
        end = gap.start() if gap else len(text)
        part = text[start:end]
        if stripped := part.strip():
            begin = start + part.index(stripped)
            spans.append(Span(begin, begin + len(stripped)))
        start = gap.end() if gap else end
    return spans


def sentences(text: str) -> list[str]:
    """Return the sentences, in order, without empty ones."""
    return [text[start:end] for start, end in sentence_spans(text)]


def words(text: str) -> list[str]:
    """Return words for comparison.

    They are in normal form, without the most common English words, without plural s, and with number words as digits.
    """
    found = []
    for word in _WORD.findall(_UNSPACED.sub(_pairs, normal(text))):
        if word in _STOP:
            continue
        plain = word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        found.append(_NUMBER_WORDS.get(word, plain))
    return found


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(first + second for first, second in pairwise(run)) or run} "


def stems(text: str) -> frozenset[str]:
    """Return the approximate content: beginnings of words, so that `expires` matches `expired`.

    Numbers are kept whole, negations are left out.
    """
    return frozenset(
        word if any(map(str.isdigit, word)) else word[:6] for word in words(text) if not _NEGATION.fullmatch(word)
    )


def numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text in one form each, including those written as English words."""
    digits = (re.sub(r"(?<=\d),(?=\d{3})", "", match).strip(".,") for match in re.findall(r"\d[\d.,]*", text))
    return frozenset(digits) | {_NUMBER_WORDS[word] for word in _WORD.findall(text.casefold()) if word in _NUMBER_WORDS}


def negated(text: str) -> bool:
    """True if a text negates something: an odd number of negations."""
    return len(_NEGATION.findall(text.translate(_QUOTES))) % 2 == 1


class Normal:
    """The normal form of a text, with the position of each part in the text."""

    def __init__(self, text: str) -> None:
        self.raw = text
        self.text = normal(text)
        self._mapped: tuple[str, list[Span]] | None = None

    def find(self, wanted: str) -> Span | None:
        """Return the position of normalized text in the raw text; None if it is absent."""
        if wanted not in self.text:
            return None
        self._mapped = self._mapped or _mapped(self.raw)
        form, places = self._mapped
        at = form.find(wanted)
        if at < 0:  # the form of the whole differs from that of its parts, as with combining characters
            return Span(0, len(self.raw))
        return Span(places[at].start, places[at + len(wanted) - 1].end)


def _mapped(text: str) -> tuple[str, list[Span]]:
    """Apply `normal` character by character, with the position that each came from."""
    form: list[str] = []
    places: list[Span] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        for character in unicodedata.normalize("NFKC", text[start:end]).translate(_QUOTES).casefold():
            one = " " if character.isspace() else character
            if not _MARKDOWN.match(one) and not (one == " " and (not form or form[-1] == " ")):
                form.append(one)
                places.append(Span(start, end))
        start = end
    return "".join(form), places


def markers(text: str) -> list[int]:
    """Return citation markers such as `[2]` or `[1, 3]`, from 1, in order, without duplicates."""
    numbers_in_markers = [int(number) for group in _MARKER.findall(text) for number in group.split(",")]
    return list(dict.fromkeys(numbers_in_markers))


def without_markers(text: str) -> str:
    """Return a sentence without its citation markers."""
    return _SPACE.sub(" ", _MARKER.sub("", text)).strip()


def citations_of(answer: Answer) -> tuple[list[int], list[int]]:
    """Return the markers in an answer that refer to a passage, and those that do not.

    Without passages, no marker is a citation.
    """
    cited = markers(answer.answer) if answer.contexts else []
    return (
        [number for number in cited if 1 <= number <= len(answer.contexts)],
        [number for number in cited if not 1 <= number <= len(answer.contexts)],
    )


_SCRIPTS = (
    "LATIN",
    "CYRILLIC",
    "GREEK",
    "ARABIC",
    "HEBREW",
    "DEVANAGARI",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "THAI",
)


def script_of(text: str) -> str | None:
    """Return the script of most letters; None without letters, or for an unknown script."""
    occurrences: Counter[str] = Counter()
    for character in text[:5_000]:
        if character.isascii():
            occurrences["LATIN"] += character.isalpha()
        elif character.isalpha():
            name = unicodedata.name(character, "")
            occurrences[next((script for script in _SCRIPTS if name.startswith(script)), "")] += 1
    for kana in ("HIRAGANA", "KATAKANA"):  # Japanese uses all three
        occurrences["CJK"] += occurrences.pop(kana, 0)
    occurrences.pop("", None)
    best = occurrences.most_common(1)
    return best[0][0] if best and best[0][1] else None
