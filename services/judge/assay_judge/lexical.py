"""The lexical judge: offline, deterministic, free. A baseline that sees words, not meaning; its scores are labelled as such. Pure.

A claim is a sentence of the answer. A window of one or two sentences of a passage decides about it: supported if it holds nearly all of the
claim's words, all of its numbers and the same negation; contradicted if it speaks of the same and differs in a number or the negation.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from assay_judge.fingerprint import Judge
from assay_judge.prompt import Case, cited_for
from assay_judge.text import numbers, sentences, without_markers, words
from assay_judge.verdict import Claim, Relevancy, Support, Verdict

MODEL = "lexical-1"
#: Share of a claim's words that a window must hold, to support it and to speak of the same.
SUPPORTS, SAME_SUBJECT = 0.75, 0.6
CLAIM_MIN_WORDS = 2
#: Share of the question's words in the answer.
RELEVANT, PARTLY = 0.5, 0.2

_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|without|cannot)\b|n't\b", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"\b(?:I (?:do not|don't|cannot|can't|could not|couldn't) (?:know|find|answer|tell|say)"
    r"|no (?:answer|information|passage)s? (?:was|were|is|are)? ?found"
    r"|(?:is|are) not (?:mentioned|in the (?:passages|context|documents)))\b",
    re.IGNORECASE,
)
_HASH = "0" * 16


def judge() -> Judge:
    """The lexical judge's identity; its rules are its version."""
    return Judge("lexical", MODEL, _HASH, _HASH)


class _Window(NamedTuple):
    """One or two sentences of a passage, and what is compared of them."""

    source: str
    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    negated: bool


def judged(case: Case) -> Verdict:
    """The verdict on a case."""
    windows = [window for name, text in case.passages.items() for window in _windows(name, text)]
    claims: list[Claim] = []
    for sentence in sentences(case.answer):
        plain = without_markers(sentence)
        if sentence.endswith("?") or len(words(plain)) < CLAIM_MIN_WORDS or _NO_ANSWER.search(plain):
            continue
        claims.append(_claim(f"c{len(claims) + 1}", sentence, plain, case, windows))
    return Verdict(claims=claims, relevancy=_relevancy(case))


def _windows(source: str, text: str) -> list[_Window]:
    parts = sentences(text)
    texts = parts + [f"{first} {second}" for first, second in pairwise(parts)]
    return [_Window(source, each, frozenset(words(each)), numbers(each), _negated(each)) for each in texts]


def _claim(name: str, sentence: str, plain: str, case: Case, windows: list[_Window]) -> Claim:
    verdict, quote = _decide(plain, windows)
    cited = cited_for(case, sentence)
    cited_ok = [
        _decide(plain, [window for window in windows if window.source == each])[0] == "supported" for each in cited
    ]
    return Claim(id=name, text=plain, citations=cited, verdict=verdict, evidence_quote=quote, cited_ok=cited_ok)


def _decide(claim: str, windows: list[_Window]) -> tuple[Support, str]:
    wanted, wanted_numbers, negated = frozenset(words(claim)), numbers(claim), _negated(claim)
    best, quote, contradiction = 0.0, "", ""
    for window in windows:
        share = len(wanted & window.words) / len(wanted)
        if share < SAME_SUBJECT:
            continue
        fits = wanted_numbers <= window.numbers and negated == window.negated
        if fits and share >= SUPPORTS and share > best:
            best, quote = share, window.text
        elif not fits and not contradiction:
            contradiction = window.text
    if quote:
        return "supported", quote
    return ("contradicted", contradiction) if contradiction else ("not_found", "")


def _negated(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1


def _relevancy(case: Case) -> Relevancy:
    wanted, given = set(words(case.question)), set(words(case.answer))
    share = len(wanted & given) / len(wanted) if wanted else 0.0
    return "yes" if share >= RELEVANT else "partial" if share >= PARTLY else "no"
