"""Split documents and questions into search terms, and text into sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)*")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n\s*\n")

STOPWORDS = frozenset({
    "a", "about", "actually", "all", "already", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "cannot", "could", "did", "do", "does", "doing", "done", "each", "either", "ever", "every",
    "for", "from", "get", "gets", "give", "given", "go", "goes", "got", "had", "has", "have", "having", "how", "i",
    "if", "in", "into", "is", "it", "its", "itself", "just", "kind", "let", "like", "make", "makes", "may", "me",
    "might", "more", "most", "must", "my", "need", "needs", "not", "of", "off", "on", "one", "only", "or", "other",
    "our", "ought", "out", "own", "per", "please", "python", "rather", "really", "same", "shall", "should", "so",
    "some", "something", "standard", "still", "such", "sure", "tell", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "thing", "this", "those", "to", "too", "under", "until", "up", "us", "use",
    "used", "uses", "using", "very", "want", "was", "way", "we", "were", "what", "when", "where", "whether",
    "which", "while", "who", "whole", "whose", "why", "will", "with", "without", "would", "you", "your", "library",
    "stdlib", "module", "class", "function", "method",
})  # fmt: skip

#: Words of programmers for which documentation uses others: a question with the key also matches the values.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "abort": ("cancel", "terminate"),
    "argument": ("parameter", "option"),
    "background": ("thread", "daemon"),
    "bigger": ("max", "greater"),
    "cache": ("lru", "memoize"),
    "catch": ("except", "suppress"),
    "checksum": ("crc32", "digest", "hash"),
    "clock": ("time", "monotonic"),
    "combine": ("join", "merge", "chain"),
    "compress": ("gzip", "zlib", "deflate"),
    "convert": ("parse", "transform", "format"),
    "copy": ("duplicate",),
    "countdown": ("timeout", "timer"),
    "cpu": ("processor", "core"),
    "create": ("new", "construct", "build"),
    "csv": ("delimiter", "row"),
    "delete": ("remove", "unlink"),
    "delay": ("sleep", "later"),
    "deserialize": ("load", "parse", "unpickle"),
    "dict": ("mapping", "dictionary"),
    "dictionary": ("dict", "mapping"),
    "directory": ("folder", "dir", "path"),
    "download": ("urlopen", "retrieve"),
    "elapsed": ("timer", "perf", "monotonic"),
    "email": ("message", "mail", "smtp"),
    "encrypt": ("ssl", "cipher"),
    "env": ("environ", "environment"),
    "erase": ("remove", "delete", "clear"),
    "exit": ("quit", "terminate"),
    "fetch": ("get", "retrieve", "urlopen"),
    "filename": ("path", "file"),
    "find": ("search", "locate"),
    "folder": ("directory", "dir"),
    "halt": ("stop", "exit"),
    "join": ("concatenate",),
    "kill": ("terminate", "signal"),
    "largest": ("max", "nlargest"),
    "launch": ("start", "run", "spawn"),
    "list": ("sequence",),
    "lock": ("mutex", "acquire"),
    "longest": ("max", "zip_longest"),
    "lowercase": ("lower", "casefold"),
    "merge": ("update", "combine"),
    "mutex": ("lock",),
    "obsolete": ("deprecated",),
    "order": ("sort", "sorted"),
    "parallel": ("executor", "pool", "concurrent"),
    "password": ("getpass", "secret"),
    "pause": ("sleep",),
    "permission": ("chmod", "mode", "access"),
    "print": ("output", "display"),
    "profile": ("profiler", "cprofile"),
    "random": ("choice", "randint", "secrets"),
    "regex": ("regular", "expression", "pattern"),
    "rename": ("move", "replace"),
    "reverse": ("reversed",),
    "round": ("quantize", "floor", "ceil"),
    "schedule": ("call_later", "scheduler"),
    "serialize": ("dump", "pickle"),
    "shuffle": ("random",),
    "smallest": ("min", "nsmallest"),
    "spawn": ("subprocess", "process", "fork"),
    "string": ("str", "text"),
    "subclass": ("inherit", "base"),
    "substring": ("find", "index"),
    "temp": ("temporary", "tempfile"),
    "temporary": ("tempfile", "mkstemp"),
    "thread": ("threading",),
    "timestamp": ("time", "fromtimestamp"),
    "timezone": ("tzinfo", "zoneinfo", "utc"),
    "trim": ("strip",),
    "uppercase": ("upper",),
    "wait": ("join", "sleep", "timeout"),
    "weekday": ("isoweekday", "calendar"),
    "whitespace": ("strip", "space"),
    "zip": ("zipfile", "archive"),
}

_SUFFIXES = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ing", ""),
    ("edly", ""),
    ("ed", ""),
    ("es", ""),
    ("ly", ""),
    ("s", ""),
    ("e", ""),
)
_MIN_STEM = 3


def stem(word: str) -> str:
    """Return a light stem, so that `parsed`, `parsing` and `parses` match; it may be no English word."""
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM and not word.endswith("ss"):
            base = word[: -len(suffix)] + replacement
            if suffix in ("ing", "ed") and len(base) > _MIN_STEM and base[-1] == base[-2] and base[-1] not in "ls":
                base = base[:-1]
            return base.removesuffix("e") if suffix in ("ing", "ed", "es", "s") and len(base) > _MIN_STEM else base
    return word


def words(text: str) -> list[str]:
    """Return lower-case words; an identifier yields itself and its parts (`read_text`, `read`, `text`)."""
    found = []
    for match in _WORD.finditer(text):
        word = match.group().strip("_")
        if not word:
            continue
        found.append(word.lower())
        parts = [part for part in _HUMP.findall(word) if len(part) > 1]
        if len(parts) > 1:
            found.extend(part.lower() for part in parts)
    return found


def terms(text: str) -> list[str]:
    """Return the search terms of a text: stemmed words without stopwords, in order, with repetitions."""
    return [stem(word) for word in words(text) if word not in STOPWORDS and len(word) > 1]


def synonyms(text: str) -> dict[str, tuple[str, ...]]:
    """Return the terms of a question in the synonym table, each with the terms that it adds."""
    known = {stem(word) for word in words(text)} & _SYNONYMS_BY_STEM.keys()
    return {term: _SYNONYMS_BY_STEM[term] for term in sorted(known)}


def sentences(text: str) -> list[str]:
    """Return the sentences of a docstring, each on one line."""
    return [" ".join(part.split()) for part in _SENTENCE_END.split(text) if part and part.strip()]


def _by_stem(table: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    return {stem(word): tuple(stem(other) for other in others) for word, others in table}


_SYNONYMS_BY_STEM = _by_stem(SYNONYMS.items())
