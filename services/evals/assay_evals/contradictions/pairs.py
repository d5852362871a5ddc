"""Pairs of documents that one question retrieved, and samples of them. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from itertools import combinations
from math import ceil
from random import Random

_WORD = re.compile(r"[^\W\d_]{4,}")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
#: Two texts are alike if this share of the words of the one with fewer is in the other.
ALIKE = 0.2


class Stratum(StrEnum):
    """Kind of a pair, by its texts: where contradictions are likely."""

    #: Alike, with different numbers or dates.
    NUMBERS = "numbers"
    TERMS = "terms"
    REST = "rest"


#: How much likelier a pair is drawn than one of the rest, if not all pairs are judged.
WEIGHTS = {Stratum.NUMBERS: 4.0, Stratum.TERMS: 2.0, Stratum.REST: 1.0}


@dataclass(frozen=True)
class Document:
    """A retrieved document: its id, and its text, scrubbed."""

    id: str
    text: str


@dataclass(frozen=True)
class Question:
    """A question with the documents that it retrieved, best first."""

    query: str
    documents: tuple[Document, ...]


@dataclass(frozen=True)
class Pair:
    """Two documents of a question, as they are sent to the judge; the one with the smaller id is `first`."""

    query: str
    first: Document
    second: Document
    stratum: Stratum
    #: Probability that the pair is in the sample.
    probability: float
    #: True if a text was cut before it was sent.
    cut: bool = False

    @property
    def key(self) -> str:
        """Identity of question and documents, regardless of the texts."""
        return key_of(self.query, self.first.id, self.second.id)

    @property
    def pair_id(self) -> str:
        """Identity of question, documents and texts: the same for a pair that is judged again unchanged."""
        return _digest(self.query, self.first.id, self.second.id, self.first.text, self.second.text)


def key_of(query: str, one: str, other: str) -> str:
    """Return the identity of a question and two documents, in any order."""
    return _digest(query, *sorted((one, other)))


def query_key(query: str) -> str:
    """Return the identity of a question."""
    return sha256(query.encode(errors="replace")).hexdigest()[:32]  # as the store computes it for rows without one


def keys_of(question: Question) -> frozenset[str]:
    """Return the identities of all pairs of a question's documents, in a sample or not."""
    return frozenset(key_of(question.query, one.id, other.id) for one, other in combinations(question.documents, 2))


def distinct_documents(passages: Iterable[tuple[str, str]], top_k: int) -> tuple[Document, ...]:
    """Return the first `top_k` documents of passages (id, text); passages with one id are one document."""
    texts: dict[str, list[str]] = {}
    for name, text in passages:
        if text.strip() and (name in texts or len(texts) < top_k):
            parts = texts.setdefault(name, [])
            if text not in parts:
                parts.append(text)
    return tuple(Document(name, "\n\n".join(parts)) for name, parts in texts.items())


def pairs_of(question: Question, *, most: int | None, max_chars: int, seed: int) -> list[Pair]:
    """Return a sample of the pairs of a question's documents, in random order.

    `most`: the size of the sample; None for all pairs. Each pair carries its inclusion probability. Both texts are cut to `max_chars`
    characters.
    """
    cut = [Document(each.id, each.text[:max_chars].rstrip()) for each in question.documents]
    longer = {each.id for each in question.documents if len(each.text) > max_chars}
    # by id, so that a pair is the same for any order of the results
    both = list(combinations(sorted(cut, key=lambda each: each.id), 2))
    random = Random(json.dumps([seed, question.query]))  # noqa: S311  # a sample, not a secret
    random.shuffle(both)
    strata = [stratum_of(one.text, other.text) for one, other in both]
    shares = inclusion([WEIGHTS[each] for each in strata], len(both) if most is None else most)
    kept = systematic(shares, random.random())
    found = [
        Pair(question.query, *both[at], strata[at], shares[at], bool(longer & {document.id for document in both[at]}))
        for at in kept
    ]
    random.shuffle(found)
    return found


def stratum_of(one: str, other: str) -> Stratum:
    """Return the stratum of two texts, by shared words and different numbers."""
    words, others = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    least = min(len(words), len(others))
    if not least or len(words & others) < ALIKE * least:
        return Stratum.REST
    numbers, more = set(_NUMBER.findall(one)), set(_NUMBER.findall(other))
    return Stratum.NUMBERS if numbers and more and numbers != more else Stratum.TERMS


def inclusion(weights: Sequence[float], size: int) -> list[float]:
    """Return the probabilities of a sample of `size`: proportional to the weights, none above 1."""
    if size >= len(weights):
        return [1.0] * len(weights)
    sure = set[int]()
    while True:
        free = sum(weight for at, weight in enumerate(weights) if at not in sure)
        scale = (size - len(sure)) / free
        more = {at for at, weight in enumerate(weights) if at not in sure and weight * scale >= 1}
        if not more:
            return [1.0 if at in sure else weight * scale for at, weight in enumerate(weights)]
        sure |= more


def systematic(shares: Sequence[float], start: float) -> list[int]:
    """Draw by systematic sampling (Madow 1949): each place with its share, a sample of their sum."""
    kept, total = list[int](), 0.0
    for at, share in enumerate(shares):
        if share >= 1 - 1e-12:
            kept.append(at)
            continue
        before, total = total, total + share
        if ceil(total - start) > ceil(before - start):
            kept.append(at)
    return kept


def in_random_order(questions: Iterable[Question], seed: int) -> list[Question]:
    """Return questions in an order that depends on their text and the seed alone."""
    return sorted(questions, key=lambda each: _digest(str(seed), each.query))


def _digest(*parts: str) -> str:
    text = json.dumps(parts, ensure_ascii=False).encode(errors="surrogatepass")
    return sha256(text).hexdigest()[:32]
