"""Check a judge's reply: its claims against the answer, its quotes against the passages.

Pure.

A claim must be in the answer, and the claims together must cover most of the answer; otherwise the reply is not a
verdict on it. Support must be proved by a quote that is in a passage, is about the same subject as the claim, contains
the claim's numbers, and gives no instruction to a model. A citation counts for a claim only if the cited passage is
about the claim. These checks cannot see meaning: matching words and numbers may still say something else, and only a
judge can decide that.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from assay_judge.patterns import instructs
from assay_judge.prompt import Case
from assay_judge.text import (
    Normal,
    Span,
    normal,
    numbers,
    script_of,
    sentence_spans,
    stems,
    without_markers,
)
from assay_judge.verdict import Claim, ReplyError, Verdict
from assay_schema.refusals import is_courtesy, is_refusal

#: A shorter quote proves nothing, because it occurs in every passage.
QUOTE_MIN_CHARS = 8
#: Shares of a claim's words that its evidence must contain: in general, and if the question contains all of them.
LEAST_SHARED, MOSTLY_SHARED = 1 / 3, 0.6
#: Share of a sentence's words that must be in the claims (to be covered) or in the passages (to be about them).
HALF = 0.5
#: A sentence with fewer words makes no claim: a heading, a greeting, "Yes."
CLAIM_MIN_WORDS = 2
#: A sentence with this many words makes a claim, on any subject.
CLAIM_SURE_WORDS = 4
#: Share of the claiming sentences that a reply may leave out.
LEFT_OUT_MOST = 1 / 3
#: Number of a claim's rarest words, and of sentences with them, that are searched for the claim.
_RARE_WORDS, _PLACES = 4, 100
#: Points at which a sentence may turn: "I cannot find the price, but the boot is waterproof".
_BUT = re.compile(r"[;:,]?\s+(?:but|however|although|though|yet|aber|jedoch)\b[,:]?\s+|;\s+", re.IGNORECASE)


class Proof(NamedTuple):
    """A checked claim.

    `said` is its place in the answer; `passage` and `quote` locate its evidence, if found.
    """

    claim: Claim
    demoted: bool
    said: Span
    passage: str | None = None
    quote: Span | None = None


class CheckedVerdict(NamedTuple):
    """A verdict after its checks. `foreign` counts claims that are not in the answer; they are ignored."""

    verdict: Verdict
    proofs: list[Proof]
    foreign: int

    @property
    def demoted(self) -> int:
        """Number of claims that were called supported without proof."""
        return sum(proof.demoted for proof in self.proofs)


def claim_parts(text: str) -> list[Span]:
    """Return the parts of an answer that make a claim, judging by form.

    Questions, fragments and admissions of not knowing are not claims.
    """
    parts = []
    for sentence in sentence_spans(text):
        clauses = _clauses(text, sentence)
        admitted = [is_refusal(text[start:end]) for start, end in clauses]
        if not any(admitted):
            parts.append(sentence)
        elif not text.endswith(("?", "？"), sentence.start, sentence.end):
            parts += [clause for clause, nothing in zip(clauses, admitted, strict=True) if not nothing]
    return [part for part in parts if len(stems(without_markers(text[part.start : part.end]))) >= CLAIM_MIN_WORDS]


def _clauses(text: str, sentence: Span) -> list[Span]:
    spans, start = [], sentence.start
    for gap in _BUT.finditer(text, sentence.start, sentence.end):
        spans.append(Span(start, gap.start()))
        start = gap.end()
    return [*spans, Span(start, sentence.end)]


class Said:
    """An answer, indexed for the search of claims."""

    def __init__(self, case: Case) -> None:
        self._text = case.answer
        self._question = stems(case.question)
        self.spans = sentence_spans(case.answer)
        self._stems = [stems(without_markers(case.answer[start:end])) for start, end in self.spans]
        self._all = frozenset[str]().union(*self._stems)
        self._numbers = numbers(case.answer)
        self._places: dict[str, list[int]] = {}
        for place, words in enumerate(self._stems):
            for word in words:
                self._places.setdefault(word, []).append(place)
        self._whole: dict[str, int] = {}
        for place, (start, end) in enumerate(self.spans):
            self._whole.setdefault(normal(without_markers(case.answer[start:end])), place)

    def where(self, claim: str) -> Span | None:
        """Return the sentence that makes a claim; None if the answer does not make it.

        Words taken from the question or from other sentences, to make the claim self-contained, do not count against
        it.
        """
        plain = without_markers(claim)
        if (same := self._whole.get(normal(plain))) is not None:
            return self.spans[same]
        wanted = stems(plain)
        if not wanted or not numbers(plain) <= self._numbers | numbers(" ".join(self._question)):
            return None
        indexed = sorted((word for word in wanted if word in self._places), key=lambda word: len(self._places[word]))
        near = Counter(place for word in indexed[:_RARE_WORDS] for place in self._places[word][:_PLACES])
        best = max(near, key=lambda place: (len(wanted & self._stems[place]), -place), default=None)
        if best is not None:
            shared = len(wanted & self._stems[best])
            foreign = len(wanted - self._all - self._question)
            return self.spans[best] if shared >= foreign else None
        if wanted <= self._question:  # "Yes." claims what the question asks
            short = (span for span, words in zip(self.spans, self._stems, strict=True) if len(words) <= CLAIM_MIN_WORDS)
            return next(short, None)
        return None

    def uncovered(self, claims: Iterable[str], passages: Iterable[str]) -> tuple[int, int]:
        """Return the number of claiming sentences that no claim covers, and the number of all.

        Short sentences count only if they are about the passages or the question. Greetings, advice and offers of help
        make no claim.
        """
        said = frozenset[str]().union(*map(stems, claims))
        subject = self._question.union(*map(stems, passages))
        spans = [span for span in claim_parts(self._text) if not is_courtesy(self._text[span.start : span.end])]
        parts = [stems(without_markers(self._text[start:end])) for start, end in spans]
        about = [part for part in parts if len(part) >= CLAIM_SURE_WORDS or len(part & subject) >= HALF * len(part)]
        return sum(len(part & said) < HALF * len(part) for part in about), len(about)


class Passage:
    """A passage, indexed for the search of evidence."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._normal = Normal(text)

    @cached_property
    def _spans(self) -> list[Span]:
        return sentence_spans(self._text)

    @cached_property
    def _windows(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        texts = [self._text[start:end] for start, end in self._spans]
        texts += [f"{first} {second}" for first, second in pairwise(texts)]
        return [(stems(each), numbers(each)) for each in texts if not instructs(each)]

    def find(self, quote: str) -> Span | None:
        """Locate a quote, ignoring case, markup and white space.

        None if it is absent or too short to prove anything.
        """
        wanted = normal(quote).strip(" .…\"'")
        whole = wanted == self._normal.text.strip(" .\"'")
        return self._normal.find(wanted) if wanted and (len(wanted) >= QUOTE_MIN_CHARS or whole) else None

    def shows(self, quote: Span, claim: str, question: str) -> bool:
        """True if the quoted sentences are about a claim. Its numbers may be in the sentence before them."""
        touched = [n for n, (start, end) in enumerate(self._spans) if start < quote.end and end > quote.start]
        first, last = (touched[0], touched[-1]) if touched else (0, -1)
        start, end = (self._spans[first].start, self._spans[last].end) if touched else quote
        before = self._spans[max(0, first - 1)].start if touched else start
        values = numbers(claim) <= numbers(self._text[before:end])
        return values and bears_on(claim, self._text[start:end], question)

    def speaks_of(self, claim: str) -> bool:
        """True if one or two sentences contain a third of a claim's words and do not contradict its numbers."""
        wanted, values = stems(claim), numbers(claim)
        return any(
            len(wanted & words) >= LEAST_SHARED * len(wanted) and (not values or not found or bool(values & found))
            for words, found in self._windows
        )


def bears_on(claim: str, evidence: str, question: str) -> bool:
    """True if evidence is about a claim: most of its words, or a third with some not from the question.

    Words in different scripts cannot be compared; then the claim's numbers alone decide.
    """
    if None not in (written := {script_of(claim), script_of(evidence)}) and len(written) == 2:  # two scripts
        return True
    wanted, held = stems(claim), stems(evidence)
    if not wanted:
        return True
    share = len(wanted & held) / len(wanted)
    own = wanted - stems(question) or wanted
    return share >= MOSTLY_SHARED or (share >= LEAST_SHARED and bool(own & held))


def demote_unsupported(verdict: Verdict, case: Case) -> CheckedVerdict:
    """Check a verdict against the texts.

    Support without proof becomes `not_found`; claims that the answer does not make are dropped.
    """
    said = Said(case)
    passages = {name: Passage(text) for name, text in case.passages.items()}
    proofs = [
        _proof(claim, where, passages, case.question)
        for claim in verdict.claims
        if (where := said.where(claim.text)) is not None
    ]
    kept = verdict.model_copy(update={"claims": [proof.claim for proof in proofs]})
    return CheckedVerdict(kept, proofs, len(verdict.claims) - len(proofs))


def _proof(claim: Claim, said: Span, passages: dict[str, Passage], question: str) -> Proof:
    plain = without_markers(claim.text)
    places = {}
    for name in dict.fromkeys((*claim.citations, *passages)):  # the cited passages first
        if (found := passages[name].find(claim.evidence_quote)) is not None:
            places[name] = found
    honest = not instructs(claim.evidence_quote) or instructs(plain)  # an answer about instructions may quote some
    quoted = [name for name, at in places.items() if honest and passages[name].shows(at, plain, question)]
    shown = quoted[0] if quoted else next(iter(places), None)
    where = places[shown] if shown is not None else None
    if claim.verdict != "supported":
        return Proof(claim, False, said, shown, where)
    if not quoted:
        return Proof(claim.model_copy(update={"verdict": "not_found"}), True, said, shown, where)
    cited_ok = [
        good and (name in quoted or passages[name].speaks_of(plain))
        for name, good in zip(claim.citations, claim.cited_ok, strict=True)
    ]
    return Proof(claim.model_copy(update={"cited_ok": cited_ok}), False, said, shown, where)


def check_anchored(verdict: Verdict, case: Case) -> None:
    """Raise `ReplyError` for a reply that is not about the answer.

    Either most of its claims are not in the answer, or it leaves out most of the answer.
    """
    said = Said(case)
    anchored = [claim.text for claim in verdict.claims if said.where(claim.text) is not None]
    if 2 * len(anchored) < len(verdict.claims):
        raise ReplyError("ReplyUnanchored", "most claims are not in the answer")
    left_out, of = said.uncovered(anchored, case.passages.values())
    if left_out > LEFT_OUT_MOST * of:
        raise ReplyError("ReplyUnanchored", "many claims of the answer are missing from the reply")
