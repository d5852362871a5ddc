"""The lexical judge: an offline, deterministic and free baseline. Pure.

It compares words, not meaning, and its scores are labelled as such. A claim is a sentence of the answer. A window of
one or two sentences of a passage decides about it: supported if the window contains nearly all words of the claim, all
of its numbers and the same negation; contradicted if it is about the same subject and differs in a number or the
negation.
"""

from itertools import pairwise
from typing import NamedTuple

from assay_judge.evidence import claim_parts
from assay_judge.judge_identity import JudgeIdentity
from assay_judge.prompt import Case, cited_for
from assay_judge.text import negated, numbers, sentences, without_markers, words
from assay_judge.verdict import Claim, Relevancy, Support, Verdict

MODEL = "lexical-2"
#: Share of a claim's words that a window must contain: to support it, and to be about the same subject.
SUPPORTS, SAME_SUBJECT = 0.75, 0.6
#: Share of the question's words that the answer contains: relevant, and partly relevant.
RELEVANT, PARTLY = 0.5, 0.2
#: Maximum claims, and comparisons of claims with windows or citations, per answer: one or two seconds of work.
CLAIMS_MAX, COMPARISONS_MAX = 1_000, 1_000_000

_HASH = "0" * 16


class TooLongError(ValueError):
    """The answer needs more comparisons than allowed."""


def judge() -> JudgeIdentity:
    """Return the identity of the lexical judge; its rules are its version."""
    return JudgeIdentity("lexical", MODEL, _HASH, _HASH)


class _Window(NamedTuple):
    """One or two sentences of a passage, prepared for comparison."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    negated: bool


def judged(case: Case) -> Verdict:
    """Judge a case. Raises `TooLongError`."""
    parts = claim_parts(case.answer)
    by_passage = {name: _windows(text) for name, text in case.passages.items()}
    windows = sum(map(len, by_passage.values()))
    if len(parts) > CLAIMS_MAX or len(parts) * (windows + len(case.cited)) > COMPARISONS_MAX:
        raise TooLongError
    claims = [_claim(f"c{n}", case.answer[start:end], case, by_passage) for n, (start, end) in enumerate(parts, 1)]
    return Verdict(claims=claims, relevancy=_relevancy(case))


def _windows(text: str) -> list[_Window]:
    parts = sentences(text)
    texts = parts + [f"{first} {second}" for first, second in pairwise(parts)]
    return [_Window(each, frozenset(words(each)), numbers(each), negated(each)) for each in texts]


def _claim(name: str, sentence: str, case: Case, by_passage: dict[str, list[_Window]]) -> Claim:
    plain = without_markers(sentence)
    cited = cited_for(case, sentence)
    decisions = {each: _decide(plain, windows) for each, windows in by_passage.items()}
    cited_ok = [decisions[each].verdict == "supported" for each in cited]
    none = _Decision("not_found", "", 0.0)
    best = max(decisions.values(), key=lambda each: (each.share, each.verdict == "contradicted"), default=none)
    return Claim(
        id=name, text=plain, citations=cited, verdict=best.verdict, evidence_quote=best.quote, cited_ok=cited_ok
    )


class _Decision(NamedTuple):
    """Result of one passage for a claim. `share` is the share of the claim in the supporting window."""

    verdict: Support
    quote: str
    share: float


def _decide(claim: str, windows: list[_Window]) -> _Decision:
    wanted, wanted_numbers, denied = frozenset(words(claim)), numbers(claim), negated(claim)
    best, quote, contradiction = 0.0, "", ""
    for window in windows:
        share = len(wanted & window.words) / len(wanted)
        if share < SAME_SUBJECT:
            continue
        fits = wanted_numbers <= window.numbers and denied == window.negated
        if fits and share >= SUPPORTS and share > best:
            best, quote = share, window.text
        elif not fits and not contradiction:
            contradiction = window.text
    if quote:
        return _Decision("supported", quote, best)
    return _Decision("contradicted" if contradiction else "not_found", contradiction, 0.0)


def _relevancy(case: Case) -> Relevancy:
    wanted, given = set(words(case.question)), set(words(case.answer))
    share = len(wanted & given) / len(wanted) if wanted else 0.0
    return "yes" if share >= RELEVANT else "partial" if share >= PARTLY else "no"
