"""Text as judges compare it: normal forms, sentences, words, citation markers. Pure and deterministic."""

import re
import unicodedata
from collections import Counter

from assay_schema.events import Answer

_MARKDOWN = re.compile(r"[*_`#>|~]+")
_SPACE = re.compile(r"\s+")
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})
_MARKER = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")
#: A sentence ends at a full stop, question or exclamation mark before space, or at a line's end. "3.5" and "e.g." stay whole enough.
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+(?=\S)|\n+")
_WORD = re.compile(r"[^\W_]+(?:[.,:'-][^\W_]+)*")
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
    """One form for what reads the same: compatibility characters, case, quotes, markdown and white space."""
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return _SPACE.sub(" ", _MARKDOWN.sub("", plain)).strip().casefold()


def sentences(text: str) -> list[str]:
    """Sentences in order, without empty ones."""
    return [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]


def words(text: str) -> list[str]:
    """Words as they are compared: normal form, without the commonest English ones, plural s taken off."""
    found = (word for word in _WORD.findall(normal(text)) if word not in _STOP)
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text, in one form each."""
    return frozenset(re.sub(r"(?<=\d),(?=\d{3})", "", match).strip(".,") for match in re.findall(r"\d[\d.,]*", text))


def markers(text: str) -> list[int]:
    """Citation markers such as `[2]` or `[1, 3]`, from 1, in order, each once."""
    found = [int(number) for group in _MARKER.findall(text) for number in group.split(",")]
    return list(dict.fromkeys(found))


def without_markers(text: str) -> str:
    """A sentence without its citation markers."""
    return _SPACE.sub(" ", _MARKER.sub("", text)).strip()


def citations_of(answer: Answer) -> tuple[list[int], list[int]]:
    """The markers in an answer's text that name a passage by its place, and those that name none. Without passages none is a citation."""
    found = markers(answer.answer) if answer.contexts else []
    return (
        [number for number in found if 1 <= number <= len(answer.contexts)],
        [number for number in found if not 1 <= number <= len(answer.contexts)],
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
    """The script most letters of a text are written in; None when it has no letters, or of no script known here."""
    seen: Counter[str] = Counter()
    for character in text[:5_000]:
        if character.isascii():
            seen["LATIN"] += character.isalpha()
        elif character.isalpha():
            name = unicodedata.name(character, "")
            seen[next((script for script in _SCRIPTS if name.startswith(script)), "")] += 1
    for kana in ("HIRAGANA", "KATAKANA"):  # Japanese is written in all three
        seen["CJK"] += seen.pop(kana, 0)
    seen.pop("", None)
    best = seen.most_common(1)
    return best[0][0] if best and best[0][1] else None
